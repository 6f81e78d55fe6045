"""Turns of phrase that tell a lasting statement from a passing one, in English and Chinese first and plainly in others.

Each cue is one compiled alternation over a sentence. They are deliberately about form (who speaks, of what time, how
surely), not about subjects, so that they hold for sentences nobody has seen. `filters` decides; this module only
names what it sees.
"""

from __future__ import annotations

import re

from gateway.memory.patterns import Pattern

_I = re.IGNORECASE


def _any(*parts: str) -> Pattern:
    return Pattern("|".join(parts), _I)


# -- questions -------------------------------------------------------------------------------------
_QUESTION = _any(
    r"[?？؟]['\"”’)）]?\s*$",
    r"^\W*(?:and |but |so |ok(?:ay)?,? |hi,? |hey,? )?(?:what|where|who|whom|whose|why|how|which)(?:'s|'re)?\b(?!ever)",
    r"^\W*(?:when|since when)\s+(?:do|does|did|is|are|was|were|will|should|can)\b",
    r"^\W*(?:do|does|did|can|could|would|should|is|are|am|was|were|will|shall|have|has|may|any)\s+"
    r"(?:i|you|we|they|he|she|it|there|the|this|that|these|those|my|our|your|anyone|someone|idea|chance)\b",
    r"\b(?:i wonder|i was wondering|do you know|can you tell|could you tell|tell me (?:what|how|why|where|which|"
    r"about)|any ideas?)\b",
    r"(?:吗|呢|么|嘛)\s*[。.!！~]*$",
    r"怎么(?:样|办|做|用|写|改|在|会|才|能|让|把|去|解决|部署|配置|撤销|处理)|如何|为什么|为啥|哪个|哪些|哪里|哪种|"
    r"哪儿|是不是|能不能|可不可以|有没有|要不要|该不该|是否(?!需要我)|"
    r"多少钱|几点",
    r"^(?:请问|谁(?!都)|什么(?!都))|(?:是|叫|用|有|做|干|选)什么(?!都)",
    r"(?:です|ます|でしょう|ません)か[。.]?$|どう(?:すれば|やって|したら)|なぜ|何ですか",
    r"(?:까요|나요|ㄹ까|인가요|습니까|ㅂ니까|입니까)[.。]?$",
    r"^¿|^(?:da li|kako|zašto|gde|šta|koji|ko je|да ли|како|зашто|что|как|почему|где|какой)\b",
    r"^(?:wie|warum|was|wo|welche[rs]?|kannst du|können sie|cómo|qué|dónde|por qué|comment|pourquoi|où|est-ce que|"
    r"peux-tu|pouvez-vous)\b",
)

