"""Extraction without a model: the user's own sentences, read by patterns.

Used where `memory.model` is null. A sentence that states something about the user or the project becomes a proposal:
a preference where it says how things should be, a relation where its subject has one value at a time (a name, a
city), else a plain fact in the user's own words. Whether it is worth keeping is decided by `filters`, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.memory import cues, directives, keys
from gateway.memory.filters import strip_lead
from gateway.memory.patterns import Pattern
from gateway.memory.proposals import Proposal
from gateway.memory.prose import clauses, language_of, prose, sentences

MAX_PROPOSALS = 40
"""Of one message; a person states a few things at a time, a pasted document hundreds."""

_I = re.IGNORECASE
_END = (
    r"(?=\s*(?:[,;!，。；！]|\.(?!\w)|$|\b(?:and|but|so|because|since|with|where|which|who|for|from|last|now|these "
    r"days|y|und|"
    r"et|i|и|и)\b))"
)
_ZH_END = r"(?=[，。；！、,;!.\s]|$)"

_SINGLE: tuple[tuple[str, Pattern], ...] = tuple(
    (key, Pattern(pattern, flags))
    for key, pattern, flags in (
        ("name", rf"\bmy (?:full |first )?name(?: is|'s)\s+(.{{1,40}}?){_END}", _I),
        ("name",
            rf"\b(?:call me|everyone calls me|people call me|address me as|i go by|i am called|i'm called)\s+"
            rf"(.{{1,40}}?){_END}", _I),
        ("city",
            rf"\b(?:i|we)(?:'ve| have|'m| am|'re| are)?(?: just| recently| now| currently)* (?:live|living|reside|"
            rf"residing|based|located|relocated|settled)(?: now| currently)? (?:in|to)\s+(.{{2,40}}?){_END}", _I),
        ("city", rf"\bi(?:'ve| have)?(?: just| recently| now)* moved to\s+(.{{2,40}}?){_END}", _I),
        ("employer",
            rf"\bi(?:'ve| have|'m| am)?(?: now| currently| just| been)* (?:work|working|employed|joined|worked) ?"
            rf"(?:at|for|by)?\s+(?<=at |or |by )(.{{2,40}}?){_END}", _I),
        ("employer", rf"\bi(?:'ve| have)?(?: just| recently)* joined\s+(.{{2,40}}?){_END}", _I),
        ("role",
            r"\bi(?:'m| am|(?:'ve| have)? (?:been )?work(?:ing)?(?: as)?) (?:now |currently )?(?:as )?an?\s+("
            r"(?:[\w\-/+.]+ ){0,4}?(?:engineer|developer|programmer|manager|teacher|nurse|doctor|student|designer|"
            r"scientist|analyst|architect|lawyer|writer|consultant|researcher|translator|accountant|administrator|"
            r"admin|sysadmin|founder|freelancer|professor|lecturer|physician|surgeon|dentist|pharmacist|journalist|"
            r"editor|photographer|artist|musician|chef|baker|carpenter|electrician|plumber|mechanic|pilot|farmer|"
            r"librarian|economist|statistician|physicist|chemist|biologist|mathematician|psychologist|therapist|"
            r"paramedic|officer|director|lead|tester|contractor|technician|operator|driver|barista|cto|ceo|cfo|pm|"
            r"dba|sre|intern|postdoc))\b", _I),
        ("timezone",
            rf"\bmy time ?zone is\s+(.{{2,40}}?){_END}|\bi(?:'m| am) (?:in|on) (?:the )?((?:utc|gmt)\s?[+-]?\d*|"
            rf"[a-z]+/[a-z_]+|cet|cest|est|edt|pst|pdt|ist|jst|bst)\b", _I),
        ("age", r"\bi(?:'m| am)\s+(\d{1,3})\s+years old\b", _I),
        ("birthday",
            rf"\bmy birthday is\s+(?:on )?(?:the )?(.{{3,40}}?)(?=[.!;,]|$)|\bi was born (?:on|in)\s+"
            rf"(.{{3,40}}?){_END}", _I),
        ("name",
            rf"我(?:的名字)?(?:叫做?|是叫)\s*([^\s，。,.！!的是在]{{1,12}}){_ZH_END}|我的(?:名字|姓名)(?:是|叫)\s*"
            rf"([^\s，。,.！!]{{1,12}})|"
            rf"(?:请叫我|大家都?叫我|称呼我(?:为)?|叫我)\s*([^\s，。,.！!]{{1,12}}){_ZH_END}", 0),
        ("city",
            rf"我(?:们)?(?:现在|目前|一直|全家|已经|去年|今年|前年|刚|最近|上个?月)*(?:住在|定居在?|搬到了?|搬去了?|"
            rf"搬来了?|家住)\s*([^\s，。,.！!；]{{2,16}}?)"
            rf"(?:了|工作)?{_ZH_END}", 0),
        ("employer",
            rf"我(?:现在|目前|一直)*在\s*([^\s，。,.！!；]{{2,16}}?)(?:公司)?(?:工作|上班|任职|就职){_ZH_END}|(?:我|"
            rf"现在)(?:就职于|任职于|入职了?|"
            rf"跳槽到了?)\s*([^\s，。,.！!；]{{2,16}}?)(?:了)?{_ZH_END}|换工作了?[，,]\s*(?:现在)?(?:在|去了)\s*"
            rf"([^\s，。,.！!；]{{2,16}})", 0),
        ("role",
            rf"我(?:现在|目前)?是(?:一名|一个|一位|个|名|做)?\s*([^\s，。,.！!；]{{0,10}}?(?:工程师|程序员|开发者|"
            rf"开发|老师|教师|医生|护士|学生|设计师|经理|律师|"
            rf"会计|作家|记者|翻译|研究员|研究生|架构师|分析师|顾问|司机|厨师|教授|博士生|科学家|运维|创始人|"
            rf"自由职业者|公务员)){_ZH_END}|我(?:在.{{1,10}})?做"
            rf"([^\s，。,.！!；]{{2,8}}(?:师|员|经理|医生|护士|老师|开发|设计|运营))", 0),
        ("timezone", r"我的?时区是?\s*([\w/+:\-]+)|我在((?:东|西)[一二三四五六七八九十]+区)", 0),
        ("age", r"我(?:今年)?([\d一二三四五六七八九十]{1,4})岁", 0),
        ("birthday", rf"我的?生日是?(?:在)?\s*([^\s，。,.！!；]{{3,14}}){_ZH_END}", 0),
        ("name",
            r"(?:私|僕|俺|わたし)の名前は\s*(.{1,20}?)(?:です|だ|といいます)|제 이름은\s*(.{1,20}?)(?:입니다|이에요|"
            r"예요)", 0),
        ("name",
            rf"\b(?:ich heiße|mein name ist|me llamo|mi nombre es|je m'appelle|mon nom est|mi chiamo|meu nome é|eu "
            rf"me chamo|zovem se|moje ime je|ja sam se zvao|nazywam się|меня зовут|зовем се|моје име је)\s+"
            rf"(.{{1,30}}?){_END}", _I),
        ("city",
            rf"\b(?:ich wohne in|ich lebe in|vivo en|j'habite (?:à|en|au)|je vis à|abito a|vivo a|moro em|živim u|"
            rf"mieszkam w|я живу в|живим у)\s+(.{{2,30}}?){_END}", _I),
        ("role",
            rf"\b(?:ich arbeite als|ich bin von beruf|trabajo como|je travaille comme|trabalho como|lavoro come|"
            rf"radim kao|pracuję jako|я работаю|радим као)\s+(.{{2,30}}?){_END}", _I),
    )
)  # fmt: skip

_MY_KEY_RE = Pattern(
    rf"\b(?:my|our)\s+(?:(?:preferred|favou?rite|main|primary|default|current|usual|own)\s+)*"
    rf"([a-z][\w\- ]{{1,28}}?)\s+(?:of choice )?(?:is|are|will be|remains)\s+(?:now |always |still )?"
    rf"(.{{2,60}}?){_END}",
    _I,
)
_MY_KEY_ZH_RE = Pattern(
    rf"(?:我(?:们)?的?|项目的?)(?:首选|主要|默认|常用|最喜欢的?|主力)?(编辑器|操作系统|系统|终端|浏览器|主题|"
    rf"包管理器|数据库|主数据库|编程语言|开发语言|主分支|框架|测试框架|时区|行宽|"
    rf"缩进)(?:用的?是|是|用|叫|设为|改用)\s*([^，。；！]{{1,30}}?){_ZH_END}"
)
_USES_RE = Pattern(
    r"\b(?P<who>i|we|(?:the|our|this|my) (?:[\w\-]+ )?(?:project|team|company|backend|frontend|app|api|service|"
    r"codebase|repo))\s+(?:(?:now|mostly|mainly|always|usually|only|also|still)\s+)*(?:use|uses|am using|are using|"
    r"is using|write mostly|write|run on|runs on)\s+(?P<what>[\w+#./\- ]{1,40}?)(?=\s*(?:[,;!]|\.(?!\w)|$|\b(?:and|"
    r"but|so|"
    r"for|with|to|in|on|as|at|when|because|these|not|from|instead)\b))",
    _I,
)
_USES_ZH_RE = Pattern(
    r"(?P<who>我们?|咱们|(?:这个|本|我们的?|该)?(?:项目|团队|公司|后端|前端|服务))(?:团队|现在|目前|平时|都|主要|"
    r"一般|通常|一直|习惯)*(?:使用|用的是|用|采用|改用)"
    r"(?:了)?\s*(?P<what>[A-Za-z][\w+#./\- ]{0,30}?|[^\s，。；！的来做写了]{2,10}?)(?=\s*(?:[，。；！,.;!]|$|数据库|"
    r"框架|写|来|做|作为|进行|"
    r"部署|语言|编辑器|系统))"
)
_REPLACES_RE = Pattern(
    r"\b(?:switched|migrated|moved|changed|went|converted|ported)(?: over)? from\s+(?P<old>[\w+#.\- ]{1,30}?)\s+"
    r"(?:over )?to\s+(?P<new>[\w+#.\- ]{1,30}?)(?=\s*(?:[,;!]|\.(?!\w)|$|\b(?:last|this|in|for|and|because|a|now)\b))"
    r"|(?:从)\s*(?P<old_zh>[^\s，。]{1,20}?)\s*(?:迁移|切换|换|转|改)(?:到了?|成了?|为了?|用了?)\s*"
    r"(?P<new_zh>[^\s，。了]{1,20})"
    r"|\b(?:use|using|with|chose|adopt(?:ed)?|picked)\s+(?P<new2>[\w+#.\-]{1,30}) instead of (?P<old2>[\w+#.\-]{1,30})"
    r"|用\s*(?P<new2_zh>[^\s，。]{1,20}?)\s*(?:代替|取代|替换|替代)了?\s*(?P<old2_zh>[^\s，。了]{1,20})",
    _I,
)
_OVER_RE = Pattern(
    r"\b(?:prefer|rather (?:have|use)|like|favou?r)\w*\s+(?P<a>.{1,60}?)\s+(?:over|rather than|instead of|more than|"
    r"to|than)\s+(?P<b>.{1,60}?)(?=[.,;!]|$)|(?P<a_zh>[^，。]{1,20}?)而不是(?P<b_zh>[^，。]{1,20})",
    _I,
)
_LIKES_RE = Pattern(
    r"\b(?:i|we)(?:'d| would)?(?: \w+ly| really| much| also| always| do| don't| do not| never)* (?P<verb>prefer|"
    r"like|love|enjoy|hate|dislike|detest|can't stand|adore|want|rather|favou?r)\b\s*(?P<what>.{2,120}?)(?=[.;!]|$)"
    r"|我(?:们)?(?:很|更|最|比较|非常|特别|不太?|也|还|平时|都|从来不|一直|不怎么|超级?|挺)*(?P<verb_zh>喜欢|偏好|"
    r"偏爱|讨厌|不喜欢|爱|热爱|倾向于?|习惯|受不了|反感)"
    r"(?P<what_zh>[^。！；]{1,80})"
    r"|\b(?:ich (?:bevorzuge|mag|hasse)|prefiero|me gusta|odio|je préfère|j'aime|je déteste|prefiro|gosto de|"
    r"preferisco|više volim|volim|ne volim|wolę|lubię|предпочитаю|люблю|више волим|волим)\s+(?P<what_xx>.{2,120}?)"
    r"(?=[.;!]|$)"
    r"|(?P<what_ja>[^。、]{2,60}?)(?:が好き|が嫌い|を好み|の方が好き)",
    _I,
)
_NEGATIVE_RE = Pattern(
    r"\b(?:don't|do not|never|hate|dislike|detest|can't stand|not|no longer|ne|odio|hasse|déteste)\b|不|讨厌|反感|"
    r"受不了|嫌い",
    _I,
)


def extract_rules(text: str) -> list[Proposal]:
    """Proposals from one message's text, in order, at most `MAX_PROPOSALS`. Pastes are skipped and long input
    is bounded (`prose`).
    """
    found: list[Proposal] = []
    for sentence in sentences(prose(text)):
        found.extend(_read(sentence))
        if len(found) >= MAX_PROPOSALS:
            break
    return found[:MAX_PROPOSALS]


def _read(sentence: str) -> list[Proposal]:
    """The proposals of one sentence. Of a question or request that starts with a statement, only the statement
    is read.
    """
    body, explicit = strip_lead(sentence)
    if cues.is_question(body) or (directives.is_task(body) and not directives.is_injection(body)):
        lead = _statement(body)
        if not lead:
            return []
        body = lead
    language = language_of(body)
    proposals = list(_single(body, language))
    if not proposals:
        proposal = _preference(body, language) or _relation(body, language)
        if proposal is None and (explicit or _states(body)):
            proposal = Proposal("fact", body, language=language)
        proposals = [proposal] if proposal else []
    return proposals


def _states(sentence: str) -> bool:
    return (
        cues.is_about_us(sentence)
        or directives.is_standing(sentence)
        or directives.is_decision(sentence)
        or directives.is_injection(sentence)
    )


def _statement(sentence: str) -> str:
    """The leading clauses of a mixed sentence that state something about the user, joined; "" where there are none."""
    parts = re.split(
        r"[,，;；]\s*|\s+(?:so|and|but)\s+(?=(?:can|could|would|please|what|how|do|is|should)\b)", sentence
    )
    kept: list[str] = []
    for part in parts[:-1] if len(parts) > 1 else []:
        if cues.is_question(part) or directives.is_directive(part) or not cues.is_about_us(part):
            break
        kept.append(part)
    return ("，" if re.search(r"[一-鿿]", sentence) else ", ").join(kept)


def _single(sentence: str, language: str) -> Iterator[Proposal]:
    """Relations of which one value holds at a time. The first carries the whole sentence, further ones their clause."""
    seen: set[str] = set()
    if _negated_self(sentence):
        return
    for key, pattern in _SINGLE:
        match = pattern.search(sentence)
        value = next((g for g in match.groups() if g), "").strip(" '\"“”") if match else ""
        if not match or not value or key in seen:
            continue
        if key == "employer" and re.match(r"(?:an?|my|this|some) |一[家个所]", value, _I):
            continue
        if key == "city" and (keys.class_of(value) or not _place(value)):
            continue
        content = sentence if not seen else _clause_of(sentence, match)
        seen.add(key)
        yield Proposal(
            "relation", content, key=key, value=value, subject="user", predicate=key, object=value, language=language
        )


def _negated_self(sentence: str) -> bool:
    return (
        re.search(
            r"\b(?:i|we)(?: am|'m| do| did|'ve| have)? (?:not|don't|didn't|no longer|never)\b|我(?:们)?(?:不|没)",
            sentence,
            _I,
        )
        is not None
    )


def _place(value: str) -> bool:
    """A place's name starts with a capital where the script has them; `a small flat` is not one."""
    return not value[0].isascii() or value[0].isupper()


