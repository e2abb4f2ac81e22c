// expect: limit memory or threw RangeError
return '\u5b57'.repeat(2 ** 27);
