//! Keeps secrets of other clients' files out of the configuration: a reference `${NAME}` replaces
//! each value that may be a secret.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::entry::reference;

/// Stands for a reference while secrets are looked for. It is no character of texts.
const REFERENCE: char = '\u{fdd0}';
/// Stands for a reference to a secret.
const SECRET_REFERENCE: char = '\u{fdd1}';
/// Words in the name of a secret.
const SECRET_NAMES: &str = "pass pwd pw pat auth authorization cred credential passphrase \
                            passcode pin psk otp cookie bearer jwt dsn mnemonic signature";
/// Suffixes of such words.
const SECRET_ENDINGS: [&str; 5] = ["key", "token", "secret", "password", "passwd"];
/// Prefixes of the tokens of well-known services.
const SECRET_PREFIXES: &str = "ghp_ gho_ ghu_ ghs_ github_pat_ glpat- sk- sk_ pk_ rk_ xox xapp- \
                                 AKIA AIza ya29. eyJ npm_ hf_ figd_ lin_api_ ntn_ pat- SG. sq0 EAAA \
                                 ATATT ATCTT ATBB BSA tvly- pplx- gsk_ xai- r8_ nvapi- dop_v1_ shpat_ \
                                 shpss_ glptt- sbp_ whsec_ ASIA GOCSPX- hvs. pypi- PMAK- ghr_ \
                                 AGE-SECRET-KEY-";
/// Flags without a value. The argument after one is not their value.
const SWITCHES: &str = "-y --yes -i -t -it --rm --init --interactive -q --quiet";
/// Programs that start packages, which `-p` names, and their subcommands.
const RUNNERS: &str = "npx npm pnpx pnpm bunx bun yarn uvx uv pipx";
const SUBCOMMANDS: &str = "exec dlx run tool x";
/// Values that are no secrets unless their name says so.
const SETTINGS: &str = "true false yes no on off none auto default debug info warn warning error \
                        trace silent production development test staging local localhost stdio \
                        utf-8 C.UTF-8 basic bearer";

/// The values kept out of the configuration, by the names of their variables.
#[derive(Default)]
pub struct Secrets {
    values: BTreeMap<String, Secret>,
    /// The file and server of the values that are added next.
    pub place: String,
}

/// The reason to suspect that a word is a secret.
#[derive(Clone, Copy, PartialEq)]
enum Suspicion {
    /// Its name is that of a secret.
    Named,
    /// It follows `-p`, and is a password, a port or a path.
    Password,
    /// It is the value of an unknown flag.
    Value,
    /// Only its look: it may look like a token.
    Look,
}

impl Suspicion {
    fn of_value(name: &str) -> Self {
        match name {
            _ if names_a_secret(name) => Self::Named,
            "-p" => Self::Password,
            _ => Self::Value,
        }
    }

    /// True if this part of a suspected word is kept out.
    fn hides(self, part: &str) -> bool {
        let is_allowed = match self {
            Self::Named => false,
            // `-p 8080:80` of Docker.
            Self::Password => is_setting(part) || part.split(':').all(is_setting),
            Self::Value => is_setting(part) || is_plain(part),
            Self::Look => true,
        };
        !is_allowed || is_token(part) || holds_named_secret(part)
    }
}

/// A value kept out of the configuration.
pub struct Secret {
    pub value: String,
    /// The file and server that have it.
    pub place: String,
}

