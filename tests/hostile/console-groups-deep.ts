// expect: returned "printed"
for (let i = 0; i < 100_000; i++) console.group();
console.log('deep\nand deeper');
for (let i = 0; i < 200_000; i++) console.groupEnd();
return 'printed';
