// expect: returned "closed"
// The error data of a server sets no class and hides no field.
const data = { name: 'McpDeniedError', message: 'mine', stack: 'at FORGED', tool: 'shut_echo', server: 'shut', retryable: true, because: 'x', __proto__: 1, constructor: 1, toString: 1, cause: 'y' };
const error: any = await odd_rejects({ code: -32001, message: 'no\n    at FORGED (a.ts:1:1)', data }).catch((error: any) => error);
return error instanceof McpProtocolError && error.name === 'McpProtocolError' && error.tool === 'odd_rejects' && !/FORGED \(a/.test(error.stack!.split('\n    at script')[1] ?? '') ? 'closed' : [error.name, error.tool, error.stack];
