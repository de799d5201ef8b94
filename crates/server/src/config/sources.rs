//! Who said what. From weak to strong: the file, the environment, the flags; the strongest word on a setting counts, and the
//! others are not looked at beyond their names. A name that is no setting is a complaint, wherever it stands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::settings::{SETTINGS, Setting};
use super::target;
use super::value::{Given, Origin, Text};
use super::{Complaint, Flags};

const PREFIX: &str = "STATIONMASTER_";
/// The file's path; it cannot be a setting of the file.
const CONFIG: &str = "STATIONMASTER_CONFIG";
/// Variables that begin like ours and belong to the tests, the benchmarks, and commands that run under a lock.
const NOT_OURS: [&str; 3] = [
    "STATIONMASTER_TEST_",
    "STATIONMASTER_BENCH_",
    "STATIONMASTER_LOCK_",
];
/// Names less alike than this are not worth a guess.
const ALIKE: f64 = 0.8;

/// What was given for each setting, by key.
pub(super) type Gathered = BTreeMap<&'static str, Given>;

/// Collects what all sources say.
pub(super) fn gather(
    flags: &Flags,
    environment: impl Iterator<Item = (OsString, OsString)>,
    complaints: &mut Vec<Complaint>,
) -> Gathered {
    let variables = our_variables(environment, complaints);
    let named_in_environment = variables
        .get(CONFIG)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let path = flags.config.clone().or(named_in_environment);
    let mut all = path.map(|path| from_file(&path, complaints)).unwrap_or_default();
    all.extend(from_environment(&variables, complaints));
    all.extend(from_flags(flags, complaints));
    all
}

/// How a source writes the names of settings.
#[derive(Debug, Clone, Copy)]
enum Spelling {
    Key,
    Variable,
}

impl Spelling {
    fn of(self, setting: &Setting) -> String {
        match self {
            Self::Key => setting.key.to_owned(),
            Self::Variable => setting.variable(),
        }
    }

    fn file_suffix(self) -> &'static str {
        match self {
            Self::Key => "_file",
            Self::Variable => "_FILE",
        }
    }
}

/// What one source says; nothing may be said twice.
struct Source<'a> {
    spelling: Spelling,
    said: Gathered,
    complaints: &'a mut Vec<Complaint>,
}

impl<'a> Source<'a> {
    fn new(spelling: Spelling, complaints: &'a mut Vec<Complaint>) -> Self {
        Self {
            spelling,
            said: Gathered::new(),
            complaints,
        }
    }

    fn say(&mut self, name: &str, text: String, origin: &Origin) {
        let Some((setting, in_file)) = self.find(name) else {
            let advice = advice(name, self.spelling);
            return self.complain(name, origin, "there is no such setting", advice);
        };
        let text = if in_file {
            Text::InFile(text.into())
        } else {
            Text::Here(text)
        };
        let given = Given {
            text,
            origin: origin.clone(),
        };
        if let Some(before) = self.said.insert(setting.key, given) {
            let remedy = format!("Keep one of the two: this one, or {}.", before.origin);
            self.complain(setting.key, origin, "it is given twice", remedy);
        }
    }

    /// The setting of that name; `true` when the name is that of a file which holds the value.
    fn find(&self, name: &str) -> Option<(&'static Setting, bool)> {
        SETTINGS.iter().find_map(|setting| {
            let rest = name.strip_prefix(&self.spelling.of(setting))?;
            let in_file = setting.may_be_in_file() && rest == self.spelling.file_suffix();
            (rest.is_empty() || in_file).then_some((setting, in_file))
        })
    }

    fn complain(
        &mut self,
        setting: &str,
        origin: &Origin,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let complaint = Complaint::new(setting, origin, problem, remedy);
        self.complaints.push(complaint);
    }
}

fn our_variables(
    environment: impl Iterator<Item = (OsString, OsString)>,
    complaints: &mut Vec<Complaint>,
) -> BTreeMap<String, String> {
    let mut ours = BTreeMap::new();
    for (name, value) in environment {
        let name = name.to_string_lossy().into_owned();
        let for_commands = target::VARIABLES.contains(&name.as_str());
        if !name.starts_with(PREFIX) || for_commands || NOT_OURS.iter().any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        if let Ok(value) = value.into_string() {
            ours.insert(name, value);
        } else {
            let (origin, remedy) = (Origin::Environment(name.clone()), "Write it again, or unset it.");
            complaints.push(Complaint::new(name, origin, "its value is not UTF-8", remedy));
        }
    }
    ours
}

