// expect: limit memory or limit timeout
const row = Array.from({ length: 1000 }, (_, i) => ({ i, text: 'value ' + i }));
return Array.from({ length: 20_000 }, () => row);
