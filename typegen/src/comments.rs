//! What a text says of properties, each thing once.
//!
//! Tools of one server repeat themselves: the owner, the repository, the page.
//! Read from top to bottom, a comment holds for the properties of the same name
//! after it, until one has another comment. [`LEGEND`] tells the reader.

use std::collections::HashMap;

use crate::ir::Property;

/// Stands above a text in which a comment is left out.
pub(crate) const LEGEND: &str = "// A property without a comment is described where its name last stood; /**/ means not at all.\n";

/// What a text says of properties.
#[derive(Debug)]
pub(crate) enum Comments<'t> {
    /// Nothing.
    None,
    /// Everything, wherever it stands.
    Each,
    /// What each property's name was last said to mean; an empty text where it was last without a
    /// comment. `omitted` tells whether anything was left out because it stands before.
    Said {
        latest: HashMap<&'t str, &'t str>,
        omitted: bool,
    },
}

impl<'t> Comments<'t> {
    /// Comments of a text that has said nothing yet.
    pub(crate) fn new() -> Self {
        Self::Said {
            latest: HashMap::new(),
            omitted: false,
        }
    }

    /// The comment that a property needs here, if it needs one: an empty one
    /// says that it has none where its name had one before.
    pub(crate) fn needed(&self, property: &'t Property) -> Option<&'t str> {
        let doc = property.doc.as_deref().unwrap_or_default();
        let latest = match self {
            Self::None => return None,
            Self::Each => return property.doc.as_deref(),
            Self::Said { latest, .. } => latest,
        };
        let before = latest.get(property.name.as_str()).copied();
        (before.unwrap_or_default() != doc).then_some(doc)
    }

    /// True if a comment was left out because it stands before.
    pub(crate) fn any_omitted(&self) -> bool {
        matches!(self, Self::Said { omitted: true, .. })
    }

    /// Notes that the text now has the property, with the comment it needed.
    pub(crate) fn say(&mut self, property: &'t Property) {
        if let Self::Said { latest, omitted } = self {
            let doc = property.doc.as_deref().unwrap_or_default();
            let before = latest.insert(&property.name, doc);
            *omitted |= !doc.is_empty() && before == Some(doc);
        }
    }
}

/// Writes a comment: `/** text */`, or `/**/` for an empty text, which has to
/// come from [`crate::text::comment_text`].
pub(crate) fn push_comment(doc: &str, text: &mut String) {
    if doc.is_empty() {
        text.push_str("/**/");
    } else {
        text.push_str("/** ");
        text.push_str(doc);
        text.push_str(" */");
    }
}
