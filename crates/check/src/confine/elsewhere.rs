//! Stub of the kernel layers for systems other than Linux, which have none of them.

use std::path::Path;

use callgate_process::Restrictions;

use super::{Confinement, LIMITS, LayerUse};
use crate::error::Unavailable;

/// Only the resource limits; an error if a layer is required.
pub(super) fn restrictions(
    confinement: Confinement,
    _program: &Path,
) -> Result<Restrictions, Unavailable> {
    let Confinement { landlock, seccomp } = confinement;
    for (name, layer) in [("Landlock", landlock), ("seccomp", seccomp)] {
        if layer == LayerUse::Required {
            let system = std::env::consts::OS;
            let lack = format!("{name} is not available on {system}");
            return Err(Unavailable::Confinement(lack));
        }
    }
    Ok(Restrictions { limits: LIMITS })
}
