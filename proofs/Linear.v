(* docs/theory/linear.md: linear rates of the family. step_1_4 is the page's [linear.1.4]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Import Noise Descent Sampling Core.
From Fedtheory Require Family.
Import ListNotations.
Local Open Scope R_scope.

(* ---- 1: numbers; the letters are those of Family.step_6_1; s: of the rate, kap: of the family's theorem ---- *)
Section Numbers.
Variables rho t om p h nu m al ga q kap s M : R.
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
Hypothesis kap_s0 : 0 < kap - s.
Hypothesis eM : M = rho * t * (q / (kap - s)).
Let ek' : kap - s = (m - s) - rho * om * (7/5 * al * p + (21/5 * p + 2 * nu) * ga * h ^ 2).
Proof. rewrite ek. ring. Qed.
Lemma step_1_1 : let b := M / t in - M * m + rho * t * (1388/1000 * om * p * Family.B6 h al ga b + h * nu + 2 * om * nu * ga * h ^ 2 * b) <= - (s * M).
Proof.
  intros b. destruct (Family.step_6_2 rho t om p h nu (m - s) al ga q (kap - s) M rho0 t0 om01 p01 h01 nu0 al0 ga0 eq ek' kap_s0 eM) as [k e].
  fold b in k. lra.
Qed.
(* what the family's page has with kappa stands here with kappa_s; the sum of what stays is s times 10/(9 l) (...) *)
Lemma step_1_2 iS chi z v ell E : 0 < ell -> s = 9/10 * rho * ell * t ->
  rho * om * q / (kap - s) * (7/5 * al * p + (21/5 * p + 2) * ga * h ^ 2) <= 1/25 ->
  E = 10 / (9 * ell) * (q / (kap - s) * chi * z + v / rho * (h * iS + 2/3 * p + rho * q / (kap - s) * (51/50 * al + (1/25 + 2 * iS) * ga * h ^ 2))) ->
  let b := M / t in let B := Family.B6 h al ga b in
  - (rho * t * (1/2 - 1388/1000 * om * p * B - 2 * om * ga * h ^ 2 * b)) <= - (9/20) * rho * t
  /\ 1041/1000 * t * p * B + h * t * iS + M * al + 2 * iS * M * ga * h ^ 2
     <= t * (h * iS + 2/3 * p) + M * (51/50 * al + (1/25 + 2 * iS) * ga * h ^ 2)
  /\ M * chi * z + v * (t * (h * iS + 2/3 * p) + M * (51/50 * al + (1/25 + 2 * iS) * ga * h ^ 2)) = s * E.
Proof.
  intros l0 es c2 eE b B. split; [|split].
  - exact (Family.step_6_3 rho t om p h nu al ga q (kap - s) M rho0 t0 om01 p01 h01 nu0 al0 ga0 eq kap_s0 eM c2).
  - exact (Family.step_6_4 rho t om p h nu al ga q (kap - s) M iS rho0 t0 om01 p01 h01 nu0 al0 ga0 eq kap_s0 eM).
  - rewrite eE, es at 1. set (k := kap - s) in *. rewrite eM. field. repeat split; lra.
Qed.
End Numbers.
Lemma step_1_3 rho t ell L g f s Phi M C E : 0 < rho <= 1 -> 0 < t -> L * t <= 1/4 -> 0 < ell <= L -> 0 <= f -> ell * f <= 1/2 * g ->
  s = 9/10 * rho * ell * t -> Phi = f + M * C ->
  - (9/20) * rho * t * g <= - (s * f) /\ 0 <= s <= 9/40 /\ Phi - s * f - s * (M * C) + s * E = (1 - s) * Phi + s * E.
Proof.
  intros [r0 r1] t0 Lt [l0 lL] f0 pl -> ->. assert (rt : 0 <= 9/10 * rho * t) by pos.
  assert (k := Rmult_le_compat_l _ _ _ rt pl). split; [lra|split; [|ring]].
  assert (a0 : 0 <= ell * t) by pos. assert (a1 : ell * t <= 1/4) by (apply (Rle_trans _ (L * t)); [apply Rmult_le_compat_r; lra|exact Lt]).
  assert (a2 : 0 <= rho * (ell * t)) by pos. assert (a3 : rho * (ell * t) <= 1 * (1/4)) by (apply Rmult_le_compat; lra). split; lra.
Qed.
(* a contraction in the mean of a round, over rounds *)
Lemma contract {W X : Type} (kernel : X -> law W) (step : X -> W -> X) (inv : X -> Prop) (Phi : X -> R) s E :
  0 <= s <= 1 -> (forall x w, inv x -> inv (step x w)) ->
  (forall x, inv x -> kernel x (fun w => Phi (step x w)) <= (1 - s) * Phi x + s * E) ->
  forall T x, inv x -> Eit kernel step T Phi x <= (1 - s) ^ T * Phi x + (1 - (1 - s) ^ T) * E.
Proof.
  intros [s0 s1] hi h1 T. induction T; intros x hx; simpl Eit. { simpl. lra. }
  assert (p0 : 0 <= (1 - s) ^ T) by (apply pow_le; lra).
  eapply Rle_trans; [apply (ex_le (kernel x) _ (fun w => (1 - s) ^ T * Phi (step x w) + (1 - (1 - s) ^ T) * E)); intros w; apply IHT, hi, hx|].
  rewrite ex_plus, ex_scal, ex_const. assert (k := Rmult_le_compat_l _ _ _ p0 (h1 x hx)). simpl. lra.
Qed.
Lemma none_numbers rho t om p h nu iS q g V D z v f ef : 0 < rho -> 0 < t -> 0 <= om <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/4 ->
  0 <= nu -> 0 <= v -> 0 <= g -> 0 <= V <= z -> q = 7/8 * om * p + h * nu ->
  D <= 1041/1000 * p * v + 1388/1000 * om * rho * p * (V + g) ->
  ef <= f - rho * t / 2 * g + (1 + h) / 2 * t * D + h * t * (rho * nu * V + v * iS) ->
  ef <= f - 9/20 * rho * t * g + (rho * t * q * z + v * (t * (h * iS + 2/3 * p))).
Proof.
  intros r0 t0 [o0 o1] [p0 p1] [h0 h1] n0 v0 g0 [V0 Vz] -> hD hF. set (c := (1 + h) / 2 * t) in *.
  assert (c0 : 0 <= c) by (unfold c; apply Rmult_le_pos; lra). assert (c1 : c <= 5/8 * t) by (unfold c; apply Rmult_le_compat_r; lra).
  apply (Rmult_le_compat_l _ _ _ c0) in hD.
  assert (op0 : 0 <= om * p) by pos. assert (op1 : om * p <= 1/100) by (assert (0 <= (1 - om) * p) by pos; lra).
  assert (w0 : 0 <= rho * (om * p * (V + g))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; [lra|lra]]).
  assert (k1 : 0 <= (5/8 * t - c) * (rho * (om * p * (V + g)))) by (apply Rmult_le_pos; lra).
  assert (k2 : 0 <= (5/8 * t - c) * (p * v)) by (apply Rmult_le_pos; [lra|pos]).
  assert (k3 : 0 <= rho * t * (om * p * (z - V))) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
  assert (k4 : 0 <= rho * t * (h * nu * (z - V))) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; [pos|lra]]).
  assert (k5 : 0 <= rho * t * ((1/100 - om * p) * g)) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
  assert (k6 : 0 <= rho * t * (om * p * z)) by (apply Rmult_le_pos; [pos|apply Rmult_le_pos; lra]).
  assert (k7 : 0 <= t * (p * v)) by pos. assert (k8 : 0 <= rho * t * g) by pos. lra.
Qed.

(* ================= theorem 1: the hypotheses of Family.theorem, and the Polyak-Lojasiewicz condition ================= *)
Section Theorem_1.
Context {D : Dim}.
Variables N Sn K : nat.
Hypothesis S1 : (0 < Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variables rho omega theta : R.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L Fstar eta etag sigma ell : R.
Context {Mem : Type}.
Variable ci : Mem -> nat -> vec.
Notation state := (Family.state (Mem := Mem)).
Notation noise := Family.noise.
Notation sx := Family.sx.
Variable ker : state -> O -> list noise -> law noise.
Variable upd : state -> list nat -> O -> list noise -> Mem.
Notation Favg := (Family.Favg N F).
Notation G := (Family.G N g).
Notation step := (Family.step N Sn P g eta etag ci upd).
Notation round := (Family.round N Sn K SN draw ker).
Notation etat := (Family.etat K eta etag).
Notation hh := (Family.hh K L eta etag).
Notation pp := (Family.pp K L eta).
Notation nu := (Family.nu N Sn).
Notation vv := (Family.vv K theta sigma).
Notation q := (Family.qq N Sn K omega L eta etag).
Notation kappa := (Family.kappa N Sn K rho omega L eta etag).
Notation memory_at := (Family.memory_at N Sn K SN draw P theta g L eta etag sigma ci ker upd).
Hypothesis rho01 : 0 < rho <= 1.
Hypothesis omega01 : 0 <= omega <= 1.
Hypothesis theta0 : 0 <= theta.
Hypothesis L0 : 0 <= L.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Hypothesis steps_local : INR K * L * eta <= 1/10.
Hypothesis steps_server : L * etat <= 1/4.
Hypothesis HP : forall w, Family.map01 (P w).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Hypothesis EP2 : forall a, draw (fun w => nrm2 (P w a)) <= omega * rho * nrm2 a.
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis noise_mean0 : forall s w h i a, (i < N)%nat -> ker s w h (fun z => dot a (z i)) = 0.
Hypothesis noise_theta : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (P w (z i))))) <= theta * sigma ^ 2.
Hypothesis noise_clients : forall s w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker s w h (fun z => dot (z i) (P w (z j))) = 0.
Hypothesis bounded : forall x, Fstar <= Favg x.
Hypothesis ell0 : 0 < ell <= L.
Hypothesis pl : forall x, ell * (Favg x - Fstar) <= 1/2 * nrm2 (G x).
Definition rate : R := 9/10 * rho * ell * etat.
Let t0 : 0 < etat := Family.etat_gt0 K K1 eta etag eta0 etag0.
Let drift (s : state) := Family.step_3_7 N Sn K S1 SN K1 draw P rho omega theta g L eta sigma ci ker rho01 omega01 theta0 L0 eta0 steps_local HP EP2 lip noise_mean0 noise_theta s.
Let descent (s : state) := Family.step_4_4 N Sn K S1 SN K1 draw P rho theta F g L eta etag sigma ci ker upd L0 eta0 etag0 steps_server HP EP lip noise_mean0 noise_theta grad noise_clients s.
Let moved (s : state) := Family.step_4_3 N Sn K S1 SN K1 draw P rho omega theta g L eta etag sigma ci ker upd HP EP2 lip noise_mean0 noise_theta noise_clients s.
Let pr := Family.pp_range N Sn K S1 SN K1 L eta L0 eta0 steps_local.
Let hr := Family.hh_range K K1 L eta etag L0 eta0 etag0 steps_server.
Let n0 := Family.nu_ge0 N Sn K S1 SN K1.
Let v0 := Family.vv_ge0 K K1 theta sigma theta0.
Let S0 : 0 < INR Sn. Proof. now apply lt_0_INR. Qed.
Let iS0 : 0 <= / INR Sn. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let facts (s : state) : let f := Favg (sx s) - Fstar in - (9/20) * rho * etat * nrm2 (G (sx s)) <= - (rate * f) /\ 0 <= rate <= 9/40.
Proof.
  intros f. assert (f0 : 0 <= f) by (unfold f; assert (k := bounded (sx s)); lra).
  destruct (step_1_3 rho etat ell L (nrm2 (G (sx s))) f rate (f + 0 * 0) 0 0 0 rho01 t0 steps_server ell0 f0 (pl (sx s)) eq_refl eq_refl) as [a [b _]].
  split; assumption.
