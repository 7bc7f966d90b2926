// The other views. Each returns the content of <main>.

function failuresView(model) {
  const bad = model.groups.filter(group => group.blocks), rest = model.groups.filter(group => !group.blocks);
  return [
    h("h2", {}, `Failures: ${count(bad.length, "group")}`),
    bad.length ? bad.slice(0, 60).map(group => groupBox(group, model)) : h("p", {}, "None."),
    bad.length > 60 ? soft(`and ${bad.length - 60} more groups in report.json`) : null,
    h("h2", {}, "Neither pass nor failure, by reason"),
    rest.length ? rowsTable({
      label: "reasons", height: "50vh", rows: rest, columns: [
        { title: "cases", width: "5rem", narrow: "3rem", number: true, cell: group => grouped(group.count), value: group => group.count },
        { title: "status", width: "8rem", narrow: "7.4rem", cell: group => statusText(group.status), value: group => group.status },
        { title: "provider", width: "8rem", cell: group => group.provider, value: group => group.provider },
        { title: "reason", width: "44rem", narrow: "1fr", cell: group => group.reason, value: group => group.reason },
        { title: "example", width: "36rem", cell: group => link(caseHref(group.example), group.example) },
      ],
    }) : h("p", {}, "None."),
    model.groups_total > model.groups.length ? soft(`${model.groups_total - model.groups.length} further groups are only in the record.`) : null,
  ];
}

const caseColumns = cases => [
  { title: "status", width: "8rem", narrow: "7.4rem", cell: i => statusText(cases.statusOf(i)), value: i => cases.statusOf(i) },
  { title: "case", width: "42rem", narrow: "1fr", cell: i => link(caseHref(cases.id(i)), cases.id(i)), value: i => cases.id(i) },
  { title: "reason", width: "34rem", cell: i => cases.reasonOf(i), value: i => cases.reasonOf(i) },
];

// The list of cases. It is made once; a keystroke only changes its rows.
async function casesView(model, query) {
  const cases = await model.loadCases();
  const tally = h("p", { role: "status" });
  const table = rowsTable({ label: "cases", rows: [], columns: caseColumns(cases), height: "calc(100vh - 13rem)" });
  const show = asked => {
    const { found, tally: statuses } = search(cases, asked), unknown = unknownKeys(asked);
    tally.replaceChildren(unknown.length ? h("b", { class: "fail" }, `no field is called ${unknown.join(", ")}. `) : "", h("span", {}, h("b", {}, grouped(found.length)), ` of ${count(cases.total, "case")}`, Object.entries(statuses).map(([status, number]) => [" · ", grouped(number), " ", statusText(status)])));
    table.show(found);
  };
  show(query);
  const nodes = [h("h2", {}, "Cases"), tally, table,
    soft("All words must match. scheme: op: provider: variant: status: kind: family: input: reason: search one field, - excludes, and * stands for any text.")];
  return { nodes, show };
}

// Shows the measures of a case that failed, judges a file or is timed; the page has no others.
function measuresOf(model, id, failure) {
  const row = [...model.latency, ...model.size, ...model.assign].find(one => id === (one.variant ? `${one.case_id}/${one.provider}_${one.variant}` : one.case_id));
  const measures = failure ? failure.measures.map(one => [one.name, one]) : row ? Object.entries(row.measures) : [];
  const text = one => `${digits(one.value, 6)} ${one.unit}${interval(one)}${one.samples ? `, ${grouped(one.samples)} samples` : ""}`;
  return measures.length ? [h("h3", {}, "Measures"), facts(measures.map(([name, one]) => [name.replaceAll("_", " "), text(one)])), row && row.reason ? soft(row.reason) : null] : null;
}

function trendOf(model, id) {
  const trend = model.measured.trend, one = trend && trend.latency.find(series => series.id === id);
  return one ? [h("h3", {}, "Trend"), sparkLine(one, `${id} by night`)] : null;
}

