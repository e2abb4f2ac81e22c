use super::*;

/// Reads the arguments where there is one server, `logging`.
fn read(arguments: &Value) -> Result<(String, Limits, Option<Vec<String>>), String> {
    let server = |name: &str| match name {
        "logging" => Ok(()),
        _ => Err(format!("no server is named {name:?}")),
    };
    let arguments = arguments.as_object();
    read_script(
        Reading::of("run_script", arguments),
        Waits::AsSaid,
        &Limits::default(),
        &server,
    )
    .map(|read| (read.code.to_owned(), read.limits, read.servers))
    .map_err(|wrong| wrong.to_string())
}

fn refused(arguments: Value, expected: &str) {
    assert_eq!(read(&arguments).expect_err("it is wrong"), expected);
}

#[test]
fn limits_are_tightened() {
    let (code, limits, servers) = read(&json!({
        "code": "1",
        "servers": ["logging"],
        "limits": {
            "timeoutMs": 2000, "runTimeoutMs": 60_000.0, "memoryBytes": 32 << 20,
            "outputBytes": 80, "resultBytes": 1, "calls": 0, "callsInFlight": 7, "waitMs": null,
        },
    }))
    .expect("they are good");
    assert_eq!(
        (code.as_str(), servers),
        ("1", Some(vec!["logging".to_owned()]))
    );
    let expected = Limits {
        script_time: Duration::from_secs(2),
        run_time: Duration::from_secs(60),
        heap_bytes: 32 << 20,
        buffer_bytes: 32 << 20,
        output_bytes: 80,
        output_lines: 10,
        result_bytes: 80,
        reply_bytes: 1,
        calls: 0,
        calls_in_flight: 7,
        ..Limits::default()
    };
    assert_eq!(limits, expected);
}

#[test]
fn what_is_left_out_is_as_configured() {
    for arguments in [
        json!({ "code": "" }),
        json!({ "code": "", "limits": {}, "servers": null }),
    ] {
        assert_eq!(
            read(&arguments),
            Ok((String::new(), Limits::default(), None))
        );
    }
    let none = read(&json!({ "code": "", "servers": [] })).expect("they are good");
    assert_eq!(none.2, Some(Vec::new()));
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    refused(
        json!({
            "code": 1,
            "script": "1",
            "servers": ["logging", "loging", 3],
            "limits": {
                "timeoutMs": 10_001, "memoryBytes": 1, "calls": 1.5, "callsInFlight": "2",
                "waitMs": 600_001, "time": 1,
            },
        }),
        "\"code\" must be a string: the script's text\n\
         limits.timeoutMs is 10001, over the most, 10000 milliseconds\n\
         limits.memoryBytes is 1, under the least, 16777216 bytes\n\
         limits.calls must be a whole number of calls\n\
         limits.callsInFlight must be a whole number of calls\n\
         limits.waitMs is 600001, over the most, 600000 milliseconds\n\
         limits has no \"time\"; there are timeoutMs, runTimeoutMs, memoryBytes, outputBytes, \
         resultBytes, calls, callsInFlight, waitMs\n\
         servers[1]: no server is named \"loging\"\n\
         servers[2] must be a string, a server's name\n\
         run_script has no argument \"script\"; it takes code, limits, servers",
    );
}

#[test]
fn what_is_said_is_bounded() {
    let long = "ü".repeat(1000);
    let wrong = read(&json!({ "code": "1", "servers": vec![7; 12], long: 1 }));
    let wrong = wrong.expect_err("it is wrong");
    assert_eq!(wrong.lines().count(), 11, "{wrong}");
    assert!(wrong.ends_with("\nand 3 more like these"), "{wrong}");
}

#[test]
fn wrong_types_are_said() {
    refused(
        json!({}),
        "run_script needs an argument \"code\": the script's text",
    );
    refused(
        json!(null),
        "run_script needs an argument \"code\": the script's text",
    );
    refused(
        json!({ "code": "1", "limits": [], "servers": {} }),
        "\"limits\" must be an object\n\"servers\" must be a list",
    );
    refused(
        json!({ "code": "1", "limits": { "timeoutMs": -1, "runTimeoutMs": 1e300 } }),
        "limits.timeoutMs must be a whole number of milliseconds\n\
         limits.runTimeoutMs must be a whole number of milliseconds",
    );
}

#[test]
fn wait_takes_a_run() {
    let given = json!({ "run": "r-1", "waitMs": 0, "cancel": true, "bytes": 5 });
    assert_eq!(
        wait(given.as_object()),
        Ok(WaitArguments {
            run: "r-1",
            wait: Some(Duration::ZERO),
            cancel: true,
            part: Some(Part {
                offset: 0,
                bytes: 5
            }),
        })
    );
    let wrong = json!({ "cancel": "yes", "waitMs": -1, "bytes": 0, "id": 1 });
    assert_eq!(
        wait(wrong.as_object())
            .expect_err("it is wrong")
            .to_string(),
        "wait needs an argument \"run\": the id that run_script gave\n\
         \"waitMs\" must be a whole number of milliseconds\n\
         \"cancel\" must be true or false\n\
         \"bytes\" is 0, under the least, 1 bytes\n\
         wait has no argument \"id\"; it takes run, waitMs, cancel, offset, bytes"
    );
}

#[test]
fn the_schema_says_the_maxima() {
    let schema = run_script_schema(&Limits::default());
    let timeout = &schema["properties"]["limits"]["properties"]["timeoutMs"];
    assert_eq!(
        timeout,
        &json!({
            "type": "integer", "minimum": 1, "maximum": 10_000,
            "description": "ms, script time, waiting for tools not counted",
        })
    );
}
