// expect: returned "not called"
let called = 'not called';
const handler: any = new Proxy({}, { get(_, trap) { return () => { called = String(trap); for (;;); }; } });
console.log(new Proxy({ a: 1 }, handler), [new Proxy(function () {}, handler)], new Map([[1, new Proxy([], handler)]]));
return called;
