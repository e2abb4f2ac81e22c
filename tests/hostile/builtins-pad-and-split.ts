// expect: limit memory or threw RangeError
return 'ab'.padStart(2 ** 29 - 64, 'yz').split('').length;
