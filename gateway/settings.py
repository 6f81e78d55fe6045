"""What can be configured, with every default: the shape of `config.yaml`.

The models are strict (`"8787"` is not a port, `true` is not a number) and closed (an unknown key is an error), because
a configuration that half works is worse than one that stops the start. Values that are right one by one and wrong
together are checked here too; such errors carry the paths they suspect, so that the loader can point at a line. Where
values come from, and how an error finds its file and line, is the business of `settings_load.py`. The numbers are the
product's own contract: each is explained where it is used.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SecretStr,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

OPENAI_BASE_URL = "https://api.openai.com/v1"
MIN_WINDOW = 256
"""Tokens; under this not even a system message and one question fit."""

Share = Annotated[float, Field(gt=0, lt=1)]
"""A share of the model's window, between nothing and all of it."""
Count = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]
Name = Annotated[str, StringConstraints(min_length=1)]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
"""RFC 9110's token."""
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]*$")]


def impossible(message: str, *suspects: str | tuple[str | int, ...]) -> PydanticCustomError:
    """An error about values that can't stand together.

    Each suspect leads from the model that raises it to a value that may be to blame, the likeliest first: the loader
    points at the first one that somebody set, since a default has no line.
    """
    paths = [[suspect] if isinstance(suspect, str) else list(suspect) for suspect in suspects]
    return PydanticCustomError("impossible", "{message}", {"message": message, "suspects": paths})


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    try:
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        port_is_good = False
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_good:
        raise PydanticCustomError("url", "must be an http:// or https:// URL with a host")
    if parts.query or parts.fragment:
        raise PydanticCustomError("url", "must be a base URL, with no ? or # in it")
    return value.rstrip("/")


def _expanded(value: Any) -> Any:
    if value == "":
        raise PydanticCustomError("path", "must not be empty")
    return Path(value).expanduser() if isinstance(value, (str, Path)) else value


def with_version(base_url: str) -> str:
    """`http://host:port` gets the `/v1` that OpenAI-compatible servers live under; a URL with a path stays as it is."""
    return base_url if urlsplit(base_url).path.strip("/") else f"{base_url.rstrip('/')}/v1"


HttpUrl = Annotated[str, AfterValidator(_http_url)]
UserPath = Annotated[Path, Field(strict=False), BeforeValidator(_expanded)]


