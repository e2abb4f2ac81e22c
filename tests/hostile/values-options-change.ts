// expect: returned "closed"
// An option is read once, so a getter that changes its value has no effect.
let reads = 0;
const options: any = { get timeoutMs() { return reads++ ? 'soon' : 1000; } };
const result: any = await mcp.callTool('odd_echo', { n: 1 }, options);
return reads <= 1 && result.n === 1 ? 'closed' : reads;
