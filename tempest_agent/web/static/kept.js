// Scores and settings that stay in this browser.

/** What this browser keeps under `name`; null where it keeps nothing. */
export function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch (error) {
    console.warn("this browser keeps no scores and settings", error);
    return null;
  }
}

/** Keep `value` under `name` in this browser. */
export function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch (error) {
    console.warn("this browser keeps no scores and settings", error);
  }
}
