// expect: returned "none"
let on = true;
for (let index = 0; index < 12; index++) Object.defineProperty(Array.prototype, index, { configurable: true, get: () => undefined, set(value) { if (on) { on = false; Reflect.apply(Set.prototype.add, kept, [value]); on = true; } } });
const kept = new Set<unknown>();
for (const act of [
  () => console.log([1, { a: [2] }], new Map([[1, 2]]), new URL('http://a/?b=c')),
  () => structuredClone([[1]]),
  () => new EventTarget().dispatchEvent(new Event('x')),
  () => AbortSignal.any([new AbortController().signal]).throwIfAborted(),
  () => setTimeout(() => {}, 1),
  () => queueMicrotask(() => {}),
  () => odd_echo({ list: { a: 1 } }),
  () => mcp.searchTools('echo', { limit: 2 }),
]) try { await act(); } catch { /* the script's own doing */ }
for (let index = 0; index < 12; index++) delete (Array.prototype as any)[index];
const functions = [...kept].filter((one) => typeof one === 'function' || (typeof one === 'object' && one !== null && Reflect.ownKeys(one).some((key) => /^_|op_|id$|core/.test(String(key)))));
return functions.length === 0 ? 'none' : functions.map((one) => String(one).slice(0, 80));
