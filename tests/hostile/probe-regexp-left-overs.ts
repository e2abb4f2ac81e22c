// expect: returned "closed"
// The legacy properties of `RegExp` hold no matches of the runtime's own.
/seed/.exec('seed');
console.log('%s %o', 'a', { 'b c': 1 });
new URL('http://secret.example/path');
await odd_echo({ text: 'words of a call' });
const all: any = RegExp;
const left = [all.input, all.lastMatch, all['$&'], all.$_, all.leftContext].join();
return /secret|words|http/.test(left) ? left : 'closed';
