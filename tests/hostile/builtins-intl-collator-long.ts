// expect: limit timeout or limit memory
const order = new Intl.Collator('vi', { sensitivity: 'base', numeric: true });
const text = 'e\u0302\u0323'.repeat(1e6);
for (;;) order.compare(text, text + 'a');
