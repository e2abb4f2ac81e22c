// expect: limit memory or threw RangeError or returned
console.log(['a'.repeat(2 ** 29 - 100), 'b'.repeat(2 ** 28)], 'c'.repeat(2 ** 29 - 100));
