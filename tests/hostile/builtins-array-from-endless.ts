// expect: limit memory
const endless = { *[Symbol.iterator]() { for (;;) yield [0, 1, 2, 3]; } };
return Array.from(endless).length;
