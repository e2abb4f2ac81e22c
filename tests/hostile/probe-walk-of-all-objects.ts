// expect: returned []
// Whatever can be reached from the globals, through prototypes, accessors and symbols.
const found: string[] = [];
const seen = new Set<unknown>();
const todo: [string, any][] = [['globalThis', globalThis], ['stub', odd_echo], ['arrow', () => {}], ['async', (async function* () {})()], ['signal', AbortSignal.timeout(1e6)], ['params', new URLSearchParams('a=1').entries()], ['error', new McpError('x')], ['registry', new FinalizationRegistry(() => {})]];
while (todo.length > 0) {
  const [path, value] = todo.pop()!;
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue;
  seen.add(value);
  todo.push([path + '.__proto__', Object.getPrototypeOf(value)]);
  for (const key of Reflect.ownKeys(value)) {
    const name = String(key);
    if (/^op_|^__|^core$|^ops$|^internals$|^primordials$|isolate|snapshot/i.test(name) && !/^__(proto|define|lookup)/.test(name)) found.push(path + '.' + name);
    const property = Object.getOwnPropertyDescriptor(value, key)!;
    todo.push([path + '.' + name, property.value], [path + '.get ' + name, property.get], [path + '.set ' + name, property.set]);
    if (property.get) try { todo.push([path + '.' + name, property.get.call(value)]); } catch { /* needs another receiver */ }
  }
}
return found;
