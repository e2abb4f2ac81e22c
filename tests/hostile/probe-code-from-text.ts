// expect: returned "closed"
const texts = ['return this', 'yield 1', 'await 1', '1'];
const makers: any[] = [function () {}, async function () {}, function* () {}, async function* () {}, () => {}, class {}, { method() {} }.method, odd_echo, Function.prototype];
const got: string[] = [];
for (const maker of makers) for (const text of texts) {
  const make = Object.getPrototypeOf(maker)?.constructor ?? maker.constructor;
  for (const act of [() => make(text), () => new make(text), () => make.call(null, text), () => Reflect.construct(make, ['a', text]), () => make.bind(null, text)()]) try { const made = act(); if (typeof made === 'function') got.push(String(made)); } catch { /* closed */ }
}
return got.length === 0 ? 'closed' : got;
