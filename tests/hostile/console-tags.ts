// expect: returned "printed"
class Odd { get [Symbol.toStringTag](): string { return '\u001b]0;title\u0007'.repeat(1e5); } }
Object.defineProperty(Odd, 'name', { get() { throw new Error('name'); } });
console.log(new Odd(), [new Odd()], Object.create(Odd.prototype), Object.create(null, { constructor: { get() { throw new Error('constructor'); } } }));
return 'printed';
