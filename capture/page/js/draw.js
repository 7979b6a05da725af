// draw.js: a track on its canvas.

const HEIGHT = 156; // CSS pixels of a track
const ROWS = {
  axis: { y: 0, height: 18, name: "bytes" },
  segments: { y: 20, height: 22, name: "segments" },
  odd: { y: 46, height: 16, name: "again, late" },
  fpdus: { y: 66, height: 38, name: "FPDUs" },
  markers: { y: 108, height: 16, name: "markers" },
  findings: { y: 128, height: 22, name: "findings" },
};

// color returns one of the style's colors.
function color(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

// palette returns those of a drawing, so that the style is asked once for each.
function palette() {
  const seen = {};
  return (name) => seen[name] || (seen[name] = color(name));
}

function drawTrack(paint) {
  const { g, width } = paint;
  drawNames(paint, ROWS);
  g.beginPath();
  g.rect(LABELS, 0, width - LABELS, HEIGHT);
  g.clip();
  drawAxis(paint, count);
  drawSegments(paint);
  drawSpans(paint);
  drawFpdus(paint);
  drawMarkers(paint);
  drawFindings(paint);
}

function drawNames({ g, color, width }, rows) {
  for (const row of Object.values(rows)) {
    g.fillStyle = color("faint");
    g.fillText(row.name, 6, row.y + row.height / 2);
    g.fillStyle = color("line");
    g.fillRect(LABELS, row.y + row.height, width - LABELS, 1);
  }
}

// eachVisible calls paint for the items of a sorted list that are in the window, with the
// pixels that they touch. Where items are smaller than a pixel, it takes two for each: the
// first one that begins in it, and the one that reaches into the next.
function eachVisible(track, n, from, to, longest, paint) {
  const left = (offset) => Math.floor(track.xOf(offset)), right = (offset) => Math.ceil(track.xOf(offset));
  let i = lowerBound(n, track.from - longest, from);
  while (i < n && from(i) < track.to) {
    const x = left(from(i)), end = Math.max(right(to(i)), x + 1);
    if (end >= LABELS) paint(i, x, end - x);
    if (end - x > 1) {
      i++;
      continue;
    }
    const next = track.placeAt(x + 1), k = lowerBound(n, next, from);
    i = k - 1 > i && to(k - 1) > next ? k - 1 : Math.max(i + 1, k);
  }
}

// joined returns a function that fills boxes as high as a row in a color, and one that ends it. Boxes that touch are
// filled at once, as most of them are a pixel wide.
function joined(g, y, height) {
  let from = 0, to = 0, now = "";
  const end = () => {
    if (to === from) return;
    g.fillStyle = now;
    g.fillRect(from, y, to - from, height);
    from = to;
  };
  return [(x, w, color) => {
    if (x < from || x > to || color !== now) {
      end();
      [from, to, now] = [x, x, color];
    }
    to = Math.max(to, x + w);
  }, end];
}

function drawSegments(paint) {
  const { g, track, color } = paint;
  const { segments } = track.model, { dir } = track, longest = segments.longest[dir];
  const rows = segments.byDir[dir], odd = segments.odd[dir], row = ROWS.segments, below = ROWS.odd;
  const [fill, end] = joined(g, row.y + 3, row.height - 6);
  eachVisible(track, rows.length, (k) => segments.offset[rows[k]], (k) => segments.end(rows[k]), longest, (k, x, w) => {
    fill(x, w, color("segment"));
    if (w < 3) return;
    end();
    g.fillStyle = color("segment-edge");
    g.fillRect(x, row.y, 1, row.height);
  });
  end();
  const names = { [ORDER_AHEAD]: ["ahead", "A"], [ORDER_FILLS]: ["fills", "L"] };
  eachVisible(track, odd.length, (k) => segments.offset[odd[k]], (k) => segments.end(odd[k]), longest, (k, x, w) => {
    const i = odd[k], [kind, letter] = names[segments.order(i)] || ["again", "R"];
    g.fillStyle = color(kind);
    g.fillRect(x, below.y, Math.max(w, 2), below.height);
    lettered(paint, segments.match(i) === MATCH_DIFFERS ? "\u2260" : letter, x, w, below);
  });
}

// lettered writes a text into a box if it fits.
function lettered({ g, color }, text, x, w, row) {
  const left = Math.max(x, LABELS), room = x + w - left;
  if (room < g.measureText(text).width + 6) return false;
  g.fillStyle = color("on");
  g.fillText(text, left + 3, row.y + row.height / 2);
  return true;
}

// drawSpans draws startup frames, streaming data, and what is missing.
function drawSpans(paint) {
  const { g, track, color } = paint;
  const row = ROWS.fpdus, kinds = { startup: "startup", streaming: "streaming", missing: "missing", unframed: "missing" };
  for (const s of track.model.spans) {
    if (s.dir !== track.dir || s.end < track.from || s.offset > track.to) continue;
    const x = track.xOf(s.offset), w = Math.max(2, track.xOf(s.end) - x);
    g.fillStyle = color(kinds[s.kind]);
    if (s.kind === "missing" || s.kind === "unframed") hatch(g, x, w, row); else g.fillRect(x, row.y + 6, w, row.height - 12);
    lettered(paint, s.kind, x, w, row);
  }
}

// hatch fills a box with slanted lines.
function hatch(g, x, w, row) {
  g.save();
  g.beginPath();
  g.rect(x, row.y, w, row.height);
  g.clip();
  g.strokeStyle = g.fillStyle;
  g.lineWidth = 2;
  g.beginPath();
  const first = Math.max(x, 0) - row.height, last = Math.min(x + w, g.canvas.width);
  for (let at = first; at < last; at += 8) {
    g.moveTo(at, row.y + row.height);
    g.lineTo(at + row.height, row.y);
  }
  g.stroke();
  g.fillRect(x, row.y + 10, w, row.height - 20); // for a text
  g.restore();
}

function drawFpdus(paint) {
  const { g, track, color } = paint;
  const { fpdus } = track.model, { dir } = track, row = ROWS.fpdus;
  const [fill, end] = joined(g, row.y, row.height);
  const box = (i, x, w) => {
    const kind = kindOf(fpdus, i), mark = kind === "bad" ? "! " : "";
    fill(x, w, color(kind));
    if (w < 4) return;
    end();
    g.fillStyle = color("ground");
    g.fillRect(x, row.y, 1, row.height);
    lettered(paint, mark + opcodeName(fpdus, i), x, w, row) || lettered(paint, KINDS[kind][0], x, w, row);
  };
  for (const rows of [fpdus.byDir[dir], fpdus.bad[dir]]) {
    const longest = rows.length > 0 ? 1 << 17 : 0; // bytes; an FPDU has no more
    eachVisible(track, rows.length, (k) => fpdus.offset[rows[k]], (k) => fpdus.end(rows[k]), longest, (k, x, w) => box(rows[k], x, w));
    end();
  }
  const i = track.selected;
  if (i < 0) return;
  const x = track.xOf(fpdus.offset[i]), w = Math.max(track.xOf(fpdus.end(i)) - x, 3);
  box(i, x, w);
  end();
  g.strokeStyle = color("selected");
  g.lineWidth = 3;
  g.strokeRect(x - 1, row.y - 1, w + 1, row.height + 2);
}

function drawMarkers({ g, track, color }) {
  const { markers } = track.model, rows = markers.byDir[track.dir], row = ROWS.markers;
  const key = (k) => markers.offset[rows[k]];
  const [fill, end] = joined(g, row.y + 5, row.height - 5);
  eachVisible(track, rows.length, key, (k) => key(k) + 4, 4, (k, x, w) => {
    if (markers.isValid(rows[k])) return fill(x, w, color("marker"));
    g.fillStyle = color("bad");
    g.fillRect(x, row.y, Math.max(w, 3), row.height);
  });
  end();
}

function drawFindings(paint) {
  const { g, track, color } = paint;
  const row = ROWS.findings;
  for (const f of track.model.findings.toReversed()) { // the worst on top
    const x = track.xOf(f.offset);
    if (f.dir !== track.dir || x < LABELS - 8 || x > track.width() + LABELS + 8) continue;
    if (track.finding === f) {
      g.fillStyle = color(f.severity);
      g.fillRect(x - 1, 0, 2, HEIGHT);
    }
    drawFinding(paint, f.severity, x, row.y, row.height);
  }
}
