//! The command line as its users meet it: the real binary, a real database, exit codes and words.

mod alarm_walk;
mod alarms;
mod errors;
mod locks;
mod server;
mod settings;
mod signals;
mod support;
mod walk;
