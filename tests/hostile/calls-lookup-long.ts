// expect: returned "closed"
const long = 'word '.repeat(1e6);
const got = await Promise.allSettled([mcp.searchTools(long), mcp.getToolDetails(Array.from({ length: 100_000 }, (_, i) => 'odd_' + i)), mcp.getToolDetails(long), mcp.searchTools('x', { limit: 1e308 }), mcp.searchTools('x', { server: '../../etc' })]);
return got.every((one) => one.status === 'fulfilled' || one.reason instanceof Error) ? 'closed' : got;
