"""`adapt` of a collection, which learns from the judgments in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyserini_repbert.collection.commands.model_grades import add_model_grades_flag
from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.parts import CommandPart
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import loaded


class LearningFromJudgments(CommandPart):
    """Without --topics, --qrels and --output, a collection learns from its judgments."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        flags = parser.add_argument_group(
            'of a collection',
            'A collection learns from the judgments in it, without --topics, --qrels and --output: '
            '`adapt --index mine`, then --use.',
        )
        add = flags.add_argument
        add_flags(
            flags,
            'filter',
            help='learn only from the documents that match; other judgments do not count',
        )
        add_flags(flags, 'only_ids', 'not_ids')
        add_model_grades_flag(
            flags,
            'also learn from the grades of this language model, where no person judged; `index '
            'judgments` prints its name',
        )
        add(
            '--use',
            action='store_true',
            help='search as the collection learned last, if that is better than the present search',
        )
        add('--even-if-worse', action='store_true', help='with --use: even if it is not better')
        add('--go-back', action='store_true', help='undo --use')

    def run(self, options: argparse.Namespace) -> bool:
        """As in `CommandPart`. Raises InputError for flags that do not go together."""
        files = (options.topics, options.qrels, options.output)
        if not any(files):
            _adapt_collection(options)
            return True
        command.refuse(
            not all(files),
            '--topics, --qrels and --output go together; without them, a collection learns from '
            'the judgments in it',
        )
        command.refuse(
            options.use or options.go_back or options.even_if_worse,
            '--use, --even-if-worse and --go-back are for what a collection learned: use a folder '
            'with `search --adapted FOLDER`',
        )
        command.refuse(
            options.with_model_grades is not None,
            '--with-model-grades is for the judgments in a collection: leave out --topics and '
            '--qrels',
        )
        return False


def _adapt_collection(options: argparse.Namespace) -> None:
    """Learn from the judgments in a collection, or say how it is searched."""
    from pyserini_repbert.indexes.kind import kind_of

    advice = 'give --topics, --qrels and --output'
    kind_of(options.index).check_writable(options.index, advice)
    _check_flags(options)
    if options.use or options.go_back:
        _choose_search(options)
    else:
        _learn(options)


def _check_flags(options: argparse.Namespace) -> None:
    """Raise InputError for flags that are not for a collection, or do not go together."""
    of_rankings = ('encoder', 'sparse', 'language', 'rerank', 'corpus', 'max_length')
    of_documents = ('filter', 'only_ids', 'not_ids')
    for name in (*of_rankings, *of_documents, 'keep', 'overwrite'):
        command.refuse(
            bool(getattr(options, name)),
            f'--{name.replace("_", "-")} is for --topics, --qrels and --output: leave it '
            'out, because a collection learns with its own rankings',
        )
    command.refuse(options.use and options.go_back, 'give either --use or --go-back')
    command.refuse(
        options.even_if_worse and not options.use, '--even-if-worse goes with --use: give both'
    )
    command.refuse(
        options.with_model_grades is not None and (options.use or options.go_back),
        '--with-model-grades is for learning: leave out --use and --go-back',
    )


def _choose_search(options: argparse.Namespace) -> None:
    """Search as the collection learned (--use), or as before (--go-back)."""
    from pyserini_repbert.collection.judging.from_judgments import use_learning
    from pyserini_repbert.collection.judging.own_settings import learning_in_use

    folder = Path(options.index)
    if options.go_back and learning_in_use(folder) is None:
        raise InputError(
            f'collection {options.index} does not use what it learned: there is nothing to undo'
        )
    use_learning(folder, options.use, options.even_if_worse)
    how = 'as it learned' if options.use else 'as before it learned'
    print(f'{options.index}: searched {how}')
    say_losses(folder)


def _learn(options: argparse.Namespace) -> None:
    """Learn from the judgments, and print whether it is worth using."""
    from pyserini_repbert.adapt.judged_topics import N_MAPS
    from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments
    from pyserini_repbert.commands.adapt import print_means

    with command.progress(N_MAPS, 'adapt', 'map', options.quiet) as bar:
        learning = learn_from_judgments(
            Path(options.index), options.device, options.seed, bar.update, options.with_model_grades
        )
    report = learning.report
    print(f'nDCG@10 on {report["topics"]} questions, cross-validated:')
    print_means(report['means'], report['baseline'])
    print(printable(report['sentence']))
    for part in loaded('in_collections'):
        for line in part.describe_learning(report):
            print(line)
    if report['is_worth_using']:
        print(f'to use it: adapt --index {options.index} --use')
    else:
        print('to learn more: judge more questions')


def say_losses(folder: Path) -> None:
    """Say what the collection had that its present search lacks."""
    for part in loaded('in_collections'):
        for line in part.describe_loss(folder):
            print(printable(line))


IN_ADAPT = LearningFromJudgments()
