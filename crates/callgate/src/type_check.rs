//! The type check before a run.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callgate_catalog::Catalog;
use callgate_check::{CheckError, Confinement, Failure, Script, TypeScript, Unavailable, Unknown};
use callgate_sandbox::{JailLayer, JailOptions};
use callgate_script::Checkable;
use serde::Serialize;

use crate::choices::CheckMode;
use crate::position::Position;
use crate::run_request::RunRequest;
use crate::scope::{Advice, Scope};

/// The bounds of the time limit of a check. A check takes some hundredths of a second.
const MAX_TIME: Duration = Duration::from_secs(10);
const MIN_TIME: Duration = Duration::from_millis(500);
/// Endings of the names of JavaScript files.
const JAVASCRIPT: [&str; 4] = ["js", "mjs", "cjs", "jsx"];

/// The result of a script's type check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeCheck {
    /// The outcome.
    pub status: CheckStatus,
    /// The first type errors, at most ten.
    pub errors: Vec<TypeError>,
    /// The number of further type errors.
    pub more: u32,
    /// Why there was no check, for [`CheckStatus::Unchecked`].
    pub reason: Option<String>,
    /// True if this gate reported the same reason before, so that a report's text can omit it.
    #[serde(skip)]
    pub(crate) said_before: bool,
    /// Advice for the author, if TypeScript gave up on this script.
    #[serde(skip)]
    pub(crate) advice: Option<&'static str>,
}

/// The outcome of a type check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CheckStatus {
    /// There are no type errors.
    #[default]
    Passed,
    /// There are type errors.
    Failed,
    /// There was no check: TypeScript is missing, or gave up on the script.
    Unchecked,
}

/// One type error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeError {
    /// The error in one line.
    pub message: String,
    /// TypeScript's number for this kind of error.
    pub code: u32,
    /// The place in the author's text.
    pub position: Option<Position>,
}

impl TypeCheck {
    /// The number of type errors.
    pub fn count(&self) -> usize {
        self.errors.len().saturating_add(self.more as usize)
    }

    /// `1 type error`, `3 type errors`.
    pub(crate) fn counted(&self) -> String {
        match self.count() {
            1 => "1 type error".to_owned(),
            count => format!("{count} type errors"),
        }
    }

    /// True if no script can be checked.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.status == CheckStatus::Unchecked && self.advice.is_none()
    }

    /// True if a run in this mode ends with this check.
    pub(crate) fn stops(&self, mode: CheckMode) -> bool {
        match (self.status, mode) {
            (CheckStatus::Passed, _) | (_, CheckMode::Off | CheckMode::Warn) => false,
            (CheckStatus::Failed, _) | (_, CheckMode::Require) => true,
            // A script must not evade the check by being hard to check.
            (CheckStatus::Unchecked, CheckMode::On) => self.advice.is_some(),
        }
    }
}

/// The type check of a gate.
pub(crate) struct TypeChecker {
    pub(crate) mode: CheckMode,
    /// The only place where TypeScript is searched, if the configuration sets it.
    named: Option<PathBuf>,
    /// The project's folder, in or below a folder with `node_modules`.
    project: Option<PathBuf>,
    confinement: Confinement,
    /// TypeScript, with its version and path, or why it was not found. Searched at the first use.
    checker: OnceLock<Result<(TypeScript, String), String>>,
    said: AtomicBool,
}

impl TypeChecker {
    pub(crate) fn new(
        mode: CheckMode,
        named: Option<PathBuf>,
        project: Option<PathBuf>,
        jail: &JailOptions,
    ) -> Self {
        Self {
            mode,
            named,
            project,
            confinement: confinement(jail),
            checker: OnceLock::new(),
            said: AtomicBool::new(false),
        }
    }

    /// Starts TypeScript, if scripts are checked.
    pub(crate) fn start(&self) {
        if self.mode != CheckMode::Off
            && let Ok((checker, _)) = self.found()
        {
            checker.start();
        }
    }

    /// Checks a script. `why_missing` gives the reason why a name is not a tool.
    pub(crate) async fn check(
        &self,
        request: &RunRequest,
        checkable: &Checkable,
        catalog: &Catalog,
        script_time: Duration,
        why_missing: impl Fn(&str) -> Option<String>,
    ) -> TypeCheck {
        let checker = match self.found() {
            Ok((checker, _)) => checker,
            Err(reason) => return self.unchecked(reason.clone(), None),
        };
        let script = script(request, checkable, catalog, script_time);
        let checked = match checker.check(script).await {
            Ok(checked) => checked,
            Err(error) => return self.unchecked(error.to_string(), advice(&error)),
        };
        let errors = checked.diagnostics.into_iter().map(|found| {
            let better = found.unknown.as_ref().and_then(|unknown| {
                let advised = || name_message(&request.scope, catalog, unknown, &found.message);
                why_missing(&unknown.name).or_else(advised)
            });
            TypeError {
                message: better.unwrap_or(found.message),
                code: found.code,
                position: Position::find(&request.source, found.line, found.column),
            }
        });
        let errors: Vec<TypeError> = errors.collect();
        TypeCheck {
            status: if errors.is_empty() {
                CheckStatus::Passed
            } else {
                CheckStatus::Failed
            },
            errors,
            more: checked.more,
            ..TypeCheck::default()
        }
    }