Qed.
Section WithMemory.
Variable good : state -> Prop.
Variable Cerr : state -> R.
Variables m chi alpha gamma zeta : R.
Hypothesis chi0 : 0 <= chi.
Hypothesis alpha0 : 0 <= alpha.
Hypothesis gamma0 : 0 <= gamma.
Hypothesis good_step : forall s p, good s -> good (step s p).
Hypothesis HM : forall s, good s -> memory_at Cerr m chi alpha gamma zeta s.
Definition kappa_s : R := kappa m alpha gamma - rate.
Hypothesis kap0 : 0 < kappa_s.
Hypothesis steps2 : rho * omega * q / kappa_s * (7/5 * alpha * pp + (21/5 * pp + 2) * gamma * hh ^ 2) <= 1/25.
Definition weight : R := rho * etat * (q / kappa_s).
Definition Phi (s : state) : R := Favg (sx s) - Fstar + weight * Cerr s.
Definition stays : R := 10 / (9 * ell) * (q / kappa_s * (chi * zeta ^ 2) + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp
  + rho * q / kappa_s * (51/50 * alpha + (1/25 + 2 / INR Sn) * gamma * hh ^ 2))).
Lemma stays_ge0 : 0 <= stays.
Proof.
  destruct pr as [p0 _]. destruct hr as [h0 _]. assert (z2 := pow2_ge_0 zeta). assert (h2 := pow2_ge_0 hh).
  assert (q0 : 0 <= q) by (unfold Family.qq; apply Rplus_le_le_0_compat; pos).
  assert (qk : 0 <= q / kappa_s) by (apply Rmult_le_pos; [exact q0|now apply Rlt_le, Rinv_0_lt_compat]).
  assert (vr : 0 <= theta * sigma ^ 2 / (rho * INR K)).
  { apply Rmult_le_pos; [assert (s2 := pow2_ge_0 sigma); pos|apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra]. }
  assert (l0 : 0 <= 10 / (9 * ell)) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  unfold stays. replace (rho * q / kappa_s) with (rho * (q / kappa_s)) by (unfold Rdiv; ring).
  replace (2 / INR Sn) with (2 * / INR Sn) by reflexivity. replace (hh / INR Sn) with (hh * / INR Sn) by reflexivity.
  apply Rmult_le_pos; [exact l0|]. apply Rplus_le_le_0_compat; [pos|]. apply Rmult_le_pos; [exact vr|].
  apply Rplus_le_le_0_compat; [apply Rplus_le_le_0_compat; pos|]. apply Rmult_le_pos; [pos|].
  apply Rplus_le_le_0_compat; [pos|]. apply Rmult_le_pos; [|exact h2]. apply Rmult_le_pos; [|exact gamma0]. lra.
