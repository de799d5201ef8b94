//! Who comes in, what they see, and who cannot act in their name.

use reqwest::{Method, StatusCode};
use stationmaster_core::access::Role;

use crate::support::ENDLESS;
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_without_a_token_is_asked_and_led_where_they_wanted_to_go() {
    let visit = Visit::new().await;
    visit.place("acme", 1, ENDLESS).await;
    let tab = visit.stranger().await;
    tab.open("/workspaces?sort=name").await;
    assert!(tab.address().await.starts_with("/sign-in"));
    assert!(!tab.main().await.contains("acme"));
    tab.fill("token", "smt_nonsense").await;
    tab.press("Sign in").await;
    assert!(tab.text(".wrong").await.contains("token"), "{}", tab.main().await);
    visit.sign_in(&tab, Role::Viewer, None).await;
    assert_eq!(tab.address().await, "/workspaces?sort=name");
    assert!(tab.main().await.contains("acme"));
    // No script can read the token.
    assert_eq!(tab.look("document.cookie").await, "");
    tab.and_then_a_page("document.querySelector('form.who button').click()")
        .await;
    tab.open("/workspaces").await;
    assert!(tab.address().await.starts_with("/sign-in"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_sees_no_button_that_would_be_refused_and_nobody_sees_other_workspaces() {
    let visit = Visit::new().await;
    let (own, foreign) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 1, ENDLESS).await,
    );
    let failed = visit.failed(&own, "{}", "no such order").await;
    let hidden = visit.failed(&foreign, "{}", "a secret order").await;
    let viewer = visit.person(Role::Viewer, Some(own.workspace)).await;
    for path in [
        "/",
        "/failures",
        "/queue",
        &format!("/queue/{failed}"),
        "/executions",
        "/workspaces",
        "/workspaces/acme",
        "/workflows",
        &format!("/workflows/{}", own.workflow),
        "/alarms",
        "/signals",
        "/locks",
        "/settings",
    ] {
        viewer.open(path).await;
        let text = viewer.main().await;
        assert!(
            !text.contains("globex") && !text.contains("secret"),
            "{path}: {text}"
        );
        let buttons = viewer
            .look("document.querySelectorAll('main a[href^=\"/act/\"], main form[action^=\"/act/\"]').length")
            .await;
        assert_eq!(buttons, 0, "{path}");
    }
    let places = viewer.text("nav").await;
    assert!(
        !places.contains("Tokens") && !places.contains("Audit") && !places.contains("Health"),
        "{places}"
    );
    for path in [
        format!("/queue/{hidden}"),
        "/workspaces/globex".to_owned(),
        format!("/workflows/{}", foreign.workflow),
    ] {
        viewer.open(&path).await;
        assert!(
            viewer.main().await.contains("There is no such thing"),
            "{path}: {}",
            viewer.main().await
        );
    }
    viewer.open(&format!("/act/retry?id={failed}")).await;
    assert!(viewer.main().await.contains("needs the role operator"));
    viewer.open("/alarms/new").await;
    assert!(viewer.main().await.contains("needs the role operator"));
    let operator = visit.person(Role::Operator, Some(own.workspace)).await;
    operator.open(&format!("/queue/{failed}")).await;
    assert!(operator.has("Retry…").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_of_one_workspace_is_offered_nothing_that_is_refused() {
    let visit = Visit::new().await;
    let own = visit.place("acme", 1, ENDLESS).await;
    let failed = visit.failed(&own, "{}", "no such order").await;
    let admin = visit.person(Role::Admin, Some(own.workspace)).await;
    let links = async |within: &str| -> Vec<String> {
        let find = format!("[...document.querySelectorAll('{within}')].map(a => a.getAttribute('href'))");
        serde_json::from_value(admin.look(&find).await).unwrap()
    };
    let mut pages = links(".places a").await;
    assert!(
        pages.len() > 8 && !pages.contains(&"/locks".to_owned()),
        "{pages:?}"
    );
    pages.extend([format!("/queue/{failed}"), "/workspaces/acme".to_owned()]);
    let mut acts = std::collections::BTreeSet::new();
    for page in pages {
        admin.open(&page).await;
        let trouble = admin.look("document.querySelector('.trouble') !== null").await;
        assert_eq!(trouble, false, "{page}: {}", admin.main().await);
        acts.extend(links("main a[href^=\"/act/\"]").await);
        assert_eq!(
            admin
                .look("document.querySelector('[name=server]') !== null")
                .await,
            false,
            "{page}"
        );
    }
    for act in &acts {
        for of_all in [
            "drain-server",
            "resume-server",
            "reconcile",
            "change-plan",
            "release-lock",
        ] {
            assert!(!act.contains(of_all), "{act}");
        }
        admin.open(act).await;
        let trouble = admin.look("document.querySelector('.trouble') !== null").await;
        assert_eq!(trouble, false, "{act}: {}", admin.main().await);
    }
    assert!(acts.len() > 5, "{acts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dashboard_that_is_set_to_read_only_shows_everything_and_does_nothing() {
    let scene = crate::scene::Scene::with(&[("HTTP__DASHBOARD_READ_ONLY", "true")]).await;
    let visit = Visit::on(scene).await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let item = visit.item(&place, "{}").await;
    let admin = visit.person(Role::Admin, None).await;
    for path in ["/tokens", "/audit", "/servers", &format!("/queue/{item}")] {
        admin.open(path).await;
        let buttons = admin
            .look("document.querySelectorAll('main a[href^=\"/act/\"], main form[action^=\"/act/\"]').length")
            .await;
        assert_eq!(buttons, 0, "{path}");
        assert!(admin.text("header.top").await.contains("read only"), "{path}");
    }
    admin.open(&format!("/act/cancel?id={item}")).await;
    assert!(admin.main().await.contains("This dashboard only shows"));
    admin.open("/alarms/new").await;
    assert!(admin.main().await.contains("This dashboard only shows"));
    let by_hand = format!(
        "fetch('/act/cancel', {{ method: 'POST', body: new URLSearchParams({{ id: '{item}' }}) }}).then(answer => answer.status)"
    );
    assert_eq!(admin.look(&by_hand).await, 403);
    assert_eq!(
        visit.status(item).await,
        stationmaster_client::wire::ItemStatus::Pending
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_on_a_page_of_somebody_else_does_nothing() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let token = visit.scene.token(Role::Admin, None).await;
    let post = |origin: Option<String>| {
        let request = visit
            .scene
            .ask(Method::POST, "/act/pause-workspace", None)
            .header("cookie", format!("stationmaster_token={token}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body("id=acme&back=/");
        match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        }
    };
    let paused = async || visit.client.workspace(place.workspace).await.unwrap().paused;
    for origin in [
        None,
        Some("http://evil.example".to_owned()),
        Some("null".to_owned()),
    ] {
        let answer = post(origin.clone()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin:?}");
        assert!(!paused().await);
    }
    let answer = post(Some(visit.scene.url(""))).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(paused().await);
    // A link from elsewhere is another thing: whoever follows it is signed in.
    let cookies = answer.headers().get_all("set-cookie");
    let lines: Vec<&str> = cookies.iter().map(|line| line.to_str().unwrap()).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.contains("SameSite=Lax")),
        "{lines:?}"
    );
    // What is said of pages: nothing runs in them but our script, and nobody puts them into a frame.
    let page = visit
        .scene
        .ask(Method::GET, "/", None)
        .header("cookie", format!("stationmaster_token={token}"));
    let page = page.send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("script-src 'self'")
            && policy.contains("frame-ancestors 'none'")
            && !policy.contains("unsafe"),
        "{policy}"
    );
    let text = page.text().await.unwrap();
    assert!(
        !text.contains(" style=") && !text.contains("<style") && !text.contains(" onclick"),
        "{text}"
    );
}
