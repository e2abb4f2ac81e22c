//! Skills: folders of instructions for a model, whose front matter names the servers they need.
//!
//! The format is that of Agent Skills: a file `SKILL.md` that starts with YAML between two lines of
//! `---`. The members `name`, `description` and `servers` are read, the last one also under
//! `metadata`. Everything else is ignored; in particular, `allowed-tools` grants nothing.

use std::path::{Path, PathBuf};

use callgate_text::harmless;
use serde::Deserialize;

use crate::error::{GateError, GateErrorKind};

/// The file of a skill, in its folder.
const FILE: &str = "SKILL.md";
/// The limit of the file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The format's limits of a name and of a description, in characters.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;

/// A skill that a gate was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name: lower-case letters, digits and hyphens, at most 64.
    pub name: String,
    /// Its purpose and when it is of use, in at most 1,024 characters.
    pub description: String,
    /// Its `SKILL.md`, as an absolute path.
    pub path: PathBuf,
    /// The servers that it needs, by their names in the configuration; `None` if it names no
    /// servers.
    pub servers: Option<Vec<String>>,
    /// Its instructions, in Markdown: the text after the front matter.
    pub body: String,
}

#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
    #[serde(default)]
    servers: Option<ServerList>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    servers: Option<ServerList>,
}

/// A list of names, or a text with spaces or commas between names: under `metadata`, the format has
/// only texts.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "servers must be a list of names, or one text of them"
)]
enum ServerList {
    List(Vec<String>),
    Text(String),
}

impl Skill {
    /// Reads the skill in a folder, or the skill file at this path.
    ///
    /// # Errors
    ///
    /// [`GateError`], which names the file and says what is wrong with it.
    pub fn load(folder: &Path) -> Result<Self, GateError> {
        let path = if folder.ends_with(FILE) {
            folder.to_owned()
        } else {
            folder.join(FILE)
        };
        let failed = |reason: String| {
            let message = format!("skill {}: {reason}", path.display());
            GateError::new(GateErrorKind::Skill, message)
        };
        let absolute = std::path::absolute(&path).map_err(|error| failed(error.to_string()))?;
        let bytes = callgate_files::read(&absolute, MAX_FILE);
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        let (front, body) = parts(&text).map_err(&failed)?;
        Self::of(front, body, absolute).map_err(failed)
    }

    fn of(front: FrontMatter, body: &str, path: PathBuf) -> Result<Self, String> {
        let name = front.name;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            return Err(format!(
                "its name must be 1 to {MAX_NAME} lower-case letters, digits and hyphens"
            ));
        }
        let description = front.description.trim();
        if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
            return Err(format!(
                "its description must have 1 to {MAX_DESCRIPTION} characters"
            ));
        }
        let servers = front
            .servers
            .or_else(|| front.metadata?.servers)
            .map(ServerList::names);
        Ok(Self {
            name,
            description: harmless(description),
            path,
            servers,
            body: body.trim().to_owned(),
        })
    }
}

