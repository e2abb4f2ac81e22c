// expect: limit timeout or limit memory or threw RangeError
let n = 3n;
for (;;) n = n ** 3n;
