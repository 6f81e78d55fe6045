"""Names for the shapes that travel everywhere: JSON as Python holds it."""

from __future__ import annotations

from typing import Any

Json = Any
"""Whatever `json.loads` gives."""

JsonObject = dict[str, Any]
"""A JSON object."""

ChatMessage = dict[str, Any]
"""One entry of `messages`, in OpenAI's chat completions shape, with any unknown field kept."""
