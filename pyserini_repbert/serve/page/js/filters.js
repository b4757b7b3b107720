// The filter of a collection: a box, and the fields of its documents to choose from.

import { button, field, h } from './dom.js';
import { whole } from './words.js';

const MOST = 10_000; // characters of a filter that the service reads
const PLAIN = /^[\p{L}\p{N}_]+(?:[.-][\p{L}\p{N}_]+)*$/u;
const WORDS = ['docid', 'AND', 'OR', 'NOT', 'TO']; // mean no field without a backslash
const SHOWN_FIELDS = 8; // of a hit
const SHOWN_VALUE = 80; // characters

/** The part of a filter that asks for a value of a field: a number below 0 is a range, a value of several words is quoted. */
export function termOf(name, value, types = ['text']) {
  const escaped = WORDS.includes(name) ? `\\${name}` : name.replace(/[^\p{L}\p{N}_.]/gu, '\\$&');
  if (PLAIN.test(value)) return `${escaped}:${value}`;
  if (types.includes('number') && /^-?[\d.e+-]+$/.test(value)) return `${escaped}:[${value} TO ${value}]`;
  return `${escaped}:"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** The parts of a filter that all have to match. */
function partsOf(filter) {
  return filter.trim() ? filter.trim().split(' AND ') : [];
}

/** The filter with one more term, or without it if it has it. */
export function toggled(filter, term) {
  const parts = partsOf(filter);
  if (parts.includes(term)) return parts.filter((own) => own !== term).join(' AND ');
  const before = / OR /.test(filter) ? `(${filter.trim()})` : filter.trim();
  return before ? `${before} AND ${term}` : term;
}

// FIELD:VALUE, where the value is a word, a phrase or a range.
const LIKE_A_TERM = /(?<!\S)([^\s:"]+):(?:"[^"]+"|[[{][^\]}]+[\]}]|[^\s:"[{]\S*)(?!\S)/g;

/** The parts of a question that are written as a filter by a field of the index, and are not in the filter yet. */
export function termsIn(question, filter, about) {
  const terms = [...question.matchAll(LIKE_A_TERM)].filter(([, name]) => Object.hasOwn(about.fields ?? {}, name)).map(([term]) => term);
  return terms.filter((own) => !partsOf(filter).includes(own));
}

/** The box of a filter, with the fields of an index; null for an index without any. onchange(filter) is called when it is to be used. */
export function filterBox({ about, filter, onchange }) {
  const fields = Object.entries(about.field_counts ?? {});
  if (!fields.length) return null;
  let now = filter;
  const input = h('input', { type: 'search', value: filter, maxlength: MOST, spellcheck: 'false', autocapitalize: 'off', placeholder: 'FIELD:VALUE' });
  const list = h('ul', { class: 'filter-fields' });
  const use = (next) => {
    input.value = next;
    if (next.trim() === now) return;
    now = next.trim();
    draw();
    onchange(now);
  };

  function valueButton(name, { value, documents }) {
    const term = termOf(name, value, about.fields[name]);
    return button([value, h('span', { class: 'soft' }, ` ${whole(documents)}`)], () => use(toggled(input.value, term)), {
      class: 'value', 'aria-pressed': String(partsOf(now).includes(term)), 'data-term': term });
  }

  /** A field of many values: its name is written into the box, to be completed. */
  function startButton(name, types) {
    const isRange = types.some((own) => own !== 'text');
    const begin = `${termOf(name, 'x').slice(0, -1)}${isRange ? '[* TO *]' : ''}`;
    return button(isRange ? 'From … to …' : 'Write a value', () => {
      input.value = toggled(input.value, begin);
      input.focus();
      if (isRange) input.setSelectionRange(input.value.length - '* TO *]'.length, input.value.length - ' TO *]'.length);
    }, { class: 'value', 'aria-label': `${name}: ${isRange ? 'from … to …' : 'write a value'}` });
  }

  function draw() {
    const focused = document.activeElement?.dataset?.term;
    list.replaceChildren(...fields.map(([name, { documents, values }]) => {
      const types = about.fields[name] ?? [];
      const choices = values.map((own) => valueButton(name, own));
      if (!values.length || types.some((own) => own !== 'text')) choices.push(startButton(name, types));
      return h('li', null, h('span', { class: 'field-name' }, h('b', null, name), h('span', { class: 'soft' }, ` ${types.join(', ')}, ${whole(documents)}`)), choices);
    }));
    for (const own of list.querySelectorAll('[data-term]')) if (own.dataset.term === focused) own.focus();
  }

  draw();
  const submit = (event) => {
    event.preventDefault();
    use(input.value);
  };
  input.addEventListener('change', () => use(input.value));
  input.addEventListener('search', () => use(input.value));
  return h('form', { class: 'filter', onsubmit: submit }, field('Filter', input),
    h('details', { open: filter !== '' },
      h('summary', null, `Fields (${fields.length})`), list));
}

/** The fields of a hit in a line; null for a hit without any. */
export function fieldsLine(fields) {
  const entries = Object.entries(fields ?? {});
  if (!entries.length) return null;
  const shown = entries.slice(0, SHOWN_FIELDS).map(([name, value]) => {
    const isList = Array.isArray(value) && value.every((own) => typeof own !== 'object');
    const text = isList ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value);
    return h('div', null, h('dt', null, name), h('dd', null, text.length > SHOWN_VALUE ? `${text.slice(0, SHOWN_VALUE)}…` : text));
  });
  return h('dl', { class: 'hit-fields' }, shown);
}
