"""Every metric that a run logs: its meaning in one sentence, and its healthy range.

``docs/metrics.md`` is written from this list: ``python -m tempest_agent.runs.metrics_catalogue``.
"""

from __future__ import annotations

from typing import NamedTuple

from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES


class Metric(NamedTuple):
    """One logged metric."""

    name: str
    group: str
    meaning: str
    healthy: str


def _driver(name: str, meaning: str, healthy: str, group: str) -> list[Metric]:
    who = {"agent": "the agent", "exploration": "exploration", "expert": "the teacher"}
    return [
        Metric(f"{name}_{driver}", group, meaning.format(who=words), healthy)
        for driver, words in who.items()
    ]


def _group(group: str, *rows: tuple[str, str, str]) -> list[Metric]:
    return [Metric(name, group, meaning, healthy) for name, meaning, healthy in rows]


METRICS: tuple[Metric, ...] = (
    *_group(
        "progress",
        ("steps", "Steps of all games together since the start of the run.", "grows"),
        ("frames", "Ticks of all games together, including those without a decision.", "grows"),
        ("games", "Games finished.", "grows, more slowly the longer games last"),
        ("updates", "Steps of the optimiser.", "grows"),
        ("skipped_updates", "Updates skipped because their gradient was not finite.", "0, or rare"),
        ("env_steps_per_second", "Steps per second since the last row.", "steady"),
        ("frames_per_second", "Frames per second since the last row.", "steady"),
        ("updates_per_second", "Updates per second since the last row.", "steady"),
        ("samples_per_second", "Replay rows learned from per second since the last row.", "steady"),
    ),
    *_group(
        "schedule",
        (
            "epsilon",
            "Mean exploration rate over the games: the chance that a step of the student starts a "
            "random action, which is then held (`exploration.hold_max`).",
            "falls to the mean of the ladder, 0.04",
        ),
        ("expert_ratio", "Share of new segments that the teacher gets.", "falls to its floor"),
        (
            "expert_ratio_by_frames",
            "The same by steps alone.",
            "falls to its floor, an upper bound of expert_ratio unless that is raised",
        ),
        (
            "expert_ratio_reason",
            "Why expert_ratio is what it is: 0 steps, 1 performance, 2 raised because the "
            "agent got worse.",
            "0 or 1; 2 now and then",
        ),
        ("n_steps", "Longest n-step return.", "as its schedule says"),
        ("learning_rate", "Step size of the optimiser.", "as its schedule says"),
        ("importance", "Exponent (beta) of the correction for priorities.", "rises to 1"),
        (
            "imitation_gate",
            "Weight of imitation, 1 less the agent's score over the teacher's, "
            "at least `learner.imitation_floor`.",
            "falls as the agent gets better",
        ),
    ),
    *_group(
        "play",
        (
            "teacher_free_score",
            "Mean score of the last 50 finished teacher-free games. Low while few have finished, "
            "because short games finish first.",
            "rises",
        ),
        ("teacher_free_games", "Number of teacher-free games finished in the whole run.", "grows"),
        (
            "teacher_free_score_spread",
            "Standard deviation of the scores of these games.",
            "a smaller fall is chance",
        ),
        (
            "teacher_free_score_1m",
            "Mean score of teacher-free games finished in the last million frames.",
            "rises, with more noise",
        ),
        (
            "teacher_free_score_5m",
            "The same over the last 5 million frames.",
            "rises smoothly",
        ),
        (
            "teacher_free_slope_1m",
            "Slope of the least-squares line through these scores, per million frames.",
            "mostly above 0; noisy from few games",
        ),
        (
            "teacher_free_slope_5m",
            "The same over the last 5 million frames.",
            "above 0 until the score is flat; below 0 while the loss falls is a known failure",
        ),
        (
            "return_slope",
            "Slope of the training return over the last 50 games of any driver, per million "
            "frames.",
            "about 0 while the teacher's share falls, above 0 afterwards",
        ),
        ("level_mean", "Mean level on which the last 50 teacher-free games ended.", "rises"),
        ("level_max", "Highest of these levels.", "rises"),
    ),
    *_driver(
        "return",
        "Mean training return of the last 50 games, each weighted by the share of its steps "
        "driven by {who}.",
        "the agent's rises towards the teacher's",
        "play",
    ),
    *_driver("reward", "Mean reward per step of {who}.", "the agent's nears the teacher's", "play"),
    *_driver("share", "Share of all steps driven by {who}.", "the three add up to 1", "play"),
    *_group(
        "play",
        (
            "deaths",
            "Lives lost per 1,000 steps of the agent.",
            "falls; 1.4 is random play, 0.7 a good agent",
        ),
    ),
    *[
        Metric(
            f"deaths_{cause}",
            "play",
            f"Lives lost to {cause.replace('_', ' ')}, per 1,000 steps of the agent.",
            "falls; what remains is what to work on",
        )
        for cause in DEATH_CAUSES
    ],
    *_group(
        "play",
        ("moves", "Share of the agent's steps that turn the spinner.", "0.1 to 0.95"),
        ("fires", "Share of the agent's steps that fire.", "above 0.5"),
        ("zaps", "Share of the agent's steps that zap.", "below 0.01"),
    ),
    *_group(
        "imitation",
        (
            "agreement",
            "Share of the agent's steps with the teacher's buttons and nearly its turn.",
            "rises early; may fall once the agent plays its own way",
        ),
        (
            "agreement_buttons",
            "Share with the same buttons.",
            "above 0.6 after the first minutes",
        ),
        (
            "agreement_spinner",
            "Share with a turn within 4 of 31 counts of the teacher's.",
            "0.5 or more after the first minutes; a fall to chance (0.15) is a lost spinner",
        ),
        ("imitation_loss", "Loss towards the teacher's labels, before its weight.", "falls"),
        (
            "plan_loss",
            "Cross entropy towards the values of all plans, before its weight "
            "(`teacher.labels=plans`).",
            "falls; its floor is how undecided the plans are, about 3",
        ),
        (
            "plan_regret",
            "Points that the policy expects to lose against the best plan, by where it lands.",
            "falls",
        ),
        (
            "plan_agreement",
            "Share of these states in which the policy's choice has the buttons and the lane of a "
            "best plan.",
            "rises",
        ),
        (
            "policy_entropy",
            "Mean entropy of the policy head in replayed states, in nats; with such a head only.",
            "falls from 5.5, that of all 252 actions alike",
        ),
        (
            "policy_agreement",
            "Mean resemblance of the policy head's choice to the label, 1 if it is the same.",
            "rises",
        ),
    ),
    *_group(
        "values",
        ("loss", "Mean loss on the value.", "falls, then rises slowly as returns grow"),
        ("q_mean", "Mean value of the replayed actions.", "rises with the score"),
        ("q_max", "Highest value since the last row.", "below return_bound and the target clip"),
        ("q_min", "Lowest value since the last row.", "above the negative clip"),
        (
            "reward_unit",
            "Unit of reward in which values are learned (`learner.reward_unit`). All values and "
            "targets here are rewards; losses and gradients are those of the unit.",
            "1, or the size of the rewards",
        ),
        (
            "return_bound",
            "Largest reward seen over 1 - gamma, which no return can exceed.",
            "constant after the first deaths and above q_max",
        ),
        ("target_mean", "Mean target before the clamp.", "close to q_mean"),
        ("target_max", "Largest magnitude of a target before the clamp.", "below return_bound"),
        ("target_clip_hits", "Targets that were clamped since the last row.", "0 or few"),
        ("target_clip_share", "Share of the targets that were clamped.", "below 0.001"),
        ("target_clip_low_share", "Share clamped at the lower end.", "below 0.001"),
        ("target_clip_high_share", "Share clamped at the upper end.", "below 0.001"),
        (
            "effective_n",
            "Mean number of rewards in a target.",
            "near n_steps; smaller with a trace that cuts",
        ),
        (
            "target_age",
            "Mean age in updates of the target network's weights.",
            "half of target_update_interval with tau 1, about interval / tau otherwise",
        ),
        (
            "target_age_max",
            "Highest such age since the last row.",
            "below target_update_interval with tau 1; one that only grows is a stalled target",
        ),
    ),
    *_driver("loss", "Mean loss on the values of rows of {who}.", "of the same size", "values"),
    *_driver("q", "Mean value of replayed rows of {who}.", "of the same size", "values"),
    *_group(
        "spinner",
        (
            "spinner_loss",
            "Loss of the continuous spinner head (negative: it climbs the value).",
            "falls at first, then steady",
        ),
        (
            "spinner_spread",
            "Standard deviation over states of the turns that the head proposes.",
            "0.1 to 0.9; near 0 the head is dead and turns the same way everywhere",
        ),
    ),
    *_group(
        "gradient",
        ("grad_norm", "Mean norm of the gradient before clipping.", "0.1 to max_grad_norm"),
        ("grad_norm_max", "Largest norm since the last row.", "within 20 times the mean"),
        ("grad_norm_encoder", "Mean norm of the encoder's part.", "not 0"),
        ("grad_norm_value", "Mean norm of the value head's part.", "not 0"),
        ("grad_norm_spinner", "Mean norm of the spinner head's part.", "not 0 with such a head"),
        ("grad_norm_policy", "Mean norm of the policy head's part.", "not 0 with such a head"),
        (
            "clip_ratio",
            "Mean ratio of the gradient's norm after clipping to that before.",
            "above 0.9; far below it the step size is set by the clipping alone",
        ),
        ("clip_share", "Share of the updates whose gradient was clipped.", "below 0.3"),
    ),
    *_group(
        "replay",
        ("replay_size", "Rows that can be sampled.", "grows to replay.capacity"),
        ("replay_fill", "Share of the replay that is filled.", "grows to 1 and stays"),
        (
            "sample_age",
            "Mean age of the sampled rows, in steps of all games.",
            "about half of replay_size",
        ),
        ("sample_age_max", "Largest age of a sampled row.", "below replay.capacity"),
    ),
    *_group(
        "guard",
        ("guard_symptoms", "Number of symptoms that the stability guard sees.", "0, none"),
        ("guard_learning_rate", "Its factor on the learning rate.", "1, untouched"),
        ("guard_accumulation", "Its factor on the rows of an update.", "1, untouched"),
        (
            "guard_target_clip",
            "Magnitude to which targets are clamped; 0 is no clamp.",
            "learner.target_clip",
        ),
        ("guard_expert_ratio", "Least share of the teacher that it requires.", "0, untouched"),
        ("guard_rollbacks", "Number of rollbacks to the last good checkpoint.", "0, never"),
    ),
    *_group(
        "actors",
        ("actors_received", "Rows that actors have sent since the start of the run.", "grows"),
        (
            "actors_taken",
            "Rows passed on to the learner, each once.",
            "steps, or up to a chunk of every game more",
        ),
        (
            "actors_lost",
            "Most rows that lost actors may have played in vain.",
            "0, or few for each restart",
        ),
        ("actors_duplicates", "Chunks that came twice and were dropped.", "0, or rare"),
        ("actors_restarts", "Lost and restarted actors.", "0, or rare"),
        (
            "actors_samples_per_second",
            "Rows per second that the learner got (it learned from samples_per_second).",
            "env_steps_per_second",
        ),
        ("actors_bytes_per_second", "Bytes per second of these rows.", "steady"),
        (
            "actors_busy_share",
            "Share of the time that an actor played, on average.",
            "near 1 where actors are the limit",
        ),
        (
            "actors_wait_share",
            "Share of the time that the learner waited for actors.",
            "near 0; more actors, or more processors, make it smaller",
        ),
        (
            "actors_version_lag",
            "Mean number of newer weight versions when the learner got rows.",
            "about `actors.queue`",
        ),
        ("actors_version_lag_max", "Largest such number.", "at most `actors.queue`"),
    ),
    *_group(
        "greedy games",
        (
            "score_iqm",
            "Interquartile mean of the scores at a checkpoint.",
            "rises; the metric to judge a run by",
        ),
        ("score_mean", "Mean score of these games.", "rises"),
        (
            "ticks_mean",
            "Mean length of these games in frames.",
            "rises to where they are truncated",
        ),
        ("deaths_per_1000_ticks", "Lives lost per 1,000 frames of these games.", "falls"),
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}

INTRODUCTION = """\
# Metrics

<!-- Written by: python -m tempest_agent.runs.metrics_catalogue > docs/metrics.md -->

A row is logged every `run.log_interval` steps: to `metrics.csv`, to TensorBoard (`train/...`;
`tensorboard --logdir RUN`), and on the terminal, in short or with `tempest-agent train --verbose`
as a table. Unless a period is given, a metric covers the time since the previous row. Metrics that
do not exist yet (no game has finished, say) are left out. Greedy games, at every checkpoint, are in
`evaluations.csv` and under `eval/...`.

A *frame* is a tick of the game. A *step* is one decision of one game: it lasts `game.frame_skip`
frames, and frames in which no input matters are skipped. *Teacher-free* games are the share
`teacher.free_share` of the games that the teacher never drives. The healthy ranges are for the
default settings; a metric outside is a reason to look, not a proof.
"""


def page() -> str:
    """Return the text of ``docs/metrics.md``."""
    lines = [INTRODUCTION]
    for group in dict.fromkeys(metric.group for metric in METRICS):
        lines += [f"## {group.capitalize()}\n", "| metric | meaning | healthy |", "|---|---|---|"]
        lines += [
            f"| `{metric.name}` | {metric.meaning} | {metric.healthy} |"
            for metric in METRICS
            if metric.group == group
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
