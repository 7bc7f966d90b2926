// Charts in SVG: heat map, sizes against the formula, roofline.

const statusText = status => h("b", { class: tone(status) }, status);

// A cell's counts in a few letters: failures, else passes, else "n. s." (not supported) or "?" (undecided).
function cellText({ total, statuses }) {
  const bad = Object.entries(statuses).filter(([status]) => BAD.has(status)).reduce((sum, [, number]) => sum + number, 0);
  if (bad) return `✗ ${grouped(bad)}`;
  if (statuses.pass) return grouped(statuses.pass);
  return statuses.not_supported === total ? "n. s." : `? ${grouped(total)}`;
}

const tallyText = statuses => Object.entries(statuses).map(([status, number]) => `${grouped(number)} ${status}`).join(", ");

// A table of summed cells, rows × columns; rowHref(row) and href(row, column) give the links.
function heatMap({ rows, columns, sums, rowTitle, href, rowHref, label }) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label },
    h("table", { class: "heat" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, rowTitle), columns.map(column => h("th", { scope: "col", title: column }, (phone.matches && SHORTEST[column]) || SHORT[column] || column)))),
      h("tbody", {}, rows.map(row => h("tr", {},
        h("th", { scope: "row" }, rowHref ? link(rowHref(row), row) : row),
        columns.map(column => {
          const sum = sums.get(`${row} ${column}`);
          if (!sum) return h("td", {}, h("span", { class: "soft" }, "·"));
          const shade = toneOf(sum.statuses), words = `${row} ${column}: ${tallyText(sum.statuses)}`;
          return h("td", {}, link(href(row, column), cellText(sum), { class: `is-${shade}`, title: words, "aria-label": words }));
        }))))));
}

// Draws where a matrix is wrong: one square per cell of its map, redder if more of its elements are wrong.
function wrongMap({ of, rows, cols, rows_a_cell: tall, cols_a_cell: wide, cells }) {
  const side = Math.max(4, Math.min(14, Math.floor(700 / cells[0].length), Math.floor(260 / cells.length))), width = cells[0].length * side, height = cells.length * side;
  const squares = cells.flatMap((line, y) => [...line].map((letter, x) => letter === "0" ? null :
    svg("rect", { x: x * side, y: y * side, width: side - 1, height: side - 1, "fill-opacity": 0.3 + 0.7 * Number(letter) / 9 },
      svg("title", {}, `row ${y * tall}, column ${x * wide}: ${letter === "9" ? "all" : "some"} wrong`))));
  const cell = tall * wide === 1 ? "one element" : `${tall} × ${wide} elements; the stronger the color, the more of them are wrong`;
  return [h("h3", {}, `Where ${of} is wrong`), h("div", { class: "scroll" }, svg("svg", { class: "wrong", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `map of the wrong elements of ${of}` },
    svg("rect", { class: "ground", width, height }), squares)), soft(`${count(rows, "row")} down, ${count(cols, "column")} across; each square is ${cell}.`)];
}

const LOG = { low: v => Math.pow(10, Math.floor(Math.log10(v))), high: v => Math.pow(10, Math.ceil(Math.log10(v))) };

// Axes of a log-log plot with numbers at powers of ten; returns {group, x, y}.
function logPlot({ width, height, xs, ys, xTitle, yTitle, label }) {
  const left = 58, bottom = 40, right = 22, top = 10;
  const range = values => [LOG.low(Math.min(...values)), LOG.high(Math.max(...values) * 1.001)];
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const x = v => left + (width - left - right) * Math.log10(v / x0) / Math.log10(x1 / x0);
  const y = v => height - bottom - (height - bottom - top) * Math.log10(v / y0) / Math.log10(y1 / y0);
  const parts = [];
  for (let v = x0; v <= x1 * 1.001; v *= 10)
    parts.push(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: top, y2: height - bottom }), svg("text", { x: x(v), y: height - bottom + 15, "text-anchor": "middle" }, axisNumber(v)));
  for (let v = y0; v <= y1 * 1.001; v *= 10)
    parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), svg("text", { x: left - 5, y: y(v) + 4, "text-anchor": "end" }, axisNumber(v)));
  parts.push(svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, xTitle),
    svg("text", { x: 12, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(height - bottom) / 2})` }, yTitle));
  return { group: svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, parts), x, y, x0, x1, y0, y1 };
}

function axisNumber(value) {
  if (value >= 1e9) return `${digits(value / 1e9)} G`;
  if (value >= 1e6) return `${digits(value / 1e6)} M`;
  return value >= 1e3 ? `${digits(value / 1e3)} k` : digits(value);
}

const measure = (row, name) => {
  const found = row.measures[name];
  return found && found.value !== null ? found.value : null;
};

// Shows each file once: the bytes that the formula predicts against the bytes of its payload. On the line they are equal.
function sizePlot(rows) {
  const dots = rows.map(row => ({ formula: measure(row, "formula_bytes"), payload: measure(row, "payload_bytes"), ok: row.status === "pass" })).filter(dot => dot.formula > 0 && dot.payload > 0);
  if (!dots.length) return null;
  const all = dots.flatMap(dot => [dot.formula, dot.payload]);
  const plot = logPlot({ width: phone.matches ? 370 : 560, height: phone.matches ? 300 : 380, xs: all, ys: all, xTitle: "bytes by the scheme's formula", yTitle: "payload bytes", label: `${dots.length} files: payload bytes against the formula's bytes` });
  const path = list => list.map(dot => `M${plot.x(dot.formula).toFixed(1)} ${plot.y(dot.payload).toFixed(1)}h0`).join("");
  const off = dots.filter(dot => !dot.ok);
  plot.group.append(svg("line", { class: "roof", x1: plot.x(plot.x0), y1: plot.y(plot.x0), x2: plot.x(plot.x1), y2: plot.y(plot.x1) }),
    svg("path", { class: "dots", d: path(dots.filter(dot => dot.ok)) }), svg("path", { class: "dots off", d: path(off) }));
  return h("div", {}, plot.group, soft(`${grouped(dots.length - off.length)} of ${grouped(dots.length)} files have the formula's size${off.length ? `; ${grouped(off.length)} failed and are red` : ""}.`));
}

