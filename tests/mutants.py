"""Break the package on purpose, one line at a time, and see the tests notice: `python tests/mutants.py [word ...]`.

A test that has never failed proves nothing. Each row below names a file, a piece of its text, what to put in its place,
and the tests that must fail then. The package and its tests are copied to a temporary folder first; nothing here
touches the working tree. Words on the command line pick the rows that contain one of them. The exit status is the
number of mutants that survived.
"""

import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True
os.environ["OMP_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    what: str
    file: str
    old: str
    new: str
    tests: str


FEDAVG, SCAFFOLD = "algorithms/fedavg.py", "algorithms/scaffold.py"
FEDSUB, SSF = "algorithms/fedsub.py", "algorithms/ssf.py"
READ_FEDSUB, READ_FLSS = "algorithms/readings/fedsub.py", "algorithms/readings/flss.py"
READ_SSF, READ_DECOMFL = "algorithms/readings/ssf.py", "algorithms/readings/decomfl.py"
MATRIX, LOGISTIC = "problems/matrix_regression.py", "problems/logistic_regression.py"
QUADRATIC = "problems/quadratic.py"
MODULES = "problems/models/modules.py"

T_FEDAVG = "test_transcripts.py::test_fedavg"
T_FAMILY = "test_theory_ssf.py::test_verdict_and_control[ssf.family]"
T_SCAFFOLD = "test_transcripts.py::test_scaffold"
T_FEDSUB = "test_transcripts.py::test_fedsub"
T_PARTIAL = "test_transcripts.py::test_fedsub_partial_participation"
T_SSF = "test_transcripts.py::test_ssf"
T_TRAFFIC = "test_messages.py::test_traffic_by_hand"
T_REPLAY = "test_messages.py::test_a_client_that_was_away_rebuilds_the_model_bit_for_bit"
T_DAMAGED = "test_robust.py::test_damaged_checkpoints_are_seen_and_the_one_before_is_used"
T_RENEWED = "test_messages.py::test_a_client_that_was_away_rebuilds_its_dual_and_the_projector"
T_FAILED = "test_robust.py::test_a_failed_write_leaves_the_old_checkpoint_and_no_temporary_file"
T_RESUMED = "test_robust.py::test_a_resumed_run_has_the_bits_of_an_unbroken_one"
T_FIELDS = "test_bad_input.py::test_every_field_of_every_algorithm"
T_INPUT = "test_bad_input.py::test_bad_argument"
MODELS, IMAGES, GATE, NETS = (
    "problems/models/networks.py",
    "problems/images.py",
    "federation/admission.py",
    "test_networks.py",
)
AVERAGE, ACCURACY, CURVES = "core/algorithm.py", "papers/accuracy.py", "papers/decomfl/curves.py"
TOGETHER, MADE = "papers/together.py", "test_together.py::test"
AUGMENT, AUGMENTED = "problems/augment.py", "test_augment.py"
T_STACK = f"{NETS}::test_stacked_networks_are_the_networks_one_by_one"
T_APART = f"{NETS}::test_stacked_clients_equal_clients_one_by_one"
T_PASS = f"{NETS}::test_one_client_with_one_pass_is_an_epoch_of_sgd"
SHARDS = "test_shards.py"
T_BLOCKS = f"{SHARDS}::test_blocks_hold_every_client_once_and_are_alike_in_size"
T_ONE = f"{SHARDS}::test_blocks_are_what_decides_the_bits_and_they_change_rounding_only"
T_ROWS = f"{SHARDS}::test_a_memory_map_holds_what_memory_need_not"
T_EVERY = f"{SHARDS}::test_any_number_of_processes_makes_the_same_bits"
T_GATE = "test_admission.py::test_damaged_uploads_are_refused"
CATCH_UP = "federation/catch_up.py"
CODEC, HALVES, HALVED = "federation/codec.py", "federation/halves.py", "test_halves.py"
T_BITS, T_BAD = f"{HALVED}::test_the_bits_and_the_bytes_of_a_run", f"{HALVED}::test_a_bad_upload_is_refused"
T_LOST = f"{HALVED}::test_uploads_that_are_lost_leave_no_trace"
REG = "test_regularised.py"
PROX, DYN, DC = "algorithms/fedprox.py", "algorithms/feddyn.py", "algorithms/feddc.py"
MOON, NTD, GEN = "algorithms/moon.py", "algorithms/fedntd.py", "algorithms/fedgen.py"

FEDZO, BAFFLE, ZERO = "algorithms/fedzo.py", "algorithms/baffle.py", "test_zeroth_baselines.py"
COMPRESS, PRESSED = "maps/compress.py", "test_compressed.py"
T_PRESSED, T_KEPT = f"{PRESSED}::test_transcript", f"{PRESSED}::test_error_feedback_conserves_what_was_not_sent"

PACKAGED, FILES, T_PACKAGED = "problems/models/packaged.py", "core/files.py", "test_packaged.py::test_"
SMOLLM, T_SMOLLM = "papers/decomfl/smollm.py", "test_smollm.py::test_"
T_DOOR = "test_wire.py::test_processes_with_a_door_meet_in_its_folder"
STORE, T_RESUMES = "papers/store.py", "test_store.py::test_a_long_run_goes_on_where_it_stopped"

NEWER_LORA = "test_newer_lora.py"
NEWER, T_NEWER = "test_newer.py", "test_newer.py::test_transcript"
LOWRANK = "test_lowrank_baselines.py"
T_LOW = f"{LOWRANK}::test_transcript"

MUTANTS = [
    # FedAvg
    Mutant("sum for mean", FEDAVG, "up.dy.mean(0)", "up.dy.sum(0)", T_FEDAVG),
    Mutant("weights not renormalised", AVERAGE, "return p / p.sum()", "return p", T_FEDAVG),
    Mutant("any number of local steps", AVERAGE, '    "local_steps": checks.count,\n', "", T_FIELDS),
    Mutant("no server step size", FEDAVG, "server.x + self.server_lr * change", "server.x + change", T_FEDAVG),
    Mutant("gradient ascent", FEDAVG, "alpha=self.lr)", "alpha=-self.lr)", "test_laws.py::test_one_client_is_sgd"),
    Mutant("the first batch in every step", FEDAVG, "xi[k]", "xi[0]", "test_laws.py::test_one_client_is_sgd"),
    # SCAFFOLD
    Mutant("sign of the correction", SCAFFOLD, "down.c - own.c\n", "own.c - down.c\n", T_SCAFFOLD),
    Mutant(
        "no correction",
        SCAFFOLD,
        "y.sub(g + correction,",
        "y.sub(g,",
        "test_laws.py::test_fedavg_stalls_where_scaffold_arrives",
    ),
    Mutant("sign in option II", SCAFFOLD, "self.lr) - correction", "self.lr) + correction", T_SCAFFOLD),
    Mutant("option II without K", SCAFFOLD, "(-self.local_steps * self.lr)", "-self.lr", T_SCAFFOLD),
    Mutant("c without |S|/N", SCAFFOLD, "share * mean", "mean", T_SCAFFOLD),
    Mutant("c over N, not S", SCAFFOLD, "else mean\n", "else mean * len(clients) / server.n\n", T_SCAFFOLD),
    Mutant(
        "stored controls lose their mean",
        SCAFFOLD,
        "len(clients) / server.n if",
        "1 / server.n if",
        "test_laws.py::test_server_control_all_is_the_mean_of_the_stored_controls",
    ),
    Mutant(
        "option I at the last iterate",
        SCAFFOLD,
        "problem.grads(down.x.expand_as(own.c), problem.full",
        "problem.grads(y, problem.full",
        "test_transcripts.py::test_scaffold test_laws.py::test_the_solution_is_a_fixed_point",
    ),
    # FedSub
    Mutant("r/m missing", READ_FEDSUB, "if self.gradient_factor else 1.0", "if False else 1.0", T_FEDSUB),
    Mutant("r/m upside down", FEDSUB, "1 / self.projection.norm2", "self.projection.norm2", T_FEDSUB),
    Mutant("dual without tau", FEDSUB, "own.dual / (lr * tau)", "own.dual / lr", T_FEDSUB),
    Mutant("dual without eta", FEDSUB, "own.dual / (lr * tau)", "own.dual / tau", T_FEDSUB),
    Mutant("sign of the dual", FEDSUB, "own.sent[clients] - reply.mean", "reply.mean - own.sent[clients]", T_FEDSUB),
    Mutant("refresh off by one", READ_FEDSUB, "if k % self.refresh", "if (k - 1) % self.refresh", T_FEDSUB),
    Mutant("dual not rotated", FEDSUB, "return P_next.project(P.lift(dual))", "return dual", T_FEDSUB),
    Mutant(
        "sums added up",
        FEDSUB,
        "own.dual.index_copy(0, clients, change)",
        "own.dual.index_add(0, clients, change)",
        T_FEDSUB,
    ),
    Mutant("sums send B", FEDSUB, 'B if self.form == "printed" else U', "B", T_FEDSUB),
    Mutant("absent clients rotate anyway", READ_FEDSUB, 'and self.absent == "keep":', "and False:", T_PARTIAL),
    Mutant("absent clients stay behind", READ_FEDSUB, 'and self.absent == "keep":', "and True:", T_PARTIAL),
    Mutant(
        "stepped absent clients stand still", READ_FEDSUB, "everyone if self.steps else clients", "clients", T_PARTIAL
    ),
    Mutant("everyone steps", READ_FEDSUB, "everyone if self.steps else clients", "everyone", T_PARTIAL),
    Mutant(
        "stale endpoints keep old coordinates",
        READ_FEDSUB,
        "reply.P_next is not None and self.turns_endpoints",
        "False",
        T_PARTIAL,
    ),
    Mutant(
        "stale endpoints always turned",
        READ_FEDSUB,
        'return self.absent == "step turned"',
        "return self.steps",
        T_PARTIAL,
    ),
    Mutant(
        "the server's endpoints keep old coordinates",
        READ_FEDSUB,
        "self.turns_endpoints and self.rotate",
        "False and self.rotate",
        T_PARTIAL,
    ),
    Mutant(
        "a stepped dual stays as it is",
        READ_FEDSUB,
        "return Own(dual if reply.lr_ratio is None else reply.lr_ratio * dual, sent)",
        "return Own(own.dual if self.steps else dual, sent)",
        f"{T_PARTIAL} test_laws.py::test_where_all_take_part_nobody_is_absent",
    ),
    Mutant("no dual for who was away", READ_FEDSUB, "if self.dual and self.steps:", "if False:", T_TRAFFIC),
    Mutant("a dual for everyone", READ_FEDSUB, "sum(lag != 1 for lag in lags)", "len(lags)", T_TRAFFIC),
    Mutant("a dual before the first round", READ_FEDSUB, "if self.round else Cost()", "if True else Cost()", T_TRAFFIC),
    Mutant(
        "no dual for a newcomer",
        READ_FEDSUB,
        "lag != 1 for lag",
        "lag not in (1, None) for lag",
        "test_messages.py::test_a_server_can_make_the_dual_that_it_sends_again",
    ),
    Mutant(
        "any word for absent",
        READ_FEDSUB,
        '"keep", "step", "step turned"))',
        '"keep", "step", "step turned", "steps"))',
        T_INPUT,
    ),
    Mutant(
        "the other product",
        READ_FEDSUB,
        "P1.T @ P0",
        "P0.T @ P1",
        "test_laws.py::test_line_12_in_either_order_of_its_products",
    ),
    Mutant(
        "the rate decays a round late",
        READ_FEDSUB,
        "(k // self.decay_every)",
        "((k - 1) // self.decay_every)",
        "test_laws.py::test_fedsub_decaying_rate",
    ),
    Mutant(
        "dual rescaled upside down",
        READ_FEDSUB,
        "self.rate(k) / self.rate(k - 1)",
        "self.rate(k - 1) / self.rate(k)",
        "test_laws.py::test_fedsub_decaying_rate",
    ),
    Mutant("the reply's P charged again", READ_FEDSUB, "ahead=int(turned)", "ahead=0", T_RENEWED),
    Mutant("the latest seed for all missed", READ_FEDSUB, 'every=turned and self.absent == "rotate"', "", T_RENEWED),
    Mutant("seeds for a dual that stays", READ_FEDSUB, 'turned and self.absent == "rotate"', "turned", T_RENEWED),
    Mutant("a reply to nobody", FEDSUB, "if self.dual else None", "if True else None", T_TRAFFIC),
    Mutant("stored endpoints forgotten", READ_FEDSUB, "stored.index_copy(0, clients, up.B)", "stored * 1", T_PARTIAL),
    Mutant(
        "stored mean over S", READ_FEDSUB, "mean = stored.mean(0)", "mean = stored.sum(0) / len(clients)", T_PARTIAL
    ),
    # SSF
    Mutant("sign of the correction", SSF, "c_proj - ci_proj, torch", "ci_proj - c_proj, torch", T_SSF),
    Mutant("no backfill of c_i", SSF, "c = own.c + P.lift(mean - ci_proj)", "c = P.lift(mean)", T_SSF),
    Mutant("no backfill of x", SSF, "P.lift(x_proj) + x_res  # 15", "P.lift(x_proj)  # 15", T_SSF),
    Mutant("no backfill of c", SSF, "server.c + P.lift(self", "P.lift(down.c_proj + self", T_SSF),
    Mutant("gradients away from the residual", SSF, "P.lift(y_proj) + x_res", "P.lift(y_proj)", T_SSF),
    Mutant("1/K missing", SSF, "mean = total / self.local_steps", "mean = total", T_SSF),
    Mutant("eta_g missing", SSF, "x_proj - self.server_lr * (x_proj", "x_proj - (x_proj", T_SSF),
    Mutant("refresh off by one", READ_SSF, "new.t % self.refresh", "(new.t - 1) % self.refresh", T_SSF),
    Mutant("c without S/N", READ_SSF, "(len(up.c_proj) / server.n) * ", "", T_SSF),
    Mutant("family: c without S/N", READ_SSF, "(len(up.c_proj) / server.n) * ", "", T_FAMILY),
    Mutant("family: no backfill", SSF, "c = own.c + P.lift(mean - ci_proj)", "c = P.lift(mean)", T_FAMILY),
    Mutant("family: a long step", FEDSUB, "x = server.x + P.lift(mean)", "x = server.x + P.lift(3 * mean)", T_FAMILY),
    Mutant("family: no r/m", FEDSUB, "g = r_m * gradient(B, t)", "g = gradient(B, t)", T_FAMILY),
    Mutant("the wrong projector to replay", SSF, "Step(down.P, x_proj)", "Step(P_next, x_proj)", T_REPLAY),
    Mutant("an old step to replay", SSF, "Step(down.P, x_proj)", "Step(down.P, P.project(server.x))", T_REPLAY),
    # messages
    Mutant(
        "lag off by one",
        "core/message.py",
        "(self.round - lag) // self.period",
        "(self.round - lag + 1) // self.period",
        T_REPLAY,
    ),
    Mutant("lag off by one", "core/loop.py", "t - last_seen[i] for", "t - last_seen[i] - 1 for", T_TRAFFIC),
    Mutant(
        "uplink counted twice",
        "core/loop.py",
        "    sent = cost(up)",
        "    sent = cost(up) * 2",
        T_TRAFFIC,
    ),
    Mutant("edges are not heeded", "core/engine.py", "for edge in edges)})", "for edge in edges[:0])})", T_BLOCKS),
    Mutant("closed rows are not kept", "core/loop.py", "leaf[a:b].copy_(new), own", "leaf, own", T_ONE),
    Mutant(
        "rows of a part that lie elsewhere",
        "running/private_rows.py",
        "rows[a - part.start :",
        "rows[a - start :",
        T_ROWS,
    ),
    Mutant("a part that is damaged is whole", "running/private_rows.py", "!= part.sha256", "== part.sha256", T_ROWS),
    Mutant(
        "uploads in the order of arrival",
        "running/shards.py",
        "zip(found, counts)]",
        "zip(found[::-1], counts)]",
        T_EVERY,
    ),
    Mutant(
        "everyone sits out elsewhere", "running/shards.py", "clients >= self.start", "clients > self.start", T_EVERY
    ),
    Mutant(
        "draws counted by the round",
        FEDSUB,
        "(self.round - lag + self.ahead) // self.period",
        "(self.round - lag + self.ahead)",
        "test_messages.py::test_a_renewed_value_costs_a_seed_for_each_draw_it_missed",
    ),
    Mutant("one receiver pays", "core/loop.py", "cost(reply) * len(clients)", "cost(reply)", T_TRAFFIC),
    Mutant("a small seed", "core/message.py", "SEED_BYTES = 8", "SEED_BYTES = 4", T_TRAFFIC),
    Mutant("bytes are scalars", "core/message.py", "count * part.element_size()", "count * 8", T_TRAFFIC),
    Mutant(
        "steps at any price",
        "core/message.py",
        "missed is None or step.bytes * missed - held.bytes >= dense.bytes",
        "missed is None",
        "test_messages.py::test_a_replay_never_costs_more_than_the_value",
    ),
    Mutant(
        "strangers cross for free",
        "core/message.py",
        "elif part is None:",
        "elif part is None or isinstance(part, (dict, str)):",
        "test_messages.py::test_a_type_without_a_size_is_refused",
    ),
    Mutant(
        "keys by joining names",
        "core/key.py",
        "repr((self.seed, self.path)).encode()",
        '"".join(map(str, (self.seed, *self.path))).encode()',
        "test_messages.py::test_keys_are_names_and_not_sums",
    ),
    Mutant(
        "draws of the global generator",
        "maps/subspace.py",
        "torch.randn(layer.rows, r, generator=generator, dtype=torch.float64)",
        "torch.randn(layer.rows, r, dtype=torch.float64)",
        "test_messages.py::test_a_seed_is_rebuilt_from_its_key",
    ),
    Mutant(
        "draws of the global generator",
        "maps/subspace.py",
        "torch.randperm(layer.rows, generator=generator)[:r]",
        "torch.randperm(layer.rows)[:r]",
        "test_robust.py::test_same_seed_same_bits_whatever_the_global_generator",
    ),
    # bases
    Mutant(
        "P not orthonormal",
        "maps/subspace.py",
        "q, upper = torch.linalg.qr(gauss)",
        "q, upper = gauss, gauss[: gauss.shape[1]]",
        "test_subspace.py::test_gram_matrix",
    ),
    Mutant(
        "scale without the root",
        "maps/subspace.py",
        "math.sqrt(layer.rows / r)",
        "(layer.rows / r)",
        "test_subspace.py::test_gram_matrix",
    ),
    Mutant(
        "rows drawn twice",
        "maps/subspace.py",
        "torch.randperm(layer.rows, generator=generator)[:r]",
        "torch.randint(layer.rows, (r,), generator=generator)",
        "test_subspace.py::test_coordinate_draws_every_subset_and_their_mean_is_exact",
    ),
    Mutant(
        "the first rows always",
        "maps/subspace.py",
        "torch.randperm(layer.rows, generator=generator)[:r]",
        "torch.randperm(max(r, layer.rows - 1), generator=generator)[:r]",
        "test_subspace.py::test_coordinate_draws_every_subset_and_their_mean_is_exact",
    ),
    Mutant(
        "QR without its signs",
        "maps/subspace.py",
        "upper.diagonal().sign()",
        "1.0",
        "test_subspace.py::test_spherical_is_haar_and_not_just_some_orthonormal_frame",
    ),
    Mutant(
        "Gaussian of another variance",
        "maps/subspace.py",
        "scale / math.sqrt(len(gauss))",
        "scale / math.sqrt(gauss.shape[1])",
        "test_subspace.py::test_gaussian_entries test_subspace.py::test_mean_projector_is_a_multiple_of_the_identity",
    ),
    Mutant(
        "rank not capped",
        "maps/subspace.py",
        "min(self.rank, layer.rows)",
        "self.rank",
        "test_subspace.py::test_one_rank_is_capped_by_each_layer",
    ),
    Mutant(
        "lift without the weight",
        "maps/subspace.py",
        "self.index, b * self.weight",
        "self.index, b",
        "test_subspace.py::test_project_is_the_adjoint_of_lift",
    ),
    Mutant(
        "drawn in its own precision",
        "maps/subspace.py",
        "gauss = torch.randn(layer.rows, r, generator=generator, dtype=torch.float64)",
        "gauss = torch.randn(layer.rows, r, generator=generator, dtype=dtype)",
        "test_subspace.py::test_float32_is_the_cast_of_float64",
    ),
    Mutant(
        "rows for columns",
        "core/layout.py",
        "(layer.cols, layer.rows)",
        "(layer.rows, layer.cols)",
        "test_problems.py::test_vec_stacks_columns",
    ),
    # problems
    Mutant(
        "1/n_i for 1/b",
        MATRIX,
        "alpha=1 / xi.A.shape[1]",
        "alpha=1 / self.rows",
        "test_problems.py::test_matrix_minibatches_are_unbiased_by_enumeration",
    ),
    Mutant(
        "samples by place, not by client",
        MATRIX,
        "row.add_(self._first).index_select(1, clients)",
        "row[:, : len(clients)] + self._first[clients]",
        "test_problems.py::test_the_sample_of_a_client_does_not_depend_on_who_else_takes_part",
    ),
    Mutant(
        "a row is never drawn",
        MATRIX,
        "torch.randint(self.rows, ",
        "torch.randint(max(self.rows - 1, 1), ",
        "test_problems.py::test_matrix_minibatches_draw_every_row_alike",
    ),
    Mutant(
        "regulariser missing",
        LOGISTIC,
        ".add_(y, alpha=self.lam)",
        "",
        "test_problems.py::test_gradients_are_the_gradients_of_the_losses",
    ),
    Mutant(
        "x* not quite",
        LOGISTIC,
        "x_star=x.to",
        "x_star=(x * (1 + 1e-11)).to",
        "test_problems.py::test_logistic_solution_is_certified",
    ),
    Mutant(
        "1/4 forgotten in L",
        LOGISTIC,
        "(4 * Z.shape[1])",
        "Z.shape[1]",
        "test_problems.py::test_logistic_smoothness_is_attained_at_zero",
    ),
    Mutant(
        "noise of one sign",
        QUADRATIC,
        "2 * torch.randint(2, (steps, self.n, 1), generator=key.generator()) - 1",
        "torch.randint(2, (steps, self.n, 1), generator=key.generator())",
        "test_problems.py::test_two_point_noise_draws_both_signs_alike_and_independently",
    ),
    Mutant(
        "one sign for all clients",
        QUADRATIC,
        "(steps, self.n, 1), generator=key.generator()) - 1",
        "(steps, 1, 1), generator=key.generator()).expand(-1, self.n, -1) - 1",
        "test_problems.py::test_two_point_noise_draws_both_signs_alike_and_independently",
    ),
    Mutant(
        "the start is the best record",
        ACCURACY,
        "max(percents(result)[1:], default=math.nan)",
        "max(percents(result))",
        "test_accuracy.py::test_the_last_and_the_best_by_hand",
    ),
    Mutant(
        "the last record for the last three",
        ACCURACY,
        "percents(result)[-n:]",
        "percents(result)[-1:]",
        "test_accuracy.py::test_the_last_and_the_best_by_hand",
    ),
    Mutant(
        "the best round is judged",
        "papers/flss/items.py",
        "ours = {label: [last(one) for",
        "ours = {label: [best(one) for",
        "test_accuracy.py::test_tables_show_the_best_round_beside_what_is_judged",
    ),
    Mutant(
        "the best round of the last three",
        "papers/flss/items.py",
        "interval([best(one) for one in results])",
        "interval([last(one) for one in results])",
        "test_accuracy.py::test_tables_show_the_best_round_beside_what_is_judged",
    ),
    Mutant(
        "the best round without its warning",
        "papers/flss/items.py",
        "[*notes_of(at, scale), BEST])\n\n\ndef",
        "notes_of(at, scale))\n\n\ndef",
        "test_accuracy.py::test_tables_show_the_best_round_beside_what_is_judged",
    ),
    Mutant(
        "all differences of Figure 4 are the judged ones",
        CURVES,
        'for one in (kind, "projection"))',
        'for one in ("differences", "projection"))',
        "test_figures_decomfl.py::test_figure_4_has_differences_seed_by_seed",
    ),
    Mutant(
        "Figure 4's note is on the judged differences",
        CURVES,
        'interval(ahead("forward differences", lr))',
        'interval(ahead("differences", lr))',
        "test_figures_decomfl.py::test_figure_4_has_differences_seed_by_seed",
    ),
    Mutant(
        "the authors' momentum with its factor",
        CURVES,
        'self.smoothing, self.momentum, scalar="central", dampened=False',
        'self.smoothing, self.momentum, scalar="central"',
        "test_figures_decomfl.py::test_the_authors_files_are_their_settings",
    ),
    Mutant(
        "the authors' runs on the printed split",
        CURVES,
        "problem=reading.options, shared=False",
        "shared=False",
        "test_figures_decomfl.py::test_rows_and_cells_name_their_reading",
    ),
    Mutant(
        "the right panel's rounds shared",
        CURVES,
        "problem=reading.options, shared=False",
        "problem=reading.options",
        "test_figures_decomfl.py::test_the_authors_files_are_their_settings",
    ),
    Mutant(
        "both readings under one name of cells",
        CURVES,
        "return name if self.name == PRINTED else",
        "return name if self.name else",
        "test_figures_decomfl.py::test_rows_and_cells_name_their_reading",
    ),
    Mutant(
        "published accuracies beside the printed reading",
        CURVES,
        "theirs = published if reading.name == AUTHORS",
        "theirs = published if reading.name",
        "test_figures_decomfl.py::test_published_accuracies_stand_beside_ours_in_their_reading_alone",
    ),
    Mutant(
        "the printed reading at the authors' rate",
        CURVES,
        "PRINTED, MOMENTUM, MU, of.options, of.P[0], of.lr,",
        "PRINTED, MOMENTUM, MU, of.options, of.P[0], 5e-4,",
        "test_figures_decomfl.py::test_as_printed_is_what_was_run_before",
    ),
    Mutant(
        "weights of all clients, not of the participants",
        AVERAGE,
        "p = weights[clients] if",
        "p = weights[: len(clients)] if",
        f"{T_SCAFFOLD} {PRESSED}::test_transcript",
    ),
    Mutant(
        "weights that sum to less than one",
        AVERAGE,
        "return p / p.sum()",
        "return p",
        "test_flss.py::test_transcript",
    ),
    Mutant(
        "equal weights are weights",
        AVERAGE,
        "if weighted and not bool((p == p[0]).all()) else None",
        "if weighted else None",
        "test_laws.py::test_clients_of_one_size_give_the_same_bits_weighted_or_not",
    ),
    Mutant("always weighted", AVERAGE, "if weighted and not", "if not", "test_flss.py::test_transcript"),
    Mutant(
        "weights of y_i, not of c_i",
        SCAFFOLD,
        "average(up.c, server.p, clients)",
        "up.c.mean(0)",
        "test_laws.py::test_weighted_scaffold_minimises_the_weighted_loss",
    ),
    Mutant(
        "L of the positive part",
        QUADRATIC,
        "torch.linalg.eigvalsh(H).abs().max()",
        "torch.linalg.eigvalsh(H).max()",
        "test_problems.py::test_quadratic_spectrum_is_attained",
    ),
    Mutant(
        "an unweighted mean",
        QUADRATIC,
        '"i,ijk,ik->j", self.weights, H, b',
        '"i,ijk,ik->j", torch.full_like(self.weights, 1 / len(b)), H, b',
        "test_problems.py::test_quadratic_constants_in_closed_form",
    ),
    Mutant(
        "heterogeneity summed",
        QUADRATIC,
        "heterogeneity=float((grads**2).sum(-1).mean())",
        "heterogeneity=float((grads**2).sum())",
        "test_problems.py::test_constants",
    ),
    Mutant(
        "factored without the regulariser's part",
        MATRIX,
        "self.lam * (both @ frame)",
        "0.0 * (both @ frame)",
        "test_problems.py::test_restricted_gradients test_transcripts.py::test_factored_steps",
    ),
    Mutant(
        "factored with other clients' rows",
        MATRIX,
        "moved = (clients - torch.arange(len(clients), device=self.device)) * self.rows",
        "moved = clients * self.rows",
        "test_problems.py::test_restricted_gradients",
    ),
    Mutant(
        "factored without the targets",
        MATRIX,
        "products[r:] -= B.T",
        "products[r:] -= 0 * B.T",
        "test_problems.py::test_restricted_gradients",
    ),
    Mutant(
        "a grid that never goes on",
        "papers/frontier/items.py",
        "range(1 + BEYOND)",
        "range(1)",
        "test_compare.py::TestRuns::test_a_grid_goes_on_beyond_its_best_end_and_no_further",
    ),
    Mutant(
        "a grid that goes on at the wrong end",
        "papers/frontier/items.py",
        "if end == rates[0] else",
        "if end != rates[0] else",
        "test_compare.py::TestRuns::test_a_grid_goes_on_beyond_its_best_end_and_no_further",
    ),
    Mutant(
        "channels last, said of rows",
        MODELS,
        "(c * height * width, 1, width * c, c)",
        "(c * height * width, 1, c, height * c)",
        T_PASS,
    ),
    Mutant(
        "all clients at once, whatever the cache",
        IMAGES,
        'None if self.device.type == "cuda" else max(1,',
        'None if self.device.type != "cuda" else max(1,',
        f"{NETS}::test_as_many_clients_together_as_a_cache_holds",
    ),
    Mutant(
        "weights of any config",
        "problems/models/language.py",
        "if strangers:",
        "if False:",
        "test_text.py::test_weights_of_another_config",
    ),
    Mutant(
        "one factor per layer, not per column", "maps/subspace.py", "r * layer.cols for layer", "r for layer", T_FEDSUB
    ),
    # a model from a package
    Mutant(
        "any file of the name",
        PACKAGED,
        "if found != model.sha256:",
        "if False:",
        f"{T_PACKAGED}another_file_is_refused",
    ),
    Mutant(
        "gguf is not asked for",
        PACKAGED,
        'metadata.version("gguf")',
        "pass",
        f"{T_PACKAGED}a_missing_package_is_one_line_with_both_commands",
    ),
    Mutant(
        "a file that is not there",
        PACKAGED,
        "if not path.is_file():",
        "if False:",
        f"{T_PACKAGED}a_package_without_its_file_is_missing",
    ),
    Mutant(
        "into a full folder",
        PACKAGED,
        "if out.exists() and not",
        "if False and not",
        f"{T_PACKAGED}what_is_there_stays",
    ),
    Mutant(
        "a model without its tokenizer",
        PACKAGED,
        "        tokenizer.save_pretrained(part)\n",
        "",
        f"{T_PACKAGED}the_loader_takes_the_folder",
    ),
    Mutant(
        "a folder that grows in its place",
        FILES,
        'part = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")',
        "part = folder",
        f"{T_PACKAGED}a_killed_process_leaves_no_folder_in_the_way",
    ),
    Mutant(
        "a folder beside is taken for ours",
        FILES,
        "        part.mkdir()\n",
        "        part.mkdir(exist_ok=True)\n",
        f"{T_PACKAGED}a_folder_beside_stays",
    ),
    Mutant(
        "half a folder beside",
        FILES,
        "        shutil.rmtree(part)\n",
        "        pass\n",
        f"{T_PACKAGED}a_conversion_that_fails_leaves_nothing",
    ),
    # long runs
    Mutant(
        "a worker is born deaf to its end",
        STORE,
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})",
        "pass",
        "test_cli.py::test_a_long_run_is_saved_however_its_command_ends",
    ),
    Mutant(
        "a worker that is asked to end saves nothing",
        STORE,
        'if not _ending["saves"]:',
        "if True:",
        "test_cli.py::test_a_long_run_is_saved_however_its_command_ends",
    ),
    Mutant("long runs start again", STORE, "checkpoint=checkpoints,", "checkpoint=None,", T_RESUMES),
    Mutant(
        "checkpoints stay",
        STORE,
        "            shutil.rmtree(checkpoints, ignore_errors=True)",
        "            pass",
        T_RESUMES,
    ),
    Mutant(
        "every run is kept on the way",
        STORE,
        " if BUILDERS[spec.problem].long(spec, self.device)]",
        "]",
        T_RESUMES,
    ),
    Mutant(
        "directions cost nothing",
        STORE,
        ' * getattr(of, "perturbations", 1)',
        "",
        "test_store.py::test_which_runs_on_images_are_long",
    ),
    Mutant("seconds of a part as of the whole", STORE, "if done[0] else {}", "if False else {}", T_RESUMES),
    # SmolLM2
    Mutant(
        "a rate that diverged is chosen",
        SMOLLM,
        'float("inf") if found["diverged"] else',
        "",
        f"{T_SMOLLM}the_best_rate_is_found_on_the_tuning_seed_also_beyond_the_grid",
    ),
    Mutant(
        "rates within the grid only",
        SMOLLM,
        "if chosen[which] in (rates[0], rates[-1]) else ()",
        "if False else ()",
        f"{T_SMOLLM}the_best_rate_is_found_on_the_tuning_seed_also_beyond_the_grid",
    ),
    Mutant(
        "a fixed rate that gives way to the trials",
        SMOLLM,
        "if fixed[which] is None:",
        "if True:",
        f"{T_SMOLLM}fixed_rates_are_taken_and_what_the_trials_found_is_said",
    ),
    Mutant(
        "clients that differ by their offsets alone",
        "theory/decomfl/round.py",
        "h**2 * second.diagonal() + 2 * h * a * mean + a**2).sum(1)",
        "a**2).sum(1)",
        "test_theory_decomfl.py::test_moments_agree_with_the_client_on_all_directions",
    ),
    Mutant(
        "a constant of DeComFL's second theorem",
        "theory/decomfl/formulas.py",
        "+ 6*(1 - 1/K)*L**2*etat**2",
        "+ 5*(1 - 1/K)*L**2*etat**2",
        "test_formulas.py::test_a_formula_of_a_claim_is_in_its_statement",
    ),
    Mutant(
        "rates of the runs' own seed",
        SMOLLM,
        "rate, TUNING_SEED, trial=True)",
        "rate, 0, trial=True)",
        f"{T_SMOLLM}the_best_rate_is_found_on_the_tuning_seed_also_beyond_the_grid",
    ),
    Mutant(
        "bytes of all clients",
        SMOLLM,
        "/ seeds / CLIENTS / 1e6",
        "/ seeds / 1e6",
        f"{T_SMOLLM}rows_are_percent_rounds_and_bytes_a_client",
    ),
    Mutant(
        "adapters for all",
        SMOLLM,
        '"lora": WAYS[way]',
        '"lora": RANK',
        f"{T_SMOLLM}the_best_rate_is_found_on_the_tuning_seed_also_beyond_the_grid",
    ),
    Mutant(
        "a folder that is no model",
        "problems/text.py",
        "        language.require_name(model)",
        "        pass",
        f"{T_SMOLLM}what_is_missing_is_said_before_any_run",
    ),
    # texts of like length
    Mutant(
        "texts in the order of their lengths",
        "problems/text.py",
        "[order.argsort()]",
        "",
        "test_text.py::test_texts_of_like_length_pass_together",
    ),
    # round loop and engine
    Mutant(
        "chunks of the wrong clients",
        "core/engine.py",
        "problem, clients[some], mine",
        "problem, clients[: len(clients[some])], mine",
        "test_laws.py::test_stacked_clients_equal_clients_one_by_one",
    ),
    Mutant(
        "clients drawn twice",
        "core/loop.py",
        "torch.randperm(n, generator=key.generator())[:sampled]",
        "torch.randint(n, (sampled,), generator=key.generator())",
        "test_robust.py::test_sampled_clients_are_distinct_sorted_and_uniform",
    ),
    Mutant(
        "the last round unrecorded",
        "core/loop.py",
        "self.done % plan.every == 0 or self.done == plan.rounds:",
        "self.done % plan.every == 0:",
        "test_laws.py::test_recording_changes_nothing",
    ),
    Mutant(
        "divergence unseen",
        "core/loop.py",
        "if math.isfinite(float(exchange.server.x.sum())):",
        "if True:",
        "test_robust.py::test_divergence_stops_the_run_and_keeps_the_last_finite_state",
    ),
    Mutant(
        "blame by place",
        "core/loop.py",
        "ids[int(bad.nonzero()[0, 0])]",
        "int(bad.nonzero()[0, 0])",
        "test_robust.py::test_divergence_names_the_client",
    ),
    # checkpoints
    Mutant(
        "SHA not checked",
        "running/checkpoint.py",
        "if hashlib.sha256(body).digest() != digest:",
        "if False:",
        T_DAMAGED,
    ),
    Mutant(
        "pickles allowed",
        "running/checkpoint.py",
        "allow_pickle=False",
        "allow_pickle=True",
        "test_robust.py::test_a_pickled_object_is_refused_even_with_a_valid_hash",
    ),
    Mutant(
        "any run's checkpoint",
        "running/checkpoint.py",
        'if header["identity"] != self.identity:',
        "if False:",
        "test_robust.py::test_a_checkpoint_of_another_run_is_refused",
    ),
    Mutant(
        "a state of another form is read",
        "running/checkpoint.py",
        "    if not isinstance(packed, dict) or list(packed) != names:",
        "    if not isinstance(packed, dict):",
        "test_robust.py::test_a_state_of_another_form_is_another_runs",
    ),
    Mutant(
        "named tuples come back plain",
        "running/checkpoint.py",
        'getattr(template, "_make", tuple)(values)',
        "(type(template)._make(values) if isinstance(template, State) else tuple(values))",
        "test_robust.py::test_a_named_tuple_comes_back_as_one",
    ),
    Mutant(
        "a server's state may change its form",
        "core/contract.py",
        "        if not _fits(new, old):",
        "        if False:",
        "test_do_it_yourself.py::test_a_slip_is_one_line",
    ),
    Mutant(
        "DGC keeps its residual in the old rate's units",
        "algorithms/dgc.py",
        "Own(lr / self.lr * own.U, lr / self.lr * own.V)",
        "Own(lr / self.lr * own.U, own.V)",
        f"{PRESSED}::test_dgc_keeps_gradients_whatever_the_rate",
    ),
    Mutant(
        "a metric is kept as it comes",
        "core/loop.py",
        "checks.outcome(f\"{of if part in METRICS else ''}{part}\", number)",
        "number",
        "test_robust.py::test_a_metric_of_numpys_type_is_kept",
    ),
    Mutant(
        "a checkpoint is named by a repr alone",
        "core/fingerprints.py",
        "    if plain == said and _shown(value):",
        "    if plain == said:",
        "test_robust.py::test_what_a_repr_leaves_out_is_part_of_a_run",
    ),
    Mutant(
        "fields that are not shown do not count",
        "core/fingerprints.py",
        "f.repr and _shown",
        "_shown",
        "test_robust.py::test_what_a_repr_leaves_out_is_part_of_a_run",
    ),
    Mutant(
        "a problem's revision does not count",
        "running/simulate.py",
        'getattr(type(problem), "revision", 1)',
        "1",
        "test_robust.py::test_what_a_repr_leaves_out_is_part_of_a_run",
    ),
    Mutant(
        "NumPy's numbers do not count",
        "core/fingerprints.py",
        "value, kind = checks.plain(value),",
        "value, kind = value,",
        "test_problems.py::test_data_count_wherever_they_are_kept",
    ),
    Mutant(
        "what a function has captured does not count",
        "core/fingerprints.py",
        "    captured = [_content(cell) for cell in function.__closure__ or ()]",
        "    captured = []",
        "test_problems.py::test_data_count_wherever_they_are_kept",
    ),
    Mutant(
        "what a function calls does not count",
        "core/fingerprints.py",
        "(code.co_code, code.co_names, constants)",
        "(code.co_code, constants)",
        "test_problems.py::test_data_count_wherever_they_are_kept",
    ),
    Mutant(
        "functions within functions do not count",
        "core/fingerprints.py",
        "        codes += inner",
        "        pass",
        "test_problems.py::test_data_count_wherever_they_are_kept",
    ),
    Mutant(
        "a run that another process makes is made twice",
        "papers/store.py",
        "        if folder is not None and _result_of(folder).exists():",
        "        if False:",
        "test_store.py::test_a_long_run_that_another_process_makes_is_waited_for",
    ),
    Mutant(
        "only one kept",
        "running/checkpoint.py",
        "_KEEP = 2",
        "_KEEP = 1",
        "test_robust.py::test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one",
    ),
    Mutant(
        "large private state in memory four times",
        "running/checkpoint.py",
        "self.parted or private_rows.large(state.own)",
        "self.parted",
        "test_robust.py::test_large_private_state_is_saved_piece_by_piece",
    ),
    Mutant(
        "checkpoints written in place",
        "core/files.py",
        'path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")',
        "path",
        "test_robust.py::test_killed_runs_resume_with_the_same_bits",
    ),
    Mutant(
        "a lock through a link",
        "core/files.py",
        'os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)',
        "os.O_CREAT",
        "test_robust.py::test_no_file_is_opened_for_writing_through_a_link",
    ),
    Mutant(
        "a checkpoint without a step between records",
        "core/loop.py",
        '"every": extra["every"] >= 1',
        '"every": True',
        "test_robust.py::test_a_checkpoint_made_on_purpose_is_damaged",
    ),
    Mutant("not flushed to disk", "core/files.py", "os.fsync(file.fileno())", "pass", T_FAILED),
    Mutant(
        "temporary file left",
        "core/files.py",
        "temporary.unlink(missing_ok=True)",
        "pass",
        T_FAILED,
    ),
    Mutant(
        "lags forgotten",
        "core/loop.py",
        'extra["round"], extra["last_seen"], extra["columns"]',
        'extra["round"], self.last_seen, extra["columns"]',
        T_RESUMED,
    ),
    Mutant("traffic forgotten", "core/loop.py", 'Cost(*extra["up"])', "Cost()", T_RESUMED),
    Mutant(
        "rounds start over",
        "core/loop.py",
        'self.done, self.last_seen, history.columns = extra["round"],',
        "self.done, self.last_seen, history.columns = 0,",
        T_RESUMED,
    ),
    # arguments
    Mutant(
        "what is misspelt is not named",
        "core/checks.py",
        "        if name not in known:\n",
        "        if name in known:\n",
        "test_bad_input.py::test_misspelt_arguments",
    ),
    Mutant(
        "options of load are passed on unread",
        "problems/images.py",
        "checks.spelled(options, ImageClassification.load, ImageClassification.__init__)",
        "pass",
        "test_bad_input.py::test_misspelt_arguments",
    ),
    Mutant(
        "rates of zero",
        "core/checks.py",
        "number(name, value, 0.0, open_low=True,",
        "number(name, value, 0.0,",
        T_FIELDS,
    ),
    Mutant(
        "rates that are no numbers",
        "core/checks.py",
        "if not math.isfinite(found) or found < low",
        "if value < low",
        T_FIELDS,
    ),
    Mutant(
        "True for 1",
        "core/checks.py",
        "isinstance(value, bool) or not isinstance(value, int)",
        "not isinstance(value, int)",
        T_FIELDS,
    ),
    Mutant("no fix named", "core/checks.py", "Fix: {fix}", "{fix}", T_INPUT),
    Mutant("no upper bound", "core/checks.py", "(high is not None and value > high)", "False", T_INPUT),
    Mutant("asymmetric matrices", QUADRATIC, "if not torch.equal(H, H.mT):", "if False:", T_INPUT),
    Mutant(
        "entries unchecked",
        "core/checks.py",
        "if finite and not bool(torch.isfinite(value).all()):",
        "if False:",
        T_INPUT,
    ),
    # Networks and images
    Mutant(
        "no bias in a stack",
        MODELS,
        "conv2d(_merged(h), weight, bias,",
        "conv2d(_merged(h), weight, None,",
        T_STACK,
    ),
    Mutant(
        "biased variance",
        MODELS,
        "correction=0",
        "correction=1",
        f"{T_STACK} {NETS}::test_moments_are_those_of_the_mixture",
    ),
    Mutant(
        "stride and padding change places in oneDNN's layout",
        MODELS,
        "(self.pad,) * 2, (self.stride,) * 2, (1, 1)",
        "(self.stride,) * 2, (self.stride,) * 2, (1, 1)",
        f"{NETS}::test_a_step_in_onednns_layout_is_the_step",
    ),
    Mutant(
        "oneDNN's layout before a meter's eyes",
        MODELS,
        " or is_in_torch_dispatch_mode():",
        ":",
        f"{NETS}::test_what_is_metered_lies_as_torch_has_it",
    ),
    Mutant(
        "bfloat16 in oneDNN's layout on any processor",
        MODELS,
        "if dtype == torch.bfloat16 and not",
        "if dtype == torch.float16 and not",
        f"{NETS}::test_a_step_needs_no_onednn",
    ),
    Mutant(
        "one value a channel goes to oneDNN, too",
        MODELS,
        "if h.numel() > self.channels:",
        "if True:",
        f"{NETS}::test_one_value_a_channel_in_onednns_layout",
    ),
    Mutant(
        "networks with shortcuts in oneDNN's layout",
        MODELS,
        "and len(images) == 1 and self._chain",
        "and len(images) == 1 and self.convolutional",
        f"{NETS}::test_evaluation_second_derivatives_and_other_networks_stay_in_torchs_layout",
    ),
    Mutant(
        "no second derivative",
        IMAGES,
        "self.network.blocked(images, dtype) if once else images",
        "self.network.blocked(images, dtype)",
        f"{NETS}::test_evaluation_second_derivatives_and_other_networks_stay_in_torchs_layout",
    ),
    Mutant(
        "bf16 computes in full precision",
        IMAGES,
        "dtype = torch.bfloat16 if self.mixed else self.dtype",
        "dtype = self.dtype",
        f"{NETS}::test_bfloat16_rounds_the_products_of_a_chain",
    ),
    Mutant(
        "the words call full precision mixed",
        "papers/store.py",
        'options["precision"] == "bf16"',
        'options["precision"] != "bf16"',
        "test_store.py::test_names_of_stored_runs_stay",
    ),
    Mutant(
        "minimum pooling",
        MODELS,
        "return torch.maximum(h[..., 0::2]",
        "return torch.minimum(h[..., 0::2]",
        f"{NETS}::test_pooling_with_and_without_gradients",
    ),
    Mutant("no shortcut", MODELS, "return out + h", "return out", f"{NETS}::test_networks_are_the_modules"),
    Mutant(
        "padding in front",
        MODELS,
        "(0, 0, 0, 0, 0, self.channels - h.shape[2])",
        "(0, 0, 0, 0, self.channels - h.shape[2], 0)",
        f"{NETS}::test_networks_are_the_modules",
    ),
    Mutant(
        "initial weights twice as wide",
        MODELS,
        "bound * (2 * torch.rand",
        "2 * bound * (2 * torch.rand",
        f"{NETS}::test_initial_weights_are_pytorchs_in_range_and_can_be_normal",
    ),
    Mutant(
        "a pass of images is left out",
        IMAGES,
        "for some in images.chunk(passes)]",
        "for some in 2 * images.chunk(passes)[:1]]",
        f"{NETS}::test_one_model_on_many_images_is_evaluated_in_passes",
    ),
    Mutant(
        "crops all at one row",
        AUGMENT,
        "rows + down,",
        "rows + PADDING,",
        f"{AUGMENTED}::test_networks_see_the_crops_and_flips_that_were_drawn",
    ),
    Mutant(
        "flips the padded image, not the window",
        AUGMENT,
        "width - 1 - columns,",
        "width + 7 - columns,",
        f"{AUGMENTED}::test_networks_see_the_crops_and_flips_that_were_drawn",
    ),
    Mutant(
        "padded by the mean",
        AUGMENT,
        "images.amin((0, 2, 3))",
        "0 * images.amin((0, 2, 3))",
        f"{AUGMENTED}::test_networks_see_the_crops_and_flips_that_were_drawn",
    ),
    Mutant(
        "a window of eight, not nine",
        AUGMENT,
        "torch.randint(2 * PADDING + 1,",
        "torch.randint(2 * PADDING,",
        f"{AUGMENTED}::test_every_window_and_both_sides_are_drawn_alike",
    ),
    Mutant(
        "one crop for all steps",
        IMAGES,
        'self.augment.draw(sum(sizes), key.fold(int(i), "augment")).split(sizes))',
        'self.augment.draw(max(sizes), key.fold(int(i), "augment")).repeat(len(sizes), 1).split(sizes))',
        f"{AUGMENTED}::test_draws_hang_on_the_client_and_the_key_alone",
    ),
    Mutant(
        "all clients crop alike",
        IMAGES,
        'key.fold(int(i), "augment")',
        'key.fold("augment")',
        f"{AUGMENTED}::test_draws_hang_on_the_client_and_the_key_alone",
    ),
    Mutant(
        "crops of the run, not of the round",
        IMAGES,
        'key.fold(int(i), "augment")',
        'self.key.fold(int(i), "augment")',
        f"{AUGMENTED}::test_draws_hang_on_the_client_and_the_key_alone",
    ),
    Mutant(
        "a client's row keeps another's crops",
        "problems/minibatches.py",
        "None if draws is None else draws[row]",
        "None if draws is None else draws[: 1, : self.size[i]]",
        f"{AUGMENTED}::test_epochs_pad_the_draws_with_the_batches",
    ),
    Mutant(
        "a Hessian of batches that all weigh alike",
        "papers/decomfl/spectrum.py",
        'reduction="sum") / len(index)',
        ") / len(parts)",
        "test_spectrum.py::test_hessian_products_in_batches",
    ),
    Mutant(
        "as many seeds at FedMUD's large scale as asked for",
        "papers/mud/settings.py",
        "min(seeds, _MOST_SEEDS)",
        "seeds",
        "test_figures_mud.py::test_seeds_of_fashion_mnists_columns",
    ),
    Mutant(
        "what a paper says of runs counts as theory",
        "papers/conclusions.py",
        'if claim["kind"] != "empirical"]',
        "]",
        "test_conclusions.py::test_the_outcome_is_one_word_and_theory_is_counted_apart",
    ),
    Mutant(
        "the height of a curve with the untrained model",
        "papers/mud/items.py",
        'fmean(result["columns"]["accuracy"][1:])',
        'fmean(result["columns"]["accuracy"])',
        "test_figures_mud.py::test_the_height_of_a_curve_leaves_the_untrained_model_out",
    ),
    Mutant(
        "settings beyond a budget choose",
        "papers/mud/tuning.py",
        "(within(rows, of), rows)",
        "(rows, rows)",
        "test_figures_mud.py::test_what_settings_beyond_a_budget_reach",
    ),
    Mutant(
        "a method of which a setting is finished is finished",
        "papers/mud/tuning.py",
        "if repr((name, rate, a)) in done:",
        "if name in {row['method'] for row in finished}:",
        "test_figures_mud.py::test_settings_that_a_finished_table_lacks_are_run_too",
    ),
    Mutant(
        "a checkpoint without its crops",
        "core/problem.py",
        "name not in self._apart:",
        'name not in (*self._apart, "augment"):',
        f"{AUGMENTED}::test_a_run_that_was_cut_off_goes_on_with_the_same_bits",
    ),
    Mutant(
        "tuned without crops",
        "problems/validation.py",
        'augment=options.get("augment", "none"),',
        "",
        f"{AUGMENTED}::test_black_pads_real_images",
    ),
    Mutant(
        "crops make all stored runs stale",
        "papers/store.py",
        '("augment", "none"), ',
        "",
        f"{AUGMENTED}::test_stored_runs_keep_their_names",
    ),
    Mutant("padding counts", IMAGES, "(each * self._shares(xi)).sum(1)", "each.sum(1)", T_APART),
    Mutant(
        "images are run however little memory there is",
        "papers/store.py",
        "needed.require_room(self.device)",
        "pass",
        "test_deep.py::test_missing_memory_is_said_before_any_work_on_images",
    ),
    Mutant(
        "the next item is asked when the workers have nothing left",
        TOGETHER,
        "most=_AHEAD * runner.workers",
        "most=1",
        f"{MADE}_the_next_item_is_asked_while_workers_have_something_to_do",
    ),
    Mutant(
        "the shortest run first",
        TOGETHER,
        "(place, -what.rounds",
        "(place, what.rounds",
        f"{MADE}_longest_first_and_items_in_their_order",
    ),
    Mutant(
        "a run is made for each item that asks",
        TOGETHER,
        "if what not in self._heads:",
        "if True:",
        f"{MADE}_the_tables_are_those_of_items_made_one_by_one",
    ),
    Mutant(
        "provenance of the items before",
        TOGETHER,
        "self.runner.signed(end.value, item.asked)",
        "self.runner.signed(end.value, [one for item in self._begun for one in item.asked])",
        f"{MADE}_the_tables_are_those_of_items_made_one_by_one",
    ),
    Mutant(
        "an error ends the items before it",
        TOGETHER,
        "self.items, self.error = self.items[:place], error",
        "raise",
        f"{MADE}_an_error_is_raised_when_the_items_before_it_are_done",
    ),
    Mutant(
        "an error is forgotten",
        TOGETHER,
        "if line.error is not None:",
        "if False:",
        f"{MADE}_an_error_is_raised_when_the_items_before_it_are_done",
    ),
    Mutant(
        "finished rows are not passed on",
        TOGETHER,
        "if item.name in self.rows else []",
        "if False else []",
        f"{MADE}_finished_rows_are_given_to_their_item",
    ),
    Mutant(
        "all share the digits",
        "problems/data.py",
        "def _digits(split",
        "@cache\ndef _digits(split",
        "test_data.py::test_digits_are_those_that_scikit_learn_gives",
    ),
    Mutant(
        "Adam without what its square lacks",
        "theory/search.py",
        "self.square.sqrt() / (1 - 0.999**self.count) ** 0.5",
        "self.square.sqrt()",
        "test_theory_ssf.py::test_the_searchs_adam_has_the_bits_of_pytorchs",
    ),
    Mutant(
        "a network's shapes on the meta device",
        MODELS,
        "torch.empty(1, 0, *shape, requires_grad=True), moments",
        'torch.empty(1, 0, *shape, device="meta"), moments',
        "test_house.py::test_a_run_and_a_search_import_no_compiler",
    ),
    Mutant(
        "shapes are not checked",
        MODELS,
        "built.logits(torch.empty(1, built.layout.size), torch.empty(1, 0, *shape, requires_grad=True), moments)",
        "pass",
        f"{NETS}::test_images_too_small_for_a_network_are_refused",
    ),
    Mutant(
        "a killed worker is a traceback",
        "cli/__init__.py",
        "if isinstance(error, BrokenProcessPool):",
        "if False:",
        "test_cli.py::test_a_killed_worker_is_said_in_one_line_with_a_fix",
    ),
    Mutant(
        "Ctrl-C may come while the locks of futures are taken",
        "papers/store.py",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})",
        "signal.pthread_sigmask(signal.SIG_BLOCK, set())",
        "test_cli.py::test_ctrl_c_at_any_call_leaves_no_lock_of_a_future_held",
    ),
    Mutant("a seed is charged twice", "core/message.py", " - c * firsts", "", "test_messages.py::test_traffic_by_hand"),
    Mutant(
        "ReLU lets every gradient pass",
        "problems/models/perceptron.py",
        ".mul_(inputs[j].sign_())",
        "",
        f"{NETS}::test_the_gradient_of_perceptrons_is_that_of_autograd",
    ),
    Mutant(
        "a run within a run takes its memory away",
        "running/allocator.py",
        "if kept and _runs == 0:",
        "if kept:",
        f"{NETS}::test_runs_within_a_run_leave_it_its_memory",
    ),
    Mutant(
        "prompts of one row see each other",
        "problems/models/language.py",
        "apart = (owner[:, :, None] != owner[:, None, :]) | ",
        "apart = ",
        "test_text.py::test_prompts_in_one_row_do_not_see_each_other",
    ),
    Mutant(
        "freed memory goes back to the system",
        "running/allocator.py",
        "torch.empty(_MAPPED, dtype=torch.uint8)",
        "torch.empty(1, dtype=torch.uint8)",
        f"{NETS}::test_a_run_keeps_the_memory_of_its_activations",
    ),
    Mutant(
        "threads hang their weights on one module",
        MODULES,
        "at = self._spare.pop()",
        "at = self._spare[-1]",
        "test_modules.py::test_chunks_and_threads_change_nothing",
    ),
    Mutant(
        "the user's module is trained, and not a copy",
        MODULES,
        "copy.deepcopy(module).to(device, images.dtype)",
        "module.to(device, images.dtype)",
        "test_modules.py::test_it_starts_at_the_modules_own_weights_and_leaves_the_module_alone",
    ),
    Mutant(
        "a translation is not compared with its module",
        MODULES,
        " and isinstance(ops[-1], Linear) and trial.is_of(built(ops)):",
        " and isinstance(ops[-1], Linear):",
        "test_modules.py::test_a_sequence_that_the_packages_operations_do_not_make_stays_a_module",
    ),
    Mutant(
        "a module may mix the images of a batch",
        MODULES,
        "if not alike(alone, first):",
        "if False:",
        "test_modules.py::test_what_is_no_classifier_of_single_images_is_refused",
    ),
    Mutant(
        "what a call hangs on a module stays there",
        MODULES,
        "list(map(_holds, module.modules()))",
        "[]",
        "test_modules.py::test_what_a_call_leaves_on_a_module_is_gone",
    ),
    Mutant(
        "a gradient at other weights is not compared",
        MODULES,
        " and self._alike_in_parts(network, slopes[0], self.slope)",
        "",
        "test_modules.py::test_what_is_no_classifier_of_single_images_is_refused",
    ),
    Mutant(
        "of stacked clients the first one's gradient alone is compared",
        MODULES,
        "slopes[j], each[j][1][0]) for j in range(2))",
        "slopes[j], each[j][1][0]) for j in range(1))",
        "test_modules.py::test_logits_and_gradients_are_autograds_at_any_weights",
    ),
    Mutant(
        "of a network's class the name alone tells",
        "core/fingerprints.py",
        "held, trained, list(map(_describe_class, kinds))]",
        "held, trained]",
        "test_modules.py::test_another_module_is_another_problem",
    ),
    Mutant(
        "oneDNN gets no bias",
        "problems/models/perceptron.py",
        "for rows in zip(x, weight, bias)",
        "for rows in zip(x, weight, torch.zeros_like(bias))",
        f"{NETS}::test_both_libraries_of_products_give_the_gradient",
    ),
    Mutant(
        "oneDNN's product is transposed",
        "problems/models/perceptron.py",
        "zip(a.contiguous(), b.mT, out)",
        "zip(a.mT.contiguous(), b.mT, out)",
        f"{NETS}::test_both_libraries_of_products_give_the_gradient",
    ),
    Mutant(
        "a ragged batch is divided by its longest",
        "problems/models/perceptron.py",
        "(share / delta.sum(-1))[..., None]",
        "(share[0, 0] / delta.sum(-1))[..., None]",
        f"{NETS}::test_the_gradient_of_perceptrons_is_that_of_autograd",
    ),
    Mutant(
        "padding enters the moments",
        IMAGES,
        "return not self.stacked or (self.network.normalised and not xi.full)",
        "return not self.stacked",
        T_APART,
    ),
    Mutant("one model for clients apart", IMAGES, "shared = S > 1 and y.stride(0) == 0", "shared = S > 1", T_APART),
    Mutant(
        "no shared pass",
        IMAGES,
        "shared = S > 1 and y.stride(0) == 0",
        "shared = S < 0",
        f"{NETS}::test_clients_at_one_point_share_one_pass",
    ),
    Mutant(
        "the shift is forgotten",
        IMAGES,
        "shift(j, layer) for j",
        "layer for j",
        f"{NETS}::test_a_shift_made_layer_by_layer_is_the_shifted_model",
    ),
    Mutant(
        "epochs without order",
        "problems/minibatches.py",
        "for row in shuffled().split(self.batch)]",
        "for row in part.split(self.batch)]",
        f"{NETS}::test_an_epoch_is_a_permutation_and_hangs_on_the_client_alone {T_PASS}",
    ),
    Mutant(
        "an epoch drops its last batch",
        "problems/minibatches.py",
        "for _ in range(self.epochs) for row in shuffled().split(self.batch)]",
        "for _ in range(self.epochs) for row in shuffled().split(self.batch)[:-1]]",
        f"{NETS}::test_an_epoch_is_a_permutation_and_hangs_on_the_client_alone {T_PASS}",
    ),
    Mutant(
        "one stream for all clients",
        "problems/minibatches.py",
        "key.fold(int(i)).generator()",
        "key.generator()",
        f"{NETS}::test_an_epoch_is_a_permutation_and_hangs_on_the_client_alone",
    ),
    Mutant(
        "mean of variances",
        IMAGES,
        "(var + (mean - middle) ** 2)",
        "var",
        f"{NETS}::test_a_small_variance_beside_a_large_mean",
    ),
    Mutant(
        "moments are of the first images",
        IMAGES,
        'luck = None if self.moments_of == "first" else',
        "luck = None if True else",
        f"{NETS}::test_moments_hang_on_no_order",
    ),
    Mutant(
        "moments make all stored runs stale",
        "papers/store.py",
        ', ("moments", "first")',
        "",
        f"{AUGMENTED}::test_moments_are_words_where_there_are_any",
    ),
    Mutant(
        "a repair takes from anybody",
        "problems/partitions.py",
        "heapq.heapreplace(by_size, (-len(held[giver]), giver))",
        "heapq.heapreplace(by_size, (0, giver))",
        "test_data.py::test_a_repair_takes_from_the_largest",
    ),
    Mutant(
        "a loss that is lost is no divergence",
        "core/loop.py",
        "history.diverged or lost_metric(history.columns, plan.metrics)",
        "history.diverged",
        "test_own_code.py::test_a_run_without_a_finite_loss_at_its_end_diverged",
    ),
    Mutant(
        "rounding is taken for another draw",
        "core/loop.py",
        "gap > _ROUNDED * torch.finfo(problem.dtype).eps * scale",
        "gap > 0",
        "test_own_code.py::test_an_upload_that_should_be_zero_is_rounding",
    ),
    Mutant(
        "a federation at TCP ports of this machine",
        "federation/unix_sockets.py",
        'HOST = "192.0.2.1"',
        'HOST = "127.0.0.1"',
        T_DOOR,
    ),
    Mutant(
        "a socket in use is taken",
        "federation/unix_sockets.py",
        "if there is not address and not is_listening(there):",
        "if there is not address:",
        T_DOOR,
    ),
    Mutant(
        "a part outside of the folder",
        "running/private_rows.py",
        "if not NAME.fullmatch(part.file):",
        "if False:",
        "test_robust.py::test_a_part_elsewhere_or_of_other_clients_is_damaged",
    ),
    Mutant(
        "tensors counted from the end",
        "running/checkpoint.py",
        "not 0 <= packed < len(arrays)",
        "not packed < len(arrays)",
        "test_robust.py::test_private_rows_made_on_purpose_are_refused",
    ),
    Mutant(
        "the first of equal ones, where all are asked for",
        "algorithms/stc.py",
        "dW.abs() >= top.amin(-1, keepdim=True)",
        "dW.abs() > top.amin(-1, keepdim=True)",
        "test_compressed.py::test_all_ties_or_the_first",
    ),
    Mutant(
        "the authors' mu where the printed one is asked for",
        "algorithms/stc.py",
        'dW.abs() if self.ties == "printed" else top',
        "top",
        "test_compressed.py::test_all_ties_or_the_first",
    ),
    Mutant(
        "fingerprint without the partition",
        "core/fingerprints.py",
        "isinstance(value, (tuple, list, np.ndarray))",
        "isinstance(value, (list, np.ndarray))",
        f"{NETS}::test_a_checkpoint_is_of_this_partition_and_network",
    ),
    # Regularised baselines
    Mutant("no proximal term", PROX, " + self.mu * (y - down.x)", "", f"{REG}::test_transcript"),
    Mutant(
        "the proximal term pushes away",
        PROX,
        "self.mu * (y - down.x)",
        "self.mu * (down.x - y)",
        f"{REG}::test_fedprox_solved_to_the_end_is_the_proximal_point",
    ),
    Mutant(
        "FedDyn's h over the participants",
        DYN,
        "(len(clients) / server.n) * mean",
        "mean",
        f"{REG}::test_server_sums_are_means_over_all_clients",
    ),
    Mutant(
        "sign of FedDyn's dual",
        DYN,
        "own.dual - self.alpha * dy",
        "own.dual + self.alpha * dy",
        f"{REG}::test_feddyn_dual_is_the_gradient_at_the_clients_model",
    ),
    Mutant(
        "FedDyn's model without h",
        DYN,
        " + mean - h / self.alpha",
        " + mean",
        f"{REG}::test_they_arrive_where_fedavg_and_fedprox_stall",
    ),
    Mutant("FedDC's penalty without drift", DC, "y - down.x + own.h", "y - down.x", f"{REG}::test_transcript"),
    Mutant(
        "sign of FedDC's correction",
        DC,
        "else down.c - own.c",
        "else own.c - down.c",
        f"{REG}::test_feddc_is_feddyn_without_correction_and_scaffold_without_drift",
    ),
    Mutant(
        "FedDC's c over the participants",
        DC,
        'share if self.correction == "scaffold" else 1.0',
        "1.0",
        f"{REG}::test_server_sums_are_means_over_all_clients",
    ),
    Mutant(
        "MOON pulls to the previous model",
        MOON,
        "softplus(far - near)",
        "softplus(near - far)",
        f"{REG}::test_moon_pulls_to_the_global_features_and_pushes_from_the_previous",
    ),
    Mutant(
        "MOON contrasts from nothing",
        MOON,
        "torch.where(own.trained[:, None], own.y, x)",
        "own.y",
        f"{REG}::test_moon_contrasts_a_client_from_its_second_round_on",
    ),
    Mutant(
        "FedNTD sees the true logit",
        NTD,
        "c + (c >= labels[..., None])",
        "c + 0 * labels[..., None]",
        f"{REG}::test_fedntd_does_not_see_the_true_logit",
    ),
    Mutant(
        "FedNTD's divergence the other way",
        NTD,
        "world.exp() * (world - local)",
        "local.exp() * (local - world)",
        f"{REG}::test_transcript_on_networks",
    ),
    Mutant(
        "FedGen's generator before it is trained",
        GEN,
        "server.generator if server.t else None",
        "server.generator",
        f"{REG}::test_fedgen_first_round_is_fedavg_and_its_term_moves_the_head_only",
    ),
    Mutant(
        "FedGen's clients draw alike",
        GEN,
        'key.fold("generated", int(i))',
        'key.fold("generated")',
        f"{REG}::test_transcript_on_networks",
    ),
    Mutant(
        "Adam without its correction",
        GEN,
        "-self.generator_lr / (1 - _FIRST**done)",
        "-self.generator_lr",
        f"{REG}::test_transcript_on_networks",
    ),
    Mutant("idle clients are penalised", IMAGES, ".clamp(max=1)", ".clamp(1, 1)", f"{REG}::test_penalised_gradients"),
    # Uploads and silent clients
    Mutant("stale uploads pass", GATE, "or one.round != round:", "or one.round > round:", T_GATE),
    Mutant("NaN passes", GATE, "if not bool(finite.all()):", "if False:", T_GATE),
    Mutant("wrong shapes pass", GATE, "if leaf.shape != shape:", "if leaf.dim() != len(shape):", T_GATE),
    Mutant("wrong types pass", GATE, "if leaf.dtype != wanted.dtype:", "if False:", T_GATE),
    Mutant("one client twice", GATE, "seen.add(one.client)", "pass", T_GATE),
    Mutant(
        "silent clients answer",
        "core/loop.py",
        "if i not in dropped])",
        "if True])",
        "test_admission.py::test_a_client_that_drops_out_is_a_client_not_sampled",
    ),
    Mutant(
        "silent clients do not pay",
        "core/loop.py",
        "    received = cost(down, lags, clients.tolist())\n",
        "    asked = [(lag, i) for lag, i in zip(lags, clients.tolist()) if i not in dropped]\n"
        "    received = cost(down, *zip(*asked))\n",
        "test_admission.py::test_a_client_that_drops_out_is_a_client_not_sampled",
    ),
    Mutant(
        "all fall silent",
        "core/loop.py",
        "silent[torch.randint(len(ids), (), generator=g)] = False",
        "pass",
        "test_admission.py::test_dropout_in_runs",
    ),
    # FedMUD
    Mutant(
        "AAD without the second product",
        "maps/decomposition.py",
        "[self.of.left(g, V_)",
        "[0 * self.of.left(g, V_)",
        "test_fedmud.py::test_the_pullback_is_the_gradient",
    ),
    Mutant(
        "transposed blocks",
        "maps/decomposition.py",
        "...pqij,...pqkl->...pikqjl",
        "...pqij,...pqlk->...pikqjl",
        "test_fedmud.py::test_updates_written_out",
    ),
    Mutant(
        "sum of factors",
        "algorithms/fedmud.py",
        "p @ up.u, server.frozen",
        "server.weights[clients] @ up.u, server.frozen",
        "test_fedmud.py::test_transcript",
    ),
    Mutant(
        "the model is lost at a reset",
        "algorithms/fedmud.py",
        "frozen, u, last = Frozen(x, D)",
        "frozen, u, last = Frozen(_base(frozen), D)",
        "test_fedmud.py::test_transcript",
    ),
    Mutant(
        "one key for all resets",
        "algorithms/fedmud.py",
        'key=key.fold("D"))',
        "key=frozen.D.key)",
        "test_fedmud.py::test_transcript",
    ),
    # DeComFL
    Mutant(
        "forward differences over 2 mu",
        "maps/directions.py",
        "- base) / smoothing",
        "- base) / (2 * smoothing)",
        "test_decomfl.py::test_algorithms_1_and_2",
    ),
    Mutant(
        "no average over p",
        "algorithms/decomfl.py",
        "return 1 / P",
        "return 1.0",
        "test_decomfl.py::test_algorithms_3_and_4",
    ),
    Mutant(
        "ascent",
        "algorithms/decomfl.py",
        "walk(model.x, z, -lr * ",
        "walk(model.x, z, lr * ",
        "test_decomfl.py::test_algorithms_1_and_2",
    ),
    Mutant(
        "one direction for all layers",
        "maps/directions.py",
        "self.key.fold(j).generator()",
        "self.key.generator()",
        "test_decomfl.py::test_layers_blocks_and_keys_are_streams_of_their_own",
    ),
    Mutant(
        "sphere of radius 1",
        "maps/directions.py",
        "math.sqrt(self.layout.size / math",
        "math.sqrt(1 / math",
        "test_decomfl.py::test_the_mean_of_g_z_is_the_gradient",
    ),
    Mutant(
        "a direction drawn for every use",
        "maps/directions.py",
        "    @cached_property\n    def _whole(",
        "    @property\n    def _whole(",
        "test_graphs.py::test_a_direction_that_fits_in_a_block_is_drawn_once",
    ),
    Mutant(
        "a held direction the other way",
        "maps/directions.py",
        "add(self._whole, alpha=mu)",
        "add(self._whole, alpha=-mu)",
        "test_graphs.py::test_a_held_direction_gives_the_losses_of_one_made_layer_by_layer",
    ),
    Mutant(
        "a metric is given the model itself",
        "core/history.py",
        "metric(problem, x.detach().clone())",
        "metric(problem, x)",
        "test_do_it_yourself.py::test_a_function_is_a_metric",
    ),
    Mutant(
        "a checkpoint knows metrics by name alone",
        "running/simulate.py",
        'f"{name} ({fingerprints.digest(fingerprints.describe_callable(metric))})"',
        "name",
        "test_do_it_yourself.py::test_a_function_is_a_metric",
    ),
    Mutant(
        "a batch of one image by PyTorch",
        MODELS,
        "if norms is None and h.shape[1] > 1:",
        "if norms is None and h[0, :, 0].numel() > 1:",
        "test_networks.py::test_a_batch_of_one_image_is_normalised",
    ),
    # What a card replays
    Mutant(
        "a stream is left behind",
        "problems/graphs.py",
        "            now.wait_stream(stream)\n",
        "            found and now.wait_stream(stream) if len(found) == len(works) else None\n",
        "test_graphs.py::test_streams_are_joined_whatever_happens_and_an_interrupt_arrives",
    ),
    Mutant(
        "Ctrl-C is a graph that was refused",
        "problems/graphs.py",
        "if behind is not None and not isinstance(behind, Exception):",
        "if False:",
        "test_graphs.py::test_streams_are_joined_whatever_happens_and_an_interrupt_arrives",
    ),
    Mutant(
        "what is not captured yet is stacked",
        "problems/images.py",
        "self._graphs(name, alone, *given, beside",
        "self._graphs(name, lambda y, index, *draws: of(y, Batch(index, xi.size, *draws)), *given, beside",
        "test_graphs.py::test_a_run_is_the_same",
    ),
    Mutant(
        "a replay's buffer is handed out",
        "problems/graphs.py",
        "return out.clone()",
        "return out",
        "test_graphs.py::test_results_are_copies_and_inputs_are_taken_anew",
    ),
    Mutant(
        "clients are captured as one grouped convolution",
        "problems/graphs.py",
        "self._capture(shape, beside or of, given)",
        "self._capture(shape, of, given)",
        "test_graphs.py::test_clients_with_weights_of_their_own_are_captured_side_by_side",
    ),
    Mutant(
        "side by side every client has the first one's batch",
        "problems/images.py",
        "every.client(i)) for i",
        "every.client(0)) for i",
        "test_graphs.py::test_clients_with_weights_of_their_own_are_captured_side_by_side",
    ),
    Mutant(
        "every graph has an eighth of the card",
        "problems/graphs.py",
        "        self._held += size\n",
        "",
        "test_graphs.py::test_graphs_hold_an_eighth_of_the_card",
    ),
    Mutant(
        "replays forget what they compute",
        "problems/graphs.py",
        "shape = name, *(",
        "shape = None, *(",
        "test_graphs.py::test_names_are_told_apart",
    ),
    Mutant(
        "other threads are captured",
        "problems/graphs.py",
        "return first and not special",
        "return not special",
        "test_graphs.py::test_watched_work_and_other_threads_are_computed",
    ),
    Mutant(
        "watched work is captured",
        "problems/graphs.py",
        "special = is_in_torch_dispatch_mode() or ",
        "special = ",
        "test_graphs.py::test_watched_work_and_other_threads_are_computed",
    ),
    Mutant(
        "the newer switch of TF32 is forgotten",
        "problems/graphs.py",
        'if convolved_in() == "tf32":',
        "if False:",
        "test_graphs.py::test_tf32_is_switched_off_whatever_was_chosen",
    ),
    Mutant(
        "the newer switch of TF32 alone",
        "problems/graphs.py",
        "    _CUDNN.allow_tf32 = False\n",
        "",
        "test_graphs.py::test_tf32_is_switched_off_whatever_was_chosen",
    ),
    # FedZO, MeZO, BAFFLE
    Mutant("a step per direction", FEDZO, "/ self.perturbations * g)  # (2b)", "* g)  # (2b)", f"{ZERO}::test_fedzo"),
    Mutant("clients share directions", FEDZO, 'fold("z", i, k, p)', 'fold("z", 0, k, p)', f"{ZERO}::test_fedzo"),
    Mutant("MeZO looks ahead only", FEDZO, "central=True", "central=False", f"{ZERO}::test_mezo"),
    Mutant(
        "all weigh the same",
        BAFFLE,
        "p @ up.g",
        "up.g.mean(0)",
        f"{ZERO}::test_baffle",
    ),
    Mutant(
        "one seed for all p",
        BAFFLE,
        "key.fold(p)",
        "key",
        f"{ZERO}::test_a_client_makes_baffles_directions_from_the_seed",
    ),
    Mutant(
        "shifted the other way", "maps/directions.py", "add_(z, alpha=mu)", "add_(z, alpha=-mu)", f"{ZERO}::test_fedzo"
    ),
    # Compressed
    Mutant(
        "k entries of all groups together",
        COMPRESS,
        "found.append(chosen.nonzero()[:, -1].view(-1, k) + start)",
        "found.append(chosen.nonzero()[:, -1].view(-1, k))",
        f"{PRESSED}::test_the_largest_of_each_group_and_the_first_of_equal_ones",
    ),
    Mutant(
        "of equal ones all",
        COMPRESS,
        "equal.cumsum(-1) <= k",
        "equal.cumsum(-1) <= 1 + k",
        f"{PRESSED}::test_the_largest_of_each_group_and_the_first_of_equal_ones",
    ),
    Mutant("a zero is positive", COMPRESS, ".where(values != 0, p.shape[-1])", "", f"{PRESSED}::test_ternary_by_hand"),
    Mutant(
        "mu of all entries",
        COMPRESS,
        "Ternary(values.abs().mean(-1, keepdim=True)",
        "Ternary(p.abs().mean(-1, keepdim=True)",
        f"{PRESSED}::test_ternary_is_the_projection_on_its_sign_vector",
    ),
    Mutant(
        "rounded the wrong way",
        COMPRESS,
        "(u < exact - lower)",
        "(u > exact - lower)",
        f"{PRESSED}::test_stochastic_rounding_is_unbiased_and_has_its_variance",
    ),
    Mutant(
        "levels leave their type",
        COMPRESS,
        ".clamp(-top, top).to(",
        ".to(",
        f"{PRESSED}::test_levels_never_leave_their_type_and_the_nearest_is_near",
    ),
    Mutant(
        "buckets by chance",
        COMPRESS,
        "torch.randperm(d, generator=g) % cols",
        "torch.randint(cols, (d,), generator=g)",
        f"{PRESSED}::test_two_entries_meet_with_a_probability_of_at_most_one_over_cols",
    ),
    Mutant(
        "a sketch without signs",
        COMPRESS,
        "index_add_(-1, bucket, p * sign)",
        "index_add_(-1, bucket, p)",
        f"{PRESSED}::test_a_wide_sketch_loses_nothing",
    ),
    Mutant(
        "the mean of the rows",
        COMPRESS,
        "torch.stack(rows).median(0).values",
        "torch.stack(rows).mean(0)",
        f"{PRESSED}::test_transcript",
    ),
    Mutant(
        "Rand-K with repetition",
        COMPRESS,
        "torch.randperm(d, generator=torch.Generator().manual_seed(seed))[:k]",
        "torch.randint(d, (k,), generator=torch.Generator().manual_seed(seed))",
        f"{PRESSED}::test_rand_k_is_rebuilt_from_its_seed",
    ),
    Mutant(
        "rows free of charge",
        "algorithms/lbgm.py",
        "self.rows[self.sent[:, 0]], ",
        "",
        f"{PRESSED}::test_rows_cost_what_is_marked",
    ),
    Mutant(
        "the error is forgotten",
        "algorithms/topk.py",
        "None if own is None else Own(p - up.expand(problem.d))",
        "own",
        T_KEPT,
    ),
    Mutant("by value always", "algorithms/topk.py", 'p.abs() if self.by == "magnitude" else p', "p", T_PRESSED),
    Mutant(
        "the server's error is forgotten",
        "algorithms/stc.py",
        "Server(server.x + sent, dW - sent, last)",
        "Server(server.x + sent, server.R, last)",
        T_KEPT,
    ),
    Mutant("not ternary", "algorithms/stc.py", 'self.values == "ternary"', "False", T_PRESSED),
    Mutant(
        "everything down",
        "algorithms/stc.py",
        "return self.ratio if self.down_ratio is None else self.down_ratio",
        "return 1.0",
        T_PRESSED,
    ),
    Mutant(
        "momentum not masked",
        "algorithms/dgc.py",
        "if self.masking else U",
        "if False else U",
        f"{PRESSED}::test_without_compression_it_is_fedavg",
    ),
    Mutant(
        "no momentum correction",
        "algorithms/dgc.py",
        "V = own.V + U",
        "V = own.V + G",
        f"{PRESSED}::test_dgc_conserves_momentum",
    ),
    Mutant(
        "short changes stretched",
        "algorithms/dgc.py",
        "norm.clamp(min=self.clip)",
        "norm",
        f"{PRESSED}::test_dgc_clips_what_enters_the_momentum",
    ),
    Mutant(
        "the gate pushes",
        "algorithms/fedcom.py",
        "g if own is None else g - own.delta",
        "g if own is None else g + own.delta",
        f"{PRESSED}::test_fedcomgate_unquantized_is_scaffold",
    ),
    Mutant(
        "no reply",
        "algorithms/fedcom.py",
        "own.delta.index_add(0, clients, back)",
        "own.delta",
        f"{PRESSED}::test_fedcomgate_unquantized_is_scaffold",
    ),
    Mutant("one draw for all clients", "algorithms/fedcom.py", 'key.fold("u", int(i))', 'key.fold("u")', T_PRESSED),
    Mutant(
        "momentum in the error",
        "algorithms/fetchsgd.py",
        "self.server_lr * S_u + server.S_e",
        "self.server_lr * up.table.mean(0, keepdim=True) + server.S_e",
        f"{PRESSED}::test_fetchsgd_with_momentum_is_momentum",
    ),
    Mutant(
        "what is sent stays",
        "algorithms/fetchsgd.py",
        "S_e = S_e - sent",
        "S_e = S_e - 0 * sent",
        f"{PRESSED}::test_fetchsgd_conserves_its_sketches",
    ),
    Mutant(
        "the old sketch is cleared",
        "algorithms/fetchsgd.py",
        "S.where(sent == 0, 0.0)",
        "S.where(sent != 0, 0.0)",
        f"{PRESSED}::test_fetchsgd_conserves_its_sketches",
    ),
    Mutant(
        "a cosine, not its sine",
        "algorithms/lbgm.py",
        "(off2 <= self.delta *",
        "(off2 >= self.delta *",
        f"{PRESSED}::test_without_compression_it_is_fedavg",
    ),
    Mutant(
        "the look-back gradient is the last one",
        "algorithms/lbgm.py",
        "Own(own.g.where(near, g))",
        "Own(g)",
        f"{PRESSED}::test_lbgm_keeps_the_same_look_back_gradient_at_both_ends",
    ),
    Mutant(
        "rho by the new norm",
        "algorithms/lbgm.py",
        "/ norm2.where(norm2 > 0, 1.0)",
        "/ (g**2).sum(-1, keepdim=True)",
        T_PRESSED,
    ),
    Mutant(
        "Top-K of x, not of what w lacks",
        "algorithms/ef21p.py",
        "self._top(x - server.w)",
        "self._top(x - server.x)",
        f"{PRESSED}::test_ef21p_contracts_the_gap_of_the_clients_model",
    ),
    Mutant(
        "shifts over S, not N",
        "algorithms/ef21p.py",
        "self.beta / self.lr * len(clients) / server.n * m",
        "self.beta / self.lr * m",
        T_PRESSED,
    ),
    Mutant(
        "DIANA's shifts in units of the rate",
        "algorithms/ef21p.py",
        "y - w - self.lr * own.h",
        "y - w - 0.2 * own.h",
        f"{PRESSED}::test_diana_stays_where_it_is_when_the_rate_falls",
    ),
    Mutant(
        "0/0 in FedBAT",
        "algorithms/fedbat.py",
        "inside & (wide > 0)",
        "inside",
        f"{PRESSED}::test_fedbat_lives_where_nothing_moves",
    ),
    Mutant(
        "idle clients move",
        "core/loop.py",
        "if problem.uneven and not algorithm.gradient_only and not algorithm.own_steps",
        "if False",
        "test_networks.py::test_clients_that_are_done_stand_still_or_the_method_is_refused",
    ),
    Mutant(
        "clients of a block share their moments",
        "problems/layers.py",
        "own = h.unflatten(0, (given.groups, -1))",
        "own = h[None].expand(given.groups, *h.shape)",
        "test_supervised.py::test_moments_in_blocks_are_those_of_clients_one_by_one",
    ),
    Mutant(
        "a GRU keeps what it should forget",
        "problems/layers.py",
        "torch.lerp(new, h, z)",
        "torch.lerp(h, new, z)",
        "test_supervised.py::test_gradients_are_autograds_however_clients_are_stacked",
    ),
    Mutant(
        "clients are stacked however large their steps are",
        "problems/supervised.py",
        "(cuda or kept < modules.KEPT)",
        "True",
        "test_supervised.py::test_small_steps_are_stacked_and_large_ones_taken_client_by_client",
    ),
    Mutant(
        "every client has the same dropout",
        "problems/supervised.py",
        'key.fold(int(i), "dropout", k)',
        'key.fold("dropout", k)',
        "test_supervised.py::test_a_run_with_dropout_does_not_hang_on_stacking_or_company",
    ),
    Mutant(
        "dropout is not scaled",
        "problems/layers.py",
        "kept.to(dtype).div_(1 - p) if p < 1 else kept.to(dtype)",
        "kept.to(dtype)",
        "test_supervised.py::test_masks_drop_the_share_that_the_layer_names_and_keep_the_mean",
    ),
    Mutant(
        "a sum passes for a mean",
        "problems/supervised.py",
        "if not modules.alike(each.mean(), loss[0]):",
        "if False:",
        "test_supervised.py::test_what_does_not_fit_has_a_line",
    ),
    Mutant(
        "tuning on the seeds that are compared",
        "running/comparison.py",
        "_TUNING_SEED = 100",
        "_TUNING_SEED = 3",
        "test_comparison.py::test_the_rate_is_the_best_of_the_tuning_runs_and_the_seeds_are_others",
    ),
    Mutant(
        "unequal clients all make the longest client's steps",
        "core/engine.py",
        "algorithm.at_steps(K)",
        "algorithm",
        "test_networks.py::test_scaffold_on_unequal_clients_by_hand",
    ),
    Mutant(
        "uploads come in the order of their steps",
        "core/engine.py",
        "for _, some in groups]).argsort()",
        "for _, some in groups])",
        "test_networks.py::test_a_client_with_fewer_batches_runs_its_line_with_its_own_k",
    ),
    Mutant(
        "local layers are averaged",
        "running/parts.py",
        "kept = view.keep(kept - self.lr * view.slope)",
        "kept = view.keep((kept - self.lr * view.slope).mean(0, keepdim=True).expand_as(kept))",
        "test_supervised.py::test_local_layers_stay_with_their_client_and_nothing_of_them_crosses",
    ),
    Mutant(
        "momentum goes on where a client is done",
        "problems/parts.py",
        "float(done < count)",
        "1.0",
        "test_parts.py::test_client_momentum_is_pytorchs",
    ),
    Mutant(
        "running statistics have the biased variance",
        "problems/layers.py",
        "var, mean = torch.var_mean(h, axes)",
        "var, mean = torch.var_mean(h, axes, correction=0)",
        "test_supervised.py::test_a_local_step_is_pytorchs_and_so_are_the_running_statistics",
    ),
    Mutant(
        "sparse uploads are not scaled",
        "running/uploads.py",
        '.expand(d) * (d / crossed["values"].shape[1])',
        ".expand(d)",
        "test_parts.py::test_compressed_uploads_have_the_right_mean_and_fewer_bytes",
    ),
    Mutant(
        "masks do not cancel",
        "running/uploads.py",
        "- sum((drawn(j, i) for j in range(i))",
        "+ sum((drawn(j, i) for j in range(i))",
        "test_parts.py::test_masks_cancel_in_the_sum",
    ),
    Mutant(
        "uploads are not normalized",
        "running/uploads.py",
        "dy=up.dy * factor.view",
        "dy=up.dy * 1 / factor.view",
        "test_parts.py::test_normalized_uploads_have_the_fixed_point_of_the_clients_weights",
    ),
    Mutant("Rand-K not unbiased", "algorithms/ef21p.py", "d / k * p if self.unbiased else p", "p", T_PRESSED),
    Mutant(
        "no straight-through clip",
        "algorithms/fedbat.py",
        "g.where(inside, 0.0)",
        "g",
        f"{PRESSED}::test_alpha_learns_by_its_printed_slope",
    ),
    Mutant(
        "alpha's slope without m",
        "algorithms/fedbat.py",
        "((S - m) / wide)",
        "(S / wide)",
        f"{PRESSED}::test_alpha_learns_by_its_printed_slope",
    ),
    Mutant(
        "chances swapped",
        "algorithms/fedbat.py",
        "u < (1 + m / alpha) / 2",
        "u > (1 + m / alpha) / 2",
        f"{PRESSED}::test_binarization_is_unbiased_within_alpha",
    ),
    Mutant(
        "the mean goes down whole", "algorithms/fedbat.py", "            change = last.expand(sizes)\n", "", T_PRESSED
    ),
    # FedHM, FlexLoRA, projected FedAvg
    Mutant(
        "factors averaged, not products",
        "algorithms/fedhm.py",
        "x = p @ down.D.value.update(up.u)",
        "x = down.D.value.update(p @ up.u)",
        f"{T_LOW}[FedHM]",
    ),
    Mutant(
        "singular values in one factor only",
        "maps/decomposition.py",
        "V * S ** (1 - share)",
        "V",
        f"{T_LOW}[FedHM]",
    ),
    Mutant(
        "everyone has the largest rank",
        "algorithms/flexlora.py",
        "u = down.u.value * kept",
        "u = down.u.value",
        f"{T_LOW}[FlexLoRA]",
    ),
    Mutant(
        "padding is charged",
        "algorithms/flexlora.py",
        "int(self.kept.sum())",
        "self.kept.numel()",
        f"{LOWRANK}::test_traffic_of_flexlora_by_hand",
    ),
    Mutant(
        "one count of steps for all clients",
        "algorithms/fedftg.py",
        "Own(P, M, V, t)",
        "Own(P, M, V, own.t)",
        f"{LOWRANK}::test_moments_stay_with_their_client",
    ),
    Mutant("moments not corrected", "algorithms/fedftg.py", "R = M_hat", "R = M", f"{T_LOW}[FedFTG]"),
    Mutant(
        "the longer side",
        "algorithms/fedftg.py",
        "layer.rows < layer.cols",
        "layer.rows > layer.cols",
        f"{T_LOW}[FedFTG]",
    ),
    Mutant("alpha lost", "algorithms/fedftg.py", "self.alpha * (U @ N", "1.0 * (U @ N", f"{T_LOW}[FedFTG]"),
    Mutant(
        "the last singular vectors",
        "algorithms/projected.py",
        "U[:, : low.rows]",
        "U[:, -low.rows :]",
        f"{LOWRANK}::test_p_is_the_best_subspace_of_the_last_full_update",
    ),
    Mutant(
        "P is not sent to one that missed its round",
        "algorithms/projected.py",
        "lag > self.since",
        "lag > self.since + 1",
        f"{LOWRANK}::test_traffic_of_projected_fedavg_by_hand",
    ),
    # Newer methods
    Mutant(
        "the control turns away",
        "algorithms/scaffnew.py",
        "problem.grads(y, xi[k]) - own.h",
        "problem.grads(y, xi[k]) + own.h",
        f"{T_NEWER}[Scaffnew]",
    ),
    Mutant(
        "the model is sent to who has it",
        "algorithms/scaffnew.py",
        "sum(lag != 1 for lag in lags)",
        "len(lags)",
        f"{NEWER}::test_a_client_of_scaffnew_that_was_away_is_sent_the_model",
    ),
    Mutant(
        "the old control is left out",
        "algorithms/scallion.py",
        "(delta + server.c)",
        "delta",
        f"{T_NEWER}[SCALLION]",
    ),
    Mutant(
        "no mean over the rounds",
        "algorithms/scallion.py",
        "v = v + self.momentum * (G - v)",
        "v = G",
        f"{T_NEWER}[SCAFCOM]",
    ),
    Mutant(
        "the momentum is added, not mixed",
        "algorithms/fedcm.py",
        "(1 - self.alpha) * down.delta",
        "down.delta",
        f"{T_NEWER}[FedCM]",
    ),
    Mutant(
        "the gradient at the end",
        "algorithms/mimelite.py",
        "problem.grads(x, problem.full(clients))",
        "problem.grads(y, problem.full(clients))",
        f"{T_NEWER}[MimeLite]",
    ),
    Mutant(
        "all clients draw one seed",
        "algorithms/fedkseed.py",
        'key.fold("seeds", int(i))',
        'key.fold("seeds", 0)',
        f"{T_NEWER}[FedKSeed]",
    ),
    Mutant(
        "a step is entered without its rate",
        "algorithms/fedkseed.py",
        "to(y.device), -self.lr * g)",
        "to(y.device), -g)",
        f"{NEWER}::test_the_model_that_fedkseed_rebuilds_is_the_mean_of_the_clients",
    ),
    Mutant(
        "both factors are trained",
        "algorithms/rolora.py",
        "g * trained",
        "g",
        f"{NEWER_LORA}::test_transcript[RoLoRA]",
    ),
    Mutant(
        "A and B change places",
        "algorithms/rolora.py",
        "left == bool(turn)",
        "left != bool(turn)",
        f"{NEWER_LORA}::test_transcript[FFA-LoRA]",
    ),
    Mutant(
        "what the means miss is lost",
        "algorithms/fedexlora.py",
        "base=x - D.update(u)",
        "base=server.base",
        f"{NEWER_LORA}::test_transcript[FedEx-LoRA]",
    ),
    Mutant(
        "the adapters stay",
        "algorithms/fedexlora.py",
        'replace(server.D, key=key.fold("D"))',
        "server.D",
        f"{NEWER_LORA}::test_transcript[FLoRA]",
    ),
    Mutant(
        "the mean of the senders forgets who is away",
        "algorithms/compressedscaffnew.py",
        "up.kept.sum(0).clamp(min=1)",
        "server.s",
        f"{T_NEWER}[CompressedScaffnew]",
    ),
    Mutant(
        "controls learn at full speed",
        "algorithms/compressedscaffnew.py",
        "down.holders.value.control * self._pull",
        "self._pull",
        f"{T_NEWER}[CompressedScaffnew]",
    ),
    Mutant(
        "a client's intervals go to one subspace",
        "algorithms/fedkrso.py",
        "(up.picked == k)",
        "(up.picked[:, :1] == k)",
        f"{NEWER}::test_the_model_that_fedkrso_rebuilds_is_the_mean_of_the_clients",
    ),
    Mutant(
        "momentum is lost between rounds",
        "algorithms/fedslop.py",
        "own.m if self.carry else torch.zeros_like(own.m)",
        "torch.zeros_like(own.m)",
        f"{T_NEWER}[FedSLoP]",
    ),
    Mutant(
        "squared updates are not remembered",
        "algorithms/hiso.py",
        "add_(change[0].square(), alpha=self.nu)",
        "add_(change[0].abs(), alpha=self.nu)",
        f"{T_NEWER}[HiSo]",
    ),
    Mutant(
        "directions are as long everywhere",
        "algorithms/hiso.py",
        "root = H.rsqrt()",
        "root = torch.ones_like(H)",
        f"{NEWER}::test_one_step_of_hiso_is_newtons_where_it_has_the_hessian",
    ),
    # The methods' page
    Mutant(
        "a client is charged for all",
        "cli/methods.py",
        "-(-size // problem.n)",
        "size",
        "test_methods.py::test_counts",
    ),
    # FLSS
    Mutant(
        "sum for mean",
        "algorithms/flss.py",
        "return sent.mean(0)",
        "return sent.sum(0)",
        "test_flss.py::test_the_box_is_its_reading_with_all_defaults",
    ),
    Mutant(
        "the error is forgotten",
        "algorithms/flss.py",
        "self.signed(g + own.e, P",
        "self.signed(g, P",
        "test_flss.py::test_transcript",
    ),
    Mutant(
        "columns not sampled",
        READ_FLSS,
        "(t + 1) % self.interval == 0",
        "t % self.interval == 0",
        "test_flss.py::test_transcript",
    ),
    Mutant(
        "gradients not projected",
        "algorithms/flss.py",
        "grad = P.lift(P.project(grad))",
        "pass",
        "test_flss.py::test_transcript test_flss.py::test_projecting_gradients_leaves_nothing_to_project",
    ),
    Mutant(
        "the data that a run read are not in its name",
        "papers/store.py",
        'content = {"data": _digests(head["data"]), "revisions": head["revisions"]}',
        'content = {"revisions": head["revisions"]}',
        "test_store.py::test_other_data_are_another_run",
    ),
    Mutant(
        "data are named by the folder they were read from",
        "papers/store.py",
        'own = {"all": REVISION,',
        'own = {"all": len(os.environ.get("FEDTHEORY_DATA", "")) + ord(os.environ.get("FEDTHEORY_DATA", "A")[-1]),',
        "test_store.py::test_the_same_data_elsewhere_and_packed_otherwise_are_the_same_run",
    ),
    Mutant(
        "data may change while a run reads them",
        "papers/store.py",
        'if _digests(read) != _digests(head["data"]):',
        "if False:",
        "test_store.py::test_data_that_change_while_a_run_reads_them_are_refused",
    ),
    Mutant(
        "a raised revision makes no run stale",
        "papers/store.py",
        '"revisions": head["revisions"]}\n        if',
        '"revisions": {}}\n        if',
        "test_store.py::test_a_raised_revision_makes_stored_runs_stale",
    ),
    Mutant(
        "runs are named by a hash of the sources",
        "papers/store.py",
        'own = {"all": REVISION,',
        'own = {"all": int(source_hash() == "other code"),',
        "test_store.py::test_sources_versions_and_device_name_no_run",
    ),
    Mutant(
        "a table grows by rows of other data",
        "papers/store.py",
        "    if other:\n",
        "    if False:\n",
        "test_store.py::test_rows_of_other_data_are_not_added_to_a_table",
    ),
    Mutant(
        "a later field renames all runs",
        "running/configuration.py",
        "if name not in later or part != later[name]}",
        "}",
        "test_store.py::test_a_later_field_costs_nothing_and_a_changed_default_does",
    ),
    Mutant(
        "a default has no word",
        "papers/store.py",
        "configuration.defaults((builder.make, *builder.passed)) | dict(self.options)",
        "dict(self.options)",
        "test_store.py::test_a_changed_default_of_a_problem_makes_another_run",
    ),
    Mutant(
        "a loose run is not looked for",
        "papers/archive.py",
        'return (out / ".runs" / name).read_bytes()',
        "pass",
        "test_archive.py::test_a_loose_run_comes_before_a_packed_one_and_replaces_it",
    ),
    Mutant(
        "an archive's bytes hang on the order of its runs",
        "papers/archive.py",
        "for name in sorted(members):",
        "for name in members:",
        "test_archive.py::test_the_same_runs_give_the_same_bytes",
    ),
    Mutant(
        "a damaged archive is replaced",
        "papers/archive.py",
        "        if broken:\n",
        "        if False:\n",
        "test_archive.py::test_a_damaged_archive_is_said_and_nothing_is_written_in_its_place",
    ),
    Mutant(
        "a number that is not finite is lost in JSON",
        "core/files.py",
        'return "NaN" if math.isnan(value) else',
        "return 0.0 if math.isnan(value) else",
        "test_store.py::test_numbers_that_are_not_finite_come_back",
    ),
    Mutant(
        "a damaged run is thrown away",
        "papers/store.py",
        'kept as {set_aside(path).name}"',
        'kept as {path.unlink() or path.name}"',
        "test_store.py::test_a_damaged_run_is_said_kept_aside_and_made_again",
    ),
    Mutant(
        "runs of other versions are taken in silence",
        "papers/store.py",
        'others = {maker: n for maker, n in runs["made with"].items() if maker != _maker(versions(), self.device)}',
        "others: dict[str, int] = {}",
        "test_store.py::test_runs_of_other_versions_are_taken_and_said",
    ),
    Mutant(
        "a record of the wrong shape is read",
        "running/records.py",
        "if (wrong := misfit(record, _RECORD)) is not None:",
        "if False and (wrong := misfit(record, _RECORD)) is not None:",
        "test_store.py::test_a_record_of_the_wrong_shape_is_one_clear_line",
    ),
    Mutant(
        "a table that is not the record's is read",
        "running/records.py",
        'if sha256(table) != record["files"]["csv"]:',
        "if False:",
        "test_store.py::test_files_that_do_not_belong_together_are_refused",
    ),
    Mutant(
        "the old record is unlinked first",
        "running/records.py",
        "    try:\n        for end in _ENDS:\n",
        '    try:\n        _final(stem, "json").unlink(missing_ok=True)\n        for end in _ENDS:\n',
        "test_store.py::test_a_full_disk_leaves_the_old_result",
    ),
    Mutant(
        "the three files of an item are written one by one",
        "running/records.py",
        "write_atomic(_next(stem, end), contents[end])",
        "write_atomic(_final(stem, end), contents[end])",
        "test_store.py::test_a_kill_at_any_moment_leaves_the_old_or_the_new_result",
    ),
    Mutant(
        "a damaged record is taken as absent",
        "running/records.py",
        "    there, problem = SCALES[-1], None\n",
        "    there, problem = SCALES[0], None\n",
        "test_store.py::test_a_damaged_record_is_never_taken_as_absent",
    ),
    Mutant(
        "two processes may save at once",
        "running/records.py",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "pass",
        "test_store.py::test_two_processes_that_save_one_item_leave_one_of_the_two",
    ),
    Mutant(
        "a seal is not looked at",
        "core/files.py",
        "if sha256(content[: found.start()]) != found[1].decode():",
        "if False:",
        "test_store.py::test_seals test_store.py::test_no_changed_byte_of_a_stored_file_is_taken",
    ),
    Mutant(
        "a ledger of the wrong shape is read",
        "theory/ledger.py",
        'wrong = misfit(found, {"claims": [RECORD]})',
        "wrong = None",
        "test_store.py::test_a_ledger_of_the_wrong_shape_is_one_clear_line",
    ),
    Mutant(
        "a sum in a fraction loses its brackets",
        "theory/letters.py",
        "above, below = self._argument(), self._argument()",
        'above, below = [(_joined(self._argument()), "letter")], self._argument()',
        "test_book.py::test_latex_as_a_line_of_a_terminal",
    ),
    Mutant(
        "a statement is read without its plain words",
        "theory/statements.py",
        r"\n\n> ([^\n]+)\n(?:",
        r"(?:\n\n> ([^\n]+))?\n(?:",
        "test_statements.py::test_a_section_of_another_form_is_one_line",
    ),
    Mutant(
        "an id may stand twice among the statements",
        "theory/statements.py",
        "if parts is None or id in found:",
        "if parts is None:",
        "test_statements.py::test_a_section_of_another_form_is_one_line",
    ),
    Mutant(
        "a target is looked at after the work",
        "cli/claims.py",
        '        require_target("page", options.page, options.save)',
        "        pass",
        "test_store.py::test_a_target_that_cannot_be_written_is_said_before_any_work",
    ),
    Mutant(
        "a folder is looked at after the work",
        "cli/figures.py",
        '    folder = checks.folder("out", out)\n',
        '    return Path(out)\n    folder = checks.folder("out", out)\n',
        "test_store.py::test_a_folder_that_cannot_be_written_is_said_before_any_work",
    ),
    Mutant(
        "a link becomes a file",
        "core/files.py",
        "        path = path.parent / os.readlink(path)\n",
        "        return path\n",
        "test_store.py::test_links_devices_and_pipes_stay_what_they_are",
    ),
    Mutant(
        "what was computed is lost with a full disk",
        "cli/claims.py",
        "    finally:  #",
        "    except ZeroDivisionError:  #",
        "test_store.py::test_what_was_computed_is_shown_when_the_disk_is_full",
    ),
    Mutant(
        "checkpoints are due by count only",
        "core/loop.py",
        " or time.monotonic() - self.saved_at >= seconds",
        "",
        "test_robust.py::test_checkpoints_are_due_by_time_as_well_as_by_count",
    ),
    Mutant(
        "a schedule may reach a rate of 0",
        "core/loop.py",
        "        _require_rates(algorithm, problem, self.rounds, self.schedule)\n",
        "",
        "test_bad_input.py::test_bad_argument",
    ),
    Mutant(
        "the order of the clients' ids is in the sums",
        "core/loop.py",
        "    rising = sorted(ids)\n",
        "    rising = list(ids)\n",
        "test_robust.py::test_the_order_of_the_ids_changes_no_bit",
    ),
    Mutant(
        "a client of no number is let in",
        "federation/admission.py",
        " or not 0 <= client < n:",
        ":",
        "test_admission.py test_bad_input.py",
    ),
    Mutant(
        "an upload comes twice",
        "federation/admission.py",
        '("it came twice" if one.client in seen else "")',
        '""',
        "test_admission.py::test_damaged_uploads_are_refused",
    ),
    Mutant(
        "NumPy's numbers stay NumPy's",
        "core/checks.py",
        "return float(value) if isinstance(value, np.floating) else value.item()",
        "return value",
        "test_bad_input.py::test_numbers_of_numpy_are_numbers",
    ),
    # Halves
    Mutant(
        "a step too few",
        "core/message.py",
        "return self._missed(lag, cost(self.value), cost(self.step), cost(self.held))",
        "return (lambda n: n and n - 1)(self._missed(lag, cost(self.value), cost(self.step), cost(self.held)))",
        f"{T_BITS}[SSF-3-float64]",
    ),
    Mutant(
        "the first step's projector crosses again",
        HALVES,
        "held if at == 0 else None)",
        "None)",
        f"{T_BITS}[SSF-3-float64]",
    ),
    Mutant(
        "an absent dual does not turn",
        HALVES,
        "if kept.round is not None and q < t and own is not None:",
        "if False:",
        f"{T_BITS}[FedSub_SS-3-float64]",
    ),
    Mutant(
        "a row turns too late",
        HALVES,
        "_at(timelines, q + 1), q)",
        "_at(timelines, t), q)",
        f"{T_BITS}[FedSub_SS-3-float64]",
    ),
    Mutant(
        "the reply's seed is not kept",
        CATCH_UP,
        '{"P": reply.P_next} if reply.P_next else {}',
        "{}",
        f"{T_BITS}[FedSub_SS-3-float64]",
    ),
    Mutant(
        "a lost upload counts at its client",
        HALVES,
        "if self._pending is not None and last is not None and last == self._pending.round:",
        "if self._pending is not None:",
        f"{T_LOST}[SSF]",
    ),
    Mutant(
        "what waits is not in the state",
        HALVES,
        "if pending is not None and self._asked is not None:",
        "if False:",
        f"{HALVED}::test_a_client_goes_on_in_another_process[SSF]",
    ),
    Mutant(
        "a copy moves in place",
        CATCH_UP,
        "model = copy.map(torch.clone)",
        "model = copy",
        f"{T_LOST}[DeComFL-short]",
    ),
    Mutant(
        "a step of another rate",
        HALVES,
        "apply_step(self._at_rate(r - 1)",
        "apply_step(self._at_rate(r)",
        f"{HALVED}::test_a_schedule_is_known_to_both[DeComFL-short]",
    ),
    Mutant(
        "the SVD is not followed",
        CATCH_UP,
        "algorithm.samples(t - 1) else G",
        "False else G",
        f"{T_BITS}[FLSS-3-float64]",
    ),
    Mutant(
        "models of the warm-up are forgotten",
        CATCH_UP,
        '{"model": new.x} if new.t >= algorithm.warm_up else {}',
        "{}",
        f"{T_BITS}[FLSS-6-float64]",
    ),
    Mutant(
        "all rows of LBGM cross",
        "algorithms/lbgm.py",
        "return self.sent, self.rows[self.sent[:, 0]], self.rho",
        "return self.sent, self.rows, self.rho",
        f"{T_BITS}[LBGM-3-float64]",
    ),
    Mutant(
        "NaN crosses",
        CODEC,
        "if dtype.is_floating_point and not bool",
        "if False and not bool",
        f"{HALVED}::test_a_client_refuses_what_was_not_made_for_it",
    ),
    Mutant(
        "what is left over is not seen",
        CODEC,
        "if self.at != len(self.data):",
        "if False:",
        f"{T_BAD}_and_the_federation_goes_on",
    ),
    Mutant("more is read than there is", CODEC, "if size > left:", "if False:", f"{T_BAD}_and_the_federation_goes_on"),
    Mutant("any depth", CODEC, "if depth > _DEPTH or", "if", f"{T_BAD}_and_the_federation_goes_on"),
    Mutant(
        "uploads are not looked at",
        HALVES,
        "admission.admit([one], self.round, like, self.problem.n, self.problem.d, size)",
        "pass",
        f"{T_BAD}_and_the_federation_goes_on",
    ),
    Mutant(
        "stale uploads are taken",
        HALVES,
        "parcel.round != self.round or not",
        "not",
        f"{T_BAD}_and_the_federation_goes_on",
    ),
    Mutant(
        "a stranger is taken",
        HALVES,
        "if i not in self._ids:",
        "if False:",
        f"{HALVED}::test_nobody_who_was_not_asked_is_heard",
    ),
    Mutant(
        "a known value may change",
        HALVES,
        "if not _same(first.value, part.value):",
        "if False:",
        f"{HALVED}::test_what_is_said_to_be_known_must_have_been_known",
    ),
    Mutant(
        "axes come in another order",
        CODEC,
        "flat.view(stored).permute(back)",
        "flat.view(shape)",
        f"{HALVED}::test_back_and_forth",
    ),
    Mutant(
        "a reply that was not heard does not matter",
        HALVES,
        "            if replied:",
        "            if False:",
        f"{HALVED}::test_a_reply_that_was_not_heard_is_asked_for_and_sent_again",
    ),
    Mutant(
        "polls that bring nothing are messages",
        "federation/wire.py",
        "        if empty:",
        "        if False:",
        "test_wire.py::test_polls_that_bring_nothing_are_idle",
    ),
    Mutant(
        "a relay counts one way",
        "federation/wire.py",
        "current.down += len(chunk)",
        "current.down += 0",
        "test_wire.py::test_a_relay_counts_every_byte_and_changes_none",
    ),
    Mutant(
        "a round's bytes are those so far",
        "federation/wire.py",
        'columns[f"{way}_bytes"][t + 1] - columns[f"{way}_bytes"][t]',
        'columns[f"{way}_bytes"][t + 1]',
        "test_wire.py::test_rows_of_a_record",
    ),
    Mutant(
        "classes of other distributions are named without their module",
        "core/checks.py",
        'return kind.__name__ if module.partition(".")[0] == "fedtheory" else f"{module}.{kind.__qualname__}"',
        "return kind.__name__",
        "test_own_code.py",
    ),
    Mutant(
        "a run trains in the caller's autocast",
        "core/problem.py",
        "torch.autocast(kind, enabled=False)",
        "torch.autocast(kind)",
        "test_own_code.py",
    ),
    Mutant(
        "who is stacked with a client may matter",
        "core/loop.py",
        "off > _STACKED",
        "off > 1e9",
        "test_own_code.py",
    ),
    Mutant(
        "functions of C are all the same",
        "core/fingerprints.py",
        'yield f"{name}: {kind} {module}.{own}".encode()',
        'yield f"{name}: {kind}".encode()',
        "test_own_code.py",
    ),
    Mutant(
        "one diverged seed contradicts",
        "running/verdicts.py",
        "lost == seeds > 1 and ran",
        "lost and ran",
        "test_verdicts.py",
    ),
    Mutant(
        "Benjamini-Hochberg stops at the first that is too large",
        "running/verdicts.py",
        "count = max((place for place, at in enumerate(order, 1) if chances[at] <= level * place / total), default=0)",
        "count = sum(chances[at] <= level * place / total for place, at in enumerate(order, 1))",
        "test_verdicts.py",
    ),
    Mutant(
        "a client takes tensors of any type",
        "federation/codec.py",
        "if of != str(like.dtype):",
        "if False:",
        "test_halves.py",
    ),
]


