//! The calls of a run that were denied, gathered.

use std::collections::HashMap;

use callgate_broker::{LedgerLine, Outcome};
use serde::Serialize;

/// Denials of one function, at one line, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Denial {
    /// The generated function name.
    pub function: String,
    /// The script's line that called, from 1, where it is known.
    pub line: Option<u32>,
    /// Who decided, in words.
    pub because: String,
    /// How many calls.
    pub count: usize,
}

/// The denials of a run, in the order of the first of each.
pub(crate) fn gather(calls: &[LedgerLine]) -> Vec<Denial> {
    let mut denials: Vec<Denial> = Vec::new();
    let mut places: HashMap<(&str, Option<u32>, &str), usize> = HashMap::new();
    let denied = calls.iter().filter(|call| call.outcome == Outcome::Denied);
    for call in denied {
        let key = (call.function.as_str(), call.line, call.decision.as_str());
        let place = *places.entry(key).or_insert_with(|| {
            denials.push(Denial {
                function: call.function.clone(),
                line: call.line,
                because: call.decision.clone(),
                count: 0,
            });
            denials.len() - 1
        });
        if let Some(denial) = denials.get_mut(place) {
            denial.count += 1;
        }
    }
    denials
}
