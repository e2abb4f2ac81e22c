/** Of one call. Past `timeoutMs` it throws McpTimeoutError. */
type CallOptions = { signal?: AbortSignal; timeoutMs?: number };
declare namespace mcp {
  /** Calls a tool by the name of its function. */
  function callTool<T = unknown>(name: string, input?: object, options?: CallOptions): Promise<T>;
  /** The text of an `unknown` result; throws if it has none. */
  function text(result: unknown): string;
  /** An `unknown` result as a value: its text parsed, or what is a value already. `T` is taken on trust. */
  function json<T = any>(result: unknown): T;
}
/** A tool call that did not give a result. */
declare class McpError extends Error {
  /** The name of the function. */
  readonly tool: string;
  readonly server?: string;
}
/** The tool ran and reported an error. */
declare class McpToolError extends McpError {
  readonly server: string;
  readonly content: unknown;
  readonly structuredContent?: unknown;
  readonly retryable: boolean;
}
/** The server could not be asked, or did not answer as the protocol says. */
declare class McpProtocolError extends McpError {
  readonly code: number;
  readonly data?: unknown;
  /** It did not reach the server, or can be called twice without harm. */
  readonly retryable: boolean;
}
/** The server did not answer in time. */
declare class McpTimeoutError extends McpError {
  readonly retryable: boolean;
}
/** The call was not permitted. */
declare class McpDeniedError extends McpError {
  /** Who decided. */
  readonly because: string;
  /** The rule that decided, as it is written, if one did. */
  readonly rule?: unknown;
  /** Where that rule is written. */
  readonly writtenIn?: string;
  /** What the person who runs the script can do about it. */
  readonly advice?: string;
}
/** A dry run did not make the call. */
declare class McpDryRunError extends McpError {
  /** What the rules say of the call. */
  readonly decision: string;
}
