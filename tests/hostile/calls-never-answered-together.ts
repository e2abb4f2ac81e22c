// expect: returned 300
const calls = await Promise.allSettled(Array.from({ length: 300 }, () => never_hang({})));
return calls.filter((call) => call.status === 'rejected').length;
