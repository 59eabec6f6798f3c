(* docs/theory/ssf.md: SSF (SCAFFOLD at rho = 1), all clients. step_2_5 is the page's [ssf.2.5]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Import Core Noise Descent.
Import ListNotations.
Local Open Scope R_scope.

(* ---- numbers ---- *)
Lemma step_2_6 a e b K : 0 <= a -> (forall k, 0 <= b k) ->
  (forall k, (k < K)%nat -> e k <= a * sum k e + b k) ->
  forall k, (k <= K)%nat -> sum k e <= (1 + a) ^ k * sum k b.
Proof.
  intros a0 b0 h k. induction k; intros hk; simpl. { lra. }
  assert (h1 := IHk ltac:(lia)). assert (h2 := h k ltac:(lia)). specialize (b0 k).
  assert (p1 : 1 <= (1 + a) ^ k) by (apply pow_R1_Rle; lra).
  assert (0 <= (1 + a) * ((1 + a) ^ k * sum k b - sum k e)) by (apply Rmult_le_pos; lra).
  assert (0 <= ((1 + a) ^ k - 1) * b k) by (apply Rmult_le_pos; lra).
  assert (0 <= a * (1 + a) ^ k * b k) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_2_7 K : sum K (fun k => 4 * INR k ^ 2) <= 4/3 * INR K ^ 3 /\ sum K (fun k => 2 * INR k) <= INR K ^ 2.
Proof.
  induction K as [|K [IH IH']]; [simpl; lra|]. rewrite S_INR. assert (k0 := pos_INR K). cbn [sum]. split; nra.
Qed.
Lemma exp_25 : exp (1/25) <= 1041/1000.
Proof.
  assert (h3 : exp (1/200) <= 200/199).
  { assert (m := exp_ineq1_le (- (1/200))). assert (p := exp_pos (1/200)).
    assert (e : exp (1/200) * exp (- (1/200)) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ p)) in m. lra. }
  replace (exp (1/25)) with (exp (1/200) ^ 8).
  - assert (p := exp_pos (1/200)). assert (h4 := pow_incr _ _ 8 (conj (Rlt_le _ _ p) h3)). lra.
  - cbn [pow]. rewrite Rmult_1_r, <- !exp_plus. f_equal. lra.
Qed.
Lemma step_2_8 alpha K : 0 <= alpha -> alpha * INR K <= 1/25 ->
  (1 + alpha) ^ K <= exp (alpha * INR K) /\ exp (alpha * INR K) <= exp (1/25) /\ exp (1/25) <= 1041/1000
  /\ 4/3 * (1041/1000) = 1388/1000.
Proof.
  intros a0 h. repeat split; [|destruct h as [h|h]; [left; now apply exp_increasing|rewrite h; lra]|exact exp_25|lra].
  clear h. induction K. { simpl. rewrite Rmult_0_r, exp_0. lra. }
  rewrite S_INR. replace (alpha * (INR K + 1)) with (alpha + alpha * INR K) by ring. rewrite exp_plus. simpl.
  apply Rmult_le_compat; try lra; [apply pow_le; lra|apply exp_ineq1_le].
Qed.
Lemma growth alpha K : 0 <= alpha -> alpha * INR K <= 1/25 -> (1 + alpha) ^ K <= 1041/1000.
Proof. intros a0 h. destruct (step_2_8 alpha K a0 h) as [h1 [h2 [h3 _]]]. lra. Qed.
Lemma last_division rho t T S f q C n1 n2 : 0 < rho -> 0 < t -> 0 < T ->
  9/20 * rho * t * S <= f + 2 * t * q * C + T * (n1 + n2) ->
  / T * S <= 20 * f / (9 * rho * t * T) + 40 * q * C / (9 * rho * T) + 20 / 9 * n1 / (rho * t) + 20 / 9 * n2 / (rho * t).
Proof.
  intros r0 t0 T0 h. assert (c0 : 0 < / (9/20 * rho * t * T)).
  { apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra. }
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (/ T * S) with (/ (9/20 * rho * t * T) * (9/20 * rho * t * S)) by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
Lemma step_4_3 rho : 0 < rho <= 1 ->
  (1 + rho / 2) * (1 - rho) <= 1 - rho / 2 /\ 1 + rho / 2 <= 3/2 /\ 1 + 2 / rho <= 3 / rho.
Proof.
  intros [r0 r1]. assert (i1 : 1 <= / rho) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (k := Rmult_le_pos _ _ (Rlt_le _ _ r0) (Rlt_le _ _ r0)). unfold Rdiv. repeat split; lra.
Qed.

(* 3.7 for sequences: m' = m - eta (C + v), C = L m - beta *)
Lemma solved eta L (m C beta v : nat -> R) : 0 < eta -> m O = 0 -> (forall k, m (S k) = m k - eta * (C k + v k)) ->
  (forall k, C k = L * m k - beta k) -> forall K, let tau k := (1 - eta * L) ^ (K - 1 - k) in
  m K = eta * sum K (fun k => tau k * (beta k - v k)) /\ sum K C = - sum K (fun k => tau k * beta k + (1 - tau k) * v k).
Proof.
  intros e0 m0 hm hC K tau.
  assert (s1 : m K = eta * sum K (fun k => tau k * (beta k - v k))).
  { unfold tau. clear tau. induction K; [rewrite m0; simpl; ring|].
    rewrite hm, hC, sum_S. replace (S K - 1 - K)%nat with O by lia.
    rewrite (sum_ext _ _ (fun k => (1 - eta * L) * ((1 - eta * L) ^ (K - 1 - k) * (beta k - v k)))).
    - rewrite sum_scal, pow_O. replace (m K - eta * (L * m K - beta K + v K)) with ((1 - eta * L) * m K + eta * (beta K - v K)) by ring.
      rewrite IHK. ring.
    - intros k hk. replace (S K - 1 - k)%nat with (S (K - 1 - k)) by lia. simpl. ring. }
  split; [exact s1|].
  assert (s2 : m K = - eta * (sum K C + sum K v)).
  { clear s1. induction K; [rewrite m0; simpl; ring|]. rewrite hm, IHK. cbn [sum]. ring. }
  rewrite s1 in s2. rewrite sum_plus, (sum_ext _ (fun k => (1 - tau k) * v k) (fun k => v k + (-1) * (tau k * v k))) by (intros; ring).
  rewrite (sum_ext _ _ (fun k => tau k * beta k + (-1) * (tau k * v k))) in s2 by (intros; ring).
  rewrite !sum_plus, !sum_scal in *. change (fun k => v k) with v. apply (Rmult_eq_reg_l eta); [|lra]. lra.
Qed.

(* 5 *)
Definition BB q u : R := 5/8 + 2 * q * (3 + 12 * u).
Lemma step_5_1 rho h : 0 < rho <= 1 -> 0 <= h -> h <= Rmin (1/4) (sqrt (rho / 8)) \/ h <= Rmin (1/4) (rho / 2) ->
  h ^ 2 / rho <= 1/8 /\ (1 + h) / 2 <= 5/8 /\ h <= 1.
Proof.
  intros [r0 r1] h0 hh. assert (h4 : h <= 1/4 /\ h ^ 2 <= rho / 8).
  { destruct hh as [hh|hh].
    - split; [eapply Rle_trans; [exact hh|apply Rmin_l]|]. assert (k := Rle_trans _ _ _ hh (Rmin_r _ _)).
      replace (rho / 8) with (sqrt (rho / 8) ^ 2) by (rewrite <- Rsqr_pow2; apply Rsqr_sqrt; lra). apply pow_incr; auto.
    - assert (k1 := Rle_trans _ _ _ hh (Rmin_l _ _)). assert (k2 := Rle_trans _ _ _ hh (Rmin_r _ _)). split; [exact k1|].
      assert (0 <= (1/4 - h) * h) by pos. assert (0 <= h * (rho / 2 - h)) by pos. lra. }
  destruct h4 as [h4 h2]. repeat split; try lra. apply (Rmult_le_reg_r rho); auto. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra.
Qed.
(* D stands for L^2 D, v for sigma^2/K, iN for 1/N, y for L t^2 sigma^2/(NK); f and C before and after a round *)
Lemma step_5_2 rho t q u h C g D f ef ec v y iN :
  0 < rho -> 0 < t -> 0 <= q -> 0 <= u -> 0 <= h -> (1 + h) / 2 <= 5/8 -> 0 <= D ->
  D <= 1388/1000 * rho * q * (C + g) + 1041/1000 * (q * v) ->
  ef <= f - rho * t / 2 * g + (1 + h) / 2 * t * D + y ->
  ec <= (1 - rho / 2) * C + 3 * v + (3 + 12 * u) * D + 12 * (rho * u) * g + 6 * u * (v * iN) ->
  let M := 2 * t * q in let B := BB q u in
  ef + M * ec <= f + M * C - rho * t * (1/2 - 24 * q * u - 1388/1000 * q * B) * g - rho * t * q * (1 - 1388/1000 * B) * C
    + t * (q * v) * (6 + 12 * u * iN + 1041/1000 * B) + y.
Proof.
  intros r0 t0 q0 u0 h0 h1 D0 h2 h3 h4 M B.
  assert (k1 : 0 <= t * D * (5/8 - (1 + h) / 2)) by pos.
  assert (B0 : 0 <= B) by (unfold B, BB; apply Rplus_le_le_0_compat; [lra|]; apply Rmult_le_pos; lra).
  assert (k2 : 0 <= t * B * (1388/1000 * rho * q * (C + g) + 1041/1000 * (q * v) - D)) by pos.
  assert (k10 := Rmult_le_compat_l M _ _ ltac:(unfold M; pos) h4). unfold M, B, BB in *. clear - h3 k1 k2 k10. lra.
Qed.
Lemma step_5_3 q u : 0 <= q <= 1/100 -> 0 <= u <= 1/8 -> 9/20 <= 1/2 - 24 * q * u - 1388/1000 * q * BB q u.
Proof.
  intros [q0 q1] [u0 u1]. unfold BB. assert (k1 : 0 <= (1/100 - q) * u) by pos. assert (k2 : 0 <= q * (1/8 - u)) by pos.
  assert (k3 : 0 <= (1/100 - q) * q) by pos. assert (k4 : 0 <= q * ((1/100 - q) * u)) by pos. lra.
Qed.
Lemma step_5_4 q u : 0 <= q <= 1/100 -> 0 <= u <= 1/8 -> 0 <= 1 - 1388/1000 * BB q u.
Proof. intros [q0 q1] [u0 u1]. unfold BB. assert (k1 : 0 <= (1/100 - q) * u) by pos. lra. Qed.
Lemma step_5_5 q u iN : 0 <= q <= 1/100 -> 0 <= u <= 1/8 -> 0 <= iN <= 1 ->
  6 + 12 * u * iN + 1041/1000 * BB q u <= 6 + 12 * u + 1041/1000 * BB q u <= 33/4.
Proof.
  intros [q0 q1] [u0 u1] [i0 i1]. unfold BB. assert (k1 : 0 <= (1/100 - q) * u) by pos.
  assert (k2 : 0 <= u * (1 - iN)) by pos. lra.
Qed.

(* 6 *)
(* what the theorem says for a start f = Delta_F, C = C_0 *)
Definition bound rho L N K T eta t sigma f C : R := 20 * f / (9 * rho * t * T) + 40 * (L ^ 2 * K ^ 2 * eta ^ 2) * C / (9 * rho * T)
  + 20 * L * t * sigma ^ 2 / (9 * rho * N * K) + 55 * L ^ 2 * K * eta ^ 2 * sigma ^ 2 / (3 * rho).
Lemma half_sqrt rho : 0 < rho -> sqrt (rho / 8) = sqrt rho * sqrt 2 / 4.
Proof.
  intros r0. rewrite <- sqrt_mult by lra. replace (rho / 8) with (rho * 2 / 16) by field. rewrite sqrt_div_alt by lra.
  replace 16 with (4 * 4) by ring. rewrite sqrt_square; lra.
Qed.
Lemma sqrt_quarter rho : 0 < rho <= 1/2 -> sqrt (rho / 8) <= 1/4.
Proof. intros r. replace (1/4) with (sqrt (1/4 * (1/4))) by (apply sqrt_square; lra). apply sqrt_le_1_alt. lra. Qed.
Lemma quarter_sqrt rho : 1/2 <= rho -> 1/4 <= sqrt (rho / 8).
Proof. intros r. replace (1/4) with (sqrt (1/4 * (1/4))) by (apply sqrt_square; lra). apply sqrt_le_1_alt. lra. Qed.
Lemma step_6_1 rho L N T f K t C : 0 < rho <= 1 -> 0 < L -> 0 < N -> 0 < T -> 0 < K -> L * t = Rmin (1/4) (sqrt (rho / 8)) ->
  let eta := / (10 * K * L) in
  (rho <= 1/2 -> bound rho L N K T eta t 0 f C = 40 * sqrt 2 / 9 * (L * f / (rho * sqrt rho * T)) + 2 * C / (45 * rho * T)) /\
  (1/2 <= rho -> bound rho L N K T eta t 0 f C = 80 / 9 * (L * f / (rho * T)) + 2 * C / (45 * rho * T)).
Proof.
  intros [r0 r1] L0 N0 T0 K0 ht eta. assert (s0 : 0 < sqrt rho) by now apply sqrt_lt_R0.
  assert (s2 : 0 < sqrt 2) by (apply sqrt_lt_R0; lra). assert (e2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_def; lra).
  unfold bound, eta. split; intros r2.
  - rewrite Rmin_right, half_sqrt in ht by (try apply sqrt_quarter; lra).
    assert (et : t = sqrt rho * sqrt 2 / 4 / L) by (rewrite <- ht; field; lra). rewrite et.
    transitivity (20 * f / (9 * rho * (sqrt rho * sqrt 2 / 4 / L) * T) + 2 * C / (45 * rho * T)); [field; lra|].
    apply Rplus_eq_compat_r. apply (Rmult_eq_reg_r (sqrt 2)); [|lra].
    replace (40 * sqrt 2 / 9 * (L * f / (rho * sqrt rho * T)) * sqrt 2)
      with (40 * (sqrt 2 * sqrt 2) / 9 * (L * f / (rho * sqrt rho * T))) by (field; lra).
    rewrite e2. field. lra.
  - rewrite Rmin_left in ht by now apply quarter_sqrt.
    assert (et : t = / (4 * L)) by (apply (Rmult_eq_reg_l L); [rewrite ht; field; lra|lra]). rewrite et. field. lra.
Qed.
Lemma step_6_2 rho L N K eta t sigma : 0 < rho -> 0 < L -> 0 < N -> 0 < K -> eta ^ 2 <= 4 * t / (33 * L * N * K ^ 2) ->
  55 * L ^ 2 * K * eta ^ 2 * sigma ^ 2 / (3 * rho) <= 20 * L * t * sigma ^ 2 / (9 * rho * N * K).
Proof.
  intros r0 L0 N0 K0 h. assert (s2 := pow2_ge_0 sigma).
  assert (c : 0 <= 55 * L ^ 2 * K * sigma ^ 2 / (3 * rho)).
  { unfold Rdiv. apply Rmult_le_pos; [assert (l2 := pow2_ge_0 L); pos|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
  apply (Rmult_le_compat_l _ _ _ c) in h.
  replace (55 * L ^ 2 * K * eta ^ 2 * sigma ^ 2 / (3 * rho)) with (55 * L ^ 2 * K * sigma ^ 2 / (3 * rho) * eta ^ 2) by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
Lemma step_6_3 rho L N K T eta sigma f C : 0 < rho <= 1 -> 0 < L -> 0 < N -> 0 < K -> 0 < T -> 0 < sigma -> 0 < f -> 0 <= C ->
  let hbar := Rmin (1/4) (sqrt (rho / 8)) in let b := sqrt (N * K * f / (2 * L * sigma ^ 2 * T)) in let t := Rmin (hbar / L) b in
  0 < eta -> K * L * eta <= 1/10 -> eta ^ 2 <= 4 * t / (33 * L * N * K ^ 2) ->
  / t <= L / hbar + / b /\
  bound rho L N K T eta t sigma f C <= 20 * L * f / (9 * rho * hbar * T) + 2 * C / (45 * rho * T)
    + 40 * sqrt 2 / (9 * rho) * (sigma * sqrt (L * f / (N * K * T))).
Proof.
  intros [r0 r1] L0 N0 K0 T0 g0 f0 C0 hbar b t e0 e1 e2.
  assert (h0 : 0 < hbar). { unfold hbar. apply Rmin_glb_lt; [lra|]. apply sqrt_lt_R0. lra. }
  assert (s2 : 0 < sqrt 2) by (apply sqrt_lt_R0; lra). assert (q2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_def; lra).
  assert (sg : 0 < sigma ^ 2) by (apply pow_lt; lra).
  assert (bb0 : 0 < N * K * f / (2 * L * sigma ^ 2 * T)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (b0 : 0 < b) by now apply sqrt_lt_R0. assert (bb : b * b = N * K * f / (2 * L * sigma ^ 2 * T)) by (apply sqrt_def; lra).
  assert (hL : 0 < hbar / L) by now apply Rdiv_lt_0_compat. assert (t0 : 0 < t) by (unfold t; now apply Rmin_glb_lt).
  assert (tb : t <= b) by apply Rmin_r.
  assert (it : / t <= L / hbar + / b).
  { assert (i1 : 0 < L / hbar) by now apply Rdiv_lt_0_compat. assert (i2 := Rinv_0_lt_compat _ b0).
    unfold t. destruct (Rle_dec (hbar / L) b) as [le|gt].
    - rewrite Rmin_left by lra. replace (/ (hbar / L)) with (L / hbar) by (field; lra). lra.
    - rewrite Rmin_right by lra. lra. }
  split; [exact it|]. unfold bound.
  set (w := sqrt (L * f / (N * K * T))). assert (ww : 0 < L * f / (N * K * T)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (w0 : 0 < w) by now apply sqrt_lt_R0. assert (wq : w * w = L * f / (N * K * T)) by (apply sqrt_def; lra).
  assert (bw : L * sigma * b / (N * K) = w / sqrt 2).
  { assert (p1 : 0 < L * sigma * b / (N * K)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    assert (p2 : 0 < w / sqrt 2) by now apply Rdiv_lt_0_compat.
    apply Rsqr_inj; try lra. unfold Rsqr.
    replace (L * sigma * b / (N * K) * (L * sigma * b / (N * K))) with (L ^ 2 * sigma ^ 2 * (b * b) / (N * K) ^ 2) by (field; lra).
    replace (w / sqrt 2 * (w / sqrt 2)) with (w * w / (sqrt 2 * sqrt 2)) by (field; lra). rewrite bb, wq, q2. field. lra. }
  assert (n2 := step_6_2 rho L N K eta t sigma r0 L0 N0 K0 e2).
  assert (m1 : 20 * f / (9 * rho * t * T) <= 20 * L * f / (9 * rho * hbar * T) + 20 * f / (9 * rho * b * T)).
  { assert (c : 0 <= 20 * f / (9 * rho * T)) by (apply Rlt_le, Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_compat_l _ _ _ c) in it.
    replace (20 * f / (9 * rho * t * T)) with (20 * f / (9 * rho * T) * / t) by (field; lra).
    eapply Rle_trans; [exact it|]. right. field. lra. }
  assert (m2 : 20 * f / (9 * rho * b * T) = 40 / (9 * rho) * (sigma * (L * sigma * b / (N * K)))).
  { apply (Rmult_eq_reg_r b); [|lra]. replace (40 / (9 * rho) * (sigma * (L * sigma * b / (N * K))) * b)
      with (40 / (9 * rho) * sigma ^ 2 * L / (N * K) * (b * b)) by (field; lra). rewrite bb. field. lra. }
  assert (m3 : 20 * L * t * sigma ^ 2 / (9 * rho * N * K) <= 20 / (9 * rho) * (sigma * (L * sigma * b / (N * K)))).
  { assert (c : 0 <= 20 * L * sigma ^ 2 / (9 * rho * N * K)) by (apply Rlt_le, Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_compat_l _ _ _ c) in tb.
    replace (20 * L * t * sigma ^ 2 / (9 * rho * N * K)) with (20 * L * sigma ^ 2 / (9 * rho * N * K) * t) by (field; lra).
    eapply Rle_trans; [exact tb|]. right. field. lra. }
  assert (m4 : 40 * (L ^ 2 * K ^ 2 * eta ^ 2) * C / (9 * rho * T) <= 2 * C / (45 * rho * T)).
  { assert (c : 0 <= 40 * C / (9 * rho * T)) by (apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
    assert (a : (K * L * eta) ^ 2 <= 1/100). { assert (0 <= K * L * eta) by pos. nra. }
    apply (Rmult_le_compat_l _ _ _ c) in a.
    replace (40 * (L ^ 2 * K ^ 2 * eta ^ 2) * C / (9 * rho * T)) with (40 * C / (9 * rho * T) * (K * L * eta) ^ 2) by (field; lra).
    eapply Rle_trans; [exact a|]. right. field. lra. }
  assert (m5 : 80 / (9 * rho) * (sigma * (w / sqrt 2)) = 40 * sqrt 2 / (9 * rho) * (sigma * w)).
  { apply (Rmult_eq_reg_r (sqrt 2)); [|lra]. replace (40 * sqrt 2 / (9 * rho) * (sigma * w) * sqrt 2)
      with (40 * (sqrt 2 * sqrt 2) / (9 * rho) * (sigma * w)) by (field; lra). rewrite q2. field. lra. }
  rewrite <- m5. rewrite bw in m2, m3. replace (80 / (9 * rho)) with (2 * (40 / (9 * rho))) by (field; lra).
  replace (20 / (9 * rho)) with (1/2 * (40 / (9 * rho))) in m3 by (field; lra).
  rewrite m2 in m1. set (Z := 40 / (9 * rho) * (sigma * (w / sqrt 2))) in *.
  replace (1/2 * (40 / (9 * rho)) * (sigma * (w / sqrt 2))) with (1/2 * Z) in m3 by (unfold Z; ring).
  replace (2 * (40 / (9 * rho)) * (sigma * (w / sqrt 2))) with (2 * Z) by (unfold Z; ring). lra.
Qed.
Lemma step_6_4 rho L f T : 0 < rho -> 0 < L -> 0 < T ->
  Rmin (1/4) (rho / 2) <= Rmin (1/4) (sqrt (rho / 8)) /\
  (rho < 1/2 -> rho / 2 = sqrt (2 * rho) * sqrt (rho / 8) /\ Rmin (1/4) (rho / 2) < Rmin (1/4) (sqrt (rho / 8))) /\
  (forall t, L * t = rho / 2 -> 20 * f / (9 * rho * t * T) = 40 * L * f / (9 * rho ^ 2 * T)) /\
  33/4 < 6 + 12 * (1/7) + 1041/1000 * BB (1/100) (1/7) /\ 1 - 1388/1000 * BB (1/100) (1/6) < 0.
Proof.
  intros r0 L0 T0. assert (e : rho / 2 = sqrt (2 * rho) * sqrt (rho / 8)).
  { rewrite <- sqrt_mult by lra. replace (2 * rho * (rho / 8)) with (rho / 2 * (rho / 2)) by field. rewrite sqrt_square; lra. }
  assert (s8 : 0 < sqrt (rho / 8)) by (apply sqrt_lt_R0; lra).
  assert (lt : rho < 1/2 -> rho / 2 < sqrt (rho / 8)).
  { intros r1. rewrite e. assert (sqrt (2 * rho) < 1) by (rewrite <- sqrt_1; apply sqrt_lt_1; lra).
    rewrite <- (Rmult_1_l (sqrt (rho / 8))) at 2. apply Rmult_lt_compat_r; lra. }
  repeat split.
  - destruct (Rlt_dec rho (1/2)) as [r1|r1].
    + specialize (lt r1). apply Rmin_glb; [apply Rmin_l|]. eapply Rle_trans; [apply Rmin_r|lra].
    + rewrite (Rmin_left (1/4) (rho / 2)) by lra. apply Rmin_glb; [lra|]. apply quarter_sqrt. lra.
  - exact e.
  - specialize (lt H). rewrite (Rmin_right (1/4) (rho / 2)) by lra. apply Rmin_glb_lt; lra.
  - intros t ht. assert (et : t = rho / 2 / L) by (rewrite <- ht; field; lra). rewrite et. field. lra.
  - unfold BB. lra.
  - unfold BB. lra.
Qed.

(* ---- vectors ---- *)
Section Vectors.
Context {D : Dim}.
Lemma smooth_below F G L : 0 <= L -> gradient F G -> lipschitz L G ->
  forall x s, F x + dot (G x) s + - (L / 2) * nrm2 s <= F (x + s)%V.
Proof.
  intros L0 hd hL x s. assert (h := smooth (fun x => - F x) (fun x => (-1) *: G x)%V L L0). cbv beta in h.
  assert (h1 : gradient (fun x => - F x) (fun x => (-1) *: G x)%V).
  { intros y t. cbv beta. rewrite dot_scall. replace (-1 * dot (G y) t) with (- dot (G y) t) by ring.
    apply (derivable_pt_lim_opp (fun u => F (y + u *: t)%V)), hd. }
  assert (h2 : lipschitz L (fun x => (-1) *: G x)%V).
  { intros y z. replace ((-1) *: G y - (-1) *: G z)%V with ((-1) *: (G y - G z))%V by vring.
    rewrite nrm2_scal. specialize (hL y z). lra. }
  specialize (h h1 h2 x s). rewrite dot_scall in h. lra.
Qed.
Lemma step_2_2 u v : 2 * nrm2 u + 2 * nrm2 v - nrm2 (u + v) = nrm2 (u - v) /\ nrm2 (u + v) <= 2 * nrm2 u + 2 * nrm2 v.
Proof. split; [|apply nrm2_add_le2]. rewrite nrm2_add, nrm2_sub. ring. Qed.
Lemma step_2_3 k (a : nat -> vec) : nrm2 (vsum k a) <= INR k * sum k (fun j => nrm2 (a j)).
Proof. apply nrm2_vsum. Qed.
Lemma step_3_1 F G L : 0 <= L -> gradient F G -> lipschitz L G ->
  forall x s, F (x + s)%V - F x - dot (G x) s <= L / 2 * nrm2 s.
Proof. intros L0 hd hL x s. assert (h := smooth F G L L0 hd hL x s). lra. Qed.
Lemma step_3_5 F G L : 0 < L -> gradient F G -> lipschitz L G -> forall x u s,
  let a := (G (x + u) - G x)%V in let b := (L *: u - a)%V in
  F (x + s)%V <= F x + dot (G x) s + L / 2 * nrm2 s + - dot b (s - u) + - (/ (4 * L)) * nrm2 b.
Proof.
  intros L0 hd hL x u s a b. set (w := (/ 2 *: (u + / L *: a))%V). assert (L1 := Rlt_le _ _ L0).
  assert (h1 := smooth F G L L1 hd hL (x + u)%V (s - u)%V).
  assert (h2 := smooth F G L L1 hd hL x w).
  assert (h3 := smooth_below F G L L1 hd hL (x + u)%V (w - u)%V).
  replace (x + u + (s - u))%V with (x + s)%V in h1 by vring.
  replace (x + u + (w - u))%V with (x + w)%V in h3 by vring.
  replace (G (x + u)%V) with (G x + a)%V in h1, h3 by (unfold a; vring).
  enough (e : (dot (G x + a) (s - u) + L / 2 * nrm2 (s - u)) + ((dot (G x) w + L / 2 * nrm2 w)
    + ((-1) * dot (G x + a) (w - u) + L / 2 * nrm2 (w - u)))
    = dot (G x) s + (L / 2 * nrm2 s + ((-1) * dot b (s - u) + - (/ (4 * L)) * nrm2 b))) by lra.
  unfold nrm2, dot. rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros j _.
  unfold w, b. vunfold. field. lra.
Qed.
Lemma step_3_9 a u p h t : nrm2 a <= nrm2 u -> 0 <= t <= 1 -> let b := (u - a)%V in
  1/2 * nrm2 a + t * (dot b (u + h *: p) + - (1/4) * nrm2 b) <= 3/2 * nrm2 u + (h * h * nrm2 p + - (2 * h) * dot a p).
Proof.
  intros au [t0 t1] b.
  assert (e : (3/2 * nrm2 u + (h * h * nrm2 p + - (2 * h) * dot a p)) = (1/2 * nrm2 a + (t * dot b (u + h *: p) + t * - (1/4) * nrm2 b))
    + ((1 - t) * nrm2 (a - h *: p) + ((1 - t) * (3/2) * nrm2 u + ((1 - t) * - (3/2) * nrm2 a
    + (t * nrm2 (/ 2 *: (u + a) - h *: p) + (t * (1/2) * nrm2 u + t * - (1/2) * nrm2 a)))))).
  { unfold nrm2, dot. rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros j _. unfold b. vunfold. field. }
  assert (k1 : 0 <= (1 - t) * nrm2 (a - h *: p)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
  assert (k2 : 0 <= t * nrm2 (/ 2 *: (u + a) - h *: p)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
  assert (k3 : 0 <= (1 - t) * (nrm2 u - nrm2 a)) by (apply Rmult_le_pos; lra).
  assert (k4 : 0 <= t * (nrm2 u - nrm2 a)) by (apply Rmult_le_pos; lra). lra.
Qed.
End Vectors.

Section SSF.
Context {D : Dim}.
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Hypothesis K1 : (0 < K)%nat.
(* the draw of the subspace *)
Context {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable rho : R.
(* losses, gradients, constants, steps *)
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L Fstar eta etag sigma : R.

Record state := State { sx : vec; sci : nat -> vec; sc : vec }.
(* the noise of all clients in one local step; its law, given the earlier rounds, the subspace and the earlier steps *)
Definition noise := nat -> vec.
Variable ker : state -> O -> list noise -> law noise.

Definition meanR (f : nat -> R) : R := / INR N * sum N f.
Definition meanV (f : nat -> vec) : vec := (/ INR N *: vsum N f)%V.

(* the local steps: y^0 = x, y^{k+1} = y^k - eta P (g_i(y^k) + noise - c_i + c) *)
Fixpoint loc (s : state) (w : O) (i : nat) (h : list noise) : vec :=
  match h with
  | [] => sx s
  | z :: h => (loc s w i h - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s))%V
  end.
Definition gbar s w i h : vec := (/ INR K *: pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h)%V.
Definition step (s : state) (p : O * list noise) : state := let (w, h) := p in {|
  sx := (sx s + (etag / INR N) *: vsum N (fun i => loc s w i h - sx s))%V;
  sci := fun i => (compl (P w) (sci s i) + P w (gbar s w i h))%V;
  sc := (compl (P w) (sc s) + meanV (fun i => P w (gbar s w i h)))%V |}.
Definition round (s : state) : law (O * list noise) := bind draw (fun w => path (ker s w) K).

Definition Favg x : R := meanR (fun i => F i x).
Definition G x : vec := meanV (fun i => g i x).
Definition Cerr s : R := meanR (fun i => nrm2 (sci s i - g i (sx s))).
Definition etat : R := etag * INR K * eta.
Definition q : R := (INR K * L * eta) ^ 2.
Definition inv s : Prop := sc s = meanV (sci s).

Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall u v, draw (fun w => dot u (P w v)) = rho * dot u v.
Hypothesis rho01 : 0 < rho <= 1.
Hypothesis L0 : 0 <= L.
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis bounded : forall x, Fstar <= Favg x.
Hypothesis noise_mean0 : forall s w h i u, (i < N)%nat -> ker s w h (fun z => dot u (z i)) = 0.
Hypothesis noise_var : forall s w h i, (i < N)%nat -> ker s w h (fun z => nrm2 (z i)) <= sigma ^ 2.
(* uncorrelated: the cross-covariance of two clients is zero *)
Hypothesis noise_clients : forall s w h i j a b, (i < N)%nat -> (j < N)%nat -> i <> j ->
  ker s w h (fun z => dot a (z i) * dot b (z j)) = 0.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Hypothesis steps_local : INR K * L * eta <= 1/10.
Hypothesis steps_server : L * etat <= 1/4.
Hypothesis steps_server2 : (L * etat) ^ 2 <= rho / 8.

Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let iN0 : 0 <= / INR N. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iK0 : 0 <= / INR K. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Lemma etat_gt0 : 0 < etat. Proof. unfold etat. repeat apply Rmult_lt_0_compat; auto. Qed.

(* means *)
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
Lemma meanR_ge0 f : (forall i, (i < N)%nat -> 0 <= f i) -> 0 <= meanR f.
Proof. intros h. apply Rmult_le_pos; auto. now apply sum_ge0. Qed.
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
Lemma meanV_P w f : meanV (fun i => P w (f i)) = P w (meanV f).
Proof. unfold meanV. now rewrite (p_scal _ (Pproj w)), (p_vsum _ (Pproj w)). Qed.
Lemma meanV_dot f v : dot (meanV f) v = meanR (fun i => dot (f i) v).
Proof. unfold meanV, meanR. now rewrite dot_scall, dot_suml. Qed.
Lemma nrm2_meanV f : nrm2 (meanV f) <= meanR (fun i => nrm2 (f i)).
Proof. now apply nrm2_mean. Qed.
Lemma ex_meanR {A} (E : law A) f : E (fun a => meanR (fun i => f i a)) = meanR (fun i => E (f i)).
Proof. unfold meanR. now rewrite ex_scal, ex_sum. Qed.

Lemma roundE s f : round s f = draw (fun w => path (ker s w) K (fun h => f (w, h))).
Proof. reflexivity. Qed.
Lemma round_le s f f' : (forall w h, length h = K -> f (w, h) <= f' (w, h)) -> round s f <= round s f'.
Proof.
  intros H. rewrite !roundE. apply ex_le; intros w. apply path_length. auto.
Qed.

(* 2.3 over the steps so far *)
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

Lemma psum_plus {Z} (e e' : list Z -> Z -> R) h : psum (fun h z => e h z + e' h z) h = psum e h + psum e' h.
Proof. induction h; simpl; rewrite ?IHh; ring. Qed.
Lemma psum_const {Z} a (h : list Z) : psum (fun _ _ => a) h = INR (length h) * a.
Proof. induction h; [simpl; ring|]. change (length (a0 :: h)) with (S (length h)). rewrite S_INR. simpl. rewrite IHh. ring. Qed.
Lemma psum_dot {Z} (f : list Z -> Z -> vec) v h : psum (fun h z => dot (f h z) v) h = dot (pvsum f h) v.
Proof. induction h; simpl; [now rewrite dot_0l|]. now rewrite IHh, dot_addl. Qed.

(* 1.1 *)
Lemma step_1_1 s p : inv s -> inv (step s p).
Proof.
  destruct p as [w h]. unfold inv. intros e. cbn [step sx sci sc]. rewrite meanV_plus. f_equal.
  unfold compl. now rewrite meanV_sub, meanV_P, <- e.
Qed.

(* 2.5 *)
Lemma step_2_5 v : draw (fun w => nrm2 (P w v)) = rho * nrm2 v.
Proof. unfold nrm2 at 2. rewrite <- EP. apply ex_ext; intros w. apply p_nrm2, Pproj. Qed.
Lemma step_2_5c v : draw (fun w => nrm2 (compl (P w) v)) = (1 - rho) * nrm2 v.
Proof.
  rewrite (ex_ext _ _ (fun w => nrm2 v + (-1) * nrm2 (P w v))) by (intros w; rewrite p_compl_nrm2 by apply Pproj; ring).
  rewrite ex_plus, ex_scal, ex_const, step_2_5. ring.
Qed.

Section Round.
Variable s : state.
Hypothesis hs : inv s.
Notation x := (sx s).
Definition d i : vec := (g i x - sci s i + sc s)%V.
Definition a w i h : vec := (g i (loc s w i h) - g i x)%V.
Definition e w i h : R := nrm2 (loc s w i h - x).
Definition Sa w i : list noise -> vec := pvsum (fun h (_ : noise) => a w i h).
Definition Se w i : list noise -> R := psum (fun h (_ : noise) => e w i h).
Definition Xi i : list noise -> vec := pvsum (fun _ (z : noise) => z i).
Definition Dw w h : R := meanR (fun i => / INR K * Se w i h).
Definition DD : R := round s (fun p => Dw (fst p) (snd p)).

(* 2.1 *)
Lemma step_2_1 w i h : (loc s w i h - x = - (eta *: P w (Sa w i h + INR (length h) *: d i + Xi i h)))%V.
Proof.
  assert (pw := Pproj w). induction h as [|z h IH].
  - change (x - x = - (eta *: P w (v0 + 0 *: d i + v0)))%V.
    replace (v0 + 0 *: d i + v0)%V with v0 by vring. rewrite (p_0 _ pw). vring.
  - change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl loc.
    change (Sa w i (z :: h)) with (Sa w i h + a w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    replace (loc s w i h - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s) - x)%V
      with ((loc s w i h - x) - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s))%V by vring.
    rewrite IH. replace (Sa w i h + a w i h + (INR (length h) + 1) *: d i + (Xi i h + z i))%V
      with ((Sa w i h + INR (length h) *: d i + Xi i h) + (g i (loc s w i h) + z i - sci s i + sc s))%V
      by (unfold a, d; vring).
    rewrite (p_add _ pw (Sa w i h + INR (length h) *: d i + Xi i h)%V). vring.
Qed.
(* the mean of a client's gradients *)
Lemma gbarE w i h : length h = K -> gbar s w i h = (g i x + / INR K *: (Sa w i h + Xi i h))%V.
Proof.
  intros hk. unfold gbar. assert (E : pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h
    = (INR (length h) *: g i x + (Sa w i h + Xi i h))%V).
  { clear hk. induction h as [|z h IH]. { change (v0 = 0 *: g i x + (v0 + v0))%V. vring. }
    change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl pvsum. rewrite IH.
    change (Sa w i (z :: h)) with (Sa w i h + a w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    unfold a. vring. }
  rewrite E, hk. vfield. lra.
Qed.
Lemma mean_d : meanV d = G x.
Proof. unfold d. rewrite meanV_plus, meanV_sub, meanV_const, hs. fold (G x). vring. Qed.

(* 1.2 *)
Definition bb w h : vec := meanV (fun i => / INR K *: Sa w i h)%V.
Definition nn h : vec := meanV (fun i => / INR K *: Xi i h)%V.
Lemma step_1_2 w h : length h = K -> (sx (step s (w, h)) = x + - etat *: P w (G x + bb w h + nn h))%V.
Proof.
  intros hk. cbn [step sx]. f_equal. assert (pw := Pproj w).
  transitivity (etag *: meanV (fun i => loc s w i h - x)%V)%V. { unfold meanV, Rdiv. vring. }
  rewrite (meanV_ext _ (fun i => (- (INR K * eta)) *: P w (d i + / INR K *: Sa w i h + / INR K *: Xi i h)%V)%V).
  - rewrite meanV_scal, meanV_P, !meanV_plus, mean_d. fold (bb w h) (nn h). unfold etat. vring.
  - intros i _. rewrite step_2_1, hk.
    replace (Sa w i h + INR K *: d i + Xi i h)%V with (INR K *: (d i + / INR K *: Sa w i h + / INR K *: Xi i h))%V
      by (vfield; lra).
    rewrite (p_scal _ pw). vring.
Qed.

Lemma Sa_le w i h : (i < N)%nat -> nrm2 (Sa w i h) <= INR (length h) * (L * L * Se w i h).
Proof.
  intros hi. eapply Rle_trans; [apply nrm2_pvsum|]. apply Rmult_le_compat_l; [apply pos_INR|].
  unfold Se. rewrite <- psum_scal. apply psum_le. intros. now apply lip.
Qed.
Lemma e_ge0 w i h : 0 <= e w i h. Proof. apply nrm2_ge0. Qed.
Lemma Se_ge0 w i h : 0 <= Se w i h. Proof. apply psum_ge0; intros; apply e_ge0. Qed.

(* 2.4 *)
Lemma Xi_le w i k : (i < N)%nat -> path (ker s w) k (fun h => nrm2 (Xi i h)) <= INR k * sigma ^ 2.
Proof.
  intros hi. apply (noise_sum (ker s w) (fun _ (z : noise) => z i)); intros; [now apply noise_mean0|now apply noise_var].
Qed.

Lemma step_2_4 w i k : (i < N)%nat -> path (ker s w) k (fun h => nrm2 (P w (Xi i h))) <= INR k * sigma ^ 2.
Proof. intros hi. eapply Rle_trans; [|apply (Xi_le w i k hi)]. apply ex_le; intros. apply p_le, Pproj. Qed.

(* the recursion of section 2 *)
Lemma drift_rec w i k : (i < N)%nat -> (k < K)%nat ->
  path (ker s w) k (e w i) <= 4 * eta ^ 2 * L ^ 2 * INR K * sum k (fun j => path (ker s w) j (e w i))
    + (eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + eta ^ 2 * sigma ^ 2 * (2 * INR k)).
Proof.
  intros hi hk. assert (pw := Pproj w).
  assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (k0 := pos_INR k).
  assert (H : path (ker s w) k (e w i) <= path (ker s w) k (fun h => 4 * eta ^ 2 * L ^ 2 * INR K * Se w i h
    + (eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + 2 * eta ^ 2 * nrm2 (Xi i h)))).
  { apply path_length. intros h hl. unfold e. rewrite step_2_1, nrm2_opp, nrm2_scal, hl.
    rewrite !(p_add _ pw), (p_scal _ pw).
    assert (h1 := nrm2_add_le2 (P w (Sa w i h) + INR k *: P w (d i)) (P w (Xi i h))).
    assert (h2 := nrm2_add_le2 (P w (Sa w i h)) (INR k *: P w (d i))). rewrite nrm2_scal in h2.
    assert (h3 := p_le _ pw (Sa w i h)). assert (h4 := p_le _ pw (Xi i h)). assert (h5 := Sa_le w i h hi). rewrite hl in h5.
    assert (S0 := Se_ge0 w i h).
    assert (h6 : INR k * (L * L * Se w i h) <= INR K * (L * L * Se w i h)).
    { apply Rmult_le_compat_r; auto. apply Rmult_le_pos; auto. now apply Rmult_le_pos. }
    assert (h7 : nrm2 (P w (Sa w i h) + INR k *: P w (d i) + P w (Xi i h))
      <= 4 * (INR K * (L * L * Se w i h)) + 4 * (INR k * INR k * nrm2 (P w (d i))) + 2 * nrm2 (Xi i h)) by lra.
    apply (Rmult_le_compat_l (eta * eta)) in h7; [lra|]. apply Rmult_le_pos; lra. }
  eapply Rle_trans; [exact H|]. rewrite !ex_plus, !ex_scal, ex_const. unfold Se at 1. rewrite path_psum.
  rewrite (sum_ext _ _ (fun j => path (ker s w) j (e w i))) by (intros; apply ex_ext; intros; apply ex_const).
  assert (h := Xi_le w i k hi). apply (Rmult_le_compat_l (2 * eta ^ 2)) in h; [lra|].
  apply Rmult_le_pos; [lra|apply pow2_ge_0].
Qed.

Lemma drift_path w i : (i < N)%nat -> path (ker s w) K (Se w i)
  <= 1388/1000 * eta ^ 2 * INR K ^ 3 * nrm2 (P w (d i)) + 1041/1000 * eta ^ 2 * INR K ^ 2 * sigma ^ 2.
Proof.
  intros hi. unfold Se. rewrite path_psum.
  rewrite (sum_ext _ _ (fun j => path (ker s w) j (e w i))) by (intros; apply ex_ext; intros; apply ex_const).
  assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). assert (n0 := nrm2_ge0 (P w (d i))).
  assert (a0 : 0 <= 4 * eta ^ 2 * L ^ 2 * INR K) by (assert (l2 := pow2_ge_0 L); pos).
  assert (m0 : 0 <= eta ^ 2 * nrm2 (P w (d i))) by pos. assert (m1 : 0 <= eta ^ 2 * sigma ^ 2) by pos.
  assert (h := step_2_6 _ (fun j => path (ker s w) j (e w i)) (fun k => eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + eta ^ 2 * sigma ^ 2 * (2 * INR k)) K a0).
  specialize (h (fun k => ltac:(assert (k0 := pos_INR k); assert (k2 := pow2_ge_0 (INR k)); apply Rplus_le_le_0_compat; pos))).
  specialize (h (fun k => drift_rec w i k hi) K (Nat.le_refl K)).
  eapply Rle_trans; [exact h|]. rewrite sum_plus, !sum_scal.
  assert (hp : (1 + 4 * eta ^ 2 * L ^ 2 * INR K) ^ K <= 1041/1000).
  { apply growth; auto. replace (4 * eta ^ 2 * L ^ 2 * INR K * INR K) with (4 * (INR K * L * eta) ^ 2) by ring.
    assert (0 <= INR K * L * eta) by pos. nra. }
  destruct (step_2_7 K) as [h7 h8]. rewrite sum_scal in h7, h8.
  apply (Rmult_le_compat_l _ _ _ m0) in h7. apply (Rmult_le_compat_l _ _ _ m1) in h8.
  set (X := eta ^ 2 * nrm2 (P w (d i)) * (4 * sum K (fun k => INR k ^ 2)) + eta ^ 2 * sigma ^ 2 * (2 * sum K INR)) in *.
  assert (Y0 : 0 <= sum K (fun k => INR k ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0).
  assert (Y1 : 0 <= sum K INR) by (apply sum_ge0; intros; apply pos_INR).
  assert (X0 : 0 <= X) by (unfold X; apply Rplus_le_le_0_compat; pos).
  eapply Rle_trans; [apply Rmult_le_compat_r; [exact X0|exact hp]|]. unfold X. lra.
Qed.

(* 2.9 *)
Lemma step_2_9 : meanR (fun i => nrm2 (d i)) <= Cerr s + nrm2 (G x).
Proof.
  pose (u i := (g i x - sci s i)%V).
  rewrite (meanR_ext _ (fun i => nrm2 (sci s i - g i x) + (2 * dot (u i) (sc s) + nrm2 (sc s)))).
  - rewrite !meanR_plus, meanR_scal, meanR_const, <- meanV_dot. fold (Cerr s).
    assert (gu : G x = (meanV u + sc s)%V) by (unfold u; rewrite meanV_sub, <- hs; fold (G x); vring).
    rewrite gu, nrm2_add. assert (h := nrm2_ge0 (meanV u)). lra.
  - intros i _. unfold d. fold (u i). rewrite nrm2_add, (nrm2_subC (sci s i)). fold (u i). ring.
Qed.

Lemma drift_d : DD <= 1388/1000 * eta ^ 2 * INR K ^ 2 * (rho * meanR (fun i => nrm2 (d i))) + 1041/1000 * eta ^ 2 * INR K * sigma ^ 2.
Proof.
  unfold DD. change (round s (fun p => Dw (fst p) (snd p))) with (draw (fun w => path (ker s w) K (Dw w))).
  rewrite <- meanR_scal. rewrite <- (meanR_ext _ _ (fun i _ => step_2_5 (d i))), <- ex_meanR, <- ex_scal.
  rewrite <- (ex_const draw (_ * sigma ^ 2)), <- ex_plus. apply ex_le; intros w.
  unfold Dw. rewrite (ex_meanR (path (ker s w) K) (fun i h => / INR K * Se w i h)).
  rewrite <- meanR_scal, <- (meanR_const (_ * sigma ^ 2)), <- meanR_plus. apply meanR_le; intros i hi.
  rewrite ex_scal. assert (h := drift_path w i hi). apply (Rmult_le_compat_l (/ INR K)) in h; auto.
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
Lemma drift_unit X : meanR (fun i => nrm2 (d i)) <= X ->
  L * L * DD <= 1388/1000 * rho * q * X + 1041/1000 * (q * (sigma ^ 2 / INR K)).
Proof.
  intros hX. assert (H := drift_d). assert (l2 : 0 <= L * L) by pos. assert (e2 := pow2_ge_0 eta). assert (k2 := pow2_ge_0 (INR K)).
  apply (Rmult_le_compat_l (L * L * (1388/1000 * eta ^ 2 * INR K ^ 2) * rho)) in hX; [|pos].
  apply (Rmult_le_compat_l (L * L)) in H; auto.
  replace (q * (sigma ^ 2 / INR K)) with (L * L * (eta ^ 2 * INR K * sigma ^ 2)) by (unfold q; field; lra).
  unfold q. lra.
Qed.
(* the claim of section 2 *)
Theorem step_2_10 : L * L * DD <= 1388/1000 * rho * q * (Cerr s + nrm2 (G x)) + 1041/1000 * (q * (sigma ^ 2 / INR K)).
Proof. exact (drift_unit _ step_2_9). Qed.

(* 3 *)
Lemma Sa_mean_le w i h : (i < N)%nat -> length h = K -> nrm2 (/ INR K *: Sa w i h) <= L * L * (/ INR K * Se w i h).
Proof.
  intros hi hk. rewrite nrm2_scal. assert (b := Sa_le w i h hi). rewrite hk in b.
  apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos].
  eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Lemma bb_le w h : length h = K -> nrm2 (bb w h) <= L * L * Dw w h.
Proof.
  intros hk. eapply Rle_trans; [apply nrm2_meanV|]. unfold Dw. rewrite <- meanR_scal.
  apply meanR_le; intros. now apply Sa_mean_le.
Qed.
Lemma qubF v : Favg (x + v) <= Favg x + dot (G x) v + L / 2 * nrm2 v.
Proof.
  unfold G. rewrite meanV_dot, <- (meanR_const (L / 2 * nrm2 v)). unfold Favg. rewrite <- !meanR_plus.
  apply meanR_le; intros i hi. apply (smooth (F i) (g i) L L0); auto.
Qed.
Lemma nnE h : nn h = ((/ INR N * / INR K) *: pvsum (fun _ (z : noise) => vsum N z) h)%V.
Proof.
  unfold nn. rewrite meanV_scal. unfold meanV.
  replace (vsum N (fun i => Xi i h)) with (pvsum (fun _ (z : noise) => vsum N z) h); [vring|].
  induction h as [|z h IH].
  - change (v0 = vsum N (fun _ => v0)). rewrite vsum_const. vring.
  - simpl. rewrite IH, <- vsum_plus. reflexivity.
Qed.
Lemma all_mean0 w h u : ker s w h (fun z => dot u (vsum N z)) = 0.
Proof.
  rewrite (ex_ext _ _ (fun z => sum N (fun i => dot u (z i)))) by (intros; apply dot_sumr).
  rewrite ex_sum, (sum_ext _ _ (fun _ => 0)) by (intros; now apply noise_mean0). rewrite sum_const. ring.
Qed.
Lemma nn_mean0 w u : path (ker s w) K (fun h => dot u (nn h)) = 0.
Proof.
  rewrite (ex_ext _ _ (fun h => (/ INR N * / INR K) * dot u (pvsum (fun _ (z : noise) => vsum N z) h)))
    by (intros; rewrite nnE; apply dot_scalr).
  rewrite ex_scal, (noise_mean (ker s w)); [ring|]. intros. apply all_mean0.
Qed.
(* 3.2 *)
Lemma step_3_2 : round s (fun p => dot (G x) (P (fst p) (nn (snd p)))) = 0.
Proof.
  rewrite roundE, <- (ex_const draw 0). apply ex_ext; intros w. cbn [fst snd].
  rewrite <- (nn_mean0 w (P w (G x))). apply ex_ext; intros h. symmetry. apply p_sym, Pproj.
Qed.
Lemma noise_P w h i j : (i < N)%nat -> (j < N)%nat -> i <> j -> ker s w h (fun z => dot (z i) (P w (z j))) = 0.
Proof. intros hi hj ne. apply (ex_uncorrelated _ (fun z : noise => z i) (fun z => z j)); [apply p_sym, Pproj|]. intros. now apply noise_clients. Qed.
(* 3.4 *)
Lemma nn_var w : path (ker s w) K (fun h => nrm2 (nn h)) <= sigma ^ 2 / (INR N * INR K).
Proof.
  rewrite (ex_ext _ _ (fun h => (/ INR N * / INR K) * (/ INR N * / INR K) * nrm2 (pvsum (fun _ (z : noise) => vsum N z) h)))
    by (intros; rewrite nnE; apply nrm2_scal).
  rewrite ex_scal. assert (b := noise_sum (ker s w) (fun _ (z : noise) => vsum N z) (all_mean0 w) K (INR N * sigma ^ 2)).
  assert (c : 0 <= / INR N * / INR K * (/ INR N * / INR K)) by pos.
  eapply Rle_trans; [apply Rmult_le_compat_l; [exact c|apply b]|right; field; lra].
  intros h. change (fun z => nrm2 (vsum N z)) with (fun z : noise => nrm2 (vsum N (fun i => (fun i (z : noise) => z i) i z))).
  rewrite uncorrelated.
  - rewrite <- sum_const. apply sum_le; intros. now apply noise_var.
  - intros i j hij. apply (ex_uncorrelated _ (fun z : noise => z i) (fun z => z j) (fun v => v)); [reflexivity|].
    intros. apply noise_clients; lia.
Qed.
Lemma step_3_4 : round s (fun p => nrm2 (P (fst p) (nn (snd p)))) <= round s (fun p => nrm2 (nn (snd p))) <= sigma ^ 2 / (INR N * INR K).
Proof.
  split.
  - apply ex_le; intros p. apply p_le, Pproj.
  - rewrite roundE, <- (ex_const draw (_ / _)). apply ex_le; intros w. exact (nn_var w).
Qed.

(* 3.3, with the weight lam for -2 <a, b> <= lam |a|^2 + |b|^2 / lam *)
Lemma descent_path lam w h : 0 < lam -> L * etat <= 1 -> length h = K -> Favg (sx (step s (w, h))) <= Favg x
  + (- (etat * (1 - L * etat / 2 - (1 - L * etat) * (lam / 2))) * nrm2 (P w (G x))
  + (etat * (L * etat + (1 - L * etat) / (2 * lam)) * nrm2 (P w (bb w h)) + (L * etat * etat * nrm2 (P w (nn h))
  + (L * etat * etat - etat) * dot (P w (G x)) (P w (nn h))))).
Proof. clear steps_local steps_server steps_server2.
  intros l0 t1 hk. rewrite (step_1_2 w h hk). eapply Rle_trans; [apply qubF|].
  assert (pw := Pproj w). rewrite dot_scalr, nrm2_scal, <- (p_dot _ pw), !(p_add _ pw), !dot_addr, !nrm2_add, dot_addl.
  fold (nrm2 (P w (G x))).
  assert (h1 := nrm2_ge0 (lam *: P w (G x) + P w (bb w h))). rewrite nrm2_add, nrm2_scal, dot_scall in h1.
  assert (h2 := nrm2_ge0 (P w (bb w h) - P w (nn h))). rewrite nrm2_sub in h2.
  assert (t0 := Rlt_le _ _ etat_gt0). assert (lt0 : 0 <= L * etat) by pos. clear hk.
  assert (i0 : 0 < / lam) by now apply Rinv_0_lt_compat.
  set (t := etat) in *. set (A := nrm2 (P w (G x))) in *. set (B := nrm2 (P w (bb w h))) in *. set (M := nrm2 (P w (nn h))) in *.
  set (ab := dot (P w (G x)) (P w (bb w h))) in *.
  assert (k1 : 0 <= (1 - L * t) * (t * (/ lam * (lam * lam * A + 2 * (lam * ab) + B)))).
  { apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [exact t0|]. apply Rmult_le_pos; lra. }
  replace (/ lam * (lam * lam * A + 2 * (lam * ab) + B)) with (lam * A + 2 * ab + / lam * B) in k1 by (field; lra).
  replace ((1 - L * t) / (2 * lam)) with ((1 - L * t) * / lam / 2) by (field; lra).
  assert (k2 : 0 <= L * t * (t * (B - 2 * dot (P w (bb w h)) (P w (nn h)) + M))) by pos.
  clear - k1 k2. lra.
Qed.
(* a bound that holds for every path, in the mean *)
Lemma round_P u : round s (fun p => nrm2 (P (fst p) u)) = rho * nrm2 u.
Proof. rewrite roundE, <- step_2_5. apply ex_ext; intros w. exact (ex_const _ (nrm2 (P w u))). Qed.
Lemma round_Pc u : round s (fun p => nrm2 (compl (P (fst p)) u)) = (1 - rho) * nrm2 u.
Proof. rewrite roundE, <- step_2_5c. apply ex_ext; intros w. exact (ex_const _ (nrm2 (compl (P w) u))). Qed.
Lemma round_nn : round s (fun p => nrm2 (nn (snd p))) <= sigma ^ 2 / (INR N * INR K).
Proof. apply step_3_4. Qed.
Lemma round_cross u : round s (fun p => dot (P (fst p) u) (P (fst p) (nn (snd p)))) = 0.
Proof.
  rewrite roundE, <- (ex_const draw 0). apply ex_ext; intros w. cbn [fst snd].
  rewrite <- (nn_mean0 w (P w u)). apply ex_ext; intros h.
  now rewrite <- (p_sym _ (Pproj w)), (p_idem _ (Pproj w)).
Qed.
Lemma round_bb : round s (fun p => nrm2 (P (fst p) (bb (fst p) (snd p)))) <= L * L * DD.
Proof.
  unfold DD. rewrite <- ex_scal. apply round_le; intros w h hk. eapply Rle_trans; [apply p_le, Pproj|now apply bb_le].
Qed.
Lemma descent_round lam : 0 < lam -> L * etat <= 1 -> round s (fun p => Favg (sx (step s p))) <= Favg x
  - etat * (1 - L * etat / 2 - (1 - L * etat) * (lam / 2)) * round s (fun p => nrm2 (P (fst p) (G x)))
  + etat * (L * etat + (1 - L * etat) / (2 * lam)) * round s (fun p => nrm2 (P (fst p) (bb (fst p) (snd p))))
  + L * etat ^ 2 * round s (fun p => nrm2 (P (fst p) (nn (snd p)))).
Proof. clear steps_local steps_server steps_server2.
  intros l0 t1. eapply Rle_trans; [apply (round_le s _ (fun p => Favg x
  + (- (etat * (1 - L * etat / 2 - (1 - L * etat) * (lam / 2))) * nrm2 (P (fst p) (G x))
  + (etat * (L * etat + (1 - L * etat) / (2 * lam)) * nrm2 (P (fst p) (bb (fst p) (snd p))) + (L * etat * etat * nrm2 (P (fst p) (nn (snd p)))
  + (L * etat * etat - etat) * dot (P (fst p) (G x)) (P (fst p) (nn (snd p)))))))); intros w h hk; now apply descent_path|].
  rewrite !ex_plus, !ex_scal, ex_const, round_cross. lra.
Qed.
Lemma step_3_3 : L * etat <= 1 -> round s (fun p => Favg (sx (step s p))) - Favg x
  <= - (etat / 2) * round s (fun p => nrm2 (P (fst p) (G x)))
   + etat * (1 + L * etat) / 2 * round s (fun p => nrm2 (P (fst p) (bb (fst p) (snd p))))
   + L * etat ^ 2 * round s (fun p => nrm2 (P (fst p) (nn (snd p)))).
Proof. clear steps_local steps_server steps_server2.
  intros t1. assert (h := descent_round 1 Rlt_0_1 t1). replace ((1 - L * etat) / (2 * 1)) with ((1 - L * etat) / 2) in h by field. lra.
Qed.
Lemma descent_weights lam : 0 < lam -> L * etat <= 1 -> round s (fun p => Favg (sx (step s p))) <= Favg x
  - etat * (1 - L * etat / 2 - (1 - L * etat) * (lam / 2)) * (rho * nrm2 (G x))
  + etat * (L * etat + (1 - L * etat) / (2 * lam)) * (L * L * DD) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)).
Proof. clear steps_local steps_server steps_server2.
  intros l0 t1. eapply Rle_trans; [exact (descent_round lam l0 t1)|]. rewrite round_P. assert (t0 := Rlt_le _ _ etat_gt0).
  assert (b1 := round_bb). assert (b2 := Rle_trans _ _ _ (proj1 step_3_4) (proj2 step_3_4)).
  assert (i0 : 0 <= (1 - L * etat) / (2 * lam)) by (apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat; lra).
  apply (Rmult_le_compat_l (etat * (L * etat + (1 - L * etat) / (2 * lam)))) in b1;
    [|apply Rmult_le_pos; [auto|]; apply Rplus_le_le_0_compat; pos].
  apply (Rmult_le_compat_l (L * etat * etat)) in b2; [|pos]. lra.
Qed.
(* the claim of section 3 *)
Theorem step_3_12 : L * etat <= 1 -> round s (fun p => Favg (sx (step s p))) <= Favg x - rho * etat / 2 * nrm2 (G x)
  + (1 + L * etat) / 2 * etat * (L * L * DD) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)).
Proof. clear steps_local steps_server steps_server2.
  intros t1. assert (h := descent_weights 1 Rlt_0_1 t1). replace ((1 - L * etat) / (2 * 1)) with ((1 - L * etat) / 2) in h by field. lra.
Qed.

(* 4 *)
Lemma step_4_1 w h i : length h = K ->
  (sci (step s (w, h)) i - g i x = compl (P w) (sci s i - g i x) + P w (gbar s w i h - g i x))%V /\
  nrm2 (sci (step s (w, h)) i - g i x) = nrm2 (compl (P w) (sci s i - g i x)) + nrm2 (P w (gbar s w i h - g i x)) /\
  forall v, nrm2 (P w v) <= nrm2 v.
Proof.
  intros hk. assert (pw := Pproj w).
  assert (e1 : (sci (step s (w, h)) i - g i x = compl (P w) (sci s i - g i x) + P w (gbar s w i h - g i x))%V).
  { cbn [step sci]. unfold compl. rewrite !(p_sub _ pw). vring. }
  repeat split; [exact e1| |apply p_le, pw]. now rewrite e1, (p_pyth _ pw).
Qed.
Lemma step_4_2 beta v w p : 0 < beta -> nrm2 (v + w) <= (1 + beta) * nrm2 v + (1 + / beta) * nrm2 w /\
  forall i, (i < N)%nat -> nrm2 (g i x - g i (sx (step s p))) <= L ^ 2 * nrm2 (sx (step s p) - x).
Proof.
  intros b0. split; [now apply nrm2_add_young|]. intros i hi. assert (h := lip i hi x (sx (step s p))).
  rewrite (nrm2_subC x) in h. lra.
Qed.
Lemma move_path w h : length h = K -> nrm2 (sx (step s (w, h)) - x)
  <= etat * etat * (4 * nrm2 (P w (G x)) + 4 * (L * L * Dw w h) + 2 * nrm2 (nn h)).
Proof. clear steps_local steps_server steps_server2.
  intros hk. rewrite (step_1_2 w h hk). assert (pw := Pproj w).
  replace (x + - etat *: P w (G x + bb w h + nn h) - x)%V with (- etat *: P w (G x + bb w h + nn h))%V by vring.
  rewrite nrm2_scal, !(p_add _ pw). replace (- etat * - etat) with (etat * etat) by ring.
  assert (t0 := Rlt_le _ _ etat_gt0). apply Rmult_le_compat_l; [pos|].
  assert (h1 := nrm2_add_le2 (P w (G x) + P w (bb w h)) (P w (nn h))).
  assert (h2 := nrm2_add_le2 (P w (G x)) (P w (bb w h))).
  assert (hB := Rle_trans _ _ _ (p_le _ pw (bb w h)) (bb_le w h hk)). assert (hn := p_le _ pw (nn h)). lra.
Qed.
Lemma step_4_4 : round s (fun p => nrm2 (sx (step s p) - x))
  <= etat ^ 2 * (4 * rho * nrm2 (G x) + 4 * L ^ 2 * DD + 2 * sigma ^ 2 / (INR N * INR K)).
Proof. clear steps_local steps_server steps_server2.
  eapply Rle_trans; [apply (round_le s _ (fun p => etat * etat * 4 * nrm2 (P (fst p) (G x)) + (etat * etat * 4 * (L * L) * Dw (fst p) (snd p) + etat * etat * 2 * nrm2 (nn (snd p)))))|].
  - intros w h hk. eapply Rle_trans; [apply (move_path w h hk)|]. simpl. lra.
  - rewrite !ex_plus, !ex_scal, round_P. fold DD. assert (b := round_nn).
    assert (t0 := Rlt_le _ _ etat_gt0). apply (Rmult_le_compat_l (etat * etat * 2)) in b; [|pos].
    replace (2 * sigma ^ 2 / (INR N * INR K)) with (2 * (sigma ^ 2 / (INR N * INR K))) by (field; lra). lra.
Qed.
Lemma memory_path w h : length h = K -> Cerr (step s (w, h)) <=
  (1 + rho / 2) * meanR (fun i => nrm2 (compl (P w) (sci s i - g i x)))
  + ((1 + rho / 2) * 2 * (L * L) * Dw w h + ((1 + rho / 2) * 2 * meanR (fun i => nrm2 (/ INR K *: Xi i h))
  + (1 + 2 / rho) * (L * L) * nrm2 (sx (step s (w, h)) - x))).
Proof.
  intros hk. assert (pw := Pproj w). set (x' := sx (step s (w, h))).
  rewrite <- (meanR_const ((1 + 2 / rho) * (L * L) * nrm2 (x' - x))).
  replace ((1 + rho / 2) * 2 * (L * L) * Dw w h) with ((1 + rho / 2) * 2 * (L * L) * meanR (fun i => / INR K * Se w i h)) by reflexivity.
  rewrite <- !meanR_scal, <- !meanR_plus. apply meanR_le; intros i hi. fold x'.
  set (m := (/ INR K *: (Sa w i h + Xi i h))%V).
  replace (sci (step s (w, h)) i - g i x')%V with ((compl (P w) (sci s i - g i x) + P w m) + (g i x - g i x'))%V.
  2: { cbn [step sci]. rewrite (gbarE w i h hk). fold m. unfold compl. rewrite (p_add _ pw), !(p_sub _ pw). vring. }
  eapply Rle_trans; [apply (nrm2_add_young (rho / 2)); lra|]. rewrite (p_pyth _ pw).
  replace (/ (rho / 2)) with (2 / rho) by (field; lra).
  assert (r1 : 0 <= 2 / rho) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (h1 := lip i hi x x'). rewrite (nrm2_subC x x') in h1.
  assert (h2 := p_le _ pw m).
  assert (h3 : nrm2 m <= 2 * nrm2 (/ INR K *: Sa w i h) + 2 * nrm2 (/ INR K *: Xi i h)).
  { replace m with (/ INR K *: Sa w i h + / INR K *: Xi i h)%V by (unfold m; vring). apply nrm2_add_le2. }
  assert (h4 := Sa_mean_le w i h hi hk).
  apply (Rmult_le_compat_l (1 + 2 / rho)) in h1; [|lra].
  assert (h5 : nrm2 (P w m) <= 2 * (L * L * (/ INR K * Se w i h)) + 2 * nrm2 (/ INR K *: Xi i h)) by lra.
  apply (Rmult_le_compat_l (1 + rho / 2)) in h5; [|lra]. clear - h1 h5. lra.
Qed.

Lemma round_Xi : round s (fun p => meanR (fun i => nrm2 (/ INR K *: Xi i (snd p)))) <= sigma ^ 2 / INR K.
Proof.
  rewrite roundE, <- (ex_const draw (_ / _)). apply ex_le; intros w.
  rewrite (ex_meanR (path (ker s w) K) (fun i h => nrm2 (/ INR K *: Xi i h))).
  rewrite <- (meanR_const (_ / _)). apply meanR_le; intros i hi.
  rewrite (ex_ext _ _ (fun h => / INR K * / INR K * nrm2 (Xi i h))) by (intros; apply nrm2_scal).
  rewrite ex_scal. assert (b := Xi_le w i K hi). apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos].
  eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Lemma DD_ge0 : 0 <= DD.
Proof.
  rewrite <- (ex_const (round s) 0). apply round_le; intros w h _. apply meanR_ge0; intros i _.
  apply Rmult_le_pos; auto. apply Se_ge0.
Qed.
Lemma Cerr_ge0 s' : 0 <= Cerr s'.
Proof. apply meanR_ge0; intros; apply nrm2_ge0. Qed.

(* the claim of section 4 *)
Lemma step_4_5 : round s (fun p => Cerr (step s p)) <= (1 - rho / 2) * Cerr s + 3 * (sigma ^ 2 / INR K)
  + (3 + 12 * ((L * etat) ^ 2 / rho)) * (L * L * DD) + 12 * (L * etat) ^ 2 * nrm2 (G x)
  + 6 * ((L * etat) ^ 2 / rho) * (sigma ^ 2 / (INR N * INR K)).
Proof.
  assert (hm : round s (fun p => nrm2 (sx (step s p) - x)) <= etat * etat * (4 * (rho * nrm2 (G x)) + 4 * (L * L * DD) + 2 * (sigma ^ 2 / (INR N * INR K)))).
  { eapply Rle_trans; [exact step_4_4|]. right. field. lra. }
  eapply Rle_trans; [apply (round_le s _ (fun p => (1 + rho / 2) * meanR (fun i => nrm2 (compl (P (fst p)) (sci s i - g i x)))
    + ((1 + rho / 2) * 2 * (L * L) * Dw (fst p) (snd p) + ((1 + rho / 2) * 2 * meanR (fun i => nrm2 (/ INR K *: Xi i (snd p)))
    + (1 + 2 / rho) * (L * L) * nrm2 (sx (step s p) - x))))); exact memory_path|].
  rewrite !ex_plus, !ex_scal. fold DD.
  rewrite (ex_meanR (round s) (fun i p => nrm2 (compl (P (fst p)) (sci s i - g i x)))).
  rewrite (meanR_ext _ (fun i => (1 - rho) * nrm2 (sci s i - g i x))) by (intros; apply round_Pc).
  rewrite meanR_scal. fold (Cerr s).
  assert (hx := round_Xi). assert (D0 := DD_ge0). assert (C0 := Cerr_ge0 s). assert (G0 := nrm2_ge0 (G x)).
  set (i := / rho). assert (ri : rho * i = 1) by (unfold i; field; lra).
  assert (i1 : 1 <= i) by (unfold i; rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (v0 : 0 <= sigma ^ 2 / INR K) by (apply Rmult_le_pos; [apply pow2_ge_0|auto]).
  set (v' := sigma ^ 2 / (INR N * INR K)) in *.
  assert (v'0 : 0 <= v') by (unfold v', Rdiv; replace (/ (INR N * INR K)) with (/ INR N * / INR K) by (field; lra); apply Rmult_le_pos; [apply pow2_ge_0|pos]).
  replace (2 / rho) with (2 * i) by (unfold i; field; lra).
  replace ((L * etat) ^ 2 / rho) with (L * L * (etat * etat) * i) by (unfold i; field; lra).
  set (E := round s (fun p => nrm2 (sx (step s p) - x))) in *. set (Dh := L * L * DD) in *.
  assert (Dh0 : 0 <= Dh) by (unfold Dh; pos).
  replace ((1 + rho / 2) * 2 * (L * L) * DD) with ((1 + rho / 2) * 2 * Dh) by (unfold Dh; ring).
  assert (H : 0 <= L * L * (etat * etat)) by (assert (t0 := Rlt_le _ _ etat_gt0); pos).
  apply (Rmult_le_compat_l ((1 + 2 * i) * (L * L))) in hm; [|pos].
  replace ((1 + 2 * i) * (L * L) * (etat * etat * (4 * (rho * nrm2 (G x)) + 4 * Dh + 2 * v')))
    with (L * L * (etat * etat) * ((4 * rho + 8 * (rho * i)) * nrm2 (G x) + (1 + 2 * i) * (4 * Dh + 2 * v'))) in hm by ring.
  rewrite ri in hm. set (X := L * L * (etat * etat)) in *.
  assert (k1 : 0 <= rho * rho * Cerr s) by pos.
  assert (k2 : 0 <= (1 - rho) * Dh) by pos.
  assert (k3 : 0 <= X * ((1 - rho) * nrm2 (G x))) by pos.
  assert (k4 : 0 <= X * ((i - 1) * (4 * Dh + 2 * v'))) by pos.
  apply (Rmult_le_compat_l ((1 + rho / 2) * 2)) in hx; [|lra].
  assert (k5 : 0 <= (1 - rho) * (sigma ^ 2 / INR K)) by pos.
  replace ((L * etat) ^ 2) with X by (unfold X; ring).
  clear - hm k1 k2 k3 k4 k5 hx. lra.
Qed.

(* 3.6 to 3.11: Lemma 3 as printed, under this page's assumptions *)
Definition EE k (f : O -> list noise -> R) : R := draw (fun w => path (ker s w) k (f w)).
Lemma EE_plus k f f' : EE k (fun w h => f w h + f' w h) = EE k f + EE k f'.
Proof. unfold EE. rewrite <- ex_plus. apply ex_ext; intros w. apply ex_plus. Qed.
Lemma EE_scal k b f : EE k (fun w h => b * f w h) = b * EE k f.
Proof. unfold EE. rewrite <- ex_scal. apply ex_ext; intros w. apply ex_scal. Qed.
Lemma EE_le k f f' : (forall w h, length h = k -> f w h <= f' w h) -> EE k f <= EE k f'.
Proof. intros H. apply ex_le; intros w. apply path_length. intros. now apply H. Qed.
Lemma EE_ext k f f' : (forall w h, length h = k -> f w h = f' w h) -> EE k f = EE k f'.
Proof. intros H. apply ex_ext; intros w. apply path_ext. intros. now apply H. Qed.
Lemma EE_0 k f : (forall w, path (ker s w) k (f w) = 0) -> EE k f = 0.
Proof. intros H. unfold EE. rewrite (ex_ext draw _ (fun _ => 0)) by auto. apply ex_const. Qed.
Lemma EE_const k a : EE k (fun _ _ => a) = a.
Proof. unfold EE. rewrite (ex_ext draw _ (fun _ => a)) by (intros; apply ex_const). apply ex_const. Qed.
Lemma EE_sum k n f : EE k (fun w h => sum n (fun i => f i w h)) = sum n (fun i => EE k (f i)).
Proof. induction n; [apply (EE_const k 0)|]. simpl. now rewrite EE_plus, IHn. Qed.
Lemma EE_S k f : EE (S k) f = EE k (fun w h => ker s w h (fun z => f w (z :: h))).
Proof. reflexivity. Qed.

(* the noise of all clients so far; q^k is P of it *)
Definition qv : list noise -> vec := pvsum (fun _ (z : noise) => vsum N z).
Definition uu w i h : vec := (loc s w i h - x)%V.
Definition b_ w i h : vec := (L *: uu w i h - a w i h)%V.
Definition Cik i k : R := EE k (fun w h => dot (P w (a w i h)) (P w (qv h))).
Definition vik i k : R := EE k (fun w h => ker s w h (fun z => nrm2 (P w (z i)))).
Definition mik i k : R := EE k (fun w h => dot (uu w i h) (P w (qv h))).
Definition bik i k : R := EE k (fun w h => dot (b_ w i h) (P w (qv h))).
Definition eik i k : R := EE k (fun w => e w i).
Lemma P_pvsum w (f : list noise -> noise -> vec) h : P w (pvsum f h) = pvsum (fun h z => P w (f h z)) h.
Proof. induction h; simpl; [apply p_0, Pproj|]. now rewrite (p_add _ (Pproj w)), IHh. Qed.
Lemma dot_PP w u v : dot (P w u) (P w v) = dot (P w u) v.
Proof. now rewrite <- (p_sym _ (Pproj w)), (p_idem _ (Pproj w)). Qed.
Lemma cross_sum w (A : list noise -> vec) k : path (ker s w) k (fun h => dot (pvsum (fun h _ => A h) h) (P w (qv h)))
  = sum k (fun j => path (ker s w) j (fun h => dot (A h) (P w (qv h)))).
Proof.
  assert (pw := Pproj w).
  transitivity (path (ker s w) k (fun h => dot (pvsum (fun h (_ : noise) => P w (A h)) h) (qv h))).
  - apply ex_ext; intros h. now rewrite <- (p_sym _ pw), P_pvsum.
  - unfold qv. rewrite (path_cross (ker s w) (fun _ (z : noise) => vsum N z)) by (intros; apply all_mean0).
    apply sum_ext; intros j _. apply ex_ext; intros h. apply (p_sym _ pw).
Qed.
Lemma EE_cross (A : O -> list noise -> vec) k : EE k (fun w h => dot (pvsum (fun h _ => A w h) h) (P w (qv h)))
  = sum k (fun j => EE j (fun w h => dot (A w h) (P w (qv h)))).
Proof. unfold EE. rewrite <- ex_sum. apply ex_ext; intros w. apply cross_sum. Qed.
Lemma bbE w h : bb w h = ((/ INR N * / INR K) *: vsum N (fun i => Sa w i h))%V.
Proof. unfold bb. rewrite meanV_scal. unfold meanV. vring. Qed.
Let cNK := / INR N * / INR K.
Lemma p_n : EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h))) = cNK ^ 2 * sum N (fun i => sum K (Cik i)).
Proof.
  rewrite (EE_ext K _ (fun w h => dot (P w (G x)) (nn h) + cNK * cNK * sum N (fun i => dot (Sa w i h) (P w (qv h))))).
  - rewrite EE_plus, EE_scal, EE_sum, EE_0 by (intros; apply nn_mean0).
    rewrite (sum_ext N _ (fun i => sum K (Cik i))); [ring|]. intros i _. unfold Sa. rewrite EE_cross. apply sum_ext; intros k _.
    apply EE_ext; intros w h _. now rewrite p_dot by apply Pproj.
  - intros w h _. assert (pw := Pproj w). rewrite (p_add _ pw), dot_addl, dot_PP. f_equal.
    rewrite bbE, nnE. fold cNK. fold qv. rewrite !(p_scal _ pw), dot_scall, dot_scalr, (p_dot _ pw), dot_suml. ring.
Qed.
Lemma ker_P w h i : (i < N)%nat -> ker s w h (fun z => dot (P w (z i)) (P w (vsum N z))) = ker s w h (fun z => nrm2 (P w (z i))).
Proof.
  intros hi. assert (pw := Pproj w).
  rewrite (ex_ext (ker s w h) _ (fun z => sum N (fun j => dot (z i) (P w (z j))))) by (intros; rewrite (p_dot _ pw), (p_vsum _ pw), dot_sumr; reflexivity).
  rewrite (ex_sum (ker s w h) N (fun j z => dot (z i) (P w (z j)))).
  rewrite <- (sum_delta N i (fun j => ker s w h (fun z => nrm2 (P w (z j)))) hi). apply sum_ext; intros j hj.
  destruct (Nat.eq_dec j i) as [->|ne]; [|apply noise_P; auto]. apply ex_ext; intros z. symmetry. apply p_nrm2, pw.
Qed.
Lemma loc_S w i z h : (uu w i (z :: h) = (uu w i h - eta *: P w (a w i h + d i)) - eta *: P w (z i))%V.
Proof.
  assert (pw := Pproj w). unfold uu. simpl loc.
  replace (g i (loc s w i h) + z i - sci s i + sc s)%V with ((a w i h + d i) + z i)%V by (unfold a, d; vring).
  rewrite (p_add _ pw (a w i h + d i)%V). vring.
Qed.
Lemma qv_S z h : (qv (z :: h) = qv h + vsum N z)%V. Proof. reflexivity. Qed.
Lemma mik_0 i : mik i 0 = 0.
Proof. unfold mik. apply EE_0. intros w. rewrite path_0. unfold uu. simpl. replace (x - x)%V with v0 by vring. apply dot_0l. Qed.
Lemma mik_S i k : (i < N)%nat -> mik i (S k) = mik i k - eta * (Cik i k + vik i k).
Proof.
  intros hi. unfold mik at 1. rewrite EE_S.
  rewrite (EE_ext k _ (fun w h => dot (uu w i h) (P w (qv h)) + (- eta * dot (P w (a w i h)) (P w (qv h))
    + (- eta * dot (P w (d i)) (qv h) + - eta * ker s w h (fun z => nrm2 (P w (z i))))))).
  - rewrite !EE_plus, !EE_scal, (EE_0 k (fun w h => dot (P w (d i)) (qv h))).
    + unfold mik, Cik, vik. ring.
    + intros w. unfold qv. apply (noise_mean (ker s w)). intros. apply all_mean0.
  - intros w h _. assert (pw := Pproj w). set (Y := (uu w i h - eta *: P w (a w i h + d i))%V).
    rewrite (ex_ext (ker s w h) _ (fun z => dot Y (P w (qv h)) + (dot (P w Y) (vsum N z)
      + (- eta * dot (P w (P w (qv h))) (z i) + - eta * dot (P w (z i)) (P w (vsum N z)))))).
    + rewrite !ex_plus, !ex_scal, ex_const, all_mean0, noise_mean0, ker_P by auto. unfold Y.
      rewrite subE, dot_addl, dot_scall, dot_scall, (p_add _ pw), dot_addl, (dot_PP w (d i)). ring.
    + intros z. rewrite loc_S, qv_S. fold Y.
      replace (dot (P w Y) (vsum N z)) with (dot Y (P w (vsum N z))) by (symmetry; apply (p_sym _ pw)).
      replace (dot (P w (P w (qv h))) (z i)) with (dot (P w (z i)) (P w (qv h)))
        by (rewrite dot_PP, (p_sym _ pw), (p_idem _ pw); apply dotC).
      rewrite (p_add _ pw (qv h)), subE, !dot_addl, !dot_addr, !dot_scall. ring.
Qed.
Lemma step_3_6 :
  EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h))) = / (INR N * INR K) ^ 2 * sum N (fun i => sum K (Cik i)) /\
  forall i k, (i < N)%nat -> mik i k = - eta * sum k (fun j => Cik i j + vik i j).
Proof.
  split.
  - rewrite p_n. unfold cNK. f_equal. field. lra.
  - intros i k hi. induction k; [rewrite mik_0; simpl; ring|]. rewrite mik_S, IHk by auto. simpl. ring.
Qed.
Definition tau k : R := (1 - eta * L) ^ (K - 1 - k).
Lemma step_3_7 i : (i < N)%nat -> (forall k, Cik i k = L * mik i k - bik i k) /\
  (forall k, mik i (S k) = mik i k - eta * (Cik i k + vik i k)) /\
  mik i K = eta * sum K (fun k => tau k * (bik i k - vik i k)) /\
  sum K (Cik i) = - sum K (fun k => tau k * bik i k + (1 - tau k) * vik i k).
Proof.
  intros hi. assert (hC : forall k, Cik i k = L * mik i k - bik i k).
  { intros k. transitivity (L * mik i k + (-1) * bik i k); [|ring]. unfold Cik, mik, bik. rewrite <- !EE_scal, <- EE_plus.
    apply EE_ext; intros w h _. rewrite (p_dot _ (Pproj w)). unfold b_. rewrite subE, dot_addl, !dot_scall. ring. }
  destruct (solved eta L (mik i) (Cik i) (bik i) (vik i) eta0 (mik_0 i) (fun k => mik_S i k hi) hC K) as [h1 h2].
  repeat split; auto. intros k. now apply mik_S.
Qed.
Lemma vik_ge0 i k : 0 <= vik i k.
Proof. rewrite <- (EE_const k 0). apply EE_le; intros. apply ex_ge0; intros. apply nrm2_ge0. Qed.
Definition bn w i h : R := psum (fun h' (_ : noise) => tau (length h') * dot (b_ w i h') (P w (nn h))) h.
Lemma tau_range : eta * L <= 1 -> forall k, 0 <= tau k <= 1.
Proof. clear steps_local steps_server steps_server2.
  intros h k. assert (0 <= eta * L) by pos. unfold tau. split; [apply pow_le; lra|]. apply Rle_trans with (1 ^ (K - 1 - k)); [apply pow_incr; split; lra|rewrite pow1; lra].
Qed.
Lemma step_3_8 : eta * L <= 1 -> (forall k, 0 <= tau k <= 1) /\
  L * etat ^ 2 * EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h)))
    <= - (L * etat ^ 2 / (INR N * INR K) ^ 2 * sum N (fun i => sum K (fun k => tau k * bik i k))) /\
  (forall i, EE K (fun w h => bn w i h) = / (INR N * INR K) * sum K (fun k => tau k * bik i k)) /\
  L * etat ^ 2 * EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h)))
    + L * etat / (INR N * INR K) * (etat * sum N (fun i => EE K (fun w h => bn w i h))) <= 0.
Proof. clear steps_local steps_server steps_server2.
  intros h1. assert (ht := tau_range h1).
  assert (s2 : L * etat ^ 2 * EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h)))
    <= - (L * etat ^ 2 / (INR N * INR K) ^ 2 * sum N (fun i => sum K (fun k => tau k * bik i k)))).
  { rewrite (proj1 step_3_6). assert (t2 := pow2_ge_0 etat).
    assert (c : 0 <= L * etat ^ 2 * / (INR N * INR K) ^ 2).
    { apply Rmult_le_pos; [pos|]. apply Rlt_le, Rinv_0_lt_compat, pow_lt, Rmult_lt_0_compat; lra. }
    assert (le : sum N (fun i => sum K (Cik i)) <= -1 * sum N (fun i => sum K (fun k => tau k * bik i k))).
    { rewrite <- sum_scal. apply sum_le; intros i hi. destruct (step_3_7 i hi) as [_ [_ [_ ->]]].
      rewrite sum_plus. assert (0 <= sum K (fun k => (1 - tau k) * vik i k)); [|lra].
      apply sum_ge0; intros k _. apply Rmult_le_pos; [destruct (ht k); lra|apply vik_ge0]. }
    apply (Rmult_le_compat_l _ _ _ c) in le. unfold Rdiv. lra. }
  assert (s3 : forall i, EE K (fun w h => bn w i h) = / (INR N * INR K) * sum K (fun k => tau k * bik i k)).
  { intros i. transitivity (cNK * EE K (fun w h => dot (pvsum (fun h (_ : noise) => tau (length h) *: b_ w i h)%V h) (P w (qv h)))).
    - rewrite <- EE_scal. apply EE_ext; intros w h _. unfold bn.
      rewrite <- (psum_dot (fun h (_ : noise) => tau (length h) *: b_ w i h)%V), <- psum_scal.
      f_equal. apply functional_extensionality; intros h'. apply functional_extensionality; intros z.
      rewrite nnE. fold cNK qv. rewrite (p_scal _ (Pproj w)), dot_scall, dot_scalr. ring.
    - rewrite (EE_cross (fun w h => tau (length h) *: b_ w i h)%V). unfold cNK.
      replace (/ (INR N * INR K)) with (/ INR N * / INR K) by (field; lra). f_equal. apply sum_ext; intros k _.
      unfold bik. rewrite <- EE_scal. apply EE_ext; intros w h hk. rewrite dot_scall, hk. reflexivity. }
  repeat split; auto; try apply ht.
  rewrite (sum_ext N _ (fun i => / (INR N * INR K) * sum K (fun k => tau k * bik i k))) by (intros; apply s3).
  rewrite sum_scal. eapply Rle_trans; [apply Rplus_le_compat_r; exact s2|]. right. field. lra.
Qed.
Lemma step_3_10 u p h : 0 <= h <= 1/2 ->
  - (1/2) * nrm2 u - 1/2 * (1 - h) * nrm2 p + h ^ 2 * nrm2 p - 2 * h * dot (p - u) p <= - (1/4) * nrm2 u /\
  forall v, round s (fun p => nrm2 (P (fst p) v)) = rho * nrm2 v.
Proof. clear steps_local steps_server steps_server2.
  intros [h0 h1]. split; [|exact round_P]. assert (k := nrm2_ge0 (/ 2 *: u - (2 * h) *: p)).
  rewrite nrm2_sub, !nrm2_scal, dot_scall, dot_scalr in k. rewrite subE, dot_addl, dot_scall. fold (nrm2 p).
  assert (k2 : 0 <= (1/2 - h) * ((1 + 5 * h) * nrm2 p)) by (assert (p0 := nrm2_ge0 p); apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra). lra.
Qed.

(* 3.11 *)
Definition vall : R := EE (K - 1) (fun w h => nrm2 (P w (qv h))).
Lemma qv_square k : EE k (fun w h => nrm2 (P w (qv h))) = sum N (fun i => sum k (vik i)).
Proof.
  rewrite <- sum_swap. unfold EE. transitivity (draw (fun w => sum k (fun j => sum N (fun i => path (ker s w) j (fun h => ker s w h (fun z => nrm2 (P w (z i)))))))).
  - apply ex_ext; intros w. assert (pw := Pproj w).
    rewrite (ex_ext _ _ (fun h => nrm2 (pvsum (fun _ (z : noise) => P w (vsum N z)) h))) by (intros; unfold qv; now rewrite P_pvsum).
    rewrite (noise_squares (ker s w) (fun _ (z : noise) => P w (vsum N z))).
    + apply sum_ext; intros j _. rewrite <- ex_sum. apply ex_ext; intros h.
      rewrite (ex_ext (ker s w h) _ (fun z => nrm2 (vsum N (fun i => P w (z i))))) by (intros; now rewrite p_vsum).
      apply (uncorrelated (ker s w h) (fun i z => P w (z i))). intros i l hl.
      rewrite (ex_ext (ker s w h) _ (fun z => dot (z i) (P w (z l)))) by (intros; apply p_dot, pw). apply noise_P; lia.
    + intros h u. rewrite <- (all_mean0 w h (P w u)). apply ex_ext; intros z. symmetry. apply (p_sym _ pw).
  - rewrite ex_sum. apply sum_ext; intros j _. rewrite ex_sum. reflexivity.
Qed.
Lemma eik_S i k : (i < N)%nat -> eta ^ 2 * vik i k <= eik i (S k).
Proof. clear steps_local steps_server steps_server2.
  intros hi. unfold eik, vik. rewrite EE_S, <- EE_scal. apply EE_le; intros w h _. assert (pw := Pproj w).
  set (Y := (uu w i h - eta *: P w (a w i h + d i))%V).
  rewrite (ex_ext (ker s w h) (fun z => e w i (z :: h)) (fun z => nrm2 Y + ((-2) * eta * dot (P w Y) (z i) + eta ^ 2 * nrm2 (P w (z i))))).
  - rewrite !ex_plus, !ex_scal, ex_const, noise_mean0 by auto. assert (y0 := nrm2_ge0 Y). lra.
  - intros z. change (e w i (z :: h)) with (nrm2 (uu w i (z :: h))). rewrite loc_S. fold Y.
    rewrite nrm2_sub, nrm2_scal, dot_scalr, (p_sym _ pw Y). ring.
Qed.
Lemma eik_0 i : eik i 0 = 0.
Proof. apply EE_0. intros w. rewrite path_0. unfold e. simpl. replace (x - x)%V with v0 by vring. apply nrm2_0. Qed.
Lemma eik_ge0 i k : 0 <= eik i k.
Proof. rewrite <- (EE_const k 0). apply EE_le; intros. apply e_ge0. Qed.
Lemma DDE : DD = / (INR N * INR K) * sum N (fun i => sum K (eik i)).
Proof.
  unfold DD. change (round s (fun p => Dw (fst p) (snd p))) with (EE K Dw). unfold Dw, meanR.
  rewrite EE_scal, EE_sum, (sum_ext N _ (fun i => / INR K * sum K (eik i))).
  - rewrite sum_scal. field. lra.
  - intros i _. rewrite EE_scal. f_equal. unfold EE, Se. rewrite (ex_ext draw _ (fun w => sum K (fun j => path (ker s w) j (e w i)))).
    + now rewrite ex_sum.
    + intros w. rewrite path_psum. apply sum_ext; intros j _. apply ex_ext; intros h. apply ex_const.
Qed.
Lemma sum_mono n m (f : nat -> R) : (n <= m)%nat -> (forall k, 0 <= f k) -> sum n f <= sum m f.
Proof. intros h f0. induction h; [lra|]. simpl. specialize (f0 m). lra. Qed.
Lemma sum_shift n (f : nat -> R) : f 0%nat + sum n (fun k => f (S k)) = sum (S n) f.
Proof. induction n; [simpl; ring|]. rewrite sum_S, <- Rplus_assoc, IHn. reflexivity. Qed.
Lemma step_3_11 : 0 < L -> 1 <= eta * L ->
  (forall i k, (i < N)%nat -> (k < K)%nat -> Cik i k ^ 2 <= L ^ 2 * eik i k * vall) /\
  vall <= / eta ^ 2 * sum N (fun i => sum K (eik i)) /\
  sum N (fun i => sum K (Cik i)) <= L * sqrt (INR N * (INR K - 1)) / eta * sum N (fun i => sum K (eik i)) /\
  L * etat * EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h))) <= L * etat / 2 * (L * L * DD).
Proof. clear steps_local steps_server steps_server2.
  intros L1 h1. assert (l2 := pow2_ge_0 L). assert (e2 : 0 < eta ^ 2) by (apply pow_lt; lra).
  set (E := sum N (fun i => sum K (eik i))).
  assert (E0 : 0 <= E) by (apply sum_ge0; intros; apply sum_ge0; intros; apply eik_ge0).
  assert (vm : forall k, (k < K)%nat -> EE k (fun w h => nrm2 (P w (qv h))) <= vall).
  { intros k hk. unfold vall. rewrite !qv_square. apply sum_le; intros i _. apply sum_mono; [lia|]. intros; apply vik_ge0. }
  assert (pa : forall i k, (i < N)%nat -> EE k (fun w h => nrm2 (P w (a w i h))) <= L ^ 2 * eik i k).
  { intros i k hi. unfold eik. rewrite <- EE_scal. apply EE_le; intros w h _. eapply Rle_trans; [apply p_le, Pproj|].
    assert (l := lip i hi (loc s w i h) x). unfold a, e. lra. }
  assert (V0 : 0 <= vall) by (rewrite <- (EE_const (K - 1) 0); apply EE_le; intros; apply nrm2_ge0).
  assert (c1 : forall i k, (i < N)%nat -> (k < K)%nat -> Cik i k ^ 2 <= L ^ 2 * eik i k * vall).
  { intros i k hi hk.
    assert (cs := ex_cauchy_schwarz (bind draw (fun w => path (ker s w) k)) (fun p => P (fst p) (a (fst p) i (snd p))) (fun p => P (fst p) (qv (snd p)))).
    change (Cik i k ^ 2 <= EE k (fun w h => nrm2 (P w (a w i h))) * EE k (fun w h => nrm2 (P w (qv h)))) in cs.
    eapply Rle_trans; [exact cs|]. specialize (pa i k hi). specialize (vm k hk).
    apply Rmult_le_compat; auto; rewrite <- (EE_const k 0); apply EE_le; intros; apply nrm2_ge0. }
  assert (c2 : vall <= / eta ^ 2 * E).
  { unfold vall, E. rewrite qv_square, <- sum_scal. apply sum_le; intros i hi. rewrite <- sum_scal.
    assert (m : sum (K - 1) (vik i) <= sum (K - 1) (fun k => / eta ^ 2 * eik i (S k))).
    { apply sum_le; intros k _. assert (q := eik_S i k hi). apply (Rmult_le_reg_l (eta ^ 2)); auto.
      rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l; lra. }
    eapply Rle_trans; [exact m|]. rewrite !sum_scal. apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|].
    assert (sh := sum_shift (K - 1) (eik i)). rewrite eik_0 in sh. replace (S (K - 1)) with K in sh by lia. lra. }
  set (R1 := INR N * (INR K - 1)). assert (kk : 1 <= INR K) by (apply (le_INR 1); lia).
  assert (R0 : 0 <= R1) by (unfold R1; apply Rmult_le_pos; lra).
  assert (c3 : sum N (fun i => sum K (Cik i)) <= L * sqrt R1 / eta * E).
  { assert (C0 : forall i, Cik i 0 = 0).
    { intros i. apply EE_0. intros w. rewrite path_0. unfold qv. cbn [pvsum]. rewrite (p_0 _ (Pproj w)). apply dot_0r. }
    assert (sh : forall i, sum K (Cik i) = sum (K - 1) (fun k => Cik i (S k))).
    { intros i. assert (q := sum_shift (K - 1) (Cik i)). rewrite C0 in q. replace (S (K - 1)) with K in q by lia. lra. }
    rewrite (sum_ext N _ _ (fun i _ => sh i)).
    destruct (Req_dec R1 0) as [z|z].
    - assert (K - 1 = 0)%nat as ->.
      { destruct (Nat.eq_dec K 1) as [->|ne]; [reflexivity|]. exfalso. assert (2 <= INR K) by (apply (le_INR 2); lia).
        assert (0 < R1) by (unfold R1; apply Rmult_lt_0_compat; lra). lra. }
      simpl. rewrite sum_const, z, sqrt_0. replace (L * 0 / eta * E) with 0 by (field; lra). lra.
    - assert (r0 : 0 < sqrt R1) by (apply sqrt_lt_R0; lra). assert (rr : sqrt R1 * sqrt R1 = R1) by (apply sqrt_def; lra).
      set (lam := sqrt R1 / (L * eta)). assert (l0 : 0 < lam) by (apply Rdiv_lt_0_compat; auto; now apply Rmult_lt_0_compat).
      assert (one : forall i k, (i < N)%nat -> (k < K - 1)%nat -> Cik i (S k) <= lam / 2 * (L ^ 2 * eik i (S k)) + / (2 * lam) * vall).
      { intros i k hi hk. specialize (c1 i (S k) hi ltac:(lia)). set (C := Cik i (S k)) in *.
        assert (q : 2 * C <= lam * (L ^ 2 * eik i (S k)) + / lam * vall); [|replace (/ (2 * lam)) with (/ lam / 2) by (field; lra); lra].
        set (X := L ^ 2 * eik i (S k)) in *. assert (X0 : 0 <= X) by (unfold X; assert (q := eik_ge0 i (S k)); pos).
        assert (il : 0 < / lam) by now apply Rinv_0_lt_compat.
        assert (y0 : 0 <= lam * X + / lam * vall) by (apply Rplus_le_le_0_compat; pos).
        apply Rsqr_incr_0_var; auto. unfold Rsqr.
        replace ((lam * X + / lam * vall) * (lam * X + / lam * vall)) with ((lam * X - / lam * vall) ^ 2 + 4 * (X * vall)) by (field; lra).
        assert (p2 := pow2_ge_0 (lam * X - / lam * vall)). lra. }
      assert (le : sum N (fun i => sum (K - 1) (fun k => Cik i (S k)))
        <= sum N (fun i => lam / 2 * L ^ 2 * sum K (eik i) + / (2 * lam) * vall * (INR K - 1))).
      { apply sum_le; intros i hi. assert (q := sum_shift (K - 1) (eik i)). rewrite eik_0, Rplus_0_l in q. replace (S (K - 1)) with K in q by lia.
        rewrite <- q. replace (INR K - 1) with (INR (K - 1)) by (rewrite minus_INR by lia; simpl; ring).
        eapply Rle_trans; [apply sum_le; intros k hk; apply one; auto|]. rewrite sum_plus, !sum_scal, sum_const. lra. }
      eapply Rle_trans; [exact le|]. rewrite sum_plus, sum_scal, sum_const. fold E.
      assert (v1 := Rmult_le_compat_l (/ (2 * lam) * R1) _ _ ltac:(apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|lra]) c2).
      unfold R1 in v1 at 1. eapply Rle_trans with (lam / 2 * L ^ 2 * E + / (2 * lam) * R1 * (/ eta ^ 2 * E)).
      + unfold R1 in *. lra.
      + right. transitivity (L * sqrt R1 / eta * E / 2 + L * (sqrt R1 * sqrt R1) / (sqrt R1 * eta) * E / 2).
        * rewrite rr. unfold lam. field. lra.
        * field. lra. }
  repeat split; auto. rewrite (proj1 step_3_6), DDE. fold E.
  assert (t0 := Rlt_le _ _ etat_gt0).
  assert (sq : sqrt R1 <= INR N * INR K / 2).
  { rewrite <- (sqrt_square (INR N * INR K / 2)) by (assert (0 <= INR N * INR K) by pos; lra). apply sqrt_le_1_alt. unfold R1.
    assert (n1 : 1 <= INR N) by (apply (le_INR 1); lia). assert (q1 := pow2_ge_0 (INR K - 2)).
    assert (q2 : 0 <= INR N * (INR K - 2) ^ 2) by pos. assert (q3 : 0 <= (INR N - 1) * (INR N * INR K ^ 2)) by (assert (q := pow2_ge_0 (INR K)); pos). lra. }
  assert (ie : / eta <= L).
  { apply (Rmult_le_reg_l eta); auto. rewrite Rinv_r by lra. lra. }
  assert (nk : 0 < INR N * INR K) by now apply Rmult_lt_0_compat. assert (ink := Rinv_0_lt_compat _ nk).
  assert (s0 := sqrt_pos R1). assert (ie0 := Rinv_0_lt_compat _ eta0).
  assert (f1 : L * sqrt R1 / eta * E <= L * (INR N * INR K / 2) * L * E).
  { apply Rmult_le_compat_r; auto. unfold Rdiv at 1. apply Rmult_le_compat; try lra; try pos. apply Rmult_le_compat_l; lra. }
  assert (f2 := Rle_trans _ _ _ c3 f1). replace (/ (INR N * INR K) ^ 2) with (/ (INR N * INR K) * / (INR N * INR K)) by (field; lra).
  set (I := / (INR N * INR K)) in *. assert (f3 : I * I * sum N (fun i => sum K (Cik i)) <= I * I * (L * (INR N * INR K / 2) * L * E)) by (apply Rmult_le_compat_l; pos).
  replace (I * I * (L * (INR N * INR K / 2) * L * E)) with (/ 2 * (L * L * (I * E))) in f3 by (unfold I; field; lra).
  apply (Rmult_le_compat_l (L * etat)) in f3; [|pos]. lra.
