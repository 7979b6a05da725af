// time.js: what a connection did, over time.

const SHORTEST = 1000; // ns of a window
const BAR = 3; // CSS pixels
const TIME_HEIGHT = 292;
const LANES = {
  axis: { y: 0, height: 18, name: "time" },
  0: { y: 24, height: 60, name: ARROWS[0] },
  1: { y: 90, height: 60, name: ARROWS[1] },
  reads: { y: 156, height: 34, name: "Reads" },
  latency: { y: 196, height: 48, name: "takes" },
  odd: { y: 248, height: 14, name: "again, late" },
  findings: { y: 266, height: 22, name: "findings" },
};
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];

// duration writes ns for people, in three digits.
function duration(ns) {
  const [size, unit] = UNITS.find(([size]) => Math.abs(ns) >= size) || UNITS[3];
  return Number((ns / size).toPrecision(3)) + " " + unit;
}

// rate writes bytes in a time in bits a second.
function rate(bytes, ns) {
  const bits = bytes * 8 / ns * 1e9;
  const [size, unit] = [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]].find(([size]) => bits >= size) || [1, "b/s"];
  return Number((bits / size).toPrecision(3)) + " " + unit;
}

// timeText writes a place of the axis, with as many digits as the step has.
function timeText(at, step) {
  const [size, unit] = UNITS.find(([size]) => step >= size / 10) || UNITS[3];
  return (at / size).toFixed(step < size ? 1 : 0) + " " + unit;
}