class Part(BaseModel):
    """One block of the configuration: closed, strict, never changed after the start."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True, allow_inf_nan=False)


class ServerSettings(Part):
    """Where to listen. `port` 0 takes any free one; `max_body_mb` is in MiB."""

    host: Name = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8787
    max_body_mb: Annotated[int, Field(ge=1)] = 64
    workers: Annotated[int, Field(ge=1, le=64)] = 1


class AuthKey(Part):
    """A key that callers may use: whose memory it opens, which models (globs), how much a minute and a month."""

    key: Annotated[SecretStr, Field(min_length=1)]
    tenant: Name | None = None
    models: list[Name] = ["*"]
    rpm: Count | None = None
    budget_usd: Annotated[float | None, Field(gt=0)] = None


class AuthSettings(Part):
    """No keys: any key is taken, passed on, and hashed into the tenant."""

    keys: list[AuthKey] = []

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        seen: set[str] = set()
        for index, entry in enumerate(self.keys):
            if entry.key.get_secret_value() in seen:
                raise impossible("the same key stands twice", ("keys", index, "key"))
            seen.add(entry.key.get_secret_value())
        return self


class UpstreamSettings(Part):
    """A server that answers. Without `provider` its bytes pass as they are; with one, litellm translates.

    `mid_system`: takes a system message in the middle. `developer_to_system`, `strict_roles`: for chat templates that
    know no `developer` role, or refuse two messages of one role in a row. `include_usage`: ask for usage in streams;
    null asks only where the upstream is known to take it. `read_timeout_s` is the longest silence, before the first
    byte or between two pieces of a stream, never a total. `retries` are for connections that failed before any reply
    began. `ca_file` replaces the system's certificates for this upstream.
    """

    name: Name
    base_url: HttpUrl | None = None
    api_key: SecretStr | None = None
    models: Annotated[list[Name], Field(min_length=1)] = ["*"]
    provider: Name | None = None
    mid_system: bool = False
    developer_to_system: bool = False
    strict_roles: bool = False
    include_usage: bool | None = None
    headers: Annotated[dict[HeaderName, HeaderValue], Field(repr=False)] = {}
    connect_timeout_s: Seconds = 10.0
    read_timeout_s: Seconds = 600.0
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    max_connections: Annotated[int, Field(ge=1)] = 1000
    ca_file: UserPath | None = None

    @model_validator(mode="before")
    @classmethod
    def _versioned(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("provider") is None and isinstance(data.get("base_url"), str):
            return {**data, "base_url": with_version(data["base_url"])}
        return data

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if self.base_url is None and self.provider is None:
            raise impossible("needs a base_url, or a provider that litellm knows the address of")
        if self.api_key is not None and not self.api_key.get_secret_value().strip().isprintable():
            raise impossible("the key has a line break or another control character in it", "api_key")
        return self


class ModelSettings(Part):
    """What is known about a model, by name or glob. Sizes in tokens; null: litellm's table, then a common default.

    `route` names the upstream; `fallbacks` name upstreams, or models, to try in turn.
    """

    window: Annotated[int | None, Field(ge=MIN_WINDOW)] = None
    max_output: Count | None = None
    encoding: Literal["o200k_base", "cl100k_base"] | None = None
    route: Name | None = None
    fallbacks: list[Name] = []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.window and self.max_output and self.max_output > self.window:
            raise impossible(f"max_output ({self.max_output}) is over window ({self.window})", "max_output", "window")
        return self


class LimitSettings(Part):
    """When shrinking starts and where it stops: shares of the window, tokens, seconds."""

    soft: Share = 0.70
    buffer: Size = 13_000
    low_watermark: Share = 0.50
    speculative: Share = 0.80
    min_gain: Size = 2_000
    cache_ttl_s: Annotated[float, Field(ge=0)] = 300.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low_watermark >= self.soft:
            raise impossible(
                f"low_watermark ({self.low_watermark}) must be below soft ({self.soft})", "low_watermark", "soft"
            )
        return self


class FoldSettings(Part):
    """Lossless folding of tool results."""

    enabled: bool = True


class SpillSettings(Part):
    """The tool-result budget, and the store that keeps the whole. `max_mb` is in MiB, of all tenants."""

    enabled: bool = True
    max_lines: Count = 1_000
    max_chars: Annotated[int, Field(ge=1_000)] = 40_000
    max_share: Annotated[float, Field(gt=0, le=1)] = 0.10
    tool: bool = False
    max_mb: Count = 1_024
    max_age_days: Annotated[float, Field(gt=0)] = 30.0


class SnipSettings(Part):
    """In characters: a tool message over `max_chars` keeps `head`, `tail` and `signal` of the lines that matter."""

    enabled: bool = True
    max_chars: Count = 3_000
    head: Size = 1_500
    tail: Size = 1_000
    signal: Size = 1_000

    @model_validator(mode="after")
    def _shrinks(self) -> Self:
        if self.head + self.tail > self.max_chars:
            raise impossible(
                f"head + tail ({self.head + self.tail}) is over max_chars ({self.max_chars})",
                "head",
                "tail",
                "max_chars",
            )
        return self


class MicrocompactSettings(Part):
    """Old calls and results to skeletons; the newest `keep_rounds` rounds stay."""

    enabled: bool = True
    keep_rounds: Count = 3


class CompactionSettings(Part):
    """Deep compaction. `model` null: the request's own. `concurrency` bounds the summaries written at once."""

    enabled: bool = True
    model: Name | None = None
    chunk_messages: Count = 5
    keep_rounds: Count = 3
    timeout_s: Seconds = 60.0
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4


