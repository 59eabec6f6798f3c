"""FedMUD, Section 4 and Appendix D: the entries. What they are made of: mud_round, mud_proof and mud_checks."""

from fedtheory.theory.claim import Claim, Printed
from fedtheory.theory.fedmud import proof
from fedtheory.theory.fedmud.checks import (
    BOTH,
    LOW,
    REDRAWN,
    REPAIR,
    SECOND,
    SMALL,
    WHOLE,
    A1_ball,
    A1_curvature,
    A2_pairs,
    A3_inequality,
    A3_sure,
    A3_window,
    A4_draw,
    A4_trained,
    apart,
    at_rest,
    bent,
    both,
    bowl,
    bowl_and_dome,
    burst,
    carried,
    column,
    descent_lemma,
    drifting,
    drifting_whole,
    each_needed,
    eq15,
    eq16,
    eq17,
    eq18,
    eq29,
    eq49_bound,
    eq67,
    eq69,
    eq69_literal,
    eq70,
    fedlmt,
    first65,
    flutter,
    gamma_grows,
    grown,
    jumped,
    noise,
    once,
    one_step,
    order71,
    printed,
    printed2,
    printed68,
    rare_drift,
    rate1,
    redrawn,
    remark1_printed,
    repaired_theorem,
    resting,
    same_noise,
    scalars,
    slacks_A4,
    slacks_tilted,
    slower,
    stationary,
    steady,
    stepsize,
    stuck,
    theorem_printed,
    tilted,
    to_the_centre,
    together,
    uneven,
)
from fedtheory.theory.fedmud.proof import RESET
from fedtheory.theory.fedmud.round import (
    A1,
    A2,
    A3,
    A4,
    FRESH,
    SIGNS,
    STEP,
    SURE,
    UNBIASED,
    admissible,
    broken,
    gaps,
    mud,
    sq,
    survives,
    with_units,
)
from fedtheory.theory.forms import chain


