"""Drafts of ours about the other five recorded investigations; see ``holmes_cases``."""

from dataclasses import replace

from contracts.draft import ActionItem, Analysis, Conclusion, DiagnosisDraft
from tests.holmes_cases import (
    BAD_EVIDENCE,
    HOLMES_CASES,
    SUCCEEDED,
    UNSUPPORTED,
    HolmesCase,
    normal,
    nothing_found,
    with_analysis,
    with_conclusion,
)
from worker.guards.violations import ViolationCode


def _draft(conclusion: str, *analyses: Analysis, action: str, based_on: str) -> DiagnosisDraft:
    """A draft whose conclusion rests on all of its analyses, with one step to take."""
    return DiagnosisDraft(
        conclusion=Conclusion(
            text=conclusion, based_on_analysis_ids=tuple(one.analysis_id for one in analyses)
        ),
        analyses=analyses,
        action_plan=(
            ActionItem(
                text=action, based_on_analysis_ids=(based_on,), requires_human_confirmation=True
            ),
        ),
        limitations=("Only what the tools showed at that time was looked at.",),
    )


_UNHEALTHY = _draft(
    "Several pods of the default namespace are not healthy: redis-677f94956f-ntvpn is Pending"
    " because its volume claim redis-standard-pvc is Pending, and the payment worker stops"
    " because DEPLOY_ENV is undefined.",
    normal(
        "claim",
        "The volume claim redis-standard-pvc is Pending; it asks for the class standard-v2.",
        "tooluse_pxF3VljcTXCoFXTHFSJ8gQ",
    ),
    normal(
        "redis",
        "The pod redis-677f94956f-ntvpn is Pending and has no node.",
        "tooluse_GrkHQo_XQZqEJ3ZdNOsZNA",
    ),
    normal(
        "worker",
        "The previous log of payment-processing-worker-557fd76758-6mjqc says that the"
        " environment variable DEPLOY_ENV is undefined.",
        "tooluse_Lc87qxvBQLC5f5VU2MYOhw",
    ),
    normal(
        "crash",
        "The previous log of crashpod-9688789bc-fg9gk shows java.lang.StackOverflowError.",
        "tooluse_3uqpbPf8RW2jQKU8b9-3uQ",
    ),
    nothing_found(
        "exporter",
        "The previous log of analytics-exporter-fast-ff88fcc4c-qwq4t holds no line.",
        "tooluse_ZvgDG5KOS_O1pLkPthjSdw",
    ),
    action="Set DEPLOY_ENV in the deployment of the payment worker.",
    based_on="worker",
)
_POOL = _draft(
    "The payment-service answers with errors because its database connection pool is exhausted:"
    " DB_POOL_SIZE is 10.",
    normal(
        "pods",
        "The payment-service pods are Running; payment-service-7d9f8c4b-xk2p9 has 3 restarts.",
        "call_002",
    ),
    normal(
        "log",
        "The log of payment-service-7d9f8c4b-xk2p9 shows the database pool configured with"
        " maxSize=10, and later the exception Connection pool exhausted.",
        "call_005",
    ),
    normal("config", "The deployment sets DB_POOL_SIZE to 10 and DB_PORT to 5432.", "call_008"),
    normal(
        "database",
        "The pods postgres-primary-0, postgres-replica-0 and postgres-replica-1 are Running"
        " with 0 restarts.",
        "call_007",
    ),
    normal("memory", "The pods use 892Mi, 876Mi and 901Mi of memory.", "call_010"),
    action="Raise DB_POOL_SIZE of the deployment payment-service.",
    based_on="config",
)
_DISK = _draft(
    "The frontend-api waits for the backend-api, whose database queries take about 28 seconds;"
    " postgres-primary-0 shares worker-node-05 with filebeat-logger-8k3m9, which reads 2.1GB of"
    " log data a minute.",
    normal(
        "frontend",
        "The log of frontend-api-6d8f9b7c5-h9k2m shows Gateway timeout calling backend.",
        "call_003",
    ),
    normal(
        "backend",
        "The log of backend-api-7c9d8e4f6-k3m5n says that a database query took 28.1 seconds and"
        " that GET /api/users completed in 30.4 seconds.",
        "call_006",
    ),
    normal(
        "database",
        "The log of postgres-primary-0 shows a statement with a duration of 28112.345 ms.",
        "call_010",
    ),
    normal(
        "node",
        "The pods postgres-primary-0 and filebeat-logger-8k3m9 run on worker-node-05.",
        "call_011",
        "call_012",
    ),
    normal(
        "filebeat",
        "The log of filebeat-logger-8k3m9 says that it read 2.1GB of log data in the last minute.",
        "call_015",
    ),
    action="Move filebeat-logger-8k3m9 away from worker-node-05.",
    based_on="node",
)
_TWO_CAUSES = _draft(
    "Two things degrade the api-gateway: its memory grows until pods end with exit code 137, and"
    " payment calls fail with HTTP 429 Rate Limit Exceeded.",
    normal(
        "restarts",
        "The api-gateway pods have 7, 6 and 8 restarts in 6h.",
        "call_002",
    ),
    normal(
        "killed",
        "The last state of api-gateway-5d8f7b9c6-j4k8n is OOMKilled with exit code 137.",
        "call_005",
    ),
    normal(
        "memory",
        "The memory monitor reported 1523MB, then 1847MB of 2048MB, and 1234MB allocated to"
        " HTTPClient connections that are not properly closed.",
        "call_021",
    ),
    normal(
        "limited",
        "The log holds 142 lines with Rate Limit Exceeded and 407 with Payment processing.",
        "call_009",
        "call_010",
    ),
    normal(
        "stripe",
        "The log shows payment calls that failed with HTTP 429 Rate Limit Exceeded.",
        "call_008",
    ),
    normal(
        "rate",
        "The configuration allows 100 requests per second; the log speaks of ~145 requests/second"
        " during peak.",
        "call_012",
        "call_019",
    ),
    action="Close the HTTPClient connections in the code of the api-gateway.",
    based_on="memory",
)
_LEAK = _draft(
    "Logins time out because services that use redis-client 2.3.1 exhaust their Redis connection"
    " pools; its notes name a connection leak that is fixed in 2.4.0.",
    normal(
        "gateway",
        "The frontend got 504 Gateway Timeout after 45000ms from the api-gateway.",
        "call_004",
    ),
    normal(
        "pool",
        "The log of auth-service-6b9d8f5c4d-9xtk2 says that its Redis connection pool, with a"
        " maximum of 100, is exhausted.",
        "call_011",
    ),
    normal(
        "clients",
        "Redis counts 2567 connected clients; its maxclients is 10000.",
        "call_036",
    ),
    normal("library", "The auth-service depends on redis-client ^2.3.1.", "call_024"),
    normal(
        "known",
        "The known issues of redis-client@2.3.1 are a connection leak in error handling paths,"
        " fixed in 2.4.0, and a memory leak fixed in 2.3.2.",
        "call_026",
    ),
    normal("pods", "16 pods belong to the five services that use the library.", "call_038"),
    action="Upgrade redis-client to 2.4.2 in the staging namespace first.",
    based_on="known",
)

