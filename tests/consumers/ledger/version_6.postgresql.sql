CREATE TABLE generation (
	id BIGSERIAL NOT NULL,
	current BOOLEAN NOT NULL,
	revision BIGINT NOT NULL,
	floor_ms BIGINT,
	lateness_ms BIGINT NOT NULL,
	PRIMARY KEY (id)
);
CREATE TABLE meta (
	key VARCHAR(64) NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (key)
);
CREATE TABLE head (
	id BIGSERIAL NOT NULL,
	generation BIGINT NOT NULL,
	cluster VARCHAR(512) NOT NULL,
	topic TEXT NOT NULL,
	topic_id VARCHAR(512) NOT NULL,
	partition BIGINT NOT NULL,
	incarnation BIGINT NOT NULL,
	closed BOOLEAN NOT NULL,
	start_offset BIGINT NOT NULL,
	next_offset BIGINT NOT NULL,
	greatest_event_ms BIGINT,
	rows BIGINT NOT NULL,
	late BIGINT NOT NULL,
	future BIGINT NOT NULL,
	expired BIGINT NOT NULL,
	quarantined BIGINT NOT NULL,
	skipped BIGINT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (generation, cluster, topic_id, partition, incarnation),
	FOREIGN KEY(generation) REFERENCES generation (id)
);
CREATE TABLE metric (
	generation BIGINT NOT NULL,
	name VARCHAR(256) NOT NULL,
	fingerprint VARCHAR(64) NOT NULL,
	description TEXT NOT NULL,
	ended BOOLEAN NOT NULL,
	PRIMARY KEY (generation, name),
	FOREIGN KEY(generation) REFERENCES generation (id)
);
CREATE TABLE delta (
	id BIGSERIAL NOT NULL,
	generation BIGINT NOT NULL,
	metric VARCHAR(256) NOT NULL,
	grouping INTEGER NOT NULL,
	window_start_ms BIGINT,
	window_end_ms BIGINT,
	key_range INTEGER NOT NULL,
	key_ranges INTEGER NOT NULL,
	head BIGINT NOT NULL,
	start_offset BIGINT NOT NULL,
	end_offset BIGINT NOT NULL,
	nbytes BIGINT NOT NULL,
	state BYTEA NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(generation) REFERENCES generation (id),
	FOREIGN KEY(head) REFERENCES head (id)
);
CREATE INDEX delta_by_pane ON delta (generation, metric, grouping, window_start_ms, window_end_ms, nbytes);
CREATE TABLE metric_start (
	generation BIGINT NOT NULL,
	metric VARCHAR(256) NOT NULL,
	head BIGINT NOT NULL,
	start_offset BIGINT NOT NULL,
	PRIMARY KEY (generation, metric, head),
	FOREIGN KEY(generation) REFERENCES generation (id),
	FOREIGN KEY(head) REFERENCES head (id)
);
CREATE TABLE quarantine (
	id BIGSERIAL NOT NULL,
	generation BIGINT NOT NULL,
	head BIGINT NOT NULL,
	"offset" BIGINT NOT NULL,
	index BIGINT NOT NULL,
	reason TEXT NOT NULL,
	field TEXT,
	detail TEXT NOT NULL,
	payload BYTEA NOT NULL,
	size BIGINT NOT NULL,
	sha256 VARCHAR(64) NOT NULL,
	done BOOLEAN NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (head, "offset", index),
	FOREIGN KEY(generation) REFERENCES generation (id),
	FOREIGN KEY(head) REFERENCES head (id)
);
INSERT INTO meta VALUES ('schema_version', '6');
INSERT INTO generation (current, revision, lateness_ms) VALUES (true, 1, 60000);
INSERT INTO metric VALUES (1, 'auc', 'print-of-auc', '{"type": "HistogramAUC"}', false);
INSERT INTO head (generation, cluster, topic, topic_id, partition, incarnation, closed, start_offset,
    next_offset, greatest_event_ms, rows, late, future, expired, quarantined, skipped)
VALUES (1, 'cluster', 'clicks', 'id-1', 0, 0, false, 10, 15, 3800000, 5, 1, 0, 0, 1, 0);
INSERT INTO delta (generation, metric, grouping, key_range, key_ranges, head, start_offset,
    end_offset, nbytes, state)
