// words.js: what is said of FPDUs, segments and the rest.

const OPCODES = JSON.parse(document.getElementById("opcodes").textContent);
const ARROWS = ["\u2192", "\u2190"];
const CRC = ["not known", "off", "right", "WRONG"];

// The kinds that the map tells apart, by color and letter.
const KINDS = {
  write: ["W", "RDMA Write"],
  request: ["RQ", "RDMA Read Request"],
  response: ["RR", "RDMA Read Response"],
  send: ["S", "Send"],
  terminate: ["T", "Terminate"],
  other: ["o", "other, or no header"],
  bad: ["!", "in error, or cut"],
};
const KIND_OF = ["write", "request", "response", "send", "send", "send", "send", "terminate"];

function kindOf(fpdus, i) {
  return fpdus.isBad(i) ? "bad" : KIND_OF[fpdus.opcode(i)] || "other";
}

// make makes an element with properties, and children or text in it.
function make(name, properties, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in e) e[key] = value; else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

const grouped = new Intl.NumberFormat("en-US");

// count writes a number with its thousands apart.
function count(n) { return grouped.format(n).replaceAll(",", "\u202f"); }

function seconds(ns) { return (ns / 1e9).toFixed(6); }

function hex(n) { return "0x" + n.toString(16).padStart(8, "0"); }

function hex64(high, low) { return "0x" + ((BigInt(high) << 32n) | BigInt(low)).toString(16); }

function opcodeName(fpdus, i) {
  const op = fpdus.opcode(i);
  return op < 0 ? "no DDP header" : OPCODES[op];
}

// headerLine says in a line what is in an FPDU.
function headerLine(fpdus, i) {
  let line = opcodeName(fpdus, i);
  if (fpdus.has(i, IS_RTR)) line += " (RTR)";
  if (i in fpdus.texts) line += ": " + fpdus.texts[i];
  if (fpdus.has(i, HAS_SEGMENT)) {
    line += (i in fpdus.texts ? "; " : " ") + addressLine(fpdus, i);
    line += requestLine(fpdus, i) || " payload " + payload(fpdus, i);
    if (fpdus.has(i, LAST)) line += " last";
  }
  return fpdus.cut[i] > 0 ? line + ", " + fpdus.cut[i] + " bytes are missing" : line;
}

// shortLine says what is most important in an FPDU.
function shortLine(fpdus, i) {
  const r = fpdus.requests.get(i), size = r ? r[0] : payload(fpdus, i);
  const where = fpdus.has(i, TAGGED) ? "stag " + hex(fpdus.a[i]) : "msn " + fpdus.b[i];
  const said = i in fpdus.texts ? "; " + fpdus.texts[i] : "";
  return opcodeName(fpdus, i) + " " + (fpdus.has(i, HAS_SEGMENT) ? where + ", " : "") + count(size) + " bytes" + said;
}

function addressLine(fpdus, i) {
  const { a, b, c, ulp } = fpdus, op = fpdus.opcode(i);
  if (fpdus.has(i, TAGGED)) return "stag " + hex(a[i]) + " to " + hex64(b[i], c[i]);
  const line = "qn " + a[i] + " msn " + b[i] + " mo " + c[i];
  return op === 4 || op === 6 ? line + " invalidate " + hex(ulp[i]) : line;
}

function requestLine(fpdus, i) {
  const r = fpdus.requests.get(i);
  if (!r) return "";
  const [size, sink, sinkHigh, sinkLow, source, sourceHigh, sourceLow] = r;
  return " size " + size + " source " + hex(source) + " " + hex64(sourceHigh, sourceLow) +
    " sink " + hex(sink) + " " + hex64(sinkHigh, sinkLow);
}

function payload(fpdus, i) { return Math.max(0, fpdus.length[i] - fpdus.header[i] - fpdus.cut[i]); }

// segmentLine says what a TCP segment is, or a message of SCTP.
function segmentLine({ segments, session }, i) {
  let line = (session ? "message in packet " : "TCP segment in packet ") + segments.packet[i] + ", bytes " + count(segments.offset[i]) + " to " +
    count(segments.end(i)) + " (" + segments.length[i] + ")";
  line += ["", "", ", ahead of a hole", ", fills a hole: late, or sent again", ", sent again"][segments.order(i)];
  if (segments.order(i) !== ORDER_REPEAT && segments.repeated[i] > 0) line += ", " + segments.repeated[i] + " bytes sent again";
  if (segments.match(i) === MATCH_DIFFERS) line += ", with OTHER bytes than before";
  return line;
}

// fieldsOf returns names and texts of all that is known of an FPDU.
function fieldsOf(model, i) {
  const { fpdus, segments, markers, ends } = model, dir = fpdus.dir(i);
  const last = fpdus.packet[i] + fpdus.later[i];
  const rows = [
    ["row", count(i)],
    ["from", ends[dir] + " " + ARROWS[0] + " " + ends[1 - dir]],
    ["offset", count(fpdus.offset[i]) + " to " + count(fpdus.end(i))],
    ["size", count(fpdus.size[i]) + " bytes on the stream"],
    ["packet", fpdus.later[i] ? fpdus.packet[i] + ", complete with " + last : String(last)],
    ["time", seconds(fpdus.time[i]) + " s"],
    [model.session ? "DDP Segment" : "ULPDU_Length", count(fpdus.length[i])],
    ["message", headerLine(fpdus, i)],
  ];
  const read = model.reads.byRow.get(i);
  if (read !== undefined) {
    rows.push(["answered", "after " + duration(model.reads.last[read]) + "; the first bytes came after " + duration(model.reads.first[read])],
      ["acknowledged", ackLine(model, read)]);
  }
  if (!model.session) rows.push(["CRC", CRC[fpdus.crc(i)]], ["alignment", alignmentLine(fpdus, i)]);
  const inside = markers.within(dir, fpdus.offset[i], fpdus.end(i));
  if (inside.length > 0) rows.push(["markers", markerLine(markers, inside)]);
  const over = segments.over(dir, fpdus.offset[i], fpdus.end(i));
  for (const s of over.slice(0, 12)) rows.push(["segment", segmentLine(model, s)]);
  if (over.length > 12) rows.push(["", "and " + (over.length - 12) + " more"]);
  return rows;
}

// ackLine says when TCP acknowledged the Request of a Read, and so who was waited for.
function ackLine({ fpdus, reads }, read) {
  const { acked, after, first } = reads, row = reads.row[read];
  if (acked[read] === 0) return "it is not known when";
  const line = "after " + duration(after[read]) + " (packet " + (fpdus.packet[row] + fpdus.later[row] + acked[read]) + ")";
  if (after[read] >= first[read]) return line + ", no earlier than with the Response";
  return line + ": the responder had the Request, and answered " + duration(first[read] - after[read]) + " later";
}

function alignmentLine(fpdus, i) {
  const begins = fpdus.has(i, BEGINS), ends = fpdus.has(i, ENDS);
  if (begins && ends) return "begins and ends where TCP segments do";
  if (begins) return "begins where a TCP segment does";
  return ends ? "ends where a TCP segment does" : "neither begins nor ends where a TCP segment does";
}

function markerLine(markers, rows) {
  const some = [...rows.slice(0, 8)].map((i) =>
    "at " + count(markers.offset[i]) + " FPDUPTR " + markers.fpduptr[i] + (markers.isValid(i) ? "" : " WRONG"));
  if (rows.length > 8) some.push(rows.length + " in all");
  return some.join("; ");
}
