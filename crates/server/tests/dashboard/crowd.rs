//! A server with very much on it, for whoever wants to know what a page costs then.

use stationmaster_client::Client;
use stationmaster_client::wire::{
    AlarmQuery, DispatcherQuery, ExecutionQuery, FailureQuery, LockRequest, NewAlarm, NewSignal, QueueQuery,
    WorkflowQuery,
};
use uuid::Uuid;

use crate::scene::Scene;
use crate::support::{ENDLESS, eventually};

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crowd {
    pub(crate) workspaces: i32,
    /// Workflows, one in each of the first workspaces.
    pub(crate) workflows: i32,
    /// Items that have ended.
    pub(crate) ended: i32,
    /// Of them, how many failed, in forty groups.
    pub(crate) failed: i32,
    /// Items that wait or run.
    pub(crate) open: i32,
    /// How many of one workflow run at once.
    pub(crate) limit: i32,
    pub(crate) alarms: i32,
    /// Minutes of history.
    pub(crate) minutes: i32,
}

/// What is in every database of this kind.
const CATALOGUE: &str = "
    insert into stationmaster.workspaces (name, plan, max_concurrent)
    select 'team-' || lpad(n::text, 4, '0'), (array['FREE', 'PRO', 'ENTERPRISE'])[1 + n % 3], case when n % 100 = 0 then 0 else {limit} end
    from generate_series(1, {workspaces}) n;
    insert into stationmaster.workflow_definitions (workspace_id, name)
    select id, 'report' from stationmaster.workspaces order by name limit {workflows};
    insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow)
    select d.id, '{graph}'::jsonb from stationmaster.workflow_definitions d";

/// Items that ended in the last week, the failed ones in forty groups.
const ENDED: &str = "
    create temporary table chosen as
        select d.id as definition, d.workspace_id, d.current_version_id as version, row_number() over (order by w.name) - 1 as place
        from stationmaster.workflow_definitions d
        join stationmaster.workspaces w on w.id = d.workspace_id;
    with made as (
        insert into stationmaster_internal.queue_items (workspace_id, workflow_definition_id, workflow_definition_version_id, input, created_at)
        select c.workspace_id, c.definition, c.version, jsonb_build_object('order', n, 'note', md5(n::text)),
               now() - interval '7 days' * (1 - n::double precision / {ended})
        from generate_series(1, {ended}) n
        join chosen c on c.place = case when n % {every} = 0 then n / {every} % 40 else n % {workflows} end
        order by n
        returning id, workspace_id, workflow_definition_id, workflow_definition_version_id, created_at, (input ->> 'order')::bigint as n
    )
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
         engine, attempts, recoveries, claimed_at, dispatched_at, finished_at, finished_by, error, output)
    select id, id, workspace_id, workflow_definition_id, workflow_definition_version_id, 'DISPATCHED',
           case when n % {every} = 0 then 'FAILED' else 'COMPLETED' end, 'embedded', 0, 0, created_at, created_at,
           created_at + interval '1 second', 'a test',
           case when n % {every} = 0 then jsonb_build_object('message', 'order ' || n || ' was not found in the books of the other house') end,
           case when n % {every} <> 0 then jsonb_build_object('sum', n) end
    from made
    order by n";

const OPEN: &str = "
    insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
    select d.workspace_id, d.id, jsonb_build_object('order', n)
    from generate_series(1, {open}) n
    join (select id, workspace_id, row_number() over (order by id) - 1 as place from stationmaster.workflow_definitions) d
      on d.place = n % {workflows};
    insert into stationmaster.audit (actor, action, subject, detail)
    select 'somebody', 'workspace.put', 'old-' || n, '{\"plan\": \"PRO\"}' from generate_series(1, {open} / 2) n";

/// As much as is kept: of each minute a hundred workflows, and everything.
const HISTORY: &str = "
    insert into stationmaster_internal.history_minutes
        (workspace_id, minute, workflow_definition_id, moved, enqueued, started, completed, failed, cancelled, terminated, timed_out,
         alarms_fired, alarms_failed, alarms_late, waiting, active, wait_seconds, wait_longest, waits, run_seconds, run_longest, runs)
    select w.workspace_id, date_trunc('minute', now()) - m * interval '1 minute', w.definition, 12, 4, 4, 3, 1, 0, 0, 0, 0, 0, 0, 3, 2, 2, 1,
           array_fill(1, array[17]), 3, 1, array_fill(1, array[17])
    from generate_series(2, {minutes}) m
    cross join (select d.workspace_id, d.id as definition from stationmaster.workflow_definitions d limit 100) w
    union all
    select '00000000-0000-0000-0000-000000000000', date_trunc('minute', now()) - m * interval '1 minute', '00000000-0000-0000-0000-000000000000',
           1200, 400, 400, 300, 100, 0, 0, 0, 0, 0, 0, 300, 200, 200, 1, array_fill(1, array[17]), 3, 1, array_fill(1, array[17])
    from generate_series(2, {minutes} * 7) m
    on conflict do nothing";

impl Crowd {
    /// What pages are promised for: a hundred thousand items in a thousand workspaces.
    pub(crate) const WHOLE: Self = Self {
        workspaces: 1_000,
        workflows: 300,
        ended: 60_000,
        failed: 5_000,
        open: 40_000,
        limit: 34,
        alarms: 500,
        minutes: 1_440,
    };

