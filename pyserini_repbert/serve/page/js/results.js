// The answer to a search: what it cost, and its hits.

import { address, ask } from './api.js';
import { button, h, marked, say } from './dom.js';
import { fieldsLine } from './filters.js';
import { hitGrade } from './grades.js';
import { deepestRank, inWords, journey, kindOf, moves } from './journey.js';
import { likeLink, likeNote } from './likeness.js';
import { message } from './messages.js';
import { partsOf } from './parts.js';
import { proseOfParts, snippetNodes } from './prose.js';
import { fillWithMarksInView } from './snippet.js';
import { whyPanel } from './why.js';
import { count, docidText, duration, measure, score, whole } from './words.js';

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

/** What a user should hear of a question: that a ranking reads no word of it, say; and what extensions say of it. */
export function warnings(answer) {
  return [...(answer.warnings ?? []).map((text) => h('p', { class: 'note warning' }, text)), ...partsOf('hits', answer)];
}

/** A badge with the grade of a passage; null if it was not judged. */
export function gradeBadge(grade) {
  if (grade === null || grade === undefined) return null;
  const title = `grade ${grade}`;
  if (grade <= 0) return h('span', { class: 'badge', title }, '✗ judged, not relevant');
  return h('span', { class: 'badge good', title }, grade > 1 ? `✓ relevant (${grade})` : '✓ relevant');
}

function shownPassage(parts) {
  const most = window.matchMedia('(max-width: 40rem)').matches ? LONG.narrow : LONG.wide;
  if (parts.reduce((sum, own) => sum + own.text.length, 0) <= most) return h('p', { class: 'passage' }, marked(parts));
  const whole = h('p', { class: 'passage cut' });
  const fill = fillWithMarksInView(whole, parts, marked, { isCut: () => whole.classList.contains('cut') });
  const more = button('Whole passage', () => {
    const cut = whole.classList.toggle('cut');
    fill();
    more.textContent = cut ? 'Whole passage' : 'Less';
    more.setAttribute('aria-expanded', String(!cut));
  }, { class: 'quiet more', 'aria-expanded': 'false' });
  return [whole, more];
}

/** The best passage of a document, cut around the words of the question, and the whole document on demand. */
export function shownDocument(about, hit, query) {
  const isCode = hit.passage?.is_code ?? hit.fields?.type === 'code';
  const text = h('div', { class: 'passage' });
  const path = hit.passage?.headings?.length ? h('p', { class: 'note headings' }, hit.passage.headings.join(' › ')) : null;
  const where = hit.passage && h('span', { class: 'note' },
    `passage ${hit.passage.number + 1} of the document: characters ${whole(hit.passage.start)} to ${whole(hit.passage.end)}`);
  const show = (parts, isWhole) => {
    text.replaceChildren(...(isWhole ? proseOfParts(parts, { isCode }) : [h('p', { class: isCode ? 'code' : 'snippet-lines' }, snippetNodes(parts, { isCode }))]));
    more.textContent = isWhole ? 'Less' : 'Whole document';
    more.setAttribute('aria-expanded', String(isWhole));
  };
  const more = button('Whole document', async () => {
    if (more.getAttribute('aria-expanded') === 'true') {
      show(hit.display, false);
      return;
    }
    try {
      const { display } = await ask(address([about.name, 'doc', hit.docid], [['display', 'true'], ['query', query]]));
      show(display, true);
    } catch (error) {
      more.textContent = `Whole document: ${error.message}`;
      say(error.message);
    }
  }, { class: 'quiet more', 'aria-expanded': 'false' });
  show(hit.display, false);
  return [hit.title && h('p', { class: 'document-title' }, hit.title), path, text, h('p', { class: 'excerpt' }, more, where)];
}

/**
 * The scores of a hit: of a fusion, whose best hit has nearly the same for any question, those of the rankings that were fused.
 */
function scores(hit, fusions) {
  const last = hit.provenance.at(-1);
  if (!last || kindOf(last.ranking, fusions) !== 'fused') return h('span', { class: 'score', title: 'score in the last ranking' }, `score ${score(hit.score)}`);
  const known = hit.provenance.filter((own) => own !== last && own.score !== null);
  return h('span', { class: 'score', title: 'score in each ranking' }, known.map((own) => `${own.ranking} ${score(own.score)}`).join(' · '));
}

/** The head of a card; own: the mark of this judge's grade, or undefined. */
function cardHeader(hit, own, fusions) {
  return h('header', null,
    h('span', { class: 'rank' }, String(hit.rank)),
    h('span', { class: 'docid-label' }, 'docid'),
    h('h2', null, docidText(hit.docid)),
    gradeBadge(hit.grade),
    own,
    scores(hit, fusions));
}

