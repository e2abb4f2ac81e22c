// expect: returned "not called" or limit timeout
let called = 'not called';
const hooks: any = {};
for (const proto of [URL.prototype, URLSearchParams.prototype, Event.prototype, DOMException.prototype] as any[]) for (const symbol of Object.getOwnPropertySymbols(proto)) if (![Symbol.toStringTag, Symbol.iterator].includes(symbol as any)) hooks[symbol] = () => { called = 'called'; return 'x'.repeat(2 ** 20); };
console.log(hooks, [hooks], new Map([[hooks, hooks]]));
return called;