def _clause_of(sentence: str, match: re.Match[str]) -> str:
    return next((part for part in clauses(sentence) if match.group(0)[:12].strip() in part), match.group(0)).strip()


def _preference(sentence: str, language: str) -> Proposal | None:
    topic = keys.topic_of(sentence)
    standing = directives.is_standing(sentence) and directives.is_directive(sentence)
    likes = _LIKES_RE.search(sentence)
    if topic and (
        standing or likes or re.search(r"\b(?:use|uses|convention|indent|format|style)\w*\b|用|规范|约定", sentence, _I)
    ):
        value = keys.topic_value(topic, sentence) or sentence
        return Proposal("preference", sentence, key=topic, value=value, language=language)
    if likes:
        return _liking(sentence, likes, language)
    if standing:
        return Proposal("preference", sentence, key=keys.slug(sentence)[:60], value=sentence, language=language)
    return None


def _liking(sentence: str, likes: re.Match[str], language: str) -> Proposal:
    what = next(
        (likes.group(name) for name in ("what", "what_zh", "what_xx", "what_ja") if likes.group(name)), ""
    ).strip()
    over = _OVER_RE.search(sentence)
    a, b = (over.group("a") or over.group("a_zh"), over.group("b") or over.group("b_zh")) if over else ("", "")
    if a and b:
        key = "choice:" + "|".join(sorted((keys.slug(a), keys.slug(b))))
        return Proposal("preference", sentence, key=key, value=a.strip(), language=language)
    if (kind := keys.class_of(what)) and not _NEGATIVE_RE.search(sentence):
        return Proposal("preference", sentence, key=kind, value=what, language=language)
    value = ("not " if _NEGATIVE_RE.search(sentence) else "") + what
    return Proposal("preference", sentence, key="like:" + keys.slug(what)[:60], value=value, language=language)


