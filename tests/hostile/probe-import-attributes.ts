// expect: syntax
export * from 'data:application/json,{}' with { type: 'json' };
