// Rankings that an approximate index finds: each is the exact ranking with --ann.

import { addPart } from '../../js/parts.js';

addPart('scan', (about, system) => {
  const exact = about.approximate[system];
  return exact && { exact, flag: '--ann' };
});
addPart('kind', (name) => name === 'ann' && 'dense');
