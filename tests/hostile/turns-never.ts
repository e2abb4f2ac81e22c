// expect: neverSettled
await new Promise(() => {});
