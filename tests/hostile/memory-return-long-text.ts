// expect: limit memory or threw RangeError
return 'ab'.repeat(2 ** 28 - 50);
