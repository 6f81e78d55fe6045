"""Real wordings of "the context is too long", each with the public place it was taken from, and what must not match."""
# ruff: noqa: E501  (wordings are quoted as they came)

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.overflow import Overflow, context_overflow


def openai(message: str, code: str | None = "context_length_exceeded", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code, **more}}


def anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CUB2"}


def vllm(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def google(message: str) -> dict[str, Any]:
    error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
    return {"error": {**error, "errors": [{"message": message, "domain": "global", "reason": "badRequest"}]}}


# (source, status, body, limit, requested)
TOKENS: list[tuple[str, int, Any, int | None, int | None]] = [
    (
        "github.com/webtimemachine/wtm2/issues/579 (OpenAI)",
        400,
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. "
            "Please reduce the length of the messages."
        ),
        128000,
        204308,
    ),
    (
        "github.com/Chanzhaoyu/chatgpt-web/issues/354 (OpenAI, with the completion)",
        400,
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 4130 tokens (3130 in the messages,"
            " 1000 in the completion). Please reduce the length of the messages or completion."
        ),
        4096,
        4130,
    ),
    (
        "github.com/fierceX/Document_QA/issues/3 (OpenAI, legacy completions)",
        400,
        openai(
            "This model's maximum context length is 8191 tokens, however you requested 8238 tokens (8238 in your prompt; "
            "0 for the completion). Please reduce your prompt; or completion length.",
            code=None,
        ),
        8191,
        8238,
    ),
    (
        "letta-ai/letta, error_utils (OpenAI Responses)",
        400,
        openai("Your input exceeds the context window of this model. Please adjust your input and try again."),
        None,
        None,
    ),
    (
        "letta-ai/letta, error_utils (OpenAI gpt-5)",
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please "
            "reduce the length of the messages."
        ),
        272000,
        300123,
    ),
    (
        "OpenAI Responses, stream event",
        200,
        {
            "type": "response.failed",
            "response": {
                "status": "failed",
                "error": {
                    "code": "context_length_exceeded",
                    "message": "Your input exceeds the context window of this model.",
                },
            },
        },
        None,
        None,
    ),
    (
        "docs.anthropic.com/en/api/errors (Anthropic)",
        400,
        anthropic("prompt is too long: 215000 tokens > 200000 maximum"),
        200000,
        215000,
    ),
    (
        "github.com/docker/docker-agent/issues/569 (Anthropic, with max_tokens)",
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or "
            "`max_tokens` and try again"
        ),
        200000,
        242959,
    ),
    (
        "github.com/google-gemini/gemini-cli/issues/11507 (Gemini)",
        400,
        [google("The input token count (461428) exceeds the maximum number of tokens allowed (131072).")],
        131072,
        461428,
    ),
    (
        "github.com/google-gemini/gemini-cli/issues/4231 (Gemini, JSON inside JSON)",
        400,
        openai(
            '{\n  "error": {\n    "code": 400,\n    "message": "The input token count (3475108) exceeds the maximum number '
            'of tokens allowed (1048576).",\n    "status": "INVALID_ARGUMENT"\n  }\n}\n',
            code="400",
        ),
        1048576,
        3475108,
    ),
    (
        "github.com/ggml-org/llama.cpp/pull/15780 (llama.cpp)",
        500,
        {
            "error": {
                "code": 500,
                "message": "the request exceeds the available context size. try increasing the context size or enable "
                "context shift",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 1407,
                "n_ctx": 256,
            }
        },
        256,
        1407,
    ),
    (
        "github.com/continuedev/continue/issues/9797 (llama.cpp, older)",
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it"}},
        None,
        None,
    ),
    (
        "ggml-org/llama.cpp, tools/server/server-context.cpp",
        400,
        {
            "error": {
                "message": "request (5011 tokens) exceeds the available context size (4096 tokens), try increasing it"
            }
        },
        4096,
        5011,
    ),
    (
        "github.com/fedora-copr/logdetective-website/pull/193 (llama-cpp-python)",
        500,
        {"detail": "Requested tokens (2285) exceed context window of 2048"},
        2048,
        2285,
    ),
    (
        "github.com/vllm-project/vllm/issues/20409 (vLLM)",
        400,
        vllm(
            "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the "
            "messages, 10000 in the completion). Please reduce the length of the messages or completion. None"
        ),
        16384,
        19591,
    ),
    (
        "github.com/AIDotNet/OpenCowork/issues/82 (vLLM, newer)",
        400,
        {
            "error": {
                "message": "This model's maximum context length is 262144 tokens. However, you requested 128000 output "
                "tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens. "
                "Please reduce the length of the input prompt or the number of requested output tokens. "
                "(parameter=input_tokens, value=134145)",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
        262144,
        262145,
    ),
    (
        "github.com/vllm-project/vllm/pull/33425 (vLLM, corrected)",
        400,
        vllm(
            "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 "
            "'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))"
        ),
        2048,
        2053,
    ),
    (
        "github.com/thu-coai/Glyph/issues/9 (vLLM, multimodal)",
        400,
        vllm(
            "The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens."
        ),
        131072,
        163840,
    ),
    (
        "github.com/vllm-project/vllm/issues/10440 (vLLM, early)",
        400,
        vllm("Input prompt (35247 tokens) is too long and exceeds limit of 1000"),
        1000,
        35247,
    ),
    (
        "github.com/vllm-project/vllm/issues/4667 (vLLM, early, no max_tokens given)",
        400,
        vllm("max_tokens must be at least 1, got -186."),
        None,
        None,
    ),
    (
        "github.com/QwenLM/Qwen3/issues/1321 (SGLang)",
        400,
        vllm("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
        40960,
        61709,
    ),
    (
        "github.com/huggingface/text-generation-inference/issues/628 (TGI)",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244 `inputs` "
            "tokens and 1000 `max_new_tokens`",
            "error_type": "validation",
        },
        2048,
        2244,
    ),
    (
        "github.com/huggingface/text-generation-inference/issues/695 (TGI)",
        422,
        {
            "error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168",
            "error_type": "validation",
        },
        1024,
        1168,
    ),
    (
        "letta-ai/letta-code, error_utils (Mistral)",
        400,
        {
            "object": "error",
            "message": "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
            "type": "invalid_request_error",
            "param": None,
            "code": 3051,
        },
        32768,
        65673,
    ),
    (
        "github.com/evalstate/fast-agent/issues/621 (DeepSeek)",
        400,
        openai(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            code="invalid_request_error",
        ),
        131072,
        131134,
    ),
    (
        "github.com/thepersonalaicompany/amurex-backend/issues/51 (Groq)",
        400,
        openai("Please reduce the length of the messages or completion."),
        None,
        None,
    ),
    (
        "github.com/agentscope-ai/QwenPaw/issues/6255 (Qwen, DashScope compatible)",
        400,
        {
            "error": {
                "code": "invalid_parameter_error",
                "message": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
                "param": None,
                "type": "invalid_request_error",
            },
            "request_id": "81a373d6",
        },
        983616,
        None,
    ),
    (
        "github.com/LLM-Red-Team/qwen-free-api/issues/23 (DashScope native)",
        400,
        {"code": "InvalidParameter", "message": "Range of input length should be [1, 6000]", "request_id": "x"},
        6000,
        None,
    ),
    (
        "github.com/mangowhoiscloud/geode/pull/668 (GLM)",
        400,
        {"error": {"code": "1261", "message": "Prompt exceeds max length"}},
        None,
        None,
    ),
    (
        "github.com/anomalyco/opencode/issues/44823 (GLM, wrapped)",
        400,
        {"error": "Upstream request failed: [1261] Prompt exceeds max length"},
        None,
        None,
    ),
    (
        "github.com/MoonshotAI/kimi-cli/issues/2011 (Moonshot)",
        400,
        openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", code=None),
        262144,
        269030,
    ),
    (
        "github.com/topoteretes/cognee/issues/1061 (OpenRouter)",
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 "
                'tokens (94307 of text input). Please reduce the length of either one, or use the "middle-out" transform '
                "to compress your prompt automatically.",
                "code": 400,
                "metadata": {"provider_name": None},
            }
        },
        16384,
        94307,
    ),
    (
        "openrouter.ai/docs/api/reference/errors (OpenRouter, a provider's error inside)",
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 '
                    'tokens > 200000 maximum"}}',
                    "provider_name": "Anthropic",
                },
            }
        },
        200000,
        213462,
    ),
    (
        "github.com/aws-samples/bedrock-chat/issues/95 (Bedrock)",
        400,
        {"message": "Input is too long for requested model."},
        None,
        None,
    ),
    (
        "BerriAI/litellm, exception mapping (Bedrock Nova)",
        400,
        {"message": "Input Tokens Exceeded: Input too long: 310000 input tokens, limit is 300000"},
        300000,
        310000,
    ),
    (
        "github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546 (LM Studio)",
        400,
        {
            "error": "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with "
            "context length of only 32768 tokens, which is not enough. Try to load the model with a larger context "
            "length, or provide a shorter input"
        },
        32768,
        111490,
    ),
    (
        "github.com/Gitlawb/openclaude/issues/353 (LM Studio)",
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
            "13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."
        },
        4096,
        13055,
    ),
    (
        "github.com/anomalyco/opencode/issues/11141 (LM Studio)",
        400,
        {"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"},
        7424,
        15028,
    ),
    (
        "pi-mono, overflow.ts (Ollama)",
        400,
        {"error": "prompt too long; exceeded max context length by 1234 tokens"},
        None,
        None,
    ),
    (
        "openclaw, memory-lancedb documentation (Ollama)",
        500,
        {"error": "the input length exceeds the context length"},
        None,
        None,
    ),
    (
        "github.com/cline/cline/issues/3120 (xAI)",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        },
        131072,
        136973,
    ),
    (
        "pi-mono, overflow.ts (GitHub Copilot)",
        400,
        {
            "error": {
                "message": "prompt token count of 51808 exceeds the limit of 12288",
                "code": "model_max_prompt_tokens_exceeded",
            }
        },
        12288,
        51808,
    ),
    (
        "farion1231/cc-switch, error report (MiniMax)",
        400,
        {"error": {"message": "invalid params, context window exceeds limit (2013)", "type": "bad_request_error"}},
        None,
        None,
    ),
    (
        "docs.cohere.com, errors (Cohere)",
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5121. Try using "
            "a shorter prompt."
        },
        4081,
        5121,
    ),
    (
        "github.com/run-llama/llama_index/issues/7974 (Replicate)",
        400,
        {"detail": "Your input is too long. Max input length is 4096 tokens, but you supplied 5441 tokens."},
        4096,
        5441,
    ),
    (
        "BerriAI/litellm, exception mapping (Cerebras)",
        400,
        {
            "message": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        },
        8192,
        9000,
    ),
    (
        "BerriAI/litellm, as raised",
        400,
        openai(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - "
            '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201266 tokens > '
            '200000 maximum"}}',
            code=None,
        ),
        200000,
        201266,
    ),
    (
        "pi-mono, overflow.ts (Mistral, newer)",
        400,
        {
            "message": "Prompt contains 300000 tokens and 0 images too large for model with 262144 maximum context length"
        },
        262144,
        300000,
    ),
    (
        "pi-mono, overflow.ts (DS4)",
        400,
        {"error": {"message": "Prompt has 300,000 tokens, but the configured context size is 131,072 tokens"}},
        131072,
        300000,
    ),
    (
        "LM Studio, as quoted in openclaw's tests",
        400,
        {"error": "Requested token count (5000) is greater than the context length (4096)."},
        4096,
        5000,
    ),
    (
        "pi-mono, overflow.ts (z.ai)",
        400,
        {"error": {"code": "1234", "message": "model_context_window_exceeded"}},
        None,
        None,
    ),
    (
        "github.com/kijai/ComfyUI-CogVideoXWrapper/issues/204",
        400,
        {"error": "Prompt is too long, max tokens supported is 226 or less, got 303"},
        226,
        303,
    ),
    (
        "an Ollama of 2026: llama.cpp's error in a string",
        400,
        {
            "error": '{"error":{"code":400,"message":"request (2622 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2622,"n_ctx":512}}'
        },
        512,
        2622,
    ),
    ("an answer in Chinese", 400, {"error": {"message": "输入内容超过模型最大上下文长度"}}, None, None),
    ("an answer in Chinese", 400, {"error": {"message": "请求超过最大上下文长度"}}, None, None),
    ("a 413 in words of tokens", 413, openai("Input is too long", code=None), None, None),
    ("an answer in Chinese", 400, {"error": {"message": "输入长度超过模型最大长度 32768"}}, 32768, None),
    ("an answer in Chinese", 400, {"error": {"message": "上下文长度超出限制，最大支持 8,192 tokens"}}, 8192, None),
    (
        "thousands separated",
        400,
        openai(
            "This model's maximum context length is 128,000 tokens. However, your messages resulted in 130,012 tokens."
        ),
        128000,
        130012,
    ),
]


