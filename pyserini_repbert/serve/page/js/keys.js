// Keys: / to the question, j and k through the hits, ? for the list. They can be switched off, as WCAG 2.1.4 demands.

import { byId, h, keep, openDialog, stored } from './dom.js';

/** The keys of a search, each {label, text, acts: {KEY: function(event)}}. */
export const SEARCH_KEYS = [
  { label: '/', text: 'go to the question', acts: { '/': toQuestion } },
  { label: 'j, k', text: 'next and previous hit', acts: { j: () => move(1), k: () => move(-1) } },
  { label: 'Enter', text: 'on a hit: why it is there', acts: {} },
];
/** The keys of a document that is read, each with how far it goes. */
export const READER_KEYS = [
  { label: 'n', text: 'next match', key: 'n', step: 1 },
  { label: 'p', text: 'previous match', key: 'p', step: -1 },
];
const COMMON_KEYS = [
  { label: 'Esc', text: 'leave the box that you write in, close what is open', acts: {} },
  { label: '?', text: 'show this list', acts: { '?': openKeys } },
];
let keys = [...SEARCH_KEYS, ...COMMON_KEYS];

/** Make keys work on the page, beside the keys that every view has. */
export function useKeys(own) {
  keys = [...own, ...COMMON_KEYS];
}

function on() {
  return stored('localStorage', 'keys') !== 'off';
}

/** Show the keys, and the switch that turns them off. */
export function openKeys() {
  const check = h('input', { type: 'checkbox', checked: on(),
    onchange: (event) => keep('localStorage', 'keys', event.target.checked ? 'on' : 'off') });
  openDialog('Keyboard shortcuts', h('dl', { class: 'keys' }, keys.flatMap(({ label, text }) => [h('dt', null, h('kbd', null, label)), h('dd', null, text)])),
    h('label', { class: 'switch' }, check, ' Use these keys'));
}

function toQuestion() {
  byId('q').focus();
  byId('q').select();
}

function move(step) {
  const hits = [...document.querySelectorAll('.hit, .pair-list[aria-label] .pair-row > button')];
  if (!hits.length) return;
  const now = hits.findIndex((own) => own.contains(document.activeElement));
  const next = hits[now < 0 ? (step > 0 ? 0 : hits.length - 1) : Math.min(Math.max(now + step, 0), hits.length - 1)];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

/** Handle the keys, on the whole page. */
export function listen() {
  document.addEventListener('keydown', (event) => {
    const typing = /^(?:input|textarea|select)$/i.test(event.target.tagName) && !/^(?:checkbox|radio|range|button)$/.test(event.target.type);
    if (event.key === 'Escape' && event.target.id === 'q') event.target.blur();
    if (typing || byId('dialog').open || event.ctrlKey || event.metaKey || event.altKey || !on()) return;
    const act = keys.map((own) => own.acts[event.key]).find(Boolean);
    if (!act) return;
    event.preventDefault();
    act(event);
  });
}
