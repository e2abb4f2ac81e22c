/** One node. */
type Node = { value: string; children?: Node[] };
type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
type SSelfInput = { and?: SSelfInput[]; field?: string };
type SIntoPropertiesFrom = { at?: string };
type Base = { id: string };
declare function s_tree(input: {
 /** Where to start. */ root: Node;
}, options?: CallOptions): Promise<unknown>;
declare function s_json(input?: { value?: JsonValue }, options?: CallOptions): Promise<unknown>;
declare function s_self(input?: SSelfInput, options?: CallOptions): Promise<unknown>;
declare function s_into_properties(input?: { from?: { at?: string }; to?: SIntoPropertiesFrom; escaped?: boolean }, options?: CallOptions): Promise<unknown>;
declare function s_only_itself(input?: { a?: unknown; c?: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_draft7_siblings(input?: { a?: string }, options?: CallOptions): Promise<unknown>;
declare function s_modern_siblings(input?: { a?: { extra: string } & Base }, options?: CallOptions): Promise<unknown>;
declare function s_nowhere(input?: {
 remote?: unknown;
 missing?: unknown;
 anchor?: unknown;
 no_schema?: unknown;
 other_resource?: unknown;
}, options?: CallOptions): Promise<unknown>;
// tool "only_itself" of server "s": the definition refers only to itself at /inputSchema/$defs/A
// tool "only_itself" of server "s": the definition refers only to itself at /inputSchema/$defs/C
// tool "nowhere" of server "s": the reference "https://example.com/schema.json" does not lead to a part of this schema at /inputSchema/properties/remote
// tool "nowhere" of server "s": the reference "#/$defs/Missing" does not lead to a part of this schema at /inputSchema/properties/missing
// tool "nowhere" of server "s": the reference "#anchor" does not lead to a part of this schema at /inputSchema/properties/anchor
// tool "nowhere" of server "s": the reference "#/required" does not lead to a part of this schema at /inputSchema/properties/no_schema
// tool "nowhere" of server "s": the reference "#/$defs/X" does not lead to a part of this schema at /inputSchema/properties/other_resource
