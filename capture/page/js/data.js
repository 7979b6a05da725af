// data.js: the data of a connection, from the columns on the page.

// bytesOf decodes base64.
function bytesOf(text) {
  const chars = atob(text);
  const bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes;
}

// A Column gives the numbers of a column in their order.
class Column {
  constructor(text) {
    this.bytes = bytesOf(text);
    this.at = 0;
    this.last = [0, 0, 0, 0];
    this.zeros = 0; // that are still to be given
  }
  // plain returns a number that was written as it is.
  plain() {
    if (this.zeros > 0) {
      this.zeros--;
      return 0;
    }
    const v = this.varint();
    if (v === 0) this.zeros = this.varint();
    return v;
  }
  varint() {
    let v = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      v += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return v % 2 ? -(v + 1) / 2 : v / 2;
  }
  // next returns a number that was written as its difference from the last of its lane.
  next(lane) { return this.last[lane] += this.plain(); }
  // next32 is next of differences in 32 bits.
  next32(lane) { return this.last[lane] = (this.last[lane] + this.plain()) >>> 0; }
}

// columnsOf makes readers of those members of an object that are columns.
function columnsOf(of) {
  const columns = {};
  for (const [name, value] of Object.entries(of)) {
    if (typeof value === "string") columns[name] = new Column(value);
  }
  return columns;
}

// lowerBound returns the first of n indices for which key is at least value.
function lowerBound(n, value, key) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (key(middle) < value) low = middle + 1; else high = middle;
  }
  return low;
}

// rowsByDir sorts rows by their direction.
function rowsByDir(n, dirOf) {
  const all = [[], []];
  for (let i = 0; i < n; i++) all[dirOf(i)].push(i);
  return all.map((rows) => Uint32Array.from(rows));
}

// The flags of an FPDU, after direction (1 bit), opcode (4) and state of the CRC (2).
const HAS_SEGMENT = 1 << 7, TAGGED = 1 << 8, LAST = 1 << 9, BEGINS = 1 << 10, ENDS = 1 << 11,
  IN_ERROR = 1 << 12, IS_RTR = 1 << 13, IS_REQUEST = 1 << 14;

// Fpdus are those of a connection by row: each column is an array.
class Fpdus {
  constructor(json) {
    const n = this.count = json.count, c = columnsOf(json);
    this.omitted = json.omitted;
    this.texts = json.texts || {};
    this.flags = new Uint16Array(n);
    this.offset = new Float64Array(n);
    this.time = new Float64Array(n);
    const names = ["size", "packet", "later", "length", "header", "cut", "a", "b", "c", "ulp"];
    for (const name of names) this[name] = new Uint32Array(n);
    const ends = [0, 0];
    const { size, packet, later, length, header, cut, a, b, c: low, ulp } = this;
    for (let i = 0; i < n; i++) {
      const flags = this.flags[i] = c.flags.next(0), dir = flags & 1;
      const lane = flags & TAGGED ? dir + 2 : dir;
      this.offset[i] = ends[dir] + c.gap.plain();
      size[i] = c.size.next(dir);
      ends[dir] = this.offset[i] + size[i];
      packet[i] = c.packet.next(dir);
      later[i] = c.later.plain();
      this.time[i] = c.time.next(0);
      length[i] = c.length.next(dir);
      cut[i] = c.cut.plain();
      header[i] = c.header.next(lane);
      a[i] = c.a.next32(lane);
      b[i] = c.b.next32(lane);
      low[i] = c.c.next32(lane);
      ulp[i] = c.ulp.next32(lane);
    }
    this.byDir = rowsByDir(n, (i) => this.dir(i));
    this.order = this.inTime(n);
    this.bad = this.byDir.map((rows) => rows.filter((i) => this.isBad(i)));
    this.readRequests(json.requests);
  }
  readRequests(json) {
    const c = columnsOf(json), names = ["size", "sinkSTag", "sinkHigh", "sinkLow", "srcSTag", "srcHigh", "srcLow"];
    this.requests = new Map();
    for (let i = 0; i < this.count; i++) {
      if (!(this.flags[i] & IS_REQUEST)) continue;
      const dir = this.dir(i);
      this.requests.set(i, names.map((name) => c[name].next32(dir)));
    }
  }
  // inTime returns the rows in the order of their times: where the capture has holes, a row may be earlier than those before it.
  inTime(n) {
    const { time } = this, rows = new Uint32Array(n);
    let sorted = true;
    for (let i = 0; i < n; i++) {
      rows[i] = i;
      if (i > 0 && time[i] < time[i - 1]) sorted = false;
    }
    return sorted ? rows : rows.sort((i, k) => time[i] - time[k] || i - k);
  }
  dir(i) { return this.flags[i] & 1; }
  end(i) { return this.offset[i] + this.size[i]; }
  opcode(i) { return this.flags[i] & HAS_SEGMENT ? (this.flags[i] >> 1) & 15 : -1; }
  crc(i) { return (this.flags[i] >> 5) & 3; }
  has(i, flag) { return (this.flags[i] & flag) !== 0; }
  isBad(i) { return this.has(i, IN_ERROR) || this.cut[i] > 0; }
  // at returns the row with a byte of a direction, -1 if there is none.
  at(dir, offset) {
    const rows = this.byDir[dir];
    const i = lowerBound(rows.length, offset + 1, (k) => this.offset[rows[k]]) - 1;
    return i >= 0 && offset < this.end(rows[i]) ? rows[i] : -1;
  }
  // isBehind tells whether a byte may be in an FPDU that the page does not have.
  isBehind(dir, offset) {
    const rows = this.byDir[dir];
    return this.omitted > 0 && (rows.length === 0 || offset >= this.end(rows[rows.length - 1]));
  }
  // near returns the row that begins at a byte, or before, or is the first one.
  near(dir, offset) {
    const rows = this.byDir[dir];
    if (rows.length === 0) return -1;
    return rows[Math.max(0, lowerBound(rows.length, offset + 1, (k) => this.offset[rows[k]]) - 1)];
  }
}

