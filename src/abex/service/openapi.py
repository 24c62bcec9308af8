"""The description of the service, from its table of endpoints and the structs of their bodies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from abex.service.routes import Route

#: status -> when
REFUSALS = {
    "400": "the request is wrong; the sentence says in what",
    "401": "an API key is needed",
    "403": "this API key may not do that",
    "404": "there is no such player, decision or address",
    "405": "this address has another method",
    "409": "it contradicts what is there",
    "412": "it has changed since it was exported",
    "413": "the request is too long",
    "415": "the request is not JSON",
    "421": "the service does not answer for this host",
    "428": "it must be exported first",
    "429": "too many players or open decisions; try again later",
    "503": "the store cannot be reached just now; try again",
}
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "one sentence"}},
    "required": ["error"],
}


def description(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    kinds = sorted({one.body for one in routes if one.body is not None}, key=lambda kind: kind.__name__)
    found, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(kinds, found, strict=True))
    paths: dict[str, Any] = {}
    for one in routes:
        body = None if one.body is None else schema_of[one.body]
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, body)
    refused = {"description": "", "content": {"application/json": {"schema": ERROR}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "abex",
            "version": "1",
            "description": "Decisions of exploration policies. A reward counts once, however often it is reported.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {code: refused | {"description": when} for code, when in REFUSALS.items()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(one: Route, body: Any) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"{(\w+)", one.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in one.query]
    schema = {} if one.media != "application/json" else {"schema": {"type": "object"}}
    responses: dict[str, Any] = {str(one.status): {"description": "done", "content": {one.media: schema}}}
    if one.status == 201:
        responses["200"] = responses["201"] | {"description": "it was there already"}
    if one.has_tag:
        responses["304"] = {"description": "nothing has happened since the ETag that If-None-Match has"}
    responses |= {code: {"$ref": f"#/components/responses/{code}"} for code in REFUSALS}
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": (one.handler.__doc__ or "").strip().splitlines()[0],
        "parameters": parameters,
        "responses": responses,
    }
    if one.role is not None:
        found["description"] = f"Needs a key of the role {one.role} or admin, where the service has keys."
    if body is not None:
        content = {"application/json": {"schema": body}}
        required = one.body is not None and any(field.required for field in msgspec.structs.fields(one.body))
        found["requestBody"] = {"content": content, "required": required}
    return found
