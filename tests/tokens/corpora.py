"""Texts of each kind that counts are judged on: shared data, the standard library's sources, and prose written here."""

from __future__ import annotations

import email
import gzip
import json
from pathlib import Path
from typing import Any

JAPANESE = """ゲートウェイは、エージェントと言語モデルの間に立ち、会話の文脈を小さく保
つための仕組みです。長いログや大きな
ファイルをそのまま送り続けると、費用はすぐに膨らみ、やがてモデルの上限を超えてしまいます。そこで、古い道具の
結果は要点だけを残して短くし、新しい結果はできるだけそのまま残します。

昨日の夕方、駅前の小さな喫茶店で友人と待ち合わせをしました。窓際の席に座ると、雨に濡れた通りを急ぎ足で歩く人
々が見え、傘の色だけが灰色の街に浮かんでいました。彼女は新しい仕事の話をしながら、何度もコーヒーをかき混ぜて
いましたが、結局ほとんど飲まずに帰っていきました。

設定ファイルを開き、データベースの接続先を書き換えてください。ポート番号は五四三二のままで構いません。変更を
保存したら、サービスを再起動し、エラーが出ていないことをログで確認します。もし認証に失敗した場合は、パスワー
ドに特殊文字が含まれていないか確かめてみてください。テストはすべて通りましたが、速度の計測はまだ終わっていま
せん。
"""

KOREAN = """게이트웨이는 에이전트와 언어 모델 사이에서 대화의 맥락을 작게 유지하는 역할을 합니다. 긴 로그와 큰 파일을
그대로 계속 보내면 비용이 금세 늘어나고, 결국 모델의 한계를 넘게 됩니다. 그래서 오래된 도구의 결과는 핵심만
남기고 줄이며, 새로운 결과는 되도록 그대로 둡니다.

어제 저녁에 역 앞의 작은 찻집에서 친구를 만났습니다. 창가 자리에 앉으니 비에 젖은 거리를 바쁘게 걸어가는
사람들이 보였고, 회색 도시 위로 우산의 색깔만 떠 있었습니다. 친구는 새 직장 이야기를 하면서 몇 번이나 커피를
저었지만, 거의 마시지 않고 돌아갔습니다.

설정 파일을 열고 데이터베이스의 주소를 바꿔 주세요. 포트 번호는 그대로 두어도 괜찮습니다. 변경한 내용을
저장한 뒤 서비스를 다시 시작하고, 오류가 없는지 로그에서 확인하십시오. 인증에 실패하면 비밀번호에 특수
문자가 들어 있는지 살펴보시기 바랍니다. 시험은 모두 통과했지만 속도 측정은 아직 끝나지 않았습니다.
"""

MIXED = """我们在 staging 环境里跑了一遍 `pytest -x tests/api`，有三个用例失败，都是 `TimeoutError: upstream did not
answer`。看起来是 connection pool 太小了：默认 `max_connections=10`，而 CI 上并发是 32。先把它改成 64，再看
p99 latency 有没有下降。

The retry logic in `client.py` 也需要改一下：现在遇到 429 会立刻重试，没有 backoff，所以 rate limit
永远不会恢复。建议用 exponential backoff，上限 30 秒，并且把 `Retry-After` header 读出来。改完以后请跑 `make
bench` 并把结果贴到 PR 里。
"""


def _read(path: Path) -> str:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return data.decode("utf-8", "replace")


def _requests(data: Path) -> list[dict[str, Any]]:
    names = ("tau_bench_airline", "swe_agent")
    traces = [json.loads((data / "trajectories" / f"{name}.json").read_text("utf-8")) for name in names]
    return [entry["request"] for trace in traces for entry in trace]


def _calls(request: dict[str, Any]) -> str:
    calls = [call["function"] for message in request["messages"] for call in message.get("tool_calls") or []]
    return "\n".join(call["name"] + call["arguments"] for call in calls)


def _memorybank(path: Path) -> list[str]:
    people = json.loads(path.read_text("utf-8")).values()
    return [
        "\n".join(f"{turn['query']}\n{turn['response']}" for day in person["history"].values() for turn in day)
        for person in people
    ]


def corpora(data: Path) -> dict[str, list[str]]:
    """Documents by kind; `data` is the shared data's directory."""
    outputs = data / "tool_outputs"
    dialogues = json.loads((data / "memory" / "locomo10_compact.json").read_text("utf-8"))
    sources = sorted(Path(email.__file__).parent.glob("*.py")) + sorted(Path(json.__file__).parent.glob("*.py"))
    logs = [*sorted((outputs / "ci_logs").glob("*.gz")), *sorted((outputs / "build_logs").iterdir())]
    return {
        "English prose": ["\n".join(turn["text"] for turn in one["turns"]) for one in dialogues]
        + _memorybank(data / "memory" / "memorybank_en.json"),
        "code": [_read(path) for path in sources],
        "JSON": [_read(path) for path in sorted((outputs / "json_api").glob("*.json"))],
        "logs": [_read(path) for path in logs] + [_read(path) for path in sorted(outputs.glob("*/*.txt"))],
        "Chinese": _memorybank(data / "memory" / "memorybank_cn.json"),
        "Japanese": [JAPANESE],
        "Korean": [KOREAN],
        "mixed": [MIXED],
        "tool calls": [_calls(request) for request in _requests(data)],
        "tool definitions": [json.dumps(request["tools"]) for request in _requests(data)],
        "agent requests": [json.dumps(request["messages"], ensure_ascii=False) for request in _requests(data)],
    }
