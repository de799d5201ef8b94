-- Why a claim found nothing to serve: is anybody eligible, and is the engine still the current one? Called by the claim.
-- Locks nothing. Index: workspace_capacity_eligible, engines_pkey. $1 the engine.
select exists (select from stationmaster_internal.workspace_capacity where eligible) as eligible,
       exists (select from stationmaster_internal.engines where id = $1 and retired_at is null) as current
