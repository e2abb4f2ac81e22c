//! The whole output of runs, as resources that can be read by parts.

use std::ops::Range;

use rmcp::model::{
    ErrorData, MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;
use url::Url;

use super::arguments::Part;
use super::run::Run;
use super::store::Store;

/// Where the whole output of this run is.
pub(crate) fn uri(run: &str) -> String {
    format!("callgate://runs/{run}/output")
}

/// The outputs there are.
pub(crate) fn list(store: &Store) -> Vec<Resource> {
    store
        .ended()
        .iter()
        .filter_map(|run| resource(run))
        .collect()
}

/// The form of their addresses.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("callgate://runs/{run}/output{?offset,bytes}", "run-output")
            .with_title("Output of a run")
            .with_description(
                "What a script printed and returned, in whole where its report cuts it: from byte \
                 offset on, at most so many bytes",
            )
            .with_mime_type("text/plain"),
    ]
}

/// The output, or the part of it, at this address.
///
/// # Errors
///
/// That there is nothing there.
pub(crate) fn read(store: &Store, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let none = || {
        ErrorData::resource_not_found(
            "no output of a run is there: it is no address of one, its output was not cut, or it \
             ended too long ago",
            Some(json!({ "uri": uri })),
        )
    };
    let (run, part) = parse(uri).ok_or_else(none)?;
    let outcome = store.get(&run).and_then(|run| run.outcome());
    let whole = outcome.and_then(|outcome| outcome.whole.clone());
    let whole = whole.ok_or_else(none)?;
    let Some(part) = part else {
        let contents = ResourceContents::text(&*whole, uri).with_mime_type("text/plain");
        return Ok(ReadResourceResult::new(vec![contents]));
    };
    let range = range(&whole, part).ok_or_else(|| {
        let message = format!(
            "the output has {} bytes, and no offset {}",
            whole.len(),
            part.offset
        );
        ErrorData::invalid_params(message, Some(json!({ "uri": uri })))
    })?;
    let rest = whole.len() - range.end;
    let mut meta = MetaObject::new();
    let said = json!({
        "offset": range.start,
        "bytes": range.len(),
        "total": whole.len(),
        "rest": rest,
        "next": (rest > 0).then(|| format!("{}?offset={}&bytes={}", self::uri(&run), range.end, part.bytes)),
    });
    meta.insert("callgate/part".to_owned(), said);
    let text = whole.get(range).unwrap_or_default();
    let contents = ResourceContents::text(text, uri)
        .with_mime_type("text/plain")
        .with_meta(meta);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// A part of the output as text, and what of it remains; `None` if there is no
/// such part.
pub(crate) fn part(whole: &str, part: Part) -> Option<(String, String)> {
    let range = range(whole, part)?;
    let (total, rest) = (whole.len(), whole.len() - range.end);
    let said = match rest {
        0 => format!("[bytes {} to {total} of {total}: the end]", range.start),
        _ => format!(
            "[bytes {} to {} of {total}; {rest} remain, from offset {} on]",
            range.start, range.end, range.end
        ),
    };
    Some((whole.get(range).unwrap_or_default().to_owned(), said))
}

/// Where the part is, with whole characters: one that begins before it is left
/// out, and at least one is in it.
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

fn resource(run: &Run) -> Option<Resource> {
    let outcome = run.outcome()?;
    let whole = outcome.whole.as_ref()?;
    let resource = Resource::new(uri(&run.id), format!("{}-output", run.id))
        .with_title("Output of a run")
        .with_description(format!("the run that ended at {}", outcome.ended))
        .with_mime_type("text/plain")
        .with_size(whole.len() as u64);
    Some(resource)
}

/// The run and the part that an address names.
fn parse(uri: &str) -> Option<(String, Option<Part>)> {
    let url = Url::parse(uri).ok()?;
    let mut path = url.path().strip_prefix('/')?.split('/');
    let (run, output) = (path.next()?, path.next()?);
    let is_ours = url.scheme() == "callgate"
        && url.host_str() == Some("runs")
        && output == "output"
        && path.next().is_none()
        && url.fragment().is_none();
    if !is_ours {
        return None;
    }
    let (mut offset, mut bytes) = (None, None);
    for (key, value) in url.query_pairs() {
        let slot = match &*key {
            "offset" => &mut offset,
            "bytes" => &mut bytes,
            _ => return None,
        };
        if slot.replace(value.parse::<usize>().ok()?).is_some() {
            return None;
        }
    }
    let part = (offset.is_some() || bytes.is_some()).then(|| Part {
        offset: offset.unwrap_or_default(),
        bytes: bytes.unwrap_or(usize::MAX).max(1),
    });
    Some((run.to_owned(), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_address(uri: &str, expected: Option<(&str, Option<(usize, usize)>)>) {
        let parsed = parse(uri);
        let shown = parsed
            .as_ref()
            .map(|(run, part)| (run.as_str(), part.map(|part| (part.offset, part.bytes))));
        assert_eq!(shown, expected, "{uri}");
    }

    #[test]
    fn addresses_are_read_strictly() {
        check_address("callgate://runs/r-1/output", Some(("r-1", None)));
        check_address(
            "callgate://runs/r-1/output?offset=3&bytes=4",
            Some(("r-1", Some((3, 4)))),
        );
        check_address(
            "callgate://runs/r-1/output?bytes=0",
            Some(("r-1", Some((0, 1)))),
        );
        check_address(
            "callgate://runs/r-1/output?offset=7",
            Some(("r-1", Some((7, usize::MAX)))),
        );
        for uri in [
            "",
            "callgate:",
            "callgate://runs",
            "callgate://runs/r-1",
            "callgate://runs/r-1/output/",
            "callgate://runs/r-1/report",
            "callgate://tools/r-1/output",
            "file://runs/r-1/output",
            "callgate://runs/r-1/output?offset=-1",
            "callgate://runs/r-1/output?offset=1&offset=2",
            "callgate://runs/r-1/output?lines=1",
            "callgate://runs/r-1/output#top",
            "callgate://runs/r-1/output?offset=99999999999999999999999",
        ] {
            check_address(uri, None);
        }
    }

    fn check_part(offset: usize, bytes: usize, expected: Option<(&str, &str)>) {
        let part = part("aüb🎉", Part { offset, bytes });
        let shown = part
            .as_ref()
            .map(|(text, said)| (text.as_str(), said.as_str()));
        assert_eq!(shown, expected, "{offset} {bytes}");
    }

    #[test]
    fn parts_have_whole_characters() {
        check_part(
            0,
            2,
            Some(("a", "[bytes 0 to 1 of 8; 7 remain, from offset 1 on]")),
        );
        check_part(
            1,
            1,
            Some(("ü", "[bytes 1 to 3 of 8; 5 remain, from offset 3 on]")),
        );
        check_part(
            2,
            1,
            Some(("b", "[bytes 3 to 4 of 8; 4 remain, from offset 4 on]")),
        );
        check_part(4, 100, Some(("🎉", "[bytes 4 to 8 of 8: the end]")));
        check_part(
            0,
            usize::MAX,
            Some(("aüb🎉", "[bytes 0 to 8 of 8: the end]")),
        );
        check_part(8, 1, Some(("", "[bytes 8 to 8 of 8: the end]")));
        check_part(9, 1, None);
    }
}
