// expect: limit memory or threw RangeError
return encodeURIComponent('\u{10ffff}'.repeat(4e7)).length;
