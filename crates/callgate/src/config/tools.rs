//! `tools`: visibility, keywords and always-on of tools, by patterns over their names.

use std::collections::{BTreeMap, BTreeSet};

use callgate_catalog::{Catalog, Tool};
use callgate_policy::{KnownTools, Pattern, ToolName, Unmatched};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::fields::PatternKey;

/// The maximum length of a keyword, in bytes.
const MAX_KEYWORD: usize = 100;

fn keywords<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let keywords = Vec::<String>::deserialize(deserializer)?;
    if keywords
        .iter()
        .any(|word| word.trim().is_empty() || word.len() > MAX_KEYWORD)
    {
        let wrong = format!("must have 1 to {MAX_KEYWORD} bytes of text in each keyword");
        return Err(serde::de::Error::custom(wrong));
    }
    Ok(keywords)
}

/// Visibility and keywords of tools, by patterns over their names.
///
/// Several patterns may match a tool: it has the keywords of all of them, and is always on or
/// hidden if one of them says so; patterns that hide match as deny rules do. Of the other
/// visibilities, that of the first pattern with the most characters besides `*` counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "IndexMap<PatternKey, ToolSetting>")]
#[schemars(with = "BTreeMap<String, ToolSetting>")]
pub struct ToolSettings {
    entries: Vec<(Pattern, ToolSetting)>,
}

impl From<IndexMap<PatternKey, ToolSetting>> for ToolSettings {
    fn from(entries: IndexMap<PatternKey, ToolSetting>) -> Self {
        let entries = entries.into_iter();
        Self {
            entries: entries.map(|(key, setting)| (key.0, setting)).collect(),
        }
    }
}

/// The settings of one pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolSetting {
    /// The places where its tools are shown. Default: as other patterns say, else `native`.
    pub visibility: Option<Visibility>,
    /// Further words to find the tools by; each 1 to 100 bytes. Default: none.
    #[serde(deserialize_with = "keywords")]
    pub keywords: Vec<String>,
    /// Declare its tools where not all can be, and list them in `native` mode. Default: `false`.
    pub always_on: bool,
}

/// The places where a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Visibility {
    /// Wherever tools are shown.
    #[default]
    Native,
    /// In search, details and declarations, but not passed through in `native` mode.
    OnDemand,
    /// In no list, search or declaration, and not callable.
    Hidden,
}

impl ToolSettings {
    /// Adds these settings.
    pub fn add(&mut self, more: &Self) {
        self.entries.extend(more.entries.iter().cloned());
    }

    /// The visibility of a tool.
    pub fn visibility(&self, tool: ToolName<'_>) -> Visibility {
        let mut decided = Visibility::default();
        let mut max = None;
        for (pattern, setting) in self.of(tool) {
            let literal = pattern.as_str().chars().filter(|c| *c != '*').count();
            match setting.visibility {
                Some(Visibility::Hidden) => return Visibility::Hidden,
                Some(visibility) if max.is_none_or(|max| literal > max) => {
                    (decided, max) = (visibility, Some(literal));
                }
                _ => {}
            }
        }
        decided
    }

    /// True if a tool is hidden.
    pub fn hides(&self, tool: ToolName<'_>) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(pattern, setting)| setting.hides() && pattern.matches(tool, false))
    }

    /// Words by which a tool is found, each once.
    pub fn keywords(&self, tool: ToolName<'_>) -> Vec<&str> {
        let words = self.of(tool).flat_map(|(_, setting)| &setting.keywords);
        let words: BTreeSet<&str> = words.map(String::as_str).collect();
        words.into_iter().collect()
    }

    /// True if a tool is shown even where not all can be.
    pub fn always_on(&self, tool: ToolName<'_>) -> bool {
        self.of(tool).any(|(_, setting)| setting.always_on)
    }

    /// The patterns that match no tool of the catalog, hidden ones among them.
    pub(crate) fn unmatched(&self, catalog: &Catalog, known: &KnownTools<'_>) -> Vec<Unmatched> {
        let unmatched = self.entries.iter().filter(|(pattern, setting)| {
            let is_for = |tool: &Tool| pattern.matches(tool.name(), !setting.hides());
            !catalog.with_hidden().any(is_for) && !known.may_come(pattern.as_str())
        });
        let unmatched = unmatched.map(|(pattern, setting)| {
            let what = format!("{:?} in \"tools\"", pattern.as_str());
            let advice = (known.advice)(pattern.as_str());
            Unmatched {
                message: format!("{what} matches no tool{advice}"),
                what,
                forbids: setting.hides(),
            }
        });
        unmatched.collect()
    }

