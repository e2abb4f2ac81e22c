// expect: limit waitTimeout
await new Promise((done) => setTimeout(done, 2 ** 31 - 1));
