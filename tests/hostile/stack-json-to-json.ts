// expect: returned null
const value: any = { toJSON(): any { return { a: JSON.stringify(value) }; } };
return value;
