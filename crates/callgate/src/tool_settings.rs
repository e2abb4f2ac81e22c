//! What is set for tools one by one, by patterns over their generated names.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use callgate_policy::Pattern;

/// What is set for tools by patterns over their generated names.
///
/// Several patterns may match a tool: it has the keywords of all of them, is
/// always on if one of them says so, and hidden if one of them says so, also one that
/// matches what the tool would be called with no other server or tool beside it. Of the
/// other visibilities, that of the pattern with the most characters besides `*`
/// counts, and the first of those.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    entries: Vec<(Pattern, ToolSetting)>,
}

/// What one pattern sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSetting {
    /// Where its tools are shown. Default: what other patterns say, else
    /// [`Visibility::Native`].
    pub visibility: Option<Visibility>,
    /// Words by which its tools are found besides those of their definitions.
    pub keywords: Vec<String>,
    /// Whether its tools are shown even where not all of them can be, and where
    /// they are otherwise on demand.
    pub always_on: bool,
}

/// Where a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Visibility {
    /// Wherever tools are.
    #[default]
    Native,
    /// Where it is looked for: in search, details and declarations, and not
    /// among the tools that are passed through one by one.
    OnDemand,
    /// Nowhere: it cannot be seen, found or called.
    Hidden,
}

impl Visibility {
    const ALL: [Self; 3] = [Self::Native, Self::OnDemand, Self::Hidden];

    /// The word for it in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::OnDemand => "on-demand",
            Self::Hidden => "hidden",
        }
    }
}

impl FromStr for Visibility {
    type Err = UnknownVisibility;

    fn from_str(text: &str) -> Result<Self, UnknownVisibility> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownVisibility(text.chars().take(80).collect()))
    }
}

/// A word that is no [`Visibility`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no visibility; write \"native\", \"on-demand\" or \"hidden\"")]
pub struct UnknownVisibility(String);

impl ToolSettings {
    /// Sets what these set, too.
    pub fn add(&mut self, more: &Self) {
        self.entries.extend(more.entries.iter().cloned());
    }

    /// Sets something for the tools of a pattern.
    pub fn set(&mut self, pattern: Pattern, setting: ToolSetting) {
        self.entries.push((pattern, setting));
    }

    /// Where this function's tool is shown.
    pub fn visibility(&self, function: &str) -> Visibility {
        let mut decided = Visibility::default();
        let mut most = None;
        for (pattern, setting) in self.of(function) {
            let literal = pattern.as_str().chars().filter(|c| *c != '*').count();
            match setting.visibility {
                Some(Visibility::Hidden) => return Visibility::Hidden,
                Some(visibility) if most.is_none_or(|most| literal > most) => {
                    (decided, most) = (visibility, Some(literal));
                }
                _ => {}
            }
        }
        decided
    }

    /// Whether this function's tool is nowhere. `natural` is what it would be called with no
    /// other server or tool beside it, where that is another name.
    pub fn hides(&self, function: &str, natural: Option<&str>) -> bool {
        let mut settings = self
            .of(function)
            .chain(natural.into_iter().flat_map(|it| self.of(it)));
        settings.any(|(_, setting)| setting.hides())
    }

    /// Words by which this function's tool is found, each once.
    pub fn keywords<'s>(&'s self, function: &'s str) -> Vec<&'s str> {
        let words = self.of(function).flat_map(|(_, setting)| &setting.keywords);
        let words: BTreeSet<&str> = words.map(String::as_str).collect();
        words.into_iter().collect()
    }

    /// Whether this function's tool is shown even where not all can be.
    pub fn always_on(&self, function: &str) -> bool {
        self.of(function).any(|(_, setting)| setting.always_on)
    }

