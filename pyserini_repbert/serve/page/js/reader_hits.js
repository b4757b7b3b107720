// The hits of the reader's page: each a document, with a few lines of the passage that answers best.

import { button, h } from './dom.js';
import { message } from './messages.js';
import { partsOf } from './parts.js';
import { snippetNodes } from './prose.js';
import { documentAddress } from './reader_state.js';
import { whyHere } from './reasons.js';
import { sourceLink } from './source.js';
import { count } from './words.js';

/** Whether a click is to be followed on this page, not in another tab. */
export function isPlainClick(event) {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
}

/** Where a hit's passage stands: its file, or its docid below a title, and its headings. */
function breadcrumb({ title, docid, passage }) {
  const parts = [passage?.file || (title ? docid : ''), ...(passage?.headings ?? [])].filter((own) => own && own !== title);
  return parts.length ? h('p', { class: 'crumbs' }, parts.join(' › ')) : null;
}

function card(hit, { about, answer, state, onopen }) {
  const passage = hit.passage && { start: hit.passage.start, end: hit.passage.end };
  const next = { ...state, doc: hit.docid, passage: passage ?? null };
  const open = (event) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    onopen(next);
  };
  const openByKey = (event) => {
    if (event.key !== 'Enter' || event.target !== article) return;
    event.preventDefault();
    onopen(next);
  };
  const title = hit.title || hit.docid;
  const link = h('a', { href: documentAddress(next), onclick: open }, title);
  // Other indexes have nothing of their own that explains a hit.
  const why = about.documents === undefined ? null : whyHere({ about, answer, hit, title, state });
  const article = h('article', { class: 'hit', tabindex: '-1', 'aria-label': `Hit ${hit.rank}: ${title}`, onkeydown: openByKey },
    h('header', null, h('h2', null, link), partsOf('hit', hit)),
    breadcrumb(hit),
    h('p', { class: 'snippet' }, snippetNodes(hit.display ?? [], { isCode: hit.passage?.is_code })),
    h('p', { class: 'hit-tools' }, sourceLink(hit.url, title), why?.toggle),
    why?.panel);
  return article;
}

/** Why the hits of an answer answer nothing, in a line; undefined where nobody says so. */
export function unlikelyText(answer, about) {
  return partsOf('answer', answer, about).find((part) => part.unlikely)?.unlikely;
}

/** The elements of an answer. onopen(state): a document is opened; onmore(): more hits are wanted, null where there are no more. */
export function hitElements(answer, { about, state, onopen, onmore }) {
  const hits = answer.candidates;
  const warnings = [...(answer.warnings ?? []).map((text) => h('p', { class: 'note' }, text)), ...partsOf('hits', answer)];
  if (!hits.length) return [warnings, message('info', 'Nothing found', [`No document of ${about.name} has anything on “${state.q}”.`])];
  const list = h('div', { class: 'hits' }, hits.map((hit) => card(hit, { about, answer, state, onopen })));
  const more = onmore && h('p', { class: 'more-hits' }, button('More hits', onmore));
  const unlikely = unlikelyText(answer, about);
  if (unlikely) {
    const nearest = h('details', { class: 'nearest' }, h('summary', null, `The nearest ${count(hits.length, 'hit')}`), list, more);
    return [warnings, message('info', unlikely, ['Ask in other words, or look at what comes nearest.']), nearest];
  }
  return [warnings, partsOf('answer', answer, about).map((part) => part.note), list, more];
}
