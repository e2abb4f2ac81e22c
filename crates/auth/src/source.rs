//! Values that are looked up when they are needed: the output of a command, or an entry of
//! the system's keyring.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use tokio::io::AsyncReadExt as _;

use crate::keyring;
use crate::redact::Redact;

/// The longest value, in bytes. A longer output of a command is refused.
const MAX_VALUE: u64 = 64 << 10;
/// The default time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A value to look up, and the text to put before it.
///
/// The `Debug` form tells where the value comes from, and shows no value, prefix or argument.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// The text before the value, such as `"Bearer "`. Default: none.
    pub prefix: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// The origin of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The value itself.
    Text(String),
    /// The output of a program, without the line end at its end.
    Command {
        /// The program and its arguments. No shell is involved.
        command: Vec<String>,
        /// Its working directory; the host's, if there is none.
        cwd: Option<PathBuf>,
        /// Its time limit. Default: 30 s. Over it the program and its process group are killed.
        timeout: Duration,
    },
    /// The password of an entry in the system's keyring.
    Keyring {
        /// The entry's service.
        service: String,
        /// The entry's account, which some keyrings call the user name.
        account: String,
    },
}

impl Source {
    /// A known value.
    pub fn text(value: impl Into<String>) -> Self {
        Self::new(Origin::Text(value.into()))
    }

    /// The output of a program.
    pub fn command(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::new(Origin::Command {
            command: command.into_iter().map(Into::into).collect(),
            cwd: None,
            timeout: COMMAND_TIMEOUT,
        })
    }

    /// The password of a keyring's entry.
    pub fn keyring(service: impl Into<String>, account: impl Into<String>) -> Self {
        Self::new(Origin::Keyring {
            service: service.into(),
            account: account.into(),
        })
    }

    /// A value of this origin, without a prefix.
    pub fn new(origin: Origin) -> Self {
        Self {
            prefix: String::new(),
            origin,
        }
    }

    /// The whole value, if it need not be looked up.
    pub fn known(&self) -> Option<String> {
        match &self.origin {
            Origin::Text(value) => Some(format!("{}{value}", self.prefix)),
            _ => None,
        }
    }

    /// The same value, with this folder as the one that its program runs in, and that a relative
    /// path to the program starts at.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        if let Origin::Command { command, cwd, .. } = &mut self.origin {
            *cwd = Some(folder.to_owned());
            if let Some(program) = command.first_mut().filter(|it| it.contains('/')) {
                *program = folder.join(&*program).to_string_lossy().into_owned();
            }
        }
        self
    }

    /// Looks the value up, for a host that needs it itself.
    /// The error: why there is none, without a value.
    pub async fn look_up(&self) -> Result<String, String> {
        self.resolve("", &Redact::default()).await
    }

    /// Looks the value up. `redact` then hides it in messages, as `name`.
    /// The error: why there is none, without a value.
    pub async fn resolve(&self, name: &str, redact: &Redact) -> Result<String, String> {
        let value = match &self.origin {
            Origin::Text(value) => value.clone(),
            Origin::Command {
                command,
                cwd,
                timeout,
            } => run(command, cwd.as_ref(), *timeout).await?,
            Origin::Keyring { service, account } => {
                let read = keyring::read(service, account).await;
                let missing = || {
                    format!(
                        "the keyring has no entry for service {service:?} and account {account:?}"
                    )
                };
                read.map_err(|error| error.to_string())?
                    .ok_or_else(missing)?
            }
        };
        let unfit = |what| format!("{:?} gave {what}", self.origin);
        if value.is_empty() {
            return Err(unfit("nothing"));
        }
        if value.contains('\0') {
            return Err(unfit("a value with a NUL character"));
        }
        redact.learn(name, &value).await;
        Ok(format!("{}{value}", self.prefix))
    }
}

impl<'de> Deserialize<'de> for Source {
    /// Reads a text, or an object with `command` or `keyring`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As a string, in which a configuration has variables.
        deserializer.deserialize_string(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = Source;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with \"command\" or \"keyring\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Source, E> {
        Ok(Source::text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Source, A::Error> {
        let look_up = LookUp::deserialize(MapAccessDeserializer::new(map))?;
        let timeout = look_up.timeout;
        let origin = match (look_up.command, look_up.keyring) {
            (Some(command), None) => Origin::Command {
                command,
                cwd: None,
                timeout: timeout.unwrap_or(COMMAND_TIMEOUT),
            },
            (None, Some(Keyring { service, account })) if timeout.is_none() => {
                Origin::Keyring { service, account }
            }
            (None, Some(_)) => {
                let wrong = "has \"timeout\", which does not go with \"keyring\"; remove it";
                return Err(A::Error::custom(wrong));
            }
            (Some(_), Some(_)) => {
                let wrong = "has both \"command\" and \"keyring\"; keep one";
                return Err(A::Error::custom(wrong));
            }
            (None, None) => {
                let wrong = "has neither \"command\" nor \"keyring\"; write one";
                return Err(A::Error::custom(wrong));
            }
        };
        Ok(Source {
            prefix: look_up.prefix,
            origin,
        })
    }
}

/// The object that says where to look a value up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookUp {
    #[serde(default, deserialize_with = "command")]
    command: Option<Vec<String>>,
    timeout: Option<Duration>,
    keyring: Option<Keyring>,
    #[serde(default)]
    prefix: String,
}

/// An entry of the system's keyring.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyring {
    service: String,
    account: String,
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let command = Vec::<String>::deserialize(deserializer)?;
    if command.first().is_none_or(|it| it.trim().is_empty()) {
        let wrong = "is empty; write the program and its arguments";
        return Err(D::Error::custom(wrong));
    }
    Ok(Some(command))
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("the configuration"),
            Self::Command { command, .. } => {
                write!(
                    f,
                    "command {:?}",
                    command.first().map_or("", String::as_str)
                )
            }
            Self::Keyring { service, account } => {
                write!(
                    f,
                    "the keyring's entry for service {service:?} and account {account:?}"
                )
            }
        }
    }
}

