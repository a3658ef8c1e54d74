// Sorts the ranking in place. Without this script its links load the page in the new order.
"use strict";

let query = location.search; // of the table that is shown
let loading = new AbortController();

// Shows the table of an address. A later call ends an earlier one, whose answer may come last.
async function load(address) {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const response = await fetch(address, { headers: { Accept: "text/html" }, signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  signal.throwIfAborted();
  const table = page.getElementById("ranking");
  const shown = document.getElementById("ranking");
  // A new board may have come out: then the rest of the page is old too.
  if (!response.ok || table?.dataset.board !== shown.dataset.board) throw new Error("another board");
  // The links of the switch carry the order along.
  document.getElementById("targets").replaceWith(document.adoptNode(page.getElementById("targets")));
  shown.replaceWith(document.adoptNode(table));
  query = new URL(address).search;
  return table;
}

function unlessEnded(otherwise) {
  return (error) => {
    if (error.name !== "AbortError") otherwise();
  };
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#ranking th a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const { href, dataset } = link;
  load(href)
    .then((table) => {
      history.pushState(null, "", href);
      table.querySelector(`a[data-column="${dataset.column}"]`).focus({ preventScroll: true });
    })
    .catch(unlessEnded(() => location.assign(href)));
});

window.addEventListener("popstate", () => {
  loading.abort();
  if (location.search !== query) load(location.href).catch(unlessEnded(() => location.reload()));
});
