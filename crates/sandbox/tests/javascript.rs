//! The scripts in `runtime-js/tests`, each run in a real worker and compared with the `.out` beside
//! it (`UPDATE_EXPECT=1` writes it).

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use expect_test::expect_file;

async fn check(name: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime-js/tests");
    let script = std::fs::read_to_string(format!("{folder}/{name}.js")).expect("a test script");
    let ended = support::run(&script).await;
    expect_file![format!("{folder}/{name}.out")].assert_eq(&support::shown(&ended));
}

#[tokio::test]
async fn globals() {
    check("globals").await;
}

#[tokio::test]
async fn closed() {
    check("closed").await;
}

#[tokio::test]
async fn console() {
    check("console").await;
}

#[tokio::test]
async fn emit() {
    check("emit").await;
}

#[tokio::test]
async fn errors() {
    check("errors").await;
}

#[tokio::test]
async fn lookups() {
    check("lookups").await;
}

#[tokio::test]
async fn results() {
    check("results").await;
}

#[tokio::test]
async fn web() {
    check("web").await;
}
