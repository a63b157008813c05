// The grid of a terminal on the page, held against what the service says of it.

/** Cells of the page that differ from `screen`, `{ cols, rows_changed }`. Runs in the page. */
export function wrongCells(where, sample) {
  const screen = document.querySelector(`${where} .term-screen`);
  const { left, width } = screen.getBoundingClientRect();
  const column = width / sample.cols;
  const wrong = [];
  const told = new Set(sample.rows_changed.map(({ y }) => String(y)));
  // A full frame leaves out blank rows.
  for (const row of screen.querySelectorAll('[data-y]')) {
    if (!told.has(row.dataset.y) && row.textContent.trim()) wrong.push([row.dataset.y, row.textContent, '']);
  }
  for (const { y, runs } of sample.rows_changed) {
    const row = screen.querySelector(`[data-y="${y}"]`);
    const text = runs.map(({ t }) => t).join('');
    if (row.textContent !== text) wrong.push([y, row.textContent, text]);
    // Where each character begins on the page, and where the service has it.
    const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    const at = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      let offset = 0;
      for (const c of node.data) {
        const range = document.createRange();
        range.setStart(node, offset);
        range.setEnd(node, (offset += c.length));
        at.push((range.getBoundingClientRect().left - left) / column);
      }
    }
    let x = 0;
    let n = 0;
    for (const { t, w } of runs) {
      const each = w / [...t].length;
      for (const c of t) {
        if (Math.abs(at[n] - x) > 0.35) wrong.push([y, c, at[n], x]);
        x += each;
        n += 1;
      }
    }
  }
  return wrong;
}
