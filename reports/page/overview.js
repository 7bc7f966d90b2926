// The first screen: counts, failure groups, changes since the previous run, families × operations.

const casesHref = query => `#/cases?q=${encodeURIComponent(query)}`;
const caseHref = id => `#/case/${encodeURIComponent(id)}`;
const schemeHref = name => `#/scheme/${encodeURIComponent(name)}`;
const providerHref = name => `#/provider/${encodeURIComponent(name)}`;

function tiles(model) {
  const { by_status: statuses, passes_by_evidence: evidence } = model.counts;
  const tile = (number, words, href, shade) => h(href ? "a" : "div", { class: "tile", href }, h("b", { class: shade }, grouped(number)), h("span", {}, words));
  const proofs = [[evidence.confirmed, "on a real library's file"], [evidence.emulated, "with an emulated operation (not confirmed)"], [evidence.reference, "on the reference"], [evidence.other, "of other kinds"]];
  return [h("div", { class: "tiles" },
    Object.entries(statuses).filter(([status, number]) => number || status === "pass" || status === "fail")
      .map(([status, number]) => tile(number, status, casesHref(`status:${status}`), number ? tone(status) : "soft"))),
    soft("Passes: ", proofs.filter(([number]) => number).map(([number, words]) => `${grouped(number)} ${words}`).join(", ") || "none", ".")];
}

function groupBox(group, model, brief) {
  const where = [["variants", "variant", "variant"], ["ops", "operation", "op"], ["schemes", "scheme", "scheme"]].map(([field, noun, key]) => {
    const names = Object.entries(group[field]).filter(([name]) => name).sort((a, b) => b[1] - a[1]);
    if (!names.length) return null;
    const some = names.slice(0, 4).map(([name, number]) => [link(casesHref(`provider:${group.provider} status:${group.status} ${key}:${name}`), name), names.length > 1 ? ` (${grouped(number)})` : "", " "]);
    return h("p", { class: "soft" }, `${names.length === 1 ? noun : `${noun}s`}: `, some, names.length > 4 ? `and ${names.length - 4} more` : "");
  });
  const failure = model.failureOf.get(group.example), first = failure && failure.mismatch;
  return h("section", { class: group.blocks ? "group bad" : "group" },
    h("p", {}, h("b", {}, grouped(group.count), " ", h("span", { class: tone(group.status) }, group.status)), " ", link(providerHref(group.provider), group.provider), ": ", group.hypothesis ? h("b", {}, group.title) : group.title),
    brief ? null : where,
    h("p", {}, brief ? null : "simplest: ", link(caseHref(group.example), code(group.example))),
    first ? h("p", {}, `${first.where}: want `, code(first.want), ", got ", code(first.got), first.total ? ` (${grouped(first.count)} of ${grouped(first.total)} differ)` : "")
      : null,
    !group.hypothesis && group.diagnosis ? h("p", {}, group.diagnosis) : null,
    commandLine(group.rerun));
}

function changesBox(model) {
  const changes = model.changes;
  if (!changes) return [h("h2", { id: "changes" }, "Since the previous run"), soft("There is no earlier run of this plan and selection in the report's folder; ", code("qcts report FOLDER --before RUN"), " compares with another run.")];
  const { before, latency, lists, sizes, environment } = changes;
  const part = (open, title, lines) => lines.length ? h("details", { open }, h("summary", {}, title), lines) : null;
  const timed = [["slower", latency.slower], ["faster", latency.faster], ["slower or faster, but not to be trusted", latency.undecided]];
  return [
    h("h2", { id: "changes" }, "Since the previous run"),
    soft(`${before.started}, ${before.commit}: ${changes.summary}.`),
    lists.map(list => part(list.worse && list.count <= 4, [h("b", {}, grouped(list.count)), ` ${list.title}`, list.causes_total > 1 ? `, of ${count(list.causes_total, "cause")}` : ""], list.causes.map(causeOfChange))),
    timed.map(([title, kernels]) => part(false, [h("b", {}, grouped(kernels.length)), ` ${title}`], kernels.map(paceOfChange))),
    part(false, [h("b", {}, grouped(changes.sizes_total)), " sizes changed"], sizes.map(size => h("p", {}, `${size.measure} ${grouped(size.before)} → ${grouped(size.after)}: `, link(caseHref(size.id), code(size.id))))),
    part(false, [h("b", {}, grouped(environment.length)), " changes in the environment"], environment.map(one => h("p", {}, `${one.field}: `, code(one.before), " → ", code(one.after)))),
    latency.compared ? soft(`Latency: ${count(latency.compared, "case")} compared`, latency.resolution ? `; half of them would have to be ${digits(100 * latency.resolution, 2)} % slower to be named` : "", ".") : null,
  ];
}

function causeOfChange(cause) {
  const turn = [cause.before ? statusText(cause.before) : "absent", " → ", cause.after ? statusText(cause.after) : "absent"];
  return h("div", { class: "cause" }, h("p", {}, cause.count > 1 ? [h("b", {}, grouped(cause.count)), " "] : null, turn, cause.title ? `: ${cause.title}` : ""),
    cause.cases.slice(0, 5).map(id => h("p", { class: "soft" }, link(caseHref(id), code(id)))),
    cause.count > 5 ? soft(`and ${grouped(cause.count - Math.min(5, cause.cases.length))} more`) : null);
}

