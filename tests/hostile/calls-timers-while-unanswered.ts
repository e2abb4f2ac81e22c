// expect: limit timeout or threw McpTimeoutError
const call = never_hang({});
for (let i = 0; ; i++) await new Promise((done) => setTimeout(done, i % 3));
await call;
