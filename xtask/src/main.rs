//! The project's own commands, as `cargo xtask <command>`: they need a Rust toolchain and nothing else, and bring the
//! rest themselves. This module reads the arguments; each command has a module, and none knows how the product works.

mod alerts;
mod alone;
mod apt;
mod check;
mod components;
mod dist;
mod dst;
mod examples;
mod interop;
mod kustomize;
mod launch;
mod mutants;
mod peer;
mod release;
mod repository;
mod storm;
mod test;
mod tidy;
mod twins;

use std::env;
use std::process::ExitCode;

use anyhow::Result;

use crate::repository::Repository;

const HELP: &str = "\
cargo xtask <command>

  setup           find what the tests need (PostgreSQL, Temporal, Redis, PgBouncer, Prometheus, a fuzzer, psycopg, Chromium, axe), install what is missing
  test [args]     setup, then all tests against a throw-away PostgreSQL; args go to `cargo test`
  dst             compare the fires around every move of every zone's clock with a scan, for some minutes
  check           what CI runs: format, clippy, documentation, tidy, test, examples, and interop where Java and Maven are
  examples        the guides for Python, TypeScript, Go and Java as they are printed, in each language that is on the machine
  interop NAME    our binary beside Java programs: shedlock, its own library (needs Java and Maven)
  peer river [n]  n jobs that do nothing (200000) through River and through us, on one PostgreSQL (needs Go)
  fuzz-api [n]    fuzz the HTTP API with n examples for each operation (500); `test` does so with a few
  pictures [dir]  pictures of the dashboard's main pages into docs/pictures, of a server with the example; takes some minutes.
                  With a folder: of every page, whole, in light and dark and on a phone, into that folder
  pages [flags]   times every page of the dashboard with 100,000 items in 1,000 workspaces; --binary PATH for another binary than the
                  one of this build; --open N keeps every page open for N minutes instead and tells what it holds
  storm [flags]   all lanes of real servers under kills, stops, crashes and cuts, by a seed, and a check of every promise;
                  --minutes N (5), --seed N, --servers N (4), --engine embedded|temporal, --json
  flood [flags]   signals to one project beside work that has to keep its pace, and what became of each; --signals N (1000000)
  alerts          every alert for real: causes its fault, sees it fire, mends it, sees it clear; prints a table (some minutes)
  upgrade         migrations of each kind on five million rows while work goes on, and what had to wait; --rows N for another number;
                  --from BINARY has a server of another version work beside one of this one while the tables move on;
                  --keep VERSION keeps a dump of the tables of a version, which then has to go through every migration
  twins           takes one guard out at a time, in a scratch copy, and asks the test that should notice; --only NAME for some
  mutants [names] changes the pure modules one bit at a time and counts what tests notice; --part K/N for a share of it
  tidy            the house rules that compilers do not know
  dev [args]      find or install PostgreSQL, build, and run `stationmaster dev`
  dist            the release binary, small, and beside it what debuggers need to read it
  release VERSION everything that is handed out, made and tried: binary, tarball, Debian package, list of parts, checksums, notes;
                  --dry-run of whatever lies in the tree, --offline with what is on the machine
  rehearse        a Debian package of the binary that the tests have built: made, installed, asked, removed; `check` does so too
  bench [args]    build and run `stationmaster bench` with a private PostgreSQL
  help            this text
";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    match run(&command, &arguments.collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, arguments: &[String]) -> Result<ExitCode> {
    let repository = Repository::here()?;
    match command {
        "setup" => components::set_up(&repository),
        "test" => test::run(&repository, arguments),
        "pictures" => test::pictures(&repository, arguments),
        "pages" => test::pages(&repository, arguments),
        "fuzz-api" => test::fuzz_api(&repository, arguments),
        "check" => check::run(&repository),
        "upgrade" => test::upgrade(&repository, arguments),
        "dst" => dst::run(&repository),
        "examples" => examples::run(&repository),
        "interop" => interop::run(&repository, arguments),
        "peer" => peer::run(&repository, arguments),
        "storm" => storm::run(&repository, arguments),
        "flood" => test::flood(&repository, arguments),
        "alerts" => alerts::run(&repository),
        "twins" => twins::run(&repository, arguments),
        "mutants" => mutants::run(&repository, arguments),
        "tidy" => tidy::run(&repository),
        "dev" => launch::dev(&repository, arguments),
        "dist" => dist::run(&repository, arguments),
        "release" => release::run(&repository, arguments),
        "rehearse" => release::rehearse(&repository),
        "bench" => launch::bench(&repository, arguments),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        unknown => {
            eprint!("error: there is no command `{unknown}`\n\n{HELP}");
            Ok(ExitCode::FAILURE)
        }
    }
}