# -- how sure --------------------------------------------------------------------------------------
_SPECULATION = _any(
    r"\b(?:may|might|could)\s+(?:\w+ly\s+)?(?:have|be|not|also|use|need|want|switch|move|try|go|end|well|learn|"
    r"become|adopt|start|be using)\b",
    r"\b(?:i|we|you|one|they) could\b(?! not live)",
    r"\b(?:might|maybe|perhaps|probably|possibly|presumably|supposedly|hopefully|likely|allegedly|conceivably)\b",
    r"\bi(?:'d| would)? (?:guess|suppose|assume|imagine|think|believe|suspect|reckon|feel like|hope|wish|bet|doubt)\b",
    r"\b(?:it |that |this |there )?(?:seems?|appears?|looks like|sounds like)\b(?! good)",
    r"\b(?:not (?:really |quite |entirely |too |completely |100% )?(?:sure|certain)|unsure|uncertain|no idea|can't "
    r"remember|don't remember|don't recall|if i (?:remember|recall)|iirc|afaik|kind of|sort of|or something|or so)\b",
    r"\b(?:considering|contemplating|debating|(?:was|been|am|'m|are|'re|were) thinking (?:of|about)|toying with|"
    r"leaning towards?|on the fence|tempted|torn between)\b",
    r"\b(?:going to|gonna|plan(?:ning)? to|want to try|would like to try|thinking we|intend to|hoping to|about to|"
    r"aim to|will (?:try|probably|maybe))\b",
    r"可能|也许|或许|我们?应该(?!算)|大概(?!有?[\d一二三四五六七八九十几百千万两]|每)|好像|似乎|应该是|估计|说不定|"
    r"恐怕|没准|有点(?:想|倾向|犹豫)|不太?确定|不敢肯定|记不清|记不太?清|"
    r"不记得|拿不准|我猜|我想应该|我觉得|我感觉|貌似|差不多是|考虑(?!到|过后)|可以(?:用|试|考虑|来|改|换|先)|打算|"
    r"准备(?:换|用|学|去|迁|买|试|改)|想试试|想学|想换|犹豫|计划(?:换|"
    r"用|学|去|迁|把)|我们?会(?!说|用|讲|写|弹|唱|做(?:饭|菜)|游泳|开车|编程|画|修|拉|打|议|[^，。]{0,4}[语话])|"
    r"将来|八成|十有八九",
    r"たぶん|多分|おそらく|かもしれ|でしょう$|と思(?:う|い|っ)|つもり|아마|것 같|듯하|듯합|일지도",
    r"\b(?:vielleicht|wahrscheinlich|möglicherweise|vermutlich|eventuell|ich glaube|ich denke|quizás?|tal vez|"
    r"probablemente|a lo mejor|creo que|peut-être|sans doute|probablement|je crois|je pense|talvez|provavelmente|"
    r"acho que|forse|probabilmente|credo che|możda|verovatno|mislim da|valjda|može biti|może|chyba|belki)\b",
    r"\b(?:можда|вероватно|мислим да|ваљда|возможно|наверное|может быть|вероятно|кажется|думаю|скорее всего)\b",
)
_HYPOTHETICAL = _any(
    r"^\W*(?:and |but |so |well,? |ok(?:ay)?,? )?(?:if|suppose|supposing|imagine|pretend|assume|assuming|what if|"
    r"let's say|let us say|let's pretend|say i|hypothetically|in theory|unless)\b(?! you (?:write|generate|produce|"
    r"answer|reply|give|show|ask|need|create|suggest))",
    r"\bif (?:i|we|it|they|he|she|you|my|our) (?:were|had|was|could|did|ever|used)\b|\b(?:would|could|should) have "
    r"(?:been|used|had|made|chosen|gone)\b|\bwere i\b|\bas if\b|\bfor the sake of\b",
    r"\b(?:role-?play|fictional|in (?:the|my) (?:story|novel|dream|scenario)|once upon)\b|\b(?:i|we)(?:'d| would) "
    r"(?!like|rather|prefer|love|appreciate|want)\w+",
    r"^\W*(?:那么?)?(?:如果|假设|假如|要是|倘若|假使|万一|想象|比方说|比如说我|假装|设想)|就好了|的话(?:就|，|,)|"
    r"本来可以|早知道",
    r"^\W*(?:もし|仮に|例えば私が)|^만약|^만일|^\W*(?:wenn ich|falls|angenommen|si yo|si fuera|supongamos|imagina|"
    r"si j'|"
    r"supposons|imagine|se eu|ako bih|da sam|recimo da|pretpostavi|ако|да сам|если бы|представь|допустим)\b",
)

