// One question to judge: the documents of its pool, one at a time, in the pool's order, which favours no ranking.

import { button, field, freshId, h, say } from './dom.js';
import { fieldsLine } from './filters.js';
import { GRADES, gradeButtons } from './grades.js';
import { judgeName, storeJudgment, withdrawJudgment } from './judgments.js';
import { useKeys } from './keys.js';
import { failure, message } from './messages.js';
import { shownDocument } from './results.js';
import { count, docidText } from './words.js';

const MOST_COMMENT = 1000; // characters
const OF_FILES = ['type', 'folder', 'modified', 'source', 'language']; // fields that say nothing of what a document answers

// What was judged in this tab, the last at the end: {index, judge, question, docid, pool}, with grade and comment before the judgment.
const past = [];

/** The next question without a judgment, after one and then from the beginning; null if there is none. */
export function nextQuestion({ questions }, now) {
  const place = questions.findIndex((own) => own.text === now);
  const later = [...questions.slice(place + 1), ...questions.slice(0, Math.max(place, 0))];
  return later.find((own) => own.judged === 0)?.text ?? null;
}

/** The documents, each with its copies: others with the same title and text, which are judged with it. */
function withoutCopies(documents) {
  const first = documents.filter((own) => !own.same_as);
  return first.map((own) => ({ ...own, copies: documents.filter(({ same_as: docid }) => docid === own.docid) }));
}

/** The fields of a document that help to judge it. Where documents come from files, they have others, too. */
function tellingFields(about, { fields }) {
  if (!about.fields?.modified) return fields;
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => !OF_FILES.includes(name)));
}

/** Text of a button with its key. */
function withKey(key, text) {
  return [h('kbd', { 'aria-hidden': 'true' }, key), ` ${text}`];
}

/**
 * The elements of a question to judge.
 * listed: the answer of `questionsOf`; pool: the answer of `poolOf`; judgments: the question's; open: docid of the document to begin with, or '';
 * onopen(docid) is called when another document is shown, with '' for the summary; onquestion(question, docid) leads to
 * another question, with null to the list of them; focus: whether the document gets the focus.
 */
