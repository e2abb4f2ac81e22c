// expect: threw RangeError
const many = new Array(1e6).fill(1);
return Math.max(...many, ...many, ...many);
