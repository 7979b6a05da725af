// main.js: which connection is shown, by the page's address.

const articles = new Map([...document.querySelectorAll("article[data-connection]")].map((a) => [a.dataset.connection, a]));
const views = new Map(), models = new Map();

// modelOf returns the data of a connection, which is read the first time.
function modelOf(number) {
  if (!models.has(number)) models.set(number, load(articles.get(number)));
  return models.get(number);
}

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
  const rows = [...document.querySelectorAll("#connections tr[data-connection]")];
  if (rows.length === 0) return;
  const wanted = articles.has(number) ? number : rows[0].dataset.connection; // the worst is the first
  const view = show(wanted);
  if (part === "f") view.showFinding(Number(index));
  else if (part === "p") view.select(Number(index));
  else if (number !== undefined) articles.get(wanted).scrollIntoView();
}

connectionFilter();
searchField([...articles.keys()], () => [...views].find(([number]) => !articles.get(number).hidden));
window.addEventListener("hashchange", route);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const view of views.values()) view.strips.forEach((t) => t.redraw());
});
route();
document.documentElement.dataset.ready = "true";
