// expect: limit timeout or returned
for (let index = 0; index < 8; index++) Object.defineProperty(Array.prototype, index, { configurable: true, get: () => undefined, set() { for (;;); } });
setTimeout(() => {}, 1);
Promise.reject(1);
console.log([1]);
const list: any[] = [];
list[0] = 1;
