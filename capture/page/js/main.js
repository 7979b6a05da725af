// main.js: which connection is shown, by the page's address.

const list = new List(), numbers = list.numbers();
const articles = new Map(), views = new Map(), models = new Map();

// articleOf returns the article of a connection, undefined if there is none. One that is folded is no element of the page yet.
function articleOf(number) {
  if (!articles.has(number) && numbers.includes(number)) {
    const folded = document.getElementById("c" + number + "-html");
    articles.set(number, folded ? unfolded(folded).firstElementChild : document.getElementById("c" + number));
  }
  return articles.get(number);
}

// modelOf returns the data of a connection, which is read the first time.
function modelOf(number) {
  if (!models.has(number)) models.set(number, load(articleOf(number)));
  return models.get(number);
}

// show shows one connection. Its data is read the first time.
function show(number) {
  const shown = articleOf(number);
  if (!shown.isConnected) document.getElementById("c" + number + "-html").replaceWith(shown);
  for (const article of document.querySelectorAll("article[data-connection]")) article.hidden = article !== shown;
  list.mark(number);
  if (!views.has(number)) views.set(number, new View(shown));
  return views.get(number);
}

// route goes to the page's address: #c3, #c3-f12 or #c3-p4711; #cs3 is a session over SCTP.
function route() {
  const [, number, part, index] = /^#c(s?\d+)(?:-([fp])(\d+))?$/.exec(location.hash) || [];
  if (numbers.length === 0) return;
  const wanted = articleOf(number) ? number : numbers[0]; // the worst is the first
  const view = show(wanted);
  if (part === "f") view.showFinding(Number(index));
  else if (part === "p") view.select(Number(index));
  else if (number !== undefined) articleOf(wanted).scrollIntoView();
}

searchField(numbers, () => [...views].find(([number]) => !articleOf(number).hidden));
window.addEventListener("hashchange", route);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const view of views.values()) view.strips.forEach((t) => t.redraw());
});
route();
document.documentElement.dataset.ready = "true";
