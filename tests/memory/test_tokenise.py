"""Terms: the same for what is stored and what is asked, in any language."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.memory import tokenise
from gateway.memory.stem import stem
from gateway.memory.tokenise import date_terms, fold, query_terms, strength, terms, weighted_terms

ROOT = Path(__file__).parents[2]
CHINESE = ROOT.parent / "shared" / "data" / "memory" / "memorybank_cn.json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", {"getusername", "user"}),
        ("src/utils/http_client.py", {"src/utils/http_client.py", "util", "http", "client", "py"}),
        ("parseHTTPResponse", {"http", "parsehttpresponse"}),
        ("snake_case_thing", {"snake_case_thing"}),
        ("C++ and C#", {"c++", "c#"}),
        ("version v2.0.1", {"v2.0.1"}),
        ("self-care", {"self-care", "self", "car"}),
        ("Caroline's dog", {"carolin", "dog"}),
        ("on the 2nd floor", {"2", "floor"}),
    ],
)
def test_identifiers_are_kept_whole_and_split(text: str, expected: set[str]) -> None:
    assert expected <= set(terms(text))


@pytest.mark.parametrize(
    ("forms"),
    [
        ("painting", "paintings", "painted", "paint", "paints"),
        ("study", "studies", "studied", "studying"),
        ("run", "running", "ran", "runs"),
        ("buy", "bought", "buys", "buying"),
        ("child", "children"),
        ("use", "uses", "used", "using"),
        ("box", "boxes"),
        ("hope", "hoped", "hoping", "hopes"),
    ],
)
def test_inflected_forms_are_one_term(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_unrelated_words_stay_apart() -> None:
    words = [
        "new",
        "news",
        "sing",
        "single",
        "bus",
        "busy",
        "thing",
        "this",
        "class",
        "bed",
        "red",
        "need",
        "king",
        "analysis",
    ]
    assert len({stem(word) for word in words} - {"new"}) >= len(words) - 2
    assert stem("bed") == "bed" and stem("king") == "king" and stem("class") == "class"


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Живим у Чачку, зовем се Ђорђе", "Đorđe"),
        ("Čačak je grad", "cacak"),
        ("Café crème à Orléans", "cafe creme orleans"),
        ("Straße in München", "strasse munchen"),
        ("日本語で話すのが好きです", "日本語"),
        ("東京タワーに行きました", "タワー"),
        ("나는 서울에서 일해요", "서울"),
        ("ฉันชอบดื่มกาแฟ", "กาแฟ"),
        ("हिन्दी में लिखो", "हिन्दी"),
        ("أعيش في القاهرة", "القاهرة"),
        ("Я живу в Москве", "москве"),
        ("Ｆｕｌｌｗｉｄｔｈ ｔｅｘｔ", "fullwidth"),
        ("我最近在看银河补习班这部电影", "银河补习班"),
        ("我养了一只猫", "猫叫什么名字"),
        ("她喜欢弹钢琴", "钢琴"),
        ("部署在绿禾公园旁边", "绿禾"),
    ],
)
def test_what_is_asked_meets_what_is_stored(stored: str, asked: str) -> None:
    assert set(query_terms(asked)) & set(weighted_terms(stored))


@pytest.mark.parametrize(
    "text", ["the of and a", "what is it?", "的了是", "怎么样呢", "为什么没有我们的", "", "   ", "?!…", "__", "。，"]
)
def test_nothing_but_stop_words_is_nothing(text: str) -> None:
    assert terms(text) == []


@pytest.mark.parametrize(
    "text",
    ["on 2 May 2023", "May 2nd, 2023", "May 2, 2023", "2023-05-02", "2023/5/2", "2023年5月2日", "2nd of May, 2023"],
)
def test_a_date_is_one_term_however_it_is_written(text: str) -> None:
    assert {"@5", "@5-2", "@2023-5"} <= set(terms(text))


def test_months_without_a_day() -> None:
    assert "@6" in terms("We met in June")
    assert "@5" in terms("since May")
    assert "@5" not in terms("I may go")
    assert "@2023-7" in terms("July 2023")
    assert date_terms("5月4号") == ["@5", "@5-4"]
    assert date_terms("99/99/2023 and 2023-13-45") == []


def test_numbers_lose_leading_zeros_only() -> None:
    assert set(terms("007 100 3.50")) >= {"7", "100"}
    assert terms("0") == ["0"]


def test_weak_words_are_weak_in_every_form() -> None:
    assert strength(stem("changes")) < 1 and strength(stem("files")) < 1 and strength("喜欢") < 1 and strength("42") < 1
    assert strength(stem("marathons")) == 1.0 and strength("钢琴") == 1.0


def test_rjieba_and_jieba_agree_on_the_chinese_data() -> None:
    pytest.importorskip("rjieba")
    if not CHINESE.exists():
        pytest.skip("../shared/data/memory/memorybank_cn.json is not here")
    jieba = tokenise.jieba_segmenter()
    rjieba = tokenise._segmenter()
    texts = [
        turn[side]
        for user in json.loads(CHINESE.read_text()).values()
        for day in user["history"].values()
        for turn in day
        for side in ("query", "response")
    ]
    runs = [hit.group() for text in texts for hit in tokenise._RUN.finditer(text) if hit.lastgroup == "han"]
    assert len(runs) > 3_000
    assert [run for run in runs if jieba(run) != rjieba(run)] == []


def test_the_dictionary_loads_only_for_chinese() -> None:
    code = (
        "import sys\n"
        "from gateway.memory.tokenise import terms, warm\n"
        "terms('plain English, with a date of 2 May')\n"
        "before = {'jieba', 'rjieba', 'numpy'} & set(sys.modules)\n"
        "warm()\n"
        "print(sorted(before), bool({'jieba', 'rjieba'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[] True"
    assert result.stderr == ""


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_gives_clean_terms(text: str) -> None:
    found = terms(text)
    assert all(term and len(term) <= tokenise.MAX_TERM and not term.isspace() for term in found)
    assert found == terms(text)
    assert set(weighted_terms(text)) == set(query_terms(text)) == set(found)
    assert all(weight > 0 for weight in weighted_terms(text).values())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_folding_is_idempotent(word: str) -> None:
    assert fold(fold(word)) == fold(word)


def test_a_pasted_megabyte_is_bounded() -> None:
    assert len(terms("word " * 400_000)) <= tokenise.MAX_CHARS
