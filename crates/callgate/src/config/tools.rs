//! `tools`: visibility, keywords and always-on of tools, by patterns over their names.

use std::collections::BTreeSet;
use std::sync::Arc;

use callgate_catalog::{Catalog, Tool};
use callgate_policy::{Finding, OtherNames, Pattern, nearest_tool};
use jsonc_parser::ast::Value;
use serde::{Deserialize, Deserializer};

use super::tree::Tree;
use crate::names::did_you_mean;

/// The most bytes of one keyword.
const MAX_KEYWORD: usize = 100;

/// Reads `tools`.
pub(super) fn read(tree: &Tree<'_>, section: &Value<'_>, settings: &mut ToolSettings) {
    for member in tree.members(section) {
        let setting = tree.read(&member.value).unwrap_or_default();
        if let Some(pattern) = tree.pattern(member) {
            settings.set(pattern, setting);
        }
    }
}

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

/// Visibility and keywords of tools, by patterns over their generated names and long names.
///
/// Several patterns may match a tool: it has the keywords of all of them, and is always on or
/// hidden if one of them says so; to hide, a pattern may also match one of the tool's other names
/// ([`OtherNames`]). Of the other visibilities, that of the first pattern with the most characters
/// besides `*` counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    entries: Vec<(Pattern, ToolSetting)>,
}

/// The settings of one pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolSetting {
    /// The visibility of its tools. Default: as other patterns say, else [`Visibility::Native`].
    pub visibility: Option<Visibility>,
    /// Words by which its tools are found besides those of their definitions.
    #[serde(deserialize_with = "keywords")]
    pub keywords: Vec<String>,
    /// Its tools are shown even where not all of them can be, and where they are otherwise
    /// on demand.
    pub always_on: bool,
}

/// The places where a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Visibility {
    /// All places.
    #[default]
    Native,
    /// Search, details and declarations, but not the tools that are passed through one by one.
    OnDemand,
    /// Nowhere: it cannot be seen, found or called.
    Hidden,
}

impl ToolSettings {
    /// Adds these settings.
    pub fn add(&mut self, more: &Self) {
        self.entries.extend(more.entries.iter().cloned());
    }

    /// Adds a setting for the tools of a pattern.
    pub fn set(&mut self, pattern: Pattern, setting: ToolSetting) {
        self.entries.push((pattern, setting));
    }

    /// The visibility of this function's tool.
    pub fn visibility(&self, function: &str, names: Option<&Arc<OtherNames>>) -> Visibility {
        let mut decided = Visibility::default();
        let mut max = None;
        for (pattern, setting) in self.of(function, names) {
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

    /// True if the tool of this function, with these other names, is hidden.
    pub fn hides(&self, function: &str, other_names: &OtherNames) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(pattern, setting)| {
            setting.hides() && (pattern.matches(function) || other_names.any_matches(pattern))
        })
    }

    /// Words by which this function's tool is found, each once.
    pub fn keywords<'s>(
        &'s self,
        function: &'s str,
        names: Option<&'s Arc<OtherNames>>,
    ) -> Vec<&'s str> {
        let words = self
            .of(function, names)
            .flat_map(|(_, setting)| &setting.keywords);
        let words: BTreeSet<&str> = words.map(String::as_str).collect();
        words.into_iter().collect()
    }

    /// True if this function's tool is shown even where not all can be.
    pub fn always_on(&self, function: &str, names: Option<&Arc<OtherNames>>) -> bool {
        self.of(function, names)
            .any(|(_, setting)| setting.always_on)
    }

    /// The patterns that match none of these tools, hidden ones among them, and none that
    /// `may` be there.
    pub(crate) fn unmatched(
        &self,
        catalog: &Catalog,
        may: impl Fn(&Pattern) -> bool,
    ) -> Vec<Finding> {
        let unmatched = self.entries.iter().filter(|(pattern, setting)| {
            let is_for = |tool: &Tool| {
                pattern.means(&tool.function, Some(&tool.other_names))
                    || setting.hides() && tool.other_names.any_matches(pattern)
            };
            !catalog.with_hidden().any(is_for) && !may(pattern)
        });
        let names = || {
            let tools = catalog.tools().iter();
            tools.map(|tool| (tool.function.as_str(), tool.definition.server.as_str()))
        };
        let unmatched = unmatched.map(|(pattern, setting)| {
            let what = format!("{:?} in \"tools\"", pattern.as_str());
            let near = nearest_tool(pattern.as_str(), names);
            Finding {
                message: format!("{what} matches no tool{}", did_you_mean(near.as_deref())),
                what,
                forbids: setting.hides(),
            }
        });
        unmatched.collect()
    }

    fn of<'s>(
        &'s self,
        function: &'s str,
        names: Option<&'s Arc<OtherNames>>,
    ) -> impl Iterator<Item = &'s (Pattern, ToolSetting)> {
        let entries = self.entries.iter();
        entries.filter(move |(pattern, _)| pattern.means(function, names))
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
            settings.set(Pattern::new(pattern).expect("a pattern"), setting);
        }
        settings
    }

    fn messages(found: Vec<Finding>) -> Vec<String> {
        found.into_iter().map(|finding| finding.message).collect()
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
                settings.visibility(function, None),
                visibility,
                "{function}"
            );
            let hides = settings.hides(function, &OtherNames::new(None, "other"));
            assert_eq!(hides, visibility == Visibility::Hidden);
        }
        assert_eq!(settings.keywords("git_log", None), ["any", "vcs"]);
        assert_eq!(settings.keywords("fs_read", None), ["any", "vcs"]);
        assert!(settings.always_on("git_status", None) && !settings.always_on("git_log", None));
        assert_eq!(
            messages(
                settings.unmatched(&catalog(&[("git", "log"), ("fs", "read")]), |pattern| {
                    pattern.as_str() == "git_push"
                })
            ),
            [
                r#""*_push" in "tools" matches no tool"#,
                r#""git_status" in "tools" matches no tool"#,
            ]
        );
    }

    /// A tool that has one name with another beside it, and one without.
    #[test]
    fn hidden_setting_applies_to_all_names() {
        let settings = settings(&[
            ("s_get_user", Some(Visibility::Hidden), &["word"], true),
            ("s_get_u*", Some(Visibility::OnDemand), &["other"], false),
            (
                "s_put_user_ba0d75ee",
                Some(Visibility::Hidden),
                &["word"],
                true,
            ),
            ("s_cut_user_a1a1a1a1", Some(Visibility::OnDemand), &[], true),
        ]);
        let catalog = catalog(&[
            ("s", "get-user"),
            ("s", "get_user"),
            ("s", "put_user"),
            ("s", "cut_user"),
        ]);
        let hidden: Vec<&str> = catalog
            .tools()
            .iter()
            .filter(|tool| settings.hides(&tool.function, &tool.other_names))
            .map(|tool| tool.function.as_str())
            .collect();
        assert_eq!(
            hidden,
            ["s_get_user_c97c69b6", "s_get_user_7e0bb0c2", "s_put_user"]
        );
        assert_eq!(settings.keywords("s_get_user_7e0bb0c2", None), ["other"]);
        assert!(settings.keywords("s_put_user", None).is_empty());
        assert!(!settings.always_on("s_put_user", None));
        assert_eq!(
            messages(settings.unmatched(&catalog, |_| false)),
            [r#""s_cut_user_a1a1a1a1" in "tools" matches no tool"#]
        );
    }
}
