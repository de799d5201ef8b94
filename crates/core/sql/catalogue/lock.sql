-- Lets changes to one thing that depend on what it is now come one after the other, also before it is there.
-- Called by the catalogue. Locks a key of the transaction's own, made from the id. $1 id or name.
select pg_advisory_xact_lock(hashtextextended('stationmaster.catalogue.' || $1::text, 0))
