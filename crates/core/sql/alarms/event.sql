-- Notes what somebody did to an alarm. Called by people's operations, in their transactions.
-- Locks nothing that exists. $1 alarm, $2 event, $3 actor, $4 detail.
insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
values ($1, $2, $3, $4)
