// Sorts, filters and sets the reference in place. Without this script links and form load the page anew.
"use strict";

const PARTS = ["targets", "kept", "views", "list", "plot"]; // what another view changes; the count is read out
const form = document.getElementById("bar");
let query = location.search; // of what is shown
let loading = new AbortController();

// Shows the view of an address. A later call ends an earlier one, whose answer may come last.
async function load(address) {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const response = await fetch(address, { headers: { Accept: "text/html" }, signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  signal.throwIfAborted();
  // A new board may have come out: then the rest of the page is old too.
  const [shown, found] = [document, page].map((one) => one.querySelector(".board")?.dataset.board);
  if (!response.ok || found !== shown) throw new Error("another board");
  for (const id of PARTS) {
    document.getElementById(id).replaceWith(document.adoptNode(page.getElementById(id)));
  }
  document.getElementById("count").textContent = page.getElementById("count").textContent;
  query = new URL(address).search;
}

function unlessEnded(otherwise) {
  return (error) => {
    if (error.name !== "AbortError") otherwise();
  };
}

// The same link as before, in the view that has taken its place.
function again(link) {
  const { column } = link.dataset;
  const row = link.closest("tbody tr")?.querySelector(".c-held a")?.getAttribute("href");
  const number = new URLSearchParams(row?.split("#")[0]).get("vs");
  const links = [...document.querySelectorAll(column ? `a[data-column="${column}"]` : ".c-held a")];
  return column ? links[0] : links.find((one) => new RegExp(`[?&]vs=${number}#`).test(one.getAttribute("href")));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#ranking thead a, #ranking .c-held a, .more a, .reference a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const { href } = link;
  load(href)
    .then(() => {
      history.pushState(null, "", href);
      again(link)?.focus({ preventScroll: true });
    })
    .catch(unlessEnded(() => location.assign(href)));
});

// The address of what the form asks for, without what it leaves open.
function asked() {
  const told = [...new FormData(form)].filter(([, text]) => text);
  return new URL(`?${new URLSearchParams(told)}`, location.href).href.replace(/#.*/, "");
}

function filter() {
  const href = asked();
  load(href)
    .then(() => history.replaceState(null, "", href))
    .catch(unlessEnded(() => location.assign(href)));
}

let pause;
form?.querySelector("label ~ button").setAttribute("hidden", ""); // what is asked for is shown at once
form?.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(filter, 150);
});
form?.addEventListener("submit", (event) => {
  if (event.submitter?.form !== form) return;
  event.preventDefault();
  clearTimeout(pause);
  filter();
});

window.addEventListener("popstate", () => {
  loading.abort();
  if (location.search !== query) load(location.href).catch(unlessEnded(() => location.reload()));
});
