// expect: threw a value or threw Object
await Promise.reject({ then(resolve: any) { resolve(this); }, catch: 1, get stack() { return { toString: null }; } });
