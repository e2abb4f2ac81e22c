// What a script must not be able to do or to reach.
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
