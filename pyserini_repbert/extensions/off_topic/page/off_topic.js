// Above the hits: what is said of a question that is not about the collection.

import { h } from '../../js/dom.js';
import { addPart } from '../../js/parts.js';

addPart('hits', (answer) => answer.off_topic && h('p', { class: 'note' }, 'This collection does not seem to be about that.'));
