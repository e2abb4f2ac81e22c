// expect: limit timeout
const values = Array.from({ length: 50_000 }, (_, i) => i);
for (;;) values.sort(() => Math.random() - 0.5);
