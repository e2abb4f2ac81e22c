//! Durations and sizes, in the forms people write.

use super::*;

#[test]
fn durations_and_sizes() {
    let check = |text: &str, expected: Expect| {
        let duration = match parse_duration(text) {
            Ok(duration) => format!("{duration:?}"),
            Err(error) => error.to_string(),
        };
        let bytes = match parse_bytes(text) {
            Ok(bytes) => bytes.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&format!("{duration}\n{bytes}"));
    };
    check(
        "500ms",
        expect![[r#"
        500ms
        "500ms" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "2s",
        expect![[r#"
        2s
        "2s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        " 1.5 m ",
        expect![[r#"
        90s
        " 1.5 m " is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1H",
        expect![[r#"
        3600s
        "1H" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "16KiB",
        expect![[r#"
        "16KiB" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        16384"#]],
    );
    check(
        "1.5gb",
        expect![[r#"
        "1.5gb" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        1500000000"#]],
    );
    check(
        "512B",
        expect![[r#"
        "512B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        512"#]],
    );
    check(
        "0.4B",
        expect![[r#"
        "0.4B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "0.4B" is an empty size; write one that is more than nothing"#]],
    );
    check(
        "0s",
        expect![[r#"
        "0s" is an empty duration; write one that is more than nothing
        "0s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "",
        expect![[r#"
        "" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "2",
        expect![[r#"
        "2" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "2" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "s",
        expect![[r#"
        "s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "-2s",
        expect![[r#"
        "-2s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "-2s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1.2.3s",
        expect![[r#"
        "1.2.3s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "1.2.3s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        ".5s",
        expect![[r#"
        ".5s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        ".5s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1e9s",
        expect![[r#"
        "1e9s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "1e9s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "99999999999999999999h",
        expect![[r#"
        "99999999999999999999h" is too large a duration; the longest is a hundred years
        "99999999999999999999h" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "999999999999h",
        expect![[r#"
        "999999999999h" is too large a duration; the longest is a hundred years
        "999999999999h" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "9007199254740992B",
        expect![[r#"
        "9007199254740992B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "9007199254740992B" is too large a size; the largest is below 2^53 bytes"#]],
    );
}

#[test]
fn numbers_are_told_what_to_write() {
    check(
        r#"{
          "mcpServers": { "git": { "command": "x", "connect": "lazy", "idle": 300, "callTimeout": 60000 } },
          "limits": { "timeout": 10, "memory": 128, "output": 16384 }
        }"#,
        expect![[r#"
            callgate.json:2:79: "idle" in server "git" must be a string such as "5m", or "never", and this is a number
            callgate.json:2:99: "callTimeout" in server "git" must be a string such as "30s", and this is a number
            callgate.json:3:34: "timeout" in "limits" must be a string such as "30s", and this is a number
            callgate.json:3:48: "memory" in "limits" must be a string such as "128MiB", and this is a number
            callgate.json:3:63: "output" in "limits" must be a string such as "1MiB", and this is a number
        "#]],
    );
}
