// expect: limit memory
const kept: Float64Array[] = [];
for (;;) kept.push(new Float64Array(1 << 19).fill(Math.E));
