// expect: threw Error
for (let n = 0; n < 500; n++) { odd_echo({ n }); never_hang({}).catch(() => {}); }
throw new Error('before they are answered');
