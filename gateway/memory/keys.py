"""Which memories speak of the same thing: canonical keys, in English and Chinese.

A newer memory supersedes an older one of the same key (four spaces in January, tabs in March), so "缩进", "tab size"
and "indentation style" must be one key, and "Paris" and "Berlin" must meet under the place the user lives in. The
tables are small: they name the subjects that people state preferences about; anything else keeps its own words as
its key.
"""

from __future__ import annotations

import re
import unicodedata

from gateway.memory.patterns import Pattern

_ALIASES = {
    "indentation": "indent indent_style indent_size indentation_style tab_size tab_width tabs_or_spaces tabs_vs_spaces "
    "code_indentation whitespace 缩进 缩进风格 缩进方式 代码缩进 インデント 들여쓰기 einrückung",
    "reply_language": "response_language answer_language output_language language_preference "
    "preferred_language_of_reply communication_language "
    "conversation_language spoken_language reply_in 回复语言 回答语言 语言偏好 交流语言 "
    "输出语言 对话语言 使用语言 "
    "返信言語",
    "reply_length": "response_length answer_length verbosity brevity response_style answer_style conciseness "
    "reply_style explanation_style 回答长度 回复长度 回答风格 回复风格 详细程度 简洁程度",
    "name": "user_name username first_name full_name called 姓名 名字 称呼 用户名 叫 名前 이름 ime ім'я",
    "city": "lives_in live_in location residence home home_city residing_in based_in place_of_residence moved_to "
    "relocated_to resides_in 城市 住址 居住地 所在城市 所在地 居住 住在 搬到 居住城市 stadt ciudad ville grad",
    "employer": "works_at work_at works_for company workplace employed_by employed_at organization 公司 雇主 工作单位 "
    "就职于 任职于 单位 "
    "arbeitgeber empresa",
    "role": "job occupation profession job_title position works_as title career is_a 职业 职位 岗位 工作 身份 beruf "
    "profesión",
    "editor": "ide code_editor text_editor uses_editor preferred_editor 编辑器 代码编辑器 开发工具 文本编辑器 エディタ",
    "programming_language": "coding_language main_language primary_language dev_language language_used language "
    "编程语言 开发语言 主要语言 语言",
    "timezone": "time_zone tz utc_offset 时区 タイムゾーン zeitzone",
    "os": "operating_system platform system desktop_os 操作系统 系统 电脑系统",
    "shell": "default_shell terminal_shell login_shell 终端",
    "browser": "web_browser default_browser 浏览器",
    "theme": "color_theme colour_theme ui_theme dark_mode color_scheme colour_scheme "
    "appearance 主题 配色 界面主题 外观",
    "package_manager": "pkg_manager node_package_manager 包管理器 包管理工具",
    "database": "db primary_database main_database database_engine rdbms 数据库 主数据库 データベース datenbank baza",
    "framework": "web_framework main_framework backend_framework 框架 主框架",
    "test_framework": "testing_framework test_runner tests_with 测试框架",
    "naming_style": "naming naming_convention variable_naming case_style 命名 命名风格 命名规范 变量命名",
    "comment_language": "comments_language code_comment_language comment_lang 注释语言 代码注释语言",
    "comments": "code_comments comment_style 注释 代码注释",
    "emoji": "emojis emoji_use 表情 表情符号",
    "markdown": "markdown_use formatting reply_format response_format 格式 回复格式 回答格式",
    "date_format": "dates date_style time_format 日期格式 时间格式",
    "units": "unit_system measurement_system 单位 单位制",
    "line_length": "max_line_length line_width print_width 行宽 每行长度",
    "quotes": "quote_style string_quotes 引号",
    "semicolons": "semicolon_use 分号",
    "tone": "voice tone_of_voice formality 语气 口吻",
    "spelling": "english_spelling english_variant 拼写",
    "type_hints": "type_annotations typing 类型注解 类型提示",
    "birthday": "date_of_birth birth_date born_on 生日 出生日期",
    "age": "years_old 年龄 岁数",
    "email": "e_mail mail email_address e_mail_address mail_address 邮箱 邮箱地址 电子邮件 电子邮箱 邮件地址 "
    "メールアドレス",
    "phone": "phone_number telephone telephone_number mobile mobile_number 电话 电话号码 手机 手机号 手机号码",
    "diet": "dietary_restriction dietary_preference eating 饮食 饮食习惯",
    "main_branch": "default_branch trunk release_branch 主分支 默认分支",
    "port": "api_port server_port 端口 端口号",
    "ci": "ci_system ci_cd continuous_integration 持续集成",
    "deployment": "deploy_target hosting hosted_on deployed_on 部署 部署环境",
}
_BY_ALIAS = {alias: key for key, aliases in _ALIASES.items() for alias in [key, *aliases.split()]}

SINGLE_VALUED = frozenset(_ALIASES) - {"deployment", "framework", "port"}
"""Keys of which only one value holds at a time, per owner."""

