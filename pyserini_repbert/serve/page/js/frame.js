// What the reader's page and the laboratory have around their contents: theme, menu, choice of an index.

import { byId, h, keep } from './dom.js';

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = `Theme: ${theme}`;
}

/** Let the button of the theme change it. */
export function useTheme() {
  byId('theme').addEventListener('click', () => {
    const next = { auto: 'light', light: 'dark', dark: 'auto' }[document.documentElement.dataset.theme];
    keep('localStorage', 'theme', next);
    setTheme(next);
  });
  setTheme(document.documentElement.dataset.theme ?? 'auto');
}

/** Let buttons of the menu, by id, do something that opens the dialog. */
export function useMenu(actions) {
  for (const [id, open] of Object.entries(actions)) {
    byId(id).addEventListener('click', () => {
      const menu = document.querySelector('.menu');
      menu.open = false;
      menu.firstElementChild.focus(); // which gets the focus again when the dialog closes
      open();
    });
  }
  byId('dialog').addEventListener('click', (event) => { if (event.target.id === 'dialog') event.target.close(); });
}

/** Offer the indexes, without those that are a part of another one; returns those that are offered. about: the chosen one. */
export function fillIndexChoice(indexes, about) {
  const choice = byId('index');
  const helpers = new Set(indexes.map((own) => own.base_index));
  const offered = indexes.filter((own) => own === about || !helpers.has(own.name));
  choice.replaceChildren(...offered.map((own) => h('option', { value: own.name }, own.name)));
  choice.disabled = false;
  choice.parentElement.hidden = offered.length < 2;
  return offered;
}
