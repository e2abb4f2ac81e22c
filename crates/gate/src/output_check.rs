//! Checks results against the `outputSchema` of their tools.

use callgate_catalog::Tool;
use callgate_schema::Fit;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Of results from this many bytes of JSON on, only two in the process are checked at a time:
/// each takes up to 200 MB.
const LARGE: usize = 1 << 20;
static LARGE_RESULTS: Semaphore = Semaphore::const_new(2);

/// Checks a value against its tool's `outputSchema`, and returns it.
pub(crate) async fn check_output(tool: &Tool, value: Box<RawValue>) -> (Box<RawValue>, Fit) {
    let Some(declared) = &tool.definition.output_schema else {
        return (value, Fit::Fits);
    };
    let permit = if value.get().len() >= LARGE {
        // The semaphore is never closed.
        LARGE_RESULTS.acquire().await.ok()
    } else {
        None
    };
    let schema = declared.clone();
    let fitted = spawn_blocking(move || {
        let _permit = permit;
        let fit = schema.fit(value.get());
        (value, fit)
    });
    fitted.await.unwrap_or_else(|_| {
        let ending = Fit::Unknown("the host is ending".to_owned());
        (RawValue::NULL.to_owned(), ending)
    })
}
