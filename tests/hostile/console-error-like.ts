// expect: returned "printed"
const error: any = new Error('x');
error.cause = error;
error.errors = [error, error];
error.stack = { toString() { for (;;); } };
error[Symbol('s')] = error;
console.log(error, { error }, Object.create(error), new AggregateError([error], 'many', { cause: error }));
return 'printed';
