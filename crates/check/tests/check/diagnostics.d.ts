type Issue = { number: number; title: string; body: string | null; labels: { name: string }[]; user: { login: string } };
/** Lists the issues of a repository. */
declare function github_listIssues(input: {
  owner: string;
  repo: string;
  /** which ones */
  state?: "open" | "closed" | "all";
  page?: number;
  labels?: string[];
}): Promise<{ total: number; items: Issue[] }>;
declare function raw_get(input?: { path?: string }): Promise<unknown>;
declare function shape_make(
  input: { id: string } & ({ kind: "circle"; radius: number } | { kind: "square"; side: number }),
): Promise<string>;
declare function wide_set(input: {
  first: string;
  second: string;
  third: { one: string; two: number[]; three: { four: string } };
  choice: "aaaaaaaaaaaaaaaa" | "bbbbbbbbbbbbbbbb" | "cccccccccccccccc" | "dddddddddddddddd" | "eeeeeeeeeeeeeeee" | "ffffffffffffffff";
}): Promise<string>;
declare function part_get(input?: { id?: number }): Promise<{ data: unknown }>;
declare function count_get(input?: { limit?: number | bigint }): Promise<{ count: number | bigint }>;
declare function doc_open(input?: { path?: string }): Promise<{ content: string }>;
declare function note_body(input?: { id?: number }): Promise<{ size: number; body: string }>;
declare function pair_get(input?: { id?: number }): Promise<{ left: string; right: string }>;
