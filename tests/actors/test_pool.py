"""The pool of actors: every chunk counted once, in order, bounded, whatever happens to actors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from fake_executor import FATES, CountingPlayer, FakeExecutor, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_executor import InlineExecutor

from tempest_agent.actors.executor import ActorLostError, Host
from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.pool import ActorEvent, ActorPool, ActorsFailedError, Round

GAMES = 2


def make_order(part: ActorShare) -> Order:
    return Order(steps=3)


def pool_of(executor: FakeExecutor, actors: int, **others: Any) -> ActorPool:
    pool = ActorPool(executor, actors, clock=executor.clock, **others)
    pool.publish(snapshot(1))
    return pool


def scripted(*fates: str) -> FakeExecutor:
    """Orders meet ``fates`` one after the other, and no harm after the last."""
    script = itertools.chain(fates, itertools.repeat("fine"))
    return FakeExecutor(lambda: next(script), GAMES)


def rows_of(rounds: list[Round], actor: int) -> list[tuple[int, int]]:
    """Incarnation and serial of every step of an actor that was handed on, as it came."""
    found: list[tuple[int, int]] = []
    for each in rounds:
        columns = each.chunks[actor].columns
        assert (columns["serial"] == columns["serial"][:, :1]).all()
        found += zip(
            columns["incarnation"][:, 0].tolist(), columns["serial"][:, 0].tolist(), strict=True
        )
    return found


@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_whatever_happens_every_step_is_handed_on_once_and_in_order(data: st.DataObject) -> None:
    fates = data.draw(st.lists(st.sampled_from(FATES), max_size=40), "fates")
    lengths = itertools.cycle(data.draw(st.lists(st.integers(1, 4), min_size=1), "steps"))
    actors, queue = data.draw(st.integers(1, 4), "actors"), data.draw(st.integers(1, 3), "queue")
    synchronous = data.draw(st.booleans(), "synchronous")
    executor = scripted(*fates)
    events: list[ActorEvent] = []
    pool = pool_of(
        executor,
        actors,
        queue=queue,
        synchronous=synchronous,
        max_restarts=99,
        on_event=events.append,
    )
    rounds: list[Round] = []
    ordered: dict[int, list[int]] = {}

    def order(part: ActorShare) -> Order:
        ordered.setdefault(part.actor, []).append(next(lengths))
        return Order(steps=ordered[part.actor][-1])

    for number in range(data.draw(st.integers(1, 12), "rounds")):
        rounds.append(pool.next_round(order))
        # Backpressure: nobody is told more than the queue holds.
        ahead = 0 if synchronous else queue
        assert executor.highest <= number + ahead
        pool.publish(snapshot(number + 2))

    assert [each.number for each in rounds] == list(range(len(rounds)))
    restarted = set()
    for each in rounds:
        assert [chunk.actor for chunk in each.chunks] == list(range(actors))
        assert {chunk.number for chunk in each.chunks} == {each.number}
        restarted |= {(each.number, actor) for actor in each.restarted}
        # The age of weights is bounded: at most the versions of so many rounds.
        oldest = each.number + 1 - (0 if synchronous else queue)
        assert all(oldest <= chunk.version <= each.number + 1 for chunk in each.chunks)
    cuts = set()
    for actor in range(actors):
        rows = rows_of(rounds, actor)
        assert len(set(rows)) == len(rows)
        incarnations = dict(rows)
        for before, after in itertools.pairwise(rows):
            assert after == (before[0], before[1] + 1) or after[0] > before[0]
        # A new incarnation plays its own games from their beginning.
        assert all((incarnation, 0) in rows for incarnation in incarnations)
        for before_round, after_round in itertools.pairwise(rounds):
            if before_round.chunks[actor].incarnation != after_round.chunks[actor].incarnation:
                cuts.add((after_round.number, actor))
    assert restarted == cuts
    counts = pool.counts
    assert counts.taken == sum(each.samples for each in rounds)
    assert counts.taken == GAMES * sum(len(rows_of(rounds, actor)) for actor in range(actors))
    assert counts.received >= counts.taken
    assert counts.restarts == len(events) == sum(pool.incarnations)
    assert counts.lost == sum(event.lost_samples for event in events)
    counts.read()
    pool.close()
    assert executor.closed


def test_without_faults_rounds_are_those_of_a_plain_loop() -> None:
    for queue, synchronous in ((1, False), (3, False), (1, True)):
        pool = pool_of(scripted(), 2, queue=queue, synchronous=synchronous)
        rounds = [pool.next_round(make_order) for _ in range(4)]
        for actor in range(2):
            assert rows_of(rounds, actor) == [(0, step) for step in range(12)]
        assert pool.counts.taken == 4 * 2 * 3 * GAMES
        assert (pool.counts.lost, pool.counts.duplicates, pool.counts.restarts) == (0, 0, 0)


def test_nobody_plays_between_synchronous_rounds_and_weights_are_the_newest() -> None:
    executor = scripted()
    pool = pool_of(executor, 2, synchronous=True)
    for version in (5, 6, 7):
        pool.publish(snapshot(version))
        taken = pool.next_round(make_order)
        assert {chunk.version for chunk in taken.chunks} == {version}
        assert not executor.answers
    assert pool.counts.read()["actors_version_lag_max"] == 0.0


def test_orders_wait_for_actors_while_the_learner_learns() -> None:
    executor = scripted()
    pool = pool_of(executor, 2, queue=3)
    pool.next_round(make_order)
    assert len(executor.answers) == 2 * 3


@pytest.mark.parametrize("fate", ["dies", "dies_after"])
def test_an_actor_that_dies_is_begun_anew_and_loses_what_it_was_playing(fate: str) -> None:
    events: list[ActorEvent] = []
    # Rounds 0 and 1 of both actors, one order at a time; actor 1 dies in round 1.
    executor = scripted("fine", "fine", "fine", fate)
    pool = pool_of(executor, 2, queue=1, on_event=events.append)
    rounds = [pool.next_round(make_order) for _ in range(3)]
    assert rows_of(rounds, 0) == [(0, step) for step in range(9)]
    assert rows_of(rounds, 1) == [(0, 0), (0, 1), (0, 2)] + [(1, step) for step in range(6)]
    assert [each.restarted for each in rounds] == [(), (1,), ()]
    assert pool.counts.lost == 3 * GAMES == events[0].lost_samples
    assert events[0].part == ActorShare(1, 2, 0)
    assert "killed" in str(events[0])
    assert "Traceback of the actor" in str(events[0])
    assert pool.incarnations == [0, 1]


def test_an_answer_lost_on_the_way_is_asked_for_again_and_not_played_again() -> None:
    pool = pool_of(scripted("fine", "lost", "lost"), 1, queue=2)
    rounds = [pool.next_round(make_order) for _ in range(4)]
    assert rows_of(rounds, 0) == [(0, step) for step in range(12)]
    assert pool.counts.restarts == pool.counts.lost == 0


def test_an_answer_that_comes_twice_counts_once() -> None:
    pool = pool_of(scripted("fine", "repeats"), 1, queue=2)
    rounds = [pool.next_round(make_order) for _ in range(3)]
    assert rows_of(rounds, 0) == [(0, step) for step in range(9)]
    assert pool.counts.duplicates == 1
    assert pool.counts.taken == 9 * GAMES


def test_what_was_not_begun_is_not_lost() -> None:
    pool = pool_of(scripted("dies"), 1, queue=3)
    pool.next_round(make_order)
    # Its games are not known before its first answer.
    assert pool.counts.lost == 0
    pool = pool_of(scripted("fine", "dies"), 1, queue=3)
    rounds = [pool.next_round(make_order) for _ in range(2)]
    assert rows_of(rounds, 0) == [
        (incarnation, step) for incarnation in (0, 1) for step in range(3)
    ]
    assert pool.counts.lost == 3 * GAMES


def test_what_was_played_after_a_lost_order_is_dropped_because_games_go_forward() -> None:
    # Answer 1 is lost on its way, 2 arrives, and the actor dies before 1 comes again.
    pool = pool_of(scripted("fine", "lost", "fine", "dies"), 1, queue=2)
    rounds = [pool.next_round(make_order) for _ in range(3)]
    assert rows_of(rounds, 0) == [(0, step) for step in range(3)] + [(1, step) for step in range(6)]
    assert pool.counts.received - pool.counts.taken == 3 * GAMES
    assert pool.counts.lost == 2 * 3 * GAMES


def test_answers_that_are_lost_again_and_again_cost_the_actor() -> None:
    pool = pool_of(scripted(*["lost"] * 4), 1, queue=1)
    assert pool.next_round(make_order).chunks[0].incarnation == 1


def test_a_silent_actor_is_given_up_at_its_deadline() -> None:
    executor = scripted("fine", "hangs")
    events: list[ActorEvent] = []
    pool = pool_of(executor, 1, queue=1, deadline_seconds=30.0, on_event=events.append)
    pool.next_round(make_order)
    began = executor.now
    assert pool.next_round(make_order).restarted == (0,)
    assert 30.0 <= executor.now - began < 32.0
    assert "no answer within 30 s" in events[0].reason
    assert executor.workers[0].dead


def test_the_deadline_is_of_one_order_and_not_of_all_that_wait() -> None:
    pool = pool_of(scripted(*["slow"] * 40), 1, queue=3, deadline_seconds=7.0)
    for _ in range(20):
        pool.next_round(make_order)
    assert pool.counts.restarts == 0


def test_who_waits_may_give_up_and_ask_for_the_same_round_again() -> None:
    executor = scripted("fine", "hangs")
    asked: list[float] = []

    def give_up() -> None:
        asked.append(executor.now)
        if len(asked) == 3:
            raise InterruptedError

    pool = pool_of(executor, 1, queue=1, deadline_seconds=30.0, on_silence=give_up)
    pool.next_round(make_order)
    began = executor.now
    with pytest.raises(InterruptedError):
        pool.next_round(make_order)
    assert executor.now - began < 4.0
    assert pool.counts.restarts == 0
    taken = pool.next_round(make_order)
    assert (taken.number, taken.restarted) == (1, (0,))
    assert pool.counts.taken == 2 * 3 * GAMES


def test_the_first_answer_may_take_longer() -> None:
    executor = scripted("hangs")
    pool = pool_of(executor, 1, queue=1, deadline_seconds=30.0, startup_seconds=200.0)
    pool.next_round(make_order)
    assert 200.0 <= executor.now < 202.0


def test_time_that_the_learner_takes_is_not_the_actors() -> None:
    executor = scripted()
    pool = pool_of(executor, 2, queue=2, deadline_seconds=30.0)
    pool.next_round(make_order)
    executor.now += 1000.0
    pool.next_round(make_order)
    assert pool.counts.restarts == 0


@pytest.mark.parametrize("allowed", [0, 3])
def test_an_actor_lost_too_often_ends_the_run_with_its_own_traceback(allowed: int) -> None:
    events: list[ActorEvent] = []
    pool = pool_of(
        FakeExecutor(lambda: "dies"), 1, queue=2, max_restarts=allowed, on_event=events.append
    )
    with pytest.raises(ActorsFailedError, match=r"actor 0 .* killed; .*max_restarts") as caught:
        pool.next_round(make_order)
    assert caught.value.details == "Traceback of the actor"
    assert len(events) == allowed + 1
    assert pool.counts.restarts == allowed


def test_losses_with_answers_between_them_never_end_the_run() -> None:
    pool = pool_of(scripted(*["fine", "dies"] * 50), 1, queue=1, max_restarts=1)
    for _ in range(60):
        pool.next_round(make_order)
    assert pool.counts.restarts == 50


def test_a_chunk_of_the_wrong_length_is_not_taken() -> None:
    class Short(CountingPlayer):
        def play(self, order: Order, snapshot: Any) -> Chunk:
            return super().play(Order(steps=2, number=order.number), snapshot)

    pool = ActorPool(InlineExecutor(Short), 1, max_restarts=1)
    pool.publish(snapshot(1))
    with pytest.raises(ActorsFailedError, match="2 steps played, not 3"):
        pool.next_round(make_order)


def test_runs_that_go_on_begin_with_other_incarnations() -> None:
    pool = pool_of(scripted(), 2, incarnations=[4, 7])
    assert [chunk.incarnation for chunk in pool.next_round(make_order).chunks] == [4, 7]
    assert pool.counts.restarts == 0


def test_figures_are_rates_since_the_last_call() -> None:
    executor = scripted("slow")
    pool = pool_of(executor, 1, queue=1)
    pool.next_round(make_order)
    figures = pool.counts.read()
    assert figures["actors_taken"] == figures["actors_received"] == 6.0
    assert figures["actors_samples_per_second"] == pytest.approx(6.0 / 5.0)
    assert figures["actors_wait_share"] == pytest.approx(1.0)
    assert figures["actors_bytes_per_second"] > 0.0
    executor.now += 10.0
    idle = pool.counts.read()
    assert (idle["actors_taken"], idle["actors_samples_per_second"]) == (6.0, 0.0)
    assert "actors_version_lag" not in idle


def test_totals_go_on_after_a_resume() -> None:
    pool = pool_of(scripted(), 1)
    pool.next_round(make_order)
    other = pool_of(scripted(), 1)
    other.counts.load_state_dict(pool.counts.state_dict())
    other.next_round(make_order)
    assert other.counts.taken == 12


def test_wrong_use_is_said() -> None:
    with pytest.raises(ValueError, match="at least 1 actor"):
        ActorPool(scripted(), 0)
    with pytest.raises(RuntimeError, match="publish weights"):
        ActorPool(scripted(), 1).next_round(make_order)


# --- what the pool stands on --------------------------------------------------------------------


def test_a_host_plays_no_order_twice_and_forgets_what_is_settled() -> None:
    host = Host(CountingPlayer, ActorShare(0, 1))
    weights = snapshot(1)
    first = host.play(Order(steps=2, number=0), weights)
    second = host.play(Order(steps=2, number=1), weights)
    assert host.play(Order(steps=2, number=0), weights) is first
    assert host.play(Order(steps=2, number=1, oldest=1), weights) is second
    with pytest.raises(ValueError, match="order 0 came after order 1"):
        host.play(Order(steps=2, number=0, oldest=1), weights)
    assert second.columns["serial"][:, 0].tolist() == [2, 3]


def test_an_inline_actor_that_fails_is_lost_with_its_traceback() -> None:
    class Failing(CountingPlayer):
        def play(self, order: Order, snapshot: Any) -> Chunk:
            raise ZeroDivisionError("in the player")

    executor = InlineExecutor(Failing)
    worker = executor.start(ActorShare(0, 1))
    tickets = [executor.submit(worker, Order(steps=1, number=n), snapshot(1)) for n in (0, 1)]
    assert executor.wait(tickets, 1.0) == tickets[:1]
    with pytest.raises(ActorLostError, match="ZeroDivisionError: in the player") as caught:
        executor.result(tickets[0])
    assert "in play" in caught.value.details
    assert executor.wait(tickets[1:], 1.0) == tickets[1:]
    with pytest.raises(ActorLostError, match="was ended"):
        executor.result(tickets[1])


def test_a_chunk_is_whole() -> None:
    good = {"a": np.zeros((3, 2, 5)), "b": np.zeros((3, 2))}
    chunk = Chunk(0, 0, 0, 1, good, {"c": np.zeros(2)})
    assert (chunk.steps, chunk.games, chunk.samples) == (3, 2, 6)
    assert chunk.nbytes == 8 * (30 + 6 + 2)
    for bad in ({}, {"a": np.zeros(3)}, good | {"b": np.zeros((3, 1))}):
        with pytest.raises(ValueError, match="columns must all be"):
            Chunk(0, 0, 0, 1, bad)
