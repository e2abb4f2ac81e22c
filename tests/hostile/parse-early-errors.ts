// expect: types
let twice = 1; let twice = 2;
