// find.js: a search through all connections: their FPDUs and findings.

// lineOf is what is searched of an FPDU: what the table shows of it, and whether it is one of the slowest Reads.
function lineOf({ fpdus, slow }, i) {
  return "#" + (fpdus.packet[i] + fpdus.later[i]) + " offset " + fpdus.offset[i] + " row " + i + " " + headerLine(fpdus, i) +
    (slow.has(i) ? " slow" : "");
}

// A Search finds a text from a place on, and goes around at the end. Large and small letters are the same.
class Search {
  // models gives the data of a connection by its number, numbers are all of them in their order.
  constructor(numbers, models) { Object.assign(this, { numbers, models }); }
  // next returns the address of the place after a row of a connection that has the text, "" if there is none.
  next(text, number, row) {
    const wanted = text.trim().toLowerCase(), at = Math.max(0, this.numbers.indexOf(number));
    if (wanted === "") return "";
    for (let k = 0; k <= this.numbers.length; k++) {
      const here = this.numbers[(at + k) % this.numbers.length];
      const found = this.within(this.models(here), wanted, k === 0 ? row + 1 : 0, k === this.numbers.length ? row : Infinity);
      if (found) return "#c" + here + found;
    }
    return "";
  }
  within(model, wanted, from, to) {
    const has = (line) => line.toLowerCase().includes(wanted);
    for (let i = from; i < model.fpdus.count && i <= to; i++) {
      if (has(lineOf(model, i))) return "-p" + i;
    }
    const finding = from > 0 ? undefined : model.findings.find((f) => has(f.item.textContent));
    return finding ? "-f" + finding.number : "";
  }
}

// searchField puts a field above the connections. shown gives the number and the view of the one that is shown.
function searchField(numbers, shown) {
  if (numbers.length === 0) return;
  const search = new Search(numbers, modelOf), said = make("span", { className: "quiet", role: "status" });
  const field = make("input", { id: "find", type: "search", "aria-label": "Find in all connections",
    placeholder: "find: message, stag, msn, packet, offset, finding (press /)" });
  const form = make("form", {}, field, " ", make("button", { "aria-label": "Next place" }, "Next"), " ", said);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const [number, view] = shown(), found = search.next(field.value, number, view.timeline.selected);
    said.textContent = found === "" ? "Nothing has this text." : "";
    if (found !== "" && found === location.hash) route(); else if (found !== "") location.hash = found;
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.target.closest("input, select, textarea")) return;
    e.preventDefault();
    field.focus();
  });
  document.querySelector("header").append(form);
}
