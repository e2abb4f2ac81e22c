// expect: limit memory or threw RangeError
mcp.emit([{ type: 'text', text: 'e'.repeat(2 ** 29 - 100) }]);
