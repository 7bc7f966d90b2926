// The router: one view at a time, named by the address, so that links can lead to each of them.

const MENU = [["", "Overview"], ["failures", "Failures"], ["cases", "Cases"], ["schemes", "Schemes"], ["providers", "Providers"], ["files", "Files"], ["sizes", "Sizes"], ["speed", "Speed"], ["trend", "Trend"], ["readers", "Readers"], ["choices", "Choices"], ["coverage", "Coverage"], ["environment", "Environment"]];
const PARENTS = { case: "cases", scheme: "schemes", provider: "providers" };

const main = document.getElementById("main"), menu = document.getElementById("menu"), query = document.getElementById("query");
let model = null, list = null, turn = 0;

async function viewOf(name, argument, asked) {
  switch (name) {
    case "": return overview(model);
    case "failures": return failuresView(model);
    case "case": return caseView(model, argument);
    case "schemes": return schemesView(model, asked);
    case "scheme": return schemeView(model, argument);
    case "providers": return providersView(model);
    case "provider": return providerView(model, argument);
    case "files": return filesView(model);
    case "sizes": return sizesView(model);
    case "speed": return speedView(model);
    case "trend": return trendView(model);
    case "readers": return readersView(model);
    case "choices": return choicesView(model);
    case "coverage": return [h("h2", {}, "Coverage"), coverageTable(model.coverage) || h("p", {}, "No numerics were judged.")];
    case "environment": return environmentView(model);
    default: return [h("h2", {}, "No such view"), link("#/", "Overview")];
  }
}

async function route() {
  const mine = ++turn, [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/"), asked = new URLSearchParams(search || "").get("q") || "";
  for (const item of menu.children)
    if (item.dataset.view === (PARENTS[name] || name)) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  if (name === "cases" && list) {
    if (document.activeElement !== query) query.value = asked;
    return list.show(asked);
  }
  list = null;
  query.value = name === "cases" ? asked : "";
  let nodes = null;
  if (name === "cases") {
    const made = await casesView(model, asked);
    if (mine !== turn) return null;
    list = made;
    nodes = made.nodes;
  } else {
    nodes = await viewOf(name, decodeURIComponent(rest.join("/")), asked);
    if (mine !== turn) return null;
  }
  main.replaceChildren(...[nodes].flat(Infinity).filter(Boolean));
  for (const table of main.querySelectorAll(".rows")) table.dispatchEvent(new Event("scroll"));
  scrollTo(0, 0);
  return null;
}

query.addEventListener("input", () => {
  history.replaceState(null, "", casesHref(query.value));
  route();
});
addEventListener("hashchange", route);
phone.addEventListener("change", () => { list = null; route(); });
addEventListener("keydown", event => {
  if (event.key !== "/" || event.target === query || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  query.focus();
});

menu.append(...MENU.map(([view, title]) => h("a", { href: `#/${view}`, "data-view": view }, title)));
unpacked("model").then(report => {
  model = new Model(report);
  return route();
}).catch(error => main.append(h("p", { class: "fail" }, `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`))).finally(() => {
  requestAnimationFrame(() => setTimeout(() => {
    document.documentElement.dataset.ready = performance.now();
    // While the reader looks at the first frame, loads the cases and runs one search, so that the first keystroke is no slower.
    setTimeout(() => { if (model) model.loadCases().then(cases => search(cases, "linear/a status:pass")); }, 100);
  }));
});
