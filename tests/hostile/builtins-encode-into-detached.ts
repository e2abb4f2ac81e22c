// expect: returned "closed"
// The text's own conversion takes the array's memory away.
const buffer = new ArrayBuffer(16);
const target = new Uint8Array(buffer);
const text: any = { toString() { buffer.transfer(); return 'z'.repeat(1000); } };
const { written } = new TextEncoder().encodeInto(text, target);
return written === 0 && target.length === 0 ? 'closed' : 'wrote ' + written;
