import pytest

from pyserini_repbert.commands.command import run

TOOL = 'refresh_tables'
PAGE = """# Title

```sh
make_the_runs --by hand   # not followed by an output: left alone
```

```sh
python -m pyserini_repbert.evaluate $DATA/a.run \\
  --qrels $DATA/qrels --measures MRR@10
```

<!-- output -->
{}
<!-- end -->

Rest
"""
TABLE = '\n| run | MRR@10 |\n| --- | -----: |\n| a   | 0.5000 |\n\nOver 1 judged topics.\n'


@pytest.fixture
def page(tmp_path):
    (tmp_path / 'a.run').write_text('1 Q0 x 1 2 t\n1 Q0 r 2 1 t\n')
    (tmp_path / 'qrels').write_text('1 0 r 1\n')
    (tmp_path / 'page.md').write_text(PAGE.format('old'))
    return tmp_path / 'page.md'


def test_output_is_put_beneath_its_command(main, page, capsys):
    command = [str(page), '--data', str(page.parent)]
    assert run(main, [*command, '--check']) == 1
    assert run(main, command) == 0
    assert page.read_text() == PAGE.format(TABLE)
    assert run(main, [*command, '--check']) == 0
    assert 'up to date' in capsys.readouterr().out
