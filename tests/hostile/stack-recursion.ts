// expect: threw RangeError
const down = (n: number): number => down(n + 1) + 1;
return down(0);
