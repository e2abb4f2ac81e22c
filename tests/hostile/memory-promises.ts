// expect: limit memory
const kept: Promise<unknown>[] = [];
let promise: Promise<unknown> = new Promise(() => {});
for (;;) { promise = promise.finally(() => kept.length); kept.push(promise); }
