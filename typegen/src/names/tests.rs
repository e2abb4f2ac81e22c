//! Names that meet, follow each other, and go.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{MAX_GONE, Names, aliases, assign, assign_after, prefix};
use crate::reserved::is_reserved_value;

/// Every function with its server and tool.
fn all(names: &Names) -> impl Iterator<Item = (&str, &str, &str)> {
    let servers = names.functions.iter();
    servers.flat_map(|(server, tools)| {
        let tools = tools.iter();
        tools.map(move |(tool, function)| (function.as_str(), server.as_str(), tool.as_str()))
    })
}

/// The server and the tool of a function.
fn original<'n>(names: &'n Names, function: &str) -> Option<(&'n str, &'n str)> {
    let mut found = all(names).filter(|(name, ..)| *name == function);
    let (_, server, tool) = found.next()?;
    assert_eq!(found.next(), None, "{function} is not unique");
    Some((server, tool))
}

fn check(pairs: &[(&str, &str)], expected: Expect) {
    let names = assign(pairs.iter().copied());
    let mut text = String::new();
    for (server, tool) in pairs {
        let function = names.function(server, tool).unwrap();
        assert_eq!(original(&names, function), Some((*server, *tool)));
        text.push_str(&format!("{server:?} {tool:?} -> {function}\n"));
    }
    for collision in names.collisions() {
        text.push_str(&format!("collision on {}", collision.name));
        for member in &collision.members {
            text.push_str(&format!(" | {:?} {:?}", member.server, member.tool));
        }
        text.push('\n');
    }
    expected.assert_eq(&text);
}

