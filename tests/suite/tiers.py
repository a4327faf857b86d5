"""Orders the long tier by the day, so that another part of it runs first each day."""
DAYS = 3


def groups(tasks):
    """DAYS lists of about the same length in time. They depend on names and expected times alone, so they are the same every day."""
    found, lengths = [[] for _ in range(DAYS)], [0.0] * DAYS
    for task in sorted(tasks, key=lambda task: (-task.seconds, task.name)):
        shortest = lengths.index(min(lengths))
        found[shortest].append(task)
        lengths[shortest] += task.seconds
    return found


def order(tasks, day):
    """One group is first every third day, and what there is time for of the others follows."""
    parts = groups(tasks)
    return [task for turn in range(DAYS) for task in parts[(day + turn) % DAYS]]


def fits(task, now, until):
    """Returns True if the task ends in time, also if it takes half as long again as expected."""
    return until is None or now + 1.5 * task.seconds + 5 <= until
