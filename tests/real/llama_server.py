"""A real llama.cpp server on loopback: a process of its own, its address, and what its log says it was asked.

Run as `python -m tests.real.llama_server --model FILE --port N --context TOKENS` it is that process. It exists because
a scripted upstream can only show what its author believes of servers: this one has a tokenizer that is not OpenAI's, a
prompt cache, one slot, and errors of its own. The weights are a base model's: it continues text and follows nothing,
so no test may judge what it says.
"""

from __future__ import annotations

import argparse
import importlib
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway_process import clean_environment, free_port

REPOSITORY = Path(__file__).resolve().parents[2]
START_S = 120.0
"""Longest wait for the weights to be loaded, in seconds: a loaded 2-core machine."""
QUIET_S = 0.2
"""A server idle for so long, in seconds, has no request waiting."""
OUTPUT_MOST = 48
"""Tokens of any reply at most, whatever the request says: a base model seldom stops by itself."""
CACHE_MIB = 256
"""Memory in which the server keeps the prompts of conversations that have lost its one slot."""

BATCH = 256
"""Tokens of a prompt read at once; between two batches the server looks whether the client is still there."""

TEMPLATE = """\
{%- if tools %}<start_of_turn>system
Tools: {{ tools | tojson }}<end_of_turn>
{% endif %}
{%- for message in messages %}<start_of_turn>{{ message.role }}
{% if message.content is string %}{{ message.content }}
{%- elif message.content %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}
{%- for call in message.tool_calls or [] %}
{{ call.function.name }} {{ call.function.arguments if call.function.arguments is string
   else call.function.arguments | tojson }}
{%- endfor %}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""
"""The weights come with none. Gemma's turn marks, one token each; tools and calls are told, so that they count."""

_REFUSED = re.compile(r"error: request \((\d+) tokens\) exceeds")
_ENDED = re.compile(r"stop processing: n_tokens = (\d+)")


class LlamaServer:
    """Start it, ask it, read its log. Use as a context manager."""

    def __init__(self, model: Path, context: int, directory: Path) -> None:
        self.model = model
        self.context = context
        """Tokens: its window, prompt and reply together."""
        self.log_path = directory / "llama.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LlamaServer:
        command = [sys.executable, "-m", "tests.real.llama_server", "--model", str(self.model)]
        command += ["--port", str(self.port), "--context", str(self.context)]
        environment = clean_environment(self.log_path.parent)
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_S
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"the server did not start:\n{self.log()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """All it has printed."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def refused(self) -> list[int]:
        """Tokens of each request it found too long, in order."""
        return [int(tokens) for tokens in _REFUSED.findall(self.log())]

    def ended(self) -> list[int]:
        """Tokens in the slot, prompt and reply, as each request it took up ended."""
        return [int(tokens) for tokens in _ENDED.findall(self.log())]

    def busy(self) -> bool:
        """Whether its one slot is at work."""
        slots: list[dict[str, Any]] = httpx.get(f"{self.url}/slots", timeout=30.0, trust_env=False).json()
        return any(slot["is_processing"] for slot in slots)

    def settled(self) -> list[int]:
        """`ended`, once it has had nothing to do for a moment: background requests are done, and its log is written."""
        quiet = 0
        while quiet < 2:
            quiet = 0 if self.busy() else quiet + 1
            time.sleep(QUIET_S)
        return self.ended()

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5.0, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False


def serve(model: str, port: int, context: int) -> None:
    """Serve until killed."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.n_predict = context, 1, OUTPUT_MOST
    params.sampling.seed, params.sampling.temp = 1, 0.0
    # Two threads wait for one another at every layer: on a machine that does other work, one is ten times as fast.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.n_batch = params.n_ubatch = BATCH
    params.swa_full = True  # else a prompt that parts from the cached one early is read again from its beginning
    params.cache_ram_mib = CACHE_MIB
    params.warmup = params.ui = False
    params.chat_template = TEMPLATE
    params.force_pure_content_parser = True  # no grammar is laid over the reply where tools are offered
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    signal.pause()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    arguments = parser.parse_args()
    serve(arguments.model, arguments.port, arguments.context)


if __name__ == "__main__":
    main()
