"""`gateway memory …`: what is remembered of one tenant, from a shell.

Works on the store that the configuration names, also while a gateway runs on it; with `--url`, through that gateway.
On a terminal it prints tables; into a pipe plain text with tabs; with `--json` one object a line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gateway.errors import GatewayError, SettingsError
from gateway.memory.entries import EntryType, Trust

if TYPE_CHECKING:
    from gateway.memory.access import Access
    from gateway.types import JsonObject

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_REFUSED = 2
KEY_VARIABLE = "OPENAI_API_KEY"
"""Where an SDK would take the key from that it sends to the gateway."""
LIMIT = 50
COLUMNS = ("id", "time", "kind", "project", "content")
ID_SHOWN = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.url and args.tenant:
        parser.error("--tenant names a tenant of the configuration: with --url give its --key")
    try:
        return asyncio.run(_run(args))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return EXIT_REFUSED
    except GatewayError as error:
        print(f"gateway memory: {error.message}", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:  # the reader of the pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        print(f"gateway memory: {error}", file=sys.stderr)
        return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    from gateway.cli import add_settings_arguments

    shared = argparse.ArgumentParser(add_help=False)
    add_settings_arguments(shared)
    shared.add_argument(
        "--key", "--tenant-key", metavar="KEY", help=f"the API key whose memory it is; default ${KEY_VARIABLE}"
    )
    shared.add_argument("--tenant", metavar="NAME", help="instead of a key: a tenant's name in auth.keys")
    shared.add_argument("--user", default="", help="as X-Memory-User, or `user` in a chat request")
    shared.add_argument("--url", help="go through the gateway that listens there, such as http://127.0.0.1:8787")
    shared.add_argument("--json", action="store_true", help="one JSON object a line")

    parser = argparse.ArgumentParser(prog="gateway memory", description="See and change what is remembered.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", parents=[shared], help="what is kept, newest first")
    listing.add_argument("--scope", choices=("long", "session", "project"), default="long")
    listing.add_argument("--type", choices=[str(kind) for kind in EntryType])
    listing.add_argument("--project")
    listing.add_argument("--session")
    listing.add_argument("--history", action="store_true", help="what was superseded too")
    listing.add_argument("--quarantine", action="store_true", help="only what is held back")
    listing.add_argument("--limit", type=_positive, default=LIMIT, help=f"default {LIMIT}")
    add = commands.add_parser("add", parents=[shared], help="remember a sentence")
    add.add_argument("text", nargs="+")
    add.add_argument("--project", default="")
    search = commands.add_parser("search", parents=[shared], help="find memories")
    search.add_argument("query", nargs="+")
    search.add_argument("--project", default="")
    search.add_argument("--limit", type=_positive, default=10, help="default 10")
    export = commands.add_parser("export", parents=[shared], help="everything, as JSON lines")
    export.add_argument("file", nargs="?", default="-", help="default: standard output")
    bring_in = commands.add_parser("import", parents=[shared], help="bring in what was exported")
    bring_in.add_argument("file", nargs="?", default="-", help="default: standard input")
    bring_in.add_argument("--partial", action="store_true", help="bring in the good lines where others are bad")
    clear = commands.add_parser("clear", parents=[shared], help="erase everything of this tenant")
    clear.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a number of 1 or more")
    return int(text)


async def _run(args: argparse.Namespace) -> int:
    run = {"list": _list, "add": _add, "search": _search, "export": _export, "import": _import, "clear": _clear}
    if args.command == "clear" and not (args.yes or _confirmed(args)):
        print("Nothing was erased.", file=sys.stderr)
        return EXIT_FAILED
    access = await _open(args)
    try:
        return await run[args.command](access, args)
    finally:
        await access.close()


async def _open(args: argparse.Namespace) -> Access:
    from gateway.memory.access import Local, Remote

    key = os.environ.get(KEY_VARIABLE, "") if args.key is None else args.key
    if args.url:
        return Remote(args.url, key, args.user.strip())
    from gateway.cli import read_settings
    from gateway.store.open import open_store
    from gateway.tenants import Gatekeeper, digest

    settings = read_settings(args)
    user = args.user.strip()
    if args.tenant:
        tenant = digest("tenant", f"name:{args.tenant}", user)
    else:
        headers = [(b"authorization", b"Bearer " + os.fsencode(key))] if key else []
        tenant = Gatekeeper(settings.auth.keys).admit(headers, user).tenant
    return Local(await open_store(settings.data_dir, settings.database_url), tenant)


async def _list(access: Access, args: argparse.Namespace) -> int:
    filters = {name: value for name in ("scope", "type", "project", "session") if (value := getattr(args, name))}
    found: list[JsonObject] = []
    async for entry in access.entries(filters, history=args.history):
        if (entry["trust"] == Trust.QUARANTINED) == args.quarantine:
            found.append(entry)
        if len(found) >= args.limit:
            break
    _show(found, args)
    return EXIT_OK


async def _add(access: Access, args: argparse.Namespace) -> int:
    change = await access.add(" ".join(args.text), args.project)
    if args.json:
        _print_json(change)
    else:
        words = {
            "kept": "Remembered.",
            "superseded": "Remembered; it takes the place of what was there.",
            "merged": "That is remembered already.",
            "quarantined": "Held in quarantine: it reads like an instruction, or holds an address.",
        }
        print(words[change["outcome"]])
    return EXIT_OK


async def _search(access: Access, args: argparse.Namespace) -> int:
    hits = await access.search(" ".join(args.query), args.limit, args.project)
    if args.json:
        for hit in hits:
            _print_json(hit)
    else:
        _show([hit["entry"] for hit in hits], args)
    return EXIT_OK


async def _export(access: Access, args: argparse.Namespace) -> int:
    if args.file == "-":
        async for piece in access.export():
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return EXIT_OK
    path = Path(args.file)
    part = path.with_name(f"{path.name}.part")
    with await asyncio.to_thread(_private, part) as out:
        async for piece in access.export():
            out.write(piece)
    part.replace(path)
    return EXIT_OK


def _private(path: Path) -> BinaryIO:
    """A new file for its owner's eyes only."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb")


