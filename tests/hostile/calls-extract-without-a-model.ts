// expect: returned "closed"
const got = await Promise.allSettled([mcp.extract('x', 'string'), mcp.extract({ get a() { throw new Error('mine'); } }, { type: 'object' }), mcp.extract('x', '{ a: '.repeat(5000)), mcp.extract('x', { $ref: '#' })]);
return got.every((one) => one.status === 'rejected') ? 'closed' : got;
