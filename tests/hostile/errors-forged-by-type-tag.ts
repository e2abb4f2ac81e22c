// expect: threw a value or threw Object
const thrown: any = { [Symbol.toStringTag]: 'x\nFORGED' };
Object.defineProperty(thrown, 'constructor', { value: { name: 'Y\nFORGED: z' } });
throw thrown;
