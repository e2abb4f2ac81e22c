// expect: limit timeout
for (;;) await null;
