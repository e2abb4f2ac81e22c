// expect: threw TypeError
const pattern: any = /x/g;
pattern.exec = () => ({ index: -1, length: 2 ** 32, 0: 'y' });
let rounds = 0;
pattern.exec = () => (++rounds > 1000 ? 7 : { index: 2 ** 40, 0: '', length: 1 });
return 'xxx'.replace(pattern, 'z');
