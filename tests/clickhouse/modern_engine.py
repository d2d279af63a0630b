"""A modern ClickHouse engine in a process of its own, as tests use it."""

import json
import subprocess
import sys
from pathlib import Path

ENGINE = Path(__file__).parent / "engine.py"
ENGINE_END_S = 30

CONFIG = """<clickhouse>
    <logger><level>trace</level><console>0</console><log>{directory}/log</log></logger>
    <zookeeper>
        <node><host>127.0.0.1</host><port>{port}</port></node>
        <session_timeout_ms>10000</session_timeout_ms>
        {settings}
    </zookeeper>
    <keeper_map_path_prefix>/keeper_map</keeper_map_path_prefix>
    <opentelemetry_span_log>
        <engine>engine Memory</engine><database>system</database><table>opentelemetry_span_log</table>
    </opentelemetry_span_log>
</clickhouse>
"""


class Engine:
    """The engine, from its first statement to its end."""

    def __init__(self, directory, port, settings):
        config_file = directory / "config.xml"
        settings = "".join(f"<{setting}>1</{setting}>" for setting in settings)
        config_file.write_text(CONFIG.format(directory=directory, port=port, settings=settings))
        self._log_file = directory / "log"
        self._process = subprocess.Popen(
            [sys.executable, ENGINE, directory / "data", config_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def query(self, statement):
        self._process.stdin.write(statement + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            # The engine says where it logs to; answers are JSON.
            if line.startswith("{"):
                answer = json.loads(line)
                assert "error" not in answer, f"{statement}: {answer['error']}"
                return answer["rows"]
        raise AssertionError(f"{statement}: the engine ended")

    def log(self):
        return self._log_file.read_text()

    def end(self):
        self._process.stdin.close()
        self._process.wait(ENGINE_END_S)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error is None:
            self.end()
        self.kill()
