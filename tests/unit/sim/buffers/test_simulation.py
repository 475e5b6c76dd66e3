# SPDX-License-Identifier: MIT
"""Storage with burst buffers: runs whose numbers are computed by hand."""

from __future__ import annotations

from math import inf

import pytest

from penstock.errors import InputError, PolicyError
from penstock.policies.policy import Policy, bind
from penstock.policies.view import View
from penstock.sim.buffers.model import Act, Buffer, Congestion, Step, Storage, Writer
from penstock.sim.buffers.simulation import BufferedRun, simulate_buffers
from penstock.staging import Situation, StagingOrder, StagingPlan, Strategy
from penstock.staging.flushing import turns

FAST = Buffer(speed_bytes_per_s=1e9)
ONE = Storage(10.0)


def writer(name: str, *steps: tuple[Act, float], **rest: float) -> Writer:
    return Writer(name, tuple(Step(*s) for s in steps), **rest)  # type: ignore[arg-type]


def burst(name: str, volume: float, start_s: float = 0.0, **rest: float) -> Writer:
    return Writer.of_requests(name, 1, volume, start_s=start_s, **rest)


def strategy(coordinate: object) -> Strategy:
    return Strategy("mine", "mine", coordinate, {})  # type: ignore[arg-type]


def always(stage: bool = True, drain: bool = True, rate: float = inf) -> Strategy:
    """Return a strategy with the same order for all, at any time."""
    return strategy(
        lambda s: StagingPlan(
            [StagingOrder(s.all_targets, stage, drain, rate) for _ in s.applications]
        )
    )


def ends(run: BufferedRun) -> list[float]:
    return [phases[-1][1] for phases in run.phases]


# --- Writing through --------------------------------------------------------------


def test_alone() -> None:
    run = simulate_buffers(ONE, [Writer.of_requests("A", 3, 20.0, 1.5, start_s=4.0)])
    assert run.phases == (((4.0, 13.0),),)
    assert run.io_times == (9.0,)
    assert [r.done - r.posted for r in run.requests[0]] == [2.0, 2.0, 2.0]
    assert (run.through, run.drained, run.lost) == ((60.0,), (0.0,), (0.0,))
    assert run.carried == (60.0,)


def test_a_limit_of_its_own() -> None:
    run = simulate_buffers(
        ONE, [burst("A", 20.0, limit_bytes_per_s=4.0), burst("B", 12.0)]
    )
    # Fair shares: 10/14 of 4 and of 10.
    assert ends(run)[1] == pytest.approx(12 / (100 / 14))


def test_work_before_the_first_write_is_not_in_the_phase() -> None:
    steps = ((Act.WORK, 3.0), (Act.WRITE, 10.0), (Act.CLOSE, 0.0))
    run = simulate_buffers(ONE, [writer("A", *steps)])
    assert run.phases == (((3.0, 4.0),),)


def test_several_phases_and_none() -> None:
    again = ((Act.WRITE, 10.0), (Act.CLOSE, 0.0), (Act.WORK, 5.0)) * 2
    run = simulate_buffers(ONE, [writer("A", *again), writer("B", (Act.WORK, 1.0))])
    assert run.phases == (((0.0, 1.0), (6.0, 7.0)), ())
    assert run.end_s == 12.0


def test_waiting_requests_cost_capacity() -> None:
    lossy = Storage(
        10.0, congestion=Congestion(loss=0.25, reference_requests=2.0, exponent=50.0)
    )
    run = simulate_buffers(lossy, [burst("A", 40.0), burst("B", 40.0)])
    assert ends(run) == pytest.approx([10.0, 10.0])
    # Served one after the other, nothing is lost.
    run = simulate_buffers(lossy, [burst("A", 40.0), burst("B", 40.0)], sharing="fcfs")
    assert ends(run) == pytest.approx([4.0, 8.0])


