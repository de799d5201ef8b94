-- Begins a transaction on somebody's behalf: the role behind row-level security, the actor's name, the workspaces in scope.
-- Statements of requests are short, and compiling them would take longer than running them; and each is carried out by one process
-- of PostgreSQL, whatever it asks for. All of it ends with the transaction. Called by session. Locks nothing.
-- $1 role (null: as we are), $2 actor, $3 workspaces, joined by commas (* for all), $4 the longest that a statement may take.
select case when $1::text is not null then set_config('role', $1, true) end,
       set_config('stationmaster.actor', $2, true),
       set_config('stationmaster.workspaces', $3, true),
       set_config('statement_timeout', $4, true),
       set_config('jit', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true)
