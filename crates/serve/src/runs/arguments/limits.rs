//! The limits that a caller sets for one run: tighter than the configured ones,
//! never wider.

use std::time::Duration;

use callgate::Limits;
use callgate::config::LEAST_MEMORY;
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;

/// The longest that a request may wait for a run: ten minutes.
pub(super) const MOST_WAIT_MS: u64 = 600_000;

/// The configured limits, tightened.
#[derive(Debug)]
pub(super) struct Tightened {
    pub(super) limits: Limits,
    /// How long the answer may take before the run is left.
    pub(super) wait: Option<Duration>,
}

/// A limit that a caller can set.
struct Knob {
    key: &'static str,
    unit: &'static str,
    what: &'static str,
    least: u64,
    most: fn(&Limits) -> u64,
    set: fn(&mut Tightened, u64),
}

const KNOBS: [Knob; 8] = [
    Knob {
        key: "timeoutMs",
        unit: "milliseconds",
        what: "script time, waiting for tools not counted",
        least: 1,
        most: |limits| millis(limits.script_time),
        set: |to, ms| to.limits.script_time = Duration::from_millis(ms),
    },
    Knob {
        key: "runTimeoutMs",
        unit: "milliseconds",
        what: "the whole run",
        least: 1,
        most: |limits| millis(limits.run_time),
        set: |to, ms| to.limits.run_time = Duration::from_millis(ms),
    },
    Knob {
        key: "memoryBytes",
        unit: "bytes",
        what: "the heap, and array buffers, each",
        least: LEAST_MEMORY,
        most: |limits| limits.heap_bytes.max(LEAST_MEMORY),
        set: |to, bytes| {
            to.limits.heap_bytes = bytes;
            to.limits.buffer_bytes = to.limits.buffer_bytes.min(bytes);
        },
    },
    Knob {
        key: "outputBytes",
        unit: "bytes",
        what: "output shown, and returned value",
        least: 0,
        most: |limits| limits.output_bytes,
        set: |to, bytes| {
            let limits = &mut to.limits;
            limits.output_bytes = bytes;
            limits.output_lines = limits.output_lines.min(bytes.div_ceil(8));
            limits.result_bytes = limits.result_bytes.min(bytes);
        },
    },
    Knob {
        key: "resultBytes",
        unit: "bytes",
        what: "one tool result",
        least: 1,
        most: |limits| limits.reply_bytes,
        set: |to, bytes| to.limits.reply_bytes = bytes,
    },
    Knob {
        key: "calls",
        unit: "calls",
        what: "tool calls in all",
        least: 0,
        most: |limits| limits.calls,
        set: |to, calls| to.limits.calls = calls,
    },
    Knob {
        key: "callsInFlight",
        unit: "calls",
        what: "tool calls at a time",
        least: 1,
        most: |limits| u64::from(limits.calls_in_flight),
        set: |to, calls| to.limits.calls_in_flight = u32::try_from(calls).unwrap_or(u32::MAX),
    },
    Knob {
        key: "waitMs",
        unit: "milliseconds",
        what: "wait before the run is left to go on; see the tool wait",
        least: 0,
        most: |_| MOST_WAIT_MS,
        set: |to, ms| to.wait = Some(Duration::from_millis(ms)),
    },
];

/// The schema of `limits`.
pub(super) fn schema(limits: &Limits) -> Value {
    let properties: Map<String, Value> = KNOBS
        .iter()
        .map(|knob| {
            let unit = if knob.key.ends_with("Ms") { "ms, " } else { "" };
            let schema = json!({
                "type": "integer",
                "minimum": knob.least,
                "maximum": (knob.most)(limits),
                "description": format!("{unit}{}", knob.what),
            });
            (knob.key.to_owned(), schema)
        })
        .collect();
    json!({
        "type": "object",
        "description": "tighter limits for this run; the maxima are the defaults, but of waitMs",
        "properties": properties,
        "additionalProperties": false
    })
}

/// The limits, with what was given of them.
pub(super) fn tighten(limits: &Limits, given: &mut Arguments<'_>) -> Tightened {
    let mut tightened = Tightened::none(limits);
    for knob in &KNOBS {
        let most = (knob.most)(limits);
        if let Some(number) = given.number(knob.key, knob.least, most, knob.unit) {
            (knob.set)(&mut tightened, number);
        }
    }
    tightened
}

impl Tightened {
    /// Nothing is tighter.
    pub(super) fn none(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            wait: None,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
