"""The language of texts, by their frequent words."""

import pytest

from pyserini_repbert.lucene.guessing import guess_language

TEXTS = {
    'de': 'Die Schnecken fressen zuerst die jungen Pflanzen und verstecken sich am Tag unter den '
    'Brettern, aber ein Kupferband hält sie vom Salat fern, wenn es breit genug ist.',
    'en': 'Slugs eat the young plants first, and hide under the boards by day. A band of copper '
    'keeps them away from the lettuce, if it is broad enough.',
    'es': 'Las babosas se comen primero las plantas jóvenes y se esconden de día bajo las tablas. '
    'Una banda de cobre las mantiene lejos de la lechuga, si es lo bastante ancha.',
    'fr': 'Les limaces mangent d’abord les jeunes plantes et se cachent le jour sous les planches. '
    'Une bande de cuivre les tient loin de la salade, si elle est assez large.',
    'ru': 'Слизни сначала едят молодые растения, а днём они прячутся под досками. Медная лента не '
    'даёт им подойти к салату, если она достаточно широка для этого и не лежит на земле.',
    'ja': 'ナメクジはまず若い植物を食べ、昼は板の下に隠れます。',
    'ko': '민달팽이는 먼저 어린 식물을 먹고 낮에는 판자 밑에 숨는다.',
    'th': 'ทากกินต้นอ่อนก่อน และซ่อนตัวใต้แผ่นไม้ในเวลากลางวัน',
    'zh': '蛞蝓先吃嫩苗,白天躲在木板下面。铜条可以使它们远离生菜。',
}


@pytest.mark.parametrize('language', TEXTS)
def test_a_text_is_of_its_language(language):
    assert guess_language([TEXTS[language]]) == language


def test_most_texts_decide():
    assert guess_language([TEXTS['de'], TEXTS['en'], TEXTS['de']]) == 'de'


@pytest.mark.parametrize('text', ['', 'Haus', '1.5 2.5 ' * 40, 'cat dog fish sea ' * 20])
def test_too_few_words_and_unclear_ones_are_of_none(text):
    assert guess_language([text]) is None
