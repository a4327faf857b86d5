// Chooses the view of one's own jobs by the address. A viewer without a login sees none of them.

import type { Address } from '../address';
import type { Session, Snapshot } from '../types';
import { NewJob } from './form';
import { JobView } from './job';
import { JobList } from './list';

interface OwnViewsProps {
  address: Address;
  session: Session | null;
  snapshot: Snapshot | null;
}

function View({ address, session, snapshot }: OwnViewsProps) {
  const [view, word] = address.path;
  if (!session) return <p class="hint" role="status">Waiting for the head …</p>;
  if (session.user === null) {
    return <p class="hint" role="status">Log in to see your jobs: <code>scadm web-login</code> prints an address that lets you in.</p>;
  }
  if (view === 'new') return <NewJob session={session} snapshot={snapshot} />;
  const number = /^\d+$/.test(word ?? '') ? Number(word) : null;
  if (view === 'jobs' && number !== null) return <JobView key={number} number={number} session={session} snapshot={snapshot} />;
  if (view === 'jobs' && word === undefined) return <JobList />;
  return <p class="hint" role="status">No view has this address.</p>;
}

export function OwnViews(props: OwnViewsProps) {
  return <main class="own"><View {...props} /></main>;
}
