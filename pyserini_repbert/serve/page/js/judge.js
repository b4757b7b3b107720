// The judging mode: who judges, the questions, what was judged, and what is learned from it.

import { askText } from './api.js';
import { button, field, freshId, h, say } from './dom.js';
import { addQuestions, exportAddress, givenName, judgeName, judgmentsOf, keepName, poolOf, questionsOf } from './judgments.js';
import { useKeys } from './keys.js';
import { learnPanel } from './learn.js';
import { failure } from './messages.js';
import { partsOf } from './parts.js';
import { judgeQuestion, nextQuestion } from './pool.js';
import { count, whole } from './words.js';

const MOST_NAME = 80; // characters
const EXPORTS = [['topics', 'topics.tsv', 'Topics'], ['qrels', 'qrels.txt', 'Judgments (qrels)'], ['jsonl', 'judgments.jsonl', 'JSON lines, with comments']];

/**
 * The elements of the mode: a question if the state has one, else the list of questions.
 * onopen and onquestion: as in `judgeQuestion`; onredraw() draws it again; onused() is called when another ranking became the default.
 */
export async function judging({ about, state, focus, onopen, onquestion, onredraw, onused }, { signal }) {
  if (givenName() === null) return nameForm(onredraw);
  if (!state.q) {
    const [listed, { judgments, agreement }] = await Promise.all([questionsOf(about, { signal }), judgmentsOf(about, { signal })]);
    return overview({ about, listed, judgments, agreement, focus, onquestion, onredraw, onused });
  }
  const [listed, pool, { judgments }] = await Promise.all([
    questionsOf(about, { signal }), poolOf(about, state.q, { signal }), judgmentsOf(about, { question: state.q, signal })]);
  return judgeQuestion({ about, question: pool.question, listed, pool, judgments, open: state.open, focus, onopen, onquestion });
}

/** A form that asks for the judge's name, once. */
function nameForm(onnamed) {
  const input = h('input', { type: 'text', autocomplete: 'nickname', maxlength: MOST_NAME });
  const take = (event) => {
    event.preventDefault();
    keepName(input.value.trim());
    onnamed();
  };
  return h('section', { class: 'start' },
    h('h2', null, 'Make it better by judging'),
    h('p', { class: 'soft' }, 'Say of each document how well it answers a question. From 20 questions on, the search can learn from it.'),
    h('form', { class: 'judge-name', onsubmit: take }, field('Your name (optional)', input),
      h('button', { type: 'submit', class: 'strong' }, 'Begin')),
    h('p', { class: 'note' }, 'The name tells two judges apart. This browser keeps it.'));
}

function overview({ about, listed, judgments, agreement, focus, onquestion, onredraw, onused }) {
  const heading = h('h2', { tabindex: '-1' }, `Judge ${about.name}`);
  const place = h('div');
  const parts = partsOf('judging', about);
  const onlearned = () => parts.forEach((part) => part.load());
  const rename = button('Change', () => {
    keepName(null);
    onredraw();
  }, { class: 'quiet', 'aria-label': 'Change the name' });
  const draw = (now) => place.replaceChildren(...questionList(now, onquestion));
  draw(listed);
  if (focus) setTimeout(() => heading.focus({ preventScroll: true }));
  return h('div', { class: 'judge-overview' },
    h('div', { class: 'judge-line' }, heading, h('p', { class: 'note' }, judgeName() ? `You judge as ${judgeName()}. ` : 'You judge without a name. ', rename)),
    h('section', { 'aria-label': 'Questions' }, place, addForm(about, draw)),
    about.learning && learnPanel(about, onused, onlearned),
    ...parts.map((part) => part.section),
    judgments.length > 0 && keptPart(about, judgments, agreement));
}

/** The questions, with what was judged of each. */
function questionList(listed, onquestion) {
  const { questions, total, judged } = listed;
  const next = nextQuestion(listed, '');
  const begin = () => onquestion(next);
  useKeys(next === null ? [] : [{ label: 'n', text: 'judge the next question', acts: { n: begin } }]);
  const rows = questions.map((own) => {
    const judgedText = own.pooled === null ? count(own.judged, 'document') : `${own.judged} of ${count(own.pooled, 'document')}`;
    return h('li', null, button(own.text, () => onquestion(own.text), { class: 'example' }),
      h('span', { class: `badge${own.judged > 0 ? ' good' : ''}` }, own.judged > 0 ? `${judgedText} judged` : 'not judged'));
  });
  return [
    h('h3', null, 'Questions'),
    h('p', { 'aria-live': 'polite' }, total ? `${whole(judged)} of ${count(total, 'question')} judged.` : 'There are no questions yet. Add some that people ask.'),
    next !== null && button([h('kbd', { 'aria-hidden': 'true' }, 'n'), ' Judge the next question'], begin, { class: 'strong', 'aria-keyshortcuts': 'n' }),
    rows.length > 0 && h('ol', { class: 'judge-questions', tabindex: '0', 'aria-label': 'All questions' }, rows),
  ].filter(Boolean);
}

/** A box for questions, one a line; ondone(answer) is called when they are stored. */
function addForm(about, ondone) {
  const box = h('textarea', { rows: 4, spellcheck: 'false' });
  const note = h('div', { role: 'alert' });
  const add = async (event) => {
    event?.preventDefault();
    const texts = box.value.split('\n').map((own) => own.trim()).filter(Boolean);
    if (!texts.length) {
      box.focus();
      return;
    }
    try {
      ondone(await addQuestions(about, texts));
      box.value = '';
      note.replaceChildren();
      say(`${count(texts.length, 'question')} added`);
    } catch (error) {
      note.replaceChildren(failure(error, () => {
        note.replaceChildren();
        add();
      }));
    }
  };
  return h('form', { class: 'judge-add', onsubmit: add }, field('Add questions, one a line', box), h('button', { type: 'submit' }, 'Add'), note);
}

/** What is kept of all judgments: the agreement of judges, and files to download. */
function keptPart(about, judgments, agreement) {
  const title = freshId('kept');
  const pairs = agreement.filter((own) => own.judges.includes(judgeName()));
  const older = judgments.filter((own) => own.is_older).length;
  return h('section', { class: 'judge-kept', 'aria-labelledby': title },
    h('h3', { id: title }, 'Judgments'),
    h('p', null, `${count(judgments.length, 'judgment')} of yours.`,
      older > 0 && ` ${count(older, 'document')} changed since.`),
    pairs.length > 0 && h('ul', null, pairs.map((own) => h('li', null, agreementText(own)))),
    h('p', null, 'Download all judgments: '),
    h('ul', { class: 'judge-exports' }, EXPORTS.map(([format, ending, text]) => h('li', null, download(exportAddress(about, format), `${about.name}.${ending}`, text)))));
}

function agreementText({ judges, documents, kappa }) {
  const names = judges.map((own) => own || 'somebody without a name');
  const both = `${names.join(' and ')} both judged ${count(documents, 'document')}`;
  return kappa === null ? `${both}.` : `${both}: Cohen’s kappa ${kappa.toFixed(2)}.`;
}

/** A link to a file; the page fetches it, as a link alone sends no key. */
function download(href, name, text) {
  const fetchIt = async (event) => {
    event.preventDefault();
    try {
      const file = URL.createObjectURL(new Blob([await askText(href)]));
      h('a', { href: file, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(file), 1000);
    } catch (error) {
      link.after(h('span', { class: 'note' }, ` ${error.message}`));
      say(error.message);
    }
  };
  const link = h('a', { href, download: name, onclick: fetchIt }, text);
  return link;
}
