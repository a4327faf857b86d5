#!/usr/bin/env python3
"""Writes scored.json, the dashboard. It is generated from this list, so that a panel is one line.

usage: make_dashboard.py > scored.json
"""
import json
import sys

# (title, unit, [(expression, legend)], description)
PANELS = [
    ('Jobs', 'short', [('scored_jobs{instance=~"$instance"}', '{{state}}')], 'Jobs that have not ended.'),
    ('Nodes', 'short', [('scored_nodes{instance=~"$instance"}', '{{state}}')], 'Nodes by state.'),
    ('Overhead of switching', 'percentunit',
     [('scored:gang_overhead:ratio_rate5m{instance=~"$instance"}', '{{instance}}')],
     'Time that switches took from jobs, by the time jobs were scheduled.'),
    ('Overhead by part', 'percentunit',
     [('sum by (instance, part) (rate(scored_gang_overhead_seconds_total{instance=~"$instance"}[5m]))'
       ' / on (instance) group_left () sum by (instance) (rate(scored_gang_slot_seconds_total{instance=~"$instance"}[5m]))', '{{part}}')],
     'Wake, stop, network and go; their sum is the overhead.'),
    ('Time slice', 's', [('scored_time_slice_seconds{instance=~"$instance"}', 'slice')], 'scadm set quantum changes it.'),
    ('Switch, p99 by phase', 's',
     [('scored:gang_switch_duration_seconds:p99_5m{instance=~"$instance"}', '{{phase}}')],
     'From the boundary: wake, stop, network, go.'),
    ('Skew between nodes', 's',
     [('scored:gang_switch_skew_seconds:p99_5m{instance=~"$instance"}', 'p99')], 'Last node minus first of a boundary.'),
    ('Switches', 'ops', [('sum by (instance) (rate(scored_gang_switches_total{instance=~"$instance"}[5m]))', 'all nodes'),
                         ('sum by (instance) (rate(scored_gang_late_switches_total{instance=~"$instance"}[5m]))', 'late')],
     'Late: the wake-up took more than 5 % of the slice.'),
    ('CPU of jobs by node', 'short',
     [('sum by (node) (rate(scored_node_cpu_seconds_total{instance=~"$instance"}[5m]))', '{{node}}')], 'Cores.'),
    ('PM traffic by node', 'Bps',
     [('rate(scored_comm_bytes_total{instance=~"$instance"}[5m])', '{{node}} {{direction}}')], 'Bytes through PM.'),
    ('Wait for the start', 's', [('scored:job_wait_seconds:p90_1h{instance=~"$instance"}', 'p90')], 'From submission to start.'),
    ('Clock error', 's', [('max by (node) (scored_node_clock_error_seconds{instance=~"$instance"})', '{{node}}')],
     'Bound of what a node knows of cluster time.'),
    ('Head', 'short', [('rate(process_cpu_seconds_total{job="scored-head",instance=~"$instance"}[5m])', 'cores'),
                       ('scored_viewers{instance=~"$instance"}', 'viewers')], 'The daemon itself.'),
]


def panel(index, title, unit, targets, description):
    source = {'type': 'prometheus', 'uid': '${datasource}'}
    return {
        'id': index + 1, 'type': 'timeseries', 'title': title, 'description': description, 'datasource': source,
        'gridPos': {'x': index % 3 * 8, 'y': index // 3 * 8, 'w': 8, 'h': 8},
        'fieldConfig': {'defaults': {'unit': unit, 'min': 0}, 'overrides': []},
        'targets': [{'refId': chr(65 + i), 'expr': expr, 'legendFormat': legend, 'datasource': source}
                    for i, (expr, legend) in enumerate(targets)],
    }


def dashboard():
    return {
        'uid': 'scored', 'title': 'Scored', 'tags': ['scored'], 'schemaVersion': 38, 'version': 1, 'editable': True,
        'time': {'from': 'now-1h', 'to': 'now'}, 'refresh': '15s',
        'templating': {'list': [
            {'name': 'datasource', 'type': 'datasource', 'query': 'prometheus', 'label': 'Data source'},
            {'name': 'instance', 'type': 'query', 'label': 'Head', 'includeAll': True, 'multi': True,
             'datasource': {'type': 'prometheus', 'uid': '${datasource}'},
             'query': 'label_values(scored_time_slice_seconds, instance)', 'refresh': 2}]},
        'panels': [panel(i, *one) for i, one in enumerate(PANELS)],
    }


if __name__ == '__main__':
    json.dump(dashboard(), sys.stdout, indent=1)
    sys.stdout.write('\n')
