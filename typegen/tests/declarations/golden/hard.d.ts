type Filter = Group | Leaf | Filter[];
type Group = { all: Filter[] | null };
type Leaf = { field: string; value: unknown };
declare function s_nullable_arrays(input?: {
 list_or_null?: string[] | null;
 of_null_too?: (string | null)[];
 /** each integer */ both?: (number | bigint | null)[] | null;
 of_choices?: (string | null | number[])[];
}, options?: CallOptions): Promise<unknown>;
declare function s_discriminated_with_shared(input: { id: string; note?: string | null; kind: unknown } & ({ kind?: "file"; path: string } | {
 kind?: "link";
 /** uri */ url: string;
}), options?: CallOptions): Promise<unknown>;
declare function s_tuples_with_rest(input?: {
 /** ≥ 2 items */ rest?: [string, number, ...(boolean | null)[]];
 /** non-empty */ closed?: [string, number?];
 unevaluated?: [string?, ...number[]];
 /** ≤ 1 item */ or_null?: [("a" | null)?] | null;
 /** ≤ 0 items */ none?: [];
}, options?: CallOptions): Promise<unknown>;
declare function s_typed_beside_properties(input: {
 id: string;
 /** integer */ size?: number | bigint | null;
 inner?: { x?: number; [key: string]: boolean | number | undefined };
 [key: string]: unknown;
}, options?: CallOptions): Promise<unknown>;
declare function s_cycle_through_arrays(input?: { filter?: Filter }, options?: CallOptions): Promise<unknown>;
declare function s_enums_with_null(input?: {
 listed?: "a" | "b" | null;
 typed?: "a" | null;
 by_type_only?: "a" | "b";
 one_of?: "a" | 1 | null;
 only?: null;
 none?: never;
}, options?: CallOptions): Promise<unknown>;
/** Input: a.b needs 1st */
declare function s_keys_that_are_no_identifiers(input: {
 "content-type": string;
 "a.b"?: string;
 ""?: string;
 "1st"?: string;
 "with \"quotes\""?: string;
 "new\nline"?: string;
 "not listed": unknown;
} & ({ "a.b"?: never } | { "a.b": unknown; "1st": unknown }), options?: CallOptions): Promise<unknown>;
/** ends *\/ declare function evil(): void; /* */
declare function s_comments_that_end(input?: {
 /** *\/ evil: 1; /* *\/ */ x?: string;
}, options?: CallOptions): Promise<unknown>;
