// The four grades: buttons, marks, and the grades of hits in a search.

import { button, h, say } from './dom.js';
import { storeJudgment, withdrawJudgment } from './judgments.js';
import { docidText } from './words.js';

/** What the grades mean, from 0. */
export const GRADES = ['not relevant', 'related', 'relevant', 'perfectly relevant'];

/** A mark of a grade that this judge gave. */
export function gradeMark(grade) {
  return h('span', { class: `badge${grade > 0 ? ' good' : ''}` }, `you: ${grade} ${GRADES[grade]}`);
}

/**
 * The buttons of the grades as a group, whose name is `label`.
 * chosen: the grade given, or null; onchoose(grade) is called for a press; isShort: the figures alone are shown.
 */
export function gradeButtons({ label, chosen, onchoose, isShort = false }) {
  const buttons = GRADES.map((meaning, grade) => button(isShort ? String(grade) : [h('kbd', null, String(grade)), ` ${meaning}`], () => onchoose(grade), {
    'data-grade': String(grade), 'aria-pressed': String(grade === chosen),
    'aria-label': isShort ? `${grade} ${meaning}` : null, title: isShort ? meaning : null }));
  return h('div', { class: 'grades', role: 'group', 'aria-label': label }, buttons);
}

/** Press the button of a grade of the hit that has the focus. */
function gradeFocused(event) {
  document.activeElement.closest('.hit')?.querySelector(`[data-grade="${event.key}"]`)?.click();
}

/** The keys of hits that can be judged. */
export const HIT_KEYS = [{ label: '0, 1, 2, 3', text: 'on a hit: grade it', acts: { 0: gradeFocused, 1: gradeFocused, 2: gradeFocused, 3: gradeFocused } }];

/** What this judge thinks of a hit {mark, row}: a mark, and a row of buttons that change it; judgment: the one there is, or undefined. */
export function hitGrade({ about, question, docid, judgment }) {
  const mark = h('span', { class: 'own-grade' });
  const row = h('div', { class: 'hit-grade' });
  let given = judgment ?? null;

  async function choose(grade) {
    try {
      if (given?.grade === grade) {
        await withdrawJudgment(about, { question, docid });
        given = null;
        say(`Grade of ${docidText(docid)} taken back`);
      } else {
        const next = { question, docid, grade, comment: given?.comment ?? '', pool: given?.pool ?? null };
        await storeJudgment(about, next);
        given = next;
        say(`${docidText(docid)}: ${grade} ${GRADES[grade]}`);
      }
      draw();
    } catch (error) {
      row.querySelector('.note').textContent = error.message;
      say(error.message);
    }
  }

  function draw() {
    const focused = row.contains(document.activeElement) ? document.activeElement.dataset.grade : null;
    mark.replaceChildren(...(given ? [gradeMark(given.grade)] : []));
    const buttons = gradeButtons({ label: `Your grade of ${docidText(docid)}`, chosen: given?.grade ?? null, onchoose: choose, isShort: true });
    const older = given?.is_older ? 'The document has changed since.' : '';
    row.replaceChildren(h('span', { class: 'soft', 'aria-hidden': 'true' }, 'Your grade'), buttons, h('span', { class: 'note' }, older));
    row.querySelector(`[data-grade="${focused}"]`)?.focus();
  }

  draw();
  return { mark, row };
}
