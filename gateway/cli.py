"""The `gateway` command: reads its arguments, then hands over.

Nothing heavy is imported before it is known to be needed: `gateway --version` must answer at once. `demo` and `memory`
parse their own arguments: each is a module with `main(arguments) -> exit code`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gateway import __version__

if TYPE_CHECKING:
    from gateway.settings import Settings

EXIT_OK = 0
EXIT_PROBLEMS = 1
EXIT_REFUSED = 2
"""Wrong arguments (argparse's own code), a wrong configuration, or an unsafe address."""
EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells count it."""
DELEGATED = {"demo": "gateway.demo", "memory": "gateway.memory.cli"}
"""Commands with arguments of their own, and the module whose `main` reads them."""
FLAGS = ("host", "port", "upstream", "data_dir", "workers")
"""Arguments that override the configuration."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words and words[0] in DELEGATED:
            code = importlib.import_module(DELEGATED[words[0]]).main(words[1:])
            return EXIT_OK if code is None else int(code)
        return _run(_parser().parse_args(words))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def add_settings_arguments(parser: argparse.ArgumentParser) -> None:
    """`--config` and `--data-dir`, for every command that reads the configuration."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="default: $GATEWAY_CONFIG, else ./config.yaml")
    parser.add_argument("--data-dir", metavar="DIR", help="where the SQLite file and spilled outputs are kept")


def read_settings(args: argparse.Namespace) -> Settings:
    """The settings for parsed arguments; `SettingsError` where they are wrong. `args.config` becomes the file read."""
    from gateway.settings_load import find_config, load_settings

    args.config = find_config(args.config)
    return load_settings(args.config, {flag: getattr(args, flag, None) for flag in FLAGS})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="An OpenAI-compatible gateway that keeps an agent's context small, cheap and remembered.",
    )
    parser.add_argument("--version", action="version", version=f"gateway {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the gateway")
    add_settings_arguments(serve)
    serve.add_argument("--host", help="default 127.0.0.1")
    serve.add_argument("--port", type=int, help="default 8787; 0 takes any free one")
    serve.add_argument("--upstream", metavar="URL", help="serve this one upstream instead of the configured ones")
    serve.add_argument("--workers", type=int, metavar="N", help="processes; default 1")
    serve.add_argument("--insecure", action="store_true", help="allow a public address without auth.keys")

    check = commands.add_parser("check", help="read the configuration, try each upstream, say what is wrong")
    add_settings_arguments(check)
    check.add_argument("--upstream", metavar="URL", help="try this one instead of the configured ones")

    commands.add_parser("demo", help="a whole long conversation through the real gateway, with no key and no network")
    commands.add_parser("memory", help="list, add, search, export, import or clear what is remembered")
    return parser


def _run(args: argparse.Namespace) -> int:
    from gateway.errors import SettingsError

    try:
        settings = read_settings(args)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return EXIT_PROBLEMS if args.command == "check" else EXIT_REFUSED
    if args.command == "check":
        from gateway.check import report

        return EXIT_OK if report(settings, args.config) else EXIT_PROBLEMS
    return _serve(settings, insecure=args.insecure)


def _serve(settings: Settings, *, insecure: bool) -> int:
    from gateway.exposure import is_exposed

    if is_exposed(settings) and not insecure:
        print(
            f"Refusing to listen on {settings.server.host}: anyone who reaches it could use the upstreams' keys and "
            "fill the memory. Set auth.keys in the configuration, or pass --insecure where the network is your own.",
            file=sys.stderr,
        )
        return EXIT_REFUSED
    importlib.import_module("gateway.app").serve(settings, settings.server.workers)
    return EXIT_OK
