// expect: threw TypeError
// A stub as a callback, an accessor, a trap and a hook.
const stub: any = odd_echo;
const made: any[] = [];
const call = (input: any) => { const promise = (async () => stub(input))(); made.push(promise); promise.catch(() => {}); return promise; };
try { await Promise.allSettled([{ n: 1 }, { n: 2 }].map(stub)); } catch { /* an index is not an option */ }
await Promise.resolve({ n: 3 }).then(stub);
try { void Object.defineProperty({} as any, 'x', { get: stub }).x; } catch { /* wrong arguments */ }
try { void new Proxy({} as any, { get: stub, has: stub }).any; } catch { /* wrong arguments */ }
try { [{ a: 1 }, { a: 2 }].sort(stub); } catch { /* wrong arguments */ }
try { 'abc'.replace(/b/, stub); } catch { /* wrong arguments */ }
try { JSON.parse('{"a": {"b": 1}}', stub); } catch { /* wrong arguments */ }
Reflect.construct(class { constructor() { call({ n: 4 }); } }, []);
setTimeout(stub, 1, { n: 5 });
queueMicrotask(() => call({ n: 6 }));
await Promise.allSettled(made);
return 'closed';
