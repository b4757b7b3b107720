// What the reader's page and the laboratory have around their contents: theme, menu, choice of an index, examples.

import { address, ask } from './api.js';
import { button, byId, h, keep } from './dom.js';
import { during, message } from './messages.js';

const EXAMPLES = 6;
const EXAMPLE_LENGTH = 60; // characters

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
  const menu = document.querySelector('.menu');
  document.addEventListener('click', (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !menu.open) return;
    menu.open = false;
    menu.firstElementChild.focus();
  });
  byId('dialog').addEventListener('click', (event) => { if (event.target.id === 'dialog') event.target.close(); });
}

/** Offer the indexes, without those that are a part of another one; returns those that are offered. about: the chosen one. */
function fillIndexChoice(indexes, about) {
  const choice = byId('index');
  const helpers = new Set(indexes.map((own) => own.base_index));
  const offered = indexes.filter((own) => own === about || !helpers.has(own.name));
  choice.replaceChildren(...offered.map((own) => h('option', { value: own.name }, own.name)));
  choice.disabled = false;
  choice.parentElement.hidden = offered.length < 2;
  return offered;
}

/** Ask what the indexes are, then call ondone(indexes). Returns a function that gives it up. */
export function loadIndexes(ondone) {
  return during(byId('found'), 'Opening', async (how) => {
    const { indexes } = await ask(address(['indexes']), how);
    setTimeout(ondone, 0, indexes);
    return [];
  }, { retry: () => loadIndexes(ondone) });
}

/** Questions or names as a list to choose from. */
export function exampleList(texts, onchoose) {
  return texts.map((text) => h('li', null, button(text, () => onchoose(text), { class: 'example' })));
}

/** The index of a name, or the first for '', shown as chosen; null, and a message, where there is none of this name. take(name): another is wanted. */
export function chosenIndex(indexes, name, take) {
  const named = indexes.find((own) => own.name === name) ?? null;
  const offered = fillIndexChoice(indexes, named);
  if (!named && name) {
    byId('found').replaceChildren(message('bad', `There is no index “${name}” here`, ['This service has:'],
      h('ul', { class: 'examples' }, exampleList(offered.map((own) => own.name), take))));
    return null;
  }
  const about = named ?? offered[0];
  byId('index').value = about.name;
  byId('q').maxLength = about.limits.query_characters;
  return about;
}

/** Fill a list with short questions of an index, if it has some; returns a promise of how many. onask(text): one is chosen. */
export async function fillExamples(list, about, onask) {
  if (!about.topics) return 0;
  try {
    const { topics } = await ask(address([about.name, 'topics'], [['limit', 12]]));
    const short = topics.map((own) => own.text).filter((text) => text.length <= EXAMPLE_LENGTH).slice(0, EXAMPLES);
    list.replaceChildren(...exampleList(short, onask));
    return short.length;
  } catch {
    return 0; // The page works without examples.
  }
}
