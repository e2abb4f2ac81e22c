// expect: threw Error or threw McpToolError or threw a value
const all: any = globalThis;
for (const name of ['Error', 'TypeError', 'McpError', 'McpToolError', 'McpProtocolError', 'AggregateError']) { Object.defineProperty(all[name].prototype, 'constructor', { get() { throw new Error('constructor'); } }); Object.defineProperty(all[name].prototype, 'name', { get() { throw new Error('name'); } }); all[name] = class { constructor() { throw new Error('class'); } }; }
await odd_fails({});
