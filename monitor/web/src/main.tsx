import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Drawer } from './admin';
import { EventsPanel } from './events';
import { Feed } from './feed';
import { Header } from './header';
import { JobsPanel } from './jobs';
import { LoadPanel } from './loads';
import { MatrixPanel } from './matrix';
import { PeersDialog } from './peers';
import './style.css';
import { SwitchPanel } from './switches';
import { TraceDialog, type Moment } from './trace';
import { TrafficPanel } from './traffic';
import type { Session } from './types';

const feed = new Feed();
const longestAlone = 200; // ms
const nobody: Session = { schema: '', role: 'viewer', user: null, csrf: null, can: [] };

// Escape closes the drawer from anywhere but the parts below it, and gives the focus back to who opened it.
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

// The matrix is painted first; what stands below and beside it follows, so that a busy machine shows something soon.
function useRest(hasFirst: boolean): boolean {
  const [isDue, setDue] = useState(false);
  useEffect(() => {
    if (!hasFirst) return undefined;
    // A page in the background gets no frames.
    const timer = setTimeout(() => setDue(true), longestAlone);
    const frame = requestAnimationFrame(() => setTimeout(() => setDue(true)));
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [hasFirst]);
  return isDue;
}

function App() {
  const [state, setState] = useState(feed.state);
  const drawer = useDrawer();
  const [chosen, setMarked] = useState<number | null>(null);
  const [isPeersOpen, setPeersOpen] = useState(false);
  const [moment, setMoment] = useState<Moment | null>(null);
  const dialog = useMemo(() => moment && <TraceDialog moment={moment} onClose={() => setMoment(null)} />, [moment]);
  useEffect(() => feed.subscribe(setState), []);
  const { snapshot, session } = state;
  const hasRest = useRest(snapshot !== null);
  // A job that is gone marks nothing: all others would stay dimmed.
  const marked = snapshot?.jobs.some((job) => job.job === chosen) ? chosen : null;
  return (
    <>
      <Header feed={feed} state={state} drawer={drawer} />
      {snapshot && drawer.isOpen && <Drawer session={session ?? nobody} snapshot={snapshot} />}
      {snapshot ? (
        <main data-marked={marked ?? ''}>
          <div class="left">
            <MatrixPanel snapshot={snapshot} marked={marked} />
            {hasRest && <LoadPanel snapshot={snapshot} marked={marked} />}
            {hasRest && <JobsPanel snapshot={snapshot} marked={marked} onMark={setMarked} />}
          </div>
          <div class="right">
            {hasRest && <SwitchPanel snapshot={snapshot} onTrace={setMoment} />}
            {hasRest && <TrafficPanel snapshot={snapshot} onPeers={() => setPeersOpen(true)} />}
            {hasRest && <EventsPanel snapshot={snapshot} onTrace={setMoment} />}
          </div>
          {dialog}
          {isPeersOpen && <PeersDialog snapshot={snapshot} onClose={() => setPeersOpen(false)} />}
        </main>
      ) : (
        <p class="loading">Waiting for the head …</p>
      )}
    </>
  );
}

feed.start(new URLSearchParams(location.search));
render(<App />, document.getElementById('app')!);
