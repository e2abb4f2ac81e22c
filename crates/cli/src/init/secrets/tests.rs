//! Tests of the values that are kept out of the configuration.

use super::*;

/// Checks lines of an input, an arrow, and the expected text.
#[track_caller]
fn check(lines: &str, hide: impl Fn(&mut Secrets, &str) -> String) {
    for line in lines.trim().lines() {
        let (input, expected) = line.trim().split_once(" → ").expect("an arrow");
        assert_eq!(hide(&mut Secrets::default(), input), expected, "{input}");
    }
}

#[test]
fn secret_env_values_become_references() {
    let lines = "
        CG_TOKEN=ghp_abc → ${CG_TOKEN}
        CG_TOKEN=on → ${CG_TOKEN}
        CG_X=hunter2 → ${CG_X}
        CG_X=postgres://u:p@h/db → ${CG_X}
        CG_X=https://h/p?key=1 → ${CG_X}
        CG_X=${OTHER} → ${OTHER}
        CG_TOKEN=${env:OTHER} → ${env:OTHER}
        CG_TOKEN=${OTHER:-hunter} → ${OTHER}
        CG_TOKEN=${OTHER:-x1} → ${OTHER:-x1}
        CG_TOKEN=${OTHER:-none} → ${OTHER:-none}
        CG_X=${MY_PASSWORD:-hunter} → ${MY_PASSWORD}
        CG_X=${OTHER:-info} → ${OTHER:-info}
        CG_X=${OTHER:-eu-west-1} → ${OTHER:-eu-west-1}
        CG_X=${OTHER:-me:pw@host} → ${OTHER}
        CG_X=localhost:5432 → localhost:5432
        CG_X=debug → debug
        CG_X=8080 → 8080
        CG_X=/data/notes → /data/notes
        CG_X=https://api.example/v1 → https://api.example/v1
        cg.x-y=hunter2 → ${CG_X_Y}";
    check(lines, |secrets, line| {
        let (name, value) = line.split_once('=').expect("a value");
        secrets.environment("s", name, value)
    });
}

