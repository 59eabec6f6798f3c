(* docs/theory/family.md: one theorem for the family, S of N clients, any map 0 <= P <= I. step_3_4 is the page's [family.3.4]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Ssf.
From Fedtheory Require Import Noise Descent Sampling Core.
Import ListNotations.
Local Open Scope R_scope.

(* ---- numbers ---- *)
(* D stands for L^2 D, v for theta sigma^2/K, X for L^2 E|x+ - x|^2, z for zeta^2, iS for 1/S, b for M/t; f and C before and after a round *)
Definition B6 h al ga b : R := (1 + h) / 2 + b * (al + 3 * ga * h ^ 2).
Lemma step_6_1 rho t om p h nu m chi al ga iS M C g V D X z v f ef ec : 0 < rho -> 0 < t -> 0 <= om -> 0 <= p -> 0 <= h -> 0 <= nu ->
  0 <= al -> 0 <= ga -> 0 <= M -> V <= C ->
  D <= 1041/1000 * p * v + 1388/1000 * om * rho * p * (V + g) ->
  ef <= f - rho * t / 2 * g + (1 + h) / 2 * t * D + h * t * (rho * nu * V + v * iS) ->
  X <= h ^ 2 * (2 * om * rho * g + 3 * D + 2 * om * rho * nu * V + 2 * v * iS) ->
  ec <= (1 - m) * C + chi * z + al * (D + v) + ga * X ->
  let b := M / t in let B := B6 h al ga b in
  ef + M * ec <= f + M * C - rho * t * (1/2 - 1388/1000 * om * p * B - 2 * om * ga * h ^ 2 * b) * g
    + (- M * m + rho * t * (1388/1000 * om * p * B + h * nu + 2 * om * nu * ga * h ^ 2 * b)) * C
    + (1041/1000 * t * p * B + h * t * iS + M * al + 2 * iS * M * ga * h ^ 2) * v + M * chi * z.
Proof.
  intros r0 t0 o0 p0 h0 n0 a0 g0 M0 VC hD hF hX hC b B. assert (H0 := pow2_ge_0 h). set (H := h ^ 2) in *.
  assert (eb : t * b = M) by (unfold b; field; lra). assert (b0 : 0 <= b) by (unfold b, Rdiv; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (B0 : 0 <= B) by (unfold B, B6; fold H; apply Rplus_le_le_0_compat; [lra|apply Rmult_le_pos; [lra|apply Rplus_le_le_0_compat; pos]]).
  assert (tb : t * B = (1 + h) / 2 * t + M * (al + 3 * ga * H)) by (unfold B, B6; fold H; rewrite <- eb; ring).
  assert (k1 := Rmult_le_compat_l (t * B) _ _ ltac:(pos) hD). apply (Rmult_le_compat_l M) in hC; auto.
  apply (Rmult_le_compat_l (M * ga)) in hX; [|pos].
  assert (k2 : 0 <= (rho * t * (1388/1000 * om * p * B + h * nu + 2 * om * nu * ga * H * b)) * (C - V)).
  { apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [pos|]. repeat apply Rplus_le_le_0_compat; pos. }
  rewrite tb in k1. replace (rho * t * (1388/1000 * om * p * B + h * nu + 2 * om * nu * ga * H * b))
    with (rho * (1388/1000 * om * p * (t * B) + t * (h * nu) + 2 * om * nu * ga * H * (t * b))) in * by ring.
  replace (rho * t * (1/2 - 1388/1000 * om * p * B - 2 * om * ga * H * b))
    with (rho * (t / 2 - 1388/1000 * om * p * (t * B) - 2 * om * ga * H * (t * b))) by field.
  replace (1041/1000 * t * p * B) with (1041/1000 * p * (t * B)) by ring. rewrite tb, eb in *. clear - hF hX hC k1 k2. lra.
Qed.
Section Coefficients.
Variables rho t om p h nu m al ga q kap M iS : R.
Hypothesis rho0 : 0 < rho.
Hypothesis t0 : 0 < t.
Hypothesis om01 : 0 <= om <= 1.
Hypothesis p01 : 0 <= p <= 1/100.
Hypothesis h01 : 0 <= h <= 1/4.
Hypothesis nu0 : 0 <= nu.
Hypothesis al0 : 0 <= al.
Hypothesis ga0 : 0 <= ga.
Hypothesis eq : q = 7/8 * om * p + h * nu.
Hypothesis ek : kap = m - rho * om * (7/5 * al * p + (21/5 * p + 2 * nu) * ga * h ^ 2).
Hypothesis kap0 : 0 < kap.
Hypothesis eM : M = rho * t * (q / kap).
Let b := M / t.
Let B := B6 h al ga b.
Let tb : t * B = (1 + h) / 2 * t + M * (al + 3 * ga * h ^ 2). Proof. unfold B, B6, b. field. lra. Qed.
Let Mk : M * kap = rho * t * q. Proof. rewrite eM. field. lra. Qed.
Lemma weight_ge0 : 0 <= M.
Proof.
  rewrite eM. assert (q0 : 0 <= q) by (rewrite eq; apply Rplus_le_le_0_compat; pos). unfold Rdiv.
  assert (0 <= / kap) by (apply Rlt_le, Rinv_0_lt_compat; lra). pos.
Qed.
Lemma step_6_2 : - M * m + rho * t * (1388/1000 * om * p * B + h * nu + 2 * om * nu * ga * h ^ 2 * b) <= - M * kap + rho * t * q
  /\ - M * kap + rho * t * q = 0.
Proof.
  split; [|lra]. assert (M0 := weight_ge0). assert (H0 := pow2_ge_0 h). destruct om01 as [o0 o1], p01 as [p0 p1].
  assert (eb : t * b = M) by (unfold b; field; lra).
  replace (rho * t * (1388/1000 * om * p * B + h * nu + 2 * om * nu * ga * h ^ 2 * b))
    with (rho * (1388/1000 * om * p * (t * B) + t * (h * nu) + 2 * om * nu * ga * h ^ 2 * (t * b))) by ring.
  rewrite tb, eb, ek, eq. set (H := h ^ 2) in *.
  assert (a1 : 0 <= rho * (t * (om * p * (7/8 - 1388/1000 * ((1 + h) / 2))))) by pos.
  assert (a2 : 0 <= M * (rho * (om * p * al))) by pos.
  assert (a3 : 0 <= M * (rho * (om * p * (ga * H)))) by pos. clear - a1 a2 a3. lra.
Qed.
(* uses om p <= 1/100, which om <= 1 gives *)
Lemma step_6_3 : rho * om * q / kap * (7/5 * al * p + (21/5 * p + 2) * ga * h ^ 2) <= 1/25 ->
  - (rho * t * (1/2 - 1388/1000 * om * p * B - 2 * om * ga * h ^ 2 * b)) <= - (9/20) * rho * t.
Proof.
  intros cond2. assert (M0 := weight_ge0). assert (H0 := pow2_ge_0 h). destruct om01 as [o0 o1], p01 as [p0 p1].
  assert (eb : t * b = M) by (unfold b; field; lra).
  replace (rho * t * (1/2 - 1388/1000 * om * p * B - 2 * om * ga * h ^ 2 * b))
    with (rho * (t / 2 - 1388/1000 * om * p * (t * B) - 2 * om * ga * h ^ 2 * (t * b))) by field.
  rewrite tb, eb. set (H := h ^ 2) in *.
  assert (c2 : rho * om * M * (7/5 * al * p + (21/5 * p + 2) * ga * H) <= rho * t / 25).
  { apply (Rmult_le_compat_l (rho * t)) in cond2; [|pos].
    replace (rho * om * M * (7/5 * al * p + (21/5 * p + 2) * ga * H)) with
      (rho * t * (rho * om * q / kap * (7/5 * al * p + (21/5 * p + 2) * ga * H))) by (rewrite eM; field; lra). lra. }
  assert (op : 0 <= om * p) by pos. assert (op1 : om * p <= 1/100) by nra.
  assert (a1 : 0 <= rho * (t * (om * p * (5/8 - (1 + h) / 2)))) by pos.
  assert (a2 : 0 <= M * (rho * (om * p * al))) by pos.
  assert (a3 : 0 <= M * (rho * (om * p * (ga * H)))) by pos.
  assert (a4 : 0 <= rho * (t * (1/100 - om * p))) by pos. assert (a5 : 0 <= rho * t) by pos.
  clear - a1 a2 a3 a4 a5 c2. lra.
Qed.
Lemma sharp_6_4 : 1041/1000 * t * p * B + h * t * iS + M * al + 2 * iS * M * ga * h ^ 2
  <= t * (h * iS + 2/3 * p) + M * (51/50 * al + (3123/1000 * p + 2 * iS) * ga * h ^ 2).
Proof.
  assert (M0 := weight_ge0). assert (H0 := pow2_ge_0 h). destruct p01 as [p0 p1].
  replace (1041/1000 * t * p * B) with (1041/1000 * p * (t * B)) by ring. rewrite tb. set (H := h ^ 2) in *.
  assert (a1 : 0 <= t * (p * (2/3 - 1041/1000 * ((1 + h) / 2)))) by pos.
  assert (a2 : 0 <= M * (al * (1/50 - 1041/1000 * p))) by pos. clear - a1 a2. lra.
Qed.
Lemma step_6_4 : 1041/1000 * t * p * B + h * t * iS + M * al + 2 * iS * M * ga * h ^ 2
  <= t * (h * iS + 2/3 * p) + M * (51/50 * al + (1/25 + 2 * iS) * ga * h ^ 2).
Proof.
  assert (s := sharp_6_4). assert (M0 := weight_ge0). assert (H0 := pow2_ge_0 h). destruct p01 as [p0 p1]. set (H := h ^ 2) in *.
  assert (a3 : 0 <= M * (ga * (H * (1/25 - 3123/1000 * p)))) by pos. clear - s a3. lra.
Qed.
End Coefficients.
(* sp: what 6.4 has for 3.123 p *)
Lemma section_6 sp rho t om p h nu m chi al ga iS q kap M C g V D X z v f ef ec : 3123/1000 * p <= sp ->
  0 < rho -> 0 < t -> 0 <= om <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/4 -> 0 <= nu -> 0 <= al -> 0 <= ga ->
  0 <= iS -> 0 <= v -> 0 <= g -> 0 <= V <= C ->
  q = 7/8 * om * p + h * nu ->
  kap = m - rho * om * (7/5 * al * p + (21/5 * p + 2 * nu) * ga * h ^ 2) -> 0 < kap ->
  M = rho * t * (q / kap) ->
  rho * om * q / kap * (7/5 * al * p + (21/5 * p + 2) * ga * h ^ 2) <= 1/25 ->
  D <= 1041/1000 * p * v + 1388/1000 * om * rho * p * (V + g) ->
  ef <= f - rho * t / 2 * g + (1 + h) / 2 * t * D + h * t * (rho * nu * V + v * iS) ->
  X <= h ^ 2 * (2 * om * rho * g + 3 * D + 2 * om * rho * nu * V + 2 * v * iS) ->
  ec <= (1 - m) * C + chi * z + al * (D + v) + ga * X ->
  ef + M * ec <= f + M * C - 9/20 * rho * t * g
    + (M * chi * z + v * (t * (h * iS + 2/3 * p) + M * (51/50 * al + (sp + 2 * iS) * ga * h ^ 2))).
Proof.
  intros sp0 r0 t0 o p1 h1 n0 a0 g0 s0 v0 gg [V0 VC] eq ek k0 eM c2 hD hF hX hC.
  assert (M0 := weight_ge0 rho t om p h nu q kap M r0 t0 o p1 h1 n0 eq k0 eM).
  assert (s1 := step_6_1 rho t om p h nu m chi al ga iS M C g V D X z v f ef ec r0 t0 (proj1 o) (proj1 p1) (proj1 h1) n0 a0 g0 M0 VC hD hF hX hC).
  cbv zeta in s1.
  assert (s2 := step_6_2 rho t om p h nu m al ga q kap M r0 t0 o p1 h1 n0 a0 g0 eq ek k0 eM).
  assert (s3 := step_6_3 rho t om p h nu al ga q kap M r0 t0 o p1 h1 n0 a0 g0 eq k0 eM c2).
  assert (s4 := sharp_6_4 rho t om p h nu al ga q kap M iS r0 t0 o p1 h1 n0 a0 eq k0 eM).
  assert (s5 : 0 <= M * (ga * (h ^ 2 * (sp - 3123/1000 * p)))) by (assert (H0 := pow2_ge_0 h); pos).
  apply (Rle_trans _ _ (t * (h * iS + 2/3 * p) + M * (51/50 * al + (sp + 2 * iS) * ga * h ^ 2))) in s4; [clear s5|clear - s5; lra].
  assert (k1 := Rmult_le_compat_r g _ _ gg s3). assert (k2 := Rmult_le_compat_r v _ _ v0 s4).
  destruct s2 as [s2 s2']. assert (k3 := Rmult_le_compat_r C _ _ (Rle_trans _ _ _ V0 VC) (Rle_trans _ _ _ s2 (Req_le _ _ s2'))).
  clear - s1 k1 k2 k3. lra.
Qed.

Lemma family_division rho t T S f qk C x v a b chi z :
  0 < rho -> 0 < t -> 0 < T ->
  9/20 * rho * t * S <= f + rho * t * qk * C + T * (rho * t * qk * chi * z + v * (t * a + rho * t * qk * b)) ->
  x = / T * S ->
  x <= 20/9 * (f / (rho * t * T) + qk * (C / T + chi * z) + v / rho * (a + rho * qk * b)).
Proof.
  intros r0 t0 T0 h ->. assert (c0 : 0 < / (9/20 * rho * t * T)) by (apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (/ T * S) with (/ (9/20 * rho * t * T) * (9/20 * rho * t * S)) by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.

Lemma section_7_3 rho om p h nu f iS kap q : 0 < rho <= 1 -> 0 <= om <= 1 -> 0 <= p <= 1/100 -> 0 <= h ->
  h ^ 2 <= f ^ 2 * rho / 64 -> 0 < f <= 1 -> 0 <= nu <= 1 -> 0 <= iS <= 1 -> f * nu <= 1/2 ->
  kap = f * rho / 2 - rho * om * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) ->
  q = 7/8 * om * p + h * nu ->
  9/25 * (f * rho) <= kap /\
  rho * om * q / kap * (7/5 * (3 * f) * p + (21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) <= 1/25 /\
  20/9 * (q / kap) <= (55/10 * p + 62/10 * h * nu) / (f * rho) /\
  20/9 * (h * iS + 2/3 * p + rho * q / kap * (51/50 * (3 * f) + (1/25 + 2 * iS) * (3 / (f * rho)) * h ^ 2))
    <= 20/9 * h * iS + 20 * h * nu + 19 * p.
Proof.
  intros [r0 r1] [o0 o1] [p0 p1] h0 hh [f0 f1] [n0 n1] [s0 s1] fn ek eq.
  assert (fr : 0 < f * rho) by now apply Rmult_lt_0_compat.
  set (X := 3 / (f * rho) * h ^ 2). assert (X0 : 0 <= X).
  { unfold X, Rdiv. apply Rmult_le_pos; [|apply pow2_ge_0]. apply Rmult_le_pos; [lra|]. now apply Rlt_le, Rinv_0_lt_compat. }
  assert (X1 : X <= 3/64 * f).
  { apply (Rmult_le_reg_r (f * rho)); auto. replace (X * (f * rho)) with (3 * h ^ 2) by (unfold X; field; lra). lra. }
  assert (hf : h <= f / 8).
  { assert (h ^ 2 <= (f / 8) ^ 2) by nra. nra. }
  replace ((21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2 * nu) * X) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2) * X) by (unfold X; ring).
  replace ((1/25 + 2 * iS) * (3 / (f * rho)) * h ^ 2) with ((1/25 + 2 * iS) * X) by (unfold X; ring).
  assert (hn : h * nu <= 1/16) by nra. assert (hn0 : 0 <= h * nu) by pos.
  assert (op : om * p <= p) by nra. assert (op0 : 0 <= om * p) by pos.
  assert (q0 : 0 <= q) by (rewrite eq; lra). assert (q1 : q <= 7/8 * p + h * nu) by (rewrite eq; lra).
  assert (b0 : 0 <= 7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X) by (apply Rplus_le_le_0_compat; pos).
  assert (b1 : 7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X <= 14/100 * f).
  { assert (0 <= f * (1/100 - p)) by pos. assert (0 <= X * (1/100 - p)) by pos. assert (0 <= X * (1 - nu)) by pos. lra. }
  assert (K : 9/25 * (f * rho) <= kap).
  { rewrite ek. assert (k1 : 0 <= rho * ((1 - om) * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X))) by pos.
    assert (k2 : 0 <= rho * (14/100 * f - (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X))) by pos. lra. }
  assert (k0 : 0 < kap) by lra.
  assert (ik : 0 < / kap) by now apply Rinv_0_lt_compat.
  set (qk := q / kap). assert (qk0 : 0 <= qk) by (unfold qk, Rdiv; pos).
  assert (W : 9/25 * (f * rho * qk) <= q).
  { assert (e : kap * qk = q) by (unfold qk; field; lra). assert (K2 := Rmult_le_compat_r qk _ _ qk0 K). rewrite e in K2. clear - K2. lra. }
  assert (W0 : 0 <= f * rho * qk) by pos. assert (rq : 0 <= rho * qk) by pos.
  split; [exact K|]. split; [|split].
  - replace (rho * om * q / kap) with (rho * qk * om) by (unfold qk; field; lra).
    assert (c : 7/5 * (3 * f) * p + (21/5 * p + 2) * X <= 14/100 * f).
    { assert (0 <= f * (1/100 - p)) by pos. assert (0 <= X * (1/100 - p)) by pos. lra. }
    assert (c0 : 0 <= 7/5 * (3 * f) * p + (21/5 * p + 2) * X) by (apply Rplus_le_le_0_compat; pos).
    assert (k1 : 0 <= rho * qk * ((1 - om) * (7/5 * (3 * f) * p + (21/5 * p + 2) * X))) by pos.
    assert (k2 : 0 <= rho * qk * (14/100 * f - (7/5 * (3 * f) * p + (21/5 * p + 2) * X))) by pos. lra.
  - apply (Rmult_le_reg_r (f * rho)); auto.
    replace ((55/10 * p + 62/10 * h * nu) / (f * rho) * (f * rho)) with (55/10 * p + 62/10 * h * nu) by (field; lra). lra.
  - replace (rho * q / kap) with (rho * qk) by (unfold qk; field; lra).
    assert (c : (1/25 + 2 * iS) * X <= 204/100 * (3/64 * f)).
    { assert (0 <= X * (1 - iS)) by pos. lra. }
    assert (k2 : 0 <= rho * qk * (204/100 * (3/64 * f) - (1/25 + 2 * iS) * X)) by pos. lra.
Qed.

