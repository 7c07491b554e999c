"""OpenTelemetry's own memory exporters: what would leave the process, as lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from counterfoil.adapters.telemetry import Telemetry


@dataclass(frozen=True)
class Heard:
    """A telemetry, and what it made."""

    telemetry: Telemetry
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def counted(self, name: str) -> dict[tuple[Any, ...], float]:
        """The points of an instrument, by the values of their attributes in the order of their names."""
        data = self.reader.get_metrics_data()
        points: dict[tuple[Any, ...], float] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == f"counterfoil.{name}":
                        for point in metric.data.data_points:
                            attributes = dict(point.attributes or {})
                            points[tuple(attributes[one] for one in sorted(attributes))] = point.value  # type: ignore[union-attr]
        return points


@pytest.fixture
def heard() -> Iterator[Heard]:
    """A telemetry with providers of its own."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader])
    yield Heard(Telemetry(tracers, meters), exporter, reader)
    tracers.shutdown()
    meters.shutdown()
