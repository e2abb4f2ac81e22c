// expect: returned 50000
let ran = 0;
await new Promise<void>((done) => { for (let i = 0; i < 50_000; i++) setTimeout(() => { if (++ran === 50_000) done(); }, i % 7); });
return ran;