Qed.
(* the claim of Lemma 3 as printed, for steps of the server twice as long and any eta *)
Lemma u_in_range w i h : P w (uu w i h) = uu w i h.
Proof.
  assert (pw := Pproj w). unfold uu. rewrite step_2_1, oppE, !(p_scal _ pw), (p_idem _ pw). reflexivity.
Qed.
Lemma one_step w i h n t pp : (i < N)%nat -> 0 < L -> 0 <= t <= 1 ->
  t * (- dot (b_ w i h) (- etat *: (P w pp + P w n) - uu w i h) + - (/ (4 * L)) * nrm2 (b_ w i h))
  <= etat * (t * dot (b_ w i h) (P w n)) + / L * (3/2 * (L * L * e w i h) + ((L * etat) * (L * etat) * nrm2 (P w pp)
    + - (2 * (L * etat)) * dot (P w (a w i h)) (P w pp) + - (1/2) * nrm2 (P w (a w i h)))).
Proof. clear steps_local steps_server steps_server2.
  intros hi L1 ht. assert (pw := Pproj w). set (U := (L *: uu w i h)%V). set (A := P w (a w i h)).
  assert (au : nrm2 A <= nrm2 U).
  { unfold A, U. eapply Rle_trans; [apply p_le, pw|]. rewrite nrm2_scal. apply lip, hi. }
  assert (h9 := step_3_9 A U (P w pp) (L * etat) t au ht). cbv zeta in h9.
  assert (Pb : P w (b_ w i h) = (U - A)%V).
  { unfold b_, U, A. rewrite (p_sub _ pw), (p_scal _ pw), u_in_range. reflexivity. }
  assert (e1 : dot (b_ w i h) (uu w i h) = / L * dot (U - A) U).
  { rewrite <- u_in_range, <- (p_sym _ pw), Pb. unfold U. rewrite dot_scalr. field. lra. }
  assert (e2 : dot (b_ w i h) (P w pp) = dot (U - A) (P w pp)).
  { rewrite <- (p_dot _ pw), Pb. reflexivity. }
  assert (e3 : nrm2 (U - A) <= nrm2 (b_ w i h)) by (rewrite <- Pb; apply p_le, pw).
  assert (e4 : nrm2 U = L * L * e w i h) by (unfold U; apply nrm2_scal).
  rewrite e4 in *. rewrite subE, dot_addr, dot_scalr, dot_scalr, dot_addr, e1, e2.
  rewrite dot_addr, dot_scalr in h9.
  set (x1 := dot (U - A) U) in *. set (x2 := dot (U - A) (P w pp)) in *. set (x3 := dot (b_ w i h) (P w n)) in *.
  set (x4 := nrm2 (U - A)) in *. set (x5 := nrm2 (b_ w i h)) in *.
  assert (il : 0 < / L) by now apply Rinv_0_lt_compat.
  assert (k1 : 0 <= t * (/ L * (x5 - x4))) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra).
  apply (Rmult_le_compat_l (/ L)) in h9; [|lra].
  replace (/ (4 * L)) with (/ L / 4) by (field; lra).
  assert (LL : / L * (L * etat) = etat) by (field; lra).
  assert (k2 : / L * (t * (L * etat * x2)) = t * (etat * x2)) by (rewrite <- LL at 2; ring).
  clear - h9 k1 k2. lra.
