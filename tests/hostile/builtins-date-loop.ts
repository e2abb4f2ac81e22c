// expect: limit timeout
for (let i = 0; ; i++) if (Date.parse('Tue, 1 Jan 20' + (i % 90 + 10) + ' 00:00:00 GMT') === 1) return i;
