//! Values from the configuration, the output of a command, or the system's keyring.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use callgate_text::shown_duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use tokio::io::AsyncReadExt as _;

use crate::keyring;
use crate::redact::Redact;

/// Bytes of a value. A longer output of a command is refused.
const MAX_VALUE: u64 = 64 << 10;
/// The default time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A value to look up, with an optional prefix.
///
/// `Debug` shows where the value comes from, and no value, prefix or argument.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// The text before the value, such as `"Bearer "`. Default: empty.
    pub prefix: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// Why a source has no value: a clause without the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

/// The origin of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The value itself.
    Text(String),
    /// The output of a program, without the final line end.
    Command {
        /// The program and its arguments. No shell is involved.
        command: Vec<String>,
        /// The working directory. Default: the host's.
        cwd: Option<PathBuf>,
        /// The time limit, after which the program and its process group are killed. Default: 30 s.
        timeout: Duration,
    },
    /// The password of an entry in the system's keyring.
    Keyring {
        /// The service of the entry.
        service: String,
        /// The account of the entry, which some keyrings call the user name.
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

    /// The whole value with its prefix, if it is in the configuration.
    pub fn known(&self) -> Option<String> {
        match &self.origin {
            Origin::Text(value) => Some(format!("{}{value}", self.prefix)),
            _ => None,
        }
    }

    /// Sets the working directory of the program, which is also the base of a relative path to the
    /// program.
    pub fn start_in(&mut self, folder: &Path) {
        if let Origin::Command { command, cwd, .. } = &mut self.origin {
            *cwd = Some(folder.to_owned());
            if let Some(program) = command.first_mut().filter(|it| it.contains('/')) {
                *program = folder.join(&*program).to_string_lossy().into_owned();
            }
        }
    }

    /// Looks up the value, for a host that needs it itself. The error: [`SourceError`] without a
    /// value.
    pub async fn look_up(&self) -> Result<String, SourceError> {
        self.resolve("", &Redact::default()).await
    }

    /// Looks up the value. `redact` then hides it in messages, as `name`. The error:
    /// [`SourceError`] without a value.
    pub async fn resolve(&self, name: &str, redact: &Redact) -> Result<String, SourceError> {
        let value = match &self.origin {
            Origin::Text(value) => value.clone(),
            Origin::Command {
                command,
                cwd,
                timeout,
            } => run(command, cwd.as_ref(), *timeout).await?,
            Origin::Keyring { service, account } => {
                let read = keyring::read(service, account).await;
                let read = read.map_err(|error| SourceError(error.to_string()))?;
                read.ok_or_else(|| SourceError(format!("{:?} does not exist", self.origin)))?
            }
        };
        let unfit = |fault| Err(SourceError(format!("{:?} gave {fault}", self.origin)));
        if value.is_empty() {
            return unfit("nothing");
        }
        if value.contains('\0') {
            return unfit("a value with a NUL character");
        }
        redact.learn(name, &value).await;
        Ok(format!("{}{value}", self.prefix))
    }
}

/// True if the system has a keyring that answers.
pub async fn has_keyring() -> bool {
    // Without such an entry, a locked keyring does not ask for its password.
    keyring::read("callgate", "no entry").await.is_ok()
}

/// Stores a value in an entry of the system's keyring, where [`Source::keyring`] finds it. The
/// error: [`SourceError`] without the value.
pub async fn store_in_keyring(
    service: &str,
    account: &str,
    value: &str,
) -> Result<(), SourceError> {
    let written = keyring::write(service, account, value.to_owned()).await;
    written.map_err(|error| SourceError(error.to_string()))
}

impl<'de> Deserialize<'de> for Source {
    /// Reads a text, or an object with `command` or `keyring`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The reader of a configuration replaces variables only in strings.
        deserializer.deserialize_string(SourceVisitor)
    }
}

impl JsonSchema for Source {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let look_up = generator.subschema_for::<LookUp>();
        json_schema!({
            "description": "A text in which `${NAME}` is replaced, or where to look the value up.",
            "anyOf": [{ "type": "string" }, look_up],
        })
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
        let fault = |fault: &str| Err(A::Error::custom(format!("has {fault}")));
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
                return fault("\"timeout\", which does not go with \"keyring\"; remove it");
            }
            (Some(_), Some(_)) => return fault("both \"command\" and \"keyring\"; keep one"),
            (None, None) => return fault("neither \"command\" nor \"keyring\"; write one"),
        };
        Ok(Source {
            prefix: look_up.prefix,
            origin,
        })
    }
}

/// The object that says where to look a value up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LookUp {
    /// A program and its arguments; its output is the value.
    #[serde(default, deserialize_with = "command")]
    command: Option<Vec<String>>,
    /// The time limit of `command`. Default: 30s.
    timeout: Option<Duration>,
    /// An entry of the system's keyring.
    keyring: Option<Keyring>,
    /// The text before the value, such as `Bearer `. Default: none.
    #[serde(default)]
    prefix: String,
}

/// An entry of the system's keyring.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Keyring {
    /// The entry's service.
    service: String,
    /// The entry's account, which some keyrings call the user name.
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

/// Runs a program and returns its output. It has the host's whole environment, because a password
/// manager needs its session. Its stderr is discarded, because it may contain the value.
async fn run(
    command: &[String],
    cwd: Option<&PathBuf>,
    limit: Duration,
) -> Result<String, SourceError> {
    let program = command.first().map_or("", String::as_str);
    let error = |problem: &str| SourceError(format!("command {program:?} {problem}"));
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
        // A program that prints too much may never end.
        if printed.len() as u64 > MAX_VALUE {
            return Err(error("gave more than 64 KiB"));
        }
        Ok((printed, child.wait().await.map_err(failed)?))
    };
    let Ok(ended) = tokio::time::timeout(limit, ended).await else {
        return Err(error(&format!(
            "did not end within {}; raise its \"timeout\" if it waits for a person",
            shown_duration(limit)
        )));
    };
    let (printed, status) = ended?;
    if !status.success() {
        let status = callgate_process::exit_text(status);
        return Err(error(&format!(
            "ended with {status}; run it by hand to see why"
        )));
    }
    let printed = String::from_utf8(printed);
    let printed = printed.map_err(|_| error("gave a value that is not UTF-8"))?;
    let line = printed.strip_suffix('\n');
    let line = line.map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(line.unwrap_or(&printed).to_owned())
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
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn stored_value_is_found_by_its_source() {
        assert!(has_keyring().await);
        for (account, value) in [("team/WIKI_PIN", "0451"), ("team/KEY", "$x \"y\"\n")] {
            let stored = store_in_keyring("stored", account, value).await;
            assert_eq!(stored, Ok(()));
            let found = Source::keyring("stored", account).look_up().await;
            assert_eq!(found.as_deref(), Ok(value));
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
            // This command never ends.
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
            let waited = shown_duration(limit);
            let expected = format!("command \"sh\" did not end within {waited}");
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
