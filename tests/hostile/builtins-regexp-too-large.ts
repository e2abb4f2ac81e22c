// expect: threw SyntaxError
return new RegExp('(?:' + '(a|b)'.repeat(200_000) + ')').test('a');