def test_a_profile_is_shared_by_time() -> None:
    storage = Storage(8.0, 2, (6.0, 8.0))
    run = simulate_buffers(storage, [burst("A", 48.0), burst("B", 48.0)])
    assert ends(run) == pytest.approx([12.0, 12.0])
    run = simulate_buffers(storage, [burst("A", 48.0), burst("B", 48.0)], "3a")
    assert ends(run) == pytest.approx([8.0, 8.0])


def test_a_request_under_way_stays_where_it_is() -> None:
    storage = Storage(8.0, 2)
    first = Writer.of_requests("A", 2, 16.0)
    run = simulate_buffers(storage, [first, burst("B", 4.0, start_s=1.0)], "3b")
    # Until 1 A has moved 8. B writes its 4 to target 1, half of whose 4 bytes/s A
    # uses for the other 4 of its 8: both are done at 3. Then A is alone again.
    assert ends(run) == pytest.approx([5.0, 3.0])


# --- Staging ----------------------------------------------------------------------


def test_staging_hides_the_pauses_and_close_waits() -> None:
    run = simulate_buffers(
        ONE,
        [Writer.of_requests("A", 3, 20.0, 3.0)],
        always(),
        Buffer(speed_bytes_per_s=20.0),
    )
    # Staged by 1, 5 and 9; drained by 3, 7 and 11.
    assert run.requests[0][-1].done == 9.0
    assert run.phases == (((0.0, 11.0),),)
    assert (run.through, run.drained) == ((0.0,), (60.0,))
    assert run.most_staged == (20.0,)
    # Only the time of waiting counts, and the drain had full speed then.
    assert run.lost == (0.0,)


def test_fsync_waits_for_the_drain_and_the_phase_goes_on() -> None:
    steps = ((Act.WRITE, 20.0), (Act.SYNC, 0.0), (Act.WORK, 1.0), (Act.CLOSE, 0.0))
    run = simulate_buffers(
        ONE, [writer("A", *steps)], always(), Buffer(speed_bytes_per_s=20.0)
    )
    assert run.phases == (((0.0, 4.0),),)


def test_before_the_close_nothing_waits() -> None:
    """Data are staged at 1 s and drained at 3 s, while the application works."""
    steps = ((Act.WRITE, 20.0), (Act.WORK, 5.0), (Act.CLOSE, 0.0))
    run = simulate_buffers(
        ONE, [writer("A", *steps)], always(), Buffer(speed_bytes_per_s=20.0)
    )
    assert run.requests[0][0].done == 1.0
    assert run.end_s == 6.0
    assert run.drained == (20.0,)


def test_a_drain_keeps_to_its_rate() -> None:
    run = simulate_buffers(ONE, [burst("A", 40.0)], always(rate=2.0), FAST)
    assert ends(run) == pytest.approx([20.0])


def test_rates_may_change_while_it_drains() -> None:
    def faster_later(s: Situation) -> StagingPlan:
        rate, wake = (1.0, 5.0) if s.now_s < 5 else (7.0, inf)
        return StagingPlan([StagingOrder(s.all_targets, True, True, rate)], wake)

    run = simulate_buffers(ONE, [burst("A", 40.0)], strategy(faster_later), FAST)
    assert ends(run) == pytest.approx([10.0])


def test_a_turn_that_ends_holds_the_drain() -> None:
    def not_from_2_to_7(s: Situation) -> StagingPlan:
        free = not 2 <= s.now_s < 7
        wake = 2.0 if s.now_s < 2 else 7.0 if s.now_s < 7 else inf
        return StagingPlan([StagingOrder(s.all_targets, True, free)], wake)

    run = simulate_buffers(ONE, [burst("A", 40.0)], strategy(not_from_2_to_7), FAST)
    assert ends(run) == pytest.approx([9.0])