async def _import(access: Access, args: argparse.Namespace) -> int:
    if args.file == "-":
        raw = await asyncio.to_thread(sys.stdin.buffer.read)
    else:
        raw = await asyncio.to_thread(Path(args.file).read_bytes)
    report = await access.bring_in(raw, partial=args.partial)
    for problem in report.errors:
        print(f"line {problem.line}: {problem.message}", file=sys.stderr)
    if report.refused:
        print("Nothing was imported; --partial brings in the good lines, where there are any.", file=sys.stderr)
        return EXIT_FAILED
    counts = {name: getattr(report, name) for name in ("added", "existing", "history", "quarantined", "sessions")}
    if args.json:
        _print_json(counts)
    else:
        print(", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "added"))
    return EXIT_FAILED if report.errors else EXIT_OK


def _confirmed(args: argparse.Namespace) -> bool:
    whose = args.tenant or ("this key" if args.key or os.environ.get(KEY_VARIABLE) else "callers without a key")
    user = f", user {args.user}" if args.user else ""
    print(f"This erases all memory of {whose}{user}. Type 'yes' to go on: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


async def _clear(access: Access, args: argparse.Namespace) -> int:
    gone = await access.clear()
    if args.json:
        _print_json({"entries": gone})
    else:
        print(f"Erased {gone} {'memory' if gone == 1 else 'memories'}.")
    if not args.url:
        print("A gateway that is running may hold conversations in mind: --url clears those too.", file=sys.stderr)
    return EXIT_OK


def _print_json(document: JsonObject) -> None:
    import orjson

    print(orjson.dumps(document).decode())


def _show(entries: Sequence[JsonObject], args: argparse.Namespace) -> None:
    if args.json:
        for entry in entries:
            _print_json(entry)
    elif sys.stdout.isatty():
        _table(entries)
    else:
        for entry in entries:
            print("\t".join(_row(entry, _plain(entry["id"]))))


def _row(entry: JsonObject, name: str) -> tuple[str, ...]:
    said = datetime.fromtimestamp(entry["timestamp"], UTC).strftime("%Y-%m-%d %H:%M")
    kind = entry["type"].lower() if entry["valid_to"] is None else f"{entry['type'].lower()}, superseded"
    return name, said, kind, _plain(entry["project"]), _plain(entry["content"])


def _plain(text: str) -> str:
    """One line that does nothing to a terminal: a memory may hold anything, escape sequences too."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


def _table(entries: Sequence[JsonObject]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*COLUMNS)
    for entry in entries:
        table.add_row(*(Text(cell) for cell in _row(entry, _plain(entry["id"])[:ID_SHOWN])))
    Console().print(table if entries else "Nothing is kept.")
