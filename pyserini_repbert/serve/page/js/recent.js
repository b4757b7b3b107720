// The questions that were asked last, in this browser alone.

import { keep, stored } from './dom.js';

const MOST = 6;
const LONGEST = 200; // characters
const nameOf = (index) => `recent.${index}`;

/** The questions that an index was asked last, the newest first. */
export function recentQuestions(index) {
  try {
    const questions = JSON.parse(stored('localStorage', nameOf(index)) ?? '[]');
    return Array.isArray(questions) ? questions.filter((own) => typeof own === 'string').slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** Keep a question that an index was asked. */
export function remember(index, question) {
  const text = question.trim();
  if (!text || text.length > LONGEST) return;
  const others = recentQuestions(index).filter((own) => own !== text);
  keep('localStorage', nameOf(index), JSON.stringify([text, ...others].slice(0, MOST)));
}
