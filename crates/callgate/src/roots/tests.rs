//! The folders that servers are told: the caller's or the configuration's.

use futures::FutureExt as _;
use serde_json::json;

use super::*;

/// A caller with this answer to requests for folders.
struct Named {
    offered: bool,
    roots: Result<Vec<Root>, Refusal>,
}

impl Caller for Named {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.roots = self.offered;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match wanted.kind {
            WantedKind::Roots => self.roots.clone().map(|roots| Root::list(&roots)),
            _ => Err(Refusal::Unsupported),
        };
        Box::pin(std::future::ready(answer))
    }

    fn page_opened(&self, _server: &str, _id: &str) -> Option<PageDone> {
        Some(Box::new(|| ()))
    }
}

fn root(uri: &str) -> Root {
    Root {
        uri: uri.to_owned(),
        name: None,
    }
}

/// Checks the answer to a request for folders, sent alone and together with other requests.
#[track_caller]
fn check(offered: bool, roots: Result<&[&str], Refusal>, expected: Result<&str, Refusal>) {
    let roots = roots.map(|uris| uris.iter().copied().map(root).collect());
    let caller = with_roots(&[root("file:///ours")], Arc::new(Named { offered, roots }));
    assert!(caller.offers().roots);

    let params = json!({ "message": "Who?" });
    let sample = Wanted::new(WantedKind::Sample, "fs", None, &params);
    let roots = Wanted::new(WantedKind::Roots, "fs", None, &params);
    let expected = expected.map(|uri| json!({ "roots": [{ "uri": uri }] }));
    let told = caller.answer(roots).now_or_never().expect("at once");
    assert_eq!(told, expected);

    let wanted = vec![sample, roots, sample];
    let answers = caller.answers(wanted).now_or_never().expect("at once");
    let unsupported = Err(Refusal::Unsupported);
    assert_eq!(answers, [unsupported.clone(), expected, unsupported]);
}

#[test]
fn caller_roots_precede_configured_roots() {
    check(true, Ok(&["file:///theirs"]), Ok("file:///theirs"));
    check(false, Err(Refusal::Unsupported), Ok("file:///ours"));
    // A caller that stands for clients, before the first client connects.
    check(true, Ok(&[]), Ok("file:///ours"));
    check(true, Err(Refusal::Declined), Err(Refusal::Declined));
}

#[test]
fn other_requests_go_to_the_caller() {
    let of = |roots: &[Root]| {
        let named = Named {
            offered: false,
            roots: Ok(Vec::new()),
        };
        with_roots(roots, Arc::new(named))
    };
    assert!(
        of(&[root("file:///ours")])
            .page_opened("fs", "page")
            .is_some()
    );
    assert_eq!(of(&[]).offers(), Offers::default());
}
