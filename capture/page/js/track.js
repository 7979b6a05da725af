// track.js: one direction of a stream, to look at through a window of bytes.

const NARROWEST = 32; // bytes of a window

// A Track is a canvas with one direction, and what leads through it.
class Track {
  constructor(model, dir, view) {
    Object.assign(this, { model, dir, view });
    this.length = Math.max(model.end[dir], NARROWEST);
    this.from = 0;
    this.to = this.length;
    this.selected = -1; // row of an FPDU
    this.finding = null;
    this.build();
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }
  build() {
    const { model, dir } = this, name = model.ends[dir] + " " + ARROWS[0] + " " + model.ends[1 - dir];
    const button = (text, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.range = make("span", { className: "range" });
    this.canvas = make("canvas", {
      tabIndex: 0, role: "application",
      "aria-label": "Map of the stream " + name + ". Arrow keys move, plus and minus zoom, 0 shows all, comma and full stop go to the FPDU before and after.",
    });
    this.canvas.dataset.dir = dir;
    this.under = make("div", { className: "under", role: "status" });
    this.element = make("div", { className: "track" },
      make("div", { className: "bar" },
        make("h4", {}, ARROWS[dir] + " " + name),
        button("\u2212", "Zoom out", () => this.zoom(2)),
        button("+", "Zoom in", () => this.zoom(0.5)),
        button("\u25c2", "Move to the left", () => this.pan(-0.5)),
        button("\u25b8", "Move to the right", () => this.pan(0.5)),
        button("All", "All: show the whole stream", () => this.look(0, this.length)),
        this.range),
      this.canvas, this.under);
  }
  listen() {
    const c = this.canvas;
    c.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    c.addEventListener("pointerdown", (e) => {
      this.drag = { x: e.offsetX, from: this.from, to: this.to, moved: false };
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointermove", (e) => this.moved(e));
    c.addEventListener("pointerup", (e) => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !drag.moved) this.pick(e.offsetX, e.offsetY);
    });
    c.addEventListener("pointercancel", () => { this.drag = null; });
    c.addEventListener("keydown", (e) => this.key(e));
  }
  wheel(e) {
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return this.pan((e.deltaX || e.deltaY) / 800);
    this.zoom(Math.pow(1.002, e.deltaY), this.offsetAt(e.offsetX));
  }
  moved(e) {
    if (!this.drag) return this.hover(e.offsetX, e.offsetY);
    const by = e.offsetX - this.drag.x;
    if (Math.abs(by) > 3) this.drag.moved = true;
    if (!this.drag.moved) return;
    const bytes = by / this.width() * (this.drag.to - this.drag.from);
    this.look(this.drag.from - bytes, this.drag.to - bytes);
  }
  key(e) {
    const acts = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), "0": () => this.look(0, this.length), ",": () => this.step(-1), ".": () => this.step(1),
    };
    if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    acts[e.key]();
  }
  // step selects the FPDU before or after the selected one of this direction.
  step(by) {
    const { fpdus } = this.model, rows = fpdus.byDir[this.dir];
    const at = this.selected >= 0 ? lowerBound(rows.length, this.selected, (k) => rows[k]) + by
      : lowerBound(rows.length, this.from, (k) => fpdus.offset[rows[k]]);
    if (at >= 0 && at < rows.length) this.view.select(rows[at]);
  }
  width() { return Math.max(1, this.canvas.clientWidth - LABELS); }
  offsetAt(x) { return this.from + (x - LABELS) / this.width() * (this.to - this.from); }
  xOf(offset) { return LABELS + (offset - this.from) / (this.to - this.from) * this.width(); }
  // look shows a range of bytes, as far as there is such a one.
  look(from, to) {
    const span = Math.min(Math.max(to - from, NARROWEST), this.length);
    this.from = Math.min(Math.max(from, 0), this.length - span);
    this.to = this.from + span;
    this.redraw();
  }
  zoom(by, around) {
    const at = around === undefined ? (this.from + this.to) / 2 : around;
    const span = Math.min(Math.max((this.to - this.from) * by, NARROWEST), this.length);
    const part = (at - this.from) / (this.to - this.from);
    this.look(at - part * span, at + (1 - part) * span);
  }
  pan(by) {
    const bytes = (this.to - this.from) * by;
    this.look(this.from + bytes, this.to + bytes);
  }
  // reveal shows a range of bytes large enough to be seen.
  reveal(from, to) {
    const seen = from >= this.from && to <= this.to;
    if (seen && (to - from) / (this.to - this.from) * this.width() >= 8) return this.redraw();
    const margin = Math.max((to - from) * 4, 2048);
    this.look(from - margin, to + margin);
  }
  pick(x, y) {
    const finding = this.findingAt(x, y);
    if (finding) return this.view.showFinding(finding.number);
    const row = this.model.fpdus.at(this.dir, Math.floor(this.offsetAt(x)));
    if (row >= 0) this.view.select(row);
  }
  findingAt(x, y) {
    if (y < ROWS.findings.y) return undefined;
    return this.model.findings.find((f) => f.dir === this.dir && Math.abs(this.xOf(f.offset) - x) <= 7);
  }
  // hover says what is under the pointer.
  hover(x, y) {
    const offset = Math.floor(this.offsetAt(x));
    this.under.textContent = x < LABELS ? "" : "byte " + count(offset) + ": " + this.lineAt(offset, x, y);
  }
  lineAt(offset, x, y) {
    const { fpdus, segments, spans } = this.model, finding = this.findingAt(x, y);
    if (finding) return finding.text;
    if (y < ROWS.fpdus.y) {
      const over = segments.over(this.dir, offset, offset + 1);
      if (over.length > 0) return over.map((i) => segmentLine(this.model, i)).join("; ");
    }
    const row = fpdus.at(this.dir, offset);
    if (row >= 0) {
      return "FPDU at " + count(fpdus.offset[row]) + ", size " + fpdus.size[row] + ", packet " + (fpdus.packet[row] + fpdus.later[row]) +
        ": " + headerLine(fpdus, row);
    }
    const span = spans.find((s) => s.dir === this.dir && offset >= s.offset && offset < s.end);
    return span ? span.text : "not in an FPDU";
  }
  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.canvas.dataset.from = Math.floor(this.from);
      this.canvas.dataset.to = Math.ceil(this.to);
      this.range.textContent = "bytes " + count(Math.floor(this.from)) + " to " + count(Math.min(Math.ceil(this.to), this.model.end[this.dir])) + " of " + count(this.model.end[this.dir]);
      drawTrack(this);
      this.canvas.dataset.drawn = Number(this.canvas.dataset.drawn || 0) + 1;
    });
  }
}
