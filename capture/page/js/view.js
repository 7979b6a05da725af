// view.js: all of one connection, and what is chosen in it.

const CHOOSE = "Choose an FPDU on the map or in the table, or a finding.";
const NOT_SHOWN = "The FPDU comes after the last one that the page has room for.";

// A View is the interactive part of a connection.
class View {
  constructor(article) {
    const model = this.model = modelOf(article.dataset.connection);
    this.timeline = new Timeline(model, this);
    this.tracks = [0, 1].map((dir) => new Track(model, dir, this));
    this.strips = [this.timeline, ...this.tracks];
    this.ladder = new Ladder(model, this);
    this.table = new Table(model, this);
    this.detail = make("section", { className: "detail", "aria-label": "FPDU", "aria-live": "polite" });
    const place = article.querySelector(".view");
    place.append(
      make("h3", {}, "Time"), legend(), this.timeline.element, ...slowReads(model),
      make("p", { className: "quiet" }, "Wheel: zoom; with Shift, or drag: move; click: choose. With the keyboard: arrows, + \u2212 0, comma and full stop."),
      make("h3", {}, "FPDUs"), make("div", { className: "columns" }, this.table.element, this.detail),
      make("h3", {}, "Streams"), ...this.tracks.map((t) => t.element), this.ladder.element);
    place.hidden = false;
    this.undescribe(CHOOSE);
    article.addEventListener("click", (e) => { // a link to the address that is there already
      if (e.target.closest("a")?.hash === location.hash) route();
    });
  }
  // select shows an FPDU everywhere, and gives it the address.
  select(i) {
    if (!(i >= 0 && i < this.model.fpdus.count)) return;
    this.mark(null);
    this.choose(i);
    history.replaceState(null, "", "#c" + this.model.number + "-p" + i);
    this.detail.scrollIntoView({ block: "nearest" });
  }
  choose(i) {
    const { fpdus } = this.model, dir = fpdus.dir(i);
    this.timeline.selected = i;
    this.timeline.reveal(i);
    this.tracks.forEach((t) => { t.selected = t.dir === dir ? i : -1; });
    this.tracks[dir].reveal(fpdus.offset[i], fpdus.end(i));
    this.tracks[1 - dir].redraw();
    this.table.select(i);
    this.ladder.select(i);
    this.describe(i);
  }
  // follow has the maps show the bytes of FPDUs, from the first of each direction to the last.
  follow(rows) {
    const { fpdus } = this.model;
    for (const t of this.tracks) {
      const here = (i) => fpdus.dir(i) === t.dir, ends = [rows.find(here), rows.findLast(here)];
      if (ends[0] !== undefined) t.look(Math.min(...ends.map((i) => fpdus.offset[i])), Math.max(...ends.map((i) => fpdus.end(i))));
    }
  }
  // showFinding goes to the place of a finding: its FPDU, or the frame of the startup, and
  // the bytes in any case.
  showFinding(number) {
    const finding = this.model.findings.find((f) => f.number === number);
    if (!finding) return;
    const address = "#c" + this.model.number + "-f" + number;
    if (location.hash !== address) history.replaceState(null, "", address);
    this.mark(finding);
    const { dir, offset } = finding, { fpdus } = this.model;
    const step = this.markStep(dir, offset), row = fpdus.at(dir, offset);
    if (row >= 0) this.choose(row); else this.showPlace(dir, offset, step);
    finding.item.scrollIntoView({ block: "nearest" });
    (row < 0 && step ? step : this.tracks[dir].element).scrollIntoView({ block: "nearest" });
  }
  // showPlace shows bytes that are not in an FPDU of the table, and the FPDU in front of
  // them if the ladder does not show them either. The last steps of the ladder are those of
  // FPDUs that the table may have no room for.
  showPlace(dir, offset, step) {
    const behind = (!step || step.classList.contains("fpdu")) && this.model.fpdus.isBehind(dir, offset);
    const near = step || behind ? -1 : this.model.fpdus.near(dir, offset);
    if (near >= 0) this.choose(near); else this.unchoose(behind ? NOT_SHOWN : CHOOSE);
    const span = this.model.spans.find((s) => s.dir === dir && offset >= s.offset && offset < s.end);
    this.tracks[dir].reveal(span ? span.offset : offset, span ? span.end : offset + 1);
  }
  unchoose(why) {
    this.strips.forEach((t) => { t.selected = -1; t.redraw(); });
    this.table.clear();
    this.ladder.clear();
    this.undescribe(why);
  }
  // mark marks a finding in the list and on the map; null unmarks.
  mark(finding) {
    for (const f of this.model.findings) {
      f.item.classList.toggle("current", f === finding);
      if (f === finding) f.item.setAttribute("aria-current", "true"); else f.item.removeAttribute("aria-current");
    }
    this.strips.forEach((t) => { t.finding = finding; });
    if (!finding) this.markStep(-1, 0);
  }
  // markStep marks the step of the ladder with a byte, and returns it.
  markStep(dir, offset) {
    let found = null;
    for (const step of this.model.article.querySelectorAll(".ladder:not(.around) .step")) {
      const { dir: stepDir, offset: from, end } = step.dataset;
      const here = !found && Number(stepDir) === dir && offset >= Number(from) && (offset < Number(end) || offset === Number(from));
      step.classList.toggle("current", here);
      if (here) found = step;
    }
    return found;
  }
  // describe writes what is known of an FPDU.
  describe(i) {
    const list = make("dl");
    for (const [name, text] of fieldsOf(this.model, i)) list.append(make("dt", {}, name), make("dd", {}, text));
    for (const link of this.findingsOf(i)) list.append(make("dt", {}, "finding"), make("dd", {}, link));
    this.detail.replaceChildren(list);
    this.detail.dataset.fpdu = i;
  }
  undescribe(why) {
    this.detail.replaceChildren(make("p", { className: "quiet" }, why));
    delete this.detail.dataset.fpdu;
  }
  findingsOf(i) {
    const { fpdus, findings, number } = this.model;
    const here = findings.filter((f) => f.dir === fpdus.dir(i) && f.offset >= fpdus.offset[i] && f.offset < fpdus.end(i));
    return here.map((f) => make("a", { href: "#c" + number + "-f" + f.number }, f.text));
  }
}

// slowReads lists the slowest Reads, if there are Reads.
function slowReads(model) {
  const { number, fpdus, reads, slow } = model;
  const item = (row) => make("li", {}, make("a", { href: "#c" + number + "-p" + row }, duration(reads.last[reads.byRow.get(row)])),
    " from packet " + (fpdus.packet[row] + fpdus.later[row]) + ", " + seconds(fpdus.time[row]) + " s: " + shortLine(fpdus, row) +
    "; acknowledged " + ackLine(model, reads.byRow.get(row)));
  return slow.size === 0 ? [] : [make("h3", {}, "Slowest Reads"), make("ol", { className: "slow" }, ...[...slow].map(item))];
}

// legend explains the colors and letters of the map.
function legend() {
  const entry = (name, letter, text) => {
    const box = make("i", { "aria-hidden": "true" }, letter);
    box.style.background = "var(--" + name + ")";
    return make("li", {}, box, text);
  };
  return make("ul", { className: "legend", "aria-label": "Legend" },
    ...Object.entries(KINDS).map(([name, [letter, text]]) => entry(name, letter, text)),
    entry("again", "R", "segment sent again"), entry("ahead", "A", "ahead of a hole"), entry("fills", "L", "late: fills a hole"),
    entry("missing", "/", "bytes missing, or no FPDU"), entry("startup", "", "startup frame"), entry("streaming", "", "streaming data"));
}
