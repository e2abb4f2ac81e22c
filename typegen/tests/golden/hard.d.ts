type Filter = Group | Leaf | Filter[];
type Group = { all: Filter[] | null };
type Leaf = { field: string; value: unknown };
declare function s_nullable_arrays(input?: {
  list_or_null?: string[] | null;
  of_null_too?: (string | null)[];
  both?: (number | null)[] | null;
  of_choices?: (string | null | number[])[];
}): Promise<unknown>;
declare function s_discriminated_with_shared(input: { id: string; note?: string | null; kind: unknown } & ({ kind?: "file"; path: string } | { kind?: "link"; url: string })): Promise<unknown>;
declare function s_tuples_with_rest(input?: {
  rest?: [string, number, ...(boolean | null)[]];
  closed?: [string, number?];
  unevaluated?: [string?, ...number[]];
  or_null?: [("a" | null)?] | null;
  none?: [];
}): Promise<unknown>;
declare function s_typed_beside_properties(input: {
  id: string;
  size?: number | null;
  inner?: { x?: number; [key: string]: boolean | number | undefined };
  [key: string]: string[] | string | number | null | { x?: number; [key: string]: boolean | number | undefined } | undefined;
}): Promise<unknown>;
declare function s_cycle_through_arrays(input?: { filter?: Filter }): Promise<unknown>;
declare function s_enums_with_null(input?: {
  listed?: "a" | "b" | null;
  typed?: "a" | null;
  by_type_only?: "a" | "b";
  one_of?: "a" | 1 | null;
  only?: null;
  none?: never;
}): Promise<unknown>;
declare function s_keys_that_are_no_identifiers(input: {
  "content-type": string;
  "a.b"?: string;
  ""?: string;
  "1st"?: string;
  "with \"quotes\""?: string;
  "new\nline"?: string;
  "not listed": unknown;
} & ({ "a.b"?: never } | { "a.b": unknown; "1st": unknown })): Promise<unknown>;
/** ends *\/ declare function evil(): void; /*  */
declare function s_comments_that_end(input?: {
  /** *\/ evil: 1; /* *\/ */
  x?: string;
}): Promise<unknown>;
