// expect: threw Error
const controller = new AbortController();
controller.signal.addEventListener('abort', () => { odd_echo({ n: 1 }); never_hang({}, { signal: controller.signal }).catch(() => {}); throw new Error('in a listener'); });
setTimeout(() => controller.abort(), 1);
await never_hang({}, { signal: controller.signal }).catch(() => {});
