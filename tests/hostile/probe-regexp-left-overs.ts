// expect: returned "closed"
// What the runtime matched for itself is not in the legacy properties.
/seed/.exec('seed');
console.log('%s %o', 'a', { 'b c': 1 });
new URL('http://secret.example/path');
await odd_echo({ text: 'words of a call' });
const all: any = RegExp;
const left = [all.input, all.lastMatch, all['$&'], all.$_, all.leftContext].join();
return /secret|words|http/.test(left) ? left : 'closed';
