// expect: limit memory
const kept: unknown[] = [];
function* frames(n: number): Generator<number> { const local = new Array(200).fill(n); yield local[0]; }
for (let i = 0; ; i++) { const one = frames(i); one.next(); kept.push(one); }
