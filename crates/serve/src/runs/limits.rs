//! The limits that a caller may tighten for one run.

use std::time::Duration;

use callgate::config::MIN_MEMORY;
use callgate::settings::Limits;
use serde::Deserialize;
use serde_json::Value;

/// The limits in the arguments of `run_script`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LimitArguments {
    timeout_ms: Option<u64>,
    run_timeout_ms: Option<u64>,
    memory_bytes: Option<u64>,
    pub(super) output_bytes: Option<u64>,
    result_bytes: Option<u64>,
    calls: Option<u64>,
    calls_in_flight: Option<u32>,
    /// The time that the request waits for the run.
    pub(crate) wait_ms: Option<u64>,
}

impl LimitArguments {
    /// The configured limits, tightened. The schema ensures that no limit is raised.
    pub(crate) fn tighten(&self, configured: &Limits) -> Limits {
        let mut limits = configured.clone();
        let time = |ms: Option<u64>| ms.map(Duration::from_millis);
        limits.script_time = time(self.timeout_ms).unwrap_or(limits.script_time);
        limits.run_time = time(self.run_timeout_ms).unwrap_or(limits.run_time);
        if let Some(bytes) = self.memory_bytes {
            limits.heap_bytes = bytes;
            limits.buffer_bytes = limits.buffer_bytes.min(bytes);
        }
        if let Some(bytes) = self.output_bytes {
            let bytes = bytes.min(limits.output_bytes);
            limits.output_bytes = bytes;
            limits.output_lines = limits.output_lines.min(bytes.div_ceil(8));
            limits.result_bytes = limits.result_bytes.min(bytes);
        }
        limits.reply_bytes = self.result_bytes.unwrap_or(limits.reply_bytes);
        limits.calls = self.calls.unwrap_or(limits.calls);
        limits.calls_in_flight = self.calls_in_flight.unwrap_or(limits.calls_in_flight);
        limits
    }
}

/// Writes the configured limits into the schema of `limits` as maxima.
pub(crate) fn set_maxima(properties: &mut Value, limits: &Limits) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    for (key, max) in [
        ("timeoutMs", millis(limits.script_time)),
        ("runTimeoutMs", millis(limits.run_time)),
        ("memoryBytes", limits.heap_bytes.max(MIN_MEMORY)),
        ("outputBytes", limits.output_bytes),
        ("resultBytes", limits.reply_bytes),
        ("calls", limits.calls),
        ("callsInFlight", limits.calls_in_flight.into()),
    ] {
        properties[key]["maximum"] = max.into();
    }
    properties["memoryBytes"]["minimum"] = MIN_MEMORY.into();
}
