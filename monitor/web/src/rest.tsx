// What the first paint does without: a module of its own, which is asked for afterwards.

export { Drawer } from './admin';
export { EventsPanel } from './events';
export { JobsPanel } from './jobs';
export { LoadPanel } from './loads';
export { PeersDialog } from './peers';
export { ScratchPanel } from './scratch';
export { SwitchPanel } from './switches';
export { TraceDialog } from './trace';
export { TrafficPanel } from './traffic';