    fn filled(self, text: &str) -> String {
        text.replace("{workspaces}", &self.workspaces.to_string())
            .replace("{workflows}", &self.workflows.to_string())
            .replace("{ended}", &self.ended.to_string())
            .replace("{every}", &(self.ended / self.failed).to_string())
            .replace("{open}", &self.open.to_string())
            .replace("{limit}", &self.limit.to_string())
            .replace("{minutes}", &self.minutes.to_string())
            .replace("{graph}", ENDLESS)
    }

    /// Brings all of it into the scene, and waits until what may run does.
    pub(crate) async fn enter(self, scene: &Scene, client: &Client) {
        for text in [CATALOGUE, ENDED, OPEN, HISTORY] {
            let text = sqlx::AssertSqlSafe(self.filled(text));
            let mut connection = scene.database.pool.acquire().await.unwrap();
            sqlx::raw_sql(text).execute(&mut *connection).await.unwrap();
        }
        let spaces: Vec<Uuid> = sqlx::query_scalar("select id from stationmaster.workspaces order by name")
            .fetch_all(&scene.database.pool)
            .await
            .unwrap();
        for place in 0..self.alarms {
            let alarm = NewAlarm {
                workspace_id: spaces[usize::try_from(place).unwrap() % spaces.len()],
                label: format!("nightly {place}"),
                cron_expr: Some(format!("{} {} * * *", place % 60, place % 24)),
                timezone: Some("Europe/Zurich".to_owned()),
                ..NewAlarm::default()
            };
            client.set_alarm(&alarm).await.unwrap();
        }
        for place in 0..50 {
            let lock = LockRequest {
                at_most: 3_600.0,
                at_least: 0.0,
                owner: Some("a night job".to_owned()),
            };
            client
                .acquire_lock(&format!("lock-{place}"), &lock)
                .await
                .unwrap();
        }
        let signals = (0..200).map(|_| NewSignal::new("shop", "order.lost")).collect();
        client.send_signals(signals).await.unwrap();
        let may_run = i64::from(self.limit) * i64::from(self.workflows - self.workflows / 100);
        let may_run = may_run.min(i64::from(self.open));
        eventually("what may run does", async || {
            let running =
                "select count(*) from stationmaster_internal.executions_active where state = 'RUNNING'";
            scene.database.number(running).await >= may_run * 9 / 10
        })
        .await;
        sqlx::raw_sql("vacuum analyze")
            .execute(&scene.database.pool)
            .await
            .unwrap();
    }
}

/// Every page there is, of things that are there.
pub(crate) async fn pages(client: &Client) -> Vec<String> {
    let group = client
        .failures(&FailureQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    let waiting = QueueQuery {
        status: Some(stationmaster_client::wire::ItemStatus::Pending),
        limit: Some(1),
        ..QueueQuery::default()
    };
    let waiting = client.queue(&waiting).await.unwrap().items.remove(0).id;
    let running = ExecutionQuery {
        status: Some(stationmaster_client::wire::ExecutionStatus::Running),
        limit: Some(1),
        ..ExecutionQuery::default()
    };
    let running = client.executions(&running).await.unwrap().items.remove(0);
    let workflow = client
        .workflows(&WorkflowQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    let alarm = client
        .alarms(&AlarmQuery::default())
        .await
        .unwrap()
        .items
        .remove(0)
        .id;
    let dispatcher = client
        .dispatchers(&DispatcherQuery::default())
        .await
        .unwrap()
        .items
        .remove(0)
        .id;
    let busy = running.workspace.unwrap();
    let mut pages: Vec<String> = [
        "/",
        "/?since=7d",
        "/failures",
        "/failures?since=24h&search=books",
        "/queue",
        "/queue?status=PENDING",
        "/queue?since=24h&search=4711",
        "/executions",
        "/executions?status=RUNNING",
        "/executions?status=FAILED&since=7d",
        "/workspaces",
        "/workspaces?sort=waiting",
        "/workflows",
        "/alarms",
        "/alarms?ahead=7d",
        "/operations",
        "/runbooks",
        "/runbooks/engine-away",
        "/alarms/new?cron=0+9+*+*+*",
        "/signals",
        "/signals?status=DEAD",
        "/dispatchers",
        "/servers",
        "/locks",
        "/audit",
        "/tokens",
        "/settings",
        "/executions/strays",
        "/jump?q=team-00",
        "/jump?q=tema-00",
        "/complete?noun=workspace&text=team",
        "/act/retry-failures",
        "/act/cancel-all?status=PENDING",
        "/act/pause-alarms?status=active",
    ]
    .map(str::to_owned)
    .into();
    pages.extend([
        format!("/?workspace={busy}"),
        format!("/failures/{}", group.id),
        format!("/queue?workspace={busy}&status=PENDING"),
        format!("/queue/{waiting}"),
        format!("/executions/{}", running.id),
        format!("/jump?q={}", running.id),
        format!("/workspaces/{busy}"),
        format!("/workspaces/{busy}?since=24h"),
        format!("/workflows/{}", workflow.id),
        format!("/alarms/{alarm}"),
        format!("/dispatchers/{dispatcher}"),
    ]);
    pages.sort();
    pages
}
