//! Keeps secrets of other clients' files out of the configuration: a reference `${NAME}` replaces
//! each value that may be a secret.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Words in a name whose value is a secret.
const SECRET_NAMES: &str = "pass pwd pat auth authorization credential passphrase passcode pin \
                            cookie bearer jwt dsn mnemonic signature";
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
/// Values that are no secrets unless their name says so.
const SETTINGS: &str = "true false yes no on off none auto default debug info warn warning error \
                        trace silent production development test staging local stdio utf-8 C.UTF-8";

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
    /// It is the value of an unknown flag.
    Value,
    /// Only its look: it may look like a token.
    Look,
}

impl Suspicion {
    fn of_value(name: &str) -> Self {
        if names_a_secret(name) {
            Self::Named
        } else {
            Self::Value
        }
    }

    /// True if this part of a suspected word is kept out.
    fn hides(self, part: &str) -> bool {
        match self {
            Self::Named => true,
            Self::Value => is_token(part) || !(is_setting(part) || is_plain(part)),
            Self::Look => is_token(part),
        }
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
        self.hide(value, &names, |part| is_named || !is_setting(part))
    }

    /// The value of a header, with a reference in place of all but its scheme.
    pub fn header(&mut self, server: &str, name: &str, value: &str) -> String {
        let harmless = ["accept", "content-type", "user-agent", "x-mcp-tool-mode"];
        if harmless.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            return value.to_owned();
        }
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        let (scheme, token) = match value.split_once(' ') {
            Some((scheme, token)) if is_authorization => (format!("{scheme} "), token),
            _ => (String::new(), value),
        };
        let word = if is_authorization { "TOKEN" } else { name };
        let names = [format!("{server}_{word}")];
        scheme + &self.hide(token, &names, |part| !part.trim().is_empty())
    }

    /// The arguments of a command, with references in place of secrets.
    pub fn arguments(&mut self, server: &str, arguments: &[String]) -> Vec<String> {
        let mut before = "";
        let mut hidden = Vec::new();
        for argument in arguments {
            let flag = std::mem::replace(&mut before, argument);
            hidden.push(self.argument(server, flag, argument));
        }
        hidden
    }

    fn argument(&mut self, server: &str, before: &str, argument: &str) -> String {
        let flag_of = |text: &str| text.trim_start_matches('-').to_owned();
        let is_variable = matches!(before, "-e" | "--env" | "env");
        // `--header "Authorization: Bearer …"`, also without the flag.
        if let Some((name, value)) = argument.split_once(':')
            && (matches!(before, "--header" | "--headers" | "-H")
                || name.starts_with("--header=")
                || names_a_secret(name))
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
        {
            let value = if is_variable {
                self.environment(server, name, value)
            } else {
                let suspicion = Suspicion::of_value(name);
                self.word(server, &flag_of(name), value, suspicion)
            };
            return format!("{name}={value}");
        }
        let is_name = is_variable && variable(argument) == argument.to_ascii_uppercase();
        let is_value = before.starts_with('-')
            && !before.contains('=')
            && !argument.starts_with('-')
            && !is_name
            && !SWITCHES.split(' ').any(|it| it == before);
        let suspicion = if is_value {
            Suspicion::of_value(before)
        } else {
            Suspicion::Look
        };
        self.word(server, &flag_of(before), argument, suspicion)
    }

    /// A URL, with references in place of secrets in its user, query and path.
    pub fn url(&mut self, server: &str, url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else {
            return url.to_owned();
        };
        let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut hidden = format!("{scheme}://");
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
        if word.contains("://") && suspicion != Suspicion::Named {
            return self.url(server, word);
        }
        let is_look = suspicion == Suspicion::Look;
        let names = [format!("{server}_{}", if is_look { "token" } else { name })];
        self.hide(word, &names, |part| suspicion.hides(part))
    }

    /// A text with references in place of the parts that `hides` selects, and of secret defaults
    /// in references. The first free name of `names` becomes the variable.
    fn hide(&mut self, text: &str, names: &[String], hides: impl Fn(&str) -> bool) -> String {
        let mut hidden = String::new();
        let mut rest = text;
        loop {
            let found = rest.split_once("${");
            let found = found.and_then(|(part, it)| Some((part, it.split_once('}')?)));
            let part = found.map_or(rest, |(part, _)| part);
            hidden += &if part.is_empty() || !hides(part) {
                part.to_owned()
            } else {
                format!("${{{}}}", self.keep(part, names))
            };
            let Some((_, (reference, after))) = found else {
                return hidden;
            };
            hidden += &match reference.split_once(":-") {
                Some((name, default)) if names_a_secret(name) || !is_setting(default) => {
                    // The default is the value of the variable until one is set.
                    let name = name.strip_prefix("env:").unwrap_or(name);
                    self.add(name.to_owned(), default);
                    format!("${{{name}}}")
                }
                _ => format!("${{{reference}}}"),
            };
            rest = after;
        }
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
        || value.parse::<SocketAddr>().is_ok()
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
fn is_token(text: &str) -> bool {
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
            CG_TOKEN=${OTHER:-abc} → ${OTHER}
            CG_X=${OTHER:-info} → ${OTHER:-info}
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
        check(lines, |secrets, line| {
            let arguments: Vec<String> = line.split('|').map(str::to_owned).collect();
            secrets.arguments("cg", &arguments).join("|")
        });
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
            https://${HOST}/mcp → https://${HOST}/mcp";
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
