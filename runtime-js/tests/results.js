// The functions that narrow a result without a declared type.
const show = (f) => {
  try {
    console.log(f());
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
};
const content = (...blocks) => ({ content: blocks });
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: "", mimeType: "image/png" };

show(() => mcp.text("as it is"));
show(() => mcp.text(null));
show(() => mcp.text(content(text("one"), image, { type: "resource", resource: { uri: "a:b", text: "two" } })));
show(() => mcp.text(content(image)));
show(() => mcp.text(content()));
show(() => mcp.text({ content: [text("x")], more: 1 }));
show(() => mcp.text([1]));
show(() => mcp.text(5));
show(() => mcp.text(undefined));

show(() => mcp.json('{"a": [1, null]}'));
show(() => mcp.json("5"));
show(() => mcp.json(content(image, text('["b"]'))));
show(() => mcp.json({ already: "a value" }));
show(() => mcp.json({ content: "a value, too" }));
show(() => mcp.json(null));
show(() => mcp.json("no JSON"));
show(() => mcp.json(content(image)));
show(() => mcp.json(content(null, 1, text("true"))));

const spoilt = { get content() { throw new RangeError("a getter"); } };
show(() => mcp.json(spoilt));
show(() => Object.isFrozen(mcp));
show(() => [mcp.text.name, mcp.text.length, mcp.json.name, mcp.json.length]);

// Several blocks.
show(() => mcp.json(content(text('{"a": 1}'), text('{"a": 2}'))));
show(() => mcp.json(content(text("1"), image, text("[2]"), { type: "resource", resource: { uri: "a:b", text: "3" } })));
show(() => mcp.json(content(text('{"a": ['), text("1]}"))));
show(() => mcp.json(content(text("two notes:"), text("[1, 2]"))));
show(() => mcp.blocks(content(text("a"), image)));
show(() => mcp.blocks("a"));
show(() => mcp.blocks(null));
show(() => mcp.blocks({ a: 1 }));
for (const result of [null, "1", content(text("1"), text("2"))]) show(() => mcp.blocks(result).map(mcp.json));
show(() => [mcp.text(text("a block")), mcp.text({ type: "resource", resource: { uri: "a:b", text: "b" } })]);
show(() => mcp.json({ type: "text", more: "of a value" }));

// The text of an object with one string.
show(() => mcp.text({ size: 3, "a note": "x", tags: ["y"] }));
show(() => mcp.text({ content: "a value, too" }));
show(() => mcp.text({ a: "one", b: "two" }));
show(() => mcp.text({ a: { b: "deep" } }));