def section4() -> list[Claim]:
    return [
        mud(
            "A1", "Sec. 4; D.2, Assumption 1 (25)",
            "Section 4: every f_i is L_s-smooth. Appendix: h_i(x_1) <= h_i(x_2) + <x_1 - x_2, grad h_i(x_2)> + "
            "(L_s/2) ||x_1 - x_2||^2 too, for all x_1, x_2, with the same L_s; common in distributed settings.",
            "definition", check=A1_curvature,
            control=survives(A1_ball(0.98), "A1 control", "1% below L_h", near=[uneven]),
            broken="the repair with L_h 1% smaller", assumes=(A1,), error="wrong statement",
            repair="On the bounded set of A3, and with a constant of its own: grad h_i is Lipschitz between x_i and "
            "xbar with L_h = L_s max(1, kappa_u^2 + kappa_v^2) + sup ||grad f_i||, attained for linear losses. "
            "Lipschitz, as the proof needs it; (25) bounds curvature from above only.",
            repaired=survives(A1_ball(), "A1", "L_h on the set of A3", near=[uneven, apart]),
            implies="Taken literally the appendix is about nothing: h's curvature along V at (sU, V/s) is s^2 times "
            "f's along U xi^T, so with a bound for all s f lies below its tangent along every rank-one line through W; "
            "if f is bounded below, grad_l f(W) = 0 in every decomposed layer.",
        ),
        mud(
            "A2", "Sec. 4; D.2, Assumption 2 (26)",
            "E grad F_i = grad f_i, E||grad F_i - grad f_i||^2 <= sigma^2, E||grad F_il||^2 <= G^2; appendix: E grad "
            "H_i = grad h_i.", "definition",
            reading=FRESH,
            check=gaps("A2", A2_pairs(SIGNS)), control=gaps("A2", A2_pairs(((1.0, 0.5), (0.0, 0.5)))),
            broken="noise with a mean",
        ),
        mud(
            "A3.exact", "Sec. 4; D.2, after (28)",
            "In FedMUD Assumption 3 holds exactly: U_t = U_0 + eta sum g_i, ||g_i|| <= G give ||U_t||^2 <= (tau + "
            "1)[||U_0||^2 + eta^2 tau^2 G^2].", "inequality",
            check=both(
                broken(grown, A3_window(0), "f = -w, |grad f| = 1 surely, U = 10, V = 0, eta = 1, six steps",
                       admissible),
                broken(jumped, A3_window(1), "E g^2 = 1, g = 64 with probability 2^-12, one step", admissible),
            ),
            control=survives(A3_sure(0.99), "A3", "1% below", near=[together]),
            broken="the repair, 1% less", assumes=(A1, A2), error="wrong step",
            repair=f"With {SURE}: ||U_t|| + ||V_t|| <= (1 + eta G)^(t - t_s) (||U|| + ||V||) at t_s, attained; A3 "
            "holds with constants that grow exponentially in S. The printed line holds where the g_i themselves are "
            "bounded by G, with 2 in place of tau + 1.",
            repaired=both(
                survives(A3_sure(), "A3", "||U|| + ||V|| against (1 + eta G)^tau", LOW, near=[together]),
                A3_inequality(2.0),
            ),
            implies="g_i is grad F V: its bound grows with V, and V with U. A bound on grad F in the mean square, as "
            "in A2, bounds neither surely after a single step.",
        ),
        mud(
            "A4", "Sec. 4; D.2, Assumption 4 (28)",
            "delta_min(Ubar)^2 + delta_min(Vbar)^2 >= psi_uv^2 > 0 for all t; supported by the Marchenko-Pastur "
            "theory.",
            "definition", check=A4_draw(False), control=A4_draw(True),
            broken="a column of U repeated: entries that are not independent",
            as_printed=A4_trained,
            caveat="at the draw of U (m x r, r <= m), where that theory speaks; later iterates may lose it",
            implies="And it is not what Lemma 1 needs: that is the least eigenvalue of U U^T or V V^T, zero for r < "
            "min(m, n).",
        ),
        mud(
            "theorem1", "Sec. 4, Theorem 1 (10); D.4 (64)",
            "A1-A4, 1 < c < 2, 0 < eta <= min{(psi^2/2)^(1/(c-1)), 1/L_s, 1}: (1/T) sum E||grad f(w^{t-1})||^2 <= "
            "2/(eta^c T)(f(w^0) - f*) + O(eta^(2-c))[1 + (L - rho) O(Gu^4 + Gv^4)], (64): and O(Gu^2 Gv^2); terms in "
            "(71).",
            "rate",
            check=theorem_printed(stuck, "f = (w_22 - 1)^2/2, U = (1/4, 0), V = 0"),
            control=survives(proof.theorem(1.5, 1.95), "theorem", "1.95 times the left side", near=[bowl]),
            broken="the repair with the left side times 1.95 (1.93 holds where it is tightest)",
            assumes=(A1, A2, A3, A4, STEP), error="wrong step", repair=REPAIR, repaired=repaired_theorem,
            implies="Between resets FedMUD moves within the span of U and V: a low-rank update that misses the "
            "gradient stays at a point that is not stationary for ever, whatever eta and T. What saves the algorithm "
            "is the random redraw of U, which the theorem does not use; see mud.sharper.reset. Units: eta <= 1 and "
            "eta^c change with the unit of the loss. (Smoothness of h is met on the set of A3; asked for everywhere, "
            "it leaves no decomposed layer anything to learn, see mud.A1.)",
        ),
        mud(
            "remark1", "Sec. 4, Remark 1",
            "rho = L: Theorem 1 is FedAvg's. For eta = 1/sqrt T, c -> 1 FedAvg and FedMUD have rate O(1/sqrt T).",
            "rate",
            check=remark1_printed,
            control=survives(proof.theorem(1.0, 1.95), "fedavg", "1.95 times the left side", near=[bowl]),
            broken="the repair with the left side times 1.95", assumes=(A1, A2, A3, A4, STEP), error="wrong statement",
            repair="For rho = L and eta <= 1/L_s, c = 1: (1/T) sum E||grad f||^2 <= 2(f(w^0) - f*)/(eta T) + L_s eta "
            "sigma^2/N + 4 L_s^2 L E^2 G^2 eta^2. For FedMUD, given the repaired Theorem 1: c = 1 + 2 "
            "log(2/psi^2)/log T, and 2/(eta^c T) = 4/(psi^2 sqrt T); c -> 1 at a fixed T is not allowed, as "
            "(psi^2/2)^(1/(c-1)) -> 0 for psi^2 < 2.",
            repaired=both(
                survives(proof.theorem(1.0), "fedavg", "rho = L, c = 1", WHOLE, near=[bowl, to_the_centre]), rate1(4.0)
            ),
            implies="For every T the average squared gradient of the counterexample is 1.",
        ),
        mud(
            "remark2", "Sec. 4, Remark 2; Sec. 3.1",
            "FedMUD's rate is affected by (L - rho) O(Gu^4 + Gv^4); Gu, Gv increase with S up to kappa_u, kappa_v; so "
            "convergence is slower for larger S.", "rate",
            check=slower("s = 1", "s = 4", "s >= R"), control=gamma_grows(True),
            broken="the repair for all S, also where kappa_u is reached", assumes=(A1, A2, A3, A4, STEP),
            error="wrong statement",
            repair="Gamma_u and Gamma_v, and with them the terms of the repaired Theorem 1, do not fall as S grows, "
            "and rise until they are kappa_u, kappa_v. That is a bound, not the algorithm.",
            repaired=gamma_grows(False),
            implies="With a small a the first local steps after a reset see almost nothing of the gradient (a^2/3 of "
            "it), so that s = 1 starts anew each round; longer windows let U and V grow, and their steps with them.",
        ),
        mud(
            "remark3", "Sec. 4, Remark 3; Sec. 1",
            "S >= T, W_l = 0, U_l and V_l random: Theorem 1 is FedLMT's; larger S makes FedLMT slower than FedMUD.",
            "rate",
            check=both(
                theorem_printed(resting, "f = |w - I|^2/2, W = 0, U = V = (1, 0)", fedlmt=True),
                slower("s = 1", "FedLMT"),
            ),
            control=fedlmt("V"), broken="V = 0 at the start", assumes=(A1, A2, A3, A4, STEP), error="wrong step",
            repair="With S >= T, W_l = 0 and random factors FedMUD is FedLMT, and the repaired Theorem 1 (any start, "
            "no reset) is about it. It orders no two algorithms.",
            repaired=both(fedlmt(), survives(proof.theorem(1.5), "theorem", "repaired, any start, no reset", SMALL)),
            implies="Theorem 1 fails for FedLMT as it does for FedMUD (Lemma 1): a model of rank r has no stationary "
            "point where the minimiser has a larger rank. And FedLMT can be the faster one, within the theorem's step "
            "sizes.",
        ),
        mud(
            "sharper.reset", "not in the paper",
            REDRAWN + ". E = 1, reset in every iteration, samples drawn anew and independent across clients, eta <= r "
            "s^2/(L_s c_U), c_U = r (E U_11^4 + (m + r - 2) s^4): (1/T) sum E||grad f(w^t)||^2 <= 2(f(w^0) - "
            "f*)/(eta r s^2 T) + L_s eta c_U sigma^2/(r s^2 N).",
            "rate",
            check=redrawn(), control=redrawn(1.02), broken="eta 2% larger than allowed", assumes=(A1, UNBIASED),
            implies="FedMUD with s = 1 converges at any rank, without A3, A4 or a bound on gradients; the price is "
            "the factor c_U/(r s^2), about m s^2, in the admissible step size.",
        ),
    ]  # fmt: skip


