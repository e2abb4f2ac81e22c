//! The answers of the tasks' tools. The texts are made up; their shapes and
//! sizes are those of the real servers.

use serde_json::{Value, json};

const ISSUES: usize = 360;
const PULLS: usize = 30;
const USERS: usize = 60;
const LOGS: usize = 12;
const LINES: usize = 120;
const LABELS: [&str; 6] = ["bug", "docs", "payments", "performance", "security", "ui"];
const ERRORS: [&str; 3] = ["GatewayTimeout", "PaymentDeclined", "StockMissing"];

/// The result of a call, if the tool is one of the tasks'.
pub fn answer(tool: &str, arguments: &Value) -> Option<Value> {
    let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
    let file = |text: String| {
        json!({
            "content": [{ "type": "text", "text": text }],
            "structuredContent": { "content": text },
        })
    };
    match tool {
        "list_issues" => Some(text(issues(arguments).to_string())),
        "list_pull_requests" => {
            let pulls = (0..PULLS).map(|at| with_fields(pull(at), arguments));
            Some(text(Value::from_iter(pulls).to_string()))
        }
        "issue_read" => {
            let issue: Value = serde_json::from_str(include_str!("issue.json")).ok()?;
            Some(text(issue.to_string()))
        }
        "add_issue_comment" => Some(text(
            json!({
                "id": "3186402917",
                "url": "https://github.com/acme/checkout/issues/4711#issuecomment-3186402917",
            })
            .to_string(),
        )),
        "slack_get_users" => {
            let members: Vec<Value> = (0..USERS).map(user).collect();
            let page = json!({ "ok": true, "members": members, "cache_ts": 1_763_800_000,
                "response_metadata": { "next_cursor": "" } });
            Some(text(page.to_string()))
        }
        "slack_post_message" => Some(text(posted(arguments).to_string())),
        "list_directory" => {
            let names = (0..LOGS).map(|at| format!("[FILE] {}\n", log_name(at)));
            Some(file(names.collect::<String>().trim_end().to_owned()))
        }
        "read_text_file" => {
            let path = arguments["path"].as_str().unwrap_or_default();
            let at = (0..LOGS).find(|at| path.ends_with(&log_name(*at)))?;
            Some(file(log(at)))
        }
        "convert_time" => Some(text(format!(
            "{:#}",
            json!({
                "source": { "timezone": "Europe/Berlin", "datetime": "2026-11-23T15:30:00+01:00",
                    "day_of_week": "Monday", "is_dst": false },
                "target": { "timezone": "Asia/Tokyo", "datetime": "2026-11-23T23:30:00+09:00",
                    "day_of_week": "Monday", "is_dst": false },
                "time_difference": "+8.0h",
            })
        ))),
        _ => None,
    }
}

/// A page of issues, as GitHub's server gives it.
fn issues(arguments: &Value) -> Value {
    let after = arguments["after"]
        .as_str()
        .and_then(|after| after.parse().ok());
    let from = after.unwrap_or(0).min(ISSUES);
    let size = arguments["perPage"].as_u64().unwrap_or(30) as usize;
    let to = ISSUES.min(from + size);
    let page: Vec<Value> = (from..to)
        .map(|at| with_fields(issue(at), arguments))
        .collect();
    json!({
        "issues": page,
        "pageInfo": { "hasNextPage": to < ISSUES, "hasPreviousPage": from > 0,
            "startCursor": from.to_string(), "endCursor": to.to_string() },
        "totalCount": ISSUES,
    })
}

fn issue(at: usize) -> Value {
    let what = [
        "Cart total is wrong",
        "Checkout hangs",
        "Refund is not shown",
        "Coupon is refused",
    ];
    json!({
        "number": 4800 - at,
        "title": format!("{} for orders of kind {at}", what[at % what.len()]),
        "labels": [LABELS[at % 6], LABELS[at * 5 % 7 % 6]],
        "updated_at": format!("2026-{:02}-{:02}T{:02}:{:02}:11Z", 1 + at * 7 % 11, 1 + at * 13 % 28, at % 24, at % 60),
    })
}

