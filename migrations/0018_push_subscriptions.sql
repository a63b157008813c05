-- Devices that are notified while the page is closed.
-- Times are milliseconds since the Unix epoch.

CREATE TABLE push_subscriptions (
    id               TEXT    PRIMARY KEY,
    -- Where the browser's maker takes notifications for it, and the keys that they are encrypted
    -- with. All three are secrets.
    endpoint         TEXT    NOT NULL UNIQUE,
    p256dh           TEXT    NOT NULL,
    auth             TEXT    NOT NULL,
    label            TEXT    NOT NULL,
    -- Words separated by blanks.
    events           TEXT    NOT NULL,
    -- Address of the page that it was switched on at; null for one without encryption.
    contact          TEXT,
    -- The way its person came in by, the hash of the credential, and a mark of the password then.
    channel          TEXT    NOT NULL,
    credential       TEXT,
    mark             TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    last_delivery_at INTEGER,
    -- Why the last one failed; null after one that was accepted.
    last_error       TEXT
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 18;
