"""A part of the first version: what holds for the whole ledger, and which effects look alike."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op


def pins() -> None:
    op.create_table(
        "pins",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_pins")),
    )


def twins() -> None:
    op.create_table(
        "twins",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "fingerprint", "key", name=op.f("pk_twins")),
    )