def test_a_full_buffer_makes_room_as_it_drains() -> None:
    small = Buffer(speed_bytes_per_s=1e9, capacity_bytes=30.0)
    run = simulate_buffers(ONE, [Writer.of_requests("A", 3, 20.0)], always(), small)
    done = [r.done for r in run.requests[0]]
    # 20 are in at once; the next 20 fit when 10 are drained, the last 20 later.
    assert done == pytest.approx([0.0, 1.0, 3.0], abs=1e-6)
    assert ends(run) == pytest.approx([6.0])
    assert run.most_staged[0] <= 30.0 * (1 + 1e-6)


def test_nodes_bring_buffers_and_speed() -> None:
    buffer = Buffer(speed_bytes_per_s=5.0, capacity_bytes=10.0)
    run = simulate_buffers(ONE, [burst("A", 40.0, nodes=4)], always(), buffer)
    assert run.requests[0][0].done == 2.0


def test_a_shared_buffer_is_shared() -> None:
    buffer = Buffer(speed_bytes_per_s=40.0, capacity_bytes=50.0, shared=True)
    both = [burst("A", 40.0), burst("B", 40.0)]
    run = simulate_buffers(ONE, both, always(), buffer)
    # There is room for one: A is in by 1; B fits when 30 of it are drained.
    assert run.requests[0][0].done == pytest.approx(1.0)
    assert run.requests[1][0].done == pytest.approx(5.0)
    wide = simulate_buffers(ONE, both, always(), Buffer(40.0, 80.0, shared=True))
    assert [r[0].done for r in wide.requests] == pytest.approx([2.0, 2.0])


def test_data_staged_first_are_drained_before_later_writes() -> None:
    """A stages until its buffer is empty, although it may write through."""

    def first_request_only(s: Situation) -> StagingPlan:
        return StagingPlan(
            [StagingOrder(s.all_targets, s.now_s < 1, True)],
            1.0 if s.now_s < 1 else inf,
        )

    a = Writer.of_requests("A", 2, 40.0, 2.0)
    run = simulate_buffers(ONE, [a], strategy(first_request_only), FAST)
    assert [r.staged for r in run.requests[0]] == [True, True]
    late = Writer.of_requests("A", 2, 40.0, 5.0)
    run = simulate_buffers(ONE, [late], strategy(first_request_only), FAST)
    assert [r.staged for r in run.requests[0]] == [True, False]


def test_an_application_that_flushes_by_itself_waits_for_the_flush() -> None:
    inline = Buffer(speed_bytes_per_s=20.0, inline=True)
    a = Writer.of_requests("A", 3, 20.0, 3.0)
    run = simulate_buffers(ONE, [a], always(), inline)
    # Staged by 1, 5 and 9, for the order is to stage; flushed in close, by 15.
    assert [r.done for r in run.requests[0]] == [1.0, 5.0, 9.0]
    assert ends(run) == [15.0]

    def from_2_on_through(s: Situation) -> StagingPlan:
        early = s.now_s < 2
        orders = [StagingOrder(s.all_targets, early, True)]
        return StagingPlan(orders, 2.0 if early else inf)

    run = simulate_buffers(ONE, [a], strategy(from_2_on_through), inline)
    # At 4 it flushes until 6 and writes until 8; the last request takes from 11 to 13.
    assert [r.done for r in run.requests[0]] == [1.0, 8.0, 13.0]
    assert [r.staged for r in run.requests[0]] == [True, False, False]


def test_an_application_that_flushes_a_full_buffer_empties_it() -> None:
    small = Buffer(speed_bytes_per_s=20.0, capacity_bytes=50.0, inline=True)
    a = Writer.of_requests("A", 3, 20.0)
    run = simulate_buffers(ONE, [a], always(), small)
    # 40 are in by 2. The next 20 would fit at 3, but wait until all 40 are out.
    assert [r.done for r in run.requests[0]] == [1.0, 2.0, 7.0]
    assert ends(run) == [9.0]


