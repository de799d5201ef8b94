-- Tables that fill and empty all day keep their pages. A table that vacuum has cut down to nothing looks so small to the
-- planner that it prefers to read all of it, and such a plan, once cached, outlives the emptiness. Cutting also takes a
-- lock that every claim would wait for.
alter table stationmaster.queue_pending set (vacuum_truncate = off);
alter table stationmaster.executions_active set (vacuum_truncate = off);
alter table stationmaster.queue_hints set (vacuum_truncate = off);
alter table stationmaster.workspace_capacity set (vacuum_truncate = off);
