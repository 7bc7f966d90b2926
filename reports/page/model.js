// The model: report.json with indexes, the cases (read when first needed), and the search.

const FILE_OPS = ["file", "quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear"];
const SHORT = { quantize_activation: "activation" }, SHORTEST = { quantize: "quant", quantize_activation: "act", dequantize: "deq", unpack: "unp", linear: "lin" };
const BAD = new Set(["fail", "crash", "timeout", "resource", "xpass", "internal"]);
const DOUBTFUL = new Set(["weak_evidence", "waived", "inconclusive", "robustness"]);
const tone = status => status === "pass" ? "pass" : BAD.has(status) ? "fail" : DOUBTFUL.has(status) ? "warn" : "none";

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Model {
  constructor(report) {
    Object.assign(this, report);
    const families = new Map(this.schemes.map(scheme => [scheme.name, scheme.family]));
    for (const cell of this.cells) {
      cell.family = families.get(cell.scheme) || cell.scheme;
      cell.implementation = cell.variant ? `${cell.provider}_${cell.variant}` : cell.provider;
      cell.prefix = `${cell.kind}.${cell.op}/${cell.scheme}/`;
      cell.suffix = cell.variant ? `/${cell.implementation}` : "";
    }
    this.failureOf = new Map(this.failures.map(failure => [failure.id, failure]));
  }

  loadCases() {
    this.loading = this.loading || unpacked("cases").then(packed => { this.cases = new Cases(this.cells, packed); return this.cases; });
    return this.loading;
  }
}

// Sums cells into a map from key(cell) to {total, statuses}.
function summed(cells, key) {
  const sums = new Map();
  for (const cell of cells) {
    const at = key(cell);
    if (!sums.has(at)) sums.set(at, { total: 0, statuses: {} });
    const sum = sums.get(at);
    sum.total += cell.total;
    for (const [status, number] of Object.entries(cell.statuses)) sum.statuses[status] = (sum.statuses[status] || 0) + number;
  }
  return sums;
}

const toneOf = statuses => {
  const tones = new Set(Object.keys(statuses).map(tone));
  return ["fail", "warn", "pass", "none"].find(one => tones.has(one)) || "none";
};

// All cases in columns: the cell, input, status and reason of case i. The cases of a cell are adjacent.
class Cases {
  constructor(cells, packed) {
    const total = packed.cells.reduce((sum, cell) => sum + cell[0].length, 0);
    Object.assign(this, { cells, statuses: packed.statuses, inputs: packed.inputs, reasons: packed.reasons, reruns: packed.reruns, total });
    this.cell = new Uint32Array(total);
    this.input = new Uint32Array(total);
    this.status = new Uint8Array(total);
    this.reason = new Int32Array(total).fill(-1);
    this.rerun = new Uint32Array(total);
    this.first = new Uint32Array(packed.cells.length + 1);
    const pass = this.statuses.indexOf("pass");
    let i = 0;
    this.kinds = packed.cells.map(cell => cell[4]);
    packed.cells.forEach(([steps, statuses, why, again], c) => {
      let input = 0, reason = 0;
      this.first[c] = i;
      steps.forEach((step, j) => {
        input += step;
        this.cell[i] = c;
        this.input[i] = input;
        this.status[i] = statuses.charCodeAt(j) - 97;
        if (this.status[i] !== pass) this.reason[i] = why[reason++];
        this.rerun[i] = Array.isArray(again) ? again[j] : again;
        ++i;
      });
    });
    this.first[packed.cells.length] = i;
  }

  caseId(i) { return this.cells[this.cell[i]].prefix + this.inputs[this.input[i]]; }
  id(i) { return this.caseId(i) + this.cells[this.cell[i]].suffix; }
  statusOf(i) { return this.statuses[this.status[i]]; }
  kindOf(i) { return { c: "reachable", r: "representable", h: "hostile" }[this.kinds[this.cell[i]][i - this.first[this.cell[i]]]]; }
  reasonOf(i) { return this.reason[i] < 0 ? "" : this.reasons[this.reason[i]]; }
  rerunOf(i) { return this.reruns[this.rerun[i]].replace("\u0001", () => this.id(i)); }

  find(id) {
    for (let c = 0; c < this.cells.length; ++c) {
      if (!id.startsWith(this.cells[c].prefix) || !id.endsWith(this.cells[c].suffix)) continue;
      for (let i = this.first[c]; i < this.first[c + 1]; ++i) if (this.id(i) === id) return i;
    }
    return -1;
  }

  // The same question to every implementation.
  rivals(i) {
    const found = [], asked = this.cells[this.cell[i]].prefix;
    for (let c = 0; c < this.cells.length; ++c)
      if (this.cells[c].prefix === asked)
        for (let j = this.first[c]; j < this.first[c + 1]; ++j) if (this.input[j] === this.input[i]) found.push(j);
    return found;
  }
}

// Search: all words must match; "key:value" searches one field, "-" before a word excludes, * stands for any text.
const KEYS = ["scheme", "op", "provider", "variant", "status", "kind", "family", "input", "reason"];

