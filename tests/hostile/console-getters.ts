// expect: returned "not called"
let called = 'not called';
const call = (name: string): any => { called = name; return name; };
const value: any = { get plain() { return call('get'); }, toString: () => call('toString'), valueOf: () => call('valueOf'), toJSON: () => call('toJSON'), inspect: () => call('inspect'), [Symbol.for('nodejs.util.inspect.custom')]: () => call('custom'), [Symbol.toPrimitive]: () => call('primitive') };
console.log(value, [value], { value });
console.dir(value, { depth: null });
return called;
