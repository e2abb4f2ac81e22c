// expect: limit timeout
return /^(.*)(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5\6z$/s.test('ab'.repeat(400));
