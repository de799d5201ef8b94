//! How the live view looks. Draws what it is given and asks nobody.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use stationmaster_client::wire::{Execution, FailureGroup, Server, Workspace};

use super::app::{App, Panel};
use crate::output::{age, printable, word};

/// How many slots are drawn one by one.
const SLOTS: i32 = 20;

const KEYS: &str = "\
 1-4, Tab     choose a list
 j k, arrows  choose a line
 Enter        look closer; Esc goes back
 p            pause or resume the workspace
 d            let the server take no new work, or take it again
 c            cancel the execution
 r            retry the execution, or all failures of the group
 s            set the failures of the group aside
 space        stop and go on
 q            leave

Whatever changes something is asked for first, and can be asked for from the closer look too.";

/// Below this width the lists stand one above another: side by side their names would have no room.
const WIDE: u16 = 110;
/// What a list needs to show one line: its frame, its head and the line.
const LOWEST: u16 = 4;

/// How wide the inside of a frame is.
pub(super) fn room(width: u16) -> usize {
    usize::from(width.saturating_sub(2))
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, now: Timestamp) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(5), Constraint::Min(8), Constraint::Length(1)])
            .areas(frame.area());
    draw_head(frame, head, app);
    if let Some((_, text, scrolled)) = &app.opened {
        let block = Block::bordered().title(" Esc goes back ");
        frame.render_widget(
            Paragraph::new(text.as_str()).scroll((*scrolled, 0)).block(block),
            body,
        );
    } else if app.help {
        frame.render_widget(
            Paragraph::new(KEYS).block(Block::bordered().title(" Keys ")),
            body,
        );
    } else {
        draw_lists(frame, body, app);
    }
    draw_foot(frame, foot, app, now);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let numbers = &app.picture.overview.overview;
    let [words, chart] = Layout::horizontal([Constraint::Min(50), Constraint::Length(62)]).areas(area);
    let number =
        |value: i64, style: Style| Span::styled(value.to_string(), style.add_modifier(Modifier::BOLD));
    let bad = |value: i64| {
        if value > 0 {
            Style::new().fg(Color::Red)
        } else {
            Style::new()
        }
    };
    let engine = if numbers.servers == 0 {
        Span::styled(
            "NO SERVER RUNS",
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        )
    } else if numbers.engine_up {
        Span::styled("engine up", Style::new().fg(Color::Green))
    } else {
        Span::styled(
            "ENGINE DOWN",
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        )
    };
    let plain = Style::new();
    let lines = vec![
        Line::from(vec![
            Span::raw("waiting "),
            number(numbers.waiting, plain),
            Span::raw("  starting "),
            number(numbers.starting, plain),
            Span::raw("  running "),
            number(numbers.running, plain),
            Span::raw("  "),
            engine,
        ]),
        Line::from(vec![
            Span::raw("last minute: completed "),
            number(numbers.completed_last_minute, plain),
            Span::raw("  failed "),
            number(numbers.failed_last_minute, bad(numbers.failed_last_minute)),
        ]),
        Line::from(vec![
            Span::raw("failures that need a person "),
            number(numbers.failures, bad(numbers.failures)),
            Span::raw("  servers "),
            number(numbers.servers, bad(i64::from(numbers.servers == 0))),
        ]),
    ];
    let block = Block::bordered().title(" Stationmaster ");
    frame.render_widget(Paragraph::new(lines).block(block), words);
    let ended: Vec<u64> = app
        .picture
        .overview
        .minutes
        .iter()
        .map(|minute| u64::try_from(minute.completed + minute.failed).unwrap_or_default())
        .collect();
    // Where there is no room for all of them the newest are seen.
    let newest = &ended[ended.len().saturating_sub(room(chart.width))..];
    let title = match newest.len() {
        60.. => " ended per minute, the last hour ",
        _ => " ended per minute ",
    };
    let block = Block::bordered().title(title);
    frame.render_widget(Sparkline::default().data(newest).block(block), chart);
}

/// Where each list goes, in the order of [`Panel::ALL`].
fn places(area: Rect, chosen: Panel) -> [Rect; 4] {
    if area.width < WIDE {
        let low = (area.height / 6).max(LOWEST);
        let height = |panel| match panel {
            panel if panel == chosen => Constraint::Fill(1),
            _ => Constraint::Length(low),
        };
        return Layout::vertical(Panel::ALL.map(height)).areas(area);
    }
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    let halves = || Layout::vertical([Constraint::Percentage(55), Constraint::Percentage(45)]);
    let [workspaces, servers] = halves().areas(left);
    let [failures, executions] = halves().areas(right);
    [workspaces, failures, executions, servers]
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let [workspaces, failures, executions, servers] = places(area, app.panel);
    let overview = &app.picture.overview;
    list(
        frame,
        workspaces,
        app,
        (Panel::Workspaces, "1 Workspaces"),
        &[
            ("NAME", Constraint::Fill(2)),
            ("SLOTS", Constraint::Length(22)),
            ("USED", Constraint::Length(9)),
            ("READY", Constraint::Length(7)),
        ],
        overview.workspaces.iter().map(workspace).collect(),
    );
    list(
        frame,
        failures,
        app,
        (Panel::Failures, "2 Failures"),
        &[
            ("GROUP", Constraint::Length(8)),
            ("COUNT", Constraint::Length(6)),
            ("LAST", Constraint::Length(7)),
            ("MESSAGE", Constraint::Fill(1)),
        ],
        app.picture.failures.iter().map(failure).collect(),
    );
    list(
        frame,
        executions,
        app,
        (Panel::Executions, "3 Newest executions"),
        &[
            ("ID", Constraint::Length(13)),
            ("STATUS", Constraint::Length(10)),
            ("CLAIMED", Constraint::Length(7)),
            ("WORKFLOW", Constraint::Fill(2)),
            ("REASON", Constraint::Fill(1)),
        ],
        overview.executions.iter().map(execution).collect(),
    );
    list(
        frame,
        servers,
        app,
        (Panel::Servers, "4 Servers"),
        &[
            ("NAME", Constraint::Fill(1)),
            ("STATE", Constraint::Length(14)),
            ("SEEN", Constraint::Length(7)),
            ("VERSION", Constraint::Length(9)),
        ],
        overview.servers.iter().map(server).collect(),
    );
}

