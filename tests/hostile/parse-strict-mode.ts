// expect: syntax
with ({ a: 1 }) { return a; }