_VALUE_CLASSES = {
    "editor": "vim neovim nvim emacs doom_emacs vscode vs_code visual_studio_code visual_studio sublime sublime_text "
    "intellij intellij_idea pycharm webstorm goland clion "
    "rustrover zed helix nano atom cursor windsurf xcode android_studio eclipse notepad++ kate jetbrains fleet",
    "os": "linux ubuntu debian fedora arch arch_linux nixos macos mac_os windows windows_10 windows_11 freebsd "
    "openbsd mint linux_mint pop_os manjaro gentoo opensuse wsl wsl2",
    "shell": "bash zsh fish nushell powershell ksh tcsh xonsh",
    "browser": "firefox chrome safari edge brave opera vivaldi chromium arc",
    "package_manager": "npm pnpm yarn bun pip uv poetry conda pipenv pdm",
    "theme": "dark_mode light_mode dark_theme light_theme dark light 深色 浅色 深色主题 浅色主题 深色模式 浅色模式 "
    "暗色主题 亮色主题 暗黑模式",
}
_CLASS_OF = {value: key for key, values in _VALUE_CLASSES.items() for value in values.split()}

HUMAN_LANGUAGES = {
    "en": "english englisch inglés ingles anglais engleski енглески английский 英文 英语 英語 영어",
    "zh": "chinese simplified_chinese mandarin 中文 汉语 普通话 简体中文 国语 中国語 중국어 chinesisch chino chinois "
    "kineski",
    "zh-hant": "traditional_chinese 繁体中文 繁體中文",
    "es": "spanish español espanol spanisch espagnol 西班牙语 西班牙文",
    "fr": "french français francais französisch francés 法语 法文",
    "de": "german deutsch alemán allemand nemački 德语 德文",
    "ja": "japanese 日语 日文 日本語 japanisch",
    "ko": "korean 韩语 韩文 한국어",
    "ru": "russian 俄语 俄文 русский russisch",
    "sr": "serbian srpski српски 塞尔维亚语",
    "pt": "portuguese português 葡萄牙语",
    "it": "italian italiano 意大利语",
    "pl": "polish polski 波兰语",
    "nl": "dutch nederlands 荷兰语",
    "tr": "turkish türkçe",
    "ar": "arabic 阿拉伯语 العربية",
    "uk": "ukrainian українська",
    "vi": "vietnamese 越南语",
    "hi": "hindi",
    "sv": "swedish svenska",
    "cs": "czech čeština",
    "el": "greek",
    "hr": "croatian hrvatski",
}
_LANGUAGE_CODE = {word: code for code, words in HUMAN_LANGUAGES.items() for word in words.split()}

_LEAD_RE = Pattern(
    r"^(?:(?:the|a|user|users|user's|my|our|their|his|her|preferred|preferred_for|favou?rite|default|"
    r"main_favou?rite|current|code_style|preference|prefers|likes?|uses?|has|is)_)+"
    r"|^(?:用户(?:的)?|我(?:们)?的|首选(?:的)?|偏好(?:的)?|喜欢(?:的)?|默认|常用(?:的)?|当前|代码风格)(?=.)"
)
_TAIL_RE = Pattern(
    r"(?:_(?:preference|preferences|pref|setting|settings|choice|used))+$|(?<=.)(?:偏好|设置|选择|习惯|风格|方式)$"
)


def slug(text: str) -> str:
    """`text` folded to the form of the tables: NFKC, lower case, words joined by `_`."""
    folded = unicodedata.normalize("NFKC", text).casefold().strip()
    return re.sub(r"[\s\-./_'’]+", "_", re.sub(r"[\"“”「」,;:!?()（）。，；：！？]", "", folded)).strip("_")


def canonical_key(key: str, value: str = "") -> str:
    """The one key for all spellings of it; `value` tells a reply's language from a programming language."""
    name = slug(key)
    for strip in (_LEAD_RE, _TAIL_RE):
        if name not in _BY_ALIAS:
            name = strip.sub("", name) or name
    found = _BY_ALIAS.get(name, name)
    if found == "programming_language" and human_language(value):
        return "reply_language"
    return found


def human_language(value: str) -> str:
    """ISO code of the human language that `value` names, or ""."""
    return _LANGUAGE_CODE.get(slug(value), "")


def class_of(value: str) -> str:
    """The key whose value `value` usually is (`Neovim` → `editor`), or ""."""
    name = slug(value)
    return _CLASS_OF.get(name) or _CLASS_OF.get(re.sub(r"_v?\d[\w]*$", "", name), "")


