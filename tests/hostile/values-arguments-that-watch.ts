// expect: returned "closed"
// The search for values that JSON loses runs getters and traps of the script.
const seen = new Set<any>();
const all: any = globalThis;
class Late { a = 1; get then() { seen.add(new Error('then').stack); return undefined; } get next() { seen.add(new Error('next').stack); return undefined; } }
const watched: any = new Proxy({ b: 2 }, { get(on: any, key) { seen.add(new Error('get').stack); return on[key]; }, getPrototypeOf() { return Late.prototype; } });
all.BigInt.prototype.toJSON = function () { seen.add(new Error('toJSON').stack); return 1; };
all.Object.prototype.source = '5';
for (const index of [0, 1]) Object.defineProperty(Array.prototype, index, { configurable: true, get: () => undefined, set(value) { seen.add(value); } });
await odd_echo({ late: new Late(), n: 5n, watched });
mcp.json('[1234567890123456789, 1e400]');
const given = Array.from(seen).filter((one) => typeof one !== 'string' || one.includes('ext:'));
return given.length === 0 && seen.size > 3 ? 'closed' : given;
