//! The rules of one run: `--allow`, `--ask` and `--deny`.

use callgate::faces::{Effect, Rule};
use clap::Args;
use serde_json::Value;

use crate::help;

#[derive(Debug, Default, Args)]
pub struct RuleArgs {
    /// Allow the calls that this rule matches, even those that an ask rule matches (deny
    /// rules still win): a pattern such as 'git_*', or a JSON object as in `permissions`; may be
    /// repeated
    #[arg(long, value_name = "RULE", help_heading = help::RULES,
          value_parser = |text: &str| rule(Effect::Grant, "--allow", text))]
    pub allow: Vec<Rule>,

    /// Ask about the calls that this rule matches, even if the configuration allows them
    /// (`--allow` and answers in this run still win); may be repeated
    #[arg(long, value_name = "RULE", help_heading = help::RULES,
          value_parser = |text: &str| rule(Effect::Ask, "--ask", text))]
    pub ask: Vec<Rule>,

    /// Deny the calls that this rule matches; may be repeated
    #[arg(long, value_name = "RULE", help_heading = help::RULES,
          value_parser = |text: &str| rule(Effect::Deny, "--deny", text))]
    pub deny: Vec<Rule>,
}

impl RuleArgs {
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.allow.iter().chain(&self.ask).chain(&self.deny)
    }
}

/// Reads a rule as in the configuration, but a pattern needs no quotation marks.
fn rule(effect: Effect, flag: &'static str, text: &str) -> Result<Rule, String> {
    let read = if text.trim_start().starts_with('{') {
        Rule::parse_json(effect, text)
    } else {
        Rule::parse(effect, &Value::from(text))
    };
    let rule = read.map_err(|error| error.to_string())?;
    Ok(rule.written_in(flag))
}
