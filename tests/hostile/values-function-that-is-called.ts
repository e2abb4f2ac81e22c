// expect: returned
// A function as a value is shown, and not run.
return Object.assign(() => { for (;;); }, { toJSON: undefined, [Symbol.toPrimitive]() { for (;;); } });
