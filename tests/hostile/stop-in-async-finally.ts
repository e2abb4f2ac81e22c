// expect: limit waitTimeout
const work = async () => { try { await new Promise((done) => setTimeout(done, 1e6)); } finally { for (;;); } };
await Promise.race([work(), work().finally(() => { for (;;); })]);
