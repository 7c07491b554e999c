"""Powertools for AWS Lambda: its idempotency utility, with its records in Redis, which syncs every write to the disk.

Runs in an environment of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from benchmarks.side import Side, arguments, receipt

CONNECTIONS = 32


class _Context:
    """What a Lambda function would be given: it has time left."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 900_000


class Powertools(Side):
    """A function made idempotent, called by threads."""

    def __init__(self, place: str) -> None:
        super().__init__()
        os.environ["AWS_LAMBDA_FUNCTION_NAME"] = "benchmarks"
        os.environ["AWS_DEFAULT_REGION"] = "eu-central-1"
        import redis
        from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
        from aws_lambda_powertools.utilities.idempotency.persistence.redis import RedisCachePersistenceLayer

        pool: Any = redis.BlockingConnectionPool(
            connection_class=redis.UnixDomainSocketConnection,
            path=place,
            decode_responses=True,
            max_connections=CONNECTIONS,
            timeout=120,
        )
        self._redis: Any = redis.Redis(connection_pool=pool)
        self._redis.ping()
        config = IdempotencyConfig(expires_after_seconds=86_400)
        config.register_lambda_context(_Context())  # type: ignore[arg-type, unused-ignore]
        store: Any = RedisCachePersistenceLayer(client=self._redis)

        @idempotent_function(data_keyword_argument="call", config=config, persistence_store=store)  # type: ignore[untyped-decorator, unused-ignore]
        def charge(call: dict[str, Any]) -> dict[str, Any]:
            return receipt(int(call["order"].rpartition("-")[2]))

        self._charge: Any = charge

    def ready(self, kind: str, numbers: range) -> Callable[[int], None]:
        """See `Side`."""

        def one(number: int) -> None:
            assert self._charge(call=arguments(number)) == receipt(number)

        return one

    def count(self) -> dict[str, int]:
        """See `Side`."""
        return {"records": self._redis.dbsize()}

    def versions(self) -> dict[str, str]:
        """See `Side`. With the server's, and what it does with each write."""
        synced = self._redis.config_get("appendfsync")["appendfsync"]
        return {
            "aws-lambda-powertools": version("aws-lambda-powertools"),
            "redis (client)": version("redis"),
            "redis (server)": f"{self._redis.info('server')['redis_version']}, appendfsync {synced}",
        }

    def close(self) -> None:
        """See `Side`."""
        self._redis.close()
