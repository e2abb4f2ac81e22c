// expect: limit timeout
return /^(?:x+x+)+y$/.test('x'.repeat(60));
