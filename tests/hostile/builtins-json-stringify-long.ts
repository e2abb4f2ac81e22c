// expect: limit memory or threw RangeError
return JSON.stringify('"\u0007'.repeat(2e8)).length;
