//! A server's form.

use callgate::Refusal;
use callgate::present::{one_line, quoted};
use serde_json::{Map, Value, json};

use super::field::{Field, plain};
use super::{ask, choose, inline, show};
use crate::terminal::Conversation;

/// The most fields of a form.
const MAX_FIELDS: usize = 50;
/// Characters that the review shows of one answer.
const MAX_REVIEWED: usize = 500;
/// Characters of a name that can stand before the answer.
const MAX_PROMPT: usize = 40;

/// Asks field by field, shows all answers, and returns them after a yes.
pub async fn answer(
    conversation: &mut Conversation,
    from: &str,
    message: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let fields = fields(&params["requestedSchema"]).map_err(Refusal::Failed)?;
    let text = format!(
        "\n┌ {from} wants this from you:\n{message}├ What you answer goes to that server: no \
         passwords, no keys.\n├ An empty line takes the default or leaves the field out; !no \
         declines, !cancel gives up.\n",
    );
    show(conversation, &text).await?;
    loop {
        let mut content = Map::new();
        for field in &fields {
            if let Some(value) = fill_in(conversation, field).await? {
                content.insert(field.name.clone(), value);
            }
        }
        show(conversation, &review(&content, conversation.columns())).await?;
        let prompt = "└ send this? [y] send  [e] fill it in again  [n] decline: ";
        let read = |said: &str| match said {
            "y" | "yes" => Some(true),
            "e" => Some(false),
            _ => None,
        };
        if choose(conversation, prompt, &["y", "e", "n"], read).await? {
            return Ok(json!({ "action": "accept", "content": content }));
        }
    }
}

async fn fill_in(conversation: &mut Conversation, field: &Field) -> Result<Option<Value>, Refusal> {
    let columns = conversation.columns();
    show(conversation, &head(field, columns)).await?;
    let prompt = if is_plain(&field.name) {
        format!("├ {}: ", field.name)
    } else {
        "├ your answer: ".to_owned()
    };
    loop {
        let line = ask(conversation, &prompt).await?;
        match field.answer(&line) {
            Ok(value) => return Ok(value),
            Err(fault) => show(conversation, &quoted(&inline(&fault), columns)).await?,
        }
    }
}

/// True if a name can stand in our line: it is short and one word.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= MAX_PROMPT && name.chars().all(plain)
}

/// The text before a field's prompt.
fn head(field: &Field, columns: Option<usize>) -> String {
    let mut text = String::from("\n");
    if !is_plain(&field.name) {
        text += &quoted(&inline(&field.name), columns);
    }
    let said = [field.title.as_deref(), field.description.as_deref()];
    for said in said.into_iter().flatten() {
        text += &quoted(said, columns);
    }
    for (index, choice) in field.choices().iter().enumerate() {
        let title = match &choice.title {
            Some(title) => format!("{title} ({})", choice.value),
            None => choice.value.clone(),
        };
        text += &quoted(&format!("{}) {}", index + 1, inline(&title)), columns);
    }
    text += &quoted(&format!("({})", inline(&field.wants())), columns);
    text
}

fn review(content: &Map<String, Value>, columns: Option<usize>) -> String {
    let mut text = String::from("\n├ This is what the server gets:\n");
    if content.is_empty() {
        text.push_str("├ nothing but that you agree\n");
    }
    for (name, value) in content {
        let shown = one_line(&plain(value), MAX_REVIEWED);
        text += &quoted(&format!("{}: {shown}", inline(name)), columns);
    }
    text
}

/// The fields of a form, without optional ones that cannot be filled in here.
fn fields(schema: &Value) -> Result<Vec<Field>, String> {
    let none = Map::new();
    let properties = schema
        .get("properties")
        .map_or(Some(&none), Value::as_object);
    let properties = properties.ok_or("the form's properties are not an object")?;
    if properties.len() > MAX_FIELDS {
        return Err(format!("the form has more than {MAX_FIELDS} fields"));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let mut undescribed = required
        .iter()
        .filter(|name| !properties.contains_key(**name));
    if let Some(name) = undescribed.next() {
        let fault = format!("the form requires {name:?} and does not describe it");
        return Err(fault);
    }
    let mut fields = Vec::new();
    for (name, schema) in properties {
        let required = required.contains(&name.as_str());
        match Field::read(name, schema, required) {
            Some(field) => fields.push(field),
            None if required => {
                return Err(format!("{name:?} is required and cannot be filled in here"));
            }
            None => {}
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn form_shows_its_fields() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Name", "description": "As in\nthe file" },
                "color": { "type": "string", "enum": ["red", "a\nb"], "default": "red" },
                "nested": { "type": "object" },
            },
            "required": ["name"],
        });
        let fields = fields(&schema).expect("a form");
        let text: String = fields.iter().map(|field| head(field, None)).collect();
        expect![[r#"

            │ Name
            │ As in
            │ the file
            │ (text)

            │ 1) red
            │ 2) a b
            │ (one of these, by number, optional, default red)
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn unfillable_form_says_why() {
        let many: Map<String, Value> = (0..51)
            .map(|n| (n.to_string(), json!({ "type": "string" })))
            .collect();
        for (schema, expected) in [
            (
                json!({ "properties": { "x": { "type": "object" } }, "required": ["x"] }),
                r#""x" is required and cannot be filled in here"#,
            ),
            (
                json!({ "properties": {}, "required": ["gone"] }),
                r#"the form requires "gone" and does not describe it"#,
            ),
            (
                json!({ "properties": many }),
                "the form has more than 50 fields",
            ),
        ] {
            assert_eq!(fields(&schema).err().as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_review_shows_every_answer() {
        let content = json!({ "a": "x\ny", "b": [], "c": true, "long": "é".repeat(600) });
        let content = content.as_object().expect("an object");
        let text = review(content, None);
        assert!(
            text.starts_with(
                "\n├ This is what the server gets:\n│ a: x\\ny\n│ b: none\n│ c: yes\n│ long: "
            ),
            "{text}"
        );
        assert!(text.ends_with("é…\n"), "{text}");
        assert!(review(&Map::new(), None).contains("nothing but that you agree"));
    }

    #[test]
    fn only_plain_names_become_prompts() {
        for name in ["a b", "", "é", "a\n", &"x".repeat(41)] {
            assert!(!is_plain(name), "{name:?}");
        }
        assert!(is_plain("first_name-2.x"));
    }
}
