"""Two processes that share their negatives train as one process with their batches together."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from folders import HANGS

import pyserini_repbert
from pyserini_repbert.train.recipe_files import read_recipe
from pyserini_repbert.train.result import read_log
from pyserini_repbert.train.training import train

ROOT = Path(pyserini_repbert.__file__).parent.parent
NO_DROPOUT = {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}


@pytest.mark.slow
def test_two_processes_with_gathered_negatives_equal_one(recipe_file, world, tmp_path):
    data = [{key: world[key] for key in ('topics', 'qrels', 'corpus')} | {'negatives': 0}]
    ranking = {'max_query_length': 8, 'max_doc_length': 16}
    path = recipe_file(
        'repbert', ranking=ranking, data=data, training={'shuffle': 1, 'gather': True}
    )
    config = json.loads((tmp_path / 'base/config.json').read_text(encoding='utf-8')) | NO_DROPOUT
    (tmp_path / 'base/config.json').write_text(json.dumps(config), encoding='utf-8')
    train(read_recipe(path, ('training.batch_size=8',)), tmp_path / 'alone', device='cpu')
    start = ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2']
    flags = ['--set', 'training.batch_size=4', '--device', 'cpu']
    done = subprocess.run(
        [
            *(sys.executable, *start, '-m', 'pyserini_repbert.train', str(path), *flags),
            *('--output', str(tmp_path / 'together')),
        ],
        env=os.environ | {'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('6 steps') == 1
    alone = [float(row['loss']) for row in read_log(tmp_path / 'alone/log.csv')]
    together = [float(row['loss']) for row in read_log(tmp_path / 'together/log.csv')]
    assert len(alone) == 6
    assert together == pytest.approx(alone, abs=1e-5)
