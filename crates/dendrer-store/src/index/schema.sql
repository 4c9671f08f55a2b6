-- The derived index of a dendrer store, schema version 5 (docs/index-tables.md).
-- Everything here follows from the segment files and may be deleted.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per run, keyed by the log position of its run record.
CREATE TABLE run (
    begin          INTEGER PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    parent         BLOB,
    first_own_tick INTEGER,
    newest_tick    INTEGER,
    beside         INTEGER NOT NULL DEFAULT 0
);

-- One row per record of the log.
CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    id       BLOB NOT NULL,
    kind     TEXT NOT NULL,
    run      INTEGER REFERENCES run (begin),
    tick     INTEGER,
    type     TEXT,
    agent    TEXT,
    ts       INTEGER NOT NULL,
    frame    INTEGER NOT NULL,
    opened   INTEGER
);
CREATE INDEX record_id ON record (id);
CREATE UNIQUE INDEX record_tick ON record (run, tick) WHERE tick IS NOT NULL;
CREATE INDEX record_beside ON record (run, position) WHERE tick IS NULL;
CREATE INDEX record_opened ON record (opened) WHERE opened IS NOT NULL;

-- Chunks of large values that may be used again.
CREATE TABLE chunk (
    key   BLOB PRIMARY KEY,
    frame INTEGER NOT NULL
) WITHOUT ROWID;

-- Encrypted values of the vault: the newest frame of each name.
CREATE TABLE secret (
    name  BLOB PRIMARY KEY,
    frame INTEGER NOT NULL
) WITHOUT ROWID;

-- Bytes that others derive from the log, such as states.
CREATE TABLE snapshot (
    run   TEXT NOT NULL,
    tick  INTEGER NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (run, tick)
);

-- Signed statements of what predicates say along a run, by the digest of the question.
CREATE TABLE verdict (
    run       TEXT NOT NULL,
    question  BLOB NOT NULL,
    statement BLOB NOT NULL,
    PRIMARY KEY (run, question)
) WITHOUT ROWID;

-- Sums of transitions over ticks number << level .. (number + 1) << level of a run that owns them all.
CREATE TABLE tile (
    run    TEXT NOT NULL,
    level  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    sums   BLOB NOT NULL,
    PRIMARY KEY (run, level, number)
) WITHOUT ROWID;

-- For people: the record table with names and hex.
CREATE VIEW log AS
SELECT position, lower(hex(id)) AS id, kind, run.name AS run, tick, type, agent,
       strftime('%Y-%m-%dT%H:%M:%fZ', ts / 1000.0, 'unixepoch') AS time
FROM record LEFT JOIN run ON run.begin = record.run;
