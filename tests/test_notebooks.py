"""Every notebook in examples/ runs from its first cell to its last; their own assertions say
what has to come out.
"""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / 'examples'
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob('*.ipynb'))


def test_each_system_has_one():
    assert NOTEBOOKS == [
        'cedr.ipynb',
        'epic.ipynb',
        'hybrid.ipynb',
        'multistage.ipynb',
        'repbert.ipynb',
    ]


@pytest.mark.parametrize('name', NOTEBOOKS)
def test_outputs_are_not_kept(name):
    nbformat = pytest.importorskip('nbformat')
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == 'code']
    assert code and not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.slow
@pytest.mark.jvm  # BM25 in hybrid.ipynb
@pytest.mark.parametrize('name', NOTEBOOKS)
def test_a_notebook_runs_and_plots(name, tmp_path, monkeypatch):
    nbformat = pytest.importorskip('nbformat')
    nbclient = pytest.importorskip(
        'nbclient', reason='!!!! NOTEBOOKS WERE NOT RUN: nbclient is not installed'
    )
    monkeypatch.setenv('JUPYTER_RUNTIME_DIR', str(tmp_path))
    monkeypatch.setenv('IPYTHONDIR', str(tmp_path))
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=500, resources={'metadata': {'path': str(tmp_path)}}
    ).execute()
    images = [
        out
        for cell in notebook.cells
        for out in cell.get('outputs', [])
        if 'image/png' in out.get('data', {})
    ]
    assert images
