// expect: limit memory
const kept: unknown[] = [];
const source = { bytes: new Uint8Array(4 << 20).fill(3) };
for (;;) kept.push(structuredClone(source));
