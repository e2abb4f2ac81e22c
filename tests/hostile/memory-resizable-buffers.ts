// expect: threw RangeError
// Their memory would not be counted, so there are none.
const kept: ArrayBuffer[] = [];
for (let i = 0; i < 10; i++) { const buffer = new ArrayBuffer(32 << 20, { maxByteLength: 32 << 20 }); new Uint8Array(buffer).fill(i | 1); kept.push(buffer); }
return kept.reduce((sum, one) => sum + one.byteLength, 0);
