// Filters by the fields of the hits, by their folders and years, each value with how many hits have it.

import { button, h } from './dom.js';
import { termsIn, toggled } from './filters.js';
import { count, docidText, whole } from './words.js';

const MOST_FIELDS = 6;
const FIRST_VALUES = 8;
const LONGEST_VALUE = 60; // characters

/** The names of the filters by folders and by years. */
export const FOLDER = 'folder';
export const YEAR = 'year';

/** The part of a filter that asks for the documents of a folder: their docids begin with it. */
export function folderTerm(folder) {
  return `docid:${folder.replace(/[^\p{L}\p{N}_]/gu, '\\$&')}\\/*`;
}

// Of rows and pages, the fields are columns and <meta>: they filter nothing else in a folder.
const TABLES_AND_PAGES = /\.(?:csv|tsv|parquet|html?|xhtml)(?:\.gz)?$/i;
const DATES = ['date', 'modified']; // fields whose year is a filter
const SENDER = 'from'; // of a mail
const LANGUAGE = 'language';
const OF_FILES = ['type', FOLDER, YEAR, 'source', LANGUAGE, SENDER];

/** The part of a filter that asks for a year: a document's own date counts before that of its file. */
export function yearTerm(year, about) {
  const within = (name) => `${name}:[${year} TO ${year}]`;
  const own = about.fields?.date?.includes('date');
  if (!own) return within('modified');
  return about.fields.modified ? `(${within('date')} OR (NOT date:* AND ${within('modified')}))` : within('date');
}

/** The English name of a language by its code; what is no code stays. */
function languageName(code) {
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(code);
  } catch {
    return code;
  }
}

/** A value as a person reads it: without a field of folders, a folder is part of docids; a sender has a name, or an address alone. */
function valueText(name, value, about) {
  if (name === FOLDER && !about.fields?.[FOLDER]) return docidText(value);
  if (name === LANGUAGE) return languageName(value);
  return name === SENDER ? value.match(/^"?([^"<]*[^"<\s])"?\s*<[^<>]*>$/)?.[1] ?? value : value;
}

/** The parts of the path of a document's folder. */
function folderParts({ docid, fields }) {
  const folder = typeof fields?.folder === 'string' ? fields.folder : docid.slice(0, Math.max(docid.lastIndexOf('/'), 0));
  return folder ? folder.split('/') : [];
}

/** How many folders all of these lie in. */
function depthOfAll(folders) {
  const [first = []] = folders;
  const differs = first.findIndex((name, depth) => folders.some((own) => own[depth] !== name));
  return differs < 0 ? first.length : differs;
}

/** The year of a document; '' where it has no date. */
function yearOf({ fields }) {
  const dates = DATES.map((name) => String(fields?.[name] ?? '').match(/^(\d{4})(?:-\d\d|$)/)?.[1]);
  return dates.find(Boolean) ?? '';
}

/** The fields by which a hit can be filtered. depth: of the folders that tell hits apart. isMixed: whether there are files of several types. */
function fieldsOf(hit, { depth, isMixed }) {
  const { type, folder, source, language, ...others } = hit.fields ?? {};
  const own = isMixed && TABLES_AND_PAGES.test(hit.passage?.file ?? '') ? {} : others;
  const year = yearOf(hit);
  const nearest = folderParts(hit).slice(0, depth + 1).join('/');
  const fields = { ...(type !== undefined && { type }), ...(nearest && { [FOLDER]: nearest }), ...(year && { [YEAR]: year }),
    ...(source !== undefined && { source }), ...(language !== undefined && { [LANGUAGE]: language }), ...own };
  for (const name of DATES) delete fields[name];
  return fields;
}

/** A value as one of those that were counted is written: filters do not tell 'Notes' from 'notes'. */
const asWritten = (counts, value) => Object.keys(counts).find((own) => own.toLowerCase() === value.toLowerCase()) ?? value;

/** The values of each field that hits have, and how many of them: {NAME: {VALUE: number}}. Folder and year are fields, too. */
export function valuesOf(hits) {
  const counts = {};
  const files = new Set(hits.map(({ passage }) => (passage?.file ?? '').toLowerCase().split('.').at(-1)));
  const how = { depth: depthOfAll(hits.map(folderParts)), isMixed: files.size > 1 };
  for (const hit of hits) {
    for (const [name, value] of Object.entries(fieldsOf(hit, how))) {
      counts[name] ??= {};
      for (const own of new Set([value].flat().map((one) => asWritten(counts[name], String(one))))) counts[name][own] = (counts[name][own] ?? 0) + 1;
    }
  }
  return counts;
}

/** Whether values divide the hits that have them: not all have the same one, nor each its own. */
const divides = (values) => values.length > 1 && values.some((own) => own.documents > 1);

