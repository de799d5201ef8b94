//! The command line as it was typed: a hint repeats it, so that what people are told to type is a command that works, in the same place and
//! with the same filters.

use super::times::past;
use crate::config::is_secret;

/// Flags that say where a command works.
const PLACE: [&str; 6] = [
    "--url",
    "--context",
    "--ca-file",
    "--config",
    "--set",
    "--database-url",
];

/// Flags of lists that take a time. What is written as a distance is told as the moment that was meant: a list goes on by the same filters.
const TIMES: [&str; 6] = [
    "--since",
    "--until",
    "--created-after",
    "--created-before",
    "--ended-after",
    "--ended-before",
];

/// The same command once more, with this value of a flag in the place of the one that it had.
pub(super) fn again(flag: &str, value: &str) -> String {
    repeated(&typed(), flag, value)
}

/// Another command, in the place where this one works.
pub(super) fn beside(command: &str) -> String {
    in_the_same_place(&typed(), command)
}

/// Advice that names commands, each of them in the place where this one works.
pub(crate) fn advice(words: &str) -> String {
    placed(&typed(), words)
}

fn typed() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn repeated(line: &[String], flag: &str, value: &str) -> String {
    let kept = pieces(line, flag)
        .into_iter()
        .filter(|piece| piece.flag != Some(flag));
    let words = kept.flat_map(|piece| piece.words);
    let words = words.chain([flag.to_owned(), value.to_owned()]);
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn in_the_same_place(line: &[String], command: &str) -> String {
    let program = line.first().map(|word| quoted(word));
    let words = program.into_iter().chain(place(line));
    words.chain([command.to_owned()]).collect::<Vec<_>>().join(" ")
}

/// The flags of this line that say where it works.
fn place(line: &[String]) -> Vec<String> {
    let is_place = |piece: &Piece<'_>| piece.flag.is_some_and(|flag| PLACE.contains(&flag));
    let place = pieces(line.get(1..).unwrap_or_default(), "")
        .into_iter()
        .filter(is_place);
    place
        .flat_map(|piece| piece.words)
        .map(|word| quoted(&word))
        .collect()
}

fn placed(line: &[String], advice: &str) -> String {
    const PROGRAM: &str = "stationmaster ";
    let place = place(line);
    if place.is_empty() {
        return advice.to_owned();
    }
    let tree = crate::cli::tree();
    let works_there = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        let noun = &rest[..end.unwrap_or(rest.len())];
        // Contexts are where places are kept.
        noun != "contexts" && tree.find_subcommand(noun).is_some()
    };
    let mut parts = advice.split(PROGRAM);
    let mut said = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        said.push_str(PROGRAM);
        if works_there(rest) {
            said.push_str(&place.join(" "));
            said.push(' ');
        }
        said.push_str(rest);
    }
    said
}

/// A word of the line, or a flag with its value.
struct Piece<'a> {
    /// Which flag, of those that are looked for.
    flag: Option<&'a str>,
    words: Vec<String>,
}

/// The line, with the flags that are known here, and one more, told from other words. Passwords are left out.
fn pieces<'a>(line: &[String], one_more: &'a str) -> Vec<Piece<'a>> {
    let (mut pieces, mut words) = (Vec::new(), line.iter());
    while let Some(word) = words.next() {
        let (name, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let known = PLACE.into_iter().chain(TIMES).chain([one_more]);
        let flag = known.into_iter().find(|flag| *flag == name);
        let shown = |value: &str| match name {
            "--database-url" if is_secret("database_url", value) => "…".to_owned(),
            "--set" => set(value),
            name if TIMES.contains(&name) => {
                past(value).map_or_else(|_| value.to_owned(), |at| at.to_string())
            }
            _ => value.to_owned(),
        };
        let words = match (flag, value) {
            (None, _) => vec![word.clone()],
            (Some(flag), Some(value)) => vec![format!("{flag}={}", shown(value))],
            (Some(flag), None) => {
                let value = words.next().map(|value| shown(value));
                std::iter::once(flag.to_owned()).chain(value).collect()
            }
        };
        pieces.push(Piece { flag, words });
    }
    pieces
}

