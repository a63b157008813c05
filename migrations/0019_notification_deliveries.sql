-- The last notifications of each target, and what became of them.
CREATE TABLE notification_deliveries (
    -- Digest of the entry of `notifications.urls`, which is secret.
    target   TEXT    NOT NULL,
    delivery TEXT    NOT NULL,
    event    TEXT    NOT NULL,
    title    TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    -- Written before the attempt as `sent`.
    state    TEXT    NOT NULL
        CHECK (state IN ('waiting', 'sent', 'accepted', 'failed', 'withdrawn')),
    status   INTEGER,
    reason   TEXT,
    PRIMARY KEY (target, delivery)
) STRICT;

PRAGMA user_version = 19;
