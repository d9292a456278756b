"use strict";
for (const head of document.querySelectorAll("th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const table = head.closest("table");
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const units = { B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824 };
    const value = (row) => {
      const text = row.children[column].textContent.trim();
      const found = /^([\d,.]+)(?: (\w+))?$/.exec(text);
      return found ? Number(found[1].replaceAll(",", "")) * (units[found[2]] ?? 1) : text;
    };
    const compare = (left, right) =>
      typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
    const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
    rows.sort((left, right) => (down ? -1 : 1) * compare(left[0], right[0]));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  });
}
