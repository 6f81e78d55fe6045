"""Every coding against the reference implementation's own encoder, in any pieces."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.decode import decoder_for


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    "deflate": zlib.compress,
    "Deflate ": raw_deflate,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    " zstd": lambda data: zstandard.compress(data[: len(data) // 2]) + zstandard.compress(data[len(data) // 2 :]),
    "identity": bytes,
    "": bytes,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    "br,identity,zstd": lambda data: zstandard.compress(brotli.compress(data)),
}


@pytest.mark.parametrize("header", ENCODERS)
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=3000), size=st.integers(1, 4000))
def test_round_trip(header: str, data: bytes, size: int) -> None:
    packed = ENCODERS[header](data)
    decoder = decoder_for(header)
    assert decoder is not None
    got = b"".join(decoder.feed(packed[at : at + size]) for at in range(0, len(packed), size))
    assert got == data
    assert not decoder.failed
    assert not decoder.exhausted


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd", "br, gzip"])
def test_a_flushed_event_is_readable_before_the_stream_ends(header: str) -> None:
    if header == "gzip":
        packer = zlib.compressobj(wbits=31)
        first = packer.compress(b"data: a\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    elif header == "deflate":
        packer = zlib.compressobj()
        first = packer.compress(b"data: a\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    elif header == "br":
        coder = brotli.Compressor()
        first = coder.process(b"data: a\n\n") + coder.flush()
    elif header == "zstd":
        frame = zstandard.ZstdCompressor().compressobj()
        first = frame.compress(b"data: a\n\n") + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    else:
        coder = brotli.Compressor()
        inner = coder.process(b"data: a\n\n") + coder.flush()
        packer = zlib.compressobj(wbits=31)
        first = packer.compress(inner) + packer.flush(zlib.Z_SYNC_FLUSH)
    decoder = decoder_for(header)
    assert decoder is not None
    assert decoder.feed(first) == b"data: a\n\n"


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip"])
def test_a_bomb_stops_at_the_limit(header: str) -> None:
    bomb = (
        ENCODERS[header](bytes(40_000_000))
        if header in ENCODERS
        else gzip.compress(zstandard.compress(bytes(40_000_000)))
    )
    assert len(bomb) < 200_000
    decoder = decoder_for(header, max_bytes=1_000_000)
    assert decoder is not None
    assert decoder.feed(bomb) == bytes(1_000_000)
    assert decoder.exhausted
    assert decoder.feed(bomb) == b""


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_exactly_the_limit_is_not_a_bomb(header: str) -> None:
    decoder = decoder_for(header, max_bytes=5000)
    assert decoder is not None
    assert decoder.feed(ENCODERS[header](b"x" * 5000)) == b"x" * 5000
    assert not decoder.exhausted


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_what_is_not_in_the_coding_fails_quietly(header: str) -> None:
    decoder = decoder_for(header)
    assert decoder is not None
    assert decoder.feed(b"\xff\xff{'this is plain': 'text'}" * 20) == b""
    assert decoder.failed
    assert decoder.feed(ENCODERS[header](b"late")) == b""


def test_unknown_codings() -> None:
    assert decoder_for("compress") is None
    assert decoder_for("gzip, dcb") is None
