//! What a check costs on a catalog of 500 tools: with a process that has to be
//! started, and with one that is kept. `cargo bench -p callgate-check`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_check::{Checker as _, Confinement, Script, TypeScript, find};

const TOOLS: usize = 500;
const COLD: usize = 31;
const WARM: usize = 200;

const SCRIPT: &str = r#"export {};
const { items } = await server_tool17({ owner: "a", repo: "b" });
const byId = new Map<string, Item17>();
for (const item of items) if (item.value !== null && item.value > 3) byId.set(item.id, item);
await Promise.all([...byId].map(([id, item]) => server_tool203({ owner: id, repo: String(item.value), state: "open" })));
console.log(`closed ${byId.size} of ${items.length}`);
"#;

/// The declarations of a catalog of which those of `full` are not in one line.
fn declarations(full: impl Fn(usize) -> bool) -> Arc<str> {
    let mut text = String::new();
    for n in 0..TOOLS {
        let written = if full(n) {
            writeln!(
                text,
                "type Item{n} = {{ id: string; value: number | null; tags?: string[]; nested?: {{ a: string; b?: {{ c: number }}[] }} }};\n\
                 declare function server_tool{n}(input: {{ owner: string; repo: string; page?: number; per_page?: number; \
                 state?: \"open\" | \"closed\" | \"all\"; labels?: string[]; item?: Item{n} }}): Promise<{{ items: Item{n}[]; total: number }}>;"
            )
        } else {
            writeln!(
                text,
                "declare function server_tool{n}(input?: any): Promise<any>;"
            )
        };
        written.expect("a string takes all");
    }
    text.into()
}

#[expect(clippy::print_stdout, reason = "it is what a benchmark is for")]
fn main() {
    let named = std::env::var_os("CALLGATE_TYPESCRIPT").map(PathBuf::from);
    // The benchmark lies in target/release/deps, TypeScript in target/typescript.
    let exe = std::env::current_exe().expect("its own path");
    let program = exe.ancestors().nth(2).map(|profile| profile.join("x"));
    let typescript = find(named.as_deref(), program.as_deref(), None)
        .expect("TypeScript is installed; run `cargo xtask setup` first");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!(
        "TypeScript {}, {TOOLS} tools, a script that calls two of them",
        typescript.version
    );
    let named = declarations(|n| n == 17 || n == 203);
    let all = declarations(|_| true);
    for (what, declarations) in [
        ("in full what the script names", &named),
        ("everything in full", &all),
    ] {
        let script = |n: usize| Script {
            text: format!("{SCRIPT}// {n}\n"),
            line_offset: 1,
            declarations: Arc::clone(declarations),
            time: Duration::from_secs(10),
        };
        let (cold, warm) = runtime.block_on(async {
            let mut cold = Vec::new();
            for n in 0..COLD {
                let started = Instant::now();
                let checker = TypeScript::new(&typescript, Confinement::default());
                let checked = checker.check(script(n)).await.expect("an answer");
                cold.push(started.elapsed());
                assert!(checked.diagnostics.is_empty(), "{checked:?}");
                checker.shut_down().await;
            }
            let checker = TypeScript::new(&typescript, Confinement::default());
            let mut warm = Vec::new();
            for n in 0..=WARM {
                let started = Instant::now();
                let checked = checker.check(script(n)).await.expect("an answer");
                warm.push(started.elapsed());
                assert!(checked.diagnostics.is_empty(), "{checked:?}");
            }
            checker.shut_down().await;
            // The first one was a cold one.
            warm.remove(0);
            (cold, warm)
        });
        let bytes = declarations.len();
        println!("declared {what} ({bytes} bytes)");
        show("cold", cold);
        show("warm", warm);
    }
}

#[expect(clippy::print_stdout, reason = "it is what a benchmark is for")]
fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| {
        let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    println!(
        "  {what}: p50 {:.1} ms, p90 {:.1} ms, of {}",
        at(50),
        at(90),
        times.len()
    );
}
