//! Keeps secrets of other clients' files out of the configuration: a reference `${NAME}` replaces
//! each value that may be a secret.

use std::collections::BTreeMap;
use std::path::Path;

use super::entry::reference;
use super::suspicion::{
    REFERENCE, Suspicion, is_harmless_default, is_rest_of_flag, is_secret_part, is_setting, is_url,
    names_a_secret,
};

/// Stands for a reference to a secret.
const SECRET_REFERENCE: char = '\u{fdd1}';
/// Flags without a value. The argument after one is not their value.
const SWITCHES: &str = "-y --yes -i -t -it --rm --init --interactive -q --quiet";
/// Programs that start packages, which `-p` names, and their subcommands.
const RUNNERS: &str = "npx npm pnpx pnpm bunx bun yarn uvx uv pipx";
const SUBCOMMANDS: &str = "exec dlx run tool x";

/// The values kept out of the configuration, by the names of their variables.
#[derive(Default)]
pub struct Secrets {
    values: BTreeMap<String, Secret>,
    /// The file and server of the values that are added next.
    pub place: String,
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
            hidden.push(self.around_references(argument, |secrets, argument| {
                secrets.masked_argument(server, flag, argument)
            }));
            is_of_runner &= argument.starts_with('-') || is_in(SUBCOMMANDS, argument);
        }
        hidden
    }

    /// An argument after the one `before`, with signs in place of references.
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

#[cfg(test)]
mod tests;
