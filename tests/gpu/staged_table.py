"""The table of staged cases: each says what went wrong, when, and under how tight a limit it runs."""
CASES = {}


def case(cause, instant, factor=1.1, extra=40, late=False):
    """The limit is factor * need + extra MiB; late: dumped where the error is caught, not where it is raised."""
    def add(job):
        CASES[job.__name__] = (job, dict(cause=cause, instant=instant, what=job.__doc__ or ""), factor, extra, late)
        return job
    return add
