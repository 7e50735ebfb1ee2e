"""The trace of a run: one schema, written live or simulated, read by the verifiers and the pipeline."""
