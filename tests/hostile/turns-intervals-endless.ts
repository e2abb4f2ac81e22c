// expect: limit waitTimeout or limit timeout
for (let i = 0; i < 200; i++) setInterval(() => { new Array(1000).fill(i); }, 0);
await new Promise(() => {});
