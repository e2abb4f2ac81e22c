// expect: limit memory or threw RangeError
const kept = Array.from({ length: 64 }, () => new ArrayBuffer(0, { maxByteLength: 16 << 20 }));
for (const buffer of kept) { buffer.resize(16 << 20); new BigUint64Array(buffer).fill(0x0101010101010101n); }
return kept.length;
