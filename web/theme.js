// Runs before the first paint: the chosen theme, and a word where the page cannot run.
(() => {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("svc.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // No storage: the page follows the system.
  }
  if (typeof WebAssembly !== "object") root.classList.add("no-wasm");
})();
