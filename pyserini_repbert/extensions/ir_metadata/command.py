"""The command `evaluate ir-metadata`: how a run was made, for other projects."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import parser, refuse
from pyserini_repbert.commands.flags import OutputFile, add_flags, parse_flags
from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.files import check_replaced


def ir_metadata(arguments: Sequence[str]) -> None:
    """Write a run with what its record says of it, as ir-metadata or as TIRA's folder."""
    flags = parser(
        'evaluate ir-metadata',
        'Write a run with what its record says of it, in the form of ir-metadata.org: as the '
        "run's header (--output), or in a folder for TIRA and TIREx (--tira).",
    )
    flags.add_argument('run', metavar='RUN', help='a TREC run with its record beside it')
    flags.add_argument(
        '--output', type=OutputFile, metavar='FILE', help='the run to write, with a header'
    )
    flags.add_argument(
        '--tira',
        type=OutputPath,
        metavar='FOLDER',
        help='run.txt and ir-metadata.yml in a folder',
    )
    flags.add_argument(
        '--add',
        nargs='+',
        default=[],
        metavar='FILE',
        help='YAML with what no record has: actor, research goal, the name of the test '
        'collection, …; what tirex-tracker measured',
    )
    flags.add_argument(
        '--skeleton',
        metavar='FILE',
        help='YAML with the fields that the organisers of a task require; the command names '
        'missing ones',
    )
    add_flags(flags, 'overwrite')
    options = parse_flags(flags, arguments)
    refuse(
        not options.output and not options.tira, 'nothing to write: give --output, --tira or both'
    )
    refuse(
        options.output and options.output == options.tira,
        '--output and --tira are one path: give two',
    )
    from pyserini_repbert.extensions.ir_metadata import form

    if options.tira:
        check_replaced(options.tira, options.overwrite, form.METADATA_FILE, form.TIRA_FORM)
    metadata = form.read_metadata(options.run, *options.add)
    if options.skeleton:
        form.check_fields(metadata, options.skeleton)
    if options.output:
        form.write_annotated(options.run, metadata, options.output)
    if options.tira:
        form.write_tira_folder(options.run, metadata, options.tira, options.overwrite)
