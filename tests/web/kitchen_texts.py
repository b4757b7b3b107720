"""A small folder of notes, and questions with the note that answers each."""

NOTES = {
    'bread': 'Dough rises because yeast makes gas. A warm place makes it rise sooner, a cold one '
    'gives more taste.',
    'rice': 'Wash rice until the water stays clear. The starch that is washed off would make the '
    'grains stick together.',
    'beans': 'Dried beans are soaked overnight. Red kidney beans must boil for ten minutes, as '
    'they hold a poison when raw.',
    'eggs': 'A fresh egg sinks in water and lies flat. An old one stands upright or floats.',
    'onions': 'Onions bring tears because a cut sets an acid free. A cold onion and a sharp knife '
    'help.',
    'pasta': 'Save a cup of the cooking water of pasta. Its starch binds oil and cheese.',
    'steak': 'Let meat rest after frying. Its juices then stay inside when it is sliced.',
    'salt': 'A soup with too much salt is saved by more water or unsalted potatoes, which thin it.',
    'butter': 'Brown butter smells of nuts. Melt it slowly, and stop when the milk solids are '
    'golden.',
    'cream': 'Cream whips only when it is cold and has thirty percent of fat.',
    'knife': 'A honing steel straightens an edge, a stone grinds it anew. A dull knife slips and '
    'wounds more often.',
    'pan': 'A pan of cast iron is seasoned with oil that is baked on. Soap does it little harm, '
    'standing in water much.',
    'honey': 'Honey that has turned solid becomes liquid in a warm bath. It hardly ever spoils.',
    'tomato': 'Tomatoes lose their taste in the fridge. They ripen on the window sill.',
    'banana': 'Bananas make other fruit ripen, since they give off ethylene. Keep them apart.',
    'mould': 'Soft cheese with mould on it is thrown away. Of hard cheese a thumb around the spot '
    'is cut off.',
    'freezer': 'Food in the freezer dries out where air reaches it. Wrap it tightly against '
    'freezer burn.',
    'fish': 'Fresh fish has clear eyes and red gills, and smells of the sea rather than of fish.',
    'lemon': 'Lemon juice keeps cut apples white, because acid stops the enzyme that browns them.',
    'sugar': 'Caramel begins at a hundred and sixty degrees. Do not stir it, or crystals form.',
    'vinegar': 'Vinegar removes lime from a kettle. Boil it with water, and rinse twice.',
    'oven': 'A convection oven bakes twenty degrees hotter than one without a fan.',
    'garlic': 'Garlic turns bitter when it burns. Add it after the onions.',
    'stock': 'Stock stays clear when it simmers and never boils. Skim the foam off.',
}
QUESTIONS = {
    'why does dough rise in a warm kitchen': 'bread',
    'how to keep grains from sticking together': 'rice',
    'are raw kidney beans dangerous': 'beans',
    'is this egg still fresh': 'eggs',
    'how to chop onions without crying': 'onions',
    'what is cooking water good for': 'pasta',
    'why should meat rest before slicing': 'steak',
    'how to save a soup that is too salty': 'salt',
    'when is brown butter done': 'butter',
    'why does my cream not whip': 'cream',
    'how to sharpen a blade': 'knife',
    'may I wash cast iron with soap': 'pan',
    'honey has become hard': 'honey',
    'where to store tomatoes': 'tomato',
    'which fruit makes others ripen': 'banana',
    'can I eat cheese with mould': 'mould',
    'how to avoid freezer burn': 'freezer',
    'how do I know good fish': 'fish',
    'keep cut apples from turning brown': 'lemon',
    'how to make caramel without crystals': 'sugar',
}
