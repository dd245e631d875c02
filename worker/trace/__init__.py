"""Pure rules about the trace of an investigation: what is recorded, and how it is told."""
