// expect: limit timeout or limit memory
const big = (1n << 60_000_000n) - 1n;
for (;;) big.toString(10);
