"""Breakwater: an OpenAI-compatible gateway that keeps an agent's context small, cheap and remembered."""

__version__ = "0.1.0"
