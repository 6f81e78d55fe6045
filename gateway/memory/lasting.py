"""Whether a plain statement has the form of something that will still be true next month.

Most of what people type about "my container" or "the cache" is a report of the moment, in the present tense like any
lasting fact. What tells them apart is the verb and its complement: *is hosted on*, *uses*, *is a nurse*, *never
leaves* last; *exits*, *is empty*, *hurts* do not. So a plain fact must match one of these forms; preferences,
decisions and standing requests have their own (`directives`).
"""

from __future__ import annotations

import re

from gateway.memory.patterns import Pattern
from gateway.memory.prose import word_set

_I = re.IGNORECASE

_ADVERBS = (
    r"(?:\s+(?:also|always|usually|often|mostly|mainly|generally|normally|sometimes|never|rarely|only|still|now|"
    r"really|currently|originally|actually|both|all|do|does|don't|do not|doesn't|does not|"
    r"no longer|not|just|\w+ly|and my \w+(?: \w+)?))*"
)
_FIRST = r"\b(?:i|we|(?:the )?users?|everyone (?:on|in) (?:my|our) \w+|half of us|most of us|you can)"

_PASSING_VERBS = word_set(
    "get gets see sees feel feels hear hears notice notices mean means hope hopes need needs want wants "
    "appreciate understand agree agrees disagree wonder guess doubt know knows remember recall forget expect "
    "assume apologize apologise promise look looks sound seem think thinks believe suspect suppose wish ask "
    "asks find finds can can't cannot could couldn't will won't would wouldn't should shouldn't may might had "
    "hadn't did didn't went was wasn't were weren't slept ate drank drove flew woke met spoke heard knew paid "
    "stood sat fell threw caught bought held sent got saw found made took gave broke lost forgot said thought "
    "done put hit ran spent came felt told read tried cut swam rode sang drew wrote shut hurt hurts ache "
    "aches try tries see start give gives keep come comes owe admit swear bet am is are have has and or but "
    "to the a in on at of for with it that this which who if as so be been being haven't hasn't isn't aren't "
    "ain't please too there here then let lets confirm accept authorize clicks click presses enters submits selects "
    "types taps scrolls "
    "receives logs request requested requests asked wait "
)
"""Verbs in the first person that report the moment, a wish or a thought; and words that are no verb at all."""

