// expect: limit timeout or limit memory
const numbers = (function* () { for (let i = 0; ; i++) yield i; })();
return Object.groupBy(numbers, (n) => 'k' + (n % 1e9));
