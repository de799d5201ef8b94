//! What is chosen and what is asked: keys in, wishes out. Knows neither the client nor the terminal.

use jiff::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stationmaster_client::wire::{Execution, ExecutionStatus, FailureGroup, Overview, Server, Workspace};

use super::Act;

/// What there was to see.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub(super) overview: Overview,
    pub(super) failures: Vec<FailureGroup>,
    pub(super) seen_at: Timestamp,
}

/// One list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Workspaces,
    Failures,
    Executions,
    Servers,
}

impl Panel {
    pub(super) const ALL: [Self; 4] = [Self::Workspaces, Self::Failures, Self::Executions, Self::Servers];

    fn place(self) -> usize {
        Self::ALL
            .iter()
            .position(|panel| *panel == self)
            .unwrap_or_default()
    }

    fn beside(self, step: usize) -> Self {
        Self::ALL[(self.place() + step) % Self::ALL.len()]
    }
}

/// Something that can be chosen.
#[derive(Debug, Clone)]
pub(super) enum Thing {
    Workspace(Box<Workspace>),
    Failures(Box<FailureGroup>),
    Execution(Box<Execution>),
    Server(Box<Server>),
}

/// What a key asks for.
#[derive(Debug)]
pub(super) enum Wish {
    Nothing,
    Look,
    Closer(Thing),
    Do(Act),
    Leave,
}

/// What is seen, chosen and asked.
pub(super) struct App {
    pub(super) picture: Picture,
    pub(super) panel: Panel,
    /// The line chosen in each panel.
    pub(super) chosen: [usize; 4],
    /// What was asked and waits for a yes.
    pub(super) asked: Option<Act>,
    /// What was said last.
    pub(super) said: Option<String>,
    /// A closer look at something, what it shows, and how far it is scrolled.
    pub(super) opened: Option<(Thing, String, u16)>,
    pub(super) frozen: bool,
    pub(super) help: bool,
}

impl App {
    pub(super) fn new(picture: Picture) -> Self {
        Self {
            picture,
            panel: Panel::Workspaces,
            chosen: [0; 4],
            asked: None,
            said: None,
            opened: None,
            frozen: false,
            help: false,
        }
    }

    pub(super) fn show(&mut self, picture: Picture) {
        self.picture = picture;
        for panel in Panel::ALL {
            let last = self.length(panel).saturating_sub(1);
            let chosen = &mut self.chosen[panel.place()];
            *chosen = (*chosen).min(last);
        }
    }

    pub(super) fn say(&mut self, words: String) {
        self.said = Some(words);
    }

    pub(super) fn open(&mut self, thing: Thing, text: String) {
        self.opened = Some((thing, text, 0));
    }

    pub(super) fn length(&self, panel: Panel) -> usize {
        match panel {
            Panel::Workspaces => self.picture.overview.workspaces.len(),
            Panel::Failures => self.picture.failures.len(),
            Panel::Executions => self.picture.overview.executions.len(),
            Panel::Servers => self.picture.overview.servers.len(),
        }
    }

    /// The line chosen in a panel, when that is the one in use.
    pub(super) fn line(&self, panel: Panel) -> Option<usize> {
        (panel == self.panel && self.length(panel) > 0).then(|| self.chosen[panel.place()])
    }

    fn thing(&self) -> Option<Thing> {
        let (line, overview) = (self.line(self.panel)?, &self.picture.overview);
        Some(match self.panel {
            Panel::Workspaces => Thing::Workspace(Box::new(overview.workspaces.get(line)?.clone())),
            Panel::Failures => Thing::Failures(Box::new(self.picture.failures.get(line)?.clone())),
            Panel::Executions => Thing::Execution(Box::new(overview.executions.get(line)?.clone())),
            Panel::Servers => Thing::Server(Box::new(overview.servers.get(line)?.clone())),
        })
    }

    fn ask(&mut self, act: Result<Act, String>) {
        match act {
            Ok(act) => self.asked = Some(act),
            Err(why) => self.say(why),
        }
    }

    /// What a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) -> Wish {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Wish::Leave;
        }
        self.said = None;
        if let Some(act) = self.asked.take() {
            if let KeyCode::Char('y' | 'Y') = key.code {
                // What was looked at is another thing afterwards.
                self.opened = None;
                return Wish::Do(act);
            }
            self.say("Nothing was changed.".to_owned());
            return Wish::Nothing;
        }
        if self.help {
            self.help = false;
            return Wish::Nothing;
        }
        if let Some((thing, text, scrolled)) = &mut self.opened {
            let last = u16::try_from(text.lines().count().saturating_sub(1)).unwrap_or(u16::MAX);
            match key.code {
                KeyCode::Char('j') | KeyCode::Down => *scrolled = scrolled.saturating_add(1).min(last),
                KeyCode::Char('k') | KeyCode::Up => *scrolled = scrolled.saturating_sub(1),
                KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') | KeyCode::Left => self.opened = None,
                // About what is looked at, whatever stands in that line by now.
                KeyCode::Char(letter) => {
                    let act = Act::of(letter, thing.clone());
                    self.ask(act);
                }
                _ => {}
            }
            return Wish::Nothing;
        }
        let last = self.length(self.panel).saturating_sub(1);
        let chosen = &mut self.chosen[self.panel.place()];
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Leave,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Tab | KeyCode::Right => self.panel = self.panel.beside(1),
            KeyCode::BackTab | KeyCode::Left => self.panel = self.panel.beside(Panel::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => self.panel = Panel::ALL[digit as usize - '1' as usize],
            KeyCode::Char('j') | KeyCode::Down => *chosen = (*chosen + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => *chosen = chosen.saturating_sub(1),
            KeyCode::Char('g') | KeyCode::Home => *chosen = 0,
            KeyCode::Char('G') | KeyCode::End => *chosen = last,
            KeyCode::Char(' ') => self.frozen = !self.frozen,
            KeyCode::Enter => return self.thing().map_or(Wish::Nothing, Wish::Closer),
            KeyCode::Char(letter) => {
                if let Some(thing) = self.thing() {
                    self.ask(Act::of(letter, thing));
                }
            }
            _ => {}
        }
        Wish::Nothing
    }
}

/// Has it ended otherwise than well, so that it can be retried?
pub(super) fn ended_badly(status: ExecutionStatus) -> bool {
    use ExecutionStatus::{Cancelled, Failed, Terminated, TimedOut};
    matches!(status, Failed | Cancelled | Terminated | TimedOut)
}

/// Does it wait or run?
pub(super) fn is_live(status: ExecutionStatus) -> bool {
    use ExecutionStatus::{Pending, Running, Starting};
    matches!(status, Pending | Starting | Running)
}
