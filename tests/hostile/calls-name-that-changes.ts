// expect: returned "closed"
let reads = 0;
const name: any = { toString() { return reads++ ? 'shut_echo' : 'odd_echo'; } };
const got = await (async () => mcp.callTool(name, { n: 1 }))().then(() => 'called', (error) => error.name);
return got === 'TypeError' || (got === 'called' && reads <= 1) ? 'closed' : [got, reads];