Qed.
Lemma client_path w i h : (i < N)%nat -> 0 < L -> eta * L <= 1 -> L * etat <= 1 -> length h = K ->
  let sv := (- etat *: (P w (G x + bb w h) + P w (nn h)))%V in
  F i (x + sv)%V <= F i x + (dot (g i x) sv + (L / 2 * nrm2 sv + (L * etat / INR K * (etat * bn w i h)
    + etat * (/ INR K * (3/2 * (L * L * Se w i h) + ((L * etat) * (L * etat) * nrm2 (P w (G x + bb w h)) * INR K
    + (- (2 * (L * etat)) * dot (P w (Sa w i h)) (P w (G x + bb w h)) + - (1/2) * psum (fun h (_ : noise) => nrm2 (P w (a w i h))) h))))))).
Proof. clear steps_local steps_server steps_server2.
  intros hi L1 h1 hh hk sv. assert (pw := Pproj w). assert (tr := tau_range h1). assert (t0 := Rlt_le _ _ etat_gt0).
  set (X := F i (x + sv)%V - (F i x + dot (g i x) sv + L / 2 * nrm2 sv)).
  assert (X0 : X <= 0) by (unfold X; assert (q := smooth (F i) (g i) L L0 (grad i hi) (lip i hi) x sv); lra).
  set (Y := fun h' => - dot (b_ w i h') (sv - uu w i h') + - (/ (4 * L)) * nrm2 (b_ w i h')).
  assert (XY : forall h', X <= Y h').
  { intros h'. assert (q := step_3_5 (F i) (g i) L L1 (grad i hi) (lip i hi) x (uu w i h') sv). cbv zeta in q.
    replace (x + uu w i h')%V with (loc s w i h') in q by (unfold uu; vring).
    fold (a w i h') in q. fold (b_ w i h') in q. unfold X, Y. lra. }
  set (c := L * etat / INR K). assert (c0 : 0 <= c) by (unfold c, Rdiv; pos).
  assert (tot : X <= c * psum (fun h' (_ : noise) => tau (length h') * Y h') h).
  { apply Rle_trans with (c * psum (fun h' (_ : noise) => tau (length h') * X) h).
    - assert (q : psum (fun h' (_ : noise) => X) h <= psum (fun h' (_ : noise) => tau (length h') * X) h).
      { apply psum_le; intros h' _. destruct (tr (length h')). assert (0 <= (1 - tau (length h')) * - X) by (apply Rmult_le_pos; lra). lra. }
      rewrite psum_const, hk in q. apply (Rmult_le_compat_l c) in q; auto. eapply Rle_trans; [|exact q].
      replace (c * (INR K * X)) with (L * etat * X) by (unfold c; field; lra).
      assert (0 <= (1 - L * etat) * - X) by (apply Rmult_le_pos; lra). lra.
    - apply Rmult_le_compat_l; auto. apply psum_le; intros h' _. apply Rmult_le_compat_l; [apply tr|apply XY]. }
  assert (b : psum (fun h' (_ : noise) => tau (length h') * Y h') h <= etat * bn w i h + / L * (3/2 * (L * L * Se w i h)
    + ((L * etat) * (L * etat) * nrm2 (P w (G x + bb w h)) * INR K
    + (- (2 * (L * etat)) * dot (P w (Sa w i h)) (P w (G x + bb w h)) + - (1/2) * psum (fun h (_ : noise) => nrm2 (P w (a w i h))) h)))).
  { set (pv := (G x + bb w h)%V).
    eapply Rle_trans; [apply (psum_le _ (fun h' (_ : noise) => etat * (tau (length h') * dot (b_ w i h') (P w (nn h)))
      + / L * (3/2 * (L * L) * e w i h' + ((L * etat) * (L * etat) * nrm2 (P w pv) + (- (2 * (L * etat)) * dot (P w (a w i h')) (P w pv)
      + - (1/2) * nrm2 (P w (a w i h')))))))|].
    - intros h' _. assert (q := one_step w i h' (nn h) (tau (length h')) pv hi L1 (tr (length h'))).
      unfold Y, sv. fold pv. replace (3/2 * (L * L) * e w i h') with (3/2 * (L * L * e w i h')) by ring. lra.
    - rewrite psum_plus, !psum_scal, !psum_plus, !psum_scal, psum_const, hk.
      rewrite (psum_dot (fun h' (_ : noise) => P w (a w i h'))). unfold Sa. rewrite P_pvsum.
      change (psum (fun h' (_ : noise) => e w i h') h) with (Se w i h).
      change (psum (fun h' (_ : noise) => tau (length h') * dot (b_ w i h') (P w (nn h))) h) with (bn w i h). right. ring. }
  assert (tot2 := Rle_trans _ _ _ tot (Rmult_le_compat_l c _ _ c0 b)).
  set (W := 3/2 * (L * L * Se w i h) + _) in *. replace (c * (etat * bn w i h + / L * W)) with (c * (etat * bn w i h) + etat * (/ INR K * W)) in tot2
    by (unfold c; field; lra).
  unfold X in tot2. lra.
Qed.
Lemma printed_path w h : 0 < L -> eta * L <= 1 -> L * etat <= 1/2 -> length h = K ->
  Favg (sx (step s (w, h))) <= Favg x + (- (etat / 4) * nrm2 (P w (G x)) + (3/2 * etat * (L * L) * Dw w h
    + (L * etat ^ 2 / 2 * nrm2 (P w (nn h)) + (- etat * dot (G x) (P w (nn h))
    + (L * etat ^ 2 * dot (P w (G x + bb w h)) (P w (nn h)) + L * etat / (INR N * INR K) * (etat * sum N (fun i => bn w i h))))))).
Proof. clear steps_local steps_server steps_server2.
  intros L1 h1 hh hk. assert (pw := Pproj w). rewrite (step_1_2 w h hk). assert (t0 := etat_gt0).
  replace (- etat *: P w (G x + bb w h + nn h))%V with (- etat *: (P w (G x + bb w h) + P w (nn h)))%V by (now rewrite (p_add _ pw (G x + bb w h)%V)).
  set (sv := (- etat *: (P w (G x + bb w h) + P w (nn h)))%V).
  set (p := P w (G x + bb w h)) in *. set (n := P w (nn h)) in *.
  set (A2 := meanR (fun i => / INR K * psum (fun h (_ : noise) => nrm2 (P w (a w i h))) h)).
  assert (pg : (p - P w (G x) = P w (bb w h))%V) by (unfold p; rewrite (p_add _ pw); vring).
  assert (all : Favg (x + sv) <= Favg x + (dot (G x) sv + (L / 2 * nrm2 sv + (L * etat / (INR N * INR K) * (etat * sum N (fun i => bn w i h))
    + etat * (3/2 * (L * L * Dw w h) + ((L * etat) * (L * etat) * nrm2 p + (- (2 * (L * etat)) * dot (P w (bb w h)) p + - (1/2) * A2))))))).
  { unfold Favg. eapply Rle_trans; [apply meanR_le; intros i hi; apply (client_path w i h hi L1 h1 ltac:(lra) hk)|].
    fold sv. rewrite !meanR_plus, !meanR_scal.
    right. f_equal. f_equal; [unfold G; now rewrite meanV_dot|]. f_equal; [f_equal; apply meanR_const|]. f_equal.
    - unfold meanR. field. lra.
    - f_equal. rewrite <- meanR_scal, (meanR_ext _ (fun i => 3/2 * (L * L) * (/ INR K * Se w i h) + (L * etat * (L * etat) * nrm2 p
        + (- (2 * (L * etat)) * (/ INR K * dot (P w (Sa w i h)) p) + - (1/2) * (/ INR K * psum (fun h (_ : noise) => nrm2 (P w (a w i h))) h))))).
      + assert (eb : meanR (fun i => / INR K * dot (P w (Sa w i h)) p) = dot (P w (bb w h)) p).
        { unfold bb. rewrite <- meanV_P, meanV_dot. apply meanR_ext; intros i _. now rewrite (p_scal _ pw), dot_scall. }
        rewrite !meanR_plus, !meanR_scal, meanR_const in *. rewrite eb. unfold Dw, A2. rewrite !meanR_scal. ring.
      + intros i _. fold p. field. lra. }
  eapply Rle_trans; [exact all|].
  assert (gs : dot (G x) sv = - etat * (dot (P w (G x)) p + dot (G x) n)).
  { unfold sv. rewrite dot_scalr, dot_addr. f_equal. f_equal. unfold p. now rewrite p_dot. }
  assert (ss : nrm2 sv = etat * etat * (nrm2 p + 2 * dot p n + nrm2 n)) by (unfold sv; rewrite nrm2_scal, nrm2_add; ring).
  assert (ab : nrm2 (P w (bb w h)) <= A2).
  { unfold bb. rewrite <- meanV_P. eapply Rle_trans; [apply nrm2_meanV|]. apply meanR_le; intros i hi.
    rewrite (p_scal _ pw), nrm2_scal. unfold Sa. rewrite P_pvsum.
    assert (q := nrm2_pvsum (fun h (_ : noise) => P w (a w i h)) h). rewrite hk in q.
    apply (Rmult_le_compat_l (/ INR K * / INR K)) in q; [|pos]. eapply Rle_trans; [exact q|]. right. field. lra. }
  destruct (step_3_10 (P w (G x)) p (L * etat) ltac:(assert (0 <= L * etat) by (assert (t1 := Rlt_le _ _ t0); pos); lra)) as [h10 _].
  rewrite pg in h10. rewrite <- pg, nrm2_sub in ab. rewrite <- pg in *. rewrite gs, ss.
  rewrite (dotC p (P w (G x))) in ab.
  assert (ab2 := Rmult_le_compat_l etat _ _ (Rlt_le _ _ t0) ab). apply (Rmult_le_compat_l etat) in h10; [|lra].
  set (cc := dot (p - P w (G x)) p) in *. clear - ab2 h10. lra.
Qed.
Lemma plain_path w h : length h = K -> Favg (sx (step s (w, h))) <= Favg x + (- (etat / 2) * nrm2 (P w (G x))
  + (1/2 * etat * (L * L) * Dw w h + (- (etat * (1 - L * etat) / 2) * nrm2 (P w (G x + bb w h))
  + (L * etat ^ 2 / 2 * nrm2 (P w (nn h)) + (- etat * dot (G x) (P w (nn h))
  + L * etat ^ 2 * dot (P w (G x + bb w h)) (P w (nn h))))))).
Proof. clear steps_local steps_server steps_server2.
  intros hk. assert (pw := Pproj w). rewrite (step_1_2 w h hk). assert (t0 := Rlt_le _ _ etat_gt0).
  eapply Rle_trans; [apply qubF|]. rewrite dot_scalr, nrm2_scal, (p_add _ pw (G x + bb w h)%V), dot_addr, nrm2_add.
  set (p := P w (G x + bb w h)) in *. set (n := P w (nn h)) in *.
  assert (pg : (p - P w (G x) = P w (bb w h))%V) by (unfold p; rewrite (p_add _ pw); vring).
  assert (gp : dot (G x) p = dot (P w (G x)) p) by (unfold p; now rewrite p_dot).
  assert (hB := Rle_trans _ _ _ (p_le _ pw (bb w h)) (bb_le w h hk)). rewrite <- pg, nrm2_sub, (dotC p) in hB.
  apply (Rmult_le_compat_l etat) in hB; auto. rewrite gp. clear - hB. lra.
Qed.
Theorem step_3_13 : 0 < L -> L * etat <= 1/2 ->
  round s (fun p => Favg (sx (step s p))) <= Favg x - rho * etat / 4 * nrm2 (G x)
    + L * etat ^ 2 * sigma ^ 2 / (2 * INR N * INR K) + 3/2 * etat * (L * L * DD).
Proof. clear steps_local steps_server steps_server2.
  intros L1 hh. assert (t0 := etat_gt0). assert (lt0 : 0 <= L * etat) by (assert (q := Rlt_le _ _ t0); pos).
  assert (D0 := Rmult_le_pos _ _ (Rmult_le_pos _ _ L0 L0) (ex_ge0 (round s) (fun p => Dw (fst p) (snd p))
    (fun p => meanR_ge0 _ (fun i _ => Rmult_le_pos _ _ iK0 (Se_ge0 (fst p) i (snd p)))))). fold DD in D0.
  assert (nv := Rle_trans _ _ _ (proj1 step_3_4) (proj2 step_3_4)). set (Nv := round s (fun p => nrm2 (P (fst p) (nn (snd p))))) in *.
  assert (nv2 : L * etat ^ 2 / 2 * Nv <= L * etat ^ 2 * sigma ^ 2 / (2 * INR N * INR K)).
  { assert (c : 0 <= L * etat ^ 2 / 2) by (assert (q := pow2_ge_0 etat); assert (0 <= L * etat ^ 2) by pos; lra).
    apply (Rmult_le_compat_l _ _ _ c) in nv. eapply Rle_trans; [exact nv|]. right. field. lra. }
  destruct (Rle_dec (eta * L) 1) as [le|gt].
  - change (EE K (fun w h => Favg (sx (step s (w, h)))) <= Favg x - rho * etat / 4 * nrm2 (G x)
      + L * etat ^ 2 * sigma ^ 2 / (2 * INR N * INR K) + 3/2 * etat * (L * L * DD)).
    eapply Rle_trans; [apply EE_le; intros w h hk; apply (printed_path w h L1 le hh hk)|].
    rewrite !EE_plus, !EE_scal, EE_const, EE_sum.
    change (EE K (fun w _ => nrm2 (P w (G x)))) with (round s (fun p => nrm2 (P (fst p) (G x)))). rewrite round_P.
    change (EE K Dw) with DD. change (EE K (fun w h => nrm2 (P w (nn h)))) with Nv.
    change (EE K (fun w h => dot (G x) (P w (nn h)))) with (round s (fun p => dot (G x) (P (fst p) (nn (snd p))))). rewrite step_3_2.
    destruct (step_3_8 le) as [_ [_ [_ h8]]]. lra.
  - change (EE K (fun w h => Favg (sx (step s (w, h)))) <= Favg x - rho * etat / 4 * nrm2 (G x)
      + L * etat ^ 2 * sigma ^ 2 / (2 * INR N * INR K) + 3/2 * etat * (L * L * DD)).
    eapply Rle_trans; [apply EE_le; intros w h hk; apply (plain_path w h hk)|].
    rewrite !EE_plus, !EE_scal, EE_const.
    change (EE K (fun w _ => nrm2 (P w (G x)))) with (round s (fun p => nrm2 (P (fst p) (G x)))). rewrite round_P.
    change (EE K Dw) with DD. change (EE K (fun w h => nrm2 (P w (nn h)))) with Nv.
    change (EE K (fun w h => dot (G x) (P w (nn h)))) with (round s (fun p => dot (G x) (P (fst p) (nn (snd p))))). rewrite step_3_2.
    destruct (step_3_11 L1 ltac:(lra)) as [_ [_ [_ h11]]]. apply (Rmult_le_compat_l etat) in h11; [|lra].
    set (Ep := EE K (fun w h => nrm2 (P w (G x + bb w h)))).
    assert (p0 : 0 <= Ep) by (unfold Ep; rewrite <- (EE_const K 0); apply EE_le; intros; apply nrm2_ge0).
    set (Pn := EE K (fun w h => dot (P w (G x + bb w h)) (P w (nn h)))) in *. assert (g0 := nrm2_ge0 (G x)).
    assert (k1 : 0 <= etat * ((1 - L * etat) * Ep)) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra).
    assert (k2 : 0 <= rho * etat * nrm2 (G x)) by (assert (q := Rlt_le _ _ t0); assert (r := Rlt_le _ _ (proj1 rho01)); pos).
    assert (k3 : 0 <= etat * ((1 - L * etat / 2) * (L * L * DD))) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra).
    clear - h11 k1 k2 k3 nv2. lra.
Qed.
(* 5 and 6.5: the sum of 3 and M times 4 *)
Lemma q_range : 0 <= q <= 1/100.
Proof. unfold q. assert (0 <= INR K * L * eta) by pos. split; [apply pow2_ge_0|nra]. Qed.
Definition u_ : R := (L * etat) ^ 2 / rho.
Lemma u_ge0 : 0 <= u_.
Proof. unfold u_, Rdiv. apply Rmult_le_pos; [apply pow2_ge_0|apply Rlt_le, Rinv_0_lt_compat; lra]. Qed.
Lemma u_rho : (L * etat) ^ 2 = rho * u_.
Proof. unfold u_. field. lra. Qed.
Lemma iN_1 : 0 <= / INR N <= 1.
Proof. split; auto. rewrite <- Rinv_1. apply Rinv_le_contravar; [lra|]. apply (le_INR 1); lia. Qed.
Lemma h_ge0 : 0 <= L * etat. Proof. assert (q := Rlt_le _ _ etat_gt0). pos. Qed.
Lemma v_ge0 : 0 <= sigma ^ 2 / INR K.
Proof. unfold Rdiv. apply Rmult_le_pos; [apply pow2_ge_0|auto]. Qed.
Lemma D_ge0 : 0 <= L * L * DD. Proof. assert (D0 := DD_ge0). pos. Qed.
Lemma v_N : sigma ^ 2 / (INR N * INR K) = sigma ^ 2 / INR K * / INR N.
Proof. field. lra. Qed.
Lemma memories : round s (fun p => Cerr (step s p)) <= (1 - rho / 2) * Cerr s + 3 * (sigma ^ 2 / INR K) + (3 + 12 * u_) * (L * L * DD)
  + 12 * (rho * u_) * nrm2 (G x) + 6 * u_ * (sigma ^ 2 / INR K * / INR N).
Proof. assert (h4 := step_4_5). fold u_ in h4. rewrite u_rho, v_N in h4. lra. Qed.
Lemma potential_round : L * etat <= 1/4 -> round s (fun p => Favg (sx (step s p)) - Fstar + 2 * etat * q * Cerr (step s p))
  <= Favg x - Fstar + 2 * etat * q * Cerr s - rho * etat * (1/2 - 24 * q * u_ - 1388/1000 * q * BB q u_) * nrm2 (G x)
    - rho * etat * q * (1 - 1388/1000 * BB q u_) * Cerr s
    + etat * (q * (sigma ^ 2 / INR K)) * (6 + 12 * u_ * / INR N + 1041/1000 * BB q u_) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)).
Proof.
  intros hh. rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + 2 * etat * q * Cerr (step s p)))) by (intros; ring).
  rewrite !ex_plus, ex_const, ex_scal. assert (h0 := h_ge0).
  assert (h2 := step_2_10). assert (h3 := step_3_12 ltac:(lra)).
  assert (m := step_5_2 rho etat q u_ (L * etat) (Cerr s) (nrm2 (G x)) (L * L * DD) (Favg x)
    (round s (fun p => Favg (sx (step s p)))) (round s (fun p => Cerr (step s p))) (sigma ^ 2 / INR K)
    (L * etat * etat * (sigma ^ 2 / (INR N * INR K))) (/ INR N)
    (proj1 rho01) etat_gt0 (proj1 q_range) u_ge0 h0 ltac:(lra) D_ge0 h2 h3 memories). cbv zeta in m. lra.
Qed.
(* 6.6: the weight 1/4 in 3.3, and M = 32/5 t q *)
Definition B66 : R := 2 - L * etat + 32/5 * q * (3 + 12 * u_).
Lemma potential_66 : L * etat <= 1/4 -> round s (fun p => Favg (sx (step s p)) - Fstar + 32/5 * etat * q * Cerr (step s p))
  <= Favg x - Fstar + 32/5 * etat * q * Cerr s
    - rho * etat * (7/8 - 3/8 * (L * etat) - 384/5 * (q * u_) - 1388/1000 * q * B66) * nrm2 (G x)
    - rho * etat * q * (16/5 - 1388/1000 * B66) * Cerr s
    + etat * (q * (sigma ^ 2 / INR K)) * (96/5 + 192/5 * u_ * / INR N + 1041/1000 * B66) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)).
