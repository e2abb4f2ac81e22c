// expect: limit memory
let last: () => unknown = () => 0;
for (;;) { const before = last, more = new Array(50).fill(last); last = () => [before, more]; }
