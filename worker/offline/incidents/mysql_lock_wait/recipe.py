"""An open transaction on MariaDB holds row locks; order updates time out with error 1205."""

from worker.offline.incidents.recording.logs import LogFile
from worker.offline.incidents.recording.recorder import Recorder
from worker.offline.incidents.recording.scene import ROOT, Scene, enter, now

CLIENT = ("--no-defaults", "--host=orders-db", "--user=root", "--skip-ssl")
UPDATER = r"""
stamp() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
for order in 1001 1002 1003 1001; do
  said=$(mariadb --no-defaults --host=orders-db --user=root --skip-ssl shop \
    -e "UPDATE orders SET status = 'paid' WHERE id = $order" 2>&1)
  if [ -n "$said" ]; then
    echo "$(stamp) ERROR update of order $order failed: $said"
  else
    echo "$(stamp) INFO order $order is paid"
  fi
done
"""
SCHEMA = """
CREATE DATABASE shop;
CREATE TABLE shop.orders (
  id INT PRIMARY KEY, status VARCHAR(16) NOT NULL, total INT NOT NULL) ENGINE=InnoDB;
INSERT INTO shop.orders VALUES
  (1001, 'open', 250), (1002, 'open', 75), (1003, 'open', 120), (1004, 'paid', 90);
"""


def act(scene: Scene) -> None:
    start = now()
    data = scene.directory("mysql", owner="mysql")
    scene.run(
        "mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}",
        "--auth-root-authentication-method=normal", "--skip-test-db",
    )  # fmt: skip
    scene.start(
        *("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={data}"),
        *("--socket=/srv/tmp/mysql.sock", "--bind-address=orders-db", "--skip-name-resolve"),
        *("--innodb-lock-wait-timeout=2", "--innodb-buffer-pool-size=32M"),
        log="logs/mariadb.log",
    )
    local = ("mariadb", "--no-defaults", "--socket=/srv/tmp/mysql.sock", "--user=root")
    scene.until((ROOT / "tmp/mysql.sock").exists, "the server")
    scene.until(lambda: _works(scene, *local, "-e", "SELECT 1"), "the server")
    scene.run(*local, "-e", "CREATE USER root@'127.0.0.%'; GRANT ALL ON *.* TO root@'127.0.0.%'")
    client = ("mariadb", *CLIENT)
    scene.run(*client, "-e", SCHEMA)

    def waits() -> float:
        sql = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"
        return float(scene.run(*client, "-N", "-e", sql).split()[1])

    scene.sample("mysql_innodb_row_lock_current_waits", waits, unit="1")
    holder = (
        "BEGIN; UPDATE orders SET total = total + 0 WHERE id IN (1001, 1002, 1003); "
        "SELECT 'nightly reconciliation', SLEEP(60)"
    )
    scene.start(*client, "shop", "-e", holder)
    scene.until(lambda: "SLEEP" in scene.run(*client, "-e", "SHOW PROCESSLIST"), "the holder")
    scene.file("app/updater.sh", UPDATER)
    scene.start("bash", "/srv/app/updater.sh", log="logs/order-updater.log")
    log = ROOT / "logs/order-updater.log"
    scene.until(lambda: log.read_text().count("1205") >= 2, "lock wait timeouts")
    scene.until(lambda: waits() > 0, "a waiting update")

    tools = Recorder(scene, {"order-updater": LogFile(log)})

    def ask(call: str, sql: str) -> None:
        tools.query_mysql(call, "orders-db", sql, *CLIENT)

    ask(
        "call_transactions",
        "SELECT trx_mysql_thread_id, trx_state, trx_rows_locked, trx_rows_modified, trx_query "
        "FROM information_schema.innodb_trx ORDER BY trx_started",
    )
    ask(
        "call_lock_waits",
        "SELECT b.trx_mysql_thread_id AS blocking_thread, b.trx_query AS blocking_query, "
        "r.trx_query AS waiting_query FROM information_schema.innodb_lock_waits w "
        "JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id "
        "JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id",
    )
    ask("call_timeout_setting", "SHOW GLOBAL VARIABLES LIKE 'innodb_lock_wait_timeout'")
    tools.query_logs("call_updater_errors", "order-updater", "1205", start, level="ERROR")
    ask("call_refused_orders", "SELECT id, total FROM shop.orders WHERE status = 'refused'")
    ask("call_statuses", "SELECT id, status FROM shop.orders ORDER BY id")
    ask("call_payments", "SELECT id FROM shop.payments WHERE order_id = 1001")
    ask("call_note", "SELECT 'the nightly reconciliation blocks the order updates' AS finding")
    tools.query_metrics("call_waits_metric", "mysql_innodb_row_lock_current_waits", start)
    tools.query_logs("call_deadlocks", "order-updater", "Deadlock found", start)
    tools.lookup_knowledge("call_runbook", "mysql lock wait timeout exceeded 1205 transaction")
    tools.save(__file__)


def _works(scene: Scene, *argv: str) -> bool:
    try:
        scene.run(*argv)
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    enter("orders-db", [], act)
