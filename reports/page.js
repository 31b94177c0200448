// Comfort of the report page: copy, filter, keys, theme. Nothing on the page needs it.
(() => {
  'use strict';
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const said = document.getElementById('said');
  let silence = 0;
  const say = (text) => {
    said.textContent = text;
    clearTimeout(silence);
    silence = setTimeout(() => { said.textContent = ''; }, 4000);
  };

  for (const part of all('.tools, .filter, [data-copy]')) part.hidden = false;

  // Theme: for this view only, nothing is stored.
  const choices = all('[data-theme-choice]');
  for (const choice of choices) {
    choice.addEventListener('click', () => {
      const theme = choice.dataset.themeChoice;
      if (theme === 'system') delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme;
      for (const other of choices) other.setAttribute('aria-pressed', String(other === choice));
    });
  }

  // Copy: the clipboard where it is allowed, else the text is selected for the reader to copy.
  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  for (const button of all('[data-copy]')) {
    button.addEventListener('click', async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        say('Copied.');
      } catch {
        select(source);
        say('Selected; press Ctrl+C to copy.');
      }
    });
  }

  // Filter: tokens that all have to hold; "!" negates; an unknown one is named.
  const split = (text) => text.match(/!?(?:[a-z]+:)?"[^"]*"|\S+/gi) ?? [];
  const known = { verdict: 'verdict', event: 'event', step: 'step' };
  const testOf = (token) => {
    const negated = token.startsWith('!');
    const body = (negated ? token.slice(1) : token).replaceAll('"', '');
    const colon = body.indexOf(':');
    const key = colon > 0 ? body.slice(0, colon) : '';
    const value = body.slice(colon + 1).toLowerCase();
    let test;
    if (!key) {
      test = (row) => row.textContent.toLowerCase().includes(body.toLowerCase());
    } else if (!(key in known)) {
      return { wrong: `Unknown token "${key}:"; known are verdict:, event:, step:.` };
    } else if (key === 'step') {
      const range = /^(\d+)(?:-(\d+))?$/.exec(value);
      if (!range) return { wrong: `"${body}" needs a number or a range, for example step:10-20.` };
      const first = Number(range[1]);
      const last = Number(range[2] ?? range[1]);
      test = (row) => Number(row.dataset.step) >= first && Number(row.dataset.step) <= last;
    } else {
      test = (row) => row.dataset[key] === value;
    }
    return { test: (row) => test(row) !== negated };
  };
  const filters = all('[data-filter]');
  const apply = (input) => {
    const rows = all('tbody tr', document.getElementById(input.dataset.filter));
    const tests = split(input.value).map(testOf);
    const output = input.parentElement.querySelector('.filter-note');
    const wrong = tests.find((test) => test.wrong);
    output.classList.toggle('wrong', Boolean(wrong));
    let shown = 0;
    for (const row of rows) {
      row.hidden = !wrong && !tests.every(({ test }) => test(row));
      if (!row.hidden) shown += 1;
    }
    output.textContent = wrong ? wrong.wrong
      : tests.length ? `${shown} of ${rows.length} rows` : '';
    const only = input.parentElement.querySelector('[data-failed-only]');
    only.setAttribute('aria-pressed', String(input.value.trim() === 'verdict:failed'));
  };
  for (const input of filters) input.addEventListener('input', () => apply(input));
  const toggleFailed = (button) => {
    const input = document.getElementById(button.dataset.failedOnly);
    input.value = button.getAttribute('aria-pressed') === 'true' ? '' : 'verdict:failed';
    apply(input);
  };
  for (const button of all('[data-failed-only]')) {
    button.addEventListener('click', () => toggleFailed(button));
  }

  // Addresses: what a link points at is opened first. "#ID?q=TOKENS" also filters its steps.
  const reveal = (element) => {
    for (let box = element; box; box = box.parentElement) {
      if (box.tagName === 'DETAILS') box.open = true;
    }
    const own = element.querySelector(':scope > details');
    if (own && element.classList.contains('finding')) own.open = true;
  };
  const follow = () => {
    const [id, query] = location.hash.slice(1).split('?');
    const element = document.getElementById(decodeURIComponent(id));
    if (!element) return;
    reveal(element);
    const section = element.closest('.finding');
    const input = section && section.querySelector('[data-filter]');
    if (input && query?.startsWith('q=')) {
      input.value = decodeURIComponent(query.slice(2));
      apply(input);
    }
    element.scrollIntoView();
  };
  addEventListener('hashchange', follow);
  follow();

  // Keys: ignored while typing; each only does what a link or a button does too.
  const dialog = document.getElementById('keys');
  document.querySelector('[data-keys]').addEventListener('click', () => dialog.showModal());
  dialog.querySelector('[data-close]').addEventListener('click', () => dialog.close());
  const findings = all('.finding');
  let finding = -1;
  const goFinding = (by) => {
    if (!findings.length) return say('There is no finding.');
    finding = finding < 0 ? (by > 0 ? 0 : findings.length - 1)
      : (finding + by + findings.length) % findings.length;
    reveal(findings[finding]);
    findings[finding].scrollIntoView();
    const heading = findings[finding].querySelector('summary');
    heading.focus({ preventScroll: true });
    say(`Finding ${finding + 1} of ${findings.length}`);
  };
  const here = () => findings[Math.max(0, finding)];
  const goStep = (by) => {
    const rows = here() ? all('tr[data-step]', here()).filter((row) => !row.hidden) : [];
    if (!rows.length) return say('There is no step to show.');
    const old = rows.findIndex((row) => row.classList.contains('current'));
    const failed = rows.findIndex((row) => row.dataset.verdict === 'failed');
    const next = old < 0 ? Math.max(0, failed) : Math.min(rows.length - 1, Math.max(0, old + by));
    for (const row of all('tr.current')) row.classList.remove('current');
    rows[next].classList.add('current');
    reveal(rows[next]);
    rows[next].scrollIntoView({ block: 'center' });
    say(`Step ${rows[next].dataset.step}`);
  };
  const first = (selector) => here()?.querySelector(selector) ?? document.querySelector(selector);
  const keys = {
    n: () => goFinding(1),
    p: () => goFinding(-1),
    '.': () => goStep(1),
    ',': () => goStep(-1),
    f: () => { const button = first('[data-failed-only]'); if (button) toggleFailed(button); },
    '/': () => {
      const input = first('[data-filter]');
      if (!input) return say('There are no steps to filter.');
      reveal(input);
      input.focus();
    },
    '?': () => dialog.showModal(),
  };
  addEventListener('keydown', (event) => {
    const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (typing && event.key === 'Escape') event.target.blur();
    if (typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // Paper shows everything that failed.
  addEventListener('beforeprint', () => { for (const box of all('.finding details')) box.open = true; });
})();
