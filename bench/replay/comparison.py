"""Compares two schedules of the same jobs: the records of real daemons, and a prediction. Times are in seconds of the compressed log."""
import statistics

import bench_report as report
import svg_chart
from measure import percentile

BOUND_S = 10  # bound of the bounded slowdown, in the log's time (Feitelson 1997)
MOST_DIFFERENCE = 0.05
SIZES = [('1 node', 0), ('to 1/16', 1 / 16), ('to 1/4', 1 / 4), ('to 1/2', 1 / 2), ('to all', 1)]
RUN_TIMES = [('to 1 min', 60), ('to 10 min', 600), ('to 1 h', 3600), ('over 1 h', float('inf'))]
MEASURES = ('response_mean_s', 'response_p95_s', 'bounded_slowdown_mean', 'bounded_slowdown_p95', 'wait_mean_s', 'wait_p95_s')


def size_class(job, nodes):
    """Returns the classes of scsim."""
    if job['nodes'] == 1:
        return SIZES[0][0]
    return next(name for name, most in SIZES[1:] if job['nodes'] <= most * nodes)


def run_time_class(job, compress):
    return next(name for name, most in RUN_TIMES if job['run_s'] * compress <= most)


def figures(jobs, schedule, compress):
    """`schedule`: (submission, start, end) of each job by number."""
    times = [(job, *schedule[job['job']]) for job in jobs]
    waits = [start - submit for _, submit, start, _ in times]
    responses = [end - submit for _, submit, _, end in times]
    slowdowns = [max(1, (end - submit) / max(job['run_s'], BOUND_S / compress)) for job, submit, _, end in times]
    return {'response_mean_s': statistics.fmean(responses), 'response_p95_s': percentile(responses, 0.95),
            'bounded_slowdown_mean': statistics.fmean(slowdowns), 'bounded_slowdown_p95': percentile(slowdowns, 0.95),
            'wait_mean_s': statistics.fmean(waits), 'wait_p95_s': percentile(waits, 0.95)}


def predicted_schedule(records):
    return {job['job']: (job['submit_s'], job['start_s'], job['end_s']) for job in records['jobs']}


def ratios(measured, predicted):
    """Returns the ratio; None if only the prediction is 0, as for a wait."""
    return {name: ratio(measured[name], predicted[name]) for name in MEASURES}


def ratio(measured, predicted):
    if predicted:
        return measured / predicted
    return None if measured else 1.0


def side_by_side(jobs, measured, predicted, compress):
    both = {'measured': figures(jobs, measured, compress), 'predicted': figures(jobs, predicted, compress)}
    both['ratio'] = ratios(both['measured'], both['predicted'])
    both['differs'] = [name for name, one in both['ratio'].items() if one is None or abs(one - 1) > MOST_DIFFERENCE]
    return {'jobs': len(jobs)} | both


def by_class(jobs, measured, predicted, compress, class_of, names):
    out = []
    for name in names:
        members = [job for job in jobs if class_of(job) == name]
        if members:
            out.append({'class': name} | side_by_side(members, measured, predicted, compress))
    return out


def job_ratios(jobs, measured, predicted):
    """Compares the responses of single jobs, because a mean hides differences that cancel out."""
    out = []
    for job in jobs:
        (submit, _, end), (expected_submit, _, expected_end) = measured[job['job']], predicted[job['job']]
        out.append((end - submit) / (expected_end - expected_submit))
    return {'p10': percentile(out, 0.1), 'p50': percentile(out, 0.5), 'p90': percentile(out, 0.9)}


def compare(records, measured, compress):
    """`records`: of scsim, the prediction; `measured`: a schedule."""
    jobs, predicted = records['jobs'], predicted_schedule(records)
    nodes = records['nodes']
    return {'all': side_by_side(jobs, measured, predicted, compress),
            'by_size': by_class(jobs, measured, predicted, compress, lambda job: size_class(job, nodes), [n for n, _ in SIZES]),
            'by_run_time': by_class(jobs, measured, predicted, compress, lambda job: run_time_class(job, compress),
                                    [n for n, _ in RUN_TIMES]),
            'response_ratio_of_jobs': job_ratios(jobs, measured, predicted)}


# ---- text and drawing

def lines_of(name, pair):
    out = []
    for measure in MEASURES:
        one = pair['ratio'][measure]
        shown = f'{one:8.3f}' if one is not None else '       -'
        out.append(f'{name:12} {pair["jobs"]:5} {measure:24} {pair["measured"][measure]:11.3f} {pair["predicted"][measure]:11.3f} '
                   f'{shown}{"  differs" if measure in pair["differs"] else ""}')
    return out


def as_text(comparison):
    lines = [f'{"class":12} {"jobs":>5} {"figure":24} {"measured":>11} {"predicted":>11} {"ratio":>8}']
    lines += lines_of('all', comparison['all'])
    for kind in ('by_size', 'by_run_time'):
        for one in comparison[kind]:
            lines += lines_of(one['class'], one)
    spread = comparison['response_ratio_of_jobs']
    lines.append(f'response of single jobs, measured / predicted: median {spread["p50"]:.3f}, '
                 f'from {spread["p10"]:.3f} to {spread["p90"]:.3f} (10th to 90th percentile)')
    return '\n'.join(lines)


def panel(title, classes, measure, unit):
    return {'title': title, 'x': 'class of jobs', 'y': unit, 'places': [one['class'] for one in classes],
            'lines': [(side, [(i, one[side][measure]) for i, one in enumerate(classes)]) for side in ('measured', 'predicted')]}


def draw(comparison, path):
    whole = [{'class': 'all'} | comparison['all']]
    svg_chart.draw([panel('mean response, by size', comparison['by_size'] + whole, 'response_mean_s', 'seconds'),
                    panel('mean response, by run time', comparison['by_run_time'] + whole, 'response_mean_s', 'seconds'),
                    panel('mean bounded slowdown, by run time', comparison['by_run_time'] + whole, 'bounded_slowdown_mean', 'slowdown')],
                   path, report.caption([]))
