// Runs before anything is drawn, so that the page does not flash: auto follows the system.
(() => {
  const WORDS = { auto: "auto: colours as the system has them", light: "light colours", dark: "dark colours" };
  const kept = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  const keep = (theme) => {
    try { localStorage.setItem("theme", theme); } catch { /* a browser that keeps nothing */ }
  };
  let theme = kept() in WORDS ? kept() : "auto";
  const apply = () => { document.documentElement.dataset.theme = theme; };
  apply();
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme"), word = document.getElementById("theme-word");
    const show = () => {
      word.textContent = theme;
      button.setAttribute("aria-label", WORDS[theme]);
    };
    show();
    button.addEventListener("click", () => {
      const all = Object.keys(WORDS);
      theme = all[(all.indexOf(theme) + 1) % all.length];
      keep(theme);
      apply();
      show();
      dispatchEvent(new Event("theme"));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
  });
})();
