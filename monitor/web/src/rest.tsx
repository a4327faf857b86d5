// The first paint does not need these parts, so they are a separate module that is loaded afterwards.

export { Drawer } from './admin';
export { EventsPanel } from './events';
export { HistoryView } from './history';
export { JobsPanel } from './jobs';
export { LoadPanel } from './loads';
export { OwnViews } from './own/views';
export { PeersDialog } from './peers';
export { ScratchPanel } from './scratch';
export { SwitchPanel } from './switches';
export { TraceDialog } from './trace';
export { TrafficPanel } from './traffic';