async function caseView(model, id) {
  const cases = await model.loadCases(), i = cases.find(id), failure = model.failureOf.get(id);
  if (i < 0) return [h("h2", {}, "No such case"), h("p", {}, code(id)), h("p", {}, link(casesHref(id.split("/").slice(0, 2).join("/")), "similar cases"))];
  const cell = cases.cells[cases.cell[i]];
  return [
    h("h2", {}, code(id)),
    facts([
      ["status", statusText(cases.statusOf(i))],
      ["reason", cases.reasonOf(i)],
      ["input", cases.kindOf(i)],
      ["asked", failure && failure.problem],
      ["hypothesis", failure && failure.hypothesis],
      ["first difference", failure && failure.mismatch && `${failure.mismatch.where}: want ${failure.mismatch.want}, got ${failure.mismatch.got}; ${failure.mismatch.count} of ${failure.mismatch.total} differ`],
      ["scheme", link(schemeHref(cell.scheme), cell.scheme)],
      ["provider", link(providerHref(cell.provider), cell.provider)],
      ["its cell", link(casesHref(`scheme:${cell.scheme} op:${cell.op} kind:${cell.kind} provider:${cell.provider}${cell.variant ? ` variant:${cell.variant}` : ""}`), `${cell.prefix}${cell.implementation}: ${tallyText(cell.statuses)}`)],
    ]),
    h("h3", {}, "Repeat it"), commandLine(cases.rerunOf(i)),
    failure && failure.mismatch && failure.mismatch.map ? wrongMap(failure.mismatch.map) : null,
    measuresOf(model, id, failure),
    trendOf(model, id),
    speedTable(model.latency.filter(row => cases.caseId(i) === row.case_id), "40vh"),
    h("h3", {}, "The same question to other implementations"),
    rowsTable({ label: "other implementations", height: "40vh", rows: cases.rivals(i), columns: caseColumns(cases) }),
  ];
}

const opColumns = FILE_OPS.map(op => ({
  title: SHORT[op] || op, width: "5.6rem", number: true,
  cell: row => row.sums[op] ? link(casesHref(`scheme:${row.name} op:${op}`), cellText(row.sums[op]), { class: toneOf(row.sums[op].statuses), title: tallyText(row.sums[op].statuses) }) : "·",
  value: row => row.sums[op] ? row.sums[op].total : 0,
}));

function schemesView(model, query) {
  const sums = summed(model.cells.filter(cell => cell.kind !== "latency"), cell => `${cell.scheme} ${cell.op}`);
  const rows = [...new Map(model.cells.map(cell => [cell.scheme, cell.family]))].sort().map(([name, family]) => ({ name, family, sums: Object.fromEntries(FILE_OPS.map(op => [op, sums.get(`${name} ${op}`)])) }));
  const fits = rows.filter(row => row.name.includes(query) || row.family.includes(query));
  return [h("h2", {}, `Schemes: ${fits.length === rows.length ? rows.length : `${fits.length} of ${rows.length}`}`), query ? h("p", {}, link("#/schemes", "all schemes")) : null,
    rowsTable({ label: "schemes", rows: fits, columns: [
      { title: "scheme", width: "15rem", narrow: "1fr", cell: row => link(schemeHref(row.name), row.name), value: row => row.name },
      { title: "family", width: "11rem", narrow: "8rem", cell: row => row.family, value: row => row.family }, ...opColumns] })];
}

function schemeView(model, name) {
  const cells = model.cells.filter(cell => cell.scheme === name), scheme = model.schemes.find(one => one.name === name);
  if (!cells.length && !scheme) return [h("h2", {}, `No scheme ${name} in this run`)];
  const sums = summed(cells.filter(cell => cell.kind !== "latency"), cell => `${cell.implementation} ${cell.op}`);
  const providerOf = new Map(cells.map(cell => [cell.implementation, cell]));
  const choices = model.ledger.choices.flatMap(choice => choice.options.filter(option => option.schemes.includes(name)).map(option => [choice.question + "?", [code(option.id), " ", option.answer]]));
  const groups = model.groups.filter(group => group.schemes[name] && group.blocks);
  return [
    h("h2", {}, `Scheme ${name}`),
    scheme ? facts([["family", scheme.family], ["summary", scheme.summary], ["source", scheme.source], ["group", scheme.group || ""],
      ["layouts", scheme.layouts.map(layout => `${layout.name}${layout.confirmed ? "" : " (by index map, not confirmed on hardware)"}`).join(", ")],
      ["policies for x", scheme.activations.map(one => one.name).join(", ")]]) : null,
    groups.slice(0, 8).map(group => groupBox(group, model, true)),
    h("h3", {}, "Implementations and operations"),
    heatMap({ rows: [...providerOf.keys()].sort(), columns: FILE_OPS.filter(op => cells.some(cell => cell.op === op)), sums, rowTitle: "implementation", label: "implementations by operations",
      href: (row, op) => { const cell = providerOf.get(row); return casesHref(`scheme:${name} op:${op} provider:${cell.provider}${cell.variant ? ` variant:${cell.variant}` : ""}`); } }),
    sizeTable(model.size.filter(row => row.scheme === name), "40vh"),
    speedTable(model.latency.filter(row => row.scheme === name), "40vh"),
    coverageTable(model.coverage.filter(row => row.scheme === name)),
    choices.length ? [h("h3", {}, "Its choices"), facts(choices)] : null,
  ];
}

