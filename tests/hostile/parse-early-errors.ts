// expect: syntax
let twice = 1; let twice = 2;
