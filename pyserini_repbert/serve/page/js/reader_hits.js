// The hits of the reader's page: each a document, with a few lines of the passage that answers best.

import { button, h } from './dom.js';
import { message } from './messages.js';
import { partsOf } from './parts.js';
import { snippetNodes } from './prose.js';
import { documentAddress } from './reader_state.js';
import { whyHere } from './reasons.js';
import { sourceLink } from './source.js';
import { count, docidText } from './words.js';

/** Whether a click is to be followed on this page, not in another tab. */
export function isPlainClick(event) {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
}

/** Where a hit's passage stands: its file, or its docid below a title, and its headings or its printed page. copies: hits of files with the same text. */
function breadcrumb({ title, docid, passage }, copies) {
  const page = passage?.headings?.length ? null : passage?.anchor?.match(/^page=(\d+)$/);
  const parts = [passage?.file || (title ? docidText(docid) : ''), ...(passage?.headings ?? []), page && `page ${page[1]}`].filter((own) => own && own !== (title || docidText(docid)));
  const others = copies.map((own) => own.passage.file).join(', ');
  const also = others && `the same in ${others}`;
  return parts.length || also ? h('p', { class: 'crumbs' }, [parts.join(' › '), also].filter(Boolean).join('; ')) : null;
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

/** Hits {hit, copies}: those of other files with the same text stand with the first of them. */
function withoutCopies(hits) {
  const groups = new Map();
  for (const hit of hits) {
    const { file, start, end } = hit.passage ?? {};
    const key = file ? JSON.stringify([hit.title, start, end, hit.doc]) : hit.docid;
    const same = groups.get(key);
    const isOther = same && ![same.hit, ...same.copies].some((own) => own.passage.file === file);
    if (isOther) same.copies.push(hit);
    else groups.set(same ? hit.docid : key, { hit, copies: [] });
  }
  return [...groups.values()];
}

function card({ hit, copies }, { about, answer, state, titles, onopen }) {
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
  const title = titleOf(hit, titles);
  const link = h('a', { href: documentAddress(next), onclick: open }, title);
  // Other indexes have nothing of their own that explains a hit.
  const why = about.documents === undefined ? null : whyHere({ about, answer, hit, title, state });
  const article = h('article', { class: 'hit', tabindex: '-1', 'aria-label': `Hit ${hit.rank}: ${title}`, onkeydown: openByKey },
    h('header', null, h('h2', null, link), partsOf('hit', hit)),
    breadcrumb(hit, copies),
    h('p', { class: `snippet${hit.passage?.is_code ? ' code' : ''}` }, snippetNodes(snippetParts(hit), { isCode: hit.passage?.is_code })),
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
  const shown = withoutCopies(hits);
  const titles = shown.map((own) => own.hit.title);
  const list = h('div', { class: 'hits' }, shown.map((own) => card(own, { about, answer, state, titles, onopen })));
  const more = onmore && h('p', { class: 'more-hits' }, button('More hits', onmore));
  const unlikely = unlikelyText(answer, about);
  if (unlikely) {
    const nearest = h('details', { class: 'nearest' }, h('summary', null, `The nearest ${count(hits.length, 'hit')}`), list, more);
    return [warnings, message('info', unlikely, ['Ask in other words, or look at what comes nearest.']), nearest];
  }
  return [warnings, partsOf('answer', answer, about).map((part) => part.note), list, more];
}