function providersView(model) {
  const sums = summed(model.cells.filter(cell => cell.kind !== "latency"), cell => `${cell.provider} ${cell.op}`), names = [...new Set(model.cells.map(cell => cell.provider))].sort();
  return [h("h2", {}, "Providers"), heatMap({ rows: names, columns: FILE_OPS.filter(op => model.cells.some(cell => cell.op === op)), sums, rowTitle: "provider", label: "providers by operations", rowHref: providerHref, href: (row, op) => casesHref(`provider:${row} op:${op}`) }),
    model.providers.map(provider => [h("h3", {}, link(providerHref(provider.name), provider.name)), facts([["version", provider.version], ["url", provider.url], ["library", provider.library], ["sha256", provider.sha256 && code(provider.sha256)], ["choices", provider.choices]])])];
}

function providerView(model, name) {
  const cells = model.cells.filter(cell => cell.provider === name), provider = model.providers.find(one => one.name === name);
  if (!cells.length && !provider) return [h("h2", {}, `No provider ${name} in this run`)];
  const sums = summed(cells.filter(cell => cell.kind !== "latency"), cell => `${cell.variant || name} ${cell.op}`);
  const groups = model.groups.filter(group => group.provider === name), bad = groups.filter(group => group.blocks);
  const idle = provider ? provider.implementations.filter(one => !one.runnable) : [];
  const onGpus = provider ? provider.implementations.filter(one => one.confirmed) : [];
  const proofs = [...new Set(onGpus.map(one => one.confirmed))].map(text => [text, onGpus.filter(one => one.confirmed === text).map(one => `${one.op} ${one.scheme.split(":")[0]} ${one.variant}`).join(", ")]);
  const refusals = [...new Map(idle.map(one => [`${one.variant} ${one.refusal}`, one])).values()];
  return [
    h("h2", {}, `Provider ${name}`),
    provider ? facts([["version", provider.version], ["library", provider.library], ["sha256", provider.sha256 && code(provider.sha256)], ["choices", provider.choices], ["not asked", (provider.unknown || []).join("; ")], ["cases", tallyText(summed(cells, () => "").get("")?.statuses || {})]]) : null,
    bad.slice(0, 8).map(group => groupBox(group, model)),
    bad.length > 8 ? h("p", {}, link("#/failures", `and ${bad.length - 8} more groups`)) : null,
    h("div", { class: "halves" },
      h("div", {}, h("h3", {}, "Families and operations"), familyHeat(model, cells, ` provider:${name}`)),
      h("div", {}, h("h3", {}, "Variants and operations"),
        heatMap({ rows: [...new Set(cells.map(cell => cell.variant || name))].sort(), columns: FILE_OPS.filter(op => cells.some(cell => cell.op === op)), sums, rowTitle: "variant", label: "variants by operations", href: (row, op) => casesHref(`provider:${name} op:${op}${row === name ? "" : ` variant:${row}`}`) }),
        proofs.length ? [h("h3", {}, "Evidence on GPUs"), facts(proofs)] : null,
        refusals.length ? [h("h3", {}, "Cannot run here"), facts(refusals.map(one => [one.variant, one.refusal]))] : null,
        groups.length > bad.length ? [h("h3", {}, "Declined or undecided"), facts(groups.filter(group => !group.blocks).slice(0, 12).map(group => [grouped(group.count), [statusText(group.status), " ", group.reason]]))] : null)),
    speedTable(model.latency.filter(row => row.provider === name), "50vh"),
  ];
}

