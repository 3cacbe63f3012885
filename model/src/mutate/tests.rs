//! Each rule that no world reaches is dropped by the test that its line names. Read from the
//! text of that test and of what it calls in its own file.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// A function or constant of a file, comments left out.
struct Item<'a> {
    name: &'a str,
    test: bool,
    body: String,
}

/// The functions and constants of a formatted file: one ends at the line that closes it under
/// its own indentation.
fn items(text: &str) -> Vec<Item<'_>> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let mut items = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let (keyword, name) = match named(line) {
            Some(named) => named,
            None => continue,
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let close = format!("{indent}}}");
        let ends = |line: &str| match keyword {
            "fn" => line == close || line.ends_with('}') && line.starts_with(indent),
            _ => line.ends_with(';'),
        };
        let whole = match keyword {
            // A function that opens is not over before the line that closes it.
            "fn" if line.ends_with('{') || line.ends_with('(') => {
                lines[at..].iter().position(|line| *line == close)
            }
            _ => lines[at..].iter().position(|line| ends(line)),
        };
        let last = whole.map_or(lines.len() - 1, |length| at + length);
        let attributes = lines[..at].iter().rev();
        let mut attributes = attributes.take_while(|line| line.trim_start().starts_with("#["));
        items.push(Item {
            name,
            test: attributes.any(|line| {
                let line = line.trim_start();
                line == "#[test]" || line.starts_with("#[tokio::test")
            }),
            body: lines[at..=last].join("\n"),
        });
    }
    items
}

/// `fn` or `const` and the name behind it, where a line begins an item.
fn named(line: &str) -> Option<(&'static str, &str)> {
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let keyword = match word {
            "async" | "pub" | "pub(crate)" | "pub(super)" => continue,
            // A constant function is a function.
            "const" if words.peek() == Some(&"fn") => continue,
            "fn" => "fn",
            "const" | "static" => "const",
            _ => return None,
        };
        let name = words.next()?;
        let end = name.find(|letter: char| !is_word(letter));
        return Some((keyword, &name[..end.unwrap_or(name.len())]));
    }
    None
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_word(letter))
        .filter(|word| !word.is_empty())
}

/// The test and everything of its file that it names, directly or not.
fn reached(text: &str, test: &str) -> Result<String, String> {
    let items = items(text);
    if !items.iter().any(|item| item.name == test) {
        return Err("the file has no such function".to_owned());
    }
    if !items.iter().any(|item| item.name == test && item.test) {
        return Err("it is no test".to_owned());
    }
    let mut names: BTreeSet<&str> = BTreeSet::from([test]);
    loop {
        let known = names.len();
        let bodies = items.iter().filter(|item| names.contains(item.name));
        let called: BTreeSet<&str> = bodies.flat_map(|item| words(&item.body)).collect();
        let more = items.iter().map(|item| item.name);
        names.extend(more.filter(|name| called.contains(name)));
        if names.len() == known {
            break;
        }
    }
    let bodies = items.iter().filter(|item| names.contains(item.name));
    let bodies: Vec<&str> = bodies.map(|item| item.body.as_str()).collect();
    Ok(bodies.join("\n"))
}

/// Whether the named test drops the rule.
fn drops(text: &str, test: &str, rule: &str) -> Result<(), String> {
    let reached = reached(text, test)?;
    let named = reached.match_indices("Rule::").any(|(at, prefix)| {
        let name = reached[at + prefix.len()..].split(|letter: char| !is_word(letter));
        name.take(1).any(|name| name == rule)
    });
    match (named, words(&reached).any(|word| word == "Without")) {
        (false, _) => Err("it does not name the rule".to_owned()),
        (true, false) => Err("it drops no rule".to_owned()),
        (true, true) => Ok(()),
    }
}

/// The lines whose test is not there, or does not drop the rule, and how many were looked at.
fn stale(text: &str) -> (usize, Vec<String>) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut looked, mut found) = (0, Vec::new());
    for (rule, expected) in expected(text).unwrap() {
        let Expected::Elsewhere(Shown { file, test }) = expected else {
            continue;
        };
        looked += 1;
        let checked = std::fs::read_to_string(checkout.join(file))
            .map_err(|_| "there is no such file".to_owned())
            .and_then(|text| drops(&text, test, rule));
        if let Err(why) = checked {
            found.push(format!("{rule}: {file}: {test}: {why}"));
        }
    }
    (looked, found)
}

#[test]
fn each_rule_that_no_world_reaches_is_dropped_by_the_test_that_its_line_names() {
    let (looked, found) = stale(EXPECTED);
    assert!(looked > 50, "{looked}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_planted_stale_line_is_found() {
    let file = "core/src/redact/paths.rs";
    let test = "without_the_rule_a_path_spells_the_value";
    let line = |rule, file, test| stale(&format!("{rule} elsewhere {file}: {test}; a remark")).1;
    assert!(line("RedactPathTokens", file, test).is_empty());
    for (rule, file, test, why) in [
        ("GuardKeys", file, test, "it does not name the rule"),
        (
            "RedactPathTokens",
            "core/src/nowhere.rs",
            test,
            "there is no such file",
        ),
        (
            "RedactPathTokens",
            file,
            "a_test_nobody_wrote",
            "the file has no such function",
        ),
        ("RedactPathTokens", file, "unredacted", "it is no test"),
    ] {
        assert_eq!(
            line(rule, file, test),
            [format!("{rule}: {file}: {test}: {why}")]
        );
    }
    for text in [
        "RedactPathTokens elsewhere core, redact: a test of it",
        "RedactPathTokens elsewhere core/src/redact/paths.rs",
        "NoSuchRule elsewhere core/src/redact/paths.rs: a_test",
        "RedactPathTokens elsewhere a.rs: b\nRedactPathTokens masked twice",
        "RedactPathTokens somewhere a.rs: b",
    ] {
        assert!(expected(text).is_err(), "{text}");
    }
}

#[test]
fn a_test_drops_a_rule_only_if_it_or_what_it_calls_says_so() {
    let check = |text: &str| drops(text, "it_holds", "GuardKeys");
    let called = "const DROPPED: &[Rule] = &[\n    Rule::GuardKeys,\n];\n\n\
        fn check() {\n    run(Without(DROPPED));\n}\n\n\
        #[tokio::test]\nasync fn it_holds() {\n    check();\n}\n";
    assert_eq!(check(called), Ok(()));
    let inside = "mod tests {\n    #[test]\n    fn it_holds() {\n        \
        run(Without(&[Rule::GuardKeys]));\n    }\n}\n";
    assert_eq!(check(inside), Ok(()));
    let beside = "#[test]\nfn it_holds() {\n    run(Without(&[Rule::GuardKeysToo]));\n    \
        // Not Rule::GuardKeys.\n}\n\n#[test]\nfn other() {\n    \
        run(Without(&[Rule::GuardKeys]));\n}\n";
    assert_eq!(check(beside), Err("it does not name the rule".to_owned()));
    let kept = "#[test]\nfn it_holds() {\n    run(Enforced, Rule::GuardKeys);\n}\n";
    assert_eq!(check(kept), Err("it drops no rule".to_owned()));
    let unrun = "fn it_holds() {\n    run(Without(&[Rule::GuardKeys]));\n}\n";
    assert_eq!(check(unrun), Err("it is no test".to_owned()));
}
