// expect: limit timeout
return (function* () { for (;;) yield 0; })().every((n) => n === 0);