function sizeTable(rows, height) {
  if (!rows.length) return null;
  const bytes = name => ({ number: true, width: "7.5rem", cell: row => digits(measure(row, name), 12), value: row => measure(row, name) });
  return [h("h3", {}, "Size against the formula"), rowsTable({
    label: "sizes", height, rows, columns: [
      { title: "file", width: "28rem", narrow: "1fr", cell: row => link(caseHref(row.case_id), `${row.scheme}/${row.input}`), value: row => `${row.scheme}/${row.input}` },
      { title: "share of dense", width: "9rem", narrow: "140px", value: row => measure(row, "payload_bytes") / measure(row, "dense_bytes"),
        cell: row => { const dense = measure(row, "dense_bytes"), payload = measure(row, "payload_bytes"), formula = measure(row, "formula_bytes"); return dense && payload !== null ? shareBar(payload / dense, formula === null ? null : formula / dense, `payload ${digits(100 * payload / dense)} % of dense, formula ${formula === null ? "none" : `${digits(100 * formula / dense)} %`}`) : ""; } },
      { title: "smaller by", width: "5.5rem", number: true, cell: row => measure(row, "reduction") ? `${digits(measure(row, "reduction"))}×` : "", value: row => measure(row, "reduction") },
      { title: "payload", ...bytes("payload_bytes") }, { title: "formula", ...bytes("formula_bytes") }, { title: "dense", ...bytes("dense_bytes") }, { title: "container", ...bytes("container_bytes") }, { title: "upstream says", ...bytes("upstream_payload_bytes") },
      { title: "status", width: "7rem", cell: row => statusText(row.status), value: row => row.status },
    ],
  })];
}

const sizesView = model => [h("h2", {}, "Sizes"), model.size.length ? null : h("p", {}, "This run judged no sizes."), sizePlot(model.size), sizeTable(model.size, "60vh"),
  soft("In bytes. Payload: inner tensors, counting a shared storage once. Dense: the same model in each tensor's own dtype. Container: the file's overhead. The mark on a bar is the formula.")];

const interval = one => one && one.low !== undefined && one.low !== null ? ` [${digits(one.low)}, ${digits(one.high)}]` : "";

// A peer is not under judgement: where it is slower, nothing failed.
const claimStatus = (claim, peer) => !claim ? "" : peer && claim.status === "fail" ? h("b", { class: "none" }, "slower (peer)") : statusText(claim.status);
const toDense = row => measure(row, "ratio_to_dense") ?? measure(row, "speedup_before");

// Claims about speed: those that fail, those that are not decided, and those that hold.
function claimTable(title, claims) {
  const order = { fail: 0, inconclusive: 1, pass: 2 };
  const rows = [...claims].sort((a, b) => order[a.claim.status] - order[b.claim.status]);
  if (!rows.length) return null;
  return [h("h3", {}, title), rowsTable({
    label: "claims about speed", height: "40vh", rows, columns: [
      { title: "verdict", width: "7rem", narrow: "6.5rem", cell: row => claimStatus(row.claim, row.peer), value: row => row.claim.status },
      { title: "claim", width: "44rem", narrow: "1fr", cell: row => row.claim.text, value: row => row.claim.text },
      { title: "implementation", width: "12rem", cell: row => row.who, value: row => row.who },
      { title: "against", width: "14rem", cell: row => row.claim.against, value: row => row.claim.against },
      { title: "ratio", number: true, width: "5rem", cell: row => digits(row.claim.ratio), value: row => row.claim.ratio },
      { title: "needs", number: true, width: "5rem", cell: row => digits(row.claim.at_least), value: row => row.claim.at_least },
      { title: "gates", width: "12rem", cell: row => row.gates, value: row => row.gates },
    ],
  }), soft("Ratio: the other's time divided by the subject's, with its 95 % interval. Decoding has to be faster than dense, and as fast after loading as before; prefill is only compared. A peer never gates.")];
}

const claimsOfRun = model => model.latency.flatMap(row => (row.speed || []).map(claim => ({ claim, peer: row.peer, who: `${row.provider}_${row.variant}`, gates: row.peer ? "no: a peer" : !claim.required ? "no: not required" : model.run.gate_latency ? "yes" : "no: --gate latency" })));
const claimsOfFile = (file, who, gates) => file ? file.rows.flatMap(row => (row.speed || []).map(claim => ({ claim, who: who(row), gates: !claim.required ? "no: not required" : gates }))) : [];

