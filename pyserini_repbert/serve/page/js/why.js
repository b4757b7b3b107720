// Why a hit is where it is: a tab for each kind of reranker, loaded when it is chosen.

import { address, ask } from './api.js';
import { button, freshId, h } from './dom.js';
import { cedrView } from './cedr.js';
import { epicView } from './epic.js';
import { during } from './messages.js';
import { pairsView } from './pairs.js';
import { reasonsElements } from './reasons.js';
import { scoresView } from './scores.js';
import { tablesView } from './tables.js';
import { docidText } from './words.js';

const RANKINGS = 'rankings';
const VIEWS = {
  epic: { title: 'Terms', name: 'EPIC', view: epicView },
  cedr: { title: 'Similarities', name: 'CEDR', view: cedrView },
  duobert: { title: 'Pairs', name: 'duoBERT', view: pairsView },
  monobert: { title: 'Scores', name: 'monoBERT', view: scoresView },
  'sparse-encoder': { title: 'Terms', name: 'SparseEncoder', view: epicView },
};

/** Show why each ranking that was searched has the document. */
function rankingsView({ about, answer, hit, explain, load }) {
  load('Looking why', async (how) => {
    const told = await Promise.all(answer.system.map((name) => explain(name, [hit.docid], [], { signal: how.signal })));
    const state = { index: about.name, q: answer.query.text };
    return reasonsElements(told.flatMap((own) => own.reasons), state);
  });
}

/** The view of a system: its own, or the one of every other. */
function viewOf(system) {
  if (system === RANKINGS) return { title: 'Words', name: 'rankings', view: rankingsView };
  return VIEWS[system] ?? { title: 'Scores', name: system, view: tablesView };
}

/**
 * The panel of a hit: what ranked it, and other models on demand.
 * chosen: the tab that is open at first; onchoose(name) is called when another is chosen.
 */
export function whyPanel({ about, answer, hit, chosen, onchoose }) {
  const present = [...new Set(about.rerankers.map((own) => own.system))];
  const known = Object.keys(VIEWS).filter((system) => present.includes(system));
  const rerankers = [...known, ...present.filter((system) => !known.includes(system))];
  const ranked = new Set(answer.rerank.map((stage) => about.rerankers.find((own) => own.name === stage.split('@')[0])?.system));
  const own = about.documents === undefined ? [] : [RANKINGS];
  const offered = [...own, ...rerankers];
  const asked = [...own, ...rerankers.filter((system) => ranked.has(system) || system === chosen)];
  const first = asked.length ? asked : rerankers;
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
    viewOf(system).view({ about, answer, hit, models, explain, load, best, panel });
  }

  const tabs = offered.map((system) => h('button', { type: 'button', role: 'tab', id: freshId('tab'), 'data-why': system,
    'aria-controls': panel.id, 'aria-selected': 'false', hidden: !first.includes(system),
    onclick: () => { show(system); onchoose(system); },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shown = tabs.filter((one) => !one.hidden);
      const next = shown[(shown.indexOf(event.target) + step + shown.length) % shown.length];
      next.focus();
      next.click();
    } }, viewOf(system).title, h('span', { class: 'soft' }, ` ${viewOf(system).name}`)));
  const others = first.length < offered.length && button('Other models', () => {
    for (const tab of tabs) tab.hidden = false;
    others.remove();
    tabs.find((tab) => !first.includes(tab.dataset.why)).focus();
  }, { class: 'quiet' });
  show(offered.includes(chosen) ? chosen : first[0]);
  const list = h('div', { role: 'tablist', 'aria-label': `Why ${docidText(hit.docid)} is here` }, tabs);
  return h('div', { class: 'why' }, h('div', { class: 'why-models' }, list, others), panel);
}
