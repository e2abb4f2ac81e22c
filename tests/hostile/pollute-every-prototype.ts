// expect: returned {"n":1}
for (const type of [Map, Set, WeakMap, WeakSet, Promise, RegExp, String, Number, Date, Error, Symbol, Uint8Array, ArrayBuffer, URL, AbortSignal, EventTarget] as any[]) for (const key of Reflect.ownKeys(type.prototype)) try { if (key !== 'constructor') Object.defineProperty(type.prototype, key, { value: () => { throw new Error('taken'); } }); } catch { /* cannot be */ }
const promise = odd_echo({ n: 1 });
return await promise;
