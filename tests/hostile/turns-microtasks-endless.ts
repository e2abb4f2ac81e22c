// expect: limit timeout
const next = (): void => queueMicrotask(next);
next();
await new Promise(() => {});
