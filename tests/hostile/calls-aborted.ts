// expect: returned 100
const controller = new AbortController();
const calls = Array.from({ length: 100 }, () => never_hang({}, { signal: controller.signal }));
setTimeout(() => controller.abort(new Error('enough')), 5);
return (await Promise.allSettled(calls)).filter((call) => call.status === 'rejected' && call.reason.message === 'enough').length;