    pub(crate) async fn shut_down(&self) {
        if let Some(Ok((checker, _))) = self.checker.get() {
            checker.shut_down().await;
        }
    }

    fn unchecked(&self, reason: String, advice: Option<&'static str>) -> TypeCheck {
        tracing::info!(reason, "a script was not type-checked");
        TypeCheck {
            status: CheckStatus::Unchecked,
            reason: Some(reason),
            said_before: self.said.swap(true, Ordering::Relaxed),
            advice,
            ..TypeCheck::default()
        }
    }

    /// The program and its version, or why it was not found.
    pub(crate) fn program(&self) -> Result<String, String> {
        let (_, program) = self.found().map_err(String::clone)?;
        Ok(program.clone())
    }

    fn found(&self) -> Result<&(TypeScript, String), &String> {
        let found = self.checker.get_or_init(|| {
            let program = std::env::current_exe().ok();
            let (named, project) = (self.named.as_deref(), self.project.as_deref());
            let executable = callgate_check::find(named, program.as_deref(), project)
                .map_err(|error| error.to_string())?;
            let (path, version) = (executable.path.display(), &executable.version);
            tracing::info!(%path, version, "found TypeScript");
            let program = format!("TypeScript {version} ({path})");
            Ok((TypeScript::new(&executable, self.confinement), program))
        });
        found.as_ref()
    }
}

/// The script for TypeScript, with the declarations of the tools in scope that it names.
fn script(
    request: &RunRequest,
    checkable: &Checkable,
    catalog: &Catalog,
    script_time: Duration,
) -> Script {
    let ending = request.name.rsplit_once('.').map(|(_, ending)| ending);
    let is_javascript =
        checkable.is_javascript || ending.is_some_and(|it| JAVASCRIPT.contains(&it));
    let is_in_scope = |function: &str| !request.scope.excludes(catalog, function);
    let functions = catalog.tools().iter().map(|tool| tool.function.as_str());
    let untyped = functions.filter(|function| is_in_scope(function));
    let untyped = untyped.map(|function| format!("declare const {function}: any;\n"));
    let names = callgate_check::words(&checkable.text);
    Script {
        text: checkable.text.clone(),
        line_offset: checkable.line_offset,
        is_javascript,
        untyped: untyped.collect::<String>().into(),
        declarations: catalog.declarations_for(names.as_ref(), is_in_scope).into(),
        time: script_time.clamp(MIN_TIME, MAX_TIME),
    }
}

/// A message about an unknown name, if it is better than TypeScript's own message.
fn name_message(
    scope: &Scope,
    catalog: &Catalog,
    unknown: &Unknown,
    message: &str,
) -> Option<String> {
    let Unknown {
        name, path, tool, ..
    } = unknown;
    let unknown = format!("cannot find name `{path}`");
    Some(match scope.advice(catalog, name, tool)? {
        Advice::Near(_) if message.contains("did you mean") => return None,
        Advice::Near(advice) | Advice::Meant(advice) => format!("{unknown}; {advice}"),
        Advice::Said(advice) => format!("{unknown}: {advice}"),
    })
}

/// The kernel layers of the TypeScript process: those of the workers.
fn confinement(jail: &JailOptions) -> Confinement {
    let layer = |layer| {
        if jail.required.contains(&layer) {
            callgate_check::LayerUse::Required
        } else if jail.layers.contains(&layer) {
            callgate_check::LayerUse::Optional
        } else {
            callgate_check::LayerUse::Off
        }
    };
    Confinement {
        landlock: layer(JailLayer::Landlock),
        seccomp: layer(JailLayer::Seccomp),
    }
}

/// Advice for the author of a script that TypeScript gave up on.
fn advice(error: &CheckError) -> Option<&'static str> {
    match error {
        // Scripts can keep the machine busy, too.
        CheckError::GaveUp(Failure::Busy(_))
        | CheckError::Unavailable(Unavailable::Broken(Failure::TimedOut(_))) => {
            Some("run the script again later")
        }
        CheckError::GaveUp(_) => Some(
            "simplify the script's types: fewer generics and recursive types, smaller unions, \
             less nesting",
        ),
        _ => None,
    }
}