/// A setting and its value. What is secret, or has a part that is, is left out as a whole: with a part hidden it would not work as it is told,
/// and would look as if it did.
fn set(words: &str) -> String {
    match words.split_once('=') {
        Some((name, value)) if is_secret(name, value) => format!("{name}=…"),
        _ => words.to_owned(),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%…".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        let line = std::iter::once(&"stationmaster").chain(line);
        line.map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_same_command_once_more_keeps_all_but_the_place_that_it_had() {
        for (line, said) in [
            (&["queue", "list"][..], "queue list --before P"),
            (&["queue", "list", "--before", "old"], "queue list --before P"),
            (
                &["queue", "list", "--before=old", "--limit", "3"],
                "queue list --limit 3 --before P",
            ),
            (
                &[
                    "audit",
                    "list",
                    "--since",
                    "2026-11-15 14:00 UTC",
                    "--actor",
                    "it's",
                ],
                r"audit list --since 2026-11-15T14:00:00Z --actor 'it'\''s' --before P",
            ),
            (
                &["--url", "http://here:7373", "-o", "wide", "queue", "list"],
                "--url http://here:7373 -o wide queue list --before P",
            ),
        ] {
            assert_eq!(
                repeated(&words(line), "--before", "P"),
                format!("stationmaster {said}")
            );
        }
    }

    #[test]
    fn every_time_by_which_a_list_is_filtered_is_told_as_the_moment_that_was_meant() {
        fn lists(command: &clap::Command, found: &mut Vec<String>) {
            let goes_on = |flag: &clap::Arg| flag.get_value_names().is_some_and(|names| names[0] == "PLACE");
            if command.get_arguments().any(goes_on) {
                let is_time =
                    |flag: &&clap::Arg| flag.get_value_names().is_some_and(|names| names[0] == "TIME");
                let times = command
                    .get_arguments()
                    .filter(is_time)
                    .filter_map(clap::Arg::get_long);
                found.extend(times.map(|long| format!("--{long}")));
            }
            for verb in command.get_subcommands() {
                lists(verb, found);
            }
        }
        let (mut root, mut found) = (crate::cli::tree(), Vec::new());
        root.build();
        lists(&root, &mut found);
        assert!(found.len() > TIMES.len(), "{found:?}");
        for flag in found {
            assert!(TIMES.contains(&flag.as_str()), "{flag}");
        }
        let line = words(&["queue", "list", "--created-after", "1h"]);
        assert_eq!(repeated(&line, "--before", "P"), repeated(&line, "--before", "P"));
        let said = repeated(&line, "--before", "P");
        let exact = past("1h").unwrap_or_default();
        assert!(said.contains(&format!("--created-after {exact} ")), "{said}");
    }

    #[test]
    fn another_command_works_in_the_same_place_and_no_password_is_repeated() {
        let line = words(&[
            "queue",
            "cancel-all",
            "--all",
            "--url",
            "http://here",
            "--note",
            "so it is",
        ]);
        assert_eq!(
            in_the_same_place(&line, "operations wait 1"),
            "stationmaster --url http://here operations wait 1"
        );
        for line in [
            &["queue", "list", "--database-url", "postgres://me:planted@host/x"][..],
            &["queue", "list", "--database-url=postgres://me:planted@host/x"],
            &["queue", "list", "--set", "temporal.api_key=planted"],
            &["queue", "list", "--set=redis_url=redis://:planted@host/0"],
        ] {
            for said in [
                repeated(&words(line), "--before", "P"),
                in_the_same_place(&words(line), "doctor"),
            ] {
                assert!(
                    !said.contains("planted") && !said.contains("***") && said.contains('…'),
                    "{said}"
                );
            }
        }
        let line = words(&["queue", "list", "--database-url", "postgres://me@host/x"]);
        assert_eq!(
            in_the_same_place(&line, "doctor"),
            "stationmaster --database-url postgres://me@host/x doctor"
        );
    }

    #[test]
    fn a_command_in_an_advice_works_in_the_same_place() {
        let line = words(&["queue", "list", "--url", "http://here"]);
        for (advice, said) in [
            (
                "See what is missing: stationmaster doctor",
                "See what is missing: stationmaster --url http://here doctor",
            ),
            (
                "Run `stationmaster tokens list`, then stationmaster --url http://there doctor",
                "Run `stationmaster --url http://here tokens list`, then stationmaster --url http://there doctor",
            ),
            (
                "Keep one: stationmaster contexts add NAME --url URL",
                "Keep one: stationmaster contexts add NAME --url URL",
            ),
            (
                "The role of stationmaster needs rights",
                "The role of stationmaster needs rights",
            ),
        ] {
            assert_eq!(placed(&line, advice), said);
            assert_eq!(placed(&words(&["queue", "list"]), advice), advice);
        }
    }
}
