// expect: limit memory
const bytes = new Uint8Array(1 << 20).fill(0xe2);
const kept: string[] = [];
for (;;) kept.push(new TextDecoder().decode(bytes));
