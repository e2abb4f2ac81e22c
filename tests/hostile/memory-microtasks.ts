// expect: limit memory
const more = () => { queueMicrotask(more); queueMicrotask(more); };
more();
await null;
await new Promise(() => {});
