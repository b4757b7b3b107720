// The reader's page: a question, its hits, and a document opened where the answer stands. The address holds the state.

import { address, ask } from './api.js';
import { openDocument } from './document.js';
import { byId, h } from './dom.js';
import { facets, filterChips, filterHint, valuesOf } from './facets.js';
import { chosenIndex, exampleList, fillExamples, loadIndexes, useMenu, useTheme } from './frame.js';
import { READER_KEYS, SEARCH_KEYS, listen, openKeys, useKeys } from './keys.js';
import { during } from './messages.js';
import { partsOf } from './parts.js';
import { hitElements, isPlainClick, unlikelyText } from './reader_hits.js';
import { recentQuestions, remember } from './recent.js';
import { HITS, addressOf, filterOf, laboratoryAddress, stateOf } from './reader_state.js';
import { count, dateText, held, whole } from './words.js';

const MOST_HITS = 100;

const found = byId('found');
const question = byId('q');
let indexes = [];
let about = null;
let state = stateOf(location.search);
let giveUp = () => {};
let opened = null; // the document that is read
let drawn = ''; // the address of the hits that are on the page
let leftAt = 0; // how far they were scrolled when a document was opened
// The values of fields that the hits of a question have, where possible before they are filtered; chosen: the filters when they were counted.
let fields = { of: '', values: {}, nHits: 0, chosen: [] };

/** Make a state the page's: put it into the address, and draw it. */
function go(next, { replace = false } = {}) {
  if (!state.doc && next.doc) leftAt = window.scrollY;
  state = next;
  history[replace ? 'replaceState' : 'pushState'](null, '', addressOf(state));
  draw();
}

function withoutDocument(own) {
  return { ...own, doc: '', passage: null };
}

function draw() {
  opened?.stop();
  opened = null;
  document.title = [state.doc || state.q, 'Search · pyserini_repbert'].filter(Boolean).join(' · ');
  byId('title').textContent = state.doc ? 'Document' : 'Search';
  byId('lab').href = laboratoryAddress(state, about);
  byId('judge').href = laboratoryAddress(state, about, 'judge');
  byId('judge').hidden = !about?.judging;
  byId('document').hidden = !state.doc;
  document.querySelector('.reader').hidden = Boolean(state.doc);
  if (state.doc) read();
  else hits();
}

function read() {
  useKeys([...SEARCH_KEYS.slice(0, 1), ...READER_KEYS.map((own) => ({ ...own, acts: actsOf(own) }))]);
  window.scrollTo(0, 0);
  const onat = ({ start, end }) => {
    state = { ...state, passage: { start, end } };
    history.replaceState(null, '', addressOf(state));
  };
  const asked = { about, docid: state.doc, query: state.q, at: state.passage, onat };
  opened = openDocument(byId('document'), asked, state.q && backLink());
}

function actsOf({ step, key }) {
  return { [key]: () => opened?.jump(step) };
}

/** The link from a document to the hits. */
function backLink() {
  const next = withoutDocument(state);
  return h('a', { class: 'back', href: addressOf(next), onclick: (event) => {
    if (!isPlainClick(event)) return;
    event.preventDefault();
    go(next);
  } }, '← All hits');
}

function hits() {
  useKeys(SEARCH_KEYS.map((own) => (own.label === 'Enter' ? { ...own, text: 'on a hit: open it' } : own)));
  const shown = addressOf(state);
  if (shown === drawn) {
    window.scrollTo(0, leftAt);
    return;
  }
  giveUp();
  giveUp = () => {};
  question.value = state.q;
  drawFilters();
  if (!state.q.trim()) {
    drawn = shown;
    start();
    return;
  }
  giveUp = search(shown);
}

function drawFilters() {
  const box = byId('filters');
  const isOfQuestion = fields.of === questionKey();
  const { values, nHits } = isOfQuestion ? fields : { values: {}, nHits: 0 };
  const areShown = String(fields.chosen) === String(state.chosen);
  const own = state.q.trim() && facets({ about, values, nHits, areShown, chosen: state.chosen, onchange: (chosen) => go({ ...withoutDocument(state), chosen, hits: HITS }) });
  const drawnNow = JSON.stringify([about.name, state.q, state.chosen, isOfQuestion]);
  box.hidden = !own;
  if (own && box.dataset.drawn !== drawnNow) {
    if (box.contains(document.activeElement)) tellCounted(box, own);
    else box.replaceChildren(own);
  }
  box.dataset.drawn = drawnNow;
}

/** Say in filters, which stay as they are while one of them has the focus, what the numbers count now. */
function tellCounted(box, own) {
  const now = own.querySelector('.counted');
  if (now) box.querySelector('.counted')?.replaceWith(now);
}

