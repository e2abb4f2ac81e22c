// expect: returned "McpTimeoutError"
return await never_hang({}).catch((error: any) => error.name);
