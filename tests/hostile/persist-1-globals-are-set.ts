// expect: returned "set"
const all: any = globalThis;
all.left = 'left';
all.odd_echo.left = 'left';
(Object.prototype as any).left = 'left';
(Array.prototype as any).at = () => 'left';
Symbol.for('left');
Object.getPrototypeOf(async () => {}).left = 'left';
/left/.exec('left');
return 'set';
