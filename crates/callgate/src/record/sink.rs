//! The ledger's events and the report of a run as messages for the writer.

use std::sync::Arc;

use callgate_gate::{CallEvent, LedgerError, LedgerEvent, LedgerSink, Outcome};
use callgate_store::{Body, CallRecord, RunRecord, RunStatus};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Message, Recorder};
use crate::config::Config;
use crate::report::{RunReport, Status};

/// Records the runs of one gate. It neither waits nor fails.
pub struct StoreSink {
    recorder: Arc<Recorder>,
    /// The parts of a run's record that all runs of the gate have.
    of_gate: RunRecord,
}

impl StoreSink {
    /// A sink for the runs of a gate with this configuration. `face` is the way that they are
    /// started, such as `run`; `user` is a user of a process that serves several.
    pub fn new(
        recorder: &Arc<Recorder>,
        face: &str,
        user: Option<&str>,
        config: Option<&Config>,
    ) -> Arc<Self> {
        let mut of_gate = RunRecord::default();
        of_gate.user = user.unwrap_or_default().to_owned();
        of_gate.face = face.to_owned();
        of_gate.version = env!("CARGO_PKG_VERSION").to_owned();
        let folder = match config {
            Some(config) => {
                of_gate.configuration.path = Some(config.path.display().to_string());
                of_gate.configuration.sha256 = Some(config.sha256.clone());
                Some(config.folder.clone())
            }
            None => std::env::current_dir().ok(),
        };
        of_gate.configuration.folder = folder.map(|folder| folder.display().to_string());
        Arc::new(Self {
            recorder: Arc::clone(recorder),
            of_gate,
        })
    }

    /// Adds the report to a run that has not ended.
    pub(crate) fn reported(&self, report: &RunReport) {
        let Some(run) = report.run.clone() else {
            return;
        };
        let keeps = self.recorder.keeps(report.status != Status::Completed);
        let printed = report.printed().to_string();
        let output = body(&printed);
        let text = Some(printed).filter(|text| keeps && !text.is_empty());
        let bytes = text.as_ref().map_or(0, String::len);
        let message = Message::Reported {
            run,
            report: recorded(report, keeps),
            output,
            text,
        };
        self.recorder.send(bytes, message);
    }

    /// Waits until the events so far are written, for a limited time.
    pub(crate) async fn flush(&self) {
        self.recorder.flush().await;
    }

    fn call(&self, event: &CallEvent<'_>, is_over: bool) {
        let line = event.line;
        let has_failed = !matches!(
            line.outcome,
            Outcome::Ok | Outcome::Recorded | Outcome::Withheld | Outcome::InFlight
        );
        let keeps = is_over && self.recorder.keeps(has_failed);
        let mut outcome = json!(line.outcome);
        if !keeps && let Some(members) = outcome.as_object_mut() {
            // It quotes the server.
            members.remove("message");
        }
        let hashed = |bytes: usize, sha256: &Option<String>| {
            let sha256 = sha256.clone()?;
            let bytes = bytes as u64;
            let blob = None;
            Some(Body {
                sha256,
                bytes,
                blob,
            })
        };
        let mut call = CallRecord::default();
        call.run = event.run.to_owned();
        call.ordinal = u32::try_from(line.ordinal).unwrap_or(u32::MAX);
        call.function = line.function.clone();
        call.server = line.server.clone();
        call.tool = line.tool.clone();
        call.line = line.line;
        call.decision = Some(line.decision.clone()).filter(|text| !text.is_empty());
        call.rule = event.rule.map(|rule| rule.to_json().to_string());
        call.flows = (!line.flows.is_empty()).then(|| json!(line.flows));
        call.arguments = hashed(line.argument_bytes, &line.argument_sha256);
        call.called = line.at.parse().unwrap_or(event.time);
        call.ended = is_over.then_some(event.time);
        call.took_ms = line.took_ms;
        call.outcome = Some(outcome);
        call.result = hashed(line.result_bytes.unwrap_or_default(), &line.result_sha256);
        let kept = |text: Option<&str>| text.filter(|_| keeps).map(str::to_owned);
        let (arguments, result) = (kept(event.arguments), kept(event.result));
        let texts = arguments.iter().chain(&result);
        let bytes = texts.map(String::len).sum();
        let message = Message::Call {
            call: Box::new(call),
            arguments,
            result,
        };
        self.recorder.send(bytes, message);
    }
}

impl LedgerSink for StoreSink {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        match event {
            LedgerEvent::RunStarted {
                run,
                time,
                script,
                client,
                ..
            } => {
                let mut record = self.of_gate.clone();
                record.id = (*run).to_owned();
                record.client = client.map(str::to_owned);
                record.started = *time;
                record.script = script.map(body);
                // The run may still fail.
                let script = script.filter(|_| self.recorder.keeps(true));
                let script = script.map(str::to_owned);
                let bytes = script.as_ref().map_or(0, String::len);
                let record = Box::new(record);
                let started = Message::Started { record, script };
                self.recorder.send(bytes, started);
            }
            LedgerEvent::CallDecided(call) => self.call(call, false),
            LedgerEvent::CallEnded(call) => self.call(call, true),
            LedgerEvent::RunEnded {
                run,
                time,
                status,
                calls,
                denied,
                failed,
                ..
            } => {
                let status = serde_json::from_value(json!(status));
                let ended = Message::Ended {
                    run: (*run).to_owned(),
                    time: *time,
                    status: status.unwrap_or(RunStatus::Lost),
                    counts: json!({ "calls": calls, "denied": denied, "failed": failed }),
                };
                self.recorder.send(0, ended);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The size and the hash of a text.
fn body(text: &str) -> Body {
    Body {
        sha256: hex::encode(Sha256::digest(text)),
        bytes: text.len() as u64,
        blob: None,
    }
}

/// The report for the record: without output and value, which are a text of their own, and without
/// calls, which have records. Texts of the script and of servers are left out unless they are kept.
fn recorded(report: &RunReport, keeps: bool) -> Value {
    let sizes = |bytes: u64, cut_bytes: u64| json!({ "bytes": bytes, "cutBytes": cut_bytes });
    let value = report.value.as_ref();
    let mut recorded = json!({
        "version": report.version,
        "script": report.script,
        "status": report.status,
        "run": report.run,
        "output": sizes(report.output.bytes, report.output.cut_bytes),
        "value": value.map(|value| sizes(value.bytes, value.cut_bytes)),
        "lookups": report.lookups,
        "scriptMs": report.script_ms,
        "totalMs": report.total_ms,
        "error": report.error.as_ref().map(|error| json!({
            "kind": error.kind,
            "line": error.position.as_ref().map(|position| position.line),
            "limit": error.limit,
        })),
    });
    if keeps {
        recorded["error"] = json!(report.error);
        recorded["denials"] = json!(report.denials);
        recorded["dryRun"] = json!(report.dry_run);
        recorded["check"] = json!(report.check);
        recorded["warnings"] = json!(report.warnings);
        recorded["unavailable"] = json!(report.unavailable);
    }
    recorded
}
