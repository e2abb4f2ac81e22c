// expect: returned "closed"
const seen: string[] = [];
for (const target of [globalThis, mcp, Object.prototype, odd_echo, Object.freeze({}), new Proxy({}, { defineProperty() { return false; } })]) try { Error.captureStackTrace(target as any, odd_echo as any); seen.push(typeof (target as any).stack); delete (target as any).stack; } catch (error: any) { seen.push(error.name); }
return seen.every((one) => ['string', 'TypeError', 'undefined'].includes(one)) && !('stack' in {}) ? 'closed' : seen;
