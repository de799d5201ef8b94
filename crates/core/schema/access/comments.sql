-- Comments on tokens, kept answers and the audit. They are what docs/schema.md shows.

comment on table stationmaster.audit is
'Every change, by whomever and by whatever way; kept for its retention. Rows are only added.
Room: access. Written by: triggers and servers; pruned by housekeeping.';
comment on column stationmaster.audit.id is 'Grows with time';
comment on column stationmaster.audit.at is 'When';
comment on column stationmaster.audit.actor is 'Who: token:<name>:<id>, cli:<user>, a server, or the account of the database';
comment on column stationmaster.audit.action is 'What: <noun>.<verb>';
comment on column stationmaster.audit.workspace_id is 'In which workspace; null: in none';
comment on column stationmaster.audit.subject is 'The id or the name of what was changed';
comment on column stationmaster.audit.detail is 'The values before and after, or more of it';
comment on index stationmaster.audit_at is 'Lists by time, and what the retention may remove';
comment on index stationmaster.audit_by_workspace is 'Lists of a workspace';

comment on table stationmaster_internal.tokens is
'Bearer tokens. The secret itself is never stored: only its SHA-256, and a few characters to tell tokens apart.
Room: access. Written by: people.';
comment on column stationmaster_internal.tokens.workspaces is 'Null: all workspaces';
comment on column stationmaster_internal.tokens.last_used_at is 'Written at most once a minute';
comment on index stationmaster_internal.tokens_by_name is 'One token for each name that is not revoked';
comment on index stationmaster_internal.tokens_hash_key is 'A token by its secret, at a request';

comment on table stationmaster_internal.api_answers is
'Answers to requests that carried an idempotency key, so that a repeat is answered and not done again.
Room: access. Written by: the API; pruned by housekeeping.';
comment on column stationmaster_internal.api_answers.request is 'SHA-256 of method, path and body';
comment on column stationmaster_internal.api_answers.status is 'Null: the first request is still under way';
comment on index stationmaster_internal.api_answers_at is 'What is too old to be repeated';

comment on table stationmaster_internal.views is
'Addresses of lists with their filters, which people keep under a name, for themselves or for all who see all workspaces.
Room: access. Written by: people.';
comment on column stationmaster_internal.views.owner is 'Who keeps it: token:<name>, cli:<user> or open';
comment on column stationmaster_internal.views.path is 'The address on a server, with its filters';
comment on column stationmaster_internal.views.shared is 'For all who see all workspaces';
comment on column stationmaster_internal.views.made_by is 'Who kept it last, as the audit names them';
comment on index stationmaster_internal.views_by_owner is 'One view for each name of an owner';
comment on index stationmaster_internal.views_shared is 'Those for all';

comment on function stationmaster.grant_api is
    'Gives the role stationmaster_api its rights, all of them and no others. Migrations call it; whoever makes the role later calls it then, as the owner of the tables or as a superuser';
