// The hits of the reader's page: each a document, with a few lines of the passage that answers best.

import { button, h } from './dom.js';
import { message } from './messages.js';
import { partsOf } from './parts.js';
import { snippetNodes } from './prose.js';
import { documentAddress } from './reader_state.js';
import { whyHere } from './reasons.js';
import { fillWithMarksInView } from './snippet.js';
import { sourceLink } from './source.js';
import { count, docidText, sentence } from './words.js';

/** Whether a click is to be followed on this page, not in another tab. */
export function isPlainClick(event) {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
}

/** The printed page or pages, row or line of a hit's passage; '' where its file and headings say enough. */
function placeText({ docid, passage }) {
  const page = passage?.headings?.length ? null : passage?.anchor?.match(/^page=(\d+)$/);
  if (page) return passage.last_page ? `pages ${page[1]}–${passage.last_page}` : `page ${page[1]}`;
  if (passage?.row) return `row ${passage.row}`;
  const isOfLines = passage?.is_code || (passage?.file && docid.includes('#'));
  return isOfLines && passage.line ? `line ${passage.line}` : '';
}

/** Where a hit's passage stands: its file, or its docid below a title, its headings, and its page or line. copyLinks: to files with the same text. */
function breadcrumb(hit, copyLinks) {
  const { title, docid, passage } = hit;
  const names = [passage?.file || (title ? docidText(docid) : ''), ...(passage?.headings ?? [])].filter((own) => own && own !== (title || docidText(docid)));
  const where = [...names, placeText(hit)].filter(Boolean).join(' › ');
  const also = copyLinks.flatMap((link, number) => [number ? ', ' : 'the same in ', link]);
  return where || also.length ? h('p', { class: 'crumbs' }, where, where && also.length > 0 && '; ', also) : null;
}

// A number, or the beginning of a month's name.
const OF_DATE = /^(?:\d+\p{L}{0,2}|(?:jan|feb|fév|ene|m[aä]r|a[pbv]r|ma[iy]|ju[nil]|a[gu][ogû]|ao[uû]|sep|o[ck]t|nov|d[eéi][cz])\p{L}{0,7})$/iu;

/** Whether a title is a date, which says nothing without its file. */
const isDate = (title) => (title.match(/[\p{L}\p{N}]+/gu) ?? []).every((own) => OF_DATE.test(own));

const NAMING = /^(?:name|title|label|subject)$/i;

/** What a row of a table is called: its column of names, or its first one of words; '' for what is no row. */
function nameOfRow({ docid, doc, passage }) {
  if (!passage?.file || !docid.includes('#')) return '';
  const cells = doc.split('\n').map((line) => line.match(/^([^:]{1,60}): (.{1,80})$/)).filter(Boolean);
  const named = cells.find(([, column]) => NAMING.test(column)) ?? cells.find(([, , value]) => /\p{L}{2}/u.test(value));
  return named ? named[2] : '';
}

/** The title of a hit; the file's name comes with that of a row, one that is a date, or that other hits have, too. */
function titleOf(hit, titles) {
  const { title, docid, passage } = hit;
  const name = (passage?.file || docidText(docid)).split('/').at(-1);
  const row = title ? '' : nameOfRow(hit);
  if (row) return `${row} (${name})`;
  const saysLittle = title && (isDate(title) || titles.filter((own) => own === title).length > 1);
  return saysLittle && name !== title ? `${title} (${name})` : title || docidText(docid);
}

const WITHIN_SENTENCE = /^\s*[\p{Ll},;:.)\]]/u;

/** The parts {text, match} of a hit's passage; before one that begins within a sentence is a sign of that. */
function snippetParts({ display = [], passage }) {
  const [first, ...others] = display;
  if (!passage?.start || passage.is_code || !WITHIN_SENTENCE.test(first?.text ?? '')) return display;
  return [{ text: '… ', match: false }, { ...first, text: first.text.replace(/^[\s,;:.)\]]+/, '') }, ...others];
}

/** The lines of a hit's passage. */
function snippet(hit) {
  const isCode = hit.passage?.is_code ?? false;
  const element = h('p', { class: `snippet${isCode ? ' code' : ''}` });
  fillWithMarksInView(element, snippetParts(hit), (parts) => snippetNodes(parts, { isCode }), { isCode });
  return element;
}

/** The state in which the document of a hit is open at what the hit shows. */
function openState({ docid, passage }, state) {
  const [start, end] = passage?.shown ?? [];
  return { ...state, doc: docid, passage: passage ? { start, end } : null };
}

/** A link to an open document, which this page follows itself. */
function openLink(text, next, onopen) {
  const open = (event) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    onopen(next);
  };
  return h('a', { href: documentAddress(next), onclick: open }, text);
}

function card(hit, { about, answer, state, titles, onopen }) {
  const next = openState(hit, state);
  const openByKey = (event) => {
    if (event.key !== 'Enter' || event.target !== article) return;
    event.preventDefault();
    onopen(next);
  };
  const title = titleOf(hit, titles);
  const copyLinks = (hit.also_in ?? []).map((docid) => openLink(docidText(docid), { ...next, doc: docid }, onopen));
  // Other indexes have nothing of their own that explains a hit.
  const why = about.documents === undefined ? null : whyHere({ about, answer, hit, title, state });
  const article = h('article', { class: 'hit', tabindex: '-1', 'aria-label': `Hit ${hit.rank}: ${title}`, onkeydown: openByKey },
    h('header', null, h('h2', null, openLink(title, next, onopen)), partsOf('hit', hit)),
    breadcrumb(hit, copyLinks),
    snippet(hit),
    h('p', { class: 'hit-tools' }, sourceLink(hit.url, title), why?.toggle),
    why?.panel);
  return article;
}

/** Why the hits of an answer answer nothing, in a line; undefined where nobody says so. */
export function unlikelyText(answer, about) {
  return partsOf('answer', answer, about).find((part) => part.unlikely)?.unlikely;
}

/** What is shown where there is no hit. onunfilter(): hits are wanted without filters. */
function nothingFound(about, { q, filter, chosen }, onunfilter) {
  const isFiltered = filter || chosen.length > 0;
  if (!isFiltered) return message('info', 'Nothing found', [`No document of ${about.name} has anything on “${q}”.`]);
  return message('info', 'Nothing found', [`No document that the filter lets through has anything on “${q}”.`], button('Search without the filter', onunfilter));
}

/** The elements of an answer. onopen(state): a document is opened; onmore(): more hits are wanted, null where there are no more; onunfilter(): hits without filters. */
export function hitElements(answer, { about, state, onopen, onmore, onunfilter }) {
  const hits = answer.candidates;
  const warnings = [...(answer.warnings ?? []).map((text) => h('p', { class: 'note' }, sentence(text))), ...partsOf('hits', answer)];
  if (!hits.length) return [warnings, nothingFound(about, state, onunfilter)];
  const titles = hits.map((own) => own.title);
  const list = h('div', { class: 'hits' }, hits.map((own) => card(own, { about, answer, state, titles, onopen })));
  const more = onmore && h('p', { class: 'more-hits' }, button('More hits', onmore));
  const unlikely = unlikelyText(answer, about);
  if (unlikely) {
    const nearest = h('details', { class: 'nearest' }, h('summary', null, `The nearest ${count(hits.length, 'hit')}`), list, more);
    return [warnings, message('info', unlikely, ['Ask in other words, or look at what comes nearest.']), nearest];
  }
  return [warnings, partsOf('answer', answer, about).map((part) => part.note), list, more];
}
