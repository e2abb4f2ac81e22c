// expect: returned []
const all: any = globalThis;
return ['Deno', 'process', 'require', 'module', 'exports', 'global', 'window', 'self', 'Buffer', 'Bun', '__bootstrap', '__infra', '__callgate', 'core', 'ops', 'internals', 'primordials', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Worker', 'SharedArrayBuffer', 'Atomics', 'WebAssembly', 'eval', 'navigator', 'localStorage', 'importScripts', 'd8', 'print', 'read', 'load', 'quit', 'gc', 'opcall', 'queueUserTimer', 'reportError', 'Temporal', 'ShadowRealm', 'MessageChannel', 'FileReader', 'Blob', 'ReadableStream'].filter((name) => name in all);
