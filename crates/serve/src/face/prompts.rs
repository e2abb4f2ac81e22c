//! The gate's skills as prompts: the instructions of the skill that a user picks become the user's
//! message.

use callgate::Gate;
use callgate_text::nearest;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, JsonObject, Prompt, PromptMessage, Role,
};

use crate::arguments::quoted;

pub(crate) fn list(gate: &Gate) -> Vec<Prompt> {
    let skills = gate.view().skills().iter();
    let prompts = skills.map(|skill| Prompt::new(&skill.name, Some(&skill.description), None));
    prompts.collect()
}

pub(crate) fn get(
    gate: &Gate,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let name = &request.name;
    let skills = gate.view().skills();
    let Some(skill) = skills.iter().find(|skill| skill.name == *name) else {
        let near = nearest(name, skills.iter().map(|skill| skill.name.as_str()));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let message = format!("no prompt is named {}{near}", quoted(name));
        return Err(ErrorData::invalid_params(message, None));
    };
    if !request.arguments.as_ref().is_none_or(JsonObject::is_empty) {
        let message = format!("the prompt {} takes no arguments", skill.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    let message = PromptMessage::new_text(Role::User, &skill.body);
    Ok(GetPromptResult::new(vec![message]).with_description(&skill.description))
}
