-- The application's own tables, in the database that it shares with Stationmaster.
create table if not exists orders (
    id     integer primary key,
    amount integer not null check (amount > 0)
);

-- What the receiver of wakes does. The id of the wake is the key, so that the same wake does it once.
create table if not exists reminders (
    wake_id       text primary key,
    message       text,
    scheduled_for timestamptz not null
);
