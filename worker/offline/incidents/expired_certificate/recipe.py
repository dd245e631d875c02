"""The TLS certificate of an internal API has expired; its clients refuse to talk to it."""

from datetime import timedelta

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

CA = """
[ca]
default_ca = own
[own]
new_certs_dir = /srv/tls
database = /srv/tls/index.txt
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""
SYNC = r"""
import datetime, time, urllib.error, urllib.request, ssl

def say(level, text):
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    print(at.replace("+00:00", "Z"), level, text, flush=True)

context = ssl.create_default_context(cafile="/srv/tls/ca.pem")
say("INFO", "stock-sync started, source is https://api-1:8443/stock")
for number in range(1, 9):
    try:
        urllib.request.urlopen("https://api-1:8443/stock", context=context, timeout=3).read()
        say("INFO", f"sync {number} done")
    except urllib.error.URLError as error:
        say("ERROR", f"sync {number} failed: {error.reason}")
    time.sleep(0.4)
"""


def act(scene: Scene) -> None:
    start = now()
    scene.file("tls/ca.cnf", CA)
    scene.file("tls/index.txt", "")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    scene.run(
        *("openssl", "req", "-x509", *new_key, "-subj", "/CN=Shop Internal CA", "-days", "30"),
        *("-keyout", "tls/ca.key", "-out", "tls/ca.pem"),
    )
    scene.run(
        *("openssl", "req", *new_key, "-subj", "/CN=api-1", "-addext", "subjectAltName=DNS:api-1"),
        *("-keyout", "tls/api.key", "-out", "tls/api.csr"),
    )
    ended = start - timedelta(hours=6)
    began = ended - timedelta(days=90)
    scene.run(
        *("openssl", "ca", "-batch", "-config", "tls/ca.cnf", "-cert", "tls/ca.pem"),
        *("-keyfile", "tls/ca.key", "-in", "tls/api.csr", "-out", "tls/api.pem"),
        *("-startdate", f"{began:%Y%m%d%H%M%SZ}", "-enddate", f"{ended:%Y%m%d%H%M%SZ}"),
    )
    scene.start(
        *("openssl", "s_server", "-accept", "8443", "-www", "-quiet"),
        *("-cert", "tls/api.pem", "-key", "tls/api.key"),
        log="logs/api.log",
    )
    scene.until_open("api-1", 8443)
    scene.file("app/stock_sync.py", SYNC)
    log = ROOT / "logs/stock-sync.log"
    sync = scene.start("python3", "/srv/app/stock_sync.py", log="logs/stock-sync.log")
    scene.sample("stock_sync_failures_total", lambda: log.read_text().count("ERROR"), unit="1")
    sync.wait(timeout=30)

    tools = Recorder(scene, {"stock-sync": LogFile(log)})
    tools.query_logs("call_sync_errors", "stock-sync", "failed", start, level="ERROR")
    tools.run_command(
        "call_curl", "curl -sS --max-time 5 --cacert /srv/tls/ca.pem https://api-1:8443/stock"
    )
    tools.run_command(
        "call_certificate",
        "openssl s_client -connect api-1:8443 -CAfile /srv/tls/ca.pem </dev/null 2>/dev/null "
        "| openssl x509 -noout -subject -issuer -dates",
    )
    tools.run_command("call_date", "date -u '+now=%b %e %H:%M:%S %Y GMT'")
    tools.run_command(
        "call_ca_dates", "openssl x509 -in /srv/tls/ca.pem -noout -subject -checkend 0"
    )
    tools.query_logs("call_name_mismatch", "stock-sync", "Hostname mismatch", start)
    tools.query_metrics("call_failures_metric", "stock_sync_failures_total", start)
    tools.lookup_knowledge("call_runbook", "证书过期 续期 certificate has expired")
    tools.lookup_knowledge("call_runbook_again", "证书过期 续期 certificate has expired")
    tools.query_logs("call_proxy_log", "proxy-1", "certificate", start)
    tools.save(__file__)


if __name__ == "__main__":
    enter("api-1", [], act)
