//! What `run_script` and `wait` take.

mod limits;

use std::sync::Arc;
use std::time::Duration;

use callgate::{Gate, Limits};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use limits::{MOST_WAIT_MS, Tightened};

use crate::arguments::{Arguments, Wrong};

/// Servers that a run can be restricted to.
const MOST_SERVERS: usize = 1_000;

/// The arguments of `run_script`, found good.
#[derive(Debug)]
pub(crate) struct ScriptArguments<'a> {
    pub(crate) code: &'a str,
    /// The gate's, tightened.
    pub(crate) limits: Limits,
    /// The servers whose tools alone the run may use.
    pub(crate) servers: Option<Vec<String>>,
    /// How long the answer may take before the run is left.
    pub(crate) wait: Option<Duration>,
}

/// The arguments of `wait`, found good.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitArguments<'a> {
    pub(crate) run: &'a str,
    pub(crate) wait: Option<Duration>,
    pub(crate) cancel: bool,
    /// The part of the output that is wanted in place of the report.
    pub(crate) part: Option<Part>,
}

/// A part of a run's whole output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The byte that it begins at.
    pub(crate) offset: usize,
    /// How many bytes it has at most.
    pub(crate) bytes: usize,
}

/// Bytes of a part for which nobody says how long it is to be.
pub(crate) const PART_BYTES: usize = 16 << 10;

/// The input schema of `run_script`.
pub(crate) fn run_script_schema(limits: &Limits) -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "description": "the TypeScript script" },
            "limits": limits::schema(limits),
            "servers": {
                "type": "array",
                "items": { "type": "string" },
                "description": "use the tools of these servers alone"
            }
        },
        "required": ["code"],
        "additionalProperties": false
    }))
}

/// What [`plain`] takes, as a schema.
pub(crate) fn plain_schema(limits: &Limits) -> Value {
    let mut schema = Value::Object((*run_script_schema(limits)).clone());
    if let Some(Value::Object(limits)) = schema.pointer_mut("/properties/limits") {
        let what = "tighter limits for this run; the maxima are the defaults";
        limits.insert("description".to_owned(), what.into());
        if let Some(Value::Object(known)) = limits.get_mut("properties") {
            known.shift_remove("waitMs");
        }
    }
    schema
}

/// The input schema of `wait`.
pub(crate) fn wait_schema() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "run": { "type": "string", "description": "the run's id, such as r-0123…" },
            "waitMs": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_WAIT_MS,
                "description": "how long to wait, in ms"
            },
            "cancel": { "type": "boolean", "description": "end the run" },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "get the whole output from this byte on, once the run has ended"
            },
            "bytes": {
                "type": "integer",
                "minimum": 1,
                "description": format!("how much of it at most; default {PART_BYTES}")
            }
        },
        "required": ["run"],
        "additionalProperties": false
    }))
}

/// The arguments of a call of `run_script`.
///
/// # Errors
///
/// All that is wrong with them.
pub(crate) fn run_script<'a>(
    arguments: Option<&'a JsonObject>,
    gate: &Gate,
) -> Result<ScriptArguments<'a>, Wrong> {
    let server = |name: &str| gate.server(name).map(|_| ()).map_err(|e| e.to_string());
    let arguments = Arguments::of("run_script", arguments);
    read_script(arguments, Waits::AsSaid, gate.limits(), &server)
}

/// What is asked for of a run whose report comes as one answer, at its end.
///
/// # Errors
///
/// All that is wrong with it.
pub(crate) fn plain<'a>(
    arguments: &'a JsonObject,
    gate: &Gate,
) -> Result<ScriptArguments<'a>, Wrong> {
    let server = |name: &str| gate.server(name).map(|_| ()).map_err(|e| e.to_string());
    let arguments = Arguments::or("no script was run", Some(arguments));
    read_script(arguments, Waits::ToTheEnd, gate.limits(), &server)
}

/// Whether a run can be left to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    AsSaid,
    ToTheEnd,
}

/// The arguments of a call of `wait`.
///
/// # Errors
///
/// All that is wrong with them.
pub(crate) fn wait(arguments: Option<&JsonObject>) -> Result<WaitArguments<'_>, Wrong> {
    let mut arguments = Arguments::of("wait", arguments);
    let run = arguments.text("run", "the id that run_script gave");
    let wait = arguments.number("waitMs", 0, MOST_WAIT_MS, "milliseconds");
    let cancel = arguments.flag("cancel");
    let offset = arguments.number("offset", 0, u64::MAX, "bytes");
    let bytes = arguments.number("bytes", 1, u64::MAX, "bytes");
    let as_size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    arguments.check()?;
    Ok(WaitArguments {
        run,
        wait: wait.map(Duration::from_millis),
        cancel: cancel.unwrap_or_default(),
        part: (offset.is_some() || bytes.is_some()).then(|| Part {
            offset: as_size(offset.unwrap_or_default()),
            bytes: bytes.map_or(PART_BYTES, as_size),
        }),
    })
}

fn read_script<'a>(
    mut arguments: Arguments<'a>,
    waits: Waits,
    limits: &Limits,
    server: &dyn Fn(&str) -> Result<(), String>,
) -> Result<ScriptArguments<'a>, Wrong> {
    let code = arguments.text("code", "the script's text");
    let tightened = arguments.members("limits", "limits of this run", |given| {
        limits::tighten(limits, given)
    });
    let tightened = tightened.unwrap_or_else(|| Tightened::none(limits));
    if waits == Waits::ToTheEnd && tightened.wait.is_some() {
        let wrong = "\"limits.waitMs\" is of no use here: the answer comes when the run has ended";
        arguments.wrong(wrong.to_owned());
    }
    let servers = servers(&mut arguments, server);
    arguments.check()?;
    Ok(ScriptArguments {
        code,
        limits: tightened.limits,
        servers,
        wait: tightened.wait,
    })
}

fn servers(
    arguments: &mut Arguments<'_>,
    server: &dyn Fn(&str) -> Result<(), String>,
) -> Option<Vec<String>> {
    let list = arguments.list("servers", MOST_SERVERS)?;
    let mut names = Vec::with_capacity(list.len());
    for (index, name) in list.iter().enumerate() {
        match name.as_str().map(|name| (name, server(name))) {
            Some((name, Ok(()))) => names.push(name.to_owned()),
            Some((_, Err(why))) => arguments.wrong(format!("servers[{index}]: {why}")),
            None => arguments.wrong(format!(
                "servers[{index}] must be a string, a server's name"
            )),
        }
    }
    Some(names)
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

#[cfg(test)]
mod tests;
