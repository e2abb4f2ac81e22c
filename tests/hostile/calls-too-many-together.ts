// expect: limit calls
await Promise.allSettled(Array.from({ length: 5000 }, (_, n) => odd_echo({ n })));
