//! The arguments of `run_script` and `wait`. Their schemas are in `run_script.json` and
//! `wait.json`.

use std::time::Duration;

use callgate::Gate;
use callgate::settings::Limits;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use super::limits::{LimitArguments, set_maxima};
use crate::arguments::{read, refusal};

/// The default size of a part, in bytes.
const PART_BYTES: usize = 16 << 10;
/// The longest wait that a call may ask for, unless a longer one is configured: many clients give up
/// after 60 s, and the answer is lost.
const MAX_WAIT: Duration = Duration::from_secs(50);
/// The limits in the schema that a model sees.
const SHOWN_LIMITS: [&str; 3] = ["runTimeoutMs", "outputBytes", "waitMs"];

#[derive(Debug, Deserialize)]
pub(crate) struct ScriptArguments {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) limits: LimitArguments,
    /// The only servers whose tools the run may use.
    pub(crate) servers: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitArguments {
    pub(crate) run: String,
    pub(crate) wait_ms: Option<u64>,
    offset: Option<usize>,
    bytes: Option<usize>,
}

/// A part of a run's whole output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: usize,
    /// The limit of the part's size.
    pub(crate) bytes: usize,
}

impl ScriptArguments {
    /// Reads the arguments of a call of `run_script`.
    pub(crate) fn read(given: Option<&JsonObject>, gate: &Gate) -> Result<Self, String> {
        let schema = object(script_schema(gate.limits()));
        Self::read_by("run_script was not called", &schema, given, gate)
    }

    /// Reads the arguments of a run whose answer is its report.
    pub(crate) fn read_for_report(given: &JsonObject, gate: &Gate) -> Result<Self, String> {
        let schema = report_schema(gate.limits());
        Self::read_by("no script was run", &schema, Some(given), gate)
    }

    fn read_by(
        lead: &str,
        schema: &JsonObject,
        given: Option<&JsonObject>,
        gate: &Gate,
    ) -> Result<Self, String> {
        let given: Self = read(lead, schema, given)?;
        let servers = given.servers.iter().flatten();
        let unknown = servers.filter_map(|name| gate.server(name).err());
        let problems: Vec<String> = unknown.map(|error| error.to_string()).collect();
        if problems.is_empty() {
            Ok(given)
        } else {
            Err(refusal(lead, &problems))
        }
    }
}

impl WaitArguments {
    /// Reads the arguments of a call of `wait`, or with `cancels` of `cancel_run`.
    pub(crate) fn read(given: Option<&JsonObject>, cancels: bool) -> Result<Self, String> {
        if cancels {
            return read("cancel_run was not called", &cancel_schema(), given);
        }
        let schema = object(schema(include_str!("wait.json")));
        read("wait was not called", &schema, given)
    }

    /// The requested part of the output; `None` if the report is requested.
    pub(crate) fn part(&self) -> Option<Part> {
        (self.offset.is_some() || self.bytes.is_some()).then(|| Part {
            offset: self.offset.unwrap_or_default(),
            bytes: self.bytes.unwrap_or(PART_BYTES),
        })
    }
}

/// The time that a request waits for its run; `configured` if it names none.
pub(crate) fn wait_time(ms: Option<u64>, configured: Duration) -> Duration {
    let wait = ms.map_or(configured, Duration::from_millis);
    wait.min(max_wait(configured))
}

fn max_wait(configured: Duration) -> Duration {
    configured.max(MAX_WAIT)
}

/// The input schema of `run_script` that a model sees: the code and the most useful limits. Others
/// are accepted, too.
pub(crate) fn run_script_schema(limits: &Limits, wait: Duration) -> JsonObject {
    let mut schema = script_schema(limits);
    keep(&mut schema["properties"], |key| key != "servers");
    let limits = &mut schema["properties"]["limits"]["properties"];
    keep(limits, |key| SHOWN_LIMITS.contains(&key));
    set_waits(limits, wait);
    object(schema)
}

/// The schema of a script whose answer is its report: without `waitMs`.
pub(crate) fn report_schema(limits: &Limits) -> JsonObject {
    let mut schema = script_schema(limits);
    let limits = &mut schema["properties"]["limits"]["properties"];
    keep(limits, |key| key != "waitMs");
    object(schema)
}

pub(crate) fn wait_schema(wait: Duration) -> JsonObject {
    let mut schema = schema(include_str!("wait.json"));
    set_waits(&mut schema["properties"], wait);
    object(schema)
}

/// The input schema of `cancel_run`: that of `wait`, with the run alone.
pub(crate) fn cancel_schema() -> JsonObject {
    let mut schema = schema(include_str!("wait.json"));
    keep(&mut schema["properties"], |key| key == "run");
    object(schema)
}

/// The schema of a script, with the configured limits as maxima.
fn script_schema(limits: &Limits) -> Value {
    let mut schema = schema(include_str!("run_script.json"));
    set_maxima(&mut schema["properties"]["limits"]["properties"], limits);
    schema
}

/// Shows the default of `waitMs` and its maximum. A longer wait is cut, not refused.
fn set_waits(properties: &mut Value, wait: Duration) {
    for (key, wait) in [("default", wait), ("maximum", max_wait(wait))] {
        properties["waitMs"][key] = (wait.as_millis() as u64).into();
    }
}

