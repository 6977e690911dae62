"""Error responses of the API."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from likewise.search.serve import shapes
from likewise.search.serve.guard import FAILED
from likewise.search.serve.limits import RequestError
from likewise.search.serve.requests import describe_fault
from likewise.search.serve.responses import json_response

FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": shapes.Fault, "description": "the body cannot be read"},
    401: {"model": shapes.Fault, "description": "a token is required"},
    403: {"model": shapes.Fault, "description": "requested by a page of another site"},
    404: {"model": shapes.Fault, "description": "there is no such item, or its file is missing"},
    409: {"model": shapes.Fault, "description": "the index has no model, or the model does not support this request"},
    413: {"model": shapes.Fault, "description": "too large"},
    415: {"model": shapes.Fault, "description": "not an image"},
    421: {"model": shapes.Fault, "description": "requested for another host"},
    422: {"model": shapes.Fault, "description": "a parameter is invalid; the error names it"},
    429: {"model": shapes.Fault, "description": "too many requests are waiting; see Retry-After"},
    503: {"model": shapes.Fault, "description": "the request took too long, or the index cannot be read at the moment"},
}

UNREADABLE = "the index cannot be read at the moment: try again"
UNREACHABLE = (ConnectionError, FileNotFoundError, PermissionError)
"""Errors of an index whose database does not answer, no longer has it, or denies access."""

REPEAT_AFTER = 60.0
"""Seconds before the same message is printed again."""


def add_handlers(app: FastAPI) -> None:
    """Add the handlers of errors to an application."""
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestError, _answer_request_error)
    unreadable = _make_unreachable_handler()
    for kind in UNREACHABLE:
        app.add_exception_handler(kind, unreadable)
    app.add_exception_handler(Exception, _answer_failed)


async def _answer_request_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    answer = json_response({"error": str(error)}, error.status)
    if error.retry is not None:
        answer.headers["retry-after"] = str(error.retry)
    return answer


def _make_unreachable_handler() -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return a handler for errors of an unreachable index; the reason is printed on the server's terminal, once a minute."""
    printed: dict[str, float] = {}

    async def answer_unreachable(_request: Request, error: Exception) -> Response:
        reason, now = " ".join(str(error).split()), time.monotonic()
        if now - printed.get(reason, -REPEAT_AFTER) >= REPEAT_AFTER:
            printed.clear()
            printed[reason] = now
            print(f"the index cannot be read: {reason}", file=sys.stderr, flush=True)
        answer = json_response({"error": UNREADABLE}, 503)
        answer.headers["retry-after"] = "5"
        return answer

    return answer_unreachable


async def _answer_failed(_request: Request, _error: Exception) -> Response:
    return json_response({"error": FAILED}, 500)


async def _answer_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return json_response({"error": describe_fault(error.errors())}, 422)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: f"there is no page {request.url.path}", 405: f"{request.url.path} does not support this method"}
    answer = json_response({"error": messages.get(error.status_code, str(error.detail))}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer
