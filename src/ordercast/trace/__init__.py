"""The trace of a run: one schema, written live or simulated, read by the verifiers and the pipeline."""

from ordercast.trace.load import load, load_columns
from ordercast.trace.schema import Header, Kind, Level, Row
from ordercast.trace.trace import MemorySink, Trace

__all__ = ["Header", "Kind", "Level", "MemorySink", "Row", "Trace", "load", "load_columns"]
