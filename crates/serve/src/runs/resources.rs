//! Whole outputs of runs as resources, and parts of them for `wait`.

use std::ops::Range;

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::Runs;
use super::arguments::Part;
use super::outcome::output_uri;
use super::served_run::ServedRun;

/// The kept outputs.
pub(crate) fn list(runs: &Runs) -> Vec<Resource> {
    let ended = runs.store.ended();
    ended.iter().filter_map(|run| resource(run)).collect()
}

/// The form of the outputs' URIs.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("callgate://runs/{run}/output", "run-output")
            .with_title("Output of a run")
            .with_description(
                "The whole output of a script, or result of a call, if the answer cuts it",
            )
            .with_mime_type("text/plain"),
    ]
}

/// The output at a URI.
pub(crate) fn read(runs: &Runs, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let run = uri.strip_prefix("callgate://runs/");
    let run = run.and_then(|rest| rest.strip_suffix("/output"));
    let outcome = run.and_then(|run| runs.store.get(run)?.outcome());
    let whole = outcome.and_then(|outcome| outcome.whole.clone());
    let whole = whole.ok_or_else(|| {
        ErrorData::resource_not_found(
            "no run's output has this URI: the URI is wrong, the output was not cut, or the run ended \
             too long ago",
            Some(json!({ "uri": uri })),
        )
    })?;
    let contents = ResourceContents::text(&*whole, uri).with_mime_type("text/plain");
    Ok(ReadResourceResult::new(vec![contents]))
}

/// A part of the output as text, and a line about the rest; `None` if there is no such part.
pub(crate) fn part(whole: &str, part: Part) -> Option<(String, String)> {
    let range = range(whole, part)?;
    let (total, rest) = (whole.len(), whole.len() - range.end);
    let (start, end) = (range.start, range.end);
    let described = match rest {
        0 => format!("[bytes {start} to {total} of {total}: the end]"),
        _ => format!("[bytes {start} to {end} of {total}; {rest} remain, from offset {end} on]"),
    };
    Some((whole.get(range).unwrap_or_default().to_owned(), described))
}

/// The range of a part in whole characters: at least one, from the offset on.
fn range(whole: &str, part: Part) -> Option<Range<usize>> {
    if part.offset > whole.len() {
        return None;
    }
    let start = whole.ceil_char_boundary(part.offset);
    let end = start.saturating_add(part.bytes).min(whole.len());
    let end = match whole.floor_char_boundary(end) {
        end if end > start || start == whole.len() => end,
        _ => whole.ceil_char_boundary(start + 1),
    };
    Some(start..end)
}

fn resource(run: &ServedRun) -> Option<Resource> {
    let outcome = run.outcome()?;
    let whole = outcome.whole.as_ref()?;
    let resource = Resource::new(output_uri(&run.id), format!("{}-output", run.id))
        .with_title("Output of a run")
        .with_description(format!("the run that ended at {}", outcome.ended))
        .with_mime_type("text/plain")
        .with_size(whole.len() as u64);
    Some(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_whole_characters() {
        for (offset, bytes, expected) in [
            (0, 2, "a[bytes 0 to 1 of 8; 7 remain, from offset 1 on]"),
            (1, 1, "ü[bytes 1 to 3 of 8; 5 remain, from offset 3 on]"),
            (2, 1, "b[bytes 3 to 4 of 8; 4 remain, from offset 4 on]"),
            (4, 100, "🎉[bytes 4 to 8 of 8: the end]"),
            (0, usize::MAX, "aüb🎉[bytes 0 to 8 of 8: the end]"),
            (8, 1, "[bytes 8 to 8 of 8: the end]"),
            (9, 1, "none"),
        ] {
            let part = part("aüb🎉", Part { offset, bytes });
            let part = part.map_or("none".to_owned(), |(text, rest)| text + &rest);
            assert_eq!(part, expected, "{offset} {bytes}");
        }
    }
}
