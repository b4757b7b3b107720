// Sets the theme that was chosen earlier before anything is drawn; a module would run too late.
try {
  document.documentElement.dataset.theme = localStorage.getItem('theme') ?? 'auto';
} catch {
  // Storage is forbidden: the system's theme stays.
}
