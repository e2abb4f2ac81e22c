// expect: limit timeout
class Slow extends Error { get message(): string { for (;;); } }
Object.defineProperty(Slow.prototype, 'name', { get() { for (;;); } });
throw new Slow();
