// The header shows the cluster, the age of the data and their rate.

import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { linkTo, setState as setAddress } from './address';
import type { Feed, FeedState } from './feed';
import { percent } from './format';
import { chosenTheme, type Choice } from './theme';
import type { Session } from './types';

const staleAfter = 2.5; // s

function useAge(received: number): number {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, now - received) / 1000;
}

function linkText(state: FeedState, age: number): string {
  if (state.paused) return '❚❚ paused';
  if (state.link === 'simulated') return '◇ simulated, not a cluster';
  if (state.link === 'live' && age < staleAfter) return '● live';
  return `○ ${state.link === 'lost' ? 'connection lost' : 'stale'} ${age.toFixed(0)} s`;
}

function roleText({ user, role }: Session): string {
  return user ? `${user}, ${role}` : 'viewer, read only';
}

function Figure({ name, id, value }: { name: string; id: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd id={id}>{value}</dd>
    </div>
  );
}

const views: [path: string, name: string][] = [
  ['', 'Cluster'],
  ['history', 'History'],
  ['jobs', 'My jobs'],
  ['new', 'New job'],
];

function Views({ path }: { path: string[] }) {
  return (
    <nav aria-label="Views">
      {views.map(([view, name]) => (
        <a key={view} href={linkTo(view)} aria-current={(path[0] ?? '') === view ? 'page' : undefined}>{name}</a>
      ))}
    </nav>
  );
}

function Theme() {
  return (
    <label>
      Theme{' '}
      <select name="theme" value={chosenTheme()} onChange={(event) => setAddress('theme', event.currentTarget.value as Choice)}>
        <option value="">system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

interface HeaderProps {
  feed: Feed;
  state: FeedState;
  path: string[];
  drawer: { isOpen: boolean; button: RefObject<HTMLButtonElement>; toggle: () => void };
}

export function Header({ feed, state, drawer, path }: HeaderProps) {
  const age = useAge(state.received);
  const cluster = state.snapshot?.cluster;
  const down = cluster ? cluster.nodes_down + cluster.nodes_drained : 0;
  return (
    <header>
      <h1>Scored{cluster ? ` · ${cluster.name}` : ''}</h1>
      <Views path={path} />
      <span id="link" data-link={state.link}>{linkText(state, age)}</span>
      {cluster?.virtual && <span class="note">virtual nodes</span>}
      {cluster && (
        <dl class="figures">
          <Figure name="quantum" id="quantum" value={`${(cluster.quantum_s * 1000).toFixed(0)} ms`} />
          <Figure name="slots" id="slots" value={String(cluster.slots)} />
          <Figure name="switches/s" id="rate" value={cluster.switches_per_s.toFixed(1)} />
          <Figure name="overhead" id="share-overhead" value={percent(cluster.overhead, 3)} />
          <Figure name="nodes up" id="nodes-up" value={`${cluster.nodes_up}${down > 0 ? ` (${down} not)` : ''}`} />
        </dl>
      )}
      <span class="tools">
        {/* This comes first, so that nothing moves when it appears. */}
        {state.session && <span id="viewer" class="note">{roleText(state.session)}</span>}
        <Theme />
        <button type="button" aria-pressed={state.paused} onClick={() => feed.setPaused(!state.paused)}>
          Pause
        </button>
        <button type="button" aria-pressed={state.rate === 1} onClick={() => feed.setRate(state.rate === 1 ? 10 : 1)}>
          1 Hz
        </button>
        <button
          type="button"
          ref={drawer.button}
          aria-expanded={drawer.isOpen}
          aria-controls="admin"
          onClick={drawer.toggle}
        >
          Admin
        </button>
      </span>
    </header>
  );
}