fn list(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (panel, title): (Panel, &str),
    columns: &[(&'static str, Constraint)],
    rows: Vec<Row<'static>>,
) {
    let chosen = app.line(panel);
    let mut block = Block::new().borders(Borders::ALL).title(format!(" {title} "));
    if panel == app.panel {
        block = block.border_style(Style::new().fg(Color::Cyan));
    }
    if rows.is_empty() {
        let words = match panel {
            Panel::Failures => "Nothing needs a person.",
            _ => "Nothing here.",
        };
        frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: true }).block(block), area);
        return;
    }
    let header =
        Row::new(columns.iter().map(|(name, _)| *name)).style(Style::new().add_modifier(Modifier::DIM));
    let table = Table::new(rows, columns.iter().map(|(_, width)| *width))
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(block);
    let mut state = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

fn workspace(one: &Workspace) -> Row<'static> {
    let full = one.active >= one.limit;
    let slots = match one.limit {
        0 => "none".to_owned(),
        limit if limit <= SLOTS => slots(one.active, limit),
        limit => slots(one.active.saturating_mul(SLOTS) / limit, SLOTS),
    };
    let style = match (one.paused, full && one.ready > 0) {
        (true, _) => Style::new().fg(Color::Blue),
        (_, true) => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    let name = if one.paused {
        format!("{} (paused)", printable(&one.name))
    } else {
        printable(&one.name)
    };
    let ready = if one.ready > 10_000 {
        ">10000".to_owned()
    } else {
        one.ready.to_string()
    };
    Row::new([name, slots, format!("{}/{}", one.active, one.limit), ready]).style(style)
}

fn slots(taken: i32, all: i32) -> String {
    (0..all)
        .map(|slot| if slot < taken { '■' } else { '□' })
        .collect()
}

fn failure(group: &FailureGroup) -> Row<'static> {
    let count = if group.count > 10_000 {
        ">10000".to_owned()
    } else {
        group.count.to_string()
    };
    Row::new([
        group.id[..7.min(group.id.len())].to_owned(),
        count,
        age(group.last_at),
        printable(&group.message),
    ])
    .style(Style::new().fg(Color::Red))
}

fn execution(one: &Execution) -> Row<'static> {
    let status = word(&one.status);
    let colour = match status.as_str() {
        "COMPLETED" | "RUNNING" => Color::Green,
        "FAILED" | "TERMINATED" | "TIMED_OUT" => Color::Red,
        _ => Color::Yellow,
    };
    let name = |name: &Option<String>| name.as_deref().map_or_else(|| "?".to_owned(), printable);
    // As lists show it: whoever types it is understood.
    let id = one.id.to_string()[..13].to_owned();
    let cells = [
        Cell::new(id),
        Cell::new(Span::styled(status, Style::new().fg(colour))),
        Cell::new(one.claimed_at.map_or_else(String::new, age)),
        Cell::new(format!("{}.{}", name(&one.workspace), name(&one.workflow))),
        Cell::new(one.reason.as_deref().map_or_else(String::new, printable)),
    ];
    Row::new(cells)
}

fn server(one: &Server) -> Row<'static> {
    let (state, colour) = match (one.alive, one.engine_up, one.claiming) {
        (false, ..) => ("gone", Color::Red),
        (_, false, _) => ("engine down", Color::Red),
        (.., false) => ("takes no work", Color::Yellow),
        _ => ("up", Color::Green),
    };
    let cells = [
        Cell::new(printable(&one.name)),
        Cell::new(Span::styled(state, Style::new().fg(colour))),
        Cell::new(age(one.seen_at)),
        Cell::new(one.version.clone()),
    ];
    Row::new(cells)
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, app: &App, now: Timestamp) {
    let line = if let Some(act) = &app.asked {
        Line::styled(
            format!("{} y: yes, anything else: no", act.question()),
            Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        )
    } else if let Some(said) = &app.said {
        Line::styled(printable(said), Style::new().fg(Color::Yellow))
    } else {
        let passed = now.duration_since(app.picture.seen_at).as_secs().max(0);
        let seen = match (app.frozen, passed) {
            (true, _) => format!("stopped; seen {passed} s ago, space goes on"),
            (_, 0..=5) => "live".to_owned(),
            _ => format!("seen {passed} s ago"),
        };
        Line::styled(
            format!("{seen}   ? keys   Enter look closer   q leave"),
            Style::new().add_modifier(Modifier::DIM),
        )
    };
    frame.render_widget(Paragraph::new(line), area);
}
