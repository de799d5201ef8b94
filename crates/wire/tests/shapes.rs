//! What a shape does by itself: what is left out and what is null, names within names, secrets that are not printed.

use serde_json::json;
use stationmaster_wire::{DispatcherState, Problem, Role, TokenMade, WorkspaceChange};

#[expect(
    clippy::option_option,
    reason = "left out, null and given are three things on the wire"
)]
fn limit(change: &serde_json::Value) -> Option<Option<i32>> {
    let change: WorkspaceChange = serde_json::from_value(change.clone()).expect("a change");
    change.max_concurrent
}

#[test]
fn left_out_null_and_given_are_three_things() {
    assert_eq!(limit(&json!({})), None);
    assert_eq!(limit(&json!({ "max_concurrent": null })), Some(None));
    assert_eq!(limit(&json!({ "max_concurrent": 3 })), Some(Some(3)));
}

#[test]
fn a_dispatcher_is_owned_resting_or_vacant() {
    let state = |word: &str| DispatcherState::from(word.to_owned());
    assert_eq!(state("owned"), DispatcherState::Owned);
    assert_eq!(state("resting"), DispatcherState::Resting);
    assert_eq!(state("vacant"), DispatcherState::Vacant);
}

#[test]
fn a_problem_is_named_by_the_end_of_its_kind() {
    let problem = json!({ "type": "urn:stationmaster:problem:lock-taken", "title": "Taken", "status": 409 });
    let problem: Problem = serde_json::from_value(problem).expect("a problem");
    assert_eq!(problem.name(), "lock-taken");
}

#[test]
fn the_secret_of_a_token_is_not_printed_and_the_rest_is() {
    let made = json!({
        "token": {
            "id": "0199a0de-0000-7000-8000-000000000000", "name": "night shift", "hint": "sm_do", "role": "viewer", "active": true,
            "created_at": "2026-01-01T00:00:00Z", "created_by": "alice",
        },
        "secret": "sm_do_not_tell",
    });
    let made: TokenMade = serde_json::from_value(made).expect("a token");
    assert_eq!(
        (made.secret.as_str(), made.token.role),
        ("sm_do_not_tell", Role::Viewer)
    );
    let printed = format!("{made:?}");
    assert!(
        printed.contains("night shift") && !printed.contains("sm_do_not_tell"),
        "{printed}"
    );
}

#[cfg(feature = "rows")]
#[test]
fn a_policy_for_moving_clocks_is_the_same_in_both_places() {
    use stationmaster_schedule::DstPolicy;
    use stationmaster_wire::Dst;
    let pairs = [
        (Dst::Vixie, DstPolicy::Vixie),
        (Dst::Skip, DstPolicy::Skip),
        (Dst::Both, DstPolicy::Both),
    ];
    for (word, policy) in pairs {
        assert_eq!(DstPolicy::from(word), policy);
        assert_eq!(Dst::from(policy), word);
    }
}
