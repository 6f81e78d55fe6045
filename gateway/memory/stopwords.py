"""Words too common to find anything by, and the irregular forms no suffix rule reaches.

English and Chinese are first-class; short lists for other languages keep their most frequent function words
out of the index. All words are in the tokeniser's folded form: lower case, no accents, Serbian and Russian in Latin
letters.
"""

from __future__ import annotations

from functools import cache

_ENGLISH = """
a an the and or but nor so yet if then than that this these those there here i me my mine myself we us our ours
ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they them their
theirs themselves am is are was were be been being do does did doing have has had having will would shall should can
could may might must ought to of in on at by for from with without into onto about as s t d m ll re ve don doesn didn
isn aren wasn weren hasn haven hadn won wouldn shouldn couldn can't cannot ain oh ok okay yes yeah yep hey hi hello
please because while via etc eg ie not no just also too very
"""

_QUESTION = "what when where who whom whose which why how"

_CHINESE = """
的 了 和 是 在 我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己 这 那 这个 那个 这些 那些 就 都 也 还 又 再 很 不
没 没有 不是 有 要 会 能
可以 把 被 给 让 对 从 到 向 往 跟 与 及 或 或者 而 而且 但 但是 不过 因为 所以 如果 虽然 然后 并 并且 以 以及 为
为了 于 之 其 着 过 得 地 吗 呢
吧 啊 呀 哦 嗯 哈 啦 嘛 哎 喂 什么 怎么 怎样 怎么样 如何 为什么 为何 哪 哪个 哪些 哪里 哪儿 谁 几 多少 个 年 月 日 号
號 请 请问 是否 是不是 有没有
呃 这個 個 們 嗎 與 對 為 說 沒 還 會 給 讓 從 過 請 這個 那個 這些 沒有 我們 你們 他們 什麼 什麽 怎麼 為什麼 怎麼樣
"""

_WEAK = """
want need use like love work make help try look know think new time day year good great nice big small little first
last
next long old user people name find give take see come go keep start end set add show tell talk ask call put run
change
write read check code file project task question answer example today tomorrow yesterday week month different possible
right wrong sure able best better prefer favourit favorit recommend suggest remember plan idea problem issue part
number
place really quite much many more most some any all each every both few other another thing things something anything
everything nothing lot lots bit kind sort one even still well way now get got let only own same such ever never out up
down off over under again once until since before after through between against among per during continue thanks thank
用户 喜欢 使用 需要 希望 帮忙 工作 问题 时间 今天 明天 昨天 最近 人 事情 东西 看 听 写 吃 玩 名字 推荐 建议 提到 代码
文件 项目 任务 情况 方法 方式
开始 继续 完成 新 大 小 帮我 一起 打算 计划 想 说 去 来 做 用 好 觉得 知道 告诉 记得 关于 非常 特别 比较 十分 其实
当然 现在 真的 一个 一些 一下
一点 一样 一直 时候 已经 曾经 正在 可能 应该 能不能 可不可以 还是 还有 只是 就是 之前 之后 以前 以后 有些 有的 等等
这样 那样 这里 那里 这么 那么
叫 天气 谢谢 改 段 帮 种 一种 次 位 件 只 上 下 里 中 多 少 更 最 太 某 每 各 谢
"""

_OTHER = """
der die das den dem des ein eine einen einem einer und oder aber ist sind war ich du er sie wir ihr nicht mit von zu
im
am auf fur le la les un une des et ou est sont je tu il elle nous vous ils elles ne pas que qui de du au aux ce cette
dans sur pour avec el los las una y o es son yo tu ella nosotros no que de del al en por para con su se lo i u na je
su
se da od do za sa iz ili ali a to sam si smo ste nije ne kao sto koji koja koje mi ti on ona ono oni v k s o ya ty my
vy
eto kak tak no chto est byl byla bylo po iz za dlya の は が を に へ と も で や か から まで より です ます した
する
いる ある これ それ あれ この その あの こと もの 은 는 이 가 을 를 에 의 도 로 와 과 """

_IRREGULAR = """
use:uses,used,using go:went,gone,goes buy:bought take:took,taken give:gave,given make:made come:came become:became
see:saw,seen find:found tell:told say:said think:thought know:knew,known feel:felt leave:left meet:met
begin:began,begun
run:ran write:wrote,written read:reading speak:spoke,spoken teach:taught catch:caught bring:brought build:built
send:sent spend:spent lose:lost win:won sell:sold keep:kept sleep:slept hold:held stand:stood understand:understood
hear:heard eat:ate,eaten drink:drank,drunk drive:drove,driven fly:flew,flown grow:grew,grown draw:drew,drawn
throw:threw,thrown wear:wore,worn swim:swam,swum sing:sang,sung ride:rode,ridden choose:chose,chosen
break:broke,broken
fall:fell,fallen forget:forgot,forgotten pay:paid lead:led child:children person:people,persons man:men woman:women
foot:feet tooth:teeth mouse:mice wife:wives life:lives knife:knives leaf:leaves shelf:shelves half:halves fight:fought
seek:sought sit:sat dream:dreamt learn:learnt bear:born steal:stole,stolen wake:woke,woken shake:shook,shaken
hide:hid,hidden bite:bit,bitten freeze:froze,frozen rise:rose,risen arise:arose lie:lay,lain mean:meant deal:dealt
bend:bent lend:lent light:lit shoot:shot spin:spun stick:stuck strike:struck swear:swore sweep:swept tear:tore,torn
weep:wept wind:wound good:better,best bad:worse,worst """


@cache
def stop_words() -> frozenset[str]:
    """Words that are never indexed nor searched, but for `question_words`, which are kept apart."""
    return frozenset((_ENGLISH + _QUESTION + _CHINESE + _OTHER).split())


@cache
def weak_words() -> frozenset[str]:
    """Words that say little about whether a memory bears on a request; they are searched all the same."""
    return frozenset(_WEAK.split())


@cache
def irregular_forms() -> dict[str, str]:
    """Inflected form -> base form."""
    pairs = (group.split(":") for group in _IRREGULAR.split())
    return {form: base for base, forms in pairs for form in forms.split(",")}
