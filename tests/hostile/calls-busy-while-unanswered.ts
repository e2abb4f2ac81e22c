// expect: limit timeout
const call = never_hang({});
for (;;);
await call;