_001 = HolmesCase("001: sound", "001_compaction.json", _UNHEALTHY, SUCCEEDED)
_002 = HolmesCase("002: sound", "002_buried_exception.json", _POOL, SUCCEEDED)
_003 = HolmesCase("003: sound", "003_cascading_failure.json", _DISK, SUCCEEDED)
_004 = HolmesCase("004: sound", "004_multiple_root_causes.json", _TWO_CAUSES, SUCCEEDED)
_008 = HolmesCase("008: sound", "008_very_long_conversation.json", _LEAK, SUCCEEDED)


def _cites(case: HolmesCase, name: str, changed: Analysis, code: ViolationCode) -> HolmesCase:
    return replace(
        case,
        name=name,
        draft=with_analysis(case.draft, changed),
        ending=BAD_EVIDENCE,
        violation=code,
    )


def _says(case: HolmesCase, name: str, changed: Analysis | str) -> HolmesCase:
    draft = (
        with_conclusion(case.draft, changed)
        if isinstance(changed, str)
        else with_analysis(case.draft, changed)
    )
    return replace(case, name=name, draft=draft, ending=UNSUPPORTED)


MORE_CASES: tuple[HolmesCase, ...] = (
    _001,
    _cites(
        _001,
        "001: a call that was refused as evidence",
        normal("claim", "There is no class standard-v2.", "tooluse_sNX2cJHXRpG0EV2WF34fAA"),
        ViolationCode.RECORD_NOT_READY,
    ),
    _cites(
        _001,
        "001: an empty log as a finding",
        normal("crash", "The log shows a crash.", "tooluse_ZvgDG5KOS_O1pLkPthjSdw"),
        ViolationCode.KIND_STATUS_MISMATCH,
    ),
    _says(
        _001,
        "001: another variable",
        normal(
            "worker",
            "The previous log of payment-processing-worker-557fd76758-6mjqc says that the"
            " environment variable PAYMENT_GATEWAY_URL is undefined.",
            "tooluse_Lc87qxvBQLC5f5VU2MYOhw",
        ),
    ),
    _002,
    _cites(
        _002,
        "002: a call that was never made",
        normal("memory", "The pods use 892Mi of memory.", "call_011"),
        ViolationCode.RECORD_MISSING,
    ),
    _cites(
        _002,
        "002: a finding as an empty look",
        nothing_found("database", "No postgres pod restarted.", "call_007"),
        ViolationCode.KIND_STATUS_MISMATCH,
    ),
    _says(
        _002,
        "002: a larger pool",
        normal("config", "The deployment sets DB_POOL_SIZE to 25 and DB_PORT to 5432.", "call_008"),
    ),
    _003,
    _cites(
        _003,
        "003: the task list as evidence",
        normal("node", "Both pods run on worker-node-05.", "call_001"),
        ViolationCode.RECORD_MISSING,
    ),
    _says(
        _003,
        "003: another node",
        normal(
            "node",
            "The pods postgres-primary-0 and filebeat-logger-8k3m9 run on worker-node-07.",
            "call_011",
            "call_012",
        ),
    ),
    _says(
        _003,
        "003: a slower query",
        normal(
            "backend",
            "The log of backend-api-7c9d8e4f6-k3m5n says that a database query took 58.1 seconds"
            " and that GET /api/users completed in 30.4 seconds.",
            "call_006",
        ),
    ),
    _004,
    _cites(
        _004,
        "004: a call of no run",
        normal("killed", "A pod ended with exit code 137.", "call_005x"),
        ViolationCode.RECORD_MISSING,
    ),
    _says(
        _004,
        "004: another exit code",
        normal(
            "killed",
            "The last state of api-gateway-5d8f7b9c6-j4k8n is OOMKilled with exit code 139.",
            "call_005",
        ),
    ),
    _says(
        _004,
        "004: more failures than were counted",
        normal(
            "limited",
            "The log holds 242 lines with Rate Limit Exceeded and 407 with Payment processing.",
            "call_009",
            "call_010",
        ),
    ),
    _008,
    _cites(
        _008,
        "008: a call of another run",
        normal("pods", "16 pods use the library.", "tooluse_pxF3VljcTXCoFXTHFSJ8gQ"),
        ViolationCode.RECORD_MISSING,
    ),
    _says(
        _008,
        "008: another fixed version",
        normal(
            "known",
            "The known issues of redis-client@2.3.1 are a connection leak in error handling paths,"
            " fixed in 2.9.7, and a memory leak fixed in 2.3.2.",
            "call_026",
        ),
    ),
    _says(
        _008,
        "008: more clients than Redis counts",
        normal(
            "clients", "Redis counts 9567 connected clients; its maxclients is 10000.", "call_036"
        ),
    ),
)

ALL_CASES = (*HOLMES_CASES, *MORE_CASES)
