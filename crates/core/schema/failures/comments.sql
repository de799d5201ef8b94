-- What is in this room, for people who read the tables.

comment on table stationmaster_internal.failures is
'What needs a person: one narrow row for each start, execution, occurrence or signal that ended badly and was not tried again.
Room: failures. Written by: triggers on the tables where these end; set aside by people.';
comment on index stationmaster_internal.failures_open is 'The groups of a workspace, and the failures of each, oldest first';
comment on index stationmaster_internal.failures_by_group is 'The failures of a group, for whoever acts on them';
comment on index stationmaster_internal.failures_by_execution is 'The failure of an execution, when it is retried or forgotten';
comment on index stationmaster_internal.failures_by_occurrence is 'The same of an occurrence';
comment on index stationmaster_internal.failures_by_signal is 'The same of a signal';

comment on view stationmaster.failures is
'What needs a person: each start that failed for good, each execution that ended FAILED, TERMINATED or TIMED_OUT, each failed occurrence and each dead letter, until it is retried or pruned. What was set aside has set_aside_at.
Room: failures. Written by: nobody; it shows what triggers have written.';
comment on column stationmaster.failures.group_id is 'What it has in common with others: failure_groups.id';
comment on column stationmaster.failures.kind is 'start, execution, occurrence or signal';
comment on column stationmaster.failures.workspace_id is 'Whose it is; null: a signal of a project that belongs to nobody';
comment on column stationmaster.failures.workflow_definition_id is 'What was to run; null: it is no start and no execution';
comment on column stationmaster.failures.at is 'When it ended';
comment on column stationmaster.failures.message is 'What went wrong, at most 2,000 characters';
comment on column stationmaster.failures.queue_item_id is 'The item; null: it is no start and no execution';
comment on column stationmaster.failures.execution_id is 'The execution; of a start that failed the id that it would have had; null: it is neither';
comment on column stationmaster.failures.alarm_id is 'The alarm; null: it is no occurrence';
comment on column stationmaster.failures.scheduled_for is 'The nominal instant of the occurrence; null: it is none';
comment on column stationmaster.failures.signal_id is 'The signal; null: it is none';
comment on column stationmaster.failures.set_aside_at is 'When somebody set it aside; null: it needs a person';
comment on column stationmaster.failures.set_aside_by is 'Who set it aside; null: nobody';
comment on column stationmaster.failures.note is 'What they wrote; null: nothing';

comment on view stationmaster.failure_groups is
'Failures that need a person, by what they have in common: kind, workspace, workflow or alarm or signal, and the message without its numbers, ids and times.
Room: failures. Written by: nobody; it shows what triggers have written.';
comment on column stationmaster.failure_groups.id is 'The group: 15 hexadecimal digits';
comment on column stationmaster.failure_groups.kind is 'start, execution, occurrence or signal';
comment on column stationmaster.failure_groups.workspace_id is 'Whose they are; null: signals of a project that belongs to nobody';
comment on column stationmaster.failure_groups.workflow_definition_id is 'What was to run; null: they are no starts and no executions';
comment on column stationmaster.failure_groups.alarm_id is 'The alarm; null: they are no occurrences';
comment on column stationmaster.failure_groups.count is 'How many there are';
comment on column stationmaster.failure_groups.first_at is 'When the first ended';
comment on column stationmaster.failure_groups.last_at is 'When the last ended';
comment on column stationmaster.failure_groups.message is 'What went wrong with the last';
comment on column stationmaster.failures.workspace is 'The name of the workspace; null: it is gone, or there is none';
comment on column stationmaster.failures.workflow is 'The name of the workflow; null: it is gone, or there is none';
comment on column stationmaster.failures.alarm is 'What the alarm is called; null: it is no occurrence, or it was given no name';
comment on column stationmaster.failure_groups.workspace is 'The name of the workspace; null: it is gone, or there is none';
comment on column stationmaster.failure_groups.workflow is 'The name of the workflow; null: it is gone, or there is none';
comment on column stationmaster.failure_groups.alarm is 'What the alarm is called; null: they are no occurrences, or it was given no name';
