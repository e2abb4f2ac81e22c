type SFirstItem = { x?: string };
type SFirstItem2 = { y?: string };
type Edge = { to?: Vertex };
type Vertex = { out?: Edge[] };
type SReservedMap = string;
type SReservedString = number;
type SReservedPart = null;
type Proto = boolean;
type log_entry = { a?: unknown };
type titlesArguments = {
  limit?: number;
  tags?: string[];
  labels?: { [key: string]: string };
  window?: TimeWindow;
};
/** Half open. */
type TimeWindow = { from?: string };
declare function s_first(input?: { a?: SFirstItem }): Promise<{ a?: SFirstItem2 }>;
declare function s_second(input?: { a?: SFirstItem }): Promise<unknown>;
declare function s_shared_a(input?: { e?: Edge }): Promise<unknown>;
declare function s_shared_b(input?: { v?: Vertex }): Promise<unknown>;
declare function s_reserved(input?: {
  a?: SReservedMap;
  b?: SReservedString;
  c?: SReservedPart;
  d?: Proto;
  e?: log_entry;
}): Promise<unknown>;
declare function s_titles(input?: titlesArguments): Promise<unknown>;
