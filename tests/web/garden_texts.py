"""What the garden service of these tests holds: passages, a hostile one among them, topics and
judgments.
"""

HOSTILE = '<img/src=x/onerror=window.hacked=1>'
HOSTILE_TEXT = (
    '<script>window.hacked=1</script> Ripe melons <img src=x onerror="window.hacked=1"> & '
    '<b>sweet</b> &lt;i&gt; melon '
    '"quotes\' <svg onload=window.hacked=1>'
)
PASSAGES = {
    'g1': 'Tomatoes want full sun and even watering ; a plant that dries out and is then soaked '
    'gets cracked fruit .',
    'g2': 'Late blight is a disease of tomatoes and potatoes . It spreads in cool , wet weather '
    'and browns leaves .',
    'g3': 'Slugs hide under boards during the day . Collect them in the evening , or ring young '
    'lettuce with copper .',
    'g4': 'Beans and peas carry bacteria on their roots that bind nitrogen from the air , so they '
    'need little manure .',
    'g5': "Cover lettuce with a net in summer : `` shade delays the flower stalk '' that makes "
    'the leaves bitter .',
    'g6': 'Carrots grow forked in stony soil . Loosen the bed deeply and sow them where they '
    'stand .',
    'g7': 'An apple tree bears every other year unless its young fruit is thinned in June .',
    'garden/beds&paths?#1%41': 'Paths between beds keep feet off the soil , which water and roots '
    'then enter easily .',
    HOSTILE: HOSTILE_TEXT,
}
TOPICS = {
    '1': 'why does fruit crack',
    '2': 'keep slugs off lettuce',
    '3': 'which vegetables bind nitrogen',
    '4': '<b onmouseover=window.hacked=1>melons</b>',
}
QRELS = f'1 0 g1 1\n1 0 g7 0\n2 0 g3 2\n3 0 g4 1\n4 0 {HOSTILE} 1\n'

_BEDS = ' '.join(
    f'Bed number {number} was dug over in spring and left to rest until the frost had gone.'
    for number in range(12)
)
# Documents of several passages.
DOCUMENTS = [
    {
        'id': 'guide/slugs',
        'title': 'Lettuce without slugs',
        'text': f'{_BEDS}\n\nA copper band around the bed keeps slugs off the lettuce.\n\n{_BEDS}',
        'type': 'guide',
        'year': 2019,
        'depth': -3,
        'tags': ['lettuce', 'pest control'],
    },
    {
        'id': 'tomatoes',
        'title': 'Tomatoes',
        'text': f'Tomatoes split when rain follows a dry week.\n\n{_BEDS}',
        'type': 'guide',
        'year': 2023,
        'day': '2023-05-04',
    },
    {
        'id': 'note',
        'text': 'Compost wants air and water. Turn it every month.',
        'type': 'note',
        'year': 2024,
        'path:of': '<b onmouseover=window.hacked=1>x</b>',
    },
]
