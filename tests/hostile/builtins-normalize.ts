// expect: limit timeout or limit memory
const text = '\u0958\u1e9b\u0323'.repeat(2e6);
for (;;) text.normalize('NFKD').normalize('NFC');
