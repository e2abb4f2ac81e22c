// expect: returned "closed"
for (const make of [() => odd_echo, () => mcp, () => globalThis, () => new Proxy({}, {}), () => new WeakMap(), () => (function* () {})(), () => Symbol(), () => new AbortController().signal, () => new URL('a:b'), () => Object.create(Map.prototype), () => new Intl.Collator(), () => [odd_echo], () => new (class extends Error { cause = globalThis; })()]) try {
  const copy: any = structuredClone(make());
  if (typeof copy === 'function' || copy === globalThis) return 'got ' + make;
} catch { /* closed */ }
return 'closed';
