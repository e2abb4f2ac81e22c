//! Values over a size limit are cut or refused.

use std::time::Duration;

use callgate_sandbox::{End, Ended, Returned};

use crate::limited;
use crate::support::{job, printed, returned, run_job};

#[tokio::test]
async fn a_gigabyte_of_output_is_cut() {
    let mut job = job("const m = 'm'.repeat(1023); console.log('first'); \
         for (let i = 0; i < 2 ** 20; i++) console.log(m); console.log('last');");
    job.limits.script_time = Duration::from_secs(60);
    job.limits.output_bytes = 40;
    let ended = run_job(job).await;
    assert_eq!(returned(&ended), "");
    assert_eq!(ended.output.head, format!("first\n{}", "m".repeat(14)));
    assert_eq!(ended.output.tail, format!("{}\nlast\n", "m".repeat(14)));
    assert_eq!(ended.output.cut_bytes, (1 << 30) + 6 + 5 - 40);
    assert_eq!(ended.output.cut_lines, (1 << 20) - 1);
}

#[tokio::test]
async fn giant_values_are_shown_within_a_budget() {
    let check = async |value: &str, expected: &str| {
        let script = format!("console.log({value}); console.log('end');");
        let ended = run_job(limited(&script, |limits| {
            limits.script_time = Duration::from_secs(60);
            limits.message_bytes = 1000;
            limits.output_bytes = 1000;
        }))
        .await;
        assert_eq!(returned(&ended), "");
        let printed = printed(&ended.output);
        assert!(printed.contains(expected), "{printed}");
        assert!(printed.ends_with("end\n"), "{printed}");
    };
    let big = "Object.fromEntries(Array.from({ length: 2e5 }, (_, i) => ['key' + i, 'value']))";
    check(big, "more properties").await;
    check("new Array(2 ** 32 - 1)", "[ <4294967295 empty items> ]").await;
    let items = "Array.from({ length: 1e6 }, (_, i) => 'item' + i)";
    check(items, "more items").await;
}

#[tokio::test]
async fn long_table_counts_further_rows() {
    for (value, expected) in [
        (
            "Array.from({ length: 203 }, (_, i) => i)",
            "\n... 3 more rows\n",
        ),
        ("new Set(Array(250).keys())", "\n... 50 more rows\n"),
    ] {
        let ended = run_job(job(&format!("console.table({value});"))).await;
        assert_eq!(returned(&ended), "");
        let printed = printed(&ended.output);
        assert!(printed.ends_with(expected), "{printed}");
    }
}

#[tokio::test]
async fn giant_message_is_cut_and_counted() {
    let check = async |text: &str, bytes: u64, (head, tail): (&str, &str), cut: u64| {
        let script = format!("console.log({text});");
        let ended = run_job(limited(&script, |limits| {
            limits.script_time = Duration::from_secs(60);
            limits.output_bytes = bytes;
        }))
        .await;
        assert_eq!(returned(&ended), "");
        assert_eq!(ended.output.head, head);
        assert_eq!(ended.output.tail, tail);
        assert_eq!(ended.output.cut_bytes, cut);
    };
    // More than the limit of one message.
    let head = "é".repeat(75_000);
    let tail = format!("{}\n", "é".repeat(25_000));
    check("'é'.repeat(1e5)", 300_000, (&head, &tail), 0).await;
    let (head, tail) = ("x".repeat(20), format!("{}\n", "x".repeat(19)));
    check("'x'.repeat(1e8)", 40, (&head, &tail), 100_000_001 - 40).await;
    let (head, tail) = ("😀".repeat(5), format!("{}\n", "😀".repeat(4)));
    check("'😀'.repeat(1e6)", 40, (&head, &tail), 4_000_001 - 37).await;
}

#[tokio::test]
async fn giant_kept_message_states_cut_characters() {
    let ended = run_job(limited("console.log('a' + '😀'.repeat(40));", |limits| {
        limits.output_bytes = 8;
        limits.message_bytes = 8;
        limits.whole_bytes = 1000;
    }))
    .await;
    let whole = ended.output.whole.as_deref();
    assert_eq!(whole, Some("a😀… 74 characters cut …😀😀\n"));
    assert_eq!(ended.output.cut_bytes, 162 - 2);
}

#[tokio::test]
async fn large_result_is_bounded_by_reply_limit() {
    let script = "const text = await big({ bytes: 100000000 }); return text.length;";
    let mut job = limited(script, |limits| limits.script_time = Duration::from_secs(8));
    assert_eq!(returned(&run_job(job.clone()).await), "99999998");
    job.limits.reply_bytes = 1 << 20;
    let End::Threw(exception) = run_job(job).await.end else {
        panic!("a smaller limit");
    };
    assert_eq!(exception.name, "McpProtocolError");
    let expected = "the result is 100000000 bytes of JSON, over the limit of 1048576 bytes";
    assert_eq!(exception.message, expected);
}

#[tokio::test]
async fn cut_output_can_be_kept_in_full() {
    let script = "for (let i = 0; i < 100; i++) console.log(`line ${i}`); return 'é'.repeat(100);";
    let mut job = job(script);
    job.limits.output_bytes = 20;
    job.limits.result_bytes = 11;
    let mut check = async |whole_bytes, expected: Option<String>| {
        job.limits.whole_bytes = whole_bytes;
        let Ended { end, output, .. } = run_job(job.clone()).await;
        let End::Returned(Returned::Cut {
            head,
            tail,
            total_bytes,
            whole,
        }) = end
        else {
            panic!("{end:?}");
        };
        let cut = (head.as_str(), tail.as_str(), total_bytes, whole);
        assert_eq!(cut, ("\"éé", "éé\"", 202, expected));
        assert_eq!(output.head, "line 0\nlin");
        assert_eq!(output.tail, "8\nline 99\n");
        output.whole
    };
    check(0, None).await;
    let whole = check(1 << 20, Some(format!("\"{}\"", "é".repeat(100)))).await;
    assert_eq!(
        whole,
        Some((0..100).map(|i| format!("line {i}\n")).collect())
    );

    // Not all of it fits.
    let whole = check(30, None).await.expect("it is kept");
    assert!(whole.starts_with("line 0\nline 1\nline 2\n"), "{whole}");
    let end = "bytes are not kept; the end follows]\n8\nline 99\n";
    assert!(whole.ends_with(end), "{whole}");
}

#[tokio::test]
async fn emitted_blocks_are_bounded() {
    let script = "const thrown = (content) => {
        try { mcp.emit(content); return 'none' } catch (error) { return `${error.name}: ${error.message}` }
      };
      const long = thrown('x'.repeat(100));
      mcp.emit('a'); mcp.emit('b');
      return [long, thrown('c')];";
    let mut job = job(script);
    job.limits.emits = 2;
    job.limits.emit_bytes = 100;
    let ended = run_job(job).await;
    let emitted: Vec<_> = ended.emitted.iter().map(|block| block.get()).collect();
    let block = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    assert_eq!(emitted, [block("a"), block("b")]);
    assert_eq!(
        returned(&ended),
        "[\"RangeError: with this block of 125 bytes the script would have emitted 125, over the \
         limit of 100 bytes\",\"RangeError: the script has emitted 2 blocks, which is the limit\"]"
    );
}
