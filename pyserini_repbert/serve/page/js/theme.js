// Before anything is drawn: the theme that was chosen here earlier. Not a module, so that it does not wait.
'use strict';
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem('theme');
  } catch {
    // Storage may be forbidden; the system's theme is taken then.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
