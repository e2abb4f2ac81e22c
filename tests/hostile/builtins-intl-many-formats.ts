// expect: limit memory or limit timeout
// What ICU allocates is not on the heap of V8.
const kept: unknown[] = [];
for (let i = 0; ; i++) kept.push(new Intl.NumberFormat('hi', { style: 'currency', currency: 'EUR', minimumFractionDigits: i % 20 }));