function speedTable(rows, height) {
  if (!rows.length) return null;
  const problem = row => `${row.op} ${row.scheme} ${row.input}`;
  const sorted = [...rows].sort((a, b) => problem(a).localeCompare(problem(b)) || (measure(b, "share_of_roof") || 0) - (measure(a, "share_of_roof") || 0));
  const ratio = name => ({ number: true, width: "6rem", cell: row => digits(measure(row, name)), value: row => measure(row, name) });
  return [h("h3", {}, "Latency and share of the roof"), rowsTable({
    label: "latency", height, rows: sorted, columns: [
      { title: "problem", width: "27rem", narrow: "1fr", cell: row => link(caseHref(`${row.case_id}${row.variant ? `/${row.provider}_${row.variant}` : ""}`), problem(row)), value: problem },
      { title: "implementation", width: "11rem", narrow: "6.5rem", cell: row => `${row.provider}_${row.variant}${row.peer ? " (peer)" : ""}${row.reason.includes("timed inside the provider") ? " †" : ""}${row.reason.includes("not to be trusted") ? " ?" : ""}`, value: row => row.provider },
      { title: "median µs [95 %]", number: true, width: "14rem", narrow: "4rem", cell: row => phone.matches ? digits(measure(row, "median_us")) : digits(measure(row, "median_us"), 4) + interval(row.measures.median_us), value: row => measure(row, "median_us") },
      { title: "share of roof", width: "9rem", value: row => measure(row, "share_of_roof"), cell: row => { const share = row.measures.share_of_roof; return share && share.value !== null ? shareBar(share.value, share.low ?? null, `${digits(100 * share.value)} % of the roof`) : ""; } },
      { title: "%", width: "3.5rem", number: true, cell: row => measure(row, "share_of_roof") === null ? "" : digits(100 * measure(row, "share_of_roof")), value: row => measure(row, "share_of_roof") },
      { title: "× dense", number: true, width: "6rem", cell: row => digits(toDense(row)), value: toDense }, { title: "× LibTorch", ...ratio("ratio_to_torch") }, { title: "× static int8", ...ratio("ratio_to_static") }, { title: "GB/s", ...ratio("bandwidth") }, { title: "GOP/s", ...ratio("rate") },
      { title: "faster than dense", width: "8rem", cell: row => claimStatus((row.speed || [])[0], row.peer), value: row => ((row.speed || [])[0] || {}).status },
      { title: "verdict", width: "7rem", cell: row => statusText(row.status), value: row => row.status },
      { title: "reason", width: "30rem", cell: row => row.reason },
    ],
  }), soft("†: timed by the provider's own clock, in its own process. ?: cannot be trusted; the reason says why. The mark on a bar is the lower end of its interval.")];
}

