// expect: returned null
return new Proxy([] as any, { get: (target, key) => (key === 'length' ? 2 ** 53 - 1 : key === 'toJSON' ? undefined : 0) });
