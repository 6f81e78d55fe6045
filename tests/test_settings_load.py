"""Where settings come from, who wins, and whether a mistake is found at its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SettingsError
from gateway.settings import Settings, UpstreamSettings
from gateway.settings_load import find_config, load_settings

REPOSITORY = Path(__file__).resolve().parents[1]
NO_ENVIRONMENT: dict[str, str] = {}
DOCUMENTED = """\
server:      {host: 127.0.0.1, port: 8787, max_body_mb: 64}
data_dir:    ~/.breakwater
auth:        {keys: []}
upstreams:
  - {name: default, base_url: https://api.openai.com/v1, api_key: ${OPENAI_API_KEY}, models: ["*"]}
models:      {}
limits:      {soft: 0.70, buffer: 13000, low_watermark: 0.50, speculative: 0.80, min_gain: 2000, cache_ttl_s: 300}
snip:        {enabled: true, max_chars: 3000, head: 1500, tail: 1000, signal: 1000}
"""
"""As the manual writes it: a reference inside braces is no YAML by itself, and must load all the same."""


def write(tmp_path: Path, text: str, name: str = "config.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """The lines of the error, with the directory taken off."""
    path = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {}, environ or {})
    return str(caught.value).replace(str(tmp_path) + "/", "").splitlines()


def api_key(upstream: UpstreamSettings) -> str | None:
    return upstream.api_key.get_secret_value() if upstream.api_key else None


@pytest.mark.parametrize("environ", [NO_ENVIRONMENT, {"OPENAI_API_KEY": "sk-canary"}])
def test_the_shipped_file_says_the_defaults(environ: dict[str, str]) -> None:
    assert load_settings(REPOSITORY / "config.yaml", {}, environ) == load_settings(None, {}, environ)


def test_the_shipped_file_shows_every_key() -> None:
    shipped = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    assert list(shipped) == list(Settings.model_fields)
    for section, keys in shipped.items():
        fields = getattr(getattr(Settings(), section), "model_fields_set", None)
        if isinstance(keys, dict) and fields is not None:
            assert list(keys) == list(type(getattr(Settings(), section)).model_fields), section


def test_the_documented_form_loads(tmp_path: Path) -> None:
    path = write(tmp_path, DOCUMENTED)
    assert load_settings(path, {}, NO_ENVIRONMENT) == Settings()
    assert api_key(load_settings(path, {}, {"OPENAI_API_KEY": "sk-1"}).upstreams[0]) == "sk-1"


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "limits:\nauth:\n  # keys: []\nupstreams:\n"])
def test_an_empty_file_and_empty_sections_are_the_defaults(tmp_path: Path, text: str) -> None:
    assert load_settings(write(tmp_path, text), {}, NO_ENVIRONMENT) == Settings()


def test_later_sources_win(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {host: 127.0.0.2, port: 1, max_body_mb: 2}\n")
    environ = {"GATEWAY_SERVER__HOST": "127.0.0.3", "GATEWAY_SERVER__PORT": "3"}
    server = load_settings(path, {"port": 4, "host": None}, environ).server
    assert (server.host, server.port, server.max_body_mb) == ("127.0.0.3", 4, 2)


def test_an_upstream_on_the_command_line_takes_the_place_of_all(tmp_path: Path) -> None:
    path = write(tmp_path, "upstreams: [{name: a, base_url: http://a, api_key: secret}, {name: b, base_url: http://b}]")
    upstreams = load_settings(path, {"upstream": "http://h:9"}, {"OPENAI_API_KEY": "sk-1"}).upstreams
    assert [(u.name, u.base_url, u.api_key, u.models) for u in upstreams] == [("default", "http://h:9/v1", None, ["*"])]


def test_the_openai_key_goes_to_openai_only() -> None:
    environ = {"OPENAI_API_KEY": "sk-1"}
    assert api_key(load_settings(None, {}, environ).upstreams[0]) == "sk-1"
    environ["GATEWAY_UPSTREAMS__0__BASE_URL"] = "http://h:9/v1"
    assert api_key(load_settings(None, {}, environ).upstreams[0]) is None


def test_each_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    text = """\
limits:
  sofft: 0.6
  buffer: 1.5
soft: 0.6
injection: {mode: pined}
server:
  port: "8787"
upstreams:
  - base_url: http://h
  - name: b
    base_url: ftp://h
    models: gpt-4o
snip:
  tail: 2000
"""
    assert mistakes(tmp_path, text) == [
        "config.yaml:2: limits.sofft: unknown key; did you mean 'soft'?",
        "config.yaml:3: limits.buffer: must be a whole number, not 1.5",
        "config.yaml:4: soft: unknown key; did you mean 'limits.soft'?",
        "config.yaml:5: injection.mode: must be 'pinned' or 'fresh', not 'pined'; did you mean 'pinned'?",
        "config.yaml:7: server.port: must be a whole number, not '8787'",
        "config.yaml:9: upstreams[0].name: is missing",
        "config.yaml:11: upstreams[1].base_url: must be an http:// or https:// URL with a host, not 'ftp://h/v1'",
        "config.yaml:12: upstreams[1].models: must be a list, not 'gpt-4o'",
        "config.yaml:14: snip.tail: head + tail (3500) is over max_chars (3000)",
    ]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("limits:\n  soft: 0.4\n", 2, "low_watermark"),
        ("fold: {enabled: true}\nfold: {enabled: false}\n", 2, "second time (first on line 1)"),
        ("snip:\n  head: 1\n  tail: 1\n  head: 2\n", 4, "snip.head"),
        ("server:\n\tport: 1\n", 2, "never tabs"),
        ("server: {port: 1\nlimits: {}\n", 2, "not valid YAML"),
        ("- a\n- b\n", 1, "mapping"),
        ("just text\n", 1, "mapping"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("models:\n  4: {window: 8192}\n", 2, "quotes"),
        ("limits: &x\n  soft: *x\n", 1, "itself"),
        ("server:\n  host: !secret a\n", 2, "secret"),
        ("memory:\n\n  embeddings:\n    base_url: http://h\n", 3, "embeddings.model: is missing"),
        ("models:\n  m:\n    route: nowhere\n", 3, "there are: default"),
        ("auth:\n  keys:\n    - key: a\n    - key: a\n", 4, "twice"),
        ("data_dir: ${HERE}\n", 1, "HERE is not set"),
        ("data_dir: ${HERE\n", 1, "${"),
        ("limits: null\nmemory: {top_k: null}\n", 2, "whole number, not null"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    (found,) = mistakes(tmp_path, text)
    assert found.startswith(f"config.yaml:{line}: ")
    assert word in found


def test_a_secret_is_never_quoted(tmp_path: Path) -> None:
    text = "database_url: [canary]\nauth: {keys: [{key: {a: canary}}]}\nupstreams: [{name: a, api_key: [canary]}]\n"
    assert "canary" not in "\n".join(mistakes(tmp_path, text))


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SettingsError, match=re.escape(str(path))):
            load_settings(path, {}, NO_ENVIRONMENT)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"data_dir: caf\xe9\n")
    with pytest.raises(SettingsError, match="UTF-8"):
        load_settings(latin, {}, NO_ENVIRONMENT)


def test_references_are_filled_in_by_type(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
server: {host: "${HOST}", port: ${PORT:-8080}}
data_dir: ${ROOT:-/srv, or so}/data   # ${NOT_READ}
limits: {soft: ${SOFT}}
upstreams: [{name: "a$${b}", base_url: 'http://${HOST}:${PORT:-8080}/v1', api_key: ${KEY}}]
""",
    )
    settings = load_settings(path, {}, {"HOST": "127.0.0.9", "SOFT": "0.6", "KEY": "12345"})
    assert (settings.server.host, settings.server.port, settings.limits.soft) == ("127.0.0.9", 8080, 0.6)
    assert settings.data_dir == Path("/srv, or so/data")
    (upstream,) = settings.upstreams
    assert (upstream.name, upstream.base_url, api_key(upstream)) == ("a${b}", "http://127.0.0.9:8080/v1", "12345")


