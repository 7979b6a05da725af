// strip.js: a canvas that shows a part of a long range, to zoom and to move.

const LABELS = 96; // CSS pixels for the names of the rows

// A Strip shows a window of the range from 0 to length. What it draws, and what a click means, is up to its kind: draw,
// pick, hover, step and rangeText.
class Strip {
  constructor(length, narrowest) {
    this.length = Math.max(length, narrowest);
    this.narrowest = narrowest;
    this.from = 0;
    this.to = this.length;
  }
  // build makes the elements: title is what stands above, label what a screen reader says.
  build(title, label, all) {
    const button = (text, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.range = make("span", { className: "range" });
    this.canvas = make("canvas", { tabIndex: 0, role: "application", "aria-label": label });
    this.under = make("div", { className: "under", role: "status" });
    this.element = make("div", { className: "track" },
      make("div", { className: "bar" },
        make("h4", {}, title),
        button("\u2212", "Zoom out", () => this.zoom(2)),
        button("+", "Zoom in", () => this.zoom(0.5)),
        button("\u25c2", "Move to the left", () => this.pan(-0.5)),
        button("\u25b8", "Move to the right", () => this.pan(0.5)),
        button("All", all, () => this.look(0, this.length)),
        this.range),
      this.canvas, this.under);
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
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
    this.zoom(Math.pow(1.002, e.deltaY), this.placeAt(e.offsetX));
  }
  moved(e) {
    if (!this.drag) return this.hover(e.offsetX, e.offsetY);
    const by = e.offsetX - this.drag.x;
    if (Math.abs(by) > 3) this.drag.moved = true;
    if (!this.drag.moved) return;
    const places = by / this.width() * (this.drag.to - this.drag.from);
    this.look(this.drag.from - places, this.drag.to - places);
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
  width() { return Math.max(1, this.canvas.clientWidth - LABELS); }
  placeAt(x) { return this.from + (x - LABELS) / this.width() * (this.to - this.from); }
  xOf(place) { return LABELS + (place - this.from) / (this.to - this.from) * this.width(); }
  // look shows a part of the range, as far as there is such a one.
  look(from, to) {
    const span = Math.min(Math.max(to - from, this.narrowest), this.length);
    this.from = Math.min(Math.max(from, 0), this.length - span);
    this.to = this.from + span;
    this.redraw();
  }
  zoom(by, around) {
    const at = around === undefined ? (this.from + this.to) / 2 : around;
    const span = Math.min(Math.max((this.to - this.from) * by, this.narrowest), this.length);
    const part = (at - this.from) / (this.to - this.from);
    this.look(at - part * span, at + (1 - part) * span);
  }
  pan(by) {
    const places = (this.to - this.from) * by;
    this.look(this.from + places, this.to + places);
  }
  // redraw draws before the next frame, however often it is asked.
  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.canvas.dataset.from = Math.floor(this.from);
      this.canvas.dataset.to = Math.ceil(this.to);
      this.range.textContent = this.rangeText();
      this.paint();
      this.canvas.dataset.drawn = Number(this.canvas.dataset.drawn || 0) + 1;
    });
  }
  // paint prepares the canvas, and has draw draw on it.
  paint() {
    const { canvas } = this, width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (width <= LABELS) return;
    const height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px ui-monospace, monospace";
    g.textBaseline = "middle";
    this.draw({ g, track: this, width, height, color: palette() });
  }
}

// drawAxis marks round numbers, and writes them as text does.
function drawAxis({ g, track, color, width, height }, text) {
  const least = (track.to - track.from) / ((width - LABELS) / 110);
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  const step = Math.max(1, power * [1, 2, 5, 10].find((m) => power * m >= least));
  for (let at = Math.ceil(track.from / step) * step; at < track.to; at += step) {
    const x = track.xOf(at), said = text(at, step), long = g.measureText(said).width + 3;
    g.fillStyle = color("line");
    g.fillRect(x, 0, 1, height);
    g.fillStyle = color("faint");
    g.fillText(said, x + long <= width ? x + 3 : x - long, 9); // none is cut
  }
}

// drawFinding draws the mark of a finding at x, from y on.
function drawFinding({ g, color }, severity, x, y, height) {
  g.fillStyle = color(severity);
  g.beginPath();
  g.moveTo(x, y - 6);
  for (const [dx, dy] of [[7, 6], [7, height - 2], [-7, height - 2], [-7, 6]]) g.lineTo(x + dx, y + dy);
  g.fill();
  g.fillStyle = color("ground");
  g.fillText(severity[0].toUpperCase(), x - 3, y + 13);
}
