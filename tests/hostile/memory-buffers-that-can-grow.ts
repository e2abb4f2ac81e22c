// expect: returned "closed"
// Every other way to make a buffer that can grow.
const options: any = { maxByteLength: 16 << 20 };
let reads = 0;
const late: any = { get maxByteLength() { return reads++ ? 16 << 20 : undefined; } };
const callable: any = Object.assign(() => {}, options);
const inherited: any = Object.create(options);
const open: string[] = [];
const constructors: any[] = [ArrayBuffer, ArrayBuffer.prototype.constructor, new Uint8Array(1).buffer.constructor, (ArrayBuffer as any)[Symbol.species], class extends ArrayBuffer {}, class extends ArrayBuffer { constructor(length: any, options: any) { super(length, options); } }, ArrayBuffer.bind(null), new Proxy(ArrayBuffer, {}), structuredClone(new Uint8Array(1)).buffer.constructor, new TextEncoder().encode('x').buffer.constructor, Object.getPrototypeOf(new ArrayBuffer(1)).constructor];
for (const make of constructors) for (const one of [options, late, callable, inherited, new Proxy(options, {})]) for (const act of [() => new make(1, one), () => Reflect.construct(make, [1, one], Object), () => Reflect.construct(make, [1, one], Uint8Array), () => make(1, one)]) try { if (Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'resizable')!.get!.call(act())) open.push(String(act)); } catch { /* closed */ }
(Object.prototype as any).maxByteLength = 1 << 20;
for (const act of [() => new ArrayBuffer(8), () => new ArrayBuffer(8, {}), () => new Uint8Array(8).buffer, () => new ArrayBuffer(8).slice(0), () => new ArrayBuffer(8).transfer(4), () => structuredClone(new ArrayBuffer(8)), () => new Uint8Array([1, 2]).map((x) => x).buffer]) try { if ((act() as ArrayBuffer).resizable) open.push(String(act)); } catch { /* closed */ }
return open.length === 0 ? 'closed' : open;
