// expect: returned "none"
const taken: Record<number, any> = {};
const indices = [0, 1, 2, 3, 4, 5, 6, 7];
for (const index of indices) Object.defineProperty(Array.prototype, index, { configurable: true, get() { return taken[index]; }, set(value) { taken[index] = value; } });
for (let i = 8; i > 0; i--) setTimeout(() => {}, i * 3);
for (const index of indices) delete (Array.prototype as any)[index];
const strange = Object.values(taken).filter((one) => one !== null && typeof one === 'object');
return strange.length === 0 ? 'none' : strange.map((one) => Reflect.ownKeys(one).map(String).join());
