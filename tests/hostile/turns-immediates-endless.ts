// expect: limit timeout
const next = () => { setImmediate(next); };
next();
await new Promise(() => {});
