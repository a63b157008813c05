-- What was read of the agent's transcripts, so that a restart does not read them again.
CREATE TABLE transcripts (
    -- The file. Its name is the agent's id of a conversation: a credential that never leaves the store.
    path  TEXT PRIMARY KEY,
    -- Up to where it was read and what was found, as JSON. May be deleted at any time.
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 12;
