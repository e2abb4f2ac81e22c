// expect: threw SuppressedError or threw Error
using stack = new DisposableStack();
for (let i = 0; i < 5000; i++) stack.defer(() => { throw new Error('disposing ' + i); });
throw new Error('body');
