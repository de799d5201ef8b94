//! `stationmaster lock run`: a command that runs while we hold a lock. Its exit code is ours; when the lock is lost while
//! it runs, it is told so and stopped.
//!
//! The command learns the fencing token from its environment. What must be correct rests on that: a command that was
//! stopped too late, or a wrapper that was killed, cannot be helped by a lease.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use stationmaster_client::wire::{LockRequest, Taken};
use stationmaster_client::{Asked, KeptLock, Unlocked};
use stationmaster_core::locks::{LockName, Terms};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::Context;
use super::super::arguments::duration;
use crate::failure::{BeforeTheCommand, Kind, PassedOn, Refusal};
use crate::output::{moment, printable};

/// While we wait for a lock, we ask this often at least.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// And this often at most, near the time when it should become free.
const ASK_SOON: Duration = Duration::from_millis(20);
/// Signals that end or change a program, with those that a terminal sends to the command as well as to us.
const PASSED_ON: [(Signal, bool); 6] = [
    (Signal::SIGTERM, false),
    (Signal::SIGUSR1, false),
    (Signal::SIGUSR2, false),
    (Signal::SIGHUP, true),
    (Signal::SIGINT, true),
    (Signal::SIGQUIT, true),
];

/// What to run, and under which lock.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The lock
    #[arg(value_parser = name)]
    name: LockName,
    /// How long the lock holds should this process be lost; while the command runs it is extended
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    at_most: Duration,
    /// How long the lock stays held, however quick the command is
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    at_least: Option<Duration>,
    /// Wait this long for a lock that is taken, instead of giving up at once
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
    /// How long the command may take to end after SIGTERM when the lock was lost, before SIGKILL
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    grace: Duration,
    /// The command and its arguments; it finds the token in `STATIONMASTER_LOCK_TOKEN`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn name(text: &str) -> Result<LockName, String> {
    text.parse()
        .map_err(|error: stationmaster_core::locks::Error| error.to_string())
}

pub(super) async fn run(args: RunArgs, context: &Context) -> Result<()> {
    // Terms that cannot be kept are a wrong usage, and told before anybody is asked.
    if let Err(error) = Terms::new(args.at_most, args.at_least.unwrap_or_default()) {
        return Err(Refusal::usage(error.to_string(), "Change the request; nothing was locked").into());
    }
    let mut signals = listen()?;
    let asked = acquire(&args, &mut signals, context).await.map_err(|error| {
        if error.is::<PassedOn>() {
            error
        } else {
            BeforeTheCommand(error).into()
        }
    })?;
    let kept = match asked {
        Asked::Held(kept) => *kept,
        Asked::Taken(taken) => return Err(refused(&args, &taken)),
    };
    let running = match Running::start(&args, &kept) {
        Ok(running) => running,
        Err(error) => {
            give_back(kept).await;
            return Err(error);
        }
    };
    let (status, lost) = running.supervise(&kept, &mut signals, args.grace).await?;
    if let Some(reason) = lost {
        let advice = "The command was stopped; somebody else may have the lock by now";
        return Err(lost_while_running(&args, &reason, advice));
    }
    // A command may end before the loss of its lock is noticed: giving back tells whether it was still ours.
    if let Some(reason) = give_back(kept).await {
        let advice = "The command had ended by then; somebody else may have worked beside it";
        return Err(lost_while_running(&args, &reason, advice));
    }
    match code(status) {
        0 => Ok(()),
        code => Err(PassedOn(code).into()),
    }
}

/// Asks for the lock, again and again while there is patience.
async fn acquire(
    args: &RunArgs,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    context: &Context,
) -> Result<Asked> {
    let client = context.client().await?;
    let host = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok());
    let owner = format!("{}@{}", Context::actor(), host.as_deref().unwrap_or("unknown"));
    let request = LockRequest {
        at_most: args.at_most.as_secs_f64(),
        at_least: args.at_least.unwrap_or_default().as_secs_f64(),
        owner: Some(owner),
    };
    let patience = Instant::now() + args.wait.unwrap_or_default();
    loop {
        let asked = client.keep_lock(args.name.as_str(), &request).await?;
        let Asked::Taken(taken) = &asked else {
            return Ok(asked);
        };
        let left = patience.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(asked);
        }
        tokio::select! {
            () = sleep(pause(taken).min(left)) => {}
            Some(signal) = signals.recv() => return Err(PassedOn(code_of(signal)).into()),
        }
    }
}

