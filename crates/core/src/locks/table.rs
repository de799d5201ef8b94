//! The name of the table that the locks live in, and the one place where a name becomes part of a statement. Pure.
//!
//! A name is read as PostgreSQL reads it and as ShedLock passes it on: without quotes in small letters, with quotes as it
//! stands. So the same words mean the same table here and in a Java application. Every part is quoted again before it
//! enters a statement, whatever it holds.

use std::fmt;
use std::str::FromStr;

/// The longest that PostgreSQL keeps.
const LONGEST_PART: usize = 63;
/// Stands in the files of `sql/locks` where the table goes.
const HOLE: &str = "{table}";

/// The lock table: `shedlock`, `schema.shedlock` or `"Any Name"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTable {
    parts: Vec<String>,
}

impl Default for LockTable {
    fn default() -> Self {
        Self {
            parts: vec!["shedlock".to_owned()],
        }
    }
}

impl LockTable {
    /// The statement with the table in its place.
    pub(super) fn statement(&self, template: &str) -> String {
        template.replace(HOLE, &self.quoted())
    }

    /// Every part in quotes, so that nothing in it can be taken for anything but a name.
    pub(super) fn quoted(&self) -> String {
        let quote = |part: &String| format!("\"{}\"", part.replace('"', "\"\""));
        self.parts.iter().map(quote).collect::<Vec<_>>().join(".")
    }
}

/// As a person would write it: quotes only where they are needed.
impl fmt::Display for LockTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if is_plain(part) {
                f.write_str(part)?;
            } else {
                write!(f, "\"{}\"", part.replace('"', "\"\""))?;
            }
        }
        Ok(())
    }
}

impl FromStr for LockTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        loop {
            let (part, after) = read_part(rest)?;
            if part.is_empty() {
                return Err(format!("{text:?} has a part without a name"));
            }
            if part.len() > LONGEST_PART {
                return Err(format!("{part:?} is longer than {LONGEST_PART} bytes"));
            }
            if part.contains(char::is_control) {
                return Err(format!("{text:?} holds a control character"));
            }
            parts.push(part);
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None if after.is_empty() => break,
                None => {
                    return Err(format!(
                        "{text:?} is not a name: put what is not made of letters, digits and _ into double quotes"
                    ));
                }
            }
        }
        if parts.len() > 2 {
            return Err(format!("{text:?} has more parts than a schema and a table"));
        }
        Ok(Self { parts })
    }
}

/// One part of a name, and what follows it.
fn read_part(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
        let (part, rest) = text.split_at(end);
        if part.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
            return Err(format!("{part:?} begins with a digit: put it into double quotes"));
        }
        return Ok((part.to_ascii_lowercase(), rest));
    };
    let mut part = String::new();
    let mut rest = quoted;
    loop {
        let Some(end) = rest.find('"') else {
            return Err(format!("{text:?} has a quote that does not end"));
        };
        part.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        // Two quotes in a row are one of the name.
        match rest.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return Ok((part, rest)),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn is_plain(part: &str) -> bool {
    part.chars().all(|c| is_word(c) && !c.is_ascii_uppercase())
        && !part.starts_with(|c: char| c.is_ascii_digit() || c == '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_postgresql_reads_it() {
        for (written, quoted, shown) in [
            ("shedlock", "\"shedlock\"", "shedlock"),
            ("ShedLock", "\"shedlock\"", "shedlock"),
            (" jobs.Locks ", "\"jobs\".\"locks\"", "jobs.locks"),
            ("\"ShedLock\"", "\"ShedLock\"", "\"ShedLock\""),
            ("\"a b\".\"c.d\"", "\"a b\".\"c.d\"", "\"a b\".\"c.d\""),
            ("\"say \"\"hi\"\"\"", "\"say \"\"hi\"\"\"", "\"say \"\"hi\"\"\""),
            ("\"größe\"", "\"größe\"", "\"größe\""),
        ] {
            let table: LockTable = written.parse().unwrap();
            assert_eq!(
                (table.quoted(), table.to_string()),
                (quoted.to_owned(), shown.to_owned())
            );
            assert_eq!(table.to_string().parse(), Ok(table), "{written}");
        }
        assert_eq!("shedlock".parse(), Ok(LockTable::default()));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            " ",
            ".",
            "a.",
            ".a",
            "a.b.c",
            "1a",
            "a b",
            "a; drop table b",
            "a--",
            "\"a",
            "\"a\"b",
            "\"\"",
            "größe",
            "\"a\u{7}\"",
            "a\0",
        ] {
            assert!(text.parse::<LockTable>().is_err(), "{text:?}");
        }
        assert!("x".repeat(64).parse::<LockTable>().is_err());
        assert!("x".repeat(63).parse::<LockTable>().is_ok());
    }

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        let table: LockTable = "\"x\"\"; drop table y; --\"".parse().unwrap();
        assert_eq!(
            table.statement("update {table} set"),
            "update \"x\"\"; drop table y; --\" set"
        );
    }
}
