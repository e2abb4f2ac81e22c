//! `tools`: what is set for tools by patterns over their generated names.

use callgate_policy::Pattern;
use jsonc_parser::ast::ObjectProp;

use super::error::ConfigErrorKind;
use super::keys;
use super::reader::{Reader, name_range};
use crate::tool_settings::{ToolSetting, ToolSettings, Visibility};

/// Bytes of one keyword.
const MAX_KEYWORD: usize = 100;

pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, tools: &mut ToolSettings) {
    let what = "\"tools\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    reader.no_duplicates(object, what);
    for property in &object.properties {
        let setting = setting(reader, property, what);
        match Pattern::new(property.name.as_str()) {
            Ok(pattern) => tools.set(pattern, setting),
            Err(error) => reader.error(
                name_range(property),
                ConfigErrorKind::Pattern,
                error.to_string(),
            ),
        }
    }
}

fn setting(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> ToolSetting {
    let mut setting = ToolSetting::default();
    let Some(object) = reader.object(property, what) else {
        return setting;
    };
    let what = format!("\"{}\" in {what}", property.name.as_str());
    for property in reader.properties(object, &what, &keys::TOOL) {
        match property.name.as_str() {
            "visibility" => {
                setting.visibility = reader.parsed(property, &what, str::parse::<Visibility>);
            }
            "keywords" => {
                for (keyword, range) in reader.strings(property, &what) {
                    if keyword.trim().is_empty() || keyword.len() > MAX_KEYWORD {
                        let message = format!(
                            "a keyword of {what} must have 1 to {MAX_KEYWORD} bytes of text"
                        );
                        reader.error(range, ConfigErrorKind::Value, message);
                    } else {
                        setting.keywords.push(keyword.to_owned());
                    }
                }
            }
            _ => setting.always_on = reader.boolean(property, &what).unwrap_or_default(),
        }
    }
    setting
}
