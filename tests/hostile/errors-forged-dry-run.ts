// expect: threw McpDryRunError
class Mine extends McpDryRunError { constructor() { super('as if'); this.name = 'McpDryRunError'; } }
throw new Mine();
