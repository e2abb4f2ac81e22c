// expect: threw McpToolError
odd_fails({});
return 'early';