function speedView(model) {
  const trust = model.latency_trust, load = model.measured.load, generate = model.measured.generate, block = model.measured.block;
  return [
    h("h2", {}, "Speed"),
    model.latency.length ? soft(model.latency_note) : h("p", {}, "This run timed nothing."),
    trust.measured ? h("p", {}, `Each kernel was timed against itself: ${trust.alarms} of ${trust.measured} differed; chance allows ${trust.allowed}. `, trust.suspended ? h("b", { class: "fail" }, "That is too many: no latency verdict of this run counts.") : null) : null,
    model.latency.length ? [h("h3", {}, "Roofline"), rooflinePlot(model.latency), soft("Ceilings were measured in the same rounds as the kernels: a stream that moves as many bytes, and the fastest multiply-adds of each instruction set; medians over the run.")] : null,
    speedTable(model.latency, "60vh"),
    claimTable("Faster than dense, as fast after loading", [...claimsOfRun(model),
      ...claimsOfFile(block, row => row.linear, block && block.gate_latency ? "yes" : "no: --gate latency"),
      ...claimsOfFile(generate && { rows: [generate] }, () => "torchao (generate)", generate && generate.gate_latency ? "yes" : "no: a peer")]),
    block ? [h("h3", {}, "One decoder block of Llama-3.1-8B"), soft("Linear layers only. Tokens per second through one block, with the weights in memory."),
      plainTable(["scheme", "m", "kernel", "dense", "before saving", "after loading", ""], block.rows.map(row => [row.scheme, String(row.m), row.linear, ...[row.dense_us, row.before_us, row.after_us].map(us => digits(1e6 * row.m / us.value)), statusText(row.status)]))] : null,
    generate ? [h("h3", {}, "One real generate of a tiny Llama"), h("p", {}, statusText(generate.tokens_equal ? "pass" : "fail"), ` int4 gives ${generate.tokens_equal ? "the same" : "other"} tokens after saving and loading; ${generate.tokens_as_dense} of ${generate.new_tokens} equal the dense model's. ${generate.compiled ? generate.compiled.startsWith("not") ? generate.compiled : `Compiled, mode ${generate.compiled}.` : ""}${generate.doubt ? ` The measurement is not to be trusted: ${generate.doubt}.` : ""}`),
      plainTable(["model", "tokens per second", "turns"], generate.rows.map(row => [row.model, `${digits(row.tokens_per_s)} [${digits(row.least_tokens_per_s)}, ${digits(row.greatest_tokens_per_s)}]`, String(row.turns)]))] : null,
    load ? [h("h3", {}, "Load and save"), soft(`${count(load.bytes, "byte")} in ${count(load.tensors, "tensor")}, ${load.threads} threads; medians of runs that took turns.`),
      plainTable(["against", "cache", "peer", "measured", "limit", ""], load.ratios.map(row => [row.name, row.cache, row.peer || "", row.kind === "us" ? `${digits(row.value / 1000)} ms` : `${digits(row.value)}×${interval(row)}`, row.kind === "us" ? `below ${digits(row.limit / 1000)} ms` : row.limit ? `at least ${row.limit}×` : "", row.decision === "shown" ? "" : statusText({ met: "pass", missed: "fail" }[row.decision] || "inconclusive")])),
      plainTable(["what", "who", "cache", "ms", "GB/s", "MiB"], load.rows.map(row => [row.group, row.name, row.cache, digits(row.median_us / 1000), digits(row.gigabytes_per_second), digits(row.peak_extra_bytes / 1048576)]))] : null,
  ];
}

async function filesView(model) {
  const cases = await model.loadCases(), files = new Map(), kinds = ["round_trip", "assign", "size"];
  cases.cells.forEach((cell, c) => {
    if (!kinds.includes(cell.kind)) return;
    for (let i = cases.first[c]; i < cases.first[c + 1]; ++i) {
      const name = `${cell.scheme}/${cases.inputs[cases.input[i]]}`;
      if (!files.has(name)) files.set(name, { name });
      files.get(name)[cell.kind] = i;
    }
  });
  const rejected = summed(model.cells.filter(cell => cell.kind === "reject"), () => "").get("");
  const assigned = new Map(model.assign.map(row => [`${row.scheme}/${row.input}`, row]));
  const loaded = file => (assigned.get(file.name)?.loaded || []).map(type => `${type.before} → ${type.after} (${grouped(type.tensors)})`).join(", ");
  const peak = file => assigned.has(file.name) ? measure(assigned.get(file.name), "peak_bytes") : null;
  return [h("h2", {}, count(files.size, "file")),
    rejected ? h("p", {}, link(casesHref("kind:reject"), "Malformed files"), `: required outcomes: ${tallyText(rejected.statuses)}.`) : null,
    rowsTable({ label: "files", rows: [...files.values()].sort((a, b) => a.name.localeCompare(b.name)), columns: [
      { title: "file", width: "44rem", narrow: "1fr", cell: file => file.name, value: file => file.name },
      ...kinds.map(kind => ({ title: kind.replace("_", " "), width: "9rem", narrow: "4.4rem", value: file => kind in file ? cases.statusOf(file[kind]) : "", cell: file => kind in file ? link(caseHref(cases.id(file[kind])), cases.statusOf(file[kind]), { class: tone(cases.statusOf(file[kind])) }) : "" })),
      { title: "types before → after loading", width: "40rem", cell: loaded, value: loaded },
      { title: "peak bytes", width: "8rem", number: true, cell: file => digits(peak(file), 12), value: peak }] })];
}

const OUTCOMES = ["dequantizes", "reads", "unsafe", "parts", "wrong", "refuses"];
const OUTCOME_TONES = { dequantizes: "pass", reads: "pass", unsafe: "warn", parts: "warn", wrong: "fail", refuses: "none" };
const versions = new Intl.Collator("en", { numeric: true });

