"""The history of the ledger's schema, as Alembic runs it.

Owns the steps from one version of the tables to the next. Knows `counterfoil.ledger.schema` and nothing else of
Counterfoil. `counterfoil db upgrade` runs it; nothing imports it.
"""
