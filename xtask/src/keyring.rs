//! A keyring for the tests, from Debian's packages: the Secret Service of gnome-keyring, its message
//! bus, and a program that reads it.

use crate::{apt, say};

/// The programs that the tests start, and their packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("dbus-daemon", "dbus-daemon"),
    ("dbus-send", "dbus-bin"),
    ("secret-tool", "libsecret-tools"),
];

/// Installs the missing packages if possible. Otherwise the tests of the keyring do not run, and fail
/// in CI.
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
