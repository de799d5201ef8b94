-- Comments on the catalogue. They are what docs/schema.md shows.

comment on schema stationmaster is 'Stationmaster: the relations and functions that other programs may use';
comment on schema stationmaster_internal is 'Stationmaster: its own tables and functions, which may change with every release';

comment on table stationmaster.plans is
'How many executions a workspace may have at once, and how large its share is. Shipped: FREE, PRO, ENTERPRISE.
Room: catalogue. Written by: people.';
comment on column stationmaster.plans.name is 'The name, as workspaces.plan says it';
comment on column stationmaster.plans.max_concurrent is 'Executions that a workspace of this plan may have active at once';
comment on column stationmaster.plans.weight is
    'The share of a workspace when several have work waiting; 2 gets twice as much as 1';

comment on table stationmaster.workspaces is
'A tenant. Deleting one cancels its alarms and fails what waits.
Room: catalogue. Written by: people.';
comment on column stationmaster.workspaces.id is 'The id; a new one when left out';
comment on column stationmaster.workspaces.name is
    'What people call it: a slug, unique. What is written is folded (stationmaster.slug); one made of the id when left out';
comment on column stationmaster.workspaces.plan is 'Its plan, which gives its limit and its share';
comment on column stationmaster.workspaces.max_concurrent is 'Its own limit; null: the plan''s';
comment on column stationmaster.workspaces.paused is 'True: nothing of it is started until it is resumed';
comment on column stationmaster.workspaces.created_at is 'When it was made';
comment on column stationmaster.workspaces.updated_at is 'When it was changed through the API';

comment on table stationmaster.workflow_definitions is
'A workflow of a workspace. What runs is one of its versions.
Room: catalogue. Written by: people.';
comment on column stationmaster.workflow_definitions.id is 'The id; a new one when left out';
comment on column stationmaster.workflow_definitions.workspace_id is 'Whose it is';
comment on column stationmaster.workflow_definitions.name is
    'What people call it: a slug, unique in its workspace. What is written is folded (stationmaster.slug); one made of the id when left out';
comment on column stationmaster.workflow_definitions.task_queue is 'The task queue on Temporal; null: the server''s setting';
comment on column stationmaster.workflow_definitions.workflow_type is
    'The workflow type on Temporal; null: the server''s setting';
comment on column stationmaster.workflow_definitions.max_attempts is
    'How many starts the engine may refuse before an item fails; null: the server''s setting';
comment on column stationmaster.workflow_definitions.published_version is 'The version that is run; null: the newest';
comment on column stationmaster.workflow_definitions.current_version_id is
    'Kept by triggers: the version that an enqueue resolves to; null: nothing is published';
comment on column stationmaster.workflow_definitions.paused is 'True: nothing of it is started until it is resumed';
comment on column stationmaster.workflow_definitions.created_at is 'When it was made';
comment on column stationmaster.workflow_definitions.updated_at is 'When it was changed';
comment on column stationmaster.workflow_definitions.run_timeout is
    'How long a run of it may take, counted from its start; then it ends TIMED_OUT. null: for ever';
comment on index stationmaster.workflow_definitions_by_workspace is 'The definitions of a workspace, and deleting one';
comment on index stationmaster.workflow_definitions_paused is 'The few definitions that are paused, for admission';

comment on table stationmaster.workflow_definition_versions is
'The versions of a definition. A version never changes: insert a new one.
Room: catalogue. Written by: people.';
comment on column stationmaster.workflow_definition_versions.id is 'The id; a new one when left out';
comment on column stationmaster.workflow_definition_versions.workflow_definition_id is 'The definition';
comment on column stationmaster.workflow_definition_versions.version is
    'The number, counted from 1 within the definition; the next one when left out';
comment on column stationmaster.workflow_definition_versions.workflow is
    'The graph: {"nodes": [{"id", "type"}], "edges": [{"from", "to"}]}; one that cannot run is refused';
comment on column stationmaster.workflow_definition_versions.created_at is 'When it was made';
comment on index stationmaster.workflow_definition_versions_workflow_definition_id_version_key is
    'The versions of a definition; a number is given once';

comment on table stationmaster_internal.schema_parts is
'The files of functions, views, policies and grants that have been applied, with their checksums.
Room: catalogue. Written by: migrations.';

comment on function stationmaster.new_id is 'A new id: a UUID of version 7, which grows with time. The default of every id';

comment on index stationmaster.plans_by_name is 'A name is one plan''s, in whatever case';
comment on index stationmaster.workspaces_by_name is 'A name is one workspace''s';
comment on index stationmaster.workflow_definitions_by_name is 'A name is one workflow''s in its workspace; also the way from a name to all that have it';

comment on function stationmaster.slug is
    'What is given, as a name: lower case, every run of characters other than a-z, 0-9, - and _ one dash, at most 63 characters. Empty when nothing is left';
comment on function stationmaster.workspace_id is 'The id of the workspace of this name; an id is answered as it is';
comment on function stationmaster.workflow_id is 'The id of the workflow of this name in the workspace of that name; an id is answered as it is';
