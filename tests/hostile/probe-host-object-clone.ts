// expect: returned "closed"
// The mark by which the runtime's own cloning knows objects of the host.
const mark = Symbol.for('Deno.core.hostObject');
for (const made of [{ [mark]: () => ({}) }, { [mark]: () => ({ type: 'MessagePort' }) }, { [mark]: 'x' }, { [mark]: { brand: 1 } }, [{ [mark]: () => null }], new Map([[1, { [mark]() { return [1]; } }]])] as any[]) try { structuredClone(made); } catch { /* closed */ }
return 'closed';
