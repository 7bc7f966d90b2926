// A long table in which only the visible rows are elements. Columns: {title, width, cell(row), value(row) to sort by,
// number, narrow: the width on a phone, where columns without it are left out}.

const phone = matchMedia("(max-width: 40rem)");

function rowsTable({ label, columns, rows, height = "70vh" }) {
  const narrow = phone.matches;
  const shown = columns.filter(column => !narrow || column.narrow);
  const tall = narrow ? 46 : 29;
  const template = shown.map(column => narrow ? column.narrow : column.width).join(" ");
  let order = rows, sorted = null;

  const all = h("div", { class: "all", role: "rowgroup" });
  const head = h("div", { class: "head", role: "row", style: `grid-template-columns: ${template}` },
    shown.map(column => h("div", { role: "columnheader", class: column.number && "number" },
      column.value ? h("button", { type: "button", onclick: event => sortBy(column, event.currentTarget.parentElement) }, column.title) : column.title)));
  const scroller = h("div", { class: "rows", role: "table", "aria-label": label, "aria-rowcount": rows.length + 1, tabindex: 0, style: `max-height: ${height}` },
    h("div", { role: "rowgroup" }, head), all);

  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / tall) - 6);
    const last = Math.min(order.length, Math.ceil((scroller.scrollTop + (scroller.clientHeight || 700)) / tall) + 6);
    const lines = [];
    for (let i = first; i < last; ++i)
      lines.push(h("div", { class: narrow ? "row tall" : "row", role: "row", "aria-rowindex": i + 2, style: `top: ${i * tall}px; height: ${tall}px; grid-template-columns: ${template}` },
        shown.map(column => {
          const content = column.cell(order[i]);
          return h("div", { role: "cell", class: column.number && "number", title: typeof content === "string" ? content : null }, content);
        })));
    all.replaceChildren(...lines);
  }

  function sortBy(column, cell) {
    const down = sorted === column;
    sorted = down ? null : column;
    for (const other of head.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    order = [...rows].sort((a, b) => {
      const one = column.value(a), other = column.value(b);
      const less = typeof one === "number" ? (one || 0) - (other || 0) : String(one).localeCompare(String(other));
      return down ? -less : less;
    });
    draw();
  }

  let waiting = false;
  scroller.addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; draw(); });
    waiting = true;
  }, { passive: true });
  scroller.show = given => {
    rows = order = given;
    sorted = null;
    all.style.height = `${rows.length * tall}px`;
    scroller.setAttribute("aria-rowcount", rows.length + 1);
    scroller.scrollTop = 0;
    draw();
  };
  scroller.show(rows);
  return sideways(scroller);
}

// The table, with a hint while it is wider than the window.
function sideways(scroller) {
  const hint = h("p", { class: "soft", hidden: true }, "The table is wider than the window: scroll sideways, or with Shift and the wheel.");
  const box = h("div", {}, scroller, hint);
  new ResizeObserver(() => { hint.hidden = scroller.scrollWidth <= scroller.clientWidth + 1; }).observe(scroller);
  return Object.assign(box, { show: scroller.show });
}
