/** a *\/ declare const pwned: 1; /* b */
declare function s_ends_comment(input?: {
 /** *\/ y: never; /* */ x?: string;
}, options?: CallOptions): Promise<unknown>;
/** First line.

  - a list
  - of two */
declare function s_lines(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
/** Shown for want of a description */
declare function s_title_only(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
/** plain text */
declare function s_hidden(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
/** Input: The arguments. */
declare function s_undocumented(input?: { [key: string]: unknown }, options?: CallOptions): Promise<unknown>;
