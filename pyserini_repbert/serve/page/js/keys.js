// Keys: / to the question, j and k through the hits, ? for the list. They can be switched off, as WCAG 2.1.4 demands.

import { byId, h, keep, openDialog, stored } from './dom.js';

const KEYS = [['/', 'to the question'], ['j, k', 'next and previous hit'], ['Enter', 'on a hit: why it is there'],
  ['Esc', 'leaves the question, closes'], ['?', 'this list']];

function on() {
  return stored('localStorage', 'keys') !== 'off';
}

/** Show the keys, and the switch that turns them off. */
export function openKeys() {
  const check = h('input', { type: 'checkbox', checked: on(),
    onchange: (event) => keep('localStorage', 'keys', event.target.checked ? 'on' : 'off') });
  openDialog('Keys', h('dl', { class: 'keys' }, KEYS.flatMap(([key, text]) => [h('dt', null, h('kbd', null, key)), h('dd', null, text)])),
    h('label', { class: 'switch' }, check, ' Single keys do this'));
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
    const act = { '/': () => { byId('q').focus(); byId('q').select(); }, j: () => move(1), k: () => move(-1), '?': openKeys }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
