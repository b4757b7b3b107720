"""Write docs/http-api.md, the reference of the service's HTTP API, from its OpenAPI document.

python tools/docs_api.py [--output docs/http-api.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyserini_repbert.files import atomic_file
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import ServeSettings

PAGE = Path(__file__).parents[1] / 'docs' / 'http-api.md'
_HEAD = """# HTTP API

Search over HTTP. Start the service with `python -m pyserini_repbert.serve --index demo`, then:

<!-- not run: a service has to be there -->
```sh
curl 'http://127.0.0.1:8081/v1/demo/search?query=capital+of+china&hits=2'
```

The [guide](guides/serving.md) has examples. The service shows this reference at `/docs`, and as an OpenAPI document
at `/openapi.json` and `/openapi.yaml`. `/v1/{index}` gives the limits of requests.

- An error is one JSON object `{"error": "…"}`.
- If the service takes keys, send one as `X-API-Key: KEY` or as `Authorization: Bearer KEY`. `/healthz`,
  `/readyz` and `/docs` need no key.
- `/healthz` says that the process lives, `/readyz` that it answers. `/metrics` is for Prometheus.
"""  # noqa: E501


def reference() -> str:
    """The page."""
    document = create_app(ServeSettings()).openapi()
    schemas = document['components']['schemas']
    lines = [_HEAD]
    for path, methods in document['paths'].items():
        for method, own in methods.items():
            lines += _operation(path, method, own, schemas)
    lines += ['## Errors', '', '| status | meaning |', '|---|---|']
    any_operation = next(iter(next(iter(document['paths'].values())).values()))
    for status, own in any_operation['responses'].items():
        if status != '200':
            lines.append(f'| {status} | {own["description"]} |')
    lines += ['', '## Schemas', '']
    for name, schema in schemas.items():
        if name != 'ErrorResponse' and 'properties' in schema and not name.startswith('HTTP'):
            lines += [
                f'### {name}',
                '',
                schema.get('description', '').split('\n')[0],
                '',
                *_fields(schema),
                '',
            ]
    return '\n'.join(lines).rstrip() + '\n'


def _operation(
    path: str, method: str, own: dict[str, Any], schemas: dict[str, Any]
) -> Iterator[str]:
    yield from (f'## {method.upper()} {path}', '', f'{own["summary"]}.', '')
    if own.get('parameters'):
        yield from ('| parameter | type | default | meaning |', '|---|---|---|---|')
        for one in own['parameters']:
            default = '(required)' if one.get('required') else _default(one['schema'])
            about = one.get('description', one['schema'].get('description', ''))
            yield f'| `{one["name"]}` | {_form(one["schema"])} | {default} | {about} |'
        yield ''
    for what, holder in (('Body', own.get('requestBody')), ('Answer', own['responses'].get('200'))):
        schema = (holder or {}).get('content', {}).get('application/json', {}).get('schema', {})
        if '$ref' in schema:
            yield from (f'{what}: [{_form(schema)}](#{_form(schema).lower()}).', '')


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    yield from ('| field | type | default | meaning |', '|---|---|---|---|')
    for name, one in schema['properties'].items():
        default = '(always)' if name in schema.get('required', ()) else _default(one)
        null = (
            ' or null' if default == '(always)' and {'type': 'null'} in one.get('anyOf', ()) else ''
        )
        yield f'| `{name}` | {_form(one)}{null} | {default} | {one.get("description", "")} |'


def _default(schema: dict[str, Any]) -> str:
    value = schema.get('default')
    return (
        ''
        if value in (None, [], '')
        else f'`{str(value).lower() if isinstance(value, bool) else value}`'
    )


def _form(schema: dict[str, Any]) -> str:
    """A schema in a few words: 'integer, 1 to 1000'."""
    if '$ref' in schema:
        return str(schema['$ref']).rpartition('/')[2]
    if 'enum' in schema:
        return ', '.join(f'`{value}`' for value in schema['enum'])
    if 'const' in schema:
        return f'`{schema["const"]}`'
    if 'anyOf' in schema:
        return ' or '.join(_form(one) for one in schema['anyOf'] if one.get('type') != 'null')
    if schema.get('type') == 'array':
        return f'list of {_form(schema["items"])}'
    if schema.get('type') == 'object':
        values = schema.get('additionalProperties')
        return f'object of {_form(values)}' if isinstance(values, dict) else 'object'
    low = schema.get('minimum', schema.get('exclusiveMinimum'))
    high = schema.get('maximum')
    limits = f', {low:g} to {high:g}' if low is not None and high is not None else ''
    limits = limits or (f', at least {low:g}' if low is not None else '')
    longest = f', at most {schema["maxLength"]} characters' if 'maxLength' in schema else ''
    return f'{schema.get("type", "any JSON")}{limits}{longest}'


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--output', type=Path, default=PAGE)
    options = parser.parse_args()
    with atomic_file(options.output) as stream:
        stream.write(reference())


if __name__ == '__main__':
    main()
