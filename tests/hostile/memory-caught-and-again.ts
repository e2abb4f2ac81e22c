// expect: limit memory
// Nothing that a script catches gives it more.
const kept: unknown[] = [];
for (;;) try { for (;;) kept.push(new Array(1000).fill(kept.length)); } catch { continue; } finally { kept.push(new Uint8Array(1024)); }
