// expect: returned "closed"
class Odd extends Uint8Array { static get [Symbol.species](): any { return class { constructor() { return new Uint8Array(1); } }; } }
const odd = new Odd(64).fill(7);
const got: string[] = [];
for (const act of [() => odd.map((x) => x + 1), () => odd.slice(0, 64), () => odd.filter(() => true), () => odd.subarray(1, 60)]) try { got.push(String(act().length)); } catch (error: any) { got.push(error.name); }
return got.every((one) => one === 'TypeError' || Number(one) <= 64) ? 'closed' : got;
