// expect: limit timeout or limit calls
for (let n = 0; ; n++) { odd_echo({ n, text: 'x'.repeat(20_000) }).catch(() => {}); if (n % 100 === 0) await null; }
