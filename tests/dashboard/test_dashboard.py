"""The dashboard: how it is served, that nothing comes from elsewhere, and what a real browser shows of a reading."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.testclient import TestClient

import gateway.dashboard
from gateway.dashboard import FILES, dashboard_routes
from gateway.metrics import Metrics
from tests.conftest import Launch
from tests.support.raw_http import fetch

FOLDER = Path(gateway.dashboard.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
BROWSER_S = 60.0

READING = """\
# HELP gateway_requests_total Chat requests answered.
# TYPE gateway_requests_total counter
gateway_requests_total{model="a\\"b\\\\c",route="one, {two}",status="200",stream="no"} 30.0
gateway_requests_total{model="m",route="two",status="200",stream="yes"} 8.0
gateway_requests_total{model="m",route="two",status="502",stream="yes"} 2.0
gateway_requests_total{model="m",route="two",status="499",stream="yes"} 1.0
gateway_tokens_before_total{model="a\\"b\\\\c",route="one, {two}"} 8e+04
gateway_tokens_before_total{model="m",route="two"} 20000.0
gateway_tokens_after_total{model="a\\"b\\\\c",route="one, {two}"} 20000.0
gateway_tokens_after_total{model="m",route="two"} 20000.0
gateway_usage_tokens_total{kind="prompt",model="m",route="two"} 20000.0
gateway_usage_tokens_total{kind="cached",model="m",route="two"} 5000.0
gateway_compactions_total{how="ahead"} 3.0
gateway_compactions_total{how="unheard of"} 1.0
gateway_memories_total{outcome="kept"} 7.0
gateway_refusals_total{code="invalid_json",status="400"} 4.0
gateway_refusals_total{code="upstream_unreachable",status="502"} 2.0
gateway_pipeline_seconds_bucket{le="0.001"} 0.0
gateway_pipeline_seconds_bucket{le="0.002"} 20.0
gateway_pipeline_seconds_bucket{le="0.004"} 30.0
gateway_pipeline_seconds_bucket{le="+Inf"} 40.0
gateway_pipeline_seconds_count 40.0
gateway_pipeline_seconds_sum 1.0
"""


@pytest.mark.parametrize(("path", "kind"), [(path, kind) for path, (_, kind) in FILES.items()])
def test_it_is_served_with_type_and_policy(path: str, kind: str) -> None:
    with TestClient(Starlette(routes=list(dashboard_routes()))) as client:
        answer = client.get(path)
        assert client.head(path).status_code == 200
        assert client.post(path).status_code == 405
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(f"{kind}; charset=utf-8")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_comes_from_elsewhere_or_breaks_the_policy() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page) == [
        "dashboard/style.css",
        "dashboard/app.js",
        "metrics",
        "metrics",
    ]
    assert "<style" not in page and " style=" not in page and not re.search(r"\son\w+=", page)
    assert not re.search(r"<script(?![^>]*src=)", page)
    script = (FOLDER / "app.js").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|eval\(|\.style\b", script)
    for text in (script, (FOLDER / "style.css").read_text(encoding="utf-8")):
        assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("file", ["gateway/dashboard/app.js", "docs/grafana.json", "docs/dashboard.md"])
def test_every_metric_they_read_is_one_that_there_is(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    read = {name.removesuffix("_bucket") for name in re.findall(r"\bgateway_[a-z_]+", text)}
    known = set(re.findall(r"^# HELP (\w+)", Metrics().render().decode(), re.MULTILINE))
    assert len(read) > 10
    assert read <= known


def test_the_panels_are_whole() -> None:
    board = json.loads((ROOT / "docs/grafana.json").read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) == 12
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) == 23, "side by side, on Grafana's 24 columns"


@contextmanager
def serving(reading: str | None) -> Iterator[str]:
    """The page's files, with a reading of our own behind them."""
    answers = {path: ((FOLDER / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
    if reading is not None:
        answers["/metrics"] = (reading.encode(), CONTENT_TYPE_LATEST)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = answers.get(self.path, (b"", "text/plain"))
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", gateway.dashboard.HEADERS["content-security-policy"])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rendered(url: str, profile: Path) -> str:
    """The page's HTML once a real browser has run it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("no Chromium on this machine")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [browser, *flags, "--virtual-time-budget=3000", "--dump-dom", f"{url}/dashboard"],
        capture_output=True,
        text=True,
        timeout=BROWSER_S,
        check=True,
    )
    return done.stdout


def text_of(page: str, name: str) -> str:
    found = re.search(rf'id="{name}"[^>]*>(.*?)</(?:p|div|tbody|table)>', page, re.DOTALL)
    assert found is not None, name
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_what_a_browser_shows(tmp_path: Path) -> None:
    with serving(READING) as url:
        page = rendered(url, tmp_path / "profile")
    assert text_of(page, "requests") == "41"
    assert text_of(page, "saved") == "60.0 %"  # 100,000 → 40,000
    assert text_of(page, "cached") == "25.0 %"
    assert text_of(page, "own") == "2.0 ms"  # the 20th of 40 ends the second bucket
    assert text_of(page, "own-note").startswith(
        "p99 4.0 ms"
    )  # in the open bucket: its lower edge, as Prometheus has it
    assert text_of(page, "errors") == "6"  # two 502, four refused unread; a client that left is no error
    assert text_of(page, "errors-note") == "13.3 % of 45 answers"
    assert text_of(page, "compactions") == "summary made ahead 3 unheard of 1"
    assert text_of(page, "trouble").startswith("refused: invalid_json 4")
    assert 'one, {two}</td><td>a"b\\c</td><td>30</td><td>80,000</td><td>20,000</td><td>75.0 %</td>' in page
    assert "as of" in text_of(page, "status")


def test_a_gateway_that_is_away(tmp_path: Path) -> None:
    with serving(None) as url:
        page = rendered(url, tmp_path / "profile")
    assert text_of(page, "status") == "no answer: /metrics answered 404"


def test_a_gateway_that_has_done_nothing(tmp_path: Path) -> None:
    with serving("") as url:
        page = rendered(url, tmp_path / "profile")
    assert text_of(page, "requests") == "0"
    assert text_of(page, "saved") == text_of(page, "ttfb") == "–"


def test_through_the_front_door(launch: Launch) -> None:
    on, off = launch(), launch(metrics={"enabled": False})
    page = fetch(on.port, "GET", "/dashboard")
    assert page.status == 200 and b"<title>Breakwater</title>" in page.body
    assert fetch(on.port, "GET", "/dashboard/app.js").status == 200
    assert fetch(off.port, "GET", "/dashboard").status == fetch(off.port, "GET", "/metrics").status == 404
