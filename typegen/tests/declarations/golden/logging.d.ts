type LogEntry = {
 timestamp: string;
 level: string;
 /** Without the stack. */ message: string;
 stack?: string | null;
 fields?: { [key: string]: string };
};
/** Log entries, newest first. */
declare function logging_getLogs(input?: {
 level?: "debug" | "info" | "warn" | "error";
 /** ISO 8601 (date-time) */ since?: string;
 /** integer, ≥ 1 */ limit?: number | bigint;
}, options?: CallOptions): Promise<{ entries: LogEntry[]; total?: number }>;
/** Opens an issue. */
declare function ticketing_createIssue(input: { title: string; body?: string; labels?: string[] }, options?: CallOptions): Promise<unknown>;
