//! The preview of a script: the tools it names, and the decisions about them.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_catalog::Tool;
use callgate_gate::Changed;
use callgate_policy::flow::Side;
use callgate_policy::{Because, Decision, DefinitionHash, Effect, Grant, Verdict};
use callgate_script::Prepared;
use serde::Serialize;

use super::Gate;
use crate::model_tools::EXTRACTION;
use crate::models::NoAnswer;
use crate::names::{HostFunction, NameProblem};
use crate::read_script::read;
use crate::report::text::write_check;
use crate::report::{RunReport, Status};
use crate::run_request::RunRequest;
use crate::type_check::TypeCheck;

/// Unknown names for which the nearest tool is searched, and tools whose data flows are
/// previewed. A script can hold many names.
const MAX_NAMES: usize = 100;
/// The most data flows that are listed.
const MAX_FLOWS: usize = 20;

/// The tools that a script names, and the decisions that calls of them would meet.
///
/// It is read from the text, so it is not a promise and no grant: a script may name a tool and
/// not call it, and may call tools that it does not name ([`Self::dynamic`]).
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// The tools it names, in the order of their first mention.
    pub tools: Vec<PreviewedTool>,
    /// Names of tools whose server is not available.
    pub missing: Vec<UnknownTool>,
    /// Names that look like a tool of a configured server but are none, names given to
    /// `mcp.callTool` that are none, and `mcp.extract` without a model.
    pub unknown: Vec<UnknownTool>,
    /// Rules and labels over data that may go between the tools, each in a sentence.
    pub flows: Vec<String>,
    /// True if the script may call tools that its text does not name: through
    /// `mcp.callTool` with a computed name, or the global object.
    pub dynamic: bool,
    /// True if it uses the global object as a value, or a computed name on it.
    pub global: bool,
    /// The type check; `None` if it is off, and if servers are missing.
    pub check: Option<TypeCheck>,
    #[serde(skip)]
    script: Arc<str>,
}

impl Preview {
    /// The status of a run that calls all tools it names.
    pub fn status(&self) -> Status {
        self.status_with(|tool| tool.verdict == Verdict::Deny)
    }

    /// The same without an asker: tools that would be asked about are denied. A tool whose
    /// arguments decide counts as allowed.
    pub fn unattended_status(&self) -> Status {
        self.status_with(|tool| match tool.verdict {
            Verdict::Allow => false,
            Verdict::Ask => tool.depends_on.is_none(),
            Verdict::Deny => true,
        })
    }

    fn status_with(&self, is_denied: impl FnMut(&PreviewedTool) -> bool) -> Status {
        if !self.missing.is_empty() {
            Status::MissingServer
        } else if self.tools.iter().any(is_denied) {
            Status::Denied
        } else if !self.unknown.is_empty() {
            Status::Failed
        } else {
            Status::Completed
        }
    }

    /// The warnings of a type check that does not stop the script, as text.
    pub fn warnings(&self) -> String {
        let mut text = String::new();
        if let Some(check) = &self.check {
            let _ = write_check(&mut text, &self.script, check, None);
        }
        text
    }
}

/// One tool that a script names.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreviewedTool {
    /// The generated name; for `mcp.extract`, its name in rules and in the ledger.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// The decision of the rules.
    #[doc(hidden)]
    pub verdict: Verdict,
    /// The reason for the decision.
    pub because: String,
    /// The tool's name for people, in its server's words.
    pub title: Option<String>,
    /// The first sentence or line of its description.
    pub summary: Option<String>,
    /// The hash of its definition, to which a grant is bound.
    pub definition: String,
    /// The change since it was allowed, if that is why it would be asked about.
    #[serde(skip)]
    #[doc(hidden)]
    pub changed: Option<Changed>,
    #[serde(skip)]
    called: Tool,
    /// The effect of the deciding rule, if that rule tests arguments.
    #[serde(skip)]
    depends_on: Option<Effect>,
}

impl PreviewedTool {
    /// True if a grant would change the decision: the rules would ask, and not only because a
    /// deny rule tests the arguments.
    pub fn needs_grant(&self) -> bool {
        self.verdict == Verdict::Ask && self.depends_on != Some(Effect::Deny)
    }

    /// The name in the script: the function, or `mcp.extract`.
    pub fn script_name(&self) -> &str {
        if self.function == EXTRACTION.function {
            HostFunction::Extract.name()
        } else {
            &self.function
        }
    }

    /// A grant for every call of this tool as it is now, for [`RunRequest::grant`].
    pub fn grant(&self) -> Grant {
        self.called.grant()
    }

