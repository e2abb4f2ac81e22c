//! Stubs of the kernel layers for systems other than Linux, which have none of them.

use std::fs::File;

pub(super) fn close_from(first: libc::c_int) -> Result<(), String> {
    for descriptor in first..256 {
        // SAFETY: a system call with a number; it fails for a descriptor that is not open.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

pub(super) fn ask_for_death_signal() -> Result<(), String> {
    Ok(())
}

pub(super) fn unshare_namespaces() -> u8 {
    0
}

pub(super) fn give_up_rights() -> Result<(), String> {
    Ok(())
}

pub(super) fn restrict_by_landlock() -> u8 {
    0
}

pub(super) fn name_refused_calls() -> Result<(), String> {
    Ok(())
}

pub(super) fn open_maps() -> Result<Option<File>, String> {
    Ok(None)
}

pub(super) fn release_reserved(_maps: &str) -> (usize, usize) {
    (0, 0)
}

pub(super) fn filter_start_up() -> bool {
    false
}

pub(super) fn filter_run_time() -> bool {
    false
}

pub(super) fn has_protection_keys() -> bool {
    false
}
