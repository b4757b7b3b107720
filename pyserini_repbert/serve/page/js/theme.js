// Sets the theme that was chosen earlier before anything is drawn; a module would run too late.
'use strict';
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem('theme');
  } catch {
    // Storage is forbidden: the system's theme stays.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