/// Until it should become free; it may well become free earlier.
fn pause(taken: &Taken) -> Duration {
    let until = taken
        .until
        .map(|until| until.duration_since(jiff::Timestamp::now()));
    until
        .and_then(|until| Duration::try_from(until).ok())
        .unwrap_or_default()
        .clamp(ASK_SOON, ASK_EVERY)
}

fn refused(args: &RunArgs, taken: &Taken) -> anyhow::Error {
    let by = taken
        .by
        .as_deref()
        .map_or_else(|| "somebody else".to_owned(), printable);
    let until = taken
        .until
        .map_or_else(String::new, |until| format!(" until {}", moment(until)));
    let message = format!("the lock {} is taken: {by} holds it{until}", args.name);
    let advice = match args.wait {
        Some(_) => "The command was not run; nobody gave the lock back in time",
        None => "The command was not run; give --wait to wait for the lock",
    };
    Refusal::new(Kind::Taken, message, advice).into()
}

fn lost_while_running(args: &RunArgs, reason: &str, advice: &str) -> anyhow::Error {
    let message = format!("the lock {} was lost while the command ran: {reason}", args.name);
    Refusal::new(Kind::Lost, message, advice).into()
}

/// Answers why the lock was not ours any more, if it was not. When nobody can be asked, our own clock decides.
async fn give_back(kept: KeptLock) -> Option<String> {
    let name = kept.lock().name.clone();
    let held = kept.is_held();
    match kept.give_back().await {
        Ok(Unlocked::Free | Unlocked::FreeAt(_)) => None,
        Ok(Unlocked::NotHeld) => Some("it was not held any more when the command ended".to_owned()),
        Err(error) if held => {
            eprintln!("The lock {name} could not be given back and will run out: {error}");
            None
        }
        Err(error) => Some(format!("its time was over when the command ended, and {error}")),
    }
}

/// Signals for us become messages, also those that come before there is a command.
fn listen() -> Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for (each, _) in PASSED_ON {
        let mut stream = signal(SignalKind::from_raw(each as i32))?;
        let sender = sender.clone();
        tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(each).is_ok() {} });
    }
    Ok(receiver)
}

/// The command.
struct Running {
    child: Child,
    /// A group of its own, so that a signal reaches everything the command started; not at a terminal, which lets only one
    /// group read.
    group: bool,
}

impl Running {
    fn start(args: &RunArgs, kept: &KeptLock) -> Result<Self> {
        let group = !std::io::stdin().is_terminal();
        let program = &args.command[0];
        let mut command = Command::new(program);
        command
            .args(&args.command[1..])
            .env("STATIONMASTER_LOCK_NAME", &kept.lock().name)
            .env("STATIONMASTER_LOCK_TOKEN", kept.lock().token.to_string())
            .env("STATIONMASTER_LOCK_HOLDER", &kept.lock().holder);
        if group {
            command.process_group(0);
        }
        let child = command.spawn().map_err(|error| {
            let kind = if error.kind() == ErrorKind::NotFound {
                Kind::NoSuchCommand
            } else {
                Kind::CannotRun
            };
            let message = format!("{} cannot be run: {error}", program.to_string_lossy());
            Refusal::new(kind, message, "Name a program after --; the lock was given back")
        })?;
        Ok(Self { child, group })
    }

    /// Waits for the end of the command. Answers how it ended, and why the lock was lost, if it was.
    async fn supervise(
        mut self,
        kept: &KeptLock,
        signals: &mut mpsc::UnboundedReceiver<Signal>,
        grace: Duration,
    ) -> Result<(ExitStatus, Option<String>)> {
        let mut lost = None;
        let mut enough = Instant::now();
        loop {
            tokio::select! {
                status = self.child.wait() => return Ok((status?, lost)),
                reason = kept.lost(), if lost.is_none() => {
                    eprintln!("The lock {} was lost: {reason}. Stopping the command.", kept.lock().name);
                    self.send(Signal::SIGTERM);
                    enough = Instant::now() + grace;
                    lost = Some(reason);
                }
                () = sleep_until(enough), if lost.is_some() => {
                    self.send(Signal::SIGKILL);
                    // It cannot refuse that one; once is enough.
                    enough += Duration::from_hours(1);
                }
                Some(signal) = signals.recv() => {
                    let from_terminal = PASSED_ON.contains(&(signal, true)) && !self.group;
                    if !from_terminal {
                        self.send(signal);
                    }
                }
            }
        }
    }

    fn send(&self, signal: Signal) {
        let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) else {
            return;
        };
        let pid = Pid::from_raw(id);
        // It may have ended at this very moment.
        let _ = if self.group {
            killpg(pid, signal)
        } else {
            kill(pid, signal)
        };
    }
}

fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn code_of(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(1)
}
