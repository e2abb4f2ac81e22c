// expect: returned "printed"
console.log(new Array(2 ** 32 - 1), Object.assign([], { 4294967294: 1 }), new Uint8Array(1 << 25), new Map(Array.from({ length: 1e5 }, (_, i) => [i, i])), 'x'.repeat(1e6).split(''));
console.log(Object.setPrototypeOf([1], null), Object.setPrototypeOf(() => 1, null), new Date(NaN), -0, [,], [undefined, , 3]);
return 'printed';
