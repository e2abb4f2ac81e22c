// expect: returned "printed"
const line = 'x'.repeat(8 << 20);
for (let i = 0; i < 8; i++) console.error(line);
return 'printed';
