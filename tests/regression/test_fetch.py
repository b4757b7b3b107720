"""`regression fetch`: what is listed, what is fetched, and one line for what cannot be."""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile

import pytest
from redirected import redirected
from web_stub import Web, running

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.download import download_name
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.regression.fetching import unpack

RUN = b'1\tx\t1\n1\ty\t2\n'
YAML = """\
name: far
title: Things from afar
resources:
  plain: {what: a run, path: '{downloads}/plain.tsv', size: 14 B, md5: MD5, address: 'https://a.example/plain?dl=1'}
  zipped:
    what: a run in an archive
    path: '{downloads}/zipped.tsv'
    size: 2 GB packed
    address: https://a.example/zipped.zip
    unpack: member run*.tsv
    licence: CC0
  qrels: {what: judgments, path: '{data}/qrels.txt.gz', size: 7 B, address: 'https://b.example/qrels.txt', unpack: gzip}
  discs: {what: two disks, path: '{downloads}/discs', agreement: NIST}
  never: {what: a run of somebody, unpublished: it was lost}
sources:
  here: {text: this project, commit: '0123456'}
tolerances:
  none: {value: 0, reason: nothing can differ}
conditions:
  - name: plain
    run: '{plain}'
    qrels: '{qrels}'
    expected: &e [{measure: RR, value: 0.5, source: here, tolerance: none}]
  - {name: zipped, run: '{zipped}', qrels: '{qrels}', expected: *e}
  - {name: discs, run: '{discs}', qrels: '{qrels}', expected: *e}
  - {name: never, run: '{never}', qrels: '{qrels}', expected: *e}
"""  # noqa: E501


def zipped(**members):
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, 'w') as archive:
        for name, content in members.items():
            archive.writestr(f'folder/{name}.tsv', content)
    return archived.getvalue()


@pytest.fixture
def web(monkeypatch, tmp_path):
    """All three resources as they should be, on a server here; an empty cache."""
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'cache'))
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / 'far.yaml').write_text(
        YAML.replace('MD5', hashlib.md5(RUN).hexdigest()), encoding='utf-8'
    )
    (tmp_path / 'data').mkdir()
    with running(Web()) as started:
        started.add('https://a.example/plain?dl=1', RUN)
        started.add('https://a.example/zipped.zip', zipped(run1=RUN, other=b'no'))
        started.add('https://b.example/qrels.txt', b'1 0 y 1')
        with redirected(started.address):
            yield started


def folder_flags(folder):
    return ['--data', str(folder / 'data'), '--work', str(folder / 'work')]


def fetch(folder, *flags):
    return run(main, ['fetch', str(folder / 'far.yaml'), *folder_flags(folder), *flags])


def downloads(folder):
    return folder / 'cache' / 'downloads'


def test_what_can_be_fetched_is_listed(web, tmp_path, capsys):
    assert fetch(tmp_path, '--dry-run') == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'to fetch: 3, 2.0 GB'
    zipped_line = '  zipped: a run in an archive; 2 GB packed; https://a.example/zipped.zip; '
    assert zipped_line + 'licence: CC0' in lines
    assert web.asked == []


def test_what_cannot_be_fetched_is_listed(web, tmp_path, capsys):
    assert fetch(tmp_path, '--dry-run') == 0
    printed = capsys.readouterr().out
    assert 'not to be fetched here: 2\n' in printed
    assert '\n  discs: two disks: by agreement: NIST' in printed
    assert '\n  never: a run of somebody: not published; it was lost' in printed
    counts = ['    2 downloads', '    1 a licence', '    1 something that was never published']
    assert printed.splitlines()[-4:] == ['conditions, by what they need:', *counts]


def test_downloads_are_unpacked(web, tmp_path, capsys):
    assert fetch(tmp_path) == 0
    assert '3 of 3 resources are here now' in capsys.readouterr().out
    assert (downloads(tmp_path) / 'plain.tsv').read_bytes() == RUN
    assert (downloads(tmp_path) / 'zipped.tsv').read_bytes() == RUN
    with gzip.open(downloads(tmp_path) / 'qrels.txt.gz') as stream:
        assert stream.read() == b'1 0 y 1\n'