_SPACES_RE = Pattern(
    r"(\d+|two|three|four|eight|两|二|三|四|八)\s*(?:个)?\s*[- ]?(?:spaces?|空格|スペース|leerzeichen|espacios|"
    r"espaces|razmaka)",
    re.I,
)
_NUMBER = {"two": "2", "three": "3", "four": "4", "eight": "8", "两": "2", "二": "2", "三": "3", "四": "4", "八": "8"}
_TOPICS: tuple[tuple[str, Pattern], ...] = tuple(
    (key, Pattern(pattern, re.I))
    for key, pattern in (
        ("comment_language",
            r"\bcomments?\b.{0,20}\b(?:in|into) \w+|注释.{0,6}(?:用|写)?.{0,3}(?:中文|英文|英语|日文)|用(?:中文|"
            r"英文|英语)写注释"),
        ("indentation",
            r"\bindent\w*\b|\btabs?\b(?! (?:bar|key|completion|group))|\b(?:\d|two|four|eight)[ -]spaces?\b|缩进|"
            r"制表符|"
            r"(?:[两二四八24８8]个?)空格|\btab键|インデント|タブ|들여쓰기|\btab(?:ove|ovi|ulator\w*|ulacion\w*)\b"),
        ("reply_language",
            r"(?:answer|reply|repl(?:y|ies)|respond|response|speak|talk|write|communicate|explain|chat|responses|"
            r"answers)\w*\b.{0,24}\b(?:in|using|auf|en) |(?:用|以|使用)\S{0,3}(?:文|语|話|语言)(?:来)?(?:回答|回复|"
            r"答复|交流|沟通|对话|解释|"
            r"讲解|输出)|(?:回答|回复|交流|输出|沟通).{0,4}(?:用|使用).{0,4}(?:文|语)|日本語で|한국어로|respuestas? "
            r"en |réponses? en "),
        ("naming_style",
            r"\b(?:snake|camel|kebab|pascal)[_ -]?case\b|命名.{0,8}(?:下划线|驼峰|风格)|(?:下划线|驼峰)(?:风格|命名)"),
        ("emoji", r"\bemojis?\b|表情"),
        ("reply_length",
            r"\b(?:short|brief|concise|long|detailed|verbose|terse|thorough|under \w+ (?:sentences|words|"
            r"lines))\b.{0,30}\b(?:answers?|repl\w+|responses?|explanations?|introductions?)\b|\b(?:answers?|"
            r"repl\w+|responses?|explanations?)\b.{0,24}\b(?:short|brief|concise|long|detailed|terse|under|to the "
            r"point|minimal)\b|\bbe (?:more )?(?:concise|brief|terse|thorough)\b|(?:回答|回复|解释|说明).{0,8}"
            r"(?:简短|简洁|详细|"
            r"啰嗦|精简)|(?:简短|简洁|详细|啰嗦)\S{0,2}(?:回答|回复|解释)|kurze antworten|respuestas (?:cortas|"
            r"breves)"),
        ("date_format", r"\bdates?\b.{0,20}\b(?:iso|format|dd|mm|yyyy)|日期.{0,8}(?:格式|ISO)"),
        ("units", r"\b(?:metric|imperial|celsius|fahrenheit)\b|公制|英制|摄氏|华氏"),
        ("spelling", r"\b(?:british|american|uk|us) (?:spelling|english)\b"),
        ("line_length", r"\bline (?:length|width)\b|行宽|每行(?:最多|不超过)"),
        ("quotes", r"\b(?:single|double) quotes\b|(?:单|双)引号"),
        ("semicolons", r"\bsemicolons?\b|分号"),
        ("type_hints", r"\btype (?:hints?|annotations?)\b|类型(?:注解|提示)"),
        ("theme", r"\b(?:dark|light) (?:mode|theme)\b|(?:深色|浅色|暗色|亮色|暗黑)(?:主题|模式)"),
        ("comments", r"\bcomments?\b(?! (?:on|about))|代码注释|写注释|加注释"),
        ("markdown", r"\bmarkdown\b|\bbullet points?\b"),
        ("tone", r"\b(?:formal|informal|casual|blunt|polite|friendly)(?:ly)?\b|\btone\b|语气|口吻"),
        ("timezone", r"\btime ?zone\b|时区"),
    )
)  # fmt: skip


def topic_of(sentence: str) -> str:
    """The canonical key that a sentence about style or replies speaks of, or ""."""
    return next((key for key, pattern in _TOPICS if pattern.search(sentence)), "")


def topic_value(key: str, sentence: str) -> str:
    """The value that `sentence` gives to `key` where its form is known (indentation, languages), else ""."""
    if key == "indentation":
        preferred = re.split(
            r"\b(?:over|instead of|rather than|not|nego|que|als)\b|而不是|不要|不用|别用|代替", sentence, maxsplit=1
        )[0]
        if match := _SPACES_RE.search(preferred):
            return f"{_NUMBER.get(match.group(1).lower(), match.group(1))} spaces"
        return (
            "tabs"
            if re.search(r"\btab|制表符|タブ", preferred, re.I)
            else "spaces"
            if re.search(r"space|空格", preferred, re.I)
            else ""
        )
    if key in ("reply_language", "comment_language"):
        for word in re.findall(
            r"(?:simplified |traditional )?[^\W\d_]+", unicodedata.normalize("NFKC", sentence).casefold()
        ):
            if code := human_language(word):
                return code
        return next((code for word, code in _LANGUAGE_CODE.items() if not word.isascii() and word in sentence), "")
    if key == "theme":
        return "dark" if re.search(r"dark|深色|暗", sentence, re.I) else "light"
    if key in ("emoji", "semicolons", "comments", "markdown", "type_hints"):
        return (
            "no"
            if re.search(r"\b(?:no|not|never|don't|avoid|without|stop|skip|hate)\b|不|别|避免|少", sentence, re.I)
            else "yes"
        )
    return ""
