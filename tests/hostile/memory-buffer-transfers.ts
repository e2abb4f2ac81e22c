// expect: limit memory or threw RangeError
const kept: ArrayBuffer[] = [];
let buffer = new ArrayBuffer(1 << 20);
for (let i = 0; i < 400; i++) { kept.push(buffer.slice(0)); buffer = buffer.transferToFixedLength(buffer.byteLength); new Uint8Array(buffer).fill(i | 1); kept.push(buffer.slice(0)); }
return kept.length;
