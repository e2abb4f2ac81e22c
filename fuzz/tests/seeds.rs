//! Runs each target over its seeds: inputs from fixtures, and inputs that once failed.

use std::fs;
use std::path::Path;

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the last line names the seed that fails"
)]
fn targets_return_for_every_seed() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (name, target) in callgate_fuzz::TARGETS {
        let mut files = fs::read_dir(seeds.join(name))
            .unwrap_or_else(|error| panic!("the seeds of {name}: {error}"))
            .map(|entry| entry.expect("a file").path())
            .collect::<Vec<_>>();
        assert!(!files.is_empty(), "{name} has no seeds");
        files.sort();
        for file in files {
            println!("{}", file.display());
            target(&fs::read(&file).expect("a seed"));
        }
    }
}
