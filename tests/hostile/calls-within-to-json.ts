// expect: returned {"n":1}
return await odd_echo({ toJSON() { odd_echo({ inner: 1 }); for (let i = 0; i < 20; i++) shut_echo({ i }).catch(() => {}); return { n: 1 }; } });
