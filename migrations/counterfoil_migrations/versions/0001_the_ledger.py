"""The ledger: effects, what they refer to, the entries that explain them, sightings, incidents, notes on tools.

And what the guards count: the budgets of tasks, and what fails again and again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from counterfoil_migrations.names import pins, twins

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up by itself for INTEGER alone


def upgrade() -> None:
    effects()
    entries()
    incidents()
    pins()
    references()
    repeats()
    seals()
    sealed()
    sightings()
    task_entries()
    tasks()
    tools()
    twins()


def downgrade() -> None:
    guards = ("twins", "pins", "tools", "tasks", "task_entries", "repeats")
    for table in (*guards, "sightings", "sealed", "seals", "references", "incidents", "entries", "effects"):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION counterfoil_append_only()")


def effects() -> None:
    op.create_table(
        "effects",
        *named(),
        *known(),
        *timed(),
        *keyed(),
        *seen(),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_effects")),
        sa.CheckConstraint(
            "verdict IN ('no_effect', 'effect_unknown', 'effect_applied')", name=op.f("ck_effects_verdict")
        ),
        sa.CheckConstraint(
            "(verdict = 'effect_unknown') = (open_attempts <> 0)", name=op.f("ck_effects_open_attempts")
        ),
        sa.CheckConstraint(
            "verdict <> 'effect_unknown' OR (look_at IS NOT NULL AND review_at IS NOT NULL)",
            name=op.f("ck_effects_doubt"),
        ),
        sa.UniqueConstraint("id", name=op.f("uq_effects_id")),
    )
    op.create_index("ix_effects_created_at", "effects", ["created_at"])
    due = sa.text("look_at IS NOT NULL")
    op.create_index("ix_effects_due", "effects", ["look_at"], sqlite_where=due, postgresql_where=due)
    left = sa.text("sealed_version < version")
    op.create_index("ix_effects_unsealed", "effects", ["key"], sqlite_where=left, postgresql_where=left)


def named() -> list[sa.Column[object]]:
    """Which effect it is."""
    return [
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("tool", sa.String(64), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("occurrence", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column("canonical_version", sa.Integer(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("echo", sa.Text(), nullable=False),
    ]


def known() -> list[sa.Column[object]]:
    """What is known of it, and who works on it."""
    return [
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("proof", sa.String(24)),
        sa.Column("code", sa.String(64)),
        sa.Column("reason", sa.Text()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("open_attempts", sa.BigInteger(), nullable=False),
        sa.Column("settled_attempt", sa.Integer()),
        sa.Column("holder", sa.Text()),
        sa.Column("claim_id", sa.String(32)),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
    ]


def timed() -> list[sa.Column[object]]:
    """When it may still be sent, when absence counts, when to look."""
    return [
        sa.Column("sends_until", sa.BigInteger(), nullable=False),
        sa.Column("earlier_sends_until", sa.BigInteger(), nullable=False),
        sa.Column("absent_from", sa.BigInteger()),
        sa.Column("boot_id", sa.String(64)),
        sa.Column("boot_low", sa.BigInteger()),
        sa.Column("boot_high", sa.BigInteger()),
        sa.Column("look_at", sa.BigInteger()),
        sa.Column("looks", sa.Integer(), nullable=False),
        sa.Column("review_at", sa.BigInteger()),
        sa.Column("conditional_at", sa.BigInteger()),
        sa.Column("grace_us", sa.BigInteger()),
        sa.Column("review_us", sa.BigInteger(), nullable=False),
        sa.Column("audit_us", sa.BigInteger(), nullable=False),
    ]


def keyed() -> list[sa.Column[object]]:
    """The keys on which the provider de-duplicates."""
    return [
        sa.Column("keyed", sa.Boolean(), nullable=False),
        sa.Column("provider_key", sa.String(80), nullable=False),
        sa.Column("provider_keys", sa.JSON(), nullable=False),
        sa.Column("key_generation", sa.Integer(), nullable=False),
        sa.Column("key_first_begun_at", sa.BigInteger(), nullable=False),
        sa.Column("key_answered", sa.Boolean(), nullable=False),
        sa.Column("key_tainted", sa.Boolean(), nullable=False),
    ]


def seen() -> list[sa.Column[object]]:
    """What it left in the world, and since when it is on record."""
    return [
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Text()),
        sa.Column("value_size", sa.BigInteger()),
        sa.Column("value_digest", sa.String(80)),
        sa.Column("value_note", sa.Text()),
        sa.Column("references", sa.JSON(), nullable=False),
        sa.Column("undoes", sa.LargeBinary(32)),
        sa.Column("undo_kind", sa.String(16)),
        sa.Column("undo_through", sa.Integer(), nullable=False),
        sa.Column("revoke_by", sa.String(64)),
        sa.Column("revoked_through", sa.Integer(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("undone_by", sa.String(64)),
        sa.Column("retention_us", sa.BigInteger()),
        sa.Column("pruned_at", sa.BigInteger()),
        sa.Column("sealed_version", sa.Integer(), nullable=False),
        sa.Column("data_key", sa.String(128)),
        sa.Column("cost_unit", sa.String(16)),
        sa.Column("cost_amount", sa.BigInteger(), nullable=False),
        sa.Column("cost_held", sa.BigInteger(), nullable=False),
        sa.Column("cost_charged", sa.BigInteger(), nullable=False),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("unknown_since", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    ]


def entries() -> None:
    op.create_table(
        "entries",
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "seq", name=op.f("pk_entries")),
    )
    if op.get_bind().dialect.name == "postgresql":
        append_only()


def append_only() -> None:
    """Nobody changes or removes an entry, but for a prune, which says so in its transaction."""
    op.execute("""CREATE FUNCTION counterfoil_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('counterfoil.pruning', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'entries are append-only: counterfoil prune alone takes some out';
END $$""")
    op.execute("""CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE ON entries
FOR EACH ROW EXECUTE FUNCTION counterfoil_append_only()""")
    op.execute("""CREATE TRIGGER entries_not_emptied BEFORE TRUNCATE ON entries
FOR EACH STATEMENT EXECUTE FUNCTION counterfoil_append_only()""")


def incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("key", sa.LargeBinary(32)),
        sa.Column("effect_id", sa.String(64)),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("tool", sa.String(64), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger()),
        sa.Column("closed_by", sa.Text()),
        sa.Column("closed_why", sa.Text()),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_incidents")),
    )
    op.create_index(op.f("ix_incidents_key"), "incidents", ["key"])


def references() -> None:
    op.create_table(
        "references",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("tool", sa.String(64), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "tool", "reference", name=op.f("pk_references")),
    )


def seals() -> None:
    op.create_table(
        "seals",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("effects", sa.Integer(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("secret_id", sa.String(16)),
        sa.Column("previous", sa.LargeBinary(32), nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_seals")),
    )


def sealed() -> None:
    op.create_table(
        "sealed",
        sa.Column("seal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.LargeBinary(32), nullable=False),
        sa.Column("least", sa.Text(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seal", "key", name=op.f("pk_sealed")),
    )
    op.create_index(op.f("ix_sealed_key"), "sealed", ["key"])


def sightings() -> None:
    op.create_table(
        "sightings",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("call_id", sa.Text()),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer()),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_sightings")),
    )
    op.create_index(op.f("ix_sightings_key"), "sightings", ["key"])


def tools() -> None:
    op.create_table(
        "tools",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("tool", sa.String(64), nullable=False),
        sa.Column("keys_distrusted_at", sa.BigInteger()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger()),
        sa.Column("probe_claim", sa.String(32)),
        sa.Column("probe_until", sa.BigInteger()),
        sa.Column("paused_at", sa.BigInteger()),
        sa.Column("paused_by", sa.Text()),
        sa.Column("paused_why", sa.Text()),
        sa.PrimaryKeyConstraint("tenant", "tool", name=op.f("pk_tools")),
    )


def tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("budget", sa.JSON()),
        sa.Column("budget_of", sa.String(8)),
        sa.Column("turn", sa.Integer()),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("turn_calls", sa.Integer(), nullable=False),
        sa.Column("tool_calls", sa.JSON(), nullable=False),
        sa.Column("reserved", sa.JSON(), nullable=False),
        sa.Column("spent", sa.JSON(), nullable=False),
        sa.Column("told", sa.JSON(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "task", name=op.f("pk_tasks")),
    )


def task_entries() -> None:
    op.create_table(
        "task_entries",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("unit", sa.String(16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "task", "seq", name=op.f("pk_task_entries")),
    )


def repeats() -> None:
    op.create_table(
        "repeats",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tool", sa.String(64), nullable=False),
        sa.Column("similar", sa.LargeBinary(32), nullable=False),
        sa.Column("wrong", sa.Integer(), nullable=False),
        sa.Column("passing", sa.Integer(), nullable=False),
        sa.Column("same", sa.Integer(), nullable=False),
        sa.Column("answer", sa.String(64)),
        sa.Column("blocked", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "task", "turn", "tool", "similar", name=op.f("pk_repeats")),
    )
