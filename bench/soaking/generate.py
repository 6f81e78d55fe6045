"""Conversations by the thousand, from a seed: hypothesis makes better ones, and a hundred times fewer.

All that clients send is in them: parallel calls with replies in any order, contents as strings and as parts, images,
empty and missing contents, many scripts, `developer` roles, roles and fields and parts nobody has heard of, legacy
functions, sub-agents' notes, marks to keep, JSON results, logs with progress bars, results that repeat earlier ones.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

WINDOWS = (500, 600, 800, 1_200)
"""Tokens. Small, so that a short conversation goes through every stage."""
CHARS_PER_TOKEN = 3.0
SCRIPTS = (
    "the parser reads one line and returns a node unless the buffer is empty",
    "数据库 配置 文件 读取 失败 请 检查 路径 是否 正确",
    "データベース 接続 が 失敗 しました 設定 を 確認 して ください",
    "데이터베이스 연결 에 실패 했습니다 설정 을 확인 하세요",
    "база података није доступна проверите подешавања",
    "🙂 👩‍👩‍👧 🇷🇸 ✅ naïve café Ünïcödé",
)
TOOLS = ("read_file", "bash", "grep", "edit_file", "todowrite", "查询", "get_weather")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Case:
    """One conversation and where it is sent."""

    window: int
    requests: list[list[Message]]
    """Its turns, in order: each begins like the one before."""
    fields: Message
    """What stands beside model and messages."""


class Generator:
    """Makes the conversation of a number; the same for the same seed and number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def case(self, number: int) -> Case:
        """The conversation of that number."""
        state = random.Random(f"{self._seed}:{number}")
        window = state.choice(WINDOWS)
        messages = _Writer(state, window).conversation()
        ends = [index for index, message in enumerate(messages) if message["role"] == "assistant" and index > 0]
        wanted = sorted(state.sample(ends, min(len(ends), state.randrange(3))))
        fields: Message = state.choice([{}, {"temperature": 0.5}, {"x_unknown": {"messages": []}}, {"max_tokens": 30}])
        return Case(window, [*(messages[:end] for end in wanted), messages], fields)


class _Writer:
    def __init__(self, state: random.Random, window: int) -> None:
        self.state = state
        self.window = window
        self.words = state.choice(SCRIPTS).split() + SCRIPTS[0].split()
        self.results: list[str] = []
        self.calls = 0

    def conversation(self) -> list[Message]:
        """From under the limits to about twice the window."""
        state = self.state
        room = int(self.window * CHARS_PER_TOKEN * 0.4 * 2 ** state.uniform(0, 2.5))
        roles = state.choice([[], ["system"], ["developer"], ["system", "developer"]])
        messages: list[Message] = [{"role": role, "content": self.text(0.02)} for role in roles]
        messages.append({"role": "user", "content": self.said()})
        while room > 0:
            kind = state.random()
            if kind < 0.72:
                part = self.tool_round()
            elif kind < 0.90:
                part = [{"role": "assistant", "content": self.text(0.05)}, {"role": "user", "content": self.said()}]
            elif kind < 0.95:
                part = [{"role": "x_observer", "content": self.text(0.01), "x_kept": [1, {"a": None}]}]
            else:
                part = [{"role": "system", "content": self.text(0.005)}, {"role": "user", "content": self.said()}]
            messages += part
            room -= sum(len(str(message.get("content"))) for message in part) + 40
        if messages[-1]["role"] not in ("user", "tool", "function"):
            messages.append({"role": "user", "content": self.said()})
        return messages

    def text(self, share: float) -> str:
        """Words for at most about that share of the window; sometimes none."""
        if self.state.random() < 0.05:
            return ""
        count = self.state.randrange(1, max(2, int(self.window * share)))
        return " ".join(self.state.choices(self.words, k=count))

    def said(self) -> Any:
        """A user's content."""
        kind = self.state.random()
        if kind < 0.85:
            return self.text(0.04)
        parts: list[Message] = [{"type": "text", "text": self.text(0.02)}]
        if kind > 0.95 and self.window > 2_000:
            parts.append({"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}})
        if kind > 0.98:
            parts.append({"type": "x_unheard_of", "x_payload": 1})
        return parts

    def tool_round(self) -> list[Message]:
        """An assistant's calls, and their replies in any order."""
        state = self.state
        if state.random() < 0.03:
            call = {"name": "f", "arguments": self.arguments()}
            reply = {"role": "function", "name": "f", "content": self.result()}
            return [{"role": "assistant", "content": None, "function_call": call}, reply]
        calls, replies = [], []
        for _ in range(state.choice([1, 1, 1, 2, 3])):
            self.calls += 1
            name = f"call_{self.calls}"
            function = {"name": state.choice(TOOLS), "arguments": self.arguments()}
            calls.append({"id": name, "type": "function", "function": function})
            content: Any = self.result()
            if state.random() < 0.1:
                content = [{"type": "text", "text": content}, {"type": "text", "text": self.text(0.01)}]
            replies.append({"role": "tool", "tool_call_id": name, "content": content})
        state.shuffle(replies)
        first: Message = {
            "role": "assistant",
            "content": state.choice([None, "", self.text(0.02)]),
            "tool_calls": calls,
        }
        if state.random() < 0.1:
            first["reasoning_content"] = self.text(0.01)
        return [first, *replies]

    def arguments(self) -> str:
        """JSON, mostly."""
        kind = self.state.random()
        if kind < 0.1:
            return self.state.choice(["", "{}", "not json", "[1]"])
        return json.dumps(
            {"path": f"src/{self.state.randrange(6)}.py", "content": self.text(0.02 if kind < 0.8 else 0.1)}
        )

    def result(self) -> str:
        """What a tool said."""
        state = self.state
        kind = state.random()
        if kind < 0.12 and self.results:
            return state.choice(self.results)
        size = max(1, int(self.window * state.choice([0.005, 0.02, 0.05, 0.15])))
        if kind < 0.30:
            rows = [{"id": n, "name": state.choice(self.words), "ok": True} for n in range(size // 8 + 1)]
            text = json.dumps(rows, indent=state.choice([None, 2]), ensure_ascii=False)
        elif kind < 0.45:
            text = (
                "".join(f"\r{n}%" for n in range(0, 101, 20))
                + "\n"
                + "same line\n" * (size // 4)
                + "\x1b[31mred\x1b[0m"
            )
        elif kind < 0.60:
            lines = [f"{n}: def {state.choice(self.words)}_{state.randrange(999)}(x):" for n in range(size // 9 + 1)]
            lines.insert(len(lines) // 2, "ERROR: src/1.py:3: undefined name")
            text = "\n".join(lines)
        else:
            text = " ".join(state.choices(self.words, k=size // 2 + 1))
        if state.random() < 0.03:
            text += " <keep>exactly this</keep>"
        self.results.append(text)
        return text
