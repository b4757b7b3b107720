// Learning from the judgments: how many there are, the job, what it gained, and whether it is used.

import { address, ask, forget } from './api.js';
import { button, freshId, h, say } from './dom.js';
import { table } from './figures.js';
import { failure, message } from './messages.js';
import { isLearned, mixedBy, wayName } from './ways.js';
import { count, measure, signed } from './words.js';

const LOOK_EVERY = 1000; // ms between two looks at a job that runs

/** The panel; onused() is called when another ranking became the index's default, onlearned() when a learning has ended. */
export function learnPanel(about, onused, onlearned) {
  const url = address([about.name, 'learn']);
  const title = freshId('learn');
  const place = h('div', { class: 'place' });

  async function take(how, { then } = {}) {
    try {
      const now = await ask(url, { fresh: true, ...how });
      draw(now);
      then?.(now);
      if (now.state === 'running') setTimeout(look, LOOK_EVERY);
    } catch (error) {
      place.replaceChildren(failure(error, () => take(how, { then })));
    }
  }

  function look() {
    if (place.isConnected) take({}, { then: (now) => { if (now.state !== 'running') ended(now); } });
  }

  function ended(now) {
    say(now.state === 'done' ? 'Learned' : 'Learning failed');
    onlearned();
  }

  const learn = () => take({ method: 'POST', body: {} }, { then: () => say('Learning') });

  /** Use what was learned, or go back; what is not better than the search as it is now takes a second press. */
  async function use(isUsed, anyway = false) {
    const body = { in_use: isUsed, ...(anyway && { even_if_worse: true }) };
    try {
      draw(await ask(url, { fresh: true, method: 'PUT', body }));
      say(isUsed ? 'What was learned is used' : 'The search is as it was');
      forget();
      onused();
    } catch (error) {
      if (error.status === 409) confirm(error);
      else place.replaceChildren(failure(error, () => use(isUsed, anyway)));
    }
  }

  /** Say why it is not used, and offer to use it all the same. */
  function confirm(error) {
    const insist = button('Use it anyway', () => use(true, true), { 'data-act': 'use' });
    const box = message('bad', 'Not better than now', [`${error.message}.`], h('div', { class: 'judge-actions' }, insist, button('Leave it', () => take({}), { class: 'quiet' })));
    place.prepend(box);
    say(error.message);
    insist.focus();
  }

  /** Draw a state of learning; the button that had the focus has it again, or the one in its place. */
  function draw(now) {
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    place.replaceChildren(...[
      now.due && message('info', 'Time to learn again', [now.due]),
      readiness(now, learn),
      now.state === 'running' && running(now),
      now.state === 'failed' && message('bad', 'Learning failed', [`${now.error}.`]),
      now.report && report(now, about, use),
    ].filter(Boolean));
    if (focused) (place.querySelector(`[data-act="${focused}"]:enabled`) ?? place.querySelector('.learn-state')).focus();
  }

  take({});
  return h('section', { class: 'learn', 'aria-labelledby': title }, h('h3', { id: title }, 'Learn'), place);
}

/** How many questions are judged of those needed, and the button that learns. */
function readiness(now, onlearn) {
  const { questions_judged: judged, questions_needed: needed } = now;
  const lacking = needed - judged;
  const reason = freshId('reason');
  const isRunning = now.state === 'running';
  let text = now.report ? 'The search can learn again from all that is judged.' : 'The search can learn from what is judged. It takes seconds to minutes.';
  if (lacking > 0) text = `Judge ${count(lacking, 'more question')} first, each with a document graded 1 or higher.`;
  if (isRunning) text = 'Learning. You can go on judging meanwhile.';
  return h('div', { class: 'learn-state', tabindex: '-1' },
    h('p', null, lacking > 0 ? `${judged} of the ${needed} judged questions that learning needs.` : `${count(judged, 'judged question')}; learning needs ${needed}.`),
    h('progress', { max: needed, value: Math.min(judged, needed), 'aria-hidden': 'true' }),
    h('div', { class: 'judge-actions' },
      button(now.report ? 'Learn again' : 'Learn', onlearn, { class: now.report ? 'quiet' : 'strong', 'data-act': 'learn', disabled: lacking > 0 || isRunning, 'aria-describedby': reason }),
      h('span', { class: 'note', id: reason }, text)));
}

