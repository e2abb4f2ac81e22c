type Shape = Circle | Square;
type A = { next?: A };
type Circle = { kind: "circle"; radius: number };
type Square = { kind: "square"; side: number };
declare function s_nullable(input?: {
 list?: string[] | null;
 list_of_nullable?: (string | null)[];
 /** each integer */ any_of?: (number | bigint)[] | null;
 openapi?: string[] | null;
 object?: { a?: string } | null;
}, options?: CallOptions): Promise<unknown>;
declare function s_enums(input?: {
 with_null?: "a" | "b" | null;
 null_excluded?: "a" | "b";
 mixed?: "a" | 1 | -1.5 | true | null | number | bigint | 0;
 quoted?: "a\"b" | "c\\d" | "*/" | "e\nf";
 constant?: 5;
 structured?: [1, "a"] | { k: null } | [] | { [key: string]: never };
 list?: ("x" | "y")[];
}, options?: CallOptions): Promise<unknown>;
declare function s_discriminated(input: { id: string } & ({ kind: "circle"; radius: number } | { kind: "square"; side: number }), options?: CallOptions): Promise<Shape>;
declare function s_one_or_the_other(input: { id?: string; name?: string } & ({ id: unknown } | { name: unknown }), options?: CallOptions): Promise<unknown>;
declare function s_all_of(input: { a: string; b?: string | number }, options?: CallOptions): Promise<unknown>;
declare function s_tuples(input?: {
 /** non-empty */ pair?: [string, (number | null)?];
 open?: [string?, ...unknown[]];
 draft7?: [string?, ...number[]];
 unsized?: unknown[];
}, options?: CallOptions): Promise<unknown>;
declare function s_same_type_twice(input?: {
 /** string uri; string /^x/ */ a?: string;
 n?: number;
 everything?: unknown;
 any_of_anything?: unknown;
 /** or uri; or ≤ 3 chars */ formats?: string;
}, options?: CallOptions): Promise<unknown>;
declare function s_alike_in_an_array(input?: { [key: string]: unknown }, options?: CallOptions): Promise<{ list?: (A & { x: number })[] }>;