Qed.
Lemma one_round (s : state) : good s -> round s (fun p => Phi (step s p)) <= (1 - rate) * Phi s + rate * stays.
Proof.
  intros hs. destruct (HM s hs) as [hV hC]. destruct (facts s) as [fp [s0 s1]].
  rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + weight * Cerr (step s p)))) by (intros; unfold Phi; ring).
  rewrite !ex_plus, ex_const, ex_scal.
  set (mv := Family.move N Sn K SN draw P g eta etag ci ker upd s) in *. set (DD := Family.DD N K draw P g eta ci ker s) in *.
  assert (hX : L ^ 2 * mv <= hh ^ 2 * (2 * omega * rho * nrm2 (G (sx s)) + 3 * (L ^ 2 * DD)
    + 2 * omega * rho * nu * Family.V N g ci s + 2 * vv * / INR Sn)).
  { assert (b := moved s). unfold Family.move_at in b. apply (Rmult_le_compat_l (L ^ 2)) in b; [|apply pow2_ge_0].
    replace (hh ^ 2) with (L ^ 2 * etat ^ 2) by (unfold Family.hh; ring). rewrite Rmult_assoc. exact b. }
  assert (hC' : round s (fun p => Cerr (step s p)) + rate * Cerr s <= (1 - (m - rate)) * Cerr s + chi * zeta ^ 2 + alpha * (L ^ 2 * DD + vv) + gamma * (L ^ 2 * mv)) by lra.
  assert (ek : kappa_s = (m - rate) - rho * omega * (7/5 * alpha * pp + (21/5 * pp + 2 * nu) * gamma * hh ^ 2)) by (unfold kappa_s, Family.kappa; ring).
  assert (sp : 3123/1000 * pp <= 1/25) by (destruct pr; lra).
  assert (k := Family.section_6 (1/25) rho etat omega pp hh nu (m - rate) chi alpha gamma (/ INR Sn) q kappa_s weight (Cerr s) (nrm2 (G (sx s)))
    (Family.V N g ci s) (L ^ 2 * DD) (L ^ 2 * mv) (zeta ^ 2) vv (Favg (sx s)) (round s (fun p => Favg (sx (step s p))))
    (round s (fun p => Cerr (step s p)) + rate * Cerr s) sp (proj1 rho01) t0 omega01 pr hr n0 alpha0 gamma0 iS0 v0
    (nrm2_ge0 _) (conj (Family.V_ge0 N Sn K S1 SN K1 g ci s) hV) eq_refl ek kap0 eq_refl steps2 (drift s) (descent s) hX hC').
  assert (e : weight * chi * zeta ^ 2 + vv * (etat * (hh * / INR Sn + 2/3 * pp) + weight * (51/50 * alpha + (1/25 + 2 * / INR Sn) * gamma * hh ^ 2)) = rate * stays).
  { unfold weight, stays, rate, Family.vv. set (ks := kappa_s) in *. field. repeat split; try lra. }
  unfold Phi. lra.
Qed.
Lemma step_1_4 (s0 : state) (T : nat) : good s0 -> Eit round step T Phi s0 <= (1 - rate) ^ T * (Favg (sx s0) - Fstar + weight * Cerr s0) + stays.
Proof.
  intros h0. destruct (facts s0) as [_ s01].
  assert (k := contract round step good Phi rate stays ltac:(lra) good_step one_round T s0 h0). unfold Phi in k at 2.
  assert (p0 : 0 <= (1 - rate) ^ T) by (apply pow_le; lra).
  assert (e0 := stays_ge0). assert (0 <= (1 - rate) ^ T * stays) by pos. lra.
Qed.
End WithMemory.
Lemma step_1_5 zeta : (forall s : state, Family.V N g ci s <= zeta ^ 2) -> forall (s0 : state) (T : nat),
  Eit round step T (fun s => Favg (sx s) - Fstar) s0 <= (1 - rate) ^ T * (Favg (sx s0) - Fstar)
  + 10 / (9 * ell) * (q * zeta ^ 2 + theta * sigma ^ 2 / (rho * INR K) * (hh / INR Sn + 2/3 * pp)).
Proof.
  intros hV s0 T. set (E := 10 / (9 * ell) * _). destruct (facts s0) as [_ s01].
  assert (one : forall s : state, True -> round s (fun p => Favg (sx (step s p)) - Fstar) <= (1 - rate) * (Favg (sx s) - Fstar) + rate * E).
  { intros s _. destruct (facts s) as [fp _]. rewrite (ex_ext _ _ (fun p => - Fstar + Favg (sx (step s p)))) by (intros; ring).
    rewrite ex_plus, ex_const.
    assert (k := none_numbers rho etat omega pp hh nu (/ INR Sn) q (nrm2 (G (sx s))) (Family.V N g ci s) _ (zeta ^ 2) vv _ _ (proj1 rho01) t0 omega01 pr hr
      n0 v0 (nrm2_ge0 _) (conj (Family.V_ge0 N Sn K S1 SN K1 g ci s) (hV s)) eq_refl (drift s) (descent s)).
    assert (e : rho * etat * q * zeta ^ 2 + vv * (etat * (hh * / INR Sn + 2/3 * pp)) = rate * E).
    { unfold E, rate, Family.vv. field. repeat split; lra. } lra. }
  assert (k := contract round step (fun _ => True) (fun s => Favg (sx s) - Fstar) rate E ltac:(lra) (fun _ _ h => h) one T s0 I). cbv beta in k.
  assert (p0 : 0 <= (1 - rate) ^ T) by (apply pow_le; lra).
  assert (e0 : 0 <= E).
  { destruct pr as [p0' _]. destruct hr as [h0 _]. assert (z2 := pow2_ge_0 zeta). assert (s2 := pow2_ge_0 sigma).
    assert (q0 : 0 <= q) by (unfold Family.qq; apply Rplus_le_le_0_compat; pos).
    assert (vr : 0 <= theta * sigma ^ 2 / (rho * INR K)) by (apply Rmult_le_pos; [pos|apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra]).
    assert (l0 : 0 <= 10 / (9 * ell)) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
    unfold E. replace (hh / INR Sn) with (hh * / INR Sn) by reflexivity. apply Rmult_le_pos; [exact l0|].
    apply Rplus_le_le_0_compat; [pos|]. apply Rmult_le_pos; [exact vr|]. apply Rplus_le_le_0_compat; pos. }
  assert (0 <= (1 - rate) ^ T * E) by pos. lra.
Qed.
End Theorem_1.

(* D stands for L^2 D, v for theta sigma^2/K, e2 for |x - x*|^2, mv for E|x+ - x|^2; C is of the memories at x* *)
Lemma step_3_4 rho t ell L p h nu phi mu M iS v f C V g D e2 mv e2' C' : 0 < rho -> 0 < t -> 0 < ell -> 0 < L -> 0 <= p -> 0 <= nu ->
  0 <= phi -> 0 <= M -> h = L * t ->
  D <= 1041/1000 * p * v + 1388/1000 * rho * p * (V + g) -> V + g <= 4 * L * f + 2 * C -> V <= 4 * L * f + 2 * C -> g <= 2 * L * f ->
  mv <= t ^ 2 * (2 * rho * g + 3 * D + 2 * rho * nu * V + 2 * v * iS) ->
  e2' <= (1 - 1/2 * rho * ell * t) * e2 - 2 * rho * t * f + 2 * t / ell * D + mv ->
  C' <= (1 - phi * mu) * C + 4 * phi * (mu * L * f + D + v) ->
  let B := 2 * t / ell + 3 * t ^ 2 + 4 * phi * M in
  e2' + M * C' <= (1 - 1/2 * rho * ell * t) * e2 + M * C
    + (- 2 * rho * t + 5552/1000 * rho * p * L * B + 4 * rho * t * h + 8 * rho * t * h * nu + 4 * phi * mu * L * M) * f
    + (- phi * mu * M + 2776/1000 * rho * p * B + 4 * rho * t * h * nu / L) * C
    + (1041/1000 * p * B + 2 * t * h / L * iS + 4 * phi * M) * v.
Proof.
  intros r0 t0 l0 L0 p0 n0 f0 M0 eh hD hVg hV hg hm he hC B.
  assert (b1 : 0 <= 2 * t / ell) by (apply Rlt_le, Rdiv_lt_0_compat; lra). assert (t2 := pow2_ge_0 t).
  assert (fm : 0 <= phi * M) by (apply Rmult_le_pos; lra). assert (B0 : 0 <= B) by (unfold B; lra).
  assert (rp : 0 <= rho * p) by (apply Rmult_le_pos; lra).
  assert (hD' : D <= 1041/1000 * p * v + 1388/1000 * (rho * p) * (4 * L * f + 2 * C)).
  { assert (k := Rmult_le_compat_l _ _ _ rp hVg). lra. }
  assert (kD := Rmult_le_compat_l _ _ _ B0 hD').
  assert (eB : B * D = 2 * t / ell * D + 3 * t ^ 2 * D + 4 * phi * M * D) by (unfold B; ring).
  assert (c1 : 0 <= 2 * rho * nu * t ^ 2) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|exact t2]).
  assert (kV := Rmult_le_compat_l _ _ _ c1 hV).
  assert (c2 : 0 <= 2 * rho * t ^ 2) by (apply Rmult_le_pos; lra). assert (kg := Rmult_le_compat_l _ _ _ c2 hg).
  assert (kC := Rmult_le_compat_l _ _ _ M0 hC).
  replace (4 * rho * t * h * nu / L) with (4 * rho * t ^ 2 * nu) by (rewrite eh; field; lra).
  replace (2 * t * h / L * iS) with (2 * t ^ 2 * iS) by (rewrite eh; field; lra). rewrite eh. clearbody B. lra.
Qed.
(* ---- 3: numbers; a: p L/l, w: h nu, Z: 20 a + 8 w, X: L phi M; iS: 1/S ---- *)
Section Convex.
Variables rho t ell L p h nu phi mu M B iS : R.
Hypothesis rho0 : 0 < rho <= mu.
Hypothesis mu1 : mu <= 1.
Hypothesis t0 : 0 < t.
Hypothesis ell0 : 0 < ell <= L.
Hypothesis p0 : 0 <= p.
Hypothesis nu01 : 0 <= nu <= 1.
Hypothesis phi0 : 0 < phi.
Hypothesis eh : h = L * t.
Hypothesis short : p <= ell / (100 * L).
Hypothesis server : h * (1 + 10 * nu) <= 1/4.
Hypothesis eM : M = rho * t / (L * phi * mu) * (20 * p * L / ell + 8 * h * nu).
Let a := p * L / ell.
Let w := h * nu.
Let Z := 20 * a + 8 * w.
Let X := L * (phi * M).
Let h0 : 0 < h. Proof. rewrite eh. apply Rmult_lt_0_compat; lra. Qed.
Let w01 : 0 <= w <= h. Proof. unfold w. assert (h1 := h0). split; [apply Rmult_le_pos; lra|]. assert (0 <= h * (1 - nu)) by (apply Rmult_le_pos; lra). lra. Qed.
Let hw : h + 10 * w <= 1/4. Proof. unfold w. lra. Qed.
Let ea : a * ell = p * L. Proof. unfold a. field. lra. Qed.
Let a01 : 0 <= a <= 1/100.
Proof.
  split; [unfold a, Rdiv; apply Rmult_le_pos; [apply Rmult_le_pos; lra|apply Rlt_le, Rinv_0_lt_compat; lra]|].
  apply (Rmult_le_reg_r ell); [lra|]. rewrite ea. apply (Rmult_le_compat_r L) in short; [|lra].
  replace (ell / (100 * L) * L) with (1/100 * ell) in short by (field; lra). exact short.
Qed.
Let pa : p <= a.
Proof. apply (Rmult_le_reg_r ell); [lra|]. rewrite ea. apply Rmult_le_compat_l; lra. Qed.
Let Z0 : 0 <= Z. Proof. unfold Z. destruct a01, w01. lra. Qed.
Let muX : mu * X = rho * t * Z. Proof. unfold X, Z, a, w. rewrite eM. field. repeat split; lra. Qed.
Let X0 : 0 <= X <= t * Z.
Proof.
  assert (z := Z0). assert (tz : 0 <= t * Z) by (apply Rmult_le_pos; lra). split.
  - apply (Rmult_le_reg_l mu); [lra|]. rewrite muX, Rmult_0_r, Rmult_assoc. apply Rmult_le_pos; lra.
  - apply (Rmult_le_reg_l mu); [lra|]. rewrite muX, Rmult_assoc. apply Rmult_le_compat_r; lra.
Qed.
Let pX : p * X <= a * (t * Z). Proof. destruct X0, a01. apply Rmult_le_compat; lra. Qed.
Let ph : p * h <= a * h. Proof. assert (h1 := h0). apply Rmult_le_compat_r; lra. Qed.
Let pLB : B = 2 * t / ell + 3 * t ^ 2 + 4 * phi * M -> p * (L * B) = 2 * t * a + 3 * t * (p * h) + 4 * (p * X).
Proof. intros ->. unfold X, a. rewrite eh. field. lra. Qed.
Lemma step_3_5 : B = 2 * t / ell + 3 * t ^ 2 + 4 * phi * M ->
  - 2 * rho * t + 5552/1000 * rho * p * L * B + 4 * rho * t * h + 8 * rho * t * h * nu + 4 * phi * mu * L * M <= 0
  /\ - phi * mu * M + 2776/1000 * rho * p * B + 4 * rho * t * h * nu / L <= - (1/2) * phi * mu * M.
Proof.
  intros eB. assert (e := pLB eB). destruct a01 as [a0 a1], w01 as [w0 w1], X0 as [x0 x1]. assert (h1 := h0). assert (hw' := hw). assert (z0 := Z0).
  assert (rt : 0 <= rho * t) by (apply Rmult_le_pos; lra). assert (tz : 0 <= t * Z) by (apply Rmult_le_pos; lra).
  assert (k1 : rho * (p * X) <= rho * (a * (t * Z))) by (apply Rmult_le_compat_l; [lra|exact pX]).
  assert (k2 : rho * t * (p * h) <= rho * t * (a * h)) by (apply Rmult_le_compat_l; [lra|exact ph]).
  split.
  - replace (- 2 * rho * t + 5552/1000 * rho * p * L * B + 4 * rho * t * h + 8 * rho * t * h * nu + 4 * phi * mu * L * M)
      with (- 2 * (rho * t) + 5552/1000 * rho * (p * (L * B)) + 4 * (rho * t) * h + 8 * (rho * t) * w + 4 * (mu * X)) by (unfold w, X; ring).
    rewrite e, muX.
    assert (k3 : 0 <= rho * (t * Z) * (1/100 - a)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]).
    assert (k4 : 0 <= rho * t * (h * (1/100 - a))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (k5 : 0 <= rho * t * (2 - 11104/1000 * a - 416656/100000 * h - 8 * w - 422208/100000 * Z)) by (apply Rmult_le_pos; [lra|unfold Z; lra]). lra.
  - apply (Rmult_le_reg_l L); [lra|].
    replace (L * (- phi * mu * M + 2776/1000 * rho * p * B + 4 * rho * t * h * nu / L))
      with (- (mu * X) + 2776/1000 * rho * (p * (L * B)) + 4 * (rho * t) * w) by (unfold w, X; field; lra).
    replace (L * (- (1/2) * phi * mu * M)) with (- (1/2) * (mu * X)) by (unfold X; ring). rewrite e, muX.
    assert (k3 : 0 <= rho * t * (a * (4448/1000 - 8328/1000 * h - 22208/100 * a - 88832/1000 * w))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    unfold Z in *. lra.
Qed.
Lemma step_3_6 : B = 2 * t / ell + 3 * t ^ 2 + 4 * phi * M ->
  1041/1000 * p * B + 2 * t * h / L * iS + 4 * phi * M <= t / L * (2 * h * iS + 32 * h * nu + 84 * p * L / ell).
Proof.
  intros eB. assert (e := pLB eB). destruct a01 as [a0 a1], w01 as [w0 w1], X0 as [x0 x1]. assert (h1 := h0). assert (hw' := hw). assert (z0 := Z0).
  apply (Rmult_le_reg_l L); [lra|].
  replace (L * (1041/1000 * p * B + 2 * t * h / L * iS + 4 * phi * M)) with (1041/1000 * (p * (L * B)) + 2 * t * h * iS + 4 * X) by (unfold X; field; lra).
  replace (L * (t / L * (2 * h * iS + 32 * h * nu + 84 * p * L / ell))) with (2 * t * h * iS + t * (32 * w + 84 * a)) by (unfold w, a; field; lra).
  rewrite e. assert (q1 := pX). assert (q2 : t * (p * h) <= t * (a * h)) by (apply Rmult_le_compat_l; [lra|exact ph]).
  assert (k3 : 0 <= t * (a * (1918/1000 - 3123/1000 * h - 8328/100 * a - 33312/1000 * w))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  unfold Z in *. lra.
Qed.
Lemma step_3_7 : B = 2 * t / ell + 3 * t ^ 2 ->
  - 2 * rho * t + 5552/1000 * rho * p * L * B + 4 * rho * t * h + 8 * rho * t * h * nu <= 0
  /\ 2776/1000 * rho * p * B + 4 * rho * t * h * nu / L <= 1/2 * rho * ell * t * (2 / (ell * L) * (8 * p * L / ell + 4 * h * nu)).
Proof.
  intros eB. destruct a01 as [a0 a1], w01 as [w0 w1]. assert (h1 := h0). assert (hw' := hw).
  assert (e : p * (L * B) = 2 * t * a + 3 * t * (p * h)) by (rewrite eB; unfold a; rewrite eh; field; lra).
  assert (rt : 0 <= rho * t) by (apply Rmult_le_pos; lra).
  assert (k2 : rho * t * (p * h) <= rho * t * (a * h)) by (apply Rmult_le_compat_l; [lra|exact ph]).
  split.
  - replace (- 2 * rho * t + 5552/1000 * rho * p * L * B + 4 * rho * t * h + 8 * rho * t * h * nu)
      with (- 2 * (rho * t) + 5552/1000 * rho * (p * (L * B)) + 4 * (rho * t) * h + 8 * (rho * t) * w) by (unfold w; ring).
    rewrite e. assert (k4 : 0 <= rho * t * (h * (1/100 - a))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (k5 : 0 <= rho * t * (2 - 11104/1000 * a - 416656/100000 * h - 8 * w)) by (apply Rmult_le_pos; [lra|lra]). lra.
  - apply (Rmult_le_reg_l L); [lra|].
    replace (L * (2776/1000 * rho * p * B + 4 * rho * t * h * nu / L)) with (2776/1000 * rho * (p * (L * B)) + 4 * (rho * t) * w) by (unfold w; field; lra).
    replace (L * (1/2 * rho * ell * t * (2 / (ell * L) * (8 * p * L / ell + 4 * h * nu)))) with (rho * t * (8 * a + 4 * w)) by (unfold w, a; field; lra).
    rewrite e. assert (k3 : 0 <= rho * t * (a * (8 - 5552/1000 - 8328/1000 * h))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]). lra.
Qed.
End Convex.

(* ---- 2: the members; the family's section_7_1 to section_7_6 with kappa_s; K, Q: kappa, q ---- *)
Lemma fall rho ell L t h : 0 < rho -> 0 < ell <= L -> 0 < t -> h = L * t -> 0 <= 9/10 * rho * ell * t <= 9/10 * (rho * h).
Proof.
  intros r0 [l0 lL] t0 ->. assert (k : ell * t <= L * t) by (apply Rmult_le_compat_r; lra). assert (e0 : 0 <= ell * t) by (apply Rmult_le_pos; lra).
  assert (k2 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ r0) k). assert (0 <= rho * (ell * t)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma share_of q ks : 0 < ks -> 0 <= q -> 0 <= q / ks /\ ks * (q / ks) = q.
Proof. intros k0 q0. split; [apply Rmult_le_pos; [exact q0|now apply Rlt_le, Rinv_0_lt_compat]|field; lra]. Qed.
Lemma step_2_1 rho ell L t p h iN kap ks q M : 0 < rho <= 1 -> 0 < ell <= L -> 0 < t -> h = L * t -> 0 <= p <= 1/100 -> h <= 1/4 ->
  h ^ 2 <= rho / 8 \/ p <= rho / 100 -> 0 <= iN <= 1 ->
  kap = rho / 2 - rho * 1 * (7/5 * 3 * p + (21/5 * p + 2 * 0) * (3 / rho) * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  ks = kap - 9/10 * rho * ell * t -> M = rho * t * (q / ks) ->
  43/200 * rho <= ks /\ rho * 1 * q / ks * (7/5 * 3 * p + (21/5 * p + 2) * (3 / rho) * h ^ 2) <= 1/25 /\ M <= 41/10 * t * p /\
  (h ^ 2 <= rho / 8 -> h * iN + 2/3 * p + rho * q / ks * (51/50 * 3 + (1/25 + 2 * iN) * (3 / rho) * h ^ 2) <= h * iN + 17 * p).
Proof.
  intros [r0 r1] l t0 eh [p0 p1] h1 hp [i0 i1] ek eq es eM. destruct (fall rho ell L t h r0 l t0 eh) as [_ sl].
  assert (h0 : 0 <= h) by (rewrite eh; apply Rmult_le_pos; lra).
  assert (rh : rho * h <= rho * (1/4)) by (apply Rmult_le_compat_l; lra).
  assert (H0 := pow2_ge_0 h). assert (H1 : h ^ 2 <= 1/16) by nra. set (H := h ^ 2) in *.
  set (X := 3 / rho * H). assert (rX : rho * X = 3 * H) by (unfold X; field; lra).
  assert (X0 : 0 <= X) by (unfold X; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|lra]).
  assert (pX0 : 0 <= p * X) by (apply Rmult_le_pos; lra).
  assert (pX : p * X <= 3/800).
  { destruct hp as [hp|hp].
    - assert (X <= 3/8) by (apply (Rmult_le_reg_l rho); lra). assert (0 <= (1/100 - p) * X) by (apply Rmult_le_pos; lra). lra.
    - assert (0 <= (rho / 100 - p) * X) by (apply Rmult_le_pos; lra). lra. }
  replace ((21/5 * p + 2 * 0) * (3 / rho) * H) with (21/5 * (p * X)) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / rho) * H) with (21/5 * (p * X) + 2 * X) by (unfold X; ring).
  replace ((1/25 + 2 * iN) * (3 / rho) * H) with ((1/25 + 2 * iN) * X) by (unfold X; ring).
  assert (Kb : 21725/100000 * rho <= ks).
  { rewrite es, ek. assert (0 <= rho * (1/100 - p)) by (apply Rmult_le_pos; lra). assert (0 <= rho * (3/800 - p * X)) by (apply Rmult_le_pos; lra). lra. }
  assert (k0 : 0 < ks) by lra. destruct (share_of q ks k0 ltac:(rewrite eq; lra)) as [qk0 e].
  set (W := rho * (q / ks)). assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e, eq in w.
  assert (W1 : 21725/100000 * W <= 7/8 * p) by (unfold W; rewrite eq; lra). assert (W0 : 0 <= W) by (unfold W; apply Rmult_le_pos; lra).
  split; [lra|split; [|split]].
  - replace (rho * 1 * q / ks) with W by (unfold W; field; lra).
    assert (a1 : 0 <= W * (1/100 - p)) by (apply Rmult_le_pos; lra). assert (a2 : 0 <= W * (3/800 - p * X)) by (apply Rmult_le_pos; lra).
    assert (a3 : 0 <= X * (7/8 * p - 21725/100000 * W)) by (apply Rmult_le_pos; lra). lra.
  - replace M with (t * W) by (rewrite eM; unfold W; ring). assert (0 <= t * (7/8 * p - 21725/100000 * W)) by (apply Rmult_le_pos; lra).
    assert (0 <= t * p) by (apply Rmult_le_pos; lra). lra.
  - intros h8. replace (rho * q / ks) with W by (unfold W; field; lra).
    assert (X1 : X <= 3/8) by (apply (Rmult_le_reg_l rho); lra).
    assert (a1 : 0 <= W * ((1/25 + 2 * iN) * (3/8 - X))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (a2 : 0 <= W * (1 - iN)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_2_3 rho ell L t p h iN kap ks q M : 0 < rho <= 1 -> 0 < ell <= L -> 0 < t -> h = L * t -> 0 <= p <= 1/100 -> h <= 1/4 -> 0 <= iN <= 1 ->
  kap = 1/2 - rho * 1 * (7/5 * 3 * p + (21/5 * p + 2 * 0) * 3 * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  ks = kap - 9/10 * rho * ell * t -> M = rho * t * (q / ks) ->
  9/40 <= ks /\ rho * 1 * q / ks * (7/5 * 3 * p + (21/5 * p + 2) * 3 * h ^ 2) <= 1/25 /\ M <= 39/10 * rho * t * p /\
  h * iN + 2/3 * p + rho * q / ks * (51/50 * 3 + (1/25 + 2 * iN) * 3 * h ^ 2) <= h * iN + 15 * p.
Proof.
  intros [r0 r1] l t0 eh [p0 p1] h1 [i0 i1] ek eq es eM. destruct (fall rho ell L t h r0 l t0 eh) as [_ sl].
  assert (h0 : 0 <= h) by (rewrite eh; apply Rmult_le_pos; lra). assert (rh : rho * h <= 1 * h) by (apply Rmult_le_compat_r; lra).
  assert (H0 := pow2_ge_0 h). assert (H1 : h ^ 2 <= 1/16) by nra. set (H := h ^ 2) in *.
  assert (pH0 : 0 <= p * H) by (apply Rmult_le_pos; lra). assert (pH : p * H <= 1/1600) by (assert (0 <= (1/100 - p) * H) by (apply Rmult_le_pos; lra); lra).
  assert (rz : 0 <= (1 - rho) * (21/5 * p + 63/5 * (p * H))) by (apply Rmult_le_pos; lra).
  assert (Kb : 225125/1000000 <= ks) by (rewrite es, ek; lra). assert (k0 : 0 < ks) by lra.
  destruct (share_of q ks k0 ltac:(rewrite eq; lra)) as [qk0 e]. set (Y := q / ks) in *.
  assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e, eq in w.
  assert (rY : 0 <= (1 - rho) * Y) by (apply Rmult_le_pos; lra). assert (rY0 : 0 <= rho * Y) by (apply Rmult_le_pos; lra).
  split; [lra|split; [|split]].
  - replace (rho * 1 * q / ks) with (rho * Y) by (unfold Y; field; lra).
    assert (a1 : 0 <= rho * Y * (1 - (7/5 * 3 * p + (21/5 * p + 2) * 3 * H))) by (apply Rmult_le_pos; lra). lra.
  - rewrite eM. assert (rt : 0 <= rho * t) by (apply Rmult_le_pos; lra). assert (0 <= rho * t * (7/8 * p - 225125/1000000 * Y)) by (apply Rmult_le_pos; lra).
    assert (0 <= rho * t * p) by (apply Rmult_le_pos; lra). lra.
  - replace (rho * q / ks) with (rho * Y) by (unfold Y; field; lra).
    assert (a1 : 0 <= rho * Y * ((1/25 + 2 * iN) * (1/16 - H))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (a2 : 0 <= rho * Y * (1 - iN)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_2_2 rho ell L t p h nu f iS kap ks q M : 0 < rho <= 1 -> 0 < ell <= L -> 0 < t -> h = L * t -> 0 <= p <= 1/100 ->
  h ^ 2 <= f ^ 2 * rho / 64 -> 0 < f <= 1 -> 0 <= nu <= 1 -> f * nu <= 1/2 -> 0 <= iS <= 1 ->
  kap = f * rho / 2 - rho * 1 * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) -> q = 7/8 * 1 * p + h * nu ->
  ks = kap - 9/10 * rho * ell * t -> M = rho * t * (q / ks) ->
  99/400 * (f * rho) <= ks /\ rho * 1 * q / ks * (7/5 * (3 * f) * p + (21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) <= 1/25 /\
  M <= t / f * (36/10 * p + 41/10 * h * nu) /\
  h * iS + 2/3 * p + rho * q / ks * (51/50 * (3 * f) + (1/25 + 2 * iS) * (3 / (f * rho)) * h ^ 2) <= h * iS + 12 * p + 13 * h * nu.
Proof.
  intros [r0 r1] l t0 eh [p0 p1] hh [f0 f1] [n0 n1] fn [s0 s1] ek eq es eM. destruct (fall rho ell L t h r0 l t0 eh) as [_ sl].
  assert (h0 : 0 <= h) by (rewrite eh; apply Rmult_le_pos; lra). assert (fr : 0 < f * rho) by now apply Rmult_lt_0_compat.
  set (X := 3 / (f * rho) * h ^ 2). assert (X0 : 0 <= X).
  { unfold X, Rdiv. apply Rmult_le_pos; [|apply pow2_ge_0]. apply Rmult_le_pos; [lra|]. now apply Rlt_le, Rinv_0_lt_compat. }
  assert (X1 : X <= 3/64 * f).
  { apply (Rmult_le_reg_r (f * rho)); auto. replace (X * (f * rho)) with (3 * h ^ 2) by (unfold X; field; lra). lra. }
  assert (hf : h <= f / 8). { assert (h ^ 2 <= (f / 8) ^ 2) by nra. nra. }
  assert (rh : rho * h <= rho * (f / 8)) by (apply Rmult_le_compat_l; lra).
  replace ((21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2 * nu) * X) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2) * X) by (unfold X; ring).
  replace ((1/25 + 2 * iS) * (3 / (f * rho)) * h ^ 2) with ((1/25 + 2 * iS) * X) by (unfold X; ring).
  assert (hn0 : 0 <= h * nu) by (apply Rmult_le_pos; lra).
  assert (hn : h * nu <= 1/16) by (assert (h * nu <= f / 8 * nu) by (apply Rmult_le_compat_r; lra); lra).
  assert (a1 : 0 <= f * (1/100 - p)) by (apply Rmult_le_pos; lra). assert (a2 : 0 <= X * (1/100 - p)) by (apply Rmult_le_pos; lra).
  assert (b1 : 7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X <= 14/100 * f) by (assert (0 <= X * (1 - nu)) by (apply Rmult_le_pos; lra); lra).
  assert (k2 : 0 <= rho * (14/100 * f - (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X))) by (apply Rmult_le_pos; lra).
  assert (Kb : 99/400 * (f * rho) <= ks) by (rewrite es, ek; lra). assert (k0 : 0 < ks) by lra.
  assert (q0 : 0 <= q) by (rewrite eq; lra). destruct (share_of q ks k0 q0) as [qk0 e].
  set (W := rho * (q / ks)). assert (W0 : 0 <= W) by (unfold W; apply Rmult_le_pos; lra). assert (fW : 0 <= f * W) by (apply Rmult_le_pos; lra).
  assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e in w. assert (W1 : 99/400 * (f * W) <= q) by (unfold W; lra).
  split; [exact Kb|split; [|split]].
  - replace (rho * 1 * q / ks) with W by (unfold W; field; lra).
    assert (c : 7/5 * (3 * f) * p + (21/5 * p + 2) * X <= 13775/100000 * f) by lra.
    assert (k1 : 0 <= W * (13775/100000 * f - (7/5 * (3 * f) * p + (21/5 * p + 2) * X))) by (apply Rmult_le_pos; lra). lra.
  - apply (Rmult_le_reg_r f); auto. replace (t / f * (36/10 * p + 41/10 * h * nu) * f) with (t * (36/10 * p + 41/10 * (h * nu))) by (field; lra).
    replace (M * f) with (t * (f * W)) by (rewrite eM; unfold W; ring). apply Rmult_le_compat_l; lra.
  - replace (rho * q / ks) with W by (unfold W; field; lra).
    assert (c : (1/25 + 2 * iS) * X <= 204/100 * (3/64 * f)) by (assert (0 <= X * (1 - iS)) by (apply Rmult_le_pos; lra); lra).
    assert (k1 : 0 <= W * (204/100 * (3/64 * f) - (1/25 + 2 * iS) * X)) by (apply Rmult_le_pos; lra). lra.
Qed.
(* c: 8 with noise, 4 without *)
Lemma step_2_4 c rho ell L t p h iN kap ks q M : 0 < rho <= 1 -> 0 < ell <= L -> 0 < t -> h = L * t -> 0 <= p <= 1/100 -> h <= 1/10 -> p <= h ^ 2 ->
  c = 8 /\ h ^ 2 <= rho / 40 \/ c = 4 /\ h ^ 2 <= rho / 20 -> 0 <= iN <= 1 ->
  kap = 1 - rho * 1 * (7/5 * (c / rho ^ 2) * p + (21/5 * p + 2 * 0) * 4 * h ^ 2) -> q = 7/8 * 1 * p + h * 0 ->
  ks = kap - 9/10 * rho * ell * t -> M = rho * t * (q / ks) ->
  17/25 <= ks /\ rho * 1 * q / ks * (7/5 * (c / rho ^ 2) * p + (21/5 * p + 2) * 4 * h ^ 2) <= 1/25 /\
  M <= 13/10 * rho * t * p /\ q / ks * (2 * (1 / rho - 1)) <= 26/10 * (1 / rho - 1) * p /\
  h * iN + 2/3 * p + rho * q / ks * (51/50 * (c / rho ^ 2) + (1/25 + 2 * iN) * 4 * h ^ 2) <= h * iN + 12 * p / rho.
Proof.
  intros [r0 r1] l t0 eh [p0 p1] h1 ph hc [i0 i1] ek eq es eM. destruct (fall rho ell L t h r0 l t0 eh) as [_ sl].
  assert (h0 : 0 <= h) by (rewrite eh; apply Rmult_le_pos; lra). assert (rh : rho * h <= rho * (1/10)) by (apply Rmult_le_compat_l; lra).
  assert (H0 := pow2_ge_0 h). assert (H1 : h ^ 2 <= 1/100) by nra. set (H := h ^ 2) in *.
  set (P := p / rho). assert (rP : rho * P = p) by (unfold P; field; lra).
  assert (P0 : 0 <= P) by (unfold P, Rdiv; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (pP : p <= P) by (assert (0 <= (1 - rho) * P) by (apply Rmult_le_pos; lra); lra).
  set (C := c * P). assert (C01 : 0 <= C <= 1/5 /\ rho * C <= 8/100 /\ C <= 8 * P).
  { unfold C. destruct hc as [[-> hr]|[-> hr]].
    - assert (P <= 1/40) by (apply (Rmult_le_reg_l rho); lra). lra.
    - assert (P <= 1/20) by (apply (Rmult_le_reg_l rho); lra). lra. }
  destruct C01 as [[C0 C1] [rC CP]].
  assert (pH0 : 0 <= p * H) by (apply Rmult_le_pos; lra). assert (pH : p * H <= 1/10000) by (assert (0 <= (1/100 - p) * H) by (apply Rmult_le_pos; lra); lra).
  assert (rpH : 0 <= rho * (p * H) <= 1/10000) by (split; [apply Rmult_le_pos; lra|assert (0 <= (1 - rho) * (p * H)) by (apply Rmult_le_pos; lra); lra]).
  assert (rH : 0 <= rho * H <= 1/100) by (split; [apply Rmult_le_pos; lra|assert (0 <= (1 - rho) * H) by (apply Rmult_le_pos; lra); lra]).
  assert (e1 : rho * 1 * (7/5 * (c / rho ^ 2) * p + (21/5 * p + 2 * 0) * 4 * H) = 7/5 * C + 84/5 * (rho * (p * H))) by (unfold C, P; field; lra).
  assert (both : 7/5 * C + 9/100 * rho <= 318/1000).
  { destruct (Rle_dec rho (2/5)) as [small|large]; [lra|]. apply (Rmult_le_reg_l rho); [lra|].
    assert (0 <= (rho - 2/5) * (1 - rho)) by (apply Rmult_le_pos; lra). lra. }
  assert (Kb : 17/25 <= ks) by (rewrite es, ek, e1; lra). assert (k0 : 0 < ks) by lra.
  destruct (share_of q ks k0 ltac:(rewrite eq; lra)) as [qk0 e]. assert (w := Rmult_le_compat_r _ _ _ qk0 Kb). rewrite e in w.
  set (Y := q / ks) in *. rewrite eq in w.
  split; [exact Kb|split; [|split; [|split]]].
  - replace (rho * 1 * q / ks * (7/5 * (c / rho ^ 2) * p + (21/5 * p + 2) * 4 * H)) with (Y * (7/5 * C + 84/5 * (rho * (p * H)) + 8 * (rho * H)))
      by (unfold Y, C, P; field; lra).
    assert (0 <= Y * (1 - (7/5 * C + 84/5 * (rho * (p * H)) + 8 * (rho * H)))) by (apply Rmult_le_pos; lra). lra.
  - rewrite eM. assert (rt : 0 <= rho * t) by (apply Rmult_le_pos; lra). assert (0 <= rho * t * (7/8 * p - 17/25 * Y)) by (apply Rmult_le_pos; lra).
    assert (0 <= rho * t * p) by (apply Rmult_le_pos; lra). lra.
  - assert (i : 0 <= 1 / rho - 1). { apply (Rmult_le_reg_l rho); [lra|]. replace (rho * (1 / rho - 1)) with (1 - rho) by (field; lra). lra. }
    assert (0 <= (1 / rho - 1) * (7/8 * p - 17/25 * Y)) by (apply Rmult_le_pos; lra). assert (0 <= (1 / rho - 1) * p) by (apply Rmult_le_pos; lra). lra.
  - replace (12 * p / rho) with (12 * P) by (unfold P; field; lra).
    replace (rho * q / ks * (51/50 * (c / rho ^ 2) + (1/25 + 2 * iN) * 4 * H)) with (51/50 * (c * (Y / rho)) + rho * Y * ((1/25 + 2 * iN) * 4 * H)) by (unfold Y; field; lra).
    set (V := Y / rho). assert (rV : rho * V = Y) by (unfold V; field; lra).
    assert (V0 : 0 <= V) by (unfold V, Rdiv; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
    assert (V1 : 17/25 * V <= 7/8 * P) by (apply (Rmult_le_reg_l rho); lra).
    assert (cV : c * V <= 8 * V) by (destruct hc as [[-> _]|[-> _]]; lra).
    assert (g1 : 0 <= (1/25 + 2 * iN) * 4 * H <= 1/10) by (split; [apply Rmult_le_pos; lra|assert (0 <= (1 - iN) * H) by (apply Rmult_le_pos; lra); lra]).
    assert (rY : rho * Y <= Y) by (assert (0 <= (1 - rho) * Y) by (apply Rmult_le_pos; lra); lra).
    assert (0 <= rho * Y) by (apply Rmult_le_pos; lra).
    assert (0 <= rho * Y * (1/10 - (1/25 + 2 * iN) * 4 * H)) by (apply Rmult_le_pos; lra). lra.
Qed.
