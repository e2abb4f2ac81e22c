// expect: returned "closed"
// Promises of the runtime's own are not seen by the script's hooks.
const seen = new Set<unknown>();
const then = Promise.prototype.then;
Promise.prototype.then = function (this: any, ...list: any[]) { seen.add(this); for (const one of list) if (typeof one === 'function' && !/native code|=>|resolve/.test(String(one))) seen.add(one); return then.apply(this, list as any); } as any;
Object.defineProperty(Promise, Symbol.species, { configurable: true, get() { return class extends Promise<any> { constructor(act: any) { super((resolve, reject) => { seen.add(resolve); act(resolve, reject); }); } }; } });
const own = new Set<unknown>([odd_echo({ n: 1 }), mcp.searchTools('x')]);
await Promise.allSettled([...own] as any[]);
Promise.prototype.then = then;
for (const one of seen) if (one instanceof Promise && !own.has(one) && Object.keys(one).length > 0) return 'foreign';
return 'closed';
