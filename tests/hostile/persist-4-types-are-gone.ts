// expect: threw ReferenceError; checked: types
const value: LeftByOne = { own: 1 };
return [leftVariable, value];
