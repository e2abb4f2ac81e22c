// Blocks that a script can emit to its caller, and blocks that it cannot.
const show = (content) => {
  try {
    console.log(mcp.emit(content));
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
};
const image = { type: "image", data: "YWJj", mimeType: "image/png" };

show("text");
show(image);
show([{ ...image, type: "audio", mimeType: "audio/wav", annotations: {} }, { type: "text", text: "\ud800" }]);
show({ content: [image] });
show({ type: "resource_link", uri: "a:b", name: "n", title: null, description: "d" });
show({ type: "resource", resource: { uri: "a:b", text: "" } });
show({ type: "resource", resource: { uri: "a:b", blob: "YQ==", mimeType: "a/b; c=d" } });
show([]);

console.log("none of these is emitted:");
show();
show(null);
show(5);
show([[]]);
show({ content: "x" });
show({ type: "tool_use" });
show({ type: "toString" });
show({ type: "image", data: "YQ", mimeType: "image/png" });
show({ type: "image", data: "YQ==", mimeType: "png" });
show({ type: "image", data: "YQ==" });
show({ type: "text", text: 5 });
show({ type: "resource_link", uri: "no uri", name: "n" });
show({ type: "resource" });
show({ type: "resource", resource: { uri: "a:b" } });
show({ type: "resource", resource: { uri: "a:b", text: "", blob: "" } });
show([image, { type: "image" }]);
Object.prototype.toJSON = () => ({ type: "text", text: "not it" });
show("text, whatever a script changes");
delete Object.prototype.toJSON;
mcp.emit({ type: "x" });
