//! Workspaces, plans, definitions and versions: what is refused changes nothing.

use stationmaster_core::catalogue::{self, Error, Plan, WorkflowChange, WorkspaceChange};
use stationmaster_core::id::{DefinitionId, WorkspaceId};

use crate::common::{NOOP, Testbed};

#[tokio::test]
async fn an_unknown_plan_is_refused_and_the_plans_are_named() {
    let testbed = Testbed::new().await;
    let change = WorkspaceChange {
        plan: Some("GOLD".to_owned()),
        ..WorkspaceChange::default()
    };
    let answer = catalogue::put_workspace(&testbed.database, WorkspaceId::new(), change.clone(), None).await;
    let words = answer.unwrap_err().to_string();
    assert_eq!(
        words,
        r#"there is no plan "GOLD": the plans are FREE, PRO, ENTERPRISE"#
    );
    let known = testbed.workspace_on("PRO").await;
    assert!(
        catalogue::put_workspace(&testbed.database, known, change, None)
            .await
            .is_err()
    );
    let workspace = catalogue::workspace(&testbed.database, known).await.unwrap();
    assert_eq!((workspace.plan.as_str(), workspace.limit), ("PRO", 5));
}

#[tokio::test]
async fn a_limit_of_its_own_goes_before_the_plans_and_can_be_taken_away() {
    let testbed = Testbed::new().await;
    let id = testbed.workspace_on("ENTERPRISE").await;
    testbed.limit(id, 7).await;
    assert_eq!(
        catalogue::workspace(&testbed.database, id).await.unwrap().limit,
        7
    );
    let change = WorkspaceChange {
        max_concurrent: Some(None),
        ..WorkspaceChange::default()
    };
    testbed.change(id, change).await;
    assert_eq!(
        catalogue::workspace(&testbed.database, id).await.unwrap().limit,
        20
    );
    let negative = WorkspaceChange {
        max_concurrent: Some(Some(-1)),
        ..WorkspaceChange::default()
    };
    let answer = catalogue::put_workspace(&testbed.database, id, negative, None).await;
    assert!(matches!(answer, Err(Error::Invalid(_))), "{answer:?}");
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let plan = Plan {
            name: "ENTERPRISE".to_owned(),
            max_concurrent: 20,
            weight,
        };
        let answer = catalogue::put_plan(&testbed.database, &plan, None).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{weight}: {answer:?}");
    }
}

#[tokio::test]
async fn to_publish_a_version_that_is_not_there_changes_nothing() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let publish = |version| WorkflowChange {
        published_version: Some(version),
        ..WorkflowChange::of(workspace.0)
    };
    let answer = catalogue::put_definition(&testbed.database, definition, publish(99), None).await;
    assert!(matches!(answer, Err(Error::UnknownVersion(_, 99))), "{answer:?}");
    let after = catalogue::definition(&testbed.database, definition)
        .await
        .unwrap();
    assert_eq!(
        (after.published_version, after.current_version),
        (None, Some(1)),
        "the refused change was written"
    );
    testbed.enqueue((workspace, definition)).await;
}

#[tokio::test]
async fn an_older_version_can_be_published_and_new_ones_then_change_nothing() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let publish = WorkflowChange {
        published_version: Some(1),
        ..WorkflowChange::of(workspace.0)
    };
    catalogue::put_definition(&testbed.database, definition, publish, None)
        .await
        .unwrap();
    let made = catalogue::add_version(&testbed.database, definition, NOOP)
        .await
        .unwrap();
    assert_eq!(made.version, 2);
    let after = catalogue::definition(&testbed.database, definition)
        .await
        .unwrap();
    assert_eq!(after.current_version, Some(1));
}

#[tokio::test]
async fn versions_are_numbered_without_gaps_by_concurrent_callers_and_cannot_change() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, NOOP).await;
    let add = || catalogue::add_version(&testbed.database, definition, NOOP);
    let answers = tokio::join!(add(), add(), add(), add());
    let mut numbers = [answers.0, answers.1, answers.2, answers.3].map(|answer| answer.unwrap().version);
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5]);
    let after = catalogue::definition(&testbed.database, definition)
        .await
        .unwrap();
    assert_eq!(after.current_version, Some(5));
    let change = "update stationmaster.workflow_definition_versions set workflow = workflow";
    let refused = sqlx::query(change)
        .execute(testbed.pool())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a version is immutable"), "{refused}");
}

#[tokio::test]
async fn a_definition_never_moves_to_another_workspace() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, NOOP).await;
    let other = testbed.workspace(1).await;
    let change = |workspace: WorkspaceId| WorkflowChange {
        name: Some("mine".to_owned()),
        ..WorkflowChange::of(workspace.0)
    };
    let answer = catalogue::put_definition(&testbed.database, definition, change(other), None).await;
    assert!(matches!(answer, Err(Error::OtherWorkspace(_))), "{answer:?}");
    let nowhere = WorkspaceId::new();
    let answer =
        catalogue::put_definition(&testbed.database, DefinitionId::new(), change(nowhere), None).await;
    assert!(
        matches!(answer, Err(Error::UnknownWorkspace(id)) if id == nowhere),
        "{answer:?}"
    );
}
