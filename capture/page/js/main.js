// main.js: which connection is shown, by the page's address.

const articles = new Map([...document.querySelectorAll("article[data-connection]")].map((a) => [a.dataset.connection, a]));
const views = new Map();

// show shows one connection. Its data is read the first time.
function show(number) {
  for (const [n, article] of articles) article.hidden = n !== number;
  for (const row of document.querySelectorAll("#connections tr[data-connection]")) {
    if (row.dataset.connection === number) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
  }
  if (!views.has(number)) views.set(number, new View(articles.get(number)));
  return views.get(number);
}

// route goes to the page's address: #c3, #c3-f12 or #c3-p4711; #cs3 is a session over SCTP.
function route() {
  const [, number, part, index] = /^#c(s?\d+)(?:-([fp])(\d+))?$/.exec(location.hash) || [];
  const wanted = articles.has(number) ? number : articles.keys().next().value;
  if (wanted === undefined) return;
  const view = show(wanted);
  if (part === "f") view.showFinding(Number(index));
  else if (part === "p") view.select(Number(index));
  else if (number !== undefined) articles.get(wanted).scrollIntoView();
}

window.addEventListener("hashchange", route);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const view of views.values()) view.tracks.forEach((t) => t.redraw());
});
route();
document.documentElement.dataset.ready = "true";
