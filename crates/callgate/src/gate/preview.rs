//! What a script would do, said before it runs: which tools it names, and
//! what the rules say of each.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_broker::{Changed, Consultant};
use callgate_catalog::{Catalog, CatalogTool};
use callgate_policy::flow::Side;
use callgate_policy::{
    Because, Decision, Definition, DefinitionHash, Effect, Grant, OtherNames, Verdict,
};
use callgate_script::Prepared;
use serde::Serialize;

use crate::RunRequest;
use crate::gate::Gate;
use crate::host_functions::extract;
use crate::host_functions::lookup::Lookup;
use crate::model_tools::EXTRACTION;
use crate::models::Silent;
use crate::read_script;
use crate::report::{self, RunReport, Status};
use crate::script_calls::unknown_tool_message;
use crate::type_check::TypeCheck;

/// The tools a script names and the decisions they would meet.
///
/// It is read off the text, so it is neither a promise nor a grant: a script
/// may name a tool and never call it, and one that calls `mcp.callTool` with a
/// computed name, or uses the global object, can call tools that are not listed
/// ([`Self::dynamic`]).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// The tools it names, in the order of their first mention.
    pub tools: Vec<PreviewedTool>,
    /// Names of tools whose server is not available.
    pub missing: Vec<UnknownTool>,
    /// Names that look like a tool of a configured server but are none, and those
    /// given to `mcp.callTool` that are none; `mcp.extract`, where there is no model for it.
    pub unknown: Vec<UnknownTool>,
    /// What rules and labels may have to say of data on its way between the tools it
    /// names, each in a sentence. Whether there will be any, the text does not tell.
    pub flows: Vec<String>,
    /// Whether it may call tools that its text does not name.
    pub dynamic: bool,
    /// Whether that is so because it uses the global object as a value, or a
    /// computed name on it.
    pub global: bool,
    /// What came of the type check; `None` where there was to be none, and where
    /// tools are missing.
    pub check: Option<TypeCheck>,
    #[serde(skip)]
    script: Arc<str>,
}

impl Preview {
    /// How a run would end that calls all it names: for want of a server, by a
    /// denial, at a name that is no tool, or well.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status_where(|tool| tool.verdict == Verdict::Deny)
    }

    /// The same where there is nobody to ask: a tool that would be asked about is
    /// denied. One for which the arguments decide whether it is counts as let through.
    #[must_use]
    pub fn unattended_status(&self) -> Status {
        self.status_where(|tool| match tool.verdict {
            Verdict::Allow => false,
            Verdict::Ask => tool.depends_on.is_none(),
            Verdict::Deny => true,
        })
    }

    fn status_where(&self, is_denied: impl FnMut(&PreviewedTool) -> bool) -> Status {
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

    /// What the type check has to say of a script that it does not stop, as a
    /// run would say it.
    #[must_use]
    pub fn warnings(&self) -> String {
        let mut text = String::new();
        if let Some(check) = &self.check {
            // Writing to a string does not fail.
            let _written = report::write_check(&mut text, &self.script, check, None);
        }
        text
    }
}

/// One tool that a script names.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreviewedTool {
    /// The generated name, as the script has it; for `mcp.extract`, what rules and the ledger
    /// know it by.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// What the rules say of it.
    pub verdict: Verdict,
    /// Why they say so.
    pub because: String,
    /// The tool's name for people, in its server's words.
    pub title: Option<String>,
    /// The first sentence or line of what its server says it does.
    pub summary: Option<String>,
    /// The hash of its definition, to which a grant is bound.
    pub definition: String,
    /// How it has changed since it was allowed, if that is why it would be asked about.
    #[serde(skip)]
    pub changed: Option<Changed>,
    #[serde(skip)]
    other_names: Option<Arc<OtherNames>>,
    #[serde(skip)]
    identity: Arc<Definition>,
    /// What the rule does that looks at the arguments, where it is that one's word.
    #[serde(skip)]
    depends_on: Option<Effect>,
}

impl PreviewedTool {
    /// Whether leave would change what the rules say: they would ask, and not only
    /// because one that denies looks at the arguments. No leave lifts that.
    #[must_use]
    pub fn lacks_leave(&self) -> bool {
        self.verdict == Verdict::Ask && self.depends_on != Some(Effect::Deny)
    }

    /// What the script has written: the function, or `mcp.extract`.
    #[must_use]
    pub fn written(&self) -> &str {
        match self.function == EXTRACTION.function {
            true => extract::NAME,
            false => &self.function,
        }
    }

    /// Leave for every call of this tool, as long as it stays what it is now:
    /// for [`RunRequest::grant`] or [`Gate::keep`].
    #[must_use]
    pub fn grant(&self) -> Grant {
        Grant::new(self.function.as_str()).of(Arc::clone(&self.identity))
    }

    fn of_tool(tool: &CatalogTool, summary: Option<&str>, line: u32, foreseen: Foreseen) -> Self {
        let Foreseen { decision, changed } = foreseen;
        let definition = &tool.definition;
        Self {
            function: tool.function.clone(),
            other_names: Some(Arc::clone(&tool.other_names)),
            server: definition.server.clone(),
            tool: definition.name.clone(),
            line,
            verdict: decision.verdict,
            because: decision.to_string(),
            title: definition.title.clone(),
            summary: summary.map(str::to_owned),
            definition: definition.identity.hash().to_string(),
            changed,
            identity: Arc::clone(&definition.identity),
            depends_on: depends_on(&decision),
        }
    }

