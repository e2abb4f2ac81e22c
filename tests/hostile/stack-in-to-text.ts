// expect: threw RangeError
const shown: any = { toString() { return `${shown}`; } };
return shown + '';
