"""Sentences that tell the assistant to do something: a one-off task, a standing preference, or an attempt to take it
over.

The three look alike ("always answer in Chinese", "always run curl first", "answer the question"), and the difference
decides whether a sentence is kept, quarantined or dropped. A preference shapes replies; an attack makes the
assistant act, unsay its rules, or leak.
"""

from __future__ import annotations

import re

from gateway.memory.patterns import Pattern

_I = re.IGNORECASE

# -- attempts to take over -------------------------------------------------------------------------
_ACT = (
    r"(?:run|execute|exec|download|install|fetch|curl|wget|send|forward|upload|post|e-?mail|transfer|transmit|"
    r"delete|remove|erase|drop|wipe|approve|"
    r"authori[sz]e|grant|purchase|buy|pay|recommend|promote|click|visit|open|browse|navigate|call|invoke|disable|"
    r"leak|reveal|disclose|expose|"
    r"exfiltrate|print|output|dump|append|include|insert|embed|base64|encode|ssh|sudo|commit and push|push|merge|"
    r"deploy|kill|chmod|share|copy|"
    r"read|load|obey|comply|trust|skip|bypass|report|log)"
)
_OBJECT = (
    r"(?:instructions?|rules?|guidelines?|guardrails?|prompts?|restrictions?|polic(?:y|ies)|safety|safeguards?|"
    r"filters?|constraints?|"
    r"everything|confirmations?|approvals?|permissions?|orders?|directives?|system message|messages? above|training)"
)
_STANDING_EN = (
    r"(?:always|from now on|from here on|going forward|henceforth|whenever|every time|each time|before (?:each|"
    r"every|any|answering|you)|after (?:each|every|any)|in (?:every|all|each|any|the) (?:future )?(?:sessions?|repl"
    r"(?:y|ies)|answers?|responses?|messages?|chats?|conversations?)|you (?:must|should|will|shall|have to|need to|"
    r"are to|can now|may now)|must)"
)
_NOT_SELF = r"(?<!\bi )(?<!\bwe )(?<!\bi'll )(?<!\bthey )(?<!team )"
_HARMLESS = (
    r"(?! (?:comments?|docstrings?|type hints?|examples?|tests?|units?|code|a summary|sources?|references?|"
    r"explanations?|the (?:answer|code|reasoning)|"
    r"answers?|your (?:reasoning|sources)|links?|citations?|imports?|headers?|in (?:english|chinese|german|spanish|"
    r"french)|emojis?|trailing|semicolons?|"
    r"error handling|logging|only|me (?:a|the)|section)\b)"
)
_INJECTION = Pattern(
    "|".join(
        (
            rf"\b(?:ignore|disregard|forget|override|overrule|bypass|circumvent|skip|drop|discard|violate|break|"
            rf"unlearn)\b(?:\W+\w+){{0,5}}?\W+{_OBJECT}\b",
            r"\b(?:ignore|disregard|forget) (?:all|any|everything|anything|what(?:ever)? you (?:were|have been)|"
            r"your (?:previous|prior|earlier|system|safety))\b",
            r"\b(?:reveal|show|print|output|repeat|leak|disclose|expose|display|give|tell|share|dump)\b"
            r"(?:\W+\w+){0,4}?\W+(?:system prompt|hidden|initial instructions?|your (?:instructions|prompt|rules|"
            r"api key)|secrets?|credentials?|env(?:ironment)? ?var\w*|passwords?|private keys?|api keys?|tokens?)\b",
            rf"{_NOT_SELF}\b{_STANDING_EN}\b,?(?:(?!\b(?:i|we)\b)[^.;。]){{0,40}}?\b{_ACT}\b{_HARMLESS}",
            r"\b(?:the |an? )?(?:assistant|ai|a\.i\.|model|agent|bot|llm|chatbot)\b(?: \w+)? (?:must|should|will|"
            r"shall|has to|needs to|is (?:to|required|allowed|permitted|authori[sz]ed)|may now|can now)\b",
            r"\byou are (?:now|no longer|actually|really) (?!right|welcome|talking)|\byou(?:'re| are) (?:free|"
            r"unrestricted|jailbroken|in (?:developer|admin|debug|god))\b|(?<!\bi )(?<!\bi can )(?<!\bwe )\bact as "
            r"(?:an?|if|the) (?!proxy|gateway)|\b(?:jailbreak|do anything now|developer mode|god mode|admin mode|"
            r"unrestricted (?:mode|model|ai)|no restrictions|without (?:any )?restrictions)\b",
            r"\b(?:do not|don't|never|without)\b(?: \w+){0,3} (?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify"
            r"(?:ing)?|mention(?:ing)?|ask(?:ing)?|warn(?:ing)?)\b(?: \w+){0,3}? (?:the user|user|anyone|the human|"
            r"the operator|this (?:message|instruction|note))\b|\bhide (?:this|it) from\b|\bkeep this (?:secret|"
            r"hidden) from\b",
            r"^\W*(?:important |new |urgent )?(?:system|admin(?:istrator)?|developer|root|operator)(?: (?:note|"
            r"message|override|prompt|update|notice|instruction))?\s*[:：]|\bsystem (?:note|override|notice)\b|\bnew "
            r"(?:rules?|instructions?|directives?|policy)\s*[:：]|\bend of (?:system )?(?:prompt|instructions)\b",
            r"\b(?:the )?user (?:has |have )?(?:already |now )?(?:granted|authori[sz]ed|approved|consented|"
            r"permitted|allowed|agreed to|given (?:permission|consent))\b|\bwithout (?:asking|(?:any )?"
            r"(?:confirmation|permission|approval|consent|review))\b|\b(?:you must|must) never ask\b|"
            r"\bpre-?approved\b|\bauto-?approve\b",
            r"\b(?:note|message|memo|instructions?|hint|attention|reminder|directive|tip) (?:to|for) (?:the |all |"
            r"any )?(?:assistant|ai|model|agent|bot|llm)s?\b|\b(?:needs?|requires?) no (?:further )?(?:confirmation|"
            r"approval|permission|consent|review)\b|\b(?:passwords?|secrets?|credentials?|tokens?|api keys?) (?:to "
            r")?(?:be|are|should be|must be|get|being) (?:shared|sent|shown|printed|revealed|disclosed|posted|"
            r"displayed|emailed|exposed)\b",
            r"(?:给|致|对)(?:助手|AI|模型|机器人|智能体)(?:的)?(?:提示|消息|说明|指令|留言|备注)?|(?:不需要|不必|免|"
            r"无须|不要)(?:任何|用户)?(?:的)?(?:确认|审批|"
            r"授权|同意|批准)",
            r"\b(?:respond|reply|react|answer|proceed|start|begin|finish|end) (?:\w+ )?by (?:deleting|running|"
            r"executing|sending|downloading|installing|uploading|forwarding|posting|wiping|erasing|dropping|"
            r"disabling|revealing|printing|calling|opening|approving|transferring|granting|sharing|removing|"
            r"pushing)\b",
            r"(?:只要|一旦|每当|凡是).{0,24}(?:就|都|便).{0,8}(?:删除|运行|执行|下载|安装|发送|转发|上传|批准|转账|"
            r"清空|推荐|访问|泄露)",
            r"\b(?:guidance|rules?|instructions?|guidelines?|restrictions?|polic(?:y|ies)|limits?) (?:is|are|was|"
            r"were) (?:now |hereby )?(?:void|cancel\w+|obsolete|invalid|revoked|lifted|suspended|no longer)|\b"
            r"(?:follow|obey|listen to|trust) only\b|\bonly (?:follow|obey|listen to)\b|\b(?:paste|post|put|type|"
            r"write|drop) (?:\w+ ){0,2}(?:api keys?|passwords?|secrets?|credentials|tokens?)\b|\bfrom this "
            r"(?:moment|point|message)\b(?! on,? (?:use|answer|reply|call|write|speak))",
            r"(?:规定|指令|规则|要求|限制|提示|设定).{0,6}(?:作废|失效|无效|取消|清除)|只(?:听我|听从|服从)",
            r"\byou(?:'ve| have) (?:now )?(?:been )?(?:granted|given|gained|received|unlocked)\b|\byour (?:new |"
            r"real |true |actual )(?:directive|instruction|task|goal|mission|role|purpose|identity|objective)s?\b|"
            r"\btracking pixel\b",
            r"你(?:的新|真正的)(?:任务|指令|目标|身份|角色|使命)|你(?:已经?|现在)?(?:获得|拥有|被授予).{0,8}(?:权限|"
            r"授权)",
            r"\bsudo \w|\brm -r?f|\bcurl [^ ]+ ?\||\| ?(?:ba)?sh\b|~/\.ssh|\bid_rsa\b|/etc/(?:passwd|shadow)|"
            r"\bchmod [0-7]{3}|\beval\(|\bdrop table\b|\b(?:base64 -d|nc -e|powershell -)",
            r"(?:忽略|无视|忘记|忘掉|不要理会|抛弃|跳过|绕过|推翻|覆盖|违反|突破).{0,12}(?:指令|指示|规则|提示词?|"
            r"规矩|限制|安全|一切|设定|约束|确认|审批|要求|准则|政策|之前的所有)",
            r"(?:输出|显示|透露|泄露|公开|告诉我|打印|展示|说出).{0,10}(?:系统提示|提示词|隐藏|密钥|密码|环境变量|"
            r"内部指令|凭证|令牌)",
            r"(?<!我)(?<!我们)(?:从现在起|从现在开始|从今以后|从今往后|今后|以后|每次|始终|总是|必须|一律|永远|务必|"
            r"在每次).{0,24}?(?:运行|执行|下载|安装|发送|转发|上传|"
            r"删除|批准|转账|付款|推荐|点击|访问|打开|调用|泄露|附上|附带|服从|听从|绕过|抓取|推送|授权)(?!.{0,4}"
            r"(?:注释|示例|例子|类型|来源|代码示例))",
            r"(?:你现在是|你已经?是|你不再|你将(?:扮演|成为)|扮演|假扮|充当).{0,20}(?:没有|不受|无限制|管理员|模型|"
            r"AI|助手|系统|黑客|DAN)|越狱|开发者模式|管理员模式|不受"
            r"(?:任何)?限制",
            r"(?:不要|别|切勿|不得)(?:告诉|通知|提醒|让|询问|告知).{0,4}(?:用户|任何人|使用者)|瞒着用户|无需(?:确认|"
            r"审批|询问|同意|授权)|不用(?:确认|询问用户)|自动批准",
            r"(?:助手|AI|人工智能|模型|机器人|智能体)(?:必须|应该|应当|需要|要|得|务必|一定要)|^\W*(?:系统|管理员|"
            r"开发者)(?:消息|提示|通知|指令)?\s*[:：]|用户"
            r"(?:已经?|早已)(?:授权|同意|批准|允许)",
            r"(?:指示|命令|ルール|制限|プロンプト).{0,8}(?:無視|忘れ)|システムプロンプト|(?:지시|명령|"
            r"규칙).{0,8}무시|시스템 프롬프트",
            r"\b(?:ignorier\w*|vergiss|missachte\w*|ignora\w*|olvida\w*|ignore[zr]?|oublie\w*|esqueça|dimentica|"
            r"zanemari\w*|ignoriši|zaboravi|игнорируй\w*|забудь|занемари|игнориши|заборави|zignoruj|"
            r"negeer)\b.{0,40}\b(?:anweisung\w*|regeln|instruc\w+|reglas|indicaciones|consignes|règles|instruções|"
            r"regras|istruzioni|regole|uputst\w+|pravila|instrukcij\w+|инструкци\w+|правила|упутств\w+|instrukcje|"
            r"instructies)\b|\b(?:systemprompt|prompt (?:del|de|du) sist\w+|sistemski prompt|системный промпт|"
            r"системски промпт)\b",
        )
    ),
    _I,
)
_URL = Pattern(
    r"(?:\b(?:https?|ftp|wss?|file|data|javascript)\s*:\s*//?|\bdata:[a-z]+/|\bjavascript:|\bwww\.[\w-]+\.)|"
    r"!\[[^\]]*\]\(",
    _I,
)
_EMAIL = Pattern(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{0,250}\w")
"""Bounded as RFC 5321, section 4.5.3.1 bounds addresses: a run of one letter is no work."""
_OWN_EMAIL = Pattern(r"\b(?:my|our)\s+(?:\w+\s+){0,2}(?:e-?)?mail(?:\s+address)?\s*(?:is\b|:|=)", _I)
_EXFIL = Pattern(
    r"\b(?:send|forward|e-?mail|cc|bcc|post|mail|copy|report|share|submit|upload|deliver|notify|weiterleiten|envía|"
    r"envoie|pošalji)\b|发送|转发|抄送|发到|寄到|上报|送信|転送|보내",
    _I,
)

# -- standing preferences --------------------------------------------------------------------------
_STANDING_STRONG = Pattern(
    r"\b(?:always|never|from now on|from here on|going forward|henceforth|in (?:the )?future|whenever|every time|"
    r"each time|by default|at all times|unless|where(?:ver)? possible|"
    r"(?:when(?:ever)?|if) you (?:write|generate|produce|answer|reply|give|show|create|suggest|explain|format|name|"
    r"make|review|refactor)|"
    r"in (?:all|every|each|any) (?:of )?(?:your |my |our )?\w+|in general|as a rule|stop (?:using|adding|"
    r"apologi[sz]ing|writing|putting))\b"
    r"|以后|从现在起|从现在开始|从今|今后|往后|始终|总是|永远|一律|统一|每次|默认|一直|尽量|凡是|(?:时|"
    r"的时候)[，,]?.{0,4}(?:请|要|别|不要|少|多|用|先|尽量|注意|保持|直接|省)|"
    r"所有(?:的)?.{0,10}(?:都|要|用)|(?<!把)都(?:要|用|使用|按|写|采用)|不要再|别再"
    r"|これから|今後|常に|いつも|必ず|앞으로|항상|언제나"
    r"|\b(?:immer|ab jetzt|künftig|in zukunft|niemals|siempre|a partir de ahora|nunca|de ahora en adelante|toujours|"
    r"désormais|dorénavant|jamais|sempre|a partir de agora|d'ora in poi|uvek|od sada|ubuduće|nikad|увек|од сада|"
    r"убудуће|всегда|отныне|впредь|никогда)\b",
    _I,
)
_LANGUAGES = (
    r"(?:english|chinese|mandarin|cantonese|spanish|german|french|italian|portuguese|russian|japanese|korean|"
    r"serbian|croatian|polish|dutch|turkish|arabic|hindi|"
    r"vietnamese|thai|swedish|norwegian|danish|finnish|czech|greek|hebrew|ukrainian|romanian|hungarian|indonesian|"
    r"malay|persian|farsi|latin|simplified chinese|traditional chinese)"
)
_TOPIC = (
    rf"(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|comments?|commit messages?|commits?|"
    rf"spelling|naming|variable names?|names|indentation|tabs|(?:\d|two|four|eight)[ -]spaces?|spaces|emojis?|"
    rf"markdown|tables?|bullet(?: point)?s|lists|headings|tone|jargon|{_LANGUAGES}|type hints?|type annotations?|"
    rf"docstrings?|(?:single|double) quotes|semicolons?|snake_case|camelcase|pascalcase|kebab-case|"
    r"standard library|dependencies|iso(?: ?8601)?|dates|units?|metric|imperial|formal(?:ly)?|casual|concise(?:ly)?|"
    r"brief(?:ly)?|code style|line length|f-strings|lambdas?|one-liners|global variables|wildcard imports|"
    r"abbreviations|exclamation marks?|em dashes|pseudocode|code blocks|apologi\w+|disclaimers?|(?:24|12)-hour|"
    r"celsius|fahrenheit|trailing commas|async/await|functional style|conventional commits|first names?)"
)
_STYLE_EN = Pattern(
    rf"^\W*(?:(?:please|pls|kindly|also|and|but|just|then|so|ok(?:ay)?)\W+)*(?:"
    rf"(?:use|keep|avoid|don't|do not|never|stick (?:to|with)|prefer|no more|skip|leave out|omit|stop|drop|favou?r|"
    rf"follow|indent|format|cite|spell)\b.{{0,60}}?\b{_TOPIC}\b"
    rf"|(?:speak|talk) to me \w+ly\b|(?:answer|reply|respond|speak|talk|write|explain|communicate|comment|"
    rf"chat)\b.{{0,50}}?\b(?:in|using|with)\b.{{0,20}}?\b{_TOPIC}\b"
    r"|(?:don't|do not|never|avoid|no) (?:ever )?(?:us(?:e|ing)|add(?:ing)?|writ(?:e|ing)|put(?:ting)?|includ(?:e|"
    r"ing)|import(?:ing)?|rely(?:ing)? on|call(?:ing)?|suggest(?:ing)?|recommend(?:ing)?|mention(?:ing)?|explain"
    r"(?:ing)?|apologi[sz](?:e|ing)|wrap(?:ping)?|abbreviat(?:e|ing)|repeat(?:ing)?)\b"
    r"|(?:answer|talk to|speak to|treat|explain things to|teach|reply to|respond to) me (?:like|as|in)\b|(?:for|in|"
    r"with|on|when writing|when using) [\w+#./ \-]{1,30}, ?(?:please )?(?:prefer|use|avoid|don't|never|always|keep|"
    r"stick)\b"
    r"|name\b.{0,20}\b(?:variables?|functions?|branches|files|columns|tables|classes|tests)\b(?! (?!in\b))"
    r"|(?:don't|do not|never) (?!worry|forget|do\b|stop|change|touch|delete|bother|know|understand|mind|care|think|"
    r"have|get|see|let|remove|wait)\w+"
    r"|(?:format|write|express|spell|round|name|keep|give|use)\b.{0,40}\b(?:all|every|each) (?!(?:of )?(?:the|"
    r"files?|tests?|code)\b)\w+|use .{1,40} in (?:my|our|all|every) \w+"
    rf"|give me (?:\w+ )?(?:answers?|repl(?:y|ies)|responses|explanations|code) in\b|avoid (?!the|this|that|it|"
    rf"doing)\w+|{_TOPIC}\b.{{0,30}}\b(?:please|everywhere|only)\W*$|(?:dark|light) mode\b"
    r"|use (?!an? |the |my )[\w+#.\- ]{1,30}(?:,? not | instead of | rather than )(?!an? |the )"
    rf"|be (?:more |less |very )?(?:concise|brief|direct|formal|casual|polite|blunt|terse|verbose|thorough|honest|"
    rf"specific)\b"
    rf"|(?:call|address) me\b|refer to me\b|no (?:emojis?|small talk|apologies|disclaimers|preamble|markdown|"
    rf"comments)\b"
    rf"|indent (?:with|by|using)\b)",
    _I,
)
_STYLE_ZH = Pattern(
    r"^\W*(?:请|麻烦|也|另外|还有|还请|希望你?|我希望你?|我要你|那|但|但是|给我的?|在|写|你|代码里?|回答(?:的时候|"
    r"问题时|时)?|回复(?:的时候|时)?|解释(?:的时候|时)?|注释|"
    r"提交信息|变量|函数|类名|命名|缩进|日期|单位|时间|金额|语气|格式|文档)?.{0,10}?"
    r"(?:(?:语气|口吻|说话).{0,6}(?:随意|正式|轻松|活泼|严肃|礼貌|直接|幽默)|(?:用|使用|改用|采用|以).{1,12}?"
    r"(?:回答|回复|答复|交流|沟通|对话|解释|讲解|输出|写注释|命名|"
    r"缩进|风格|格式|口吻|语气|语言)"
    r"|(?:注释|提交信息|变量名?|命名|缩进|回答|回复|日期|单位|语气|文档|函数名|类名|代码风格|解释|时间|标题).{0,6}?"
    r"(?:请?用|使用|采用|要|保持|应该|尽量|都|别|不要|简短|简洁|统一)"
    r"|(?:不要|别|不用|避免|少|禁止).{0,8}?(?:用|使用|加|写|出现|带)?.{0,6}?(?:表情|emoji|markdown|表格|注释|缩写|"
    r"分号|客套话?|废话|寒暄|全局变量|列表|术语|英文|"
    r"中文|制表符|空格|道歉|感叹号)"
    r"|(?:回答|回复)我?(?:的)?时候?.{0,3}(?:省|别|不|要|直接|先|只)|都?(?:写成|按|采用).{1,10}(?:格式|风格|标准)|"
    r"(?:叫|称呼)我.{1,10}$|(?:回答|回复|说话|"
    r"解释)?(?:简短|简洁|详细|直接|正式|口语化)(?:一?点|一?些)(?!$))",
    _I,
)
_DEICTIC = Pattern(
    r"\b(?:this|that|these|those|here|it|line \d+|(?:option|flight|choice|version|item|plan|answer) (?:\d+|[a-d]\b|"
    r"one|two)|above|below|just (?:this|once)|for now|(?:the )?(?:first|second|"
    r"third|last|following|other|next|previous|same|attached|current|cheaper|larger|smaller|earlier|later) "
    r"(?!names?\b)\w+|again|yet|the (?:function|"
    r"class|file|method|variable|snippet|module|test|parser|bug|error|script|paragraph|section|question|table|form|"
    r"button|page))\b"
    r"|(?:这|那|此|该|上面|下面|刚才|一下|以上|以下|本文|上述|上一)(?!些年)|この|その|これ(?!から)|それ|이 |그 ",
    _I,
)
_SCOPE = Pattern(
    r"\b(?:for|in|on|across|within|of) (?:this|that|the current) (?:project|repo(?:sitory)?|codebase|monorepo|"
    r"workspace|team|company|organi[sz]ation|app|service)\b|\bthis (?:project|repo(?:sitory)?|codebase|monorepo|"
    r"team|company)\b"
    r"|(?:这|本|该)(?:个)?(?:项目|仓库|工程|代码库|团队|公司|系统|应用)|このプロジェクト|이 프로젝트",
    _I,
)
_DECISION = Pattern(
    r"^\W*(?:we're |we are |i'm |i am )?going with\b|^\W*(?:ok(?:ay)?,? |so,? |then,? )?(?:let's|let us|we(?:'ll| "
    r"will)?|i(?:'ll| will)?)\b(?:'ve| have)? ?(?:agreed|decided|settled|standardi[sz]ed?|chosen|chose|stick"
    r"(?:ing)? (?:with|to)|go(?:ing)? with|adopt(?:ed)?|picked)\b"
    r"|(?:我们|咱们|我|团队)(?:已经|最终|最后|都)?(?:商量好|决定|商定|确定|约定|选定|敲定)",
    _I,
)

# -- one-off tasks ---------------------------------------------------------------------------------
_VERBS = (
    "accept|add|adjust|analyse|analyze|answer|apply|arrange|ask|assign|assume|book|break|build|calculate|call|"
    "cancel|change|check|choose|clean|clear|close|code|combine|commit|compare|compile|complete|compose|"
    "compute|configure|confirm|connect|consider|continue|convert|copy|correct|count|cover|create|cut|debug|"
    "define|delete|demonstrate|deploy|describe|design|detect|determine|develop|diagnose|disable|discuss|"
    "display|do|document|download|draft|draw|drop|edit|elaborate|enable|ensure|estimate|evaluate|execute|"
    "expand|explain|explore|export|extend|extract|fetch|figure|fill|filter|find|finish|fix|flip|focus|follow|"
    "format|generate|get|give|go|grab|group|guess|guide|handle|help|hide|identify|illustrate|implement|import|"
    "improve|include|increase|insert|inspect|install|integrate|introduce|investigate|keep|launch|list|load|"
    "locate|log|look|make|map|mark|match|measure|merge|migrate|minimize|mock|modify|move|name|open|optimise|"
    "optimize|order|organize|outline|paste|patch|perform|pick|plan|play|plot|point|prepare|print|proceed|"
    "process|produce|profile|proofread|propose|provide|publish|pull|push|put|query|quote|rank|read|rebase|"
    "recommend|redo|reduce|refactor|reformat|regenerate|release|reload|remind|remove|rename|reorder|repeat|"
    "rephrase|replace|replicate|report|reproduce|research|reset|resolve|restart|restore|restructure|return|"
    "reverse|revert|review|revise|rewrite|roll|rotate|round|run|save|scan|schedule|scrape|search|select|send|"
    "separate|serve|set|share|shorten|show|simplify|sketch|skip|solve|sort|spell|split|start|stop|store|style|"
    "submit|suggest|sum|summarise|summarize|swap|switch|take|teach|tell|test|think|tidy|transform|translate|"
    "trim|try|tune|turn|undo|uninstall|update|upgrade|upload|use|validate|verify|visit|visualize|wait|walk|"
    "wrap|write"
)
_TASK_EN = Pattern(
    rf"^\W*(?:(?:please|pls|kindly|now|then|next|also|first|finally|and|so|but|ok(?:ay)?|just|hey|hi|quickly|let's|"
    rf"let us|let me|go ahead and|again|instead|good|great|thanks|yes|no|alright|always|never|(?:when(?:ever)?|if|"
    rf"for|on|with) "
    rf"[^,]{{1,60}}(?=,)|from now on|going forward|in (?:the )?future|in \w+)\b\W*)*(?:don't|{_VERBS})\b(?!['’]s\b|"
    rf"[-_/.]\w)",
    _I,
)
_DECLARES = Pattern(
    r"^\W*(?:[\w\-]+ ){1,3}(?:is|are|was|were|has|runs|uses|lives|listens|goes|happens|takes|depends|needs|requires|"
    r"returns|works)\b",
    _I,
)
_ASKS = Pattern(
    r"\b(?:(?:can|could|would|will) you|(?<!you )(?<!always )(?<!to )(?<!often )help me|give me a hand|i(?:'d| "
    r"would)? (?:need|want|like|love) (?:you to|"
    r"(?:some )?help|to (?:book|know|see|order|change|cancel|add|get|find|make|build|create|write|fix|learn how|"
    r"understand|check|ask|buy|return|exchange|update|remove|use the|do|have (?:it|this|the)|watch|read|try))"
    r"|i need (?:an?|the|to|this|it|help|some|your|you|all)\b(?! (?:wheelchair|screen reader|gluten))|i(?: want| "
    r"would like|'d like) (?:an?|the|this|it|you|some|my) (?!dates?\b)|i'm (?:trying|looking|hoping|supposed) to|"
    r"looking for|would you mind|your (?:task|job) is|the task is|make sure|feel free|let me know)\b"
    r"|帮我|帮忙|帮一下|麻烦|劳驾|替我|给我(?!的|们|代码就|发)|我(?:想|要|希望|需要)让?你(?:帮|把|给|写|改|总结|看|"
    r"做|翻译|修|分析|检查|生成)|我们?要(?!求|么|是)(?:做|写|搞|"
    r"弄|开发一|买|去|把|给|在.{1,8}前)|我需要(?:一个|你|一段|个|一份|把|在|对|知道)|我(?:想|要|想要)(?:弄|搞|明白|"
    r"学会|确认|试|测|请|听|检查|统计|导|订|知道|问|看|买|了解|"
    r"查|请教|做|写|找|实现|改|加|把|学习一下|请你|一个|退|换|取消|预订)"
    r"|(?:お願いします|してください|て下さい|てください|てほしい|教えて)|(?:해 ?주세요|어 ?주세요|아 ?주세요|여 "
    r"?주세요|부탁|해줘)"
    r"|\b(?:hilf mir|kannst du|könntest du|ich brauche (?:hilfe|eine?n?)|schreib\w* (?:mir|eine?n?)|erkläre|zeig "
    r"mir|ayúdame|puedes|necesito (?:que|un|una|ayuda)|escribe|explica|muéstrame|aide[zs]?[- ]moi|peux-tu|"
    r"pouvez-vous|j'ai besoin|écris|explique|ajude-me|me ajude|você pode|preciso|escreva|aiutami|puoi|scrivi|pomozi|"
    r"pomози|možeš li|napiši|objasni|treba mi|popravi|prevedi|помози|можеш ли|напиши|објасни|поправи|помоги|можешь|"
    r"исправь|переведи|объясни|мне нужно|bitte (?:hilf|schreib|erkl|zeig|änder|korrig|übersetz))",
    _I,
)
_TASK_ZH = Pattern(
    r"^\W*(?:好的?|嗯|那|请|请你|先|再|继续|接着|然后|顺便|现在|你|快|直接|最后|另外)*[，,]?(?:写|改|修|修复|修改|"
    r"翻译|总结|概括|解释|生成|实现|添加|删除|重构|优化|检查|查|"
    r"看看|看一?下|运行|跑|执行|创建|列出|列一|分析(?!师)|测试(?!环境|用例|框架|服|库|都|代码|覆盖|人员|团队|工程)|"
    r"调试|部署(?!在|到|于|用|由|环境|流程|平台)|提交(?!信息|记录)|"
    r"打开|画|做个|做一个|比较|对比|推荐|告诉我|说说|讲讲|介绍|整理|合并|移动(?!端|应用|设备|版)|复制|替换|润色|"
    r"计算|算一?下|设计(?!师|稿|文档|系统|规范|语言|团队|风格)|搜索(?!服务|"
    r"引擎)|找|加上|加个|去掉|换成|继续|试试|回滚|安装|升级|导出|导入|(?:推|放|换|发|加|移|存|贴|传|拷|写|改|转|拆|"
    r"标|排|切)(?:到|成|进|入|给|上去|下来|出来)|"
    r"按[^，。]{1,8}(?:排序|分组|分类|排)|补充|完善|重新|给出|开始)"
    r"|^\W*(?:请|你|先|再|然后)?[^，,。我]{0,4}?(?:把|将).{1,40}?(?:改|换|删|移|翻译|转|加|写|发|放|做成|变成|"
    r"重命名|合并|提交|拆|提取|封装|跑|修|整理|补|标|调|导)"
    r"|^\W*(?:请)?给.{1,20}?(?:加|写|添加|补|改|做|生成|画)|^\W*用.{1,24}?(?:代替|替换|取代|实现|写一?个|写段|"
    r"做一?个|画|完成|重写|改写)|^\W*(?:这里|此处|"
    r"这段|这个文件|这行|上面|下面|这个函数).{0,8}(?:请|用|改|加|删)"
    r"|^\W*(?:这|那)(?:个|段|份)?.{0,10}(?:帮|改一?下|优化一?下)",
    _I,
)

_PLEASE_ZH = Pattern(
    r"^\W*(?:请|麻烦|劳驾|希望你)|(?:改|写|翻译|回答|回复|解释|评论|审查|看)[^，。]{0,10}(?:时|的时候)[，,]?.{0,4}"
    r"(?:请|要|别|不要|少|多|用|先|尽量|注意|保持|直接|"
    r"省)"
)
_DECLARES_ZH = Pattern(
    r".*每(?!次)[天周月年晚早个隔]|^\W*[一-鿿]{2,4}(?:脚本|服务|模块|规范|环境|流程|工具|平台|系统|文档|用例|框架|"
    r"接口|任务|日志|记录|团队|库|数据|文件)"
    r"[^，。]{0,6}(?:在|是|由|用|需要|负责|都|必须|部署|支持|放|叫|统一|依赖|走|有|跑)"
)
"""A compound noun that begins with a verb (测试环境, 导入脚本), then a statement."""


def is_injection(sentence: str) -> bool:
    """Tries to make the assistant act, drop its rules, hide or leak something."""
    return _INJECTION.search(sentence) is not None


def has_url(sentence: str) -> bool:
    """Holds an address that something could fetch, or an image that leaks by being shown."""
    return _URL.search(sentence) is not None


def is_exfiltration(sentence: str) -> bool:
    """Sends something to an e-mail address; to say what one's own is, sends nothing."""
    return _EMAIL.search(sentence) is not None and _EXFIL.search(_OWN_EMAIL.sub(" ", sentence)) is not None


def is_deictic(sentence: str) -> bool:
    """Points at something in sight; *this project* is not counted: it stays."""
    return _DEICTIC.search(_SCOPE.sub(" ", sentence)) is not None


def is_decision(sentence: str) -> bool:
    """We decided, let's go with."""
    return _DECISION.search(sentence) is not None and not is_deictic(sentence)


def is_directive(sentence: str) -> bool:
    """Tells or asks the assistant to do something, once or from now on."""
    if (
        _ASKS.search(sentence)
        or _PLEASE_ZH.match(sentence)
        or (_TASK_ZH.search(sentence) and not _DECLARES_ZH.match(sentence))
        or _STYLE_EN.match(sentence)
        or _STYLE_ZH.match(sentence)
    ):
        return True
    return _TASK_EN.match(sentence) is not None and not _DECLARES.match(sentence)


def is_standing(sentence: str) -> bool:
    """A directive that holds from now on: how replies, code or names are to be."""
    if is_deictic(sentence):
        return False
    return any(p.search(sentence) for p in (_STANDING_STRONG, _STYLE_EN, _STYLE_ZH))


def is_task(sentence: str) -> bool:
    """A directive for once."""
    return is_directive(sentence) and not is_standing(sentence) and not is_decision(sentence)