impl Secrets {
    /// The values, each with its variable.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Secret)> {
        self.values.iter()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.values.get(name)
    }

    /// A variable of `env`, with a reference if it may be a secret.
    pub fn environment(&mut self, server: &str, name: &str, value: &str) -> String {
        let is_named = names_a_secret(name);
        let names = [name.to_owned(), format!("{server}_{name}")];
        self.around_references(value, |secrets, value| {
            let hides = |part: &str| is_named || !is_setting(part);
            secrets.hide(server, value, &names, is_named, hides)
        })
    }

    /// The value of a header, with a reference in place of all but its scheme.
    pub fn header(&mut self, server: &str, name: &str, value: &str) -> String {
        let harmless = ["accept", "content-type", "user-agent", "x-mcp-tool-mode"];
        if harmless.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            return value.to_owned();
        }
        self.around_references(value, |secrets, value| {
            let is_authorization = name.eq_ignore_ascii_case("authorization");
            let (scheme, token) = match value.split_once(' ') {
                Some((scheme, token)) if is_authorization => (format!("{scheme} "), token),
                _ => (String::new(), value),
            };
            let word = if is_authorization { "TOKEN" } else { name };
            let names = [format!("{server}_{word}")];
            let hides = |part: &str| !part.trim().is_empty();
            scheme + &secrets.hide(server, token, &names, names_a_secret(name), hides)
        })
    }

    /// The program of a command, without secret defaults of references.
    pub fn program(&mut self, program: &str) -> String {
        self.around_references(program, |_, program| program.to_owned())
    }

    /// The arguments of a command, with references in place of secrets.
    pub fn arguments(&mut self, server: &str, program: &str, arguments: &[String]) -> Vec<String> {
        let is_in = |list: &str, name: &str| list.split(' ').any(|it| it == name);
        let name = Path::new(program).file_stem().unwrap_or_default();
        let mut is_of_runner = is_in(RUNNERS, &name.to_string_lossy());
        let mut before = "";
        let mut hidden = Vec::new();
        for argument in arguments {
            let flag = std::mem::replace(&mut before, argument);
            let flag = match flag {
                "-p" if is_of_runner => "--package",
                flag => flag,
            };
            hidden.push(self.argument(server, flag, argument));
            is_of_runner &= argument.starts_with('-') || is_in(SUBCOMMANDS, argument);
        }
        hidden
    }

    fn argument(&mut self, server: &str, before: &str, argument: &str) -> String {
        self.around_references(argument, |secrets, argument| {
            secrets.masked_argument(server, before, argument)
        })
    }

    /// [`Self::argument`] with signs in place of references.
    fn masked_argument(&mut self, server: &str, before: &str, argument: &str) -> String {
        let is_variable = matches!(before, "-e" | "--env" | "env");
        // `--header "Authorization: Bearer …"`, also without the flag.
        if let Some((name, value)) = argument.split_once(':')
            && (matches!(before, "--header" | "--headers" | "-H")
                || name.starts_with("--header=")
                || !name.contains('=') && names_a_secret(name))
            && !value.starts_with("//")
        {
            let blank = value.len() - value.trim_start().len();
            let (blank, value) = value.split_at(blank);
            return format!("{name}:{blank}{}", self.header(server, name, value));
        }
        // `--api-key=…`, `-e TOKEN=…`.
        if let Some((name, value)) = argument.split_once('=')
            && !value.is_empty()
            && !name.contains(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)))
            && (is_variable || name.starts_with('-') || !value.contains(char::is_whitespace))
        {
            let value = if is_variable {
                self.environment(server, name, value)
            } else {
                self.value(server, name, value)
            };
            return format!("{name}={value}");
        }
        // `-pSECRET`, `-ume:SECRET`.
        if let Some((flag, value)) = argument.split_at_checked(2)
            && (flag == "-p" && !is_rest_of_flag(value) || flag == "-u" && value.contains(':'))
        {
            return format!("{flag}{}", self.value(server, flag, value));
        }
        let is_name = is_variable && variable(argument) == argument.to_ascii_uppercase();
        let is_value = before.starts_with('-')
            && !before.contains('=')
            && !argument.starts_with('-')
            && !is_name
            && !SWITCHES.split(' ').any(|it| it == before);
        if is_value {
            return self.value(server, before, argument);
        }
        self.word(server, "token", argument, Suspicion::Look)
    }

    /// The value of a flag or setting, with references in place of secrets.
    fn value(&mut self, server: &str, name: &str, value: &str) -> String {
        let suspicion = Suspicion::of_value(name);
        let word = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
        let word = word.to_ascii_lowercase();
        let is_user = matches!(&*word, "u" | "user" | "username" | "login");
        // Docker's `--user 1000:1000` has numbers alone.
        let is_number = |c: char| c == ':' || c.is_ascii_digit();
        if let Some((user, password)) = value.split_once(':')
            && is_user
            && suspicion == Suspicion::Value
            && !password.starts_with("//")
            && !value.chars().all(is_number)
        {
            let user = self.word(server, "user", user, Suspicion::Look);
            let password = self.word(server, "password", password, Suspicion::Named);
            return format!("{user}:{password}");
        }
        self.word(server, name.trim_start_matches('-'), value, suspicion)
    }

    /// A URL, with references in place of secrets in its user, query and path.
    pub fn url(&mut self, server: &str, url: &str) -> String {
        self.around_references(url, |secrets, url| secrets.masked_url(server, url))
    }

    /// [`Self::url`] with signs in place of references.
    fn masked_url(&mut self, server: &str, url: &str) -> String {
        let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
        let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut hidden = scheme.to_owned();
        hidden += &match authority.rsplit_once('@') {
            Some((user, host)) => {
                let (name, password) = user.split_at(user.find(':').map_or(0, |at| at + 1));
                let password = self.word(server, "password", password, Suspicion::Named);
                format!("{name}{password}@{host}")
            }
            None => authority.to_owned(),
        };
        // A value in the query may contain a slash, so the query is split at `&` alone.
        let (mark, query) = query.split_at(query.len().min(1));
        let query = [mark].into_iter().chain(query.split_inclusive('&'));
        for part in path.split_inclusive('/').chain(query) {
            let word = part.trim_end_matches(['/', '&']);
            hidden += &match word.split_once('=') {
                Some((name, value)) => {
                    let is_secret = names_a_secret(name) || !is_setting(value);
                    let suspicion = if is_secret {
                        Suspicion::Named
                    } else {
                        Suspicion::Look
                    };
                    format!("{name}={}", self.word(server, name, value, suspicion))
                }
                None => self.word(server, "key", word, Suspicion::Look),
            };
            hidden += part.strip_prefix(word).unwrap_or_default();
        }
        hidden
    }

    /// A word of an argument, with references in place of the parts that the suspicion hides.
    fn word(&mut self, server: &str, name: &str, word: &str, suspicion: Suspicion) -> String {
        if suspicion != Suspicion::Named && is_url(word) {
            return self.masked_url(server, word);
        }
        let is_look = suspicion == Suspicion::Look;
        let names = [format!("{server}_{}", if is_look { "token" } else { name })];
        let is_named = suspicion == Suspicion::Named;
        self.hide(server, word, &names, is_named, |part| suspicion.hides(part))
    }

    /// A text with a reference in its place if `hides` selects it. If it has references, only parts
    /// that look like secrets themselves are replaced. The first free name of `names` becomes the
    /// variable.
    fn hide(
        &mut self,
        server: &str,
        text: &str,
        names: &[String],
        is_named: bool,
        hides: impl Fn(&str) -> bool,
    ) -> String {
        if !text.contains(REFERENCE) {
            let is_hidden = !text.is_empty() && hides(text);
            return if is_hidden {
                reference(&self.keep(text, names))
            } else {
                text.to_owned()
            };
        }
        if is_url(text) {
            return self.masked_url(server, text);
        }
        let sign = if is_named {
            SECRET_REFERENCE
        } else {
            REFERENCE
        };
        let mut hidden = Vec::new();
        for part in text.split(REFERENCE) {
            hidden.push(if is_secret_part(part, is_named) {
                reference(&self.keep(part, names))
            } else {
                part.to_owned()
            });
        }
        hidden.join(&sign.to_string())
    }

    /// Applies `hide` to a text with signs in place of its references, and puts these back.
    fn around_references(
        &mut self,
        text: &str,
        hide: impl FnOnce(&mut Self, &str) -> String,
    ) -> String {
        let signs = [REFERENCE, SECRET_REFERENCE];
        if text.contains(signs) {
            // It is a part of a text with signs.
            return hide(self, text);
        }
        let (mut masked, mut references) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${")
            && let Some((reference, after)) = after.split_once('}')
        {
            masked += before;
            masked.push(REFERENCE);
            references.push(reference);
            rest = after;
        }
        masked += rest;
        let hidden = hide(self, &masked);
        let mut references = references.into_iter();
        let mut whole = String::new();
        for c in hidden.chars() {
            if signs.contains(&c)
                && let Some(reference) = references.next()
            {
                whole += &self.without_secret_default(reference, c == SECRET_REFERENCE);
            } else {
                whole.push(c);
            }
        }
        whole
    }

    /// The reference with this text, without a default that may be a secret. Such a default is the
    /// value of the variable until one is set.
    fn without_secret_default(&mut self, text: &str, is_named: bool) -> String {
        let Some((name, default)) = text.split_once(":-") else {
            return reference(text);
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if is_harmless_default(default, is_named || names_a_secret(name)) {
            return reference(text);
        }
        self.add(name.to_owned(), default);
        reference(name)
    }

    /// Keeps a value, and returns its variable.
    fn keep(&mut self, value: &str, names: &[String]) -> String {
        let names = names.iter().map(|name| variable(name));
        let last = names.clone().next_back().unwrap_or_default();
        let numbered = (2..).map(|number| format!("{last}_{number}"));
        let is_free = |name: &String| match (self.values.get(name), std::env::var(name)) {
            (Some(secret), _) => secret.value == value,
            (None, Ok(set)) => set == value,
            (None, Err(_)) => true,
        };
        let name = names.chain(numbered).find(is_free).unwrap_or_default();
        self.add(name.clone(), value);
        name
    }

    fn add(&mut self, name: String, value: &str) {
        let (value, place) = (value.to_owned(), self.place.clone());
        self.values.entry(name).or_insert(Secret { value, place });
    }
}

/// A name in the form of environment variables: `API_KEY` for `--api-key`.
pub fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.trim_start_matches('-').chars().map(letter).collect();
    let name = name.to_ascii_uppercase();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

/// True if the value of this name, such as `--api-key` or `GITHUB_TOKEN`, is a secret.
fn names_a_secret(name: &str) -> bool {
    // `apiKey` has the words `api` and `key`.
    let (mut words, mut before) = (String::new(), ' ');
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push('_');
        }
        words.extend(c.to_lowercase());
        before = c;
    }
    let words = words.split(|c: char| !c.is_alphanumeric());
    words.into_iter().any(|word| {
        let one = word.strip_suffix('s').unwrap_or(word);
        SECRET_NAMES.split(' ').any(|it| it == word || it == one)
            || SECRET_ENDINGS.iter().any(|it| one.ends_with(it))
    })
}

