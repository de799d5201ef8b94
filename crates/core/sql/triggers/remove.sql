-- Removes a trigger. Signals of its name become dead letters from then on. Called for people. Index: triggers_pkey.
-- $1 project, $2 task queue (empty: that of every queue), $3 name.
delete from stationmaster.triggers
where project = $1 and task_queue = $2 and name = $3
