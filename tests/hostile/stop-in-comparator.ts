// expect: limit timeout
[3, 1, 2].toSorted(() => { for (;;); });
