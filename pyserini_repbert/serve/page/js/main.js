// The laboratory: its address holds its state, from which everything is drawn.

import { address, ask } from './api.js';
import { comparison } from './compare.js';
import { openCommands } from './copying.js';
import { byId, field, h, select } from './dom.js';
import { filterBox } from './filters.js';
import { HIT_KEYS } from './grades.js';
import { chosenIndex, fillExamples, loadIndexes, useMenu, useTheme } from './frame.js';
import { judging } from './judge.js';
import { judgmentsOf } from './judgments.js';
import { SEARCH_KEYS, listen, openKeys, useKeys } from './keys.js';
import { during, message } from './messages.js';
import { picker } from './picker.js';
import { readerAddress } from './reader_state.js';
import { results } from './results.js';
import { BARE, addressOf, askedOf, comparisonBody, filterParameters, fusionOf, pipelineParameters, pipelinesOf, stateOf } from './state.js';
import { count, held, pipelineName, whole } from './words.js';

const TITLES = { search: 'Search', compare: 'Compare', judge: 'Judge' };
const HITS = [5, 10, 20, 50, 100];

const found = byId('found');
const question = byId('q');
let indexes = [];
let about = null;
let state = stateOf(location.search);
let giveUp = () => {};

/** Another pipeline to compare this one with, for a comparison that names none. */
function rival(pipeline) {
  const own = pipeline.system;
  const other = own.length > 1 ? own.at(-1) : [...about.default, ...about.systems].find((name) => name !== own[0]);
  return { ...BARE, system: [other ?? own[0]] };
}

/**
 * Make a state the page's: put it into the address, and draw it.
 * replace: replace the history's last entry; quiet: do not draw results; controls: draw the controls, too.
 */
function go(next, { replace = false, quiet = false, controls = true } = {}) {
  state = next.q.trim() ? { ...next, like: '' } : next; // a question takes the place of a document
  history[replace ? 'replaceState' : 'pushState'](null, '', addressOf(state));
  drawHead();
  if (!quiet) draw({ controls });
}

/** The state that the link to a view leads to: from a question that is judged, the link to its view leads to all of them. */
function stateOfView(view) {
  const needsRival = view === 'compare' && about && !state.b.system.length;
  const isUp = view === 'judge' && state.view === 'judge';
  return { ...state, view, q: isUp ? '' : state.q, b: needsRival ? rival(state.a) : state.b, open: '', why: '' };
}

function drawHead() {
  document.title = `${askedOf(state) ? `${state.q || `like ${state.like}`} · ` : ''}${TITLES[state.view]} · pyserini_repbert`;
  byId('title').textContent = TITLES[state.view];
  for (const link of document.querySelectorAll('.views [data-view]')) {
    const { view } = link.dataset;
    link.ariaCurrent = view === state.view ? 'page' : null;
    link.href = addressOf(stateOfView(view));
    link.hidden = view === 'judge' && !about?.judging;
  }
  byId('reader').href = readerAddress(state);
  byId('copy').hidden = !about || !state.q.trim() || state.view === 'judge';
}

function hitsField() {
  const offered = [...new Set([...HITS.filter((own) => own <= about.limits.hits), state.hits])].sort((a, b) => a - b);
  const choose = (event) => go({ ...state, hits: Number(event.target.value) }, { controls: false });
  return field('Hits', select(offered.map((own) => [own, whole(own)]), state.hits, choose));
}

function drawControls() {
  const box = byId('controls');
  document.body.dataset.view = state.view;
  const isJudging = state.view === 'judge';
  byId('ask').hidden = isJudging;
  box.hidden = isJudging;
  if (isJudging) return;
  const sides = state.view === 'compare' ? ['a', 'b'] : ['a'];
  const summary = h('summary', null, 'How to search');
  const summarize = () => {
    const names = sides.map((side) => pipelineName({ ...state[side], fusion: fusionOf(about, state[side]) }));
    const within = state.filter && `, within ${state.filter}`;
    summary.textContent = `How to search: ${names.join('  |  ')}${within}`;
  };
  const pickers = sides.map((side) => picker({
    about,
    pipeline: state[side],
    label: state.view === 'compare' ? side.toUpperCase() : null,
    onchange: (pipeline) => {
      const q = question.value.trim() || state.q;
      go({ ...state, q, [side]: pipeline, open: '', why: '' }, { controls: false });
      summarize();
    },
  }));
  summarize();
  const filter = filterBox({
    about,
    filter: state.filter,
    onchange: (chosen) => {
      go({ ...state, q: question.value.trim() || state.q, filter: chosen, open: '', why: '' }, { controls: false });
      summarize();
    },
  });
  const wide = window.matchMedia('(min-width: 56rem)');
  const open = () => wide.matches && !(state.view === 'compare' && state.q); // a comparison takes the whole page
  const details = h('details', { open: open() }, summary, h('div', { class: 'pickers' }, pickers), filter, hitsField(), unreadLines(about));
  wide.onchange = () => { details.open = open(); };
  box.replaceChildren(details);
  byId('go').textContent = TITLES[state.view];
}

/** The files of each source that its last sync did not read; null for none. */
function unreadLines({ sources }) {
  const lines = (sources ?? []).filter(({ unread }) => unread).map(({ name, unread }) => h('p', { class: 'soft' }, `${name}: ${unread}`));
  return lines.length ? h('div', { class: 'unread' }, lines) : null;
}

