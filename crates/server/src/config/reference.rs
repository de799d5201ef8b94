//! The page docs/configuration.md and the file that `config init` writes, made from the table so that they cannot tell anything else.

use std::fmt::Write as _;

use super::mask::Secrecy;
use super::settings::{SETTINGS, Setting};

const HEAD: &str = "\
# Configuration

<!-- Generated: cargo run -p stationmaster -- docs configuration > docs/configuration.md -->

Every setting has a key, such as `executions.batch_size`, and can be given in four ways. From weak to strong:

1. its default;
2. a TOML file, named by `--config PATH` or `STATIONMASTER_CONFIG`: the part of the key before the dot is the table;
3. the environment: `STATIONMASTER_` and the key in capitals, its dot as two underscores, as in
   `STATIONMASTER_EXECUTIONS__BATCH_SIZE`;
4. flags: `--set executions.batch_size=100` for any setting, and for the common ones a flag of their own: `--database-url`,
   `--engine`, `--listen`, `--temporal-address`, `--temporal-namespace`, `--log-level`.

The strongest word on a setting counts. An empty value takes a setting away that may be left out. A name that is no setting,
a value that cannot be read, and values that cannot work together stop the program with exit code 2 and a message that tells
all of it at once. `stationmaster config show` prints the effective values and where each came from.

A secret may be kept in a file of its own: add `_FILE` to the variable (`STATIONMASTER_DATABASE_URL_FILE`) or `_file` to the
key (`database_url_file`). Secrets are never printed. Settings that have one are marked (s).

```toml
database_url_file = \"/run/secrets/database_url\"
engine = \"temporal\"

[temporal]
address = \"temporal.internal:7233\"

[executions]
batch_size = 200
retention = \"3d\"
```

Durations are written with their unit: `250ms`, `5s`, `1h 30m`, `7d`. They are longer than nothing and at most ten years.
";

/// The sections of the page: the part of the key before the dot, and a title.
const SECTIONS: [(&str, &str); 10] = [
    ("", "General"),
    ("log", "Logging"),
    ("traces", "Traces"),
    ("http", "HTTP"),
    ("temporal", "Temporal"),
    ("executions", "Executions"),
    ("locks", "Locks"),
    ("dispatchers", "Dispatchers and signals"),
    ("alarms", "Alarms"),
    ("dev", "Development"),
];

/// The page.
pub(crate) fn reference() -> String {
    let mut page = HEAD.to_owned();
    for (section, title) in SECTIONS {
        let settings = SETTINGS.iter().filter(|setting| section_of(setting) == section);
        let rows: String = settings.map(row).collect();
        let _ = write!(
            page,
            "\n## {title}\n\n| setting | default | may be | what it does |\n|---|---|---|---|\n{rows}"
        );
    }
    page
}

const TEMPLATE_HEAD: &str = "\
# Settings of Stationmaster. Every setting is here, commented out, with its default where it has one. What is said by the environment
# (STATIONMASTER_EXECUTIONS__BATCH_SIZE) or by a flag (--set executions.batch_size=100) counts more than what is said here.
#
# A secret may lie in a file of its own: add _file to its name, as in database_url_file = \"/run/secrets/database_url\".
# Durations have a unit: 250ms, 5s, 1h 30m, 7d. `stationmaster config show --config FILE` tells what is in force.
";

/// Columns of a comment.
const WIDTH: usize = 100;

/// A file with every setting in it, commented out.
pub(crate) fn template() -> String {
    let mut file = TEMPLATE_HEAD.to_owned();
    for (section, title) in SECTIONS {
        let _ = write!(file, "\n# {title}\n");
        if !section.is_empty() {
            let _ = writeln!(file, "[{section}]");
        }
        for setting in SETTINGS.iter().filter(|setting| section_of(setting) == section) {
            let name = setting.key.rsplit_once('.').map_or(setting.key, |(_, name)| name);
            let value = setting.default.map_or_else(|| "\"\"".to_owned(), in_toml);
            let form = format!("May be {}.", plain(&setting.form()));
            let _ = write!(
                file,
                "\n{}{}# {name} = {value}\n",
                comment(&plain(setting.help)),
                comment(&form)
            );
        }
    }
    file
}

/// Text as a comment, in lines that fit on a screen.
fn comment(text: &str) -> String {
    let mut lines = String::from("#");
    let mut length = 1;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if length + 1 + width > WIDTH && length > 1 {
            lines.push_str("\n#");
            length = 1;
        }
        lines.push(' ');
        lines.push_str(word);
        length += 1 + width;
    }
    lines.push('\n');
    lines
}

/// A default as a value of TOML.
fn in_toml(text: &str) -> String {
    if matches!(text, "true" | "false") || text.parse::<i64>().is_ok() || text.parse::<f64>().is_ok() {
        return text.to_owned();
    }
    toml::Value::from(text).to_string()
}

/// Without the marks of the page.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn section_of(setting: &Setting) -> &'static str {
    setting.key.split_once('.').map_or("", |(section, _)| section)
}

fn row(setting: &Setting) -> String {
    let (key, form, help) = (setting.key, setting.form(), setting.help);
    let default = setting
        .default
        .map(|default| format!("`{default}`"))
        .unwrap_or_default();
    let mark = if setting.secrecy == Secrecy::Open {
        ""
    } else {
        " (s)"
    };
    format!("| `{key}`{mark} | {default} | {form} | {help} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "docs/configuration.md is not what the table of settings says: \
             cargo run -p stationmaster -- docs configuration > docs/configuration.md"
        );
    }

    #[test]
    fn the_file_to_begin_with_says_what_holds_without_it() {
        let template = template();
        assert!(
            template
                .lines()
                .all(|line| line.is_empty() || line.starts_with(['#', '[']))
        );
        let long = template
            .lines()
            .skip(TEMPLATE_HEAD.lines().count())
            .find(|line| line.chars().count() > WIDTH);
        assert_eq!(long, None, "it fits on a screen");
        // With every default uncommented it is a file that can be read, and changes nothing.
        let given: String = template
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(line)
                    if line.contains(" = ") && !line.ends_with(" = \"\"") && !line.contains("_file = ") =>
                {
                    line
                }
                _ if line.starts_with('[') => line,
                _ => "",
            })
            .fold(String::new(), |file, line| file + line + "\n");
        let file: toml::Table = given.parse().unwrap_or_else(|error| panic!("{error}: {given}"));
        for setting in SETTINGS.iter().filter(|setting| setting.default.is_some()) {
            let mut place = &toml::Value::Table(file.clone());
            for part in setting.key.split('.') {
                place = place
                    .get(part)
                    .unwrap_or_else(|| panic!("{} is not in the file", setting.key));
            }
            let text = place.as_str().map_or_else(|| place.to_string(), str::to_owned);
            assert_eq!(Some(text.as_str()), setting.default, "{}", setting.key);
        }
    }

    #[test]
    fn every_setting_is_on_the_page() {
        let page = reference();
        for setting in SETTINGS {
            assert!(page.contains(&format!("| `{}`", setting.key)), "{}", setting.key);
        }
    }
}
