"use strict";
(function () {
  var root = document.documentElement;
  root.classList.add("js");

  // Light and dark: by the system, until the reader says otherwise.
  var theme = document.getElementById("theme");
  theme.addEventListener("click", function () {
    var dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // What is said of a point, as soon as it is pointed at.
  var tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.appendChild(tip);
  document.querySelectorAll(".tip").forEach(function (shape) {
    var title = shape.querySelector("title");
    if (!title) return;
    shape.dataset.tip = title.textContent;
    shape.setAttribute("aria-label", title.textContent);
    title.remove();
  });
  function show(event) {
    var shape = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !shape;
    if (!shape) return;
    tip.textContent = shape.dataset.tip;
    var x = Math.min(event.clientX + 12, root.clientWidth - tip.offsetWidth - 8);
    var y = event.clientY + 16;
    if (y + tip.offsetHeight > window.innerHeight - 8) y = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(8, x) + "px";
    tip.style.top = Math.max(8, y) + "px";
  }
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", function () { tip.hidden = true; }, { passive: true });

  // Kernels: sort, find, show all.
  var FIRST = 25;
  var table = document.getElementById("kernels");
  if (table) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    var filter = document.getElementById("filter");
    var sort = document.getElementById("sort");
    var shown = document.getElementById("shown");
    var all = document.getElementById("all");
    var key = "share", down = true, every = false;
    rows.forEach(function (row, place) {
      row.place = place;
      row.words = (row.cells[0].textContent + " " + (row.querySelector(".group") || { textContent: "" }).textContent).toLowerCase();
    });
    function value(row, column) {
      var cell = row.cells[column];
      if (cell.dataset.n === undefined) return cell.textContent.toLowerCase();
      return cell.dataset.n === "" ? NaN : Number(cell.dataset.n);
    }
    function draw() {
      var words = filter.value.trim().toLowerCase();
      var found = 0, drawn = 0;
      rows.forEach(function (row) {
        var fits = row.words.indexOf(words) >= 0;
        found += fits;
        row.hidden = !fits || (!every && !words && found > FIRST);
        drawn += !row.hidden;
      });
      shown.textContent = words ? found + " of " + rows.length + " kernels" : "";
      all.hidden = drawn === found && !(every && rows.length > FIRST && !words);
      all.textContent = every ? "show the first " + FIRST : "show all " + rows.length + " kernels";
      heads.forEach(function (head) {
        if (!head.dataset.key) return;
        head.setAttribute("aria-sort", head.dataset.key !== key ? "none" : down ? "descending" : "ascending");
      });
    }
    function order(by, descending) {
      key = by;
      down = descending;
      var column = heads.findIndex(function (head) { return head.dataset.key === by; });
      if (column < 0) return;
      var sign = down ? -1 : 1;
      rows.map(function (row) { return { row: row, value: value(row, column), place: row.place }; })
        .sort(function (a, b) {
          if (a.value !== a.value || b.value !== b.value) return (a.value !== a.value) - (b.value !== b.value) || a.place - b.place;
          return a.value < b.value ? -sign : a.value > b.value ? sign : a.place - b.place;
        })
        .forEach(function (item, place) { rows[place] = item.row; });
      var part = document.createDocumentFragment();
      rows.forEach(function (row) { part.appendChild(row); });
      body.appendChild(part);
      sort.value = by;
      draw();
    }
    function upward(by) { return by === "name" || by === "group" || by === "p"; }
    heads.forEach(function (head) {
      var button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", function () {
        var by = head.dataset.key;
        order(by, by === key ? !down : !upward(by));
      });
    });
    sort.addEventListener("change", function () { order(sort.value, !upward(sort.value)); });
    filter.addEventListener("input", draw);
    all.addEventListener("click", function () { every = !every; draw(); });
    draw();
  }

  var copy = document.getElementById("copy");
  if (copy) {
    copy.addEventListener("click", function () {
      var command = document.getElementById("command");
      var range = document.createRange();
      range.selectNodeContents(command);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      var done = function () { copy.textContent = "copied"; };
      var marked = function () { copy.textContent = "marked"; };
      if (navigator.clipboard) navigator.clipboard.writeText(command.textContent).then(done, marked);
      else marked();
    });
  }
})();
