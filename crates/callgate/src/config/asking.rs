//! `asking`: checks of several keys.

use super::tree::{Tree, get};
use crate::asking::{AskingOptions, Way};

/// Lets a program for the webhook's secret start in the file's folder, and reports values that
/// cannot be used.
pub(super) fn complete(tree: &Tree<'_>, asking: &mut AskingOptions) {
    let at = |path: &[&str], clause: &str| {
        tree.wrong_at(tree.root, &[&["asking"], path].concat(), clause);
    };
    if let Some(webhook) = &mut asking.webhook {
        webhook.secret.start_in(tree.variables.folder);
        if !webhook.may_have_key() {
            let clause = "has no key; write a text that is not empty, with Base64 after \"whsec_\"";
            at(&["webhook", "secret"], clause);
        }
    }
    // Also a webhook with a mistake, which is reported already.
    let webhook = get(tree.root, "asking").and_then(|asking| get(asking, "webhook"));
    let ways = asking.ways.as_deref().unwrap_or_default();
    if webhook.is_none() && ways.contains(&Way::Webhook) {
        let clause = "names \"webhook\", but \"asking\" has no \"webhook\"; add it with \"url\" \
                      and \"secret\"";
        at(&["ways"], clause);
    }
}
