-- Sets failures aside, with a line of the audit for each workspace and group. Called by people, a page at a time. Locks the rows in id order.
-- Index: failures_pkey. $1 failures, $2 who, $3 note. Answers how many there were.
with chosen as materialized (
    select id
    from stationmaster_internal.failures
    where id = any ($1) and set_aside_at is null
    order by id
    for update
), aside as (
    update stationmaster_internal.failures f
    set set_aside_at = now(), set_aside_by = $2, note = $3
    from chosen c
    where f.id = c.id
    returning f.id, f.workspace_id, f.group_id
), noted as (
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select $2, 'failures.set_aside', nullif(workspace_id, '00000000-0000-0000-0000-000000000000'), lpad(to_hex(group_id), 15, '0'),
           jsonb_strip_nulls(jsonb_build_object('failures', count(*), 'note', $3::text))
    from aside
    group by workspace_id, group_id
    order by workspace_id, group_id
)
select count(*)
from aside
