"""A queue worker crashes on one malformed message, again and again, and the queue grows."""

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

WORKER = r"""
import datetime, json, pathlib, time

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

def charge(message):
    return int(message["amount_cents"])

say("INFO", "billing-worker started")
while True:
    waiting = sorted(pathlib.Path("/srv/queue").glob("*.json"))
    if not waiting:
        time.sleep(0.05)
        continue
    message = json.loads(waiting[0].read_text())
    try:
        charge(message)
    except Exception:
        say("ERROR", f"message {waiting[0].stem} could not be handled")
        raise
    waiting[0].unlink()
    say("INFO", f"message {waiting[0].stem} charged")
    time.sleep(0.05)
"""
SUPERVISOR = r"""
stamp() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
for start in 1 2 3 4 5; do
  python3 /srv/app/billing_worker.py >> /srv/logs/billing-worker.log 2>&1
  code=$?
  echo "$(stamp) ERROR billing-worker exited with code $code (start $start)"
  sleep 0.4
done
echo "$(stamp) FATAL billing-worker will not be started again"
"""
PRODUCER = r"""
n=0
while :; do
  n=$((n + 1))
  name=$(printf '%06d' $n)
  body="{\"order\": \"A-$n\", \"amount_cents\": $((n * 100))}"
  [ $n -eq 17 ] && body="{\"order\": \"A-17\", \"amount\": \"17,00 EUR\"}"
  echo "$body" > /srv/queue/.$name && mv /srv/queue/.$name /srv/queue/$name.json
  sleep 0.12
done
"""


def act(scene: Scene) -> None:
    start = now()
    queue = scene.directory("queue")
    scene.file("app/billing_worker.py", WORKER)
    scene.file("app/supervisor.sh", SUPERVISOR)
    scene.file("app/producer.sh", PRODUCER)
    scene.file("logs/billing-worker.log", "")
    scene.sample("queue_depth", lambda: len(list(queue.glob("*.json"))), unit="1")
    producer = scene.start("bash", "/srv/app/producer.sh")
    scene.start("bash", "/srv/app/supervisor.sh", log="logs/supervisor.log")
    log = ROOT / "logs/supervisor.log"
    scene.until(lambda: "FATAL" in log.read_text(), "a worker that is given up")
    producer.kill()

    tools = Recorder(
        scene,
        {
            "billing-worker": LogFile(ROOT / "logs/billing-worker.log"),
            "supervisor": LogFile(log),
        },
    )
    tools.query_logs("call_supervisor", "supervisor", "billing-worker", start)
    tools.query_logs("call_worker_errors", "billing-worker", "could not", start, level="ERROR")
    tools.run_command("call_traceback", "tail -n 9 /srv/logs/billing-worker.log")
    tools.run_command("call_message", "cat /srv/queue/000017.json")
    tools.run_command("call_next_message", "cat /srv/queue/000018.json")
    tools.run_command("call_depth", "ls /srv/queue | wc -l")
    tools.query_metrics("call_depth_metric", "queue_depth", start)
    tools.query_logs("call_timeouts", "billing-worker", "timeout", start)
    tools.lookup_knowledge("call_runbook", "worker crash same message queue poison")
    tools.lookup_knowledge("call_runbook_again", "worker crash same message queue poison")
    tools.lookup_knowledge("call_currency_runbook", "currency rounding exchange rate ledger")
    tools.run_command("call_dead_letters", "ls /srv/queue/dead")
    tools.run_command("call_worker_process", "pgrep -f billing_worker.py")
    tools.still_running("call_follow", "tail -n 0 -f /srv/logs/billing-worker.log")
    tools.save(__file__)


if __name__ == "__main__":
    enter("worker-3", [], act)
