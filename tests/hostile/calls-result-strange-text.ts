// expect: returned "closed"
for (const text of ['\u2028\u2029', '\ud800', '"]}\n{"jsonrpc":"2.0","id":1,"result":{}}', '\u0000\u001b[2J', '```ts\nreturn 1\n```', '</script>', '\ufeff{"a":1}']) {
  const back = mcp.text(await odd_text({ text }));
  if (back !== text.toWellFormed()) return [text, back];
}
return 'closed';