# -- of what time ----------------------------------------------------------------------------------
_LASTING_PAST = (
    r"(?:moved|studied|graduated|joined|(?:co-?)?founded|worked|lived|married|divorced|retired|started|learned|"
    r"switched|migrated|decided|adopted|standardi[sz]ed|agreed|"
    r"settled|relocated|changed (?:jobs|careers|majors|my name|teams|our|companies|schools)|renamed|replaced|"
    r"dropped|deprecated|abandoned|majored|trained|qualified|emigrated|"
    r"immigrated|converted|used(?! to)|hosted|owned|inherited|served|played|raised|stopped \w+ing|named|promised|"
    r"banned|forbade|trademarked|registered|licensed|"
    r"need|feed|embed|exceed|succeed|breed|seed|speed|proceed)"
)
"""Past tenses whose outcome stays true (and present tenses that merely end like one)."""
_LASTING_ING = (
    r"(?:living|working|training|studying|learning|teaching|raising|maintaining|using|leading|managing|running "
    r"(?:an?|my|our) |writing (?:an?|my) (?:book|thesis|novel|dissertation|blog)|"
    r"building|developing|migrating|moving to|expecting|recovering|lacking|pursuing|majoring|specialising|"
    r"specializing|allergic|being treated|renting|sharing|hosting|targeting|aiming)"
)
_NOW = _any(
    rf"\b(?:i|we)(?:'ve| have)?(?: (?:\w+ly|already|also|just|now|then|finally))? (?!{_LASTING_PAST}\b)\w{{2,}}ed\b"
    rf"(?! (?:in|at|with) (?:19|20)\d\d)",
    r"\b(?:i|we)(?:'ve| have)?(?: (?:\w+ly|already|also|then|finally))? (?:went(?! to (?:school|college|university)|"
    r" with)|got(?! (?:two|three|four|\d|married|an?|my|promoted|engaged|divorced))|saw|found|made|took|gave|sent|"
    r"broke|lost|forgot|said|thought|did|done|put|hit|ran|spent|came|felt|bought (?:the|some|that|this)|had (?:an?|"
    r"the|some|to|lunch|dinner)|read|told|kept)\b",
    rf"\b(?:i|we)(?:'m| am|'re| are|'ve been| have been| was| were)(?: (?:\w+ly|still|now|just|also))? "
    rf"(?!{_LASTING_ING})\w{{2,}}ing\b(?! (?:engineer|manager|director|editor|partner))",
    r"^(?!.*\b(?:i|we|i'm|we're|our|my)\b).*(?<!from )\bnow\b(?! (?:on\b|requires?|uses?|supports?|lives?))",
    r"\b(?:reservation|order|booking|ticket|confirmation|tracking|invoice|case|reference|claim) (?:number|id|code|"
    r"no\.?)\b|\bmy (?:function|method|loop|class|variable|array|list|query|regex|string|dataframe|component|script|"
    r"code|program|screen|page|build|pr|branch|cursor|terminal)\b(?! (?:style|name|review))",
    r"\b(?:needs?|has|have) to be \w+ed\b|\bi(?:'d| would) (?:\w+ )?(?:like|love|prefer|want|need) to\b|\b(?:i|we) "
    r"(?:also |only |just |really |still )?(?:want|wish) to\b|\b(?:i|we) (?:do not|don't) (?:want|need)\b|\bi can "
    r"(?:give|send|provide|show|tell|share|try|wait)\b",
    r"\b(?:lately|recently)\b(?!.*\b(?:moved|joined|switched|changed|married|graduated|retired|started|became|"
    r"adopted|migrated|diagnosed))|最近(?!.{0,10}(?:搬|换|入职|结婚|毕业|退休|怀孕|迁移|切换|改用))|我们?希望(?!你|"
    r"回|代码|所有)|我知道(?:他|她|你)|等我.{0,8}(?:时候|之后|以后)",
    r"\b(?:i|we|i'm|we're)(?:'ll| will) (?!always|never|only)\w+|\b(?:i|we) (?:have|need|'ve got|got|ought) to "
    r"(?!support|comply|use|follow|run|be|work|keep|stay|handle|avoid|meet|pass|go through|target|serve|store|"
    r"respect|deploy|eat|take (?:insulin|medication))\w+|\bused to (?!it)\w+",
    r"\b(?:have|has|had|got|found|hit|see|there(?:'s| is| are| was)|got|encountered|noticed|getting|facing|"
    r"reported)\b (?:\w+ ){0,3}(?:bugs?|errors?|typos?|exceptions?|crash(?:es)?|issues?|problems?|questions?|"
    r"warnings?|doubts?|idea|request|conflicts?|leaks?|failures?|meeting|deadline)\b(?! tracker)",
    r"\b(?:throws?|threw|raises? an?|raised an?|crash(?:es|ed)|hangs|hung|errors out|(?:keeps?|kept|starts?|"
    r"started) \w+ing|gives? (?:me )?an? (?:error|warning)|returns? (?:none|null|nothing|an? |the |undefined|nan|"
    r"false|true|wrong|empty|404|500)|fails?|failed)\b|\b\w+(?:Error|Exception)\b|\bon line \d+|\bline \d+\b(?! "
    r"(?:length|limit))|\battached\b|\bstack ?trace\b",
    r"\b(?:today|tonight|right now|at the moment|at this moment|for the moment|for now|just now|this (?:morning|"
    r"afternoon|evening|week|weekend|time)|yesterday|tomorrow|last night|earlier today|a (?:minute|moment|second|"
    r"while) ago|\d+ (?:minutes|hours|seconds) ago|in (?:ten|five|a few|\d+) (?:minutes|hours)|until (?:later|"
    r"tomorrow|monday)|brb|soon|these days only|still (?:broken|failing|waiting|not))\b",
    r"\b(?:i|we)(?:'ve| have|'m| am)? just (?!want|need|like|prefer|use|moved|joined|became|got married|turned|"
    r"started (?:a|my|at|as|working)|changed jobs|switched|relocated)\w+",
    r"\bcurrently (?:\w+ing (?:at|on line|to get)|broken|down|failing|stuck|blocked|offline|unavailable|out|away|"
    r"busy|red|running into|debugging|trying|looking|waiting|reading|testing)\b|\b(?:is|are) currently (?:broken|"
    r"down|failing|stuck|blocked|offline|unavailable|out|away|busy|red)\b",
    r"\b(?:i|we)(?:'m| am|'re| are|'ve been| have been| was| were) (?:\w+ly |still |now |just |also )?"
    r"(?:looking|reading|waiting|getting|seeing|trying|debugging|testing|checking|editing|opening|clicking|asking|"
    r"wondering|running (?:the|it|into|this|out|late)|"
    r"having (?:trouble|issues|problems|difficult|lunch|dinner|breakfast)|facing|fixing|stuck|confused|tired|hungry|"
    r"busy|sick|sleepy|bored|late|"
    r"exhausted|excited|happy|sad|angry|annoyed|frustrated|glad|sorry|ready|done|back|leaving|heading|stepping|"
    r"watching|worried|stressed|"
    r"good|fine|ok(?:ay)?|lost|afk|almost|nearly|about|here|in a (?:meeting|hurry|rush|call)|on (?:a call|a break|"
    r"line|the (?:phone|train|bus))|at the (?:airport|dentist|store|shop|door)|so )\b",
    r"\bit'?s (?:raining|snowing|late|hot|cold|sunny|windy|monday|tuesday|wednesday|thursday|friday|saturday|"
    r"sunday)\b|\b(?:is|are|keeps?|was|were) (?:failing|crashing|broken|down|throwing|hanging|stuck|red|timing out|"
    r"not working)\b",
    r"\b(?:i|we) (?:ran|pushed|tried|got|saw|opened|clicked|pasted|uploaded|attached|restarted|noticed|received|"
    r"sent|forgot|typed|checked|tested|merged|rebased) (?!married|divorced|promoted|engaged|my (?:degree|phd)|an? "
    r"(?:dog|cat|kitten|puppy|new|job))",
    r"(?:遇到|碰到|发现|出现)了?(?:一?[个些])?|(?:有|出)(?:一?个)?[^，。]{0,10}(?:问题|bug|错误|疑问|疑惑|报错|"
    r"异常)|我的?(?:函数|方法|循环|变量|数组|列表|查询|"
    r"字符串|屏幕|页面|程序|代码(?=在|不|没|报|有|第))|有一?[个段]?[^，。]{0,8}(?:列表|数组|函数|变量|参数|字符串|"
    r"字典|数据框|目标值)|没有?反应|(?:抛出|返回了|报了|报出|"
    r"一直失败|空指针|崩溃)|第\s*\d+\s*行|\w+(?:Error|Exception)|\bbug\b|回头(?:再|见)|我们?(?:要|得|先)(?:出门|走|"
    r"去|先|离开|下班|休息|睡|吃|开会)|我"
    r"(?:会|马上|这就)(?:去|来|看)",
    r"我们?(?:已经|又|也|先|把[^，。]{1,12})?[^，。已经]{0,2}?(?:改|启|试|跑|装|更新|添加|删除?|修|打开|上传|下载|"
    r"点击?|复制|写完?|加|调|运行|执行|提交|发|看|查|搜|问|"
    r"合并|推送|关闭?|清空?|弄|搞|测|换下|升级|回滚|吃|去)(?:过)?了|老是|我们?快(?!递|乐)|[写做看弄搞改跑]完|有点"
    r"(?!心)|今天|今早|今晚|昨天|昨晚|明天|刚刚|刚才|正在|此刻|这会儿|"
    r"这两天|等会|待会|马上|一会儿|暂时|目前(?:是坏|坏|报错|卡|不可用|挂|有问题|还没|正)|(?:分钟|小时|秒)(?:后|前)|"
    r"又来",
    r"(?:现在|目前)(?!(?:就|都|改|已经)?(?:在(?!开会|看|跑|写|调|等|吃|路上|忙|用手机|测|改|修|查|外面|家里)|住|"
    r"定居|居住|生活|负责|用|从事|就职|改用|是(?:一名|一个|在)|"
    r"担任|主要|叫|养|学|做|换))",
    r"我刚(?!毕业|结婚|搬|入职|换|当上|升)|(?:有点|好|太|很|非常)(?:累|困|饿|忙|烦|开心|难过|生气|无聊|紧张|着急|"
    r"困惑)|我(?:很|非常|特别)?(?:累|困|饿|忙|烦)了?[。.]?$|"
    r"卡住|报错|挂了|崩了|跑不起来|跑不通|失败了|出错|不工作了",
    r"今日(?:は|の)|今(?:から|ちょうど)|さっき|지금|오늘|방금|어제|내일",
    r"\b(?:heute|gerade|im moment|gestern|morgen früh|jetzt gerade|hoy|ahora mismo|ayer|mañana por|aujourd'hui|en "
    r"ce moment|hier|maintenant|hoje|agora|ontem|oggi|adesso|danas|trenutno|upravo|sutra|juče|данас|тренутно|управо|"
    r"сутра|сегодня|сейчас|вчера|завтра)\b",
)
_FOR_YEARS = _any(
    r"\bsince (?:i was|(?:19|20)\d\d|childhood|college|university)\b|\b(?:for|over) (?:\w+ ){1,3}(?:years|"
    r"decades)\b|年了|多年|从小"
)
_UNDECIDED = _any(
    r"\b(?:don't|do not|doesn't|does not|didn't|did not|can't|cannot|couldn't|haven't|have not|hasn't|never) (?:\w+ "
    r")?(?:know|understand|understood|remember|recall|decided?|see|get it|get why|find|figure|follow|work(?! (?:for|"
    r"at|in|as|with|on (?!my|our)))|compile|run|build|help|matter|mind|care|mean|seem|think|got|tried|started|"
    r"finished|picked|chosen|settled|agreed)\b",
    r"\b(?:hasn't|haven't|hadn't|has not|have not) (?:\w+ )?(?!smoked|eaten|drunk|drunken)\w+|\b(?:not able|unable) "
    r"to\b|\bno (?:time|access|luck|internet|connection|response|answer|result|output|effect)\b|\bcan't (?:log|sign|"
    r"open|access|connect|find|see|get|reach|install|reproduce|upload|download)\b",
    r"没(?:有)?(?:时间|空|法子|办法|网|电|到|收到|成功|反应|效果|权限|结果|头绪)|还没(?:到|有?收到|来|好|弄|做|写|"
    r"开始|完)|[^不]不(?:上去|上来|出来|进去|下来|开了?|过去|"
    r"动了?|了)[。.!！]*$|(?:登录|打开|连接|连|打|装|跑|编译|访问|进|下载|上传)不(?:上去?|开|了|出来|进去?|通|过)",
    r"\b(?:undecided|no clue|yet to (?:decide|choose|pick)|not working|isn't working|won't (?:work|compile|start|"
    r"build)|still deciding|no preference|either is fine|doesn't matter)\b",
    r"不知道|不明白|不太明白|不懂|不清楚|没(?:有)?(?:决定|想好|想清楚|定下来|搞懂|弄懂|选好|确定|定)|还没(?!有?"
    r"(?:孩子|结婚|毕业))|尚未|没听懂|看不懂|不行了?$|不起作用|无所谓|都可以|"
    r"随便|都行",
    r"わからない|分かりません|わかりません|まだ決め|모르겠|아직",
    r"\b(?:weiß nicht|verstehe nicht|no sé|no entiendo|je ne sais pas|je ne comprends pas|não sei|non so|ne znam|ne "
    r"razumem|не знам|не разумем|не знаю|не понимаю|nisam siguran|nisam odlučio)\b",
)