(* 7.1, 7.2: all clients, a memory in the subspace *)
Lemma section_7_1 rho p h iN kap q : 0 < rho <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/4 -> h ^ 2 <= rho / 8 \/ p <= rho / 100 -> 0 <= iN <= 1 ->
  kap = rho / 2 - rho * 1 * (7/5 * 3 * p + (21/5 * p + 2 * 0) * (3 / rho) * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  0 < kap /\ rho * 1 * q / kap * (7/5 * 3 * p + (21/5 * p + 2) * (3 / rho) * h ^ 2) <= 1/25 /\
  20/9 * (q / kap) <= 40/9 * p / rho /\
  (h ^ 2 <= rho / 8 -> 20/9 * (h * iN + 2/3 * p + rho * q / kap * (51/50 * 3 + (1/25 + 2 * iN) * (3 / rho) * h ^ 2)) <= 20/9 * h * iN + 55/3 * p).
Proof.
  intros [r0 r1] [p0 p1] [h0 h1] hp [i0 i1] ek eq. assert (H0 := pow2_ge_0 h). assert (H1 : h ^ 2 <= 1/16) by nra. set (H := h ^ 2) in *.
  set (X := 3 / rho * H). assert (rX : rho * X = 3 * H) by (unfold X; field; lra).
  assert (X0 : 0 <= X) by (unfold X; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|lra]).
  assert (pX0 : 0 <= p * X) by pos.
  assert (pX : p * X <= 3/800).
  { destruct hp as [hp|hp].
    - assert (X <= 3/8) by (apply (Rmult_le_reg_l rho); lra). assert (0 <= (1/100 - p) * X) by pos. lra.
    - assert (0 <= (rho / 100 - p) * X) by pos. lra. }
  replace ((21/5 * p + 2 * 0) * (3 / rho) * H) with (21/5 * (p * X)) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / rho) * H) with (21/5 * (p * X) + 2 * X) by (unfold X; ring).
  replace ((1/25 + 2 * iN) * (3 / rho) * H) with ((1/25 + 2 * iN) * X) by (unfold X; ring).
  assert (Kb : 44225/100000 * rho <= kap).
  { rewrite ek. assert (0 <= rho * (1/100 - p)) by pos. assert (0 <= rho * (3/800 - p * X)) by pos. lra. }
  assert (k0 : 0 < kap) by lra. set (W := rho * (q / kap)).
  assert (e : kap * (q / kap) = q) by (field; lra). assert (qk0 : 0 <= q / kap) by (unfold Rdiv; rewrite eq; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e, eq in w.
  assert (W1 : 44225/100000 * W <= 7/8 * p) by (unfold W; rewrite eq; lra). assert (W0 : 0 <= W) by (unfold W; pos).
  repeat split; auto.
  - replace (rho * 1 * q / kap) with W by (unfold W; field; lra).
    assert (a1 : 0 <= W * (1/100 - p)) by pos. assert (a2 : 0 <= W * (3/800 - p * X)) by pos.
    assert (a3 : 0 <= X * (7/8 * p - 44225/100000 * W)) by (apply Rmult_le_pos; lra). lra.
  - apply (Rmult_le_reg_l rho); auto. replace (rho * (40/9 * p / rho)) with (40/9 * p) by (field; lra). unfold W in W1. lra.
  - intros h8. replace (rho * q / kap) with W by (unfold W; field; lra).
    assert (X1 : X <= 3/8) by (apply (Rmult_le_reg_l rho); lra).
    assert (a1 : 0 <= W * ((1/25 + 2 * iN) * (3/8 - X))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (a2 : 0 <= W * (1 - iN)) by pos. lra.
Qed.
(* 7.5: a memory refreshed in full *)
Lemma section_7_5 rho p h iN kap q : 0 < rho <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/4 -> 0 <= iN <= 1 ->
  kap = 1/2 - rho * 1 * (7/5 * 3 * p + (21/5 * p + 2 * 0) * 3 * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  0 < kap /\ rho * 1 * q / kap * (7/5 * 3 * p + (21/5 * p + 2) * 3 * h ^ 2) <= 1/25 /\ 20/9 * (q / kap) <= 13/3 * p /\
  20/9 * (h * iN + 2/3 * p + rho * q / kap * (51/50 * 3 + (1/25 + 2 * iN) * 3 * h ^ 2)) <= 20/9 * h * iN + 33/2 * p.
Proof.
  intros [r0 r1] [p0 p1] [h0 h1] [i0 i1] ek eq. assert (H0 := pow2_ge_0 h). assert (H1 : h ^ 2 <= 1/16) by nra. set (H := h ^ 2) in *.
  assert (pH0 : 0 <= p * H) by pos. assert (pH : p * H <= 1/1600) by (assert (0 <= (1/100 - p) * H) by pos; lra).
  assert (Z0 : 0 <= 21/5 * p + 63/5 * (p * H)) by lra. assert (Z1 : 21/5 * p + 63/5 * (p * H) <= 49875/1000000) by lra.
  assert (rz : rho * (21/5 * p + 63/5 * (p * H)) <= 49875/1000000) by (assert (0 <= (1 - rho) * (21/5 * p + 63/5 * (p * H))) by pos; lra).
  assert (Kb : 450125/1000000 <= kap) by (rewrite ek; lra). assert (k0 : 0 < kap) by lra.
  assert (e : kap * (q / kap) = q) by (field; lra). assert (qk0 : 0 <= q / kap) by (unfold Rdiv; rewrite eq; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e in w. set (Y := q / kap) in *. rewrite eq in w.
  assert (rY : rho * Y <= Y) by (assert (0 <= (1 - rho) * Y) by pos; lra). assert (rY0 : 0 <= rho * Y) by pos.
  repeat split; auto.
  - replace (rho * 1 * q / kap) with (rho * Y) by (unfold Y; field; lra).
    assert (a1 : 0 <= rho * Y * (1 - (7/5 * 3 * p + (21/5 * p + 2) * 3 * H))) by (apply Rmult_le_pos; lra). lra.
  - lra.
  - replace (rho * q / kap) with (rho * Y) by (unfold Y; field; lra).
    assert (a1 : 0 <= rho * Y * ((1/25 + 2 * iN) * (1/16 - H))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (a2 : 0 <= rho * Y * (1 - iN)) by pos. lra.
Qed.
(* 7.6 without noise: alpha = 4/rho^2 *)
Lemma section_7_6_exact rho p h kap q : 0 < rho <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/10 -> p <= h ^ 2 -> h ^ 2 <= rho / 20 ->
  kap = 1 - rho * 1 * (7/5 * (4 / rho ^ 2) * p + (21/5 * p + 2 * 0) * 4 * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  7/10 <= kap /\ rho * 1 * q / kap * (7/5 * (4 / rho ^ 2) * p + (21/5 * p + 2) * 4 * h ^ 2) <= 1/25 /\ 20/9 * (q / kap) <= 25/9 * p.
Proof.
  intros [r0 r1] [p0 p1] [h0 h1] ph hr ek eq. set (H := h ^ 2) in *. assert (H0 : 0 <= H) by apply pow2_ge_0.
  set (P := p / rho). assert (rP : rho * P = p) by (unfold P; field; lra). assert (P0 : 0 <= P) by (unfold P, Rdiv; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (P1 : P <= 1/20) by (apply (Rmult_le_reg_l rho); lra).
  assert (H1 : H <= 1/100) by (unfold H; nra). assert (pH : 0 <= p * H <= 1/10000) by (split; [pos|assert (0 <= (1/100 - p) * H) by pos; lra]).
  assert (rpH : 0 <= rho * (p * H) <= 1/10000) by (split; [pos|assert (0 <= (1 - rho) * (p * H)) by pos; lra]).
  assert (rH : 0 <= rho * H <= 1/100) by (split; [pos|assert (0 <= (1 - rho) * H) by pos; lra]).
  assert (e1 : rho * 1 * (7/5 * (4 / rho ^ 2) * p + (21/5 * p + 2 * 0) * 4 * H) = 28/5 * P + 84/5 * (rho * (p * H))) by (unfold P; field; lra).
  rewrite e1 in ek. assert (k0 : 7/10 <= kap) by lra.
  assert (e : kap * (q / kap) = q) by (field; lra). assert (qk0 : 0 <= q / kap) by (unfold Rdiv; rewrite eq; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (w := Rmult_le_compat_r _ _ _ qk0 k0). rewrite e in w. set (Y := q / kap) in *. rewrite eq in w.
  repeat split; auto; [|lra].
  replace (rho * 1 * q / kap * (7/5 * (4 / rho ^ 2) * p + (21/5 * p + 2) * 4 * H)) with (Y * (28/5 * P + 84/5 * (rho * (p * H)) + 8 * (rho * H)))
    by (unfold Y, P; field; lra).
  assert (0 <= Y * (1 - (28/5 * P + 84/5 * (rho * (p * H)) + 8 * (rho * H)))) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma section_7_6 rho p h iS kap q : 0 < rho <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/10 -> p <= rho / 40 -> h ^ 2 <= rho / 40 -> 0 <= iS <= 1 ->
  kap = 1 - rho * 1 * (7/5 * (8 / rho ^ 2) * p + (21/5 * p + 2 * 0) * 4 * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  7/10 <= kap /\
  rho * 1 * q / kap * (7/5 * (8 / rho ^ 2) * p + (21/5 * p + 2) * 4 * h ^ 2) <= 1/25 /\
  20/9 * (q / kap) <= 25/9 * p /\
  20/9 * (h * iS + 2/3 * p + rho * q / kap * (51/50 * (8 / rho ^ 2) + (1/25 + 2 * iS) * 4 * h ^ 2)) <= 20/9 * h * iS + 25 * p / rho.
Proof.
  intros [r0 r1] [p0 p1] [h0 h1] ph hr [s0 s1] ek eq. set (H := h ^ 2) in *.
  assert (H0 : 0 <= H) by apply pow2_ge_0. assert (H1 : H <= 1/100) by (unfold H; nra).
  set (i := / rho). assert (ri : rho * i = 1) by (unfold i; field; lra).
  assert (i1 : 1 <= i) by (unfold i; rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  replace (8 / rho ^ 2) with (8 * (i * i)) in * by (unfold i; field; lra).
  set (pi := p * i). assert (pi0 : 0 <= pi) by (unfold pi; pos).
  assert (pi1 : pi <= 1/40). { unfold pi. apply (Rmult_le_reg_r rho); auto. replace (p * i * rho) with (p * (rho * i)) by ring. rewrite ri. lra. }
  assert (pip : p <= pi). { unfold pi. rewrite <- (Rmult_1_r p) at 1. apply Rmult_le_compat_l; lra. }
  assert (pH0 : 0 <= p * H) by pos. assert (pH : p * H <= 1/10000).
  { assert (0 <= (1/100 - p) * H) by pos. lra. }
  assert (rpH : rho * (p * H) <= p * H). { assert (0 <= (1 - rho) * (p * H)) by pos. lra. }
  assert (K : 7/10 <= kap).
  { assert (z : rho * 1 * (7/5 * (8 * (i * i)) * p + (21/5 * p + 2 * 0) * 4 * H) = 56/5 * (rho * i) * pi + 84/5 * (rho * (p * H))) by (unfold pi; field).
    rewrite ri in z. lra. }
  assert (ik : 0 < / kap) by (apply Rinv_0_lt_compat; lra).
  set (qk := q / kap). assert (q0 : q = 7/8 * p) by (rewrite eq; ring).
  assert (qk0 : 0 <= qk) by (unfold qk, Rdiv; apply Rmult_le_pos; lra).
  assert (e : kap * qk = q) by (unfold qk; field; lra).
  assert (W : 7/10 * qk <= 7/8 * p). { assert (k := Rmult_le_compat_r qk _ _ qk0 K). lra. }
  split; [exact K|split; [|split]].
  - replace (rho * 1 * q / kap) with (rho * qk) by (unfold qk; field; lra).
    assert (z : rho * qk * (7/5 * (8 * (i * i)) * p + (21/5 * p + 2) * 4 * H) = qk * (56/5 * (rho * i) * pi + rho * (84/5 * (p * H) + 8 * H))) by (unfold pi; field).
    rewrite z, ri. assert (rH : rho * H <= H). { assert (0 <= (1 - rho) * H) by pos. lra. }
    assert (b : 56/5 * 1 * pi + rho * (84/5 * (p * H) + 8 * H) <= 1) by lra.
    assert (0 <= qk * (1 - (56/5 * 1 * pi + rho * (84/5 * (p * H) + 8 * H)))) by pos. lra.
  - lra.
  - replace (rho * q / kap) with (rho * qk) by (unfold qk; field; lra). replace (25 * p / rho) with (25 * pi) by (unfold pi, i; field; lra).
    replace (rho * qk * (51/50 * (8 * (i * i)) + (1/25 + 2 * iS) * 4 * H)) with (51/50 * 8 * ((rho * i) * (qk * i)) + rho * qk * ((1/25 + 2 * iS) * 4 * H)) by field.
    rewrite ri. assert (w : 7/10 * (qk * i) <= 7/8 * pi). { unfold pi. assert (k := Rmult_le_compat_r i _ _ ltac:(lra) W). lra. }
    assert (c : (1/25 + 2 * iS) * 4 * H <= 1/10). { assert (0 <= (1 - iS) * H) by pos. assert (0 <= iS * H) by pos. lra. }
    assert (c0 : 0 <= (1/25 + 2 * iS) * 4 * H) by pos.
    assert (k1 : 0 <= qk * (1/10 - (1/25 + 2 * iS) * 4 * H)) by pos.
    assert (k2 : 0 <= (1 - rho) * (qk * ((1/25 + 2 * iS) * 4 * H))) by pos. lra.
Qed.

(* ---- the uniform law of the sets of s of n ---- *)
Lemma lsum_le {A} (l : list A) f g : (forall a, In a l -> f a <= g a) -> lsum l f <= lsum l g.
Proof.
  induction l; simpl; intros h; [lra|]. assert (h1 := h a (or_introl eq_refl)).
  assert (lsum l f <= lsum l g) by (apply IHl; intros; apply h; now right). lra.
Qed.
Lemma step_7_10 A B H : 0 < A -> 0 <= B -> 0 < H ->
  (0 < B -> let t := Rmin H (sqrt (A / B)) in A / t + B * t <= A / H + 2 * sqrt (A * B)) /\ (B = 0 -> A / H + B * H = A / H).
Proof.
  intros A0 B0 H0. split; [intros B1 t|intros ->; ring].
  assert (ab : 0 < A / B) by now apply Rdiv_lt_0_compat. assert (s0 := sqrt_lt_R0 _ ab). assert (ss : sqrt (A / B) * sqrt (A / B) = A / B) by (apply sqrt_def; lra).
  assert (e1 : A / sqrt (A / B) = sqrt (A * B)).
  { apply (Rmult_eq_reg_r (sqrt (A / B))); [|lra]. rewrite <- sqrt_mult by (try pos; lra). replace (A * B * (A / B)) with (A * A) by (field; lra).
    rewrite sqrt_square by lra. field. lra. }
  assert (e2 : B * sqrt (A / B) = sqrt (A * B)) by (rewrite <- e1; apply (Rmult_eq_reg_r (sqrt (A / B))); [|lra]; rewrite Rmult_assoc, ss; field; lra).
  assert (AH : 0 < A / H) by now apply Rdiv_lt_0_compat. assert (S0 := sqrt_pos (A * B)).
  unfold t. destruct (Rle_dec H (sqrt (A / B))) as [le|gt].
  - rewrite Rmin_left by lra. apply (Rmult_le_compat_l B) in le; lra.
  - rewrite Rmin_right by lra. lra.
Qed.
Definition lsets (n s : nat) (h : (s <= n)%nat) : law (list nat).
Proof.
  assert (p := cb_pos n s h). refine {| ex := Esets n s |}; unfold Esets.
  - intros f g. rewrite lsum_plus. ring.
  - intros a f. rewrite lsum_scal. ring.
  - rewrite cb_count. field. lra.
  - intros f g hf. apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. apply lsum_le; auto.
Defined.

(* ---- the map: linear, symmetric, 0 <= P <= I ---- *)
Record map01 {D : Dim} (P : vec -> vec) : Prop := {
  m_add : forall u v, P (u + v)%V = (P u + P v)%V;
  m_scal : forall a u, P (a *: u)%V = (a *: P u)%V;
  m_sym : forall u v, dot (P u) v = dot u (P v);
  m_ge0 : forall u, 0 <= dot u (P u);
  m_le : forall u, dot u (P u) <= nrm2 u }.
(* 1.2, without eigenvalues *)
Lemma step_1_2 {D : Dim} P : map01 P -> forall u, nrm2 (P u) <= dot u (P u) /\ nrm2 (P u) <= nrm2 u.
Proof.
  intros HP u. assert (h := m_ge0 _ HP (u + (-1) *: P u)%V). assert (h1 := m_le _ HP (P u)). assert (h2 := m_le _ HP u).
  rewrite (m_add _ HP), (m_scal _ HP), !dot_addl, !dot_addr, !dot_scall, !dot_scalr in h.
  rewrite <- (m_sym _ HP u (P u)) in h. fold (nrm2 (P u)) in h. lra.
Qed.
Lemma m_0 {D : Dim} P : map01 P -> P v0 = v0.
Proof. intros HP. replace (P v0) with (P (0 *: v0)%V) by (f_equal; vring). rewrite (m_scal _ HP). vring. Qed.

(* telescope of Core, with Phi >= 0 only where the invariant holds *)
Lemma telescope_inv {W X : Type} (kernel : X -> law W) (step : X -> W -> X) (inv : X -> Prop) (Phi g : X -> R) c :
  (forall s w, inv s -> inv (step s w)) ->
  (forall s, inv s -> kernel s (fun w => Phi (step s w)) <= Phi s - g s + c) ->
  (forall s, inv s -> 0 <= Phi s) ->
  forall T s, inv s -> sum T (fun t => Eit kernel step t g s) <= Phi s + INR T * c.
Proof.
  intros hi h1 h0 T. induction T; intros s hs. { simpl. specialize (h0 s hs). lra. }
  assert (split : sum (S T) (fun t => Eit kernel step t g s) = g s + sum T (fun t => Eit kernel step (S t) g s)).
  { clear. induction T; [simpl; ring|]. simpl sum in *. rewrite IHT. simpl. ring. }
  rewrite split. simpl Eit. rewrite <- (ex_sum (kernel s) T (fun t w => Eit kernel step t g (step s w))).
  assert (h2 : kernel s (fun w => sum T (fun t => Eit kernel step t g (step s w))) <= kernel s (fun w => Phi (step s w) + INR T * c)).
  { apply ex_le; intros w. apply IHT, hi, hs. }
  rewrite ex_plus, ex_const in h2. specialize (h1 s hs). rewrite S_INR. lra.
Qed.

(* ---- sums and means over a sample ---- *)
Lemma ex_lsum {A O} (E : law O) (l : list A) f : E (fun o => lsum l (fun a => f a o)) = lsum l (fun a => E (f a)).
Proof. induction l; simpl. apply ex_const. now rewrite ex_plus, IHl. Qed.
Lemma lsets_swap {O} n s h (E : law O) f : lsets n s h (fun A => E (f A)) = E (fun o => lsets n s h (fun A => f A o)).
Proof. cbn [ex lsets]. unfold Esets. now rewrite ex_scal, <- ex_lsum. Qed.
Lemma lsets_le n s h f f' : (forall A, In A (subsets n s) -> f A <= f' A) -> lsets n s h f <= lsets n s h f'.
Proof.
  intros H. cbn [ex lsets]. unfold Esets. apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat, cb_pos, h|].
  now apply lsum_le.
Qed.
Lemma c1_cb n s : (0 < s <= n)%nat -> / cb n s * c1 n s = INR s * / INR n.
Proof.
  intros h. assert (p := cb_pos n s ltac:(lia)). destruct n as [|n]; [lia|]. destruct s as [|s]; [lia|].
  change (c1 (S n) (S s)) with (cb n s). assert (a := absorb n s). assert (n0 : 0 < INR (S n)) by (apply lt_0_INR; lia).
  apply (Rmult_eq_reg_l (INR (S n) * cb (S n) (S s))); [|apply Rmult_integral_contrapositive; split; lra].
  transitivity (INR (S n) * cb n s); [field; lra|]. rewrite a. field. lra.
Qed.
Lemma pick_1 (f : nat -> R) A : pick (fun i _ => f i) A 0%nat = lsum A f.
Proof. induction A; [reflexivity|]. simpl. unfold vadd. now rewrite IHA. Qed.
Lemma lsets_mean n s h f : (0 < s)%nat -> lsets n s h (fun A => / INR s * lsum A f) = / INR n * sum n f.
Proof.
  intros s0. cbn [ex lsets]. unfold Esets. rewrite lsum_scal.
  assert (m := @first_moment 1%nat (fun i _ => f i) (fun _ => 1) n s).
  rewrite (lsum_ext _ _ (fun A => lsum A f)) in m.
  2: { intros A _. unfold dot. simpl sum. rewrite pick_1. ring. }
  rewrite m. assert (s1 := lt_0_INR _ s0).
  assert (v : @dot 1%nat (fun _ => 1) (vsum n (fun i _ => f i)) = sum n f).
  { unfold dot, dim. cbn [sum]. unfold vsum. change (fun i => f i) with f. ring. }
  rewrite v. transitivity (/ cb n s * c1 n s * (/ INR s * sum n f)); [ring|].
  rewrite c1_cb by lia. field. split; [|lra]. assert (0 < INR n) by (apply lt_0_INR; lia). lra.
Qed.
Section Pick.
Context {D : Dim}.
Lemma pick_ext (f f' : nat -> vec) A : (forall i, In i A -> f i = f' i) -> pick f A = pick f' A.
Proof. induction A; intros h; [reflexivity|]. rewrite !pick_cons, (h a (or_introl eq_refl)). f_equal. apply IHA. intros i hi. apply h. now right. Qed.
Lemma pick_plus f f' A : pick (fun i => f i + f' i)%V A = (pick f A + pick f' A)%V.
Proof. induction A; [simpl; vring|]. rewrite !pick_cons, IHA. vring. Qed.
Lemma pick_scal b f A : pick (fun i => b *: f i)%V A = (b *: pick f A)%V.
Proof. induction A; [simpl; vring|]. rewrite !pick_cons, IHA. vring. Qed.
Lemma pick_const v A : pick (fun _ => v) A = (INR (length A) *: v)%V.
Proof. induction A; [simpl; vring|]. change (length (a :: A)) with (S (length A)). rewrite S_INR, pick_cons, IHA. vring. Qed.
Lemma pick_map P f A : map01 P -> P (pick f A) = pick (fun i => P (f i)) A.
Proof. intros HP. induction A; [apply m_0, HP|]. now rewrite !pick_cons, (m_add _ HP), IHA. Qed.
Lemma dot_pick b f A : dot b (pick f A) = lsum A (fun i => dot b (f i)).
Proof. induction A; [apply dot_0r|]. rewrite pick_cons, dot_addr, IHA. reflexivity. Qed.
Lemma nrm2_pick f A : nrm2 (pick f A) <= INR (length A) * lsum A (fun i => nrm2 (f i)).
Proof.
  induction A as [|i A IH]; [simpl; rewrite nrm2_0; lra|].
  change (length (i :: A)) with (S (length A)). rewrite S_INR, pick_cons. simpl lsum.
  assert (h : 0 <= lsum A (fun j => nrm2 (f j - f i))).
  { clear. induction A; simpl; [lra|]. assert (h := nrm2_ge0 (f a - f i)). lra. }
  rewrite (lsum_ext _ _ (fun j => nrm2 (f j) + ((-2) * dot (f i) (f j) + nrm2 (f i) * 1))) in h
    by (intros; rewrite nrm2_sub, (dotC (f i)); ring).
  rewrite !lsum_plus, !lsum_scal, <- dot_pick in h.
  assert (c : lsum A (fun _ => 1) = INR (length A)).
  { clear. induction A; [reflexivity|]. change (length (a :: A)) with (S (length A)). rewrite S_INR. simpl. rewrite IHA. ring. }
  rewrite c in h. rewrite nrm2_add. lra.
Qed.
(* what the descent uses of the map, for vectors: 4.1 *)
Lemma form_expand P : map01 P -> forall G a w n, let v := (G + a + w + n)%V in
  dot v (P v) = dot G (P G) + dot a (P a) + dot w (P w) + dot n (P n)
    + 2 * (dot G (P a) + dot G (P w) + dot G (P n) + dot a (P w) + dot a (P n) + dot w (P n)).
Proof.
  intros HP G a w n v. unfold v. rewrite !(m_add _ HP), !dot_addl, !dot_addr.
  assert (sy : forall u v, dot u (P v) = dot v (P u)) by (intros; now rewrite dotC, (m_sym _ HP)).
  rewrite (sy a G), (sy w G), (sy w a), (sy n G), (sy n a), (sy n w). ring.
Qed.
Lemma descent_form P t h L F F' G a w n : map01 P -> 0 <= t -> 0 <= h <= 1 -> h = L * t -> let v := (G + a + w + n)%V in
  F' <= F + dot G (- t *: P v) + L / 2 * nrm2 (- t *: P v) -> 0 <= L ->
  F' <= F + ((- (t / 2)) * dot G (P G) + ((1 + h) / 2 * t * dot a (P a) + (h * t * dot w (P w) + (h * t * dot n (P n)
    + (2 * h * t * dot w (P n) + (h * t - t) * (dot G (P w) + dot G (P n))))))).
Proof.
  intros HP t0 [h0 h1] eh v H L0. destruct (step_1_2 P HP v) as [b _]. rewrite dot_scalr, nrm2_scal in H.
  assert (ex := form_expand P HP G a w n). cbv zeta in ex. fold v in ex. rewrite ex in b.
  assert (eG : dot G (P v) = dot G (P G) + dot G (P a) + dot G (P w) + dot G (P n)) by (unfold v; rewrite !(m_add _ HP), !dot_addr; ring).
  rewrite eG in H.
  assert (sy : forall u v, dot u (P v) = dot v (P u)) by (intros; now rewrite dotC, (m_sym _ HP)).
  assert (p1 := m_ge0 _ HP (G + a)%V). rewrite (m_add _ HP), !dot_addl, !dot_addr, (sy a G) in p1.
  assert (p2 := m_ge0 _ HP (a + (-1) *: (w + n))%V).
  rewrite !(m_add _ HP), !(m_scal _ HP), !(m_add _ HP), !dot_addl, !dot_addr, !dot_scall, !dot_scalr, !dot_addl, !dot_addr, (sy w a), (sy n a), (sy n w) in p2.
  assert (Lt : 0 <= L * t) by pos.
  apply (Rmult_le_compat_l (L * t * t / 2)) in b; [|assert (0 <= L * t * t) by pos; lra].
  assert (q1 := Rmult_le_pos _ _ (Rmult_le_pos (1 - h) t ltac:(lra) t0) p1).
  assert (q2 := Rmult_le_pos _ _ (Rmult_le_pos h t h0 t0) p2).
  rewrite eh in *. clear - H b q1 q2. lra.
Qed.
End Pick.

Lemma step_3_2 {D : Dim} u v k (a : nat -> vec) :
  nrm2 (u + v) <= 2 * nrm2 u + 2 * nrm2 v /\ nrm2 (vsum k a) <= INR k * sum k (fun j => nrm2 (a j)).
Proof. split; [apply nrm2_add_le2|apply nrm2_vsum]. Qed.
Lemma nrm2_three {D : Dim} a b c : nrm2 (a + b - c) <= 4 * nrm2 a + 2 * nrm2 b + 4 * nrm2 c.
Proof.
  replace (a + b - c)%V with (b + (a + (-1) *: c))%V by vring. eapply Rle_trans; [apply nrm2_add_le2|].
  assert (h := nrm2_add_le2 a ((-1) *: c)). rewrite nrm2_scal in h. lra.
Qed.
(* 1.4: the server adds the increments *)
Lemma sum_in n A (f : nat -> R) : NoDup A -> (forall i, In i A -> (i < n)%nat) ->
  sum n (fun i => if in_dec Nat.eq_dec i A then f i else 0) = lsum A f.
Proof.
  intros nd h. induction nd as [|c A nc nd IH].
  - rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; simpl; ring|]. reflexivity.
  - simpl lsum. rewrite <- IH by (intros; apply h; now right). rewrite <- (sum_delta n c (fun _ => f c)) at 1 by (apply h; now left).
    rewrite <- sum_plus. apply sum_ext; intros i _.
    destruct (in_dec Nat.eq_dec i (c :: A)) as [hi|hi]; destruct (in_dec Nat.eq_dec i A) as [ha|ha]; destruct (Nat.eq_dec i c) as [e1|e1];
      try (subst i; contradiction); try (subst i; ring); try ring.
    + destruct hi as [hi|hi]; [congruence|contradiction].
    + destruct hi. now right.
    + destruct hi. left. now symmetry.
Qed.
Lemma pick_coord (f : nat -> vec) A j : pick f A j = lsum A (fun i => f i j).
Proof. induction A; [reflexivity|]. rewrite pick_cons. simpl. unfold vadd. now rewrite IHA. Qed.
Lemma step_1_4 N A (c c' : nat -> vec) : NoDup A -> (forall i, In i A -> (i < N)%nat) -> (forall i, (i < N)%nat -> ~ In i A -> c' i = c i) ->
  (/ INR N *: vsum N c + / INR N *: pick (fun i => c' i - c i) A = / INR N *: vsum N c')%V /\
  exists (N : nat) (A : list nat) (c g : nat -> R),   (* (6) with Q = I: c+ = the mean of the fresh controls *)
    let c' i := if in_dec Nat.eq_dec i A then g i else c i in / INR (length A) * lsum A g <> / INR N * sum N c'.
Proof.
  intros nd hA same. split.
  - apply functional_extensionality; intros j. unfold vadd, vscal, vsum. rewrite pick_coord.
    rewrite <- (sum_in N A (fun i => (c' i - c i)%V j)) by auto. rewrite <- Rmult_plus_distr_l, <- sum_plus. f_equal.
    apply sum_ext; intros i hi. destruct (in_dec Nat.eq_dec i A); [vunfold; ring|]. rewrite same by auto. ring.
  - exists 2%nat, [0%nat], (fun _ => 0), (fun _ => 1). simpl. lra.
Qed.

Section Family.
Context {D : Dim}.
Variables N Sn K : nat.                   (* clients, clients of a round, local steps *)
Hypothesis S1 : (0 < Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.                    (* the draw of the map (and of Q, which only the memory sees) *)
Variable P : O -> vec -> vec.
Variables rho omega theta : R.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L Fstar eta etag sigma : R.
(* memories: any type; what client i corrects by; the rule is free *)
Context {Mem : Type}.
Variable ci : Mem -> nat -> vec.
Record state := State { sx : vec; smem : Mem }.
Definition noise := nat -> vec.
Variable ker : state -> O -> list noise -> law noise.
Variable upd : state -> list nat -> O -> list noise -> Mem.

Definition meanR (f : nat -> R) : R := / INR N * sum N f.
Definition meanV (f : nat -> vec) : vec := (/ INR N *: vsum N f)%V.
Definition cbar (s : state) : vec := meanV (ci (smem s)).

(* a round: y^0 = x, y^{k+1} = y^k - eta P (g_i(y^k) + noise - c_i + c), x+ = x + etag/S sum_{i in A} (y_i^K - x) *)
Fixpoint loc (s : state) (w : O) (i : nat) (h : list noise) : vec :=
  match h with
  | [] => sx s
  | z :: h => (loc s w i h - eta *: P w (g i (loc s w i h) + z i - ci (smem s) i + cbar s))%V
  end.
Definition draws : Type := list nat * (O * list noise).
Definition step (s : state) (p : draws) : state := let '(A, (w, h)) := p in {|
  sx := (sx s + (etag / INR Sn) *: pick (fun i => loc s w i h - sx s)%V A)%V;
  smem := upd s A w h |}.
(* the sample, independent of the map and of the noise; the map; the noise of all clients, given the map *)
Definition local_law (s : state) : law (O * list noise) := bind draw (fun w => path (ker s w) K).
Definition round (s : state) : law draws := bind (lsets N Sn SN) (fun _ => local_law s).

Definition Favg x : R := meanR (fun i => F i x).
Definition G x : vec := meanV (fun i => g i x).
Definition u s i : vec := (g i (sx s) - ci (smem s) i)%V.
Definition V s : R := meanR (fun i => nrm2 (u s i - meanV (u s))).
Definition Se s w i : list noise -> R := psum (fun h (_ : noise) => nrm2 (loc s w i h - sx s)).
Definition DD s : R := local_law s (fun p => meanR (fun i => / INR K * Se s (fst p) i (snd p))).
Definition move s : R := round s (fun p => nrm2 (sx (step s p) - sx s)).
Definition etat : R := etag * INR K * eta.
Definition hh : R := L * etat.
Definition pp : R := L ^ 2 * eta ^ 2 * INR K * (INR K - 1).
Definition nu : R := (INR N - INR Sn) / (INR Sn * (INR N - 1)).
Definition vv : R := theta * sigma ^ 2 / INR K.

(* the statements of one round *)
Definition drift_at s : Prop := L ^ 2 * DD s <= 1041/1000 * pp * vv + 1388/1000 * omega * rho * pp * (V s + nrm2 (G (sx s))).
Definition descent_at s : Prop := round s (fun p => Favg (sx (step s p))) <= Favg (sx s) - rho * etat / 2 * nrm2 (G (sx s))
  + (1 + hh) / 2 * etat * (L ^ 2 * DD s) + hh * etat * (rho * nu * V s + vv * / INR Sn).
Definition move_at s : Prop := move s <= etat ^ 2 * (2 * omega * rho * nrm2 (G (sx s)) + 3 * (L ^ 2 * DD s)
  + 2 * omega * rho * nu * V s + 2 * vv * / INR Sn).
(* (M) *)
Definition memory_at (Cerr : state -> R) m chi alpha gamma zeta s : Prop := V s <= Cerr s /\
  round s (fun p => Cerr (step s p)) <= (1 - m) * Cerr s + chi * zeta ^ 2 + alpha * (L ^ 2 * DD s + vv) + gamma * (L ^ 2 * move s).

(* the page's constants *)
Definition qq : R := 7/8 * omega * pp + hh * nu.
Definition kappa m alpha gamma : R :=
  m - rho * omega * (7/5 * alpha * pp + (21/5 * pp + 2 * nu) * gamma * hh ^ 2).

Hypothesis rho01 : 0 < rho <= 1.
Hypothesis omega01 : 0 <= omega <= 1.
Hypothesis theta0 : 0 <= theta.
Hypothesis L0 : 0 <= L.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Hypothesis steps_local : INR K * L * eta <= 1/10.
Hypothesis steps_server : L * etat <= 1/4.

Let N1 : (0 < N)%nat. Proof. lia. Qed.
Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let S0 : 0 < INR Sn. Proof. now apply lt_0_INR. Qed.
Let iN0 : 0 <= / INR N. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iK0 : 0 <= / INR K. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iS0 : 0 <= / INR Sn. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Lemma etat_gt0 : 0 < etat. Proof. unfold etat. repeat apply Rmult_lt_0_compat; auto. Qed.
Lemma hh_range : 0 <= hh <= 1/4.
Proof. assert (t0 := Rlt_le _ _ etat_gt0). split; [unfold hh; pos|exact steps_server]. Qed.
Let KK : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Lemma pp_range : 0 <= pp <= 1/100.
Proof.
  assert (a0 : 0 <= INR K * L * eta) by pos. assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta).
  assert (b : 0 <= L ^ 2 * eta ^ 2 * INR K) by pos. unfold pp. split; [pos|].
  assert (c : (INR K * L * eta) ^ 2 <= 1/100) by nra. lra.
Qed.
Lemma nu_ge0 : 0 <= nu.
Proof.
  assert (a := le_INR _ _ SN). assert (b : 1 <= INR N) by (apply (le_INR 1); lia).
  unfold nu, Rdiv. destruct (Req_dec (INR N) 1) as [e|e].
  - rewrite e. replace (INR Sn * (1 - 1)) with 0 by ring. rewrite Rinv_0. lra.
  - apply Rmult_le_pos; [lra|]. apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra.
Qed.
Lemma vv_ge0 : 0 <= vv. Proof. unfold vv, Rdiv. assert (s2 := pow2_ge_0 sigma). pos. Qed.
Lemma meanR_ge0 f : (forall i, (i < N)%nat -> 0 <= f i) -> 0 <= meanR f.
Proof. intros h. apply Rmult_le_pos; auto. now apply sum_ge0. Qed.
Lemma V_ge0 s : 0 <= V s. Proof. apply meanR_ge0; intros; apply nrm2_ge0. Qed.

(* section 6 and the Theorem, from the statements of one round *)
Section Theorem_.
Hypothesis bounded : forall x, Fstar <= Favg x.
Variable good : state -> Prop.            (* what the memory's rule needs of a state, kept by a round *)
Variable Cerr : state -> R.
Variables m chi alpha gamma zeta : R.
Hypothesis alpha0 : 0 <= alpha.
Hypothesis gamma0 : 0 <= gamma.
Hypothesis good_step : forall s p, good s -> good (step s p).
Hypothesis Hdrift : forall s, good s -> drift_at s.
Hypothesis Hdescent : forall s, good s -> descent_at s.
Hypothesis Hmove : forall s, good s -> move_at s.
Hypothesis HM : forall s, good s -> memory_at Cerr m chi alpha gamma zeta s.
Notation q := qq.
Notation kap := (kappa m alpha gamma).
Hypothesis kap0 : 0 < kap.
Hypothesis steps2 : rho * omega * q / kap * (7/5 * alpha * pp + (21/5 * pp + 2) * gamma * hh ^ 2) <= 1/25.

Definition MM : R := rho * etat * (q / kap).
Definition Phi s : R := Favg (sx s) - Fstar + MM * Cerr s.
Section Sharp.
Variable sp : R.
Hypothesis sharp : 3123/1000 * pp <= sp.
Definition forgotten_ : R := MM * chi * zeta ^ 2
  + vv * (etat * (hh * / INR Sn + 2/3 * pp) + MM * (51/50 * alpha + (sp + 2 * / INR Sn) * gamma * hh ^ 2)).
Lemma MM_ge0 : 0 <= MM.
Proof.
  destruct pp_range as [p0 _]. destruct hh_range as [h0 _]. assert (n0 := nu_ge0). assert (t0 := Rlt_le _ _ etat_gt0).
  assert (ik : 0 <= / kap) by now apply Rlt_le, Rinv_0_lt_compat.
  unfold MM, q, Rdiv. apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rmult_le_pos; auto.
  apply Rplus_le_le_0_compat; pos.
Qed.
Lemma potential_ s : good s -> round s (fun p => Phi (step s p)) <= Phi s - 9/20 * rho * etat * nrm2 (G (sx s)) + forgotten_.
Proof.
  intros hs. destruct (HM s hs) as [hV hC].
  rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + MM * Cerr (step s p)))) by (intros; unfold Phi; ring).
  rewrite !ex_plus, ex_const, ex_scal.
  assert (hX : L ^ 2 * move s <= hh ^ 2 * (2 * omega * rho * nrm2 (G (sx s)) + 3 * (L ^ 2 * DD s)
    + 2 * omega * rho * nu * V s + 2 * vv * / INR Sn)).
  { assert (b := Hmove s hs). apply (Rmult_le_compat_l (L ^ 2)) in b; [|apply pow2_ge_0].
    replace (hh ^ 2) with (L ^ 2 * etat ^ 2) by (unfold hh; ring). rewrite Rmult_assoc. exact b. }
  assert (k := section_6 sp rho etat omega pp hh nu m chi alpha gamma (/ INR Sn) q kap MM (Cerr s) (nrm2 (G (sx s)))
    (V s) (L ^ 2 * DD s) (L ^ 2 * move s) (zeta ^ 2) vv (Favg (sx s)) (round s (fun p => Favg (sx (step s p))))
    (round s (fun p => Cerr (step s p))) sharp (proj1 rho01) etat_gt0 omega01 pp_range hh_range nu_ge0 alpha0 gamma0 iS0 vv_ge0
    (nrm2_ge0 _) (conj (V_ge0 s) hV) eq_refl eq_refl kap0 eq_refl steps2 (Hdrift s hs) (Hdescent s hs) hX hC).
  unfold Phi, forgotten_. lra.
Qed.
Lemma from_rounds_ (s0 : state) (T : nat) : good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + q / kap * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp
       + rho * q / kap * (51/50 * alpha + (sp + 2 / INR Sn) * gamma * hh ^ 2))).
Proof.
  intros h0 T0%lt_0_INR. assert (t0 := etat_gt0).
  assert (P0 : forall s, good s -> 0 <= Phi s).
  { intros s hs. unfold Phi. assert (b := bounded (sx s)). destruct (HM s hs) as [hV _]. assert (v0 := V_ge0 s).
    assert (0 <= MM * Cerr s) by (apply Rmult_le_pos; [apply MM_ge0|lra]). lra. }
  assert (h := telescope_inv round step good Phi (fun s => 9/20 * rho * etat * nrm2 (G (sx s))) forgotten_
    good_step potential_ P0 T s0 h0).
  rewrite (sum_ext _ _ (fun t => 9/20 * rho * etat * Eit round step t (fun s => nrm2 (G (sx s))) s0)) in h
    by (intros; apply Eit_scal).
  rewrite sum_scal in h. unfold Phi, forgotten_, MM in h.
  replace (theta * sigma ^ 2 / (rho * INR K)) with (vv / rho) by (unfold vv; field; lra).
  replace (rho * q / kap) with (rho * (q / kap)) by (field; lra).
  eapply (family_division rho etat (INR T)); [apply rho01|exact t0|exact T0|exact h|reflexivity].
Qed.
End Sharp.
Let sharp_25 : 3123/1000 * pp <= 1/25. Proof. destruct pp_range. lra. Qed.
Definition forgotten_and_noise : R := forgotten_ (1/25).
Lemma potential s : good s -> round s (fun p => Phi (step s p)) <= Phi s - 9/20 * rho * etat * nrm2 (G (sx s)) + forgotten_and_noise.
Proof. exact (potential_ (1/25) sharp_25 s). Qed.
Theorem family_from_rounds (s0 : state) (T : nat) : good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + q / kap * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp
       + rho * q / kap * (51/50 * alpha + (1/25 + 2 / INR Sn) * gamma * hh ^ 2))).
Proof. exact (from_rounds_ (1/25) sharp_25 s0 T). Qed.
Lemma step_6_5 (s0 : state) (T : nat) : good s0 -> (0 < T)%nat ->
  (forall s, good s -> round s (fun p => Phi (step s p)) <= Phi s - 9/20 * rho * etat * nrm2 (G (sx s)) + forgotten_and_noise) /\
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0) <= / (9/20 * rho * etat) * (Phi s0 / INR T + forgotten_and_noise).
Proof.
  intros h0 T0%lt_0_INR. split; [exact potential|]. assert (t0 := etat_gt0).
  assert (P0 : forall s, good s -> 0 <= Phi s).
  { intros s hs. unfold Phi. assert (b := bounded (sx s)). destruct (HM s hs) as [hV _]. assert (v0 := V_ge0 s).
    assert (0 <= MM * Cerr s) by (apply Rmult_le_pos; [apply MM_ge0|lra]). lra. }
  assert (h := telescope_inv round step good Phi (fun s => 9/20 * rho * etat * nrm2 (G (sx s))) forgotten_and_noise
    good_step potential P0 T s0 h0).
  rewrite (sum_ext _ _ (fun t => 9/20 * rho * etat * Eit round step t (fun s => nrm2 (G (sx s))) s0)) in h by (intros; apply Eit_scal).
  rewrite sum_scal in h. assert (c0 : 0 < / (9/20 * rho * etat * INR T)) by (apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (/ INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)) with (/ (9/20 * rho * etat * INR T) * (9/20 * rho * etat
    * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0))) by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
