// expect: limit timeout
Promise.reject({ get message() { for (;;) if (Date.now() < 0) return ''; } });
for (;;) await null;