/** The fields that are offered, as [name, values] pairs: those of files first, then those that most hits have. */
function offeredFields(counts, nHits, chosen) {
  const isChosen = new Set(chosen.map(([name]) => name));
  const offered = [];
  for (const name of new Set([...Object.keys(counts), ...isChosen])) {
    const own = { ...Object.fromEntries(chosen.filter((pair) => pair[0] === name).map(([, value]) => [value, 0])), ...counts[name] };
    const values = Object.entries(own).map(([value, documents]) => ({ value, documents }))
      .filter(({ value }) => value.length <= LONGEST_VALUE).sort((one, other) => other.documents - one.documents);
    const total = values.reduce((sum, { documents }) => sum + documents, 0);
    // Of a few mails, each may have another sender.
    const isOffered = name === SENDER ? values.length > 1 : divides(values) && 2 * total >= nHits;
    if (isOffered || isChosen.has(name)) offered.push({ name, values, total });
  }
  const place = ({ name }) => (OF_FILES.includes(name) ? OF_FILES.indexOf(name) : OF_FILES.length);
  return offered.sort((one, other) => place(one) - place(other) || other.total - one.total).slice(0, MOST_FIELDS).map(({ name, values }) => [name, values]);
}

const isIn = (chosen, name, value) => chosen.some((own) => own[0] === name && own[1] === value);

/** The chosen pairs with one more, or without it if it is among them. */
function toggledPair(chosen, name, value) {
  return isIn(chosen, name, value) ? chosen.filter((own) => own[0] !== name || own[1] !== value) : [...chosen, [name, value]];
}

/**
 * The filters of an answer; null where none narrows it. values: as of `valuesOf`, of so many hits; areShown: whether these are the hits on the page;
 * chosen: [field, value] pairs; onchange(chosen) is called with others.
 */
export function facets({ about, values: counts, nHits, areShown, chosen, onchange }) {
  const fields = offeredFields(counts, nHits, chosen);
  if (!fields.length) return null;
  let now = chosen;
  const choice = (name, { value, documents }) => h('label', { class: 'facet' },
    h('input', { type: 'checkbox', checked: isIn(now, name, value), onchange: () => {
      now = toggledPair(now, name, value);
      onchange(now);
    } }),
    h('span', { class: 'value' }, valueText(name, value, about)), documents > 0 && h('span', { class: 'soft' }, whole(documents)));
  const group = ([name, values]) => {
    const first = values.filter((own, number) => number < FIRST_VALUES || isIn(chosen, name, own.value));
    const others = values.filter((own) => !first.includes(own));
    return h('fieldset', null, h('legend', null, name), first.map((own) => choice(name, own)),
      others.length > 0 && h('details', null, h('summary', { class: 'note' }, `${others.length} more`), others.map((own) => choice(name, own))));
  };
  const wide = window.matchMedia('(min-width: 56rem)');
  const counted = areShown ? `these ${count(nHits, 'hit')} have the value` : `the first ${count(nHits, 'hit')} had the value before you chose a filter`;
  const note = h('p', { class: 'note counted' }, `A number says how many of ${counted}.`);
  const details = h('details', { open: wide.matches }, h('summary', null, 'Filters'), fields.map(group), nHits > 0 && note);
  wide.onchange = () => { details.open = wide.matches; };
  return details;
}

/** The years that a question asks for as if they were a field, such as 'year:2025': of an index whose documents have dates, and no such field. */
function yearsIn(q, about) {
  const hasDates = DATES.some((name) => about.fields?.[name]?.includes('date'));
  if (!hasDates || about.fields[YEAR]) return [];
  return [...q.matchAll(/(?<!\S)year:(\d{4})(?!\S)/g)].map(([term, value]) => ({ term, value }));
}

/** What of a question is written as a filter, and was searched as words; null for nothing. onuse(change): it is to be a filter, and leaves the question. */
export function filterHint({ q, filter, chosen }, about, onuse) {
  const years = yearsIn(q, about);
  const ofFields = termsIn(q, filter, about);
  const terms = [...ofFields, ...years.map((own) => own.term)];
  if (!terms.length) return null;
  const use = () => {
    const words = terms.reduce((text, own) => text.replace(own, ''), q).replace(/\s+/g, ' ').trim();
    const others = years.filter(({ value }) => !isIn(chosen, YEAR, value));
    onuse({ q: words, filter: ofFields.reduce(toggled, filter), chosen: [...chosen, ...others.map(({ value }) => [YEAR, value])] });
  };
  return h('p', { class: 'note filter-hint' }, `${terms.join(' and ')} ${terms.length > 1 ? 'were' : 'was'} searched as words. `,
    button(terms.length > 1 ? 'Use them as filters' : 'Use it as a filter', use, { class: 'quiet' }));
}

/** What hits are filtered by, each with a button that takes it away; null for nothing. */
export function filterChips({ filter, chosen }, about, onchange) {
  const chip = (text, next) => h('li', null, button([text, h('span', { 'aria-hidden': 'true' }, ' ×')], () => onchange(next), {
    class: 'chip', 'aria-label': `Without the filter ${text}` }));
  const chips = chosen.map(([name, value]) => chip(`${name}: ${valueText(name, value, about)}`, { chosen: toggledPair(chosen, name, value) }));
  if (filter) chips.push(chip(filter, { filter: '' }));
  return chips.length ? h('ul', { class: 'filter-chips', 'aria-label': 'Filters in use' }, chips) : null;
}
