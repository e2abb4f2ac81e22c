// expect: limit timeout
setTimeout(() => { for (;;); }, 1);
await new Promise(() => {});
