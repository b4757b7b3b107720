// How well the judged questions are answered: by generation, what the newest one moved, and what it cannot answer.

import { address, ask } from '../../js/api.js';
import { freshId, h } from '../../js/dom.js';
import { table } from '../../js/figures.js';
import { failure, message } from '../../js/messages.js';
import { addPart } from '../../js/parts.js';
import { count, docidText, measure, percent, signed } from '../../js/words.js';

/** The panel {section, load}; load() asks the service again. */
function historyPanel(about) {
  const title = freshId('history');
  const place = h('div', { class: 'place' });

  async function load() {
    try {
      draw(await ask(address([about.name, 'history']), { fresh: true }));
    } catch (error) {
      place.replaceChildren(failure(error, load));
    }
  }

  function draw({ generations, is_newest: isNewest }) {
    if (!generations.length) {
      place.replaceChildren(h('p', { class: 'note' }, ['Not measured yet. The judged questions are asked when the search learns, and by the command ', h('code', null, 'index history --ask'), '.']));
      return;
    }
    const newest = generations.at(-1);
    place.replaceChildren(...[
      !isNewest && message('info', 'It has changed since', ['Documents, judgments or settings are others now: ask again.']),
      h('p', { class: 'lead' }, `nDCG@10 of ${count(newest.with_relevant, 'judged question')} with a relevant document is ${interval(newest.ndcg)}.`),
      unanswered(newest),
      newest.change?.questions.length > 0 && moved(newest.change),
      table('By generation, the newest first', ['Generation', 'asked', 'nDCG@10', 'only judged', 'answered'], generations.toReversed().map(generationRow)),
    ].filter(Boolean));
  }

  load();
  return { section: h('section', { class: 'history', 'aria-labelledby': title }, h('h3', { id: title }, 'How good is the search?'), place), load };
}

function interval({ mean, low, high }) {
  return `${measure(mean)} (${measure(low)} to ${measure(high)})`;
}

function generationRow({ generation, measured, ndcg, condensed, answered }) {
  return [String(generation), measured.slice(0, 10), measure(ndcg.mean), measure(condensed.mean), answered === null ? '' : percent(answered)];
}

/** The questions without a relevant document among the best ten. */
function unanswered({ unanswered: questions, questions: total }) {
  if (!questions.length) return h('p', null, `Each of the ${count(total, 'question')} has a relevant document among the best ten.`);
  return table(`Without a relevant document among the best ten: ${questions.length} of ${total}`, ['Question', 'answered'],
    questions.map(({ question, answered }) => [question, answered === null ? '' : percent(answered)]));
}

/** What the newest generation moved, the greatest loss first. */
function moved({ since, questions }) {
  return table(`Moved since generation ${since}`, ['Question', 'nDCG@10', 'change', 'lost'], questions.map((own) => {
    const change = own.after.ndcg - own.before.ndcg;
    const lost = own.left.map((docid) => own.deleted.includes(docid) ? `${docidText(docid)} (deleted)` : docidText(docid));
    return [own.question, measure(own.after.ndcg), h('span', { class: change < 0 ? 'down' : 'up' }, signed(change)), lost.join(', ')];
  }));
}

addPart('judging', (about) => about.learning && historyPanel(about));
