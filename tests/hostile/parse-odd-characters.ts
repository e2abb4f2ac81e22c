// expect: syntax
return '\u{110000}' + 1\u2028 + \u0000;
