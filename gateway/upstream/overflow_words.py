"""The words in which vendors say that a context is too long, and where in them the numbers stand.

Data for `overflow.py`. Each alternative is there for a wording in its test table; the patterns are written so that
none costs more than some milliseconds on a text made to be slow.
"""

from __future__ import annotations

import re
from typing import Final

_N: Final = r"(\d[\d,_]*)"

NEVER: Final = frozenset({401, 402, 403, 404, 405, 407, 408, 429})
"""Statuses that say something else by definition."""

CODES: Final = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq, OpenRouter, Together
        "context_window_exceeded",
        "contextwindowexceedederror",  # litellm
        "exceed_context_size_error",  # llama.cpp
        "model_max_prompt_tokens_exceeded",  # GitHub Copilot
        "1261",  # Zhipu GLM
    }
)

RATE: Final = re.compile(
    r"tokens? per (?:min|hour|day|sec)|\bTP[MD]\b|rate[ _-]?limit|per[ -]minute|too many requests|quota"
    r"|\b(?:hourly|daily|weekly|monthly)\b|upgrade your plan",
    re.IGNORECASE,
)

_SUBJECT: Final = r"(?:prompt|input|context|conversation|messages?|request|query|inputs?|history|chat)"
SIGNS: Final = re.compile(
    "|".join(
        (
            r"context[ _-]?(?:length|window|size|limit)s?[ _](?:\w+[ _]){0,3}?exceed",
            r"exceed(?:s|ed|ing)?\b(?:\W+\w+){0,6}?\W+(?:context|prompt|input)[ _-]?(?:length|window|size|limit)",
            r"context[ _]?(?:window|length|size)? ?(?:overflow|exceeds)",
            r"max(?:imum)?\W+(?:\w+ ){0,2}?(?:context|prompt|input|sequence|model|token)[ _-]?(?:length|window|size)",
            r"(?:longer|larger|greater|bigger) than (?:\S+ ){0,4}(?:context|model|input)[ _-]?(?:length|window|size)",
            _SUBJECT + r"(?: (?!max|queue)\w+){0,3}?(?: \([^)]{0,40}\))?(?: is| are| was)? ?too (?:long|many tokens)",
            r"too many (?:input |prompt |total )?tokens(?! (?:to generate|requested for))",
            r"too large for (?:the )?model with|too large: [\d,]+ (?:input )?tokens|greater than max_seq_len",
            r"context (?:window|length) is full|total (?:number of )?tokens .{0,40}exceed",
            r"(?:input|prompt)s?[ _](?:tokens? ?)?(?:count|length|limit)?\W.{0,40}"
            r"exceed(?:s|ed|ing)?\b\W+(?:the|model|limit)\b",
            r"input tokens exceed|max length exceeded",
            r"(?<!output )(?<!completion )token limit(?: exceeded|:)|exceeded model token limit",
            r"request contains \d+ tokens",
            r"requested tokens? .{0,40}exceed",
            r"range of input length should be",
            r"inputs\W? (?:tokens \+|must have less than)",
            r"tokens to keep from the initial prompt|keep the first \d+ tokens when context|n_keep.{0,30}n_ctx",
            r"max_tokens must be at least 1, got -",
            r"reduce (?:the )?(?:length|size) of (?:the |your )?(?:messages|prompt|input|conversation)",
            r"(?:prompt|input|messages?|conversation)(?: \w+){0,3} exceeds? (?:the )?max(?:imum)?(?: \w+){0,3} length",
            r"(?:total number of tokens|tokens in the prompt).{0,30}(?:cannot|can't|must not) exceed",
            r"(?:prompt|input|request) has [\d,]+ tokens(?:, but| which exceeds?)",
            r"requested token count .{0,20}(?:is greater|exceeds)",
            r"model_context_window_exceeded",
            r"current length is \d+.{0,20}limit is \d+",
            r"(?:输入|上下文|提示词|对话|消息|prompt|token)\S{0,12}(?:超过|超出|超长|过长|太长|溢出)",
            r"最大长度.{0,30}超|コンテキスト\S{0,12}超|컨텍스트.{0,16}초과",
            r"(?:超过|超出)\S{0,12}(?:最大长度|长度限制|上下文|输入长度|最大输入|token)",
        )
    ),
    re.IGNORECASE,
)

