// Errors: their text, their positions and their classes.
function deep(n) { if (n === 0) throw new RangeError("deep"); deep(n - 1); }
try { deep(2); } catch (error) { console.log(error.stack); }
const error = new Error("outer", { cause: new TypeError("inner", { cause: "text" }) });
console.log(error);
console.log({ nested: new Error("in an object") });
console.log(Object.assign(new Error("with fields"), { code: 42, more: { a: 1 } }));
console.log(new AggregateError([new Error("one"), 2], "many"));
class Custom extends Error { constructor(m) { super(m); this.name = "Custom"; } }
console.log(String(new Custom("c")), new Custom("shown"));
console.log(new Error(""), Object.create(Error.prototype), new DOMException("dom", "AbortError").code);
const silent = new Error("silent"); silent.stack = undefined; console.log(silent);
const liar = new Error("x"); Object.defineProperty(liar, "name", { get() { throw 1; } }); console.log(String(liar.stack));

for (const kind of ["tool", "protocol", "timeout", "denied"]) {
  try {
    await fail({ kind });
  } catch (caught) {
    console.log(caught.name, caught instanceof Error, caught instanceof McpError, caught.tool, caught.server, caught.retryable);
    console.log(caught instanceof McpToolError, caught instanceof McpProtocolError, caught instanceof McpTimeoutError, caught instanceof McpDeniedError);
    console.log(caught.stack);
  }
}
async function helper() {
  return await mcp.callTool("fail", {});
}
console.log(await helper().catch((e) => e.stack));
console.log((await Promise.allSettled([fail({}), fail({})])).map((s) => s.reason.stack.split("\n")[1].trim()));
for (const input of [null, 1, "text", [1], 1n, { toJSON() { return 5; } }, { big: 1n }, { f: () => {}, ok: 1 }, undefined]) {
  console.log(await echo(input).catch((e) => `${e.name}: ${e.message}`));
}
const loop = {}; loop.loop = loop;
console.log((await echo(loop).catch((e) => e.message)).split("\n")[0]);
console.log(await mcp.callTool(5).catch((e) => e.message), await mcp.callTool("x".repeat(600)).catch((e) => e.message));
console.log(await mcp.callTool("no_such_function", { a: 1 }).catch((e) => e.message));
for (const call of [() => echo({ source: "a" }), () => fail({ kind: "denied" })]) {
  await call().catch((e) => console.log(e.stack));
}
const steps = {}; steps.first = () => fail({ kind: "tool" }); steps.second = [() => echo({}), () => fail({ kind: "timeout" })][1];
for (const call of [steps.first, steps.second]) await call().catch((e) => console.log(e.stack));