def copy_tree(source: Path, folder: Path) -> Path:
    """The package, its tests, docs and settings, without caches, in a new folder."""
    clean = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("fedtheory", "tests", "docs"):
        shutil.copytree(source / name, folder / name, ignore=clean)
    shutil.copy(source / "pyproject.toml", folder)
    return folder


def apply(mutant: Mutant, folder: Path) -> None:
    path = folder / "fedtheory" / mutant.file
    path.write_text(path.read_text().replace(mutant.old, mutant.new))


def stale(mutants: list[Mutant]) -> list[str]:
    """Rows whose text the package no longer holds."""
    return [
        f"{mutant.file} does not hold {mutant.old!r}: rewrite the mutant {mutant.what!r}"
        for mutant in mutants
        if mutant.old not in (ROOT / "fedtheory" / mutant.file).read_text()
    ]


def outcome(folder: Path, tests: list[str]) -> int:
    """pytest's exit status for these tests on the copy: 0 passed, 1 some failed, else something is wrong.

    In a child process that has torch already, but not yet the package.
    """
    child = os.fork()
    if child == 0:
        status = 3
        try:
            sink = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            os.chdir(folder)
            sys.path[:] = [str(folder), *(p for p in sys.path if Path(p).resolve() != ROOT / "tests")]
            import pytest

            import fedtheory

            assert Path(fedtheory.__file__).is_relative_to(folder)
            status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:nbval", *tests])
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(int(status))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def paths(tests: str) -> list[str]:
    return [f"tests/{test}" for test in tests.split()]


