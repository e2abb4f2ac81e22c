//! The type check before a run: whether there is one, what came of it, and
//! what that means for the run.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate_catalog::Catalog;
use callgate_check::{CheckError, Checker, Confinement, Failure, Script, TypeScript, Unavailable};
use callgate_sandbox::{JailLayer, JailOptions};
use callgate_script::Checkable;
use serde::Serialize;

use crate::report::{self, Position};
use crate::scope::Scope;

/// The most time of a check, however long the script may run. It takes
/// some hundredths of a second.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The least time of a check, however short the script may run.
const MIN_TIME: Duration = Duration::from_millis(500);

/// Advice for a check that takes too long.
const SIMPLIFY: &str = "simplify the script's types: fewer generics and recursive types, smaller \
                        unions, less nesting";

/// What a type check decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckMode {
    /// Scripts are not checked.
    Off,
    /// Type errors are told, and the script runs all the same.
    Warn,
    /// A script with type errors does not run, and neither does one that
    /// TypeScript gives up. Where no script can be checked, such as without
    /// TypeScript, it runs, and the report says that it was not checked.
    #[default]
    On,
    /// A script runs only if it was checked and has no type errors.
    Require,
}

impl CheckMode {
    /// Every mode, by the name it has in configurations and on command lines.
    pub const ALL: [(&str, Self); 4] = [
        ("off", Self::Off),
        ("warn", Self::Warn),
        ("on", Self::On),
        ("require", Self::Require),
    ];
}

/// A text that names no [`CheckMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode of the type check; write \"off\", \"warn\", \"on\" or \"require\"")]
pub struct UnknownCheckMode(String);

impl FromStr for CheckMode {
    type Err = UnknownCheckMode;

    fn from_str(text: &str) -> Result<Self, UnknownCheckMode> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, mode)| *mode)
            .ok_or_else(|| UnknownCheckMode(text.chars().take(80).collect()))
    }
}

/// What came of the type check of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeCheck {
    /// How it ended.
    pub status: CheckStatus,
    /// The first type errors, at most ten.
    pub errors: Vec<TypeError>,
    /// How many more there are.
    pub more: u32,
    /// Why there was no check, for [`CheckStatus::Unchecked`].
    pub reason: Option<String>,
    /// Whether this gate has given the same reason before, so that the text of
    /// a report need not do so again.
    #[serde(skip)]
    pub(crate) said_before: bool,
    /// Advice for the author, if TypeScript was there and gave up this script.
    #[serde(skip)]
    pub(crate) advice: Option<&'static str>,
}

/// How a type check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CheckStatus {
    /// There are no type errors.
    Passed,
    /// There are type errors.
    Failed,
    /// There is no answer: no TypeScript, or it gave up the script.
    Unchecked,
}

/// One type error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeError {
    /// What is wrong, in one line.
    pub message: String,
    /// TypeScript's number for this kind of error.
    pub code: u32,
    /// Where in the author's text.
    pub position: Option<Position>,
}

impl TypeCheck {
    /// How many type errors there are.
    #[must_use]
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

    /// Whether a run ends with this check in a mode.
    pub(crate) fn stops(&self, mode: CheckMode) -> bool {
        match (self.status, mode) {
            (CheckStatus::Passed, _) | (_, CheckMode::Off | CheckMode::Warn) => false,
            (CheckStatus::Failed, _) | (_, CheckMode::Require) => true,
            // A script must not get around the check by being hard to check.
            (CheckStatus::Unchecked, CheckMode::On) => self.advice.is_some(),
        }
    }
}

/// Where TypeScript is looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The one that is to be used, and no other.
    pub(crate) named: Option<PathBuf>,
    /// The folder of the project, with or below a `node_modules`.
    pub(crate) project: Option<PathBuf>,
}

/// The type check of a gate.
pub(crate) struct Check {
    pub(crate) mode: CheckMode,
    places: Places,
    confinement: Confinement,
    /// Looked for when it is first wanted.
    checker: OnceLock<Result<Arc<dyn Checker>, String>>,
    said: AtomicBool,
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

impl Check {
    pub(crate) fn new(mode: CheckMode, places: Places, jail: &JailOptions) -> Self {
        Self {
            mode,
            places,
            confinement: confinement(jail),
            checker: OnceLock::new(),
            said: AtomicBool::new(false),
        }
    }