def formulation() -> list[Claim]:
    """D.1."""
    return [
        mud(
            "eq15", "App. D.1 (15)",
            "x_i^t = x_i^{t-1} - eta (1/N) sum_j grad H_j(x_j^{t-1}) if t mod E = 0, else x_i^{t-1} - eta grad "
            "H_i(x_i^{t-1}).",
            "algorithm", check=eq15(False), control=eq15(True, averaged=False),
            broken="the repair with the client's own gradient", error="misprint",
            repair="xbar^{t-1} in place of x_i^{t-1} in the first line.", repaired=eq15(True),
            implies="As printed clients never agree again after their first local steps; (33), (36), (40), (42) use "
            "the repaired line, and so does FedMUD.",
        ),
        mud(
            "eq16", "App. D.1 (16)",
            "At t mod S = 0: U V^T is added to the frozen parameters, U redrawn by seed, V = 0; w is unchanged.",
            "algorithm",
            check=eq16(False), control=eq16(True), broken="V drawn at random too",
        ),
        mud(
            "eq17", "App. D.1 (17)", "Wbar, Ubar, Vbar, xbar are the averages over the clients.", "definition",
            check=eq17(False), control=eq17(True), broken="unequal weights",
        ),
        mud(
            "eq18", "App. D.1 (18)", "wbar^t is recovered from xbar^t: Wbar + Ubar Vbar^T.", "definition",
            check=eq18(True), control=eq18(False), broken="the average of the clients' w",
        ),
        mud(
            "eq19", "App. D.1 (19)", "xbar^t = xbar^{t-1} - eta (1/N) sum_i grad H_i(x_i^{t-1}).", "identity",
            check=gaps("19", proof.eq19(False)), control=gaps("19", proof.eq19(False, own=False)),
            broken="gradients at xbar^{t-1} for all clients",
            as_printed=gaps("19", proof.eq19(True)), caveat=RESET,
        ),
        mud(
            "FH", "App. D.1, before (20)", "F_i(w) = H_i(x), F_i(wbar) = H_i(xbar); grad F_il = grad H_il for l <= "
            "rho.",
            "identity", check=gaps("FH", proof.FH(False)), control=gaps("FH", proof.FH(True)),
            broken="wbar read as the average of the w_i",
        ),
        mud(
            "eq20", "App. D.1 (20)", "grad H_il(x_i) = [grad F_il(w_i) V_il; grad F_il(w_i)^T U_il], l > rho.",
            "identity",
            check=gaps("20", proof.eq20()), control=gaps("20", proof.eq20(0.0)), broken="the frozen W left out of w",
        ),
        mud(
            "eq21", "App. D.1 (21)", "The same for grad h_il, grad H_l(xbar), grad h_l(xbar).", "identity",
            check=gaps("21", proof.eq21(True)), control=gaps("21", proof.eq21(False)),
            broken="the average of the grad f_il(w_i) for grad f_l(wbar)",
        ),
        mud(
            "eq22", "App. D.1 (22)",
            "||grad H_il(x_i^{t-1})||^2 = ||grad F_il(w_i^{t-1}) V_il^t||^2 + ||grad F_il(w_i^{t-1})^T U_il^t||^2; "
            "same for h.",
            "identity", check=broken(
                lambda: scalars((1, 0), 0.5, 1, h=column(0), a=column(1)), proof.eq22_sides,
                "f = w, U = 1, V = 0, eta = 1/2, the right side as printed against the left", admissible),
            control=gaps("22", proof.eq22(1)), broken="the repair with V^t, one index as printed", error="index",
            repair="U^{t-1}, V^{t-1} in place of U^t, V^t.", repaired=gaps("22", proof.eq22(0)),
            implies="None: (37) uses the repaired form.",
        ),
        mud(
            "eq23-24", "App. D.1 (23)-(24)", "||grad h_i||^2 = sum_l ||grad h_il||^2, the same for H, f, F.",
            "identity",
            check=gaps("24", proof.eq24(True)), control=gaps("24", proof.eq24(False)),
            broken="the first layer left out",
        ),
        mud(
            "stationary", "App. D.1, end", "The sequence w^1, ..., w^T converges to a local stationary point.", "rate",
            check=stationary, control=at_rest(0.98), broken="the repair, 2% less", assumes=(A1, A2),
            error="wrong statement",
            repair="Where FedMUD without decomposed layers and noise rests, ||grad f|| <= (E - 1)/2 eta L_s max ||grad "
            "f_i(w_i)||, attained to the first order in eta: stationary for E = 1 or eta -> 0 only. In general the "
            "repaired Theorem 1 bounds an average of squared gradients; it says nothing of convergence.",
            repaired=at_rest(),
            implies="With a constant step FedMUD comes to rest where grad f is not 0, without any decomposed layer and "
            "without noise. What the proof of App. D shows, where it can be repaired, is a bound on an average.",
        ),
    ]  # fmt: skip


