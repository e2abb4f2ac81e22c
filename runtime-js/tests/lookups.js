// The functions of `mcp` that the host itself answers; this test host returns its input.
const show = async (promise) => {
  try {
    console.log(JSON.stringify(await promise));
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
};
await show(mcp.searchTools("send mail"));
await show(mcp.searchTools("send mail", { detail: "full", limit: 3, server: "mail", by: "words", timeoutMs: 5000 }));
await show(mcp.searchTools("send mail", { detail: "full", more: 1 }));
await show(mcp.getToolDetails("one", { detail: "full" }));
await show(mcp.searchTools(undefined, null));
await show(mcp.searchTools(5, { limit: "x" }));
await show(mcp.searchTools("x", { timeoutMs: "soon" }));
await show(mcp.searchTools("x", { get limit() { throw new RangeError("a getter"); } }));
await show(mcp.searchTools("x", { signal: AbortSignal.abort(new Error("given up")) }));
await show(mcp.searchTools({ toString() { throw 1; } }));
await show(mcp.searchTools(1n));
await show(mcp.getToolDetails("one"));
await show(mcp.getToolDetails(["one", "two"]));
await show(mcp.getToolDetails());

await show(mcp.extract(undefined, "string"));
await show(mcp.extract({ big: 1n }, "string"));
try {
  await mcp.extract({ kind: "extract" }, { type: "string" });
} catch (error) {
  console.log(error.name, error instanceof McpExtractError, error instanceof McpError, error.tool);
  console.log(error.stack);
}
console.log([mcp.searchTools, mcp.getToolDetails, mcp.extract].map((f) => [f.name, f.length]));
