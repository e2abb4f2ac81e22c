//! The section `serve`, which belongs to the crate of the server.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::settings::Config;
use super::tree::Tree;

/// The section `serve` of a file. In its strings, `${NAME}` is replaced.
pub trait ServeSection: DeserializeOwned + Default {
    /// Checks the section against the rest of the file, and completes it.
    fn complete(&mut self, section: &Section<'_>);
}

/// The place of the section `serve` in its file, to report mistakes.
pub struct Section<'t> {
    pub(super) tree: &'t Tree<'t>,
    pub(super) config: &'t Config,
}

impl<'t> Section<'t> {
    /// The settings of the other sections.
    pub fn config(&self) -> &'t Config {
        self.config
    }

    /// The keys of the object that these keys lead to, also those with mistakes.
    pub fn keys(&self, path: &[&str]) -> Vec<&'t str> {
        let object = self.tree.find(&within(path)).and_then(|it| it.as_object());
        let members = object.into_iter().flat_map(|object| &object.properties);
        members.map(|member| member.name.as_str()).collect()
    }

    /// Reports a mistake in the value that these keys lead to. The clause follows its name, such as
    /// `is empty; write a path`.
    pub fn mistake(&self, path: &[&str], clause: &str) {
        self.tree.wrong_at(self.tree.root, &within(path), clause);
    }
}

fn within<'k>(path: &[&'k str]) -> Vec<&'k str> {
    [&["serve"], path].concat()
}

/// A section that is not read.
impl ServeSection for IgnoredAny {
    fn complete(&mut self, _: &Section<'_>) {}
}