def lemmas123() -> list[Claim]:
    rank1 = "r < min(m, n): V^T (r x n) has a kernel, delta_min(V) is the least of its r singular values only"
    eigenvalues = "least eigenvalues of the m x m, n x n matrices"
    gram = "With the least eigenvalues of U U^T (m x m), V V^T (n x n) for delta_min^2: nothing for r < min(m, n). "
    return [
        mud(
            "eq29", "App. D.3 (29)", "||sum_{i=1}^n z_i||^2 <= n sum ||z_i||^2, for matrices too.", "inequality",
            check=eq29(0), control=eq29(-1), broken="n - 1",
        ),
        mud(
            "lemma1", "App. D.3, Lemma 1 (30)", "Under A4: ||grad h_l(x^t)||^2 >= psi_uv^2 ||grad f_l(w^t)||^2, l > "
            "rho.",
            "inequality",
            check=broken(tilted, proof.lemma1(False), "U = (1, 1/8), V = 0, grad f = -E_22", slacks_tilted),
            control=survives(proof.lemma1(True, 1.01), "lemma1", eigenvalues),
            broken="1% above the repair, which is attained",
            assumes=(A4,), error="wrong step", repair=gram + REDRAWN,
            repaired=both(survives(proof.lemma1(True), "lemma1", eigenvalues), redrawn()),
            implies="A gradient orthogonal to the span of U (and of V) does not move FedMUD until the next reset.",
        ),
        mud(
            "eq31", "App. D.3 (31)",
            "||grad h_l||^2 = ||V^T grad f^T||^2 + ||U^T grad f||^2 >= (delta_min(V)^2 + delta_min(U)^2) ||grad "
            "f||^2, by delta_min(U) ||V||_F <= ||U V||_F for any U (m x r), V (r x n).", "inequality",
            check=broken(tilted, proof.lemma1(False), f"{rank1}: U = (1, 1/8)", slacks_tilted),
            control=survives(proof.lemma1(True, 1.01), "lemma1", eigenvalues), broken="1% above the repair",
            assumes=(A4,), error="wrong step",
            repair="delta_min(U) ||V||_F <= ||U V||_F needs m >= r; it is used for U^T (r x m) and V^T (r x n), so r "
            ">= m, n.",
            repaired=survives(proof.lemma1(True), "lemma1", eigenvalues),
            implies="The lemma that is cited is about tall matrices.",
        ),
        mud(
            "lemma2", "App. D.3, Lemma 2 (32)",
            "E||U_il^t||^2 <= Gu^2 = min{2 eps_u^2 + 2 eta^2 S^2 G^2 kappa_v^2, kappa_u^2}, E||V_il^t||^2 <= Gv^2.",
            "expectation", check=with_units(survives(proof.lemma2(), "lemma2", near=[steady]), lambda q: [
                q.mean(sq(q.factors(q.u)[0][0])).max(), 2 * q.epsilon[0],
                2 * q.at.lr**2 * q.at.S**2 * q.G2 * q.kappa[1], q.kappa[0]]),
            control=survives(proof.lemma2(0.99), "lemma2", near=[steady]), broken="Gamma^2 1% smaller",
            assumes=(A2, A3),
            as_printed=broken(
                lambda: scalars((1 / 8, 1), 0.5, 1, h=column(0), a=column(1 / 8)), printed2,
                "t = t_s, eps_v^2 = ||U||^2 = 1/64, V = 1", admissible,
            ),
            caveat="||V^{t_s}||^2 <= eps_v^2, where (27) prints U twice. FedMUD has V = 0 there; FedLMT needs it",
        ),
        mud(
            "eq33", "App. D.3 (33)",
            "U_i^t = U^{t_s} - eta sum_{tau <= t_e} av_j a_j^{tau-1} - eta sum_{tau > t_e} a_i^{tau-1}.", "identity",
            check=gaps("33", proof.eq33(True)), control=gaps("33", proof.eq33(False)),
            broken="the client's own gradients up to t_e",
        ),
        mud(
            "eq34", "App. D.3 (34)", "The chain to E||U_i^t||^2 <= 2 eps_u^2 + 2 eta^2 S^2 G^2 kappa_v^2.",
            "expectation",
            check=survives(proof.eq34(), "34", "every step", near=[steady]),
            control=survives(proof.eq34(0.99), "34", "99% of every line", near=[steady]),
            broken="right-hand sides 1% smaller", assumes=(A2, A3),
        ),
        mud(
            "lemma3", "App. D.3, Lemma 3 (35)", "Under A1, A2: E||xbar_l^t - x_il^t||^2 <= 4 eta^2 E^2 G^2 (Gu^2 + "
            "Gv^2).",
            "expectation", check=with_units(survives(proof.lemma3(), "lemma3", near=[drifting]), lambda q: [
                q.mean(((q.u - q.ubar[:, None]) ** 2).sum(-1)).max(), q.at.lr**2 * q.G2 * q.gamma()[0],
                q.at.lr**2 * q.G2 * q.gamma()[1]]),
            control=survives(proof.lemma3(0.93), "lemma3", near=[drifting]), broken="3.72 in place of 4",
            assumes=(A1, A2),
            reading=FRESH,
            as_printed=survives(proof.lemma3(1.0, kappa=(1e-3, 1e-3)), "lemma3", "U, V not bounded by kappa"),
            caveat="Assumption 3, through Lemma 2: under A1 and A2 alone Gamma bounds nothing",
        ),
        mud(
            "eq36", "App. D.3 (36)", "x_i^t and xbar^t from xbar^{t_e} by sums of grad H_i and of their average.",
            "identity",
            check=gaps("36", proof.eq36()), control=gaps("36", proof.eq36(False)),
            broken="one client's gradients for their average",
        ),
        mud(
            "eq37", "App. D.3 (37)",
            "... <= 2 eta^2 (t - t_e) E[(1/N) sum_i sum_tau ||grad H_il||^2 + sum_tau ||grad H_il||^2] <= 4 eta^2 (t "
            "- t_e)^2 E[||grad F_il(w_i^{tau-1}) V_il^{tau-1}||^2 + ||grad F_il^T U_il^{tau-1}||^2] <= 4 eta^2 E^2 "
            "G^2 (Gu^2 + Gv^2).",
            "expectation", check=broken(uneven, proof.eq37(True), "f_1 = w, f_2 = w/8: line 3 of client 2", admissible),
            control=survives(proof.eq37(False, 0.99), "37", near=[drifting]), broken="the repair, every line 1% less",
            assumes=BOTH, reading=FRESH, error="index",
            repair="The third line with the largest of E||grad H_jl(x_j^{tau-1})||^2 over j and tau.",
            repaired=survives(proof.eq37(False), "37", "every step", near=[drifting]),
            implies="None for Lemma 3: i and tau are free in the third line, where sums over both were.",
        ),
    ]  # fmt: skip


