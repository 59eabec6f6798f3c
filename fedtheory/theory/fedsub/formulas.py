"""The formulas of docs/theory/fedsub.md, by their names there. The page's LaTeX is rendered from them."""

from fedtheory.theory.formula import named

LETTERS = {
    "eta": r"\eta", "tau": r"\tau", "theta_m": r"\theta_m", "theta_r": r"\theta_r", "rho": r"\rho", "lam": r"\lambda",
    "zeta": r"\zeta", "alpha": r"\alpha", "kappa": r"\kappa", "Delta": r"\Delta", "Phi": r"\Phi", "Pi": r"\Pi",
    "Gamma": r"\Gamma", "Theta": r"\Theta", "O": r"\mathcal O({})", "B2": "B_g^2", "H_0": "H_0", "e": "e", "e_s": "e_s",
    "average": r"\frac1K\sum_{k<K}\mathbb E\Vert\nabla f(x^k)\Vert^2", "sqR": r"\Vert{}\Vert_R^2", "d_i": "d_i",
    "grad_i": r"\nabla f_i(x)", "grad0_i": r"\nabla f_i(x^0)", "grad0": r"\nabla f(x^0)", "h_i": "h_i", "u_i": "u_i",
    "R_inverse": "R^{-1}", "sum_i": r"\sum_i{}", "mean_i": r"\frac1n\sum_i{}", "sum_s": r"\sum_{s<\tau}{}",
    "sum_j": r"\sum_{j<s}{}", "S_s": "S_s", "S_s1": "S_{s+1}", "b_s": "b_s", "b_j": "b_j", "aj": "a^j",
    "f0": "f(x)", "f1": "f(x^+)", "Ef1": r"\mathbb Ef(x^+)", "fstar": r"f^\star", "a_bar": r"\bar a",
    "moved": r"\mathbb E\Vert x^+-x\Vert^2", "H1": "H^+", "EPhi": r"\mathbb E\,\Phi", "EPhi1": r"\mathbb E\,\Phi^+",
    "Phi_0": r"\Phi_0", "shares": r"\frac{r_l}{m_l}", "v_R": r"\langle v,(I-R)v\rangle", "cut": r"\Vert R^{-1}\Pi\delta\Vert_R^2",
    "Pi_delta": r"\Pi\delta", "delta": r"\delta", "Omega": r"\Omega'", "Y_i": "Y_i", "Y_bar": r"\bar Y", "v_i": "v_i",
    "dual_0": r"\mathbb E\Vert Y_i-\bar Y\Vert^2", "norm": r"\Vert{}\Vert_R", "part1": "h_i^{(1)}", "part2": "h_i^{(2)}",
    "part3": "h_i^{(3)}", "old_V": "V'", "old_G": "G'", "old_H": "H'", "int01": r"\int_0^1{}\,d\vartheta",
    "vartheta": r"\vartheta", "f_s": "f(x+s)", "product": r"\langle\Pi G,\Pi(\bar a-G)\rangle", "max_step": r"\frac1{3L\sqrt{\theta_m}}",
}  # fmt: skip

