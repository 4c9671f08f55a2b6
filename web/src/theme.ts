// The theme: of the system, light or dark. `?theme=` wins over what is remembered.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEPT = "dendrer-theme";
const isTheme = (text: string | null): text is Theme => text === "system" || text === "light" || text === "dark";

function initial(): Theme {
  const given = new URLSearchParams(location.search).get("theme");
  if (isTheme(given)) return given;
  try {
    const kept = localStorage.getItem(KEPT);
    return isTheme(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(initial());
/** Counts changes of colours: pictures are drawn again. */
export const painted = signal(0);

export function setTheme(to: Theme): void {
  theme.value = to;
  try {
    localStorage.setItem(KEPT, to);
  } catch {
    // The choice is not remembered.
  }
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  painted.value = painted.peek() + 1;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (painted.value += 1));
matchMedia("(forced-colors: active)").addEventListener("change", () => (painted.value += 1));
