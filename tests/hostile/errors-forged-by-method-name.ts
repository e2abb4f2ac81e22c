// expect: threw Error
const key = 'get\n    at FORGED';
const holder: any = { [key]() { throw new Error('true'); }, get ['x\vFORGED\f\nFORGED']() { return this[key](); } };
holder['x\vFORGED\f\nFORGED'];