Proof.
  intros hh. rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + 32/5 * etat * q * Cerr (step s p)))) by (intros; ring).
  rewrite !ex_plus, ex_const, ex_scal. assert (h0 := h_ge0). assert (t0 := etat_gt0). assert (u0 := u_ge0).
  assert (h2 := step_2_10). assert (h3 := descent_weights (1/4) ltac:(lra) ltac:(lra)).
  replace ((1 - L * etat) / (2 * (1/4))) with (2 * (1 - L * etat)) in h3 by field.
  destruct q_range as [q0 q1]. assert (h4 := Rmult_le_compat_l (32/5 * etat * q) _ _ ltac:(pos) memories).
  assert (b0 : 0 <= etat * B66).
  { apply Rmult_le_pos; [lra|]. unfold B66. apply Rplus_le_le_0_compat; [lra|]. apply Rmult_le_pos; lra. }
  apply (Rmult_le_compat_l _ _ _ b0) in h2. unfold B66 in *. clear - h2 h3 h4. lra.
Qed.
End Round.

(* 5.6 for any rule of the memories, what it keeps of a state (good), any weight M, gain c and noise n *)
Lemma step_5_6 (next : state -> O * list noise -> state) (good : state -> Prop) M c n : 0 <= M -> 0 < c ->
  (forall s p, good s -> good (next s p)) ->
  (forall s, good s -> round s (fun p => Favg (sx (next s p)) - Fstar + M * Cerr (next s p))
    <= Favg (sx s) - Fstar + M * Cerr s - c * nrm2 (G (sx s)) + n) ->
  forall s0 T, good s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round next t (fun s => nrm2 (G (sx s))) s0)
  <= (Favg (sx s0) - Fstar + M * Cerr s0) / (c * INR T) + n / c.
