// expect: limit memory or threw RangeError
let text = 'aa';
for (;;) text = text.replaceAll('a', 'aaaa');
