"""A modern ClickHouse engine as a client, in each form of the dialect that its settings can ask for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clickhouse.wiretap import Wiretap
from support.server import Server

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

# The version of the greeting that each choice of settings leads to.
FORMS = {
    (): 0,
    ("use_compression",): 10,
    ("use_xid_64",): 11,
    ("use_xid_64", "use_compression"): 11,
    ("pass_opentelemetry_tracing_context",): 12,
    ("pass_opentelemetry_tracing_context", "use_xid_64", "use_compression"): 12,
}

FEATURES = [
    "FILTERED_LIST",
    "MULTI_READ",
    "CHECK_NOT_EXISTS",
    "CREATE_IF_NOT_EXISTS",
    "REMOVE_RECURSIVE",
    "MULTI_WATCHES",
    "CHECK_STAT",
    "PERSISTENT_WATCHES",
    "CREATE_WITH_STATS",
    "TRY_REMOVE",
    "LIST_WITH_STAT_AND_DATA",
    "GET_CHILDREN_RECURSIVE",
]


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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server")) as running:
        if running.kind != "paddock":
            pytest.skip("ZooKeeper has no KeeperMap features")
        yield running


@pytest.mark.parametrize("settings", FORMS, ids=lambda settings: "+".join(settings) or "plain")
def test_tables_live_in_the_tree(server, tmp_path, settings):
    with Wiretap(server) as wiretap:
        engine = Engine(tmp_path, wiretap.port, settings)
        try:
            # Every statement is traced, so that every request carries a trace where the form has one.
            engine.query("SET opentelemetry_start_trace_probability = 1")
            engine.query("CREATE TABLE t (k UInt64, v String) ENGINE = KeeperMap('/t') PRIMARY KEY k")
            engine.query("INSERT INTO t SELECT number, toString(number) FROM numbers(1000)")
            assert engine.query("SELECT count(), sum(k) FROM t") == [[1000, 499500]]
            engine.query("ALTER TABLE t UPDATE v = 'changed' WHERE k = 1")
            engine.query("DELETE FROM t WHERE k > 2")
            rows = [[0, "0"], [1, "changed"], [2, "2"]]
            assert engine.query("SELECT k, v FROM t ORDER BY k") == rows
            first, second = (engine.query("SELECT generateSerialID('series')")[0][0] for _ in range(2))
            assert second == first + 1
            engine.query("DROP TABLE t")
            for feature in FEATURES:
                assert f"Keeper feature flag {feature}: enabled" in engine.log(), feature
            engine.end()
        finally:
            engine.kill()
    assert set(wiretap.greetings) == {FORMS[settings]}, "no other form was tried"