# -- who says so -----------------------------------------------------------------------------------
_HEARSAY = _any(
    r"\b(?:he|she|they|people|someone|somebody|everyone|everybody|others|folks|experts|critics|(?:my|a|our|some|the|"
    r"his|her) (?:\w+ )?(?:friend|colleague|co-?worker|neighbou?r|boss|cousin|classmate|roommate|teacher|client|"
    r"brother|sister|uncle|aunt|guy|person|article|blog|post|docs?|documentation|paper|book|video|report|news|"
    r"website|author|tutorial))(?:'s \w+)?s? (?:also |always |once |just |recently )?(?:sa(?:y|ys|id)|tells?|told|"
    r"claims?|claimed|thinks?|thought|mentions?|mentioned|suggests?|suggested|recommends?|recommended|argues?|"
    r"believes?|swears?|reports?|heard|states?|stated)\b",
    r"\b(?:an?|my|our|the|some|his|her) (?!user\b|project\b|team\b)[\w\-]+ (?:told|tells|says|said|thinks|claims|"
    r"claimed|mentioned|argues)\b",
    r"\b(?:i (?:have )?(?:heard|read|saw|was told)|i've (?:heard|read)|according to|reportedly|rumou?r|apparently|"
    r"word is|it is said|they say|some (?:people|say|developers|users|folks|teams)|many (?:people|developers|users)|"
    r"most (?:people|developers|users)|a lot of people|people (?:say|often|usually|tend|prefer|like))\b",
    r"\b(?:my|a|our|his|her|the) (?:\w+ )?(?:friend|colleague|co-?worker|neighbou?r|cousin|classmate|roommate|"
    r"acquaintance)(?:'s \w+)?,?(?: [A-Z]\w+,?)? (?:uses?|used|likes?|loves?|prefers?|hates?|wants?|has|had|lives?|"
    r"works?|is|was|switched|moved)\b",
    r"\bmy \w+'s (?:\w+ )?(?:girlfriend|boyfriend|wife|husband|friend|brother|sister|cousin|boss|colleague|mother|"
    r"father|mom|dad|son|daughter|neighbou?r|roommate|uncle|aunt)\b|我(?:的)?[^，。的]{1,4}的(?:妹妹|弟弟|哥哥|姐姐|"
    r"朋友|同事|老板|女朋友|"
    r"男朋友|老婆|老公|同学|邻居)",
    r"\b(?:developers|users|programmers|engineers|companies|everyone|everybody|nobody) (?:\w+ly )?(?:prefers?|uses?|"
    r"likes?|loves?|hates?|wants?|knows?)\b",
    r"我(?:的|家)?[^，。的我]{1,4}(?:说|觉得|认为|建议|告诉)(?!话|中文|英|日|法|德|俄|.{0,2}[语话])|听说|据说|据"
    r"(?:报道|称|悉|传)|有人说|有些人|有的人|很多人|不少人|"
    r"大家都(?!叫)|人们|网上(?:都)?说|文章(?:里)?说|书上说|(?:同事|朋友|邻居|同学|老板|领导|他|她|他们|室友|客户|"
    r"文档|新闻|博客|老师|别人)(?:们)?(?:.{0,6})(?:说|觉得|"
    r"认为|告诉|提到|推荐|建议|声称)|(?:我(?:的)?|一个)(?:同事|朋友|邻居|同学|室友)(?:们)?.{0,8}(?:用|喜欢|讨厌|住|"
    r"偏好|想|是|在|有|养)|告诉(?:过|了)?我|跟我说"
    r"(?!话)|传闻",
    r"らしい|そうです[。.]?$|と聞い|によると|대요[.]?$|라고 (?:했|들었)",
    r"\b(?:man sagt|laut|angeblich|dicen que|según|he oído|on dit que|selon|il paraît|dizem que|segundo|dicono che|"
    r"kažu|navodno|čuo sam|čula sam|кажу|наводно|говорят|слышал|по словам)\b",
)

