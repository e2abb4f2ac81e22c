// expect: returned "closed"
const wrong: any[] = [1, null, 'text', {}, { type: 'hologram' }, { type: 'image', data: 1 }, { type: 'image', data: 'not base64!', mimeType: 'x' }, { type: 'resource', resource: { uri: 1 } }, { type: 'text', get text() { throw new Error('mine'); } }, new Proxy({}, { get() { throw new Error('mine'); } }), { type: 'resource_link', uri: 'file:///etc/passwd', name: { toString: () => 'x' } }];
let refused = 0;
for (const one of wrong) for (const content of [one, [one], { content: [one] }]) try { mcp.emit(content); } catch { refused++; }
return refused >= 3 * (wrong.length - 2) ? 'closed' : refused;
