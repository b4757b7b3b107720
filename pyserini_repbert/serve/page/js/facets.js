// Filters by the fields of a collection that have few values, each with how many documents have it.

import { button, h } from './dom.js';
import { whole } from './words.js';

const MOST_FIELDS = 12;
const FIRST_VALUES = 8;

/** Whether values divide documents: not all have the same one, nor each its own of many. */
const divides = (values) => values.length > 1 && (values.length <= FIRST_VALUES || values.some((own) => own.documents > 1));

/** The fields that are offered, as [name, values] pairs: those that most documents have come first. */
function offeredFields(about, chosen) {
  const isChosen = new Set(chosen.map(([name]) => name));
  return Object.entries(about.field_counts ?? {})
    .filter(([name, { values }]) => divides(values) || isChosen.has(name))
    .sort(([, one], [, other]) => other.documents - one.documents)
    .slice(0, MOST_FIELDS)
    .map(([name, { values }]) => [name, values]);
}

const isIn = (chosen, name, value) => chosen.some((own) => own[0] === name && own[1] === value);

/** The chosen pairs with one more, or without it if it is among them. */
function toggledPair(chosen, name, value) {
  return isIn(chosen, name, value) ? chosen.filter((own) => own[0] !== name || own[1] !== value) : [...chosen, [name, value]];
}

/** The filters of an index; null where no field has few values. chosen: [field, value] pairs; onchange(chosen) is called with others. */
export function facets({ about, chosen, onchange }) {
  const fields = offeredFields(about, chosen);
  if (!fields.length) return null;
  let now = chosen;
  const choice = (name, { value, documents }) => h('label', { class: 'facet' },
    h('input', { type: 'checkbox', checked: isIn(now, name, value), onchange: () => {
      now = toggledPair(now, name, value);
      onchange(now);
    } }),
    h('span', { class: 'value' }, value), h('span', { class: 'soft' }, whole(documents)));
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
