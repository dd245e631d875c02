"""A forgotten debug trace fills a small file system; exports fail with ENOSPC."""

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

EXPORTER = r"""
import datetime, os, time

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

say("INFO", "exporter started, spool is /srv/spool, debug trace is on")
failed = 0
for number in range(1, 500):
    try:
        with open("/srv/spool/debug/trace.log", "ab", buffering=0) as trace:
            trace.write(b"trace " * 20000)
    except OSError:
        pass
    name = f"/srv/spool/export-{number:03}.csv"
    try:
        with open(name, "wb", buffering=0) as export:
            written = export.write(b"id,total\n" * 3000)
            if written < 27000:
                export.write(b"id,total\n")
        if number % 10 == 0:
            say("INFO", f"wrote {name}")
    except OSError as error:
        say("ERROR", f"export {number} failed: [Errno {error.errno}] {error.strerror}: {name}")
        failed += 1
        time.sleep(0.1)
    if failed == 12:
        break
    time.sleep(0.05)
say("WARNING", "exporter paused after 12 failed exports")
while True:
    time.sleep(1)
"""


def act(scene: Scene) -> None:
    start = now()
    spool = scene.directory("spool")
    scene.run("mount", "-t", "tmpfs", "-o", "size=4m", "spool", str(spool))
    scene.directory("spool/debug")
    scene.file("app/exporter.py", EXPORTER)

    def free() -> float:
        return float(scene.run("df", "-B1", "--output=avail", str(spool)).split()[1])

    scene.sample("filesystem_avail_bytes", free, unit="bytes", every=0.25)
    scene.start("python3", "/srv/app/exporter.py", log="logs/exporter.log")
    log = ROOT / "logs/exporter.log"
    scene.until(lambda: "paused" in log.read_text(), "failed exports")

    tools = Recorder(scene, {"exporter": LogFile(log)})
    tools.query_logs("call_export_errors", "exporter", "No space left", start, level="ERROR")
    tools.run_command("call_df", "df -k /srv/spool")
    tools.run_command("call_inodes", "df -i /srv/spool")
    tools.run_command("call_largest", "du -ak /srv/spool | sort -rn | head -n 4")
    tools.run_command("call_listing", "ls -l --time-style=+%H:%M:%S /srv/spool", keep=600)
    tools.run_command("call_trace_setting", "grep -m 1 'debug trace' /srv/logs/exporter.log")
    tools.query_logs("call_readonly_log", "exporter", "Read-only file system", start)
    tools.run_command("call_core_dumps", "find /srv/spool -name 'core*'")
    tools.query_metrics("call_avail_metric", "filesystem_avail_bytes", start)
    tools.lookup_knowledge("call_runbook", "spool file system full no space left export failed")
    tools.run_command("call_watch", "tail -n 0 -f /srv/logs/exporter.log", timeout_s=2)
    tools.save(__file__)


if __name__ == "__main__":
    enter("files-1", [], act)
