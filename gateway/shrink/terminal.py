"""What a terminal would have shown: escape sequences applied to nothing, progress written over itself."""

from __future__ import annotations

import re

# ECMA-48: CSI parameters, intermediates and final byte; OSC, DCS, PM, APC and SOS strings up to BEL or ST; two-byte
# escapes; and whatever ESC is left, so that none survives a pass.
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\^-~]|\x1b"
)
_BAR = re.compile(r"[\s\d.:%|/\\\-#=>*█▉▊▋▌▍▎▏░▒▓━─╸╺╾⠀-⣿◐◓◑◒]+|(?<=\d)[KMGTkmgB]i?[Bb]?(?:/s)?\b")
_BACKSPACE = re.compile(r"[^\x08\n]\x08")
_MAX_BACKSPACES = 64  # passes; a spinner needs one


def strip_escapes(text: str) -> str:
    """`text` without colours, cursor movements, titles and links."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    if "\x08" in text:
        for _ in range(_MAX_BACKSPACES):
            text, changes = _BACKSPACE.subn("", text)
            if not changes:
                break
        text = text.replace("\x08", "")
    return text


def overwrite(text: str) -> str:
    """Carriage returns inside a line applied: of steps that differ only in numbers and bars, the last one stays.

    Steps that say different things become lines of their own: a terminal would have lost the earlier, a reader of
    the log must not. `\\r\\n` is left alone. No lone carriage return survives.
    """
    if "\r" not in text:
        return text
    lines = text.split("\n")
    last = len(lines) - 1
    for index, line in enumerate(lines):
        if "\r" in line:
            ends = index < last and line.endswith("\r")
            shown = _last_steps(line[:-1] if ends else line)
            lines[index] = shown + "\r" if ends else shown
    return "\n".join(lines)


def _last_steps(line: str) -> str:
    if "\r" not in line:
        return line
    kept: list[str] = []
    shape = None
    for step in line.split("\r"):
        if not step.strip():
            continue
        this = _BAR.sub(" ", step).strip()
        if kept and (this == shape or (step.startswith(kept[-1]) and not step[len(kept[-1])].isdigit())):
            kept[-1] = step
        else:
            kept.append(step)
        shape = this
    return "\n".join(kept)
