// expect: returned "none"
// The symbol by which the console's own classes are shown is not to be had.
const holders: any[] = [URL, URLSearchParams, Headers_(), Event, EventTarget, AbortSignal, AbortController, DOMException, TextEncoder, TextDecoder, McpError, console, mcp];
function Headers_() { return Map; }
const symbols = new Set<symbol>();
for (const holder of holders) for (let proto = holder; proto && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) for (const object of [proto, proto.prototype]) if (object) for (const symbol of Object.getOwnPropertySymbols(object)) symbols.add(symbol);
const shown = [...symbols].map(String).filter((symbol) => /show|inspect|callgate/i.test(symbol));
return shown.length === 0 ? 'none' : shown;
