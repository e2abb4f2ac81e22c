// expect: limit memory or threw RangeError
return JSON.parse('[{"a":'.repeat(6e6));