_STATE = (
    r"(?!(?:an? )?(?:bit|little|lot|while|few|hurry|rush|mess|break|call|meeting|tired|hungry|thirsty|busy|ready|"
    r"sure|unsure|sorry|stuck|confused|back|glad|happy|sad|curious|late|early|done|finished|fine|ok|okay|good|"
    r"great|well|here|there|lost|afk|aware|able|unable|available|away|bored|angry|annoyed|upset|frustrated|"
    r"disappointed|excited|worried|nervous|stressed|exhausted|sleepy|sick|ill|cold|hot|free|home|out|off|offline|"
    r"online|"
    r"almost|nearly|about|close|certain|convinced|positive|afraid that|grateful|thankful|impressed|surprised|amazed|"
    r"puzzled|lucky|wrong|right|correct|fed up|at (?:the|home|work|my|a)|on (?:a call|vacation|holiday|leave|sick|"
    r"the|my|hold|line|it|branch|step)|"
    r"in (?:a|an|the (?:middle|office|car|process)|trouble|line|town)|so|too|very|just|like|as|with you|done|going|"
    r"getting|trying|hoping|calling|asking|wondering|looking|waiting|having|seeing|up (?:to|for)|down|open to|under|"
    r"over|behind|near|next|"
    r"thinking|planning|considering|debugging|testing|fixing|reading|doing|facing|not (?:sure|convinced|certain|"
    r"able|ready|happy|done|interested))\b)"
    r"(?:\w+ing (?:as|at|for|in|on|with|to) |(?:living|studying|learning|training|using|teaching|running an?|"
    r"renting|raising|building|developing|migrating|maintaining|leading|managing|pursuing|majoring|writing an?|"
    r"programming)\b|(?!\w+ing\b)\w)"
)
_PART = (
    r"(?:called|named|based|written|hosted|deployed|stored|managed|kept|versioned|generated|served|published|built|"
    r"scheduled|owned|maintained|pushed|collected|wrapped|run|split|cached|logged|encrypted|"
    r"used|read-only|required|supported|available|forbidden|allowed|mandatory|banned|located|licensed|limited|"
    r"protected|reviewed|handled|shipped|formatted|validated|rotated|pinned|tagged|sent|backed|known|"
    r"powered|exposed|organi[sz]ed|documented|tested with|monitored|billed|paid|measured|represented|held|due|"
    r"open[- ]source|closed[- ]source|multi-?tenant|single-?tenant|case-sensitive|immutable|append-only|"
    r"soft-deleted)"
)
_SLOT = (
    r"(?:favou?rite|preferred|main|primary|default|usual|native|first|go-to|own|current)?[\w' \-]{0,30}?(?:name|"
    r"nickname|username|handle|pronouns|editor|ide|language|shell|os|operating system|time ?zone|birthday|hobby|"
    r"hobbies|job|role|title|"
    r"profession|diet|blood type|tongue|address|goal|budget|deadline|stack|database|db|framework|linter|formatter|"
    r"branch|port|convention|style|rule|policy|region|provider|customers?|clients?|users|"
    r"band|movie|film|book|author|food|dish|colou?r|sport|team|game|drink|animal|song|artist|place|subject|genre|"
    r"keyboard|layout|browser|phone|laptop|car|employer|company|startup|school|university|major|"
    r"package manager|test runner|bundler|license|currency|theme|font|convention|entry point|fiscal year|sprint "
    r"length|retention|minimum \w+|maximum \w+|version of \w+)"
)
_THIRD = (
    r"(?:uses|runs (?:on|in|at|with|every|inside|under|behind|as|our|my)|lives|works? (?:as|at|for|with|in|on|from|"
    r"remotely|part|full|night)|listens|depends|requires|needs (?:an?|the|at least|two|access)|supports|targets|"
    r"owns|reviews|handles|"
    r"talks to|starts (?:at|in|on|with|every)|ends (?:in|on|at)|meets|sells|ships|caches|tracks|has (?:an?|about|"
    r"around|no|over|its|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|many|\d)|contains|"
    r"consists|follows|manages|maintains|leads|insists|stores|keeps our|logs (?:to|in)|writes|"
    r"speaks|teaches|studies|goes through|sits (?:behind|on|in)|belongs|exposes|serves|consumes|publishes|deploys|"
    r"enforces|expires|must|happens|takes? place|plays|provides|promises|allows|forbids|comes from|communicates|"
    r"signs off|reports to|authenticates|is (?:only|never|always)|are (?:only|never|always)|connects to|reads from|"
    r"writes to|polls|syncs|accepts|rejects|rate-limits|covers|never \w+|always \w+|cannot be|can only|can't be|"
    r"lasts|costs|closes|opens at)"
)
_PLURAL = (
    r"\b(?:all|our|my|both|the|most)(?: of our)? (?:[\w\-]+ ){0,3}\w+(?:s|people|data) (?:use|run|live|depend|"
    r"require|support|target|own|talk|handle|go through|come from|need to|have|cover|meet|start|store|share|"
    r"follow|speak|work|communicate|connect|expire|ship|read from|write to|must|never|always|cannot|can only|stay|"
    r"belong|report to)\b"
)
_ENGLISH = Pattern(
    "|".join(
        (
            rf"{_FIRST}(?:'m| am|'re| are| is|'ve been| have been| has been){_ADVERBS}\s+{_STATE}",
            rf"\b(?:my|our|(?:the )?user's)\s+{_SLOT}(?: (?:on|at|in|for) \w+)?(?:(?:'s| is| are)(?!{_ADVERBS} "
            rf"(?:out|down|full|slow|broken|empty|too|so|very|super|really|quite|pretty|stuck|corrupt\w*|missing|"
            rf"wrong|gone|failing|\w+ing\b|almost|again|offline|unavailable|late|due|red|green|up|back|ready|done|"
            rf"fine|dirty|locked|lost|unstable|flaky|down|huge|acting)\b)| will be| remains| starts| changed)\b",
            rf"\b(?:my|our|the|all|every|each|both|user's|(?-i:[A-Z])[\w\-]*)\s*(?:[\w'\-/]+,?\s+){{0,6}}?(?:is|are|"
            rf"'s){_ADVERBS}\s+(?:an? (?!bit|little|mess|problem|bug|typo|issue)|{_PART}\b|the\b|our\b|my\b|(?:in|"
            rf"on|at|from|under|via|behind|per) (?:the )?(?-i:[A-Z0-9])|(?-i:[A-Z][\w+#.\-]+)|\d|called|\w+ years? "
            rf"old)",
            rf"\b(?:{_THIRD})\b|{_PLURAL}",
            r"\b(?:for|over|since) (?:\w+ ){1,3}(?:years|decades)\b|\bsince (?:19|20)\d\d\b",
            r"\b(?:is|isn't|are|aren't|is not|are not) (?:my|our) (?!fault|problem|turn|issue|question|point)\w+",
            r"\b(?:i|users?)(?:'ve got| have| has|'ve) (?:\w+ ){0,4}?(?:called|named|kids?|child(?:ren)?|sons?|"
            r"daughters?|dogs?|cats?|pets?|degrees?|phd|masters?|brothers?|sisters?|siblings|wife|husband|partner|"
            r"family|company|house|garden|allerg\w+|asthma|diabetes|dyslexia|migraines?|background|experience|"
            r"licen[cs]e|employees|cars?|bike|horses?|piano|citizenship|passports?|(?-i:[A-Z]{2,}))\b",
            r"\bwe(?: have|'ve got) (?:an? |about |around |over |no |two |three |four |five |\d)",
            r"\bmy (?:\w+ )?(?:son|daughter|wife|husband|partner|kids?|children|mother|father|mom|mum|dad|parents|"
            r"brother|sister|twins?|grand\w+|cat|dog|fianc\w+|boss|manager|girlfriend|boyfriend)s?\b(?! (?:is|was|"
            r"are) (?:sick|ill|crying|asleep|here|late|tired|waiting))",
            r"\b(?:can't|cannot|can not) stand\b",
            rf"^\W*(?:[\w\-]+ )?{_PART}\b|\b(?:is|are|gets?|be) (?:\w+ly )?{_PART} (?:in|as|with|by|on|at|to|via|"
            rf"using|through|under|from|every|after|before)\b",
            r"\b(?:every (?!run\b|time\b|call\b|request i)\w+|on (?:weekends|weekdays|\w+days)|usually|typically|by "
            r"default|never|always|as a rule|no exceptions|no longer|twice a \w+|once a \w+|in my (?:free|spare) "
            r"time|each \w+day)\b",
            r"\b(?:nightly|hourly|daily|weekly|monthly|yearly|annually|quarterly)\b|\b(?:replaced|renamed|"
            r"deprecated|dropped|abandoned|ditched|swapped) (?!the|this|that|it|those|these)\w+|\b(?:is|are) "
            r"(?:responsible|in charge|accountable)\b",
            r"\b(?:our|all|both|most)(?: of our)? (?:\w+ ){0,2}\w+s (?!are|were|was|is|have|had|fail|crash|break|"
            r"keep|look|seem|don't|didn't|did|do|hang|take|time|and|or|of|in|on|at|with|that|which|to|for|from|can|"
            r"could|will|would|should|may|might|need|got|went|got|just)\w+(?<!ed)(?<!ing)\b",
            r"\b(?:switched|migrated|moved (?:to|from|here)|has moved|changed jobs|joined|agreed|decided|settled on|"
            r"retired|graduated|majored|was born|grew up|adopted|became|got married|started (?:working|a|my|at)|"
            r"founded|relocated|standardi[sz]ed|going with|went with|dropped|studied|quit|stopped \w+ing|gave up|"
            r"used \w+ (?:for|since))\b",
            r"\b(?:name|names|deadline|project|stack|team|company|timezone|location|language|editor|os|budget|email|"
            r"e-mail|phone|role|database|db)\s*:\s*\S",
            r"\b(?:i|we)(?: can(?:not|'t)?| could not) (?:\w+ly )?(?:speak|eat|drive|swim|read|play|cook|drink|have "
            r"dairy|only|hear|smell)\b|\bi(?:'d|'ll)? (?:rather|prefer)\b|\bi(?:'d| would) (?:appreciate|prefer|"
            r"rather)\b|\bi(?:'d| would) (?:like|love) (?:\w+ )?(?:answers?|replies|responses|code|explanations?|"
            r"dates|prices)\b|\bi want (?:all|every|my|dates?|prices?|units?|code|answers?|replies|short|long)\b",
        )
    ),
    _I,
)  # fmt: skip
_VERB_RE = Pattern(rf"{_FIRST}(?:'ve)?{_ADVERBS}\s+([\w']+)", _I)

