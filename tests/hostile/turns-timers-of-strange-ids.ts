// expect: returned
for (const id of [-1, 0, NaN, 2 ** 53, Infinity, 'x', {}, [], null, undefined, Symbol.iterator, { valueOf() { throw new Error('id'); } }] as any[]) for (const clear of [clearTimeout, clearInterval, clearImmediate]) try { clear(id); } catch { /* as it may */ }
for (let i = 0; i < 1e5; i++) clearTimeout(i);