/// Removes the other properties.
fn keep(properties: &mut Value, is_kept: impl Fn(&str) -> bool) {
    if let Some(properties) = properties.as_object_mut() {
        properties.retain(|key, _| is_kept(key));
    }
}

/// Tests check that the files can be read.
fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn object(schema: Value) -> JsonObject {
    serde_json::from_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(given: &Value) -> Result<ScriptArguments, String> {
        let schema = object(script_schema(&Limits::default()));
        read("run_script was not called", &schema, given.as_object())
    }

    #[test]
    fn limits_are_tightened() {
        let given = json!({ "code": "1", "limits": {
            "timeoutMs": 2000, "runTimeoutMs": 60_000.0, "memoryBytes": 32 << 20,
            "outputBytes": 80, "resultBytes": 1, "calls": 0, "callsInFlight": 7, "waitMs": null,
        } });
        let given = script(&given).expect("they are good");
        let expected = Limits {
            script_time: Duration::from_secs(2),
            run_time: Duration::from_secs(60),
            heap_bytes: 32 << 20,
            buffer_bytes: 32 << 20,
            output_bytes: 80,
            output_lines: 10,
            result_bytes: 80,
            reply_bytes: 1,
            calls: 0,
            calls_in_flight: 7,
            ..Limits::default()
        };
        assert_eq!(given.limits.tighten(&Limits::default()), expected);
        let plain = script(&json!({ "code": "", "servers": null })).expect("they are good");
        let limits = plain.limits.tighten(&Limits::default());
        assert_eq!(limits, Limits::default());
        assert_eq!((plain.servers, given.limits.wait_ms), (None, None));
    }

    #[test]
    fn limits_are_never_wider() {
        let wider = json!({ "code": "", "limits": {
            "timeoutMs": 10_001, "memoryBytes": 1, "callsInFlight": 1_001, "waitMs": 600_001,
        } });
        let problems = script(&wider).expect_err("they are wider");
        let expected = "run_script was not called:\n\
            - /limits/timeoutMs: 10001 is greater than the maximum of 10000\n\
            - /limits/memoryBytes: 1 is less than the minimum of 16777216\n\
            - /limits/callsInFlight: 1001 is greater than the maximum of 1000\n\
            - /limits/waitMs: 600001 is greater than the maximum of 600000";
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&problems), sorted(expected));
        let report = report_schema(&Limits::default());
        assert!(!Value::Object(report).to_string().contains("waitMs"));
    }

    #[test]
    fn run_script_schema_shows_selected_limits() {
        let wait = Duration::from_secs(45);
        let shown = run_script_schema(&Limits::default(), wait);
        let limits = &shown["properties"]["limits"]["properties"];
        let names = limits.as_object().expect("limits").keys();
        assert_eq!(names.collect::<Vec<_>>(), SHOWN_LIMITS.each_ref());
        assert_eq!(limits["waitMs"]["default"], 45_000);
        assert_eq!(wait_schema(wait)["properties"]["waitMs"]["default"], 45_000);
    }

    #[test]
    fn waits_over_fifty_seconds_are_cut() {
        let seconds = Duration::from_secs;
        for (ms, configured, expected) in [
            (None, 45, 45),
            (None, 90, 90),
            (Some(20_000), 45, 20),
            (Some(90_000), 45, 50),
            (Some(600_000), 4, 50),
            (Some(90_000), 80, 80),
        ] {
            let time = wait_time(ms, seconds(configured));
            assert_eq!(time, seconds(expected), "{ms:?}");
        }
        for (wait, max) in [(45, 50_000), (120, 120_000)] {
            let shown = wait_schema(seconds(wait));
            assert_eq!(shown["properties"]["waitMs"]["maximum"], max);
        }
        let long = json!({ "run": "r-1", "waitMs": 90_000 });
        assert!(WaitArguments::read(long.as_object(), false).is_ok());
    }

    #[test]
    fn wait_arguments_are_read_and_validated() {
        let given = json!({ "run": "r-1", "waitMs": 0, "bytes": 5 });
        let given = WaitArguments::read(given.as_object(), false).expect("they are good");
        assert_eq!(given.run, "r-1");
        assert_eq!(given.wait_ms, Some(0));
        let part = Part {
            offset: 0,
            bytes: 5,
        };
        assert_eq!(given.part(), Some(part));
        // Waiting reads only, so that it cannot cancel.
        let wrong = json!({ "cancel": true, "waitMs": -1, "bytes": 0, "id": 1 });
        let problems = WaitArguments::read(wrong.as_object(), false).expect_err("they are wrong");
        assert_eq!(problems.lines().count(), 6, "{problems}");
        for (given, is_good) in [
            (json!({ "run": "r-1" }), true),
            (json!({ "run": "r-1", "waitMs": 0 }), false),
            (json!({}), false),
        ] {
            let read = WaitArguments::read(given.as_object(), true);
            assert_eq!(read.is_ok(), is_good, "{given}");
        }
    }
}