#[test]
fn plain_names_are_server_and_tool() {
    check(
        &[("logging", "getLogs"), ("ticketing", "create-issue")],
        expect![[r#"
            "logging" "getLogs" -> logging_getLogs
            "ticketing" "create-issue" -> ticketing_create_issue
        "#]],
    );
    // Names that meet are all suffixed.
    check(
        &[("s", "get-user"), ("s", "get_user"), ("s", "getUser")],
        expect![[r#"
            "s" "get-user" -> s_get_user_c97c69b6
            "s" "get_user" -> s_get_user_7e0bb0c2
            "s" "getUser" -> s_getUser
            collision on s_get_user | "s" "get-user" | "s" "get_user"
        "#]],
    );
    // The border between server and tool is part of the pair.
    check(
        &[("a", "b_c"), ("a_b", "c"), ("a-b", "t"), ("a_b", "t")],
        expect![[r#"
            "a" "b_c" -> a_b_c_c53298f9
            "a_b" "c" -> a_b_c_94f0d6a8
            "a-b" "t" -> a_b_t_8a0d1c03
            "a_b" "t" -> a_b_t_420389dd
            collision on a_b_c | "a" "b_c" | "a_b" "c"
            collision on a_b_t | "a-b" "t" | "a_b" "t"
        "#]],
    );
}

#[test]
fn repeated_server_name_is_dropped_from_function() {
    for case in "
        git git_log → git_log
        git git-log → git_log
        git git.log → git_log
        git gitLog → git_log
        git gitHTTPGet → git_HTTPGet
        git git__log → git__log
        github github_create_issue → github_create_issue
        notion notion-search → notion_search
        GitHub github_get → GitHub_get
        google-maps google_maps_find → google_maps_find
        3d 3d-print → _3d_print
        git github_x → git_github_x
        git gitlog → git_gitlog
        git GITLog → git_GITLog
        fetch fetch → fetch_fetch
        git git_ → git_git_
         _x → __x
        日 __x → ____x
        git git_git_log → git_git_git_log"
        .lines()
        .skip(1)
    {
        let (pair, expected) = case.split_once(" → ").expect(case);
        let (server, tool) = pair[8..].split_once(' ').expect(case);
        let names = assign([(server, tool)]);
        assert_eq!(names.function(server, tool), Some(expected), "{case}");
    }
}

#[test]
fn colliding_short_names_get_suffixes() {
    let pairs = [("git", "git_log"), ("git", "log")];
    check(
        &pairs,
        expect![[r#"
        "git" "git_log" -> git_log_cc24f5ac
        "git" "log" -> git_log_933cc077
        collision on git_log | "git" "git_log" | "git" "log"
    "#]],
    );
    // A short name that begins as another server's names do.
    let among = Names::default().among(["git", "git_log"]);
    let names = assign_after(&among, [("git", "git_log_all"), ("git_log", "all")]);
    assert_eq!(original(&names, "git_log_all"), Some(("git_log", "all")));
    assert_eq!(names.function("git", "git_log_all"), Some("git_$log_all"));
}

#[test]
fn aliases_lack_suffixes_and_repeat_the_server() {
    for (server, tool, function, expected) in [
        ("s", "get_user", "s_get_user", &[][..]),
        ("s", "get_user", "s_get_user_7e0bb0c2", &["s_get_user"][..]),
        ("git", "git_log", "git_log", &["git_git_log"][..]),
        (
            "git",
            "git_log",
            "git_log_cc24f5ac",
            &["git_log", "git_git_log"][..],
        ),
        (
            "github",
            "issues-x",
            "github_$issues_x",
            &["github_issues_x"][..],
        ),
    ] {
        assert_eq!(aliases(server, tool, function), expected, "{function}");
    }
}

#[test]
fn words_and_strange_names_become_identifiers() {
    check(
        &[
            ("s", "delete"),
            ("s", "constructor"),
            ("s", "then"),
            ("s", "__proto__"),
            ("", "_proto__"),
            ("3d", "3d-print"),
            ("s", "日本"),
            ("s", ""),
            ("", ""),
            ("日", "a\u{0}b\n"),
            ("$", "$"),
        ],
        expect![[r#"
            "s" "delete" -> s_delete
            "s" "constructor" -> s_constructor
            "s" "then" -> s_then
            "s" "__proto__" -> s___proto__
            "" "_proto__" -> __proto___
            "3d" "3d-print" -> _3d_print
            "s" "日本" -> s___
            "s" "" -> s_
            "" "" -> _
            "日" "a\0b\n" -> __a_b_
            "$" "$" -> $_$
        "#]],
    );
}

/// However many tools of a server stand in the way of the shorter names.
#[test]
fn longer_suffixes_extend_the_same_digits() {
    let pair = ("s", "get_user");
    let mut pairs = vec![("s", "get-user".to_owned()), ("s", pair.1.to_owned())];
    let mut last = String::new();
    for round in 1..=10 {
        let names = assign(pairs.iter().map(|(s, t)| (*s, t.as_str())));
        let function = names.function(pair.0, pair.1).unwrap();
        let digits = function.strip_prefix("s_get_user_").unwrap();
        assert_eq!(digits.len(), 8 * round);
        assert!(digits.starts_with(&last), "{function}");
        // After 64 digits, the hash repeats.
        assert!(digits.len() <= 64 || digits.ends_with(&digits[..digits.len() - 64]));
        last = digits.to_owned();
        let next = function.strip_prefix("s_").unwrap().to_owned();
        pairs.push(("s", next));
    }
}

#[test]
fn suffixed_name_depends_only_on_servers() {
    let alone = Names::default().among(["a", "a_b_c", "s"]);
    for (pair, function) in [
        (("s", "get_user"), "s_get_user_7e0bb0c2"),
        // The natural name does not start with `a_b_c_`, but the suffixed name would.
        (("a", "b-c"), "a_$b_c_406f2f2a"),
    ] {
        let without = assign_after(&alone, [pair]);
        let (server, tool) = pair;
        assert!(!without.function(server, tool).unwrap().contains('$'));
        let twin = tool.replace(['-', '_'], ".");
        let beside = assign_after(&alone, [pair, (server, &twin)]);
        assert_eq!(beside.function(server, tool), Some(function));
    }
}

/// A rule or a grant for the name must not come to mean another's tool.
#[test]
fn name_of_removed_tool_stays_reserved() {
    let before = assign([("a", "b_c")]);
    let between = assign_after(&before, [("a_b", "c")]);
    assert_ne!(between.function("a_b", "c"), Some("a_b_c"));
    let after = assign_after(&between, [("a_b", "c"), ("a", "b_c")]);
    assert_eq!(after.function("a", "b_c"), Some("a_b_c"));
    assert_eq!(after.function("a_b", "c"), between.function("a_b", "c"));
}

#[test]
fn reserved_name_is_never_assigned() {
    let reserving = Names::reserving(["model_extract"]);
    let pairs = [("model", "extract"), ("model", "other")];
    let first = assign_after(&reserving, pairs);
    let function = first.function("model", "extract").expect("a name");
    assert!(function.starts_with("model_extract_"), "{function}");
    assert_eq!(first.function("model", "other"), Some("model_other"));
    assert_eq!(first.collisions().len(), 1);
    // A reserved name stays unused in later catalogs.
    let gone = assign_after(&first, []);
    let later = assign_after(&gone, [("model_extract", ""), ("model", "ext.ract")]);
    assert_eq!(original(&later, "model_extract"), None);
    let again = assign_after(&gone, pairs);
    assert_eq!(again.function("model", "extract"), Some(function));
}

#[test]
fn the_names_of_gone_tools_are_bounded() {
    let many: Vec<String> = (0..2 * MAX_GONE).map(|n| format!("t{n}")).collect();
    let all = assign(many.iter().map(|tool| ("s", tool.as_str())));
    let none = assign_after(&all, []);
    let kept: usize = none.gone.values().map(BTreeMap::len).sum();
    assert_eq!(kept, MAX_GONE);
}

proptest! {
    #[test]
    fn the_map_is_injective_and_independent_of_order(
        pairs in prop::collection::vec(("[ab_\\-3é]{0,3}", "[ab_\\-3é]{0,3}"), 0..40),
    ) {
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
        let distinct: BTreeSet<_> = pairs.iter().copied().collect();
        let names = assign(pairs.iter().copied());
        let functions: BTreeSet<&str> = all(&names).map(|(function, ..)| function).collect();
        prop_assert_eq!(functions.len(), distinct.len());
        prop_assert_eq!(&names, &assign(pairs.iter().rev().copied()));
        for (function, server, tool) in all(&names) {
            prop_assert_eq!(names.function(server, tool), Some(function));
            prop_assert!(distinct.contains(&(server, tool)));
        }
    }

    #[test]
    fn names_stay_across_successive_catalogs(
        before in prop::collection::vec(("[ab_\\-3é]{0,3}", "[ab_\\-3é]{0,3}"), 0..20),
        after in prop::collection::vec(("[ab_\\-3é]{0,3}", "[ab_\\-3é]{0,3}"), 0..20),
    ) {
        let first = assign(before.iter().map(|(s, t)| (s.as_str(), t.as_str())));
        let second = assign_after(&first, after.iter().map(|(s, t)| (s.as_str(), t.as_str())));
        let distinct: BTreeSet<_> = after.iter().collect();
        prop_assert_eq!(all(&second).count(), distinct.len());
        for (function, server, tool) in all(&first) {
            let now = second.function(server, tool);
            prop_assert!(now.is_none() || now == Some(function));
            let holder = original(&second, function);
            prop_assert!(holder.is_none() || holder == Some((server, tool)));
        }
    }

    #[test]
    fn unrelated_servers_do_not_change_names(
        pairs in prop::collection::vec(("[ab_\\-3é]{0,3}", "[ab_\\-3é]{0,3}"), 0..20),
        others in prop::collection::vec(("z[ab_\\-3é]{0,3}", "[ab_\\-3é]{0,3}"), 0..20),
    ) {
        let pairs = || pairs.iter().map(|(s, t)| (s.as_str(), t.as_str()));
        let others = others.iter().map(|(s, t)| (s.as_str(), t.as_str()));
        let alone = assign(pairs());
        let together = assign(others.chain(pairs()));
        for (function, server, tool) in all(&alone) {
            prop_assert_eq!(together.function(server, tool), Some(function));
        }
    }

    #[test]
    fn every_name_is_an_identifier(server in any::<String>(), tool in any::<String>()) {
        let names = assign([(server.as_str(), tool.as_str())]);
        let name = names.function(&server, &tool).unwrap();
        prop_assert!(!name.starts_with(|c: char| c.is_ascii_digit()));
        prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_$".contains(c)));
        prop_assert!(!name.is_empty() && !is_reserved_value(name));
    }
}

#[test]
fn name_avoids_the_prefix_of_longer_servers() {
    let servers = [
        "github",
        "github_issues",
        "github-issues-old",
        "github_",
        "github_$",
    ];
    let among = Names::reserving([]).among(servers);
    let names = assign_after(
        &among,
        [
            ("github", "issues_delete_repo"),
            ("github", "issues"),
            ("github", "_issues_x"),
            ("github", "$_issues_x"),
            ("github", "$$_issues_x"),
            ("github", "issues_old_x"),
            ("github_issues", "delete_repo"),
            ("github_issues", "old_y"),
            ("github-issues-old", "y"),
            ("github_", "x"),
        ],
    );
    for (server, tool, function) in [
        ("github_issues", "delete_repo", "github_issues_delete_repo"),
        ("github-issues-old", "y", "github_issues_old_y"),
        ("github_issues", "old_y", "github_issues_$old_y"),
        ("github", "issues", "github_issues"),
        ("github_", "x", "github__x"),
    ] {
        assert_eq!(names.function(server, tool), Some(function), "{tool}");
    }
    check_owners(&names, &servers);
    // It is reported, and stays so while a server is away.
    let told = names.collisions().iter();
    assert!(
        told.map(|it| it.name.as_str())
            .any(|name| name == "github_issues_delete_repo")
    );
    let alone = assign_after(&among, [("github", "issues_delete_repo")]);
    let kept = alone.function("github", "issues_delete_repo");
    assert_eq!(kept, names.function("github", "issues_delete_repo"));
    assert!(!kept.is_some_and(|name| name.starts_with("github_issues_")));
}

/// Checks that the longest beginning of each name is the beginning of its own server.
#[track_caller]
fn check_owners(names: &Names, servers: &[&str]) {
    for (function, server, _) in all(names) {
        let owners = servers.iter().map(|server| prefix(server));
        let owners = owners.filter(|owner| function.starts_with(owner));
        let longest = owners.max_by_key(String::len);
        assert_eq!(longest, Some(prefix(server)), "{function}");
    }
}

proptest! {
    #[test]
    fn names_stay_unique_after_collisions_and_removals(
        servers in prop::collection::vec("[a_\\-]{0,3}|[a_]{2}_[0-9a-f]{1,2}", 1..6),
        lists in prop::collection::vec(
            prop::collection::vec((any::<prop::sample::Index>(), "[a_\\-]{0,4}"), 0..20), 1..4,
        ),
    ) {
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let mut names = Names::reserving(["a_a", "__a"]).among(servers.iter().copied());
        for tools in &lists {
            let pairs = tools.iter().map(|(server, tool)| (*server.get(&servers), tool.as_str()));
            let distinct: BTreeSet<_> = pairs.clone().collect();
            names = assign_after(&names, pairs);
            let functions: BTreeSet<&str> = all(&names).map(|(function, ..)| function).collect();
            prop_assert_eq!(functions.len(), distinct.len());
            check_owners(&names, &servers);
        }
    }
}
