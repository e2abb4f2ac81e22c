// expect: limit memory or threw RangeError
const kept: ArrayBuffer[] = [];
for (let i = 0; i < 12; i++) { const moved = new ArrayBuffer(1 << 20).transfer(24 << 20); new Uint8Array(moved).fill(255); kept.push(moved); }
return kept.map((one) => one.byteLength);