/** The chart of a hit's ranks, which can be wider than a phone, or a line of text, which wraps. */
function origin(hit, fusions, deepest) {
  const chart = journey(hit.provenance, fusions, deepest);
  if (!moves(hit.provenance, fusions)) return h('div', { class: 'journey-place' }, chart);
  return h('div', { class: 'journey-place', role: 'group', 'aria-label': 'Where it comes from', tabindex: '0' }, chart);
}

function card(hit, { about, answer, state, judgments, deepest, onopen, onlike }) {
  const isOpen = () => toggle.getAttribute('aria-expanded') === 'true';
  const toggle = button('Why here?', () => setOpen(!isOpen()), { class: 'why-toggle', 'aria-expanded': 'false' });
  const panel = h('div', { class: 'why-place' });

  function show(open) {
    toggle.setAttribute('aria-expanded', String(open));
    const onchoose = (why) => onopen(hit.docid, why);
    panel.replaceChildren(...(open ? [whyPanel({ about, answer, hit, chosen: state.why, onchoose })] : []));
  }

  function setOpen(open) {
    show(open);
    const tab = panel.querySelector('[aria-selected="true"]');
    onopen(open ? hit.docid : '', tab?.dataset.why ?? '');
  }

  const openByKey = (event) => {
    if (event.key !== 'Enter' || event.target !== article) return;
    event.preventDefault();
    toggle.click();
  };
  const isExplained = about.rerankers.length > 0 || about.documents !== undefined;
  const explains = isExplained && answer.query.like === undefined;
  const grade = judgments && answer.query.like === undefined && hitGrade({ about, question: state.q, docid: hit.docid, judgment: judgments.get(hit.docid) });
  const article = h('article', { class: `hit${hit.grade > 0 ? ' relevant' : ''}`, tabindex: '-1',
    'aria-label': `Hit ${hit.rank}: ${docidText(hit.docid)}`, onkeydown: openByKey },
  cardHeader(hit, grade?.mark, about.fusions),
  hit.passage === undefined ? shownPassage(hit.display) : shownDocument(about, hit, answer.query.text),
  fieldsLine(hit.fields),
  h('div', { class: 'origin' }, origin(hit, about.fusions, deepest), explains && toggle,
    likeLink({ about, state, docid: hit.docid, onlike })),
  moves(hit.provenance, about.fusions) && h('p', { class: 'unseen' }, inWords(hit.provenance)),
  grade?.row,
  panel);
  if (state.open === hit.docid && explains) show(true);
  return article;
}

/**
 * The elements of an answer; onopen(docid, why) is called when a panel opens, with '' for both when it closes.
 * judgments: of this judge, by docid; null where nothing can be judged.
 */
export function results({ about, answer, state, judgments, onopen, onsystem, onunfilter, onlike, onask }) {
  const strip = [likeNote(answer, onask), warnings(answer), stepsStrip(answer, about.fusions)];
  if (!answer.candidates.length) return [...strip, noHits(about, answer, { filter: state.filter, onsystem, onunfilter })];
  const deepest = deepestRank(answer.candidates);
  const cards = answer.candidates.map((hit) => card(hit, { about, answer, state, judgments, deepest, onopen, onlike }));
  const anyMoves = answer.candidates.some((hit) => moves(hit.provenance, about.fusions));
  const note = anyMoves && h('p', { class: 'note' }, 'Each line shows the hit’s rank at every stage.');
  return [h('div', { class: 'summary' }, judgedNote(answer.judged), strip, note), h('div', { class: 'hits' }, cards)];
}

function noHits(about, answer, { filter, onsystem, onunfilter }) {
  const { text, like } = answer.query;
  if (filter) {
    const wanted = like === undefined ? `answers “${text}”` : `is like ${like}`;
    return message('info', 'No hits', [`No document of ${about.name} within ${filter} ${wanted}.`],
      button('Search without the filter', onunfilter));
  }
  if (like !== undefined) return message('info', 'No hits', [`Nothing else in ${about.name} is like ${like}.`]);
  const dense = about.systems.includes('dense') && !answer.system.includes('dense');
  return message('info', 'No hits', [
    `${about.documents === undefined ? 'No passage' : 'No document'} of ${about.name} has a word in common with “${answer.query.text}”.`,
    dense ? 'Dense search needs no word in common:' : 'Try other words.',
  ], dense && button('Search by meaning (dense)', () => onsystem('dense')));
}
