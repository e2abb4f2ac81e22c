type SFirstItem = { x?: string };
type SFirstItem2 = { y?: string };
type Edge = { to?: Vertex };
type Vertex = { out?: Edge[] };
/** One entry of the log */
type log_entry = { a?: unknown };
/** Half open. */
type TimeWindow = { from?: string };
declare function s_first(input?: { a?: SFirstItem }, options?: CallOptions): Promise<{ a?: SFirstItem2 }>;
declare function s_second(input?: { a?: SFirstItem }, options?: CallOptions): Promise<unknown>;
declare function s_shared_a(input?: { e?: Edge }, options?: CallOptions): Promise<unknown>;
declare function s_shared_b(input?: { v?: Vertex }, options?: CallOptions): Promise<unknown>;
declare function s_reserved(input?: { a?: string; b?: number; c?: null; d?: boolean; e?: log_entry }, options?: CallOptions): Promise<unknown>;
declare function s_titles(input?: {
 /** integer */ limit?: number | bigint;
 tags?: string[];
 labels?: { [key: string]: string };
 window?: TimeWindow;
}, options?: CallOptions): Promise<unknown>;
