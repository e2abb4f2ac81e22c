// expect: limit calls
for (let i = 0; ; i++) await odd_text({ text: '' + i });