End Theorem_.
(* ================= the statements of one round, from the assumptions ================= *)
Hypothesis HP : forall w, map01 (P w).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Hypothesis EP2 : forall a, draw (fun w => nrm2 (P w a)) <= omega * rho * nrm2 a.
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis noise_mean0 : forall s w h i a, (i < N)%nat -> ker s w h (fun z => dot a (z i)) = 0.
(* E<xi, P xi> <= theta sigma^2, the mean over the map and the earlier noise, too *)
Hypothesis noise_theta : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (P w (z i))))) <= theta * sigma ^ 2.
(* different clients, given the map and the earlier noise *)
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis noise_clients : forall s w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker s w h (fun z => dot (z i) (P w (z j))) = 0.

Lemma meanR_le f f' : (forall i, (i < N)%nat -> f i <= f' i) -> meanR f <= meanR f'.
Proof. intros h. apply Rmult_le_compat_l; auto. now apply sum_le. Qed.
Lemma meanR_ext f f' : (forall i, (i < N)%nat -> f i = f' i) -> meanR f = meanR f'.
Proof. intros h. unfold meanR. now rewrite (sum_ext _ _ _ h). Qed.
Lemma meanR_plus f f' : meanR (fun i => f i + f' i) = meanR f + meanR f'.
Proof. unfold meanR. rewrite sum_plus. ring. Qed.
Lemma meanR_scal a f : meanR (fun i => a * f i) = a * meanR f.
Proof. unfold meanR. rewrite sum_scal. ring. Qed.
Lemma meanR_const a : meanR (fun _ => a) = a.
Proof. unfold meanR. rewrite sum_const. field. lra. Qed.
Lemma meanV_ext f f' : (forall i, (i < N)%nat -> f i = f' i) -> meanV f = meanV f'.
Proof. intros h. unfold meanV. now rewrite (vsum_ext _ _ _ h). Qed.
Lemma meanV_plus f f' : meanV (fun i => f i + f' i)%V = (meanV f + meanV f')%V.
Proof. unfold meanV. rewrite vsum_plus. vring. Qed.
Lemma meanV_scal a f : meanV (fun i => a *: f i)%V = (a *: meanV f)%V.
Proof. unfold meanV. rewrite vsum_scal. vring. Qed.
Lemma meanV_sub f f' : meanV (fun i => f i - f' i)%V = (meanV f - meanV f')%V.
Proof. rewrite (meanV_ext _ (fun i => f i + (-1) *: f' i)%V) by (intros; vring). rewrite meanV_plus, meanV_scal. vring. Qed.
Lemma meanV_const v : meanV (fun _ => v) = v.
Proof. unfold meanV. rewrite vsum_const. vfield. lra. Qed.
Lemma meanV_dot f v : dot (meanV f) v = meanR (fun i => dot (f i) v).
Proof. unfold meanV, meanR. now rewrite dot_scall, dot_suml. Qed.
Lemma ex_meanR {A} (E : law A) f : E (fun a => meanR (fun i => f i a)) = meanR (fun i => E (f i)).
Proof. unfold meanR. now rewrite ex_scal, ex_sum. Qed.

Lemma nrm2_pvsum (f : list noise -> noise -> vec) h :
  nrm2 (pvsum f h) <= INR (length h) * psum (fun h z => nrm2 (f h z)) h.
Proof.
  induction h as [|z h IH]. { simpl. rewrite nrm2_0. lra. }
  change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl pvsum. simpl psum.
  destruct h as [|z' h].
  - simpl in *. replace (v0 + f [] z)%V with (f [] z) by vring. lra.
  - set (k := INR (length (z' :: h))) in *. assert (k0 : 0 < k) by (apply lt_0_INR; simpl; lia).
    eapply Rle_trans; [apply (nrm2_add_young (/ k)); now apply Rinv_0_lt_compat|].
    replace (/ / k) with k by (field; lra).
    apply (Rmult_le_compat_l (1 + / k)) in IH; [|assert (0 < / k) by (now apply Rinv_0_lt_compat); lra].
    replace ((1 + / k) * (k * psum (fun h z => nrm2 (f h z)) (z' :: h)))
      with ((k + 1) * psum (fun h z => nrm2 (f h z)) (z' :: h)) in IH by (field; lra). lra.
Qed.
Lemma psum_le {Z} (e e' : list Z -> Z -> R) h : (forall h z, e h z <= e' h z) -> psum e h <= psum e' h.
Proof. intros H. induction h; simpl; [lra|]. specialize (H h a). lra. Qed.
Lemma psum_ge0 {Z} (e : list Z -> Z -> R) h : (forall h z, 0 <= e h z) -> 0 <= psum e h.
Proof. intros H. induction h; simpl; [lra|]. specialize (H h a). lra. Qed.
Lemma psum_scal {Z} a (e : list Z -> Z -> R) h : psum (fun h z => a * e h z) h = a * psum e h.
Proof. induction h; simpl; rewrite ?IHh; ring. Qed.
Lemma P_pvsum w (f : list noise -> noise -> vec) h : P w (pvsum f h) = pvsum (fun h z => P w (f h z)) h.
Proof. induction h; simpl; [apply m_0, HP|]. now rewrite (m_add _ (HP w)), IHh. Qed.
Lemma P_le w a : nrm2 (P w a) <= nrm2 a. Proof. apply step_1_2, HP. Qed.
Lemma P_le_dot w a : nrm2 (P w a) <= dot a (P w a). Proof. apply step_1_2, HP. Qed.

Section Round.
Variable s : state.
Notation x := (sx s).
Definition d i : vec := (u s i - meanV (u s) + G x)%V.
Definition a w i h : vec := (g i (loc s w i h) - g i x)%V.
Definition e w i h : R := nrm2 (loc s w i h - x).
Definition Sa w i : list noise -> vec := pvsum (fun h (_ : noise) => a w i h).
Definition Xi i : list noise -> vec := pvsum (fun _ (z : noise) => z i).

Lemma d_alt i : d i = (u s i + cbar s)%V.
Proof.
  unfold d. replace (meanV (u s)) with (G x - cbar s)%V; [vring|].
  unfold u. rewrite meanV_sub. reflexivity.
Qed.
(* 3.1 *)
Lemma step_3_1 w i h : (loc s w i h - x = - (eta *: P w (Sa w i h + INR (length h) *: d i + Xi i h)))%V.
Proof.
  assert (pw := HP w). induction h as [|z h IH].
  - change (x - x = - (eta *: P w (v0 + 0 *: d i + v0)))%V.
    replace (v0 + 0 *: d i + v0)%V with v0 by vring. rewrite (m_0 _ pw). vring.
  - change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl loc.
    change (Sa w i (z :: h)) with (Sa w i h + a w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    replace (loc s w i h - eta *: P w (g i (loc s w i h) + z i - ci (smem s) i + cbar s) - x)%V
      with ((loc s w i h - x) - eta *: P w (g i (loc s w i h) + z i - ci (smem s) i + cbar s))%V by vring.
    rewrite IH. replace (Sa w i h + a w i h + (INR (length h) + 1) *: d i + (Xi i h + z i))%V
      with ((Sa w i h + INR (length h) *: d i + Xi i h) + (g i (loc s w i h) + z i - ci (smem s) i + cbar s))%V
      by (rewrite d_alt; unfold a, u; vring).
    rewrite (m_add _ pw (Sa w i h + INR (length h) *: d i + Xi i h)%V). vring.
Qed.
Lemma Sa_le w i h : (i < N)%nat -> nrm2 (Sa w i h) <= INR (length h) * (L * L * Se s w i h).
Proof.
  intros hi. eapply Rle_trans; [apply nrm2_pvsum|]. apply Rmult_le_compat_l; [apply pos_INR|].
  unfold Se. rewrite <- psum_scal. apply psum_le. intros. now apply lip.
Qed.
Lemma Se_ge0 w i h : 0 <= Se s w i h. Proof. apply psum_ge0; intros; apply nrm2_ge0. Qed.

(* a number that depends on the map and the first k noises *)
Definition EE k (f : O -> list noise -> R) : R := draw (fun w => path (ker s w) k (f w)).
Lemma EE_plus k f f' : EE k (fun w h => f w h + f' w h) = EE k f + EE k f'.
Proof. unfold EE. rewrite <- ex_plus. apply ex_ext; intros w. apply ex_plus. Qed.
Lemma EE_scal k b f : EE k (fun w h => b * f w h) = b * EE k f.
Proof. unfold EE. rewrite <- ex_scal. apply ex_ext; intros w. apply ex_scal. Qed.
Lemma EE_le k f f' : (forall w h, length h = k -> f w h <= f' w h) -> EE k f <= EE k f'.
Proof. intros H. apply ex_le; intros w. apply path_length. intros. now apply H. Qed.
Lemma EE_map k f : EE k (fun w _ => f w) = draw f.
Proof. apply ex_ext; intros w. apply (ex_const (path (ker s w) k)). Qed.
Lemma EE_psum k f : EE k (fun w h => psum (fun h (_ : noise) => f w h) h) = sum k (fun j => EE j f).
Proof.
  unfold EE. rewrite <- ex_sum. apply ex_ext; intros w. rewrite path_psum. apply sum_ext; intros j _.
  apply ex_ext; intros h. apply ex_const.
Qed.

Lemma step_3_3 i : draw (fun w => nrm2 (P w (d i))) = draw (fun w => dot (d i) (P w (P w (d i)))) /\
  draw (fun w => nrm2 (P w (d i))) <= omega * rho * nrm2 (d i).
Proof. split; [|apply EP2]. apply ex_ext; intros w. apply (m_sym _ (HP w)). Qed.
(* 3.4 *)
Lemma step_3_4 i k : (i < N)%nat -> (k <= K)%nat -> EE k (fun w h => nrm2 (P w (Xi i h))) <= INR k * (theta * sigma ^ 2).
Proof.
  intros hi hk. rewrite <- sum_const. unfold EE.
  rewrite (ex_ext draw _ (fun w => sum k (fun j => path (ker s w) j (fun h => ker s w h (fun z => nrm2 (P w (z i))))))).
  - rewrite ex_sum. apply sum_le; intros j hj. eapply Rle_trans; [|apply (noise_theta s j i); [lia|exact hi]].
    apply ex_le; intros w. apply ex_le; intros h. apply ex_le; intros z. apply P_le_dot.
  - intros w. rewrite <- (noise_squares (ker s w) (fun _ (z : noise) => P w (z i))).
    + apply ex_ext; intros h. unfold Xi. now rewrite P_pvsum.
    + intros h b. rewrite <- (noise_mean0 s w h i (P w b) hi). apply ex_ext; intros z. now rewrite (m_sym _ (HP w)).
Qed.

(* the recursion of section 3 *)
Lemma drift_rec i k : (i < N)%nat -> (k < K)%nat ->
  EE k (fun w => e w i) <= 4 * eta ^ 2 * L ^ 2 * INR K * sum k (fun j => EE j (fun w => e w i))
    + (eta ^ 2 * (omega * rho * nrm2 (d i)) * (4 * INR k ^ 2) + eta ^ 2 * (theta * sigma ^ 2) * (2 * INR k)).
Proof.
  intros hi hk. assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (k0 := pos_INR k).
  assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (k2 := pow2_ge_0 (INR k)).
  assert (H : EE k (fun w => e w i) <= EE k (fun w h => 4 * eta ^ 2 * L ^ 2 * INR K * Se s w i h
    + (4 * eta ^ 2 * INR k ^ 2 * nrm2 (P w (d i)) + 2 * eta ^ 2 * nrm2 (P w (Xi i h))))).
  { apply EE_le. intros w h hl. assert (pw := HP w). unfold e. rewrite step_3_1, nrm2_opp, nrm2_scal, hl.
    rewrite !(m_add _ pw), (m_scal _ pw).
    assert (h1 := nrm2_add_le2 (P w (Sa w i h) + INR k *: P w (d i)) (P w (Xi i h))).
    assert (h2 := nrm2_add_le2 (P w (Sa w i h)) (INR k *: P w (d i))). rewrite nrm2_scal in h2.
    assert (h3 := P_le w (Sa w i h)). assert (h5 := Sa_le w i h hi). rewrite hl in h5.
    assert (SS := Se_ge0 w i h).
    assert (h6 : INR k * (L * L * Se s w i h) <= INR K * (L * L * Se s w i h)) by (apply Rmult_le_compat_r; pos).
    assert (h7 : nrm2 (P w (Sa w i h) + INR k *: P w (d i) + P w (Xi i h))
      <= 4 * (INR K * (L * L * Se s w i h)) + 4 * (INR k * INR k * nrm2 (P w (d i))) + 2 * nrm2 (P w (Xi i h))) by lra.
    apply (Rmult_le_compat_l (eta * eta)) in h7; [lra|pos]. }
  eapply Rle_trans; [exact H|]. rewrite !EE_plus, !EE_scal. unfold Se at 1. rewrite (EE_psum k (fun w h => nrm2 (loc s w i h - x))).
  rewrite (EE_map k (fun w => nrm2 (P w (d i)))). fold (e).
  assert (q1 := step_3_4 i k hi ltac:(lia)). assert (q2 := EP2 (d i)).
  apply (Rmult_le_compat_l (2 * eta ^ 2)) in q1; [|lra].
  apply (Rmult_le_compat_l (4 * eta ^ 2 * INR k ^ 2)) in q2; [|pos].
  change (fun w h => nrm2 (loc s w i h - x)) with (fun w h => e w i h).
  change (fun j => EE j (fun w h => e w i h)) with (fun j => EE j (fun w => e w i)). lra.
Qed.
(* 3.5 *)
Lemma step_3_5 k : sum k (fun j => 4 * INR j ^ 2) <= 4/3 * (INR k ^ 2 * (INR k - 1)) /\ sum k (fun j => 2 * INR j) = INR k * (INR k - 1).
Proof.
  destruct k as [|k]; [simpl; lra|]. rewrite S_INR.
  enough (sum (S k) (fun j => 4 * INR j ^ 2) = 2/3 * INR k * (INR k + 1) * (2 * INR k + 1) /\ sum (S k) (fun j => 2 * INR j) = (INR k + 1) * INR k) as [-> ->].
  { assert (k0 := pos_INR k). split; nra. }
  induction k as [|k [IH IH']]; [simpl; split; lra|]. rewrite (sum_S (S k)), (sum_S (S k) (fun j => 2 * INR j)), IH, IH', !S_INR. split; field.
Qed.
Lemma drift_client i : (i < N)%nat -> EE K (fun w => Se s w i)
  <= 1388/1000 * eta ^ 2 * INR K ^ 2 * (INR K - 1) * (omega * rho * nrm2 (d i)) + 1041/1000 * eta ^ 2 * INR K * (INR K - 1) * (theta * sigma ^ 2).
Proof.
  intros hi. unfold Se. rewrite (EE_psum K (fun w h => nrm2 (loc s w i h - x))).
  change (fun j => EE j (fun w h => nrm2 (loc s w i h - x))) with (fun j => EE j (fun w => e w i)).
  assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). assert (n0 := nrm2_ge0 (d i)). assert (l2 := pow2_ge_0 L).
  assert (a0 : 0 <= 4 * eta ^ 2 * L ^ 2 * INR K) by pos.
  assert (m0 : 0 <= eta ^ 2 * (omega * rho * nrm2 (d i))) by pos. assert (m1 : 0 <= eta ^ 2 * (theta * sigma ^ 2)) by pos.
  assert (h := Ssf.step_2_6 _ (fun j => EE j (fun w => e w i)) (fun k => eta ^ 2 * (omega * rho * nrm2 (d i)) * (4 * INR k ^ 2) + eta ^ 2 * (theta * sigma ^ 2) * (2 * INR k)) K a0).
  specialize (h (fun k => ltac:(assert (k0 := pos_INR k); assert (k2 := pow2_ge_0 (INR k)); apply Rplus_le_le_0_compat; pos))).
  specialize (h (fun k => drift_rec i k hi) K (Nat.le_refl K)).
  eapply Rle_trans; [exact h|]. rewrite sum_plus, !sum_scal.
  assert (hp : (1 + 4 * eta ^ 2 * L ^ 2 * INR K) ^ K <= 1041/1000).
  { apply Ssf.growth; auto. replace (4 * eta ^ 2 * L ^ 2 * INR K * INR K) with (4 * (INR K * L * eta) ^ 2) by ring.
    assert (0 <= INR K * L * eta) by pos. nra. }
  destruct (step_3_5 K) as [h7 h8]. rewrite sum_scal in h7, h8.
  apply (Rmult_le_compat_l _ _ _ m0) in h7.
  set (Y := eta ^ 2 * (omega * rho * nrm2 (d i)) * (4 * sum K (fun k => INR k ^ 2)) + eta ^ 2 * (theta * sigma ^ 2) * (2 * sum K INR)) in *.
  assert (Y0 : 0 <= sum K (fun k => INR k ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0).
  assert (Y1 : 0 <= sum K INR) by (apply sum_ge0; intros; apply pos_INR).
  assert (X0 : 0 <= Y) by (unfold Y; apply Rplus_le_le_0_compat; pos).
  eapply Rle_trans; [apply Rmult_le_compat_r; [exact X0|exact hp]|]. unfold Y. rewrite h8. lra.
Qed.
(* 3.6 *)
Lemma step_3_6 : meanR (fun i => nrm2 (d i)) = V s + nrm2 (G x).
Proof.
  rewrite (meanR_ext _ (fun i => nrm2 (u s i - meanV (u s)) + (2 * dot (u s i - meanV (u s)) (G x) + nrm2 (G x))))
    by (intros; unfold d; rewrite nrm2_add; ring).
  rewrite !meanR_plus, meanR_scal, meanR_const.
  assert (z : meanR (fun i => dot (u s i - meanV (u s)) (G x)) = 0).
  { rewrite <- (meanV_dot (fun i => u s i - meanV (u s))%V (G x)), meanV_sub, meanV_const.
    change (meanV (fun i => u s i)) with (meanV (u s)).
    replace (meanV (u s) - meanV (u s))%V with v0 by vring. apply dot_0l. }
  rewrite z. unfold V. ring.
Qed.
(* the claim of section 3 *)
Theorem step_3_7 : drift_at s.
Proof.
  unfold drift_at. assert (l2 := pow2_ge_0 L).
  assert (H : DD s <= 1388/1000 * eta ^ 2 * INR K * (INR K - 1) * omega * rho * (V s + nrm2 (G x)) + 1041/1000 * eta ^ 2 * (INR K - 1) * (theta * sigma ^ 2)).
  { rewrite <- step_3_6, <- meanR_scal, <- (meanR_const (_ * (theta * sigma ^ 2))), <- meanR_plus.
    unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
    apply meanR_le; intros i hi. rewrite ex_scal. assert (b := drift_client i hi).
    change (EE K (fun w => Se s w i)) with (local_law s (fun p => Se s (fst p) i (snd p))) in b.
    apply (Rmult_le_compat_l (/ INR K)) in b; auto. eapply Rle_trans; [exact b|]. right. field. lra. }
  apply (Rmult_le_compat_l (L ^ 2)) in H; auto. eapply Rle_trans; [exact H|]. right. unfold pp, vv. field. lra.
Qed.
(* ---- the descent and the move ---- *)
Definition w_ i : vec := (u s i - meanV (u s))%V.
Definition wS A : vec := (/ INR Sn *: pick w_ A)%V.
Definition aS A w h : vec := (/ INR Sn *: pick (fun i => / INR K *: Sa w i h) A)%V.
Definition nS (A : list nat) h : vec := (/ INR Sn *: pick (fun i => / INR K *: Xi i h) A)%V.
(* 1.3 *)
Lemma step_1_3 A w h : length A = Sn -> length h = K ->
  (sx (step s (A, (w, h))) = x + - etat *: P w (G x + aS A w h + wS A + nS A h))%V.
Proof.
  intros hA hk. cbn [step sx]. f_equal. assert (pw := HP w).
  rewrite (pick_ext _ (fun i => (- (INR K * eta)) *: P w ((G x + w_ i) + (/ INR K *: Sa w i h + / INR K *: Xi i h)))%V).
  - rewrite pick_scal, <- (pick_map _ _ _ pw), !pick_plus, pick_const, hA. fold (w_).
    replace (G x + aS A w h + wS A + nS A h)%V with (/ INR Sn *: (INR Sn *: G x + pick w_ A
      + (pick (fun i => / INR K *: Sa w i h) A + pick (fun i => / INR K *: Xi i h) A)))%V by (unfold aS, wS, nS; vfield; lra).
    rewrite (m_scal _ pw). unfold etat, Rdiv. change (fun i => w_ i) with w_. vring.
  - intros i _. rewrite step_3_1, hk.
    replace (Sa w i h + INR K *: d i + Xi i h)%V with (INR K *: (G x + w_ i + (/ INR K *: Sa w i h + / INR K *: Xi i h)))%V
      by (unfold d, w_; vfield; lra).
    rewrite (m_scal _ pw). vring.
Qed.
Lemma qubF v : Favg (x + v) <= Favg x + dot (G x) v + L / 2 * nrm2 v.
Proof.
  unfold G. rewrite meanV_dot, <- (meanR_const (L / 2 * nrm2 v)). unfold Favg. rewrite <- !meanR_plus.
  apply meanR_le; intros i hi. apply (smooth (F i) (g i) L L0); auto.
Qed.
(* the noise of a sample *)
Lemma nSE A h : nS A h = ((/ INR Sn * / INR K) *: pvsum (fun _ (z : noise) => pick z A) h)%V.
Proof.
  unfold nS. rewrite pick_scal. replace (pick (fun i => Xi i h) A) with (pvsum (fun _ (z : noise) => pick z A) h); [vring|].
  induction h as [|z h IH].
  - change (v0 = pick (fun _ => v0) A). rewrite pick_const. vring.
  - simpl. rewrite IH. rewrite <- pick_plus. apply pick_ext. reflexivity.
Qed.
Lemma pick_mean0 A w h b : (forall i, In i A -> (i < N)%nat) -> ker s w h (fun z => dot b (pick z A)) = 0.
Proof.
  intros hA. rewrite (ex_ext _ _ (fun z => lsum A (fun i => dot b (z i)))) by (intros; apply dot_pick).
  rewrite (ex_lsum (ker s w h) A (fun i z => dot b (z i))). induction A; simpl; [ring|].
  rewrite IHA, noise_mean0 by (intros; apply hA; simpl; auto). ring.
Qed.
Lemma nS_mean0 A w k b : (forall i, In i A -> (i < N)%nat) -> path (ker s w) k (fun h => dot b (nS A h)) = 0.
Proof.
  intros hA. rewrite (ex_ext _ _ (fun h => (/ INR Sn * / INR K) * dot b (pvsum (fun _ (z : noise) => pick z A) h)))
    by (intros; rewrite nSE; apply dot_scalr).
  rewrite ex_scal, (noise_mean (ker s w)); [ring|]. intros. now apply pick_mean0.
Qed.
Lemma pick_form A w h : NoDup A -> (forall i, In i A -> (i < N)%nat) ->
  ker s w h (fun z => dot (pick z A) (P w (pick z A))) = lsum A (fun i => ker s w h (fun z => dot (z i) (P w (z i)))).
Proof.
  assert (pw := HP w). intros nd hA. induction nd as [|i A ni nd IH].
  - rewrite (ex_ext _ _ (fun _ => 0)) by (intros; apply dot_0l). apply ex_const.
  - simpl lsum. rewrite <- IH by (intros; apply hA; now right).
    rewrite (ex_ext _ _ (fun z => dot (z i) (P w (z i)) + (2 * lsum A (fun j => dot (z i) (P w (z j))) + dot (pick z A) (P w (pick z A))))).
    + rewrite !ex_plus, ex_scal, (ex_lsum (ker s w h) A (fun j z => dot (z i) (P w (z j)))).
      rewrite (lsum_ext A _ (fun _ => 0 * 1)).
      * rewrite lsum_scal. unfold noise. ring.
      * intros j hj. rewrite noise_clients; [ring|apply hA; now left|apply hA; now right|]. intros ->. contradiction.
    + intros z. rewrite pick_cons, (m_add _ pw), !dot_addl, !dot_addr.
      rewrite <- (m_sym _ pw (pick z A) (z i)), (dotC (P w (pick z A))), (pick_map _ _ _ pw), (dot_pick (z i)). ring.
Qed.
Lemma path_form A w k : (forall i, In i A -> (i < N)%nat) ->
  path (ker s w) k (fun h => dot (pvsum (fun _ (z : noise) => pick z A) h) (P w (pvsum (fun _ (z : noise) => pick z A) h)))
  = sum k (fun j => path (ker s w) j (fun h => ker s w h (fun z => dot (pick z A) (P w (pick z A))))).
Proof.
  intros hA. assert (pw := HP w). induction k. { apply dot_0l. }
  rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. simpl.
  set (b := pvsum _ h). rewrite (ex_ext _ _ (fun z => dot b (P w b) + (2 * dot (P w b) (pick z A) + dot (pick z A) (P w (pick z A))))).
  - rewrite !ex_plus, ex_const, ex_scal, pick_mean0 by auto. unfold noise. ring.
  - intros z. rewrite (m_add _ pw), !dot_addl, !dot_addr, <- (m_sym _ pw b (pick z A)), (dotC (pick z A) (P w b)). ring.
Qed.
(* 4.2 *)
Lemma step_4_2 A : length A = Sn -> NoDup A -> (forall i, In i A -> (i < N)%nat) ->
  EE K (fun w h => dot (nS A h) (P w (nS A h))) <= vv * / INR Sn.
Proof.
  intros hl nd hA. set (c := / INR Sn * / INR K).
  assert (e1 : EE K (fun w h => dot (nS A h) (P w (nS A h)))
    = c * c * sum K (fun j => lsum A (fun i => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))).
  { unfold EE. rewrite (ex_ext draw _ (fun w => c * c * sum K (fun j => lsum A (fun i => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))).
    - rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros j _.
      exact (ex_lsum draw A (fun i w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))).
    - intros w. rewrite (ex_ext _ _ (fun h => c * c * dot (pvsum (fun _ (z : noise) => pick z A) h) (P w (pvsum (fun _ (z : noise) => pick z A) h)))).
      + rewrite ex_scal, path_form by auto. f_equal. apply sum_ext; intros j _.
        rewrite <- (ex_lsum (path (ker s w) j) A (fun i h => ker s w h (fun z => dot (z i) (P w (z i))))).
        apply ex_ext; intros h. now apply pick_form.
      + intros h. rewrite nSE. fold c. rewrite (m_scal _ (HP w)), dot_scall, dot_scalr. ring. }
  rewrite e1. assert (c0 : 0 <= c * c) by (unfold c; pos).
  assert (b : sum K (fun j => lsum A (fun i => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))
    <= INR K * (INR Sn * (theta * sigma ^ 2))).
  { rewrite <- sum_const. apply sum_le; intros j hj. rewrite <- hl.
    replace (INR (length A) * (theta * sigma ^ 2)) with (lsum A (fun _ => theta * sigma ^ 2)).
    - apply lsum_le; intros i hi. apply noise_theta; auto.
    - generalize (theta * sigma ^ 2). clear. intros r. induction A; [simpl; ring|]. simpl length. rewrite S_INR. simpl lsum. rewrite IHA. ring. }
  apply (Rmult_le_compat_l (c * c)) in b; auto. eapply Rle_trans; [exact b|]. right. unfold c, vv. field. lra.
Qed.
(* 2.1 *)
Lemma sum_w : vsum N w_ = v0.
Proof.
  unfold w_. rewrite (vsum_ext _ _ (fun i => u s i + (-1) *: meanV (u s))%V) by (intros; vring).
  rewrite vsum_plus, vsum_const. unfold meanV. apply functional_extensionality; intros j. vunfold. field. lra.
Qed.
Lemma wS_mean b : lsets N Sn SN (fun A => dot b (wS A)) = 0.
Proof.
  rewrite (ex_ext (lsets N Sn SN) _ (fun A => / INR Sn * dot b (pick w_ A))) by (intros; apply dot_scalr).
  rewrite ex_scal. cbn [ex lsets]. unfold Esets. rewrite first_moment, sum_w, dot_0r. ring.
Qed.
Lemma wS_var : lsets N Sn SN (fun A => nrm2 (wS A)) = nu * V s.
Proof.
  destruct (Nat.eq_dec N 1) as [e1|n1].
  - assert (w0 : w_ 0 = v0). { assert (h := sum_w). rewrite e1 in h. rewrite <- h. apply functional_extensionality; intros j. unfold vsum. simpl. ring. }
    assert (V0 : V s = 0). { unfold V, meanR. rewrite e1. simpl sum. change (u s 0 - meanV (u s))%V with (w_ 0). rewrite w0, nrm2_0. ring. }
    rewrite V0, Rmult_0_r. apply Rle_antisym; [|apply ex_ge0; intros; apply nrm2_ge0].
    rewrite <- (ex_const (lsets N Sn SN) 0). apply lsets_le; intros A hA. unfold wS.
    rewrite (pick_ext _ (fun _ => v0)), pick_const, !nrm2_scal, nrm2_0; [lra|].
    intros i hi. apply (subsets_below _ _ _ _ hA) in hi. replace i with 0%nat by lia. exact w0.
  - assert (h := sampling_variance N Sn (u s) ltac:(lia) ltac:(lia)). cbv zeta in h.
    match type of h with ?l = _ => change (l = nu * V s) in h end. rewrite <- h. cbn [ex lsets]. unfold Esets. f_equal. apply lsum_ext; intros A hA. f_equal.
    unfold wS, w_. rewrite (pick_ext _ (fun i => u s i + (-1) *: meanV (u s))%V) by (intros; vring).
    rewrite pick_plus, pick_const, (subsets_length _ _ _ hA). change (fun i => u s i) with (u s). unfold meanV. vfield. lra.
Qed.
Lemma step_2_1 : (forall b, lsets N Sn SN (fun A => dot b (wS A)) = 0) /\ lsets N Sn SN (fun A => nrm2 (wS A)) = nu * V s.
Proof. split; [exact wS_mean|exact wS_var]. Qed.
(* the local parts: their squares in the mean over the sample *)
Definition DA A : R := / INR Sn * lsum A (fun i => L ^ 2 * (/ INR K * EE K (fun w => Se s w i))).
Lemma aS_le A : length A = Sn -> (forall i, In i A -> (i < N)%nat) -> EE K (fun w h => nrm2 (aS A w h)) <= DA A.
Proof.
  intros hl hA. eapply Rle_trans; [apply (EE_le K _ (fun w h => / INR Sn * lsum A (fun i => L ^ 2 * (/ INR K * Se s w i h))))|].
  - intros w h hk. unfold aS. rewrite nrm2_scal. assert (b := nrm2_pick (fun i => / INR K *: Sa w i h)%V A). rewrite hl in b.
    apply (Rmult_le_compat_l (/ INR Sn * / INR Sn)) in b; [|pos]. eapply Rle_trans; [exact b|].
    replace (/ INR Sn * / INR Sn * (INR Sn * lsum A (fun i => nrm2 (/ INR K *: Sa w i h))))
      with (/ INR Sn * lsum A (fun i => nrm2 (/ INR K *: Sa w i h))) by (field; lra).
    apply Rmult_le_compat_l; auto. apply lsum_le; intros i hi. rewrite nrm2_scal. assert (q := Sa_le w i h (hA i hi)). rewrite hk in q.
    apply (Rmult_le_compat_l (/ INR K * / INR K)) in q; [|pos]. eapply Rle_trans; [exact q|]. right. field. lra.
  - right. unfold DA. change (local_law s (fun p => / INR Sn * lsum A (fun i => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)))) = / INR Sn * lsum A (fun i => L ^ 2 * (/ INR K * EE K (fun w => Se s w i)))).
    rewrite ex_scal, (ex_lsum (local_law s) A (fun i p => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)))). f_equal.
    apply lsum_ext; intros i _. now rewrite !ex_scal.
Qed.
Lemma DA_mean : lsets N Sn SN DA = L ^ 2 * DD s.
Proof.
  unfold DA. rewrite (lsets_mean N Sn SN _ S1). fold (meanR (fun i => L ^ 2 * (/ INR K * EE K (fun w => Se s w i)))).
  rewrite meanR_scal. f_equal. unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
  apply meanR_ext; intros i _. now rewrite ex_scal.
Qed.
Lemma round_E f : round s f = lsets N Sn SN (fun A => EE K (fun w h => f (A, (w, h)))).
Proof. reflexivity. Qed.

Lemma step_4_1 : round s (fun p => Favg (sx (step s p))) - Favg x <= lsets N Sn SN (fun A => EE K (fun w h =>
  - (etat / 2) * dot (G x) (P w (G x)) + (1 + hh) / 2 * etat * dot (aS A w h) (P w (aS A w h))
  + hh * etat * (dot (wS A) (P w (wS A)) + dot (nS A h) (P w (nS A h))))).
Proof.
  rewrite round_E. assert (t0 := Rlt_le _ _ etat_gt0). assert (hr := hh_range).
  enough (m : lsets N Sn SN (fun A => EE K (fun w h => Favg (sx (step s (A, (w, h))))))
    <= lsets N Sn SN (fun A => Favg x + (EE K (fun w h => - (etat / 2) * dot (G x) (P w (G x)) + (1 + hh) / 2 * etat * dot (aS A w h) (P w (aS A w h))
      + hh * etat * (dot (wS A) (P w (wS A)) + dot (nS A h) (P w (nS A h)))) + (hh * etat - etat) * rho * dot (G x) (wS A)))).
  { rewrite !ex_plus, !ex_scal, ex_const, wS_mean in m. lra. }
  apply lsets_le. intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA).
  assert (z1 : EE K (fun w h => dot (P w (wS A)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
  assert (z2 : EE K (fun w h => dot (P w (G x)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
  assert (z3 : EE K (fun w _ => dot (G x) (P w (wS A))) = rho * dot (G x) (wS A)) by (rewrite (EE_map K (fun w => dot (G x) (P w (wS A)))); apply EP).
  eapply Rle_trans; [apply (EE_le K _ (fun w h => Favg x + ((- (etat / 2) * dot (G x) (P w (G x)) + (1 + hh) / 2 * etat * dot (aS A w h) (P w (aS A w h))
    + hh * etat * (dot (wS A) (P w (wS A)) + dot (nS A h) (P w (nS A h)))) + (2 * hh * etat * dot (P w (wS A)) (nS A h)
    + ((hh * etat - etat) * dot (G x) (P w (wS A)) + (hh * etat - etat) * dot (P w (G x)) (nS A h))))))|].
  - intros w h hk. rewrite (step_1_3 A w h hl hk).
    assert (q := descent_form (P w) etat hh L (Favg x) _ (G x) (aS A w h) (wS A) (nS A h) (HP w) t0 ltac:(lra) eq_refl (qubF _) L0).
    rewrite !(m_sym _ (HP w)). lra.
  - rewrite !EE_plus, !EE_scal, z1, z2, z3, (EE_map K (fun _ => Favg x)), ex_const. right. ring.
Qed.
(* the claim of section 4 *)
Theorem step_4_4 : descent_at s.
Proof.
  unfold descent_at. rewrite round_E. assert (t0 := Rlt_le _ _ etat_gt0). assert (hr := hh_range).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => Favg x + ((- (etat / 2)) * (rho * nrm2 (G x)) + ((1 + hh) / 2 * etat * DA A
    + (hh * etat * rho * nrm2 (wS A) + (hh * etat * (vv * / INR Sn) + (hh * etat - etat) * rho * dot (G x) (wS A)))))))|].
  - intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
    eapply Rle_trans; [apply (EE_le K _ (fun w h => Favg x + ((- (etat / 2)) * dot (G x) (P w (G x)) + ((1 + hh) / 2 * etat * nrm2 (aS A w h)
      + (hh * etat * dot (wS A) (P w (wS A)) + (hh * etat * dot (nS A h) (P w (nS A h))
      + (2 * hh * etat * dot (P w (wS A)) (nS A h) + ((hh * etat - etat) * dot (G x) (P w (wS A)) + (hh * etat - etat) * dot (P w (G x)) (nS A h)))))))))|].
    + intros w h hk. rewrite (step_1_3 A w h hl hk).
      assert (q := descent_form (P w) etat hh L (Favg x) _ (G x) (aS A w h) (wS A) (nS A h) (HP w) t0 ltac:(lra) eq_refl (qubF _) L0).
      assert (m := m_le _ (HP w) (aS A w h)). rewrite !(m_sym _ (HP w)).
      assert (k : 0 <= (1 + hh) / 2 * etat) by (apply Rmult_le_pos; lra). apply (Rmult_le_compat_l _ _ _ k) in m. lra.
    + rewrite !EE_plus, !EE_scal.
      rewrite (EE_map K (fun _ => Favg x)), ex_const, (EE_map K (fun w => dot (G x) (P w (G x)))), (EE_map K (fun w => dot (wS A) (P w (wS A)))),
        (EE_map K (fun w => dot (G x) (P w (wS A)))), !EP.
      assert (z1 : EE K (fun w h => dot (P w (wS A)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      assert (z2 : EE K (fun w h => dot (P w (G x)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      rewrite z1, z2. assert (q1 := aS_le A hl hb). assert (q2 := step_4_2 A hl nd hb).
      apply (Rmult_le_compat_l ((1 + hh) / 2 * etat)) in q1; [|apply Rmult_le_pos; lra].
      apply (Rmult_le_compat_l (hh * etat)) in q2; [|pos]. unfold nrm2 at 1 3. fold (nrm2 (wS A)). unfold nrm2 in *. lra.
  - rewrite !ex_plus, !ex_scal, !ex_const, wS_mean, wS_var. change (fun w => DA w) with DA. rewrite DA_mean. right. field. lra.
Qed.
(* 4.3, with 2 in the place of 3 *)
Theorem move_sharp : move s <= etat ^ 2 * (2 * omega * rho * nrm2 (G x) + 2 * (L ^ 2 * DD s)
  + 2 * omega * rho * nu * V s + 2 * vv * / INR Sn).
Proof.
  unfold move. rewrite round_E.
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => etat ^ 2 * (2 * (omega * rho * nrm2 (G x)) + (2 * DA A
    + (2 * omega * rho * nrm2 (wS A) + (2 * (vv * / INR Sn) + 4 * draw (fun w => dot (P w (P w (G x))) (wS A))))))))|].
  - intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
    eapply Rle_trans; [apply (EE_le K _ (fun w h => etat ^ 2 * (2 * nrm2 (P w (G x)) + (2 * nrm2 (aS A w h) + (2 * nrm2 (P w (wS A))
      + (2 * dot (nS A h) (P w (nS A h)) + (4 * dot (P w (P w (G x))) (wS A) + (4 * dot (P w (P w (G x))) (nS A h) + 4 * dot (P w (P w (wS A))) (nS A h)))))))))|].
    + intros w h hk. rewrite (step_1_3 A w h hl hk). assert (pw := HP w).
      replace (x + - etat *: P w (G x + aS A w h + wS A + nS A h) - x)%V with (- etat *: P w (aS A w h + (G x + wS A + nS A h)))%V
        by (replace (G x + aS A w h + wS A + nS A h)%V with (aS A w h + (G x + wS A + nS A h))%V by vring; vring).
      rewrite nrm2_scal. replace (- etat * - etat) with (etat ^ 2) by ring. apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite (m_add _ pw). eapply Rle_trans; [apply nrm2_add_le2|]. assert (q1 := P_le w (aS A w h)). assert (q2 := P_le_dot w (nS A h)).
      rewrite !(m_add _ pw), !nrm2_add, !dot_addl, !(m_sym _ pw (P w _)). lra.
    + rewrite EE_scal, !EE_plus, !EE_scal. apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite (EE_map K (fun w => nrm2 (P w (G x)))), (EE_map K (fun w => nrm2 (P w (wS A)))), (EE_map K (fun w => dot (P w (P w (G x))) (wS A))).
      assert (z1 : EE K (fun w h => dot (P w (P w (wS A))) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      assert (z2 : EE K (fun w h => dot (P w (P w (G x))) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      rewrite z1, z2. assert (q1 := aS_le A hl hb). assert (q2 := step_4_2 A hl nd hb). assert (q3 := EP2 (G x)). assert (q4 := EP2 (wS A)). lra.
  - rewrite ex_scal, !ex_plus, !ex_scal, !ex_const, wS_var. change (fun w => DA w) with DA. rewrite DA_mean.
    rewrite (lsets_swap N Sn SN draw (fun A w => dot (P w (P w (G x))) (wS A))).
    rewrite (ex_ext draw _ (fun _ => 0)) by (intros; apply wS_mean). rewrite ex_const. right. ring.
Qed.
Lemma DD_ge0 : 0 <= DD s.
Proof. apply ex_ge0; intros p. apply meanR_ge0; intros. apply Rmult_le_pos; auto. apply Se_ge0. Qed.
Lemma step_4_3 : move_at s.
Proof.
  unfold move_at. assert (b := move_sharp). assert (l2 := pow2_ge_0 L). assert (d0 := DD_ge0). assert (t2 := pow2_ge_0 etat).
  assert (k : 0 <= etat ^ 2 * (L ^ 2 * DD s)) by pos. lra.
Qed.

End Round.

(* ================= the Theorem: only (M) is left free, as on the page ================= *)
Theorem theorem_sharp (sp : R) : 3123/1000 * pp <= sp -> (forall x, Fstar <= Favg x) ->
  forall (good : state -> Prop) (Cerr : state -> R) (m chi alpha gamma zeta : R), 0 <= alpha -> 0 <= gamma ->
  (forall s p, good s -> good (step s p)) -> (forall s, good s -> memory_at Cerr m chi alpha gamma zeta s) ->
  0 < kappa m alpha gamma ->
  rho * omega * qq / kappa m alpha gamma * (7/5 * alpha * pp + (21/5 * pp + 2) * gamma * hh ^ 2) <= 1/25 ->
  forall (s0 : state) (T : nat), good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + qq / kappa m alpha gamma * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp
       + rho * qq / kappa m alpha gamma * (51/50 * alpha + (sp + 2 / INR Sn) * gamma * hh ^ 2))).
Proof.
  intros hs hb good Cerr m chi alpha gamma zeta a0 g0 gs hM k0 st s0 T h0 T0.
  apply (from_rounds_ hb good Cerr m chi alpha gamma zeta) with (sp := sp); auto; intros s _.
  - apply step_3_7.
  - apply step_4_4.
  - apply step_4_3.
Qed.

Theorem theorem : (forall x, Fstar <= Favg x) ->
  forall (good : state -> Prop) (Cerr : state -> R) (m chi alpha gamma zeta : R), 0 <= alpha -> 0 <= gamma ->
  (forall s p, good s -> good (step s p)) -> (forall s, good s -> memory_at Cerr m chi alpha gamma zeta s) ->
  0 < kappa m alpha gamma ->
  rho * omega * qq / kappa m alpha gamma * (7/5 * alpha * pp + (21/5 * pp + 2) * gamma * hh ^ 2) <= 1/25 ->
  forall (s0 : state) (T : nat), good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + qq / kappa m alpha gamma * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp
       + rho * qq / kappa m alpha gamma * (51/50 * alpha + (1/25 + 2 / INR Sn) * gamma * hh ^ 2))).
Proof. apply theorem_sharp. destruct pp_range. lra. Qed.
(* ---- the memory's table ---- *)
Lemma memory_none zeta s : V s <= zeta ^ 2 -> memory_at (fun _ => zeta ^ 2) 1 1 0 0 zeta s.
Proof. intros h. split; auto. rewrite ex_const. lra. Qed.
Lemma memory_perfect s : (forall i, (i < N)%nat -> ci (smem s) i = g i (sx s)) -> memory_at (fun _ => 0) 1 0 0 0 0 s.
Proof.
  intros h. split; [|rewrite ex_const; lra]. right. unfold V. rewrite <- (meanR_const 0).
  assert (z : forall i, (i < N)%nat -> u s i = v0) by (intros i hi; unfold u; rewrite h by auto; vring).
  assert (mz : meanV (u s) = v0) by (rewrite (meanV_ext _ (fun _ => v0)) by auto; apply meanV_const).
  apply meanR_ext; intros i hi. rewrite mz, z by auto. replace (v0 - v0)%V with v0 by vring. apply nrm2_0.
Qed.
(* kept: c_i+ = (I - Q) c_i + Q gbar_i for the clients of the sample *)
Section Kept.
Variable Q : O -> vec -> vec.
Variable mu : R.
Hypothesis mu01 : 0 < mu <= 1.
Hypothesis HQ : forall w, map01 (Q w).
Hypothesis EQ : forall a b, draw (fun w => dot a (Q w b)) = mu * dot a b.
Hypothesis noise_theta_Q : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))) <= theta * sigma ^ 2.
Definition gbar s w i h : vec := (/ INR K *: pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h)%V.
Hypothesis kept : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
  if in_dec Nat.eq_dec i A then (ci (smem s) i - Q w (ci (smem s) i) + Q w (gbar s w i h))%V else ci (smem s) i.
Definition Ckept s : R := meanR (fun i => nrm2 (u s i)).
Definition phi : R := INR Sn / INR N.

(* 5.1 *)
Lemma step_5_1 w a z : nrm2 (a - Q w a + Q w z) <= nrm2 a - dot a (Q w a) + dot z (Q w z).
Proof.
  assert (hq := HQ w). destruct (step_1_2 _ hq (z + (-1) *: a)%V) as [b _].
  replace (a - Q w a + Q w z)%V with (a + Q w (z + (-1) *: a))%V by (rewrite (m_add _ hq), (m_scal _ hq); vring).
  rewrite nrm2_add. rewrite (m_add _ hq), (m_scal _ hq) in *. rewrite !dot_addl, !dot_addr, !dot_scall, !dot_scalr in b.
  rewrite dot_addr, dot_scalr. assert (e : dot z (Q w a) = dot a (Q w z)) by (now rewrite dotC, (m_sym _ hq)). lra.
Qed.
Lemma form_sub w a b : dot (a + b) (Q w (a + b)%V) <= 2 * dot a (Q w a) + 2 * dot b (Q w b).
Proof.
  assert (hq := HQ w). assert (h := m_ge0 _ hq (a + (-1) *: b)%V).
  rewrite (m_add _ hq), (m_scal _ hq), !dot_addl, !dot_addr, !dot_scall, !dot_scalr in h.
  rewrite (m_add _ hq), !dot_addl, !dot_addr. lra.
Qed.
Lemma gbarE s w i h : length h = K -> gbar s w i h = (g i (sx s) + (/ INR K *: Sa s w i h + / INR K *: Xi i h))%V.
Proof.
  intros hk. unfold gbar. assert (E : pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h
    = (INR (length h) *: g i (sx s) + (Sa s w i h + Xi i h))%V).
  { clear hk. induction h as [|z h IH]. { change (v0 = 0 *: g i (sx s) + (v0 + v0))%V. vring. }
    change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl pvsum. rewrite IH.
    change (Sa s w i (z :: h)) with (Sa s w i h + a s w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    unfold a. vring. }
  rewrite E, hk. vfield. lra.
Qed.
Lemma Q_form s w i k : (i < N)%nat -> path (ker s w) k (fun h => dot (Xi i h) (Q w (Xi i h)))
  = sum k (fun j => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))).
Proof.
  intros hi. assert (hq := HQ w). induction k. { apply dot_0l. }
  rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. unfold Xi. simpl.
  set (b := pvsum _ h). rewrite (ex_ext _ _ (fun z => dot b (Q w b) + (2 * dot (Q w b) (z i) + dot (z i) (Q w (z i))))).
  - rewrite !ex_plus, ex_const, ex_scal, noise_mean0 by auto. unfold noise. ring.
  - intros z. rewrite (m_add _ hq), !dot_addl, !dot_addr, <- (m_sym _ hq b (z i)), (dotC (z i) (Q w b)). ring.
Qed.
Lemma Q_noise s i : (i < N)%nat -> EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V)) <= vv.
Proof.
  intros hi. unfold EE. rewrite (ex_ext draw _ (fun w => / INR K * / INR K * sum K (fun j => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))))).
  - rewrite ex_scal, ex_sum. assert (b : sum K (fun j => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (Q w (z i)))))) <= INR K * (theta * sigma ^ 2)).
    { rewrite <- sum_const. apply sum_le; intros j hj. now apply noise_theta_Q. }
    apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos]. eapply Rle_trans; [exact b|]. right. unfold vv. field. lra.
  - intros w. rewrite <- Q_form, <- ex_scal by auto. apply ex_ext; intros h. rewrite (m_scal _ (HQ w)), dot_scall, dot_scalr. ring.
Qed.
Definition Z s A w h : R := Ckept s + / INR N * lsum A (fun i => (-1) * dot (u s i) (Q w (u s i))
  + (2 * (L ^ 2 * (/ INR K * Se s w i h)) + 2 * dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
Lemma kept_path s A w h : In A (subsets N Sn) -> length h = K ->
  meanR (fun i => nrm2 (ci (upd s A w h) i - g i (sx s))) <= Z s A w h.
Proof.
  intros hA hk. assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
  unfold Z. rewrite <- (sum_in N A) by auto. fold (meanR (fun i => if in_dec Nat.eq_dec i A then (-1) * dot (u s i) (Q w (u s i))
  + (2 * (L ^ 2 * (/ INR K * Se s w i h)) + 2 * dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V)) else 0)).
  unfold Ckept. rewrite <- meanR_plus. apply meanR_le; intros i hi. rewrite kept by auto. assert (hq := HQ w).
  destruct (in_dec Nat.eq_dec i A).
  - rewrite gbarE by auto. set (aa := (/ INR K *: Sa s w i h)%V). set (xx := (/ INR K *: Xi i h)%V).
    replace (ci (smem s) i - Q w (ci (smem s) i) + Q w (g i (sx s) + (aa + xx)) - g i (sx s))%V
      with ((-1) *: u s i - Q w ((-1) *: u s i) + Q w (aa + xx))%V.
    2: { unfold u. rewrite (m_scal _ hq). replace (g i (sx s) - ci (smem s) i)%V with (g i (sx s) + (-1) *: ci (smem s) i)%V by vring.
         rewrite !(m_add _ hq), (m_scal _ hq). vring. }
    eapply Rle_trans; [apply step_5_1|]. rewrite nrm2_scal, (m_scal _ hq), dot_scall, dot_scalr.
    assert (q1 := form_sub w aa xx). assert (q2 := m_le _ hq aa).
    assert (q3 : nrm2 aa <= L ^ 2 * (/ INR K * Se s w i h)).
    { unfold aa. rewrite nrm2_scal. assert (q := Sa_le s w i h hi). rewrite hk in q.
      apply (Rmult_le_compat_l (/ INR K * / INR K)) in q; [|pos]. eapply Rle_trans; [exact q|]. right. field. lra. }
    lra.
  - replace (ci (smem s) i - g i (sx s))%V with ((-1) *: u s i)%V by (unfold u; vring). rewrite nrm2_scal. lra.
Qed.
Lemma phi_range : 0 < phi <= 1.
Proof.
  unfold phi. split; [apply Rdiv_lt_0_compat; lra|]. apply (Rmult_le_reg_r (INR N)); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. now apply le_INR.
Qed.
Lemma step_5_5 s : lsets N Sn SN (fun A => EE s K (fun w h => Z s A w h)) <= (1 - phi * mu) * Ckept s + 2 * phi * (L ^ 2 * DD s + vv).
Proof.
  pose (f i := (-1) * (mu * nrm2 (u s i)) + (2 * (L ^ 2 * (/ INR K * EE s K (fun w => Se s w i))) + 2 * vv)).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => Ckept s + phi * (/ INR Sn * lsum A f)))|].
  - intros A hA. assert (hb := fun i => subsets_below _ _ _ i hA). unfold Z.
    rewrite EE_plus, EE_scal, (EE_map s K (fun _ => Ckept s)), ex_const. apply Rplus_le_compat_l.
    replace (phi * (/ INR Sn * lsum A f)) with (/ INR N * lsum A f) by (unfold phi; field; lra).
    apply Rmult_le_compat_l; auto.
    change (local_law s (fun p => lsum A (fun i => (-1) * dot (u s i) (Q (fst p) (u s i))
      + (2 * (L ^ 2 * (/ INR K * Se s (fst p) i (snd p))) + 2 * dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))) <= lsum A f).
    rewrite (ex_lsum (local_law s) A (fun i p => (-1) * dot (u s i) (Q (fst p) (u s i))
      + (2 * (L ^ 2 * (/ INR K * Se s (fst p) i (snd p))) + 2 * dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))).
    apply lsum_le; intros i hi. rewrite !ex_plus, !ex_scal.
    change (local_law s (fun p => dot (u s i) (Q (fst p) (u s i)))) with (EE s K (fun w _ => dot (u s i) (Q w (u s i)))).
    rewrite (EE_map s K (fun w => dot (u s i) (Q w (u s i)))), EQ. fold (nrm2 (u s i)).
    assert (q := Q_noise s i (hb i hi)).
    change (local_law s (fun p => dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))
      with (EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
    change (local_law s (fun p => Se s (fst p) i (snd p))) with (EE s K (fun w => Se s w i)). unfold f. lra.
  - rewrite ex_plus, ex_const, ex_scal, lsets_mean by auto. fold (meanR f). unfold f. rewrite !meanR_plus, !meanR_scal, meanR_const. fold (Ckept s).
    assert (e1 : meanR (fun i => EE s K (fun w => Se s w i)) = INR K * DD s).
    { unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
      rewrite (meanR_ext (fun i => local_law s (fun p => / INR K * Se s (fst p) i (snd p))) (fun i => / INR K * EE s K (fun w => Se s w i))) by (intros; apply ex_scal).
      rewrite meanR_scal. field. lra. }
    rewrite e1. right. field. lra.
Qed.
(* 5.2: the row of the table *)
Lemma step_5_2 zeta s : memory_at Ckept (phi * mu / 2) 0 (3 * phi) (3 / (phi * mu)) zeta s.
Proof.
  split.
  - unfold V, Ckept. assert (n := nrm2_ge0 (meanV (u s))).
    rewrite (meanR_ext _ (fun i => nrm2 (u s i) + ((-2) * dot (u s i) (meanV (u s)) + nrm2 (meanV (u s)))))
      by (intros; rewrite nrm2_sub; ring).
    rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot (u s) (meanV (u s))). fold (nrm2 (meanV (u s))). lra.
  - destruct phi_range as [f0 f1]. set (b := phi * mu / 2). assert (fm : 0 < phi * mu) by (apply Rmult_lt_0_compat; lra).
    assert (fm1 : phi * mu <= phi) by (rewrite <- (Rmult_1_r phi) at 2; apply Rmult_le_compat_l; lra).
    assert (b0 : 0 < b) by (unfold b; lra). assert (b1 : b <= 1/2) by (unfold b; lra).
    assert (H : round s (fun p => Ckept (step s p)) <= (1 + b) * lsets N Sn SN (fun A => EE s K (fun w h => Z s A w h)) + (1 + / b) * (L ^ 2 * move s)).
    { unfold move. rewrite !round_E, <- !ex_scal, <- ex_plus. apply lsets_le; intros A hA.
      rewrite <- !EE_scal, <- EE_plus. apply EE_le; intros w h hk.
      assert (q := kept_path s A w h hA hk). apply (Rmult_le_compat_l (1 + b)) in q; [|lra].
      eapply Rle_trans; [|apply Rplus_le_compat_r; exact q].
      rewrite <- meanR_scal, <- (meanR_const ((1 + / b) * _)), <- meanR_plus. apply meanR_le; intros i hi.
      set (x' := sx (step s (A, (w, h)))).
      change (u (step s (A, (w, h))) i) with (g i x' - ci (upd s A w h) i)%V. rewrite nrm2_subC.
      replace (ci (upd s A w h) i - g i x')%V with ((ci (upd s A w h) i - g i (sx s)) + (g i (sx s) - g i x'))%V by vring.
      eapply Rle_trans; [apply (nrm2_add_young b _ _ b0)|]. apply Rplus_le_compat_l.
      assert (ib := Rinv_0_lt_compat _ b0). apply Rmult_le_compat_l; [lra|]. assert (l := lip i hi (sx s) x'). rewrite (nrm2_subC (sx s) x') in l. lra. }
    assert (k := step_5_5 s). apply (Rmult_le_compat_l (1 + b)) in k; [|lra].
    assert (C0 : 0 <= Ckept s) by (apply meanR_ge0; intros; apply nrm2_ge0).
    assert (d0 := DD_ge0 s). assert (vp := vv_ge0). assert (l2 := pow2_ge_0 L).
    assert (m0 : 0 <= move s) by (apply ex_ge0; intros; apply nrm2_ge0).
    assert (k1 : 0 <= b * b * Ckept s) by pos.
    assert (k2 : 0 <= (1/2 - b) * (phi * (L ^ 2 * DD s + vv))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; [lra|apply Rplus_le_le_0_compat; pos]]).
    assert (ib : / b = 2 * / (phi * mu)) by (unfold b; field; split; lra).
    assert (i1 : 1 <= / (phi * mu)) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
    assert (k3 : 0 <= (/ (phi * mu) - 1) * (L ^ 2 * move s)) by pos.
    rewrite ib in H. replace (phi * mu) with (2 * b) in k by (unfold b; field). change (3 / (phi * mu)) with (3 * / (phi * mu)).
    set (iv := / (phi * mu)) in *. clear - H k k1 k2 k3. lra.
Qed.
End Kept.
(* forgetting: c_i+ = Q gbar_i / rho, every client (S = N in FedSub) *)
Lemma var_le f : meanR (fun i => nrm2 (f i - meanV f)) <= meanR (fun i => nrm2 (f i)).
Proof.
  assert (n := nrm2_ge0 (meanV f)).
  rewrite (meanR_ext _ (fun i => nrm2 (f i) + ((-2) * dot (f i) (meanV f) + nrm2 (meanV f)))) by (intros; rewrite nrm2_sub; ring).
  rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot f (meanV f)). fold (nrm2 (meanV f)). lra.
