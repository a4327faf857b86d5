"""Several commands of one cluster whose jobs run at the same time."""
from cluster import LIMIT


def run_together(cluster, commands):
    """Runs `commands(seconds)`, each a scrun whose program works for so long, until all of their jobs are seen running at
    once. Starting takes longer on a busy machine, so later tries work for longer. Gives the jobs and the outputs."""
    for seconds in (3, 20, 100):
        fronts = [cluster.start(*words) for words in commands(seconds)]
        seen = watch(cluster, fronts)
        outputs = []
        for front in fronts:
            out, err = front.communicate(timeout=LIMIT)
            assert front.returncode == 0, (out, err, cluster.logs())
            outputs.append(out)
        if seen:
            return seen, outputs
    raise AssertionError('one job ended before the other was running')


def watch(cluster, fronts):
    """The running jobs, once there are as many as front ends; none if one ends before."""
    while all(front.poll() is None for front in fronts):
        running = [job for job in cluster.json('scq', '--active')['jobs'] if job['state'] == 'running']
        if len(running) == len(fronts):
            return running
    return []
