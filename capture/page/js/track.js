// track.js: one direction of a stream, to look at through a window of bytes.

const NARROWEST = 32; // bytes of a window

// A Track is a strip of the bytes of one direction, and what leads through it.
class Track extends Strip {
  constructor(model, dir, view) {
    super(model.end[dir], NARROWEST);
    Object.assign(this, { model, dir, view });
    this.selected = -1; // row of an FPDU
    this.finding = null;
    const name = model.ends[dir] + " " + ARROWS[0] + " " + model.ends[1 - dir];
    this.build(ARROWS[dir] + " " + name,
      "Map of the stream " + name + ". Arrow keys move, plus and minus zoom, 0 shows all, comma and full stop go to the FPDU before and after.",
      "All: show the whole stream");
    this.canvas.dataset.dir = dir;
  }
  // step selects the FPDU before or after the selected one of this direction.
  step(by) {
    const { fpdus } = this.model, rows = fpdus.byDir[this.dir];
    const at = this.selected >= 0 ? lowerBound(rows.length, this.selected, (k) => rows[k]) + by
      : lowerBound(rows.length, this.from, (k) => fpdus.offset[rows[k]]);
    if (at >= 0 && at < rows.length) this.view.select(rows[at]);
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
    const row = this.model.fpdus.at(this.dir, Math.floor(this.placeAt(x)));
    if (row >= 0) this.view.select(row);
  }
  findingAt(x, y) {
    if (y < ROWS.findings.y) return undefined;
    return this.model.findings.find((f) => f.dir === this.dir && Math.abs(this.xOf(f.offset) - x) <= 7);
  }
  // hover says what is under the pointer.
  hover(x, y) {
    const offset = Math.floor(this.placeAt(x));
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
  rangeText() {
    const end = this.model.end[this.dir];
    return "bytes " + count(Math.floor(this.from)) + " to " + count(Math.min(Math.ceil(this.to), end)) + " of " + count(end);
  }
  draw(paint) { drawTrack(paint); }
}
