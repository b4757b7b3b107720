// Reranking stages: NAME@K or NAME@K:METHOD.

export const METHODS = ['sum', 'binary', 'min', 'max', 'sample'];
const SAMPLES = 3;

/** {name, k, method, samples} of a stage such as 'duobert-demo@5:sample=2'; a malformed part is left to the service. */
export function parseStage(text) {
  const [head, options = ''] = text.split(/:(.*)/s, 2);
  const at = head.lastIndexOf('@');
  const stage = { name: at < 0 ? head : head.slice(0, at), k: Number(at < 0 ? 10 : head.slice(at + 1)) };
  for (const option of options.split(',').filter(Boolean)) {
    const [key, value] = option.split('=');
    if (key === 'sample') Object.assign(stage, { method: 'sample', samples: Number(value) || SAMPLES });
    else if (key === 'method') stage.method = value;
    else if (METHODS.includes(key)) stage.method = key;
  }
  return stage;
}

/** The text of a stage. */
export function stageText(stage) {
  const method = stage.method && stage.method !== 'sum' ? stage.method : '';
  const option = method === 'sample' ? `sample=${stage.samples ?? SAMPLES}` : method;
  return `${stage.name}@${stage.k}${option ? `:${option}` : ''}`;
}

/** The system of a reranker; undefined for one that the service lacks. */
export function systemOf(about, name) {
  return about.rerankers.find((own) => own.name === name)?.system;
}