const PEAK = /^peak_/;
const median = values => [...values].sort((a, b) => a - b)[values.length >> 1];

// Arithmetic intensity against the attained rate; ceilings are the medians of what was measured in the same rounds as the kernels.
function rooflinePlot(rows) {
  const dots = rows.map(row => {
    const bytes = measure(row, "moved_bytes"), operations = measure(row, "operations"), rate = measure(row, "rate");
    return bytes && operations && rate ? { row, x: operations / bytes, y: rate } : null;
  }).filter(Boolean).slice(0, 800);
  if (!dots.length) return null;
  const streams = dots.map(dot => measure(dot.row, "stream")).filter(Boolean);
  const peaks = new Map();
  for (const { row } of dots)
    for (const name of Object.keys(row.measures).filter(one => PEAK.test(one))) peaks.set(name, [...(peaks.get(name) || []), measure(row, name)]);
  const ceilings = [...peaks].map(([name, values]) => ({ name: name.replace(PEAK, "").replaceAll("_", " "), peak: median(values) })).sort((a, b) => b.peak - a.peak);
  const stream = streams.length ? median(streams) : null;
  const plot = logPlot({ width: phone.matches ? 370 : 860, height: phone.matches ? 330 : 430, xs: dots.map(dot => dot.x), ys: [...dots.map(dot => dot.y), ...ceilings.map(ceiling => ceiling.peak)], xTitle: "operations per byte", yTitle: "attained GOP/s", label: `roofline: ${dots.length} kernels under the measured ceilings` });
  const knee = peak => Math.min(plot.x1, Math.max(plot.x0, stream ? peak / stream : plot.x0));
  let last = -100;
  for (const { name, peak } of ceilings) {
    plot.group.append(svg("line", { class: "roof", x1: plot.x(knee(peak)), x2: plot.x(plot.x1), y1: plot.y(peak), y2: plot.y(peak) }));
    const at = Math.max(plot.y(peak) - 4, last + 13);
    plot.group.append(svg("text", { x: plot.x(plot.x1) - 4, y: at, "text-anchor": "end" }, `${name}: ${digits(peak)} GOP/s`));
    last = at;
  }
  if (stream) {
    const top = Math.min(knee(Math.max(plot.y0 * 1.01, ...ceilings.map(ceiling => ceiling.peak))), plot.y1 / stream);
    const start = Math.max(plot.x0, plot.y0 / stream);
    plot.group.append(svg("line", { class: "roof", x1: plot.x(start), y1: plot.y(start * stream), x2: plot.x(top), y2: plot.y(top * stream) }),
      svg("text", { x: plot.x(start) + 14, y: plot.y(start * stream) + 12 }, `stream: ${digits(stream)} GB/s`));
  }
  const providers = [...new Set(dots.map(dot => dot.row.provider))].sort();
  for (const { row, x, y } of dots)
    plot.group.append(svg("circle", { class: `hue-${providers.indexOf(row.provider) % 7}`, cx: plot.x(x).toFixed(1), cy: plot.y(y).toFixed(1), r: 5 },
      svg("title", {}, `${row.case_id} ${row.provider}_${row.variant}: ${digits(y)} GOP/s at ${digits(x)} operations per byte`)));
  return h("div", {}, plot.group, h("p", { class: "key" }, providers.map((name, i) => h("span", {}, h("i", { class: `hue-${i % 7}` }), name))));
}

// A share of a roof (or of the dense bytes) with a mark, such as an end of an interval or the formula.
function shareBar(share, mark, words) {
  const part = value => `${(100 * Math.min(1.2, Math.max(0, value))).toFixed(1)}%`;
  return h("span", { class: "bar", role: "img", "aria-label": words, title: words }, h("i", { style: `width: ${part(share)}` }), mark === null ? null : h("b", { style: `left: ${part(mark)}` }));
}
