// expect: returned {"n":1}
const all: any = globalThis;
const { odd_echo: stub } = all;
for (const key of Reflect.ownKeys(all)) try { delete all[key]; } catch { /* cannot be */ }
return await stub({ n: 1 });
