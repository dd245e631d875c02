"""A report job outgrows its memory cgroup; the kernel kills it, its supervisor starts it again.

Needs the memory controller of cgroup v1.
"""

from pathlib import Path

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

GROUP = Path("/sys/fs/cgroup/memory/report-builder")
LIMIT = 48 * 1024 * 1024
BUILDER = r"""
import datetime, time

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

say("INFO", "report-builder started, loading all orders into memory")
rows = []
for batch in range(1, 200):
    rows.append(bytearray(2_000_000))
    if batch % 5 == 0:
        say("INFO", f"loaded batch {batch}")
    time.sleep(0.08)
say("INFO", "report finished")
"""
SUPERVISOR = r"""
exec 2>/dev/null
stamp() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
for try in 1 2 3; do
  sh -c 'echo 0 > /sys/fs/cgroup/memory/report-builder/cgroup.procs
         exec python3 /srv/app/report_builder.py' >> /srv/logs/report-builder.log
  code=$?
  echo "$(stamp) ERROR report-builder exited with status $code (try $try)"
  sleep 0.3
done
echo "$(stamp) ERROR report-builder gave up after 3 tries"
"""


def act(scene: Scene) -> None:
    GROUP.mkdir()
    try:
        _play(scene)
    finally:
        scene.until(lambda: not (GROUP / "cgroup.procs").read_text(), "an empty group")
        GROUP.rmdir()


def _play(scene: Scene) -> None:
    start = now()
    (GROUP / "memory.limit_in_bytes").write_text(str(LIMIT))
    usage = GROUP / "memory.usage_in_bytes"
    scene.sample(
        "cgroup_memory_usage_bytes", lambda: float(usage.read_text()), unit="bytes", every=0.25
    )
    scene.file("app/report_builder.py", BUILDER)
    scene.file("logs/report-builder.log", "")
    scene.file("app/supervisor.sh", SUPERVISOR)
    supervisor = scene.start("bash", "/srv/app/supervisor.sh", log="logs/supervisor.log")
    supervisor.wait(timeout=60)

    tools = Recorder(
        scene,
        {
            "report-builder": LogFile(ROOT / "logs/report-builder.log"),
            "supervisor": LogFile(ROOT / "logs/supervisor.log"),
        },
    )
    tools.query_logs("call_supervisor", "supervisor", "report-builder", start, level="ERROR")
    tools.run_command(
        "call_kernel_log",
        "dmesg --notime | grep -E 'Memory cgroup out of memory|oom-kill:' "
        "| grep -o -E 'Memory cgroup out of memory: Killed process.*anon-rss:[0-9]+kB"
        "|constraint=[A-Z_]+|oom_memcg=[^,]+' | tail -n 9",
    )
    tools.run_command(
        "call_cgroup",
        "cd /sys/fs/cgroup/memory/report-builder && grep -H . memory.limit_in_bytes "
        "memory.max_usage_in_bytes memory.oom_control",
    )
    tools.query_logs("call_builder_log", "report-builder", "batch", start)
    tools.query_logs("call_memory_error", "report-builder", "MemoryError", start)
    tools.query_logs("call_finished", "report-builder", "report finished", start)
    tools.query_metrics("call_usage_metric", "cgroup_memory_usage_bytes", start)
    tools.run_command("call_host_memory", "free -m | awk 'NR==1 || /^Mem/ {print}'")
    tools.lookup_knowledge("call_runbook", "report-builder killed status 137 memory cgroup limit")
    tools.still_running("call_follow", "tail -n 0 -f /srv/logs/report-builder.log")
    tools.save(__file__)


if __name__ == "__main__":
    enter("worker-2", [], act)
