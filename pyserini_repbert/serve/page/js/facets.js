// Filters by the fields of the hits, and by their folders, each value with how many hits have it.

import { button, h } from './dom.js';
import { whole } from './words.js';

const MOST_FIELDS = 6;
const FIRST_VALUES = 8;
const LONGEST_VALUE = 60; // characters

/** The name of the filter by folders. */
export const FOLDER = 'folder';

/** The part of a filter that asks for the documents of a folder: their docids begin with it. */
export function folderTerm(folder) {
  return `docid:${folder.replace(/[^\p{L}\p{N}_]/gu, '\\$&')}\\/*`;
}

/** The first folder of a document's path; '' if it lies in none. */
function folderOf({ docid }) {
  return docid.includes('/') ? docid.slice(0, docid.indexOf('/')) : '';
}

/** The values of each field that hits have, and how many of them: {NAME: {VALUE: number}}. The first folder is a field, too. */
export function valuesOf(hits) {
  const counts = {};
  for (const hit of hits) {
    const folder = folderOf(hit);
    const fields = { ...(folder && { [FOLDER]: folder }), ...hit.fields };
    for (const [name, value] of Object.entries(fields)) {
      for (const own of new Set([value].flat().map(String))) {
        counts[name] ??= {};
        counts[name][own] = (counts[name][own] ?? 0) + 1;
      }
    }
  }
  return counts;
}

/** Whether values divide the hits that have them: not all have the same one, nor each its own. */
const divides = (values) => values.length > 1 && values.some((own) => own.documents > 1);

/** The fields that are offered, as [name, values] pairs: those that most hits have come first. Columns of one table among other files are left out. */
function offeredFields(counts, nHits, chosen) {
  const isChosen = new Set(chosen.map(([name]) => name));
  const offered = [];
  for (const name of new Set([...Object.keys(counts), ...isChosen])) {
    const own = { ...Object.fromEntries(chosen.filter((pair) => pair[0] === name).map(([, value]) => [value, 0])), ...counts[name] };
    const values = Object.entries(own).map(([value, documents]) => ({ value, documents }))
      .filter(({ value }) => value.length <= LONGEST_VALUE).sort((one, other) => other.documents - one.documents);
    const total = values.reduce((sum, { documents }) => sum + documents, 0);
    if ((divides(values) && 2 * total >= nHits) || isChosen.has(name)) offered.push({ name, values, total });
  }
  return offered.sort((one, other) => other.total - one.total).slice(0, MOST_FIELDS).map(({ name, values }) => [name, values]);
}

const isIn = (chosen, name, value) => chosen.some((own) => own[0] === name && own[1] === value);

/** The chosen pairs with one more, or without it if it is among them. */
function toggledPair(chosen, name, value) {
  return isIn(chosen, name, value) ? chosen.filter((own) => own[0] !== name || own[1] !== value) : [...chosen, [name, value]];
}

/** The filters of an answer; null where none narrows it. values: as of `valuesOf`, of so many hits; chosen: [field, value] pairs; onchange(chosen) is called with others. */
export function facets({ values: counts, nHits, chosen, onchange }) {
  const fields = offeredFields(counts, nHits, chosen);
  if (!fields.length) return null;
  let now = chosen;
  const choice = (name, { value, documents }) => h('label', { class: 'facet' },
    h('input', { type: 'checkbox', checked: isIn(now, name, value), onchange: () => {
      now = toggledPair(now, name, value);
      onchange(now);
    } }),
    h('span', { class: 'value' }, value), documents > 0 && h('span', { class: 'soft' }, whole(documents)));
  const group = ([name, values]) => {
    const first = values.filter((own, number) => number < FIRST_VALUES || isIn(chosen, name, own.value));
    const others = values.filter((own) => !first.includes(own));
    return h('fieldset', null, h('legend', null, name), first.map((own) => choice(name, own)),
      others.length > 0 && h('details', null, h('summary', { class: 'note' }, `${others.length} more`), others.map((own) => choice(name, own))));
  };
  const wide = window.matchMedia('(min-width: 56rem)');
  const details = h('details', { open: wide.matches }, h('summary', null, 'Filters'), fields.map(group));
  wide.onchange = () => { details.open = wide.matches; };
  return details;
}

/** What hits are filtered by, each with a button that takes it away; null for nothing. */
export function filterChips({ filter, chosen }, onchange) {
  const chip = (text, next) => h('li', null, button([text, h('span', { 'aria-hidden': 'true' }, ' ×')], () => onchange(next), {
    class: 'chip', 'aria-label': `Without the filter ${text}` }));
  const chips = chosen.map(([name, value]) => chip(`${name}: ${value}`, { chosen: toggledPair(chosen, name, value) }));
  if (filter) chips.push(chip(filter, { filter: '' }));
  return chips.length ? h('ul', { class: 'chips', 'aria-label': 'Filters in use' }, chips) : null;
}
