// expect: returned {"n":1}
try { Object.setPrototypeOf(globalThis, new Proxy({}, { get() { throw new Error('trap'); }, has: () => true })); } catch { /* cannot be */ }
try { Object.setPrototypeOf(Object.prototype, new Proxy({}, {})); } catch { /* cannot be */ }
return await odd_echo({ n: 1 });