    /// The patterns that match none of these functions, each with its natural name if that is
    /// another, and none that `may` be there, each in a sentence.
    pub(crate) fn unmatched<'f>(
        &self,
        functions: impl Iterator<Item = (&'f str, Option<&'f str>)> + Clone,
        may: impl Fn(&Pattern) -> bool,
    ) -> Vec<String> {
        let unmatched = self.entries.iter().filter(|(pattern, setting)| {
            let mut functions = functions.clone();
            let is_for = |(function, natural): (&str, Option<&str>)| {
                pattern.matches(function)
                    || setting.hides() && natural.is_some_and(|natural| pattern.matches(natural))
            };
            !functions.any(is_for) && !may(pattern)
        });
        unmatched
            .map(|(pattern, _)| format!("{:?} in \"tools\" matches no tool", pattern.as_str()))
            .collect()
    }

    fn of<'s>(&'s self, function: &'s str) -> impl Iterator<Item = &'s (Pattern, ToolSetting)> {
        let matches = move |(pattern, _): &&(Pattern, ToolSetting)| pattern.matches(function);
        self.entries.iter().filter(matches)
    }
}

impl ToolSetting {
    fn hides(&self) -> bool {
        self.visibility == Some(Visibility::Hidden)
    }
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(entries: &[(&str, Option<Visibility>, &[&str], bool)]) -> ToolSettings {
        let mut settings = ToolSettings::default();
        for (pattern, visibility, keywords, always_on) in entries {
            let setting = ToolSetting {
                visibility: *visibility,
                keywords: keywords.iter().map(|&word| word.to_owned()).collect(),
                always_on: *always_on,
            };
            settings.set(Pattern::new(pattern).expect("a pattern"), setting);
        }
        settings
    }

    #[test]
    fn the_closest_pattern_decides_and_hidden_wins() {
        let (native, on_demand, hidden) = (
            Some(Visibility::Native),
            Some(Visibility::OnDemand),
            Some(Visibility::Hidden),
        );
        let settings = settings(&[
            ("git_*", native, &["vcs"], false),
            ("*", on_demand, &["any", "vcs"], false),
            ("*_push", hidden, &[], false),
            ("git_status", None, &[], true),
            ("git_push", native, &[], true),
        ]);
        for (function, visibility) in [
            ("git_log", Visibility::Native),
            ("git_status", Visibility::Native),
            ("fs_read", Visibility::OnDemand),
            ("git_push", Visibility::Hidden),
        ] {
            assert_eq!(settings.visibility(function), visibility, "{function}");
            let hides = settings.hides(function, None);
            assert_eq!(hides, visibility == Visibility::Hidden);
        }
        assert_eq!(settings.keywords("git_log"), ["any", "vcs"]);
        assert_eq!(settings.keywords("fs_read"), ["any", "vcs"]);
        assert!(settings.always_on("git_status") && !settings.always_on("git_log"));
        assert_eq!(
            settings.unmatched(
                [("git_log", None), ("fs_read", None)].into_iter(),
                |pattern| pattern.as_str() == "git_push",
            ),
            [
                r#""*_push" in "tools" matches no tool"#,
                r#""git_status" in "tools" matches no tool"#,
            ]
        );
    }

    /// A tool that has another name than it would have with nobody beside it.
    #[test]
    fn what_hides_goes_by_the_natural_name_too() {
        let settings = settings(&[
            ("s_get_user", Some(Visibility::Hidden), &["word"], true),
            ("s_get_u*", Some(Visibility::OnDemand), &["other"], false),
            ("s_put_user", Some(Visibility::OnDemand), &[], true),
        ]);
        let (function, natural) = ("s_get_user_7e0bb0c2", "s_get_user");
        assert!(!settings.hides(function, None));
        assert!(settings.hides(function, Some(natural)));
        assert_eq!(settings.keywords(function), ["other"]);
        assert!(!settings.always_on(function));
        let put = ("s_put_user_00000000", Some("s_put_user"));
        assert!(!settings.hides(put.0, put.1));
        assert_eq!(
            settings.unmatched([(function, Some(natural)), put].into_iter(), |_| false),
            [r#""s_put_user" in "tools" matches no tool"#]
        );
    }
}
