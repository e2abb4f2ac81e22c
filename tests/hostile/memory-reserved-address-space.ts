// expect: threw RangeError
// Reserved, and never used.
const kept: ArrayBuffer[] = [];
for (let i = 0; i < 2000; i++) kept.push(new ArrayBuffer(0, { maxByteLength: 2 ** 32 }));
return kept.length;
