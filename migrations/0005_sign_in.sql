-- Who may come in: named tokens, the hashes that were withdrawn, and signed-in browsers.

CREATE TABLE api_tokens (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    label        TEXT NOT NULL UNIQUE,
    -- SHA-256 of the token, 64 lower-case hex digits.
    hash         TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
    -- Milliseconds since the epoch, as everywhere.
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at   INTEGER,
    -- Words separated by blanks; null allows everything.
    scopes       TEXT
) STRICT;

-- Hashes of revoked and rotated tokens: a restore must not bring them back.
CREATE TABLE withdrawn_tokens (
    hash         TEXT PRIMARY KEY,
    withdrawn_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sign_ins (
    -- SHA-256 of the session id, 64 lower-case hex digits.
    hash          TEXT PRIMARY KEY,
    created_at    INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    peer          TEXT NOT NULL,
    forwarded_for TEXT,
    user_agent    TEXT NOT NULL,
    revoked_at    INTEGER
) STRICT;

PRAGMA user_version = 5;
