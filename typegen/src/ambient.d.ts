/** Of one call. Past `timeoutMs` it throws McpTimeoutError. */
type CallOptions = { signal?: AbortSignal; timeoutMs?: number };
declare namespace mcp {
  /** The words after the script on the command line of `callgate run`; none elsewhere. */
  const args: readonly string[];
  /** The text on standard input of `callgate run`, unless that is a terminal; "" elsewhere. */
  const stdin: string;
  /** Calls a tool by the name of its function. */
  function callTool<T = unknown>(name: string, input?: object, options?: CallOptions): Promise<T>;
  /** Hands an image, audio or resource to the caller: an `unknown` result, or MCP content blocks. */
  function emit(content: unknown): void;
  /** The text of an `unknown` result, or of one of its blocks; throws if it has none. */
  function text(result: unknown): string;
  /** An `unknown` result as a value: its text parsed, an array if there are several; or what is a value already. `T` is taken on trust. An integer beyond 2^53 is a bigint, here and in all results. */
  function json<T = any>(result: unknown): T;
  /** The content blocks of an `unknown` result, none for null. `mcp.blocks(result).map(mcp.json)` is the list of their values. */
  function blocks(result: unknown): { type: string; text?: string; [key: string]: any }[];
  /** A tool that was found. */
  type FoundTool = {
    name: string;
    server: string;
    /** The rule of the operator's configuration that denies every call of it. */
    denied?: string;
    summary?: string;
    declaration?: string;
  };
  /** A tool and its JSON Schemas. */
  type ToolDetails = {
    name: string;
    server: string;
    tool: string;
    /** The rule of the operator's configuration that denies every call of it. */
    denied?: string;
    description?: string;
    inputSchema: any;
    outputSchema?: any;
  };
  /** Finds tools by what they do, one thing per query, the best first. Call them by `callTool(tool.name, input)`. */
  function searchTools(
    query: string,
    options?: CallOptions & {
      /** How much is said of each tool; default: "summaries". */
      detail?: "names" | "summaries" | "signatures" | "full";
      /** Default: 10; at most 100. */
      limit?: number;
      server?: string;
      by?: "auto" | "words" | "regex" | "vectors" | "hybrid" | "model";
    },
  ): Promise<{ tools: FoundTool[]; searched: number; notes: string[] }>;
  /** Declarations and schemas of tools by the names of their functions. */
  function getToolDetails(
    names: string | string[],
    options?: CallOptions,
  ): Promise<{ declarations: string; tools: ToolDetails[]; unknown: { name: string; near?: string }[] }>;
  /** Has a small model put a value (an array, for many) into a form: a JSON Schema, or a type as text such as "{ id: number }". */
  function extract<T = any>(value: unknown, schema: object | string, options?: CallOptions): Promise<T>;
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
  /** The rule that decided, as it is written; null if none did. */
  readonly rule: unknown;
  /** Where that rule is written. */
  readonly writtenIn: string | null;
  /** Who can permit the call, and how. */
  readonly advice: string;
}
/** A dry run did not make the call. */
declare class McpDryRunError extends McpError {
  /** What the rules say of the call. */
  readonly decision: string;
}
/** `mcp.extract` has no value that fits. */
declare class McpExtractError extends McpError {
  readonly reason: "schema" | "value" | "limit" | "loop" | "unavailable" | "invalid" | "timeout";
  /** For "invalid": what was wrong with the model's last answer. */
  readonly problems: string[];
}