@pytest.mark.parametrize(("source", "status", "body", "limit", "requested"), TOKENS)
def test_overflows_of_tokens(source: str, status: int, body: Any, limit: int | None, requested: int | None) -> None:
    for given_as in (body, json.dumps(body).encode(), json.dumps(body, ensure_ascii=False, indent=2).encode()):
        found = context_overflow(status, given_as)
        assert found is not None, source
        assert (found.limit, found.requested, found.unit) == (limit, requested, "tokens"), source


@pytest.mark.parametrize(("source", "status", "body", "limit", "requested"), TOKENS)
def test_the_same_inside_a_successful_stream(
    source: str, status: int, body: Any, limit: int | None, requested: int | None
) -> None:
    error = body if isinstance(body, dict) and ("error" in body or "type" in body) else {"error": body}
    for stream in (
        b"data: " + json.dumps(error).encode() + b"\n\n",
        b": hello\n\nevent: error\ndata: " + json.dumps(error).encode() + b"\n\ndata: [DONE]\n\n",
    ):
        found = context_overflow(200, stream)
        assert found is not None, source
        assert (found.limit, found.requested) == (limit, requested), source


def test_the_reply_counts_apart() -> None:
    found = context_overflow(
        400, anthropic("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000")
    )
    assert found == Overflow(200000, 242959, 64000)
    assert found.shrinkable
    filled = context_overflow(
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, "
            "8192 in the completion). Please reduce the length of the messages or completion."
        ),
    )  # github.com/ChatGPTNextWeb/NextChat/issues/3195
    assert filled == Overflow(8192, 8256, 8192)
    assert not filled.shrinkable