Qed.
Section Forget.
Variable Q : O -> vec -> vec.
Hypothesis HQ : forall w, map01 (Q w).
Hypothesis EQ : forall a b, draw (fun w => dot a (Q w b)) = rho * dot a b.
Hypothesis EQ2 : forall a, draw (fun w => nrm2 (Q w a)) <= omega * rho * nrm2 a.
Hypothesis rho_omega : rho <= omega.
Hypothesis noise_theta_Q : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))) <= theta * sigma ^ 2.
Hypothesis forget : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i = (/ rho *: Q w (gbar s w i h))%V.
Definition v_ s i : vec := (g i (sx s) - G (sx s))%V.
Definition spread s : R := meanR (fun i => nrm2 (v_ s i)).
Lemma Q_meanV w f : meanV (fun i => Q w (f i)) = Q w (meanV f).
Proof.
  assert (hq := HQ w). unfold meanV. rewrite (m_scal _ hq). f_equal. generalize N as n. induction n; [symmetry; apply (m_0 _ hq)|].
  now rewrite !vsum_S, (m_add _ hq), IHn.
Qed.
(* 5.4, the first line *)
Lemma step_5_4 b : draw (fun w => nrm2 (b - / rho *: Q w b)) <= (omega / rho - 1) * nrm2 b.
Proof.
  rewrite (ex_ext _ _ (fun w => nrm2 b + ((-2) * / rho * dot b (Q w b) + / rho * / rho * nrm2 (Q w b))))
    by (intros w; rewrite nrm2_sub, nrm2_scal, dot_scalr; ring).
  rewrite !ex_plus, !ex_scal, ex_const, EQ. fold (nrm2 b). assert (q := EQ2 b).
  assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra).
  apply (Rmult_le_compat_l (/ rho * / rho)) in q; [|apply Rmult_le_pos; lra].
  eapply Rle_trans; [apply Rplus_le_compat_l, Rplus_le_compat_l; exact q|]. right. field. lra.
