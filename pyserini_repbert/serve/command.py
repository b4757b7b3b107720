"""`python -m pyserini_repbert.serve`: search over HTTP, a page, and MCP tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pyserini_repbert.commands import command, outputs
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import add_flags_of, loaded, parts_of
from pyserini_repbert.serve.added_fields import settings_with_flags
from pyserini_repbert.serve.hosts import ANY, is_loopback
from pyserini_repbert.serve.settings import (
    FileSettings,
    IndexSettings,
    ServeSettings,
    read_keys,
    read_settings,
)
from pyserini_repbert.serve.workers import check_workers, serve_with_workers

_PORT = 8081  # Pyserini's


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'serve',
        "Serve searches over HTTP, with the routes of Pyserini's and Anserini's servers. The "
        'search page is at /, and a description of the API is at /docs.',
    )
    add = parser.add_argument
    add(
        '--index',
        action='append',
        default=[],
        metavar='[ALIAS=]INDEX[+LUCENE]',
        help='a folder or a catalog name; repeatable; ALIAS=DENSE+LUCENE offers a dense and a '
        'Lucene index as one',
    )
    add_flags(parser, 'topics', 'qrels', of=IndexSettings, metavar='NAME|FILE')
    add(
        '--config',
        metavar='FILE.yaml',
        help="a settings file: indexes, keys, rerankers and limits, in Pyserini's form",
    )
    add_flags(parser, 'encoder', *settings_with_flags(), of=IndexSettings)
    add_flags(parser, 'language', of=IndexSettings, metavar='CODE')
    add_flags(parser, 'rerankers', of=ServeSettings, nargs='*', metavar='NAME')
    add(
        '--host',
        default='127.0.0.1',
        help='the address to listen at; 0.0.0.0 is open to the network',
    )
    add('--port', type=command.zero_or_more, default=_PORT, help='0: any free port')
    add(
        '--mcp',
        nargs='?',
        const='stdio',
        choices=('stdio', 'http'),
        help='offer MCP tools: stdio, instead of HTTP, or http, at /mcp',
    )
    add(
        '--workers',
        type=command.whole_number,
        default=1,
        help='processes that answer; each loads its own models; default: %(default)s',
    )
    add(
        '--api-keys',
        metavar='FILE',
        help='file of API keys to accept, one on each line; default: no key is needed',
    )
    add(
        '--write-keys',
        metavar='FILE',
        help="file of API keys that may judge, learn, and write into indexes with 'writable: "
        "true' in the settings file; default: anyone may judge and learn, and nobody may "
        'write',
    )
    add(
        '--log-file',
        type=outputs.OutputPath,
        metavar='FILE',
        help='log of requests, as JSON lines; default: stderr; a terminal shows only failed '
        'requests',
    )
    add_flags(parser, 'allowed_hosts', of=ServeSettings, nargs='*', metavar='HOST')
    add_flags(parser, 'log_queries', of=ServeSettings)
    add_flags(parser, 'device', 'precision', 'offline')
    add_flags(
        parser,
        'threads',
        of=ServeSettings,
        type=command.threads_or_auto,
        help='queries that Lucene answers at a time; auto: the default, and models use as many '
        'threads as compute one question fastest; default: %(default)s',
    )
    add_flags_of('serve', parser)
    return parser


def _check_flags(options: argparse.Namespace) -> None:
    """Raise InputError for flags that do not go together."""
    has_indexes = options.index or options.config
    command.refuse(
        not has_indexes,
        'there is nothing to serve: give --index, such as --index demo, or --config',
    )
    for name in ('encoder', *settings_with_flags(), 'language'):
        command.refuse(
            getattr(options, name) and not options.index,
            f'--{name} is for --index: --config has its own',
        )
    command.refuse(
        (options.topics or options.qrels) and len(options.index) != 1,
        '--topics and --qrels are for one --index: for several, name them in the file of --config',
    )
    command.refuse(
        options.workers > 1 and options.mcp == 'stdio',
        '--workers is for HTTP: MCP over stdio has one process',
    )
    for part in parts_of('serve'):
        part.check(options)
    command.refuse(options.port > 65535, f'--port {options.port}: expected at most 65535')


def main(arguments: list[str]) -> None:
    """Serve indexes over HTTP or as MCP tools until the process is told to stop."""
    options = make_parser().parse_args(arguments)
    _check_flags(options)
    if options.threads == 'auto':
        options.threads = ServeSettings().threads
        command.use_fastest_threads(options.workers)
    settings = _settings(options)
    check_workers(settings, options.workers)
    if options.mcp == 'stdio':
        from pyserini_repbert.serve.mcp import make_mcp

        make_mcp(settings).run('stdio', show_banner=False)
        return
    from pyserini_repbert.serve.app import create_app
    from pyserini_repbert.serve.indexes import index_type_of
    from pyserini_repbert.serve.server import listen, serve

    for alias, index in settings.indexes.items():
        index_type_of(alias, index)
    with_mcp = options.mcp == 'http'
    listener = listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    if not options.quiet:
        _print_address(host, port)
    warning = open_address_warning(host, settings)
    if warning:
        print(f'warning: {warning}', file=sys.stderr)
    if options.workers > 1:
        serve_with_workers(settings, listener, options.workers, with_mcp, options.log_file)
        return
    app = create_app(settings, with_mcp)
    serve(app, settings, listener, options.log_file)
    if app.state.service.failure:
        raise InputError(app.state.service.failure)


def _print_address(host: str, port: int) -> None:
    """Say on stderr where the page is."""
    shown = f'[{host}]' if ':' in host else host
    print(f'http://{shown}:{port}  (the API: /docs; Ctrl-C stops)', file=sys.stderr)


def open_address_warning(host: str, settings: ServeSettings) -> str:
    """What a service lets everybody do who reaches its address; '' if only this machine can
    connect, or keys are needed.

    Parameters
    ----------
    host : the address at which it listens
    settings : have the keys
    """
    if is_loopback(host):
        return ''
    if not settings.api_keys and not settings.write_keys:
        return (
            'open to the network without keys, anyone may search, judge and learn: '
            'give --api-keys and --write-keys'
        )
    if not settings.api_keys:
        return 'open to the network without keys, anyone may search: give --api-keys'
    if not settings.write_keys:
        return 'open to the network, and any key may judge and learn: give --write-keys'
    return ''


def _settings(options: argparse.Namespace) -> ServeSettings:
    """The settings of the flags and of the settings file."""
    file = read_settings(options.config) if options.config else FileSettings()
    indexes = dict(file.indexes)
    for text in options.index:
        _add_index(indexes, text, options)
    command.refuse(not indexes, f'{options.config} names no indexes: there is nothing to serve')
    api_keys = list(file.api_keys)
    if options.api_keys:
        api_keys += read_keys(options.api_keys)
    write_keys = list(file.write_keys)
    if options.write_keys:
        write_keys += read_keys(options.write_keys)
    allowed_hosts = _allowed_hosts(options, file)
    # A host that is named belongs to a proxy, which brings requests of others.
    is_for_one = options.mcp == 'stdio' or (is_loopback(options.host) and not allowed_hosts)
    return ServeSettings.of(
        indexes=indexes,
        api_keys=api_keys,
        write_keys=write_keys,
        rerankers=file.rerankers if options.rerankers is None else options.rerankers,
        allowed_hosts=allowed_hosts,
        shows_files=is_for_one,
        limits=file.limits,
        **_added_settings(options, file),
        **command.pick_options(options, 'device', 'precision', 'threads', 'log_queries'),
    )


def _added_settings(options: argparse.Namespace, file: FileSettings) -> dict[str, Any]:
    """The settings that extensions add, of their flags or else of the settings file."""
    settings: dict[str, Any] = {}
    for part in loaded('in_services'):
        for name in part.service_settings:
            settings[name] = getattr(file, name)
    for part in parts_of('serve'):
        settings |= part.settings(options)
    return settings


def _add_index(indexes: dict[str, IndexSettings], text: str, options: argparse.Namespace) -> None:
    """Add the index that a value of --index names: '[ALIAS=]INDEX[+LUCENE]'."""
    alias, equals, index = text.partition('=')
    if not equals or Path(text).exists():
        alias = Path(text).name
        index = text
    command.refuse(
        alias in indexes,
        f"two indexes have the name '{alias}': tell them apart as --index ALIAS=INDEX",
    )
    base = None
    dense, plus, lucene = index.rpartition('+')
    if plus and not Path(index).exists():
        index = dense
        base = f'{alias}-lucene'
        indexes[base] = IndexSettings.of(path=lucene, language=options.language)
    of_index = command.pick_options(options, 'encoder', *settings_with_flags(), 'topics', 'qrels')
    language = None if base else options.language
    indexes[alias] = IndexSettings.of(path=index, base_index=base, language=language, **of_index)


def _allowed_hosts(options: argparse.Namespace, file: FileSettings) -> list[str]:
    """The hosts of the flag or of the settings file; if neither says, the address does."""
    if options.allowed_hosts is not None:
        return list(options.allowed_hosts)
    if file.allowed_hosts is not None:
        return list(file.allowed_hosts)
    return [] if is_loopback(options.host) else [ANY]
