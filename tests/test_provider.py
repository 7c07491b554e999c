"""The fake provider is itself true: it counts what happened, and each fault does what it says."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from postgres import ended
from provider import Answer, Fault, Provider

LOST = (http.client.RemoteDisconnected, ConnectionResetError, TimeoutError)


def lines(provider: Provider) -> list[dict[str, object]]:
    assert provider.state is not None
    return [json.loads(line) for line in provider.state.read_text().splitlines()]


def test_an_effect_is_on_the_disk_before_it_is_answered(provider: Provider) -> None:
    """What was answered is in the file, and the request that caused it too."""
    answer = provider.send("order-1", key="k1", body={"amount": 5})
    assert answer == Answer(201, {"id": "ef_1", "reference": "order-1", "key": "k1", "body": {"amount": 5}})
    assert [(line["what"], line["reference"], line["key"]) for line in lines(provider)] == [
        ("request", "order-1", "k1"),
        ("effect", "order-1", "k1"),
    ]


def test_a_look_finds_only_what_carries_the_reference(provider: Provider) -> None:
    """A look by reference lists the matches; without one it lists all."""
    provider.send("order-1")
    provider.send("order 2/ä", body=[1])
    found = provider.look("order 2/ä").body
    assert [effect["id"] for effect in found] == ["ef_2"]
    assert [effect["id"] for effect in provider.look().body] == ["ef_1", "ef_2"]
    assert provider.look("order-3") == Answer(200, [])


def test_without_deduplication_a_repeat_is_a_second_effect(provider: Provider) -> None:
    """By default the provider ignores keys, as a careless one does."""
    provider.send("order-1", key="k")
    provider.send("order-1", key="k")
    assert provider.count("order-1") == 2


@pytest.mark.parametrize(
    ("fault", "lost", "effects"),
    [
        (Fault("ack_lost"), http.client.RemoteDisconnected, 1),
        (Fault("ack_lost", mode="hold"), TimeoutError, 1),
        (Fault("request_lost"), http.client.RemoteDisconnected, 0),
        (Fault("request_lost", mode="hold"), TimeoutError, 0),
        (Fault("reset_after"), ConnectionResetError, 1),
        (Fault("reset_before"), ConnectionResetError, 0),
        (Fault("late", seconds=0.01), http.client.RemoteDisconnected, 1),
        (Fault("late", seconds=0.01, mode="hold"), TimeoutError, 1),
        (Fault("slow", seconds=0.4), TimeoutError, 1),
    ],
    ids=lambda value: f"{value.kind}-{value.mode}" if isinstance(value, Fault) else None,
)
def test_a_lost_answer_looks_the_same_whether_or_not_the_provider_acted(
    provider: Provider, fault: Fault, lost: type[Exception], effects: int
) -> None:
    """The client sees the named exception; only the provider knows how many effects there are."""
    with pytest.raises(lost):
        provider.send("order-1", timeout_s=0.2, fault=fault)
    provider.quiesce()
    assert provider.count() == effects
    assert [request["fault"] for request in provider.requests()] == [fault.kind]


@pytest.mark.parametrize(("acts", "effects"), [(True, 1), (False, 0)])
def test_a_status_says_nothing_about_the_effect(provider: Provider, acts: bool, effects: int) -> None:
    """The same 503 comes with and without an effect."""
    provider.arm("status", status=503, acts=acts, payload={"error": "busy"})
    assert provider.send("order-1") == Answer(503, {"error": "busy"})
    assert provider.count() == effects


def test_a_refusal_has_no_effect(provider: Provider) -> None:
    """`refuse` answers 402 with the given body and does nothing."""
    provider.arm("refuse", payload={"error": "card_declined"})
    assert provider.send("order-1") == Answer(402, {"error": "card_declined"})
    assert provider.count() == 0


def test_a_late_request_arrives_after_its_client_gave_up(provider: Provider) -> None:
    """Until it is released a late request has no effect, and the provider is not quiet; then it acts once."""
    provider.arm("late")
    with pytest.raises(http.client.RemoteDisconnected):
        provider.send("order-1")
    provider.await_parked()
    assert provider.count() == 0
    with pytest.raises(TimeoutError, match="'late': 1"):
        provider.quiesce(timeout_s=0.05)
    provider.release()
    provider.quiesce()
    assert provider.count() == 1


def test_quiescence_waits_for_a_request_that_is_at_work(provider: Provider) -> None:
    """A slow request of a client that is long gone still counts as under way."""
    provider.arm("slow")
    with pytest.raises(TimeoutError):
        provider.send("order-1", timeout_s=0.05)
    provider.await_parked()
    with pytest.raises(TimeoutError, match="'at_work': 1"):
        provider.quiesce(timeout_s=0.05)
    provider.release()
    provider.quiesce()
    assert provider.count() == 1


def test_quiescence_sees_what_a_killed_client_left_in_its_socket(provider: Provider, tmp_path: Path) -> None:
    """A client that is killed right after its last byte left has always been counted once the provider is quiet."""
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, signal, socket, sys\n"
        "content = json.dumps({'reference': sys.argv[2]}).encode()\n"
        "head = f'POST /effects HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(content)}\\r\\n\\r\\n'.encode()\n"
        "with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as out:\n"
        "    out.sendall(head + content)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    port = provider.url.rpartition(":")[2]
    for number in range(10):
        run = subprocess.run([sys.executable, "-S", str(child), port, f"order-{number}"], check=False)
        assert run.returncode == -signal.SIGKILL
        provider.quiesce()
        assert provider.count(f"order-{number}") == 1


def test_armed_faults_wait_for_their_turn(provider: Provider) -> None:
    """`skip`, `times` and `reference` choose the requests; `disarm` forgets the rest."""
    provider.arm("refuse", skip=1, times=2, reference="order-1")
    assert [provider.send("order-1").status for _ in range(4)] == [201, 402, 402, 201]
    provider.arm("refuse", times=None)
    assert [provider.send("order-2").status for _ in range(3)] == [402, 402, 402]
    provider.disarm()
    assert provider.send("order-2").status == 201
    provider.arm("refuse", reference="order-9")
    assert provider.send("order-2").status == 201


@pytest.mark.parametrize(
    ("arm", "seen"),
    [
        (lambda p: p.arm("error"), Answer(500, None)),
        (lambda p: p.arm("error", status=401), Answer(401, None)),
        (lambda p: p.arm("error", status=429, payload={"retry_after_s": 1}), Answer(429, {"retry_after_s": 1})),
        (lambda p: p.arm("empty"), Answer(200, None)),
        (lambda p: p.arm("stale"), Answer(200, [])),
    ],
    ids=["500", "401", "429", "empty", "stale"],
)
def test_a_look_may_be_wrong_once_and_right_the_next_time(
    provider: Provider, arm: Callable[[Provider], None], seen: Answer
) -> None:
    """A fault of a look changes the answer, never the effects; it touches no request that would act."""
    arm(provider)
    assert provider.send("order-1").status == 201
    assert provider.look("order-1") == seen
    assert [effect["id"] for effect in provider.look("order-1").body] == ["ef_1"]
    assert provider.count() == 1


def test_a_held_answer_ends_at_the_release(provider: Provider) -> None:
    """A client that waits for an answer that was lost sees the end of the connection when the test says so."""
    provider.arm("ack_lost", mode="hold")
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(provider.send, "order-1", timeout_s=10)
        provider.await_parked()
        assert provider.count() == 1
        provider.release()
        with pytest.raises(http.client.RemoteDisconnected):
            sent.result()
    with pytest.raises(TimeoutError, match="'parked': 0"):
        provider.await_parked(timeout_s=0.01)


def test_a_look_that_hangs_is_given_up_by_its_client(provider: Provider) -> None:
    """`hang` never answers, and does not keep the provider from being quiet."""
    provider.arm("hang")
    with pytest.raises(TimeoutError):
        provider.look("order-1", timeout_s=0.05)
    provider.quiesce()


def test_a_look_may_find_two_or_somebody_elses(provider: Provider) -> None:
    """`double` shows two ids of one reference; `look_alike` the same body under another reference."""
    provider.send("order-1", body={"amount": 5})
    provider.arm("double")
    assert [effect["id"] for effect in provider.look("order-1").body] == ["ef_1", "ef_1_again"]
    provider.arm("look_alike")
    (alike,) = provider.look("order-1").body
    assert (alike["id"], alike["reference"], alike["body"]) == ("ef_alike", "alike-order-1", {"amount": 5})


def test_a_known_key_is_answered_with_the_stored_answer(provider: Provider) -> None:
    """Inside the retention a repeat has no effect; other arguments are refused; after it the key is unknown."""
    provider.dedupe(60.0)
    first = provider.send("order-1", key="k", body=1)
    assert provider.send("order-1", key="k", body=1) == first
    assert provider.send("order-1", key="k", body=2) == Answer(422, {"error": "key_reused"})
    assert provider.count() == 1
    provider.advance(61.0)
    assert provider.send("order-1", key="k", body=1).status == 201
    assert provider.count() == 2


@pytest.mark.parametrize(("replays", "status", "effects"), [(True, 402, 0), (False, 201, 1)])
def test_a_refusal_is_stored_only_where_the_provider_says_so(
    provider: Provider, replays: bool, status: int, effects: int
) -> None:
    """With `replays_refusals` the refusal comes back under its key; without, the repeat is a first request."""
    provider.dedupe(60.0, replays_refusals=replays)
    provider.arm("refuse")
    assert provider.send("order-1", key="k").status == 402
    assert provider.send("order-1", key="k").status == status
    assert provider.count() == effects


@pytest.mark.parametrize(
    ("concurrent", "statuses", "effects"), [("refuse", [201, 409], 1), ("wait", [201, 201], 1), ("racy", [201, 201], 2)]
)
def test_a_second_request_while_the_first_is_at_work(
    provider: Provider, concurrent: str, statuses: list[int], effects: int
) -> None:
    """The three ways of providers: 409, hold back until the first is done, or store the key too late and act twice."""
    provider.dedupe(60.0, concurrent=concurrent)  # type: ignore[arg-type]  # parametrised
    provider.arm("slow")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(provider.send, "order-1", key="k")
        provider.await_parked()
        second = pool.submit(provider.send, "order-1", key="k")
        if concurrent != "wait":
            second.result()
        provider.release()
        assert [first.result().status, second.result().status] == statuses
    provider.quiesce()
    assert provider.count() == effects


def test_a_restarted_provider_remembers_its_effects_and_keys(provider: Provider) -> None:
    """SIGKILL loses nothing that was answered, not even when the last line of the file is torn."""
    provider.dedupe(60.0)
    first = provider.send("order-1", key="k")
    provider.kill()
    with pytest.raises(ConnectionRefusedError):
        provider.send("order-1", key="k")
    assert provider.state is not None
    with provider.state.open("ab") as file:
        file.write(b'{"what": "effect", "refer')
    provider.restart()
    provider.dedupe(60.0)
    assert provider.send("order-1", key="k") == first
    assert provider.count() == 1
    assert provider.send("order-2").body["id"] == "ef_2"


def test_a_provider_that_forgets_is_as_if_just_started(provider: Provider) -> None:
    """Effects, requests, keys, stones, faults and settings are gone, from its file too; and what waited has ended."""
    provider.dedupe(3600.0)
    provider.send("a", key="k", body=1)
    provider.revoke("a", ["stone"])
    provider.arm("refuse", times=None)
    provider.forget()
    assert (provider.effects(), provider.requests()) == ([], [])
    provider.dedupe(3600.0)
    for key in ("k", "stone"):
        assert provider.send("a", key=key, body=2).status == 201
    provider.restart()
    assert [(one["id"], one["body"]) for one in provider.effects()] == [("ef_1", 2), ("ef_2", 2)]


def test_many_clients_at_once_are_all_counted(provider: Provider) -> None:
    """Effects of concurrent clients are neither lost nor merged."""
    gate = threading.Barrier(16)

    def send(number: int) -> int:
        gate.wait()
        return Provider.at(provider.url).send(f"order-{number % 4}", timeout_s=10).status

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(send, range(16))) == {201}
    assert [provider.count(f"order-{number}") for number in range(4)] == [4, 4, 4, 4]


def test_nonsense_is_refused_and_has_no_effect(provider: Provider) -> None:
    """A request that is no JSON ends without an answer; an unknown setting is an error in the test that made it."""
    connection = http.client.HTTPConnection("127.0.0.1", int(provider.url.rpartition(":")[2]), timeout=2)
    connection.request("POST", "/effects", b"{")
    with pytest.raises(LOST):
        connection.getresponse()
    connection.close()
    with pytest.raises(ValueError, match="unknown: \\['typo'\\]"):
        provider._control({"typo": 1})
    assert provider.send("x", fault=Fault("stale")).status == 400
    assert provider.look("x", fault=Fault("late")).status == 400
    assert provider.count() == 0


def test_the_provider_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """No provider stays behind when a test run is killed."""
    code = (
        "import os, pathlib, signal, sys; from provider import Provider\n"
        "running = Provider.start(pathlib.Path(sys.argv[1]))\n"
        "print(running._process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "state")],
        cwd=Path(__file__).parent, stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL
    assert ended(int(run.stdout))


def test_a_revocation_finds_what_is_there_or_keeps_a_stone(provider: Provider) -> None:
    """What is there is said; otherwise a request under a revoked key, also a late one, is refused and has no effect."""
    provider.send("there", key="k1")
    assert [one["reference"] for one in provider.revoke("there", ["k1"])] == ["there"]
    provider.arm("late", reference="late")
    with pytest.raises(http.client.RemoteDisconnected):
        provider.send("late", key="k2")
    provider.await_parked()
    assert provider.revoke("late", ["k2"]) == []
    provider.release()
    provider.quiesce()
    assert provider.count("late") == 0
    assert provider.send("late", key="k2").status == 410
    assert provider.send("late", key="k3").status == 201