impl ServerList {
    fn names(self) -> Vec<String> {
        match self {
            Self::List(names) => names,
            Self::Text(text) => {
                let names = text.split(|c: char| c == ',' || c.is_whitespace());
                let names = names.filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
        }
    }
}

/// The front matter, and the text after it.
fn parts(text: &str) -> Result<(FrontMatter, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut end = 0;
    let mut rules = text.split_inclusive('\n').filter_map(|line| {
        end += line.len();
        (line.trim_end() == "---").then_some((end - line.len(), end))
    });
    if let (Some((0, begin)), Some((end, body))) = (rules.next(), rules.next()) {
        let yaml = text.get(begin..end).unwrap_or_default();
        return Ok((parse(yaml)?, text.get(body..).unwrap_or_default()));
    }
    Err(
        "it does not start with front matter: YAML between two lines of ---, with name and \
         description"
            .to_owned(),
    )
}

fn parse(yaml: &str) -> Result<FrontMatter, String> {
    let mut options = serde_saphyr::Options::default();
    if let Some(budget) = &mut options.budget {
        budget.max_aliases = 0;
        budget.max_events = 10_000;
        budget.max_nodes = 10_000;
        budget.max_depth = 16;
    }
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let said = error.to_string();
        // Further lines may quote the file.
        let first = said.lines().next().unwrap_or_default();
        let first = first.trim_start_matches("error: ");
        format!("its front matter is invalid: {}", harmless(first))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(FILE), text).expect("a file");
        let said = match Skill::load(folder.path()) {
            Ok(skill) => format!(
                "{} {:?} {:?} {:?}",
                skill.name, skill.description, skill.servers, skill.body
            ),
            Err(error) => error.to_string(),
        };
        let said = said.replace(&folder.path().display().to_string(), "DIR");
        expected.assert_eq(&said);
    }

    #[test]
    fn servers_are_read_from_front_matter_or_metadata() {
        check(
            "---\nname: mail\ndescription: Sort mail.\nservers: [imap, crm]\n---\n\n# Mail\n\n---\nSort.\n",
            expect![[r##"mail "Sort mail." Some(["imap", "crm"]) "# Mail\n\n---\nSort.""##]],
        );
        check(
            "---\r\nname: mail\r\ndescription: >\r\n  Sort\r\n  mail.\r\nallowed-tools: Bash\r\nmetadata:\r\n  author: me\r\n  servers: imap, crm\r\n---\r\n",
            expect![[r#"mail "Sort mail." Some(["imap", "crm"]) """#]],
        );
        check(
            "---\nname: mail\ndescription: Sort mail.\nlicense: MIT\n---\n",
            expect![[r#"mail "Sort mail." None """#]],
        );
    }

    #[test]
    fn skill_file_in_other_encoding_is_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = b"---\nname: mail\ndescription: Mail\n---\nCaf\xe9.\n";
        std::fs::write(folder.path().join(FILE), text).expect("a file");
        let skill = Skill::load(folder.path()).expect("a skill");
        assert_eq!(skill.name, "mail");
    }

    #[test]
    fn invalid_skill_is_refused_with_reason() {
        let long = "x".repeat(1_025);
        let whole = format!("---\n---\n{}", "y".repeat(1 << 20));
        let described = |text: &str| format!("---\nname: mail\ndescription: {text}\n---\n");
        for (text, reason) in [
            (
                "# Mail\n",
                "it does not start with front matter: YAML between two lines of ---",
            ),
            ("---\nname: mail\n", "it does not start with front matter"),
            (&whole, "it is over 1048576 bytes"),
            (
                "---\nname: mail\n---\n",
                "line 1 column 1: missing field `description`",
            ),
            (
                "---\nname: A B\ndescription: x\n---\n",
                "1 to 64 lower-case letters, digits and",
            ),
            (
                &described("''"),
                "its description must have 1 to 1024 characters",
            ),
            (
                &described(&long),
                "its description must have 1 to 1024 characters",
            ),
            (
                &described("x\nservers: 7"),
                "line 3 column 10: servers must be a list of names",
            ),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join(FILE);
            std::fs::write(&file, text).expect("a file");
            let error = Skill::load(folder.path()).expect_err(reason).to_string();
            assert!(
                error.starts_with(&format!("skill {}: ", file.display())),
                "{error}"
            );
            assert!(error.contains(reason), "{error}");
        }
        let error = Skill::load(Path::new("/no/such/folder")).expect_err("there is none");
        assert!(error.to_string().contains("No such file or directory"));
    }

    /// None of these takes long or memory, or the process down.
    #[test]
    fn hostile_front_matter_is_an_error() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nname: *b\n";
        let deep = format!("name: {}\n", "[".repeat(20_000));
        let wide = format!("metadata: {{ {} }}\n", "a: b, ".repeat(9_000));
        for yaml in [bomb, &deep, &wide, "name: !!binary x\n", "\0", "? - :\n"] {
            let text = format!("---\n{yaml}---\n");
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(FILE), text).expect("a file");
            assert!(Skill::load(folder.path()).is_err(), "{yaml:.40}");
        }
    }
}
