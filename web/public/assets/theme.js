// Applies the chosen theme before the first paint. A blocking script of its own, because the
// content security policy allows no inline scripts.
(function () {
  var theme = null;
  try {
    theme = localStorage.getItem("clew-theme");
  } catch (_) {
    // Storage may be forbidden; the system's theme applies then.
  }
  if (theme !== "light" && theme !== "dark") return;
  document.documentElement.dataset.theme = theme;
  // Counts until the style sheet has come, so that the window does not flash in the other theme.
  document.documentElement.style.colorScheme = theme;
})();
