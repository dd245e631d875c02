"""The service behind an nginx gateway has stopped; its callers get 502."""

import subprocess
import threading

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

NGINX = """
worker_processes 1;
pid /srv/nginx/nginx.pid;
error_log /srv/logs/nginx-error.log notice;
events { worker_connections 64; }
http {
  access_log /srv/logs/nginx-access.log combined;
  client_body_temp_path /srv/nginx/body;
  proxy_temp_path /srv/nginx/proxy;
  fastcgi_temp_path /srv/nginx/fastcgi;
  uwsgi_temp_path /srv/nginx/uwsgi;
  scgi_temp_path /srv/nginx/scgi;
  server {
    listen gateway-1:8080;
    location / { proxy_pass http://orders-1:8081; }
  }
}
"""
ORDERS = r"""
import datetime, http.server, signal, threading

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

class Orders(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]\n")

    def log_message(self, *parts):
        pass

server = http.server.ThreadingHTTPServer(("orders-1", 8081), Orders)

def stop(*_):
    say("INFO", "received SIGTERM, shutting down")
    threading.Thread(target=server.shutdown).start()

signal.signal(signal.SIGTERM, stop)
say("INFO", "orders listening on orders-1:8081")
server.serve_forever()
server.server_close()
say("INFO", "orders stopped, listener on orders-1:8081 closed")
"""


def act(scene: Scene) -> None:
    start = now()
    scene.directory("nginx").chmod(0o755)
    scene.file("logs/nginx-access.log", "")
    scene.file("nginx/nginx.conf", NGINX)
    scene.file("app/orders.py", ORDERS)
    orders = scene.start("python3", "/srv/app/orders.py", log="logs/orders.log")
    scene.until_open("orders-1", 8081)
    scene.start("nginx", "-c", "/srv/nginx/nginx.conf", "-g", "daemon off;", log="logs/nginx.out")
    scene.until_open("gateway-1", 8080)
    over = threading.Event()

    def callers() -> None:
        while not over.wait(0.2):
            url = "http://gateway-1:8080/orders?limit=20"
            subprocess.run(["curl", "-s", "-A", "shop-frontend", "-o", "/dev/null", url])

    threading.Thread(target=callers, daemon=True).start()
    access = ROOT / "logs/nginx-access.log"
    scene.sample(
        "gateway_responses_502_total",
        lambda: float(access.read_text().count('" 502 ')),
        unit="1",
    )
    scene.until(lambda: access.read_text().count('" 200 ') >= 9, "good answers")
    orders.terminate()
    orders.wait(timeout=10)
    scene.until(lambda: access.read_text().count('" 502 ') >= 14, "bad answers")

    stamp = (r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", "%Y/%m/%d %H:%M:%S")
    tools = Recorder(
        scene,
        {
            "gateway-1": LogFile(ROOT / "logs/nginx-error.log", *stamp),
            "orders-1": LogFile(ROOT / "logs/orders.log"),
        },
    )
    tools.run_command(
        "call_probe",
        "curl -s -i -H 'Accept: text/plain' 'http://gateway-1:8080/orders?limit=20' | head -n 5",
    )
    since = start.replace(microsecond=0)
    tools.query_logs("call_gateway_errors", "gateway-1", "connect() failed", since, level="ERROR")
    tools.run_command("call_listener", "ss -H -ltn 'sport = :8081'")
    tools.query_logs("call_orders_errors", "orders-1", "", start, level="ERROR")
    tools.query_logs("call_orders_log", "orders-1", "orders", start)
    tools.query_logs("call_orders_stop", "orders-1", "shutting down", start)
    over.set()
    tools.run_command(
        "call_status_counts",
        "awk '{print $9}' /srv/logs/nginx-access.log | sort | uniq -c",
    )
    tools.query_metrics("call_502_metric", "gateway_responses_502_total", start)
    tools.run_command(
        "call_health", "curl -sS --max-time 5 http://orders-1:8081/health", timeout_s=10
    )
    tools.lookup_knowledge("call_runbook", "gateway 502 upstream connection refused")
    tools.query_logs("call_payments_log", "payments-1", "refused", start)
    tools.save(__file__)


if __name__ == "__main__":
    enter("gateway-1", ["orders-1"], act)