/// Runs a program and returns its output. It has the host's whole environment, as a password
/// manager needs its session. Its standard error is discarded, as a value may stand there.
async fn run(command: &[String], cwd: Option<&PathBuf>, limit: Duration) -> Result<String, String> {
    let program = command.first().map_or("", String::as_str);
    let error = |what: &str| format!("command {program:?} {what}");
    let failed = |reason: std::io::Error| match reason.kind() {
        std::io::ErrorKind::NotFound => error("was not found; install it, or give its full path"),
        _ => error(&format!("could not be run: {reason}")),
    };
    let arguments = command.get(1..).unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let child = callgate_process::spawn(command, None).await;
    let mut child = child.map_err(failed)?;
    let Some(stdout) = child.stdout.take() else {
        return Err(failed(std::io::Error::other("it has no output")));
    };
    let ended = async {
        let mut printed = Vec::new();
        let mut stdout = stdout.take(MAX_VALUE + 1);
        stdout.read_to_end(&mut printed).await.map_err(failed)?;
        // A program that printed too much may go on for ever.
        if printed.len() as u64 > MAX_VALUE {
            return Err(error("gave more than 64 KiB"));
        }
        Ok((printed, child.wait().await.map_err(failed)?))
    };
    let Ok(ended) = tokio::time::timeout(limit, ended).await else {
        return Err(error(&format!(
            "did not end within {} ms; raise its \"timeout\" if it waits for a person",
            limit.as_millis()
        )));
    };
    let (printed, status) = ended?;
    if !status.success() {
        let status = callgate_process::exit_text(status);
        return Err(error(&format!(
            "ended with {status}; run it by hand to see why"
        )));
    }
    let mut printed =
        String::from_utf8(printed).map_err(|_| error("gave a value that is not UTF-8"))?;
    if printed.ends_with('\n') {
        printed.pop();
        if printed.ends_with('\r') {
            printed.pop();
        }
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn outcome(command: &[&str], limit: Duration) -> String {
        let mut source = Source::command(command.iter().copied());
        if let Origin::Command { timeout, .. } = &mut source.origin {
            *timeout = limit;
        }
        match source.resolve("A", &Redact::default()).await {
            Ok(value) => format!("command \"sh\" gave {value:?}"),
            Err(error) => error,
        }
    }

    #[tokio::test]
    async fn command_output_becomes_the_secret() {
        for (script, expected) in [
            ("echo hunter2", "gave \"hunter2\""),
            ("printf 'a\\r\\n'", "gave \"a\""),
            ("printf ' a \\n\\n'", "gave \" a \\n\""),
            ("read x; echo \"${x:-none}\"", "gave \"none\""),
            (
                "echo hunter2; echo hunter2 >&2; exit 3",
                "ended with exit code 3; run it by hand to see why",
            ),
            (
                "kill -9 $$",
                "ended with signal 9; run it by hand to see why",
            ),
            ("true", "gave nothing"),
            ("echo", "gave nothing"),
            ("printf 'a\\000b'", "gave a value with a NUL character"),
            ("printf '\\377'", "gave a value that is not UTF-8"),
            // It never ends by itself.
            ("yes hunter2", "gave more than 64 KiB"),
        ] {
            let given = outcome(&["sh", "-c", script], COMMAND_TIMEOUT).await;
            assert_eq!(given, format!("command \"sh\" {expected}"), "{script}");
        }
        for command in [&["/nonexistent/op"][..], &[]] {
            let given = outcome(command, COMMAND_TIMEOUT).await;
            let name = command.first().unwrap_or(&"");
            let advice = "was not found; install it, or give its full path";
            assert_eq!(given, format!("command {name:?} {advice}"));
        }
    }

    #[tokio::test]
    async fn slow_command_is_killed_with_its_children() {
        let folder = tempfile::TempDir::new().unwrap();
        let pids = folder.path().join("pids");
        let script = format!("tail -f /dev/null & echo $! > {}; wait", pids.display());
        let command = ["sh", "-c", script.as_str()];
        // Long enough to have started it, however busy the machine is.
        let mut limit = Duration::from_millis(50);
        let started = loop {
            let given = outcome(&command, limit).await;
            let expected = format!("command \"sh\" did not end within {} ms", limit.as_millis());
            assert!(given.starts_with(&expected), "{given}");
            match std::fs::read_to_string(&pids) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => limit *= 2,
            }
        };
        let running = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", started.trim()));
            // A process that was not waited for yet is a zombie.
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        while running() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn secrets_are_redacted_without_their_prefix() {
        let secrets = Redact::default();
        let mut source = Source::command(["echo", "hunter2-hunter2"]);
        source.prefix = "Bearer ".to_owned();
        let value = source.resolve("Authorization", &secrets).await;
        assert_eq!(value, Ok("Bearer hunter2-hunter2".to_owned()));
        let said = "Bearer hunter2-hunter2, hunter2-hunter2";
        assert_eq!(
            secrets.redact(said),
            "Bearer [Authorization], [Authorization]"
        );
    }
}
