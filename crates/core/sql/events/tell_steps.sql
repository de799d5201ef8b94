-- Begins to tell the steps of executions, or ends it. Called by `dev`. Locks the tables of the queue for a moment.
-- $1 whether they are to be told.
select stationmaster.tell_steps($1)
