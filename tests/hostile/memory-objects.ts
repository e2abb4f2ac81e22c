// expect: limit memory
const kept: object[] = [];
for (let i = 0; ; i++) kept.push({ i, text: 'n' + i, list: [i, i] });
