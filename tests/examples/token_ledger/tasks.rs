//! The tasks, and what a model does for them in each mode: which calls, one turn
//! after the other, and which scripts.

use serde_json::{Value, json};

use crate::Fallible;
use crate::answers;
use crate::meter::Meter;
use crate::session::Session;

/// The server and the name of each tool that a task uses, and one more.
pub const USED: [(&str, &str); 10] = [
    ("filesystem", "list_directory"),
    ("filesystem", "read_text_file"),
    ("github", "add_issue_comment"),
    ("github", "issue_read"),
    ("github", "list_issues"),
    ("github", "list_pull_requests"),
    ("slack", "slack_get_users"),
    ("slack", "slack_post_message"),
    ("time", "convert_time"),
    ("time", "get_current_time"),
];

/// A job that a user gives to a model.
pub struct Task {
    /// A few words.
    pub name: &'static str,
    /// What the job is made of, for readers.
    pub about: &'static str,
    /// What the user says.
    pub prompt: &'static str,
    /// What is looked for where functions are not declared.
    queries: &'static [&'static str],
    /// The functions it takes.
    functions: &'static [&'static str],
    /// Calls by turns. Those of one turn do not need each other's results.
    turns: Vec<Vec<(&'static str, Value)>>,
    /// A script for each turn.
    scripts: Vec<String>,
    /// In what the last script comes to.
    expected: String,
}

