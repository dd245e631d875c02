"""Two transfers lock the same two rows in opposite order; a third session sits on a lock."""

from functools import partial

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

PSQL = ("psql", "-X", "-h", "db-1", "-U", "postgres", "-d", "bank")
TRANSFER = """\\set ON_ERROR_STOP on
BEGIN;
UPDATE accounts SET balance = balance - 10 WHERE id = {first};
SELECT pg_sleep(1);
UPDATE accounts SET balance = balance + 10 WHERE id = {second};
COMMIT;
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def act(scene: Scene) -> None:
    start = now()
    data = scene.directory("pg", owner="postgres")
    scene.run("initdb", "-D", str(data), "-A", "trust", "--no-locale", user="postgres")
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 127.0.0.0/8 trust\n")
    settings = {
        "listen_addresses": "db-1",
        "unix_socket_directories": "/srv/tmp",
        "log_lock_waits": "on",
        "deadlock_timeout": "1s",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %a ",
    }
    flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    scene.start("postgres", "-D", str(data), *flags, user="postgres", log="logs/postgres.log")
    scene.until_open("db-1", 5432)
    scene.run("createdb", "-h", "db-1", "-U", "postgres", "bank")
    scene.run(
        *PSQL,
        "-c",
        "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);"
        "INSERT INTO accounts VALUES (1, 500), (2, 500), (3, 500)",
    )
    scene.sample(
        "pg_sessions_waiting_for_lock", lambda: float(scene.run(*PSQL, "-Atc", WAITING)), unit="1"
    )
    for name, first, second in (("transfer-b", 2, 1), ("transfer-a", 1, 2)):
        script = scene.file(f"app/{name}.sql", TRANSFER.format(first=first, second=second))
        scene.start(*PSQL, "-f", str(script), log=f"app/{name}.log", PGAPPNAME=name)
        # The first to wait is the first to look for a deadlock, and so the one that is cancelled.
        scene.until(partial(_sleeps, scene, name), name)
    log = ROOT / "logs/postgres.log"
    scene.until(lambda: "deadlock detected" in log.read_text(), "a deadlock")

    holder = "BEGIN; UPDATE accounts SET balance = 0 WHERE id = 3; SELECT pg_sleep(60)"
    scene.start(*PSQL, "-c", holder, PGAPPNAME="month-end-report")
    scene.until(partial(_sleeps, scene, "month-end-report"), "the holder")
    waiter = "UPDATE accounts SET balance = balance + 1 WHERE id = 3"
    scene.start(*PSQL, "-c", waiter, PGAPPNAME="interest-job")
    scene.until(lambda: "interest-job" in log.read_text(), "a reported lock wait")

    stamp = (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", "%Y-%m-%d %H:%M:%S.%f UTC")
    tools = Recorder(scene, {"db-1": LogFile(log, *stamp)})
    tools.query_logs("call_deadlock_log", "db-1", "deadlock detected", start, level="ERROR")
    tools.query_logs("call_lock_wait_log", "db-1", "still waiting", start)
    tools.query_logs("call_shared_memory_log", "db-1", "out of shared memory", start)
    tools.query_logs("call_connections_log", "db-1", "too many connections", start, scan=800)
    tools.run_command(
        "call_blockers",
        "psql -X -h db-1 -U postgres -d bank -A -F ' | ' -c \"SELECT application_name, state, "
        "wait_event_type, wait_event, cardinality(pg_blocking_pids(pid)) AS blocked_by, query "
        "FROM pg_stat_activity WHERE application_name IN ('month-end-report', 'interest-job') "
        'ORDER BY application_name"',
    )
    tools.run_command(
        "call_deadlock_count",
        "psql -X -h db-1 -U postgres -d bank -A -c "
        "\"SELECT datname, deadlocks FROM pg_stat_database WHERE datname = 'bank'\"",
    )
    tools.run_command("call_transfer_output", "cat /srv/app/transfer-a.log /srv/app/transfer-b.log")
    tools.run_command("call_server_log", "cat /srv/logs/postgres.log", keep=1200)
    tools.query_metrics("call_waiting_metric", "pg_sessions_waiting_for_lock", start)
    tools.lookup_knowledge("call_runbook", "postgres deadlock detected transactions row order")
    tools.query_logs("call_replica_log", "db-2", "deadlock detected", start)
    tools.save(__file__)


def _sleeps(scene: Scene, name: str) -> bool:
    sql = f"SELECT query FROM pg_stat_activity WHERE application_name = '{name}'"
    return "pg_sleep" in scene.run(*PSQL, "-Atc", sql)


if __name__ == "__main__":
    enter("db-1", [], act)