Proof.
  intros M0 c0 hg hr s0 T h0 T0%lt_0_INR.
  assert (P0 : forall s, 0 <= Favg (sx s) - Fstar + M * Cerr s).
  { intros s. assert (b := bounded (sx s)). assert (C0 := Cerr_ge0 s). assert (0 <= M * Cerr s) by pos. lra. }
  assert (h := telescope round next good (fun s => Favg (sx s) - Fstar + M * Cerr s) (fun s => c * nrm2 (G (sx s))) n hg hr P0 T s0 h0).
  rewrite (sum_ext _ _ (fun t => c * Eit round next t (fun s => nrm2 (G (sx s))) s0)) in h by (intros; apply Eit_scal).
  rewrite sum_scal in h. assert (ic : 0 < / (c * INR T)) by (apply Rinv_0_lt_compat; now apply Rmult_lt_0_compat).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ ic)) in h.
  replace (/ (c * INR T) * (c * sum T (fun t => Eit round next t (fun s => nrm2 (G (sx s))) s0)))
    with (/ INR T * sum T (fun t => Eit round next t (fun s => nrm2 (G (sx s))) s0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
Definition average next s0 T : R := / INR T * sum T (fun t => Eit round next t (fun s => nrm2 (G (sx s))) s0).
Lemma M_ge0 a : 0 <= a -> 0 <= a * etat * q.
Proof. intros a0. assert (t0 := Rlt_le _ _ etat_gt0). destruct q_range. pos. Qed.
Lemma gain_gt0 a : 0 < a -> 0 < a * rho * etat.
Proof. intros a0. assert (t0 := etat_gt0). repeat apply Rmult_lt_0_compat; lra. Qed.

Theorem theorem (s0 : state) (T : nat) : inv s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)
   + 40 * (L ^ 2 * INR K ^ 2 * eta ^ 2) * Cerr s0 / (9 * rho * INR T)
   + 20 * L * etat * sigma ^ 2 / (9 * rho * INR N * INR K)
   + 55 * L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / (3 * rho).
Proof.
  intros h0 T0. assert (t0 := etat_gt0). assert (T1 := lt_0_INR _ T0).
  pose (n := L * etat * etat * (sigma ^ 2 / (INR N * INR K)) + 33/4 * etat * (q * (sigma ^ 2 / INR K))).
  eapply Rle_trans; [apply (step_5_6 step inv (2 * etat * q) (9/20 * rho * etat) n (M_ge0 2 ltac:(lra)) (gain_gt0 (9/20) ltac:(lra)) step_1_1); auto|].
  - intros s hs. assert (u1 : 0 <= u_ <= 1/8).
    { split; [apply u_ge0|]. unfold u_. apply (Rmult_le_reg_r rho); [apply rho01|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (p := potential_round s hs steps_server). assert (g0 := nrm2_ge0 (G (sx s))). assert (C0 := Cerr_ge0 s).
    assert (b3 := step_5_3 q u_ q_range u1). assert (b4 := step_5_4 q u_ q_range u1).
    destruct (step_5_5 q u_ (/ INR N) q_range u1 iN_1) as [b5 b6]. assert (r0 := Rlt_le _ _ (proj1 rho01)). assert (t1 := Rlt_le _ _ t0).
    assert (v0 := v_ge0). destruct q_range as [q0 _].
    assert (k1 : 0 <= rho * etat * ((1/2 - 24 * q * u_ - 1388/1000 * q * BB q u_ - 9/20) * nrm2 (G (sx s)))) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
    assert (k2 : 0 <= rho * etat * q * (1 - 1388/1000 * BB q u_) * Cerr s) by pos.
    assert (k3 : 0 <= etat * (q * (sigma ^ 2 / INR K)) * (33/4 - (6 + 12 * u_ * / INR N + 1041/1000 * BB q u_))) by (apply Rmult_le_pos; [pos|lra]).
    unfold n. clear - p k1 k2 k3. lra.
  - right. unfold n, q. field. lra.
Qed.
(* section 6 speaks of the theorem's right side *)
Theorem theorem_bound (s0 : state) (T : nat) : inv s0 -> (0 < T)%nat ->
  average step s0 T <= bound rho L (INR N) (INR K) (INR T) eta etat sigma (Favg (sx s0) - Fstar) (Cerr s0).
Proof. exact (theorem s0 T). Qed.
Lemma step_6_5 (s0 : state) (T : nat) : inv s0 -> (0 < T)%nat -> L * etat <= 1/4 ->
  (INR K * L * eta <= sqrt rho / 10 -> average step s0 T
    <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + 40 * L ^ 2 * INR K ^ 2 * eta ^ 2 * Cerr s0 / (9 * rho * INR T)
      + 103 * L * etat * sigma ^ 2 / (45 * rho * INR N * INR K) + 15 * L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / rho) /\
  (sigma = 0 -> INR K * L * eta <= 1/10 -> INR K * L * eta * (L * etat) <= sqrt (rho / 800) -> average step s0 T
    <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T) + 40 * L ^ 2 * INR K ^ 2 * eta ^ 2 * Cerr s0 / (9 * rho * INR T)).
Proof.
  intros h0 T0 hh. assert (t0 := etat_gt0). assert (T1 := lt_0_INR _ T0). assert (r0 := Rlt_le _ _ (proj1 rho01)). assert (t1 := Rlt_le _ _ t0).
  assert (hg := h_ge0). assert (u0 := u_ge0). destruct q_range as [q0 q1]. assert (a0 : 0 <= INR K * L * eta) by pos. assert (v0 := v_ge0).
  assert (common : q * u_ <= 1/800 -> forall s, inv s -> round s (fun p => Favg (sx (step s p)) - Fstar + 2 * etat * q * Cerr (step s p))
    <= Favg (sx s) - Fstar + 2 * etat * q * Cerr s - 9/20 * rho * etat * nrm2 (G (sx s))
      + (etat * (q * (sigma ^ 2 / INR K)) * (6 + 12 * u_ * / INR N + 1041/1000 * BB q u_) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)))).
  { intros qu s hs. assert (p := potential_round s hs hh). assert (g0 := nrm2_ge0 (G (sx s))). assert (C0 := Cerr_ge0 s).
    assert (qu0 : 0 <= q * u_) by pos. assert (b1 : BB q u_ <= 715/1000) by (unfold BB; lra).
    assert (b0 : 0 <= BB q u_) by (unfold BB; lra). assert (qb : q * BB q u_ <= 715/100000) by (assert (0 <= (1/100 - q) * BB q u_) by pos; lra).
    assert (k1 : 0 <= rho * etat * ((1/2 - 24 * q * u_ - 1388/1000 * q * BB q u_ - 9/20) * nrm2 (G (sx s)))) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
    assert (k2 : 0 <= rho * etat * q * ((1 - 1388/1000 * BB q u_) * Cerr s)) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
    clear - p k1 k2. lra. }
  split.
  - intros hs. assert (qr : q <= rho / 100).
    { unfold q. replace (rho / 100) with ((sqrt rho / 10) ^ 2) by (replace ((sqrt rho / 10) ^ 2) with (sqrt rho * sqrt rho / 100) by field; rewrite sqrt_def; lra).
      apply pow_incr. split; [exact a0|exact hs]. }
    assert (h2 : (L * etat) ^ 2 <= 1/4 * (L * etat)) by nra.
    assert (qu : q * u_ <= (L * etat) ^ 2 / 100).
    { rewrite u_rho. assert (0 <= (rho / 100 - q) * u_) by pos. lra. }
    assert (qu0 : 0 <= q * u_) by pos.
    pose (n := 103/100 * (L * etat * etat * (sigma ^ 2 / (INR N * INR K))) + 27/4 * etat * (q * (sigma ^ 2 / INR K))).
    eapply Rle_trans; [apply (step_5_6 step inv (2 * etat * q) (9/20 * rho * etat) n (M_ge0 2 ltac:(lra)) (gain_gt0 (9/20) ltac:(lra)) step_1_1); auto|].
    + intros s hs'. eapply Rle_trans; [apply common; auto; lra|]. rewrite v_N. unfold n. rewrite v_N. set (v := sigma ^ 2 / INR K) in *.
      assert (b1 : BB q u_ <= 7/10) by (unfold BB; lra).
      assert (i0 := proj1 iN_1). assert (k1 : 0 <= etat * (v * / INR N) * ((L * etat) / 400 * 12 - 12 * (q * u_))) by (apply Rmult_le_pos; [pos|lra]).
      assert (k2 : 0 <= etat * (q * v) * (27/4 - (6 + 1041/1000 * BB q u_))) by (apply Rmult_le_pos; [pos|lra]). clear - k1 k2. lra.
    + right. unfold n, q. field. lra.
  - intros sz h1 hp. assert (qu : q * u_ <= 1/800).
    { assert (p0 : 0 <= INR K * L * eta * (L * etat)) by pos. assert (p2 := pow_incr _ _ 2 (conj p0 hp)).
      replace (sqrt (rho / 800) ^ 2) with (rho / 800) in p2 by (rewrite <- Rsqr_pow2, Rsqr_sqrt; lra).
      unfold q, u_. replace ((INR K * L * eta) ^ 2 * ((L * etat) ^ 2 / rho)) with ((INR K * L * eta * (L * etat)) ^ 2 / rho) by (field; lra).
      apply (Rmult_le_reg_r rho); [apply rho01|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    eapply Rle_trans; [apply (step_5_6 step inv (2 * etat * q) (9/20 * rho * etat) 0 (M_ge0 2 ltac:(lra)) (gain_gt0 (9/20) ltac:(lra)) step_1_1); auto|].
    + intros s hs'. eapply Rle_trans; [apply common; auto|]. rewrite sz. right. field. lra.
    + right. unfold q. field. lra.
Qed.
Lemma step_6_6 (s0 : state) (T : nat) omega : inv s0 -> (0 < T)%nat -> omega = 153/100 \/ omega = 142/100 /\ rho = 1 ->
  average step s0 T <= omega / rho * ((Favg (sx s0) - Fstar) / (etat * INR T) + 32/5 * (L ^ 2 * INR K ^ 2 * eta ^ 2 * Cerr s0 / INR T)
    + L * etat * sigma ^ 2 / (INR N * INR K) + 132/5 * (L ^ 2 * INR K * eta ^ 2 * sigma ^ 2)).
Proof.
  intros h0 T0 ho. assert (t0 := etat_gt0). assert (T1 := lt_0_INR _ T0). assert (r0 := Rlt_le _ _ (proj1 rho01)). assert (t1 := Rlt_le _ _ t0).
  assert (hg := h_ge0). assert (u0 := u_ge0). assert (v0 := v_ge0). assert (i1 := iN_1). destruct q_range as [q0 q1]. assert (hs := steps_server).
  assert (u1 : u_ <= 1/8).
  { unfold u_. apply (Rmult_le_reg_r rho); [apply rho01|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (qu0 : 0 <= q * u_) by pos. assert (qu1 : q * u_ <= 1/100 * u_) by (assert (0 <= (1/100 - q) * u_) by pos; lra).
  assert (b1 : B66 <= 2 - L * etat + 32/5 * (3/100 + 12/100 * u_)) by (unfold B66; lra).
  assert (b0 : 0 <= B66) by (unfold B66; lra). assert (qb : q * B66 <= 1/100 * B66) by (assert (0 <= (1/100 - q) * B66) by pos; lra).
  assert (w0 : 0 < omega) by (destruct ho as [->|[-> _]]; lra).
  assert (gain : / omega <= 7/8 - 3/8 * (L * etat) - 384/5 * (q * u_) - 1388/1000 * q * B66).
  { destruct ho as [->|[-> r1]]; [lra|]. assert (uh : u_ <= 1/16) by (unfold u_; rewrite r1; nra). lra. }
  pose (n := L * etat * etat * (sigma ^ 2 / (INR N * INR K)) + 132/5 * etat * (q * (sigma ^ 2 / INR K))).
  assert (io : 0 < / omega) by now apply Rinv_0_lt_compat.
  unfold average. eapply Rle_trans; [apply (step_5_6 step inv (32/5 * etat * q) (/ omega * rho * etat) n (M_ge0 (32/5) ltac:(lra)) (gain_gt0 _ io) step_1_1); auto|].
  - intros s hs'. eapply Rle_trans; [apply (potential_66 s hs' steps_server)|]. assert (g0 := nrm2_ge0 (G (sx s))). assert (C0 := Cerr_ge0 s).
    assert (k1 : 0 <= rho * etat * ((7/8 - 3/8 * (L * etat) - 384/5 * (q * u_) - 1388/1000 * q * B66 - / omega) * nrm2 (G (sx s)))) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
    assert (k2 : 0 <= rho * etat * q * ((16/5 - 1388/1000 * B66) * Cerr s)) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
    assert (ui : u_ * / INR N <= u_) by (assert (0 <= u_ * (1 - / INR N)) by (apply Rmult_le_pos; lra); lra).
    assert (k3 : 0 <= etat * (q * (sigma ^ 2 / INR K)) * (132/5 - (96/5 + 192/5 * u_ * / INR N + 1041/1000 * B66))) by (apply Rmult_le_pos; [pos|lra]).
    unfold n. clear - k1 k2 k3. lra.
  - right. unfold n, q. field. lra.
Qed.

(* 7.2, 7.3: no memory, and a perfect one *)
Definition no_memory s : Prop := sci s = (fun _ => v0) /\ sc s = v0.
Definition perfect s : Prop := sci s = (fun i => g i (sx s)) /\ sc s = G (sx s).
Definition step_none s p : state := {| sx := sx (step s p); sci := fun _ => v0; sc := v0 |}.
Definition step_perfect s p : state := {| sx := sx (step s p); sci := fun i => g i (sx (step s p)); sc := G (sx (step s p)) |}.
Definition spread y : R := meanR (fun i => nrm2 (g i y - G y)).
Lemma step_7_2 s zeta : no_memory s -> spread (sx s) <= zeta ^ 2 ->
  (forall i, d s i = g i (sx s)) /\ meanR (fun i => nrm2 (d s i)) <= nrm2 (G (sx s)) + zeta ^ 2.
Proof.
  intros [e1 e2] hz. assert (e : forall i, d s i = g i (sx s)) by (intros i; unfold d; rewrite e1, e2; vring).
  split; [exact e|]. rewrite (meanR_ext _ (fun i => nrm2 (G (sx s)) + (2 * dot (g i (sx s) - G (sx s)) (G (sx s)) + nrm2 (g i (sx s) - G (sx s))))).
  - rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot (fun i => g i (sx s) - G (sx s))%V), meanV_sub, meanV_const.
    change (meanV (fun i => g i (sx s))) with (G (sx s)). replace (G (sx s) - G (sx s))%V with v0 by vring. rewrite dot_0l. fold (spread (sx s)). lra.
  - intros i _. rewrite e. replace (nrm2 (g i (sx s))) with (nrm2 ((g i (sx s) - G (sx s)) + G (sx s)))%V by (f_equal; vring). rewrite nrm2_add. ring.
Qed.
Lemma descent_alone s z2 : inv s -> 0 <= z2 -> meanR (fun i => nrm2 (d s i)) <= nrm2 (G (sx s)) + z2 ->
  round s (fun p => Favg (sx (step s p))) <= Favg (sx s) - 491/1000 * rho * etat * nrm2 (G (sx s))
    + rho * etat * (8675/10000 * q * z2) + (L * etat * etat * (sigma ^ 2 / (INR N * INR K)) + 650625/1000000 * etat * (q * (sigma ^ 2 / INR K))).
Proof.
  intros hi z0 hd. assert (t1 := Rlt_le _ _ etat_gt0). assert (hs := steps_server). assert (hg := h_ge0).
  assert (h3 := step_3_12 s hi ltac:(lra)). assert (h2 := drift_unit s _ hd). assert (g0 := nrm2_ge0 (G (sx s))). assert (v0 := v_ge0).
  destruct q_range as [q0 q1]. assert (r0 := Rlt_le _ _ (proj1 rho01)).
  assert (k0 : 0 <= (5/8 - (1 + L * etat) / 2) * (etat * (L * L * DD s))) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|apply D_ge0]).
  assert (k1 := Rmult_le_compat_l (5/8 * etat) _ _ ltac:(lra) h2).
  assert (k2 : 0 <= rho * etat * ((1/100 - q) * nrm2 (G (sx s)))) by pos.
  assert (k3 : 0 <= rho * etat * nrm2 (G (sx s))) by pos. assert (k4 : 0 <= rho * etat * (q * z2)) by pos.
  assert (k5 : 0 <= etat * (q * (sigma ^ 2 / INR K))) by pos.
  clear - h3 k0 k1 k2 k3 k4 k5. lra.
