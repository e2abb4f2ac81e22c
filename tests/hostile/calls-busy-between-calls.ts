// expect: limit timeout or limit calls
for (;;) { never_hang({}).catch(() => {}); for (let i = 0; i < 1e6; i++); await null; }