def test_everything_is_fetched_once(web, tmp_path):
    for _ in range(2):
        assert fetch(tmp_path) == 0
        assert len(web.asked) == 3


def test_what_was_fetched_can_be_run(web, tmp_path):
    assert fetch(tmp_path) == 0
    report = tmp_path / 'report.json'
    flags = [*folder_flags(tmp_path), '--report', str(report)]
    assert run(main, [str(tmp_path / 'far.yaml'), *flags]) == 0
    conditions = json.loads(report.read_text())['files'][0]['conditions']
    statuses = [condition['status'] for condition in conditions]
    assert statuses == ['PASS', 'PASS', 'NOT RUN', 'NOT RUN']


def test_only_what_the_chosen_condition_needs_is_fetched(web, tmp_path, capsys):
    assert fetch(tmp_path, '--condition', 'plain') == 0
    assert 'to fetch: 2, 21 B\n' in capsys.readouterr().out
    assert [path for path, _ in web.asked] == ['a.example/plain?dl=1', 'b.example/qrels.txt']


def test_a_condition_that_is_not_there_is_refused(web, tmp_path, capsys):
    assert fetch(tmp_path, '--condition', 'plane') == 2
    message = "'plane' is not a condition of these files (did you mean 'plain'?)"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ('answer', 'message'),
    [
        (
            {'content': b'', 'status': 404},
            "'zipped' could not be fetched (status 404, Not Found): try again, or fetch",
        ),
        ({'content': b'', 'status': 503}, 'status 503, Service Unavailable): try again'),
        (
            {'content': b'<html>', 'content_type': 'text/html; charset=utf-8'},
            'a web page came instead of the file',
        ),
        (
            {'content': zipped(other=RUN)},
            'holds folder/other.tsv, expected run*.tsv: its layout has changed',
        ),
        (
            {'content': zipped(run=RUN).replace(RUN, RUN[::-1])},
            'is not a complete archive (Bad CRC-32',
        ),
        ({'content': b'x' * 90, 'cut': 40}, 'the connection ended 50 bytes early): try again'),
    ],
)
def test_one_line_for_what_fails_and_the_others_go_on(web, tmp_path, capsys, answer, message):
    web.add('https://a.example/zipped.zip', **answer)  # type: ignore[arg-type]
    assert fetch(tmp_path) == 1
    printed = capsys.readouterr().out
    start = 'zipped (a run in an archive): '
    (line,) = [line for line in printed.splitlines() if line.startswith(start)]
    assert message in line
    assert '2 of 3 resources are here now' in printed
    assert not (downloads(tmp_path) / 'zipped.tsv').exists()


def test_an_interrupted_download_goes_on(web, tmp_path):
    whole = zipped(run=RUN * 3000)
    version = {'ETag': '"1"'}
    web.add('https://a.example/zipped.zip', whole, cut=200, headers=version)
    assert fetch(tmp_path) == 1
    (part,) = downloads(tmp_path).glob('*-zipped.zip.part')
    assert part.stat().st_size == 200
    web.add('https://a.example/zipped.zip', whole, headers=version)
    assert fetch(tmp_path) == 0
    assert web.asked[-1] == ('a.example/zipped.zip', 200)
    assert (downloads(tmp_path) / 'zipped.tsv').read_bytes() == RUN * 3000


def test_what_is_left_of_a_longer_file_is_not_taken_for_the_whole(web, tmp_path):
    downloads(tmp_path).mkdir(parents=True)
    (downloads(tmp_path) / 'plain.tsv.part').write_bytes(b'x' * 5000)
    assert fetch(tmp_path) == 0
    assert [first for path, first in web.asked if 'plain' in path] == [5000, 0]
    assert (downloads(tmp_path) / 'plain.tsv').read_bytes() == RUN