/** Draw what the state shows. controls: the controls, too; focus: what is judged gets the focus. */
function draw({ controls = true, focus = false } = {}) {
  giveUp();
  giveUp = () => {};
  found.removeAttribute('aria-busy');
  if (controls) {
    question.value = state.q;
    drawControls();
  }
  if (state.view === 'judge') {
    giveUp = judge(focus);
    return;
  }
  useKeys(about.judging && state.view === 'search' ? [...SEARCH_KEYS, ...HIT_KEYS] : SEARCH_KEYS);
  if (!askedOf(state)) {
    start();
    return;
  }
  const retry = () => draw({ controls: false });
  giveUp = state.view === 'compare' ? compare(retry) : search(retry);
}

/** What a request for an answer takes: the progress of rerankers is asked for only where there are some. */
function asking({ tell, signal }) {
  const reranks = pipelinesOf(state).some((pipeline) => pipeline.rerank.length);
  return { signal, tell: reranks ? tell : undefined };
}

function compare(retry) {
  const url = address([about.name, 'compare']);
  const work = async (how) => {
    const answer = await ask(url, { body: comparisonBody(state), ...asking(how) });
    return comparison({ about, found: answer });
  };
  return during(found, 'Comparing', work, { retry, announce: () => 'Compared' });
}

function search(retry) {
  const url = address([about.name, 'search'], [state.q.trim() ? ['query', state.q] : ['like', state.like], ['hits', state.hits],
    ...filterParameters(state), ...pipelineParameters(state.a), ['provenance', 'true'], ['display', 'true']]);
  const onopen = (open, why) => go({ ...state, open, why }, { replace: true, quiet: true });
  const onsystem = (name) => go({ ...state, a: { ...state.a, system: [name], rerank: [] } });
  const onunfilter = () => go({ ...state, filter: '' });
  const onlike = (next) => {
    go(next);
    found.focus({ preventScroll: true });
  };
  const onask = () => {
    go({ ...state, like: '' });
    question.focus();
  };
  let answer = null;
  const work = async (how) => {
    const judged = ownJudgments(how);
    answer = await ask(url, asking(how));
    return results({ about, answer, state, judgments: await judged, onopen, onsystem, onunfilter, onlike, onask });
  };
  return during(found, 'Searching', work, { retry, announce: () => count(answer.candidates.length, 'hit') });
}

/** What this judge has judged of the question, by docid; null where nothing can be judged. */
async function ownJudgments({ signal }) {
  if (!about.judging) return null;
  try {
    const { judgments } = await judgmentsOf(about, { question: state.q, signal });
    return new Map(judgments.map((own) => [own.docid, own]));
  } catch {
    return null; // hits are shown all the same
  }
}

function judge(focus) {
  useKeys([]);
  if (!about.judging) {
    found.replaceChildren(message('info', 'Nothing can be judged here', [`This service keeps no judgments for ${about.name}.`]));
    return () => {};
  }
  const work = (how) => judging({
    about,
    state,
    focus,
    onopen: (open) => go({ ...state, open }, { replace: true, quiet: true }),
    onquestion: (q, open = '') => {
      go({ ...state, q: q ?? '', open }, { quiet: true });
      draw({ focus: true });
    },
    onredraw: () => draw({ focus: true }),
    onused: renew,
  }, how);
  return during(found, 'Opening', work, { retry: () => draw() });
}

/** Ask again what the indexes are, as another ranking is the default now. */
async function renew() {
  indexes = (await ask(address(['indexes']))).indexes;
  state = { ...state, a: BARE, b: BARE };
  if (chooseIndex()) drawHead();
}

/** Show the introduction and examples, before a question is asked. */
function start() {
  const list = h('ul', { class: 'examples' });
  const [title, text] = state.view === 'compare'
    ? ['Which of two is better?', 'Two ways to answer one question, side by side: choose them as A and B, and ask.']
    : ['Search, and see why', `${held(about)} in ${about.name}. Ask in your own words; each hit shows its rank in `
      + 'every ranking it came through, and “Why here?” opens what the models saw in it.'];
  found.replaceChildren(h('div', { class: 'start' }, h('h2', null, title), h('p', { class: 'soft' }, text), list));
  fillExamples(list, about, (q) => go({ ...state, q })).then((n) => { if (n) list.before(h('h3', null, 'For example')); });
}

function chooseIndex() {
  about = chosenIndex(indexes, state.index, take);
  if (!about) {
    drawHead();
    return false;
  }
  state = { ...state, index: about.name };
  if (!state.a.system.length) {
    const system = about.default.slice(0, state.view === 'compare' ? 1 : undefined);
    state = { ...state, a: { ...state.a, system } };
  }
  if (state.view === 'compare' && !state.b.system.length) state = { ...state, b: { ...rival(state.a), rerank: state.b.rerank } };
  return true;
}

function take(name) {
  const q = state.view === 'judge' ? '' : state.q;
  state = { ...state, index: name, q, like: '', filter: '', a: BARE, b: BARE, open: '', why: '' };
  if (chooseIndex()) go(state);
}

function drawAll() {
  if (chooseIndex()) go(state, { replace: true });
}

useTheme();
useMenu({ copy: () => openCommands(state, about), help: openKeys });
byId('index').addEventListener('change', (event) => take(event.target.value));
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (!about) return;
  go({ ...state, q: question.value.trim(), like: '', open: '', why: '' }, { controls: state.view === 'compare' });
  found.focus({ preventScroll: true });
});
for (const link of document.querySelectorAll('.views [data-view]')) {
  link.addEventListener('click', (event) => {
    if (!about || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const next = stateOfView(link.dataset.view);
    go(state.view === 'judge' ? next : { ...next, q: question.value.trim() });
  });
}
window.addEventListener('popstate', () => {
  state = stateOf(location.search);
  if (indexes.length) drawAll();
});
listen();
giveUp = loadIndexes((served) => {
  indexes = served;
  drawAll();
});
