// expect: threw Error
const error: any = new Error('x');
Object.defineProperty(error, 'message', { get: () => ({ toString() { throw error; }, [Symbol.toPrimitive]() { throw error; } }) });
throw error;
