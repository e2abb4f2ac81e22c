// expect: limit timeout or threw a value
const endless = (): never => { for (;;); };
throw new Proxy(new Error('x'), { get: endless, has: endless, getPrototypeOf: endless, ownKeys: endless, getOwnPropertyDescriptor: endless });
