//! docs/guides/generated-clients.md: clients are made from the document that a server serves, and tried against it.

use crate::guide::Guide;
use crate::support::free_port;
use crate::terminal::Desk;
use crate::{Language, PYTHON, TYPESCRIPT, present, say};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "fetches packages of two languages: cargo xtask examples"]
async fn clients_made_from_the_document_enqueue_list_listen_and_hear_of_problems() {
    let guide = Guide::read("generated-clients.md");
    let languages = present("Clients made from the document", &[PYTHON, TYPESCRIPT]);
    let mut desk = Desk::new();
    let port = free_port().to_string();
    let [dev, prepare] = guide.blocks("A server");
    let mut dev = desk.start(&dev.replace("7373", &port));
    dev.says("dashboard").await;
    // Made once; the terminals that follow are told what came of it.
    let prepared = prepare.replace("7373", &port);
    let token = desk.done(&format!("{prepared}\necho \"$STATIONMASTER_TOKEN\""));
    let token = token.lines().last().unwrap();
    assert!(token.starts_with("smt_"), "{token}");
    desk.export(&format!("export STATIONMASTER_URL=http://127.0.0.1:{port}"));
    desk.export(&format!("export STATIONMASTER_TOKEN={token}"));

    for language in languages {
        let begun = std::time::Instant::now();
        try_client(&desk, &guide, language);
        let seconds = begun.elapsed().as_secs_f64();
        say(&format!("{}: made, typed, tried; {seconds:.1} s", language.name));
    }
    dev.interrupt().await;
}

fn try_client(desk: &Desk, guide: &Guide, language: Language) {
    let [install, make, run] = guide.blocks(language.name);
    let list = match language.name {
        "Python" => "docs/examples/clients/python/requirements.txt",
        _ => "docs/examples/clients/typescript/package-lock.json",
    };
    desk.install(&install, list);
    let folder = install.lines().next().unwrap();
    desk.done(&format!("{folder}\n{make}"));
    let printed = desk.done(&format!("{folder}\n{run}"));
    let after = |word: &str| -> Vec<&str> {
        let lines = printed.lines().filter_map(|line| line.strip_prefix(word));
        lines.flat_map(str::split_whitespace).collect()
    };
    let enqueued = after("enqueued");
    assert_eq!(enqueued.len(), 3, "{printed}");
    assert_eq!(after("repeated"), enqueued[2..], "the key gives the first item");
    let mut listed = after("listed");
    listed.reverse();
    assert_eq!(listed, enqueued, "all pages, newest first, nothing twice");
    assert_eq!(after("refused"), ["not-found"], "{printed}");
    assert_eq!(after("heard"), ["hello"], "{printed}");
}