Qed.
Definition Y s w h : R := 2 * meanR (fun i => nrm2 (v_ s i - / rho *: Q w (v_ s i)))
  + 8 * (/ rho * / rho) * meanR (fun i => L ^ 2 * (/ INR K * Se s w i h) + dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V)).
Definition z_ s w i h : vec := (/ INR K *: Sa s w i h + / INR K *: Xi i h)%V.
(* 5.3 *)
Lemma step_5_3 s A w h i : length h = K -> (i < N)%nat -> let s' := step s (A, (w, h)) in
  let move := (v_ s' i - v_ s i)%V in let lost := (v_ s i - / rho *: Q w (v_ s i))%V in
  let local := (/ rho *: Q w (z_ s w i h - meanV (fun i => z_ s w i h)))%V in
  (u s' i - meanV (u s') = move + lost - local)%V /\ nrm2 (u s' i - meanV (u s')) <= 4 * nrm2 move + 2 * nrm2 lost + 4 * nrm2 local.
Proof.
  intros hk hi s' move lost local. assert (hq := HQ w). set (x' := sx s'). set (x := sx s).
  enough (e : (u s' i - meanV (u s') = move + lost - local)%V) by (split; [exact e|]; rewrite e; apply nrm2_three).
  assert (ue : forall i, (i < N)%nat -> u s' i = (g i x' - / rho *: (Q w (g i x) + Q w (z_ s w i h)))%V).
  { intros j hj. unfold u, s'. cbn [step smem]. rewrite forget, gbarE, (m_add _ hq) by auto. reflexivity. }
  assert (um : meanV (u s') = (G x' - / rho *: (Q w (G x) + Q w (meanV (fun i => z_ s w i h))))%V).
  { rewrite (meanV_ext _ _ ue), meanV_sub, meanV_scal, meanV_plus, !Q_meanV. reflexivity. }
  rewrite ue, um by auto. unfold move, lost, local, v_. fold x x'.
  assert (qs : forall a b, Q w (a - b)%V = (Q w a - Q w b)%V).
  { intros a b. rewrite subE, (m_add _ hq), (m_scal _ hq). vring. }
  rewrite !qs. vring.
Qed.
Lemma forget_squares s A w h : length h = K ->
  V (step s (A, (w, h))) <= 2 * meanR (fun i => nrm2 (v_ s i - / rho *: Q w (v_ s i)))
    + 4 * (/ rho * / rho) * meanR (fun i => nrm2 (Q w (z_ s w i h))) + 4 * (L ^ 2 * nrm2 (sx (step s (A, (w, h))) - sx s)).
Proof.
  intros hk. assert (hq := HQ w). set (s' := step s (A, (w, h))).
  assert (qm : forall i, Q w (z_ s w i h - meanV (fun i => z_ s w i h))%V = (Q w (z_ s w i h) - meanV (fun i => Q w (z_ s w i h)))%V).
  { intros i. rewrite Q_meanV, subE, (m_add _ hq), (m_scal _ hq). vring. }
  unfold V. eapply Rle_trans; [apply (meanR_le _ (fun i => 4 * nrm2 (v_ s' i - v_ s i) + (2 * nrm2 (v_ s i - / rho *: Q w (v_ s i))
    + 4 * (/ rho * / rho) * nrm2 (Q w (z_ s w i h) - meanV (fun i => Q w (z_ s w i h))))))|].
  - intros i hi. destruct (step_5_3 s A w h i hk hi) as [_ b]. fold s' in b. rewrite qm, nrm2_scal in b. lra.
  - rewrite !meanR_plus, !meanR_scal.
    assert (q1 := var_le (fun i => g i (sx s') - g i (sx s))%V). assert (q2 := var_le (fun i => Q w (z_ s w i h))).
    assert (q3 : meanR (fun i => nrm2 (g i (sx s') - g i (sx s))) <= L ^ 2 * nrm2 (sx s' - sx s)).
    { rewrite <- (meanR_const (L ^ 2 * _)). apply meanR_le; intros i hi. assert (l := lip i hi (sx s') (sx s)). lra. }
    assert (q5 : meanR (fun i => nrm2 (v_ s' i - v_ s i)) = meanR (fun i => nrm2 (g i (sx s') - g i (sx s) - meanV (fun i => g i (sx s') - g i (sx s))%V))).
    { apply meanR_ext; intros i _. f_equal. rewrite meanV_sub. unfold v_, G. vring. }
    assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra).
    apply (Rmult_le_compat_l (4 * (/ rho * / rho))) in q2; [|assert (0 <= / rho * / rho) by pos; lra]. lra.
Qed.
Lemma forget_path s A w h : length h = K ->
  V (step s (A, (w, h))) <= Y s w h + 4 * (L ^ 2 * nrm2 (sx (step s (A, (w, h))) - sx s)).
Proof.
  intros hk. assert (hq := HQ w). eapply Rle_trans; [now apply forget_squares|].
  assert (q4 : meanR (fun i => nrm2 (Q w (z_ s w i h))) <= 2 * meanR (fun i => L ^ 2 * (/ INR K * Se s w i h) + dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
  { rewrite <- meanR_scal. apply meanR_le; intros i hi. unfold z_. rewrite (m_add _ hq). eapply Rle_trans; [apply nrm2_add_le2|].
    destruct (step_1_2 _ hq (/ INR K *: Sa s w i h)%V) as [_ r1]. destruct (step_1_2 _ hq (/ INR K *: Xi i h)%V) as [r2 _].
    assert (r3 : nrm2 (/ INR K *: Sa s w i h) <= L ^ 2 * (/ INR K * Se s w i h)).
    { rewrite nrm2_scal. assert (q := Sa_le s w i h hi). rewrite hk in q.
      apply (Rmult_le_compat_l (/ INR K * / INR K)) in q; [|pos]. eapply Rle_trans; [exact q|]. right. field. lra. }
    lra. }
  assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra).
  apply (Rmult_le_compat_l (4 * (/ rho * / rho))) in q4; [|assert (0 <= / rho * / rho) by pos; lra]. unfold Y. lra.
Qed.
Lemma forget_mean s : EE s K (Y s) <= 2 * (omega / rho - 1) * spread s + 8 / rho ^ 2 * (L ^ 2 * DD s + vv).
Proof.
  change (EE s K (Y s)) with (local_law s (fun p => Y s (fst p) (snd p))). unfold Y. rewrite ex_plus, !ex_scal.
  rewrite (ex_meanR (local_law s) (fun i p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))).
  rewrite (ex_meanR (local_law s) (fun i p => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)) + dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V))).
  assert (q1 : meanR (fun i => local_law s (fun p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))) <= (omega / rho - 1) * spread s).
  { unfold spread. rewrite <- meanR_scal. apply meanR_le; intros i hi.
    change (local_law s (fun p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))) with (EE s K (fun w _ => nrm2 (v_ s i - / rho *: Q w (v_ s i)))).
    rewrite (EE_map s K (fun w => nrm2 (v_ s i - / rho *: Q w (v_ s i)))). apply step_5_4. }
  assert (q2 : meanR (fun i => local_law s (fun p => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)) + dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))
    <= L ^ 2 * DD s + vv).
  { unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))), <- meanR_scal, <- (meanR_const vv), <- meanR_plus.
    apply meanR_le; intros i hi. rewrite ex_plus, !ex_scal. apply Rplus_le_compat_l. exact (Q_noise Q HQ noise_theta_Q s i hi). }
  assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra). assert (i2 : 0 <= / rho * / rho) by pos.
  apply (Rmult_le_compat_l (8 * (/ rho * / rho))) in q2; [|lra].
  replace (8 / rho ^ 2) with (8 * (/ rho * / rho)) by (field; lra). lra.
Qed.
Theorem memory_forget zeta s : spread s <= zeta ^ 2 -> memory_at V 1 (2 * (omega / rho - 1)) (8 / rho ^ 2) 4 zeta s.
Proof.
  intros hz. split; [lra|].
  assert (H : round s (fun p => V (step s p)) <= EE s K (Y s) + 4 * (L ^ 2 * move s)).
  { unfold move. rewrite <- (ex_const (lsets N Sn SN) (EE s K (Y s))), !round_E, <- !ex_scal, <- ex_plus. apply lsets_le; intros A hA.
    rewrite <- !EE_scal, <- EE_plus. apply EE_le; intros w h hk. now apply forget_path. }
  assert (q := forget_mean s).
  assert (o : 0 <= omega / rho - 1).
  { apply (Rmult_le_reg_r rho); [lra|]. unfold Rdiv. rewrite Rmult_minus_distr_r, Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  apply (Rmult_le_compat_l _ _ _ o) in hz. lra.
Qed.
(* without noise: 4/rho^2 *)
Lemma Qz_exact s i : sigma = 0 -> (i < N)%nat -> EE s K (fun w h => nrm2 (Q w (z_ s w i h))) <= L ^ 2 * (/ INR K * EE s K (fun w => Se s w i)).
Proof.
  intros sz hi. set (E := bind draw (fun w => path (ker s w) K)).
  pose (a' := fun p : O * list noise => Q (fst p) (/ INR K *: Sa s (fst p) i (snd p))%V). pose (x' := fun p : O * list noise => Q (fst p) (/ INR K *: Xi i (snd p))%V).
  assert (xz : E (fun p => nrm2 (x' p)) <= 0).
  { assert (q := Q_noise Q HQ noise_theta_Q s i hi). replace vv with 0 in q by (unfold vv; rewrite sz; field; lra).
    eapply Rle_trans; [|exact q]. unfold E. change (EE s K (fun w h => nrm2 (Q w (/ INR K *: Xi i h)%V)) <= EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
    apply EE_le; intros w h _. apply (step_1_2 _ (HQ w)). }
  assert (x0 : 0 <= E (fun p => nrm2 (x' p))) by (apply ex_ge0; intros; apply nrm2_ge0).
  assert (xe : E (fun p => nrm2 (x' p)) = 0) by lra. assert (cs := ex_cauchy_schwarz E a' x'). rewrite xe in cs.
  assert (c0 : E (fun p => dot (a' p) (x' p)) = 0) by (rewrite Rmult_0_r in cs; nra).
  apply Rle_trans with (E (fun p => nrm2 (a' p) + (2 * dot (a' p) (x' p) + nrm2 (x' p)))).
  - right. unfold E. change (EE s K (fun w h => nrm2 (Q w (z_ s w i h))) = EE s K (fun w h => nrm2 (a' (w, h)) + (2 * dot (a' (w, h)) (x' (w, h)) + nrm2 (x' (w, h))))).
    apply ex_ext; intros w. apply ex_ext; intros h. unfold a', x', z_. cbn [fst snd]. rewrite (m_add _ (HQ w)), nrm2_add. ring.
  - rewrite !ex_plus, ex_scal, c0, xe.
    assert (b : E (fun p => nrm2 (a' p)) <= L ^ 2 * (/ INR K * EE s K (fun w => Se s w i))).
    { rewrite <- EE_scal, <- EE_scal. unfold E. change (EE s K (fun w h => nrm2 (a' (w, h))) <= EE s K (fun w h => L ^ 2 * (/ INR K * Se s w i h))).
      apply EE_le; intros w h hk. destruct (step_1_2 _ (HQ w) (/ INR K *: Sa s w i h)%V) as [_ r1]. eapply Rle_trans; [exact r1|].
      rewrite nrm2_scal. assert (q := Sa_le s w i h hi). rewrite hk in q.
      apply (Rmult_le_compat_l (/ INR K * / INR K)) in q; [|pos]. eapply Rle_trans; [exact q|]. right. field. lra. }
    lra.
Qed.
Theorem memory_forget_exact zeta s : sigma = 0 -> spread s <= zeta ^ 2 -> memory_at V 1 (2 * (omega / rho - 1)) (4 / rho ^ 2) 4 zeta s.
Proof.
  intros sz hz. split; [lra|]. pose (Y0 := fun w h => 2 * meanR (fun i => nrm2 (v_ s i - / rho *: Q w (v_ s i))) + 4 * (/ rho * / rho) * meanR (fun i => nrm2 (Q w (z_ s w i h)))).
  assert (H : round s (fun p => V (step s p)) <= EE s K Y0 + 4 * (L ^ 2 * move s)).
  { unfold move. rewrite <- (ex_const (lsets N Sn SN) (EE s K Y0)), !round_E, <- !ex_scal, <- ex_plus. apply lsets_le; intros A hA.
    rewrite <- !EE_scal, <- EE_plus. apply EE_le; intros w h hk. now apply forget_squares. }
  assert (q1 : meanR (fun i => EE s K (fun w _ => nrm2 (v_ s i - / rho *: Q w (v_ s i)))) <= (omega / rho - 1) * spread s).
  { unfold spread. rewrite <- meanR_scal. apply meanR_le; intros i hi.
    rewrite (EE_map s K (fun w => nrm2 (v_ s i - / rho *: Q w (v_ s i)))). apply step_5_4. }
  assert (q2 : meanR (fun i => EE s K (fun w h => nrm2 (Q w (z_ s w i h)))) <= L ^ 2 * DD s).
  { unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))), <- meanR_scal.
    apply meanR_le; intros i hi. eapply Rle_trans; [now apply Qz_exact|]. right. f_equal. symmetry. apply ex_scal. }
  assert (q : EE s K Y0 = 2 * meanR (fun i => EE s K (fun w _ => nrm2 (v_ s i - / rho *: Q w (v_ s i)))) + 4 * (/ rho * / rho) * meanR (fun i => EE s K (fun w h => nrm2 (Q w (z_ s w i h))))).
  { unfold Y0. rewrite EE_plus, !EE_scal. change (EE s K (fun w _ => meanR (fun i => nrm2 (v_ s i - / rho *: Q w (v_ s i))))) with (local_law s (fun p => meanR (fun i => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i))))).
    change (EE s K (fun w h => meanR (fun i => nrm2 (Q w (z_ s w i h))))) with (local_law s (fun p => meanR (fun i => nrm2 (Q (fst p) (z_ s (fst p) i (snd p)))))).
    rewrite (ex_meanR (local_law s) (fun i p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))), (ex_meanR (local_law s) (fun i p => nrm2 (Q (fst p) (z_ s (fst p) i (snd p))))). reflexivity. }
  assert (o : 0 <= omega / rho - 1).
  { apply (Rmult_le_reg_r rho); [lra|]. unfold Rdiv. rewrite Rmult_minus_distr_r, Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  apply (Rmult_le_compat_l _ _ _ o) in hz. assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra). assert (i2 : 0 <= / rho * / rho) by pos.
  apply (Rmult_le_compat_l (4 * (/ rho * / rho))) in q2; [|lra]. assert (vz : vv = 0) by (unfold vv; rewrite sz; field; lra).
  replace (4 / rho ^ 2) with (4 * (/ rho * / rho)) by (field; lra). rewrite vz. lra.
Qed.
End Forget.
(* ================= 9: minibatches and several local steps ================= *)
Lemma form_young P' c u v : map01 P' -> 0 < c -> dot (u + v) (P' (u + v)%V) <= (1 + c) * dot u (P' u) + (1 + / c) * nrm2 v.
Proof.
  intros hp c0. assert (h := m_ge0 _ hp (c *: u + (-1) *: v)%V). assert (m := m_le _ hp v).
  rewrite (m_add _ hp), !(m_scal _ hp), !dot_addl, !dot_addr, !dot_scall, !dot_scalr in h.
  rewrite (m_add _ hp), !dot_addl, !dot_addr. assert (i0 := Rinv_0_lt_compat _ c0).
  assert (k : dot u (P' v) + dot v (P' u) <= c * dot u (P' u) + / c * dot v (P' v)).
  { apply (Rmult_le_reg_l c); auto. replace (c * (c * dot u (P' u) + / c * dot v (P' v))) with (c * (c * dot u (P' u)) + dot v (P' v)) by (field; lra). lra. }
  apply (Rmult_le_compat_l (/ c)) in m as m'; lra.
Qed.
Section Minibatch.
Variables split ell : R.                  (* s and l of the page *)
Hypothesis split0 : 0 < split.
Definition lam : R := (1 + / split) * ell ^ 2.
Definition L_hat2 : R := L ^ 2 + (1 + / split) * (ell ^ 2 / INR K).
Definition p_hat : R := L_hat2 * eta ^ 2 * INR K * (INR K - 1).
Lemma lam0 : 0 <= lam.
Proof. unfold lam. assert (i0 := Rinv_0_lt_compat _ split0). assert (l2 := pow2_ge_0 ell). apply Rmult_le_pos; lra. Qed.
Lemma L_hat2_lam : L_hat2 = L ^ 2 + lam * / INR K. Proof. unfold L_hat2, lam, Rdiv. ring. Qed.
Lemma L_hat2_ge : L ^ 2 <= L_hat2.
Proof. rewrite L_hat2_lam. assert (l0 := lam0). assert (0 <= lam * / INR K) by pos. lra. Qed.

(* one law of samples for every round; the noise of a client is a field, read where the client is *)
Section Sample.
Context {B : Type}.
Variable bat : state -> law B.
Variable xi : state -> nat -> vec -> B -> vec.
Hypothesis fresh : forall s w h f, ker s w h f = bat s (fun b => f (fun i => xi s i (loc s w i h) b)).
Hypothesis at_start : forall s i, (i < N)%nat -> bat s (fun b => nrm2 (xi s i (sx s) b)) <= sigma ^ 2.
Hypothesis of_sample : forall s i y, (i < N)%nat -> bat s (fun b => nrm2 (xi s i y b - xi s i (sx s) b)) <= ell ^ 2 * nrm2 (y - sx s).
(* the sample does not know the map: the means can be taken in either order *)
Hypothesis apart : forall s (f : O -> B -> R), draw (fun w => bat s (f w)) = bat s (fun b => draw (fun w => f w b)).
Lemma step_9_1 (M : O -> vec -> vec) s i k : (forall w, map01 (M w)) -> (forall a b, draw (fun w => dot a (M w b)) = rho * dot a b) -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (M w (z i)))))
  <= (1 + split) * rho * sigma ^ 2 + (1 + / split) * ell ^ 2 * EE s k (fun w => e s w i).
Proof.
  intros HM EM hi. fold lam. assert (i0 := Rinv_0_lt_compat _ split0).
  eapply Rle_trans; [apply (ex_le draw _ (fun w => (1 + split) * bat s (fun b => dot (xi s i (sx s) b) (M w (xi s i (sx s) b)))
    + lam * path (ker s w) k (e s w i)))|].
  - intros w. set (X := (1 + split) * bat s _). rewrite <- (ex_const (path (ker s w) k) X), <- (ex_scal (path (ker s w) k) lam (e s w i)), <- ex_plus.
    unfold X. clear X. apply ex_le; intros h. rewrite fresh. set (y := loc s w i h).
    eapply Rle_trans; [apply (ex_le (bat s) _ (fun b => (1 + split) * dot (xi s i (sx s) b) (M w (xi s i (sx s) b))
      + (1 + / split) * nrm2 (xi s i y b - xi s i (sx s) b)))|].
    + intros b. assert (q := form_young (M w) split (xi s i (sx s) b) (xi s i y b - xi s i (sx s) b)%V (HM w) split0).
      replace (xi s i (sx s) b + (xi s i y b - xi s i (sx s) b))%V with (xi s i y b) in q by vring. exact q.
    + rewrite ex_plus, !ex_scal. assert (q := of_sample s i y hi). apply (Rmult_le_compat_l (1 + / split)) in q; [|lra].
      unfold lam, e. fold y. lra.
  - rewrite ex_plus, !ex_scal, (apart s (fun w b => dot (xi s i (sx s) b) (M w (xi s i (sx s) b)))).
    rewrite (ex_ext (bat s) _ (fun b => rho * nrm2 (xi s i (sx s) b))) by (intros; apply EM). rewrite ex_scal.
    assert (q := at_start s i hi). apply (Rmult_le_compat_l ((1 + split) * rho)) in q; [|apply Rmult_le_pos; lra].
    unfold EE. lra.
Qed.
End Sample.

Hypothesis hat_local : INR K * sqrt L_hat2 * eta <= 1/10.
(* 9.1, with theta for (1 + s) rho *)
Hypothesis noise_hat : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (P w (z i))))) <= theta * sigma ^ 2 + lam * EE s k (fun w => e s w i).
Lemma hat_square : INR K ^ 2 * L_hat2 * eta ^ 2 <= 1/100.
Proof.
  assert (l0 : 0 <= L_hat2) by (assert (l := L_hat2_ge); assert (l2 := pow2_ge_0 L); lra).
  assert (r0 := sqrt_pos L_hat2). assert (a0 : 0 <= INR K * sqrt L_hat2 * eta) by pos.
  replace (INR K ^ 2 * L_hat2 * eta ^ 2) with ((INR K * sqrt L_hat2 * eta) ^ 2).
  - nra.
  - rewrite <- (sqrt_sqrt L_hat2) at 2 by exact l0. ring.
Qed.
Lemma p_hat_range : 0 <= p_hat <= 1/100.
Proof.
  assert (h := hat_square). assert (l := L_hat2_ge). assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta).
  assert (a : 0 <= L_hat2 * eta ^ 2 * INR K) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). unfold p_hat. split.
  - apply Rmult_le_pos; lra.
  - assert (b : 0 <= L_hat2 * eta ^ 2 * INR K * 1) by lra. lra.
Qed.
Section HatRound.
Variable s : state.
Lemma hat_3_4 i k : (i < N)%nat -> (k <= K)%nat ->
  EE s k (fun w h => nrm2 (P w (Xi i h))) <= INR k * (theta * sigma ^ 2) + lam * sum k (fun j => EE s j (fun w => e s w i)).
Proof.
  intros hi hk. rewrite <- sum_const, <- sum_scal, <- sum_plus. unfold EE at 1.
  rewrite (ex_ext draw _ (fun w => sum k (fun j => path (ker s w) j (fun h => ker s w h (fun z => nrm2 (P w (z i))))))).
  - rewrite ex_sum. apply sum_le; intros j hj. eapply Rle_trans; [|apply (noise_hat s j i); [lia|exact hi]].
    apply ex_le; intros w. apply ex_le; intros h. apply ex_le; intros z. apply P_le_dot.
  - intros w. rewrite <- (noise_squares (ker s w) (fun _ (z : noise) => P w (z i))).
    + apply ex_ext; intros h. unfold Xi. now rewrite P_pvsum.
    + intros h b. rewrite <- (noise_mean0 s w h i (P w b) hi). apply ex_ext; intros z. now rewrite (m_sym _ (HP w)).
Qed.
Lemma hat_rec i k : (i < N)%nat -> (k < K)%nat ->
  EE s k (fun w => e s w i) <= 4 * eta ^ 2 * (INR K * L ^ 2 + 1/2 * lam) * sum k (fun j => EE s j (fun w => e s w i))
    + (eta ^ 2 * (omega * rho * nrm2 (d s i)) * (4 * INR k ^ 2) + eta ^ 2 * (theta * sigma ^ 2) * (2 * INR k)).
Proof.
  intros hi hk. assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (k0 := pos_INR k).
  assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (k2 := pow2_ge_0 (INR k)).
  assert (H : EE s k (fun w => e s w i) <= EE s k (fun w h => 4 * eta ^ 2 * L ^ 2 * INR K * Se s w i h
    + (4 * eta ^ 2 * INR k ^ 2 * nrm2 (P w (d s i)) + 2 * eta ^ 2 * nrm2 (P w (Xi i h))))).
  { apply EE_le. intros w h hl. assert (pw := HP w). unfold e. rewrite step_3_1, nrm2_opp, nrm2_scal, hl.
    rewrite !(m_add _ pw), (m_scal _ pw).
    assert (h1 := nrm2_add_le2 (P w (Sa s w i h) + INR k *: P w (d s i)) (P w (Xi i h))).
    assert (h2 := nrm2_add_le2 (P w (Sa s w i h)) (INR k *: P w (d s i))). rewrite nrm2_scal in h2.
    assert (h3 := P_le w (Sa s w i h)). assert (h5 := Sa_le s w i h hi). rewrite hl in h5.
    assert (SS := Se_ge0 s w i h).
    assert (h6 : INR k * (L * L * Se s w i h) <= INR K * (L * L * Se s w i h)) by (apply Rmult_le_compat_r; pos).
    assert (h7 : nrm2 (P w (Sa s w i h) + INR k *: P w (d s i) + P w (Xi i h))
      <= 4 * (INR K * (L * L * Se s w i h)) + 4 * (INR k * INR k * nrm2 (P w (d s i))) + 2 * nrm2 (P w (Xi i h))) by lra.
    apply (Rmult_le_compat_l (eta * eta)) in h7; [lra|pos]. }
  eapply Rle_trans; [exact H|]. rewrite !EE_plus, !EE_scal. unfold Se at 1. rewrite (EE_psum s k (fun w h => nrm2 (loc s w i h - sx s))).
  rewrite (EE_map s k (fun w => nrm2 (P w (d s i)))).
  assert (q1 := hat_3_4 i k hi ltac:(lia)). assert (q2 := EP2 (d s i)).
  apply (Rmult_le_compat_l (2 * eta ^ 2)) in q1; [|lra].
  apply (Rmult_le_compat_l (4 * eta ^ 2 * INR k ^ 2)) in q2; [|pos].
  change (fun j => EE s j (fun w h => nrm2 (loc s w i h - sx s))) with (fun j => EE s j (fun w => e s w i)). lra.
Qed.
Lemma hat_client i : (i < N)%nat -> EE s K (fun w => Se s w i)
  <= 1388/1000 * eta ^ 2 * INR K ^ 2 * (INR K - 1) * (omega * rho * nrm2 (d s i)) + 1041/1000 * eta ^ 2 * INR K * (INR K - 1) * (theta * sigma ^ 2).
Proof.
  intros hi. unfold Se. rewrite (EE_psum s K (fun w h => nrm2 (loc s w i h - sx s))).
  change (fun j => EE s j (fun w h => nrm2 (loc s w i h - sx s))) with (fun j => EE s j (fun w => e s w i)).
  assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). assert (n0 := nrm2_ge0 (d s i)). assert (l2 := pow2_ge_0 L).
  assert (l0 := lam0). assert (a1 : 0 <= INR K * L ^ 2 + 1/2 * lam) by (assert (0 <= INR K * L ^ 2) by pos; lra).
  assert (a0 : 0 <= 4 * eta ^ 2 * (INR K * L ^ 2 + 1/2 * lam)) by pos.
  assert (m0 : 0 <= eta ^ 2 * (omega * rho * nrm2 (d s i))) by pos. assert (m1 : 0 <= eta ^ 2 * (theta * sigma ^ 2)) by pos.
  assert (h := Ssf.step_2_6 _ (fun j => EE s j (fun w => e s w i)) (fun k => eta ^ 2 * (omega * rho * nrm2 (d s i)) * (4 * INR k ^ 2) + eta ^ 2 * (theta * sigma ^ 2) * (2 * INR k)) K a0).
  specialize (h (fun k => ltac:(assert (k0 := pos_INR k); assert (k2 := pow2_ge_0 (INR k)); apply Rplus_le_le_0_compat; pos))).
  specialize (h (fun k => hat_rec i k hi) K (Nat.le_refl K)).
  eapply Rle_trans; [exact h|]. rewrite sum_plus, !sum_scal.
  assert (hp : (1 + 4 * eta ^ 2 * (INR K * L ^ 2 + 1/2 * lam)) ^ K <= 1041/1000).
  { apply Ssf.growth; auto. assert (q := hat_square). rewrite L_hat2_lam in q.
    replace (INR K ^ 2 * (L ^ 2 + lam * / INR K) * eta ^ 2) with (eta ^ 2 * (INR K * (INR K * L ^ 2)) + eta ^ 2 * (INR K * lam)) in q by (field; lra).
    assert (q2 : 0 <= eta ^ 2 * (INR K * lam)) by pos. lra. }
  destruct (step_3_5 K) as [h7 h8]. rewrite sum_scal in h7, h8.
  apply (Rmult_le_compat_l _ _ _ m0) in h7.
  set (Y := eta ^ 2 * (omega * rho * nrm2 (d s i)) * (4 * sum K (fun k => INR k ^ 2)) + eta ^ 2 * (theta * sigma ^ 2) * (2 * sum K INR)) in *.
  assert (Y0 : 0 <= sum K (fun k => INR k ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0).
  assert (Y1 : 0 <= sum K INR) by (apply sum_ge0; intros; apply pos_INR).
  assert (X0 : 0 <= Y) by (unfold Y; apply Rplus_le_le_0_compat; pos).
  eapply Rle_trans; [apply Rmult_le_compat_r; [exact X0|exact hp]|]. unfold Y. rewrite h8. lra.
Qed.
Lemma step_9_2 : L_hat2 * DD s <= 1041/1000 * p_hat * vv + 1388/1000 * omega * rho * p_hat * (V s + nrm2 (G (sx s))).
Proof.
  assert (l2 : 0 <= L_hat2) by (assert (l := L_hat2_ge); assert (q := pow2_ge_0 L); lra).
  assert (H : DD s <= 1388/1000 * eta ^ 2 * INR K * (INR K - 1) * omega * rho * (V s + nrm2 (G (sx s))) + 1041/1000 * eta ^ 2 * (INR K - 1) * (theta * sigma ^ 2)).
  { rewrite <- step_3_6, <- meanR_scal, <- (meanR_const (_ * (theta * sigma ^ 2))), <- meanR_plus.
    unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
    apply meanR_le; intros i hi. rewrite ex_scal. assert (b := hat_client i hi).
    change (EE s K (fun w => Se s w i)) with (local_law s (fun p => Se s (fst p) i (snd p))) in b.
    apply (Rmult_le_compat_l (/ INR K)) in b; auto. eapply Rle_trans; [exact b|]. right. field. lra. }
  apply (Rmult_le_compat_l L_hat2) in H; auto. eapply Rle_trans; [exact H|]. right. unfold p_hat, vv. field. lra.
Qed.
Definition DB A : R := / INR Sn * lsum A (fun i => / INR K * EE s K (fun w => Se s w i)).
Lemma DA_DB A : DA s A = L ^ 2 * DB A.
Proof. unfold DA, DB. rewrite lsum_scal. ring. Qed.
Lemma DB_mean : lsets N Sn SN DB = DD s.
Proof.
  unfold DB. rewrite (lsets_mean N Sn SN _ S1). fold (meanR (fun i => / INR K * EE s K (fun w => Se s w i))).
  unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
  apply meanR_ext; intros i _. now rewrite ex_scal.
Qed.
Lemma hat_form A : length A = Sn -> NoDup A -> (forall i, In i A -> (i < N)%nat) ->
  EE s K (fun w h => dot (nS A h) (P w (nS A h))) <= vv * / INR Sn + / INR Sn * (L_hat2 - L ^ 2) * DB A.
Proof.
  intros hl nd hA. set (c := / INR Sn * / INR K).
  assert (e1 : EE s K (fun w h => dot (nS A h) (P w (nS A h)))
    = c * c * sum K (fun j => lsum A (fun i => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))).
  { unfold EE. rewrite (ex_ext draw _ (fun w => c * c * sum K (fun j => lsum A (fun i => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))).
    - rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros j _.
      exact (ex_lsum draw A (fun i w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))).
    - intros w. rewrite (ex_ext _ _ (fun h => c * c * dot (pvsum (fun _ (z : noise) => pick z A) h) (P w (pvsum (fun _ (z : noise) => pick z A) h)))).
      + rewrite ex_scal, path_form by auto. f_equal. apply sum_ext; intros j _.
        rewrite <- (ex_lsum (path (ker s w) j) A (fun i h => ker s w h (fun z => dot (z i) (P w (z i))))).
        apply ex_ext; intros h. now apply pick_form.
      + intros h. rewrite nSE. fold c. rewrite (m_scal _ (HP w)), dot_scall, dot_scalr. ring. }
  rewrite e1. assert (c0 : 0 <= c * c) by (unfold c; pos).
  assert (sw : sum K (fun j => lsum A (fun i => EE s j (fun w => e s w i))) = lsum A (fun i => EE s K (fun w => Se s w i))).
  { clear - A. induction A as [|i A IH]; simpl. { rewrite sum_const. ring. }
    rewrite sum_plus, IH. f_equal. unfold Se. symmetry. exact (EE_psum s K (fun w h => nrm2 (loc s w i h - sx s))). }
  assert (b : sum K (fun j => lsum A (fun i => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (P w (z i)))))))
    <= INR K * (INR Sn * (theta * sigma ^ 2)) + lam * lsum A (fun i => EE s K (fun w => Se s w i))).
  { rewrite <- sw, <- sum_scal, <- sum_const, <- sum_plus. apply sum_le; intros j hj. rewrite <- hl, <- lsum_scal.
    replace (INR (length A) * (theta * sigma ^ 2)) with (lsum A (fun _ => theta * sigma ^ 2)).
    - rewrite <- lsum_plus. apply lsum_le; intros i hi. apply noise_hat; auto.
    - generalize (theta * sigma ^ 2). clear. intros r. induction A; [simpl; ring|]. simpl length. rewrite S_INR. simpl lsum. rewrite IHA. ring. }
  apply (Rmult_le_compat_l (c * c)) in b; auto. eapply Rle_trans; [exact b|]. right. unfold DB. rewrite lsum_scal, L_hat2_lam. unfold c, vv. field. lra.
Qed.
Definition hat_descent_at : Prop := round s (fun p => Favg (sx (step s p))) <= Favg (sx s) - rho * etat / 2 * nrm2 (G (sx s))
  + (1 + hh) / 2 * etat * (L_hat2 * DD s) + hh * etat * (rho * nu * V s + vv * / INR Sn).
Definition hat_move_at : Prop := move s <= etat ^ 2 * (2 * omega * rho * nrm2 (G (sx s)) + 3 * (L_hat2 * DD s)
  + 2 * omega * rho * nu * V s + 2 * vv * / INR Sn).
Lemma hat_descent : hat_descent_at.
Proof.
  unfold hat_descent_at. rewrite round_E. assert (t0 := Rlt_le _ _ etat_gt0). assert (hr := hh_range). set (x := sx s).
  set (X := L_hat2 - L ^ 2). assert (X0 : 0 <= X) by (unfold X; assert (l := L_hat2_ge); lra).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => Favg x + ((- (etat / 2)) * (rho * nrm2 (G x)) + ((1 + hh) / 2 * etat * L ^ 2 * DB A
    + (hh * etat * rho * nrm2 (wS s A) + (hh * etat * (vv * / INR Sn) + (hh * etat * (/ INR Sn * X) * DB A + (hh * etat - etat) * rho * dot (G x) (wS s A))))))))|].
  - intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
    eapply Rle_trans; [apply (EE_le s K _ (fun w h => Favg x + ((- (etat / 2)) * dot (G x) (P w (G x)) + ((1 + hh) / 2 * etat * nrm2 (aS s A w h)
      + (hh * etat * dot (wS s A) (P w (wS s A)) + (hh * etat * dot (nS A h) (P w (nS A h))
      + (2 * hh * etat * dot (P w (wS s A)) (nS A h) + ((hh * etat - etat) * dot (G x) (P w (wS s A)) + (hh * etat - etat) * dot (P w (G x)) (nS A h)))))))))|].
    + intros w h hk. rewrite (step_1_3 s A w h hl hk).
      assert (q := descent_form (P w) etat hh L (Favg x) _ (G x) (aS s A w h) (wS s A) (nS A h) (HP w) t0 ltac:(lra) eq_refl (qubF s _) L0).
      assert (m := m_le _ (HP w) (aS s A w h)). rewrite !(m_sym _ (HP w)).
      assert (k : 0 <= (1 + hh) / 2 * etat) by (apply Rmult_le_pos; lra). apply (Rmult_le_compat_l _ _ _ k) in m. unfold x in *. lra.
    + rewrite !EE_plus, !EE_scal.
      rewrite (EE_map s K (fun _ => Favg x)), ex_const, (EE_map s K (fun w => dot (G x) (P w (G x)))), (EE_map s K (fun w => dot (wS s A) (P w (wS s A)))),
        (EE_map s K (fun w => dot (G x) (P w (wS s A)))), !EP.
      assert (z1 : EE s K (fun w h => dot (P w (wS s A)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      assert (z2 : EE s K (fun w h => dot (P w (G x)) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      rewrite z1, z2. assert (q1 := aS_le s A hl hb). assert (q2 := hat_form A hl nd hb). rewrite DA_DB in q1. fold X in q2.
      apply (Rmult_le_compat_l ((1 + hh) / 2 * etat)) in q1; [|apply Rmult_le_pos; lra].
      apply (Rmult_le_compat_l (hh * etat)) in q2; [|pos]. unfold nrm2 at 1 3. fold (nrm2 (wS s A)). unfold nrm2 in *. lra.
  - rewrite !ex_plus, !ex_scal, !ex_const, wS_mean, wS_var. change (fun w => DB w) with DB. rewrite DB_mean.
    assert (d0 := DD_ge0 s). assert (iS1 : / INR Sn <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia).
    assert (k1 : 0 <= etat * (X * DD s) * ((1 + hh) / 2 - hh * / INR Sn)).
    { apply Rmult_le_pos; [pos|]. assert (hh * / INR Sn <= hh * 1) by (apply Rmult_le_compat_l; lra). lra. }
    replace L_hat2 with (L ^ 2 + X) by (unfold X; ring). lra.
Qed.
Lemma hat_move : hat_move_at.
Proof.
  unfold hat_move_at, move. rewrite round_E. set (x := sx s). set (X := L_hat2 - L ^ 2). assert (X0 : 0 <= X) by (unfold X; assert (l := L_hat2_ge); lra).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => etat ^ 2 * (2 * (omega * rho * nrm2 (G x)) + (2 * L ^ 2 * DB A
    + (2 * omega * rho * nrm2 (wS s A) + (2 * (vv * / INR Sn) + (2 * (/ INR Sn * X) * DB A + 4 * draw (fun w => dot (P w (P w (G x))) (wS s A)))))))))|].
  - intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
    eapply Rle_trans; [apply (EE_le s K _ (fun w h => etat ^ 2 * (2 * nrm2 (P w (G x)) + (2 * nrm2 (aS s A w h) + (2 * nrm2 (P w (wS s A))
      + (2 * dot (nS A h) (P w (nS A h)) + (4 * dot (P w (P w (G x))) (wS s A) + (4 * dot (P w (P w (G x))) (nS A h) + 4 * dot (P w (P w (wS s A))) (nS A h)))))))))|].
    + intros w h hk. rewrite (step_1_3 s A w h hl hk). assert (pw := HP w). fold x.
      replace (x + - etat *: P w (G x + aS s A w h + wS s A + nS A h) - x)%V with (- etat *: P w (aS s A w h + (G x + wS s A + nS A h)))%V
        by (replace (G x + aS s A w h + wS s A + nS A h)%V with (aS s A w h + (G x + wS s A + nS A h))%V by vring; vring).
      rewrite nrm2_scal. replace (- etat * - etat) with (etat ^ 2) by ring. apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite (m_add _ pw). eapply Rle_trans; [apply nrm2_add_le2|]. assert (q1 := P_le w (aS s A w h)). assert (q2 := P_le_dot w (nS A h)).
      rewrite !(m_add _ pw), !nrm2_add, !dot_addl, !(m_sym _ pw (P w _)). lra.
    + rewrite EE_scal, !EE_plus, !EE_scal. apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite (EE_map s K (fun w => nrm2 (P w (G x)))), (EE_map s K (fun w => nrm2 (P w (wS s A)))), (EE_map s K (fun w => dot (P w (P w (G x))) (wS s A))).
      assert (z1 : EE s K (fun w h => dot (P w (P w (wS s A))) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      assert (z2 : EE s K (fun w h => dot (P w (P w (G x))) (nS A h)) = 0) by (rewrite <- (ex_const draw 0); apply ex_ext; intros w; now apply nS_mean0).
      rewrite z1, z2. assert (q1 := aS_le s A hl hb). assert (q2 := hat_form A hl nd hb). rewrite DA_DB in q1. fold X in q2.
      assert (q3 := EP2 (G x)). assert (q4 := EP2 (wS s A)). lra.
  - rewrite ex_scal, !ex_plus, !ex_scal, !ex_const, wS_var. change (fun w => DB w) with DB. rewrite DB_mean.
    rewrite (lsets_swap N Sn SN draw (fun A w => dot (P w (P w (G x))) (wS s A))).
    rewrite (ex_ext draw _ (fun _ => 0)) by (intros; apply wS_mean). rewrite ex_const.
    assert (d0 := DD_ge0 s). assert (t2 := pow2_ge_0 etat). assert (l2 := pow2_ge_0 L).
    assert (iS1 : / INR Sn <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia).
    apply Rmult_le_compat_l; auto. assert (k1 : 0 <= X * DD s * (1 - / INR Sn)) by (apply Rmult_le_pos; [pos|lra]).
    assert (k2 : 0 <= L_hat2 * DD s) by (apply Rmult_le_pos; [unfold X in X0; lra|exact d0]).
    replace L_hat2 with (L ^ 2 + X) in * by (unfold X; ring). assert (k3 : 0 <= X * DD s) by pos. assert (k4 : 0 <= L ^ 2 * DD s) by pos. lra.
Qed.
Lemma step_9_3 : lsets N Sn SN (fun A => EE s K (fun w h => dot (nS A h) (P w (nS A h)))) <= vv * / INR Sn + / INR Sn * (L_hat2 - L ^ 2) * DD s /\
  hat_descent_at /\ hat_move_at.
Proof.
  split; [|split; [exact hat_descent|exact hat_move]]. rewrite <- DB_mean.
  rewrite <- (ex_const (lsets N Sn SN) (vv * / INR Sn)), <- (ex_scal (lsets N Sn SN) (/ INR Sn * (L_hat2 - L ^ 2)) DB), <- ex_plus.
  apply lsets_le; intros A hA. apply hat_form; [now apply (subsets_length _ _ _ hA)|now apply (subsets_nodup _ _ _ hA)|]. intros i. apply (subsets_below _ _ _ i hA).
Qed.
End HatRound.
(* (M) with L_hat^2 D *)
Definition hat_memory_at (Cerr : state -> R) m chi alpha gamma zeta s : Prop := V s <= Cerr s /\
  round s (fun p => Cerr (step s p)) <= (1 - m) * Cerr s + chi * zeta ^ 2 + alpha * (L_hat2 * DD s + vv) + gamma * (L ^ 2 * move s).
Section HatMemory.
Variable Q : O -> vec -> vec.
Hypothesis HQ : forall w, map01 (Q w).
Hypothesis noise_hat_Q : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))) <= theta * sigma ^ 2 + lam * EE s k (fun w => e s w i).
Lemma hat_Q_noise s i : (i < N)%nat -> EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))
  <= vv + (L_hat2 - L ^ 2) * (/ INR K * EE s K (fun w => Se s w i)).