def main(words: list[str]) -> int:
    import numpy  # noqa: F401  # imported once, here, and inherited by every child
    import torch

    torch.set_num_threads(1)
    chosen = [mutant for mutant in MUTANTS if not words or any(word in " ".join(mutant) for word in words)]
    if lost := stale(chosen):
        print("\n".join(lost))
        return len(lost)
    started, survived = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as temporary:
        sound = copy_tree(ROOT, Path(temporary).resolve() / "sound")
        named = sorted({test for mutant in chosen for test in paths(mutant.tests)})
        if outcome(sound, named) != 0:
            print((sound / "output.txt").read_text())
            print("the tests must pass on the sound package before a mutant means anything")
            return 1
        print(
            f"the sound package passes the {len(named)} tests named ({time.perf_counter() - started:.0f} s)", flush=True
        )
        for i, mutant in enumerate(chosen):
            folder = copy_tree(sound, sound.with_name(f"mutant{i}"))
            apply(mutant, folder)
            status = outcome(folder, paths(mutant.tests))
            verdict = {0: "SURVIVED", 1: "killed"}.get(status, f"ERROR (status {status})")
            if status != 1:
                survived.append(mutant)
                print((folder / "output.txt").read_text())
            print(f"{verdict:9s} {mutant.file:32s} {mutant.what}", flush=True)
            shutil.rmtree(folder)
    killed = len(chosen) - len(survived)
    print(f"{killed} of {len(chosen)} mutants killed, {time.perf_counter() - started:.0f} s")
    return len(survived)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
