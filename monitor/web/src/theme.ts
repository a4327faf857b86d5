// The theme is that of the system unless the address chooses one. light.css is applied in the light theme only.

import { readAddress } from './address';

export type Choice = '' | 'light' | 'dark';

const system = window.matchMedia('(prefers-color-scheme: light)');

export function chosenTheme(): Choice {
  const theme = readAddress().query.get('theme');
  return theme === 'light' || theme === 'dark' ? theme : '';
}

export function isLight(): boolean {
  const theme = chosenTheme();
  return theme === '' ? system.matches : theme === 'light';
}

function apply(): void {
  const theme = chosenTheme();
  const sheet = document.querySelector<HTMLLinkElement>('link[href$="light.css"]');
  const media = { '': '(prefers-color-scheme: light)', light: 'all', dark: 'not all' }[theme];
  if (sheet && sheet.media !== media) sheet.media = media;
  document.documentElement.style.colorScheme = theme || 'dark light';
}

export function followTheme(): void {
  apply();
  window.addEventListener('hashchange', apply);
}
