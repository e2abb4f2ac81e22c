// expect: limit timeout
return /^(?:[\p{L}--[a-z]]|\p{L})*(?:\p{Alphabetic})*#$/v.test('é'.repeat(5000) + '!') || /^(\p{L}*)*#$/u.test('é'.repeat(50));
