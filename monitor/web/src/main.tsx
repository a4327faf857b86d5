import { render } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import { setState as setAddress, useAddress } from './address';
import { Feed } from './feed';
import { Header } from './header';
import { MatrixPanel } from './matrix';
import './style.css';
import { followTheme } from './theme';
import type { Moment } from './trace';
import type { Session } from './types';
import { painted, pause } from './wait';

type Rest = typeof import('./rest');

const feed = new Feed();
const longestBlank = 300; // ms
const pauseOfRest = 1000; // ms
const anonymous: Session = { schema: '', role: 'viewer', user: null, csrf: null, can: [] };

// Escape closes the drawer from anywhere except the dialogs below it, and returns the focus to the opener.
function useDrawer() {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    const close = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || (event.target as Element).closest('main')) return;
      setOpen(false);
      button.current?.focus();
    };
    document.addEventListener('keydown', close);
    return () => document.removeEventListener('keydown', close);
  }, [isOpen]);
  return { isOpen, button, toggle: () => setOpen(!isOpen) };
}

// The header and the matrix, and when it is loaded the rest next to and below them.
function App({ rest }: { rest?: Rest }) {
  const [state, setState] = useState(feed.state);
  const drawer = useDrawer();
  const address = useAddress();
  const [isPeersOpen, setPeersOpen] = useState(false);
  const [moment, setMoment] = useState<Moment | null>(null);
  const dialog = useMemo(
    () => rest && moment && <rest.TraceDialog moment={moment} onClose={() => setMoment(null)} />,
    [rest, moment],
  );
  useLayoutEffect(() => feed.subscribe(setState), []);
  const { snapshot, session } = state;
  // A job that is gone cannot stay marked, because all others would stay dimmed.
  const chosen = Number(address.query.get('job'));
  const marked = snapshot?.jobs.some((job) => job.job === chosen) ? chosen : null;
  const setMarked = (job: number | null) => setAddress('job', job === null ? '' : String(job));
  const isCluster = address.path.length === 0;
  useEffect(() => {
    document.title = ['Scored', snapshot?.cluster.name, ...address.path].filter(Boolean).join(' · ');
  }, [snapshot?.cluster.name, address]);
  return (
    <>
      <Header feed={feed} state={state} drawer={drawer} path={address.path} />
      {rest && snapshot && drawer.isOpen && <rest.Drawer session={session ?? anonymous} snapshot={snapshot} />}
      {!isCluster ? (
        rest && (address.path[0] === 'history' ? <rest.HistoryView /> : <rest.OwnViews address={address} session={session} snapshot={snapshot} />)
      ) : snapshot ? (
        <main data-marked={marked ?? ''}>
          <div class="left">
            <MatrixPanel snapshot={snapshot} marked={marked} />
            {rest && <rest.LoadPanel snapshot={snapshot} marked={marked} />}
            {rest && <rest.JobsPanel snapshot={snapshot} marked={marked} onMark={setMarked} />}
          </div>
          <div class="right">
            {rest && <rest.SwitchPanel snapshot={snapshot} onTrace={setMoment} />}
            {rest && <rest.TrafficPanel snapshot={snapshot} onPeers={() => setPeersOpen(true)} />}
            {rest && <rest.ScratchPanel snapshot={snapshot} />}
            {rest && <rest.EventsPanel snapshot={snapshot} onTrace={setMoment} />}
          </div>
          {dialog}
          {rest && isPeersOpen && <rest.PeersDialog snapshot={snapshot} onClose={() => setPeersOpen(false)} />}
        </main>
      ) : (
        <p class="loading">Waiting for the head …</p>
      )}
    </>
  );
}

// Retries forever, because the head may be away for now.
async function restOfPage(): Promise<Rest> {
  for (;;) {
    try {
      return await import('./rest');
    } catch {
      await pause(pauseOfRest);
    }
  }
}

// The first frame has the matrix if the head answers soon. The rest comes after that frame, so that a busy
// machine shows something soon.
async function show(into: Element): Promise<void> {
  followTheme();
  const first = feed.start(new URLSearchParams(location.search));
  await Promise.race([first, pause(longestBlank)]);
  into.replaceChildren(); // otherwise the old content moves down before it is removed
  render(<App />, into);
  await first;
  await painted();
  render(<App rest={await restOfPage()} />, into);
}

void show(document.getElementById('app')!);