/** What the values of filters are counted for: a question, whatever filter is chosen. */
function questionKey() {
  return JSON.stringify([about.name, state.q]);
}

function search(shown) {
  const filter = filterOf(state, about);
  const parameters = [['query', state.q], ['hits', Math.min(state.hits, about.limits.hits)], ['display', 'true'], ['group_copies', 'true']];
  if (filter) parameters.push(['filter', filter]);
  parameters.push(...partsOf('asking', about).flat());
  let answer = null;
  const work = async (how) => {
    answer = await ask(address([about.name, 'search'], parameters), how);
    drawn = shown;
    if (!state.chosen.length || fields.of !== questionKey()) {
      fields = { of: questionKey(), values: valuesOf(answer.candidates), nHits: answer.candidates.length, chosen: state.chosen };
    }
    drawFilters();
    remember(about.name, state.q);
    const hasMore = answer.candidates.length === state.hits && state.hits < Math.min(MOST_HITS, about.limits.hits);
    return [
      filterHint(state, about, (change) => go({ ...state, ...change, hits: HITS })),
      filterChips(state, about, (change) => go({ ...state, ...change, hits: HITS })),
      ...hitElements(answer, { about, state, onopen: go, onmore: hasMore ? () => go({ ...state, hits: state.hits + HITS }) : null,
        onunfilter: () => go({ ...state, filter: '', chosen: [], hits: HITS }) }),
    ];
  };
  const announce = () => unlikelyText(answer, about) ?? count(answer.candidates.length, 'hit');
  return during(found, 'Searching', work, { retry: () => { drawn = ''; draw(); }, announce });
}

/** Show what is searched, and examples, before a question is asked. */
function start() {
  const askNow = (q) => go({ ...state, q });
  const list = h('ul', { class: 'examples' });
  const examples = h('div', { hidden: true }, h('h3', null, 'Questions to try'), list);
  const recent = recentQuestions(about.name);
  const chips = filterChips(state, about, (change) => go({ ...state, ...change }));
  found.replaceChildren(...[chips].filter(Boolean), h('div', { class: 'start' }, h('h2', null, `Ask ${about.name}`),
    h('p', { class: 'soft' }, `${held(about)}. Ask in your own words${chips ? ': the filter above stays' : ''}.`),
    h('ul', { class: 'sources soft' }, (about.sources ?? []).map(sourceLine)),
    kindsLine(about),
    recent.length > 0 && [h('h3', null, 'You asked'), h('ul', { class: 'examples' }, exampleList(recent, askNow))],
    examples));
  fillExamples(list, about, askNow).then((n) => { examples.hidden = !n; });
}

/** How many documents come from each type of file; null where no document comes from a file, or all from one type. */
function kindsLine({ fields, field_counts: counts }) {
  const values = fields?.folder || fields?.modified ? counts?.type?.values ?? [] : [];
  const text = values.map(({ value, documents }) => `${value} ${whole(documents)}`).join(', ');
  return values.length > 1 ? h('p', { class: 'soft kinds' }, `By type: ${text}.`) : null;
}

/** What an index has of a source, and when it was synced last. */
function sourceLine({ name, documents, files, rows, synced, unread }) {
  const ofFiles = files > 0 && files !== documents && ` from ${count(files, 'file')}`;
  const ofTables = rows > 0 && (rows === documents ? ' (rows of tables)' : ` (${whole(rows)} of them rows of tables)`);
  const holds = [count(documents, 'document'), ofFiles, ofTables].filter(Boolean).join('');
  const when = synced && ` synced ${dateText(synced)}`;
  return h('li', null, [`${name}: ${holds}`, when, unread].filter(Boolean).join(', '));
}

function chooseIndex() {
  about = chosenIndex(indexes, state.index, take);
  if (!about) return false;
  state = { ...state, index: about.name };
  question.value = state.q;
  return true;
}

function take(name) {
  state = { ...withoutDocument(state), index: name, q: state.q, filter: '', chosen: [], hits: HITS };
  if (chooseIndex()) go(state);
}

function drawAll() {
  if (chooseIndex()) go(state, { replace: true });
}

useTheme();
useMenu({ help: openKeys });
byId('index').addEventListener('change', (event) => take(event.target.value));
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (!about) return;
  drawn = '';
  go({ ...withoutDocument(state), q: question.value.trim(), hits: HITS });
  found.focus({ preventScroll: true });
});
window.addEventListener('popstate', () => {
  state = stateOf(location.search);
  if (indexes.length && chooseIndex()) draw();
});
listen();
giveUp = loadIndexes((served) => {
  indexes = served;
  drawAll();
});
