"""Every figure that a run logs: what it means in one sentence, and when it is healthy.

``docs/metrics.md`` is written from this list: ``python -m tempest_agent.runs.metrics_catalogue``.
"""

from __future__ import annotations

from typing import NamedTuple

from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES


class Figure(NamedTuple):
    """One logged figure."""

    name: str
    group: str
    meaning: str
    healthy: str


def _driver(name: str, meaning: str, healthy: str, group: str) -> list[Figure]:
    who = {"agent": "the agent", "exploration": "exploration", "expert": "the teacher"}
    return [
        Figure(f"{name}_{driver}", group, meaning.format(who=words), healthy)
        for driver, words in who.items()
    ]


def _group(group: str, *rows: tuple[str, str, str]) -> list[Figure]:
    return [Figure(name, group, meaning, healthy) for name, meaning, healthy in rows]


FIGURES: tuple[Figure, ...] = (
    *_group(
        "progress",
        ("steps", "Decisions of all games together since the run began.", "grows"),
        ("frames", "Ticks of all games together, those without a decision included.", "grows"),
        ("games", "Games finished.", "grows, more slowly the longer games last"),
        ("updates", "Steps of the optimiser.", "grows"),
        ("skipped_updates", "Updates left out, their gradient not being finite.", "0, or rare"),
        ("env_steps_per_second", "Decisions a second since the last line.", "steady"),
        ("frames_per_second", "Frames a second since the last line.", "steady"),
        ("updates_per_second", "Updates a second since the last line.", "steady"),
        ("samples_per_second", "Rows learned from a second since the last line.", "steady"),
    ),
    *_group(
        "schedule",
        (
            "epsilon",
            "Mean exploration rate over the games: the chance that a decision of the student's "
            "begins a random action, which `exploration.hold_max` then holds.",
            "falls to that of the ladder, 0.04",
        ),
        ("expert_ratio", "Share of new segments that the teacher gets.", "falls to its floor"),
        (
            "expert_ratio_by_frames",
            "The same by decisions alone.",
            "falls to its floor, an upper bound of expert_ratio unless that is raised",
        ),
        (
            "expert_ratio_reason",
            "Why expert_ratio is what it is: 0 decisions, 1 performance, 2 raised because the "
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
            "Mean score of the last 50 ended games that the teacher had no part in. Low while few "
            "have ended, because short games end first.",
            "rises",
        ),
        ("teacher_free_games", "Number of such games that have ended in the whole run.", "grows"),
        (
            "teacher_free_score_spread",
            "Standard deviation of the scores of these games.",
            "a fall by less is chance",
        ),
        (
            "teacher_free_score_1m",
            "The same over the games that ended in the last million frames.",
            "rises, with more noise",
        ),
        (
            "teacher_free_score_5m",
            "The same over the last 5 million frames.",
            "rises smoothly",
        ),
        (
            "teacher_free_slope_1m",
            "Slope of a straight line through the scores of the last million frames, per million.",
            "mostly above 0; noisy from few games",
        ),
        (
            "teacher_free_slope_5m",
            "The same over the last 5 million frames.",
            "above 0 until the score is flat; below 0 while the loss falls is the known disease",
        ),
        (
            "return_slope",
            "Slope of the training return over the last 50 games, whoever drove, per million "
            "frames.",
            "about 0 while the teacher's share falls, above 0 afterwards",
        ),
        ("level_mean", "Mean level on which the last 50 teacher-free games ended.", "rises"),
        ("level_max", "Highest of these levels.", "rises"),
    ),
    *_driver(
        "return",
        "Mean training return of the last 50 games, each counted by the share of its decisions "
        "that {who} made.",
        "the agent's rises towards the teacher's",
        "play",
    ),
    *_driver(
        "reward", "Mean reward of a decision of {who}.", "the agent's nears the teacher's", "play"
    ),
    *_driver("share", "Share of all decisions made by {who}.", "the three add up to 1", "play"),
    *_group(
        "play",
        (
            "deaths",
            "Lives lost per 1,000 decisions of the agent.",
            "falls; 1.4 is random play, 0.7 a good agent",
        ),
    ),
    *[
        Figure(
            f"deaths_{cause}",
            "play",
            f"Those of them by {cause.replace('_', ' ')}.",
            "falls; what stays is what to work on",
        )
        for cause in DEATH_CAUSES
    ],
    *_group(
        "play",
        ("moves", "Share of the agent's decisions that turn the spinner.", "0.1 to 0.95"),
        ("fires", "Share of the agent's decisions that fire.", "above 0.5"),
        ("zaps", "Share of the agent's decisions that zap.", "below 0.01"),
    ),
    *_group(
        "imitation",
        (
            "agreement",
            "Share of the agent's decisions with the teacher's buttons and nearly its turn.",
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
    ),
    *_group(
        "values",
        ("loss", "Mean loss on the value.", "falls, then rises slowly as returns grow"),
        ("q_mean", "Mean value of the replayed actions.", "rises with the score"),
        ("q_max", "Highest value since the last line.", "below return_bound and the target clip"),
        ("q_min", "Lowest value since the last line.", "above the negative clip"),
        (
            "return_bound",
            "Largest reward seen over 1 - gamma, which no return can exceed.",
            "constant after the first deaths and above q_max",
        ),
        ("target_mean", "Mean target before the clamp.", "close to q_mean"),
        ("target_max", "Largest magnitude of a target before the clamp.", "below return_bound"),
        ("target_clip_hits", "Targets that were clamped since the last line.", "0 or few"),
        ("target_clip_share", "Share of the targets that were clamped.", "below 0.001"),
        ("target_clip_low_share", "Share clamped at the lower end.", "below 0.001"),
        ("target_clip_high_share", "Share clamped at the upper end.", "below 0.001"),
        (
            "effective_n",
            "Mean number of decisions that a target rests on.",
            "near n_steps; smaller with a trace that cuts",
        ),
        (
            "target_age",
            "Mean age in updates of the target network's weights.",
            "half of target_update_interval with tau 1, about interval / tau otherwise",
        ),
        (
            "target_age_max",
            "Highest such age since the last line.",
            "below target_update_interval with tau 1; one that only grows is a stalled target",
        ),
    ),
    *_driver("loss", "Mean loss on the value of decisions of {who}.", "of the same size", "values"),
    *_driver("q", "Mean value of replayed decisions of {who}.", "of the same size", "values"),
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
        ("grad_norm_max", "Largest norm since the last line.", "within 20 times the mean"),
        ("grad_norm_encoder", "Mean norm of the encoder's part.", "not 0"),
        ("grad_norm_value", "Mean norm of the value head's part.", "not 0"),
        ("grad_norm_spinner", "Mean norm of the spinner head's part.", "not 0 with such a head"),
        (
            "clip_ratio",
            "Mean ratio of the gradient's norm after clipping to that before.",
            "above 0.9; far below it the step size is set by the clipping alone",
        ),
        ("clip_share", "Share of the updates whose gradient was clipped.", "below 0.3"),
    ),
    *_group(
        "replay",
        ("replay_size", "Decisions that can be sampled.", "grows to replay.capacity"),
        ("replay_fill", "Share of the replay that is filled.", "grows to 1 and stays"),
        (
            "sample_age",
            "Mean age of the sampled rows, in decisions of all games.",
            "about half of replay_size",
        ),
        ("sample_age_max", "Largest age of a sampled row.", "below replay.capacity"),
    ),
    *_group(
        "guard",
        ("guard_symptoms", "Symptoms that the stability guard sees.", "0, none"),
        ("guard_learning_rate", "Its factor on the learning rate.", "1, untouched"),
        ("guard_accumulation", "Its factor on the rows of an update.", "1, untouched"),
        (
            "guard_target_clip",
            "Magnitude to which targets are clamped; 0 is no clamp.",
            "learner.target_clip",
        ),
        ("guard_expert_ratio", "Least share of the teacher that it asks for.", "0, untouched"),
        ("guard_rollbacks", "How often it went back to the last good checkpoint.", "0, never"),
    ),
    *_group(
        "actors",
        ("actors_received", "Rows that actors have sent since the run began.", "grows"),
        (
            "actors_taken",
            "Those of them handed on to the learner, each once.",
            "steps, or up to a chunk of every game more",
        ),
        (
            "actors_lost",
            "Rows that actors which were lost may have played in vain, at most.",
            "0, or few for each restart",
        ),
        ("actors_duplicates", "Chunks that came twice and were dropped.", "0, or rare"),
        ("actors_restarts", "Actors that were lost and begun anew.", "0, or rare"),
        (
            "actors_samples_per_second",
            "Rows a second that the learner got; it learned from samples_per_second.",
            "env_steps_per_second",
        ),
        ("actors_bytes_per_second", "Bytes a second of these rows.", "steady"),
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
            "Mean number of newer versions of the weights when the learner got rows.",
            "about `actors.queue`",
        ),
        ("actors_version_lag_max", "Largest such number.", "at most `actors.queue`"),
    ),
    *_group(
        "greedy games",
        (
            "score_iqm",
            "Interquartile mean of the scores at a checkpoint.",
            "rises; the figure to judge a run by",
        ),
        ("score_mean", "Their mean.", "rises"),
        ("ticks_mean", "Mean length of these games in frames.", "rises to where they are cut"),
        ("deaths_per_1000_ticks", "Lives lost per 1,000 frames in them.", "falls"),
    ),
)

