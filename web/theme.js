// Runs before the first paint: the theme, and a word where the page cannot run. The page says by
// a storage event that it changed the choice, as the browser does for other tabs.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    let theme;
    try {
      theme = localStorage.getItem("svc.theme");
    } catch {
      // No storage: the page follows the system.
    }
    if (theme !== "light" && theme !== "dark") theme = dark.matches ? "dark" : "light";
    root.dataset.theme = theme;
  };
  paint();
  dark.addEventListener("change", paint);
  addEventListener("storage", paint);
  if (typeof WebAssembly !== "object") root.classList.add("no-wasm");
})();
