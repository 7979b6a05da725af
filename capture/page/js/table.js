// table.js: the FPDUs in rows. Only those that are seen are elements.

const ROW_HEIGHT = 22; // CSS pixels
const AROUND = 10; // rows above and below those that are seen

// A Table shows the rows that a filter lets through.
class Table {
  constructor(model, view) {
    Object.assign(this, { model, view });
    this.selected = -1;
    this.spacer = make("div", { className: "spacer", role: "presentation" });
    this.rows = make("div", { className: "rows", tabIndex: 0, role: "grid", "aria-label": "FPDUs", "aria-colcount": 7 }, this.spacer);
    this.shown = make("span", { className: "quiet", role: "status" });
    this.element = make("div", {}, this.filters(), make("div", { className: "sideways" }, this.heads(), this.rows));
    this.rows.addEventListener("scroll", () => this.render());
    this.rows.addEventListener("keydown", (e) => this.key(e));
    this.rows.addEventListener("click", (e) => {
      const row = e.target.closest("[data-fpdu]");
      if (row) this.view.select(Number(row.dataset.fpdu));
    });
    new ResizeObserver(() => this.render()).observe(this.rows);
    this.filter();
  }
  heads() {
    const names = ["row", "", "packet", "time/s", "offset", "size", "message"];
    return make("div", { className: "heads", "aria-hidden": "true" }, ...names.map((name) => make("span", {}, name)));
  }
  filters() {
    const { fpdus } = this.model, used = new Set();
    for (let i = 0; i < fpdus.count; i++) used.add(fpdus.opcode(i));
    const option = (value, text) => make("option", { value }, text);
    this.byDir = make("select", {}, option("", "both"), option("0", ARROWS[0]), option("1", ARROWS[1]));
    this.byOpcode = make("select", {}, option("", "all"),
      ...[...used].sort((a, b) => a - b).map((op) => option(String(op), op < 0 ? "no DDP header" : OPCODES[op])));
    this.onlyBad = make("input", { type: "checkbox" });
    for (const control of [this.byDir, this.byOpcode, this.onlyBad]) control.addEventListener("change", () => this.filter());
    return make("div", { className: "filters" },
      make("label", {}, "Direction ", this.byDir), make("label", {}, "Message ", this.byOpcode),
      make("label", {}, this.onlyBad, " only in error or cut"), this.shown);
  }
  // filter chooses the rows anew.
  filter() {
    const { fpdus } = this.model, dir = this.byDir.value, op = this.byOpcode.value, bad = this.onlyBad.checked;
    this.list = new Uint32Array(fpdus.count);
    let n = 0;
    for (let i = 0; i < fpdus.count; i++) {
      if ((dir === "" || fpdus.dir(i) === Number(dir)) && (op === "" || fpdus.opcode(i) === Number(op)) && (!bad || fpdus.isBad(i))) {
        this.list[n++] = i;
      }
    }
    this.list = this.list.subarray(0, n);
    this.shown.textContent = count(n) + " of " + count(fpdus.count) + " FPDUs";
    this.rows.setAttribute("aria-rowcount", n);
    this.spacer.style.height = n * ROW_HEIGHT + "px";
    this.render();
  }
  // place returns where a row of the data is in the list, -1 if it is not.
  place(i) {
    const at = lowerBound(this.list.length, i, (k) => this.list[k]);
    return this.list[at] === i ? at : -1;
  }
  // select marks a row and scrolls to it. A filter that hides it is lifted.
  select(i) {
    this.selected = i;
    if (this.place(i) < 0) {
      this.byDir.value = this.byOpcode.value = "";
      this.onlyBad.checked = false;
      this.filter();
    }
    const top = this.place(i) * ROW_HEIGHT, room = this.rows.clientHeight;
    if (top < this.rows.scrollTop || top + ROW_HEIGHT > this.rows.scrollTop + room) {
      this.rows.scrollTop = Math.max(0, top - room / 2);
    }
    this.render();
  }
  clear() {
    this.selected = -1;
    this.render();
  }
  key(e) {
    const page = Math.max(1, Math.floor(this.rows.clientHeight / ROW_HEIGHT) - 1), last = this.list.length - 1;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (by === undefined || last < 0) return;
    e.preventDefault();
    const at = this.selected < 0 ? -1 : this.place(this.selected);
    this.view.select(this.list[Math.min(Math.max(at + by, 0), last)]);
  }
  // render makes elements of the rows that are seen.
  render() {
    const first = Math.max(0, Math.floor(this.rows.scrollTop / ROW_HEIGHT) - AROUND);
    const end = Math.min(this.list.length, Math.ceil((this.rows.scrollTop + this.rows.clientHeight) / ROW_HEIGHT) + AROUND);
    const elements = [];
    for (let k = first; k < end; k++) elements.push(this.row(k));
    this.spacer.replaceChildren(...elements);
    const chosen = elements.find((e) => e.getAttribute("aria-selected") === "true");
    if (chosen) this.rows.setAttribute("aria-activedescendant", chosen.id); else this.rows.removeAttribute("aria-activedescendant");
  }
  row(k) {
    const { fpdus, number } = this.model, i = this.list[k], bad = fpdus.isBad(i);
    const cells = [
      count(i), ARROWS[fpdus.dir(i)], String(fpdus.packet[i] + fpdus.later[i]), seconds(fpdus.time[i]), count(fpdus.offset[i]),
      String(fpdus.size[i]), (bad ? "! " : "") + headerLine(fpdus, i),
    ];
    const e = make("div", {
      className: bad ? "row bad" : "row", role: "row", id: "c" + number + "-row" + i,
      "aria-rowindex": k + 1, "aria-selected": String(i === this.selected),
    }, ...cells.map((text) => make("span", { role: "gridcell" }, text)));
    e.dataset.fpdu = i;
    e.style.top = k * ROW_HEIGHT + "px";
    return e;
  }
}