def lemmas45() -> list[Claim]:
    rare_event = "A gradient that is rarely large has E||g||^4 far above G^4"
    sure = f"With {SURE}: then Gamma bounds U and V surely, and the display holds as printed."
    return [
        mud(
            "lemma4", "App. D.3, Lemma 4 (38)",
            "E||wbar^t - w_i^t||^2 <= Lambda = 4 rho eta^2 E^2 G^2 + 12 (L - rho) eta^2 E^2 G^2 (Gu^4 + Gv^4 + eta^2 "
            "E^2 G^2 Gu^2 Gv^2). (12 in the text layer, 2 in the LaTeX layer: 12 is what (46) sums to, and 2 fails.)",
            "expectation",
            check=broken(burst, proof.lemma4(False), "eta g = 128 with probability 2^-50", admissible),
            control=survives(proof.lemma4(True, 7.4), "lemma4", near=[drifting]),
            broken="the repair with 7.4 in place of 12 (so the 2 of the LaTeX layer fails too)", assumes=BOTH,
            error="wrong independence",
            repair=sure,
            repaired=with_units(survives(proof.lemma4(True), "lemma4", near=[drifting, drifting_whole]), lambda q: [
                q.mean(((q.w - q.wbar[:, None]) ** 2).sum(-1)).max(), q.at.lr**2 * q.G2 * q.gamma()[0] ** 2,
                q.at.lr**4 * q.G2**2 * q.gamma()[0] * q.gamma()[1]]),
            implies=f"{rare_event}: the clients' recovered models drift apart further than Lambda says. (V = 1 at t_s, "
            "as A3 admits and FedLMT may have it; from FedMUD's V = 0: mud.lemma5.)",
        ),
        mud(
            "eq39", "App. D.3 (39)", "E||wbar - w_i||^2 = E[sum_{l<=rho} ||Wbar_l - W_il||^2 + sum_{l>rho} ||Ubar "
            "Vbar^T - U_i V_i^T||^2].",
            "identity", check=gaps("39", proof.eq39(False)), control=gaps("39", proof.eq39(True)),
            broken="the average of U_i V_i^T for Ubar Vbar^T",
        ),
        mud(
            "eq40-41", "App. D.3 (40)-(41)", "W_i, Wbar from Wbar^{t_e}; E sum_{l<=rho} ||Wbar - W_i||^2 <= ... <= 4 "
            "rho eta^2 E^2 G^2.",
            "expectation", check=both(
                survives(proof.eq41(), "41", "every step", near=[drifting_whole]), gaps("40", proof.eq40())),
            control=survives(proof.eq41(0.99), "41", near=[drifting_whole]), broken="every line 1% less",
            assumes=(A2,),
        ),
        mud(
            "eq42", "App. D.3 (42)", "U_i, Ubar, V_i, Vbar from those at t_e.", "identity",
            check=gaps("42", proof.eq42()), control=gaps("42", proof.eq42(False)),
            broken="one client's gradients for their average",
        ),
        mud(
            "eq43", "App. D.3 (43)", "Ubar Vbar^T - U_i V_i^T = A_l + B_l + C_l + D_l.", "identity",
            check=gaps("43", proof.eq43()), control=gaps("43", proof.eq43(3)), broken="without D_l",
        ),
        mud(
            "eq44", "App. D.3 (44)", "E||A_l||^2 <= eta^2 Gv^2 E||sum av a_j - sum a_i||^2 <= ... <= 4 eta^2 E^2 G^2 "
            "Gv^4; B_l.",
            "expectation",
            check=broken(carried, proof.eq44(False), "Vbar^{t_e} = -1 with probability 2^-39", admissible),
            control=survives(proof.eq44(True, 0.93), "44", near=[drifting]),
            broken="the repair with 3.72 in place of 4", assumes=BOTH,
            error="wrong independence", repair=sure, repaired=survives(proof.eq44(True), "44", near=[drifting]),
            implies=f"Step (a) takes Vbar^(t_e), which is random, out of the expectation at its mean square: {SECOND}.",
        ),
        mud(
            "eq45", "App. D.3 (45)", "E||C_l||^2 <= ... <= eta^4 E^4 G^4 Gu^2 Gv^2, the same for D_l.", "expectation",
            check=broken(burst, proof.eq45(False), "eta g = 128 with probability 2^-50", admissible),
            control=survives(proof.eq45(True, 0.93), "45", near=[together]), broken="the repair, 7% less", assumes=BOTH,
            error="wrong independence", repair=sure, repaired=survives(proof.eq45(True), "45", near=[together]),
            implies=f"Step (d) puts G^4 for E||g||^4: {SECOND}.",
        ),
        mud(
            "eq46", "App. D.3 (46)", "Given (44), (45): E sum ||A + B + C + D||^2 <= 3 sum E[...] <= 3 sum E[... + "
            "2||C||^2 + 2||D||^2] = 12 (L - rho) eta^2 E^2 G^2 (Gu^4 + Gv^4 + eta^2 E^2 G^2 Gu^2 Gv^2).", "inequality",
            check=survives(proof.eq46(12), "46", "every step, the last where (44), (45) hold", near=[drifting]),
            control=survives(proof.eq46(11), "46", near=[drifting]), broken="12 lowered to 11",
            assumes=(*BOTH, Printed("E||A_l||^2, E||B_l||^2 as bounded there", "eq. (44)"),
                     Printed("E||C_l||^2, E||D_l||^2 as bounded there", "eq. (45)")),
        ),
        mud(
            "lemma5", "App. D.3, Lemma 5 (47)",
            "E||wbar^t - wbar^{t-1}||^2 <= sum_{l<=rho} eta^2 E||av grad f_il||^2 + eta^2 sigma^2/N + 3 (L - rho) "
            "eta^2 G^2 (Gu^4 + Gv^4 + eta^2 G^2 Gu^2 Gv^2).", "expectation",
            check=broken(flutter, proof.lemma5(False), "V jumps with probability 2^-86, 512 iterations", admissible),
            control=survives(proof.lemma5(True, 1.98), "lemma5", near=[one_step]),
            broken="the repair with 1.98 in place of 3", assumes=BOTH, error="wrong independence", repair=sure,
            repaired=with_units(survives(proof.lemma5(True), "lemma5", near=[one_step, noise]), lambda q: [
                q.mean(((q.wbar[1:] - q.wbar[:-1]) ** 2).sum(-1)).max(), q.at.lr**2 * q.G2 * q.gamma()[0] ** 2]),
            implies=f"{rare_event}. FedMUD's own start V = 0 and kappa_u^2 = 100 epsilon_u^2 break it, in a window "
            "long enough: every iteration may be the one with the jump.",
        ),
        mud(
            "eq48", "App. D.3 (48)", "E||wbar^t - wbar^{t-1}||^2 as a sum over layers, with Ubar Vbar^T for l > rho.",
            "identity",
            check=gaps("48", proof.eq48(False)), control=gaps("48", proof.eq48(False, whole=False)),
            broken="without l <= rho", as_printed=gaps("48", proof.eq48(True)), caveat=RESET,
        ),
        mud(
            "eq49", "App. D.3 (49)", "E sum_{l<=rho} ||Wbar^t - Wbar^{t-1}||^2 = ... = (eta^2/N^2) sum E||g - d||^2 + "
            "eta^2 E||av d||^2 <= eta^2 sigma^2/N + ....", "expectation",
            check=both(gaps("49", proof.eq49), survives(eq49_bound(), "49", "the bound", [*WHOLE], near=[noise])),
            control=survives(eq49_bound(0.99), "49 control", "99% of sigma^2/N", near=[noise]),
            broken="the noise term 1% smaller", assumes=(A2,), reading=FRESH,
            as_printed=broken(same_noise, eq49_bound(), "N = 2, the same noise +-1 for both clients", admissible),
            caveat="the samples of different clients are independent given the past; A2 does not say so",
        ),
        mud(
            "eq50", "App. D.3 (50)", "Ubar^t Vbar^{tT} - Ubar^{t-1} Vbar^{t-1 T} = A_l + B_l + C_l.", "identity",
            check=gaps("50", proof.eq50(False)), control=gaps("50", proof.eq50(False, 2)), broken="without C_l",
            as_printed=gaps("50", proof.eq50(True)), caveat=RESET,
        ),
        mud(
            "eq51", "App. D.3 (51)", "E||A_l||^2 <= ... <= eta^2 G^2 Gv^4; E||B_l||^2 <= eta^2 G^2 Gu^4.",
            "expectation",
            check=broken(flutter, proof.eq51(False), "V = -2^23 with probability 2^-77", admissible),
            control=survives(proof.eq51(True, 0.99), "51", near=[one_step]), broken="the repair, 1% less", assumes=BOTH,
            error="wrong independence", repair=sure, repaired=survives(proof.eq51(True), "51", near=[one_step]),
            implies=f"E||V||^4 is not Gv^4: {SECOND}.",
        ),
        mud(
            "eq52", "App. D.3 (52)", "E||C_l||^2 <= eta^4 E||av a||^2 E||av b||^2 <= ... <= eta^4 G^4 Gu^2 Gv^2.",
            "expectation",
            check=broken(once, proof.eq52(False), "g = 4 with probability 2^-10, U = V = 1", admissible),
            control=survives(proof.eq52(True, 0.99), "52", near=[one_step]), broken="the repair, 1% less", assumes=BOTH,
            error="wrong independence", repair=f"With {SURE}: E||C_l||^2 <= eta^4 E[||av a||^2 ||av b||^2] <= eta^4 "
            "G^4 Gu^2 Gv^2; the product of expectations in the middle stays too small.",
            repaired=survives(proof.eq52(True), "52", near=[one_step]),
            implies="a and b hold the same gradient: their squares are not independent.",
        ),
        mud(
            "eq53", "App. D.3 (53)", "Given (51), (52): E sum ||.||^2 <= 3 sum E[||A||^2 + ||B||^2 + ||C||^2] <= 3 (L "
            "- rho) eta^2 G^2 (Gu^4 + Gv^4 + eta^2 G^2 Gu^2 Gv^2).", "inequality",
            check=survives(proof.eq53(3), "53", "every step, the last where (51), (52) hold", near=[one_step]),
            control=survives(proof.eq53(2.97), "53", near=[one_step]), broken="3 lowered to 2.97",
            assumes=(*BOTH, Printed("E||A_l||^2, E||B_l||^2 as bounded there", "eq. (51)"),
                     Printed("E||C_l||^2 as bounded there", "eq. (52)")),
        ),
    ]  # fmt: skip