# -- to whom ---------------------------------------------------------------------------------------
_GREETING = _any(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening|night)|thanks?|thank you|thx|cheers|bye|goodbye|see you|"
    r"ok(?:ay)?|yes|yep|yeah|no|nope|sure|great|perfect|nice|cool|awesome|sorry|welcome|congrat\w*|got it|sounds "
    r"good|well done|(?:please )?go ahead|exactly|right|correct|agreed|fine|done|lgtm|nice to meet you|never ?mind|"
    r"no problem|you too|haha\w*|lol)\b\W*",
    r"^\W*(?:你好|您好|嗨|哈喽|早上好|下午好|晚上好|晚安|谢谢|感谢|多谢|好的|好吧|好|嗯|是的|对|对的|没问题|可以|行|"
    r"不用了|再见|拜拜|辛苦了|抱歉|对不起|太好了|明白了?|知道了|收到|不客气|"
    r"很高兴认识你|那感谢你)[啊呀哦吧呢了的]?(?=\W|$)\W*",
    r"^\W*(?:ありがとう|こんにちは|おはよう|はい|いいえ|了解|すみません|안녕|감사|고마|네|아니요|danke|hallo|guten "
    r"(?:tag|morgen)|gracias|hola|buenos|"
    r"merci|bonjour|salut|obrigad|olá|grazie|ciao|hvala|zdravo|ćao|хвала|здраво|спасибо|привет)\b\W*",
)
_FEEDBACK = _any(
    r"\bhere(?:'s| is| are)\b|\b(?:this|these)\b(?!\s*[.!]?$)|\b(?:the (?:above|below|following|attached))\b|\bthat "
    r"(?:fixed|solved|helped|did|makes|made|works|worked|explains|broke)\b",
    r"(?:下面|上面|附件)|(?:以下|以上|如下)(?:是|的(?!版本)|为|内容|代码|[:：])|这(?!些年|几年|么|是(?:我|我们|咱们|"
    r"团队|公司|我们?团队)[^，。]{0,6}(?:规定|习惯|约定|"
    r"规范|偏好|要求|规矩))|那(?:个|段|行|份|边)",
    r"\b(?:your|the (?:last|previous|above)) (?:\w+ )?(?:answer|reply|response|suggestion|solution|code|explanation|"
    r"output|version|recommendations?)\b",
    r"\b(?:i|we) (?:like|love|prefer|want|meant|chose|pick|hate|dislike|need|wanted|asked for|use|have|know|see|"
    r"agree with) (?:it|that|this|these|those|them|both|neither|the (?:first|second|third|last|other|latter|former|"
    r"previous|next|new|one)|this one|that one|version|option|number)\b",
    r"^\W*(?:(?:no|but|so|and|ok(?:ay)?|hmm+|sorry|well|actually|wait|oh)\W+)*(?:that|this|it)(?:'s| is| was| looks|"
    r" works| worked| isn't| wasn't| doesn't| seems| sounds)\b(?!.*\b(?:my|our)\b)|\bnot what i\b|\byou (?:were|are|"
    r"got|said|forgot|missed|made|didn't|did not|just|could|should|have|already|can(?! (?:call|address|reach|find|"
    r"assume|always)))\b|\b(?:the way|how) you\b|\b(?:like|prefer|love|hate|dislike) the (?:tone|look|style|"
    r"colou?rs?|design|idea|wording|sound|structure|layout|logo|title|version|draft|text|intro\w*|ending|plan|"
    r"approach|way|result|output|picture|image|new|old|blue|red|green)\b|\bas (?:you|i) (?:said|mentioned|"
    r"suggested)\b|\b(?:first|second|third|previous|other|latter|former) (?:one|option|version|approach|solution|"
    r"suggestion)\b",
    r"你(?:刚才|说错|的(?:回答|答案|代码|建议|推荐|方案|解释)|这样|理解错|忘了|弄错|搞错|给的|写的)|"
    r"第[一二三四五1-5]个|(?:上|前|后|这|那)(?:一)?(?:个|版|种)(?:方案|版本|"
    r"答案|写法|选项|更好|不错|也行)|(?:我要的不是|不是这个意思|不是我想要的|这个(?:不错|更好|可以|好)|那个更)",
)
_SCOPE = _any(
    r"\b(?:this|that|these) (?:(?:\w+ )?(?:project|repo(?:sitory)?|codebase|monorepo|workspace|team|company|"
    r"organi[sz]ation|app|service|year|summer|winter|autumn|spring)|is (?:how|the way|what) we)\b|\bthese days\b",
    r"(?:这个?|本|该|那个?)(?:项目|仓库|工程|代码库|团队|公司|系统|应用|服务|产品)",
)
"""Points at what stays in sight."""
_CLICKS = Pattern(
    r"\b(?:the )?users? (?:clicks?|presses|enters|submits|selects|types|taps|scrolls|opens|closes|receives|logs "
    r"(?:in|out)|visits)\b",
    _I,
)
"""A person using the software, in a bug report."""
_NOT_ABOUT = Pattern(
    r"^(?:user|the user|用户)\s*(?:asked|asks|requested|requests|wants? (?:help|me|you|the assistant|to know)|needs? "
    r"help|is asking|inquired|wonders|请求|询问|要求(?:帮|修|改|写)|想知道|问)",
    _I,
)

