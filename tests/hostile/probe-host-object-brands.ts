// expect: returned "closed"
const mark = Symbol.for('Deno.core.hostObject');
for (const proto of [Object.prototype, Array.prototype, Map.prototype, Date.prototype, Error.prototype] as any[]) {
  for (const value of ['Blob', 'CryptoKey', 1, () => ({ type: 'Blob' }), null]) {
    Object.defineProperty(proto, mark, { configurable: true, writable: true, value });
    try { structuredClone({ a: [new Map([[1, new Date(0)]]), new Error('x'), new Uint8Array(2)] }); } catch { /* closed */ }
    delete proto[mark];
  }
}
return 'closed';