/// True if a text is a URL, and not a command with a URL and secrets elsewhere.
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|it| !is_token(it)) && !holds_named_secret(text)
}

/// True if a command or a list of settings holds a named secret: `--token x`, `PASSWORD=x`.
fn holds_named_secret(text: &str) -> bool {
    let mut before = "";
    let mut words = text.split(|c: char| c.is_whitespace() || ";,".contains(c));
    words.any(|word| {
        let flag = std::mem::replace(&mut before, word);
        let (name, value) = match word.split_once('=') {
            Some(pair) => pair,
            None if flag.starts_with('-') => (flag, word),
            None => return false,
        };
        let value = value.trim_matches(['"', '\'']);
        let is_literal = !value.is_empty() && !value.starts_with(['-', '$', REFERENCE]);
        is_literal && !name.contains("://") && names_a_secret(name)
    })
}

/// True if a text beside a reference looks like a secret itself.
fn is_secret_part(part: &str, is_named: bool) -> bool {
    let mut words = part.split(|c: char| !c.is_alphanumeric());
    let is_mixed = |word: &str| {
        word.len() >= 6 && word.contains(char::is_alphabetic) && word.contains(char::is_numeric)
    };
    is_token(part) || holds_named_secret(part) || is_named && words.any(is_mixed)
}