function parsed(query) {
  return query.trim().toLowerCase().split(/\s+/).filter(Boolean).map(given => {
    const no = given.startsWith("-") && given.length > 1;
    const word = no ? given.slice(1) : given;
    const colon = word.indexOf(":");
    const key = colon > 0 && KEYS.includes(word.slice(0, colon)) ? word.slice(0, colon) : null;
    return { no, key, text: key ? word.slice(colon + 1) : word };
  }).filter(term => term.text);
}

// The unknown field names in words such as "schem:int8_row".
const unknownKeys = query => [...new Set(query.trim().toLowerCase().split(/\s+/).map(word => word.match(/^-?([a-z_]+):/)).filter(found => found && !KEYS.includes(found[1])).map(found => found[1]))];

function matcher(text, exact) {
  if (text.includes("*")) {
    const pattern = new RegExp(`^${text.split("*").map(part => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`);
    return value => pattern.test(value.toLowerCase());
  }
  return exact ? value => value.toLowerCase() === text : value => value.toLowerCase().includes(text);
}

// Whole names win over parts: scheme:int8_row does not match int8_row_extra if int8_row exists.
function matchAll(values, text) {
  const whole = values.some(value => value.toLowerCase() === text);
  const fits = matcher(text, whole);
  return Uint8Array.from(values, value => fits(value) ? 1 : 0);
}

// Returns {found: indexes of cases, tally: {status: count}}.
function search(cases, query) {
  const tests = parsed(query).map(term => testOf(cases, term));
  const ofCells = tests.filter(test => test.cell), ofCases = tests.filter(test => !test.cell);
  const found = new Uint32Array(cases.total), counts = new Uint32Array(cases.statuses.length);
  let size = 0;
  for (let c = 0; c < cases.cells.length; ++c) {
    if (!ofCells.every(test => test.cell[c] !== test.no)) continue;
    for (let i = cases.first[c]; i < cases.first[c + 1]; ++i) {
      if (!ofCases.every(test => test.fits(i, c) !== test.no)) continue;
      found[size++] = i;
      ++counts[cases.status[i]];
    }
  }
  const tally = Object.fromEntries(cases.statuses.map((status, s) => [status, counts[s]]).filter(([, number]) => number));
  return { found: found.subarray(0, size), tally };
}

function testOf(cases, { no, key, text }) {
  const cellKey = { scheme: "scheme", op: "op", provider: "provider", variant: "variant", kind: "kind", family: "family" }[key];
  if (cellKey) {
    const names = [...new Set(cases.cells.map(cell => cell[cellKey]))];
    const fits = matchAll(names, text), fitting = new Set(names.filter((_, i) => fits[i]));
    return { no: no ? 1 : 0, cell: Uint8Array.from(cases.cells, cell => fitting.has(cell[cellKey]) ? 1 : 0) };
  }
  const statuses = matchAll(cases.statuses, text), part = matcher(text, false);
  if (key === "status") return { no, fits: i => statuses[cases.status[i]] === 1 };
  const inputs = Uint8Array.from(cases.inputs, value => part(value) ? 1 : 0), reasons = Uint8Array.from(cases.reasons, value => part(value) ? 1 : 0);
  const reason = i => cases.reason[i] >= 0 && reasons[cases.reason[i]] === 1;
  if (key === "input") return { no, fits: i => inputs[cases.input[i]] === 1 };
  if (key === "reason") return { no, fits: reason };
  const cells = Uint8Array.from(cases.cells, cell => part(`${cell.prefix} ${cell.implementation} ${cell.family}`) ? 1 : 0);
  const across = spans(cases, text), named = cases.statuses.indexOf(text);
  return { no, fits: (i, c) => cells[c] === 1 || inputs[cases.input[i]] === 1 || reason(i) || cases.status[i] === named || across.some(([ofCell, ofInput]) => ofCell[c] === 1 && ofInput[cases.input[i]] === 1) };
}

// A word with a slash may reach from one part of an id (prefix, input, suffix) into the next. Returns the ways in which
// it can, each as the cells and the inputs that match.
function spans(cases, text) {
  const ways = [], slashes = [...text.matchAll("/")].map(match => match.index);
  const add = (ofCell, ofInput) => ways.push([Uint8Array.from(cases.cells, cell => ofCell(cell) ? 1 : 0), Uint8Array.from(cases.inputs, input => ofInput(input) ? 1 : 0)]);
  for (const k of slashes) {
    const left = text.slice(0, k), right = text.slice(k + 1);
    add(cell => cell.prefix.endsWith(`${left}/`), input => input.startsWith(right));
    add(cell => cell.suffix.startsWith(`/${right}`), input => input.endsWith(left));
    for (const l of slashes.filter(other => other > k))
      add(cell => cell.prefix.endsWith(`${left}/`) && cell.suffix.startsWith(text.slice(l)), input => input === text.slice(k + 1, l));
  }
  return ways;
}