    fn of_extraction(line: u32, foreseen: Foreseen) -> Self {
        let Foreseen { decision, changed } = foreseen;
        let Consultant {
            function,
            server,
            tool,
            definition,
        } = EXTRACTION.clone();
        Self {
            function,
            other_names: None,
            server,
            tool,
            line,
            verdict: decision.verdict,
            because: match decision.because {
                // That it only reads is what we say of it, and not a server.
                Because::ReadOnlyHint => "allowed: no rule is about it".to_owned(),
                _ => decision.to_string(),
            },
            title: None,
            summary: None,
            definition: definition.hash().to_string(),
            changed,
            identity: definition,
            depends_on: depends_on(&decision),
        }
    }
}

/// What the rules say of a tool, and how it has changed, if that is why.
struct Foreseen {
    decision: Decision,
    changed: Option<Changed>,
}

impl Foreseen {
    fn new(gate: &Gate, decision: Decision, now: &Arc<Definition>) -> Self {
        let definitions = gate.definitions();
        let find = |hash: &DefinitionHash| definitions.as_ref()?.find(hash);
        Self {
            changed: Changed::of(&decision, Some(now), find),
            decision,
        }
    }
}

fn depends_on(decision: &Decision) -> Option<Effect> {
    match &decision.because {
        Because::Depends(rule) => Some(rule.effect),
        _ => None,
    }
}

/// A name in a script that is no tool and was probably meant for one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnknownTool {
    /// The name as the script has it.
    pub name: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// What is the matter, with the nearest name if there is one.
    pub message: String,
}

impl Gate {
    /// What a script would call, by its text, and what this gate's rules and
    /// the type check say of that. Nothing runs.
    ///
    /// The worker that has read the script waits for the run of a clone of the request, as
    /// with [`RunRequest::rejected`]: what was read is what then runs.
    ///
    /// # Errors
    ///
    /// The report with which a run would end before it began: of a text that is
    /// no acceptable script, or whose type check stops it.
    pub async fn preview(&self, request: impl Into<RunRequest>) -> Result<Preview, Box<RunReport>> {
        let request = request.into();
        let limits = request.limits.as_ref().unwrap_or_else(|| self.limits());
        let read = read_script::read(&self.launcher, limits, &request).await?;
        let catalog = self.fresh_catalog().await;
        let mut preview = of(&read.prepared, self, &catalog, &request);
        preview.script = Arc::clone(&request.name);
        // What tools that are not there would have declared, nobody knows.
        if preview.missing.is_empty() {
            preview.check = self.type_check(&request, &read.prepared, &catalog).await?;
        }
        request.read_ahead.keep(read);
        Ok(preview)
    }
}

/// Names that are no tool and are looked up for one that is like them. It goes
/// through the whole catalog each time, and a text can hold many names.
const LOOKED_UP: usize = 100;

/// Ways of data that are told of: there may be one between every two tools.
const FORESEEN_FLOWS: usize = 20;

fn of(prepared: &Prepared, gate: &Gate, catalog: &Catalog, request: &RunRequest) -> Preview {
    let scope = &request.scope;
    let caller = gate.caller_of(request);
    let extraction = gate.extraction(caller.is_some_and(|caller| caller.offers().sampling));
    let mut preview = Preview {
        tools: Vec::new(),
        missing: Vec::new(),
        unknown: Vec::new(),
        flows: Vec::new(),
        dynamic: prepared.named.dynamic || prepared.named.global,
        global: prepared.named.global,
        check: None,
        script: Arc::default(),
    };
    let mut seen = HashSet::new();
    let mut looked_up = 0;
    for mention in &prepared.named.tools {
        let name = mention.name.as_str();
        if !seen.insert(name) {
            continue;
        }
        let missing = gate.unavailable_server_of(name).is_some();
        // What its server listed at an earlier time is no tool that a run has.
        if !missing && let (Some(tool), Some(decision)) = (catalog.get(name), gate.decision(name)) {
            let summary = catalog.summary(name);
            let foreseen = Foreseen::new(gate, decision, &tool.definition.identity);
            let tool = PreviewedTool::of_tool(tool, summary, mention.line, foreseen);
            preview.tools.push(tool);
        } else if name == extract::NAME {
            if let Some(decision) = extraction.clone() {
                let foreseen = Foreseen::new(gate, decision, &EXTRACTION.definition);
                let tool = PreviewedTool::of_extraction(mention.line, foreseen);
                preview.tools.push(tool);
            } else {
                preview.unknown.push(UnknownTool {
                    name: name.to_owned(),
                    line: mention.line,
                    message: format!("{name}: {}", Silent::Nobody.message()),
                });
            }
        } else {
            looked_up += 1;
            let like = (looked_up <= LOOKED_UP).then(|| gate.why_unknown(name, scope));
            let is_ours = || Lookup::named(name).is_some();
            let called = || {
                (missing || mention.called && !is_ours()).then(|| unknown_tool_message(name, None))
            };
            let Some(message) = like.flatten().or_else(called) else {
                continue;
            };
            let list = match missing {
                true => &mut preview.missing,
                false => &mut preview.unknown,
            };
            list.push(UnknownTool {
                name: name.to_owned(),
                line: mention.line,
                message,
            });
        }
    }
    preview.flows = flows(&preview.tools, gate);
    preview
}

/// What may become of data on its way between these tools, the first
/// [`LOOKED_UP`] of them.
fn flows(tools: &[PreviewedTool], gate: &Gate) -> Vec<String> {
    let tools = tools.iter().take(LOOKED_UP);
    let sides: Vec<Side> = tools
        .map(|tool| {
            let side = Side::new(&tool.function, &tool.server, &tool.tool);
            side.or_named(tool.other_names.as_ref())
        })
        .collect();
    let pairs = sides
        .iter()
        .flat_map(|from| sides.iter().map(move |to| (from, to)));
    pairs
        .filter_map(|(from, to)| gate.flow_rules().foresee(from, to))
        .take(FORESEEN_FLOWS)
        .collect()
}
