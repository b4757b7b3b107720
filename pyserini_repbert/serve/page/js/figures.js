// A table of figures.

import { h } from './dom.js';

/** A table; the first cell of each row is its head. */
export function table(caption, heads, rows) {
  return h('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' },
    h('table', { class: 'figures' },
      h('caption', null, caption),
      h('thead', null, h('tr', null, heads.map((own) => h('th', { scope: 'col' }, own)))),
      h('tbody', null, rows.map(([first, ...others]) => h('tr', null, h('th', { scope: 'row' }, first), others.map((own) => h('td', null, own)))))));
}
