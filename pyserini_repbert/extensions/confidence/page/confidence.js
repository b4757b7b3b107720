// How likely the hits of the reader's page answer.

import { h } from '../../js/dom.js';
import { addPart } from '../../js/parts.js';
import { percent } from '../../js/words.js';

addPart('asking', (about) => about.confidence && [['confidence', 'true']]);

addPart('hit', ({ probability }) => probability !== undefined && probability !== null
  && h('span', { class: 'likely', title: 'How likely this answers the question' }, `${percent(probability)} likely`));

addPart('answer', ({ confidence }, about) => {
  if (confidence?.found === 'nothing') return { unlikely: 'Nothing here seems to answer this' };
  if (about.lost_confidence) return { note: h('p', { class: 'note' }, `Whether these hits answer is not told any more: ${about.lost_confidence}.`) };
  return confidence?.found === 'weak' && { note: h('p', { class: 'note' }, 'These may answer only in part.') };
});
