"""Reads the dashboard by Grafana's own types (grafana-foundation-sdk) and writes it again: what they do not know is lost on the way, and told."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def differences(before, after, place):
    """Where the second differs from the first."""
    if isinstance(before, dict):
        for name, value in before.items():
            here = f"{place}/{name}"
            if not isinstance(after, dict) or name not in after:
                yield f"{here} is not known"
            else:
                yield from differences(value, after[name], here)
    elif isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            yield f"{place} has another length"
        else:
            for number, (one, other) in enumerate(zip(before, after)):
                yield from differences(one, other, f"{place}/{number}")
    elif before != after:
        yield f"{place} becomes {after!r}"


register_default_plugins()
with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
again = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
found = list(differences(dashboard, again, ""))
sys.exit("\n".join(found) if found else 0)