impl Task {
    /// By the servers' own tools.
    ///
    /// # Errors
    ///
    /// If a call fails.
    pub async fn by_calls(&self, session: &Session<'_>, meter: &mut Meter) -> Fallible<()> {
        for calls in &self.turns {
            let calls = calls.iter();
            let calls = calls.map(|(function, given)| ((*function).to_owned(), given.clone()));
            session.turn(meter, &calls.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// By looking for tools, reading what they take, and calling them.
    ///
    /// # Errors
    ///
    /// If one is not found, or a call fails.
    pub async fn by_discovery(&self, session: &Session<'_>, meter: &mut Meter) -> Fallible<()> {
        self.search(session, meter, &json!({})).await?;
        let details = json!({ "names": self.functions });
        session
            .turn(meter, &[("get_tool_details".to_owned(), details)])
            .await?;
        for calls in &self.turns {
            let calls = calls.iter().map(|(function, given)| {
                let call = json!({ "name": function, "args": given });
                ("call_tool".to_owned(), call)
            });
            session.turn(meter, &calls.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// By scripts; what is not declared is looked for first.
    ///
    /// # Errors
    ///
    /// If a function is not found, or a script fails or comes to something else.
    pub async fn by_scripts(&self, session: &Session<'_>, meter: &mut Meter) -> Fallible<()> {
        if !self.functions.iter().all(|name| session.declares(name)) {
            let how = json!({ "detail": "signatures", "limit": 3 });
            self.search(session, meter, &how).await?;
        }
        let mut last = String::new();
        for script in &self.scripts {
            let call = ("run_script".to_owned(), json!({ "code": script }));
            last = session.turn(meter, &[call]).await?.concat();
        }
        match last.contains(&self.expected) {
            true => Ok(()),
            false => Err(format!("{:?} is not in {last}", self.expected).into()),
        }
    }

    /// All queries in one turn.
    async fn search(&self, session: &Session<'_>, meter: &mut Meter, how: &Value) -> Fallible<()> {
        let calls = self.queries.iter().map(|query| {
            let mut arguments = how.clone();
            arguments["query"] = json!(query);
            ("search_tools".to_owned(), arguments)
        });
        let found = session
            .turn(meter, &calls.collect::<Vec<_>>())
            .await?
            .concat();
        let missing = self.functions.iter().find(|name| !found.contains(**name));
        match missing {
            None => Ok(()),
            Some(name) => {
                Err(format!("{name} is not found by {:?}:\n{found}", self.queries).into())
            }
        }
    }
}

/// All of them, the best for scripts first.
pub fn all() -> Vec<Task> {
    vec![logs(), issues(), reviews(), comment(), time()]
}

fn logs() -> Task {
    let folder = "/var/log/checkout";
    let reads = answers::log_names().into_iter().map(|name| {
        let given = json!({ "path": format!("{folder}/{name}") });
        ("filesystem_read_text_file", given)
    });
    Task {
        name: "Errors in twelve logs",
        about: "13 calls: a folder is listed, then its files are read side by side, 1,440 lines in all.",
        prompt: "How many errors of each kind are in the logs in /var/log/checkout, and which file \
                 has the most?",
        queries: &["list files in a directory", "read a text file"],
        functions: &["filesystem_list_directory", "filesystem_read_text_file"],
        turns: vec![
            vec![("filesystem_list_directory", json!({ "path": folder }))],
            reads.collect(),
        ],
        scripts: vec![
            r"const folder = '/var/log/checkout';
const { content } = await filesystem_list_directory({ path: folder });
const names = content.split('\n').filter(line => line.startsWith('[FILE] ')).map(line => line.slice(7));
const kinds: Record<string, number> = {};
const files: Record<string, number> = {};
await Promise.all(names.map(async name => {
  const file = await filesystem_read_text_file({ path: `${folder}/${name}` });
  for (const [, kind] of file.content.matchAll(/ ERROR .*error=(\w+)/g)) {
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    files[name] = (files[name] ?? 0) + 1;
  }
}));
const most = Object.entries(files).sort((a, b) => b[1] - a[1])[0];
return JSON.stringify({ kinds, most });"
                .to_owned(),
        ],
        expected: answers::errors_of_first_kind(),
    }
}

fn issues() -> Task {
    let fields = json!(["number", "title", "labels", "updated_at"]);
    let page = |after: Option<&str>| {
        let mut given = json!({
            "owner": "acme", "repo": "checkout", "state": "OPEN", "perPage": 100, "fields": fields,
        });
        if let Some(after) = after {
            given["after"] = json!(after);
        }
        vec![("github_list_issues", given)]
    };
    Task {
        name: "Old issues by label",
        about: "4 calls, each with the cursor of the one before: 360 issues, of which only the \
                members that are needed are asked for.",
        prompt: "Of the open issues of acme/checkout that have not changed since 1 June 2026: how \
                 many are there for each label, and which is the oldest?",
        queries: &["list issues of a repository"],
        functions: &["github_list_issues"],
        turns: [None, Some("100"), Some("200"), Some("300")]
            .map(page)
            .into(),
        scripts: vec![format!(
            r"const counts: Record<string, number> = {{}};
let oldest: any;
let after: string | undefined;
do {{
  const page = mcp.json<any>(await github_list_issues({{
    owner: 'acme', repo: 'checkout', state: 'OPEN', perPage: 100,
    fields: ['number', 'title', 'labels', 'updated_at'], ...(after ? {{ after }} : {{}}),
  }}));
  for (const issue of page.issues) {{
    if (issue.updated_at >= '{}') continue;
    for (const label of issue.labels) counts[label] = (counts[label] ?? 0) + 1;
    if (!oldest || issue.updated_at < oldest.updated_at) oldest = issue;
  }}
  after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : undefined;
}} while (after);
return JSON.stringify({{ counts, oldest }});",
            answers::OLD
        )],
        expected: answers::oldest(),
    }
}

fn reviews() -> Task {
    let fields = json!(["number", "title", "draft", "requested_reviewers"]);
    let pulls = json!({
        "owner": "acme", "repo": "checkout", "state": "open", "perPage": 100, "fields": fields,
    });
    let posts = answers::messages().into_iter().map(|(user, text)| {
        let given = json!({ "channel_id": user, "text": text });
        ("slack_slack_post_message", given)
    });
    Task {
        name: "A message to each reviewer",
        about: "10 calls, a loop over a join: 30 pull requests and 60 members of a workspace, \
                listed side by side, then 8 messages side by side.",
        prompt: "Send everybody who has been asked to review a pull request of acme/checkout a \
                 direct message in Slack, with the ones that are not drafts. Their display names \
                 there are their logins at GitHub.",
        queries: &["list pull requests", "list users of the Slack workspace", "post a Slack message"],
        functions: &[
            "github_list_pull_requests",
            "slack_slack_get_users",
            "slack_slack_post_message",
        ],
        turns: vec![
            vec![
                ("github_list_pull_requests", pulls),
                ("slack_slack_get_users", json!({ "limit": 200 })),
            ],
            posts.collect(),
        ],
        scripts: vec![
            r"const [pulls, users] = (await Promise.all([
  github_list_pull_requests({
    owner: 'acme', repo: 'checkout', state: 'open', perPage: 100,
    fields: ['number', 'title', 'draft', 'requested_reviewers'],
  }),
  slack_slack_get_users({ limit: 200 }),
])).map(text => mcp.json<any>(text));
const ids = new Map<string, string>(users.members.map((one: any) => [one.profile.display_name, one.id]));
const lines = new Map<string, string[]>();
for (const pull of pulls.filter((one: any) => !one.draft)) {
  for (const login of pull.requested_reviewers) {
    lines.set(login, [...(lines.get(login) ?? []), `#${pull.number} ${pull.title}`]);
  }
}
const unknown = [...lines.keys()].filter(login => !ids.has(login));
const posts = [...lines].filter(([login]) => ids.has(login)).map(([login, own]) => slack_slack_post_message({
  channel_id: ids.get(login)!, text: `Waiting for your review:\n${own.join('\n')}`,
}));
return JSON.stringify({ sent: (await Promise.all(posts)).length, unknown });"
                .to_owned(),
        ],
        expected: format!("\"sent\":{}", answers::messages().len()),
    }
}

fn comment() -> Task {
    let issue = json!({
        "method": "get", "owner": "acme", "repo": "checkout", "issue_number": 4711,
    });
    let body = "Coupons from the old back office have `scope: null`, and the rule of #4655 takes \
                that for a scope that matches no cart. It should mean every cart, as `[\\\"all\\\"]` \
                does. Until that is fixed, saving a coupon again in the new back office helps.";
    let body = body.replace("\\\"", "\"");
    Task {
        name: "Two calls",
        about: "An issue is read, and a comment written. The model must have read the issue \
                before it can write, so there are two scripts.",
        prompt: "Read issue 4711 of acme/checkout and comment what the cause seems to be.",
        queries: &["read an issue and comment on it"],
        functions: &["github_issue_read", "github_add_issue_comment"],
        turns: vec![
            vec![("github_issue_read", issue)],
            vec![(
                "github_add_issue_comment",
                json!({ "owner": "acme", "repo": "checkout", "issue_number": 4711, "body": body }),
            )],
        ],
        scripts: vec![
            "return await github_issue_read({ method: 'get', owner: 'acme', repo: 'checkout', \
             issue_number: 4711 });"
                .to_owned(),
            format!(
                "return await github_add_issue_comment({{ owner: 'acme', repo: 'checkout', \
                 issue_number: 4711, body: {} }});",
                Value::from(body)
            ),
        ],
        expected: "issuecomment-3186402917".to_owned(),
    }
}

fn time() -> Task {
    let given = json!({
        "source_timezone": "Europe/Berlin", "time": "15:30", "target_timezone": "Asia/Tokyo",
    });
    Task {
        name: "One call",
        about: "A time of day in another zone.",
        prompt: "What time is it in Tokyo when it is 15:30 in Berlin?",
        queries: &["convert a time between time zones"],
        functions: &["time_convert_time"],
        turns: vec![vec![("time_convert_time", given)]],
        scripts: vec![
            "return await time_convert_time({ source_timezone: 'Europe/Berlin', time: '15:30', \
             target_timezone: 'Asia/Tokyo' });"
                .to_owned(),
        ],
        expected: "23:30:00+09:00".to_owned(),
    }
}
