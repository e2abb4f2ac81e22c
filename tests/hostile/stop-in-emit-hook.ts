// expect: limit timeout or threw TypeError
mcp.emit([{ type: 'text', get text() { for (;;) if (Date.now() < 0) return ''; } }]);
