// expect: returned "closed"
let made = 0;
try { for (;;) { mcp.emit([{ type: 'text', text: 'block ' + made }]); made++; } } catch (error) { return error instanceof Error && made <= 64 ? 'closed' : made; }
