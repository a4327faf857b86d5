// The address holds the state of the page, behind "#", so that it can be kept and sent: the view, its
// filters, the marked job and the theme. "#/jobs/7" is the page of job 7; "#/?job=7&theme=dark" is the cluster.

import { useEffect, useState } from 'preact/hooks';

export interface Address {
  path: string[]; // "#/jobs/7": ["jobs", "7"]; the cluster: []
  query: URLSearchParams;
}

export function readAddress(): Address {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean), query: new URLSearchParams(query) };
}

function format({ path, query }: Address): string {
  const text = query.toString();
  return `#/${path.join('/')}${text ? `?${text}` : ''}`;
}

// Returns the address of a view. The theme stays.
export function linkTo(path: string, query: Record<string, string> = {}): string {
  const all = new URLSearchParams(query);
  const theme = readAddress().query.get('theme');
  if (theme) all.set('theme', theme);
  return format({ path: path.split('/').filter(Boolean), query: all });
}

// Changes a part of the state without a new entry in the history; an empty value removes it.
export function setState(name: string, value: string): void {
  const address = readAddress();
  if (value) address.query.set(name, value);
  else address.query.delete(name);
  history.replaceState(history.state, '', `${location.pathname}${location.search}${format(address)}`);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useAddress(): Address {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const read = () => setAddress(readAddress());
    window.addEventListener('hashchange', read);
    return () => window.removeEventListener('hashchange', read);
  }, []);
  return address;
}
