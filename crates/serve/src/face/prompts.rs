//! The skills that a gate was made for, as prompts: a client's user picks one, and
//! its instructions become the user's message.

use callgate::Gate;
use callgate_policy::nearest;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, JsonObject, Prompt, PromptMessage, Role,
};

use crate::arguments::shown;

/// All of them.
pub(crate) fn list(gate: &Gate) -> Vec<Prompt> {
    let skills = gate.skills().iter();
    let prompt = skills.map(|skill| Prompt::new(&skill.name, Some(&skill.description), None));
    prompt.collect()
}

/// The one that is asked for.
///
/// # Errors
///
/// That there is none of this name, or that it was given arguments.
pub(crate) fn get(
    gate: &Gate,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let name = &request.name;
    let skills = gate.skills();
    let Some(skill) = skills.iter().find(|skill| skill.name == *name) else {
        let near = nearest(name, skills.iter().map(|skill| skill.name.as_str()));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let message = format!("no prompt is named {}{near}", shown(name));
        return Err(ErrorData::invalid_params(message, None));
    };
    if !request.arguments.as_ref().is_none_or(JsonObject::is_empty) {
        let message = format!("the prompt {} takes no arguments", skill.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    let message = PromptMessage::new_text(Role::User, &skill.body);
    Ok(GetPromptResult::new(vec![message]).with_description(&skill.description))
}
