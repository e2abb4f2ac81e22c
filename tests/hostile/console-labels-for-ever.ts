// expect: limit memory
for (let i = 0; ; i++) { console.count('label ' + i); console.time('label ' + i); }