function readersView(model) {
  if (!model.readers || !model.readers.files.length) return [h("h2", {}, "Who reads whose files"), h("p", {}, "Not measured here.")];
  const { readers, files } = model.readers, writers = [...new Set(files.map(file => file.writer))].sort(versions.compare), sums = new Map();
  for (const file of files)
    file.outcomes.forEach((outcome, i) => {
      const key = `${file.writer}\n${i}`;
      if (!sums.has(key)) sums.set(key, {});
      sums.get(key)[outcome] = (sums.get(key)[outcome] || 0) + 1;
    });
  const shade = counts => {
    const tones = new Set(Object.keys(counts).map(outcome => OUTCOME_TONES[outcome]));
    return ["fail", "warn", "pass"].find(one => tones.has(one)) || "none";
  };
  const square = (writer, i) => {
    const counts = sums.get(`${writer}\n${i}`) || {}, all = Object.values(counts).reduce((sum, one) => sum + one, 0);
    const words = `${writer}, ${readers[i]}: ${OUTCOMES.filter(outcome => counts[outcome]).map(outcome => `${counts[outcome]} ${outcome}`).join(", ")}`;
    return h("a", { href: "#/readers", class: `square is-${shade(counts)}`, title: words, "aria-label": words, style: `--declined: ${Math.round(100 * (counts.refuses || 0) / all)}%`,
      onclick: event => { event.preventDefault(); show(writer, i); } }, counts.wrong ? "✗" : "");
  };
  const detail = h("div", {});
  const show = (writer, i) => detail.replaceChildren(...[h("h3", {}, `${readers[i]} on the files of ${writer}`), rowsTable({
    label: "outcomes", height: "40vh", rows: files.filter(file => file.writer === writer), columns: [
      { title: "file", width: "34rem", narrow: "1fr", cell: file => file.golden, value: file => file.golden },
      { title: "outcome", width: "8rem", narrow: "6rem", cell: file => h("b", { class: OUTCOME_TONES[file.outcomes[i]] }, file.outcomes[i]), value: file => file.outcomes[i] },
      { title: "why", width: "40rem", cell: file => file.why[i] }] })]);
  return [h("h2", {}, "Who reads whose files"),
    soft("Each square shows how a reader (column) handles a writer's files (row). Green: the writer's own values, or the writer's types with weights_only. Yellow: only without weights_only, or plain tensors without what makes them a weight. Red: other values. Hatched: the share that is refused. It lists its files."),
    h("div", { class: "scroll" }, h("table", { class: "heat small" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "writer"), readers.map(reader => h("th", { scope: "col" }, reader)))),
      h("tbody", {}, writers.map(writer => h("tr", {}, h("th", { scope: "row" }, writer), readers.map((_, i) => h("td", {}, square(writer, i)))))))), detail];
}

function choicesView(model) {
  const { choices, claims, kept_layouts: kept } = model.ledger;
  const unconfirmed = new Map();
  for (const scheme of model.schemes)
    for (const layout of scheme.layouts.filter(one => !one.confirmed)) unconfirmed.set(layout.name, [...(unconfirmed.get(layout.name) || []), scheme.name]);
  const names = list => list.length > 12 ? `${list.slice(0, 12).join(", ")} and ${list.length - 12} more` : list.join(", ");
  return [
    h("h2", {}, `Choices: ${count(choices.length, "question")} on which implementations disagree`),
    choices.map(choice => {
      const box = h("details", { class: "choice", id: `choice-${choice.id}` }, h("summary", {}, `${choice.question}?`, choice.a_provider_may_differ ? h("span", { class: "soft" }, " A provider may differ.") : null));
      box.addEventListener("toggle", () => box.append(plainTable(["answer", "", "schemes", "others, by source", "evidence"], choice.options.map(option => [code(option.id), option.answer, names(option.schemes), option.others, option.evidence]))), { once: true });
      return box;
    }),
    claims.length ? [h("h2", {}, "Documented claims that do not hold"), plainTable(["claim", "where", "fact", "evidence"], claims.map(claim => [claim.claim, claim.source, claim.fact, claim.evidence]))] : null,
    unconfirmed.size ? [h("h2", {}, "Layouts by index map, not confirmed on hardware"), plainTable(["layout", "schemes"], [...unconfirmed].map(([name, schemes]) => [name, names(schemes)]))] : null,
    kept && kept.length ? [h("h2", {}, "Layouts that are kept but cannot be dequantized"), plainTable(["layout", "holds", "written by", "why", "evidence"], kept.map(one => [one.name, one.holds, one.written_by, one.why, one.evidence]))] : null,
  ];
}

