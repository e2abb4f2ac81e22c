// expect: returned "closed"
const got = await odd_echo({ text: '\u0001'.repeat(4 << 20) }).then(() => 'sent', (error: any) => error instanceof Error);
return got === true ? 'closed' : got;
