"""Parsing and validation of requests: JSON bodies and forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from likewise.search.matches import Floats
from likewise.search.serve.limits import RequestError

Shape = TypeVar("Shape", bound=BaseModel)


def is_form(request: Request) -> bool:
    """Return whether a request has a form as its body."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def read_form(request: Request, names: Sequence[str]) -> tuple[list[tuple[str, bytes]], dict[str, str]]:
    """Read the files with these names and the other fields of a form."""
    try:
        async with request.form(max_files=len(names), max_fields=16, max_part_size=2**16) as form:
            files = []
            for name in names:
                given = form.get(name)
                if not isinstance(given, UploadFile):
                    raise RequestError(422, f"the form must have a file {name}, but it has none")
                files.append((name if name != "image" else "the image", await given.read()))
            fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    except (RequestError, HTTPException):
        raise
    except (ValueError, KeyError, LookupError, AssertionError) as error:
        raise RequestError(400, "the form cannot be read: it is malformed") from error
    return files, {name: value for name, value in fields.items() if value != ""}


def validate(shape: type[Shape], given: bytes | dict[str, Any]) -> Shape:
    """Parse a body or the fields of a form, or raise an error about the first invalid value."""
    try:
        return shape.model_validate_json(given) if isinstance(given, bytes) else shape.model_validate(given)
    except ValidationError as error:
        raise RequestError(422, describe_fault(error.errors(include_url=False, include_context=False))) from None


def to_matrix(vectors: Sequence[Sequence[float]], most: int) -> Floats:
    """Return vectors of one size as a matrix; the search checks that it is the dimension of the index."""
    if len(vectors) > most:
        raise RequestError(422, f"vectors must be at most {most} at once, but there are {len(vectors):,}")
    first = len(vectors[0])
    other = next((len(each) for each in vectors if len(each) != first), None)
    if other is not None:
        raise RequestError(
            422, f"vectors must have the same dimension, but the first has {first:,} and another one {other:,}"
        )
    matrix = np.asarray(vectors, np.float64)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    return (matrix / np.where(largest > 0.0, largest, 1.0)).astype(np.float32)  # only the direction of a vector matters


def describe_fault(errors: Sequence[Any]) -> str:
    """Return a sentence about the first of several validation errors."""
    first = errors[0]
    place = ".".join(str(each) for each in first["loc"] if each not in ("body", "query", "path"))
    message = str(first["msg"]).removeprefix("Value error, ")
    if not place:
        return message
    shown = repr(first.get("input"))
    return f"{place}: {message[0].lower()}{message[1:]}, but it is {shown if len(shown) <= 60 else shown[:57] + '…'}"


def json_or_form(shape: type[BaseModel], form: dict[str, Any]) -> dict[str, Any]:
    """Describe a body that is JSON or a form."""
    schema = shape.model_json_schema()
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def form_schema(files: dict[str, Any], shape: type[BaseModel] | None, required: Sequence[str]) -> dict[str, Any]:
    """Describe a form: its files, the fields of a schema, and the required names."""
    more = {} if shape is None else shape.model_json_schema()["properties"]
    return {"type": "object", "required": list(required), "properties": {**files, **more}}
