// The history of the run's series: counts by night, cases that changed, and the time of each latency case. A step is marked
// where `qcts history` finds one.

const signedPercent = ratio => `${ratio >= 1 ? "+" : "−"}${digits(100 * Math.abs(ratio - 1), 2)} %`;
const dayOf = run => run.started.slice(0, 10);

// One line through the nights, on a logarithmic axis between its own extremes. A night that cannot be trusted is a cross
// on the lower edge, a step is a vertical line, the last night is a dot.
function sparkLine({ values, trusted, changes }, words) {
  const width = 150, height = 26, edge = 4;
  const known = values.filter((value, i) => value !== null && trusted[i] === "1").map(Math.log), low = Math.min(...known), high = Math.max(...known);
  const x = i => values.length > 1 ? edge + (width - 2 * edge) * i / (values.length - 1) : width / 2;
  const y = value => high > low ? height - edge - (height - 2 * edge) * (Math.log(value) - low) / (high - low) : height / 2;
  const lines = [], crosses = [];
  let open = false, last = null;
  values.forEach((value, i) => {
    if (value === null) open = false;
    else if (trusted[i] !== "1") crosses.push(`M${(x(i) - 2).toFixed(1)} ${height - 5}l4 4m0 -4l-4 4`);
    else {
      lines.push(`${open ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`);
      open = true;
      last = [x(i), y(value)];
    }
  });
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words },
    svg("title", {}, words),
    changes.map(change => svg("line", { class: change.ratio > 1 ? "step slower" : "step", x1: x(change.at) - 1, x2: x(change.at) - 1, y1: 0, y2: height })),
    svg("path", { d: lines.join("") }), crosses.length ? svg("path", { class: "doubtful", d: crosses.join("") }) : null,
    last ? svg("circle", { class: "now", cx: last[0].toFixed(1), cy: last[1].toFixed(1), r: 2.5 }) : null);
}

// Passes as a line; cases that neither passed nor were declined as bars, on a separate axis.
function nightsPlot(runs) {
  const width = phone.matches ? 370 : 860, height = 170, left = 62, right = 46, top = 12, bottom = 24;
  const x = i => left + (width - left - right) * (i + 0.5) / runs.length;
  const most = Math.max(1, ...runs.map(run => run.pass)), fewest = Math.min(...runs.map(run => run.pass));
  const floor = fewest === most ? 0 : Math.max(0, fewest - (most - fewest)), worst = Math.max(1, ...runs.map(run => run.other));
  const y = value => height - bottom - (height - top - bottom) * (value - floor) / (most - floor);
  const bar = run => (height - top - bottom) * run.other / worst;
  const thick = Math.max(2, Math.min(14, 0.6 * (width - left - right) / runs.length));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${count(runs.length, "night")}: between ${grouped(fewest)} and ${grouped(most)} passes` },
    svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    [floor, most].map(value => svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, grouped(value))),
    runs.some(run => run.other) ? svg("text", { x: width - right + 6, y: top + 4, class: "fail" }, grouped(worst)) : null,
    runs.map((run, i) => run.other ? svg("rect", { class: "other", x: x(i) - thick / 2, width: thick, y: height - bottom - bar(run), height: bar(run) }, svg("title", {}, `${dayOf(run)}: ${grouped(run.other)} neither passed nor declined`)) : null),
    svg("path", { class: "passes", d: runs.map((run, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(run.pass).toFixed(1)}`).join("") }),
    svg("text", { x: left, y: height - 6 }, dayOf(runs[0])), svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, dayOf(runs[runs.length - 1])));
}

// One row of squares per family, one square per night: red if a case failed, yellow if one is undecided, green if all cases
// that were asked passed, empty if nothing was asked.
function familyStrip({ runs, families }) {
  const side = phone.matches ? 10 : 12, gap = 2, step = side + gap, left = phone.matches ? 130 : 190, nights = Math.min(runs.length, phone.matches ? 20 : 60), first = runs.length - nights;
  const toneAt = (family, i) => family.bad[i] ? "fail" : family.undecided[i] ? "warn" : family.pass[i] ? "pass" : "none";
  const row = (family, y) => {
    const squares = { fail: [], warn: [], pass: [], none: [] }, failed = runs.filter((_, i) => i >= first && family.bad[i]);
    for (let i = first; i < runs.length; ++i) squares[toneAt(family, i)].push(`M${left + (i - first) * step} ${y * step}h${side}v${side}h${-side}z`);
    const words = `${family.family}: ${failed.length ? `failures on ${count(failed.length, "night")}, the last on ${dayOf(failed[failed.length - 1])}` : "no failure"}`;
    return svg("a", { href: casesHref(`family:${family.family}`), "aria-label": words }, svg("title", {}, words),
      svg("text", { x: left - 6, y: y * step + side - 2, "text-anchor": "end" }, family.family),
      Object.entries(squares).filter(([, list]) => list.length).map(([shade, list]) => svg("path", { class: `night-${shade}`, d: list.join("") })));
  };
  const width = left + nights * step, height = families.length * step;
  return [h("h3", {}, "Families by night"),
    h("div", { class: "scroll" }, svg("svg", { class: "nights", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "families by night" }, families.map(row))),
    soft(`Each square is a family on one night, ${dayOf(runs[first])} to ${dayOf(runs[runs.length - 1])}: red if a case failed, yellow if one is not decided, green if all cases that were asked passed. Each row opens its cases in this run.`)];
}

