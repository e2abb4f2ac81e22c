// expect: limit timeout
await odd_echo({ toJSON() { for (;;); } });
