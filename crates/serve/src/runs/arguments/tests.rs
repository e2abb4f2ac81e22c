use super::*;

/// Reads the arguments where there is one server, `logging`.
fn read(arguments: &Value) -> Result<(String, Limits, Option<Vec<String>>), String> {
    let server = |name: &str| match name {
        "logging" => Ok(()),
        _ => Err(format!("no server is named {name:?}")),
    };
    let arguments = arguments.as_object();
    read_script(
        Arguments::of("run_script", arguments),
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
        "run_script was not called:\n\
         - \"code\" must be a string: the script's text, and this is 1\n\
         - \"limits.timeoutMs\" must be a whole number of milliseconds from 1 to 10000, and this is 10001\n\
         - \"limits.memoryBytes\" must be a whole number of bytes from 16777216 to 134217728, and this is 1\n\
         - \"limits.calls\" must be a whole number of calls from 0 to 10000, and this is 1.5\n\
         - \"limits.callsInFlight\" must be a whole number of calls from 1 to 1000, and this is \"2\"\n\
         - \"limits.waitMs\" must be a whole number of milliseconds from 0 to 600000, and this is 600001\n\
         - there is no member of \"limits\" \"time\"; there are timeoutMs, runTimeoutMs, \
         memoryBytes, outputBytes, resultBytes, calls, callsInFlight, waitMs\n\
         - servers[1]: no server is named \"loging\"\n\
         - servers[2] must be a string, a server's name\n\
         - there is no argument \"script\"; there are code, limits, servers",
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
        "wait was not called:\n\
         - \"run\" is missing: the id that run_script gave, a string\n\
         - \"waitMs\" must be a whole number of milliseconds from 0 to 600000, and this is -1\n\
         - \"cancel\" must be true or false, and this is \"yes\"\n\
         - \"bytes\" must be a whole number of bytes, at least 1, and this is 0\n\
         - there is no argument \"id\"; there are run, waitMs, cancel, offset, bytes"
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