// A Timeline is a strip of the time from the connection's first packet to its last.
class Timeline extends Strip {
  constructor(model, view) {
    const { fpdus } = model;
    super(fpdus.time.reduce((most, t) => Math.max(most, t), model.last) * 1.01, SHORTEST);
    Object.assign(this, { model, view, selected: -1, finding: null });
    this.order = fpdus.order; // rows
    this.times = new Float64Array(fpdus.count);
    this.kinds = new Uint8Array(fpdus.count);
    const index = Object.fromEntries(Object.keys(KINDS).map((kind, k) => [kind, k]));
    this.order.forEach((row, k) => {
      this.times[k] = fpdus.time[row];
      this.kinds[k] = index[kindOf(fpdus, row)];
    });
    this.build("Time", "What was sent over time. Arrow keys move, plus and minus zoom, 0 shows all, comma and full stop go to the FPDU before and after.",
      "All: show the whole connection");
    this.canvas.classList.add("time");
  }
  // rows returns the place in order of the first FPDU in the window, and of the first one after it.
  rows() {
    const at = (time) => lowerBound(this.times.length, time, (i) => this.times[i]);
    return [at(this.from), at(this.to)];
  }
  look(from, to) {
    super.look(from, to);
    if (this.view.follow) this.view.follow(this.order.subarray(...this.rows()));
  }
  step(by) {
    const next = this.selected >= 0 ? this.order.indexOf(this.selected) + by : this.rows()[0];
    if (next >= 0 && next < this.order.length) this.view.select(this.order[next]);
  }
  // reveal shows a row large enough to be told from others.
  reveal(i) {
    const time = this.model.fpdus.time[i];
    if (time < this.from || time > this.to) {
      const span = this.to - this.from;
      super.look(time - span / 2, time + span / 2);
    }
    this.redraw();
  }
  laneAt(y) {
    const found = Object.entries(LANES).find(([, lane]) => y >= lane.y - 3 && y < lane.y + lane.height + 3);
    return found ? found[0] : "";
  }
  // nearest returns the row closest to x that fits, -1 if there is none within some pixels.
  nearest(x, fits) {
    const room = 8 / this.width() * (this.to - this.from), time = this.placeAt(x);
    let best = -1, least = room;
    for (let i = lowerBound(this.times.length, time - room, (k) => this.times[k]); i < this.times.length && this.times[i] < time + room; i++) {
      const by = Math.abs(this.times[i] - time), row = this.order[i];
      if (by < least && fits(row)) [best, least] = [row, by];
    }
    return best;
  }
  rowAt(x, y) {
    const { fpdus, reads } = this.model, lane = this.laneAt(y);
    if (lane === "latency") return this.waitAt(x, y);
    if (lane === "reads") return this.nearest(x, (i) => reads.byRow.has(i));
    return this.nearest(x, (i) => !(lane === "0" || lane === "1") || fpdus.dir(i) === Number(lane));
  }
  // waitAt returns the row of the Read, or of the answer, whose dot is closest, -1 if none is close.
  waitAt(x, y) {
    const { waits } = this.model;
    let best = -1, least = 100; // square of the distance
    for (let i = 0; i < waits.count; i++) {
      const by = (this.xOf(waits.began[i]) - x) ** 2 + (this.latencyY(waits.last[i]) - y) ** 2;
      if (by < least) [best, least] = [waits.row[i], by];
    }
    return best;
  }
  latencyY(ns) { return LANES.latency.y + LANES.latency.height * (1 - ns / (this.slowest || 1)); }
  findingAt(x, y) {
    if (this.laneAt(y) !== "findings") return undefined;
    return this.model.findings.find((f) => Math.abs(this.xOf(f.time) - x) <= 7);
  }
  pick(x, y) {
    const finding = this.findingAt(x, y);
    if (finding) return this.view.showFinding(finding.number);
    const row = this.rowAt(x, y);
    if (row >= 0) this.view.select(row);
  }
  hover(x, y) { this.under.textContent = x < LABELS ? "" : this.lineAt(x, y); }
  // lineAt says what is at a point, with its own time, or the time there if nothing is.
  lineAt(x, y) {
    const { fpdus } = this.model, finding = this.findingAt(x, y);
    const line = (time, packet, what) => seconds(time) + " s, packet " + packet + ": " + what;
    if (finding) return line(finding.time, finding.packet, finding.text);
    const close = this.model.closes.find((c) => this.laneAt(y) === String(c.dir) && Math.abs(this.xOf(c.time) - x) <= 4);
    if (close) return line(close.time, close.packet, ARROWS[close.dir] + " TCP " + close.kind);
    const row = this.rowAt(x, y);
    if (row < 0) return timeText(this.placeAt(x), (this.to - this.from) / 1000);
    return line(fpdus.time[row], fpdus.packet[row] + fpdus.later[row],
      ARROWS[fpdus.dir(row)] + " " + headerLine(fpdus, row) + readLine(this.model, row));
  }
  rangeText() {
    const [first, end] = this.rows();
    return seconds(this.from) + " s to " + seconds(this.to) + " s, " + count(end - first) + " FPDUs";
  }
  draw(paint) {
    const { g, width } = paint;
    drawNames(paint, LANES);
    this.drawRates(paint);
    this.drawReads(paint);
    g.beginPath();
    g.rect(LABELS, 0, width - LABELS, TIME_HEIGHT);
    g.clip();
    drawAxis(paint, timeText);
    this.drawOdd(paint);
    this.drawCloses(paint);
    for (const f of this.model.findings.toReversed()) { // the worst on top
      const x = this.xOf(f.time), lane = LANES.findings;
      if (x < LABELS - 8 || x > width + 8) continue;
      if (f === this.finding) this.line(paint, f.time, f.severity);
      drawFinding(paint, f.severity, x, lane.y, lane.height);
    }
    if (this.selected >= 0) this.line(paint, this.model.fpdus.time[this.selected], "selected");
  }
  line({ g, color }, time, name) {
    g.fillStyle = color(name);
    g.fillRect(this.xOf(time) - 1, LANES[0].y, 2, TIME_HEIGHT - LANES[0].y);
  }
  // drawRates draws bars of the bytes of FPDUs by what they are, for both directions in one scale.
  drawRates(paint) {
    const { g, color } = paint, { fpdus } = this.model, kinds = Object.keys(KINDS);
    const n = Math.max(1, Math.floor(this.width() / BAR)), span = (this.to - this.from) / n;
    const sums = [0, 1].map(() => kinds.map(() => new Float64Array(n))), all = [0, 1].map(() => new Float64Array(n));
    const [first, end] = this.rows();
    for (let i = first; i < end; i++) {
      const at = Math.min(n - 1, Math.floor((this.times[i] - this.from) / span)), row = this.order[i], dir = fpdus.dir(row);
      sums[dir][this.kinds[i]][at] += fpdus.size[row];
      all[dir][at] += fpdus.size[row];
    }
    const most = all.map((bars) => bars.reduce((a, b) => Math.max(a, b), 0)), full = Math.max(...most, 1);
    for (const dir of [0, 1]) {
      const lane = LANES[dir], base = new Float64Array(n);
      this.note(paint, lane, most[dir] > 0 ? rate(most[dir], span) : "nothing");
      kinds.forEach((kind, k) => {
        g.fillStyle = color(kind);
        for (let at = 0; at < n; at++) {
          const high = sums[dir][k][at] / full * lane.height;
          if (high === 0) continue;
          g.fillRect(LABELS + at * BAR, lane.y + lane.height - base[at] - Math.max(high, 1), BAR, Math.max(high, 1));
          base[at] += high;
        }
      });
    }
  }
  // note writes a figure under the name of a lane.
  note({ g, color }, lane, text) {
    g.fillStyle = color("faint");
    g.fillText(text, 6, lane.y + lane.height / 2 + 13);
  }
  drawReads(paint) {
    const { g, color } = paint, { reads } = this.model, lane = LANES.reads;
    const first = lowerBound(reads.times.length, this.from, (k) => reads.times[k]);
    const end = lowerBound(reads.times.length, this.to, (k) => reads.times[k]);
    let most = first > 0 ? reads.numbers[first - 1] : 0;
    for (let k = first; k < end; k++) most = Math.max(most, reads.numbers[k]);
    this.note(paint, lane, most > 0 ? "at most " + most : "none");
    g.fillStyle = color("response");
    let now = first > 0 ? reads.numbers[first - 1] : 0, x = LABELS, high = now, low = now;
    const column = (to) => { // what was reached within a pixel, and what lasts to the next change
      const y = (v) => lane.y + lane.height - (most > 0 ? v / most * (lane.height - 2) : 0);
      if (high > low) g.fillRect(x, y(high), 1, y(low) - y(high));
      if (now > 0) g.fillRect(x, y(now), Math.max(to - x, 1), 1.5);
    };
    for (let k = first; k < end; k++) {
      const at = Math.floor(this.xOf(reads.times[k]));
      if (at > x) {
        column(at);
        [x, high, low] = [at, now, now];
      }
      now = reads.numbers[k];
      high = Math.max(high, now);
      low = Math.min(low, now);
    }
    column(LABELS + this.width());
    this.drawLatency(paint);
  }
  // drawLatency draws a dot for each Read and each answer where it began, as high as it took; one for all that fall together.
  drawLatency(paint) {
    const { g, color } = paint, { waits } = this.model, lane = LANES.latency, seen = new Set();
    const here = (i) => waits.began[i] >= this.from && waits.began[i] < this.to;
    this.slowest = 0;
    for (let i = 0; i < waits.count; i++) {
      if (here(i)) this.slowest = Math.max(this.slowest, waits.last[i]);
    }
    this.note(paint, lane, this.slowest > 0 ? "to " + duration(this.slowest) : "");
    for (let i = 0; i < waits.count; i++) {
      if (!here(i)) continue;
      const x = Math.round(this.xOf(waits.began[i])), y = Math.round(this.latencyY(waits.last[i])), key = x * 64 + y - lane.y;
      if (seen.has(key)) continue;
      seen.add(key);
      g.fillStyle = color(i < waits.reads ? "response" : "send");
      g.fillRect(x - 1, y - 1, 3, 3);
    }
  }
  // drawCloses draws a line for each FIN and RST.
  drawCloses({ g, color }) {
    for (const { dir, time, kind } of this.model.closes) {
      const x = this.xOf(time), lane = LANES[dir];
      g.fillStyle = color(kind === "RST" ? "error" : "ink");
      g.fillRect(x - 1, lane.y, 2, lane.height);
      g.fillText(kind, x - g.measureText(kind).width - 3, lane.y + 7);
    }
  }
  // drawOdd draws a line for each segment that came again, late, or ahead of a hole.
  drawOdd({ g, color }) {
    const { segments } = this.model, lane = LANES.odd, names = { [ORDER_AHEAD]: "ahead", [ORDER_FILLS]: "fills" };
    for (const odd of segments.odd) {
      let last = -1;
      for (const i of odd) {
        const x = Math.round(this.xOf(segments.time[i]));
        if (x === last || x < LABELS) continue;
        last = x;
        g.fillStyle = color(names[segments.order(i)] || "again");
        g.fillRect(x, lane.y, 2, lane.height);
      }
    }
  }
}

// readLine says how long a Read took, if the row is its Request.
function readLine({ reads }, row) {
  const i = reads.byRow.get(row);
  if (i === undefined) return "";
  return ", answered after " + duration(reads.last[i]);
}
