// expect: threw Error
setTimeout(() => { throw new Error('in a timer'); }, 0);
await new Promise((done) => setTimeout(done, 10_000));
