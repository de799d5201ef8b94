//! The dashboard as people meet it: a real server, a real database, and a real browser that looks at the pages and presses the buttons.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actions;
mod browser;
mod bulk;
mod crowd;
mod deeds;
mod drawn;
mod engine;
mod found;
mod live;
mod open;
mod pages;
mod pictures;
mod pressed;
mod scale;
#[allow(dead_code, reason = "shared with the tests of the API, which need more of it")]
#[path = "../api/scene.rs"]
mod scene;
mod servers;
mod sessions;
#[allow(
    dead_code,
    unused_imports,
    reason = "shared with the tests of processes, which need more of it"
)]
#[path = "../processes/support/mod.rs"]
mod support;
mod together;
mod visit;
mod wishes;
