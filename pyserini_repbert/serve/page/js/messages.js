// Messages in place of results: progress, and each way in which a request can fail, with what to do about it.

import { Refusal } from './api.js';
import { button, field, h, keep, say } from './dom.js';
import { duration, sentence, whole } from './words.js';

const SHOWN_AFTER = 300; // ms before progress is shown
const TIMED_AFTER = 1000; // ms before its time is shown

/** A box with a heading, paragraphs and buttons. */
export function message(kind, title, paragraphs = [], ...more) {
  return h('div', { class: `message ${kind}` }, h('h2', null, title), paragraphs.map((own) => h('p', null, own)), more);
}

/**
 * Do some work, with progress shown in `place` until the result or an error replaces it.
 * work({tell, signal}) -> a promise of elements; total: its model inputs, if known; retry() does it again;
 * announce() -> what screen readers are told at the end. Returns a function that gives the work up.
 */
export function during(place, label, work, { retry, total = null, announce = null }) {
  const stop = new AbortController();
  const start = performance.now();
  const bar = h('progress', { 'aria-label': label, max: 1 });
  const told = h('span', { class: 'told note' }, label);
  const box = h('div', { class: 'waiting', hidden: true }, bar, told, button('Stop', () => stop.abort(), { class: 'quiet' }));
  place.setAttribute('aria-busy', 'true');
  for (const own of place.children) own.classList.add('stale');
  place.prepend(box);
  let stage = null;
  const draw = () => {
    const passed = performance.now() - start;
    box.hidden = passed < SHOWN_AFTER;
    const all = stage?.total ?? total;
    if (stage && all) bar.value = Math.min(1, stage.done / all);
    const counted = stage ? `${stage.stage}: ${whole(stage.done)}${all ? ` of ${whole(all)}` : ''} inferences` : label;
    told.textContent = passed < TIMED_AFTER ? counted : `${counted}, ${duration(Math.floor(passed / 1000) * 1000)}`;
  };
  const timer = setInterval(draw, 150);
  work({ tell: (now) => { stage = now; }, signal: stop.signal })
    .then((elements) => {
      if (stop.superseded) return;
      place.replaceChildren(...[elements].flat(Infinity).filter(Boolean));
      if (announce) say(announce());
    })
    .catch((error) => {
      if (!stop.superseded) place.replaceChildren(failure(error, retry));
    })
    .finally(() => {
      clearInterval(timer);
      if (!stop.superseded) place.removeAttribute('aria-busy');
    });
  return () => {
    stop.superseded = true;
    box.remove();
    stop.abort();
  };
}

/** The message for an error; `retry` does the work again. */
export function failure(error, retry) {
  const again = button('Try again', retry);
  if (error.name === 'AbortError') return message('info', 'Stopped', [], again);
  if (!(error instanceof Refusal)) {
    console.error(error);
    return message('bad', 'The page failed', [String(error.message ?? error)], again);
  }
  say(error.message);
  const told = sentence(error.message);
  const { kind, seconds } = error;
  if (kind === 'key') return keyForm(told, retry);
  if (kind === 'late') return message('bad', 'It took too long', [told], again);
  if (kind === 'failed') return message('bad', 'The service failed', [told], again);
  if (kind === 'refused') return message('bad', 'That cannot be answered', [told]);
  const [title, text] = {
    offline: ['The service cannot be reached', 'It was stopped, or the network is gone. This page goes on by itself when it is back.'],
    starting: ['The service is starting', told],
    busy: ['The service is busy', `Too many requests wait. Trying again in ${seconds} s.`],
  }[kind];
  return whenBack(retry, message(kind === 'offline' ? 'bad' : 'info', title, [text], again), seconds);
}

/** Ask after so many seconds and again every two, while the box is shown, whether the service is ready; then try again. */
function whenBack(retry, box, seconds) {
  const look = async () => {
    const isReady = await fetch('readyz', { cache: 'no-store' }).then((response) => response.ok, () => false);
    if (box.isConnected) isReady ? retry() : setTimeout(look, 2000);
  };
  setTimeout(look, 1000 * seconds);
  return box;
}

/** A form that asks for a key of the service. */
function keyForm(told, retry) {
  const input = h('input', { type: 'password', autocomplete: 'off' });
  const take = (event) => {
    event.preventDefault();
    const key = input.value.trim();
    const isKey = /^[!-~]+$/.test(key); // a header can hold nothing else
    input.setAttribute('aria-invalid', String(!isKey));
    if (!isKey) return;
    keep('sessionStorage', 'key', key);
    retry();
  };
  const form = h('form', { class: 'key', onsubmit: take }, field('Key', input, { class: 'key' }), h('button', { type: 'submit', class: 'strong' }, 'Use it'));
  return message('info', 'A key is needed', [told, 'It is kept for this tab only.'], form);
}
