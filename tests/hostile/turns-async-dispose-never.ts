// expect: neverSettled
await using held: AsyncDisposable = { [Symbol.asyncDispose]: () => new Promise<void>(() => {}) };
