// Actions and objects that must be closed to a script.
const attempt = async (name, act) => {
  try {
    console.log(name, "gives", await act());
  } catch (error) {
    console.log(name, "throws", String(error));
  }
};
await attempt("eval", () => eval("1"));
await attempt("Function", () => new Function("return 1")());
await attempt("constructor", () => (() => {}).constructor("return 1")());
await attempt("async constructor", () => (async () => {}).constructor("return 1")());
await attempt("generator constructor", () => (function* () {}).constructor("yield 1")().next());
await attempt("import", () => import("node:fs"));
await attempt("import of data", () => import("data:text/javascript,1"));
await attempt("Deno", () => typeof Deno + typeof __bootstrap + typeof WebAssembly);
await attempt("shared memory", () => typeof SharedArrayBuffer + typeof Atomics);
await attempt("resizable", () => new ArrayBuffer(1, { maxByteLength: 2 }));
await attempt("resizable by constructor", () => new (new Uint8Array(1).buffer.constructor)(1, { maxByteLength: 2 }));
await attempt("resizable by parent", () => Object.getPrototypeOf(ArrayBuffer) === Function.prototype);
await attempt("resizable by class", () => new (class extends ArrayBuffer {})(1, { maxByteLength: 2 }));
await attempt("resizable by Reflect", () => Reflect.construct(ArrayBuffer, [1, { maxByteLength: 2 }], Object));
await attempt("resizable by slice", () => new ArrayBuffer(3).slice(1).resizable);
await attempt("resizable by transfer", () => new ArrayBuffer(3).transfer(4).resizable);
await attempt("resizable by clone", () => structuredClone(new ArrayBuffer(3)).resizable);
await attempt("buffers", () => [
  new ArrayBuffer() instanceof ArrayBuffer,
  new Uint8Array(1).buffer instanceof ArrayBuffer,
  ArrayBuffer.isView(new Uint8Array(1)),
  ArrayBuffer[Symbol.species] === ArrayBuffer,
  `${ArrayBuffer.name} ${ArrayBuffer.length} ${new ArrayBuffer("5").byteLength}`,
]);
await attempt("buffer without new", () => ArrayBuffer(1));
await attempt("setTimeout with text", () => setTimeout("1"));
await attempt("call", () => { Function.prototype.call = 1; });
await attempt("sites", () => {
  Error.prepareStackTrace = (_error, sites) => sites.length;
  return typeof new Error("x").stack;
});
await attempt("callers", () => {
  const seen = [];
  const then = Promise.prototype.then;
  Promise.prototype.then = function (...args) { seen.push(this); return then.apply(this, args); };
  return echo({}).then(() => { Promise.prototype.then = then; return seen.length; });
});
await attempt("mcp", () => { mcp.callTool = 1; });
const opaque = Reflect.ownKeys(echo).map(String).sort().join(" ");
console.log(opaque, echo.name, echo.length, String(mcp.callTool.name));
