//! What a tool answered, held to its `outputSchema`: the types that scripts are
//! checked against come from there.

use callgate_schema::{Declared, Fit};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::target::Target;

/// From this size on, in bytes of JSON, only so many results of the whole process
/// are looked at, at a time: while it is, a value takes up to 200 MB.
const LARGE: usize = 1 << 20;
static LARGE_ONES: Semaphore = Semaphore::const_new(2);

/// What is wrong with what a tool answered.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) message: String,
    /// JSON.
    problems: String,
}

/// What came of a check.
#[derive(Debug)]
pub(crate) enum Checked {
    /// There is nothing against it.
    Fits,
    /// It is not what the schema says.
    Mismatch(Mismatch),
    /// It was not held to the schema, for this reason.
    Unchecked(String),
}

/// Holds a value to a tool's schema. `structured` says whether it was answered as
/// `structuredContent`, as it must be where there is a schema.
pub(crate) async fn check(
    target: &Target,
    value: Box<RawValue>,
    structured: bool,
) -> (Box<RawValue>, Checked) {
    let Some(declared) = &target.output_schema else {
        return (value, Checked::Fits);
    };
    let (value, fit) = fit(target, declared, value).await;
    let checked = match fit {
        Fit::Fits => Checked::Fits,
        Fit::Unknown(reason) => Checked::Unchecked(reason),
        Fit::Wrong { problems } => Checked::Mismatch(Mismatch::of(&problems, structured)),
    };
    (value, checked)
}

async fn fit(target: &Target, declared: &Declared, value: Box<RawValue>) -> (Box<RawValue>, Fit) {
    let bytes = value.get().len();
    if declared.is_quick(bytes) {
        let fit = declared.fit(value.get());
        return (value, fit);
    }
    let permit = match bytes >= LARGE {
        // It is never closed.
        true => LARGE_ONES.acquire().await.ok(),
        false => None,
    };
    let is_new = !declared.is_compiled();
    let schema = declared.clone();
    let fitted = spawn_blocking(move || {
        let _permit = permit;
        let fit = schema.fit(value.get());
        (value, fit)
    });
    let fitted = fitted.await;
    if let Some(fault) = is_new.then(|| declared.fault()).flatten() {
        tracing::warn!(
            server = target.server,
            tool = target.tool,
            reason = fault,
            "results are not held to an outputSchema that is not taken"
        );
    }
    fitted.unwrap_or_else(|_ended| {
        let ending = Fit::Unknown("the host is ending".to_owned());
        (RawValue::NULL.to_owned(), ending)
    })
}

impl Mismatch {
    fn of(problems: &[String], structured: bool) -> Self {
        let mut message = match structured {
            true => "the call was made, and its result does not fit the tool's outputSchema",
            false => {
                "the call was made; the tool has an outputSchema and answered without \
                 structuredContent, and what it answered does not fit"
            }
        }
        .to_owned();
        if let Some(first) = problems.first() {
            message.push_str(": ");
            message.push_str(first);
        }
        Self {
            message,
            problems: serde_json::Value::from(problems).to_string(),
        }
    }

    /// The data of the error, with the result.
    pub(crate) fn data(&self, result: &RawValue) -> Option<Box<RawValue>> {
        let problems = &self.problems;
        RawValue::from_string(format!(r#"{{"problems":{problems},"result":{result}}}"#)).ok()
    }
}
