"""A modern ClickHouse engine in a process of its own: it runs statements and prints a line of JSON for each answer.

The name of its configuration file is its argument; each line of its input is a statement.
"""

import json
import sys

from chdb import session


def main(directory, config_file):
    engine = session.Session(f"{directory}?config-file={config_file}")
    for statement in sys.stdin:
        try:
            rows = str(engine.query(statement, "JSONCompactEachRow"))
            answer = {"rows": [json.loads(row) for row in rows.splitlines()]}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
