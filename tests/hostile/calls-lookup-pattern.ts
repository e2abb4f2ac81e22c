// expect: returned "closed"
// Patterns are matched outside of the sandbox.
for (const pattern of ['(a+)+$', '(?:(?:(?:x{1,1000}){1,1000}){1,1000})', '(', '\\'.repeat(9), '[', '(?i)' + '(a|b|ab)*'.repeat(500) + 'c', '\\p{L}{1000}'.repeat(50)]) await mcp.searchTools(pattern, { by: 'regex' }).catch((error) => { if (!(error instanceof Error)) throw error; });
return 'closed';
