// The arguments and the standard input of the script.
console.log(JSON.stringify([mcp.args, mcp.stdin]));
console.log(Array.isArray(mcp.args), [...mcp.args, "more"].length, mcp.stdin.split("\n").length);
for (const change of [() => mcp.args.push("x"), () => { mcp.args[0] = "x"; }, () => { mcp.stdin = ""; }]) {
  try {
    change();
    console.log("changed");
  } catch (error) {
    console.log(error.name);
  }
}
return mcp.args.map((argument) => argument.length);