def test_drains_in_the_background_do_not_disturb() -> None:
    a, b = Writer.of_requests("A", 2, 20.0, 2.0), burst("B", 30.0, start_s=0.5)
    run = simulate_buffers(ONE, [a, b], "controlled", FAST)
    # A writes until 2 and from 4 to 6; B drains 20 from 2 to 4, the rest from 6 on.
    assert ends(run) == pytest.approx([6.0, 7.0])


def test_any_policy_orders_the_drains() -> None:
    writers = [burst("A", 10.0), burst("B", 50.0), burst("C", 20.0, start_s=0.1)]
    for policy, expected in {
        "greedy-com": [1.0, 8.0, 3.0],
        "fcfs": [1.0, 6.0, 8.0],
        "fair-share": [1.0, 8.0, 5.0],
    }.items():
        run = simulate_buffers(ONE, writers, "controlled", FAST, draining=policy)
        assert ends(run) == pytest.approx(expected, abs=1e-6), policy


@pytest.mark.parametrize("policy", ["set-10", "best-next-event", "soft-deadline"])
def test_policies_that_look_ahead_run_too(policy: str) -> None:
    writers = [
        Writer.of_requests(n, 4, 20.0, 1.0, start_s=s)
        for n, s in (("A", 0.0), ("B", 1.0), ("C", 3.0))
    ]
    run = simulate_buffers(ONE, writers, "2b:flush=window", FAST, sharing=policy)
    assert sum(run.carried) == pytest.approx(240.0)


def test_the_token_is_passed_on() -> None:
    writers = [burst("A", 10.0), burst("B", 50.0), burst("C", 20.0)]
    run = simulate_buffers(ONE, writers, "1b:flush=token", FAST)
    # C writes through; A flushes first, B when A is done.
    assert ends(run) == pytest.approx([2.0, 8.0, 4.0], abs=1e-6)


def test_a_window_of_time_is_passed_on() -> None:
    def flush_all_in_turn(s: Situation) -> StagingPlan:
        wanting = [i for i, a in enumerate(s.applications) if a.staged_bytes > 0]
        may, wake = turns(s, wanting, "window", 1.0)
        orders = [StagingOrder(s.all_targets, True, i in may) for i in range(2)]
        return StagingPlan(orders, wake)

    writers = [burst("A", 30.0), burst("B", 20.0)]
    run = simulate_buffers(ONE, writers, strategy(flush_all_in_turn), FAST)
    # B has staged its 20 first, and has the windows 0 and 2.
    assert ends(run) == pytest.approx([5.0, 3.0], abs=1e-6)


def test_the_warning_is_given_once() -> None:
    paced = [
        Writer.of_requests(n, 8, 10.0, 1.0, processes=16, start_s=s)
        for n, s in (("A", 0.0), ("B", 0.5))
    ]
    run = simulate_buffers(ONE, paced, "2a", FAST)
    (warning,) = run.warnings
    assert warning.startswith("strategy 2a: B: 16 processes will flush at once")
    assert simulate_buffers(ONE, paced).warnings == ()


# --- Mistakes ---------------------------------------------------------------------


def test_no_writer() -> None:
    with pytest.raises(InputError, match="no writer"):
        simulate_buffers(ONE, [])


def test_staging_without_a_buffer() -> None:
    with pytest.raises(InputError, match="2a stages, and there is no buffer"):
        simulate_buffers(ONE, [burst("A", 1.0), burst("B", 1.0)], "2a")


def test_a_buffer_smaller_than_a_request() -> None:
    with pytest.raises(InputError, match=r"writers\[1\] \(B\): a request of 9 bytes"):
        simulate_buffers(
            ONE,
            [burst("A", 1.0), burst("B", 9.0)],
            "2a",
            Buffer(1.0, capacity_bytes=8.0),
        )


