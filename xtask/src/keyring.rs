//! A keyring for the tests: the Secret Service of gnome-keyring, a message bus
//! for it, and a program that looks into it. From Debian's packages.

use std::process::Command;

use anyhow::Result;

use crate::{process, say};

/// The programs that the tests start, and the packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("dbus-daemon", "dbus-daemon"),
    ("dbus-send", "dbus-bin"),
    ("secret-tool", "libsecret-tools"),
];

/// Installs what is not there yet, if that is possible. Where it is not, the
/// tests of the keyring do not run, and this says so; in CI they fail then.
pub(crate) fn install_if_possible() -> Result<()> {
    say::step("a keyring for the tests");
    let missing = missing();
    if missing.is_empty() {
        say::detail("installed");
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    let by_hand = format!("sudo apt-get install {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--yes"]).args(arguments);
        process::run(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let install = [&["install", "--no-install-recommends"], packages.as_slice()].concat();
    if let Err(error) = apt(&["update"]).and_then(|()| apt(&install)) {
        say::detail(format_args!(
            "NOT INSTALLED ({error:#}); the tests of the keyring will not run before\n      {by_hand}"
        ));
    }
    Ok(())
}

fn missing() -> Vec<(&'static str, &'static str)> {
    let programs = PROGRAMS.into_iter();
    programs.filter(|(program, _)| !found(program)).collect()
}

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
