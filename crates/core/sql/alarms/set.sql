-- Sets one alarm by the public function, and says what time it is. Called by the API, in a transaction that then plans it.
-- Locks nothing that exists. Index: alarm_definitions_idempotency. The parameters are those of set_alarm, in its order.
select now() as now, stationmaster.set_alarm(
    workspace_id => $1, label => $2, fire_at => $3, delay => make_interval(secs => $4), civil_at => $5::text::timestamp,
    cron_expr => $6, timezone => $7, target_url => $8, message => $9, payload => $10::text::json, user_id => $11,
    conversation_id => $12, idempotency_key => $13, max_failures => $14, misfire => $15, catch_up => $16,
    misfire_window => make_interval(secs => $17), overlap => $18, dst => $19, jitter => make_interval(secs => $20),
    start_at => $21, end_at => $22, pause_after => $23, traceparent => $24, set_by => $25, id => $26, name => $27) as alarm