/// Only the members that a call asks for.
fn with_fields(value: Value, arguments: &Value) -> Value {
    let Some(fields) = arguments["fields"].as_array() else {
        return value;
    };
    let members = fields.iter().filter_map(Value::as_str);
    members
        .map(|name| (name.to_owned(), value[name].clone()))
        .collect()
}

fn login(at: usize) -> String {
    let first = [
        "ada", "ben", "cleo", "dan", "eva", "finn", "gita", "hugo", "ines", "jon",
    ];
    let last = ["archer", "brandt", "costa", "dietz", "eriksen", "fischer"];
    format!("{}-{}", first[at % 10], last[at / 10 % 6])
}

/// A pull request, with two of eight reviewers.
fn pull(at: usize) -> Value {
    json!({
        "number": 900 + at,
        "title": format!("Move step {at} of the checkout to the new queue"),
        "draft": at % 5 == 4,
        "requested_reviewers": [login(at % 8), login((at + 3) % 8)],
    })
}

/// A member of the workspace, as Slack has them.
fn user(at: usize) -> Value {
    let login = login(at);
    let image = |size: u32| {
        format!(
            "https://avatars.slack-edge.com/2025-03-14/85{at:02}114903217_4be1c7a0d95e_{size}.png"
        )
    };
    json!({
        "id": format!("U07K3M{at:04}"), "team_id": "T02ACME41", "name": login, "deleted": false,
        "color": "9f69e7", "real_name": login.replace('-', " "), "tz": "Europe/Berlin",
        "tz_label": "Central European Time", "tz_offset": 3600,
        "profile": {
            "title": "Engineer", "phone": "", "skype": "", "real_name": login.replace('-', " "),
            "display_name": login, "status_text": "", "status_emoji": "", "status_expiration": 0,
            "avatar_hash": "4be1c7a0d95e", "email": format!("{login}@acme.example"),
            "image_24": image(24), "image_48": image(48), "image_192": image(192),
            "team": "T02ACME41",
        },
        "is_admin": false, "is_owner": false, "is_restricted": false, "is_bot": false,
        "is_app_user": false, "updated": 1_741_960_000 + at, "is_email_confirmed": true,
    })
}

fn posted(arguments: &Value) -> Value {
    json!({
        "ok": true, "channel": "D08LQ2X7R4N", "ts": "1763812801.004129",
        "message": { "user": "U07BOT00001", "type": "message", "ts": "1763812801.004129",
            "bot_id": "B07CHK", "app_id": "A07CHK", "text": arguments["text"], "team": "T02ACME41" },
    })
}

/// The name of a file of the log.
fn log_name(at: usize) -> String {
    format!("checkout-{:02}.log", at * 2)
}

fn log(at: usize) -> String {
    (0..LINES).map(|line| log_line(at, line)).collect()
}

fn log_line(at: usize, line: usize) -> String {
    let order = 10_000 + at * LINES + line;
    let begin = format!(
        "2026-11-20T{:02}:{:02}:{:02}.{:03}Z",
        at * 2 + line / 60,
        line % 60,
        line * 7 % 60,
        line * 37 % 1000
    );
    match error(at, line) {
        Some(error) => format!(
            "{begin} ERROR [checkout-worker-{}] order=ORD-{order} step=pay error={error} retry=1\n",
            line % 4
        ),
        None => format!(
            "{begin} INFO [checkout-worker-{}] order=ORD-{order} step=reserve duration_ms={} status=ok\n",
            line % 4,
            20 + line * 11 % 90
        ),
    }
}

fn error(at: usize, line: usize) -> Option<&'static str> {
    ((at + line) % 17 == 3).then(|| ERRORS[(at + line * line) % 3])
}