VALUES (1, 'auc', 0, 0, 1, 1, 10, 15, 5, 'total');
INSERT INTO quarantine (generation, head, "offset", index, reason, detail, payload, size, sha256, done)
VALUES (1, 1, 11, 0, 'not_json', 'line 1', '{', 1, '00', false);
CREATE TABLE retry (id BIGSERIAL NOT NULL PRIMARY KEY,
	generation BIGINT NOT NULL REFERENCES generation (id), created_ms BIGINT NOT NULL, note TEXT NOT NULL);
ALTER TABLE quarantine ADD COLUMN retry BIGINT REFERENCES retry (id);
ALTER TABLE quarantine ADD COLUMN record_ms BIGINT;
ALTER TABLE quarantine ADD COLUMN forwarded BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE delta ADD COLUMN retry BIGINT REFERENCES retry (id);
ALTER TABLE head ADD COLUMN tombstones BIGINT NOT NULL DEFAULT 0;
ALTER TABLE delta ADD COLUMN for_coarser BOOLEAN DEFAULT FALSE NOT NULL;
DROP INDEX delta_by_pane;
CREATE INDEX delta_outline ON delta (generation, metric, grouping, window_start_ms, window_end_ms,
	head, end_offset, start_offset, key_range, key_ranges, nbytes, retry, for_coarser, id);
CREATE TABLE experiment (generation BIGINT NOT NULL REFERENCES generation (id), fingerprint VARCHAR(64) NOT NULL, last_look_ms BIGINT NOT NULL, PRIMARY KEY (generation, fingerprint));
CREATE TABLE look (id BIGSERIAL NOT NULL PRIMARY KEY, generation BIGINT NOT NULL REFERENCES generation (id), experiment VARCHAR(64) NOT NULL, place BIGINT NOT NULL, heads_sha256 VARCHAR(64) NOT NULL, heads TEXT NOT NULL, watermark_ms BIGINT, UNIQUE (generation, experiment, place, heads_sha256));
CREATE TABLE look_reading (look BIGINT NOT NULL REFERENCES look (id), comparison TEXT NOT NULL, effect DOUBLE PRECISION, lower DOUBLE PRECISION NOT NULL, upper DOUBLE PRECISION NOT NULL, log_e DOUBLE PRECISION NOT NULL, gated BOOLEAN NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (look, comparison));
ALTER TABLE head ADD COLUMN late_outcomes BIGINT DEFAULT 0 NOT NULL;
ALTER TABLE head ADD COLUMN ignored BIGINT DEFAULT 0 NOT NULL;
ALTER TABLE head ADD COLUMN closed_rows BIGINT DEFAULT 0 NOT NULL;
ALTER TABLE head ADD COLUMN conflicts BIGINT DEFAULT 0 NOT NULL;
ALTER TABLE head ADD COLUMN repeated BIGINT DEFAULT 0 NOT NULL;
CREATE TABLE seen (id BIGSERIAL NOT NULL PRIMARY KEY, head BIGINT NOT NULL REFERENCES head (id), pane_start_ms BIGINT NOT NULL, ids BYTEA NOT NULL);
CREATE INDEX seen_by_pane ON seen (head, pane_start_ms);
UPDATE meta SET value = '6' WHERE key = 'schema_version';
ALTER TABLE generation ADD COLUMN token VARCHAR(32) DEFAULT '' NOT NULL;
ALTER TABLE head ADD COLUMN digest VARCHAR(64) DEFAULT '' NOT NULL;
ALTER TABLE head ADD COLUMN known_offset BIGINT;
ALTER TABLE head RENAME COLUMN skipped TO lost;
ALTER TABLE head RENAME COLUMN ignored TO skipped;
CREATE TABLE source (generation BIGINT NOT NULL REFERENCES generation (id), cluster VARCHAR(512) NOT NULL, topic TEXT NOT NULL, PRIMARY KEY (generation, cluster, topic));
INSERT INTO source SELECT DISTINCT generation, cluster, topic FROM head WHERE topic <> '(join)';
INSERT INTO meta (key, value) VALUES ('store_id', 'cd2102c58dc6caeb46004630e362eb01');
UPDATE generation SET token = '0123456789abcdef0123456789abcdef';
UPDATE head SET digest = '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef';