def test_a_strategy_that_never_drains_is_an_error() -> None:
    with pytest.raises(PolicyError, match="at t = 4e-08 s: A would wait for ever"):
        simulate_buffers(ONE, [burst("A", 40.0)], always(drain=False), FAST)


def _policy(allocate: object) -> Policy:
    return bind("mine", allocate, (), {})  # type: ignore[arg-type]


def _greedy(view: View, rates: list[float]) -> float:
    for position in range(view.n_active):
        rates[view.active[position]] = view.cap[view.active[position]]
    return inf


def _sleepy(view: View, _rates: list[float]) -> float:
    return view.now


def _broken(_view: View, _rates: list[float]) -> float:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("allocate", "message"),
    [
        (_greedy, "more in total than the capacity"),
        (_sleepy, "asks to be woken"),
        (_broken, "failed at t = 0 s: KeyError"),
    ],
)
def test_policies_that_break_their_contract_are_refused(
    allocate: object, message: str
) -> None:
    with pytest.raises(PolicyError, match=f"policy mine.*{message}"):
        simulate_buffers(
            ONE, [burst("A", 1.0), burst("B", 1.0)], sharing=_policy(allocate)
        )


# --- Processes, partitions and flushes ------------------------------------------------


def test_a_flush_that_combines_requests_is_faster() -> None:
    """B writes 40 bytes in 4 s; A has staged 40, and flushes them in 4 / 1.25 s."""
    both = [burst("A", 40.0), burst("B", 40.0)]
    run = simulate_buffers(ONE, both, "1a", Buffer(1e9, gain=1.25))
    assert ends(run) == pytest.approx([4.0 + 3.2, 4.0])
    assert run.drained == (40.0, 0.0)


def test_files_stay_where_they_were_opened_unless_the_writer_redirects() -> None:
    """3b: B has one of two targets while A writes; A is done at 2, B half way."""
    storage = Storage(8.0, 2)
    for redirects, end in ((True, 3.0), (False, 4.0)):
        second = Writer.of_requests("B", 4, 4.0, redirects=redirects)
        run = simulate_buffers(storage, [burst("A", 8.0), second], "3b")
        assert ends(run) == pytest.approx([2.0, end])


def test_a_writer_that_merges_writes_redirected_data_twice() -> None:
    """As above: at 3, half of B's data is on both targets; all goes to its own."""
    second = Writer.of_requests("B", 4, 4.0, merges=True)
    run = simulate_buffers(Storage(8.0, 2), [burst("A", 8.0), second], "3b")
    assert ends(run) == pytest.approx([2.0, 5.0])
    assert run.through == pytest.approx((8.0, 16.0))


def test_a_merge_comes_before_other_targets_are_used() -> None:
    """A request of 2 s each: on target 0, on 1, and on 0 again after the merge."""

    def alternate(s: Situation) -> StagingPlan:
        turn = int(s.now_s / 2.0)
        order = StagingOrder((turn % 2 if turn < 3 else 0,))
        return StagingPlan([order], 2.0 * (turn + 1))

    run = simulate_buffers(
        Storage(8.0, 2),
        [Writer.of_requests("A", 3, 8.0, merges=True)],
        strategy(alternate),
    )
    assert [request.done for request in run.requests[0]] == pytest.approx([2, 4, 8])
    assert ends(run) == pytest.approx([8.0])


def moved_at(change_s: float) -> Strategy:
    """Return a strategy that orders target 0, and from `change_s` on target 1."""

    def move(s: Situation) -> StagingPlan:
        is_late = s.now_s >= change_s
        orders = [StagingOrder((int(is_late),), drain=True) for _ in s.applications]
        return StagingPlan(orders, inf if is_late else change_s)

    return strategy(move)


