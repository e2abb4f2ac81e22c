// expect: threw RangeError
const inside: any[] = [];
inside.push(inside);
return inside.flat(Infinity).length;
