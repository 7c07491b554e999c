"""The ledger: the effects, and the append-only entries that explain them, in a SQL database.

`Ledger` is the one entrance for everything that changes a row, `Audit` the one for everything that only reads.
"""
