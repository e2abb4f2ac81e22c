//! x
mod support;
use support::*;
#[tokio::test]
async fn smoke() {
    let script = std::env::var("SCRIPT")
        .unwrap_or("console.log('hi', {a: 1}); return await echo({x: 1});".to_owned());
    let t = std::time::Instant::now();
    let ended = run(&script).await;
    eprintln!(
        "{}\n{:?} calls {} in {:?}",
        shown(&ended),
        ended.script_time,
        ended.calls,
        t.elapsed()
    );
}
