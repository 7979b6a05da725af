// ladder.js: the FPDUs around the chosen one, between the two ends, from top to bottom as time goes on.

const STEPS = 15; // FPDUs around the chosen one
const STEP_HEIGHT = 24; // CSS pixels at least between two
const STRETCH = 90; // and at most

const SVG = make("template", { innerHTML: "<svg></svg>" }).content.firstChild.namespaceURI;

// svg makes an element of a drawing.
function svg(name, properties, text) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(properties)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

// A Ladder shows FPDUs as arrows, as far apart as they are in time.
class Ladder {
  constructor(model, view) {
    Object.assign(this, { model, view });
    this.element = make("section", { className: "ladder around", "aria-label": "FPDUs around the chosen one", tabIndex: 0 });
    this.element.addEventListener("click", (e) => {
      const step = e.target.closest("[data-fpdu]");
      if (step) view.select(Number(step.dataset.fpdu));
    });
  }
  clear() { this.element.replaceChildren(); }
  select(chosen) {
    const { fpdus, ends } = this.model, first = Math.max(0, fpdus.order.indexOf(chosen) - (STEPS >> 1));
    const rows = fpdus.order.subarray(first, first + STEPS), steps = [];
    let y = 34;
    rows.forEach((i, k) => {
      if (k > 0) y += this.gap(rows, k);
      steps.push(this.step(i, y, i === chosen));
    });
    const height = y + 20;
    const drawing = svg("svg", { viewBox: "0 0 1000 " + height, width: 1000, height, role: "img",
      "aria-label": "From packet " + fpdus.packet[rows[0]] + " to packet " + fpdus.packet[rows[rows.length - 1]] });
    drawing.append(
      svg("text", { class: "end", x: 220, y: 14 }, ends[0]), svg("text", { class: "end right", x: 980, y: 14 }, ends[1]),
      ...[220, 980].map((x) => svg("line", { class: "life", x1: x, x2: x, y1: 20, y2: height })), ...steps);
    this.element.replaceChildren(make("h3", {}, "Around it"), drawing);
  }
  // gap is how far below the one before it a row is: in proportion to the time, within bounds.
  gap(rows, k) {
    const { time } = this.model.fpdus, all = time[rows[rows.length - 1]] - time[rows[0]];
    const part = all > 0 ? (time[rows[k]] - time[rows[k - 1]]) / all : 0;
    return Math.min(STRETCH, STEP_HEIGHT + part * STEPS * STEP_HEIGHT);
  }
  step(i, y, chosen) {
    const { fpdus } = this.model, dir = fpdus.dir(i), [from, to] = dir === 0 ? [220, 980] : [980, 220], head = dir === 0 ? -9 : 9;
    const g = svg("g", { class: "step " + kindOf(fpdus, i) + (chosen ? " current" : ""), "data-fpdu": i });
    g.append(
      svg("rect", { class: "ground", x: 0, y: y - 16, width: 1000, height: 22 }),
      svg("text", { class: "when", x: 4, y }, seconds(fpdus.time[i]) + "  #" + (fpdus.packet[i] + fpdus.later[i])),
      svg("text", { class: "what", x: 600, y: y - 3 }, shortLine(fpdus, i) + readLine(this.model, i)),
      svg("line", { class: "arrow", x1: from, x2: to, y1: y + 1, y2: y + 1 }),
      svg("polygon", { class: "head", points: `${to},${y + 1} ${to + head},${y - 4} ${to + head},${y + 6}` }));
    return g;
  }
}