function paceOfChange({ id, ratio, before_us: before, after_us: after, doubt }) {
  return h("p", {}, `${digits(ratio.value)} × the time [${digits(ratio.low)}, ${digits(ratio.high)}], ${digits(before)} → ${digits(after)} µs: `, link(caseHref(id), code(id)), doubt ? ` (${doubt})` : "");
}

function familyHeat(model, cells, narrowing) {
  const judged = cells.filter(cell => cell.kind !== "latency");
  const sums = summed(judged, cell => `${cell.family} ${cell.op}`), families = [...new Set(judged.map(cell => cell.family))].sort();
  const ops = FILE_OPS.filter(op => judged.some(cell => cell.op === op));
  return heatMap({ rows: families, columns: ops, sums, rowTitle: "family", label: "families by operations", href: (family, op) => casesHref(`family:${family} op:${op}${narrowing || ""}`), rowHref: family => `#/schemes?q=${encodeURIComponent(family)}` });
}

// One map if there is only one provider, else a small map for each: the shade shows the result, hatching how much was declined.
function familyMaps(model) {
  const judged = model.cells.filter(cell => cell.kind !== "latency"), names = [...new Set(judged.map(cell => cell.provider))].sort();
  if (names.filter(name => name !== "qcts").length < 2)
    return [soft("A number: passes; ✗: failures; n. s.: not supported by any; ?: not decided. Each field opens its cases."), familyHeat(model, model.cells), ...names.map(name => soft(speedAndSize(model, name)))];
  const ops = FILE_OPS.filter(op => judged.some(cell => cell.op === op));
  return [soft("Each square is a family and an operation: green passed, red failed, yellow is not decided; the hatched part was declined. It opens its cases."),
    h("div", { class: "multiples" }, names.map(name => smallMap(model, name, judged.filter(cell => cell.provider === name), ops)))];
}

function smallMap(model, name, cells, ops) {
  const sums = summed(cells, cell => `${cell.family} ${cell.op}`), families = [...new Set(cells.map(cell => cell.family))].sort();
  const own = ops.filter(op => cells.some(cell => cell.op === op));
  return h("figure", {},
    h("figcaption", {}, link(providerHref(name), name), h("span", { class: "soft" }, ` ${tallyText(summed(cells, () => "").get("").statuses)}`)),
    h("table", { class: "heat small" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "family"), own.map(op => h("th", { scope: "col", title: op }, SHORTEST[op] || op)))),
      h("tbody", {}, families.map(family => h("tr", {}, h("th", { scope: "row" }, family), own.map(op => h("td", {}, squareOf(sums.get(`${family} ${op}`), `${family} ${op}`, casesHref(`provider:${name} family:${family} op:${op}`)))))))),
    soft(speedAndSize(model, name)));
}

function squareOf(sum, title, href) {
  if (!sum) return h("span", { class: "soft" }, "·");
  const declined = sum.statuses.not_supported || 0, asked = Object.fromEntries(Object.entries(sum.statuses).filter(([status]) => status !== "not_supported"));
  const words = `${title}: ${tallyText(sum.statuses)}`, shade = toneOf(asked);
  return h("a", { href, class: `square is-${shade}`, title: words, "aria-label": words, style: `--declined: ${Math.round(100 * declined / sum.total)}%` }, shade === "fail" ? "✗" : "");
}

const middle = values => values.length ? [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] : null;

// "Speed: half of 24 times reach 81 % of their roof. Size: 304 files, half of them at most 27 % of dense."
function speedAndSize(model, name) {
  const times = model.latency.filter(row => row.provider === name).map(row => measure(row, "share_of_roof")).filter(Number.isFinite);
  const sizes = name === "qcts" ? model.size.map(row => measure(row, "payload_bytes") / measure(row, "dense_bytes")).filter(Number.isFinite) : [];
  return [times.length ? `Speed: half of ${grouped(times.length)} times reach ${digits(100 * middle(times))} % of their roof. ` : "",
    sizes.length ? `Size: ${count(sizes.length, "file")}, half of them at most ${digits(100 * middle(sizes))} % of dense.` : ""].join("");
}

function overview(model) {
  const bad = model.groups.filter(group => group.blocks);
  const problems = [
    model.changes ? changesBox(model) : null,
    model.run.infrastructure.length ? [h("h2", {}, "What could not be judged"), model.run.infrastructure.map(line => h("p", { class: "group bad" }, line))] : null,
    model.providers.flatMap(provider => (provider.unknown || []).map(line => h("p", { class: "group bad" }, "Not asked: ", link(providerHref(provider.name), provider.name), `, ${line}`))),
    h("h2", { id: "failures" }, bad.length ? `Failures: ${count(bad.length, "group")}` : "Failures"),
    bad.length ? bad.slice(0, 4).map(group => groupBox(group, model, true)) : h("p", {}, "None."),
    bad.length ? h("p", {}, link("#/failures", bad.length > 4 ? `and ${bad.length - 4} more groups` : "more about these")) : null,
    model.changes ? null : changesBox(model),
  ];
  const map = [h("h2", { id: "families" }, "Families and operations"), familyMaps(model)];
  const order = bad.length && phone.matches ? [problems, map] : [map, problems];
  return [tiles(model), h("div", { class: "halves" }, order.map(part => h("div", {}, part)))];
}
