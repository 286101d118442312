"""Plans as JSON, for the scripts beside this one."""
import json
import subprocess
import sys


def plan(gradc, model, entry, defines, budget=None, options=()):
    """The plan of an entry, or None where the budget is refused."""
    command = [gradc, "plan", model, "--entry", entry, "--format", "json", *options]
    command += [f"-D{k}={v}" for k, v in defines.items()]
    command += [] if budget is None else ["--budget", str(budget)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 4:
        return None
    if done.returncode != 0:
        sys.exit(done.stderr)
    return next(p for p in json.loads(done.stdout) if p["entry"] == entry)
