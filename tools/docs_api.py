"""Write docs/http-api.md, the reference of the service's HTTP API, from its OpenAPI document.

python tools/docs_api.py [--output docs/http-api.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.evaluate.tables import markdown
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
    parts = [_HEAD]
    for path, methods in document['paths'].items():
        for method, operation in methods.items():
            parts += _operation_parts(f'{method.upper()} {path}', operation)
    parts += ['## Errors', _errors_table(document)]
    parts.append('## Schemas')
    for name, schema in document['components']['schemas'].items():
        is_shown = name != 'ErrorResponse' and not name.startswith('HTTP')
        if is_shown and 'properties' in schema:
            summary = schema.get('description', '').split('\n')[0]
            parts += [f'### {name}', summary, _fields_table(schema)]
    return '\n\n'.join(part.rstrip() for part in parts) + '\n'


def _operation_parts(heading: str, operation: dict[str, Any]) -> list[str]:
    """The paragraphs about a route."""
    parts = [f'## {heading}', f'{operation["summary"]}.']
    if operation.get('parameters'):
        parts.append(_parameters_table(operation['parameters']))
    parts += _schema_links('Body', operation.get('requestBody'))
    parts += _schema_links('Answer', operation['responses'].get('200'))
    return parts


def _schema_links(what: str, holder: dict[str, Any] | None) -> list[str]:
    """The sentence that leads to the schema of a body or an answer; none where it has no name."""
    content = (holder or {}).get('content', {})
    schema = content.get('application/json', {}).get('schema', {})
    if '$ref' not in schema:
        return []
    name = _describe(schema)
    return [f'{what}: [{name}](#{name.lower()}).']


def _parameters_table(parameters: Iterable[dict[str, Any]]) -> str:
    rows = []
    for parameter in parameters:
        schema = parameter['schema']
        default = '(required)' if parameter.get('required') else _default(schema)
        meaning = parameter.get('description', schema.get('description', ''))
        rows.append([f'`{parameter["name"]}`', _describe(schema), default, meaning])
    return _table(['parameter', 'type', 'default', 'meaning'], rows)


def _fields_table(schema: dict[str, Any]) -> str:
    rows = []
    for name, field in schema['properties'].items():
        kind = _describe(field)
        default = _default(field)
        if name in schema.get('required', ()):
            default = '(always)'
            if {'type': 'null'} in field.get('anyOf', ()):
                kind += ' or null'
        rows.append([f'`{name}`', kind, default, field.get('description', '')])
    return _table(['field', 'type', 'default', 'meaning'], rows)


def _errors_table(document: dict[str, Any]) -> str:
    """The statuses of errors, which all routes share."""
    methods = next(iter(document['paths'].values()))
    operation = next(iter(methods.values()))
    rows = []
    for status, response in operation['responses'].items():
        if status != '200':
            rows.append([str(status), response['description']])
    return _table(['status', 'meaning'], rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown(header, rows, is_padded=False, has_numbers=False)


def _default(schema: dict[str, Any]) -> str:
    value = schema.get('default')
    if value in (None, [], ''):
        return ''
    if isinstance(value, bool):
        return f'`{str(value).lower()}`'
    return f'`{value}`'


def _describe(schema: dict[str, Any]) -> str:
    """A schema in a few words: 'integer, 1 to 1000'."""
    if '$ref' in schema:
        return str(schema['$ref']).rpartition('/')[2]
    if 'enum' in schema:
        return ', '.join(f'`{value}`' for value in schema['enum'])
    if 'const' in schema:
        return f'`{schema["const"]}`'
    if 'anyOf' in schema:
        return ' or '.join(_describe(one) for one in schema['anyOf'] if one.get('type') != 'null')
    if schema.get('type') == 'array':
        return f'list of {_describe(schema["items"])}'
    if schema.get('type') == 'object':
        values = schema.get('additionalProperties')
        return f'object of {_describe(values)}' if isinstance(values, dict) else 'object'
    return f'{schema.get("type", "any JSON")}{_limits(schema)}'


def _limits(schema: dict[str, Any]) -> str:
    """', 1 to 1000' or ', at least 1', and the greatest length; '' without limits."""
    low = schema.get('minimum', schema.get('exclusiveMinimum'))
    high = schema.get('maximum')
    limits = ''
    if low is not None and high is not None:
        limits = f', {low:g} to {high:g}'
    elif low is not None:
        limits = f', at least {low:g}'
    if 'maxLength' in schema:
        limits += f', at most {schema["maxLength"]} characters'
    return limits


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--output', type=Path, default=PAGE)
    options = parser.parse_args()
    with atomic_file(options.output) as stream:
        stream.write(reference())


if __name__ == '__main__':
    main()
