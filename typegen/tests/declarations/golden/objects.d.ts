declare function s_no_input(input?: { [key: string]: never }, options?: CallOptions): Promise<unknown>;
declare function s_any_input(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_empty_schema(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_booleans(input?: { yes?: unknown; no?: never }, options?: CallOptions): Promise<unknown>;
declare function s_delete(input: { id: string }, options?: CallOptions): Promise<unknown>;
declare function s_typed_beside_named(input: {
 id: string;
 note?: string | null;
 [key: string]: number | string | null | undefined;
}, options?: CallOptions): Promise<unknown>;
declare function s_typed_only(input?: { [key: string]: number | null }, options?: CallOptions): Promise<unknown>;
/** Input: keys /^x-/ */
declare function s_patterns(input: { id: string; [key: string]: boolean | string }, options?: CallOptions): Promise<unknown>;
declare function s_open_beside_named(input?: { a?: string; [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_strange_keys(input: {
 "x-y"?: string;
 "3d"?: string;
 ""?: string;
 "日本"?: string;
 new?: string;
 "line\u2028\"break"?: string;
 constructor: string;
 toString?: unknown;
 __proto__?: unknown;
}, options?: CallOptions): Promise<unknown>;
declare function s_required_undeclared(input: { a: string; b: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_no_type(input?: { a?: string }, options?: CallOptions): Promise<unknown>;
declare function s_nested(input?: {
 point?: { x: number; y: number };
 long?: {
  a_rather_long_name?: string;
  another_rather_long_name?: string;
  and_one_more?: unknown[];
 }[];
}, options?: CallOptions): Promise<unknown>;
// tool "strange_keys" of server "s": the property's name is one every object inherits at /inputSchema/properties/toString
// tool "strange_keys" of server "s": the property's name is one every object inherits at /inputSchema/properties/__proto__