ABOUT = _any(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|we're|we've|us|our|ours)\b",
    r"\b(?:the )?users?(?:'s)?\b",
    r"\b(?:the|this|our|production|prod|staging|dev|main|default|each|every|all)?\s*(?:project|repo(?:sitory)?|"
    r"codebase|monorepo|backend|back-end|frontend|front-end|ci|ci/cd|pipeline|deploy(?:ment|s|ments)?|staging|"
    r"production|releases?|migrations?|auth(?:entication|orization)?|entry ?point|test suite|unit tests|integration "
    r"tests|linter|main branch|release branch|code style|coding style|build system|package manager|primary keys?|"
    r"changelog|monitoring|on-?call|sprint|roadmap|stack|tenant|schema)\b",
    r"\bthe (?:[\w\-]+ ){0,2}(?:service|server|api|app|application|database|db|cluster|worker|queue|module|package|"
    r"team|company|client|customers?|users?|system|tables?|dataset|website|site|gateway|bot|endpoint|branch|config"
    r"(?:uration)?|repo|tests?|logs?|build|cache|dashboard|sdk|cli|library|(?:\w+ )?script|module|bucket|container|"
    r"image|scheduler|proxy|domain|office|product|port)\b",
    r"\b(?:nightly|hourly|daily|weekly|monthly|quarterly)\b|\b(?:dark|light) mode\b",
    r"\b(?:all|every|each|both|most) (?:of )?(?:\w+ ){0,2}(?:services|endpoints|tables|requests|errors|logs|tests|"
    r"modules|packages|deployments|branches|commits|prs?|pull requests?|migrations|secrets|users|jobs|images|builds|"
    r"apis|timestamps|dates|names|ids)\b|^\W*(?:services|endpoints|secrets|logs|tests|backups|migrations|commits|"
    r"pull requests|prs|images|builds|errors|timestamps|jobs|metrics|users|sessions|passwords|docs|documentation|"
    r"docker|feature flags)\b",
    r"我|咱|俺|本人|用户|(?:项目|仓库|团队|公司|后端|前端|数据库|接口|服务|环境|测试|生产|线上|部署|分支|代码|日志|"
    r"缓存|主键|表|客户|模块|脚本|金额|价格|负责|文档|密钥|订单|用户|系统|"
    r"登录|认证|鉴权|入口|端口|发布|版本|上线|构建|流水线|变量|命名|缩进|主键|表|集群|服务器|框架|依赖|配置)",
    r"私|僕|俺|わたし|ぼく|我々|うち(?:の|は)|弊社|普段|プロジェクト|저는|제|나는|내|우리|저희|프로젝트",
    r"\b(?:is|are) (?:always |never |only |all )?(?:stored|managed|kept|written|generated|deployed|versioned|cached|"
    r"logged|hosted|formatted|encrypted|handled|served|pushed|published|built|named|scheduled|owned|reviewed|"
    r"rotated|validated|represented|located) (?:in|as|with|by|on|at|to|via|using|through|under|from|every|after|"
    r"before)\b",
    r"存成|存为|存储在|放在|保存在|托管在|部署在|以.{1,6}为单位|必须(?:保留|使用|经过|通过|符合)|负责人",
    r"\b(?:ich|mein\w*|wir|unser\w*|mich|mir|yo|mi|mis|me|nosotros|nuestr\w+|je|mon|ma|mes|nous|notre|nos|moi|eu|"
    r"meu|minha|nós|noss\w+|io|mio|mia|noi|nostr\w+|vivo|trabajo|prefiero|uso|utilizo|moro|trabalho|prefiro|abito|"
    r"lavoro|preferisco|uso)\b|\bj'",
    r"\b(?:ja|moj\w*|moja|mi|naš\w*|mene|živim|radim|koristim|zovem|volim|imam|mieszkam|pracuję|używam|wolę|mój|"
    r"moja|nasz\w*|ik|mijn|wij|ons|onze|ben|benim|biz|bizim|tôi|saya|kami)\b",
    r"\b(?:ја|мој\w*|ми|наш\w*|живим|радим|користим|зовем|волим|имам|я|мой|моя|моё|мы|меня|мне|живу|работаю|"
    r"использую|предпочитаю|зовут)\b",
)
"""Speaks of the user, of us, of the project or a part of it."""


