// Runs before the first paint: the theme and the density that were chosen, and a word where the
// page cannot run. The page says by an event of its own that it changed the choice; the browser
// says it of other tabs.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    let chosen = {};
    try {
      chosen = JSON.parse(localStorage.getItem("svc.prefs"))?.prefs ?? {};
    } catch {
      // Nothing chosen, or no storage: the page follows the system.
    }
    let theme = chosen.theme;
    if (theme !== "light" && theme !== "dark") theme = dark.matches ? "dark" : "light";
    root.dataset.theme = theme;
    root.dataset.density = chosen.density ?? "";
  };
  paint();
  dark.addEventListener("change", paint);
  addEventListener("storage", paint);
  addEventListener("svc-theme", paint);
  if (typeof WebAssembly !== "object") root.classList.add("no-wasm");
})();
