"""Shapes that cross the boundary of the release stage: messages, drafts, evidence, fallbacks.

Depends on pydantic and the standard library only, so that an agent team can
import it (or the JSON Schemas in ``schemas/``) without the worker.
"""
