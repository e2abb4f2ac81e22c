// expect: returned "closed"
let deep: any = { end: 1 };
for (let i = 0; i < 4000; i++) deep = i % 2 ? { deep } : [deep];
const got = await odd_echo({ deep }).then(() => 'sent', (error: any) => error instanceof Error);
return got === true ? 'closed' : got;
