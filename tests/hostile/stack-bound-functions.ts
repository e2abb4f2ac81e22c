// expect: threw RangeError or returned 1
let bound: any = () => 1;
for (let i = 0; i < 200_000; i++) bound = bound.bind(null);
return bound();