Proof.
  intros hi. unfold EE at 1. rewrite (ex_ext draw _ (fun w => / INR K * / INR K * sum K (fun j => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))))).
  - rewrite ex_scal, ex_sum. assert (b : sum K (fun j => draw (fun w => path (ker s w) j (fun h => ker s w h (fun z => dot (z i) (Q w (z i))))))
      <= INR K * (theta * sigma ^ 2) + lam * EE s K (fun w => Se s w i)).
    { unfold Se. rewrite (EE_psum s K (fun w h => nrm2 (loc s w i h - sx s))), <- sum_scal, <- sum_const, <- sum_plus.
      apply sum_le; intros j hj. now apply noise_hat_Q. }
    apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos]. eapply Rle_trans; [exact b|]. right. rewrite L_hat2_lam. unfold vv. field. lra.
  - intros w. rewrite <- (Q_form Q HQ), <- ex_scal by auto. apply ex_ext; intros h. rewrite (m_scal _ (HQ w)), dot_scall, dot_scalr. ring.
Qed.
Lemma DD_mean s : meanR (fun i => / INR K * EE s K (fun w => Se s w i)) = DD s.
Proof.
  unfold DD. rewrite (ex_meanR (local_law s) (fun i p => / INR K * Se s (fst p) i (snd p))).
  apply meanR_ext; intros i _. now rewrite ex_scal.
Qed.
Lemma hat_refreshed mu s : (forall a b, draw (fun w => dot a (Q w b)) = mu * dot a b) ->
  lsets N Sn SN (fun A => EE s K (fun w h => Z Q s A w h)) <= (1 - phi * mu) * Ckept s + 2 * phi * (L_hat2 * DD s + vv).
Proof.
  intros EQ. pose (f i := (-1) * (mu * nrm2 (u s i)) + (2 * (L_hat2 * (/ INR K * EE s K (fun w => Se s w i))) + 2 * vv)).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => Ckept s + phi * (/ INR Sn * lsum A f)))|].
  - intros A hA. assert (hb := fun i => subsets_below _ _ _ i hA). unfold Z.
    rewrite EE_plus, EE_scal, (EE_map s K (fun _ => Ckept s)), ex_const. apply Rplus_le_compat_l.
    replace (phi * (/ INR Sn * lsum A f)) with (/ INR N * lsum A f) by (unfold phi; field; lra).
    apply Rmult_le_compat_l; auto.
    change (local_law s (fun p => lsum A (fun i => (-1) * dot (u s i) (Q (fst p) (u s i))
      + (2 * (L ^ 2 * (/ INR K * Se s (fst p) i (snd p))) + 2 * dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))) <= lsum A f).
    rewrite (ex_lsum (local_law s) A (fun i p => (-1) * dot (u s i) (Q (fst p) (u s i))
      + (2 * (L ^ 2 * (/ INR K * Se s (fst p) i (snd p))) + 2 * dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))).
    apply lsum_le; intros i hi. rewrite !ex_plus, !ex_scal.
    change (local_law s (fun p => dot (u s i) (Q (fst p) (u s i)))) with (EE s K (fun w _ => dot (u s i) (Q w (u s i)))).
    rewrite (EE_map s K (fun w => dot (u s i) (Q w (u s i)))), EQ. fold (nrm2 (u s i)).
    assert (q := hat_Q_noise s i (hb i hi)).
    change (local_law s (fun p => dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))
      with (EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
    change (local_law s (fun p => Se s (fst p) i (snd p))) with (EE s K (fun w => Se s w i)). unfold f. lra.
  - rewrite ex_plus, ex_const, ex_scal, lsets_mean by auto. fold (meanR f). unfold f. rewrite !meanR_plus, !meanR_scal, meanR_const. fold (Ckept s).
    assert (e1 := DD_mean s). rewrite meanR_scal in e1. rewrite e1. right. ring.
Qed.
Lemma hat_kept mu zeta s : 0 < mu <= 1 -> (forall a b, draw (fun w => dot a (Q w b)) = mu * dot a b) ->
  (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
    if in_dec Nat.eq_dec i A then (ci (smem s) i - Q w (ci (smem s) i) + Q w (gbar s w i h))%V else ci (smem s) i) ->
  hat_memory_at Ckept (phi * mu / 2) 0 (3 * phi) (3 / (phi * mu)) zeta s.
Proof.
  intros mu01 EQ kept. split.
  - unfold V, Ckept. assert (n := nrm2_ge0 (meanV (u s))).
    rewrite (meanR_ext _ (fun i => nrm2 (u s i) + ((-2) * dot (u s i) (meanV (u s)) + nrm2 (meanV (u s)))))
      by (intros; rewrite nrm2_sub; ring).
    rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot (u s) (meanV (u s))). fold (nrm2 (meanV (u s))). lra.
  - destruct phi_range as [f0 f1]. set (b := phi * mu / 2). assert (fm : 0 < phi * mu) by (apply Rmult_lt_0_compat; lra).
    assert (fm1 : phi * mu <= phi) by (rewrite <- (Rmult_1_r phi) at 2; apply Rmult_le_compat_l; lra).
    assert (b0 : 0 < b) by (unfold b; lra). assert (b1 : b <= 1/2) by (unfold b; lra).
    assert (H : round s (fun p => Ckept (step s p)) <= (1 + b) * lsets N Sn SN (fun A => EE s K (fun w h => Z Q s A w h)) + (1 + / b) * (L ^ 2 * move s)).
    { unfold move. rewrite !round_E, <- !ex_scal, <- ex_plus. apply lsets_le; intros A hA.
      rewrite <- !EE_scal, <- EE_plus. apply EE_le; intros w h hk.
      assert (q := kept_path Q HQ kept s A w h hA hk). apply (Rmult_le_compat_l (1 + b)) in q; [|lra].
      eapply Rle_trans; [|apply Rplus_le_compat_r; exact q].
      rewrite <- meanR_scal, <- (meanR_const ((1 + / b) * _)), <- meanR_plus. apply meanR_le; intros i hi.
      set (x' := sx (step s (A, (w, h)))).
      change (u (step s (A, (w, h))) i) with (g i x' - ci (upd s A w h) i)%V. rewrite nrm2_subC.
      replace (ci (upd s A w h) i - g i x')%V with ((ci (upd s A w h) i - g i (sx s)) + (g i (sx s) - g i x'))%V by vring.
      eapply Rle_trans; [apply (nrm2_add_young b _ _ b0)|]. apply Rplus_le_compat_l.
      assert (ib := Rinv_0_lt_compat _ b0). apply Rmult_le_compat_l; [lra|]. assert (l := lip i hi (sx s) x'). rewrite (nrm2_subC (sx s) x') in l. lra. }
    assert (k := hat_refreshed mu s EQ). apply (Rmult_le_compat_l (1 + b)) in k; [|lra].
    assert (C0 : 0 <= Ckept s) by (apply meanR_ge0; intros; apply nrm2_ge0).
    assert (d0 := DD_ge0 s). assert (vp := vv_ge0). assert (l2 := pow2_ge_0 L). assert (lh : 0 <= L_hat2) by (assert (l := L_hat2_ge); lra).
    assert (m0 : 0 <= move s) by (apply ex_ge0; intros; apply nrm2_ge0).
    assert (k1 : 0 <= b * b * Ckept s) by pos.
    assert (k2 : 0 <= (1/2 - b) * (phi * (L_hat2 * DD s + vv))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; [lra|apply Rplus_le_le_0_compat; pos]]).
    assert (ib : / b = 2 * / (phi * mu)) by (unfold b; field; split; lra).
    assert (i1 : 1 <= / (phi * mu)) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
    assert (k3 : 0 <= (/ (phi * mu) - 1) * (L ^ 2 * move s)) by pos.
    rewrite ib in H. replace (phi * mu) with (2 * b) in k by (unfold b; field). change (3 / (phi * mu)) with (3 * / (phi * mu)).
    set (iv := / (phi * mu)) in *. clear - H k k1 k2 k3. lra.
Qed.
Lemma hat_forgot zeta s : (forall a b, draw (fun w => dot a (Q w b)) = rho * dot a b) -> (forall a, draw (fun w => nrm2 (Q w a)) <= omega * rho * nrm2 a) ->
  rho <= omega -> (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i = (/ rho *: Q w (gbar s w i h))%V) ->
  spread s <= zeta ^ 2 -> hat_memory_at V 1 (2 * (omega / rho - 1)) (8 / rho ^ 2) 4 zeta s.
Proof.
  intros EQ EQ2 ro forget hz. split; [lra|].
  assert (H : round s (fun p => V (step s p)) <= EE s K (Y Q s) + 4 * (L ^ 2 * move s)).
  { unfold move. rewrite <- (ex_const (lsets N Sn SN) (EE s K (Y Q s))), !round_E, <- !ex_scal, <- ex_plus. apply lsets_le; intros A hA.
    rewrite <- !EE_scal, <- EE_plus. apply EE_le; intros w h hk. now apply forget_path. }
  assert (q : EE s K (Y Q s) <= 2 * (omega / rho - 1) * spread s + 8 / rho ^ 2 * (L_hat2 * DD s + vv)).
  { change (EE s K (Y Q s)) with (local_law s (fun p => Y Q s (fst p) (snd p))). unfold Y. rewrite ex_plus, !ex_scal.
    rewrite (ex_meanR (local_law s) (fun i p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))).
    rewrite (ex_meanR (local_law s) (fun i p => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)) + dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V))).
    assert (q1 : meanR (fun i => local_law s (fun p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))) <= (omega / rho - 1) * spread s).
    { unfold spread. rewrite <- meanR_scal. apply meanR_le; intros i hi.
      change (local_law s (fun p => nrm2 (v_ s i - / rho *: Q (fst p) (v_ s i)))) with (EE s K (fun w _ => nrm2 (v_ s i - / rho *: Q w (v_ s i)))).
      rewrite (EE_map s K (fun w => nrm2 (v_ s i - / rho *: Q w (v_ s i)))). now apply step_5_4. }
    assert (q2 : meanR (fun i => local_law s (fun p => L ^ 2 * (/ INR K * Se s (fst p) i (snd p)) + dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))
      <= L_hat2 * DD s + vv).
    { rewrite <- (DD_mean s), <- meanR_scal, <- (meanR_const vv), <- meanR_plus.
      apply meanR_le; intros i hi. rewrite ex_plus, !ex_scal. assert (n := hat_Q_noise s i hi).
      change (local_law s (fun p => dot (/ INR K *: Xi i (snd p)) (Q (fst p) (/ INR K *: Xi i (snd p))%V)))
        with (EE s K (fun w h => dot (/ INR K *: Xi i h) (Q w (/ INR K *: Xi i h)%V))).
      change (local_law s (fun p => Se s (fst p) i (snd p))) with (EE s K (fun w => Se s w i)). lra. }
    assert (i0 : 0 < / rho) by (apply Rinv_0_lt_compat; lra). assert (i2 : 0 <= / rho * / rho) by pos.
    apply (Rmult_le_compat_l (8 * (/ rho * / rho))) in q2; [|lra].
    replace (8 / rho ^ 2) with (8 * (/ rho * / rho)) by (field; lra). lra. }
  assert (o : 0 <= omega / rho - 1).
  { apply (Rmult_le_reg_r rho); [lra|]. unfold Rdiv. rewrite Rmult_minus_distr_r, Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  apply (Rmult_le_compat_l _ _ _ o) in hz. lra.
Qed.
Lemma step_9_4 zeta s :
  (forall mu, 0 < mu <= 1 -> (forall a b, draw (fun w => dot a (Q w b)) = mu * dot a b) ->
    (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
      if in_dec Nat.eq_dec i A then (ci (smem s) i - Q w (ci (smem s) i) + Q w (gbar s w i h))%V else ci (smem s) i) ->
    lsets N Sn SN (fun A => EE s K (fun w h => Z Q s A w h)) <= (1 - phi * mu) * Ckept s + 2 * phi * (L_hat2 * DD s + vv) /\
    hat_memory_at Ckept (phi * mu / 2) 0 (3 * phi) (3 / (phi * mu)) zeta s) /\
  ((forall a b, draw (fun w => dot a (Q w b)) = rho * dot a b) -> (forall a, draw (fun w => nrm2 (Q w a)) <= omega * rho * nrm2 a) -> rho <= omega ->
    (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i = (/ rho *: Q w (gbar s w i h))%V) -> spread s <= zeta ^ 2 ->
    hat_memory_at V 1 (2 * (omega / rho - 1)) (8 / rho ^ 2) 4 zeta s).
Proof.
  split; [intros mu m0 EQ kept; split; [now apply hat_refreshed|now apply hat_kept]|]. intros. now apply hat_forgot.
Qed.
End HatMemory.
Definition hat_q : R := 7/8 * omega * p_hat + hh * nu.
Definition hat_kappa m alpha gamma : R := m - rho * omega * (7/5 * alpha * p_hat + (21/5 * p_hat + 2 * nu) * gamma * hh ^ 2).
Theorem theorem_minibatch (sp : R) : 3123/1000 * p_hat <= sp -> (forall x, Fstar <= Favg x) ->
  forall (good : state -> Prop) (Cerr : state -> R) (m chi alpha gamma zeta : R), 0 <= alpha -> 0 <= gamma ->
  (forall s p, good s -> good (step s p)) -> (forall s, good s -> hat_memory_at Cerr m chi alpha gamma zeta s) ->
  0 < hat_kappa m alpha gamma ->
  rho * omega * hat_q / hat_kappa m alpha gamma * (7/5 * alpha * p_hat + (21/5 * p_hat + 2) * gamma * hh ^ 2) <= 1/25 ->
  forall (s0 : state) (T : nat), good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + hat_q / hat_kappa m alpha gamma * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * p_hat
       + rho * hat_q / hat_kappa m alpha gamma * (51/50 * alpha + (sp + 2 / INR Sn) * gamma * hh ^ 2))).
Proof.
  intros hs hb good Cerr m chi alpha gamma zeta a0 g0 gs HM k0 st s0 T h0 T0%lt_0_INR. assert (t0 := etat_gt0).
  set (kap := hat_kappa m alpha gamma) in *. pose (M := rho * etat * (hat_q / kap)). pose (Phi s := Favg (sx s) - Fstar + M * Cerr s).
  pose (c := M * chi * zeta ^ 2 + vv * (etat * (hh * / INR Sn + 2/3 * p_hat) + M * (51/50 * alpha + (sp + 2 * / INR Sn) * gamma * hh ^ 2))).
  assert (one : forall s, good s -> round s (fun p => Phi (step s p)) <= Phi s - 9/20 * rho * etat * nrm2 (G (sx s)) + c).
  { intros s gd. destruct (HM s gd) as [hV hC]. destruct (step_9_3 s) as [_ [hF hX0]]. unfold hat_descent_at, hat_move_at in hF, hX0.
    rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + M * Cerr (step s p)))) by (intros; unfold Phi; ring).
    rewrite !ex_plus, ex_const, ex_scal.
    assert (hX : L ^ 2 * move s <= hh ^ 2 * (2 * omega * rho * nrm2 (G (sx s)) + 3 * (L_hat2 * DD s) + 2 * omega * rho * nu * V s + 2 * vv * / INR Sn)).
    { apply (Rmult_le_compat_l (L ^ 2)) in hX0; [|apply pow2_ge_0]. replace (hh ^ 2) with (L ^ 2 * etat ^ 2) by (unfold hh; ring). rewrite Rmult_assoc. exact hX0. }
    assert (k := section_6 sp rho etat omega p_hat hh nu m chi alpha gamma (/ INR Sn) hat_q kap M (Cerr s) (nrm2 (G (sx s)))
      (V s) (L_hat2 * DD s) (L ^ 2 * move s) (zeta ^ 2) vv (Favg (sx s)) (round s (fun p => Favg (sx (step s p))))
      (round s (fun p => Cerr (step s p))) hs (proj1 rho01) t0 omega01 p_hat_range hh_range nu_ge0 a0 g0 iS0 vv_ge0
      (nrm2_ge0 _) (conj (V_ge0 s) hV) eq_refl eq_refl k0 eq_refl st (step_9_2 s) hF hX hC).
    unfold Phi, c. lra. }
  assert (M0 : 0 <= M).
  { destruct p_hat_range as [p0 _]. destruct hh_range as [q0 _]. assert (n0 := nu_ge0). assert (ik : 0 <= / kap) by now apply Rlt_le, Rinv_0_lt_compat.
    unfold M, hat_q, Rdiv. apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rmult_le_pos; auto. apply Rplus_le_le_0_compat; pos. }
  assert (P0 : forall s, good s -> 0 <= Phi s).
  { intros s gd. unfold Phi. assert (b := hb (sx s)). destruct (HM s gd) as [hV _]. assert (v0 := V_ge0 s). assert (0 <= M * Cerr s) by (apply Rmult_le_pos; lra). lra. }
  assert (h := telescope_inv round step good Phi (fun s => 9/20 * rho * etat * nrm2 (G (sx s))) c gs one P0 T s0 h0).
  rewrite (sum_ext _ _ (fun t => 9/20 * rho * etat * Eit round step t (fun s => nrm2 (G (sx s))) s0)) in h by (intros; apply Eit_scal).
  rewrite sum_scal in h. unfold Phi, c, M in h.
  replace (theta * sigma ^ 2 / (rho * INR K)) with (vv / rho) by (unfold vv; field; lra).
  replace (rho * hat_q / kap) with (rho * (hat_q / kap)) by (field; lra).
  eapply (family_division rho etat (INR T)); [apply rho01|exact t0|exact T0|exact h|reflexivity].