/// True if the default of a reference is no secret, or too short for one.
fn is_harmless_default(default: &str, is_named: bool) -> bool {
    let is_word = SETTINGS
        .split(' ')
        .any(|it| default.eq_ignore_ascii_case(it));
    let is_free = || is_setting(default) || is_plain(default) && !default.contains([':', '@']);
    default.len() < 4 || is_word || !is_named && !is_token(default) && is_free()
}

/// True if the text after `-p` makes it a long flag, such as `-path` or `-projectId`.
fn is_rest_of_flag(text: &str) -> bool {
    let is_letter = |c: char| c.is_alphabetic() || c == '-' || c == '_';
    text.is_empty() || text.starts_with(char::is_lowercase) && text.chars().all(is_letter)
}

/// True if a value is certainly no secret: a switch, a small number, a path, an address.
fn is_setting(value: &str) -> bool {
    let is_number = value.len() <= 5 && value.chars().all(|c| c.is_ascii_digit());
    let is_path = value.starts_with(['/', '~', '.']) && !value.split('/').any(is_token);
    let is_address = value.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https" | "ws" | "wss" | "file")
            && !rest.contains(['@', '?', '#'])
            && !rest.split('/').any(is_token)
    });
    is_number
        || is_path
        || is_address
        || SETTINGS.split(' ').any(|it| value.eq_ignore_ascii_case(it))
        || value.parse::<IpAddr>().is_ok()
        || value
            .replacen("localhost", "127.0.0.1", 1)
            .parse::<SocketAddr>()
            .is_ok()
        || value.chars().all(|c| !c.is_alphanumeric())
}

