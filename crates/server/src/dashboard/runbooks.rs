//! The runbooks, as pages: whoever is called at night finds beside what is wrong what to do about it, on the server that tells it.

use axum::extract::Path;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html::push_html};

use super::Answer;
use super::frame::{Page, Trouble};

/// Names and texts.
macro_rules! runbooks {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../../docs/runbooks/", $name, ".md")))),*]
    };
}

const LIST: &str = include_str!("../../../../docs/runbooks/README.md");
const RUNBOOKS: &[(&str, &str)] = runbooks![
    "alarms-exhausted",
    "alarms-late",
    "capacity",
    "certificate-ends",
    "clock-skew",
    "connections-used-up",
    "database-unknown",
    "dead-letters",
    "dispatch-stalled",
    "dispatcher-duplicate",
    "dispatcher-stale",
    "dispatcher-unattended",
    "engine-away",
    "failures-rising",
    "items-failed",
    "limit-overshoot",
    "lock-errors",
    "manual-test",
    "no-server",
    "no-workers",
    "not-ready",
    "old-transaction",
    "operations",
    "queue-age",
    "recovery-storm",
    "requests-fail",
    "server-down",
    "server-lost",
    "signals-wait",
    "stale-writes",
    "stray-runs",
    "supervisor-fails",
    "takeover-retries",
    "target-open",
    "wakes-fail",
    "zone-data-old",
];
/// Where the list of the runbooks ends, for people: what follows is how they were tried.
const END_OF_LIST: &str = "## Tried";

pub(super) async fn list() -> Answer {
    let (list, _) = LIST.split_once(END_OF_LIST).unwrap_or((LIST, ""));
    Ok(Page::new("Runbooks", shown(list)))
}

pub(super) async fn show(Path(name): Path<String>) -> Answer {
    let found = RUNBOOKS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| Trouble::not_found(format!("there is no runbook {name}")))?;
    Ok(Page::new(title(text), shown(text)))
}

/// The way to a runbook.
pub(super) fn link(name: &str) -> Markup {
    debug_assert!(RUNBOOKS.iter().any(|(known, _)| *known == name), "{name}");
    html! { a href=(format!("/runbooks/{name}")) { "runbook" } }
}

/// What a page calls itself in its first line.
fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

fn shown(text: &str) -> Markup {
    let mut page = String::new();
    push_html(
        &mut page,
        Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(ours),
    );
    html! { section.runbook { (PreEscaped(page)) } }
}

/// What stands in the file as it stands on a page: what is wide can be moved by keys, other runbooks are a click away, what lies elsewhere is
/// no link, and notes for the trials are left out.
fn ours(event: Event<'_>) -> Option<Event<'_>> {
    let raw = |text: &'static str| Some(Event::Html(CowStr::Borrowed(text)));
    match event {
        Event::Html(_)
        | Event::InlineHtml(_)
        | Event::Start(Tag::HtmlBlock)
        | Event::End(TagEnd::HtmlBlock) => None,
        Event::Start(Tag::CodeBlock(_)) => raw("<pre tabindex=\"0\"><code>"),
        Event::End(TagEnd::CodeBlock) => raw("</code></pre>"),
        Event::Start(Tag::Table(_)) => raw("<div class=\"scroll\" tabindex=\"0\"><table class=\"rows\">"),
        Event::End(TagEnd::Table) => raw("</tbody></table></div>"),
        Event::Start(Tag::Link { dest_url, .. }) => Some(Event::Html(opened(&dest_url).into())),
        Event::End(TagEnd::Link) => raw("</a>"),
        other => Some(other),
    }
}

/// The beginning of a link: to a page of ours where there is one, else to nowhere.
fn opened(to: &str) -> String {
    let (file, _) = to.split_once('#').unwrap_or((to, ""));
    let name = file.strip_suffix(".md").unwrap_or_default();
    if name == "README" {
        return "<a href=\"/runbooks\">".to_owned();
    }
    if RUNBOOKS.iter().any(|(known, _)| *known == name) {
        return format!("<a href=\"/runbooks/{name}\">");
    }
    "<a>".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runbook_is_a_page() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = files
            .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".md")?.to_owned()))
            .filter(|name| name != "README")
            .collect();
        names.sort();
        let known: Vec<&str> = RUNBOOKS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, names);
        assert!(LIST.contains(END_OF_LIST));
    }

    #[test]
    fn a_runbook_leads_to_others_and_nowhere_else() {
        let page = shown("[a](engine-away.md#x) [b](../cli.md) [c](README.md)\n\n<!-- during: X -->\n\n```text\n$ a < b\n```\n\n| a |\n|---|\n| `b` |\n").into_string();
        for part in [
            "<a href=\"/runbooks/engine-away\">a</a>",
            "<a>b</a>",
            "<a href=\"/runbooks\">c</a>",
            "<pre tabindex=\"0\"><code>$ a &lt; b\n</code></pre>",
            "<table class=\"rows\"><thead><tr><th>a</th></tr></thead><tbody>\n<tr><td><code>b</code></td></tr>\n</tbody></table></div>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("during"), "{page}");
    }
}
