-- Conversations that go on by themselves after a plan limit was reset, each once.
CREATE TABLE limit_waits (
    -- The agent's id of the conversation: a credential that never leaves the store.
    conversation_id TEXT    NOT NULL,
    -- When the agent told of the limit, milliseconds since the Unix epoch.
    since           INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    -- `begun` is written before the agent is told to go on, so that it is never told twice.
    state           TEXT    NOT NULL CHECK (state IN ('waiting', 'begun', 'called_off')),
    PRIMARY KEY (conversation_id, since)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 14;