def lemma6_claims() -> list[Claim]:
    at, sl = stuck, slacks_A4
    lost = "U = (1/4, 0), V = 0, grad f = -E_22: nothing moves"
    exchange = (
        f"the repaired Lemma 4, hence {SURE}; and Lipschitz gradients, where (25) bounds curvature from above only"
    )
    steep = lambda q: {"(25), L_s = 1/100": 0.01 - float(q.at.problem.h.max())}
    concave = lambda: scalars((1,), 0.5, 2, h=column(-1, -1 / 2), b=column(0, 1))
    below = "f_1 = -w^2/2, f_2 = -(w - 1)^2/4 satisfy (25) with L_s = 1/100"
    needed = lambda terms: each_needed(
        broken(concave, terms(Ls=0.01), below, steep),
        broken(rare_drift, terms(sure=False), "a decomposed layer drifts rarely and far", admissible),
    )
    repair6 = (
        "With psi^2 ||grad f_l||^2 <= ||grad h_l||^2 along the run, ||grad F_il|| <= G surely, L_h for h, and 2 rho "
        "L_h^2 eta^3 E^2 G^2 more: as printed."
    )
    repaired6 = survives(proof.lemma6(), "lemma6", "psi^2 as it is")
    twice = survives(proof.lemma6(descent=2.02), "lemma6", "psi^2 as it is", near=[one_step])
    doubled = "the repair with 1.01 psi^2 in place of psi^2/2 (psi^2 holds for E = 1)"
    return [
        mud(
            "lemma6", "App. D.3, Lemma 6 (54)",
            "E<grad f(wbar), wbar^t - wbar^{t-1}> <= -(eta/2) sum_{l<=rho} (E||grad f_l||^2 + E||av grad f_il||^2) + "
            "(eta/2) L_s^2 Lambda + sum_{l>rho} (eta^2 - eta psi^2)/2 E||grad f_l||^2 + 2 (L - rho) L_s^2 eta^3 E^2 "
            "G^2 (Gu^2 + Gv^2) + (L - rho)/2 eta^2 G^4 Gu^2 Gv^2.", "expectation",
            check=broken(at, printed(4), lost, sl), control=twice, broken=doubled, assumes=(A1, A2, A3, A4),
            error="wrong step", repair=repair6,
            repaired=repaired6,
            implies="The descent eta psi^2/2 ||grad f||^2 is promised where no parameter moves; eta^2 ||grad f||^2 is "
            "not in units of the loss.",
        ),
        mud(
            "eq55", "App. D.3 (55)", "E<grad f(wbar), wbar^t - wbar^{t-1}> as a sum over layers.", "identity",
            check=gaps("55", proof.eq48(False, True)), control=gaps("55", proof.eq48(False, True, False)),
            broken="without l <= rho", as_printed=gaps("55", proof.eq48(True, True)), caveat=RESET,
        ),
        mud(
            "eq56", "App. D.3 (56)", "First term of (55) = ... <= -(eta/2) sum E||d||^2 - (eta/2) sum E||av d_i||^2 + "
            "(eta/2) L_s^2 Lambda.",
            "expectation", check=both(
                survives(proof.eq56(), "56", "from the first expression to the last", near=[bowl_and_dome]),
                gaps("56", proof.eq56_lines)),
            control=survives(proof.eq56(0.24), "56", near=[bowl_and_dome]), broken="0.24 Lambda (0.242 is needed)",
            assumes=BOTH, reading=FRESH, caveat=exchange, as_printed=needed(proof.eq56),
        ),
        mud(
            "eq57", "App. D.3 (57)", "sum_{l<=rho} E||d - av d_i||^2 <= ... <= av_i L_s^2 E||wbar - w_i||^2 <= L_s^2 "
            "Lambda.",
            "inequality", check=survives(proof.eq57(), "57", "every step", near=[bowl_and_dome]),
            control=survives(proof.eq57(0.99), "57", near=[bowl_and_dome]), broken="every line 1% less",
            assumes=BOTH, caveat=exchange, as_printed=needed(proof.eq57),
        ),
        mud(
            "eq58", "App. D.3 (58)", "Second term of (55) = sum_{l>rho} (-eta A_l - eta B_l + eta^2 C_l).", "identity",
            reading=FRESH,
            check=gaps("58", proof.eq58(True)), control=gaps("58", proof.eq58(False)), broken="without C_l",
        ),
        mud(
            "eq59", "App. D.3 (59)", "-A_l <= -(1/2) E||grad f_l(wbar) Vbar||^2 + (1/2) E||grad f_l(wbar) Vbar - "
            "(1/N) sum grad f_il(w^{t-1}) V_il||^2, w^{t-1} without index.", "inequality",
            check=survives(proof.eq59(True), "59", "w_i^{t-1}", near=[bent]),
            control=survives(proof.eq59(True, scale=0.99), "59", near=[bent]),
            broken="the last square 1% smaller",
            caveat="w^{t-1}, printed without index or bar, is client i's w_i^{t-1}, as in (58), (60) and (61): a "
            "misprint. Read as the average, as (10) against (64) would have it, it fails",
            as_printed=broken(
                bent, proof.eq59(False), "w^{t-1} read as wbar^{t-1}, both sides plus the first square", admissible),
            implies="None: (61) uses w_i^{t-1}.",
        ),
        mud(
            "eq60", "App. D.3 (60)", "The same for -B_l, with w_i^{t-1}.", "inequality",
            check=survives(proof.eq59(True, False), "60", near=[bent]),
            control=survives(proof.eq59(True, False, 0.99), "60", near=[bent]),
            broken="the last square 1% smaller",
        ),
        mud(
            "eq61", "App. D.3 (61)",
            "A_{l,1} + B_{l,1} = -(1/2) E||grad h_l(xbar)||^2 <= -(psi^2/2)||grad f_l(wbar)||^2; A_{l,2} + B_{l,2} = "
            "... <= (L_s^2/(2N)) sum E||xbar_l - x_il||^2 <= 2 L_s^2 eta^2 E^2 G^2 (Gu^2 + Gv^2).", "inequality",
            check=broken(tilted, proof.lemma1(False), "U = (1, 1/8), V = 0", slacks_tilted),
            control=survives(proof.eq61_terms(False, 0.24), "61", near=[apart]),
            broken="the repaired second part, 0.24 of the bound (0.242 is needed)",
            assumes=(A1, A2, A3, A4), error="wrong step",
            repair="First part: see Lemma 1. Second part, summed over l > rho: 2 L_h^2 eta^2 E^2 G^2 [(L - rho)(Gu^2 "
            "+ Gv^2) + rho], as a layer's gradient depends on all layers: smoothness of h bounds no layer by itself.",
            repaired=survives(proof.eq61_terms(False), "61", "second part, all layers", near=[apart]),
            implies="Both halves are used in Lemma 6; the second makes it short of 2 rho L_s^2 eta^3 E^2 G^2.",
        ),
        mud(
            "eq62", "App. D.3 (62)", "C_l <= (1/2) E||d||^2 + (1/2) E||[av a][av b]||^2 <= (1/2) E||d||^2 + (1/2) G^4 "
            "Gu^2 Gv^2.",
            "expectation",
            check=broken(once, proof.eq62(False), "second step, g = 4 with probability 2^-10", admissible),
            control=survives(proof.eq62(True, 0.99), "62", near=[one_step]),
            broken="the repair, the second bound 1% less", assumes=BOTH,
            error="wrong independence", repair=f"With {SURE}: as printed.",
            repaired=survives(proof.eq62(True), "62", near=[one_step]),
            implies="E||g||^4 again. For U and V that are not random the two ends of the display hold all the same.",
        ),
        mud(
            "eq63", "App. D.3 (63)", "Second term of (55) <= sum_{l>rho} (eta^2 - eta psi^2)/2 E||d||^2 + 2 (L - rho) "
            "L_s^2 eta^3 E^2 G^2 (Gu^2 + Gv^2) + (L - rho)/2 eta^2 G^4 Gu^2 Gv^2.", "inequality",
            check=broken(at, printed(5), lost, sl), control=twice, broken=doubled, assumes=(A1, A2, A3, A4),
            error="wrong step", repair=repair6,
            repaired=repaired6, implies="As Lemma 6.",
        ),
    ]  # fmt: skip