    fn of(&self, tool: ToolName<'_>) -> impl Iterator<Item = &(Pattern, ToolSetting)> {
        let entries = self.entries.iter();
        entries.filter(move |(pattern, _)| pattern.matches(tool, true))
    }
}

impl ToolSetting {
    fn hides(&self) -> bool {
        self.visibility == Some(Visibility::Hidden)
    }
}

#[cfg(test)]
mod tests {
    use callgate_catalog::ToolDefinition;
    use callgate_policy::UnlistedServer;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn catalog(tools: &[(&str, &str)]) -> Catalog {
        let tools = tools.iter().map(|(server, name)| {
            let raw = json!({ "name": name, "inputSchema": { "type": "object" } });
            ToolDefinition::parse(server, &raw).expect("a tool")
        });
        Catalog::build(tools.collect())
    }

    fn settings(entries: &[(&str, Option<Visibility>, &[&str], bool)]) -> ToolSettings {
        let mut settings = ToolSettings::default();
        for (pattern, visibility, keywords, always_on) in entries {
            let setting = ToolSetting {
                visibility: *visibility,
                keywords: keywords.iter().map(|&word| word.to_owned()).collect(),
                always_on: *always_on,
            };
            let pattern = Pattern::new(pattern).expect("a pattern");
            settings.entries.push((pattern, setting));
        }
        settings
    }

    fn name(function: &str) -> ToolName<'_> {
        ToolName {
            function,
            aliases: &[],
            server: "",
            tool: "",
        }
    }

    /// The messages about patterns without a match, if these servers have not listed their tools.
    fn unmatched(
        settings: &ToolSettings,
        catalog: &Catalog,
        unlisted: &[UnlistedServer<'_>],
    ) -> Vec<String> {
        let known = KnownTools {
            tools: Vec::new(),
            uncallable: Vec::new(),
            unlisted: unlisted.to_vec(),
            advice: &|_| String::new(),
            now: Timestamp::UNIX_EPOCH,
        };
        let unmatched = settings.unmatched(catalog, &known);
        unmatched.into_iter().map(|it| it.message).collect()
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
            assert_eq!(
                settings.visibility(name(function)),
                visibility,
                "{function}"
            );
            let hides = settings.hides(name(function));
            assert_eq!(hides, visibility == Visibility::Hidden);
        }
        assert_eq!(settings.keywords(name("git_log")), ["any", "vcs"]);
        assert_eq!(settings.keywords(name("fs_read")), ["any", "vcs"]);
        assert!(settings.always_on(name("git_status")) && !settings.always_on(name("git_log")));
        assert_eq!(
            unmatched(&settings, &catalog(&[("git", "log"), ("fs", "read")]), &[]),
            [
                r#""*_push" in "tools" matches no tool"#,
                r#""git_status" in "tools" matches no tool"#,
                r#""git_push" in "tools" matches no tool"#,
            ]
        );
    }

    #[test]
    fn hiding_pattern_matches_the_aliases() {
        let settings = settings(&[
            ("s_get_user", Some(Visibility::Hidden), &["word"], true),
            ("s_get_u*", Some(Visibility::OnDemand), &["other"], false),
            ("s/put_user", Some(Visibility::Hidden), &[], false),
            ("s_put_user_ba0d75ee", Some(Visibility::Hidden), &[], false),
            ("t_cut_user", Some(Visibility::Hidden), &[], false),
        ]);
        let catalog = catalog(&[("s", "get-user"), ("s", "get_user"), ("s", "put_user")]);
        let tools = || catalog.tools().iter();
        let hidden = tools().filter(|tool| settings.hides(tool.name()));
        let hidden: Vec<&str> = hidden.map(|tool| tool.function.as_str()).collect();
        assert_eq!(
            hidden,
            ["s_get_user_c97c69b6", "s_get_user_7e0bb0c2", "s_put_user"]
        );
        assert_eq!(settings.keywords(catalog.tools()[1].name()), ["other"]);
        assert!(!tools().any(|tool| settings.always_on(tool.name())));
        let unlisted = UnlistedServer {
            server: "t",
            prefix: Some("t_"),
        };
        assert_eq!(
            unmatched(&settings, &catalog, &[unlisted]),
            [r#""s_put_user_ba0d75ee" in "tools" matches no tool"#]
        );
    }
}
