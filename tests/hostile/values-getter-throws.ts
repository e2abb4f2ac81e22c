// expect: returned null
return { fine: 1, get bad() { throw new Error('read'); } };
