// What a job used over time: processors and memory, as the head keeps them.

import { useEffect, useState } from 'preact/hooks';
import { bytes } from '../format';
import { PicturePanel, type Picture } from '../history';
import type { History, Range } from '../range';
import { ask } from './api';

interface ProfileDocument {
  step_s: number;
  points: { end_unix_s: number; processors: number; memory_bytes: number; memory_largest_bytes: number }[];
}

const period = 10_000; // ms
const nothing: ProfileDocument = { step_s: 0, points: [] };
const pictures: Picture[] = [
  {
    id: 'profile-processors', title: 'Processors that the job kept busy', format: (value) => value.toFixed(1),
    curves: [{ name: 'processors', column: 'processors', colour: 'user' }],
  },
  {
    id: 'profile-memory', title: 'Memory', format: bytes,
    curves: [
      { name: 'all nodes', column: 'memory', colour: 'max' },
      { name: 'largest node', column: 'largest', colour: 'skew', dash: [6, 3] },
    ],
  },
];

function useProfile(job: number, isOver: boolean): ProfileDocument {
  const [profile, setProfile] = useState(nothing);
  useEffect(() => {
    let isGone = false;
    const read = async () => {
      const answer = await ask<ProfileDocument>(`jobs/${job}/profile`);
      if (answer.ok && !isGone) setProfile(answer.value);
    };
    void read();
    const timer = isOver ? 0 : setInterval(() => void read(), period);
    return () => {
      isGone = true;
      clearInterval(timer);
    };
  }, [job, isOver]);
  return profile;
}

function historyOf({ points }: ProfileDocument): History {
  return {
    columns: ['unix_s', 'processors', 'memory', 'largest'],
    rows: points.map((point) => [point.end_unix_s, point.processors, point.memory_bytes, point.memory_largest_bytes]),
  };
}

export function Profile({ job, isOver }: { job: number; isOver: boolean }) {
  const profile = useProfile(job, isOver);
  const [zoom, setZoom] = useState<Range | null>(null);
  const first = profile.points[0];
  const last = profile.points.at(-1);
  if (!first || !last) return null;
  const whole = { from: first.end_unix_s - profile.step_s, to: last.end_unix_s };
  const position = { span: { name: '', step: profile.step_s, seconds: whole.to - whole.from }, isZoomed: zoom !== null, ...(zoom ?? whole) };
  return (
    <>
      {pictures.map((picture) => <PicturePanel key={picture.id} picture={picture} history={historyOf(profile)} position={position} onZoom={setZoom} />)}
      {zoom && <button type="button" onClick={() => setZoom(null)}>Whole range</button>}
    </>
  );
}
