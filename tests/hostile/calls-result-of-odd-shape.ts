// expect: returned "closed"
const all: any = globalThis;
for (const name of ['odd_bare', 'odd_empty', 'odd_not_an_object', 'odd_unknown_block', 'odd_input_required', 'odd_image', 'odd_audio', 'odd_mixed', 'odd_fails_silently']) {
  const got = await mcp.callTool(name, {}).then(() => 'value', (error) => error instanceof McpError);
  if (got !== 'value' && got !== true) return name;
}
void all;
return 'closed';
