"""A Redis at its memory limit with ``noeviction`` refuses an application's writes."""

import subprocess

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

WRITER = r"""
import datetime, socket, time

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

redis = socket.create_connection(("cache-1", 6379))
say("INFO", "session-writer started, writing to cache-1:6379")
value = "x" * 16000
for number in range(1, 241):
    key = f"session:{number}"
    parts = ["SET", key, value]
    redis.sendall(f"*{len(parts)}\r\n".encode())
    redis.sendall("".join(f"${len(part)}\r\n{part}\r\n" for part in parts).encode())
    answer = redis.recv(4096).decode().strip()
    if answer.startswith("-"):
        say("ERROR", f"write of {key} refused: {answer[1:]}")
        time.sleep(0.2)
    elif number % 40 == 0:
        say("INFO", f"{number} sessions stored")
    time.sleep(0.03)
"""


def act(scene: Scene) -> None:
    start = now()
    scene.directory("redis")
    scene.start(
        *("redis-server", "--port", "6379", "--bind", "cache-1", "--protected-mode", "no"),
        *("--dir", "/srv/redis"),
        *("--save", "", "--maxmemory", "3mb", "--maxmemory-policy", "noeviction"),
        log="redis/redis.log",
    )
    scene.until_open("cache-1", 6379)

    def used() -> float:
        info = scene.run("redis-cli", "-h", "cache-1", "INFO", "memory")
        return float(info.split("used_memory:")[1].split()[0])

    scene.sample("redis_memory_used_bytes", used, unit="bytes")
    scene.file("app/session_writer.py", WRITER)
    writer = scene.start("python3", "/srv/app/session_writer.py", log="app/session-writer.log")
    log = ROOT / "app/session-writer.log"
    scene.until(lambda: log.read_text().count("refused") >= 12, "refused writes")

    tools = Recorder(
        scene,
        {
            "session-writer": LogFile(log),
            "cache-1": LogFile(
                ROOT / "redis/redis.log",
                r"\d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3}",
                "%d %b %Y %H:%M:%S.%f",
            ),
        },
    )
    tools.query_logs("call_writer_errors", "session-writer", "refused", start, level="ERROR")
    tools.run_command(
        "call_info_memory",
        "redis-cli -h cache-1 INFO memory | "
        "grep -E '^(used_memory|used_memory_human|maxmemory|maxmemory_human|maxmemory_policy):'",
    )
    tools.run_command("call_set_probe", "redis-cli -h cache-1 SET probe:1 x")
    tools.run_command(
        "call_evictions", "redis-cli -h cache-1 INFO stats | grep -E '^(evicted|expired)_keys:'"
    )
    tools.query_metrics("call_memory_metric", "redis_memory_used_bytes", start)
    tools.query_metrics("call_swap_metric", "redis_memory_swap_bytes", start)
    tools.query_logs("call_redis_warnings", "cache-1", "OOM", start)
    tools.lookup_knowledge("call_runbook", "redis noeviction maxmemory writes refused OOM")
    tools.run_command(
        "call_note",
        "echo 'cache-1 refuses writes because maxmemory is reached and the policy is noeviction'",
    )
    tools.run_command("call_monitor", "redis-cli -h cache-1 MONITOR", timeout_s=2)
    tools.save(__file__)
    try:
        writer.wait(timeout=1)
    except subprocess.TimeoutExpired:
        writer.kill()


if __name__ == "__main__":
    enter("cache-1", [], act)
