// expect: threw SyntaxError; checked: types
return /(?<n>a)|(?<n>b)(?<n>c)/.test('a');
