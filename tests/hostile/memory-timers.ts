// expect: limit memory
for (;;) setTimeout((...list: unknown[]) => list, 1e8, new Array(100).fill(0));
