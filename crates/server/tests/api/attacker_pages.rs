//! The same attacker at the dashboard: pages, their fragments, the jump box, completions and forms, as a browser would ask for them.

use reqwest::Method;
use stationmaster_client::wire;
use uuid::Uuid;

use crate::attacker::{Asked, Attack};
use crate::matrix::{Things, snapshot};

/// Pages, fragments and forms; the words in capitals stand for things.
const PAGES: [&str; 26] = [
    "/queue/ITEM",
    "/queue?workspace=WORKSPACE",
    "/queue?workflow=WORKFLOW",
    "/executions/EXECUTION",
    "/executions?workspace=WORKSPACE",
    "/workspaces/WORKSPACE",
    "/workflows/WORKFLOW",
    "/workflows/WORKFLOW?version=1",
    "/workflows?workspace=WORKSPACE",
    "/alarms/ALARM",
    "/alarms?workspace=WORKSPACE",
    "/signals/PROJECT/SIGNAL",
    "/signals?project=PROJECT",
    "/dispatchers/dispatcher-PROJECT-default",
    "/dispatchers?project=PROJECT",
    "/failures/GROUP",
    "/failures?workspace=WORKSPACE",
    "/audit?workspace=WORKSPACE",
    "/jump?q=WORKSPACE",
    "/jump?q=WORKFLOW",
    "/jump?q=ITEM",
    "/jump?q=ALARM",
    "/jump?q=GROUP",
    "/jump?q=EXECUTION",
    "/complete?noun=workspace&text=WORKSPACE",
    "/complete?noun=workflow&text=&workspace=WORKSPACE",
];

/// Forms, and what names their things.
const FORMS: [&str; 24] = [
    "retry-failures?group=GROUP",
    "set-failures-aside?group=GROUP",
    "cancel-failing?group=GROUP",
    "retry-all?workspace=WORKSPACE",
    "cancel-all?workflow=WORKFLOW",
    "set-priorities?workspace=WORKSPACE&priority=3",
    "replay-all?project=PROJECT",
    "cancel?id=ITEM",
    "retry?id=ITEM",
    "priority?id=ITEM&priority=3",
    "terminate?id=EXECUTION",
    "run-again?id=ITEM",
    "run-now?id=WORKFLOW",
    "pause-workspace?id=WORKSPACE",
    "change-workspace?id=WORKSPACE&plan=PRO",
    "pause-workflow?id=WORKFLOW",
    "publish-version?id=WORKFLOW&version=1",
    "pause-alarm?id=ALARM",
    "fire-alarm?id=ALARM",
    "cancel-alarm?id=ALARM",
    "backfill?id=ALARM&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
    "pause-alarms?workspace=WORKSPACE",
    "replay?project=PROJECT&id=SIGNAL",
    "revoke-token?id=TOKEN",
];

/// A page without what is new in every answer: ids, keys and times.
fn still(things: &Things, page: &str) -> String {
    let page = things.blotted(page);
    let mut still = String::with_capacity(page.len());
    for word in page.split_inclusive(|c: char| !(c.is_ascii_hexdigit() || "-:.TZ".contains(c))) {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        still.push_str(if digits >= 4 { "…" } else { word });
    }
    still
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_fragments_and_forms_show_and_do_nothing_of_what_is_foreign() {
    let attack = Attack::begin().await;
    let (scene, foreign) = (&attack.scene, &attack.foreign);
    let admin = scene.admin().await;
    let change = wire::WorkspaceChange {
        name: Some("rival".to_owned()),
        ..wire::WorkspaceChange::default()
    };
    admin
        .put_workspace(foreign.tenant.workspace, &change, None)
        .await
        .unwrap();
    let before = snapshot(scene, foreign).await;
    let cookie = format!("stationmaster_token={}", attack.token);
    let visit = async |method: Method, path: &str, fragment: bool| {
        let request = scene
            .ask(method.clone(), path, None)
            .header("cookie", &cookie)
            .header("origin", scene.url(""));
        let request = if fragment {
            request.header("x-fragment", "yes")
        } else {
            request
        };
        let request = if method == Method::POST {
            let body = path.split_once('?').map_or("", |(_, fields)| fields).to_owned();
            request
                .header("content-type", "application/x-www-form-urlencoded")
                .body(format!(
                    "{body}&reason=x&count=1&as_of=2030-01-01T00:00:00Z&key={}&back=/",
                    Uuid::now_v7()
                ))
        } else {
            request
        };
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let location = headers.get("location").map(|to| to.to_str().unwrap().to_owned());
        (
            status,
            format!(
                "{}{}",
                location.unwrap_or_default(),
                response.text().await.unwrap()
            ),
        )
    };
    let pages = PAGES.iter().map(|path| (Method::GET, (*path).to_owned()));
    let forms = FORMS.iter().flat_map(|form| {
        let path = format!("/act/{form}");
        [(Method::GET, path.clone()), (Method::POST, path)]
    });
    for (method, path) in pages.chain(forms) {
        for fragment in [false, true] {
            if fragment && method == Method::POST {
                continue;
            }
            let place = |things: &Things| Asked::new(&method, &path, None).about(things, &attack.own).path;
            let (status, page) = visit(method.clone(), &place(foreign), fragment).await;
            let (other, nothing) = visit(method.clone(), &place(&attack.nothings), fragment).await;
            let what = format!("{method} {path} {fragment}");
            assert_eq!(status, other, "{what}: {page}\n\n{nothing}");
            assert_eq!(still(foreign, &page), still(&attack.nothings, &nothing), "{what}");
            assert!(!page.contains("rival"), "{what}: {page}");
            assert!(!status.is_server_error(), "{what}: {page}");
        }
    }
    // By its name, and by what it is like.
    for path in [
        "/jump?q=",
        "/complete?noun=workspace&text=",
        "/workspaces/",
        "/queue?workspace=",
    ] {
        let (status, page) = visit(Method::GET, &format!("{path}rival"), true).await;
        let (other, nothing) = visit(Method::GET, &format!("{path}nobody"), true).await;
        assert_eq!(status, other, "{path}");
        assert_eq!(
            still(foreign, &page.replace("rival", "NAME")),
            still(foreign, &nothing.replace("nobody", "NAME")),
            "{path}"
        );
    }
    for path in [
        "/",
        "/failures",
        "/queue",
        "/executions",
        "/workspaces",
        "/workflows",
        "/alarms",
        "/signals",
        "/dispatchers",
        "/audit",
        "/tokens",
        "/servers",
        "/jump?q=r",
        "/complete?noun=workspace&text=",
    ] {
        let (status, page) = visit(Method::GET, path, true).await;
        assert!(status.is_success(), "{path}: {status} {page}");
        assert!(!page.contains("rival"), "{path}: {page}");
        for word in foreign.words() {
            assert!(!page.contains(&word), "{path} tells of {word}: {page}");
        }
    }
    assert_eq!(snapshot(scene, foreign).await, before);
}