// The orders of a TCP segment, as package capture numbers them.
const ORDER_AHEAD = 2, ORDER_FILLS = 3, ORDER_REPEAT = 4, MATCH_DIFFERS = 2;

// Segments are the TCP segments with bytes.
class Segments {
  constructor(json) {
    const n = this.count = json.count, c = columnsOf(json);
    this.flags = new Uint8Array(n);
    this.offset = new Float64Array(n);
    this.time = new Float64Array(n);
    for (const name of ["length", "packet", "repeated"]) this[name] = new Uint32Array(n);
    const ends = [0, 0];
    for (let i = 0; i < n; i++) {
      const dir = (this.flags[i] = c.flags.next(0)) & 1;
      this.offset[i] = ends[dir] + c.gap.plain();
      this.length[i] = c.length.next(dir);
      ends[dir] = this.offset[i] + this.length[i];
      this.packet[i] = c.packet.next(dir);
      this.time[i] = c.time.next(0);
      this.repeated[i] = c.repeated.plain();
    }
    const inOrder = (rows) => rows.every((row, k) => k === 0 || this.offset[rows[k - 1]] <= this.offset[row]);
    const sorted = (rows) => inOrder(rows) ? rows : rows.sort((i, k) => this.offset[i] - this.offset[k] || i - k);
    this.byDir = rowsByDir(n, (i) => this.flags[i] & 1).map(sorted);
    this.odd = this.byDir.map((rows) => rows.filter((i) => this.isOdd(i)));
    this.longest = this.byDir.map((rows) => rows.reduce((most, i) => Math.max(most, this.length[i]), 0));
  }
  end(i) { return this.offset[i] + this.length[i]; }
  order(i) { return (this.flags[i] >> 1) & 7; }
  match(i) { return (this.flags[i] >> 4) & 3; }
  isOdd(i) { return this.order(i) > 1 || this.repeated[i] > 0; }
  // over returns the rows that lie over a range of bytes.
  over(dir, from, to) {
    const rows = this.byDir[dir], found = [];
    let k = lowerBound(rows.length, from - this.longest[dir], (i) => this.offset[rows[i]]);
    for (; k < rows.length && this.offset[rows[k]] < to; k++) {
      if (this.end(rows[k]) > from) found.push(rows[k]);
    }
    return found;
  }
}

// Markers are those of all FPDUs.
class Markers {
  constructor(json) {
    const n = this.count = json.count, c = columnsOf(json);
    this.flags = new Uint8Array(n);
    this.offset = new Float64Array(n);
    this.fpduptr = new Uint16Array(n);
    for (let i = 0; i < n; i++) {
      const dir = (this.flags[i] = c.flags.next(0)) & 1;
      this.offset[i] = c.offset.next(dir);
      this.fpduptr[i] = c.fpduptr.next(dir);
    }
    this.byDir = rowsByDir(n, (i) => this.flags[i] & 1);
  }
  isValid(i) { return !(this.flags[i] & 2); }
  // within returns the rows of the markers in a range of bytes.
  within(dir, from, to) {
    const rows = this.byDir[dir], key = (i) => this.offset[rows[i]];
    return rows.slice(lowerBound(rows.length, from, key), lowerBound(rows.length, to, key));
  }
}

