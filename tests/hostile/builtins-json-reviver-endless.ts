// expect: limit timeout
return JSON.parse('{"a":1}', function (this: any, key, value) { if (key) this['k' + Math.random()] = 1; for (;;) if (value === 2) return value; });
