//! Requests that are not answered yet. Of two with one `id` nobody could tell whose an
//! answer is, so the second is refused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::envelope::Malformed;

/// Those of some sessions: session and `id` of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unanswered(Arc<Mutex<HashSet<(String, String)>>>);

/// A request, until it has its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    all: Unanswered,
    request: (String, String),
}

impl Unanswered {
    /// Notes a request.
    ///
    /// # Errors
    ///
    /// If one of its session with its `id` is not answered yet.
    pub(crate) fn ask(&self, session: &str, id: &Value) -> Result<Asked, Malformed> {
        let request = (session.to_owned(), id.to_string());
        let is_new = self.lock().insert(request.clone());
        match is_new {
            true => Ok(Asked {
                all: self.clone(),
                request,
            }),
            false => Err(Malformed::new(
                "a request of this session with this id is not answered yet",
            )
            .to(Some(id.clone()))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.all.lock().remove(&self.request);
    }
}
