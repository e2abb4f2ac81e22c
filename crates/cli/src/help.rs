//! Texts in the help of the commands: headings of options, examples and exit codes.

pub const RULES: &str = "Rules";
pub const LIMITS: &str = "Limits";
pub const OUTPUT: &str = "Output";
pub const HTTP: &str = "HTTP";
pub const SERVERS: &str = "Servers";
pub const GLOBAL: &str = "Global options";

/// The exit codes of commands that run or check a script, and of those that list or call tools.
pub const EXIT_CODES: &str = "\
Exit codes:
  0 done
  1 the script or the call failed, the script has errors, or nothing was found
  2 usage or configuration error, an unknown tool, or wrong arguments of a call
  3 a call was denied, or needs approval and there is no terminal
  4 a limit was reached
  5 no server started, or not one that is needed
  130 interrupted";

/// Examples of a command with these exit codes.
pub fn examples(text: &str) -> String {
    format!("{text}\n\n{EXIT_CODES}")
}

pub const RUN_EXAMPLES: &str = "\
Examples:
  callgate run report.ts                         a script against ./callgate.json
  echo 'return await git_status({repo_path: \".\"})' | callgate run -
  callgate run -e 'return await git_status({repo_path: \".\"})'
  callgate run report.ts May 2026 < sales.csv    the script reads mcp.args and mcp.stdin
  callgate run sync.ts --allow 'fs_read*' --deny 'fs_move*' --timeout 5s
  callgate run sync.ts --yes --json | jq .calls
  callgate run sync.ts --dry-run                 make only calls that read, list the others";

pub const TOOLS_EXAMPLES: &str = "\
The second column says what the rules do with a call: allow, ask, deny, or allow* (allow it with
some arguments). \"read-only\" is what a server marked trusted says about its tool.

Examples:
  callgate tools git
  callgate tools 'git_*' fs_read_file";

pub const SEARCH_EXAMPLES: &str = "\
Examples:
  callgate search close a pull request
  callgate search createIsue --detail signature
  callgate search '^git_.*(log|diff)' --by regex";

pub const CALL_EXAMPLES: &str = "\
Examples:
  callgate call fs_read_file '{\"path\": \"README.md\"}'
  callgate call git_log repo_path=. max_count=3
  callgate call notes_add title='To do' tags:='[\"home\"]'
  callgate call fs_write_file - < arguments.json";

pub const EXPORT_EXAMPLES: &str = "\
Example:
  callgate export --format anthropic --defer --load 'git_*' > tools.json";

pub const QUESTIONS_EXAMPLES: &str = "\
Answers are given at a terminal alone. Without one, the open questions are listed.

Examples:
  callgate questions                             answer the open questions
  callgate questions --watch                     and those that follow
  callgate questions --json | jq '.[].function'

Exit codes:
  0 no question is left, or all were shown (--json)
  2 usage error, no store, or no terminal to answer at
  130 interrupted";

pub const LEDGER_EXAMPLES: &str = "\
Examples:
  callgate ledger verify calls.jsonl
  callgate ledger heads calls.jsonl | ssh archive 'cat >> heads.jsonl'
  callgate ledger verify calls.jsonl --heads heads.jsonl

Exit codes:
  0 no finding, or warnings only
  1 something was changed, inserted, removed or torn
  2 usage error, or a file that cannot be read";

pub const RUNS_EXAMPLES: &str = "\
Examples:
  callgate runs                                  the last fifty
  callgate runs --since 1d --status failed
  callgate runs show r-1f2e3d4c5b6a7988
  callgate runs calls r-1f2e3d4c5b6a7988 --json | jq .
  callgate runs rm --before 7d

Exit codes:
  0 done
  1 there is no such run, its text is not kept, or it cannot be removed
  2 usage or configuration error, or a store that cannot be used";

pub const DOCTOR_EXIT_CODES: &str = "\
Exit codes:
  0 runs have everything that they need
  1 something that runs need is missing
  2 usage error
  130 interrupted";

pub const TRUST_EXIT_CODES: &str = "\
A callgate.json or .mcp.json that was found may come from a different author. It starts
nothing until you accept it. A later change that only tightens it needs no new acceptance.

Exit codes:
  0 accepted or forgotten
  2 not accepted, no terminal to ask at, or no file";

pub const SERVE_EXIT_CODES: &str = "\
Exit codes:
  0 ended by a signal, or by the end of its client over stdio
  2 usage or configuration error, or it could not serve
  130 ended at once by a second Ctrl-C";

pub const AUTH_EXIT_CODES: &str = "\
Exit codes:
  0 done, or logged in
  1 failed, or not logged in (status)
  2 usage or configuration error, or a server that takes no login
  130 interrupted";

pub const INIT_EXAMPLES: &str = "\
Examples:
  callgate init                                  choose among the servers of your clients
  callgate init --yes --from cursor              without questions: all servers of Cursor
  callgate init --client claude-code             add Callgate to Claude Code

Values that may be secrets are not written to it. At a terminal you are asked where each of
them goes; otherwise the file refers to environment variables.

Exit codes:
  0 written, or nothing to do
  1 no server was found
  2 usage or configuration error, or nothing was written";

pub const TOP_EXAMPLES: &str = "\
Examples:
  callgate init                                  set it up in this folder
  callgate tools                                 list the tools of the configured servers
  callgate types git_log                         print the declaration of one tool
  callgate check report.ts                       list the tools a script would call
  callgate run report.ts                         run it
  callgate call time_get_current_time '{\"timezone\":\"UTC\"}'

The configuration is --config FILE, else callgate.json or callgate.jsonc, else
.mcp.json, in this folder or the nearest one above.";
