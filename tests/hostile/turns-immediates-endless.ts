// expect: limit timeout or limit waitTimeout
const next = () => { setImmediate(next); };
next();
await new Promise(() => {});