Qed.
(* the statement of section 9; and the steps of 7.6 *)
Lemma step_9_5 : ((forall x, Fstar <= Favg x) ->
  forall (good : state -> Prop) (Cerr : state -> R) (m chi alpha gamma zeta : R), 0 <= alpha -> 0 <= gamma ->
  (forall s p, good s -> good (step s p)) -> (forall s, good s -> hat_memory_at Cerr m chi alpha gamma zeta s) ->
  0 < hat_kappa m alpha gamma ->
  rho * omega * hat_q / hat_kappa m alpha gamma * (7/5 * alpha * p_hat + (21/5 * p_hat + 2) * gamma * hh ^ 2) <= 1/25 ->
  forall (s0 : state) (T : nat), good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T) + hat_q / hat_kappa m alpha gamma * (Cerr s0 / INR T + chi * zeta ^ 2)
     + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * p_hat
       + rho * hat_q / hat_kappa m alpha gamma * (51/50 * alpha + (1/25 + 2 / INR Sn) * gamma * hh ^ 2)))) /\
  (omega = 1 -> nu = 0 -> etag = 1 -> INR K * sqrt L_hat2 * eta <= Rmin (1/10) (sqrt (rho / 40)) ->
  7/10 <= hat_kappa 1 (8 / rho ^ 2) 4 /\
  rho * omega * hat_q / hat_kappa 1 (8 / rho ^ 2) 4 * (7/5 * (8 / rho ^ 2) * p_hat + (21/5 * p_hat + 2) * 4 * hh ^ 2) <= 1/25).
Proof.
  split. { destruct p_hat_range. apply theorem_minibatch. lra. }
  intros o1 n0 g1 hr. destruct hh_range as [h0 _]. assert (r0 := sqrt_pos L_hat2). set (t := INR K * sqrt L_hat2 * eta) in *.
  assert (l0 : 0 <= L_hat2) by (assert (l := L_hat2_ge); assert (l2 := pow2_ge_0 L); lra).
  assert (t0 : 0 <= t) by (unfold t; pos). assert (ht : hh <= t).
  { unfold hh, etat, t. rewrite g1. assert (Lr : L <= sqrt L_hat2) by (rewrite <- (sqrt_pow2 L L0); apply sqrt_le_1_alt; exact L_hat2_ge).
    assert (ke : 0 <= INR K * eta) by pos. apply (Rmult_le_compat_r _ _ _ ke) in Lr. lra. }
  assert (t1 := Rle_trans _ _ _ hr (Rmin_l _ _)). assert (t2 := Rle_trans _ _ _ hr (Rmin_r _ _)).
  assert (tt : t ^ 2 <= rho / 40).
  { assert (s0 := pow_incr _ _ 2 (conj t0 t2)). replace (sqrt (rho / 40) ^ 2) with (rho / 40) in s0; [lra|].
    replace (sqrt (rho / 40) ^ 2) with (sqrt (rho / 40) * sqrt (rho / 40)) by ring. rewrite sqrt_sqrt; lra. }
  assert (et : t ^ 2 = INR K ^ 2 * L_hat2 * eta ^ 2).
  { unfold t. replace ((INR K * sqrt L_hat2 * eta) ^ 2) with (INR K ^ 2 * (sqrt L_hat2 * sqrt L_hat2) * eta ^ 2) by ring. now rewrite sqrt_sqrt. }
  assert (pt : p_hat <= t ^ 2).
  { rewrite et. unfold p_hat. assert (a : 0 <= L_hat2 * eta ^ 2 * INR K) by (assert (e2 := pow2_ge_0 eta); pos). lra. }
  assert (h2 := pow_incr _ _ 2 (conj h0 ht)).
  destruct (section_7_6 rho p_hat hh (/ INR Sn) (hat_kappa 1 (8 / rho ^ 2) 4) hat_q rho01 p_hat_range ltac:(lra) ltac:(lra) ltac:(lra)
    ltac:(split; [auto|rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia])) as [k0 [k1 _]].
  - unfold hat_kappa. rewrite o1, n0. ring.
  - unfold hat_q. rewrite o1, n0. ring.
  - split; [exact k0|]. rewrite o1. exact k1.
Qed.
End Minibatch.
Lemma step_9_6 s r c : 0 < s -> 0 < r -> 0 < c -> let rounds theta := (19.2 * (sqrt theta / r) * sqrt c) ^ 2 in
  rounds 1 / rounds ((1 + s) * r) = 1 / ((1 + s) * r) /\ r * rounds ((1 + s) * r) = (1 + s) * (19.2 * sqrt c) ^ 2.
Proof.
  intros s0 r0 c0 rounds. assert (t0 : 0 < (1 + s) * r) by (apply Rmult_lt_0_compat; lra).
  assert (q : forall t, 0 <= t -> rounds t = 19.2 ^ 2 * t / r ^ 2 * c).
  { intros t ht. unfold rounds. replace ((19.2 * (sqrt t / r) * sqrt c) ^ 2) with (19.2 ^ 2 * (sqrt t * sqrt t) / r ^ 2 * (sqrt c * sqrt c)) by (field; lra).
    rewrite !sqrt_sqrt by lra. reflexivity. }
  rewrite !q by lra. split; [field; repeat split; lra|].
  replace ((19.2 * sqrt c) ^ 2) with (19.2 ^ 2 * (sqrt c * sqrt c)) by ring. rewrite sqrt_sqrt by lra. field. lra.
Qed.
(* a sign times this noise has the smoothness l, and attains 9.1 at its best s *)
Lemma step_9_7 f c l : (forall w a, P w (P w a) = P w a) -> nrm2 f = 1 -> 0 < sigma -> 0 < l -> 0 < c ->
  let moved w := (c * sigma *: P w f)%V in let xi w := (sigma *: f + l *: moved w)%V in
  let best k := (sqrt rho * sigma + l * sqrt k) ^ 2 in
  draw (fun w => dot (xi w) (P w (xi w))) = best (draw (fun w => nrm2 (moved w))) /\
  (forall k, 0 < k -> let s := l * sqrt k / (sqrt rho * sigma) in (1 + s) * rho * sigma ^ 2 + (1 + / s) * l ^ 2 * k = best k).
Proof.
  intros idem f1 s0 l0 c0 moved xi best. destruct rho01 as [r0 _]. assert (q0 := sqrt_lt_R0 _ r0). assert (qq' := sqrt_sqrt rho ltac:(lra)). split.
  - assert (e2 : forall w, nrm2 (P w f) = dot f (P w f)) by (intros w; unfold nrm2; now rewrite (m_sym _ (HP w)), idem).
    assert (k : draw (fun w => nrm2 (moved w)) = (c * sigma * sqrt rho) ^ 2).
    { unfold moved. rewrite (ex_ext draw _ (fun w => (c * sigma) ^ 2 * dot f (P w f))) by (intros w; rewrite nrm2_scal, e2; ring).
      rewrite ex_scal, EP. fold (nrm2 f). rewrite f1. rewrite <- qq' at 1. ring. }
    rewrite k. unfold best. rewrite sqrt_pow2 by pos.
    rewrite (ex_ext draw _ (fun w => (sigma + l * (c * sigma)) ^ 2 * dot f (P w f))).
    + rewrite ex_scal, EP. fold (nrm2 f). rewrite f1. rewrite <- qq' at 1. ring.
    + intros w. unfold xi, moved. assert (pw := HP w). rewrite (m_add _ pw), !(m_scal _ pw), idem, !dot_addl, !dot_addr, !dot_scall, !dot_scalr.
      assert (e3 := e2 w). unfold nrm2 in e3. rewrite e3. ring.
  - intros k k0 s. assert (z0 := sqrt_lt_R0 _ k0). assert (zz := sqrt_sqrt k ltac:(lra)). unfold best, s. rewrite <- qq' at 2. rewrite <- zz at 3. field. repeat split; lra.
Qed.

(* ================= 7.1 and 7.2: SSF, all clients ================= *)
Section AllClients.
Hypothesis om1 : omega = 1.
Hypothesis eS : Sn = N.
Hypothesis bounded : forall x, Fstar <= Favg x.
Lemma nu_all : nu = 0. Proof. unfold nu. rewrite eS. unfold Rdiv. ring. Qed.
Lemma phi_all : phi = 1. Proof. unfold phi. rewrite eS. field. lra. Qed.
Lemma iS_1 : 0 <= / INR Sn <= 1.
Proof. clear om1 eS bounded. split; auto. rewrite <- Rinv_1. apply Rinv_le_contravar; [lra|]. apply (le_INR 1); lia. Qed.
Lemma noise_ge0 : 0 <= theta * sigma ^ 2 / (rho * INR K).
Proof. clear om1 eS bounded. apply Rmult_le_pos; [assert (s2 := pow2_ge_0 sigma); pos|]. apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra. Qed.
Lemma Ckept_ge0 s : 0 <= Ckept s. Proof. clear om1 eS bounded. apply meanR_ge0; intros; apply nrm2_ge0. Qed.
Section InSubspace.
Hypothesis in_subspace : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
  if in_dec Nat.eq_dec i A then (ci (smem s) i - P w (ci (smem s) i) + P w (gbar s w i h))%V else ci (smem s) i.
Lemma all_clients : hh ^ 2 <= rho / 8 \/ pp <= rho / 100 -> forall (s0 : state) (T : nat), (0 < T)%nat ->
  let kap := kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho)) in
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T)) + 40/9 * pp / rho * (Ckept s0 / INR T)
    + theta * sigma ^ 2 / (rho * INR K) * (20/9 * (hh * / INR Sn + 2/3 * pp + rho * qq / kap * (51/50 * 3 + (1/25 + 2 * / INR Sn) * (3 / rho) * hh ^ 2))).
Proof.
  intros hs s0 T T0 kap. assert (T1 := lt_0_INR _ T0). assert (f1 := phi_all).
  assert (ek : kap = rho / 2 - rho * 1 * (7/5 * 3 * pp + (21/5 * pp + 2 * 0) * (3 / rho) * hh ^ 2)).
  { unfold kap, kappa. rewrite f1, nu_all, om1. field. lra. }
  assert (eq : qq = 7/8 * 1 * pp + hh * 0) by (unfold qq; rewrite om1, nu_all; ring).
  destruct (section_7_1 rho pp hh (/ INR Sn) kap qq rho01 pp_range hh_range hs iS_1 ek eq) as [k0 [c2 [c3 _]]].
  assert (g0 : 0 <= 3 / (phi * rho)) by (rewrite f1; apply Rlt_le, Rdiv_lt_0_compat; lra).
  assert (main := theorem bounded (fun _ => True) Ckept (phi * rho / 2) 0 (3 * phi) (3 / (phi * rho)) 0 ltac:(lra) g0 (fun _ _ _ => I)
    (fun s _ => step_5_2 P rho rho01 HP EP noise_theta in_subspace 0 s) k0).
  fold kap in main. assert (c2' : rho * omega * qq / kap * (7/5 * (3 * phi) * pp + (21/5 * pp + 2) * (3 / (phi * rho)) * hh ^ 2) <= 1/25).
  { rewrite om1, f1. replace (3 / (1 * rho)) with (3 / rho) by (field; lra). replace (7/5 * (3 * 1) * pp) with (7/5 * 3 * pp) by ring. exact c2. }
  specialize (main c2' s0 T I T0). eapply Rle_trans; [exact main|]. clear main.
  assert (CT : 0 <= Ckept s0 / INR T) by (apply Rmult_le_pos; [apply Ckept_ge0|now apply Rlt_le, Rinv_0_lt_compat]).
  apply (Rmult_le_compat_r _ _ _ CT) in c3. rewrite f1. replace (3 / (1 * rho)) with (3 / rho) by (field; lra).
  change (hh / INR Sn) with (hh * / INR Sn). change (2 / INR Sn) with (2 * / INR Sn). lra.
Qed.
Lemma step_7_1 (s0 : state) (T : nat) : hh <= Rmin (1/4) (sqrt (rho / 8)) -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + 40 * pp * Ckept s0 / (9 * rho * INR T)
    + theta * sigma ^ 2 / (rho * INR K) * (20 * hh / (9 * INR N) + 55/3 * pp).
Proof.
  intros hm T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0).
  assert (h8 : hh ^ 2 <= rho / 8).
  { destruct (Ssf.step_5_1 rho hh rho01 (proj1 hh_range) (or_introl hm)) as [a _]. apply (Rmult_le_compat_l rho) in a; [|lra].
    replace (rho * (hh ^ 2 / rho)) with (hh ^ 2) in a by (field; lra). lra. }
  eapply Rle_trans; [apply (all_clients (or_introl h8) s0 T T0)|].
  assert (ek : kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho)) = rho / 2 - rho * 1 * (7/5 * 3 * pp + (21/5 * pp + 2 * 0) * (3 / rho) * hh ^ 2)).
  { unfold kappa. rewrite phi_all, nu_all, om1. field. lra. }
  assert (eq : qq = 7/8 * 1 * pp + hh * 0) by (unfold qq; rewrite om1, nu_all; ring).
  destruct (section_7_1 rho pp hh (/ INR Sn) _ qq rho01 pp_range hh_range (or_introl h8) iS_1 ek eq) as [_ [_ [_ c4]]].
  assert (m := Rmult_le_compat_l _ _ _ noise_ge0 (c4 h8)). rewrite eS in *.
  replace (20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)) with (20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))) by (field; lra).
  replace (40 * pp * Ckept s0 / (9 * rho * INR T)) with (40/9 * pp / rho * (Ckept s0 / INR T)) by (field; lra).
  replace (20 * hh / (9 * INR N)) with (20/9 * hh * / INR N) by (field; lra). lra.
Qed.
Lemma step_7_2 (s0 : state) (T : nat) : INR K * L * eta <= sqrt rho / 10 -> sigma = 0 -> hh = 1/4 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 80 * L * (Favg (sx s0) - Fstar) / (9 * rho * INR T) + 2 * Ckept s0 / (45 * INR T).
Proof.
  intros hk sz h4 T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0).
  assert (pr : pp <= rho / 100).
  { assert (a0 : 0 <= INR K * L * eta) by pos. assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta). assert (b := pow_incr _ _ 2 (conj a0 hk)).
    replace ((sqrt rho / 10) ^ 2) with (rho / 100) in b by (replace ((sqrt rho / 10) ^ 2) with (sqrt rho * sqrt rho / 100) by field; rewrite sqrt_def; lra).
    assert (0 <= L ^ 2 * eta ^ 2 * INR K) by pos. unfold pp. lra. }
  eapply Rle_trans; [apply (all_clients (or_intror pr) s0 T T0)|]. rewrite sz.
  assert (L1 : 0 < L). { destruct L0 as [l|l]; auto. unfold hh in h4. rewrite <- l in h4. lra. }
  assert (et : etat = / (4 * L)) by (apply (Rmult_eq_reg_l L); [unfold hh in h4; rewrite h4; field; lra|lra]).
  replace (20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))) with (80 * L * (Favg (sx s0) - Fstar) / (9 * rho * INR T)) by (rewrite et; field; lra).
  replace (2 * Ckept s0 / (45 * INR T)) with (2/45 * (Ckept s0 / INR T)) by (field; lra).
  assert (CT : 0 <= Ckept s0 / INR T) by (apply Rmult_le_pos; [apply Ckept_ge0|now apply Rlt_le, Rinv_0_lt_compat]).
  assert (c : 40/9 * pp / rho <= 2/45) by (apply (Rmult_le_reg_l rho); [lra|]; replace (rho * (40/9 * pp / rho)) with (40/9 * pp) by (field; lra); lra).
  apply (Rmult_le_compat_r _ _ _ CT) in c. replace (theta * 0 ^ 2 / (rho * INR K)) with 0 by (field; lra). lra.
Qed.
End InSubspace.
(* 7.5: Q = I *)
Lemma step_7_5 (s0 : state) (T : nat) : theta = 1 ->
  (forall s k i, (k < K)%nat -> (i < N)%nat -> draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => nrm2 (z i)))) <= theta * sigma ^ 2) ->
  (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i = if in_dec Nat.eq_dec i A then gbar s w i h else ci (smem s) i) -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + 13/3 * (pp * Ckept s0 / INR T)
    + sigma ^ 2 / (rho * INR K) * (20 * hh / (9 * INR N) + 33/2 * pp).
Proof.
  intros th1 hn hk T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0). assert (f1 := phi_all).
  set (Q := fun (_ : O) (v : vec) => v).
  assert (hq : forall w, map01 (Q w)).
  { intros w. unfold Q. split; try reflexivity; intros v; [apply nrm2_ge0|unfold nrm2; lra]. }
  set (kap := kappa (phi * 1 / 2) (3 * phi) (3 / (phi * 1))).
  assert (ek : kap = 1/2 - rho * 1 * (7/5 * 3 * pp + (21/5 * pp + 2 * 0) * 3 * hh ^ 2)).
  { unfold kap, kappa. rewrite f1, nu_all, om1. field. }
  assert (eq : qq = 7/8 * 1 * pp + hh * 0) by (unfold qq; rewrite om1, nu_all; ring).
  destruct (section_7_5 rho pp hh (/ INR Sn) kap qq rho01 pp_range hh_range iS_1 ek eq) as [k0 [c2 [c3 c4]]].
  assert (kept : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
    if in_dec Nat.eq_dec i A then (ci (smem s) i - Q w (ci (smem s) i) + Q w (gbar s w i h))%V else ci (smem s) i).
  { intros s A w h i hi. rewrite hk by auto. destruct in_dec; auto. unfold Q. vring. }
  assert (g0 : 0 <= 3 / (phi * 1)) by (rewrite f1; lra).
  assert (main := theorem bounded (fun _ => True) Ckept (phi * 1 / 2) 0 (3 * phi) (3 / (phi * 1)) 0 ltac:(lra) g0 (fun _ _ _ => I)
    (fun s _ => step_5_2 Q 1 ltac:(lra) hq (fun a b => eq_trans (ex_const draw (dot a b)) (eq_sym (Rmult_1_l _))) hn kept 0 s) k0).
  fold kap in main. assert (c2' : rho * omega * qq / kap * (7/5 * (3 * phi) * pp + (21/5 * pp + 2) * (3 / (phi * 1)) * hh ^ 2) <= 1/25).
  { rewrite om1, f1. replace (3 / (1 * 1)) with 3 by field. replace (7/5 * (3 * 1) * pp) with (7/5 * 3 * pp) by ring. exact c2. }
  specialize (main c2' s0 T I T0). eapply Rle_trans; [exact main|]. clear main.
  assert (CT : 0 <= Ckept s0 / INR T) by (apply Rmult_le_pos; [apply Ckept_ge0|now apply Rlt_le, Rinv_0_lt_compat]).
  apply (Rmult_le_compat_r _ _ _ CT) in c3. apply (Rmult_le_compat_l _ _ _ noise_ge0) in c4.
  rewrite f1, eS, th1 in *. replace (3 / (1 * 1)) with 3 by field. rewrite !Rmult_1_l in *.
  replace (20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)) with (20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))) by (field; lra).
  replace (13/3 * (pp * Ckept s0 / INR T)) with (13/3 * pp * (Ckept s0 / INR T)) by (field; lra).
  replace (20 * hh / (9 * INR N)) with (20/9 * hh * / INR N) by (field; lra).
  change (hh / INR N) with (hh * / INR N). change (2 / INR N) with (2 * / INR N). lra.
Qed.
End AllClients.

(* ================= 7.3 and 7.4: SSF with S of N clients and increments (SCAFFOLD at rho = 1) ================= *)
Lemma facts_7_3 : (2 <= N)%nat -> hh ^ 2 <= phi ^ 2 * rho / 64 -> let kap := kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho)) in
  phi * nu = (INR N - INR Sn) / (INR N * (INR N - 1)) /\ phi * nu <= / INR N /\
  9/25 * (phi * rho) <= kap /\
  rho * omega * qq / kap * (7/5 * (3 * phi) * pp + (21/5 * pp + 2) * (3 / (phi * rho)) * hh ^ 2) <= 1/25 /\
  20/9 * (qq / kap) <= (55/10 * pp + 62/10 * hh * nu) / (phi * rho) /\
  20/9 * (hh * / INR Sn + 2/3 * pp + rho * qq / kap * (51/50 * (3 * phi) + (1/25 + 2 * / INR Sn) * (3 / (phi * rho)) * hh ^ 2))
    <= 20/9 * hh * / INR Sn + 20 * hh * nu + 19 * pp.
Proof.
  intros N2 hs kap.
  assert (n2 : 2 <= INR N) by (apply (le_INR 2); lia). assert (sn := le_INR _ _ SN). assert (s1 : 1 <= INR Sn) by (apply (le_INR 1); lia).
  assert (nu1 : nu <= 1).
  { unfold nu. assert (dd : 0 < INR Sn * (INR N - 1)) by (apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_reg_r (INR Sn * (INR N - 1))); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
  assert (pe : phi * nu = (INR N - INR Sn) / (INR N * (INR N - 1))) by (unfold phi, nu; field; repeat split; lra).
  assert (pn : phi * nu <= / INR N).
  { rewrite pe. assert (dd : 0 < INR N * (INR N - 1)) by (apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_reg_r (INR N * (INR N - 1))); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    replace (/ INR N * (INR N * (INR N - 1))) with (INR N - 1) by (field; lra). lra. }
  assert (in2 : / INR N <= 1/2) by (replace (1/2) with (/ 2) by field; apply Rinv_le_contravar; lra).
  assert (is1 : / INR Sn <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (f := phi_range). destruct hh_range as [h0 _].
  split; [exact pe|]. split; [exact pn|].
  exact (section_7_3 rho omega pp hh nu phi (/ INR Sn) kap qq
    rho01 omega01 pp_range h0 hs f (conj nu_ge0 nu1) (conj iS0 is1) ltac:(lra) eq_refl eq_refl).
Qed.
Lemma step_7_3 : (2 <= N)%nat -> hh <= phi * sqrt rho / 8 -> let kap := kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho)) in
  9/25 * (phi * rho) <= kap /\
  rho * omega * qq / kap * (7/5 * (3 * phi) * pp + (21/5 * pp + 2) * (3 / (phi * rho)) * hh ^ 2) <= 1/25 /\
  hh * nu <= 1/8 * (phi * nu) /\ phi * nu = (INR N - INR Sn) / (INR N * (INR N - 1)) /\ phi * nu <= / INR N.
Proof.
  intros N2 h8 kap. destruct hh_range as [h0 _]. destruct phi_range as [f0 f1].
  assert (hs : hh ^ 2 <= phi ^ 2 * rho / 64).
  { replace (phi ^ 2 * rho / 64) with ((phi * sqrt rho / 8) ^ 2); [apply pow_incr; auto|].
    replace ((phi * sqrt rho / 8) ^ 2) with (phi ^ 2 * (sqrt rho * sqrt rho) / 64) by field. rewrite sqrt_def by lra. reflexivity. }
  destruct (facts_7_3 N2 hs) as [e1 [e2 [e3 [e4 _]]]]. repeat split; auto.
  assert (sr : sqrt rho <= 1) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra).
  assert (hp : hh <= phi / 8) by (assert (0 <= phi * (1 - sqrt rho)) by (apply Rmult_le_pos; lra); lra).
  apply (Rmult_le_compat_r nu) in hp; [lra|apply nu_ge0].
Qed.
Lemma step_7_4 : (2 <= N)%nat -> (forall x, Fstar <= Favg x) ->
  (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
    if in_dec Nat.eq_dec i A then (ci (smem s) i - P w (ci (smem s) i) + P w (gbar s w i h))%V else ci (smem s) i) ->
  hh ^ 2 <= phi ^ 2 * rho / 64 ->         (* h <= phi sqrt rho / 8 *)
  forall (s0 : state) (T : nat), (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + (55/10 * pp + 62/10 * hh * nu) * Ckept s0 / (phi * rho * INR T)
     + theta * sigma ^ 2 / (rho * INR K) * (20/9 * hh / INR Sn + 20 * hh * nu + 19 * pp).
Proof.
  intros N2 hb hk hs s0 T T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0). assert (f := phi_range).
  destruct (facts_7_3 N2 hs) as [_ [_ [c1 [c2 [c3 c4]]]]].
  assert (fr : 0 < phi * rho) by (apply Rmult_lt_0_compat; lra).
  assert (k0 : 0 < kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho))) by lra.
  assert (main := theorem hb (fun _ => True) Ckept (phi * rho / 2) 0 (3 * phi) (3 / (phi * rho)) 0).
  assert (a0 : 0 <= 3 * phi) by lra. assert (g0 : 0 <= 3 / (phi * rho)) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  specialize (main a0 g0 (fun _ _ _ => I)). specialize (main (fun s _ => step_5_2 P rho rho01 HP EP noise_theta hk 0 s) k0 c2 s0 T I T0).
  set (kap := kappa (phi * rho / 2) (3 * phi) (3 / (phi * rho))) in *.
  eapply Rle_trans; [exact main|]. assert (C0 : 0 <= Ckept s0) by (apply meanR_ge0; intros; apply nrm2_ge0).
  assert (CT : 0 <= Ckept s0 / INR T) by (apply Rmult_le_pos; [auto|now apply Rlt_le, Rinv_0_lt_compat]).
  assert (nz : 0 <= theta * sigma ^ 2 / (rho * INR K)).
  { apply Rmult_le_pos; [assert (s2 := pow2_ge_0 sigma); pos|]. apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra. }
  apply (Rmult_le_compat_r _ _ _ CT) in c3. apply (Rmult_le_compat_l _ _ _ nz) in c4.
  replace (20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)) with (20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))) by (field; lra).
  replace ((55/10 * pp + 62/10 * hh * nu) * Ckept s0 / (phi * rho * INR T)) with ((55/10 * pp + 62/10 * hh * nu) / (phi * rho) * (Ckept s0 / INR T)) by (field; lra).
  clear main. change (hh / INR Sn) with (hh * / INR Sn). change (2 / INR Sn) with (2 * / INR Sn).
  change (20/9 * hh / INR Sn) with (20/9 * hh * / INR Sn). lra.
Qed.

(* ================= 7.6 and 7.7: FedSub as printed ================= *)
Section Printed.
Hypothesis om1 : omega = 1.
Hypothesis eS : Sn = N.
Hypothesis eg : etag = 1.
Lemma h_printed : hh = INR K * L * eta. Proof. unfold hh, etat. rewrite eg. ring. Qed.
Lemma p_printed : pp <= hh ^ 2.
Proof.
  rewrite h_printed. unfold pp. assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta). assert (0 <= L ^ 2 * eta ^ 2 * INR K) by pos. lra.
Qed.
Lemma h_range : 0 <= hh <= 1/10. Proof. split; [apply hh_range|]. rewrite h_printed. exact steps_local. Qed.
Lemma facts_7_6 : (INR K * L * eta) ^ 2 <= rho / 40 -> let kap := kappa 1 (8 / rho ^ 2) 4 in
  7/10 <= kap /\ rho * omega * qq / kap * (7/5 * (8 / rho ^ 2) * pp + (21/5 * pp + 2) * 4 * hh ^ 2) <= 1/25 /\ 20/9 * (qq / kap) <= 25/9 * pp /\
  20/9 * (hh * / INR Sn + 2/3 * pp + rho * qq / kap * (51/50 * (8 / rho ^ 2) + (1/25 + 2 * / INR Sn) * 4 * hh ^ 2)) <= 20/9 * hh * / INR Sn + 25 * pp / rho.
Proof.
  intros hr kap. rewrite <- h_printed in hr. rewrite om1. assert (n0 := nu_all eS).
  apply (section_7_6 rho pp hh (/ INR Sn) kap qq rho01 pp_range h_range (Rle_trans _ _ _ p_printed hr) hr iS_1).
  - unfold kap, kappa. rewrite om1, n0. ring.
  - unfold qq. rewrite om1, n0. ring.
Qed.
Lemma facts_7_6_exact : (INR K * L * eta) ^ 2 <= rho / 20 -> let kap := kappa 1 (4 / rho ^ 2) 4 in
  7/10 <= kap /\ rho * omega * qq / kap * (7/5 * (4 / rho ^ 2) * pp + (21/5 * pp + 2) * 4 * hh ^ 2) <= 1/25 /\ 20/9 * (qq / kap) <= 25/9 * pp.
Proof.
  intros hr kap. rewrite <- h_printed in hr. rewrite om1. assert (n0 := nu_all eS).
  apply (section_7_6_exact rho pp hh kap qq rho01 pp_range h_range p_printed hr).
  - unfold kap, kappa. rewrite om1, n0. ring.
  - unfold qq. rewrite om1, n0. ring.
Qed.
Lemma below_sqrt a : 0 < a -> INR K * L * eta <= sqrt (rho / a) -> (INR K * L * eta) ^ 2 <= rho / a.
Proof.
  intros a0 h. assert (k0 : 0 <= INR K * L * eta) by pos. assert (p := pow_incr _ _ 2 (conj k0 h)).
  replace (sqrt (rho / a) ^ 2) with (rho / a) in p; [exact p|]. rewrite <- Rsqr_pow2, Rsqr_sqrt; [reflexivity|].
  apply Rlt_le, Rdiv_lt_0_compat; lra.
