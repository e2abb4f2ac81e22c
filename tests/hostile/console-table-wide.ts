// expect: limit timeout or limit memory or returned "printed"
console.table(Array.from({ length: 300 }, (_, row) => Object.fromEntries(Array.from({ length: 300 }, (_, column) => ['c' + ((row * 300 + column) % 9973), 'v'.repeat(200)]))));
return 'printed';
