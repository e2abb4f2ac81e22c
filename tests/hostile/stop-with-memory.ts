// expect: limit memory or limit timeout
const kept: unknown[] = [];
for (;;) try { for (;;) { kept.push(new ArrayBuffer(1 << 16), { a: kept.length }, () => kept); } } finally { for (let i = 0; i < 1e3; i++) kept.push([i]); continue; }