def test_files_that_were_opened_lately_are_not_redirected() -> None:
    """Requests of 0.5 s on target 0; the one at 1.5 s is the first on target 1."""
    parted = Writer.of_requests("A", 4, 2.0, merges=True)
    run = simulate_buffers(Storage(8.0, 2), [parted], moved_at(0.25))
    assert run.carried == pytest.approx((6.0 + 2.0, 2.0))
    assert ends(run) == pytest.approx([2.5])
    # Without a merge, redirecting costs nothing.
    free = Writer.of_requests("A", 4, 2.0)
    run = simulate_buffers(Storage(8.0, 2), [free], moved_at(0.25))
    assert run.carried == pytest.approx((2.0, 6.0))


def test_the_age_of_files_counts_from_their_opening() -> None:
    """They were opened 1 s before the first write."""
    early = Writer.of_requests("A", 4, 2.0, start_s=1.0, merges=True, opened_s=0.0)
    run = simulate_buffers(Storage(8.0, 2), [early], moved_at(0.5))
    assert run.carried == pytest.approx((2.0 + 6.0, 6.0))


def test_a_writer_that_reopens_its_files_merges_first_and_then_uses_new_targets() -> (
    None
):
    """2 s on target 0, 1 s apart on 1, 1 s of merging, 1 s on 1 in new files."""
    acts = (Act.WRITE, 8.0), (Act.WRITE, 4.0), (Act.REOPEN, 0.0), (Act.WRITE, 4.0)
    steps = tuple(Step(*each) for each in (*acts, (Act.CLOSE, 0.0)))
    run = simulate_buffers(
        Storage(8.0, 2), [Writer("A", steps, merges=True)], moved_at(2.0)
    )
    assert len(run.phases[0]) == 1
    assert ends(run) == pytest.approx([5.0])
    assert run.carried == pytest.approx((8.0 + 4.0, 4.0 + 4.0))


def test_what_was_redirected_is_merged_before_data_is_staged() -> None:
    """2 s on target 0, 1 s apart on 1, 1 s of merging; then a drain of 1 s."""

    def move_and_stage(s: Situation) -> StagingPlan:
        order = StagingOrder((int(s.now_s >= 2.0),), stage=s.now_s >= 3.0, drain=True)
        wakes = [at_s for at_s in (2.0, 3.0, inf) if at_s > s.now_s]
        return StagingPlan([order], wakes[0])

    acts = (Act.WRITE, 8.0), (Act.WRITE, 4.0), (Act.WRITE, 4.0), (Act.CLOSE, 0.0)
    steps = tuple(Step(*each) for each in acts)
    run = simulate_buffers(
        Storage(8.0, 2),
        [Writer("A", steps, merges=True)],
        strategy(move_and_stage),
        FAST,
    )
    assert ends(run) == pytest.approx([5.0])
    assert run.carried == pytest.approx((8.0 + 4.0 + 4.0, 4.0))


def test_a_writer_that_reopens_its_files_waits_until_its_data_are_drained() -> None:
    steps = tuple(
        Step(*each) for each in ((Act.WRITE, 10.0), (Act.REOPEN, 0.0), (Act.CLOSE, 0.0))
    )
    run = simulate_buffers(ONE, [Writer("A", steps)], always(), FAST)
    assert ends(run) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("opened", "later", "carried"),
    [
        # Two files on one target, later on two of four.
        ((0,), (0, 1, 2, 3), (6.0, 2.0, 0.0, 0.0)),
        # Four files on two targets, later two, one and one on three.
        ((0, 1), (1, 2, 3), (2.0, 4.0, 1.0, 1.0)),
    ],
)
def test_files_are_redirected_as_a_whole(
    opened: tuple[int, ...], later: tuple[int, ...], carried: tuple[float, ...]
) -> None:
    """Two requests of 4 bytes; a target takes 1 byte/s."""
    before_s = 4.0 / len(opened)

    def widen(s: Situation) -> StagingPlan:
        is_late = s.now_s >= before_s
        order = StagingOrder(later if is_late else opened)
        return StagingPlan([order], inf if is_late else before_s)

    writer = Writer.of_requests("A", 2, 4.0, processes=2, by_file=True)
    run = simulate_buffers(Storage(4.0, 4), [writer], strategy(widen))
    # Half of the second request is on one target.
    assert ends(run) == pytest.approx([before_s + 2.0])
    assert run.carried == pytest.approx(carried)


