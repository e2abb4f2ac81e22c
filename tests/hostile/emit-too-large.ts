// expect: returned "closed"
try { for (let i = 0; i < 60; i++) mcp.emit([{ type: 'text', text: '\u0001'.repeat(1 << 18) }]); } catch (error) { return error instanceof Error ? 'closed' : 'other'; }
return 'all';
