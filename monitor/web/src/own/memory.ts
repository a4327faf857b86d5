// What this browser remembers of the user's submissions: the last form of each of the latest jobs, and
// templates. Without storage nothing is remembered.

import type { Form, Template } from './submission';

const mostJobs = 50;
const mostTemplates = 50;

function read<T>(name: string, initial: T): T {
  try {
    const text = localStorage.getItem(`scored.${name}`);
    return text ? (JSON.parse(text) as T) : initial;
  } catch {
    return initial;
  }
}

function write(name: string, value: unknown): void {
  try {
    localStorage.setItem(`scored.${name}`, JSON.stringify(value));
  } catch {
    // It is full, or forbidden.
  }
}

interface Submitted {
  key: string; // cluster, user and number of the job
  form: Form;
}

export function rememberForm(key: string, form: Form): void {
  const kept = read<Submitted[]>('submitted', []).filter((one) => one.key !== key);
  write('submitted', [{ key, form }, ...kept].slice(0, mostJobs));
}

export function formOf(key: string): Form | null {
  return read<Submitted[]>('submitted', []).find((one) => one.key === key)?.form ?? null;
}

export function lastForm(): Form | null {
  return read<Submitted[]>('submitted', [])[0]?.form ?? null;
}

export function ownTemplates(): Template[] {
  return read<Template[]>('templates', []);
}

export function saveTemplate(template: Template): void {
  const kept = ownTemplates().filter((one) => one.name !== template.name);
  write('templates', [template, ...kept].slice(0, mostTemplates));
}

export function removeTemplate(name: string): void {
  write('templates', ownTemplates().filter((one) => one.name !== name));
}
