// expect: threw Error
let read = 0;
Object.defineProperty(Error, 'stackTraceLimit', { get() { read++; return Infinity; }, set() { throw new Error('set'); } });
const deep = (n: number): void => { if (n === 0) throw new Error('deep ' + read); deep(n - 1); };
deep(5000);
