// expect: threw or returned or limit timeout or neverSettled
Object.defineProperty(Object.prototype, 'get', { value() { return 1; } });
Object.defineProperty(Object.prototype, 'value', { get() { throw new Error('value'); } });
setTimeout(() => {}, 1);
await odd_echo({});
throw new Error('with a stack');