    /// Makes ready for a check, if there will be one.
    pub(crate) fn start(&self) {
        if self.mode != CheckMode::Off
            && let Ok(checker) = self.checker()
        {
            checker.start();
        }
    }

    /// Looks for type errors in a script that may run for `script_time`. `disabled`
    /// says of a name that it would be that of a tool whose server is not in use.
    pub(crate) async fn run(
        &self,
        source: &str,
        checkable: &Checkable,
        catalog: &Catalog,
        scope: &Scope,
        script_time: Duration,
        disabled: impl Fn(&str) -> Option<String>,
    ) -> TypeCheck {
        let checker = match self.checker() {
            Ok(checker) => checker,
            Err(reason) => return self.unchecked(reason.clone()),
        };
        let script = Script {
            text: checkable.text.clone(),
            line_offset: checkable.line_offset,
            declarations: catalog
                .declarations_for(
                    callgate_check::words(&checkable.text).as_ref(),
                    // What the run may not use is unknown to the check, which then
                    // says why.
                    |function| !scope.excludes(catalog, function),
                )
                .into(),
            time: script_time.clamp(MIN_TIME, MAX_TIME),
        };
        let checked = match checker.check(script).await {
            Ok(checked) => checked,
            Err(error) => {
                let advice = match error {
                    // Scripts can keep the machine busy, too.
                    CheckError::GaveUp(Failure::Busy(_))
                    | CheckError::Unavailable(Unavailable::Broken(Failure::TimedOut(_))) => {
                        Some("run the script again later")
                    }
                    CheckError::GaveUp(_) => Some(SIMPLIFY),
                    _ => None,
                };
                return TypeCheck {
                    advice,
                    ..self.unchecked(error.to_string())
                };
            }
        };
        let errors: Vec<TypeError> = checked
            .diagnostics
            .into_iter()
            .map(|found| TypeError {
                message: (found.unknown_name.as_deref())
                    .and_then(|name| {
                        disabled(name)
                            .or_else(|| excluded(name, catalog, scope))
                            .or_else(|| {
                                suggested(name, catalog, scope)
                                    .filter(|_| !found.message.contains("did you mean"))
                            })
                    })
                    .unwrap_or(found.message),
                code: found.code,
                position: report::position(source, found.line, found.column),
            })
            .collect();
        TypeCheck {
            status: match errors.is_empty() {
                true => CheckStatus::Passed,
                false => CheckStatus::Failed,
            },
            errors,
            more: checked.more,
            reason: None,
            said_before: false,
            advice: None,
        }
    }

    /// Ends what runs for the check.
    pub(crate) async fn shut_down(&self) {
        if let Some(Ok(checker)) = self.checker.get() {
            checker.shut_down().await;
        }
    }

    fn unchecked(&self, reason: String) -> TypeCheck {
        tracing::info!(reason, "a script was not type-checked");
        TypeCheck {
            status: CheckStatus::Unchecked,
            errors: Vec::new(),
            more: 0,
            reason: Some(reason),
            said_before: self.said.swap(true, Ordering::Relaxed),
            advice: None,
        }
    }

    fn checker(&self) -> Result<&Arc<dyn Checker>, &String> {
        let found = self.checker.get_or_init(|| {
            let program = std::env::current_exe().ok();
            let Places { named, project } = &self.places;
            let found = callgate_check::find(
                named.as_deref(),
                program.as_deref(),
                project.as_deref(),
            );
            match found {
                Ok(executable) => {
                    tracing::info!(path = %executable.path.display(), version = executable.version, "found TypeScript");
                    Ok(Arc::new(TypeScript::new(&executable, self.confinement)))
                }
                Err(error) => Err(error.to_string()),
            }
        });
        found.as_ref()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("mode", &self.mode)
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

/// The message for the name of a tool that the run may not use.
fn excluded(name: &str, catalog: &Catalog, scope: &Scope) -> Option<String> {
    let tool = catalog
        .get(name)
        .filter(|_| scope.excludes(catalog, name))?;
    Some(scope.why_not(name, &tool.definition.server))
}

/// The message for a name that nothing has, where a tool's is like it:
/// TypeScript compares spellings, and does not know that a server's name is
/// left out easily.
fn suggested(name: &str, catalog: &Catalog, scope: &Scope) -> Option<String> {
    let near = scope.nearest(catalog, name)?;
    Some(format!("cannot find name `{name}`; did you mean `{near}`?"))
}
