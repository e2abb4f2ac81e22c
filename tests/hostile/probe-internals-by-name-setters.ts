// expect: returned "none"
const names = ['core', 'ops', 'internals', 'primordials', 'callgate', 'next', 'prev', 'expiry', 'resolve', 'reject', 'promise', 'callback', 'then', 'handle', 'id', 'stack', 'frames', 'place', 'position', 'target', 'listeners', 'signal', 'map', 'value', 'get', 'set', 'done', 'args', 'refd', 'repeat'];
const taken: string[] = [];
for (const name of names) Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get: undefined, set(this: any, value: any) { if (typeof value === 'function' || (value && typeof value === 'object')) taken[taken.length] = name; Object.defineProperty(this, name, { __proto__: null, value, writable: true, configurable: true, enumerable: true } as any); } } as any);
let failed = 'none';
try {
  setTimeout(() => {}, 1);
  new AbortController().abort();
  await odd_echo({ plain: 1 });
  console.log({ plain: [1] });
  void new URL('http://a/b').searchParams.get('c');
} catch (error: any) { failed = 'threw ' + error.message; }
for (const name of names) delete (Object.prototype as any)[name];
return taken.length === 0 ? failed : taken;
