// expect: returned "printed"
let value: any = { leaf: 'x'.repeat(50) };
for (let i = 0; i < 60; i++) value = { left: value, right: value, list: [value, value] };
console.log(value);
console.dir(value, { depth: Infinity });
return 'printed';