def theorem_claims() -> list[Claim]:
    at, sl = stuck, slacks_A4
    lost = "U = (1/4, 0), V = 0, grad f = -E_22: nothing moves"
    loss = "f(wbar) in place of grad f(wbar)"
    return [
        mud(
            "theorem1.eq65", "App. D.4 (65)",
            "E[grad f(wbar^t)] <= E[grad f(wbar^{t-1})] + E<grad f(wbar^{t-1}), wbar^t - wbar^{t-1}> + (L_s/2) "
            "E||wbar^t - w_i^t||^2.",
            "inequality", check=broken(
                lambda: scalars((1,), 0.5, 2, h=column(1, 1), b=column(1 / 8, -1 / 8)), first65,
                "f for grad f; f_i = (w -+ 1/8)^2/2, t = 1", admissible),
            control=survives(descent_lemma(False, 0.99), "65", near=[to_the_centre]),
            broken="the repair with L_s 1% smaller", assumes=(A1,),
            error="misprint", repair=f"{loss}, and wbar^t - wbar^{{t-1}} in the last term.",
            repaired=survives(descent_lemma(False), "65", near=[to_the_centre]),
            implies="None: (66) uses Lemma 5, which bounds the right "
            "distance.",
        ),
        mud(
            "theorem1.eq66", "App. D.4 (66)", "E[grad f(wbar^t)] <= E[grad f(wbar^{t-1})] + A_t + B_t + C.",
            "inequality",
            check=broken(at, printed(3), lost, sl),
            control=survives(proof.lemma5(True, 1.98), "lemma5", "Lemma 5", near=[one_step]),
            broken="the repair with 0.99 L_s (L - rho) eta^2 G^2 (...) in place of 1.5", assumes=(A1, A2, A3, A4),
            error="wrong step",
            repair=f"{loss}; Lemmas 5 and 6 as repaired.", repaired=both(
                survives(proof.lemma6(), "lemma6", "Lemma 6"), survives(proof.lemma5(True), "lemma5", "Lemma 5")),
            implies="Inherits Lemma 1 through Lemma 6; read with f for the misprinted grad f.",
        ),
        mud(
            "theorem1.eq67", "App. D.4 (67)",
            "A_t <= ... <= -(eta^c/2) E||grad f(wbar)||^2, B_t = sum_{l<=rho} (L_s eta^2 - eta)/2 E||av d_i||^2 <= 0.",
            "inequality",
            check=chain(eq67()), control=chain(eq67("101/100")), broken="descent 1% larger", assumes=(STEP,),
        ),
        mud(
            "theorem1.stepsize", "App. D.4, after (67)",
            "(a) 0 < eta <= 1, 1 < c < 2: -eta <= -eta^c, eta^2 <= eta^c; (b) eta <= (psi^2/2)^(1/(c-1)): 2 eta^c <= "
            "eta psi^2; (c) eta <= 1/L_s: L_s eta^2 <= eta.", "inequality",
            check=chain(stepsize("1"), "in logarithms"), control=chain(stepsize("99/100"), "in logarithms"),
            broken="(psi^2/2)^(1/(c - 0.99))", assumes=(STEP,),
            implies="As pure numbers. In units (rho = 0) eta is a variable per loss, psi^2 a variable: neither eta <= "
            "1 nor eta <= (psi^2/2)^(1/(c-1)) survives a change of the unit of the loss.",
        ),
        mud(
            "theorem1.eq68", "App. D.4 (68)", "E[grad f(wbar^t)] <= E[grad f(wbar^{t-1})] - (eta^c/2) E||grad "
            "f(wbar^{t-1})||^2 + C.",
            "inequality",
            check=broken(at, printed68(1.5), lost, sl),
            control=survives(proof.theorem(1.5, 1.95), "theorem", "T = 1", near=[bowl]),
            broken="the repair for T = 1 with the descent times 1.95", assumes=(A1, A2, A3, A4, STEP),
            error="wrong step", repair=REPAIR,
            repaired=repaired_theorem, implies="As Theorem 1; read with f for the misprinted grad f.",
        ),
        mud(
            "theorem1.eq69", "App. D.4 (69)",
            "Summing (68) over t and dividing by eta^c/(2T): (1/T) sum E||grad f||^2 <= 2/(eta^c T)(f(wbar^0) - "
            "f(w^T)) + 2C/eta^c <= 2/(eta^c T)(f(wbar^0) - f*) + 2C/eta^c.", "inequality",
            check=chain(eq69("2"), "(68) for t = 1..4"), control=chain(eq69("199/100"), "(68) for t = 1..4"),
            broken="1.99 C for 2C", assumes=(Printed("one iteration's descent", "eq. (68)"),),
            as_printed=eq69_literal,
            caveat="given (68) with f for grad f, dividing by eta^c T/2, and wbar^T for w^T",
        ),
        mud(
            "theorem1.eq70", "App. D.4 (70)", "C in powers of eta.", "identity",
            check=eq70(12), control=eq70(2), broken="2 for 12 in Lambda, as the LaTeX layer reads",
        ),
        mud(
            "theorem1.eq71", "App. D.4 (71)",
            "2C/eta^c = 4 L_s^2 rho E^2 G^2 eta^(3-c) + ... (12 in the text layer) = O(eta^(2-c))[1 + (L - rho) "
            "O(Gu^4 + Gv^4)].", "rate",
            check=both(eq70(12, True), order71(False)), control=eq70(2, True),
            broken="2 for 12, as the LaTeX layer reads",
            as_printed=order71(True),
            caveat="O as eta -> 0, with constants that depend on L_s, E, G, sigma, N and L: (L - rho)(Gu^2 + Gv^2) is "
            "not of the order of 1 + (L - rho)(Gu^4 + Gv^4) for many layers and small Gamma",
        ),
    ]  # fmt: skip


CLAIMS: list[Claim] = [
    *section4(), *formulation(), *lemmas123(), *lemmas45(), *lemma6_claims(), *theorem_claims()
]  # fmt: skip
