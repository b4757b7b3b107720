"""Whether an encoder knows the words of documents."""

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from pyserini_repbert import catalog
from pyserini_repbert.collection.known_words import (
    KnownWords,
    UnknownDocuments,
    WordCounts,
    WordReport,
)
from pyserini_repbert.data.documents import Document
from pyserini_repbert.models.tokenizer import WordPieceTokenizer, read_tokenizer

ENGLISH = (
    'A plant that dries out and is then soaked gets cracked fruit. Water it evenly, and lay straw '
    'around the stems, so that the soil keeps its water during a dry week of summer.'
)
TEXTS = {
    'German': 'Eine Pflanze, die austrocknet und dann durchnässt wird, bekommt geplatzte Früchte. '
    'Gieße sie gleichmäßig und lege Stroh um die Stängel, damit der Boden sein Wasser behält.',
    'French': 'Une plante qui se dessèche puis se trouve détrempée donne des fruits fendus. '
    'Arrosez régulièrement et étalez de la paille autour des tiges pour garder la fraîcheur.',
    'Turkish': 'Kuruyup sonra ıslanan bir bitkinin meyveleri çatlar. Düzenli olarak sulayın ve '
    'sapların çevresine saman serin ki toprak yazın kurak haftalarında suyunu koruyabilsin.',
    'Vietnamese': 'Cây bị khô rồi ngập nước sẽ có quả nứt. Hãy tưới đều và phủ rơm quanh gốc để '
    'đất giữ được nước trong những tuần khô hạn của mùa hè, khi nắng nóng kéo dài.',
    'Russian': 'Растение, которое высыхает и затем намокает, даёт потрескавшиеся плоды. Поливайте '
    'его равномерно и кладите солому вокруг стеблей, чтобы почва сохраняла воду летом.',
    'Arabic': 'النبات الذي يجف ثم يغمره الماء يعطي ثمارا متشققة. اسقه بانتظام وضع القش حول السيقان '
    'حتى تحتفظ التربة بالماء خلال أسبوع جاف من الصيف الطويل الحار.',
    'Chinese': '植物先干旱后浸水,果实就会开裂。请均匀浇水,并在茎的周围铺上稻草,'
    '使土壤在夏天保持水分。晚上浇水,早晨检查,下雨以后不必浇水,叶子发黄时应当施肥,'
    '蜗牛多时用铜条围住生菜。'
    '春天播种,秋天收获,冬天休息,每年如此。',
    'Japanese': '乾いたあとで水に浸かると、実が割れます。均等に水をやり、茎のまわりに藁を敷いて、'
    '夏の土を乾かさないようにします。朝に葉を見て、雨のあとは水をやりません。黄色い葉には肥料を、'
    'ナメクジには銅のテープを。春に種をまき、秋に収穫、冬は休み。',
    'Thai': 'พืชที่แห้งแล้วเปียกน้ำ จะมีผลแตก ควรรดน้ำสม่ำเสมอ และคลุมฟางรอบโคนต้น เพื่อให้ดินเก็บน้ำได้ '
    'ในสัปดาห์ที่แห้ง ของฤดูร้อน หอยทากชอบกิน ผักกาดหอม ให้ล้อมด้วย แผ่นทองแดง ทุกเย็น '
    'หลังฝนตก ตอนเช้า ใบเหลือง ต้นไม้ สวนครัว เก็บเกี่ยว ฤดูใบไม้ผลิ',
}
CODE = '''
def readFile(path, encodingName='utf-8'):
    """Read all lines of a file, and return those that are not empty."""
    with open(path, encoding=encodingName) as fileHandle:
        numberedLines = list(enumerate(fileHandle.readlines(), start=1))
    for lineNumber, line in numberedLines:
        if not line.strip():
            raise ValueError(f'line {lineNumber} of {path} is empty')
    return [line.rstrip() for _, line in numberedLines]
'''
TABLE = 'date,product,price,amount\n' + '\n'.join(
    f'2024-01-{day:02d},SKU{day},{day * 1.5:.2f},{day}' for day in range(1, 29)
)


@pytest.fixture(scope='module')
def minilm():
    folder = catalog.package_folder(catalog.get('encoders', 'minilm'))
    return WordPieceTokenizer(read_tokenizer(folder / 'tokenizer.json')).backend


@pytest.mark.parametrize('language', TEXTS)
def test_minilm_knows_no_other_language_than_english(language, minilm):
    counts = KnownWords(minilm).count(TEXTS[language])
    assert counts.words >= 10
    assert not counts.are_known


