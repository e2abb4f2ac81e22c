// expect: limit timeout or limit memory or threw RangeError or threw TypeError or returned null
const keys = Array.from({ length: 300_000 }, (_, i) => 'k' + i);
return new Proxy({} as any, { ownKeys: () => keys, getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }), get: (target, key, self) => (typeof key === 'string' && key[0] === 'k' ? self : undefined) });
