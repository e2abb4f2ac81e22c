// expect: limit timeout
(Error as any).prepareStackTrace = () => { for (;;); };
Object.defineProperty(Error.prototype, 'toString', { value: () => { for (;;); } });
const error: any = new Error('x');
error.toString();
