// Why a hit is where it is: a tab for each kind of reranker, loaded when it is chosen.

import { address, ask } from './api.js';
import { freshId, h } from './dom.js';
import { cedrView } from './cedr.js';
import { epicView } from './epic.js';
import { during } from './messages.js';
import { pairsView } from './pairs.js';
import { scoresView } from './scores.js';
import { tablesView } from './tables.js';

const VIEWS = {
  epic: { title: 'Terms', name: 'EPIC', view: epicView },
  cedr: { title: 'Similarities', name: 'CEDR', view: cedrView },
  duobert: { title: 'Pairs', name: 'duoBERT', view: pairsView },
  monobert: { title: 'Scores', name: 'monoBERT', view: scoresView },
  'sparse-encoder': { title: 'Terms', name: 'SparseEncoder', view: epicView },
};

/** The view of a system: its own, or the one of every other. */
function viewOf(system) {
  return VIEWS[system] ?? { title: 'Scores', name: system, view: tablesView };
}

/** The panel of a hit; chosen: the tab that is open at first; onchoose(name) is called when another is chosen. */
export function whyPanel({ about, answer, hit, chosen, onchoose }) {
  const present = [...new Set(about.rerankers.map((own) => own.system))];
  const known = Object.keys(VIEWS).filter((system) => present.includes(system));
  const offered = [...known, ...present.filter((system) => !known.includes(system))];
  const panel = h('div', { role: 'tabpanel', id: freshId('panel'), class: 'why-panel', tabindex: '0' });
  const explain = (model, docids, more, how) => ask(address([about.name, 'explain'],
    [['query', answer.query.text], ['model', model], ...docids.map((own) => ['docid', own]), ...more]), how);
  let stop = () => {};

  /** The docids of the best n hits, this one among them. */
  function best(n) {
    const docids = answer.candidates.slice(0, Math.min(n, about.limits.rerank_depth)).map((own) => own.docid);
    return docids.includes(hit.docid) ? docids : [...docids.slice(0, -1), hit.docid];
  }

  function load(label, work, options) {
    stop = during(panel, label, work, { retry: () => load(label, work, options), ...options });
  }

  function show(system) {
    stop();
    tabs.forEach((own) => {
      const now = own.dataset.why === system;
      own.setAttribute('aria-selected', String(now));
      own.tabIndex = now ? 0 : -1;
      if (now) panel.setAttribute('aria-labelledby', own.id);
    });
    const models = about.rerankers.filter((own) => own.system === system).map((own) => own.name);
    panel.replaceChildren();
    viewOf(system).view({ answer, hit, models, explain, load, best, panel });
  }

  const tabs = offered.map((system) => h('button', { type: 'button', role: 'tab', id: freshId('tab'), 'data-why': system,
    'aria-controls': panel.id, 'aria-selected': 'false',
    onclick: () => { show(system); onchoose(system); },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    } }, viewOf(system).title, h('span', { class: 'soft' }, ` ${viewOf(system).name}`)));
  show(offered.includes(chosen) ? chosen : offered[0]);
  return h('div', { class: 'why' }, h('div', { role: 'tablist', 'aria-label': `Why ${hit.docid} is here` }, tabs), panel);
}
