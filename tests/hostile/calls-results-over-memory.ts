// expect: limit memory or threw McpProtocolError
const kept: unknown[] = [];
for (let i = 0; i < 100; i++) kept.push(await big_rows({ bytes: 8e6 }));
return kept.length;
