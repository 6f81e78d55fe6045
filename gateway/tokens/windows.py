"""Windows and prices of models, from the table that litellm ships as JSON, read without importing litellm.

The import costs seconds and 200 MB; the file alone is read in some 50 ms. What the configuration says comes before it,
and what to take for a model that is not in it is the caller's decision.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

log = logging.getLogger(__name__)

TABLE_NAME = "model_prices_and_context_window_backup.json"
SAMPLE_KEY = "sample_spec"
"""The table's first entry explains its fields."""

_DATE = re.compile(r"[-@](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|latest|preview|exp|\d{2}-20\d\d)(?=$|[-@:])")
_BEDROCK_VERSION = re.compile(r"-v\d+(?::\d+)?$|:\d+$")
_VENDOR = re.compile(
    r"^(?:(?:us|eu|apac|global|jp|au|us-gov)\.)?(?:anthropic|meta|mistral|amazon|cohere|deepseek|qwen|openai)\."
)


class Price(NamedTuple):
    """US dollars per token; `cached` is that of input read from the provider's prompt cache."""

    input: float
    output: float
    cached: float


class _Model(NamedTuple):
    window: int | None
    max_output: int | None
    price: Price | None


def _number(value: object) -> float | None:
    """A number that stands for one: the table holds strings in places."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 < number < 1e12 else None


def _model(entry: dict[str, Any]) -> _Model:
    output = _whole(entry.get("max_output_tokens"))
    window = _whole(entry.get("max_input_tokens")) or _whole(entry.get("max_tokens"))
    paid, made = _number(entry.get("input_cost_per_token")), _number(entry.get("output_cost_per_token"))
    price = None
    if paid is not None or made is not None:
        cached = _number(entry.get("cache_read_input_token_cost"))
        price = Price(paid or 0.0, made or 0.0, cached if cached is not None else paid or 0.0)
    return _Model(window, output, price)


def _plain(name: str) -> str:
    """A model's family name: no provider, vendor, date or version mark."""
    name = name.rsplit("/", 1)[-1]
    name = _BEDROCK_VERSION.sub("", _VENDOR.sub("", name))
    return _DATE.sub("", name).split("@", 1)[0].split(":", 1)[0]


class ModelTable:
    """Look-ups by the name a request uses. Reads its file at the first one, or at `load()` in a thread."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._models: dict[str, _Model] | None = None
        self._plain: dict[str, str] = {}
        self._find = lru_cache(maxsize=4_096)(self._search)

    def load(self) -> bool:
        """Read the table; False, after one warning, where there is none, and then no model is known."""
        with self._lock:
            if self._models is None:
                self._models, self._plain = self._read()
            return bool(self._models)

    def _read(self) -> tuple[dict[str, _Model], dict[str, str]]:
        path = self._path or _shipped_table()
        try:
            table = orjson.loads(path.read_bytes()) if path else None
        except (OSError, orjson.JSONDecodeError) as error:
            log.warning("no table of models, default windows are used: %s", error)
            return {}, {}
        if not isinstance(table, dict):
            log.warning("no table of models, default windows are used: %s", path or "litellm is not installed")
            return {}, {}
        models: dict[str, _Model] = {}
        plain: dict[str, str] = {}
        for name, entry in table.items():
            if isinstance(entry, dict) and name != SAMPLE_KEY:
                key = name.lower()
                models[key] = _model(entry)
                short = _plain(key)
                # Of several providers of one model, the one with the shortest path is its maker.
                if models[key].window and (short not in plain or _rank(key) < _rank(plain[short])):
                    plain[short] = key
        return models, plain

    def _search(self, name: str) -> _Model | None:
        """The exact name, then without its provider, then by its plain name."""
        if self._models is None:
            self.load()
        models = self._models or {}
        key = name.lower()
        while True:
            if key in models:
                return models[key]
            _, slash, rest = key.partition("/")
            if not slash:
                break
            key = rest
        for candidate in (_BEDROCK_VERSION.sub("", key), _DATE.sub("", key), _plain(key)):
            if candidate in models:
                return models[candidate]
            if candidate in self._plain:
                return models[self._plain[candidate]]
        return None

    def window(self, model: str) -> int | None:
        """Tokens of input the model takes; None where that is not known."""
        found = self._find(model)
        return found.window if found else None

    def max_output(self, model: str) -> int | None:
        """Tokens the model can write in one reply; None where that is not known."""
        found = self._find(model)
        return found.max_output if found else None

    def price(self, model: str) -> Price | None:
        """What the model costs; None where that is not known."""
        found = self._find(model)
        return found.price if found else None

    def known(self, model: str) -> bool:
        """Whether the table has the model, by whatever form of its name."""
        return self._find(model) is not None


def _rank(key: str) -> tuple[int, int, bool]:
    """Order among names of one model: fewest slashes, no cloud vendor's dots, no date."""
    return key.count("/"), int(bool(_VENDOR.match(key.rsplit("/", 1)[-1]))), bool(_DATE.search(key))


def _shipped_table() -> Path | None:
    spec = importlib.util.find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) / TABLE_NAME if places else None
