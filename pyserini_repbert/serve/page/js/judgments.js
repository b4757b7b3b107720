// Questions, pools and judgments of the service. The judge's name stays in this browser.

import { address, ask } from './api.js';
import { drop, keep, stored } from './dom.js';

const DEPTH = 5; // best hits of each ranking in a pool

let given = null;

/** The name that was given; '' for none, null before it was asked for. */
export function givenName() {
  return given ?? stored('localStorage', 'judge');
}

/** Judge under a name from now on; '' for none, null to be asked for it. */
export function keepName(name) {
  given = name;
  if (name === null) drop('localStorage', 'judge');
  else keep('localStorage', 'judge', name);
}

/** Who judges, for the service; '' for somebody without a name. */
export function judgeName() {
  return givenName() ?? '';
}

/** The questions to judge, in the order in which to judge them: {questions: [{text, judged, pooled}], total, judged}. */
export function questionsOf(about, { signal } = {}) {
  return ask(address([about.name, 'questions'], [['judge', judgeName()]]), { fresh: true, signal });
}

/** Add questions; the answer has the form of `questionsOf`. */
export function addQuestions(about, texts) {
  const url = address([about.name, 'questions'], [['judge', judgeName()]]);
  return ask(url, { body: { questions: texts }, fresh: true });
}

/** The pool of a question: {pool, documents}, each with the grade and comment of this judge. */
export function poolOf(about, question, { signal } = {}) {
  const body = { question, depth: DEPTH, judge: judgeName() };
  return ask(address([about.name, 'pools']), { body, fresh: true, signal });
}

/** What this judge has judged, of one question or of all: {judgments, agreement}. */
export function judgmentsOf(about, { question, signal } = {}) {
  const parameters = [['judge', judgeName()]];
  if (question !== undefined) parameters.push(['question', question]);
  return ask(address([about.name, 'judgments'], parameters), { fresh: true, signal });
}

/** Store a judgment {question, docid, grade, comment, pool}, in place of an earlier one. */
export function storeJudgment(about, judgment) {
  const body = { judgments: [{ ...judgment, judge: judgeName() }] };
  return ask(address([about.name, 'judgments']), { body, fresh: true });
}

/** Take a judgment back. */
export function withdrawJudgment(about, { question, docid }) {
  const url = address([about.name, 'judgments'], [['question', question], ['docid', docid], ['judge', judgeName()]]);
  return ask(url, { method: 'DELETE', fresh: true });
}

/** The address of all judgments as a file of a format: topics, qrels or jsonl. */
export function exportAddress(about, format) {
  return address([about.name, 'judgments'], [['format', format]]);
}
