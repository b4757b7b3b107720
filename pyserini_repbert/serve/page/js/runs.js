// Two run files and judgments: means, the largest wins and losses, and each topic's two rankings with their passages.

import { address, ask } from './api.js';
import { freshId, h, svg } from './dom.js';
import { openPassage, sideBySide } from './compare.js';
import { button, during, message } from './messages.js';
import { count, measure, signed, whole } from './words.js';

const MEASURES = ['nDCG@10', 'MRR@10', 'R@100', 'R@1000', 'AP'];
const SHOWN = 10; // hits of a topic's rankings
const LISTED = 10; // topics of a list at first
const AT_ONCE = 6; // passages fetched at a time

const kept = { a: null, b: null, qrels: null, from: 'index' };

/** The text of a file, unpacked where its name ends in .gz. */
async function textOf(file) {
  if (!file.name.endsWith('.gz')) return file.text();
  return new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

function chooser(label, name, about) {
  const id = freshId('file');
  const told = h('span', { class: 'soft' }, kept[name] ? kept[name].name : about);
  const field = h('input', { id, type: 'file', onchange: (event) => {
    kept[name] = event.target.files[0] ?? kept[name];
    told.textContent = ''; // the field shows the file's name
  } });
  return h('div', { class: 'field file' }, h('label', { htmlFor: id }, label), field, told);
}

/** The elements of the view: a form, and the place of its results. */
export function runsView({ about, state, go, dialog }) {
  const place = h('div', { class: 'runs-found' });
  const [ofMeasure, ofQrels] = [freshId('measure'), freshId('qrels')];
  const chosen = state.measure || MEASURES[0];
  const offered = MEASURES.includes(chosen) ? MEASURES : [chosen, ...MEASURES];
  if (!about.judged_topics) kept.from = 'file';
  const qrels = chooser('Qrels file', 'qrels', 'none yet');
  qrels.hidden = kept.from === 'index';
  const sources = [...(about.judged_topics ? [['index', `of ${about.name} (${count(about.judged_topics, 'topic')})`]] : []), ['file', 'a qrels file']];
  const form = h('form', { class: 'runs-form', onsubmit: (event) => { event.preventDefault(); evaluate(); } },
    chooser('Run A, the baseline', 'a', 'TREC or MS MARCO form, .gz too'), chooser('Run B', 'b', 'its rival'),
    h('div', { class: 'field' }, h('label', { htmlFor: ofQrels }, 'Judgments'),
      h('select', { id: ofQrels, onchange: (event) => { kept.from = event.target.value; qrels.hidden = kept.from === 'index'; } },
        sources.map(([value, text]) => h('option', { value, selected: value === kept.from }, text)))), qrels,
    h('div', { class: 'field' }, h('label', { htmlFor: ofMeasure }, 'Measure'),
      h('select', { id: ofMeasure, onchange: (event) => go({ ...state, measure: event.target.value, topic: '' }) },
        offered.map((own) => h('option', { value: own, selected: own === chosen }, own)))),
    h('button', { type: 'submit', class: 'strong' }, 'Evaluate'));

  function evaluate() {
    if (!kept.a || !kept.b || (kept.from === 'file' && !kept.qrels)) {
      place.replaceChildren(message('info', 'Something is missing', [`Choose ${[!kept.a && 'run A', !kept.b && 'run B',
        kept.from === 'file' && !kept.qrels && 'the qrels'].filter(Boolean).join(', ')}.`]));
      return;
    }
    during(place, 'The runs are evaluated', async (how) => {
      const names = kept.a.name === kept.b.name ? [`A ${kept.a.name}`, `B ${kept.b.name}`] : [kept.a.name, kept.b.name];
      const texts = await Promise.all([kept.a, kept.b].map(textOf));
      const judgments = kept.from === 'index' ? { index: about.name } : { qrels: await textOf(kept.qrels) };
      const body = { runs: texts.map((text, own) => ({ name: names[own], text })), measures: [chosen], show: SHOWN, ...judgments };
      const found = await ask(address(['evaluate']), { body, ...how });
      return evaluated({ found, names, about, state, go, dialog });
    }, { retry: evaluate, announce: () => 'The runs are evaluated' });
  }

  if (kept.a && kept.b) evaluate();
  else place.append(message('info', 'Which of two runs is better, and where?', [
    'Choose two run files. Their mean is shown with a t-test, and the topics with the largest differences first; a topic opens '
    + 'both rankings with their passages. The files go to this service and nowhere else.']));
  return [form, place];
}

function means(found, names) {
  const [name] = found.measures;
  const test = found.comparisons.find((own) => own.measure === name);
  const values = found.runs.map((own) => own.means[name]);
  const rows = names.map((own, place) => h('tr', null, h('th', { scope: 'row' }, `${'AB'[place]}: ${own}`),
    h('td', null, measure(values[place])), h('td', { class: 'soft' }, whole(found.runs[place].topics_without_hits))));
  const head = ['run', name, 'topics without hits'].map((own) => h('th', { scope: 'col' }, own));
  const said = test ? `B − A = ${signed(test.difference)}: ${whole(test.wins)} better, ${whole(test.losses)} worse, `
    + `${whole(test.ties)} the same${test.p === null ? '' : `; p = ${test.p < 0.001 ? '< 0.001' : test.p.toFixed(3)} (paired t-test)`}.` : '';
  return [h('table', { class: 'figures' }, h('caption', null, `${count(found.judged_topics, 'judged topic')}`), h('thead', null, h('tr', null, head)),
    h('tbody', null, rows)), h('p', { class: 'lead' }, said)];
}

/** A bar for each topic on which the runs differ, from the largest win to the largest loss. */
function chart(topics, name, onchoose) {
  const sorted = topics.filter((own) => own.difference).sort((one, other) => other.difference - one.difference);
  if (!sorted.length) return h('p', { class: 'note' }, 'Both runs have the same value on every topic.');
  const wide = 1000, half = 70, step = wide / Math.max(sorted.length, 1);
  const most = Math.max(...sorted.map((own) => Math.abs(own.difference)), 1e-9);
  const bars = sorted.map((own, place) => {
    const high = (Math.abs(own.difference) / most) * (half - 4);
    return svg('rect', { class: own.difference > 0 ? 'win' : 'loss', x: place * step, y: own.difference > 0 ? half - high : half,
      width: Math.max(step - (step > 4 ? 1 : 0), 0.5), height: Math.max(high, 0.6), onclick: () => onchoose(own.qid) },
    svg('title', null, `${own.qid} ${own.text ?? ''}: ${signed(own.difference)}`));
  });
  return svg('svg', { class: 'chart', viewBox: `0 0 ${wide} ${2 * half}`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${name} of B minus A, a bar for each topic on which they differ` }, bars, svg('line', { class: 'axis', x1: 0, x2: wide, y1: half, y2: half }));
}

function topicList(title, topics, state, onchoose) {
  const list = h('ol', { class: 'topics' });
  let shown = LISTED;
  const more = button('More', () => { shown += 5 * LISTED; draw(); }, { class: 'quiet' });
  function draw() {
    list.replaceChildren(...topics.slice(0, shown).map((own) => h('li', null,
      h('button', { type: 'button', 'aria-current': own.qid === state.topic ? 'true' : 'false', onclick: () => onchoose(own.qid) },
        h('span', { class: own.difference > 0 ? 'up' : 'down' }, signed(own.difference)), h('span', { class: 'docid' }, own.qid),
        h('span', null, own.text ?? '')))));
    more.hidden = shown >= topics.length;
  }
  draw();
  return h('section', null, h('h2', null, title), topics.length ? [list, more] : h('p', { class: 'note' }, 'None'));
}

function evaluated({ found, names, about, state, go, dialog }) {
  const place = h('div', { class: 'topic-found', tabindex: '-1' });
  const choose = (qid) => { go({ ...state, topic: qid }, { quiet: true }); state = { ...state, topic: qid }; show(qid); };
  const wins = found.topics.filter((own) => own.difference > 0);
  const losses = found.topics.filter((own) => own.difference < 0);
  function show(qid) {
    const topic = found.topics.find((own) => own.qid === qid);
    if (!topic) return place.replaceChildren(message('bad', `Topic ${qid} is not judged`));
    const hits = names.map((own) => topic.rankings[own].map((hit) => ({ ...hit, display: [{ text: '', match: false }] })));
    const head = h('h2', null, `${qid}${topic.text ? `: ${topic.text}` : ''}`);
    const [name] = found.measures;
    const line = h('p', { class: 'lead' }, `${name}: A ${measure(topic.values[names[0]][name])}, B ${measure(topic.values[names[1]][name])}; `
      + `${count(topic.relevant, 'passage')} judged relevant.`);
    const draw = () => place.replaceChildren(head, line, sideBySide(hits[0], hits[1], names, (hit) => openPassage(dialog, hit, [], about.fusions)));
    draw();
    place.scrollIntoView({ block: 'nearest' });
    fetchPassages(about, hits.flat(), topic.text).then(draw);
    return undefined;
  }
  if (state.topic) setTimeout(() => show(state.topic));
  return [means(found, names), chart(found.topics, found.measures[0], choose),
    h('div', { class: 'lists' }, topicList('Largest wins of B', wins, state, choose), topicList('Largest losses of B', losses, state, choose)), place];
}

/** Fill in the passages of hits, a few at a time, or in place of one why it cannot be fetched. */
async function fetchPassages(about, hits, query) {
  const waiting = [...new Set(hits.map((own) => own.docid))];
  const found = new Map();
  async function work() {
    for (let docid = waiting.pop(); docid !== undefined; docid = waiting.pop()) {
      try {
        const parameters = [['display', 'true'], ...(query ? [['query', query]] : [])];
        const answer = await ask(address([about.name, 'doc', docid], parameters));
        found.set(docid, answer.display);
      } catch (error) {
        found.set(docid, [{ text: error.message, match: false }]);
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  for (const hit of hits) hit.display = found.get(hit.docid) ?? hit.display;
}
