// expect: threw Error
const first: any = new Error('first');
let last = first;
for (let i = 0; i < 10_000; i++) last = last.cause = new Error('next ' + i);
last.cause = first;
throw first;