/// True if a value consists of words, short numbers and versions, like the names of packages,
/// regions and models. A single word with a digit may be a password.
fn is_plain(value: &str) -> bool {
    let parts = value.split(|c: char| "-_./\\:@,=+~* ".contains(c));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let is_plain = |part: &&str| {
        let is_mixed = part.contains(char::is_alphabetic) && part.contains(char::is_numeric);
        let max = match (is_mixed, parts.len()) {
            (true, 1) => return false,
            (true, _) => 1,
            (false, _) => 3,
        };
        part.len() <= 20 && part.chars().all(char::is_alphanumeric) && changes(part) <= max
    };
    let digits = value.chars().filter(char::is_ascii_digit).count();
    digits <= 8 && parts.iter().all(is_plain)
}

/// The number of changes between letters and digits, and from lower to upper case.
fn changes(text: &str) -> usize {
    let kinds = text.chars().zip(text.chars().skip(1));
    let changes = kinds.filter(|(a, b)| {
        let becomes_number = a.is_numeric() != b.is_numeric();
        becomes_number && (a.is_alphanumeric() && b.is_alphanumeric())
            || (a.is_lowercase() && b.is_uppercase())
    });
    changes.count()
}

/// True if a word of a text looks like a token.
pub fn is_token(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || "\"'`,;()[]{}<>|".contains(c));
    text.contains("-----BEGIN ") || words.any(is_token_word)
}

