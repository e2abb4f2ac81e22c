// expect: threw Error
// Setters of indices on the prototype are run while rejections are gathered, if anything is.
let once = true;
Object.defineProperty(Array.prototype, 0, { configurable: true, get: () => undefined, set(value) { if (once) { once = false; void Promise.reject(new Error('within')); } void value; } });
void Promise.reject(new Error('first'));
await null;
