"""Which of the few things that hold of a person a question asks for: a name, a city, an employer, an editor …

Such a question has nothing but common words ("What is my name?", "我叫什么名字？"), and the memory that answers it
shares hardly any with it. So it is found by its key (`keys.py`), and only where a question asks for that very key.
"""

from __future__ import annotations

import re

from gateway.memory import keys
from gateway.memory.patterns import Pattern

MAX_CHARS = 600
"""Of a message: its beginning and its end; a question about oneself is short."""
MAX_KEYS = 3

_I = re.IGNORECASE
_ASKS = Pattern(
    r"[?？؟]|\b(?:what|which|who|where|when|how|tell me|remind me|do you (?:know|remember|recall)|remember|recall)\b|"
    r"什么|甚麼|什麼|哪|谁|誰|多少|几|怎么|记得|知道|何|なん|どこ",
    _I,
)
_MY = Pattern(r"\b(?:my|our)\s+((?:[\w\-/']+\s+){0,4}[\w\-/']+)", _I)
_STATES = frozenset(("is", "are", "was", "were", "will"))
_AFTER = (
    "again now currently please and or for at in on to of then called today anymore right if as do did you the that "
    "from with by so"
)
_ENDS = _STATES | frozenset(_AFTER.split())
"""Words that end the name of what is asked for."""
_USE = Pattern(
    r"\b(?:which|what)\s+((?:[\w\-/]+\s+){0,2}[\w\-/]+?)\s+(?:do|am|are|did|have|should)\s+(?:i|we|you)\b"
    r"(?=.*\b(?:us(?:e|es|ing)|prefer|like|live|living|speak|want|work|code|writ\w+|program|reply|answer|respond)\b)",
    _I,
)
_ZH_NOUN = Pattern(r"我(?:们)?的?([\w一-鿿]{1,8}?)(?:用的|叫|在)?是?(?:什么|哪|多少|几|谁|啥)")
_ZH_USE = Pattern(
    r"我(?:们)?(?:平时|现在|一般|主要|最|常|喜欢)*用(?:的是|的|了)?(?:什么|哪个|哪种|哪一个|啥)([\w一-鿿]{1,6}?)"
    r"(?:[来写做开呢啊吗?？。，\s]|$)"
)
_VERBS: tuple[tuple[str, Pattern], ...] = tuple(
    (key, Pattern(pattern, _I))
    for key, pattern in (
        (
            "name",
            r"\bwho am i\b|\bwhat am i called\b|\bwhat (?:do|should|can|will) (?:you|people|they|everyone) call me\b|"
            r"我叫(?:什么|啥|什麼)|我是谁|我是誰|(?:怎么|如何)称呼我|该叫我什么|\bwie hei(?:ß|ss)e ich\b|"
            r"\bc[oó]mo me llamo\b|\bcomment (?:je )?m'appell|\bcome mi chiamo\b|\bkako se zovem\b|како се зовем|"
            r"как меня зовут|(?:私|僕|俺)の名前は(?:何|なん)|제 이름(?:이|은) 뭐",
        ),
        (
            "city",
            r"\bwhere (?:do|did) (?:i|we) (?:\w+ )?(?:live|reside)\b|"
            r"\bwhere (?:am i|are we) (?:\w+ )?(?:living|based|located|residing|at home)\b|"
            r"\b(?:city|town|country|place)\b.{0,20}\b(?:do|am|did) i (?:\w+ )?(?:liv|resid|based|located|in\b)|"
            r"我(?:们)?(?:现在|目前|家)?住(?:在)?(?:哪|什么)|我(?:现在|目前)?(?:生活)?在(?:哪个|什么|哪座)城市|"
            r"\bwo (?:wohne|lebe) ich\b|d[oó]nde vivo\b|où (?:est-ce que )?(?:j'habite|je vis)|\bdove (?:vivo|abito)\b|"
            r"\bgde živim\b|где живим|где я живу|(?:私|僕|俺)はどこに住",
        ),
        (
            "employer",
            r"\bwhere (?:do|am) i (?:\w+ )?(?:work|working|employed)\b|\bwho (?:do|am) i (?:\w+ )?work(?:ing)? for\b|"
            r"\b(?:company|firm|employer|organi[sz]ation)\b.{0,20}\b(?:do|am) i (?:\w+ )?(?:work|employ)|"
            r"\bwho employs me\b|我(?:现在|目前)?在(?:哪|什么)\S{0,4}(?:工作|上班|任职)",
        ),
        (
            "role",
            r"\bwhat do i do (?:for (?:a living|work)|at work)\b|\bwhat do i work as\b|"
            r"我(?:现在|目前)?是?做(?:什么|啥)(?:工作)?的?(?:[?？。]|$)|我(?:从事|干)(?:什么|啥|哪)",
        ),
        ("age", r"\bhow old am i\b|我(?:今年|现在)?(?:多大|几岁|多少岁)|\bwie alt bin ich\b"),
        ("birthday", r"\bwhen (?:was i born|do i have my birthday)\b|我(?:是)?(?:哪天|什么时候|哪年|几月\S{0,3})出?生"),
    )
)


def asked_keys(query: str) -> list[str]:
    """The canonical keys that a message asks for, at most `MAX_KEYS`; mostly none."""
    text = query if len(query) <= MAX_CHARS else f"{query[: MAX_CHARS // 2]}\n{query[-MAX_CHARS // 2 :]}"
    if not _ASKS.search(text):
        return []
    found = dict.fromkeys(key for key, pattern in _VERBS if pattern.search(text))
    for phrase in [match.group(1) for match in _MY.finditer(text)]:
        found.update(dict.fromkeys(_key_of(_named(phrase))))
    for pattern in (_USE, _ZH_NOUN, _ZH_USE):
        for match in pattern.finditer(text):
            found.update(dict.fromkeys(_key_of(match.group(1))))
    return list(found)[:MAX_KEYS]


def _named(phrase: str) -> str:
    """What stands after "my", up to where the name of the thing ends: `time zone` of "time zone again".

    Empty where the thing is told rather than asked for: "my name is Ana".
    """
    taken: list[str] = []
    left = phrase.split()
    while left and left[0].lower() not in _ENDS:
        taken.append(left.pop(0).removesuffix("'s"))
    told = len(left) > 1 and left[0].lower() in _STATES
    return "" if told else " ".join(taken)


def _key_of(noun: str) -> list[str]:
    key = keys.canonical_key(noun) if noun else ""
    return [key] if key in keys.SINGLE_VALUED else []