BY_NAME = {figure.name: figure for figure in FIGURES}

INTRODUCTION = """\
# Metrics

<!-- Written by: python -m tempest_agent.runs.metrics_catalogue > docs/metrics.md -->

A line is logged every `run.log_interval` decisions: to `metrics.csv`, to TensorBoard (`train/...`;
`tensorboard --logdir RUN`), and on the terminal, in short or with `tempest-agent train --verbose`
as a table. Where nothing is said of a period, a figure is of the time since the line before. What
has not happened yet (no game has ended, say) is left out. Greedy games, at every checkpoint, are in
`evaluations.csv` and under `eval/...`.

A *frame* is a tick of the game; a *decision* lasts `game.frame_skip` of them, and those in which no
input matters are skipped. *Teacher-free* games are the share `teacher.free_share` of the games that
the teacher never drives. The healthy ranges are those of runs with the default settings; a figure
outside is a reason to look, not a proof.
"""


def page() -> str:
    """``docs/metrics.md`` as text."""
    lines = [INTRODUCTION]
    for group in dict.fromkeys(figure.group for figure in FIGURES):
        lines += [f"## {group.capitalize()}\n", "| figure | meaning | healthy |", "|---|---|---|"]
        lines += [
            f"| `{figure.name}` | {figure.meaning} | {figure.healthy} |"
            for figure in FIGURES
            if figure.group == group
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
