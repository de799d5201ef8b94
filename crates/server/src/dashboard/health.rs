//! The doctor as a page. An examination takes up to five seconds, so the page does not repeat it by itself.

use maud::html;
use stationmaster_client::wire::Severity;

use super::Answer;
use super::frame::Page;
use super::pieces::lamp;
use super::runbooks;
use super::session::Visitor;

/// Where it is written what to do about a finding.
fn runbook(finding: &str) -> Option<&'static str> {
    Some(match finding {
        "engine.reachable" | "servers.engine" => "engine-away",
        "engine.workers" => "no-workers",
        "work.strays" => "stray-runs",
        "work.alarms" => "alarms-exhausted",
        "dispatchers.owners" => "dispatcher-unattended",
        "database.connections" => "connections-used-up",
        "database.clock" => "clock-skew",
        "database.horizon" | "database.idle_in_transaction" => "old-transaction",
        _ => return None,
    })
}

pub(super) async fn show(visitor: Visitor) -> Answer {
    let examination = visitor.client.doctor().await?;
    let class = |severity| match severity {
        Severity::Ok => "good",
        Severity::Note => "busy",
        Severity::Warning => "warn",
        Severity::Problem => "bad",
    };
    let mut findings: Vec<_> = examination.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let body = html! {
        header.page data-still { h1 { "Health" } div.actions { a.button href="/health" { "Look again" } } }
        p { "The worst of " (findings.len()) " findings: " (lamp(class(examination.worst), examination.worst.as_str())) }
        ul.findings { @for finding in findings {
            li {
                div { (lamp(class(finding.severity), finding.severity.as_str())) " " strong { (finding.id) } }
                p { (finding.seen) }
                @if let Some(advice) = &finding.advice { p.advice { (advice) @if let Some(name) = runbook(&finding.id) { " · " (runbooks::link(name)) } } }
            }
        } }
    };
    Ok(Page::new("Health", body))
}
