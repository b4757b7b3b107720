// The search on the page as a command to copy: for curl, and for this package's command line.

import { address } from './api.js';
import { button, h, openDialog } from './dom.js';
import { comparisonBody, exactOf, filterParameters, pipelineParameters, pipelinesOf, scanOf, settingsOf, systemsOf } from './state.js';

/** Rankings without vectors, which no scan finds. */
const OF_TERMS = ['bm25', 'sparse'];

/** A text as one word of a shell command, quoted if it has to be. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command for curl. */
export function asCurl(state) {
  if (state.view === 'compare') {
    return `curl -H 'Content-Type: application/json' ${quoted(address([state.index, 'compare']))} \\\n  -d ${quoted(JSON.stringify(comparisonBody(state)))}`;
  }
  const parameters = [['query', state.q], ['hits', state.hits], ...filterParameters(state), ...pipelineParameters(state.a)]
    .map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`);
  return [`curl -G ${quoted(address([state.index, 'search']))}`, ...parameters].join(' \\\n  ');
}

/** The command of this package; null if its flags cannot give the order of the systems. */
export function asCommand(state, about, pipeline) {
  const systems = systemsOf(about, pipeline);
  if (about.index_type === 'collection') {
    const words = collectionWords(about, systems);
    return words && commandOf(state, pipeline, words);
  }
  const dense = systems.filter((own) => exactOf(about, own) === 'dense');
  const place = systems.indexOf(dense[0]);
  if (dense.length > 1 || (place > 0 && place < systems.length - 1)) return null;
  const words = ['python -m pyserini_repbert.search'];
  if (dense.length) words.push(`--index ${quoted(about.name)}`);
  if (dense.length && about.encoder) words.push(`--encoder ${quoted(about.encoder)}`);
  words.push(...flagsOf(about, dense));
  const beside = about.base_index ? `@${about.base_index}` : dense.length ? '' : `@${about.name}`;
  words.push(...systems.filter((own) => !dense.includes(own)).map((own) => `--sparse ${quoted(own + beside)}`));
  if (place > 0) words.push('--sparse-first');
  return commandOf(state, pipeline, words);
}

/** What the command searches of a collection; null where some of its vectors are searched exactly, and others are not. */
function collectionWords(about, systems) {
  const words = ['python -m pyserini_repbert.search', `--index ${quoted(about.name)}`];
  if (String(systems) !== String(about.default)) words.push(`--rankings ${systems.map((own) => exactOf(about, own)).join(' ')}`);
  const ofVectors = systems.filter((own) => !OF_TERMS.includes(own));
  const scanned = ofVectors.filter((own) => scanOf(about, own));
  if (scanned.length && scanned.length < ofVectors.length) return null;
  words.push(...flagsOf(about, scanned));
  return words;
}

/** The flag of the scan that finds the hits of these systems; none of exact search. */
function flagsOf(about, systems) {
  return systems.slice(0, 1).flatMap((own) => scanOf(about, own)?.flag ?? []);
}

/** The command that begins with `words`. */
function commandOf(state, pipeline, words) {
  const fusion = settingsOf(pipeline).filter(([name]) => name !== 'system' && name !== 'rerank');
  words.push(...fusion.map(([name, value]) => `--${name.replace('_', '-')} ${[value].flat().join(' ')}`));
  if (state.filter) words.push(`--filter ${quoted(state.filter)}`);
  words.push(...pipeline.rerank.map((own) => `--rerank ${quoted(own)}`), `--hits ${state.hits}`, `--query ${quoted(state.q)}`);
  return words.join(' \\\n  ');
}

function block(title, text) {
  const code = h('pre', { tabindex: '0', 'aria-label': title }, text);
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(code);
      copy.textContent = 'Selected: press Ctrl-C';
    }
  }, { class: 'quiet', 'aria-label': `Copy ${title}` });
  return h('section', { class: 'copy' }, h('h3', null, title), copy, code);
}

/** Show the commands for a state in the dialog. */
export function openCommands(state, about) {
  const commands = pipelinesOf(state).map((own) => asCommand(state, about, own));
  openDialog('The same elsewhere', block('curl', asCurl(state)),
    commands.every(Boolean) ? block('Command line', commands.join('\n\n'))
      : h('p', { class: 'note' }, 'No command line fuses the systems in this order.'),
    h('p', { class: 'note' }, `The command line takes ${about.name} as an index folder or a catalog name where it runs.`));
}
