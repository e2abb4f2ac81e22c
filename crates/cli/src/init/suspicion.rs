//! Finds out which texts may be secrets: by their names, their places and their looks.

use std::net::{IpAddr, SocketAddr};

/// Stands for a reference while secrets are looked for. It is no character of texts.
pub const REFERENCE: char = '\u{fdd0}';
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
/// Values that are no secrets unless their name says so.
const SETTINGS: &str = "true false yes no on off none auto default debug info warn warning error \
                        trace silent production development test staging local localhost stdio \
                        utf-8 C.UTF-8 basic bearer";

/// The reason to suspect that a word is a secret.
#[derive(Clone, Copy, PartialEq)]
pub enum Suspicion {
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
    pub fn of_value(name: &str) -> Self {
        match name {
            _ if names_a_secret(name) => Self::Named,
            "-p" => Self::Password,
            _ => Self::Value,
        }
    }

    /// True if this part of a suspected word is kept out.
    pub fn hides(self, part: &str) -> bool {
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

/// True if the value of this name, such as `--api-key` or `GITHUB_TOKEN`, is a secret.
pub fn names_a_secret(name: &str) -> bool {
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
pub fn is_url(text: &str) -> bool {
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
pub fn is_secret_part(part: &str, is_named: bool) -> bool {
    let mut words = part.split(|c: char| !c.is_alphanumeric());
    let is_mixed = |word: &str| {
        word.len() >= 6 && word.contains(char::is_alphabetic) && word.contains(char::is_numeric)
    };
    is_token(part) || holds_named_secret(part) || is_named && words.any(is_mixed)
}

/// True if the default of a reference is no secret, or too short for one.
pub fn is_harmless_default(default: &str, is_named: bool) -> bool {
    let is_word = SETTINGS
        .split(' ')
        .any(|it| default.eq_ignore_ascii_case(it));
    let is_free = || is_setting(default) || is_plain(default) && !default.contains([':', '@']);
    default.len() < 4 || is_word || !is_named && !is_token(default) && is_free()
}

/// True if the text after `-p` makes it a long flag, such as `-path` or `-projectId`.
pub fn is_rest_of_flag(text: &str) -> bool {
    let is_letter = |c: char| c.is_alphabetic() || c == '-' || c == '_';
    text.is_empty() || text.starts_with(char::is_lowercase) && text.chars().all(is_letter)
}

/// True if a value is certainly no secret: a switch, a small number, a path, an address.
pub fn is_setting(value: &str) -> bool {
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