Qed.
Lemma step_7_3 (s0 : state) (T : nat) : (0 < T)%nat ->
  (forall zeta, (forall y, spread y <= zeta ^ 2) -> no_memory s0 -> average step_none s0 T
    <= 205/100 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T)) + 18/10 * (L ^ 2 * INR K ^ 2 * eta ^ 2 * zeta ^ 2)
      + 205/100 * (L * etat * sigma ^ 2 / (rho * INR N * INR K)) + 4/3 * (L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / rho)) /\
  (perfect s0 -> average step_perfect s0 T
    <= 205/100 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T))
      + 205/100 * (L * etat * sigma ^ 2 / (rho * INR N * INR K)) + 4/3 * (L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / rho)).
Proof.
  intros T0. assert (T1 := lt_0_INR _ T0). assert (t0 := etat_gt0).
  pose (n := fun z2 => rho * etat * (8675/10000 * q * z2) + (L * etat * etat * (sigma ^ 2 / (INR N * INR K)) + 650625/1000000 * etat * (q * (sigma ^ 2 / INR K)))).
  assert (main : forall next (good : state -> Prop) z2, 0 <= z2 -> (forall s p, good s -> good (next s p)) -> (forall s p, sx (next s p) = sx (step s p)) ->
    (forall s, good s -> inv s /\ meanR (fun i => nrm2 (d s i)) <= nrm2 (G (sx s)) + z2) -> good s0 ->
    average next s0 T <= (Favg (sx s0) - Fstar + 0 * Cerr s0) / (491/1000 * rho * etat * INR T) + n z2 / (491/1000 * rho * etat)).
  { intros next good z2 z0 hg hx hd g0. apply (step_5_6 next good 0 (491/1000 * rho * etat) (n z2) (Rle_refl 0) (gain_gt0 (491/1000) ltac:(lra)) hg); auto.
    intros s hs. destruct (hd s hs) as [hi hm]. assert (a := descent_alone s z2 hi z0 hm).
    rewrite (ex_ext _ _ (fun p => - Fstar + Favg (sx (step s p)))) by (intros; rewrite hx; ring).
    rewrite ex_plus, ex_const. unfold n. clear - a. lra. }
  assert (D0 : 0 <= (Favg (sx s0) - Fstar) / (rho * etat * INR T)).
  { assert (b := bounded (sx s0)). apply Rmult_le_pos; [lra|]. apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra. }
  assert (s2 := pow2_ge_0 sigma). assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta). assert (k2 := pow2_ge_0 (INR K)). assert (t1 := Rlt_le _ _ t0).
  assert (n1 : 0 <= L * etat * sigma ^ 2 / (rho * INR N * INR K)).
  { apply Rmult_le_pos; [pos|]. apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra. }
  assert (n2 : 0 <= L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / rho).
  { apply Rmult_le_pos; [pos|]. apply Rlt_le, Rinv_0_lt_compat; lra. }
  assert (form : forall z2, (Favg (sx s0) - Fstar + 0 * Cerr s0) / (491/1000 * rho * etat * INR T) + n z2 / (491/1000 * rho * etat)
    = 1000/491 * ((Favg (sx s0) - Fstar) / (rho * etat * INR T)) + 8675/4910 * (L ^ 2 * INR K ^ 2 * eta ^ 2 * z2)
      + 1000/491 * (L * etat * sigma ^ 2 / (rho * INR N * INR K)) + 650625/491000 * (L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / rho)).
  { intros z2. unfold n, q. field. lra. }
  split.
  - intros zeta hz h0. eapply Rle_trans; [apply (main step_none no_memory (zeta ^ 2) (pow2_ge_0 zeta)); auto|].
    + intros s p _. split; reflexivity.
    + intros s hs. split; [|apply (step_7_2 s zeta hs), hz]. destruct hs as [f1 f2]. unfold inv. rewrite f1, f2. symmetry. apply meanV_const.
    + rewrite form. assert (z2 := pow2_ge_0 zeta). assert (z3 : 0 <= L ^ 2 * INR K ^ 2 * eta ^ 2 * zeta ^ 2) by pos. lra.
  - intros h0. eapply Rle_trans; [apply (main step_perfect perfect 0 (Rle_refl 0)); auto|].
    + intros s p _. split; reflexivity.
    + intros s [f1 f2]. split; [unfold inv; now rewrite f1, f2|].
      rewrite (meanR_ext _ (fun _ => nrm2 (G (sx s)))); [rewrite meanR_const; lra|]. intros i _. unfold d. rewrite f1, f2. f_equal. vring.
    + rewrite form. lra.
