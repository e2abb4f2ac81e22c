// expect: limit timeout
for (;;) console.log('x'.repeat(5000), { a: [1, 2, 3] });
