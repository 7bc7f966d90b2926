// Makes elements. All text goes through textContent, so nothing in a report is ever read as HTML.

// h("a", {href: "#/", class: "tile"}, "text", element, [more], null)
function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const soft = (...children) => h("p", { class: "soft" }, ...children);
const link = (href, text, more) => h("a", { href, ...more }, text);
const code = text => h("code", {}, text);

// A plain table, for at most a few hundred cells; rowsTable() shows long ones.
function plainTable(heads, rows, attributes) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": (attributes || {}).label || heads.join(", ") },
    h("table", { class: (attributes || {}).class },
      h("thead", {}, h("tr", {}, heads.map(head => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map(cell => h("td", {}, cell)))))));
}

const facts = rows => plainTable(["", ""], rows.filter(([, value]) => value !== "" && value !== null && value !== undefined), { class: "facts", label: "facts" });

async function copyText(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "out-of-sight" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.textContent = done ? "copied" : "select and copy";
  document.getElementById("said").textContent = button.textContent;
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}

const commandLine = text => text ? h("div", { class: "line" }, code(text), h("button", { type: "button", "aria-label": "copy the command", onclick: event => copyText(text, event.currentTarget) }, "copy")) : null;

const grouped = number => Math.round(number).toLocaleString("en-US");
const count = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

function digits(value, wanted = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  if (Math.abs(value) >= 1000) return grouped(value);
  return value === 0 ? "0" : String(Number(value.toPrecision(wanted)));
}
