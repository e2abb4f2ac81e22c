// expect: returned {"n":1}
const names = Object.getOwnPropertyNames(Array.prototype).filter((name) => name !== 'length' && name !== 'constructor');
for (const name of names) (Array.prototype as any)[name] = () => { throw new Error('taken: ' + name); };
(Array.prototype as any)[Symbol.iterator] = function* () { yield 'taken'; };
console.log(['a', 1], { b: [2] });
return await odd_echo({ n: 1 });
