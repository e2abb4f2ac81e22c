// expect: returned "closed"
const wrong: any[] = [1, 'x', [], { timeoutMs: -1 }, { timeoutMs: NaN }, { timeoutMs: {} }, { timeoutMs: 1e300 }, { signal: {} }, { signal: Object.create(AbortSignal.prototype) }, { signal: new Proxy(new AbortController().signal, {}) }, { other: 1 }, { timeoutMs: { valueOf() { throw 1; } } }];
const got = await Promise.all(wrong.map((options) => (async () => mcp.callTool('odd_echo', {}, options))().then(() => 'called', (error) => error.name)));
return got.every((one) => one === 'TypeError' || one === 'RangeError' || one === 'called') ? 'closed' : got;
