declare namespace mcp {
  /** Calls a tool by the name of its function. */
  function callTool<T = unknown>(name: string, input?: object): Promise<T>;
}
/** The tool ran and reported an error. */
declare class McpToolError extends Error {
  readonly server: string;
  readonly tool: string;
  readonly content: unknown[];
  readonly structuredContent?: unknown;
  readonly retryable: boolean;
}
/** The server did not answer the call as the protocol asks. */
declare class McpProtocolError extends Error {
  readonly tool: string;
  readonly code: number;
}
/** The server did not answer in time. */
declare class McpTimeoutError extends Error {
  readonly tool: string;
}
/** The call was not permitted. */
declare class McpDeniedError extends Error {
  readonly tool: string;
}
