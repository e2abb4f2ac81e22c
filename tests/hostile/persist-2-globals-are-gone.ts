// expect: returned "gone"
const all: any = globalThis;
const found = [all.left, all.odd_echo.left, ({} as any).left, [1].at(0), (Object.getPrototypeOf(async () => {}) as any).left, (RegExp as any).lastMatch];
return found.join() === ',,,1,,' ? 'gone' : found;