function runs(numbers) {
  const parts = [];
  numbers.forEach((number, i) => {
    if (i && number === numbers[i - 1] + 1) parts[parts.length - 1][1] = number;
    else parts.push([number, number]);
  });
  return parts.map(([a, b]) => a === b ? `${a}` : `${a}-${b}`).join(", ");
}

function coverageTable(rows) {
  if (!rows.length) return null;
  const hits = one => one ? h("span", { class: one.holes.length ? "" : "pass", title: one.holes.length ? `holes: ${one.holes.join(", ")}` : "all" }, `${one.hit} of ${one.of}${one.dtype ? ` ${one.dtype}` : ""} `) : "";
  const column = key => ({ title: key.replace("_", " "), width: "8rem", cell: row => hits(row[key]), value: row => row[key] ? row[key].hit / row[key].of : 0 });
  return [h("h3", {}, "Value coverage"), rowsTable({
    label: "value coverage", height: rows.length > 8 ? "60vh" : "30vh", rows, columns: [
      { title: "scheme", width: "18rem", narrow: "1fr", cell: row => link(schemeHref(row.scheme), row.scheme + (row.activation ? `, x ${row.activation}` : "")), value: row => row.scheme },
      { ...column("codes_written"), narrow: "6rem" }, { ...column("codes_read"), narrow: "6rem" }, column("halfway"),
      { title: "scale exponents", width: "15rem", cell: row => row.scale_exponents.map(hits) },
      { title: "special inputs", width: "18rem", cell: row => row.special_inputs.join(", ") }, { title: "special scales", width: "12rem", cell: row => row.special_scales.join(", ") },
      { title: "K mod 32", width: "12rem", cell: row => runs(row.k_mod_32) }, { title: "N mod 16", width: "10rem", cell: row => runs(row.n_mod_16) }, { title: "M", width: "10rem", cell: row => runs(row.m) }] }),
  soft("Codes written by quantize and quantize_activation, and read by dequantize, linear, pack and unpack. Halfway: inputs exactly between two codes. Point at a field to see the values that no case reached.")];
}

// A list, or an object such as the device, as text.
function shown(value) {
  if (Array.isArray(value)) return value.join(", ");
  if (value !== null && typeof value === "object") return Object.entries(value).map(([key, inner]) => `${key.replaceAll("_", " ")} ${inner}`).join(", ");
  return String(value);
}

function environmentView(model) {
  const { conformance, floor, waivers } = model, broken = floor.filter(entry => !entry.held);
  return [
    h("h2", {}, "What conformance means here"), h("p", {}, conformance.rule),
    facts([["mustpass", `${grouped(conformance.mustpass_present)} of ${grouped(conformance.mustpass_total)} judged`], ["without a verdict", conformance.mustpass_missing.slice(0, 20).join(" ")],
      ["not in the list", conformance.mustpass_extra.slice(0, 20).join(" ")], ["floor", `${floor.length - broken.length} of ${floor.length} held${broken.length && conformance.complete ? `; not: ${broken.slice(0, 20).map(entry => `${entry.scheme} ${entry.op} (${entry.passes} of ${entry.floor})`).join(", ")}` : ""}`]]),
    h("h2", {}, "Waivers"),
    waivers.length ? plainTable(["cases", "provider", "issue", "expires", "state", "matched"], waivers.map(one => [code(one.case), one.provider, one.issue, `${one.expires} (${one.days_left} days left, ${one.age_days} old)`, one.state, grouped(one.matched_total)])) : h("p", {}, "None."),
    h("h2", {}, "Environment"),
    facts([...Object.entries(model.environment).map(([key, value]) => [key.replaceAll("_", " "), shown(value)]),
      ["plan", model.run.plan], ["selection", model.run.selection.join(" ")], ["fixtures", model.run.fixtures.join(" ")], ["seed", model.run.seed_sha256 ? `secret, file with SHA-256 ${model.run.seed_sha256}` : String(model.run.seed)]]),
    h("h3", {}, "Command"), commandLine(["qcts", ...model.run.arguments].join(" ")),
  ];
}
