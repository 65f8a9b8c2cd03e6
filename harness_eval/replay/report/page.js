'use strict';
(() => {
  const MOST_PRINTED_OPEN = 60;
  const form = document.getElementById('filters');
  const count = document.getElementById('count');
  const none = document.getElementById('none');
  const runs = Array.from(document.querySelectorAll('details.run'));
  const fields = Array.from(form.querySelectorAll('select, input'));
  const texts = new Map();

  function textOf(run) {
    if (!texts.has(run)) texts.set(run, run.textContent.toLowerCase());
    return texts.get(run);
  }

  function apply() {
    const chosen = fields.filter((field) => field.value);
    let shown = 0;
    for (const run of runs) {
      const fits = chosen.every((field) =>
        field.name === 'q'
          ? textOf(run).includes(field.value.toLowerCase())
          : run.dataset[field.name] === field.value);
      run.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = `${shown} of ${runs.length}`;
    none.hidden = shown > 0 || runs.length === 0;
  }

  // The filters stand behind the # of the address, so that a filtered page can be linked to.
  function read() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      field.value = wanted.get(field.name) || '';
      if (field.value === '' && field.selectedIndex === -1) field.selectedIndex = 0;
    }
    apply();
    const run = document.getElementById(location.hash.slice(1));
    if (run && run.classList.contains('run')) {
      run.open = true;
      run.scrollIntoView();
    } else if (location.hash.length > 1) {
      form.scrollIntoView();
    }
  }

  function write() {
    const chosen = fields.filter((field) => field.value);
    const hash = new URLSearchParams(chosen.map((field) => [field.name, field.value]));
    history.replaceState(null, '', `#${hash}`);
    apply();
  }

  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', write);
  form.addEventListener('reset', () => setTimeout(write));
  window.addEventListener('hashchange', read);
  window.addEventListener('beforeprint', () => {
    const shown = runs.filter((run) => !run.hidden);
    if (shown.length <= MOST_PRINTED_OPEN) shown.forEach((run) => { run.open = true; });
  });
  read();
})();
