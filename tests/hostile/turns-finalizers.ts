// expect: returned "closed"
// Finalizers run in turns of their own, with nothing of another in reach.
let said = 'closed';
const registry = new FinalizationRegistry((held) => { if (typeof held !== 'number') said = 'foreign'; registry.register({}, 1); throw new Error('in a finalizer'); });
for (let i = 0; i < 1000; i++) registry.register({}, i);
const junk: unknown[] = [];
for (let i = 0; i < 1000; i++) junk.push(new Array(1000).fill(i));
return said;
