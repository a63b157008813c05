-- How the page looks and behaves, as its user chose: one document, replaced as a whole.

CREATE TABLE ui_prefs (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    -- Grows with every change; a change names the one it was made on.
    rev   INTEGER NOT NULL CHECK (rev >= 1),
    prefs TEXT    NOT NULL
) STRICT;

PRAGMA user_version = 6;
