// expect: threw RangeError
const type: any = { [Symbol.hasInstance]: (one: any) => one instanceof type };
return ({}) instanceof type;
