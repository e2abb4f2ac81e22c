// expect: returned
return JSON.parse('{"$serde_json::private::Number":"1e99999","$serde_json::private::RawValue":"]]"}');