export function judgeQuestion({ about, question, listed, pool, judgments, open, onopen, onquestion, focus }) {
  const documents = withoutCopies(pool.documents);
  const older = new Set(judgments.filter((own) => own.is_older).map((own) => own.docid));
  const elsewhere = judgments.filter((own) => !pool.documents.some(({ docid }) => docid === own.docid)).length;
  const isListed = listed.questions.some((own) => own.text === question);
  const others = listed.questions.filter((own) => own.text !== question && own.judged > 0).length;
  const total = listed.total + (isListed ? 0 : 1);
  const progress = h('p', { class: 'judge-progress', 'aria-live': 'polite' });
  const bar = h('progress', { 'aria-hidden': 'true', max: Math.max(documents.length, 1) });
  const problem = h('div', { class: 'judge-problem', role: 'alert' });
  const place = h('div', { class: 'judge-place' });
  let at = 0; // of the document shown; documents.length: the summary
  let waiting = Promise.resolve(); // for the judgments on their way to the service

  const isJudged = () => elsewhere > 0 || documents.some((own) => own.grade !== null);
  const unjudged = (from = 0) => documents.findIndex((own, index) => index >= from && own.grade === null);

  function drawProgress() {
    const judged = others + (isJudged() ? 1 : 0);
    const where = at < documents.length ? `document ${at + 1} of ${documents.length}` : 'summary';
    progress.textContent = `${judged} of ${count(total, 'question')} judged · ${where}`;
    bar.value = documents.filter((own) => own.grade !== null).length;
  }

  function show(next, { takesFocus = true } = {}) {
    at = Math.min(Math.max(next, 0), documents.length);
    problem.replaceChildren();
    const shown = at < documents.length ? documentCard(documents[at]) : summary();
    place.replaceChildren(shown);
    drawProgress();
    onopen(documents[at]?.docid ?? '');
    if (!takesFocus) return;
    shown.focus({ preventScroll: true });
    head.scrollIntoView({ block: 'nearest' });
  }

  /** Do something after all that is on its way; what fails is told above the document. */
  function inTurn(work) {
    waiting = waiting.then(work).catch((error) => problem.replaceChildren(failure(error, () => {
      problem.replaceChildren();
      inTurn(work);
    })));
  }

  /** Store the grade and comment of a document and of its copies; null for the grade takes the judgments back. */
  async function put({ copies, ...judgment }) {
    for (const docid of [judgment.docid, ...copies]) {
      if (judgment.grade === null) await withdrawJudgment(about, { ...judgment, docid });
      else await storeJudgment(about, { ...judgment, docid });
    }
    const own = judgment.question === question && documents.find(({ docid }) => docid === judgment.docid);
    if (own) Object.assign(own, { grade: judgment.grade, comment: judgment.comment });
    older.delete(judgment.docid);
  }

  /** The judgment of a document as it is now; copies: docids of documents with the same text. */
  function judgmentOf({ docid, grade, comment, copies }) {
    return { question, docid, grade, comment, pool: pool.pool, copies: copies.map((own) => own.docid) };
  }

  function judge(grade) {
    inTurn(async () => {
      const own = documents[at];
      if (!own) return;
      const before = { index: about.name, judge: judgeName(), ...judgmentOf(own) };
      await put({ ...judgmentOf(own), grade, comment: place.querySelector('textarea').value.trim() });
      past.push(before);
      say(`${grade} ${GRADES[grade]}`);
      const next = unjudged(at + 1);
      show(next < 0 ? documents.length : next);
    });
  }

  function undo() {
    inTurn(async () => {
      const last = past.at(-1);
      if (last?.index !== about.name || last.judge !== judgeName()) {
        say('Nothing to undo');
        return;
      }
      await put({ question: last.question, docid: last.docid, grade: last.grade, comment: last.comment, pool: last.pool, copies: last.copies });
      past.pop();
      say('Undone');
      const undone = documents.findIndex(({ docid }) => docid === last.docid);
      if (last.question === question && undone >= 0) show(undone);
      else onquestion(last.question, last.docid);
    });
  }

  function comment(text) {
    inTurn(async () => {
      const own = documents[at];
      const isChanged = own.grade !== null && text !== own.comment;
      own.comment = text;
      if (isChanged) await put(judgmentOf(own));
    });
  }

  const whole = () => place.querySelector('.more')?.click();
  const write = () => place.querySelector('textarea')?.focus();
  const skip = () => { if (at < documents.length) inTurn(() => show(at + 1)); };
  const back = () => { if (at > 0) inTurn(() => show(at - 1)); };
  const next = () => inTurn(() => onquestion(nextQuestion(listed, question)));

  function documentCard(own) {
    const title = freshId('document');
    const box = h('textarea', { rows: 2, maxlength: MOST_COMMENT, value: own.comment, 'aria-keyshortcuts': 'c', onkeydown: leave,
      onchange: (event) => comment(event.target.value.trim()) });
    const article = h('article', { class: 'judge-document', tabindex: '-1', 'aria-labelledby': title },
      h('h3', { id: title }, own.title || docidText(own.docid)),
      h('p', { class: 'note' }, h('span', { class: 'docid' }, docidText(own.docid)), older.has(own.docid) && ' · changed since you judged it'),
      own.copies.length > 0 && h('p', { class: 'note' }, `The same text is in ${own.copies.map((copy) => docidText(copy.docid)).join(', ')}: your grade is for both.`.replace('both', own.copies.length > 1 ? 'all' : 'both')),
      own.headings.length > 0 && h('p', { class: 'note headings' }, own.headings.join(' › ')),
      shownDocument(about, { docid: own.docid, display: own.display, fields: own.fields }, question),
      fieldsLine(tellingFields(about, own)),
      gradeButtons({ label: `Your grade of ${own.title || docidText(own.docid)}`, chosen: own.grade, onchoose: judge }),
      h('div', { class: 'judge-actions' },
        button(withKey('←', 'Back'), back, { class: 'quiet', disabled: at === 0, 'aria-keyshortcuts': 'ArrowLeft' }),
        button(withKey('s', 'Skip'), skip, { class: 'quiet', 'aria-keyshortcuts': 's ArrowRight' }),
        button(withKey('u', 'Undo'), undo, { class: 'quiet', 'aria-keyshortcuts': 'u' }),
        button(withKey('n', 'Next question'), next, { class: 'quiet', 'aria-keyshortcuts': 'n' })),
      field('Comment', box));
    const more = article.querySelector('.more');
    more.setAttribute('aria-keyshortcuts', 'o');
    return article;
  }

  /** Leave the comment by Escape, or by Enter, which ends it. */
  function leave(event) {
    if (event.key !== 'Escape' && (event.key !== 'Enter' || event.shiftKey)) return;
    event.preventDefault();
    event.target.blur();
    place.firstElementChild.focus({ preventScroll: true });
  }

  function summary() {
    const title = freshId('summary');
    const rows = documents.map((own, index) => h('li', null,
      button(own.title || docidText(own.docid), () => inTurn(() => show(index)), { class: 'quiet' }),
      h('span', { class: `badge${own.grade > 0 ? ' good' : ''}` }, own.grade === null ? 'not judged' : `${own.grade} ${GRADES[own.grade]}`),
      own.comment && h('span', { class: 'note' }, own.comment)));
    const judged = documents.filter((own) => own.grade !== null);
    const relevant = judged.filter((own) => own.grade > 0).length;
    const following = nextQuestion(listed, question);
    const left = unjudged();
    return h('section', { class: 'judge-summary', tabindex: '-1', 'aria-labelledby': title },
      h('h3', { id: title }, 'Summary'),
      h('p', null, `${judged.length} of ${count(documents.length, 'document')} judged, ${relevant} related or relevant.`),
      h('ol', null, rows),
      h('div', { class: 'judge-actions' },
        button(withKey('n', following === null ? 'All questions' : 'Next question'), next, { class: 'strong', 'aria-keyshortcuts': 'n' }),
        left >= 0 && button('Judge what was skipped', () => inTurn(() => show(left))),
        button(withKey('←', 'Back'), back, { class: 'quiet', 'aria-keyshortcuts': 'ArrowLeft' }),
        button(withKey('u', 'Undo'), undo, { class: 'quiet', 'aria-keyshortcuts': 'u' })));
  }

  const head = h('header', { class: 'judge-head' },
    h('div', { class: 'judge-line' }, progress, button('All questions', () => onquestion(null), { class: 'quiet' })),
    bar,
    h('h2', null, question),
    documents.length > 1 && h('p', { class: 'note' }, 'The documents come in random order, so that their order does not sway you.'));
  if (!documents.length) {
    progress.textContent = `${others} of ${count(total, 'question')} judged`;
    return [head, message('info', 'Nothing to judge', ['No ranking finds a document for this question.'], button('Next question', next))];
  }
  const once = (act) => (event) => { if (!event.repeat) act(); };
  const grading = (grade) => once(() => { if (at < documents.length) judge(grade); });

  /** Show the first document, when all is on the page. */
  function start() {
    if (!place.isConnected) return;
    useKeys([
      { label: '0, 1, 2, 3', text: `grade the document: ${GRADES.join(', ')}`, acts: { 0: grading(0), 1: grading(1), 2: grading(2), 3: grading(3) } },
      { label: 's, →', text: 'skip the document', acts: { s: once(skip), ArrowRight: once(skip) } },
      { label: '←', text: 'back to the document before', acts: { ArrowLeft: once(back) } },
      { label: 'u', text: 'undo the last grade', acts: { u: once(undo) } },
      { label: 'c', text: 'write a comment', acts: { c: once(write) } },
      { label: 'o', text: 'the whole document, or less', acts: { o: once(whole) } },
      { label: 'n', text: 'next question', acts: { n: once(next) } },
    ]);
    const named = documents.findIndex((own) => own.docid === open);
    const first = unjudged();
    const usual = first < 0 ? documents.length : first;
    show(named >= 0 ? named : usual, { takesFocus: focus });
  }

  setTimeout(start);
  return [head, problem, place];
}
