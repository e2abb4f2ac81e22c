// expect: threw Error
for (let i = 0; i < 100_000; i++) Promise.reject(new Error('number ' + i));
await null;