function flipsTable(trend) {
  const nameOf = new Map(trend.runs.map(run => [run.run, run]));
  const words = flip => [statusText(flip.changes.slice(-3)[0].before), flip.changes.slice(-3).map(change => [" → ", statusText(change.after), h("span", { class: "soft" }, ` ${nameOf.has(change.run) ? dayOf(nameOf.get(change.run)) : `run ${change.run}`}`)])];
  return rowsTable({ label: "cases whose status changed", height: "40vh", rows: trend.flips, columns: [
    { title: "changes", width: "5.5rem", narrow: "4rem", number: true, cell: flip => grouped(flip.changes.length), value: flip => flip.changes.length },
    { title: "case", width: "42rem", narrow: "1fr", cell: flip => link(caseHref(flip.id), flip.id), value: flip => flip.id },
    { title: "last changes", width: "34rem", cell: words },
  ] });
}

function pacesTable(trend) {
  const since = one => one.changes.length ? one.changes[one.changes.length - 1] : null;
  const size = one => since(one) ? Math.abs(Math.log(since(one).ratio)) : 0;
  const step = one => since(one) ? `${signedPercent(since(one).ratio)} since ${dayOf(trend.runs[since(one).at])}` : "steady";
  const tones = one => since(one) ? since(one).ratio > 1 ? "fail" : "pass" : "soft";
  const rows = [...trend.latency].sort((a, b) => size(b) - size(a) || a.id.localeCompare(b.id));
  return rowsTable({ label: "latency by night", height: "60vh", rows, columns: [
    { title: "case", width: "40rem", narrow: "1fr", cell: one => link(caseHref(one.id), one.id.replace(/^latency\./, "")), value: one => one.id },
    { title: "nights", width: "160px", narrow: "150px", cell: one => sparkLine(one, `${count(one.values.filter(value => value !== null).length, "night")}: ${step(one)}`) },
    { title: "last step", width: "13rem", narrow: "5rem", cell: one => h("span", { class: tones(one) }, phone.matches && since(one) ? signedPercent(since(one).ratio) : step(one)), value: one => Math.log(since(one)?.ratio || 1) },
    { title: "µs now", width: "6rem", number: true, cell: one => digits(one.us, 4), value: one => one.us },
    { title: "compared", width: "9rem", cell: one => one.over_roof ? "ratio to the roof" : "only the time" },
  ] });
}

function trendView(model) {
  const trend = model.measured.trend;
  if (!trend || !trend.runs.length) return [h("h2", {}, "Trend"), h("p", {}, "This run is in no history. ", code("qcts run --history FILE"), " adds it to one; ", code("qcts report FOLDER --history FILE"), " shows one here.")];
  const changed = trend.latency.filter(one => one.changes.length).length;
  return [
    h("h2", {}, `Trend: ${count(trend.runs.length, "night")}`),
    soft(trend.nights_total > trend.runs.length ? `The last of ${grouped(trend.nights_total)}. ` : "", "Runs of this plan and selection on this machine class."),
    nightsPlot(trend.runs), soft("Line: passes. Bars, on the scale to the right: cases that neither passed nor were declined."),
    trend.families.length ? familyStrip(trend) : null,
    rowsTable({ label: "nights", height: "30vh", rows: [...trend.runs].reverse(), columns: [
      { title: "run", width: "4rem", narrow: "2.4rem", number: true, cell: run => String(run.run), value: run => run.run },
      { title: "started", width: "12rem", narrow: "1fr", cell: run => phone.matches ? dayOf(run) : run.started, value: run => run.started },
      { title: "commit", width: "9rem", cell: run => run.commit, value: run => run.commit },
      { title: "pass", width: "6rem", narrow: "3.8rem", number: true, cell: run => grouped(run.pass), value: run => run.pass },
      { title: "other", width: "5rem", narrow: "3.2rem", number: true, cell: run => run.other ? h("b", { class: "fail" }, grouped(run.other)) : "0", value: run => run.other },
      { title: "declined", width: "6rem", number: true, cell: run => grouped(run.declined), value: run => run.declined },
      { title: "changed", width: "5.5rem", number: true, cell: run => grouped(run.changed), value: run => run.changed },
      { title: "latency", width: "8rem", cell: run => run.suspended ? "suspended" : "" }] }),
    h("h3", {}, `Cases whose status changed: ${grouped(trend.flips_total)}`),
    trend.flips.length ? flipsTable(trend) : h("p", {}, "None."),
    trend.flips_total > trend.flips.length ? soft("These have the most changes; qcts history lists all.") : null,
    h("h3", {}, `Latency: ${count(trend.latency.length, "case")}, ${changed} with a step`),
    trend.latency.length ? [pacesTable(trend), soft("Each line runs from its own fastest night to its slowest; upward is slower. A vertical line: a step beyond noise. A cross: a night that cannot be trusted.")] : h("p", {}, "These runs timed nothing."),
  ];
}
