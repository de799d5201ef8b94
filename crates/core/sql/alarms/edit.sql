-- Writes the definition of an alarm anew. Called by edits; the caller has locked the alarm.
-- Locks the definition. Index: alarm_definitions_pkey. $1 alarm, then the columns in the order below.
update stationmaster_internal.alarm_definitions
set label = $2, fire_at = $3, civil_at = $4::text::timestamp, cron_expr = $5, timezone = $6, target_url = $7, message = $8,
    payload = $9::text::json, user_id = $10, conversation_id = $11, max_failures = $12, misfire = $13, catch_up = $14,
    misfire_window = make_interval(secs => $15), overlap = $16, dst = $17, jitter = make_interval(secs => $18), start_at = $19,
    end_at = $20, pause_after = $21, kind = $22, name = $23, updated_at = clock_timestamp()
where id = $1
