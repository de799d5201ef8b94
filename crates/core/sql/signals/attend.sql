-- Says that a dispatcher looks into its inbox anyway for a while, so that senders need not ring. Called while it is busy.
-- Locks its own row. Index: dispatcher_attention_pkey. $1 dispatcher, $2 for how many seconds.
insert into stationmaster.dispatcher_attention (dispatcher_id, until)
values ($1, clock_timestamp() + make_interval(secs => $2))
on conflict (dispatcher_id) do update set until = excluded.until
