// expect: limit memory
Error.stackTraceLimit = 200;
const kept: unknown[] = [];
const deep = (n: number): void => { if (n > 0) deep(n - 1); else kept.push(new Error('x'.repeat(100)).stack); };
for (;;) deep(190);
