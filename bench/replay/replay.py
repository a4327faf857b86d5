"""scbench replay: runs the jobs of a workload log as real jobs of a virtual cluster, in compressed time, and compares them with
the prediction of scsim for the same jobs, nodes, slices and policy.

The tasks (scbench-scheduled) end when they have been scheduled for as long as the log says, and sleep meanwhile. Idle
detection is off: it would give away the turns of tasks that sleep. The time that the daemons add to each job is measured
in the same run, by jobs that run alone, and added to the prediction: from submission to the entry into the timetable, and
from there to the end, beyond the job's run time.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import arguments
import comparison
import measure
import bench_report as report
from cluster import BIN, PROGRAMS, Cluster
from kernels import note

NODE_BYTES = 1 << 30
PROBES = 12  # jobs that run alone
PROBE_S = 0.5
WORST = 5
START_LIMIT_S = 120  # for a restarted head
QUICK = {'hours': 2.0, 'compress': 1000.0, 'nodes': 8}
USUAL = {'hours': 24.0, 'compress': 240.0, 'nodes': 32}


class Failed(Exception):
    """An error that is reported to the user as one line."""


def add_options(parser, positive, nanoseconds):
    number = arguments.real(1e-3, 1e6)
    parser.add_argument('--swf', required=True, metavar='FILE', help='log in the Standard Workload Format, compressed with gzip or not')
    parser.add_argument('--hours', type=number, metavar='H', help='length of the part that is replayed (24)')
    parser.add_argument('--from', dest='first', type=arguments.real(0, 1e6), metavar='H',
                        help='its begin, in hours from the start of the log (the part with the most work)')
    parser.add_argument('--compress', type=number, metavar='F', help='run the log F times faster (240)')
    parser.add_argument('--load', type=number, metavar='L',
                        help='offered load: the times between submissions are scaled (as in the log)')
    parser.add_argument('--nodes', type=positive, metavar='N', help='virtual nodes; the sizes of jobs shrink in proportion (32)')
    parser.add_argument('--slice', type=nanoseconds, default=100_000_000, metavar='D', help='time slice (100ms)')
    parser.add_argument('--slots', type=positive, default=8, metavar='N', help='rows of the gang matrix (8)')
    parser.add_argument('--placement', choices=['matrix', 'dqt'], default='matrix', help='policy (matrix)')
    parser.add_argument('--long-limit', type=arguments.real(0, 1e9), default=300, metavar='S',
                        help='long_limit of the cluster, in seconds of the log; 0: no job is long (300)')
    parser.add_argument('--long-shared', type=arguments.real(0, 1e9), default=3600, metavar='S', help='its long_shared, in seconds of the log (3600)')
    parser.add_argument('--seed', type=positive, default=1, metavar='S', help='seed of the memory of the jobs (1)')
    parser.add_argument('--quick', action='store_true', help='use 2 hours, 1000 times faster, 8 nodes, unless given')
    report.add_options(parser)
    parser.add_argument('--plot', metavar='FILE', help='draw the comparison, as .svg')


def settle(parser, options):
    """Sets the defaults of missing options, and refuses options that do not fit together."""
    for name, value in (QUICK if options.quick else USUAL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.nodes > 256:
        parser.error('--nodes: a virtual cluster for a replay has at most 256')
    if options.plot and not options.plot.endswith('.svg'):
        parser.error('--plot writes SVG: use a name that ends in .svg')
    if min(options.first or 0, options.long_limit, options.long_shared) < 0:
        parser.error('--from, --long-limit and --long-shared are not negative')


# ---- the prediction

def part_of_log(options):
    words = ['--swf', options.swf, '--hours', options.hours, '--compress', options.compress]
    if options.first is not None:
        words += ['--from', options.first]
    return words if options.load is None else [*words, '--load', options.load]


def as_submitted(jobs, measured, nodes, directory):
    """Writes a log of the same jobs with the times at which they were submitted: on a busy machine scrun takes a moment, and
    the prediction begins after it."""
    path = directory / 'submitted.swf'
    lines = [f'; MaxProcs: {nodes}']
    for job in jobs:
        lines.append(f'{job["job"]} {measured[job["job"]][0]:.3f} -1 {job["run_s"]:.6f} {job["nodes"]} -1 -1 -1 -1 -1 1 '
                     f'{job["user"]} 1 -1 -1 -1 -1 -1')
    path.write_text('\n'.join(lines) + '\n')
    return ['--swf', path]


def simulate(options, directory, workload, start_s=0.0, run_s=0.0):
    """Returns the records of scsim: the jobs, and the predicted start and end of each."""
    records = directory / 'records.json'
    words = [*workload, '--nodes', options.nodes, '--policies', options.placement, '--slots', options.slots, '--quantum', options.slice / 1e6, '--seed', options.seed,
             '--long-limit', options.long_limit / options.compress, '--long-shared', options.long_shared / options.compress,
             '--start-cost', start_s * 1e3, '--run-cost', run_s * 1e3,
             '--json', '--records', records]
    done = subprocess.run([BIN / 'scsim', *map(str, words)], capture_output=True, text=True)
    said = done.stderr.replace('scsim: ', '').strip()
    if done.returncode != 0:
        raise Failed(said.splitlines()[-1] if said else f'scsim ended with {done.returncode}')
    return json.loads(records.read_text()) | {'load': json.loads(done.stdout)['results'][0]['load']}, said


# ---- the real jobs

def head_keys(options):
    """Returns the configuration with which the head decides as the simulation does."""
    if options.placement != 'matrix':
        return ''
    limits = {'long_limit': options.long_limit, 'long_shared': options.long_shared}
    return ''.join(f'{key} = "{round(value / options.compress * 1e6)}us"\n' for key, value in limits.items())


def configure(cluster, keys):
    """Adds to the head's own keys, which are at the beginning of its file, under [head]."""
    path = cluster.directory / 'head/scored.toml'
    path.write_text(path.read_text().replace('[head]\n', f'[head]\n{keys}', 1))
    cluster.kill('head')
    cluster.restart('head')
    cluster.wait_up(limit=START_LIMIT_S)


