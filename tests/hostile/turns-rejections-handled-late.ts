// expect: threw Error
const promise = Promise.reject(new Error('late'));
setTimeout(() => promise.catch(() => {}), 0);
await new Promise((done) => setTimeout(done, 50));
