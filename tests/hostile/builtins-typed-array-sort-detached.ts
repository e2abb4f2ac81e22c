// expect: returned "closed"
const buffer = new ArrayBuffer(4096);
const bytes = new Uint8Array(buffer);
let seen = 'closed';
bytes.sort((a, b) => { if (buffer.byteLength > 0) buffer.transfer(); if (a !== 0 || b !== 0) seen = 'foreign bytes'; return 0; });
return bytes.length === 0 ? seen : 'attached';
