// expect: returned "closed"
// A stub is bound to its tool, whatever name it goes by.
const all: any = globalThis;
all.shut_echo = all.odd_echo;
Object.defineProperty(all.odd_echo, 'name', { value: 'shut_echo' });
const first: any = await all.shut_echo({ n: 1 });
const second = await mcp.callTool('shut_echo', { n: 2 }).catch((error) => error instanceof McpDeniedError);
return first.n === 1 && second === true ? 'closed' : [first, second];
