// list.js: the list of connections. Only the rows that are seen are elements.

const MANY = 100; // rows, from which on not all are elements

// unfolded returns the elements in a noscript element, which is a text where there are scripts.
function unfolded(noscript) { return make("template", { innerHTML: noscript.textContent }).content; }

// A List has a row for each connection, the worst first. A field leaves those with a text.
class List {
  constructor() {
    this.nav = document.getElementById("connections");
    this.body = this.nav.querySelector("tbody");
    const more = document.getElementById("more");
    this.all = [...this.body.querySelectorAll("tr[data-connection]"), ...(more ? unfolded(more).querySelectorAll("tr") : [])];
    this.rows = this.all;
    this.height = 0; // of a row, where not all are elements
    if (this.all.length >= 10) this.filter();
    if (this.all.length <= MANY) return;
    this.height = this.all[0].offsetHeight;
    this.nav.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(this.nav);
  }
  numbers() { return this.all.map((row) => row.dataset.connection); }
  // mark marks the connection that is shown, and scrolls to it if the list has many.
  mark(number) {
    for (const row of this.all) {
      if (row.dataset.connection === number) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
    }
    const top = this.rows.findIndex((row) => row.dataset.connection === number) * this.height, { scrollTop, clientHeight } = this.nav;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * this.height) this.nav.scrollTop = top - clientHeight / 2;
  }
  filter() {
    const field = make("input", { type: "search", id: "only", "aria-label": "Only connections with", placeholder: "only connections with: address, dialect, error" });
    const said = make("span", { className: "quiet", role: "status" });
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      this.rows = this.all.filter((row) => row.textContent.toLowerCase().includes(wanted));
      said.textContent = this.rows.length === this.all.length ? "" : count(this.rows.length) + " of " + count(this.all.length);
      this.render();
    });
    document.querySelector("header").append(make("p", {}, field, " ", said));
  }
  // render makes elements of the rows that are seen, and empty ones as high as what is above and below.
  render() {
    this.rows.forEach((row, i) => row.setAttribute("aria-rowindex", i + 2)); // behind the head
    this.nav.querySelector("table").setAttribute("aria-rowcount", this.rows.length + 1);
    const n = this.rows.length, many = n > MANY;
    const first = many ? Math.min(Math.max(0, Math.floor(this.nav.scrollTop / this.height) - AROUND), n - 1) : 0;
    const end = many ? Math.min(n, Math.ceil((this.nav.scrollTop + this.nav.clientHeight) / this.height) + AROUND) : n;
    const empty = (rows) => {
      const row = make("tr", { "aria-hidden": "true" });
      row.style.height = rows * this.height + "px";
      return rows > 0 ? [row] : [];
    };
    this.body.replaceChildren(...empty(first), ...this.rows.slice(first, end), ...empty(n - end));
  }
}