fn from_environment(variables: &BTreeMap<String, String>, complaints: &mut Vec<Complaint>) -> Gathered {
    let mut source = Source::new(Spelling::Variable, complaints);
    for (name, value) in variables.iter().filter(|(name, _)| *name != CONFIG) {
        source.say(name, value.clone(), &Origin::Environment(name.clone()));
    }
    source.said
}

fn from_flags(flags: &Flags, complaints: &mut Vec<Complaint>) -> Gathered {
    let mut source = Source::new(Spelling::Key, complaints);
    for (flag, key, value) in flags.named() {
        source.say(key, value.to_owned(), &Origin::Flag(flag.to_owned()));
    }
    for pair in &flags.set {
        match pair.split_once('=') {
            Some((key, value)) => {
                let key = key.trim();
                source.say(key, value.to_owned(), &Origin::Flag(format!("--set {key}")));
            }
            // What stands there may be a secret, so it is not repeated.
            None => source.complain(
                "--set",
                &Origin::Flag("--set".to_owned()),
                "what follows has no equals sign",
                "Write the key, an equals sign and the value, as in --set executions.batch_size=100.",
            ),
        }
    }
    source.said
}

fn from_file(path: &Path, complaints: &mut Vec<Complaint>) -> Gathered {
    let origin = Origin::File(path.to_owned());
    let mut source = Source::new(Spelling::Key, complaints);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let problem = format!("the file cannot be read: {error}");
            let remedy = "Name a TOML file with --config or STATIONMASTER_CONFIG, or neither.";
            source.complain("--config", &origin, problem, remedy);
            return source.said;
        }
    };
    match text.parse::<toml::Table>() {
        Ok(table) => walk(&mut source, "", &table, &origin),
        Err(error) => {
            // Only the place and the parser's words: the line itself may hold a secret.
            let line = error.span().map_or(1, |span| {
                text[..span.start.min(text.len())].lines().count().max(1)
            });
            let problem = format!("line {line} is not TOML: {}", error.message());
            source.complain("--config", &origin, problem, "Mend that line.");
        }
    }
    source.said
}

/// Says every value of a table under its dotted name.
fn walk(source: &mut Source<'_>, above: &str, table: &toml::Table, origin: &Origin) {
    for (name, value) in table {
        let key = if above.is_empty() {
            name.clone()
        } else {
            format!("{above}.{name}")
        };
        match value {
            toml::Value::Table(inner) => walk(source, &key, inner, origin),
            toml::Value::String(text) => source.say(&key, text.clone(), origin),
            toml::Value::Integer(number) => source.say(&key, number.to_string(), origin),
            toml::Value::Float(number) => source.say(&key, number.to_string(), origin),
            toml::Value::Boolean(truth) => source.say(&key, truth.to_string(), origin),
            toml::Value::Datetime(_) | toml::Value::Array(_) => {
                let remedy = "Give one string, number or boolean.";
                source.complain(&key, origin, "its value is a list or a date", remedy);
            }
        }
    }
}

/// What somebody may have meant.
fn advice(name: &str, spelling: Spelling) -> String {
    let last = |name: &str| {
        name.to_ascii_lowercase()
            .replace("__", ".")
            .rsplit('.')
            .next()
            .map(str::to_owned)
    };
    let likeness = |known: &str| {
        let whole = strsim::normalized_damerau_levenshtein(name, known);
        // Left the section out, or put it into the wrong one.
        if last(name) == last(known) {
            // Of several the one that is most alike.
            whole.mul_add(0.05, 0.95)
        } else {
            whole
        }
    };
    let known = SETTINGS.iter().map(|setting| spelling.of(setting));
    let known = known.map(|known| (likeness(&known), known));
    match known.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((likeness, known)) if likeness >= ALIKE => format!("Did you mean {known}?"),
        _ => "Take it out, or see `stationmaster config show` for every setting there is.".to_owned(),
    }
}
