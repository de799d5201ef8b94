//! The command line as it was typed: a hint repeats it, so that what people are told to type is a command that works, in the same place and
//! with the same filters.

use super::times::past;
use crate::config::without_password;

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
    let (program, arguments) = line.split_at(line.len().min(1));
    let is_place = |piece: &Piece<'_>| piece.flag.is_some_and(|flag| PLACE.contains(&flag));
    let place = pieces(arguments, "").into_iter().filter(is_place);
    let words = program.iter().cloned().chain(place.flat_map(|piece| piece.words));
    let words = words.map(|word| quoted(&word));
    words.chain([command.to_owned()]).collect::<Vec<_>>().join(" ")
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
            "--database-url" => without_password(value),
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

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
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
        ] {
            let said = repeated(&words(line), "--before", "P");
            assert!(!said.contains("planted") && said.contains("host/x"), "{said}");
            let said = in_the_same_place(&words(line), "doctor");
            assert!(!said.contains("planted") && said.contains("host/x"), "{said}");
        }
    }
}
