"""Peak memory of the encode command on corpora of 100,000 and 300,000 passages: it should not grow
with the corpus.

    python benchmarks/encoding_memory.py [--small 100000] [--large 300000]

For Linux. A tiny model keeps the run short; reading, bucketing, writing and checking are the same
for any model. From 10,000 to 100,000 passages the peak grows by 4%: fewer passages do not have
batches of all lengths.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import figures
from encoding import texts_of_msmarco_lengths
from figures import Figure

LAYERS = 1
HIDDEN = 64


def make_checkpoint(folder: Path) -> Path:
    """A small random RepBERT with the demo's vocabulary."""
    import shutil

    import torch
    from safetensors.torch import save_file

    from pyserini_repbert import catalog
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.systems.repbert.network import RepBert

    folder.mkdir()
    config = {
        'hidden_size': HIDDEN,
        'num_hidden_layers': LAYERS,
        'num_attention_heads': 4,
        'intermediate_size': 64,
    }
    torch.manual_seed(0)
    save_file(RepBert(BertConfig.from_dict(config)).state_dict(), folder / 'model.safetensors')
    ranking = {'system': 'repbert', 'max_doc_length': 256}
    (folder / 'config.json').write_text(
        json.dumps(config | {'model_type': 'bert', 'ranking': ranking})
    )
    source = catalog.package_folder(catalog.get('encoders', 'minilm'))
    shutil.copyfile(source / 'tokenizer.json', folder / 'tokenizer.json')
    return folder


def peak_megabytes(arguments: list[str]) -> float:
    """Peak resident MB of a process that runs the encode command (VmHWM: a child's ru_maxrss
    counts its parent's).
    """
    code = (
        'import sys; from pyserini_repbert.commands import command, encode; status = '
        'command.run(encode.main); '
        "print(open('/proc/self/status').read()); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, '-c', code, *arguments], check=True, capture_output=True, text=True
    )
    return (
        int(next(line.split()[1] for line in done.stdout.splitlines() if line.startswith('VmHWM')))
        / 1e3
    )


def main() -> None:
    """Encode both corpora and print the ratio of their peaks."""
    parser = figures.parser(__doc__)
    parser.add_argument('--small', type=int, default=100_000)
    parser.add_argument('--large', type=int, default=300_000)
    options = parser.parse_args()
    texts = texts_of_msmarco_lengths(2000)
    peaks = {}
    with tempfile.TemporaryDirectory() as work:
        checkpoint = make_checkpoint(Path(work) / 'checkpoint')
        for size in (options.small, options.large):
            corpus = Path(work) / f'{size}.jsonl'
            with open(corpus, 'w', encoding='utf-8') as stream:
                for number in range(size):
                    text = f'{texts[number % len(texts)]} {number}'
                    stream.write(json.dumps({'id': str(number), 'contents': text}) + '\n')
            arguments = [
                '--corpus',
                str(corpus),
                '--encoder',
                str(checkpoint),
                '--output',
                f'{work}/{size}',
            ]
            peaks[size] = peak_megabytes([*arguments, '--store-text', '--quiet'])
            print(f'  {size:8,} passages: peak {peaks[size]:.0f} MB')
    growth = 100 * (peaks[options.large] / peaks[options.small] - 1)
    name = f'peak memory of encoding, from {options.small:,} to {options.large:,} passages'
    figures.tell(options, [Figure(name, growth, '%', 2, at_most=True)])


if __name__ == '__main__':
    main()
