type SDocumentsAndAnchorsInput = {
 by_anchor?: number[];
 by_id?: Circle;
 inside_it?: Radius;
 itself?: SDocumentsAndAnchorsInput;
 escaped?: boolean;
 tree?: Tree;
 elsewhere?: unknown;
};
type Circle = { radius?: Radius };
/** ≥ 0 */
type Radius = number;
type Tree = { children?: Tree[] };
declare function s_if_by_kind(input: { kind: "card" | "cash" | "bank"; number?: string; iban?: string } & ({ kind: "card"; number: unknown } | { kind: "cash" | "bank" }) & ({ kind: "bank"; iban: unknown } | { kind: "card" | "cash" }), options?: CallOptions): Promise<unknown>;
declare function s_if_else(input: { all?: boolean; ids?: string[] } & ({ all: true; ids?: never } | ({ all: false } | { all?: never }) & { ids: unknown }), options?: CallOptions): Promise<unknown>;
declare function s_if_a_number_is_large(input?: { n?: number }, options?: CallOptions): Promise<unknown>;
/** Input: user needs password */
declare function s_dependent(input?: { user?: string; password?: string; card?: string } & ({ user?: never } | { user: unknown; password: unknown }) & ({ card?: never } | { card: unknown; address: string }), options?: CallOptions): Promise<unknown>;
/** Input: a needs is not draft 7, a needs b */
declare function s_draft7_dependencies(input?: { a?: string; e?: never } & ({ a?: never } | { a: unknown; b: unknown }) & ({ c?: never } | { c: unknown; d: unknown }), options?: CallOptions): Promise<unknown>;
declare function s_exactly_one_of(input: {
 /** integer */ id?: number | bigint;
 name?: string;
 url?: string;
} & ({ id: unknown; name?: never; url?: never } | { name: unknown; id?: never; url?: never } | { url: unknown; id?: never; name?: never }), options?: CallOptions): Promise<unknown>;
declare function s_not(input?: {
 anything_but_text?: number | boolean | { [key: string]: unknown } | unknown[] | null;
 a_number_or_text_but_text?: number;
 one_of_the_others?: "a" | "c";
 not_null?: string | number | boolean | { [key: string]: unknown } | unknown[];
 never?: never;
 inexpressible?: string;
 legacy?: never;
}, options?: CallOptions): Promise<unknown>;
declare function s_listed_names(input?: {
 headers?: { accept?: string; "x-id"?: string };
 /** ≤ 0 keys */ empty?: { [key: string]: never };
 left_over?: { [key: string]: number };
}, options?: CallOptions): Promise<unknown>;
declare function s_documents_and_anchors(input?: SDocumentsAndAnchorsInput, options?: CallOptions): Promise<unknown>;
// tool "if_a_number_is_large" of server "s": `if` cannot be expressed and is ignored at /inputSchema/properties/n
// tool "not" of server "s": `not` cannot be expressed and is ignored at /inputSchema/properties/inexpressible
// tool "documents_and_anchors" of server "s": the reference "https://example.com/never/fetched.json" does not lead to a part of this schema at /inputSchema/properties/elsewhere