_CHINESE = Pattern(
    r"(?:我们?|咱们?|用户|本人)(?!.{0,6}(?:(?<![主需重])要|想|得|该|能不能))[^，。；]{0,10}?(?:叫|姓|住|来自|工作|"
    r"上班|任职|就职|养|会说|说.{1,3}[语话]|用|"
    r"采用|喜欢|爱|讨厌|习惯|偏好|倾向|反感|毕业|出生|长大|做(?!不)|从事|当(?!然|时|前|成|作|下)|戴|骑|玩(?!不)|弹|"
    r"练|种|收集|攒|负责|读(?:博|研|书|大|小|中|高)|学(?!不)|"
    r"写(?!不)|过敏|患|戒|信|吃|喝|听力|视力|按|教|大多|多数|主要|住了|素食|结婚|离婚|怀孕|退休|定居|搬|换工作|换成|"
    r"改用|迁移|切换|决定|商量好|约定|入职|跳槽|创业|创办|维护|带|管理|教|"
    r"擅长|不吃|不喝|不抽|不能吃|不用|不写|不接受|不支持|支持|依赖|部署|托管|规定|只)"
    r"|(?:我们?|咱们?|用户|本人)(?:今年|已经|也|都|就|还|确实|其实|现在|目前|大学|以前|一直|从小|退休前|的)?(?:"
    r"(?<![老总还但可于])是(?!说|想|不是|不|要|来|怎么|因为|刚|"
    r"在[^北上广深]|我的问题)|有(?![^，。]{0,10}(?:问题|bug|疑|错误|点|没有|时间|空|事|急))|不耐受)"
    r"|我(?:的|们的)?[^，。；]{0,12}?(?:是(?!空|坏|错|红|不|没|怎|不是|想|要|因为|一样)|叫|姓|有(?:糖尿病|高血压|"
    r"[\d一二两三四五六七八九十几]|[^，。]{0,4}病)|在"
    r"(?:[^，。]{1,12}(?:工作|上班|读|上学|上小学|上中学|上大学|机房|云|服务器|区))|不耐受|岁)"
    r"|(?:项目|仓库|团队|公司|后端|前端|数据库?|接口|服务|环境|生产|线上|分支|代码|日志|缓存|登录|认证|鉴权|端口|"
    r"发布|上线|命名|缩进|主键|表|集群|服务器|框架|应用|系统|规范|模块|脚本|"
    r"文件|金额|价格|密码|密钥|时间|日期|订单|用户|配置|文档|合并请求|提交|构建|测试|负责人|流程)[^，。；]{0,14}?"
    r"(?:是(?!空|坏|错|红|不|没|怎|正常)|叫|用(?!不)|使用|采用|使|"
    r"在(?!报|卡|跑|重启|等)|由|部署|托管|依赖|支持|必须|统一|一律|不能|禁止|只|每|放在|存|保留|返回(?!了)|监听|"
    r"大约|大概有|有[\d一二两三四五六七八九十几]|不超过|最多|至少|默认|遵循|"
    r"基于|需要(?!改|修|重启)|写的|规定|负责|开源|分为|包含|大多|多数|按|都)"
    r"|每(?!次)[天周月年晚早个隔逢季]|平时|通常|经常|一般|从来|一直(?!失败|报|卡|不行|转)|从小|年了|多年|规定|始终|"
    r"统一|一律|决定|改用|迁移到|切换到|不再(?!报)|由.{1,8}(?:负责|"
    r"维护|管理)|都(?:写成|按|存|用)|负责(?!人?吗)|最喜欢|[\d一二两三四五六七八九十]+岁|(?:名叫|叫做|母语|生日|时区|"
    r"星座|血型|爱好|职业|姓名|昵称|邮箱|网名|端口)(?:是|叫|为|：|"
    r":)?",
)
_CJK = Pattern(r"[㐀-鿿]")
_KANA_HANGUL = Pattern(r"[぀-ヿ가-힯]")


def is_lasting(sentence: str, language: str) -> bool:
    """Whether a plain statement in `language` (ISO 639-1) has a lasting form. Languages without forms here are
    taken at their word.
    """
    if _KANA_HANGUL.search(sentence):
        return True
    if _CJK.search(sentence):
        return _CHINESE.search(sentence) is not None
    if language != "en":
        return True
    if _ENGLISH.search(sentence):
        return True
    return any(
        (verb := match.group(1).lower()) not in _PASSING_VERBS and not verb.endswith(("ed", "ing", "n't", "'ll", "'d"))
        for match in _VERB_RE.finditer(sentence)
    )
