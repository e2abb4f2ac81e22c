// expect: returned "closed"
const ids: number[] = [];
let ran = 0;
for (let i = 0; i < 2000; i++) ids.push(setTimeout(() => { ran++; for (const id of ids) clearTimeout(id); }, 1));
await new Promise((done) => setTimeout(done, 30));
return ran === 1 ? 'closed' : ran;