function running({ done, total }) {
  const bar = h('progress', { 'aria-label': 'Learning', max: Math.max(total, 1) });
  if (total > 0) bar.value = done;
  return h('div', { class: 'learn-running' }, bar, h('span', { class: 'note' }, total > 0 ? `${done} of ${total} steps` : 'It begins'));
}

/** What a person would gain, in words: how many questions are answered better and worse, and whether that may be chance. */
function gainInWords({ winner, baseline, is_convincing: isSure, is_worth_using: isLikely }, { better, worse, total }, about) {
  const mixed = mixedBy(winner, about);
  let search = mixed ? `${mixedBy(baseline, about) ? 'Another' : 'A'} mix of ${mixed}` : `Searching by ${wayName(winner, about)}`;
  if (winner === baseline || isLearned(winner)) search = 'What was learned';
  let verdict = winner === baseline ? 'The present search is the best.' : 'That may be chance.';
  if (isSure) verdict = 'That is more than chance.';
  else if (isLikely) verdict = 'That probably helps, but it may be chance.';
  return `${search} would answer ${better} of ${count(total, 'question')} better and ${worse} worse. ${verdict}`;
}

/** The sentence of a report with its figures, which names ways of searching: the winner in quotes, the present one in brackets. */
function figuresInWords({ sentence, winner, baseline }, about) {
  return sentence.replace(`'${winner}'`, () => `‘${wayName(winner, about)}’`).replace(`(${baseline})`, () => `(${wayName(baseline, about)})`);
}

/** The gain in words; behind it the figures, the mean of each ranking, and what became of each question that changed, the greatest loss first. */
function report({ report: found, in_use: isUsed }, about, onuse) {
  const questions = [...found.questions].sort((a, b) => (a.after - a.before) - (b.after - b.before));
  const worse = questions.filter((own) => own.after < own.before).length;
  const better = questions.filter((own) => own.after > own.before).length;
  const changed = questions.filter((own) => own.after !== own.before);
  const means = Object.entries(found.means).sort((a, b) => b[1] - a[1]);
  const rowName = (name) => `${wayName(name, about)}${name === found.baseline ? ' (now)' : ''}`;
  const isWorth = found.is_worth_using;
  return h('div', { class: 'learn-report' },
    h('p', { class: `lead${isWorth ? ' convincing' : ''}` }, gainInWords(found, { better, worse, total: questions.length }, about)),
    h('div', { class: 'judge-actions' },
      isUsed ? button('Go back', () => onuse(false), { 'data-act': 'use' })
        : button('Use it', () => onuse(true), { class: isWorth ? 'strong' : '', 'data-act': 'use' }),
      h('span', { class: 'note' }, isUsed ? 'Searches use what was learned.' : 'Searches are as they were.')),
    h('details', null, h('summary', null, 'Details'),
      h('p', null, figuresInWords(found, about)),
      table('Mean of each way of searching, nDCG@10', ['Searching by', 'nDCG@10'], means.map(([name, value]) => [rowName(name), measure(value)])),
      changed.length > 0 && table('Each question that changed, the greatest loss first', ['Question', 'before', 'after', 'change'], changed.map(questionRow)),
      h('p', null, `${count(questions.length - changed.length, 'question')} unchanged.`)));
}

/** The cells of a question's row. */
function questionRow({ question, before, after }) {
  let kind = 'soft';
  if (after > before) kind = 'up';
  if (after < before) kind = 'down';
  return [question, measure(before), measure(after), h('span', { class: kind }, signed(after - before))];
}
