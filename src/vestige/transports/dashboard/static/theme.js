// Runs before the first paint: a chosen theme must not flash the other one.
const chosen = localStorage.getItem("vestige-theme");
if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
