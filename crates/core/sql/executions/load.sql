-- What the engine needs beside the ids of a claim: the input and the trace context, by item.
-- Called after the claim has committed, outside any transaction. Locks nothing. Index: queue_items_pkey. $1 items.
select id, input::text as input, traceparent
from stationmaster_internal.queue_items
where id = any ($1)
