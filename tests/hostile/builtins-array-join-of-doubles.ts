// expect: limit timeout or limit memory or threw RangeError
let pair: any = ['leaf'];
for (let i = 0; i < 45; i++) pair = [pair, pair];
return String(pair).length;
