// expect: returned "printed"
console.log('\u001b[2J\u001b]52;c;Y2FsbA==\u0007\u009b31m\u202eabc\u2066\u0000\b\r');
console.log({ '\u001b[31m': '\u001b[0m' }, new Error('\u001b[2J'), ['\u2028'], Symbol('\u001b'));
return 'printed';
