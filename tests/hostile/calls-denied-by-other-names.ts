// expect: returned []
// No spelling of a denied tool is another tool.
const names: any[] = ['shut_echo', 'shut.echo', 'shut/echo', 'shut_echo ', ' shut_echo', 'SHUT_ECHO', 'Shut_Echo', 'shut__echo', 'shut_echo\u0000', 'shut\u005fecho', 'ｓｈｕｔ_echo', 'shut_e\u0301cho', 'shut_echo()', 'globalThis.shut_echo', 'odd_echo/../shut_echo', 'mcp__shut__echo', 'shut_echo#odd_echo', 'echo', 'shut', '*', '', '__proto__', 'constructor', 'toString', ['shut_echo'], { toString: () => 'shut_echo' }, Object('shut_echo'), null, undefined, 7];
const open: unknown[] = [];
for (const name of names) await (async () => mcp.callTool(name, { n: 1 }))().then(() => open.push(name), () => {});
return open;
