// The state of the reader's page, to its address and back.

import { FOLDER, YEAR, folderTerm, yearTerm } from './facets.js';
import { termOf } from './filters.js';

const OF_FIELD = 'f.'; // begins the parameters of fields by which hits are filtered
export const HITS = 10;

/** The state in an address's query string; chosen: [field, value] pairs; passage: {start, end} or null. */
export function stateOf(search) {
  const parameters = new URLSearchParams(search);
  const hits = Number(parameters.get('hits') ?? HITS);
  const [start, end] = (parameters.get('at') ?? '').split('-').map(Number);
  const chosen = [...parameters].filter(([name]) => name.startsWith(OF_FIELD));
  return {
    index: parameters.get('index') ?? '',
    q: parameters.get('q') ?? '',
    hits: Number.isInteger(hits) && hits > 0 ? hits : HITS,
    filter: parameters.get('filter') ?? '',
    chosen: chosen.map(([name, value]) => [name.slice(OF_FIELD.length), value]),
    doc: parameters.get('doc') ?? '',
    passage: end > start ? { start, end } : null,
  };
}

/** The address of a state, relative to the page. */
export function addressOf({ index, q, hits, filter, chosen, doc, passage }) {
  const at = doc && passage ? `${passage.start}-${passage.end}` : '';
  const pairs = [['index', index], ['q', q], ['hits', hits === HITS ? '' : hits], ['filter', filter],
    ...chosen.map(([name, value]) => [OF_FIELD + name, value]), ['doc', doc], ['at', at]].filter(([, value]) => value !== '');
  return pairs.length ? `./?${new URLSearchParams(pairs)}` : './';
}

/** The address of the reader's page that asks what the laboratory asks. */
export function readerAddress({ index, q }) {
  return addressOf({ index, q: q.trim(), hits: HITS, filter: '', chosen: [], doc: '', passage: null });
}

/** The address of a document of an index, at a passage {start, end} where there is one. */
export function documentAddress({ index, q, doc, passage }) {
  return addressOf({ index, q, hits: HITS, filter: '', chosen: [], doc, passage });
}

/** The part of a filter that asks for a chosen value: documents may have no field of a folder or a year. */
function chosenTerm(name, value, about) {
  if (!about.fields?.[name] && name === FOLDER) return folderTerm(value);
  if (!about.fields?.[name] && name === YEAR) return yearTerm(value, about);
  return termOf(name, value, about.fields?.[name]);
}

/** The filter of a state, in the service's syntax: one value of each field; '' for none. */
export function filterOf({ filter, chosen }, about) {
  const byField = new Map();
  for (const [name, value] of chosen) {
    const terms = byField.get(name) ?? [];
    byField.set(name, [...terms, chosenTerm(name, value, about)]);
  }
  const parts = [...byField.values()].map((terms) => (terms.length > 1 ? `(${terms.join(' OR ')})` : terms[0]));
  const whole = filter && parts.length ? `(${filter})` : filter;
  return [whole, ...parts].filter(Boolean).join(' AND ');
}

/** The address of the laboratory that asks the same; view: one of its own. */
export function laboratoryAddress(state, about, view = 'search') {
  const filter = about ? filterOf(state, about) : state.filter;
  const pairs = [['view', view], ['index', state.index], ['q', state.q], ['filter', filter]].filter(([, value]) => value !== '');
  return `./?${new URLSearchParams(pairs)}`;
}
