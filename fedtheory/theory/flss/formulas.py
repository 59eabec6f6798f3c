"""The formulas of docs/theory/flss.md, by their names there. The page's LaTeX is rendered from them."""

from fedtheory.theory.formula import named

LETTERS = {
    "eta": r"\eta", "tau": r"\tau", "mu": r"\mu", "delta": r"\delta", "sigma": r"\sigma", "zeta": r"\zeta",
    "gamma": r"\gamma", "norm": r"\Vert{}\Vert", "max": r"\max({})", "dist": r"\operatorname{dist}",
    "near": r"\Vert w-w_P\Vert^2", "near_0": r"\Vert w_0-w_P\Vert^2", "near_T": r"\mathbb E\Vert w_T-w_P\Vert^2",
    "next": r"\mathbb E\Vert w^+-w_P\Vert^2", "now": r"\mathbb E\Vert w_t-w^\star\Vert^2",
    "later": r"\mathbb E\Vert w_{t+1}-w^\star\Vert^2", "F_w": "F(w)", "F_P": "F(w_P)", "F_star": r"F(w^\star)",
    "F_v": "F(v)", "EF_T": r"\mathbb EF(w_T)", "far": r"\Vert w_P-w^\star\Vert^2", "grad_k": r"\nabla F_k(w)",
    "grad_y": r"\nabla h(y)", "grad_w": r"\nabla h(w)", "grad_v": r"\nabla h(v)", "h_z": "h(z)", "h_x": "h(x)",
    "h_w": "h(w)", "h_v": "h(v)", "second": r"\mathbb E\Vert P(\bar g_M+\bar\xi_M)\Vert^2",
    "inner": r"\langle w-w_P,\bar g\rangle", "slopes": r"\frac1N\sum_k\Vert\nabla F_k(w)\Vert^2",
    "slope_P": r"\Vert P\nabla F(w)\Vert^2", "eta_t": r"\eta_t", "w_k": r"w_k^\star",
}  # fmt: skip

FORMULAS = named(
    LETTERS,
    # as printed
    printed="later <= (1 - mu*eta*B)*now + eta**2*C",
    printed_steps="eta <= min(1/(mu*B), 1/(L*(tau + 1)))",
    printed_B="B == tau - tau/(L*(tau + 1))",
    # what is assumed, and the theorem
    convex="0 < mu <= L",
    sizes="1 <= M <= N",
    sampling="s == (N - M)/(M*(N - 1)) <= 1",
    steps="q == eta*tau*L <= 1/20",
    theorem="""near_T <= (1 - mu*eta*tau/2)**T*near_0
        + eta/mu*(16*s*tau*zeta**2 + 4*sigma**2/M + 4.6*L*eta*tau*sigma**2 + 12.4*L*eta*tau**2*zeta**2)""",
    gap="mu/2*dist**2 <= F_P - F_star <= L/2*dist**2",
    # 1 and 2
    strong="dot(grad_k, w - w_k) >= mu*sq(w - w_k)",
    steep="norm(grad_k) >= mu*norm(w - w_k)",
    nearest="F_P <= F_v <= F_star + L/2*dist**2",
    farther="F_P >= F_star + mu/2*far >= F_star + mu/2*dist**2",
    # 3
    square="next == near - 2*eta*tau*E(inner) + eta**2*tau**2*second",
    thirds="sq(y - x) >= 1/2*sq(z - x) - sq(z - y)",
    tangent="dot(grad_y, z - x) >= h_z - h_x + mu/4*sq(z - x) - L*sq(z - y)",
    slope="inner >= delta + mu/4*near - L*D",
    cocoercive="sq(grad_w - grad_v) <= 2*L*(h_w - h_v - dot(grad_v, w - v))",
    lowered="sq(g)/(2*L)",
    slopes="slopes <= 4*L*delta + 2*zeta**2",
    slope_P="slope_P <= 2*L*delta",
    drift_steps="eta*tau*L <= 1/10",
    drift="D <= 1.041*tau*eta**2*sigma**2 + 1.388*tau**2*eta**2*(4*L*delta + 2*zeta**2)",
    count="1/M**2*(M/N - M*(M - 1)/(N*(N - 1))) == (N - M)/(M*(N - 1))*(1/N)",
    sampled="2*L*delta + s*(4*L*delta + 2*zeta**2)",
    second="second <= 4*(2*L*delta + s*(4*L*delta + 2*zeta**2)) + 4*L**2*D + 2*sigma**2/(M*tau)",
    of_delta="-2 + 8*q*(1 + 2*s) + (2 + 4*q)*5.552*q**2 <= -3/4",
    of_D="eta*tau*L*(2 + 4*q) <= 11/5*eta*tau*L",
    of_noise="11/5*1.041 <= 2.3",
    of_zeta="11/5*2.776 <= 6.2",
    left_drift="2.3*L*eta**3*tau**2*sigma**2 + 6.2*L*eta**3*tau**3*zeta**2",
    left="8*s*eta**2*tau**2*zeta**2 + 2*eta**2*tau*sigma**2/M",
    round="next <= (1 - mu*eta*tau/2)*near + c",
    m="m == mu*eta*tau",
    contracts="0 < m/2 < 1",
    fixed="2*c/m",
    unrolled="e_T <= (1 - m/2)**T*e_0 + 2*c/m",
    # 4
    smooth="F_w - F_P <= L/2*near",
    loss="EF_T - F_star <= L/2*(near_T + dist**2)",
    eta_t="eta_t == 4/(mu*tau*(t + gamma))",
    gamma="gamma == 80*L/mu",
    short="eta_t*tau*L <= 1/20",
    decreasing="near_T <= A/(T + gamma)",
    A="A == max(gamma*near_0, 16/mu**2*((8*s + 0.31)*zeta**2 + (2/M + 0.115)*(sigma**2/tau)))",
    short_zeta="6.2*L*eta_t*tau <= 0.31",
    short_noise="2.3*L*eta_t*tau <= 0.115",
    adds="A/n**2",
    keeps="1 - 2/n",
    next_bound="(1 - 2/n)*(A/n) + A/n**2 == (n - 1)/n**2*A <= A/(n + 1)",
)
