-- Addresses that a credential was used from, so that a new one is told of once.

CREATE TABLE credential_addresses (
    -- The hash of a token or of a sign-in, as in its own table.
    hash          TEXT NOT NULL CHECK (length(hash) = 64),
    address       TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    PRIMARY KEY (hash, address)
) STRICT;

PRAGMA user_version = 9;
