"""The tables, as SQLAlchemy declares them, and the check that a database has this version of them.

Owns names, types and constraints. The migrations write the same; a test compares the two.
Instants are integer microseconds since 1970-01-01T00:00:00Z, so no time zone can be lost.
"""

from __future__ import annotations

import sqlalchemy as sa

from counterfoil.errors import LedgerError

REVISION = "0001"
# The advisory lock of PostgreSQL that whoever changes the tables holds.
UPGRADE_LOCK = 0x636F756E746572
VERSION_TABLE = "counterfoil_version"

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

effects = sa.Table(
    "effects",
    metadata,
    sa.Column("key", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.String(64), nullable=False, unique=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("tool", sa.String(64), nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("occurrence", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
    sa.Column("canonical_version", sa.Integer, nullable=False),
    sa.Column("arguments", sa.Text, nullable=False),
    sa.Column("echo", sa.Text, nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("proof", sa.String(24)),
    sa.Column("code", sa.String(64)),
    sa.Column("reason", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("open_attempts", sa.BigInteger, nullable=False),
    sa.Column("settled_attempt", sa.Integer),
    sa.Column("holder", sa.Text),
    sa.Column("claim_id", sa.String(32)),
    sa.Column("lease_until", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("sends_until", sa.BigInteger, nullable=False),
    sa.Column("earlier_sends_until", sa.BigInteger, nullable=False),
    sa.Column("absent_from", sa.BigInteger),
    sa.Column("boot_id", sa.String(64)),
    sa.Column("boot_low", sa.BigInteger),
    sa.Column("boot_high", sa.BigInteger),
    sa.Column("look_at", sa.BigInteger),
    sa.Column("looks", sa.Integer, nullable=False),
    sa.Column("review_at", sa.BigInteger),
    sa.Column("conditional_at", sa.BigInteger),
    sa.Column("grace_us", sa.BigInteger),
    sa.Column("review_us", sa.BigInteger, nullable=False),
    sa.Column("audit_us", sa.BigInteger, nullable=False),
    sa.Column("keyed", sa.Boolean, nullable=False),
    sa.Column("provider_key", sa.String(80), nullable=False),
    sa.Column("provider_keys", sa.JSON, nullable=False),
    sa.Column("key_generation", sa.Integer, nullable=False),
    sa.Column("key_first_begun_at", sa.BigInteger, nullable=False),
    sa.Column("key_answered", sa.Boolean, nullable=False),
    sa.Column("key_tainted", sa.Boolean, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("complete", sa.Boolean, nullable=False),
    sa.Column("verified", sa.Boolean, nullable=False),
    sa.Column("value", sa.Text),
    sa.Column("value_size", sa.BigInteger),
    sa.Column("value_digest", sa.String(80)),
    sa.Column("value_note", sa.Text),
    sa.Column("references", sa.JSON, nullable=False),
    sa.Column("undoes", sa.LargeBinary(32)),
    sa.Column("undo_kind", sa.String(16)),
    sa.Column("undo_through", sa.Integer, nullable=False),
    sa.Column("revoke_by", sa.String(64)),
    sa.Column("revoked_through", sa.Integer, nullable=False),
    sa.Column("revoked_at", sa.BigInteger),
    sa.Column("undone_by", sa.String(64)),
    sa.Column("retention_us", sa.BigInteger),
    sa.Column("pruned_at", sa.BigInteger),
    sa.Column("sealed_version", sa.Integer, nullable=False),
    # Wrapped by a cipher key; None: this effect is kept in plain. See `concealed`.
    sa.Column("data_key", sa.String(128)),
    sa.Column("cost_unit", sa.String(16)),
    sa.Column("cost_amount", sa.BigInteger, nullable=False),
    sa.Column("cost_held", sa.BigInteger, nullable=False),
    sa.Column("cost_charged", sa.BigInteger, nullable=False),
    sa.Column("begun_at", sa.BigInteger, nullable=False),
    sa.Column("unknown_since", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("verdict IN ('no_effect', 'effect_unknown', 'effect_applied')", name="verdict"),
    sa.CheckConstraint("(verdict = 'effect_unknown') = (open_attempts <> 0)", name="open_attempts"),
    # No doubt can be forgotten: each has a time for its next look, and one at which a person is told.
    sa.CheckConstraint("verdict <> 'effect_unknown' OR (look_at IS NOT NULL AND review_at IS NOT NULL)", name="doubt"),
    sa.Index("ix_effects_due", "look_at", sqlite_where=sa.text("look_at IS NOT NULL"),
             postgresql_where=sa.text("look_at IS NOT NULL")),
    sa.Index("ix_effects_created_at", "created_at"),
    sa.Index("ix_effects_unsealed", "key", sqlite_where=sa.text("sealed_version < version"),
             postgresql_where=sa.text("sealed_version < version")),
)  # fmt: skip

references = sa.Table(
    "references",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("tool", sa.String(64), primary_key=True),
    sa.Column("reference", sa.Text, primary_key=True),
    sa.Column("key", sa.LargeBinary(32), nullable=False),
)

entries = sa.Table(
    "entries",
    metadata,
    sa.Column("key", sa.LargeBinary(32), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("event", sa.String(32), nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

# On PostgreSQL the book is append-only for everybody: only a prune, which says so in its transaction, takes some out.
for _statement in (
    """CREATE FUNCTION counterfoil_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('counterfoil.pruning', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'entries are append-only: counterfoil prune alone takes some out';
END $$""",
    """CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE ON entries
FOR EACH ROW EXECUTE FUNCTION counterfoil_append_only()""",
    """CREATE TRIGGER entries_not_emptied BEFORE TRUNCATE ON entries
FOR EACH STATEMENT EXECUTE FUNCTION counterfoil_append_only()""",
):
    _made = sa.DDL(_statement)  # type: ignore[no-untyped-call]
    sa.event.listen(entries, "after_create", _made.execute_if(dialect="postgresql"))

# A seal closes what was written since the one before. `root` is made from everything in it and from `previous`.
seals = sa.Table(
    "seals",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("effects", sa.Integer, nullable=False),
    sa.Column("entries", sa.Integer, nullable=False),
    sa.Column("secret_id", sa.String(16)),
    sa.Column("previous", sa.LargeBinary(32), nullable=False),
    sa.Column("root", sa.LargeBinary(32), nullable=False),
)

# What a seal holds of one effect: the digests of its entries from `first` to `version`, and of its state at `version`.
sealed = sa.Table(
    "sealed",
    metadata,
    sa.Column("seal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary(32), primary_key=True, index=True),
    sa.Column("first", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("state", sa.LargeBinary(32), nullable=False),
    sa.Column("least", sa.Text, nullable=False),
    sa.Column("entries", sa.LargeBinary, nullable=False),
)

sightings = sa.Table(
    "sightings",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("key", sa.LargeBinary(32), nullable=False, index=True),
    sa.Column("call_id", sa.Text),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("turn", sa.Integer),
    sa.Column("code", sa.String(64), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("key", sa.LargeBinary(32), index=True),
    sa.Column("effect_id", sa.String(64)),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("tool", sa.String(64), nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("closed_at", sa.BigInteger),
    sa.Column("closed_by", sa.Text),
    sa.Column("closed_why", sa.Text),
)

tools = sa.Table(
    "tools",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("tool", sa.String(64), primary_key=True),
    sa.Column("keys_distrusted_at", sa.BigInteger),
    # The breaker: passing faults in a row, since when it is open, and which begin is its probe until when.
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("opened_at", sa.BigInteger),
    sa.Column("probe_claim", sa.String(32)),
    sa.Column("probe_until", sa.BigInteger),
    sa.Column("paused_at", sa.BigInteger),
    sa.Column("paused_by", sa.Text),
    sa.Column("paused_why", sa.Text),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("budget", sa.JSON),
    sa.Column("budget_of", sa.String(8)),
    sa.Column("turn", sa.Integer),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("turn_calls", sa.Integer, nullable=False),
    sa.Column("tool_calls", sa.JSON, nullable=False),
    sa.Column("reserved", sa.JSON, nullable=False),
    sa.Column("spent", sa.JSON, nullable=False),
    sa.Column("told", sa.JSON, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
)

# What was reserved, released and spent of a task's budget, in order, with the sums after each. Append-only.
task_entries = sa.Table(
    "task_entries",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary(32), nullable=False),
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("unit", sa.String(16), nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("reserved", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.BigInteger, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

# The loop guard's counters of the latest turn of each task. An empty `similar` counts for the tool as a whole.
repeats = sa.Table(
    "repeats",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("turn", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tool", sa.String(64), primary_key=True),
    sa.Column("similar", sa.LargeBinary(32), primary_key=True),
    sa.Column("wrong", sa.Integer, nullable=False),
    sa.Column("passing", sa.Integer, nullable=False),
    sa.Column("same", sa.Integer, nullable=False),
    sa.Column("answer", sa.String(64)),
    sa.Column("blocked", sa.Integer, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

# What holds for the whole ledger: see `pins`.
pins = sa.Table(
    "pins",
    metadata,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

# Which effects of tools with a `twin_window_s` were begun with which identity arguments: see `twins`.
twins = sa.Table(
    "twins",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.LargeBinary(32), primary_key=True),
    sa.Column("key", sa.LargeBinary(32), primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("until", sa.BigInteger, nullable=False),
)

version_table = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))


def create(engine: sa.Engine) -> None:
    """Create every table of this version and note the version, in one transaction. For a new and empty database.

    Raises:
        sqlalchemy.exc.DBAPIError: the tables are there already, or the database refuses.
    """
    with engine.begin() as connection:
        metadata.create_all(connection, checkfirst=False)
        version_table.create(connection)
        connection.execute(version_table.insert().values(version_num=REVISION))


def revision(connection: sa.Connection) -> str | None:
    """The schema version that a database says it has; None when it holds no ledger."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.select(version_table.c.version_num)).scalar()


def check(connection: sa.Connection) -> None:
    """Refuse a database of another schema version.

    Raises:
        LedgerError: there is no ledger, or it is of an older or newer version; the text says what to do.
    """
    there = revision(connection)
    if there is None:
        raise LedgerError("this database holds no ledger: run `counterfoil db upgrade` with its URL")
    if there < REVISION:
        raise LedgerError(
            f"the ledger has schema {there}, this Counterfoil needs {REVISION}: run `counterfoil db upgrade`"
        )
    if there > REVISION:
        raise LedgerError(
            f"the ledger has schema {there}, newer than the {REVISION} of this Counterfoil: upgrade the package"
        )
