//! The doctor as a page. An examination takes up to five seconds, so the page does not repeat it by itself.

use maud::html;
use stationmaster_client::wire::Severity;

use super::Answer;
use super::frame::Page;
use super::pieces::lamp;
use super::session::Visitor;

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
                @if let Some(advice) = &finding.advice { p.advice { (advice) } }
            }
        } }
    };
    Ok(Page::new("Health", body))
}