class EmbeddingsSettings(Part):
    """An OpenAI-compatible `/v1/embeddings` endpoint."""

    base_url: HttpUrl
    model: Name
    api_key: SecretStr | None = None

    @model_validator(mode="before")
    @classmethod
    def _versioned(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("base_url"), str):
            return {**data, "base_url": with_version(data["base_url"])}
        return data


EMBEDDINGS_TAGS = ("embeddings:name", "embeddings:endpoint")
"""Pydantic puts these into an error's location; they are no keys of the file."""


def _embeddings_tag(value: Any) -> str:
    return EMBEDDINGS_TAGS[isinstance(value, (dict, EmbeddingsSettings))]


Embeddings = Annotated[
    Annotated[Literal["local"], Tag(EMBEDDINGS_TAGS[0])] | Annotated[EmbeddingsSettings, Tag(EMBEDDINGS_TAGS[1])],
    Discriminator(_embeddings_tag),
]


class MemorySettings(Part):
    """Recall (`top_k`, `max_tokens` of it in a request) and the scribe (`model` null: rules only)."""

    enabled: bool = True
    model: Name | None = None
    recall_timeout_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    max_tokens: Annotated[int, Field(ge=16)] = 500
    every_turns: Count = 5
    embeddings: Embeddings | None = None


class InjectionSettings(Part):
    """`pinned` keeps the upstream's prompt cache; `refresh_tokens`: a prefix under this many tokens may be rebuilt."""

    mode: Literal["pinned", "fresh"] = "pinned"
    refresh_tokens: Size = 8_000


class MetricsSettings(Part):
    """Prometheus at `/metrics`, the page at `/dashboard`."""

    enabled: bool = True


class Settings(Part):
    """The whole configuration. With `database_url`, PostgreSQL takes the place of the SQLite file in `data_dir`."""

    server: ServerSettings = ServerSettings()
    data_dir: UserPath = Path("~/.breakwater")
    database_url: Annotated[Name | None, Field(repr=False)] = None
    auth: AuthSettings = AuthSettings()
    upstreams: Annotated[list[UpstreamSettings], Field(min_length=1)] = [
        UpstreamSettings(name="default", base_url=OPENAI_BASE_URL)
    ]
    models: dict[str, ModelSettings] = {}
    limits: LimitSettings = LimitSettings()
    fold: FoldSettings = FoldSettings()
    protected_tools: list[Name] = ["todowrite", "todo_write", "update_plan", "task"]
    spill: SpillSettings = SpillSettings()
    snip: SnipSettings = SnipSettings()
    microcompact: MicrocompactSettings = MicrocompactSettings()
    compaction: CompactionSettings = CompactionSettings()
    memory: MemorySettings = MemorySettings()
    injection: InjectionSettings = InjectionSettings()
    slash_commands: bool = False
    metrics: MetricsSettings = MetricsSettings()

    @model_validator(mode="after")
    def _database_is_postgres(self) -> Self:
        if self.database_url and urlsplit(self.database_url).scheme not in {"postgresql", "postgres"}:
            raise impossible("must be a postgresql:// URL", "database_url")
        return self

    @model_validator(mode="after")
    def _upstream_names_differ(self) -> Self:
        seen: set[str] = set()
        for index, upstream in enumerate(self.upstreams):
            if upstream.name in seen:
                raise impossible(f"a second upstream named '{upstream.name}'", ("upstreams", index, "name"))
            seen.add(upstream.name)
        return self

    @model_validator(mode="after")
    def _routes_lead_somewhere(self) -> Self:
        names = [upstream.name for upstream in self.upstreams]
        globs = [glob for upstream in self.upstreams for glob in upstream.models]
        for model, entry in self.models.items():
            if entry.route is not None and entry.route not in names:
                known = ", ".join(names)
                raise impossible(
                    f"no upstream is named '{entry.route}'; there are: {known}", ("models", model, "route")
                )
            for index, name in enumerate(entry.fallbacks):
                served = name in names or name in self.models or any(fnmatchcase(name, glob) for glob in globs)
                if not served:
                    message = f"'{name}' is neither an upstream nor a model that one serves"
                    raise impossible(message, ("models", model, "fallbacks", index))
        return self
