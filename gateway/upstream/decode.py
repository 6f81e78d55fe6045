"""Read compressed replies on the side, in the pieces they arrive in.

The client gets the upstream's compressed bytes; only the copy that is read for usage and text is unpacked. So nothing
here raises: a broken or hostile body ends the reading (`failed`, `exhausted`), never the forwarding. Output is bounded
while it is made: a few kilobytes that unpack to gigabytes never get that far.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

MAX_DECODED_BYTES: Final = 64 * 1024 * 1024
"""Output kept per reply; the same as the largest request body taken."""

_SLICE: Final = 256
"""Bytes given at a time to a decompressor that can't bound its output. A zstd block makes 128 KiB from 4 bytes, so
one slice makes at most 8 MiB."""

_STEP: Final = 1024 * 1024
"""Bytes asked for at a time from one that can."""


class _Codec(Protocol):
    """One layer of coding: `run` unpacks a piece, at most about `limit` bytes of it; raises `CodecError`."""

    def run(self, piece: bytes, limit: int) -> bytes: ...


class CodecError(Exception):
    """The bytes are not what the header says they are."""


class StreamDecoder:
    """Incremental decoder of a `Content-Encoding` of one or more layers.

    `failed` says that the body was not in that coding, `exhausted` that it unpacked past the limit; after either,
    `feed` gives nothing more.
    """

    def __init__(self, layers: list[_Codec], max_bytes: int = MAX_DECODED_BYTES) -> None:
        self._layers = layers
        self._left = max_bytes
        self.failed = False
        self.exhausted = False

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that `chunk` unpacks to, as far as they are known yet."""
        if self.failed or self.exhausted:
            return b""
        try:
            for layer in self._layers:
                if not chunk:
                    return b""
                # One byte over the rest is asked for, so that reaching the limit differs from passing it.
                chunk = layer.run(chunk, self._left + 1)
                self.exhausted = self.exhausted or len(chunk) > self._left
        except CodecError:
            self.failed = True
            return b""
        chunk = chunk[: self._left]
        self._left -= len(chunk)
        return chunk


def decoder_for(content_encoding: str, max_bytes: int = MAX_DECODED_BYTES) -> StreamDecoder | None:
    """A decoder for a `Content-Encoding` header, such as `gzip` or `br, gzip`; None for a coding that is unknown.

    An empty header, or `identity`, gives a decoder that passes bytes through.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    layers: list[_Codec] = []
    for name in reversed([name for name in names if name and name != "identity"]):
        make = _CODECS.get(name)
        if make is None:
            return None
        layers.append(make())
    return StreamDecoder(layers, max_bytes)


class _Gzip:
    """RFC 1952, with any number of members one after another."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._any = False

    def run(self, piece: bytes, limit: int) -> bytes:
        out = bytearray()
        while piece and len(out) < limit:
            if self._member.eof:
                # Zero bytes may pad the end; anything that isn't a new member is ignored, as gzip itself does.
                piece = piece.lstrip(b"\0")
                if not piece:
                    break
                self._member = zlib.decompressobj(wbits=31)
            try:
                out += self._member.decompress(piece, limit - len(out))
            except zlib.error as error:
                if self._any and not out:
                    return b""
                raise CodecError(str(error)) from error
            self._any = self._any or self._member.eof
            piece = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        return bytes(out)


class _Deflate:
    """`deflate` is zlib (RFC 1950) by the standard and raw (RFC 1951) by some servers: the first byte pair tells."""

    def __init__(self) -> None:
        self._inner: zlib._Decompress | None = None
        self._head = b""

    def run(self, piece: bytes, limit: int) -> bytes:
        if self._inner is None:
            self._head += piece
            if len(self._head) < 2:
                return b""
            piece, self._head = self._head, b""
            wrapped = piece[0] & 0x0F == 8 and (piece[0] << 8 | piece[1]) % 31 == 0
            self._inner = zlib.decompressobj(wbits=15 if wrapped else -15)
        try:
            return self._inner.decompress(self._inner.unconsumed_tail + piece, limit)
        except zlib.error as error:
            raise CodecError(str(error)) from error


class _Brotli:
    """RFC 7932."""

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self._error: type[Exception] = brotli.error
        self._inner = brotli.Decompressor()

    def run(self, piece: bytes, limit: int) -> bytes:
        out = bytearray()
        try:
            out += self._inner.process(piece, output_buffer_limit=min(_STEP, limit))
            while len(out) < limit and not self._inner.can_accept_more_data():
                more = self._inner.process(b"", output_buffer_limit=min(_STEP, limit))
                if not more:
                    break
                out += more
        except self._error as error:
            raise CodecError(str(error)) from error
        return bytes(out)


class _Zstd:
    """RFC 8878, with any number of frames one after another."""

    def __init__(self) -> None:
        import zstandard

        self._error: type[Exception] = zstandard.ZstdError
        self._factory = zstandard.ZstdDecompressor()
        self._frame = self._factory.decompressobj()

    def run(self, piece: bytes, limit: int) -> bytes:
        out = bytearray()
        view = memoryview(piece)
        try:
            while view and len(out) < limit:
                if self._frame.eof:
                    self._frame = self._factory.decompressobj()
                out += self._frame.decompress(view[:_SLICE])
                view = view[_SLICE:]
                if self._frame.eof and self._frame.unused_data:
                    view = memoryview(self._frame.unused_data + bytes(view))
        except self._error as error:
            raise CodecError(str(error)) from error
        return bytes(out)


_CODECS: Final[dict[str, type[_Gzip | _Deflate | _Brotli | _Zstd]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