@pytest.mark.parametrize("reference", ["${KEY}", '"${KEY}"', "${KEY:-}"])
def test_a_key_that_is_not_set_is_no_key(tmp_path: Path, reference: str) -> None:
    path = write(tmp_path, f"upstreams:\n  - name: a\n    base_url: http://h\n    api_key: {reference}\n")
    assert load_settings(path, {}, NO_ENVIRONMENT).upstreams[0].api_key is None


def test_anchors_and_merges_are_plain_yaml(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
upstreams:
  - &first {name: a, base_url: http://h, retries: 1}
  - {<<: *first, name: b}
""",
    )
    upstreams = load_settings(path, {}, NO_ENVIRONMENT).upstreams
    assert [(u.name, u.base_url, u.retries) for u in upstreams] == [("a", "http://h/v1", 1), ("b", "http://h/v1", 1)]


def test_every_key_has_an_environment_form(tmp_path: Path) -> None:
    path = write(tmp_path, 'upstreams: [{name: a, base_url: "http://h"}]\nmodels: {"GPT-4o": {window: 1000}}\n')
    settings = load_settings(
        path,
        {},
        {
            "GATEWAY_LIMITS__SOFT": "0.6",
            "GATEWAY_SPILL__TOOL": "1",
            "GATEWAY_FOLD__ENABLED": "false",
            "GATEWAY_SLASH_COMMANDS": "true",
            "GATEWAY_DATA_DIR": "/srv/data",
            "GATEWAY_COMPACTION__MODEL": "123",
            "GATEWAY_MEMORY__EMBEDDINGS": "{base_url: http://e/v1, model: m}",
            "GATEWAY_PROTECTED_TOOLS": '["plan"]',
            "GATEWAY_UPSTREAMS__0__API_KEY": "42",
            "GATEWAY_UPSTREAMS__1__NAME": "b",
            "GATEWAY_UPSTREAMS__1__PROVIDER": "anthropic",
            "GATEWAY_MODELS__gpt-4o__WINDOW": "2000",
            "GATEWAY_MODELS": '{"qwen": {"window": 32768}}',
            "GATEWAY_AUTH__KEYS": "[{key: k, rpm: 5}]",
            "GATEWAY_MEMORY__MODEL": "",
        },
    )
    assert (settings.limits.soft, settings.spill.tool, settings.fold.enabled) == (0.6, True, False)
    assert (settings.slash_commands, settings.data_dir, settings.compaction.model) == (True, Path("/srv/data"), "123")
    assert settings.protected_tools == ["plan"]
    assert [(u.name, api_key(u), u.provider) for u in settings.upstreams] == [
        ("a", "42", None),
        ("b", None, "anthropic"),
    ]
    assert {name: entry.window for name, entry in settings.models.items()} == {"GPT-4o": 2000, "qwen": 32768}
    assert settings.auth.keys[0].rpm == 5
    assert settings.memory.model is None
    assert not isinstance(settings.memory.embeddings, str) and settings.memory.embeddings is not None
    assert settings.memory.embeddings.model == "m"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("GATEWAY_LIMITS__SOFFT", "0.6", "unknown setting; did you mean GATEWAY_LIMITS__SOFT?"),
        ("GATEWAY_LIMIT__SOFT", "0.6", "unknown setting; did you mean GATEWAY_LIMITS?"),
        ("GATEWAY_DATADIR", "/srv", "unknown setting; did you mean GATEWAY_DATA_DIR?"),
        ("GATEWAY_LIMITS__SOFT", "much", "limits.soft: must be a number, not 'much'"),
        ("GATEWAY_LIMITS__SOFT", "0.4", "limits.soft: low_watermark (0.5) must be below soft (0.4)"),
        ("GATEWAY_UPSTREAMS__7__NAME", "b", "unknown setting"),
        ("GATEWAY_SERVER", "{prot: 1}", "server.prot: unknown key; did you mean 'port'?"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {}, {name: value})
    assert str(caught.value) == f"{name}: {complaint}"


def test_variables_of_others_are_left_alone() -> None:
    """What CGI servers and Kubernetes (a service named `gateway`) put into the environment."""
    environ = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "GATEWAY_PORT": "tcp://10.0.0.1:80",
        "GATEWAY_PORT_80_TCP_ADDR": "10.0.0.1",
        "GATEWAY_SERVICE_HOST": "10.0.0.1",
        "GATEWAY_SERVICE_PORT": "80",
        "GATEWAY_CONFIG": "ignored.yaml",
    }
    assert load_settings(None, {}, environ) == Settings()


def test_a_wrong_flag_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^--port: server\.port: must be less than or equal to 65535"):
        load_settings(None, {"port": 70_000}, NO_ENVIRONMENT)
    with pytest.raises(SettingsError, match=r"^--upstream: upstreams\[0\]\.base_url"):
        load_settings(None, {"upstream": "nowhere"}, NO_ENVIRONMENT)


def test_which_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config(None, NO_ENVIRONMENT) is None
    write(tmp_path, "")
    assert find_config(None, NO_ENVIRONMENT) == Path("config.yaml")
    assert find_config(None, {"GATEWAY_CONFIG": "/etc/other.yaml"}) == Path("/etc/other.yaml")
    assert find_config(Path("mine.yaml"), {"GATEWAY_CONFIG": "/etc/other.yaml"}) == Path("mine.yaml")


@given(st.text(max_size=60))
def test_any_text_as_a_file_loads_or_is_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_settings(path, {}, NO_ENVIRONMENT)
    except SettingsError as error:
        assert str(path) in str(error)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*Settings.model_fields, "soft", "name", "keys", "zzz"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_any_values_load_or_are_refused_line_by_line(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "values.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    try:
        load_settings(path, {}, NO_ENVIRONMENT)
    except SettingsError as error:
        for line in str(error).splitlines():
            assert re.match(rf"{re.escape(str(path))}:\d+: ", line)


SEGMENTS = [
    *("upstreams", "models", "auth", "keys", "limits", "soft", "server", "port", "memory", "embeddings", "base_url"),
    *("headers", "fallbacks", "data_dir", "gpt-4o", "0", "1", "x", ""),
]


@given(
    st.dictionaries(
        st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=5).map(
            lambda parts: "GATEWAY_" + "__".join(parts).upper()
        ),
        st.sampled_from(
            ["1", "0.6", "text", "http://h", "[]", "[a, {b: c}]", "{a: 1}", "{", "null", "", "- a: [", "!!x y"]
        ),
        max_size=4,
    )
)
def test_any_variables_load_or_are_named(environ: dict[str, str]) -> None:
    try:
        load_settings(None, {}, environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            assert line.partition(": ")[0] in environ
