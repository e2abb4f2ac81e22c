// expect: returned {"n":1}
for (const key of Reflect.ownKeys(globalThis)) { const value = (globalThis as any)[key]; if (typeof value === 'function' && value.prototype) Object.freeze(value.prototype); try { Object.freeze(value); } catch { /* a primitive */ } }
Object.freeze(globalThis);
return await odd_echo({ n: 1 });