    fn new(gate: &Gate, tool: &Tool, decision: &Decision, line: u32) -> Self {
        let definition = &tool.definition;
        let definitions = &gate.setup.records.definitions;
        let find = |hash: &DefinitionHash| definitions.as_ref()?.find(hash);
        Self {
            line,
            verdict: decision.verdict,
            because: match decision.because {
                // The hint is the host's own, and no server's.
                Because::ReadOnlyHint if tool.function == EXTRACTION.function => {
                    "allowed: no rule is about it".to_owned()
                }
                _ => decision.to_string(),
            },
            title: definition.title.clone(),
            summary: gate
                .live
                .catalog()
                .summary(&tool.function)
                .map(str::to_owned),
            definition: definition.identity.hash().to_string(),
            changed: Changed::of(decision, Some(&definition.identity), find),
            depends_on: match &decision.because {
                Because::Depends(rule) => Some(rule.effect),
                _ => None,
            },
            function: tool.function.clone(),
            server: definition.server.clone(),
            tool: definition.name.clone(),
            called: tool.clone(),
        }
    }
}

/// A name in a script that is not a tool and was probably meant as one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnknownTool {
    /// The name in the script.
    pub name: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// The problem, with the nearest name if there is one.
    pub message: String,
}

impl Gate {
    /// The preview of a script: the tools it would call, by its text, and the decisions of the
    /// rules and the type check about it. Nothing runs.
    ///
    /// The worker that read the script waits for the run of a clone of the request, as with
    /// [`RunRequest::rejected`]: the previewed text is the one that runs.
    ///
    /// # Errors
    ///
    /// The report of a run that ends before it begins.
    pub async fn preview(&self, request: impl Into<RunRequest>) -> Result<Preview, Box<RunReport>> {
        let mut request = request.into();
        request.audience = self.setup.people.audience;
        let limits = request.limits.as_ref().unwrap_or(&self.limits);
        let read = read(&self.launcher, limits, &request).await?;
        let catalog = self.live.for_script(&read.prepared.mentions).await;
        let mut preview = self.preview_names(&read.prepared, &request);
        // Declarations of missing tools are unknown, so a check would mislead.
        if preview.missing.is_empty() {
            let request = request.as_read(&read.prepared);
            preview.check = self.type_check(&request, &read.prepared, &catalog).await?;
        }
        *request.read_ahead.lock() = Some(read);
        Ok(preview)
    }

    fn preview_names(&self, prepared: &Prepared, request: &RunRequest) -> Preview {
        let named = &prepared.mentions;
        let mut preview = Preview {
            dynamic: named.dynamic || named.global,
            global: named.global,
            script: Arc::clone(&request.name),
            ..Preview::default()
        };
        let catalog = self.live.catalog();
        let caller = self.caller_of(&request.settings);
        let extraction = self.extraction(caller.is_some_and(|caller| caller.offers().sampling));
        let mut seen = HashSet::new();
        let mut suggested = 0;
        for mention in &named.tools {
            let (name, line) = (mention.name.as_str(), mention.line);
            if !seen.insert(name) {
                continue;
            }
            let is_missing = self.view().unavailable_server_of(name).is_some();
            let message = if let Some(tool) = catalog.get(name).filter(|_| !is_missing)
                && let Some(decision) = self.decision(name)
            {
                preview
                    .tools
                    .push(PreviewedTool::new(self, tool, &decision, line));
                continue;
            } else if name == HostFunction::Extract.name() {
                if let Some(decision) = &extraction {
                    preview
                        .tools
                        .push(PreviewedTool::new(self, &EXTRACTION, decision, line));
                    continue;
                }
                Some(format!("{name}: {}", NoAnswer::NoModel))
            } else {
                suggested += 1;
                let hint = (suggested <= MAX_NAMES).then(|| self.why_unknown(name, &request.scope));
                let is_call = mention.called && HostFunction::named(name).is_none();
                let unknown = NameProblem::Unknown { near: None };
                let plain = (is_missing || is_call).then(|| unknown.message(name));
                hint.flatten().or(plain)
            };
            let Some(message) = message else { continue };
            let list = if is_missing {
                &mut preview.missing
            } else {
                &mut preview.unknown
            };
            list.push(UnknownTool {
                name: name.to_owned(),
                line,
                message,
            });
        }
        preview.flows = self.preview_flows(&preview.tools);
        preview
    }

    /// Rules and labels over data between these tools.
    fn preview_flows(&self, tools: &[PreviewedTool]) -> Vec<String> {
        let tools = tools.iter().take(MAX_NAMES);
        let sides: Vec<Side> = tools.map(|tool| tool.called.side()).collect();
        let pairs = sides
            .iter()
            .flat_map(|from| sides.iter().map(move |to| (from, to)));
        pairs
            .filter_map(|(from, to)| self.setup.rules.flows.foresee(from, to))
            .take(MAX_FLOWS)
            .collect()
    }
}