def test_another_file_than_published_is_not_kept(web, tmp_path, capsys):
    web.add('https://a.example/plain?dl=1', RUN + b'1\tz\t3\n')
    assert fetch(tmp_path) == 1
    refusal = f'expected {hashlib.md5(RUN).hexdigest()}: fetch plain.tsv (14 B)'
    assert refusal in capsys.readouterr().out
    assert not list(downloads(tmp_path).glob('plain*'))


@pytest.mark.parametrize('part', [b'1\tz\t1\n', RUN])
def test_a_file_of_several_parts_has_the_published_sha256(part, web, tmp_path, capsys):
    addresses = ['https://a.example/1.tsv', 'https://a.example/2.tsv']
    joined = tmp_path / 'joined.yaml'
    sha256 = hashlib.sha256(RUN + RUN).hexdigest()
    joined.write_text(
        f"""\
name: joined
title: A run in two parts
resources:
  run: {{what: a run, path: '{{downloads}}/run.tsv', size: 28 B, address: [{', '.join(addresses)}],
    unpack: join, sha256: {sha256}}}
  qrels: {{what: judgments, path: '{{data}}/qrels.txt', get: write them}}
sources: {{here: {{text: this project, commit: '0123456'}}}}
tolerances: {{none: {{value: 0, reason: nothing can differ}}}}
conditions:
  - {{name: run, run: '{{run}}', qrels: '{{qrels}}',
      expected: [{{measure: RR, value: 0.5, source: here, tolerance: none}}]}}
"""
    )
    web.add(addresses[0], RUN)
    web.add(addresses[1], part)
    status = run(main, ['fetch', str(joined), *folder_flags(tmp_path)])
    path = downloads(tmp_path) / 'run.tsv'
    if part == RUN:
        assert path.read_bytes() == RUN + RUN
    else:
        assert status == 1
        assert f'expected {sha256[:16]}…: delete ' in capsys.readouterr().out
        assert not path.exists()


def test_the_checksum_of_what_was_fetched_first_is_kept(web, tmp_path):
    assert fetch(tmp_path) == 0
    record = downloads(tmp_path) / 'zipped.tsv.sha256'
    assert record.read_text() == (
        f'{hashlib.sha256(RUN).hexdigest()}  zipped.tsv\n# from https://a.example/zipped.zip\n'
    )


def test_what_a_user_put_there_has_no_record(web, tmp_path):
    downloads(tmp_path).mkdir(parents=True)
    by_hand = download_name('https://a.example/zipped.zip')
    (downloads(tmp_path) / by_hand).write_bytes(zipped(run=RUN))
    assert fetch(tmp_path) == 0
    assert (downloads(tmp_path) / 'zipped.tsv').read_bytes() == RUN
    assert not (downloads(tmp_path) / 'zipped.tsv.sha256').exists()


def test_two_archives_of_one_name_are_two_files(web, tmp_path):
    path = tmp_path / 'far.yaml'
    text = path.read_text()
    other = text.replace('a.example/zipped.zip', 'c.example/zipped.zip').replace(
        '/zipped.tsv', '/other.tsv'
    )
    web.add('https://c.example/zipped.zip', zipped(run=b'1\ty\t1\n'))
    assert fetch(tmp_path) == 0
    path.write_text(other)
    assert fetch(tmp_path) == 0
    assert (downloads(tmp_path) / 'zipped.tsv').read_bytes() == RUN
    assert (downloads(tmp_path) / 'other.tsv').read_bytes() == b'1\ty\t1\n'


def test_a_file_of_another_source_is_not_used(web, tmp_path, capsys):
    assert fetch(tmp_path) == 0
    path = tmp_path / 'far.yaml'
    path.write_text(path.read_text().replace('a.example/zipped', 'c.example/zipped'))
    assert run(main, [str(path), *folder_flags(tmp_path), '--condition', 'zipped']) == 1
    message = 'was fetched from https://a.example/zipped.zip, and zipped is at https://c.example'
    assert message in capsys.readouterr().out


def test_two_resources_with_one_path_are_refused(web, tmp_path, capsys):
    path = tmp_path / 'far.yaml'
    path.write_text(path.read_text().replace('{downloads}/plain.tsv', '{data}/zipped.tsv'))
    assert fetch(tmp_path) == 2
    assert "'plain' and 'zipped' have one path" in capsys.readouterr().err


