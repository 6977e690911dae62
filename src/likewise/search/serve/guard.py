"""Middleware of the server: checks of host, origin and token, limits of size, number and time, and response headers."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from likewise.search.serve.limits import Limits, RequestError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Response headers: no external content, no requests to other sites, no type sniffing, no framing."""

FAILED = "internal server error; the traceback is on the server's terminal"

DRAINED = 4
"""A rejected body is read up to this many times the limit, so that the client receives the error."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, which other machines cannot reach.

    Examples:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Return the host of a Host header, without its port.

    Examples:
        >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("127.0.0.1")
        ('localhost', '::1', '127.0.0.1')
    """
    if header.startswith("["):
        return header[1:].split("]", 1)[0].lower()
    return header.rsplit(":", 1)[0].lower() if header.count(":") == 1 else header.lower()


class Guard:
    """ASGI middleware that every request passes before the application.

    Args:
        app: the application.
        limits: limits of size, number and time.
        token: bearer token that requests to ``/api`` must send, as ``Authorization: Bearer …``.
        loopback: reject requests for hosts other than this machine, which protects against DNS rebinding: a page of another
            site whose name resolves to this address.

    Examples:
        >>> Guard(lambda scope, receive, send: None, Limits(), token="secret").allowed("Bearer secret")
        True
    """

    def __init__(self, app: App, limits: Limits, *, token: str | None = None, loopback: bool = True) -> None:
        self._app, self._limits, self._loopback = app, limits, loopback
        self._token = None if token is None else token.encode()
        self._bodies = self._files = self._bytes = 0

    def allowed(self, authorization: str) -> bool:
        """Return whether a header contains the token; compared in constant time."""
        if self._token is None:
            return True
        kind, _, given = authorization.partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        answer = _Answer(send)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            with _RequestCounter(self, scope, headers) as counted:
                body = _Body(receive, headers, self._limits.upload, counted.hold)
                async with asyncio.timeout(self._limits.seconds):
                    await body.check()
                    await self._app(scope, body, answer)
        except RequestError as refused:
            await answer.refuse(refused)
        except TimeoutError:
            await answer.refuse(RequestError(503, f"this took longer than {self._limits.seconds:g} seconds", retry=5))
        except Exception:
            # an error in the server: the traceback goes to its terminal, not to the client
            traceback.print_exc(file=sys.stderr)
            await answer.refuse(RequestError(500, FAILED))

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        if self._loopback and not is_loopback(host_of(headers.get("host", ""))):
            raise RequestError(421, "this server answers only requests for localhost and 127.0.0.1")
        if not scope["path"].startswith("/api"):
            return
        if headers.get("sec-fetch-site", "same-origin") == "cross-site":
            raise RequestError(403, "pages of other sites may not use this server")
        if not self.allowed(headers.get("authorization", "")):
            raise RequestError(401, "this server requires a token: send the header Authorization: Bearer TOKEN")


class _RequestCounter:
    """Counts the bodies in process and their bytes, and rejects a request beyond the limits."""

    def __init__(self, guard: Guard, scope: Scope, headers: dict[str, str]) -> None:
        self._guard = guard
        self._bytes = 0
        self._body = scope["method"] == "POST"
        self._file = self._body and headers.get("content-type", "").lower().startswith("multipart/")

    def __enter__(self) -> _RequestCounter:
        limits = self._guard._limits
        full = self._file and self._guard._files >= limits.uploads
        if full or (self._body and self._guard._bodies >= 2 * limits.waiting):
            raise RequestError(429, "too many requests are waiting: try again in a second", retry=1)
        self._guard._bodies += self._body
        self._guard._files += self._file
        return self

    def hold(self, count: int) -> None:
        """Count bytes that are held until the request is answered."""
        others = self._guard._bytes - self._bytes
        if others and others + self._bytes + count > self._guard._limits.in_flight:
            raise RequestError(429, "too many large requests are waiting: try again in a second", retry=1)
        self._guard._bytes += count
        self._bytes += count

    def __exit__(self, *_error: object) -> None:
        self._guard._bytes -= self._bytes
        self._guard._bodies -= self._body
        self._guard._files -= self._file


class _Body:
    """A request body, counted while it is read."""

    def __init__(self, receive: Receive, headers: dict[str, str], limit: int, hold: Callable[[int], None]) -> None:
        self._receive, self._limit, self._read, self._hold = receive, limit, 0, hold
        length = headers.get("content-length", "0")
        self._declared_length = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0

    async def check(self) -> None:
        """Reject a body by the length in its header, before it is read."""
        if self._declared_length > self._limit:
            await self._refuse()

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            body, more = message.get("body", b""), message.get("more_body", False)
            self._read += len(body)
            if self._read > self._limit:
                await self._refuse(more)
            try:
                self._hold(len(body))
            except RequestError:
                await self._drain(more)
                raise
        return message

    async def _refuse(self, more: bool = True) -> None:
        await self._drain(more)
        raise RequestError(413, f"a request must have at most {self._limit / 1e6:g} MB, but this one has more")

    async def _drain(self, more: bool) -> None:
        """Read and discard the rest of the body, so that the client receives the error."""
        while more and self._read <= DRAINED * self._limit:
            message = await self._receive()
            more = message["type"] == "http.request" and message.get("more_body", False)
            self._read += len(message.get("body", b""))


class _Answer:
    """The response, with the headers that all responses have."""

    def __init__(self, send: Send) -> None:
        self._send, self._begun, self._ended = send, False, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            kept = [each for each in HEADERS if each[0] not in names]
            if b"cache-control" not in names:
                kept.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*given, *kept]}
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refused: RequestError) -> None:
        """Answer with an error; if a response has begun, abort it, which the client notices."""
        if self._ended:
            return
        if self._begun:
            raise ConnectionAbortedError(str(refused))
        body = json.dumps({"error": str(refused)}, ensure_ascii=False).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if refused.retry is not None:
            headers.append((b"retry-after", str(refused.retry).encode()))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if refused.status in (413, 429):
            headers.append((b"connection", b"close"))  # the rest of its body is not read
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
