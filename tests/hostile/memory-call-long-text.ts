// expect: limit memory or threw RangeError
await odd_echo({ text: '\u0001'.repeat(2 ** 28) });
