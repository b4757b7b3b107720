"""Requests that the OpenAPI document allows, and that the service takes: where these differ."""

import copy
import re

from jsonschema import Draft202012Validator

TEXTS = ('', ' \t', 'x' * 101, 'x' * 1001, 'x' * 2001)
NUMBERS = (-1, 0, 11, 101, 1001)
# What depends on the encoder, not on the form of a request
OF_ENCODER = re.compile(r'has no token \d|reads its own only')


def differing_requests(client, method, path, request_):
    """The variations of a request that is answered which the document allows and the service
    refuses, or the other way round: each with whether the document allows it.
    """
    document = client.app.openapi()
    schema = _schema(document['paths'][path][method]) | {'components': document['components']}
    validator = Draft202012Validator(schema)
    assert _is_taken(client, method, path, request_)
    differing = []
    for changed in _variations(request_):
        if method != 'post' and [] in changed.values():
            # An address cannot have an empty list.
            continue
        is_allowed = validator.is_valid(changed)
        if is_allowed != _is_taken(client, method, path, changed):
            differing.append((is_allowed, changed))
    return differing


def _schema(operation):
    """The schema of an operation's body, or of its parameters as an object."""
    if 'requestBody' in operation:
        return operation['requestBody']['content']['application/json']['schema']
    parameters = [one for one in operation['parameters'] if one['in'] == 'query']
    return {
        'type': 'object',
        'properties': {one['name']: one['schema'] for one in parameters},
        'required': [one['name'] for one in parameters if one.get('required')],
    }


def _is_taken(client, method, path, values):
    """Whether the form of a request is taken, whatever its answer is."""
    address = path.replace('{index}', 'tiny').replace('{docid}', 'd1')
    sent = {'json': values} if method == 'post' else {'params': values}
    answer = client.request(method, address, **sent)
    assert answer.status_code in (200, 400, 404, 422), answer.text
    return answer.status_code in (200, 404) or bool(OF_ENCODER.search(answer.text))


def _variations(value):
    """The values that differ in one text, number or list; or in a text more of a list."""
    if isinstance(value, bool):
        return
    if isinstance(value, str):
        yield from TEXTS
    elif isinstance(value, int):
        yield from NUMBERS
    elif isinstance(value, list):
        yield []
        yield [*value, copy.deepcopy(value[0])]
    items = {dict: dict.items, list: enumerate}.get(type(value), lambda _: ())
    for key, item in items(value):
        for changed in _variations(item):
            whole = copy.copy(value)
            whole[key] = changed
            yield whole