@pytest.mark.parametrize('text', [ENGLISH, CODE, TABLE, '1.5, 2.5 -> 3', ''])
def test_it_knows_english_code_and_numbers(text, minilm):
    assert KnownWords(minilm).count(text).are_known


def wordpiece(*pieces):
    ids = {piece: number for number, piece in enumerate(['[UNK]', *pieces])}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def test_distinct_words_are_counted_whole():
    words = KnownWords(wordpiece('read', 'file', 'schne', '##cke', 'a'))
    # 'a' is too short, `readFile` is two words, 'schnecke' is cut, 'rain' has no pieces.
    assert words.count('a read readFile Schnecke rain rain 12') == WordCounts(2, 4)
    # Remembered: the same again.
    assert words.count('File rain') == WordCounts(1, 2)


def test_characters_of_a_vocabulary_of_chinese_are_known():
    words = KnownWords(wordpiece('干', '旱', '浸'))
    assert words.count('干旱,浸干') == WordCounts(2, 2)
    assert words.count('干水') == WordCounts(0, 1)


def unigram(pieces, n_pieces):
    vocabulary = [('<unk>', 0.0), *((piece, -1.0) for piece in pieces)]
    vocabulary += [(f'<{number}>', -9.0) for number in range(n_pieces - len(vocabulary))]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def test_a_vocabulary_for_many_languages_cuts_words_that_it_knows():
    pieces = ['▁Schne', 'cken', '▁', *'abcdefghnorkz']
    many = KnownWords(unigram(pieces, 100_000))
    # Two pieces of four letters; '▁', 'f', 'r', 'o', ... spells a word out; 'й' is unknown.
    assert many.count('Schnecken') == WordCounts(1, 1)
    assert many.count('frog') == WordCounts(0, 1)
    assert many.count('мой') == WordCounts(0, 1)
    assert KnownWords(unigram(pieces, 1000)).count('Schnecken') == WordCounts(0, 1)


def test_chinese_characters_among_kana_are_known_one_by_one():
    words = KnownWords(unigram(['▁', *'庭の土ラオス', 'から'], 100_000))
    assert words.count('庭の土から') == WordCounts(1, 1, 1)
    assert words.count('から') == WordCounts(1, 1)
    # Spelt out in kana.
    assert words.count('ラオス') == WordCounts(0, 1, 1)


def test_a_report_names_the_documents_that_are_not_known(minilm):
    report = WordReport('minilm', minilm)
    for number in range(5):
        report.add(Document(f'note{number}', ENGLISH))
    assert not report.unknown
    report.add(Document('diary', TEXTS['German']))
    report.add(Document('short', 'Schnecken'))
    unknown = report.unknown
    assert (unknown.documents, unknown.of, unknown.first) == (1, 6, ('diary',))
    assert str(unknown) == (
        '1 of the 6 documents that have 20 words or more (diary) '
        "is in words that encoder 'minilm' does not know"
    )
    assert not unknown.are_most


def test_a_vocabulary_without_words_tells_nothing():
    report = WordReport('letters', wordpiece(*'abcdefgh'))
    report.add(Document('a', ENGLISH))
    assert not report.unknown


def test_a_report_says_when_it_is_all_of_them(minilm):
    report = WordReport('minilm', minilm)
    report.add(Document('a', 'Schnecken fressen Salat'))
    # Three words are too few.
    assert not report.unknown
    for number, sentence in enumerate(TEXTS['German'].split('.')):
        report.add(Document(f'b{number}', sentence))
    # No document has 20 words, and all of them have.
    assert (report.unknown.documents, report.unknown.are_most) == (0, True)
    assert str(report.unknown) == "encoder 'minilm' does not know the words of the documents"


def test_a_few_chinese_sentences_are_enough_to_tell(minilm):
    texts = [
        '防蛞蝓 蛞蝓白天躲在木板下面。在菜畦周围绑上铜带可以保护生菜。',
        '番茄开裂 植株干旱之后突然大量浇水,果实就会裂开。浇水要均匀。',
        '堆肥 堆肥变黑并散发泥土气味时就可以使用了。',
    ]
    report = WordReport('minilm', minilm)
    for number, text in enumerate(texts):
        report.add(Document(str(number), text))
    assert report.unknown.are_most
    assert not KnownWords(minilm).count('白天 木板').are_enough


def test_documents_are_named_as_people_see_them():
    unknown = UnknownDocuments('minilm', 1, 9, ('Mail/my%20choir.eml',), WordCounts(90, 100))
    assert 'that have 20 words or more (Mail/my choir.eml) is in words' in str(unknown)
