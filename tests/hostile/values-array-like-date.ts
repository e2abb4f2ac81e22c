// expect: returned null
const date: any = new Date(NaN);
date.toISOString = () => ({ toString: () => 'x' });
return [date, { toJSON: Date.prototype.toJSON, valueOf: () => 1, toISOString() { throw new RangeError('mine'); } }];
