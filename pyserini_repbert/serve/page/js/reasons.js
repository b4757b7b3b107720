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

/** The words {word, weight} that count, the greatest first: short ones, which are often grammar, only where they add much. */
function tellingWords(words) {
  const most = Math.max(...words.map((own) => own.weight));
  return words.filter((own) => own.weight >= most / (own.word.length > 3 ? 10 : 2)).slice(0, MOST);
}

/** What the rankings tell of a document, in words: the sentence that answers, and the words of the question that it has. */
function reasonsInWords(reasons, state) {
  const nearest = reasons.find((own) => own.kind === 'sentence');
  const found = reasons.filter((own) => own.kind !== 'sentence' && own.words.length > 0);
  const elements = [];
  if (nearest) {
    const next = { ...state, doc: nearest.docid, passage: { start: nearest.start, end: nearest.end } };
    const telling = new Set(tellingWords(nearest.words).map((own) => own.word));
    const parts = nearest.sentence.split(/([\p{L}\p{N}_]+)/u).map((text) => (telling.has(text) ? h('mark', null, text) : text));
    elements.push(h('p', { class: 'lead' }, 'The sentence nearest to your question: ', h('a', { href: documentAddress(next) }, '“', parts, '”')));
    if (telling.size) elements.push(h('p', { class: 'note' }, 'Marked are the words that bring it near.'));
  }
  for (const { kind, words } of found) {
    const title = kind === 'words' ? 'Words of your question in it:' : 'What the model found in it:';
    elements.push(h('p', { class: 'words-found' }, title, tellingWords(words).map((own) => h('mark', null, own.word))));
  }
  return elements;
}

/** What a ranking tells of a document, with figures. state: of the reader's page. */
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
      return [...(reasons.length ? reasonsInWords(reasons, state) : reasonsElements(reasons, state)), order].filter(Boolean);
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