/// True if a word has the prefix of a token or looks random: it is long and has letters and digits,
/// changes between them often, or has special characters like a password.
fn is_token_word(word: &str) -> bool {
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let is_of = |signs: &str| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
    };
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_mixed = digits > 0 && has(char::is_ascii_alphabetic);
    let is_random = word.len() >= 20 && digits >= 4 && is_of("-_+=~");
    let is_one_word = word.len() >= 16 && is_of("");
    let changes_often = word.len() >= 12 && changes(word) * 3 >= word.len() && is_of("-_+=~");
    let is_base64 = (word.len() >= 12 && word.ends_with('=') || word.len() >= 32)
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && !word.starts_with('/')
        && is_of("+/=");
    let is_password = word.len() >= 8 && word.contains(['!', '$', '^', '&', '#', '%']);
    let is_known = SECRET_PREFIXES.split(' ').any(|it| word.starts_with(it));
    (is_known && word.len() >= 12)
        || word.starts_with("eyJ")
        || is_mixed
            && (is_random
                || is_one_word
                || changes_often
                || is_base64
                || is_password && !word.contains(['/', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks lines of an input, an arrow, and the expected text.
    #[track_caller]
    fn check(lines: &str, hide: impl Fn(&mut Secrets, &str) -> String) {
        for line in lines.trim().lines() {
            let (input, expected) = line.trim().split_once(" → ").expect("an arrow");
            assert_eq!(hide(&mut Secrets::default(), input), expected, "{input}");
        }
    }

    #[test]
    fn secret_env_values_become_references() {
        let lines = "
            CG_TOKEN=ghp_abc → ${CG_TOKEN}
            CG_TOKEN=on → ${CG_TOKEN}
            CG_X=hunter2 → ${CG_X}
            CG_X=postgres://u:p@h/db → ${CG_X}
            CG_X=https://h/p?key=1 → ${CG_X}
            CG_X=${OTHER} → ${OTHER}
            CG_TOKEN=${env:OTHER} → ${env:OTHER}
            CG_TOKEN=${OTHER:-hunter} → ${OTHER}
            CG_TOKEN=${OTHER:-x1} → ${OTHER:-x1}
            CG_TOKEN=${OTHER:-none} → ${OTHER:-none}
            CG_X=${MY_PASSWORD:-hunter} → ${MY_PASSWORD}
            CG_X=${OTHER:-info} → ${OTHER:-info}
            CG_X=${OTHER:-eu-west-1} → ${OTHER:-eu-west-1}
            CG_X=${OTHER:-me:pw@host} → ${OTHER}
            CG_X=localhost:5432 → localhost:5432
            CG_X=debug → debug
            CG_X=8080 → 8080
            CG_X=/data/notes → /data/notes
            CG_X=https://api.example/v1 → https://api.example/v1
            cg.x-y=hunter2 → ${CG_X_Y}";
        check(lines, |secrets, line| {
            let (name, value) = line.split_once('=').expect("a value");
            secrets.environment("s", name, value)
        });
    }

    #[test]
    fn text_around_references_stays() {
        let lines = "
            AUTH=Token ${CG_T} → Token ${CG_T}
            AUTH=${SCHEME:-Basic} ${CG_T} → ${SCHEME:-Basic} ${CG_T}
            CG_X=<${A}|${B:-2}> → <${A}|${B:-2}>
            CG_DSN=Server=h;Password=${PW};Database=x → Server=h;Password=${PW};Database=x
            CG_X=redis://me:${PW}@h:6379/0 → redis://me:${PW}@h:6379/0
            CG_X=redis://me:hunter@${HOST}/0 → redis://me:${S_PASSWORD}@${HOST}/0
            CG_X=redis://me:${PW:-a/b@c}@h/0 → redis://me:${PW}@h/0
            CG_X=${BASE:-https://a.example/v1}/mcp → ${BASE:-https://a.example/v1}/mcp
            CG_KEY=hunter2${A} → ${CG_KEY}${A}
            CG_X=ghp_0123456789abcdef${A} → ${CG_X}${A}
            CG_X=Server=h;Password=hunter;Database=${DB} → ${CG_X}${DB}";
        check(lines, |secrets, line| {
            let (name, value) = line.split_once('=').expect("a value");
            secrets.environment("s", name, value)
        });
        let lines = "
            Cookie: sid=${SID}; theme=dark → sid=${SID}; theme=dark
            X-Key: ${A}.${B} → ${A}.${B}
            Authorization: Bearer ${T:-hunter} → Bearer ${T}";
        check(lines, |secrets, line| {
            let (name, value) = line.split_once(": ").expect("a value");
            secrets.header("cg-s", name, value)
        });
    }

    #[test]
    fn headers_keep_their_scheme() {
        let lines = "
            Authorization: Bearer abc → Bearer ${CG_S_TOKEN}
            authorization: abc → ${CG_S_TOKEN}
            Authorization: Bearer ${T} → Bearer ${T}
            X-Api-Key: a b → ${CG_S_X_API_KEY}
            X-Team: blue → ${CG_S_X_TEAM}
            Accept: text/plain → text/plain";
        check(lines, |secrets, line| {
            let (name, value) = line.split_once(": ").expect("a value");
            secrets.header("cg-s", name, value)
        });
    }

    #[test]
    fn only_tokens_in_arguments_are_replaced() {
        let lines = "
            -y|@scope/server@1.2.3 → -y|@scope/server@1.2.3
            --api-key|abc → --api-key|${CG_API_KEY}
            --apiKey=abc → --apiKey=${CG_APIKEY}
            --token|--verbose → --token|--verbose
            ghp_0123456789abcdef → ${CG_TOKEN}
            f3b2a1c0-1234-4abc-9def-0123456789ab → ${CG_TOKEN}
            run|-e|PG_PASS=x|img → run|-e|PG_PASS=${PG_PASS}|img
            -e|LOG=debug → -e|LOG=debug
            -e|GITHUB_TOKEN → -e|GITHUB_TOKEN
            -e|S3KEY2 → -e|S3KEY2
            --header|Authorization: Bearer abc → --header|Authorization: Bearer ${CG_TOKEN}
            --header|Authorization:${AUTH} → --header|Authorization:${AUTH}
            postgresql://me:pw@db.example/x → postgresql://me:${CG_PASSWORD}@db.example/x
            --db=postgresql://me:pw@db.example/x → --db=postgresql://me:${CG_PASSWORD}@db.example/x
            -p|N0t-@-Word? → -p|${CG_P}
            --seed=Zx9!quarz → --seed=${CG_SEED}
            --license|7F3K-99QX-PL2M → --license|${CG_LICENSE}
            --login|hunter7 → --login|${CG_LOGIN}
            --api-keys=one,two → --api-keys=${CG_API_KEYS}
            --dir=${HOME}/notes → --dir=${HOME}/notes
            b0b1c2d3e4f5a6 → ${CG_TOKEN}
            Xk3/pQ9+vT2mR8wL5nB7cJ4dF6gH1sZ0= → ${CG_TOKEN}
            ATCTT3xFfGF0abcd → ${CG_TOKEN}
            sh|-c|run --x Qw3rty!99 → sh|-c|${CG_C}
            -----BEGIN OPENSSH PRIVATE KEY-----b3Bl → ${CG_TOKEN}
            --region|eu-central-1|--model|gpt-4o → --region|eu-central-1|--model|gpt-4o
            --host=192.168.100.20 → --host=192.168.100.20
            -y|@scope/context7-mcp@1.0.6-beta.3 → -y|@scope/context7-mcp@1.0.6-beta.3
            --mount|type=bind,src=/a,dst=/b → --mount|type=bind,src=/a,dst=/b
            --rm|x/y@sha256:0123456789abcdef → --rm|x/y@sha256:0123456789abcdef
            --timezone|America/New_York → --timezone|America/New_York
            /home/me/work-2024-12-31-notes → /home/me/work-2024-12-31-notes
            http://localhost:8080/mcp → http://localhost:8080/mcp";
        check_arguments("x", lines);
    }

    /// Checks arguments of a program, separated by `|`.
    #[track_caller]
    fn check_arguments(program: &str, lines: &str) {
        check(lines, |secrets, line| {
            let arguments: Vec<String> = line.split('|').map(str::to_owned).collect();
            secrets.arguments("cg", program, &arguments).join("|")
        });
    }

    #[test]
    fn short_flags_of_passwords_are_recognised() {
        let lines = "
            -p|swordfish → -p|${CG_P}
            -pSwordfish → -p${CG_P}
            -phunter2 → -p${CG_P}
            -p|8080|-p8080|-p|127.0.0.1:80:80|-p|./out → -p|8080|-p8080|-p|127.0.0.1:80:80|-p|./out
            -path|docs|-projectId|main → -path|docs|-projectId|main
            -p|${PW} → -p|${PW}
            -u|root:swordfish → -u|root:${CG_PASSWORD}
            -uroot:swordfish → -uroot:${CG_PASSWORD}
            --db-user=root:swordfish → --db-user=root:${CG_PASSWORD}
            --login|root:${PW} → --login|root:${PW}
            --user|1000:1000 → --user|1000:1000
            --user|root → --user|root
            --password=one:two → --password=${CG_PASSWORD}";
        check_arguments("/usr/bin/x", lines);
        let lines = "
            -y|-p|some-package|cmd|-p|swordfish → -y|-p|some-package|cmd|-p|${CG_P}
            exec|-p|some-package → exec|-p|some-package";
        check_arguments("npx", lines);
    }

    #[test]
    fn commands_in_arguments_keep_no_named_secret() {
        let lines = "
            -c|exec srv --token swordfish → -c|${CG_C}
            -lc|API_KEY=swordfish npx srv → -lc|${CG_LC}
            -c|srv --db https://h --password 'swordfish' → -c|${CG_C}
            -c|API_KEY=${KEY} npx srv --port 80 → -c|API_KEY=${KEY} npx srv --port 80
            -c|exec srv --verbose → -c|exec srv --verbose";
        check_arguments("sh", lines);
    }

    #[test]
    fn urls_lose_users_keys_and_random_parts() {
        let lines = "
            https://a.example/mcp → https://a.example/mcp
            https://a.example/mcp?api_key=x1 → https://a.example/mcp?api_key=${CG_API_KEY}
            https://a.example?key=a/b?c&d=on → https://a.example?key=${CG_KEY}&d=on
            https://me:p&w#1@a.example/mcp → https://me:${CG_PASSWORD}@a.example/mcp
            https://a.example/mcp?mode=debug&x#y → https://a.example/mcp?mode=debug&x#y
            https://tok@a.example/mcp → https://${CG_PASSWORD}@a.example/mcp
            https://a.example/s/0123456789abcdef0123/mcp → https://a.example/s/${CG_TOKEN}/mcp
            https://${HOST}/mcp → https://${HOST}/mcp
            ${BASE}/s/0123456789abcdef0123/mcp → ${BASE}/s/${CG_TOKEN}/mcp
            https://a.example/mcp?q=x-${Q}&key=${KEY:-hunter} → https://a.example/mcp?q=x-${Q}&key=${KEY}
            https://${U}:${PW:-p/w}@a.example/${TENANT:-main} → https://${U}:${PW:-p/w}@a.example/${TENANT:-main}";
        check(lines, |secrets, line| secrets.url("cg", line));
    }

    #[test]
    fn two_values_never_share_a_variable() {
        let mut secrets = Secrets::default();
        let values = [("a", "one"), ("b", "two"), ("c", "one"), ("b", "three")];
        let names = values.map(|(server, value)| secrets.environment(server, "CG_KEY", value));
        assert_eq!(
            names,
            ["${CG_KEY}", "${B_CG_KEY}", "${CG_KEY}", "${B_CG_KEY_2}"]
        );
        let kept = secrets
            .iter()
            .map(|(name, it)| format!("{name}={}", it.value));
        assert_eq!(
            kept.collect::<Vec<_>>(),
            ["B_CG_KEY=two", "B_CG_KEY_2=three", "CG_KEY=one"]
        );
    }
}
