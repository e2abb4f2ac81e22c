//! Links the worker program at fixed addresses, which saves a quarter of its start.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Its heap, stacks and libraries stay at random addresses; SECURITY.md says what that means.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bin=callgate-worker=-no-pie");
    }
}