# Not quoted from anywhere: other ways to say it, so that recognition isn't tied to the quotes.
VARIANTS: list[tuple[str, int | None, int | None]] = [
    ("This model supports at most 128000 tokens, but your request contains 150000 tokens.", 128000, 150000),
    ("Input length 5000 exceeds maximum allowed token size of 4096", 4096, 5000),
    ("The number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model", 4096, 5000),
    ("Prompt length 9000 is greater than max_seq_len 8192", 8192, 9000),
    ("The number of tokens (9000) exceeded this model context window limit (8192).", 8192, 9000),
    ("Requested token count exceeds model's maximum context length. Requested: 9000, limit 8192", 8192, 9000),
    ("Your messages are too long (9000 tokens). The limit is 8192 tokens.", 8192, 9000),
    ("Total tokens 9000 exceed the maximum of 8192", 8192, 9000),
    ("The request exceeds the model's context window of 32,768 tokens by 120 tokens", 32768, None),
    ("The conversation is too long, please try again with a shorter history", None, None),
    ("コンテキスト長が上限を超えています", None, None),
]
NOT_VARIANTS = [
    "Daily token limit exceeded: upgrade your plan",
    "The response exceeded the maximum output token limit",
    "Audio file is too long: 3 hours",
    "Message queue is too long, try again later",
    "max_tokens (5000) exceeds the maximum of 4096",
    "Too many images in request: 120 > 100",
    "Invalid schema: enum exceeds the limit of 500 values",
]


