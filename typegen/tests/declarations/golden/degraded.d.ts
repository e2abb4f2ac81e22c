declare function s_keywords(input?: {
 not?: number | boolean | { [key: string]: unknown } | unknown[] | null;
 if?: string;
 type?: unknown;
 types?: unknown;
 no_types?: unknown;
 enum?: never;
 any_of?: unknown;
 items?: unknown;
 required?: { a: unknown };
 number?: unknown;
 properties?: { [key: string]: unknown };
} & ({ a?: never } | { a: unknown; b: unknown }), options?: CallOptions): Promise<unknown>;
declare function s_never(input: never, options?: CallOptions): Promise<unknown>;
declare function s_array(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
declare function s_null(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
// tool "keywords" of server "s": `if` cannot be expressed and is ignored at /inputSchema/properties/if
// tool "keywords" of server "s": `type` names "date", which JSON does not have at /inputSchema/properties/type
// tool "keywords" of server "s": the value of `type` has the wrong form and is ignored at /inputSchema/properties/types
// tool "keywords" of server "s": the value of `type` has the wrong form and is ignored at /inputSchema/properties/no_types
// tool "keywords" of server "s": the value of `anyOf` has the wrong form and is ignored at /inputSchema/properties/any_of
// tool "keywords" of server "s": `items` stands without a `type` and restricts nothing at /inputSchema/properties/items
// tool "keywords" of server "s": the schema is neither an object nor a boolean at /inputSchema/properties/number
// tool "keywords" of server "s": the value of `properties` has the wrong form and is ignored at /inputSchema/properties/properties
// tool "array" of server "s": the schema is neither an object nor a boolean at /inputSchema
// tool "null" of server "s": the schema is neither an object nor a boolean at /inputSchema
// tool "null" of server "s": the schema is neither an object nor a boolean at /outputSchema