def _relation(sentence: str, language: str) -> Proposal | None:
    """Uses, moves from one thing to another, and `my X is Y`."""
    if moved := _REPLACES_RE.search(sentence):
        group = moved.groupdict()
        old = next((group[name] for name in ("old", "old_zh", "old2", "old2_zh") if group[name]), "").strip(" .")
        new = next((group[name] for name in ("new", "new_zh", "new2", "new2_zh") if group[name]), "").strip(" .")
        who = "user" if re.search(r"\bi\b|我(?!们)", sentence, _I) else "project"
        key = keys.class_of(new)
        return Proposal(
            "relation",
            sentence,
            key=key,
            value=new,
            subject=who,
            predicate=key or "uses",
            object=new,
            language=language,
            replaces=old,
        )
    if _NEGATIVE_RE.search(sentence):
        return None
    if (mine := _MY_KEY_RE.search(sentence) or _MY_KEY_ZH_RE.search(sentence)) and (
        key := keys.canonical_key(mine.group(1), mine.group(2))
    ) in keys.SINGLE_VALUED:
        value = mine.group(2).strip()
        who = "project" if re.match(r"our|项目|我们", mine.group(0), _I) else "user"
        return Proposal(
            "relation", sentence, key=key, value=value, subject=who, predicate=key, object=value, language=language
        )
    if uses := _USES_RE.search(sentence) or _USES_ZH_RE.search(sentence):
        what = uses.group("what").strip()
        who = "user" if uses.group("who").lower() in ("i", "我") else "project"
        key = keys.class_of(what)
        return Proposal(
            "relation",
            sentence,
            key=key,
            value=what,
            subject=who,
            predicate=key or "uses",
            object=what,
            language=language,
        )
    return None