// Reads are the RDMA Reads that were answered: rows of their Requests, and times from there to the Response.
class Reads {
  constructor(json, fpdus) {
    const n = this.count = json.count, c = columnsOf(json);
    this.row = new Uint32Array(n);
    for (const name of ["first", "last", "acked", "after"]) this[name] = new Float64Array(n);
    this.byRow = new Map();
    for (let i = 0; i < n; i++) {
      this.row[i] = c.row.next(0);
      this.first[i] = c.first.plain();
      this.last[i] = c.last.plain();
      this.acked[i] = c.acked.plain();
      this.after[i] = c.after.plain();
      this.byRow.set(this.row[i], i);
    }
    this.faulty = new Map(); // rows of Requests with a faulty Response, and when that came
    for (let i = 0; i < json.faulty; i++) {
      const row = c.faultyRow.next(0);
      this.faulty.set(row, fpdus.time[row] + c.faultyLast.plain());
    }
    this.began = Float64Array.from(this.row, (row) => fpdus.time[row]);
    this.underWay(fpdus);
  }
  // slowest returns the slowest few, the slowest first.
  slowest(few) {
    let found = [];
    for (let i = 0; i < this.count; i++) {
      if (found.length === few && this.last[i] <= this.last[found[few - 1]]) continue;
      found = [...found, i].sort((a, b) => this.last[b] - this.last[a]).slice(0, few);
    }
    return found;
  }
  // underWay makes lists of the times at which the number of Requests without a Response changes, and of the numbers from
  // then on. A Request whose Response is not there counts until a later one is answered.
  underWay(fpdus) {
    const rows = [...fpdus.requests.keys()], n = rows.length, answered = [Infinity, Infinity];
    const begun = Float64Array.from(rows, (row) => fpdus.time[row]).sort(), ends = new Float64Array(n);
    for (let k = n - 1; k >= 0; k--) {
      const i = this.byRow.get(rows[k]), dir = fpdus.dir(rows[k]);
      if (i !== undefined) answered[dir] = this.began[i] + this.last[i];
      else if (this.faulty.has(rows[k])) answered[dir] = this.faulty.get(rows[k]);
      ends[k] = answered[dir];
    }
    ends.sort();
    this.times = new Float64Array(2 * n);
    this.numbers = new Uint32Array(2 * n);
    for (let k = 0, b = 0, e = 0; k < this.times.length; k++) {
      const starts = b < n && begun[b] <= ends[e];
      this.times[k] = starts ? begun[b++] : ends[e++];
      this.numbers[k] = b - e;
    }
  }
}

// Waits are how long Reads and the ULP's answers took: when each began, and the row to choose. The Reads come first.
class Waits {
  constructor(reads, json, fpdus) {
    const n = this.count = reads.count + json.count, c = columnsOf(json);
    this.reads = reads.count;
    this.row = new Uint32Array(n);
    for (const name of ["began", "last"]) this[name] = new Float64Array(n);
    for (const name of ["row", "began", "last"]) this[name].set(reads[name]);
    for (let i = reads.count; i < n; i++) {
      this.row[i] = c.row.next(0);
      this.last[i] = c.last.plain();
      this.began[i] = fpdus.time[this.row[i]] - this.last[i];
    }
  }
}

// load reads the data of a connection, and its findings from the page's text.
function load(article) {
  const json = JSON.parse(document.getElementById(article.id + "-data").textContent);
  const findings = [...article.querySelectorAll("li[data-finding]")].map((item) => ({
    item,
    number: Number(item.dataset.finding),
    dir: Number(item.dataset.dir),
    offset: Number(item.dataset.offset),
    time: Number(item.dataset.time),
    packet: Number(item.dataset.packet),
    severity: item.dataset.severity,
    text: item.querySelector("a").textContent.trim(),
  }));
  const fpdus = new Fpdus(json.fpdus), reads = new Reads(json.reads, fpdus);
  return {
    article, findings,
    number: json.number, session: json.session, ends: json.ends, end: json.end, spans: json.spans || [], closes: json.closes || [], last: json.last,
    fpdus, reads, slow: new Set(reads.slowest(5).map((i) => reads.row[i])), waits: new Waits(reads, json.answers, fpdus), segments: new Segments(json.segments), markers: new Markers(json.markers),
  };
}
