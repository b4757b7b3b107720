// Reranking stages: NAME@K or NAME@K:OPTIONS.

/** The options of duoBERT's aggregations; the first is its default, 'sum'. */
export const METHODS = ['', 'binary', 'min', 'max', 'sample=3'];

/** {name, k, options} of a stage such as 'duobert-demo@5:sample=2'; a malformed one is left to the service. */
export function parseStage(text) {
  const [, name, k, options = ''] = /^(.*)@(\d+)(?::(.*))?$/s.exec(text) ?? [text, text, 10];
  return { name, k: Number(k), options };
}

/** The text of a stage. */
export function stageText({ name, k, options }) {
  return `${name}@${k}${options && `:${options}`}`;
}

/** The system of a reranker; undefined for one that the service lacks. */
export function systemOf(about, name) {
  return about.rerankers.find((own) => own.name === name)?.system;
}
