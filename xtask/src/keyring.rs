//! A keyring for the tests: the Secret Service of gnome-keyring, a message bus
//! for it, and a program that looks into it. From Debian's packages.

use crate::{apt, say};

/// The programs that the tests start, and the packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("dbus-daemon", "dbus-daemon"),
    ("dbus-send", "dbus-bin"),
    ("secret-tool", "libsecret-tools"),
];

/// Installs the missing packages, if that is possible. Where it is not, the
/// tests of the keyring do not run, and this says so; in CI they fail then.
pub(crate) fn install_if_possible() {
    say::step("a keyring for the tests");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let is_missing = |program: &str| !folders.iter().any(|it| it.join(program).is_file());
    let missing = PROGRAMS.iter().filter(|(program, _)| is_missing(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() {
        say::detail("installed");
    } else if let Err(error) = apt::install(&packages) {
        say::detail(format_args!(
            "NOT INSTALLED; the tests of the keyring will not run before: {error:#}"
        ));
    }
}
