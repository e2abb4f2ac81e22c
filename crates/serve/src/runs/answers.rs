//! Answers while a run continues, with a part of its output, and to wrong calls.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};

use super::arguments::Part;
use super::outcome::Outcome;
use super::resources;
use super::served_run::ServedRun;

/// The answer while a run continues. `wants_part`: a part of its output was requested.
pub(super) fn still_running(run: &ServedRun, wants_part: bool) -> CallToolResponse {
    let part = if wants_part {
        "Its output can be read in parts once it has ended.\n"
    } else {
        ""
    };
    let (id, state, seconds) = (&run.id, run.progress.state(), run.since.elapsed().as_secs());
    let (begin, when) = match state.answerer() {
        Some(answerer) => (
            format!(
                "The script waits as run {id:?}, for {seconds} s so far: a person must answer \
                 whether it may call {}. You cannot answer: {}, and end your turn.",
                state.asked(),
                answerer.advice(),
            ),
            " once the user says that it is answered",
        ),
        None => (
            format!("The script is still running as run {id:?}, for {seconds} s so far ({state})."),
            "",
        ),
    };
    let text = format!(
        "{begin}\n{part}Call the tool wait with this run alone for its result{when}, or cancel_run to \
         end it.\n"
    );
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// The part of a whole output as an answer.
pub(super) fn part_of(outcome: &Outcome, part: Part) -> CallToolResponse {
    let Some(whole) = &outcome.whole else {
        return mistake(
            "the output of this run was not cut; call wait without \"offset\" and \"bytes\" for the \
             result with all of it"
                .to_owned(),
        );
    };
    let Some((text, rest)) = resources::part(whole, part) else {
        let (bytes, offset) = (whole.len(), part.offset);
        return mistake(format!(
            "offset {offset} is beyond the output, which has {bytes} bytes"
        ));
    };
    let content = vec![ContentBlock::text(text), ContentBlock::text(rest)];
    CallToolResult::success(content).into()
}

/// A wrong call, as a result for the model.
pub(super) fn mistake(message: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(message)]).into()
}