BYTES: Final = re.compile(
    r"(?:request|payload|body|entity|content)(?: \w+){0,2} (?:is )?(?:too large|exceeds the (?:limit|maximum))"
    r"|request_too_large|total text bytes"
    r"|message size \d+ exceeds|invalid 'messages\[\d+\]\.content[^']*': string too long"
    r"|(?:invalid 'messages'|\$\.messages'?)(?:: array| is)? too long",
    re.IGNORECASE,
)

_GAP: Final = r"(?:(?!\bby\b|exceeds limit \()[^\d]){0,40}?"
"""What may stand between a name and its number: not `by` (a difference follows) nor MiniMax's code in brackets."""

LIMITS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"n_ctx\W{1,5}" + _N,
        r"\d tokens? ?> ?" + _N,
        r"context limit: ?\d+ ?\+ ?\d+ ?> ?" + _N,
        _N + r" maximum context length",
        r"range of input length should be \[\d+, ?" + _N,
        r"maximum (?:context|prompt|input|model|sequence)[ _-]?(?:length|window|size)?" + _GAP + _N,
        r"max input length" + _GAP + _N,
        r"(?:must be <=|must have less than) ?" + _N,
        r"maximum number of (?:input )?tokens(?: allowed)?\W{1,3}" + _N,
        r"context[ _-](?:length|window|size|limit)" + _GAP + _N,
        r"(?:token limit|max length)\W{1,3}" + _N,
        r"cannot exceed " + _N,
        r"exceeds? (?:the )?(?:\w+ ){0,4}(?:limit|maximum)(?: of)?[ :=]{1,3}" + _N,
        r"limit (?:is|of) " + _N,
        r"> " + _N + r" maximum",
        r"max tokens supported is " + _N,
        r"\d ?> ?" + _N,
        r"(?:at most|up to|(?<!exceeds )limit|\bmax(?:imum)?\b|max_seq_len)(?:(?!\bby\b)[^\d]){0,30}?" + _N,
        r"(?:最大|上限|限制|不超过|不能超过)[^\d]{0,12}" + _N,
    )
)

TOTALS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"total of (?:at least |about )?" + _N,
        r"requested:? (?:about |at least )?" + _N + r"(?! (?:output|completion))",
        r"resulted in (?:about |at least )?" + _N,
        r"too (?:long|large)\W{1,2}" + _N,
        r"exceeded: " + _N + r" ?>",
        r"(?:length|tokens) \(?" + _N + r"\)? (?:exceed|cannot|is greater)",
        r"token count\W{1,3}(?:of )?" + _N,
        r"supplied " + _N,
        r"received " + _N,
        r"or less, got " + _N,
        r"current length is " + _N,
        r"first " + _N + r" tokens",
        r"n_keep\W{1,5}" + _N,
        r"requested tokens? \(" + _N,
        r"(?:prompt|input|request|messages?) \((?:length |of )?" + _N,
        r"(?:prompt|request|input|messages?)(?: \w+)? (?:contains?|has|have) (?:about |at least )?"
        + _N
        + r"(?! input)",
        r"given: " + _N + r"(?!\d* \Winputs)",
    )
)

INPUT_AND_OUTPUT: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"context limit: ?" + _N + r" ?\+ ?" + _N,
        r"given: " + _N + r" \Winputs\W? tokens and " + _N,
        r"\(" + _N + r" (?:in the messages|in your prompt|of text input|in the prompt)[^)]{0,60}?[,;] ?"
        r"(?:\d+ of tool input, )?" + _N + r" (?:in|for) the (?:completion|output)",
        r"requested " + _N + r"(?= output tokens)(?P<swap>).{0,40}?contains at least " + _N,
        r"has " + _N + r" input tokens plus " + _N,
        r"tokens\W{0,2} (?:or \S+ )?is too large: " + _N + r"(?P<swap2>).{0,120}?has " + _N + r" input tokens",
    )
)  # fmt: skip