#[test]
fn text_around_references_stays() {
    let lines = "
        AUTH=Token ${CG_T} → Token ${CG_T}
        AUTH=${SCHEME:-Basic} ${CG_T} → ${SCHEME:-Basic} ${CG_T}
        CG_X=<${A}|${B:-2}> → <${A}|${B:-2}>
        CG_DSN=Server=h;Password=${PW};Database=x → Server=h;Password=${PW};Database=x
        CG_X=redis://me:${PW}@h:6379/0 → redis://me:${PW}@h:6379/0
        CG_X=redis://me:hunter@${HOST}/0 → redis://me:${S_PASSWORD}@${HOST}/0
        CG_X=redis://me:${PW:-a/b@c}@h/0 → redis://me:${PW}@h/0
        CG_X=${BASE:-https://a.example/v1}/mcp → ${BASE:-https://a.example/v1}/mcp
        CG_KEY=hunter2${A} → ${CG_KEY}${A}
        CG_X=ghp_0123456789abcdef${A} → ${CG_X}${A}
        CG_X=Server=h;Password=hunter;Database=${DB} → ${CG_X}${DB}";
    check(lines, |secrets, line| {
        let (name, value) = line.split_once('=').expect("a value");
        secrets.environment("s", name, value)
    });
    let lines = "
        Cookie: sid=${SID}; theme=dark → sid=${SID}; theme=dark
        X-Key: ${A}.${B} → ${A}.${B}
        Authorization: Bearer ${T:-hunter} → Bearer ${T}";
    check(lines, |secrets, line| {
        let (name, value) = line.split_once(": ").expect("a value");
        secrets.header("cg-s", name, value)
    });
}

#[test]
fn headers_keep_their_scheme() {
    let lines = "
        Authorization: Bearer abc → Bearer ${CG_S_TOKEN}
        authorization: abc → ${CG_S_TOKEN}
        Authorization: Bearer ${T} → Bearer ${T}
        X-Api-Key: a b → ${CG_S_X_API_KEY}
        X-Team: blue → ${CG_S_X_TEAM}
        Accept: text/plain → text/plain";
    check(lines, |secrets, line| {
        let (name, value) = line.split_once(": ").expect("a value");
        secrets.header("cg-s", name, value)
    });
}

#[test]
fn only_tokens_in_arguments_are_replaced() {
    let lines = "
        -y|@scope/server@1.2.3 → -y|@scope/server@1.2.3
        --api-key|abc → --api-key|${CG_API_KEY}
        --apiKey=abc → --apiKey=${CG_APIKEY}
        --token|--verbose → --token|--verbose
        ghp_0123456789abcdef → ${CG_TOKEN}
        f3b2a1c0-1234-4abc-9def-0123456789ab → ${CG_TOKEN}
        run|-e|PG_PASS=x|img → run|-e|PG_PASS=${PG_PASS}|img
        -e|LOG=debug → -e|LOG=debug
        -e|GITHUB_TOKEN → -e|GITHUB_TOKEN
        -e|S3KEY2 → -e|S3KEY2
        --header|Authorization: Bearer abc → --header|Authorization: Bearer ${CG_TOKEN}
        --header|Authorization:${AUTH} → --header|Authorization:${AUTH}
        postgresql://me:pw@db.example/x → postgresql://me:${CG_PASSWORD}@db.example/x
        --db=postgresql://me:pw@db.example/x → --db=postgresql://me:${CG_PASSWORD}@db.example/x
        -p|N0t-@-Word? → -p|${CG_P}
        --seed=Zx9!quarz → --seed=${CG_SEED}
        --license|7F3K-99QX-PL2M → --license|${CG_LICENSE}
        --login|hunter7 → --login|${CG_LOGIN}
        --api-keys=one,two → --api-keys=${CG_API_KEYS}
        --dir=${HOME}/notes → --dir=${HOME}/notes
        b0b1c2d3e4f5a6 → ${CG_TOKEN}
        Xk3/pQ9+vT2mR8wL5nB7cJ4dF6gH1sZ0= → ${CG_TOKEN}
        ATCTT3xFfGF0abcd → ${CG_TOKEN}
        sh|-c|run --x Qw3rty!99 → sh|-c|${CG_C}
        -----BEGIN OPENSSH PRIVATE KEY-----b3Bl → ${CG_TOKEN}
        --region|eu-central-1|--model|gpt-4o → --region|eu-central-1|--model|gpt-4o
        --host=192.168.100.20 → --host=192.168.100.20
        -y|@scope/context7-mcp@1.0.6-beta.3 → -y|@scope/context7-mcp@1.0.6-beta.3
        --mount|type=bind,src=/a,dst=/b → --mount|type=bind,src=/a,dst=/b
        --rm|x/y@sha256:0123456789abcdef → --rm|x/y@sha256:0123456789abcdef
        --timezone|America/New_York → --timezone|America/New_York
        /home/me/work-2024-12-31-notes → /home/me/work-2024-12-31-notes
        http://localhost:8080/mcp → http://localhost:8080/mcp";
    check_arguments("x", lines);
}

/// Checks arguments of a program, separated by `|`.
#[track_caller]
fn check_arguments(program: &str, lines: &str) {
    check(lines, |secrets, line| {
        let arguments: Vec<String> = line.split('|').map(str::to_owned).collect();
        secrets.arguments("cg", program, &arguments).join("|")
    });
}

#[test]
fn short_flags_of_passwords_are_recognised() {
    let lines = "
        -p|swordfish → -p|${CG_P}
        -pSwordfish → -p${CG_P}
        -phunter2 → -p${CG_P}
        -p|8080|-p8080|-p|127.0.0.1:80:80|-p|./out → -p|8080|-p8080|-p|127.0.0.1:80:80|-p|./out
        -path|docs|-projectId|main → -path|docs|-projectId|main
        -p|${PW} → -p|${PW}
        -u|root:swordfish → -u|root:${CG_PASSWORD}
        -uroot:swordfish → -uroot:${CG_PASSWORD}
        --db-user=root:swordfish → --db-user=root:${CG_PASSWORD}
        --login|root:${PW} → --login|root:${PW}
        --user|1000:1000 → --user|1000:1000
        --user|root → --user|root
        --password=one:two → --password=${CG_PASSWORD}";
    check_arguments("/usr/bin/x", lines);
    let lines = "
        -y|-p|some-package|cmd|-p|swordfish → -y|-p|some-package|cmd|-p|${CG_P}
        exec|-p|some-package → exec|-p|some-package";
    check_arguments("npx", lines);
}

#[test]
fn commands_in_arguments_keep_no_named_secret() {
    let lines = "
        -c|exec srv --token swordfish → -c|${CG_C}
        -lc|API_KEY=swordfish npx srv → -lc|${CG_LC}
        -c|srv --db https://h --password 'swordfish' → -c|${CG_C}
        -c|API_KEY=${KEY} npx srv --port 80 → -c|API_KEY=${KEY} npx srv --port 80
        -c|exec srv --verbose → -c|exec srv --verbose";
    check_arguments("sh", lines);
}

#[test]
fn urls_lose_users_keys_and_random_parts() {
    let lines = "
        https://a.example/mcp → https://a.example/mcp
        https://a.example/mcp?api_key=x1 → https://a.example/mcp?api_key=${CG_API_KEY}
        https://a.example?key=a/b?c&d=on → https://a.example?key=${CG_KEY}&d=on
        https://me:p&w#1@a.example/mcp → https://me:${CG_PASSWORD}@a.example/mcp
        https://a.example/mcp?mode=debug&x#y → https://a.example/mcp?mode=debug&x#y
        https://tok@a.example/mcp → https://${CG_PASSWORD}@a.example/mcp
        https://a.example/s/0123456789abcdef0123/mcp → https://a.example/s/${CG_TOKEN}/mcp
        https://${HOST}/mcp → https://${HOST}/mcp
        ${BASE}/s/0123456789abcdef0123/mcp → ${BASE}/s/${CG_TOKEN}/mcp
        https://a.example/mcp?q=x-${Q}&key=${KEY:-hunter} → https://a.example/mcp?q=x-${Q}&key=${KEY}
        https://${U}:${PW:-p/w}@a.example/${TENANT:-main} → https://${U}:${PW:-p/w}@a.example/${TENANT:-main}";
    check(lines, |secrets, line| secrets.url("cg", line));
}

#[test]
fn two_values_never_share_a_variable() {
    let mut secrets = Secrets::default();
    let values = [("a", "one"), ("b", "two"), ("c", "one"), ("b", "three")];
    let names = values.map(|(server, value)| secrets.environment(server, "CG_KEY", value));
    assert_eq!(
        names,
        ["${CG_KEY}", "${B_CG_KEY}", "${CG_KEY}", "${B_CG_KEY_2}"]
    );
    let kept = secrets
        .iter()
        .map(|(name, it)| format!("{name}={}", it.value));
    assert_eq!(
        kept.collect::<Vec<_>>(),
        ["B_CG_KEY=two", "B_CG_KEY_2=three", "CG_KEY=one"]
    );
}
