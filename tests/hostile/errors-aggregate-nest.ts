// expect: threw AggregateError
let inner: Error = new Error('leaf');
for (let i = 0; i < 20_000; i++) inner = new AggregateError([inner, inner], 'level ' + i);
throw inner;
