// expect: threw Error or threw a value
let left = 20;
for (const index of [0, 1, 2, 3, 4]) Object.defineProperty(Array.prototype, index, { configurable: true, get: () => undefined, set() { if (left-- > 0) Promise.reject(new Error('again')); } });
queueMicrotask(() => { Promise.reject(new Error('first')); Promise.reject(new Error('second')); });
await Promise.resolve();
return 1;
