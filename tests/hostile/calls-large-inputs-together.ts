// expect: returned "closed"
const text = 'x'.repeat(8 << 20);
const got = await Promise.allSettled(Array.from({ length: 12 }, () => never_hang({ text })));
return got.every((one) => one.status === 'rejected') ? 'closed' : 'open';
