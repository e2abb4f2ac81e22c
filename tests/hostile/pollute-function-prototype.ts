// expect: returned {"n":1}
for (const name of ['call', 'apply', 'bind', 'toString', Symbol.hasInstance]) try { Object.defineProperty(Function.prototype, name, { value: () => { throw new Error('taken'); } }); } catch { /* cannot be */ }
Reflect.apply = Reflect.get = Reflect.construct = Reflect.ownKeys = (() => { throw new Error('taken'); }) as any;
Object.defineProperty = Object.keys = Object.freeze = Object.create = (() => { throw new Error('taken'); }) as any;
console.log('shown', { a: 1 });
return await odd_echo({ n: 1 });
