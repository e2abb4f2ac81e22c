// expect: syntax or threw SyntaxError; checked: syntax or types
outer: for (;;) { (() => { break outer; })(); }