FORMULAS = named(
    LETTERS,
    # as printed
    printed_steps="eta <= O(1/(theta_r*theta_m**2*L**2*n*tau))",
    printed="""average <= O(theta_m/(K*tau*eta)
        + eta*tau*theta_r**2*theta_m**2*(theta_m - 1)*(1/n)*B2)""",
    # what is assumed, and the theorem
    steps="L*eta*tau <= 1/(3*sqrt(theta_m))",
    p="p == L**2*eta**2*tau*(tau - 1) <= lam**2",
    theorem="""average <= 5*theta_m*Delta/(2*eta*tau*K) + 25/12*theta_m*p*(H_0/K)
        + 25/6*(theta_m - 1)*p*zeta**2""",
    H_0="H_0 == mean_i(sqR(grad0_i - grad0)) <= theta_r*zeta**2",
    # 1 and 2: the round, the drift
    pull="h_i == grad_i - G + R_inverse*u_i, sum_i(h_i) == 0, H == mean_i(E(sqR(h_i)))",
    drift="L**2*D <= 5/6*p*(E(sqR(G)) + H)",
    halves="sq(u + v) <= 2*sq(u) + 2*sq(v)",
    cauchy="sq(sum_j(aj)) <= s*sum_j(sq(aj))",
    recursion="e_s <= alpha*S_s + b_s",
    alpha="alpha == 2*eta**2*L**2*tau",
    b_s="b_s == 2*eta**2*s**2*E(sqR(d_i))",
    gronwall="S_s1 <= (1 + alpha)*S_s + b_s",
    sums="S_s <= (1 + alpha)**s*sum_j(b_j)",
    squares="sum_s(2*s**2) == 1/3*tau*(tau - 1)*(2*tau - 1) <= 2/3*tau**2*(tau - 1)",
    growth="(1 + alpha)**tau <= e**(2*lam**2) <= e**(2//9) <= 5/4",
    five_sixths="2/3*(5/4) == 5/6",
    pulls="mean_i(sqR(G + h_i)) == sqR(G) + mean_i(sqR(h_i))",
    # 3: the descent
    descent="Ef1 <= E(f0 - t/2*sqR(G)) + t/2*L**2*D - (1 - lam)/(2*t)*moved",
    smooth="f_s - f0 - dot(G, s) <= int01(L*vartheta*sq(s)) == L/2*sq(s)",
    polar="2*dot(G, Pi*a_bar) == sq(Pi*G) + sq(Pi*a_bar) - sq(Pi*(a_bar - G))",
    split="f1 <= f0 - t/2*sq(Pi*G) + t/2*sq(Pi*(a_bar - G)) - t/2*(1 - lam)*sq(Pi*a_bar)",
    short="Ef1 <= E(f0 - t*sqR(G) - t*product) + lam*t*(E(sqR(G)) + L**2*D)",
    short_move="moved <= 2*t**2*(E(sqR(G)) + L**2*D)",
    # 4: the dual
    dual="H1 <= 2*(1 - 1/theta_m)*zeta**2 + 4*theta_m*L**2*D + 4*theta_r*L**2*moved",
    three="(a + b + c)**2 <= 4*a**2 + 2*b**2 + 4*c**2",
    three_left="(b - a - c)**2 + 2*(a - c)**2",
    shares="1/theta_m <= shares <= theta_r",
    cut="v_R <= (1 - 1/theta_m)*sq(v)",
    norms="1/theta_m*sq(v) <= sqR(v) <= theta_r*sq(v)",
    turned="cut <= theta_m*sq(Pi_delta) <= theta_m*sq(delta)",
    # 5: the potential
    potential="Phi == f0 - fstar + w*H",
    weight="w == 5/6*t*p",
    of_D="t/2 + 4*w*theta_m == t*(1/2 + 10/3*p*theta_m) <= t",
    of_drift="5/6*t*p*(E(sqR(G)) + H) == w*(E(sqR(G)) + H)",
    of_move="1/t*(10/3*p*theta_r*lam**2 - (1 - lam)/2) <= 0",
    of_G="-t/2 + w == -t*(1/2 - 5/6*p) <= -2/5*t",
    round="EPhi1 <= EPhi - 2/5*t*E(sqR(G)) + 2*w*(1 - 1/theta_m)*zeta**2",
    start="Phi_0 == Delta + w*H_0",
    norm="sq(G) <= theta_m*sqR(G)",
    divisor="2*t/(5*theta_m)*K",
    # 6: what it says
    repair_steps="eta <= 1/(6*theta_r*theta_m**2*L*tau)",
    repair="8*theta_m*Omega//(K*tau*eta) + 640/3*theta_r**3*theta_m**3*(theta_m - 1)*p*zeta**2",
    Omega="Omega == Delta + 20/3*eta*(tau - 1)*L**2*theta_r*theta_m**2*mean_i(dual_0)",
    dual_0="dual_0 == t**2*sq(R*v_i)",
    balanced="A/t + C*t**2",
    A="A == 5*theta_m*Delta/(2*K)",
    C="C == 25/6*(theta_m - 1)*L**2*zeta**2",
    balance="t**3 == A/(2*C)",
    chosen="t == min(1/(3*L*sqrt(theta_m)), (A/(2*C))**(1//3))",
    inverse="1/t <= 3*L*sqrt(theta_m) + (2*C/A)**(1//3)",
    best="""15/2*(theta_m**(3//2)*L*Delta/K)
        + 5.61*(theta_m**2*(theta_m - 1)*(L**2*Delta**2*zeta**2/K**2))**(1//3)""",
    third="lam <= 1/3",
    without="9/4*(theta_m*Delta/(eta*tau*K)) + theta_r*theta_m*p*zeta**2",
    one_theirs="lam <= rho/6",
    one_ours="lam <= sqrt(rho)/3",
    longer="2*sqrt(m//r)",
    stays_theirs="640/3",
    stays_ours="25/6",
    one_floor="(1/rho - 1)*p*zeta**2",
    smaller="51.2",
    beats="rho > 25/31",
    # 7: why the dual is not a memory
    whole_steps="L*eta*tau <= min(1/10, sqrt(rho//8))",
    whole="average <= 20*Delta/(9*rho*eta*tau*K) + 40*L**2*eta**2*tau**2/(9*rho*K)*mean_i(sq(grad0_i - grad0))",
    none_left="rho*zeta**2",
    dual_left="(1 - rho)*zeta**2",
    whole_left="rho*(1 - rho)**k*zeta**2",
    none_stays="p*zeta**2",
    dual_stays="25/6*(1/rho - 1)*p*zeta**2",
    dual_third="50/3*rho**-(1//2)*(1/rho - 1)*L*eta*tau*p*zeta**2",
    more="rho < 1/2",
    # 8: quadratic losses
    short_steps="L*eta*tau <= 1/(6*sqrt(theta_m))",
    quadratic="""average <= 5*theta_m*Delta/(2*eta*tau*K) + 125/12*theta_m*p*(H_0/K)
        + 50/3*sqrt(theta_m)*(theta_m - 1)*L*eta*tau*p*zeta**2""",
    Q="Q == 5/6*p",
    Z="Z == (1 - 1/theta_m)*zeta**2",
    V="V <= 2*E(sqR(G)) + 2*Q*(E(sqR(G)) + H)",
    two_parts="sqrt(Q)*norm(G)*(norm(part1) + norm(part3)) <= 1/16*sqR(G) + 8*Q*(sqR(part1) + sqR(part3))",
    zero_part="sqrt(Q)*lam*sqrt(old_V)*norm(part2) <= lam/2*(Q*sqR(part2) + old_V)",
    start_part="sqrt(Q)*norm(G)*norm(v_i) <= 1/16*sqR(G) + 4*Q*sqR(v_i)",
    bias="""1/16*E(sqR(G)) + 8*Q*(lam**2*old_V + theta_m*Q*(E(sqR(old_G)) + old_H))
        + lam/2*(Q*Z + old_V)""",
    start_bias="1/16*E(sqR(G)) + 4*Q*H_0",
    duals="""Theta <= H_0 + 2*K*Z + (4*theta_m*Q + 8*lam**2*Q)*Theta
        + (4*theta_m*Q + 8*lam**2 + 8*lam**2*Q)*Gamma""",
    duals_most="Theta <= 10/9*(H_0 + 2*K*Z) + 9/25*Gamma",
    of_Theta="t*Q*kappa",
    kappa="kappa == 2*lam + 16*lam**2*Q + 8*theta_m*Q",
    of_Gamma="""-t*(1 - lam*(1 + Q) - sqrt(Q) - 1/16 - (8*lam**2*Q + lam/2)*(2 + 2*Q) - 8*theta_m*Q**2
        - 9/25*Q*kappa) <= -2/5*t""",
    of_Z="t*Q*K*Z*(20/9*kappa + lam/2) <= 8*t*Q*lam*sqrt(theta_m)*K*Z",
    of_H_0="t*Q*H_0*(4 + 10/9*kappa) <= 5*t*Q*H_0",
)
