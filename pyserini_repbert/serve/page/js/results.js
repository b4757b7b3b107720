// The answer to a search: what it cost, and its hits.

import { button, h, marked } from './dom.js';
import { deepestRank, inWords, journey, kindOf, moves } from './journey.js';
import { message } from './messages.js';
import { whyPanel } from './why.js';
import { count, duration, measure, score } from './words.js';

const LONG = { wide: 620, narrow: 300 }; // characters of a passage; longer ones are cut

/** The steps of an answer with their times, and a bar divided in proportion. */
export function stepsStrip({ steps }, fusions) {
  const bar = h('div', { class: 'steps-bar', 'aria-hidden': 'true' }, steps.map((own) => h('span', {
    class: `part ${kindOf(own.step, fusions)}`, css: { 'flex-grow': own.ms } })));
  const items = steps.map((own) => h('li', null, h('span', { class: `key ${kindOf(own.step, fusions)}`, 'aria-hidden': 'true' }),
    h('b', null, own.step), ` ${duration(own.ms)}`,
    own.inferences > 0 && h('span', { class: 'soft' }, `, ${count(own.inferences, 'inference')}`),
    own.truncated > 0 && h('span', { class: 'soft' }, `, ${own.truncated} cut short`)));
  return h('div', { class: 'steps' }, bar, h('ol', { 'aria-label': 'What each step took' }, items));
}

/** The measures of an answer; null unless the question is a judged topic. */
function judgedNote(judged) {
  if (!judged) return null;
  const values = Object.entries(judged.measures).map(([name, value]) => `${name} ${measure(value)}`).join(', ');
  return h('p', { class: 'judged' }, h('span', { class: 'badge good' }, 'judged'), ` Topic ${judged.qid}: ${values}. `,
    `${count(Object.keys(judged.relevant).length, 'passage')} judged relevant.`);
}

/** A badge with the grade of a passage; null if it was not judged. */
export function gradeBadge(grade) {
  if (grade === null || grade === undefined) return null;
  return grade > 0 ? h('span', { class: 'badge good', title: `grade ${grade}` }, `✓ relevant${grade > 1 ? ` (${grade})` : ''}`)
    : h('span', { class: 'badge', title: `grade ${grade}` }, '✗ judged, not relevant');
}

function shownPassage(parts) {
  const whole = h('p', { class: 'passage' }, marked(parts));
  const most = window.matchMedia('(max-width: 40rem)').matches ? LONG.narrow : LONG.wide;
  if (parts.reduce((sum, own) => sum + own.text.length, 0) <= most) return whole;
  whole.classList.add('cut');
  const more = button('Whole passage', () => {
    const cut = whole.classList.toggle('cut');
    more.textContent = cut ? 'Whole passage' : 'Less';
    more.setAttribute('aria-expanded', String(!cut));
  }, { class: 'quiet more', 'aria-expanded': 'false' });
  return [whole, more];
}

function card(hit, { about, answer, state, deepest, onopen }) {
  const place = h('div', { class: 'why-place' });
  const toggle = button('Why here?', () => setOpen(toggle.getAttribute('aria-expanded') !== 'true'),
    { class: 'why-toggle', 'aria-expanded': 'false' });
  function setOpen(open, told = true) {
    toggle.setAttribute('aria-expanded', String(open));
    const onchoose = (why) => onopen(hit.docid, why);
    place.replaceChildren(...(open ? [whyPanel({ about, answer, hit, chosen: state.why, onchoose })] : []));
    if (told) onopen(open ? hit.docid : '', place.querySelector('[aria-selected="true"]')?.dataset.why ?? '');
  }
  const moved = moves(hit.provenance, about.fusions); // a chart can be wider than a phone, a line of text wraps
  const scrolled = { class: 'journey-place', ...(moved ? { role: 'group', 'aria-label': 'Where it comes from', tabindex: '0' } : {}) };
  const article = h('article', { class: `hit${hit.grade > 0 ? ' relevant' : ''}`, tabindex: '-1',
    'aria-label': `Hit ${hit.rank}: ${hit.docid}`,
    onkeydown: (event) => {
      if (event.key !== 'Enter' || event.target !== article) return;
      event.preventDefault();
      toggle.click();
    } },
  h('header', null, h('span', { class: 'rank' }, String(hit.rank)), h('span', { class: 'docid-label' }, 'docid'), h('h2', null, hit.docid), gradeBadge(hit.grade),
    h('span', { class: 'score', title: 'score in the last ranking' }, `score ${score(hit.score)}`)),
  shownPassage(hit.display),
  h('div', { class: 'origin' }, h('div', scrolled, journey(hit.provenance, about.fusions, deepest)),
    about.rerankers.length > 0 && toggle),
  moved && h('p', { class: 'unseen' }, inWords(hit.provenance)), place);
  if (state.open === hit.docid && about.rerankers.length) setOpen(true, false);
  return article;
}

/** The elements of an answer; onopen(docid, why) is called when a panel opens, with '' for both when it closes. */
export function results({ about, answer, state, onopen, onsystem }) {
  const strip = stepsStrip(answer, about.fusions);
  if (!answer.candidates.length) return [strip, noHits(about, answer, onsystem)];
  const deepest = deepestRank(answer.candidates);
  const cards = answer.candidates.map((hit) => card(hit, { about, answer, state, deepest, onopen }));
  return [h('div', { class: 'summary' }, judgedNote(answer.judged), strip,
    answer.candidates.some((hit) => moves(hit.provenance, about.fusions))
      && h('p', { class: 'note' }, 'Each line shows the hit’s rank at every stage.')), h('div', { class: 'hits' }, cards)];
}

function noHits(about, answer, onsystem) {
  const dense = about.systems.includes('dense') && !answer.system.includes('dense');
  return message('info', 'No hits', [
    `No passage of ${about.name} has a word in common with “${answer.query.text}”.`,
    dense ? 'Dense search needs no word in common:' : 'Try other words.',
  ], dense && button('Search by meaning (dense)', () => onsystem('dense')));
}
