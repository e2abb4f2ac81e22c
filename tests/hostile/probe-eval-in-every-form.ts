// expect: returned "closed"
const all: any = globalThis;
const got: string[] = [];
for (const act of [
  () => all.eval('1'), () => (0, all.eval)('1'), () => all['ev' + 'al'].call(all, '1'), () => Reflect.apply(all.eval, undefined, ['1']),
  () => all.setTimeout('globalThis.left = 1'), () => all.setInterval('1', 1), () => all.setImmediate('1'), () => all.queueMicrotask('1'),
  () => [1].map(all.eval), () => all.WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), () => new all.ShadowRealm().evaluate('1'),
]) try { act(); got.push(String(act)); } catch { /* closed */ }
return got.length === 0 ? 'closed' : got;