Qed.
Lemma step_7_6 :
  (INR K * L * eta <= sqrt (rho / 20) -> let kap := kappa 1 (4 / rho ^ 2) 4 in
    7/10 <= kap /\ rho * omega * qq / kap * (7/5 * (4 / rho ^ 2) * pp + (21/5 * pp + 2) * 4 * hh ^ 2) <= 1/25) /\
  (INR K * L * eta <= sqrt (rho / 40) -> let kap := kappa 1 (8 / rho ^ 2) 4 in
    7/10 <= kap /\ rho * omega * qq / kap * (7/5 * (8 / rho ^ 2) * pp + (21/5 * pp + 2) * 4 * hh ^ 2) <= 1/25).
Proof.
  split; intros h kap; apply below_sqrt in h; try lra.
  - destruct (facts_7_6_exact h) as [a [b _]]. now split.
  - destruct (facts_7_6 h) as [a [b _]]. now split.
Qed.
Lemma step_7_7 (zeta : R) : (forall x, Fstar <= Favg x) ->
  (forall s A w h i, (i < N)%nat -> ci (upd s A w h) i = (/ rho *: P w (gbar s w i h))%V) ->
  (forall s, spread s <= zeta ^ 2) ->
  INR K * L * eta <= sqrt (rho / 40) \/ sigma = 0 /\ INR K * L * eta <= sqrt (rho / 20) ->
  forall (s0 : state) (T : nat), (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + 25/9 * pp * V s0 / INR T + 50/9 * (/ rho - 1) * pp * zeta ^ 2
     + theta * sigma ^ 2 / (rho * INR K) * (20/9 * hh / INR N + 25 * pp / rho).
Proof.
  intros hb hf hz hs s0 T T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0). assert (r2 : 0 < rho ^ 2) by (apply pow_lt; lra).
  assert (V0 := V_ge0 s0). assert (i1 : 1 <= / rho) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (X0 : 0 <= V s0 / INR T + 2 * (1 / rho - 1) * zeta ^ 2).
  { assert (z2 := pow2_ge_0 zeta). apply Rplus_le_le_0_compat.
    - apply Rmult_le_pos; [auto|now apply Rlt_le, Rinv_0_lt_compat].
    - unfold Rdiv. rewrite Rmult_1_l. pos. }
  assert (ro : rho <= omega) by (rewrite om1; apply rho01). assert (nz := noise_ge0).
  replace (20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)) with (20/9 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))) by (field; lra).
  replace (25/9 * pp * V s0 / INR T + 50/9 * (/ rho - 1) * pp * zeta ^ 2) with (25/9 * pp * (V s0 / INR T + 2 * (1 / rho - 1) * zeta ^ 2)) by (field; lra).
  destruct hs as [hs|[sz hs]]; apply below_sqrt in hs; try lra.
  - destruct (facts_7_6 hs) as [c1 [c2 [c3 c4]]]. set (kap := kappa 1 (8 / rho ^ 2) 4) in *. assert (k0 : 0 < kap) by lra.
    assert (a0 : 0 <= 8 / rho ^ 2) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (main := theorem hb (fun _ => True) V 1 (2 * (omega / rho - 1)) (8 / rho ^ 2) 4 zeta a0 ltac:(lra) (fun _ _ _ => I)).
    specialize (main (fun s _ => memory_forget P HP EP EP2 ro noise_theta hf zeta s (hz s)) k0). fold kap in main. specialize (main c2 s0 T I T0).
    eapply Rle_trans; [exact main|]. clear main. apply (Rmult_le_compat_r _ _ _ X0) in c3. apply (Rmult_le_compat_l _ _ _ nz) in c4.
    rewrite om1, eS in *. change (hh / INR N) with (hh * / INR N). change (2 / INR N) with (2 * / INR N). change (20/9 * hh / INR N) with (20/9 * hh * / INR N). lra.
  - destruct (facts_7_6_exact hs) as [c1 [c2 c3]]. set (kap := kappa 1 (4 / rho ^ 2) 4) in *. assert (k0 : 0 < kap) by lra.
    assert (a0 : 0 <= 4 / rho ^ 2) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (main := theorem hb (fun _ => True) V 1 (2 * (omega / rho - 1)) (4 / rho ^ 2) 4 zeta a0 ltac:(lra) (fun _ _ _ => I)).
    specialize (main (fun s _ => memory_forget_exact P HP EP EP2 ro noise_theta hf zeta s sz (hz s)) k0). fold kap in main. specialize (main c2 s0 T I T0).
    eapply Rle_trans; [exact main|]. clear main. apply (Rmult_le_compat_r _ _ _ X0) in c3.
    replace (theta * sigma ^ 2 / (rho * INR K)) with 0 by (rewrite sz; field; lra). rewrite om1. lra.
Qed.
End Printed.
End Family.

(* 1.1: a scale of the map is one of the step *)
Lemma step_1_1 {D : Dim} {O Mem : Type} N (P : O -> vec -> vec) g eta (ci : Mem -> nat -> vec) (s : @state Mem) w i h a :
  loc N (fun w v => a *: P w v)%V g eta ci s w i h = loc N P g (a * eta) ci s w i h.
Proof. induction h as [|z h IH]; [reflexivity|]. simpl. rewrite IH. vring. Qed.

(* 7.9: Gaussian moments are hypotheses here, as a law gives every function a mean *)
Lemma step_7_9 {D : Dim} {O : Type} (E : law O) (g : nat -> O -> vec) r : (0 < r)%nat ->
  (forall i u v, E (fun w => dot u (g i w) * dot (g i w) v) = dot u v) ->
  (forall i u v, E (fun w => dot u (g i w) * nrm2 (g i w) * dot (g i w) v) = (INR dim + 2) * dot u v) ->
  (forall i j u v, i <> j -> E (fun w => dot u (g i w) * dot (g i w) (g j w) * dot (g j w) v) = dot u v) ->
  let P w v := (/ INR r *: vsum r (fun j => dot (g j w) v *: g j w))%V in
  (forall u v, E (fun w => dot u (P w v)) = dot u v) /\
  (forall u v, E (fun w => dot u (P w (P w v))) = / INR r ^ 2 * (INR r * (INR dim + 2) + INR r * (INR r - 1)) * dot u v) /\
  / INR r ^ 2 * (INR r * (INR dim + 2) + INR r * (INR r - 1)) = 1 + (INR dim + 1) / INR r.
Proof.
  intros r0%lt_0_INR m2 m4 mm P.
  assert (Pe : forall w u v, dot u (P w v) = / INR r * sum r (fun j => dot u (g j w) * dot (g j w) v)).
  { intros w u v. unfold P. rewrite dot_scalr, dot_sumr. f_equal. apply sum_ext; intros j _. rewrite dot_scalr. ring. }
  split; [|split; [|field; lra]].
  - intros u v. rewrite (ex_ext E _ _ (fun w => Pe w u v)), ex_scal, ex_sum, (sum_ext _ _ (fun _ => dot u v)) by (intros; apply m2).
    rewrite sum_const. field. lra.
  - intros u v. rewrite (ex_ext E _ (fun w => / INR r * / INR r * sum r (fun i => sum r (fun j => dot u (g i w) * dot (g i w) (g j w) * dot (g j w) v)))).
    + rewrite ex_scal, ex_sum. rewrite (sum_ext r _ (fun i => INR r * dot u v + (INR dim + 1) * dot u v)).
      * rewrite sum_const. field. lra.
      * intros i hi. rewrite (ex_sum E r (fun j w => dot u (g i w) * dot (g i w) (g j w) * dot (g j w) v)).
        rewrite (sum_ext r _ (fun j => dot u v + (if Nat.eq_dec j i then (INR dim + 1) * dot u v else 0))).
        { rewrite sum_plus, sum_const, (sum_delta r i (fun _ => (INR dim + 1) * dot u v)) by auto. reflexivity. }
        intros j hj. destruct (Nat.eq_dec j i) as [->|ne]; [|rewrite mm by auto; ring].
        transitivity ((INR dim + 2) * dot u v); [apply (m4 i u v)|ring].
    + intros w. rewrite Pe, Rmult_assoc. f_equal. rewrite <- sum_scal. apply sum_ext; intros i _. rewrite Pe, <- Rmult_assoc, (Rmult_comm _ (/ INR r)), Rmult_assoc, <- sum_scal.
      f_equal. apply sum_ext; intros j _. ring.
Qed.

(* a mean over the sample of vectors that add up to zero *)
Lemma sample_zero {D : Dim} N Sn (SN : (Sn <= N)%nat) (v : nat -> vec) : (1 <= Sn)%nat -> (2 <= N)%nat -> vsum N v = v0 ->
  (forall b, lsets N Sn SN (fun A => dot b (/ INR Sn *: pick v A)) = 0) /\
  lsets N Sn SN (fun A => nrm2 (/ INR Sn *: pick v A)) = nu N Sn * (/ INR N * sum N (fun i => nrm2 (v i))).
Proof.
  intros s1 n2 v0s. split.
  - intros b. rewrite (ex_ext _ _ (fun A => / INR Sn * dot b (pick v A))) by (intros; apply dot_scalr).
    rewrite ex_scal. cbn [ex lsets]. unfold Esets. rewrite first_moment, v0s, dot_0r. ring.
  - assert (h := sampling_variance N Sn v ltac:(lia) n2). cbv zeta in h. rewrite v0s in h.
    assert (z : (/ INR N *: v0)%V = v0) by vring. rewrite z in h.
    assert (e : forall u, (u - v0)%V = u) by (intros; vring).
    rewrite (sum_ext N _ (fun i => nrm2 (v i))) in h by (intros; now rewrite e). fold (nu N Sn) in h. rewrite <- h.
    cbn [ex lsets]. unfold Esets. f_equal. apply lsum_ext; intros A _. now rewrite e.
Qed.

(* 7.8: one local step, a map with any second moment, noise that does not know it *)
Section OneStep.
Context {D : Dim} {O : Type}.
Variables N Sn : nat.
Hypothesis S1 : (1 <= Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis N2 : (2 <= N)%nat.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables rho omega L Fstar eta sigma zeta : R.
Variable nz : vec -> law (nat -> vec).
Hypothesis P_add : forall w u v, P w (u + v)%V = (P w u + P w v)%V.
Hypothesis P_scal : forall w a u, P w (a *: u)%V = (a *: P w u)%V.
Hypothesis P_sym : forall w u v, dot (P w u) v = dot u (P w v).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Hypothesis EP2 : forall a, draw (fun w => nrm2 (P w a)) <= omega * rho * nrm2 a.
Hypothesis rho0 : 0 < rho.
Hypothesis omega0 : 0 <= omega.
Hypothesis L0 : 0 <= L.
Hypothesis eta0 : 0 < eta.
Hypothesis steps : L * eta * omega <= 1.
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis bounded : forall x, Fstar <= Favg N F x.
Hypothesis differ : forall x, / INR N * sum N (fun i => nrm2 (g i x - G N g x)) <= zeta ^ 2.
Hypothesis noise_mean0 : forall x i a, (i < N)%nat -> nz x (fun z => dot a (z i)) = 0.
Hypothesis noise_var : forall x i, (i < N)%nat -> nz x (fun z => nrm2 (z i)) <= sigma ^ 2.
Hypothesis noise_clients : forall x i j, (i < N)%nat -> (j < N)%nat -> i <> j -> nz x (fun z => dot (z i) (z j)) = 0.
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let S0 : 0 < INR Sn. Proof. apply lt_0_INR. lia. Qed.
Definition round1 x : law (list nat * ((nat -> vec) * O)) := bind (lsets N Sn SN) (fun _ => bind (nz x) (fun _ => draw)).
Definition step1 x (p : list nat * ((nat -> vec) * O)) : vec :=
  let '(A, (z, w)) := p in (x + - eta *: P w (/ INR Sn *: pick (fun i => g i x + z i) A))%V.
Lemma noise_sample x A : NoDup A -> (forall i, In i A -> (i < N)%nat) -> length A = Sn ->
  (forall a, nz x (fun z => dot a (/ INR Sn *: pick z A)) = 0) /\ nz x (fun z => nrm2 (/ INR Sn *: pick z A)) <= sigma ^ 2 / INR Sn.
Proof.
  intros nd hA hl. assert (m : forall a, nz x (fun z => dot a (pick z A)) = 0).
  { intros a. rewrite (ex_ext _ _ (fun z => lsum A (fun i => dot a (z i)))) by (intros; apply dot_pick).
    rewrite (ex_lsum (nz x) A (fun i z => dot a (z i))). clear nd hl. induction A; simpl; [ring|].
    rewrite IHA, noise_mean0 by (intros; apply hA; simpl; auto). ring. }
  split.
  - intros a. rewrite (ex_ext _ _ (fun z => / INR Sn * dot a (pick z A))) by (intros; apply dot_scalr). rewrite ex_scal, m. ring.
  - rewrite (ex_ext _ _ (fun z => / INR Sn * / INR Sn * nrm2 (pick z A))) by (intros; apply nrm2_scal). rewrite ex_scal.
    assert (b : nz x (fun z => nrm2 (pick z A)) <= INR (length A) * sigma ^ 2).
    { clear m hl. induction nd as [|i A ni nd IH].
      - rewrite (ex_ext _ _ (fun _ => 0)) by (intros; apply nrm2_0). rewrite ex_const. simpl. lra.
      - rewrite (ex_ext _ _ (fun z => nrm2 (z i) + (2 * lsum A (fun j => dot (z i) (z j)) + nrm2 (pick z A))))
          by (intros; rewrite pick_cons, nrm2_add, dot_pick; ring).
        rewrite !ex_plus, ex_scal, (ex_lsum (nz x) A (fun j z => dot (z i) (z j))).
        rewrite (lsum_ext A _ (fun _ => 0 * 1)).
        + rewrite lsum_scal. change (length (i :: A)) with (S (length A)). rewrite S_INR.
          assert (q := IH (fun j hj => hA j (or_intror hj))). assert (v := noise_var x i (hA i (or_introl eq_refl))). lra.
        + intros j hj. rewrite noise_clients; [ring|apply hA; now left|apply hA; now right|]. intros ->. contradiction. }
    rewrite hl in b. assert (i0 := Rinv_0_lt_compat _ S0). assert (c : 0 <= / INR Sn * / INR Sn) by pos.
    apply (Rmult_le_compat_l _ _ _ c) in b. eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Lemma one_round x : round1 x (fun p => Favg N F (step1 x p)) <= Favg N F x - eta * rho / 2 * nrm2 (G N g x)
  + L * eta ^ 2 * omega * rho / 2 * (nu N Sn * zeta ^ 2 + sigma ^ 2 / INR Sn).
Proof.
  pose (v := fun i => (g i x - G N g x)%V). pose (wA := fun A => (/ INR Sn *: pick v A)%V).
  assert (vz : vsum N v = v0).
  { unfold v. rewrite (vsum_ext _ _ (fun i => g i x + (-1) *: G N g x)%V) by (intros; vring). rewrite vsum_plus, vsum_const.
    unfold G, meanV. apply functional_extensionality; intros j. vunfold. field. lra. }
  destruct (sample_zero N Sn SN v S1 N2 vz) as [w0 w2].
  assert (nu0 := nu_ge0 N Sn 1 S1 SN (le_n 1)).
  set (c := L * (eta * eta) * omega * rho / 2). assert (c0 : 0 <= c) by (unfold c; assert (0 <= L * (eta * eta) * omega * rho) by (repeat apply Rmult_le_pos; lra); lra).
  unfold round1. change (lsets N Sn SN (fun A => nz x (fun z => draw (fun w => Favg N F (step1 x (A, (z, w)))))) <=
    Favg N F x - eta * rho / 2 * nrm2 (G N g x) + L * eta ^ 2 * omega * rho / 2 * (nu N Sn * zeta ^ 2 + sigma ^ 2 / INR Sn)).
  eapply Rle_trans; [apply (lsets_le N Sn SN _ (fun A => (Favg N F x + (c - eta * rho) * nrm2 (G N g x) + c * (sigma ^ 2 / INR Sn))
    + ((2 * c - eta * rho) * dot (G N g x) (wA A) + c * nrm2 (wA A))))|].
  - intros A hA. assert (hl := subsets_length _ _ _ hA). assert (hb := fun i => subsets_below _ _ _ i hA). assert (nd := subsets_nodup _ _ _ hA).
    destruct (noise_sample x A nd hb hl) as [n0 n2].
    set (B := (G N g x + wA A)%V).
    assert (mean : forall z, (/ INR Sn *: pick (fun i => g i x + z i) A = B + / INR Sn *: pick z A)%V).
    { intros z. unfold B, wA, v. rewrite (pick_ext (fun i => g i x - G N g x)%V (fun i => g i x + (-1) *: G N g x)%V) by (intros; vring).
      rewrite !pick_plus, pick_const, hl. change (fun i => z i) with z. vfield. lra. }
    assert (inner : forall z, draw (fun w => Favg N F (step1 x (A, (z, w)))) <= Favg N F x
      + (- eta * rho * dot (G N g x) B + (- eta * rho * dot (G N g x) (/ INR Sn *: pick z A) + c * nrm2 (B + / INR Sn *: pick z A)))).
    { intros z. set (m := (B + / INR Sn *: pick z A)%V).
      eapply Rle_trans; [apply (ex_le draw _ (fun w => Favg N F x + (- eta * dot (G N g x) (P w m) + L * (eta * eta) / 2 * nrm2 (P w m))))|].
      - intros w. cbn [step1]. rewrite mean. fold m. assert (q := qubF N Sn 1 S1 SN (le_n 1) F g L L0 lip grad {| sx := x; smem := tt |} (- eta *: P w m)%V). cbn [sx] in q. rewrite dot_scalr, nrm2_scal in q. lra.
      - rewrite !ex_plus, !ex_scal, ex_const, EP. assert (q := EP2 m). assert (l : 0 <= L * (eta * eta) / 2) by (assert (0 <= L * (eta * eta)) by pos; lra).
        apply (Rmult_le_compat_l _ _ _ l) in q. unfold m at 1. rewrite dot_addr. unfold c. lra. }
    eapply Rle_trans; [apply (ex_le (nz x)); exact inner|].
    rewrite !ex_plus, !ex_scal, !ex_const, n0.
    rewrite (ex_ext (nz x) _ (fun z => nrm2 B + (2 * dot B (/ INR Sn *: pick z A) + nrm2 (/ INR Sn *: pick z A)))) by (intros; rewrite nrm2_add; ring).
    rewrite !ex_plus, ex_scal, ex_const, n0. apply (Rmult_le_compat_l _ _ _ c0) in n2.
    unfold B. rewrite dot_addr, nrm2_add. fold (nrm2 (G N g x)). lra.
  - rewrite !ex_plus, !ex_scal, !ex_const. unfold wA. rewrite w0, w2.
    assert (d := differ x). change (fun i => nrm2 (v i)) with (fun i => nrm2 (g i x - G N g x)). apply (Rmult_le_compat_l (nu N Sn)) in d; auto.
    apply (Rmult_le_compat_l c) in d; auto. assert (g0 := nrm2_ge0 (G N g x)).
    assert (k : 0 <= eta * rho * ((1 - L * eta * omega) * nrm2 (G N g x))) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|apply Rmult_le_pos; lra]).
    unfold c in *. lra.
Qed.
Lemma step_7_8 x T : (0 < T)%nat -> / INR T * sum T (fun t => Eit round1 step1 t (fun x => nrm2 (G N g x)) x)
  <= 2 * (Favg N F x - Fstar) / (rho * eta * INR T) + L * eta * omega * (nu N Sn * zeta ^ 2 + sigma ^ 2 / INR Sn).
Proof.
  intros T0%lt_0_INR. set (n := nu N Sn * zeta ^ 2 + sigma ^ 2 / INR Sn).
  assert (h := telescope_inv round1 step1 (fun _ => True) (fun x => Favg N F x - Fstar) (fun x => eta * rho / 2 * nrm2 (G N g x)) (L * eta ^ 2 * omega * rho / 2 * n)
    (fun _ _ _ => I)).
  specialize (h (fun y _ => ltac:(assert (k := one_round y); fold n in k; unfold Rminus at 1; rewrite ex_plus, ex_const; lra))).
  specialize (h (fun y _ => ltac:(assert (b := bounded y); lra)) T x I).
  rewrite (sum_ext T _ (fun t => eta * rho / 2 * Eit round1 step1 t (fun x => nrm2 (G N g x)) x)) in h by (intros; apply Eit_scal).
  rewrite sum_scal in h. assert (c0 : 0 < 2 / (eta * rho * INR T)) by (apply Rdiv_lt_0_compat; [lra|]; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  eapply Rle_trans; [|eapply Rle_trans; [exact h|]]; right; field; lra.
Qed.
End OneStep.

(* 7.11 *)
Lemma step_7_11 rho phi L theta sigma K S T f C p h nu : 0 < rho <= 1 -> 0 < phi <= 1 -> 0 < L -> 0 < theta -> 0 < sigma -> 0 < K -> 0 < S -> 0 < T ->
  0 < f -> 0 <= C -> 0 <= p <= h / S -> 0 <= nu <= / S ->
  let A := 20 * f / (9 * rho * T) in let B := L * theta * sigma ^ 2 / (rho * S * K) * (20/9 + 39) in let H := phi * sqrt rho / (8 * L) in
  let t := Rmin H (sqrt (A / B)) in h = L * t ->
  20 * f / (9 * rho * t * T) + theta * sigma ^ 2 / (rho * K) * (20 * h / (9 * S) + 20 * (h * nu) + 19 * p) <= A / t + B * t /\
  A / t + B * t <= 160/9 * (L * f / (phi * (rho * sqrt rho) * T)) + 192/10 * (sqrt theta / rho * (sigma * sqrt (L * f / (S * K * T)))) /\
  (55/10 * p + 62/10 * (h * nu)) * C / (phi * rho * T) <= 15/10 * (C / (sqrt rho * S * T)).
Proof.
  intros [r0 r1] [f0 f1] L0 th0 g0 K0 S0 T0 d0 C0 [p0 p1] [n0 n1] A B H t eh.
  assert (s0 : 0 < sqrt rho) by now apply sqrt_lt_R0. assert (ss : sqrt rho * sqrt rho = rho) by (apply sqrt_def; lra).
  assert (g2 : 0 < sigma ^ 2) by (apply pow_lt; lra).
  assert (A0 : 0 < A) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (B0 : 0 < B) by (unfold B; apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra|lra]).
  assert (H0 : 0 < H) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (ab : 0 < A / B) by now apply Rdiv_lt_0_compat.
  assert (t0 : 0 < t) by (unfold t; apply Rmin_glb_lt; [auto|now apply sqrt_lt_R0]).
  assert (h0 : 0 < h) by (rewrite eh; now apply Rmult_lt_0_compat). assert (iS : 0 < / S) by now apply Rinv_0_lt_compat.
  assert (hn : h * nu <= h / S) by (apply Rmult_le_compat_l; lra). assert (hn0 : 0 <= h * nu) by pos.
  split; [|split].
  - assert (c : 0 <= theta * sigma ^ 2 / (rho * K)) by (apply Rlt_le, Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    assert (m : 20 * h / (9 * S) + 20 * (h * nu) + 19 * p <= (20/9 + 39) * (h / S)).
    { replace (20 * h / (9 * S)) with (20/9 * (h / S)) by (field; lra). lra. }
    apply (Rmult_le_compat_l _ _ _ c) in m.
    replace (20 * f / (9 * rho * t * T)) with (A / t) by (unfold A; field; lra).
    replace (B * t) with (theta * sigma ^ 2 / (rho * K) * ((20/9 + 39) * (h / S))) by (unfold B; rewrite eh; field; lra). lra.
  - destruct (step_7_10 A B H A0 (Rlt_le _ _ B0) H0) as [q _]. specialize (q B0). cbv zeta in q. fold t in q.
    eapply Rle_trans; [exact q|]. apply Rplus_le_compat.
    + right. unfold A, H. field. lra.
    + set (w := sqrt (L * f / (S * K * T))). assert (ww : 0 < L * f / (S * K * T)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
      assert (w0 : 0 < w) by now apply sqrt_lt_R0. assert (wq : w * w = L * f / (S * K * T)) by (apply sqrt_def; lra).
      assert (u0 : 0 < sqrt theta) by now apply sqrt_lt_R0. assert (uu : sqrt theta * sqrt theta = theta) by (apply sqrt_def; lra).
      assert (AB : 0 < A * B) by now apply Rmult_lt_0_compat.
      assert (z : 0 < sqrt theta / rho * (sigma * w)) by (apply Rmult_lt_0_compat; [now apply Rdiv_lt_0_compat|now apply Rmult_lt_0_compat]).
      apply Rsqr_incr_0_var; [|lra]. unfold Rsqr.
      replace (2 * sqrt (A * B) * (2 * sqrt (A * B))) with (4 * (sqrt (A * B) * sqrt (A * B))) by ring. rewrite sqrt_def by lra.
      assert (e : A * B = 7420/81 * ((sqrt theta / rho * (sigma * w)) * (sqrt theta / rho * (sigma * w)))).
      { replace (sqrt theta / rho * (sigma * w) * (sqrt theta / rho * (sigma * w))) with ((sqrt theta * sqrt theta) / rho ^ 2 * (sigma ^ 2 * (w * w))) by (field; lra).
        rewrite uu, wq. unfold A, B. field. lra. }
      rewrite e. assert (zz : 0 < (sqrt theta / rho * (sigma * w)) * (sqrt theta / rho * (sigma * w))) by now apply Rmult_lt_0_compat. lra.
  - assert (hH : h <= phi * sqrt rho / 8).
    { rewrite eh. replace (phi * sqrt rho / 8) with (L * H) by (unfold H; field; lra). apply Rmult_le_compat_l; [lra|apply Rmin_l]. }
    assert (m : 55/10 * p + 62/10 * (h * nu) <= 117/10 * (phi * sqrt rho / 8 * / S)).
    { assert (h / S <= phi * sqrt rho / 8 * / S) by (apply Rmult_le_compat_r; lra). lra. }
    assert (c : 0 <= C / (phi * rho * T)) by (apply Rmult_le_pos; [auto|]; apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_compat_r _ _ _ c) in m.
    replace ((55/10 * p + 62/10 * (h * nu)) * C / (phi * rho * T)) with ((55/10 * p + 62/10 * (h * nu)) * (C / (phi * rho * T))) by (field; lra).
    eapply Rle_trans; [exact m|].
    replace (117/10 * (phi * sqrt rho / 8 * / S) * (C / (phi * rho * T))) with (117/80 * (C / (sqrt rho * S * T))).
    + assert (0 <= C / (sqrt rho * S * T)) by (apply Rmult_le_pos; [auto|]; apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra). lra.
    + replace (C / (phi * rho * T)) with (C / (phi * (sqrt rho * sqrt rho) * T)) by (now rewrite ss). field. lra.
Qed.

(* 8.1: fresh controls; the losses are linear with gradients v_i of mean zero, every memory is exact *)
Section Fresh.
Context {D : Dim} {O : Type}.
Variables N Sn : nat.
Hypothesis S1 : (1 <= Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis N2 : (2 <= N)%nat.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variables rho etat : R.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Variable v : nat -> vec.
Hypothesis v_mean0 : vsum N v = v0.
Definition vS A : vec := (/ INR Sn *: pick v A)%V.
Definition zeta2 : R := / INR N * sum N (fun i => nrm2 (v i)).
Definition fresh_round (_ : vec) : law (list nat * O) := bind (lsets N Sn SN) (fun _ => draw).
Definition fresh c (p : list nat * O) : vec := (compl (P (snd p)) c + P (snd p) (vS (fst p)))%V.
Lemma EPn u : draw (fun w => nrm2 (P w u)) = rho * nrm2 u.
Proof. unfold nrm2 at 2. rewrite <- EP. apply ex_ext; intros w. apply p_nrm2, Pproj. Qed.
Lemma fresh_one c : fresh_round c (fun p => nrm2 (fresh c p)) = (1 - rho) * nrm2 c + rho * (nu N Sn * zeta2).
Proof.
  unfold fresh_round. change (lsets N Sn SN (fun A => draw (fun w => nrm2 (fresh c (A, w)))) = (1 - rho) * nrm2 c + rho * (nu N Sn * zeta2)).
  rewrite (ex_ext _ _ (fun A => (1 - rho) * nrm2 c + rho * nrm2 (vS A))).
  - rewrite ex_plus, ex_const, ex_scal. unfold vS. destruct (sample_zero N Sn SN v S1 N2 v_mean0) as [_ ->]. reflexivity.
  - intros A. rewrite (ex_ext draw _ (fun w => nrm2 c + ((-1) * nrm2 (P w c) + nrm2 (P w (vS A))))).
    + rewrite !ex_plus, ex_scal, ex_const, !EPn. ring.
    + intros w. unfold fresh. cbn [fst snd]. rewrite (p_pyth _ (Pproj w)), (p_compl_nrm2 _ (Pproj w)). ring.
Qed.
Lemma fresh_all t : forall c, Eit fresh_round fresh t nrm2 c = (1 - rho) ^ t * nrm2 c + nu N Sn * zeta2 * (1 - (1 - rho) ^ t).
Proof.
  induction t; intros c; [simpl; ring|]. change (Eit fresh_round fresh (S t) nrm2 c) with (fresh_round c (fun p => Eit fresh_round fresh t nrm2 (fresh c p))).
  rewrite (ex_ext _ _ (fun p => (1 - rho) ^ t * nrm2 (fresh c p) + nu N Sn * zeta2 * (1 - (1 - rho) ^ t))) by (intros; apply IHt).
  rewrite ex_plus, ex_const, ex_scal, fresh_one. simpl. ring.
Qed.
Lemma step_8_1 :
  (forall c, fresh_round c (fun p => nrm2 (fresh c p)) = (1 - rho) * nrm2 c + rho * (nu N Sn * zeta2)) /\
  forall t, Eit fresh_round fresh t (fun c => draw (fun w => nrm2 (- etat *: P w c))) v0 = etat ^ 2 * rho * (nu N Sn * zeta2) * (1 - (1 - rho) ^ t).
Proof.
  split; [exact fresh_one|]. intros t.
  replace (fun c => draw (fun w => nrm2 (- etat *: P w c))) with (fun c => etat ^ 2 * rho * nrm2 c).
  - rewrite Eit_scal, fresh_all, nrm2_0. ring.
  - apply functional_extensionality; intros c. rewrite (ex_ext draw _ (fun w => etat ^ 2 * nrm2 (P w c))) by (intros; rewrite nrm2_scal; ring).
    rewrite ex_scal, EPn. ring.
Qed.
End Fresh.
