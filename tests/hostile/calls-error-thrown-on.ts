// expect: threw McpProtocolError
await odd_rejects({ code: 7, message: 'one\n    at FORGED\nCaused by: FORGED', data: { stack: 'Error\n    at FORGED' } });