@pytest.mark.parametrize(("message", "limit", "requested"), VARIANTS)
def test_other_ways_to_say_it(message: str, limit: int | None, requested: int | None) -> None:
    found = context_overflow(400, {"error": {"message": message}})
    assert found is not None
    assert (found.limit, found.requested) == (limit, requested)


@pytest.mark.parametrize("message", NOT_VARIANTS)
def test_other_things_to_say(message: str) -> None:
    assert context_overflow(400, {"error": {"message": message}}) is None


BYTES: list[tuple[str, int, Any]] = [
    ("nginx", 413, b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n</html>"),
    ("no body", 413, b""),
    ("docs.anthropic.com", 413, anthropic("Request exceeds the maximum size", "request_too_large")),
    ("FastAPI", 413, {"detail": "Payload too large"}),
    ("Moonshot", 400, openai("total message size 2306631 exceeds limit 2097152", code=None)),
    ("Express", 413, {"error": {"message": "request entity too large"}}),
    ("Gemini", 400, google("Request payload size exceeds the limit: 20971520 bytes.")),
    (
        "OpenAI",
        400,
        openai(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a "
            "string with length 1540820 instead.",
            code="string_above_max_length",
        ),
    ),
]


@pytest.mark.parametrize(("source", "status", "body"), BYTES)
def test_overflows_of_bytes(source: str, status: int, body: Any) -> None:
    assert context_overflow(status, body) == Overflow(unit="bytes"), source


NOT: list[tuple[str, int, Any]] = [
    (
        "github.com/continuedev/continue/issues/10218 (Groq: a rate limit with status 413)",
        413,
        {
            "error": {
                "message": "Request too large for model `llama-3.3-70b-versatile` in organization `org_01` service tier "
                "`on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size "
                "and try again.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    (
        "github.com/vanna-ai/vanna-flask/issues/11 (OpenAI)",
        429,
        openai(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output "
            "tokens must be reduced in order to run successfully.",
            code="rate_limit_exceeded",
        ),
    ),
    (
        "github.com/continuedev/continue/issues/12057 (Anthropic)",
        429,
        anthropic(
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce "
            "the prompt length or the maximum tokens requested, or try again later.",
            "rate_limit_error",
        ),
    ),
    (
        "github.com/FoundationAgents/OpenManus/issues/746 (the same behind a proxy, as a 400)",
        400,
        openai(
            "This request would exceed the rate limit for your organization of 20,000 input tokens per minute. Please "
            "reduce the prompt length or the maximum tokens requested, or try again later.",
            code="rate_limit_error",
        ),
    ),
    (
        "github.com/elizaOS/eliza/issues/4040 (Groq)",
        429,
        openai(
            "Rate limit reached for model `llama` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443."
        ),
    ),
    (
        "github.com/ChatGPTNextWeb/NextChat/issues/3195 (OpenAI, output)",
        400,
        openai(
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.",
            code=None,
        ),
    ),
    (
        "github.com/we0-dev/we0/issues/56 (DeepSeek, output)",
        400,
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", code="invalid_request_error"),
    ),
    (
        "help.aliyun.com (Qwen, output)",
        400,
        openai("Range of max_tokens should be [1, 8192]", code="invalid_parameter_error"),
    ),
    (
        "docs.anthropic.com (output)",
        400,
        anthropic(
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4"
        ),
    ),
    (
        "github.com/aws-samples/bedrock-access-gateway/issues/41 (Bedrock, output)",
        400,
        {
            "message": "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048."
        },
    ),
    (
        "github.com/RooCodeInc/Roo-Code/issues/5729 (Groq, output)",
        400,
        openai(
            "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            code=None,
        ),
    ),
    (
        "github.com/Gitlawb/openclaude/issues/331 (Doubao, output)",
        400,
        {
            "error": {
                "code": "InvalidParameter",
                "message": "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 32000 instead.",
                "param": "max_completion_tokens",
                "type": "BadRequest",
            }
        },
    ),
    (
        "vLLM, output over the window",
        400,
        vllm(
            "'max_tokens' or 'max_completion_tokens' is too large: 50000. This model's maximum context length is 40960 tokens and your request has 19 input tokens (50000 > 40960 - 19)."
        ),
    ),
    (
        "github.com/OpenHands/OpenHands/issues/9937 (OpenRouter, the output alone fills the window)",
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output).",
                "code": 400,
            }
        },
    ),
    (
        "TGI, output over the window",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 7 `inputs` tokens and 4000 `max_new_tokens`"
        },
    ),
    ("OpenAI, a key", 401, openai("Incorrect API key provided", code="invalid_api_key")),
    (
        "OpenAI, quota",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"
        ),
    ),
    (
        "OpenRouter, credits",
        402,
        {
            "error": {
                "message": "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1200",
                "code": 402,
            }
        },
    ),
    (
        "OpenAI, user",
        400,
        openai(
            "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 91 instead.",
            code="string_above_max_length",
        ),
    ),
    (
        "OpenAI, tools",
        400,
        openai(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 160 instead.",
            code="array_above_max_length",
        ),
    ),
    (
        "Anthropic, image",
        400,
        anthropic(
            "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"
        ),
    ),
    ("Anthropic, overloaded", 529, anthropic("Overloaded", "overloaded_error")),
    ("any, 500", 500, b"Internal Server Error"),
    ("any, 502", 502, b"<html>Bad Gateway</html>"),
    ("OpenAI, model", 404, openai("The model `gpt-9` does not exist", code="model_not_found")),
    (
        "FastAPI, the request echoed",
        422,
        {
            "detail": [
                {
                    "loc": ["body", "temperature"],
                    "msg": "ensure this value is less than 2",
                    "input": "prompt is too long: 215000 tokens > 200000 maximum",
                }
            ]
        },
    ),
    (
        "Groq, the generation echoed",
        400,
        {
            "error": {
                "message": "Tool call validation failed",
                "code": "tool_use_failed",
                "failed_generation": "maximum context length is 9 tokens",
            }
        },
    ),
    (
        "pair order",
        400,
        openai(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
            code=None,
        ),
    ),
    (
        "a reply that talks about it",
        200,
        {
            "choices": [
                {"message": {"content": "context_length_exceeded: This model's maximum context length is 8192 tokens"}}
            ]
        },
    ),
    (
        "a chunk that talks about it",
        200,
        b'data: {"choices":[{"delta":{"content":"prompt is too long: 9 tokens > 8 maximum"}}]}\n\n',
    ),
    (
        "Ollama's native reply",
        200,
        {"model": "m", "message": {"role": "assistant", "content": "prompt is too long"}, "done": True},
    ),
    (
        "OpenRouter, output (recorded)",
        200,
        b'data: {"error":{"code":400,"message":"Token limit reached"},"choices":[{"delta":{},"finish_reason":"length"}]}\n\n',
    ),
    (
        "content filter",
        400,
        openai(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            code="content_filter",
        ),
    ),
    ("MiniMax, fine", 200, {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}}),
]


@pytest.mark.parametrize(("source", "status", "body"), NOT)
def test_what_is_not_an_overflow(source: str, status: int, body: Any) -> None:
    assert context_overflow(status, body) is None, source
    if not isinstance(body, bytes):
        assert context_overflow(status, json.dumps(body).encode()) is None, source


def test_a_long_echo_costs_no_time() -> None:
    body = {"error": {"message": "x exceed " * 200_000, "code": None}}
    assert context_overflow(400, body) is None


@settings(max_examples=150, deadline=None)
@given(
    status=st.integers(100, 599),
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "type", "choices", "response", "n_ctx", "detail"]), inner
            )
        ),
        max_leaves=12,
    ),
)
def test_never_raises(status: int, body: Any) -> None:
    context_overflow(status, body)
    context_overflow(status, json.dumps(body).encode())


@given(body=st.binary(max_size=100))
def test_never_raises_on_bytes(body: bytes) -> None:
    context_overflow(400, body)