Qed.
End SSF.

(* 7.1: a scale before the projector is one before the steps; FedSub's line 6 is the step with the projector *)
Lemma step_7_1 {D : Dim} {O : Type} (P : O -> vec -> vec) g eta (s : state) w i h a : proj (P w) ->
  loc (fun w v => a *: P w v)%V g eta s w i h = loc P g (a * eta) s w i h /\
  (forall N K etag, etat K (a * eta) etag = a * etat K eta etag /\ sx (step N K P g (a * eta) etag s (w, h))
    = (sx s + (etag / INR N) *: vsum N (fun i => loc (fun w v => a *: P w v) g eta s w i h - sx s))%V) /\
  forall rho v u, rho <> 0 -> (/ rho *: P w (rho *: v + u) = P w (v + / rho *: u))%V.
Proof.
  intros pw. assert (e : forall i, loc (fun w v => a *: P w v)%V g eta s w i h = loc P g (a * eta) s w i h).
  { intros j. induction h as [|z h IH]; [reflexivity|]. simpl. rewrite IH. vring. }
  split; [apply e|]. split.
  - intros N K etag. split; [unfold etat; ring|]. cbn [step sx]. f_equal. f_equal. apply vsum_ext; intros j _. now rewrite e.
  - intros rho v u r0. rewrite !(p_add _ pw), !(p_scal _ pw). vfield. exact r0.
Qed.
