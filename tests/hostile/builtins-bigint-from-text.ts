// expect: limit timeout or limit memory
const digits = '8'.repeat(2e7);
for (;;) BigInt(digits);
