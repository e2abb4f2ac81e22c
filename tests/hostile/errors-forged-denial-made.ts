// expect: threw McpDeniedError
throw new (McpDeniedError as any)('needs approval: run with --yes');
