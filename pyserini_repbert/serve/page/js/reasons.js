// Why the rankings of a collection have a document: the sentence nearest to the question, and words with their weights.

import { address, ask } from './api.js';
import { button, freshId, h } from './dom.js';
import { during } from './messages.js';
import { documentAddress } from './reader_state.js';
import { barTable } from './tables.js';

const MOST = 8; // words of a table
const TITLES = {
  words: 'Words of the question, and what they add',
  terms: 'Terms of the model, and what they add',
  tokens: 'Tokens of the question with those that they found, and what they add',
  sentence: 'Words without which this sentence is further away',
};

/** What a ranking tells of a document. state: of the reader's page. */
function reasonElements(reason, state) {
  const { kind, docid, words, sentence, start, end } = reason;
  const rows = words.slice(0, MOST);
  const next = { ...state, doc: docid, passage: { start, end } };
  return [
    kind === 'sentence' && h('p', { class: 'lead' }, 'Nearest to the question: ', h('a', { href: documentAddress(next) }, `“${sentence}”`)),
    rows.length > 0 && barTable({ title: TITLES[kind], rows }),
  ];
}

/** The elements of reasons, or a sentence that there are none. */
export function reasonsElements(reasons, state) {
  if (!reasons.length) return [h('p', { class: 'note' }, 'It has no word of the question, and no text for the vectors.')];
  return reasons.map((own) => reasonElements(own, state)).flat().filter(Boolean);
}

/** The control at a hit of the reader's page that says why it is there, and the place where it does: {toggle, panel}. */
export function whyHere({ about, answer, hit, title, state }) {
  const panel = h('div', { class: 'reasons', id: freshId('reasons'), hidden: true });
  let giveUp = () => {};
  let isLoaded = false;
  const load = () => {
    giveUp = during(panel, 'Looking why', async (how) => {
      const { reasons } = await ask(address([about.name, 'explain'], [['query', answer.query.text], ['docid', hit.docid]]), how);
      isLoaded = true;
      const order = answer.rerank.length > 0 && h('p', { class: 'note' }, `${answer.rerank.join(', ')} put the hits into this order; the laboratory explains it.`);
      return [...reasonsElements(reasons, state), order].filter(Boolean);
    }, { retry: load });
  };
  const toggle = button('Why here?', () => {
    const open = panel.hidden;
    panel.hidden = !open;
    toggle.setAttribute('aria-expanded', String(open));
    if (isLoaded) return;
    if (open) load();
    else giveUp();
  }, { class: 'quiet', 'aria-expanded': 'false', 'aria-controls': panel.id, 'aria-label': `Why here? ${title}` });
  return { toggle, panel };
}