def is_question(sentence: str) -> bool:
    """Asks something."""
    return _QUESTION.search(sentence) is not None


def is_speculation(sentence: str) -> bool:
    """Says that it is not sure, or only intends."""
    return _SPECULATION.search(sentence) is not None


def is_hypothetical(sentence: str) -> bool:
    """Supposes, plays or regrets."""
    return _HYPOTHETICAL.search(sentence) is not None


def is_passing(sentence: str) -> bool:
    """True of now, not of next month."""
    return (_NOW.search(sentence) is not None or _CLICKS.search(sentence) is not None) and _FOR_YEARS.search(
        sentence
    ) is None


def is_undecided(sentence: str) -> bool:
    """Says what is not known, not chosen or not working."""
    return _UNDECIDED.search(sentence) is not None


def is_hearsay(sentence: str) -> bool:
    """What others say, or do."""
    return _HEARSAY.search(sentence) is not None


def is_greeting(sentence: str) -> bool:
    """A courtesy or an answer in one word, with nothing about the user after it."""
    rest = strip_greeting(sentence)
    return rest != sentence and (len(rest) < 4 or not is_about_us(rest) or is_greeting(rest))


def strip_greeting(sentence: str) -> str:
    """`sentence` without the greeting, thanks or yes that it begins with."""
    return _GREETING.sub("", sentence, count=1)


def is_feedback(sentence: str) -> bool:
    """About the reply just given, or pointing at something in sight."""
    return _FEEDBACK.search(_SCOPE.sub(" ", sentence)) is not None


def is_about_request(sentence: str) -> bool:
    """A model's note that the user asked for something, not a fact about the user."""
    return _NOT_ABOUT.search(sentence) is not None


def is_about_us(sentence: str) -> bool:
    """About the user or the project."""
    return ABOUT.search(sentence) is not None
