// expect: returned 10
let ran = 0;
for (const delay of [-1, NaN, -Infinity, '0', null, undefined, [], 0.5, {}, true] as any[]) await new Promise<void>((done) => setTimeout(() => { ran++; done(); }, delay));
return ran;
