//! The layers of the sandbox that are not in force: why, and what to do.

use std::path::Path;

use callgate::faces::{Jail, JailLayer, JailOptions};

/// Why a layer is not in force, and what to do; `None` if it is.
pub fn absence(layer: JailLayer, jail: &Jail, options: &JailOptions) -> Option<(String, String)> {
    if jail.has(layer) {
        return None;
    }
    let modules = || std::fs::read_to_string("/sys/kernel/security/lsm");
    let (why, advice) = match layer {
        _ if !options.layers.contains(&layer) => (
            "it is off in the configuration",
            "remove \"level\" from \"sandbox\"",
        ),
        _ if !cfg!(target_os = "linux") => ("it is available on Linux only", "use Linux"),
        JailLayer::Landlock if modules().is_ok_and(|it| !it.contains("landlock")) => (
            "the kernel was started without it",
            "add landlock to `lsm=` on the kernel's command line",
        ),
        JailLayer::Landlock => (
            "the kernel is older than 5.13 or was built without it, or a container forbids it",
            "use a kernel that has it, or permit landlock_create_ruleset in the container",
        ),
        JailLayer::Seccomp if !Path::new("/proc/sys/kernel/seccomp").exists() => (
            "the kernel was built without it",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
        JailLayer::Namespaces => return Some(namespaces_absence()),
        _ => (
            "the kernel or a container refuses it",
            "permit the system call seccomp in the container",
        ),
    };
    Some((why.to_owned(), advice.to_owned()))
}

/// Why user namespaces are not available, and what to do.
fn namespaces_absence() -> (String, String) {
    // A setting, its value that forbids user namespaces, and one that permits them.
    let settings = [
        ("user.max_user_namespaces", "0", "10000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbids = |(name, off, _): &&(&str, &str, &str)| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() == *off)
    };
    match settings.iter().find(forbids) {
        Some((name, off, on)) => (
            format!("the kernel's setting {name} is {off}"),
            format!("it is optional; `sysctl {name}={on}` permits it"),
        ),
        None => (
            "the kernel or a container forbids user namespaces".to_owned(),
            "it is optional: no action is needed".to_owned(),
        ),
    }
}