def test_a_target_with_more_open_files_of_an_application_gives_it_more() -> None:
    """A has two files on target 0. B has one of its two there: a third of the target.

    B wrote on target 2 for 2 s. From then on it needs 2 bytes on each of 0 and 1.
    """

    def share(s: Situation) -> StagingPlan:
        second = StagingOrder((0, 1) if s.now_s >= 2.0 else (2,))
        return StagingPlan([StagingOrder((0,)), second], 2.0 if s.now_s < 2 else inf)

    first = Writer.of_requests("A", 1, 4.0, start_s=2.0, processes=2, by_file=True)
    steps = Step(Act.WRITE, 2.0), Step(Act.WRITE, 4.0), Step(Act.CLOSE)
    second = Writer("B", steps, processes=2, by_file=True)
    run = simulate_buffers(Storage(3.0, 3), [first, second], strategy(share))
    # A has 2/3 of the target until it is done at 8; B by then all of its 2 bytes.
    assert ends(run) == pytest.approx([8.0, 8.0])
    assert run.carried == pytest.approx((6.0, 2.0, 2.0))


def test_a_writer_that_merges_drains_to_the_targets_of_its_files() -> None:
    """It stages 4 bytes on target 0 of 4, which takes 1 byte/s; later it has all."""

    def widen(s: Situation) -> StagingPlan:
        if s.now_s >= 1.0:
            return StagingPlan([StagingOrder((0, 1, 2, 3), drain=True)])
        return StagingPlan([StagingOrder((0,), stage=True)], 1.0)

    writer = Writer.of_requests("A", 1, 4.0, merges=True)
    run = simulate_buffers(Storage(4.0, 4), [writer], strategy(widen), FAST)
    assert ends(run) == pytest.approx([5.0])


@pytest.mark.parametrize(("opened", "time"), [(None, 1.0), (0.0, 2.0)])
def test_files_that_are_opened_early_are_placed_then(
    opened: float | None, time: float
) -> None:
    """B writes when A is done; its files were placed on one target beside A's."""
    second = Writer.of_requests(
        "B", 1, 8.0, start_s=5.0, redirects=False, opened_s=opened
    )
    run = simulate_buffers(Storage(8.0, 2), [burst("A", 8.0), second], "3b")
    assert run.io_times[1] == pytest.approx(time)


def test_every_process_flushes_when_it_has_nothing_else_to_do() -> None:
    """1b: each node of A flushes by itself when it closes its file, while B writes."""
    first = Writer.of_requests("A", 2, 20.0, 2.0, nodes=2, processes=2, jitter=0.5)
    second = burst("B", 100.0, start_s=0.0)
    run = simulate_buffers(ONE, [first, second], "1b", Buffer(1e9, inline=True))
    assert run.drained[0] == pytest.approx(40.0)
    staged = {r.group: r.done for r in run.requests[0]}
    assert len(staged) == 2
    assert staged[0] != staged[1]
    # All is written without a gap: 140 bytes at 10 bytes/s.
    assert run.end_s == pytest.approx(14.0)


def test_the_strategy_is_asked_only_when_something_has_changed() -> None:
    asked = []

    def count(s: Situation) -> StagingPlan:
        asked.append(s.now_s)
        return StagingPlan([StagingOrder(s.all_targets)])

    writer = Writer.of_requests("A", 50, 10.0, 1.0)
    run = simulate_buffers(ONE, [writer], strategy(count))
    # When the phase begins; nothing that a strategy sees changes until its end.
    assert asked == [0.0]
    assert run.decisions == 1