def submit(cluster, options, nodes, run_s, *words):
    return cluster.submit('-N', nodes, '-i', 'none', '-o', '/dev/null', '-e', '/dev/null', *words,
                          PROGRAMS / 'scbench-scheduled', f'{run_s:.6f}', f'{options.slice / 1e9:.6f}')


def request(job):
    return ['--mem', int(job['memory'] * NODE_BYTES), '-t', f'{max(1, round(job["limit_s"] * 1e3))}ms', '-J', f'replay-{job["job"]}']


def wait_for_end(cluster, limit_s):
    """Returns true if no job is left."""
    end = time.monotonic() + limit_s
    while cluster.json('scq', '--active')['jobs']:
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def records_of(cluster, ids):
    """Returns the accounting records of these jobs by id, as lists, so that a duplicate record is noticed."""
    out = {job: [] for job in ids}
    for record in cluster.json('scacct', '--all')['jobs']:
        if record['job'] in out:
            out[record['job']].append(record)
    return out


def measure_costs(cluster, options, jobs):
    """Measures the time that the daemons add to a job that runs alone: (until it enters the timetable, from there on), in seconds;
    medians over jobs of the sizes of the workload."""
    sizes = sorted(job['nodes'] for job in jobs)
    ids = []
    for probe in range(PROBES):
        ids.append(submit(cluster, options, sizes[(2 * probe + 1) * len(sizes) // (2 * PROBES)], PROBE_S))
        wait_for_end(cluster, 600)
    records = [one[0] for one in records_of(cluster, ids).values()]
    return (statistics.median(r['started_unix_s'] - r['submitted_unix_s'] for r in records),
            max(0.0, statistics.median(r['ended_unix_s'] - r['started_unix_s'] for r in records) - PROBE_S))


def replay(cluster, options, jobs):
    """Submits each job at its time: ({number: id}, how late each was)."""
    ids, late = {}, []
    begun = time.monotonic()
    for job in jobs:
        time.sleep(max(0.0, begun + job['submit_s'] - time.monotonic()))
        ids[job['job']] = submit(cluster, options, job['nodes'], job['run_s'], *request(job))
        late.append(time.monotonic() - begun - job['submit_s'])
    return ids, late


def ran_once(records):
    return len(records) == 1 and records[0]['restarts'] == 0 and records[0].get('started_unix_s', 0) > 0


def states_of(records):
    out = {}
    for one in records.values():
        for record in one:
            out[record['state']] = out.get(record['state'], 0) + 1
    return out


def measured_schedule(ids, records):
    first = min(records[job][0]['submitted_unix_s'] for job in ids.values())
    return {number: tuple(records[job][0][key] - first for key in ('submitted_unix_s', 'started_unix_s', 'ended_unix_s'))
            for number, job in ids.items()}


def worst_of(jobs, measured, records):
    """Returns the jobs whose responses differ most from the prediction, with their accounting records."""
    def difference(job):
        submit, _, end = measured[job['job']]
        return (end - submit) - (job['end_s'] - job['submit_s'])
    chosen = sorted(jobs, key=lambda job: -abs(difference(job)))[:WORST]
    return [{'job': job['job'], 'nodes': job['nodes'], 'run_s': job['run_s'], 'scheduled_s': records[job['job']]['scheduled_s'],
             'elapsed_s': records[job['job']]['elapsed_s'], 'predicted_response_s': job['end_s'] - job['submit_s'],
             'difference_s': difference(job)} for job in chosen]


def run_jobs(options, workload, limit_s):
    """Boots the cluster and replays the log. Returns the observations and the records of the jobs by number."""
    jobs = workload['jobs']
    cluster = Cluster(options.nodes, '--slice', f'{options.slice // 1000}us', '--slots', options.slots, '--placement',
                      options.placement, '--memory', NODE_BYTES)
    try:
        configure(cluster, head_keys(options))
        cluster.run('scadm', 'set', 'idle', 'off')
        start_s, run_s = measure_costs(cluster, options, jobs)
        note(f'{len(jobs)} jobs in {jobs[-1]["submit_s"]:.0f} s on {options.nodes} nodes')
        processors, begun = measure.Processors(), time.monotonic()
        ids, late = replay(cluster, options, jobs)
        if not wait_for_end(cluster, limit_s):
            raise Failed(f'jobs are still running {limit_s:.0f} s after the last submission')
        seen = {'seconds': time.monotonic() - begun, 'busy_percent': processors.parts()[0],
                'start_cost_ms': start_s * 1e3, 'run_cost_ms': run_s * 1e3,
                'submitted_late_p95_s': measure.percentile(late, 0.95)}
        return seen, ids, records_of(cluster, ids.values())
    finally:
        cluster.stop()


# ---- the command

def measured_report(options, directory):
    workload, said = simulate(options, directory, part_of_log(options))
    if said:
        note(said)
    last = max(job['end_s'] for job in workload['jobs'])
    seen, ids, records = run_jobs(options, workload, 600 + 10 * last)
    once = sum(ran_once(one) for one in records.values())
    found = {'workload': workload['workload'], 'malformed': workload['malformed'], 'hours': options.hours, 'compress': options.compress,
             'nodes': options.nodes, 'slice_ms': options.slice / 1e6, 'slots': options.slots, 'placement': options.placement,
             'long_limit_s': options.long_limit, 'long_shared_s': options.long_shared, 'load': workload['load'], 'jobs': len(ids),
             'ran_once': once, 'states': states_of(records)} | seen
    if once < len(ids):
        return found
    measured = measured_schedule(ids, records)
    bare = comparison.predicted_schedule(workload)
    as_it_was = as_submitted(workload['jobs'], measured, options.nodes, directory)
    prediction, _ = simulate(options, directory, as_it_was, seen['start_cost_ms'] / 1e3, seen['run_cost_ms'] / 1e3)
    needed = [job | {'run_s': max(0.001, records[ids[job['job']]][0]['scheduled_s'])} for job in workload['jobs']]
    as_needed, _ = simulate(options, directory, as_submitted(needed, measured, options.nodes, directory), seen['start_cost_ms'] / 1e3)
    found['worst'] = worst_of(prediction['jobs'], measured, {number: records[job][0] for number, job in ids.items()})
    scheduled = sum(records[job][0]['scheduled_s'] for job in ids.values())
    found['scheduled_vs_run'] = scheduled / sum(job['run_s'] for job in workload['jobs'])
    return found | comparison.compare(prediction, measured, options.compress) | {
        'predicted_without_costs': comparison.figures(workload['jobs'], bare, options.compress),
        'as_scheduled': comparison.side_by_side(workload['jobs'], measured, comparison.predicted_schedule(as_needed), options.compress),
        'records': [records[job][0] | {'log_job': number} for number, job in ids.items()]}


def print_text(options, found):
    print(f'{found["workload"]}: {found["jobs"]} jobs of {found["hours"]:g} h, {found["compress"]:g} times faster, load '
          f'{found["load"]:.2f}, on {found["nodes"]} nodes, slices of {found["slice_ms"]:g} ms, {found["slots"]} slots, '
          f'{found["placement"]}')
    print(f'{found["ran_once"]} of {found["jobs"]} jobs ran once; states: '
          + ', '.join(f'{count} {state}' for state, count in found['states'].items()))
    print(f'the daemons add {found["start_cost_ms"]:.0f} ms before and {found["run_cost_ms"]:.0f} ms during a run; '
          f'processors {found["busy_percent"]:.0f} % busy; submissions up to {found["submitted_late_p95_s"]:.3f} s late (p95)')
    if 'all' in found:
        print(comparison.as_text(found))
        for job in found['worst']:
            print(f'job {job["job"]}: {job["difference_s"]:+.3f} s from its predicted response of {job["predicted_response_s"]:.3f} s; '
                  f'run time {job["run_s"]:.3f} s, scheduled {job["scheduled_s"]:.3f} s in {job["elapsed_s"]:.3f} s')
        print(f'by the accounting the jobs were scheduled for {found["scheduled_vs_run"]:.3f} times their run times')
        print('scsim with the scheduled times that the jobs took, in place of the run times of the log:')
        print('\n'.join(comparison.lines_of('all', found['as_scheduled'])))
        print(f'without what the daemons add, scsim predicts a mean response of '
              f'{found["predicted_without_costs"]["response_mean_s"]:.3f} s')


def run(options):
    with tempfile.TemporaryDirectory(prefix='scbench-') as directory:
        try:
            found = report.Kept(options).part('replay', measured_report, options, pathlib.Path(directory))
        except Failed as error:
            print(f'scbench replay: {error}', file=sys.stderr)
            return arguments.ERROR
    if options.plot and 'all' in found:
        comparison.draw(found, options.plot)
    bounds = {'ran_once': ('>=', found['jobs'])}
    return report.finish(options, 'scored.bench.replay/2', found, [('replay', found, bounds)], lambda: print_text(options, found))
