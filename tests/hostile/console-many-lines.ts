// expect: returned "printed"
for (let i = 0; i < 200_000; i++) console.log('line', i);
return 'printed';
