// expect: returned "closed"
let failed = 0;
for (let i = 0; i < 300; i++) await mcp.searchTools('tool ' + i, { limit: 1 }).catch(() => failed++);
return failed === 200 ? 'closed' : failed;