def test_another_file_than_fetched_before_is_not_kept(web, tmp_path, capsys):
    assert fetch(tmp_path) == 0
    for path in downloads(tmp_path).glob('*zipped*'):
        if path.suffix != '.sha256':
            path.unlink()
    web.add('https://a.example/zipped.zip', zipped(run=RUN[:-1]))
    assert fetch(tmp_path) == 1
    assert 'has changed its file since it was first fetched' in capsys.readouterr().out
    assert not (downloads(tmp_path) / 'zipped.tsv').exists()


def test_users_folder_counts_first(web, tmp_path, capsys):
    (tmp_path / 'data' / 'discs').mkdir()
    (tmp_path / 'data' / 'zipped.tsv').write_bytes(RUN)
    assert fetch(tmp_path, '--dry-run') == 0
    printed = capsys.readouterr().out
    assert 'by agreement' not in printed and 'zipped.zip' not in printed
    assert 'to fetch: 2, 21 B' in printed


@pytest.fixture
def archive(tmp_path):
    """A packed top1000.dev of MS MARCO: qid, docid, query and passage of three candidates."""
    content = b'7\t10\tq\tp\n8\t10\tr\tp\n7\t11\tq\to\n'
    path = tmp_path / 'top1000.dev.tar.gz'
    with tarfile.open(path, 'w:gz') as packed:
        member = tarfile.TarInfo('./top1000.dev')
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))
    return path


def test_candidates_become_a_run(archive, tmp_path):
    unpack('candidates top1000.dev', [archive], tmp_path / 'run.tsv')
    assert (tmp_path / 'run.tsv').read_bytes() == b'7\t10\t1\n8\t10\t1\n7\t11\t2\n'


def test_all_members_are_put_into_a_folder(archive, tmp_path):
    unpack('members *', [archive], tmp_path / 'all')
    assert [path.name for path in (tmp_path / 'all').iterdir()] == ['top1000.dev']


def test_an_archive_without_the_member_is_refused(archive, tmp_path):
    with pytest.raises(DamagedFileError, match=r'holds \./top1000\.dev, expected \*\.cbor'):
        unpack('paragraphs *.cbor', [archive], tmp_path / 'car.jsonl')
    assert not (tmp_path / 'car.jsonl').exists()


def test_a_cut_archive_is_refused(archive, tmp_path):
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(DamagedFileError, match='not a complete archive'):
        unpack('member *', [archive], tmp_path / 'cut.tsv')
    assert not (tmp_path / 'cut.tsv').exists()


@pytest.fixture
def quick(web, tmp_path, monkeypatch):
    """run(FLAGS): `regression quick`, where far.yaml is the only regression; its exit status."""
    (tmp_path / 'regressions').mkdir()
    (tmp_path / 'far.yaml').rename(tmp_path / 'regressions' / 'far.yaml')
    monkeypatch.chdir(tmp_path)

    def run_quick(*flags):
        return run(main, ['quick', *folder_flags(tmp_path), *flags])

    return run_quick


def test_quick_downloads_nothing_offline(quick, web, capsys):
    assert quick('--offline') == 0
    assert 'conditions: 2 NOT RUN' in capsys.readouterr().out
    assert web.asked == []


def test_quick_checks_what_could_be_fetched(quick, web, capsys):
    web.add('https://a.example/zipped.zip', b'', status=404)
    assert quick() == 1
    printed = capsys.readouterr().out
    assert 'zipped (a run in an archive): ' in printed
    assert 'status 404' in printed
    assert 'conditions: 1 PASS, 1 NOT RUN' in printed


def test_quick_leaves_out_what_has_to_be_asked_for_or_was_not_published(quick, tmp_path):
    assert quick('--report', 'report.json') == 0
    conditions = json.loads((tmp_path / 'report.json').read_text())['files'][0]['conditions']
    assert [condition['name'] for condition in conditions] == ['plain', 'zipped']
