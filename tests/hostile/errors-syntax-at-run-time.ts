// expect: threw SyntaxError; checked: types
return 'x'.match(/(?<a>.)(?<a>.)/);
