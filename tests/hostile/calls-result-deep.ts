// expect: returned "closed"
let text = '1';
for (let i = 0; i < 5; i++) text = '[' + text + ']';
const deep = await odd_json_text({ text: '['.repeat(100_000) + ']'.repeat(100_000) }).then((value: any) => typeof value, (error: any) => error instanceof McpError);
return deep === true || deep === 'string' || deep === 'object' ? 'closed' : deep;
