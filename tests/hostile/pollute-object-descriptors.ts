// expect: returned "served"
// Every descriptor that is made without a null prototype now has these.
for (const name of ['get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'cause', 'signal', 'timeoutMs', 'detail', 'limit', 'once']) Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, writable: true, value: name === 'get' || name === 'set' ? undefined : 0 } as any);
try { await odd_fails({}); } catch (error: any) { if (!(error instanceof McpToolError)) return 'other ' + error; }
const back: any = await mcp.callTool('odd_echo', { n: 1 });
for (const name of ['get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'cause', 'signal', 'timeoutMs', 'detail', 'limit', 'once']) delete (Object.prototype as any)[name];
return back.n === 1 ? 'served' : back;
