(* docs/theory/fedsub.md: FedSub's Theorem 1, all clients, no noise. step_2_5 is the page's [fedsub.2.5]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Noise Ssf.
From Fedtheory Require Import Descent Core.
Local Open Scope R_scope.

(* ---- numbers ---- *)
Lemma step_2_4 alpha (e b : nat -> R) tau : 0 <= alpha -> (forall s, 0 <= b s) ->
  (forall s, (s < tau)%nat -> e s <= alpha * sum s e + b s) ->
  forall s, (s <= tau)%nat -> sum s e <= (1 + alpha) ^ s * sum s b.
Proof. apply Ssf.step_2_6. Qed.
Lemma step_2_5 tau : sum tau (fun s => 2 * INR s ^ 2) = 1/3 * INR tau * (INR tau - 1) * (2 * INR tau - 1) /\
  sum tau (fun s => 2 * INR s ^ 2) <= 2/3 * INR tau ^ 2 * (INR tau - 1).
Proof.
  assert (e : sum tau (fun s => 2 * INR s ^ 2) = 1/3 * INR tau * (INR tau - 1) * (2 * INR tau - 1)).
  { induction tau; [simpl; ring|]. rewrite sum_S, IHtau, S_INR. field. }
  split; [exact e|]. rewrite e. destruct tau as [|n]; [simpl; lra|]. rewrite S_INR. assert (n0 := pos_INR n). nra.
Qed.
Lemma step_2_6 alpha tau lam : 0 <= alpha -> alpha * INR tau <= 2 * lam ^ 2 -> 0 <= lam <= 1/3 ->
  (1 + alpha) ^ tau <= exp (2 * lam ^ 2) /\ exp (2 * lam ^ 2) <= exp (2/9) /\ exp (2/9) <= 5/4 /\ 2/3 * (5/4) = 5/6.
Proof.
  intros a0 h [l0 l1]. assert (mono : forall a b, a <= b -> exp a <= exp b) by (intros a b [q|q]; [left; now apply exp_increasing|rewrite q; lra]).
  assert (l2 : 2 * lam ^ 2 <= 2/9) by nra. repeat split; [|now apply mono| |lra].
  - eapply Rle_trans; [|apply mono, h]. clear h. induction tau. { simpl. rewrite Rmult_0_r, exp_0. lra. }
    rewrite S_INR. replace (alpha * (INR tau + 1)) with (alpha + alpha * INR tau) by ring. rewrite exp_plus. simpl.
    apply Rmult_le_compat; try lra; [apply pow_le; lra|apply exp_ineq1_le].
  - assert (h3 : exp (1/144) <= 144/143).
    { assert (m := exp_ineq1_le (- (1/144))). assert (p := exp_pos (1/144)).
      assert (e : exp (1/144) * exp (- (1/144)) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
      apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ p)) in m. lra. }
    assert (ek : forall k, exp (1/144) ^ k = exp (INR k * (1/144))).
    { induction k; [simpl; now rewrite Rmult_0_l, exp_0|]. rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus. simpl. rewrite IHk. ring. }
    assert (p := exp_pos (1/144)). assert (h4 := pow_incr _ _ 32 (conj (Rlt_le _ _ p) h3)). rewrite ek in h4.
    replace (INR 32 * (1/144)) with (2/9) in h4 by (simpl; field). lra.
Qed.
(* p <= lambda^2, lambda <= 1/(3 sqrt theta_m) *)
Section Numbers.
Variables p lam thm thr t : R.
Hypothesis t0 : 0 < t.
Hypothesis thm1 : 1 <= thm.
Hypothesis thr01 : 0 < thr <= 1.
Hypothesis lam0 : 0 <= lam.
Hypothesis lam1 : lam ^ 2 * thm <= 1/9.
Hypothesis p0 : 0 <= p.
Hypothesis p1 : p <= lam ^ 2.
Let w := 5/6 * t * p.
Let pt : p * thm <= 1/9. Proof. assert (0 <= (lam ^ 2 - p) * thm) by (apply Rmult_le_pos; lra). lra. Qed.
Let l2 : lam ^ 2 <= 1/9. Proof. assert (q := pow2_ge_0 lam). assert (0 <= lam ^ 2 * (thm - 1)) by (apply Rmult_le_pos; lra). lra. Qed.
Let l1 : lam <= 1/3. Proof. apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. assert (h := l2). lra. Qed.
Lemma step_5_1 : t / 2 + 4 * w * thm = t * (1/2 + 10/3 * p * thm) /\ t * (1/2 + 10/3 * p * thm) <= t.
Proof. split; [unfold w; field|]. assert (h := pt). assert (0 <= t * (1/9 - p * thm)) by (apply Rmult_le_pos; lra). lra. Qed.
Lemma step_5_2 : 4 * w * thr * lam ^ 2 / t ^ 2 - (1 - lam) / (2 * t) = / t * (10/3 * p * thr * lam ^ 2 - (1 - lam) / 2) /\
  / t * (10/3 * p * thr * lam ^ 2 - (1 - lam) / 2) <= 0.
Proof.
  split; [unfold w; field; lra|]. assert (it : 0 < / t) by now apply Rinv_0_lt_compat. assert (a := l1). assert (b := l2). assert (c := pow2_ge_0 lam).
  assert (q : p * thr * lam ^ 2 <= 1/81).
  { assert (h1 : p * thr <= 1/9) by (assert (0 <= p * (1 - thr)) by (apply Rmult_le_pos; lra); lra).
    assert (h2 : 0 <= p * thr) by (apply Rmult_le_pos; lra). assert (0 <= (1/9 - p * thr) * lam ^ 2) by (apply Rmult_le_pos; lra). lra. }
  assert (0 <= / t * (- (10/3 * p * thr * lam ^ 2 - (1 - lam) / 2))) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_5_3 : - (t / 2) + w = - t * (1/2 - 5/6 * p) /\ - t * (1/2 - 5/6 * p) <= - (2/5) * t.
Proof. split; [unfold w; field|]. assert (h := l2). assert (0 <= t * (1/9 - p)) by (apply Rmult_le_pos; lra). lra. Qed.
End Numbers.
Lemma step_6_4 rho p z : 0 < rho <= 1 -> 0 < p -> 0 < z ->
  sqrt rho / 3 = 2 * sqrt (/ rho) * (rho / 6) /\ 640/3 / (25/6) = 512/10 /\ (25/6 * (/ rho - 1) * (p * z) < p * z <-> 25/31 < rho).
Proof.
  intros [r0 r1] p0 z0. assert (s0 : 0 < sqrt rho) by now apply sqrt_lt_R0. assert (ss : sqrt rho * sqrt rho = rho) by (apply sqrt_def; lra).
  assert (pz : 0 < p * z) by now apply Rmult_lt_0_compat.
  repeat split.
  - assert (i0 := Rinv_0_lt_compat _ r0). assert (i1 : sqrt (/ rho) * sqrt rho = 1) by (rewrite <- sqrt_mult, Rinv_l, sqrt_1 by lra; reflexivity).
    apply (Rmult_eq_reg_r (sqrt rho)); [|lra]. replace (2 * sqrt (/ rho) * (rho / 6) * sqrt rho) with (rho / 3 * (sqrt (/ rho) * sqrt rho)) by field.
    rewrite i1. replace (sqrt rho / 3 * sqrt rho) with (sqrt rho * sqrt rho / 3) by field. rewrite ss. field.
  - field.
  - intros h. assert (a : 25/6 * (/ rho - 1) < 1) by (apply (Rmult_lt_reg_r (p * z)); lra).
    apply (Rmult_lt_compat_r rho) in a; auto. replace (25/6 * (/ rho - 1) * rho) with (25/6 * (1 - rho)) in a by (field; lra). lra.
  - intros h. rewrite <- (Rmult_1_l (p * z)) at 2. apply Rmult_lt_compat_r; auto. apply (Rmult_lt_reg_r rho); auto.
    replace (25/6 * (/ rho - 1) * rho) with (25/6 * (1 - rho)) by (field; lra). lra.
Qed.

(* 8.4 to 8.6: numbers; r is the root of Q, c that of theta_m *)
Section Numbers8.
Variables Q lam thm c r : R.
Hypothesis c1 : 1 <= c.
Hypothesis cc : c * c = thm.
Hypothesis r0 : 0 <= r.
Hypothesis rr : r * r = Q.
Hypothesis lam0 : 0 <= lam.
Hypothesis lc : lam * c <= 1/6.
Hypothesis Q1 : Q <= 5/6 * lam ^ 2.
Definition kappa8 : R := 2 * lam + 16 * lam ^ 2 * Q + 8 * thm * Q.
Let Q0 : 0 <= Q. Proof. rewrite <- rr. nra. Qed.
Let l6 : lam <= 1/6. Proof. assert (0 <= lam * (c - 1)) by (apply Rmult_le_pos; lra). lra. Qed.
Let tq : thm * Q <= 5/36 * (lam * c).
Proof.
  assert (a : thm * Q <= 5/6 * ((lam * c) * (lam * c))) by (rewrite <- cc; assert (0 <= c * c * (5/6 * lam ^ 2 - Q)) by (apply Rmult_le_pos; nra); lra).
  assert (l : 0 <= lam * c) by (apply Rmult_le_pos; lra). assert (0 <= (lam * c) * (1/6 - lam * c)) by (apply Rmult_le_pos; lra). lra.
Qed.
Let q2 : Q <= 5/36 * lam. Proof. assert (0 <= lam * (1/6 - lam)) by (apply Rmult_le_pos; lra). lra. Qed.
Let l2 : 0 <= lam ^ 2 <= lam / 6. Proof. assert (0 <= lam * (1/6 - lam)) by (apply Rmult_le_pos; lra). split; nra. Qed.
Let lq : 0 <= lam ^ 2 * Q <= 1/36 * Q. Proof. assert (a := Q0). assert (b := l2). assert (d := l6). split; [nra|]. apply Rmult_le_compat_r; lra. Qed.
Let kap : 0 <= kappa8 <= 53/100.
Proof. unfold kappa8. assert (a := Q0). assert (b := l6). assert (d := tq). assert (e := q2). assert (k := lq). assert (0 <= thm * Q) by (rewrite <- cc; nra). lra. Qed.
Lemma step_8_4 H0 Zk Th Ga : 0 <= Th -> 0 <= Ga -> 0 <= H0 -> 0 <= Zk ->
  Th <= H0 + 2 * Zk + (4 * thm * Q + 8 * lam ^ 2 * Q) * Th + (4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) * Ga ->
  Th <= 10/9 * (H0 + 2 * Zk) + 9/25 * Ga.
Proof.
  intros T0 G0 h0 z0 h. assert (a := Q0). assert (b := l6). assert (d := tq). assert (e := q2). assert (k := lq). assert (m := l2).
  assert (x1 : 4 * thm * Q + 8 * lam ^ 2 * Q <= 1/10) by lra.
  assert (x2 : 4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q <= 324/1000) by lra.
  apply (Rmult_le_compat_r _ _ _ T0) in x1. apply (Rmult_le_compat_r _ _ _ G0) in x2. lra.
Qed.
Lemma step_8_5 : - (1 - lam * (1 + Q) - r - 1/16 - (8 * lam ^ 2 * Q + lam / 2) * (2 + 2 * Q) - 8 * thm * Q ^ 2 - 9/25 * Q * kappa8) <= - (2/5).
Proof.
  assert (a := Q0). assert (b := l6). assert (d := tq). assert (e := q2). assert (k := lq). assert (m := l2). assert (kp := kap).
  assert (Qb : Q <= 5/216) by lra. assert (rb : r <= 1522/10000) by (apply Rnot_lt_le; intros x; nra).
  assert (p1 : lam * Q <= 1/6 * Q) by (apply Rmult_le_compat_r; lra).
  assert (p2 : lam ^ 2 * Q * Q <= 1/36 * Q) by (assert (0 <= lam ^ 2 * Q * (1 - Q)) by (apply Rmult_le_pos; lra); lra).
  assert (p3 : thm * Q ^ 2 <= 5/216 * Q) by (assert (0 <= (5/216 - thm * Q) * Q) by (apply Rmult_le_pos; lra); lra).
  assert (p4 : Q * kappa8 <= 53/100 * Q) by (rewrite Rmult_comm; apply Rmult_le_compat_r; lra).
  assert (p5 : lam ^ 2 * Q * Q <= 1/36 * (Q * (5/216))) by (assert (0 <= Q * (5/216 - Q)) by (apply Rmult_le_pos; lra); assert (0 <= (1/36 - lam ^ 2) * (Q * Q)) by (apply Rmult_le_pos; [lra|nra]); lra).
  lra.
Qed.
Lemma step_8_6 : 20/9 * kappa8 + lam / 2 <= 8 * lam * c /\ 4 + 10/9 * kappa8 <= 5.
Proof.
  assert (a := Q0). assert (b := l6). assert (d := tq). assert (e := q2). assert (k := lq). assert (kp := kap).
  assert (x : lam <= lam * c) by (assert (0 <= lam * (c - 1)) by (apply Rmult_le_pos; lra); lra).
  split; [|lra]. unfold kappa8. lra.
Qed.
End Numbers8.
(* 6.2: cube roots *)
Definition cbrt x : R := Rpower x (/3).
Lemma cbrt_spec x : 0 < x -> 0 < cbrt x /\ cbrt x ^ 3 = x.
Proof.
  intros x0. split; [apply exp_pos|]. unfold cbrt. rewrite <- Rpower_pow by apply exp_pos. rewrite Rpower_mult.
  replace (/ 3 * INR 3) with 1 by (simpl; field). now apply Rpower_1.
Qed.
Lemma cube_le x y : 0 <= y -> x ^ 3 <= y ^ 3 -> x <= y.
Proof. intros y0 h. apply Rnot_lt_le. intros q. assert (k : 0 < (x - y) * (x * x + x * y + y * y)) by (apply Rmult_lt_0_compat; nra). simpl in h. lra. Qed.
Lemma step_6_2 thm Del L zeta K p b : 1 < thm -> 0 < Del -> 0 < L -> zeta <> 0 -> 0 < K -> 0 < b -> p <= L ^ 2 * b ^ 2 ->
  let A := 5 * thm * Del / (2 * K) in let C := 25/6 * (thm - 1) * L ^ 2 * zeta ^ 2 in
  let best := Rmin (/ (3 * L * sqrt thm)) (cbrt (A / (2 * C))) in
  5 * thm * Del / (2 * b * K) + 25/6 * ((thm - 1) * p * zeta ^ 2) <= A / b + C * b ^ 2 /\
  (0 < A /\ 0 < C /\ A / cbrt (A / (2 * C)) + C * cbrt (A / (2 * C)) ^ 2 <= A / b + C * b ^ 2) /\
  / best <= 3 * L * sqrt thm + cbrt (2 * C / A) /\
  A / best + C * best ^ 2 <= 15/2 * (thm * sqrt thm * L * Del / K) + 561/100 * cbrt (thm ^ 2 * (thm - 1) * (L ^ 2 * Del ^ 2 * zeta ^ 2 / K ^ 2)).
Proof.
  intros h1 D0 L0 z0 K0 b0 hp A C best. assert (z2 : 0 < zeta ^ 2) by nra. assert (L2 : 0 < L ^ 2) by nra.
  assert (A0 : 0 < A) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra). assert (C0 : 0 < C) by (unfold C; apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat|]; lra).
  assert (q0 : 0 < A / (2 * C)) by (apply Rdiv_lt_0_compat; lra). destruct (cbrt_spec _ q0) as [e0 e3]. set (e := cbrt (A / (2 * C))) in *.
  assert (eA : A = 2 * C * e ^ 3) by (rewrite e3; field; lra).
  assert (s0 : 0 < sqrt thm) by (apply sqrt_lt_R0; lra).
  assert (ie : cbrt (2 * C / A) = / e).
  { destruct (cbrt_spec (2 * C / A)) as [f0 f3]; [apply Rdiv_lt_0_compat; lra|]. assert (i0 := Rinv_0_lt_compat _ e0).
    assert (x : (/ e) ^ 3 = 2 * C / A) by (rewrite eA; field; lra). apply Rle_antisym; apply cube_le; try lra; rewrite f3, x; lra. }
  assert (low : A / e + C * e ^ 2 <= A / b + C * b ^ 2).
  { apply (Rmult_le_reg_r b); auto. replace ((A / b + C * b ^ 2) * b) with (A + C * b ^ 3) by (field; lra).
    replace ((A / e + C * e ^ 2) * b) with (3 * C * e ^ 2 * b) by (rewrite eA; field; lra). rewrite eA.
    assert (k : 0 <= C * ((b - e) ^ 2 * (b + 2 * e))) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [apply pow2_ge_0|lra]). nra. }
  assert (u0 : 0 < / (3 * L * sqrt thm)) by (apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (best0 : 0 < best) by (unfold best; now apply Rmin_glb_lt).
  assert (ib : / best <= 3 * L * sqrt thm + / e).
  { assert (i0 := Rinv_0_lt_compat _ e0). assert (x0 : 0 < 3 * L * sqrt thm) by (repeat apply Rmult_lt_0_compat; lra).
    unfold best. destruct (Rle_dec (/ (3 * L * sqrt thm)) e); [rewrite Rmin_left, Rinv_inv by lra; lra|rewrite Rmin_right by lra; lra]. }
  assert (be : best <= e) by apply Rmin_r.
  repeat split; auto.
  - assert (k : 0 <= 25/6 * (thm - 1) * zeta ^ 2 * (L ^ 2 * b ^ 2 - p)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]).
    replace (A / b) with (5 * thm * Del / (2 * b * K)) by (unfold A; field; lra). unfold C. lra.
  - rewrite ie. exact ib.
  - set (c := cbrt _). assert (c00 : 0 < thm ^ 2 * (thm - 1) * (L ^ 2 * Del ^ 2 * zeta ^ 2 / K ^ 2)).
    { apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [apply pow_lt|]; lra|]. apply Rdiv_lt_0_compat; [|apply pow_lt; lra]. apply Rmult_lt_0_compat; [|lra]. apply Rmult_lt_0_compat; [lra|apply pow_lt; lra]. }
    destruct (cbrt_spec _ c00) as [c0 c3]. fold c in c0, c3.
    assert (m1 := Rmult_le_compat_l A _ _ (Rlt_le _ _ A0) ib).
    assert (m2 : C * best ^ 2 <= C * e ^ 2) by (apply Rmult_le_compat_l; [lra|]; apply pow_incr; lra).
    assert (m3 : A * / e = 2 * C * e ^ 2) by (rewrite eA; field; lra).
    assert (m4 : 3 * C * e ^ 2 <= 561/100 * c).
    { apply cube_le; [lra|]. replace ((3 * C * e ^ 2) ^ 3) with (27/4 * (C * (2 * C * e ^ 3) ^ 2)) by field. rewrite <- eA.
      replace ((561/100 * c) ^ 3) with ((561/100) ^ 3 * c ^ 3) by ring. rewrite c3.
      replace (C * A ^ 2) with (25/6 * (25/4) * (thm ^ 2 * (thm - 1) * (L ^ 2 * Del ^ 2 * zeta ^ 2 / K ^ 2))) by (unfold C, A; field; lra). lra. }
    replace (15/2 * (thm * sqrt thm * L * Del / K)) with (A * (3 * L * sqrt thm)) by (unfold A; field; lra). unfold Rdiv at 1. lra.
Qed.
(* ---- the method ---- *)
Section FedSub.
Context {D : Dim}.
Variables n tau : nat.
Hypothesis n1 : (0 < n)%nat.
Hypothesis tau1 : (0 < tau)%nat.
Context {O : Type}.
Variable draw : law O.
Variable Pi : O -> vec -> vec.            (* P R P^T *)
Variable ratio : nat -> R.                (* r_l / m_l of the layer of a coordinate *)
Definition Rm (v : vec) : vec := fun j => ratio j * v j.
Definition Ri (v : vec) : vec := fun j => / ratio j * v j.
Definition nrmR (v : vec) : R := dot v (Rm v).
Variables thm thr : R.
Variable f : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L fstar eta zeta : R.
Hypothesis ratio_low : forall j, / thm <= ratio j.
Hypothesis ratio_high : forall j, ratio j <= thr.
Hypothesis thm1 : 1 <= thm.
Hypothesis thr01 : 0 < thr <= 1.
Hypothesis Pi_proj : forall w, proj (Pi w).
Hypothesis Pi_layers : forall w v, Pi w (Rm v) = Rm (Pi w v).
Hypothesis EPi : forall u v, draw (fun w => dot u (Pi w v)) = dot u (Rm v).
Hypothesis L0 : 0 <= L.
Hypothesis eta0 : 0 < eta.
Hypothesis grad : forall i, (i < n)%nat -> gradient (f i) (g i).
Hypothesis lip : forall i, (i < n)%nat -> lipschitz L (g i).
Definition t_ : R := eta * INR tau.
Definition lam : R := L * t_.
Definition pp : R := L ^ 2 * eta ^ 2 * INR tau * (INR tau - 1).
Definition meanR (h : nat -> R) : R := / INR n * sum n h.
Definition meanV (h : nat -> vec) : vec := (/ INR n *: vsum n h)%V.
Record state := State { sx : vec; su : nat -> vec }.
Fixpoint z (s : state) w i k : vec := match k with 0%nat => v0 | S k => (z s w i k - eta *: Pi w (g i (sx s + z s w i k) + Ri (su s i)))%V end.
Definition a s w i : vec := (/ INR tau *: vsum tau (fun k => g i (sx s + z s w i k)))%V.
Definition step (s : state) w : state :=
  {| sx := (sx s - t_ *: Pi w (meanV (a s w)))%V; su := fun i => (- Pi w (a s w i - meanV (a s w)))%V |}.
Definition inv s : Prop := vsum n (su s) = v0.
Definition Favg x : R := meanR (fun i => f i x).
Definition G x : vec := meanV (fun i => g i x).
Definition h_ s i : vec := (g i (sx s) - G (sx s) + Ri (su s i))%V.
Definition H s : R := meanR (fun i => nrmR (h_ s i)).
Let N0 : 0 < INR n. Proof. now apply lt_0_INR. Qed.
Let T0 : 0 < INR tau. Proof. now apply lt_0_INR. Qed.
Let iN0 : 0 <= / INR n. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let ithm : 0 < / thm. Proof. apply Rinv_0_lt_compat. lra. Qed.
Let r0 j : 0 < ratio j. Proof. assert (q := ratio_low j). assert (q2 := ithm). lra. Qed.
Lemma t_gt0 : 0 < t_. Proof. unfold t_. now apply Rmult_lt_0_compat. Qed.
Lemma Ri_Rm v : Ri (Rm v) = v. Proof. apply functional_extensionality; intros j. unfold Ri, Rm. field. assert (q := r0 j). lra. Qed.
Lemma Rm_Ri v : Rm (Ri v) = v. Proof. apply functional_extensionality; intros j. unfold Ri, Rm. field. assert (q := r0 j). lra. Qed.
Lemma Rm_add u v : Rm (u + v)%V = (Rm u + Rm v)%V. Proof. unfold Rm. vring. Qed.
Lemma Ri_add u v : Ri (u + v)%V = (Ri u + Ri v)%V. Proof. unfold Ri. vring. Qed.
Lemma Rm_sym u v : dot (Rm u) v = dot u (Rm v). Proof. apply sum_ext; intros. unfold Rm. ring. Qed.
Lemma Pi_Ri w v : Pi w (Ri v) = Ri (Pi w v).
Proof. rewrite <- (Ri_Rm (Pi w (Ri v))), <- Pi_layers, Rm_Ri. reflexivity. Qed.
Lemma nrmR_ge0 v : 0 <= nrmR v.
Proof. apply sum_ge0; intros j _. unfold Rm. replace (v j * (ratio j * v j)) with (ratio j * (v j * v j)) by ring. apply Rmult_le_pos; [apply Rlt_le, r0|apply Rle_0_sqr]. Qed.
Lemma nrmR_add u v : nrmR (u + v) = nrmR u + 2 * dot u (Rm v) + nrmR v.
Proof. unfold nrmR. rewrite Rm_add, !dot_addl, !dot_addr, <- (Rm_sym v u), (dotC (Rm v)). ring. Qed.
(* means *)
Lemma meanR_le h h' : (forall i, (i < n)%nat -> h i <= h' i) -> meanR h <= meanR h'.
Proof. intros q. apply Rmult_le_compat_l; auto. now apply sum_le. Qed.
Lemma meanR_ext h h' : (forall i, (i < n)%nat -> h i = h' i) -> meanR h = meanR h'.
Proof. intros q. unfold meanR. now rewrite (sum_ext _ _ _ q). Qed.
Lemma meanR_plus h h' : meanR (fun i => h i + h' i) = meanR h + meanR h'.
Proof. unfold meanR. rewrite sum_plus. ring. Qed.
Lemma meanR_scal c h : meanR (fun i => c * h i) = c * meanR h.
Proof. unfold meanR. rewrite sum_scal. ring. Qed.
Lemma meanR_const c : meanR (fun _ => c) = c.
Proof. unfold meanR. rewrite sum_const. field. lra. Qed.
Lemma meanV_plus h h' : meanV (fun i => h i + h' i)%V = (meanV h + meanV h')%V.
Proof. unfold meanV. rewrite vsum_plus. vring. Qed.
Lemma meanV_ext h h' : (forall i, (i < n)%nat -> h i = h' i) -> meanV h = meanV h'.
Proof. intros q. unfold meanV. now rewrite (vsum_ext _ _ _ q). Qed.
Lemma meanV_scal c h : meanV (fun i => c *: h i)%V = (c *: meanV h)%V.
Proof. unfold meanV. rewrite vsum_scal. vring. Qed.
Lemma meanV_sub h h' : meanV (fun i => h i - h' i)%V = (meanV h - meanV h')%V.
Proof. rewrite (meanV_ext _ (fun i => h i + (-1) *: h' i)%V) by (intros; vring). rewrite meanV_plus, meanV_scal. vring. Qed.
Lemma meanV_const v : meanV (fun _ => v) = v.
Proof. unfold meanV. rewrite vsum_const. vfield. lra. Qed.
Lemma meanV_Pi w h : meanV (fun i => Pi w (h i)) = Pi w (meanV h).
Proof. unfold meanV. now rewrite (p_scal _ (Pi_proj w)), (p_vsum _ (Pi_proj w)). Qed.
Lemma meanV_dot h v : dot (meanV h) v = meanR (fun i => dot (h i) v).
Proof. unfold meanV, meanR. now rewrite dot_scall, dot_suml. Qed.
Lemma meanV_Ri h : meanV (fun i => Ri (h i)) = Ri (meanV h).
Proof. apply functional_extensionality; intros j. unfold meanV, Ri, vscal, vsum. rewrite sum_scal. ring. Qed.
Lemma ex_meanR {A} (E : law A) h : E (fun o => meanR (fun i => h i o)) = meanR (fun i => E (h i)).
Proof. unfold meanR. now rewrite ex_scal, ex_sum. Qed.
Lemma inv_mean s : inv s -> meanV (su s) = v0.
Proof. intros q. unfold meanV. rewrite q. vring. Qed.

(* 1 *)
Lemma step_1_1 w v : Pi w (Pi w v) = Pi w v /\ (forall u, dot (Pi w u) v = dot u (Pi w v)) /\ draw (fun w => dot v (Ri (Pi w v))) = nrm2 v.
Proof.
  split; [apply p_idem, Pi_proj|]. split; [intros; apply p_sym, Pi_proj|].
  rewrite (ex_ext draw _ (fun w => dot (Ri v) (Pi w v))).
  - rewrite EPi, <- Rm_sym, Rm_Ri. reflexivity.
  - intros w'. apply sum_ext; intros. unfold Ri. ring.
Qed.
Lemma step_1_3 s w : inv s -> inv (step s w) /\ sx (step s w) = (sx s - t_ *: Pi w (meanV (a s w)))%V /\
  forall i, su (step s w) i = (- Pi w (a s w i - meanV (a s w)))%V.
Proof.
  intros hs. repeat split. unfold inv. cbn [step su].
  assert (e : meanV (fun i => - Pi w (a s w i - meanV (a s w)))%V = v0).
  { rewrite (meanV_ext _ (fun i => (-1) *: Pi w (a s w i - meanV (a s w)))%V) by (intros; vring).
    rewrite meanV_scal, meanV_Pi, meanV_sub, meanV_const. change (meanV (fun i => a s w i)) with (meanV (a s w)).
    replace (meanV (a s w) - meanV (a s w))%V with v0 by vring. rewrite (p_0 _ (Pi_proj w)). vring. }
  unfold meanV in e at 1. replace v0 with (INR n *: v0)%V at 1 by vring. rewrite <- e. vfield. lra.
Qed.
(* 1.2: line 6 in the subspace, times P; Rs multiplies by r_l / m_l there *)
Lemma step_1_2 s w i (P Pt Rs : vec -> vec) (B : nat -> vec) :
  (forall u v, P (u + v)%V = (P u + P v)%V) -> (forall c u, P (c *: u)%V = (c *: P u)%V) ->
  (forall v, Pi w v = P (Rs (Pt v))) -> (forall v, P (Rs v) = Rm (P v)) ->
  let Lam := (t_ *: Pt (su s i))%V in
  B 0%nat = v0 -> (forall k, B (S k) = (B k - eta *: (Rs (Pt (g i (sx s + P (B k)))) + / t_ *: Lam))%V) ->
  P (B 0%nat) = v0 /\ forall k, P (B k) = z s w i k /\
    P (B (S k)) = (P (B k) - eta *: Pi w (g i (sx s + P (B k)) + Ri (su s i)))%V.
Proof.
  intros Pa Ps hP hR Lam B0 BS. assert (t0 := t_gt0). assert (pw := Pi_proj w).
  assert (e0 : P (B 0%nat) = v0). { rewrite B0. replace v0 with (0 *: v0)%V at 1 by vring. rewrite Ps. vring. }
  assert (st : forall k, P (B (S k)) = (P (B k) - eta *: Pi w (g i (sx s + P (B k)) + Ri (su s i)))%V).
  { intros k. rewrite BS. unfold Lam. set (y := g i (sx s + P (B k))%V).
    replace (/ t_ *: (t_ *: Pt (su s i)))%V with (Pt (su s i)) by (vfield; lra).
    rewrite subE, Pa, !Ps, Pa, <- hP, (p_add _ pw), Pi_Ri, (hP (su s i)), hR, Ri_Rm. vring. }
  split; [exact e0|]. intros k. split; [|apply st]. induction k; [exact e0|]. rewrite st, IHk. reflexivity.
Qed.
Lemma step_2_2 u v k (b : nat -> vec) : nrm2 (u + v) <= 2 * nrm2 u + 2 * nrm2 v /\ nrm2 (vsum k b) <= INR k * sum k (fun j => nrm2 (b j)).
Proof. split; [apply nrm2_add_le2|apply nrm2_vsum]. Qed.
Lemma step_2_3 v : draw (fun w => nrm2 (Pi w v)) = draw (fun w => dot v (Pi w v)) /\ draw (fun w => nrm2 (Pi w v)) = nrmR v.
Proof.
  assert (e : draw (fun w => nrm2 (Pi w v)) = draw (fun w => dot v (Pi w v))) by (apply ex_ext; intros w; apply p_nrm2, Pi_proj).
  split; [exact e|]. rewrite e. apply EPi.
Qed.
Lemma step_3_1 x s : Favg (x + s) - Favg x - dot (G x) s <= L / 2 * nrm2 s.
Proof.
  enough (Favg (x + s) <= Favg x + (dot (G x) s + L / 2 * nrm2 s)) by lra.
  unfold G. rewrite meanV_dot, <- (meanR_const (L / 2 * nrm2 s)). unfold Favg. rewrite <- !meanR_plus.
  apply meanR_le; intros i hi. assert (q := smooth (f i) (g i) L L0 (grad i hi) (lip i hi) x s). lra.
Qed.
Lemma step_3_2 w u v : 2 * dot u (Pi w v) = nrm2 (Pi w u) + nrm2 (Pi w v) - nrm2 (Pi w (v - u)%V).
Proof. assert (pw := Pi_proj w). rewrite (p_sub _ pw), nrm2_sub, <- (p_dot _ pw), (dotC (Pi w v)). ring. Qed.
Lemma step_3_3 s w : let b := meanV (a s w) in Favg (sx (step s w)) <= Favg (sx s) - t_ / 2 * nrm2 (Pi w (G (sx s)))
  + t_ / 2 * nrm2 (Pi w (b - G (sx s))) - t_ / 2 * (1 - lam) * nrm2 (Pi w b).
Proof.
  intros b. cbn [step sx]. fold b. replace (sx s - t_ *: Pi w b)%V with (sx s + - t_ *: Pi w b)%V by vring.
  assert (q := step_3_1 (sx s) (- t_ *: Pi w b)%V). assert (q2 := step_3_2 w (G (sx s)) b). rewrite dot_scalr, nrm2_scal in q.
  apply (f_equal (Rmult t_)) in q2. unfold lam. lra.
Qed.
Lemma step_4_2 (x y c : R) : (x + y + c) ^ 2 <= 4 * x ^ 2 + 2 * y ^ 2 + 4 * c ^ 2 /\
  4 * x ^ 2 + 2 * y ^ 2 + 4 * c ^ 2 - (x + y + c) ^ 2 = (y - x - c) ^ 2 + 2 * (x - c) ^ 2.
Proof. split; [|ring]. assert (q1 := pow2_ge_0 (y - x - c)). assert (q2 := pow2_ge_0 (x - c)). lra. Qed.
Lemma step_4_3 v : draw (fun w => nrmR (v - Ri (Pi w v))) = dot v (v - Rm v).
Proof.
  rewrite (ex_ext draw _ (fun w => nrmR v + ((-2) * dot v (Pi w v) + dot (Ri v) (Pi w v)))).
  - rewrite !ex_plus, ex_scal, ex_const, !EPi, <- (Rm_sym (Ri v)), Rm_Ri, (subE v (Rm v)), dot_addr, dot_scalr. unfold nrmR. ring.
  - intros w. assert (pw := Pi_proj w). replace (v - Ri (Pi w v))%V with (v + (-1) *: Ri (Pi w v))%V by vring.
    assert (e1 : forall u, Rm ((-1) *: Ri u)%V = ((-1) *: u)%V) by (intros u; rewrite <- (Rm_Ri u) at 2; unfold Rm, Ri; vring).
    rewrite nrmR_add, e1, dot_scalr. unfold nrmR at 2. rewrite e1, dot_scall, dot_scalr.
    assert (e2 : dot (Ri (Pi w v)) (Pi w v) = dot (Ri v) (Pi w v)) by (rewrite <- Pi_Ri, (p_sym _ pw), (p_idem _ pw); reflexivity).
    rewrite e2. ring.
Qed.
Lemma nrmR_le v c : (forall j, ratio j <= c) -> nrmR v <= c * nrm2 v.
Proof.
  intros q. unfold nrmR, nrm2, dot. rewrite <- sum_scal. apply sum_le; intros j _. unfold Rm.
  assert (k : 0 <= (c - ratio j) * (v j * v j)) by (apply Rmult_le_pos; [specialize (q j); lra|apply Rle_0_sqr]). lra.
Qed.
Lemma step_4_4 v : dot v (v - Rm v) <= (1 - / thm) * nrm2 v /\ / thm * nrm2 v <= nrmR v /\ nrmR v <= thr * nrm2 v.
Proof.
  assert (low : / thm * nrm2 v <= nrmR v).
  { unfold nrmR, nrm2, dot. rewrite <- sum_scal. apply sum_le; intros j _. unfold Rm.
    assert (k : 0 <= (ratio j - / thm) * (v j * v j)) by (apply Rmult_le_pos; [assert (q := ratio_low j); lra|apply Rle_0_sqr]). lra. }
  repeat split; auto; [|now apply nrmR_le]. rewrite subE, dot_addr, dot_scalr. fold (nrmR v) (nrm2 v). lra.
Qed.
Lemma step_4_5 w y : nrmR (Ri (Pi w y)) <= thm * nrm2 (Pi w y) /\ nrm2 (Pi w y) <= nrm2 y.
Proof.
  split; [|apply p_le, Pi_proj]. unfold nrmR. rewrite Rm_Ri, dotC. unfold nrm2, dot. rewrite <- sum_scal. apply sum_le; intros j _. unfold Ri.
  assert (q : / ratio j <= thm). { rewrite <- (Rinv_inv thm). apply Rinv_le_contravar; [exact ithm|apply ratio_low]. }
  assert (k : 0 <= (thm - / ratio j) * (Pi w y j * Pi w y j)) by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]). lra.
Qed.
Lemma var_eq h : meanR (fun i => nrm2 (h i - meanV h)) = meanR (fun i => nrm2 (h i)) - nrm2 (meanV h).
Proof.
  rewrite (meanR_ext _ (fun i => nrm2 (h i) + ((-2) * dot (h i) (meanV h) + nrm2 (meanV h)))) by (intros; rewrite nrm2_sub; ring).
  rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot h (meanV h)). fold (nrm2 (meanV h)). ring.
Qed.
Lemma step_4_6 (y : nat -> vec) s w : meanR (fun i => nrm2 (y i)) - meanR (fun i => nrm2 (y i - meanV y)) = nrm2 (meanV y) /\
  meanR (fun i => nrm2 (y i - meanV y)) <= meanR (fun i => nrm2 (y i)) /\
  let v := fun x i => (g i x - G x)%V in let s' := step s w in
  meanR (fun i => nrm2 (v (sx s') i - v (sx s) i)) <= L ^ 2 * nrm2 (sx s' - sx s).
Proof.
  assert (q := nrm2_ge0 (meanV y)). split; [rewrite var_eq; ring|]. split; [rewrite var_eq; lra|]. intros v s'.
  pose (e := fun i => (g i (sx s') - g i (sx s))%V).
  assert (m : meanV e = (G (sx s') - G (sx s))%V) by (unfold e; apply meanV_sub).
  rewrite (meanR_ext _ (fun i => nrm2 (e i - meanV e))) by (intros i _; f_equal; rewrite m; unfold v, e; vring).
  rewrite var_eq. assert (q2 := nrm2_ge0 (meanV e)).
  assert (l : meanR (fun i => nrm2 (e i)) <= L ^ 2 * nrm2 (sx s' - sx s)).
  { rewrite <- (meanR_const (L ^ 2 * _)). apply meanR_le; intros i hi. assert (k := lip i hi (sx s') (sx s)). unfold e. lra. }
  lra.
Qed.
(* 2 *)
Definition d_ s i : vec := (G (sx s) + h_ s i)%V.
Definition b_ s w i k : vec := (g i (sx s + z s w i k) - g i (sx s))%V.
Lemma d_alt s i : d_ s i = (g i (sx s) + Ri (su s i))%V. Proof. unfold d_, h_. vring. Qed.
Lemma step_2_1 s w i k : (z s w i k = - (eta *: (vsum k (fun j => Pi w (b_ s w i j)) + INR k *: Pi w (d_ s i))))%V.
Proof.
  assert (pw := Pi_proj w). induction k.
  - change (v0 = - (eta *: (v0 + 0 *: Pi w (d_ s i))))%V. vring.
  - rewrite vsum_S, S_INR. cbn [z].
    replace (g i (sx s + z s w i k) + Ri (su s i))%V with (b_ s w i k + d_ s i)%V by (rewrite d_alt; unfold b_; vring).
    rewrite (p_add _ pw). set (q := Pi w (b_ s w i k)). rewrite IHk at 1. vring.
Qed.
Lemma mean_h s : inv s -> meanV (h_ s) = v0.
Proof.
  intros hs. unfold h_. rewrite meanV_plus, meanV_sub, meanV_const, meanV_Ri. change (meanV (fun i => su s i)) with (meanV (su s)). rewrite (inv_mean s hs).
  fold (G (sx s)). apply functional_extensionality; intros j. unfold vadd, vsub, Ri, v0. ring.
Qed.
Lemma step_2_7 s : inv s -> meanR (fun i => nrmR (G (sx s) + h_ s i)) = nrmR (G (sx s)) + meanR (fun i => nrmR (h_ s i)).
Proof.
  intros hs. rewrite (meanR_ext _ (fun i => nrmR (G (sx s)) + (2 * dot (h_ s i) (Rm (G (sx s))) + nrmR (h_ s i)))).
  - rewrite !meanR_plus, meanR_scal, meanR_const, <- (meanV_dot (h_ s)), mean_h, dot_0l by auto. ring.
  - intros i _. rewrite nrmR_add, <- Rm_sym, (dotC (Rm (G (sx s)))). ring.
Qed.
Definition Dw s w : R := meanR (fun i => / INR tau * sum tau (fun k => nrm2 (z s w i k))).
Definition DD s : R := draw (Dw s).
Lemma s_thm : 0 < sqrt thm /\ sqrt thm * sqrt thm = thm.
Proof. split; [apply sqrt_lt_R0; lra|apply sqrt_def; lra]. Qed.
Lemma lam_ge0 : 0 <= lam. Proof. unfold lam. assert (q := Rlt_le _ _ t_gt0). pos. Qed.
Section Third.
Hypothesis lam_3 : lam <= 1/3.
Let tt1 : 1 <= INR tau. Proof. apply (le_INR 1). lia. Qed.
Lemma pp_range : 0 <= pp <= lam ^ 2.
Proof.
  assert (l2 := pow2_ge_0 L). assert (e2 := pow2_ge_0 eta). assert (b : 0 <= L ^ 2 * eta ^ 2 * INR tau) by pos. unfold pp, lam, t_. split; [pos|lra].
Qed.
Lemma b_le s w i k : (i < n)%nat -> nrm2 (b_ s w i k) <= L * L * nrm2 (z s w i k).
Proof.
  intros hi. assert (q := lip i hi (sx s + z s w i k)%V (sx s)). replace (sx s + z s w i k - sx s)%V with (z s w i k) in q by vring. exact q.
Qed.
Lemma drift_rec s i k : (i < n)%nat -> (k < tau)%nat -> draw (fun w => nrm2 (z s w i k))
  <= 2 * eta ^ 2 * L ^ 2 * INR tau * sum k (fun j => draw (fun w => nrm2 (z s w i j))) + eta ^ 2 * nrmR (d_ s i) * (2 * INR k ^ 2).
Proof.
  intros hi hk. assert (kT : INR k <= INR tau) by (apply le_INR; lia). assert (k0 := pos_INR k). assert (e2 := pow2_ge_0 eta).
  eapply Rle_trans; [apply (ex_le draw _ (fun w => 2 * eta ^ 2 * L ^ 2 * INR tau * sum k (fun j => nrm2 (z s w i j)) + 2 * eta ^ 2 * INR k ^ 2 * nrm2 (Pi w (d_ s i))))|].
  - intros w. assert (pw := Pi_proj w). rewrite step_2_1 at 1. rewrite nrm2_opp, nrm2_scal.
    assert (h1 := nrm2_add_le2 (vsum k (fun j => Pi w (b_ s w i j))) (INR k *: Pi w (d_ s i))). rewrite nrm2_scal in h1.
    assert (h2 := nrm2_vsum k (fun j => Pi w (b_ s w i j))).
    assert (h3 : sum k (fun j => nrm2 (Pi w (b_ s w i j))) <= L * L * sum k (fun j => nrm2 (z s w i j))).
    { rewrite <- sum_scal. apply sum_le; intros j _. eapply Rle_trans; [apply p_le, pw|now apply b_le]. }
    assert (S0 : 0 <= L * L * sum k (fun j => nrm2 (z s w i j))) by (apply Rmult_le_pos; [pos|]; apply sum_ge0; intros; apply nrm2_ge0).
    assert (h4 := Rmult_le_compat_l _ _ _ k0 h3). assert (h5 := Rmult_le_compat_r _ _ _ S0 kT).
    assert (h6 : nrm2 (vsum k (fun j => Pi w (b_ s w i j)) + INR k *: Pi w (d_ s i)) <= 2 * (INR tau * (L * L * sum k (fun j => nrm2 (z s w i j)))) + 2 * (INR k * INR k * nrm2 (Pi w (d_ s i)))) by lra.
    apply (Rmult_le_compat_l (eta * eta)) in h6; [lra|pos].
  - rewrite ex_plus, !ex_scal, ex_sum, (proj2 (step_2_3 (d_ s i))). right. ring.
Qed.
Lemma drift_client s i : (i < n)%nat -> sum tau (fun k => draw (fun w => nrm2 (z s w i k))) <= 5/6 * eta ^ 2 * INR tau ^ 2 * (INR tau - 1) * nrmR (d_ s i).
Proof.
  intros hi. assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (n0 := nrmR_ge0 (d_ s i)).
  assert (a0 : 0 <= 2 * eta ^ 2 * L ^ 2 * INR tau) by pos. assert (m0 : 0 <= eta ^ 2 * nrmR (d_ s i)) by pos.
  assert (q := step_2_4 _ (fun k => draw (fun w => nrm2 (z s w i k))) (fun k => eta ^ 2 * nrmR (d_ s i) * (2 * INR k ^ 2)) tau a0).
  specialize (q (fun k => ltac:(assert (k2 := pow2_ge_0 (INR k)); pos)) (fun k => drift_rec s i k hi) tau (le_n tau)).
  rewrite sum_scal in q. destruct (step_2_5 tau) as [_ h5].
  assert (al : 2 * eta ^ 2 * L ^ 2 * INR tau * INR tau <= 2 * lam ^ 2) by (unfold lam, t_; lra).
  destruct (step_2_6 _ tau lam a0 al (conj lam_ge0 lam_3)) as [x1 [x2 [x3 _]]].
  apply (Rmult_le_compat_l _ _ _ m0) in h5.
  assert (Y0 : 0 <= eta ^ 2 * nrmR (d_ s i) * sum tau (fun k => 2 * INR k ^ 2)).
  { apply Rmult_le_pos; [auto|]. apply sum_ge0; intros k _. assert (k2 := pow2_ge_0 (INR k)). lra. }
  eapply Rle_trans; [exact q|]. eapply Rle_trans; [apply (Rmult_le_compat_r _ _ (5/4) Y0); lra|]. lra.
Qed.
Lemma step_2_8 s : (forall i k, (i < n)%nat -> (k < tau)%nat ->
    let e := fun k => draw (fun w => nrm2 (z s w i k)) in let alpha := 2 * eta ^ 2 * L ^ 2 * INR tau in let b := 2 * eta ^ 2 * INR k ^ 2 * nrmR (d_ s i) in
    e k <= alpha * sum k e + b /\ sum (S k) e <= (1 + alpha) * sum k e + b) /\
  (inv s -> L ^ 2 * DD s <= 5/6 * pp * (nrmR (G (sx s)) + H s)).
Proof.
  split; [intros i k hi hk e alpha b; assert (q := drift_rec s i k hi hk); change (e k <= alpha * sum k e + eta ^ 2 * nrmR (d_ s i) * (2 * INR k ^ 2)) in q; unfold b; rewrite sum_S; split; lra|].
  intros hs. unfold H. rewrite <- (step_2_7 s hs). change (fun i => nrmR (G (sx s) + h_ s i)%V) with (fun i => nrmR (d_ s i)).
  assert (q : DD s <= 5/6 * eta ^ 2 * INR tau * (INR tau - 1) * meanR (fun i => nrmR (d_ s i))).
  { unfold DD, Dw. rewrite (ex_meanR draw (fun i w => / INR tau * sum tau (fun k => nrm2 (z s w i k)))), <- meanR_scal. apply meanR_le; intros i hi.
    rewrite ex_scal, ex_sum. assert (c := drift_client s i hi). assert (iT : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat.
    apply (Rmult_le_compat_l _ _ _ iT) in c. eapply Rle_trans; [exact c|]. right. field. lra. }
  assert (l2 := pow2_ge_0 L). apply (Rmult_le_compat_l _ _ _ l2) in q. unfold pp. lra.
Qed.
End Third.
Hypothesis steps : lam <= / (3 * sqrt thm).
Lemma lam_thm : lam ^ 2 * thm <= 1/9.
Proof.
  destruct s_thm as [s0 ss]. assert (l0 := lam_ge0). assert (q := pow_incr _ _ 2 (conj l0 steps)).
  apply (Rmult_le_compat_r thm) in q; [|lra]. replace ((/ (3 * sqrt thm)) ^ 2 * thm) with (thm / (9 * (sqrt thm * sqrt thm))) in q by (field; lra).
  rewrite ss in q. replace (thm / (9 * thm)) with (1/9) in q by (field; lra). exact q.
Qed.
Lemma lam_third : lam <= 1/3.
Proof.
  assert (l0 := lam_ge0). assert (h := lam_thm). assert (q := pow2_ge_0 lam). assert (0 <= lam ^ 2 * (thm - 1)) by (apply Rmult_le_pos; lra).
  apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. lra.
Qed.
(* 3 *)
Definition y_ s w i : vec := (a s w i - g i (sx s))%V.
Lemma y_le s w i : (i < n)%nat -> nrm2 (y_ s w i) <= L ^ 2 * (/ INR tau * sum tau (fun k => nrm2 (z s w i k))).
Proof.
  intros hi. assert (e : y_ s w i = (/ INR tau *: vsum tau (fun k => b_ s w i k))%V).
  { unfold y_, a, b_. rewrite (vsum_ext tau (fun k => g i (sx s + z s w i k) - g i (sx s))%V (fun k => g i (sx s + z s w i k) + (-1) *: g i (sx s))%V) by (intros; vring).
    rewrite vsum_plus, vsum_const. vfield. lra. }
  rewrite e. eapply Rle_trans; [now apply nrm2_mean|]. rewrite <- Rmult_assoc, (Rmult_comm (L ^ 2)), Rmult_assoc.
  apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. rewrite <- sum_scal. apply sum_le; intros k _. assert (q := b_le s w i k hi). lra.
Qed.
Lemma mean_y s w : meanR (fun i => nrm2 (y_ s w i)) <= L ^ 2 * Dw s w.
Proof. unfold Dw. rewrite <- meanR_scal. apply meanR_le; intros i hi. now apply y_le. Qed.
Lemma ybar s w : meanV (y_ s w) = (meanV (a s w) - G (sx s))%V. Proof. unfold y_. apply meanV_sub. Qed.
Lemma step_3_4 s : (forall w v, nrm2 (Pi w v) = nrm2 v - nrm2 (compl (Pi w) v) /\ nrm2 (Pi w v) <= nrm2 v) /\
  draw (fun w => nrm2 (Pi w (meanV (a s w) - G (sx s)))) <= L ^ 2 * DD s /\ draw (fun w => nrm2 (Pi w (G (sx s)))) = nrmR (G (sx s)).
Proof.
  split; [intros w v; split; [rewrite (p_compl_nrm2 _ (Pi_proj w)); ring|apply p_le, Pi_proj]|]. split; [|apply step_2_3].
  unfold DD. rewrite <- ex_scal. apply ex_le; intros w. eapply Rle_trans; [apply p_le, Pi_proj|]. rewrite <- ybar.
  eapply Rle_trans; [|apply mean_y]. now apply nrm2_mean.
Qed.
Definition move s : R := draw (fun w => nrm2 (sx (step s w) - sx s)).
Lemma step_3_5 s : draw (fun w => Favg (sx (step s w))) <= Favg (sx s) - t_ / 2 * nrmR (G (sx s)) + t_ / 2 * (L ^ 2 * DD s) - (1 - lam) / (2 * t_) * move s.
Proof.
  assert (t0 := t_gt0). destruct (step_3_4 s) as [_ [h1 h2]].
  eapply Rle_trans; [apply (ex_le draw _ (fun w => Favg (sx s) + (- (t_ / 2) * nrm2 (Pi w (G (sx s))) + (t_ / 2 * nrm2 (Pi w (meanV (a s w) - G (sx s)))
    + - ((1 - lam) / (2 * t_)) * nrm2 (sx (step s w) - sx s)))))|].
  - intros w. assert (q := step_3_3 s w). cbv zeta in q.
    replace (sx (step s w) - sx s)%V with (- t_ *: Pi w (meanV (a s w)))%V by (cbn [step sx]; vring). rewrite nrm2_scal.
    replace (- ((1 - lam) / (2 * t_)) * (- t_ * - t_ * nrm2 (Pi w (meanV (a s w))))) with (- (t_ / 2 * (1 - lam) * nrm2 (Pi w (meanV (a s w))))) by (field; lra). lra.
  - rewrite !ex_plus, !ex_scal, ex_const, h2. fold (move s). apply (Rmult_le_compat_l (t_ / 2)) in h1; lra.
Qed.
Lemma move_le s : let G := G (sx s) in let b w := meanV (a s w) in
  (forall w, dot G (Pi w (b w)) = nrm2 (Pi w G) + dot (Pi w G) (Pi w (b w - G)%V) /\ nrm2 (Pi w (b w)) <= 2 * nrm2 (Pi w G) + 2 * nrm2 (Pi w (b w - G)%V)) /\
  draw (fun w => nrm2 (Pi w (b w))) <= 2 * (nrmR G + L ^ 2 * DD s) /\ move s <= 2 * t_ ^ 2 * (nrmR G + L ^ 2 * DD s).
Proof.
  intros G b. destruct (step_3_4 s) as [_ [h1 h2]]. fold G in h1, h2. change (draw (fun w => nrm2 (Pi w (b w - G)%V)) <= L ^ 2 * DD s) in h1.
  assert (two : forall w, dot G (Pi w (b w)) = nrm2 (Pi w G) + dot (Pi w G) (Pi w (b w - G)%V) /\ nrm2 (Pi w (b w)) <= 2 * nrm2 (Pi w G) + 2 * nrm2 (Pi w (b w - G)%V)).
  { intros w. assert (pw := Pi_proj w). assert (e : Pi w (b w) = (Pi w G + Pi w (b w - G)%V)%V) by (rewrite <- (p_add _ pw); f_equal; vring).
    split; [rewrite <- (p_dot _ pw), e at 1; apply dot_addr|]. rewrite e at 1. apply nrm2_add_le2. }
  assert (V : draw (fun w => nrm2 (Pi w (b w))) <= 2 * (nrmR G + L ^ 2 * DD s)).
  { eapply Rle_trans; [apply ex_le; intros w; apply two|]. rewrite ex_plus, !ex_scal. lra. }
  split; [exact two|]. split; [exact V|]. unfold move. rewrite (ex_ext draw _ (fun w => t_ ^ 2 * nrm2 (Pi w (b w)))).
  - rewrite ex_scal. apply (Rmult_le_compat_l (t_ ^ 2)) in V; [lra|apply pow2_ge_0].
  - intros w. replace (sx (step s w) - sx s)%V with (- t_ *: Pi w (b w))%V by (cbn [step sx]; unfold b; vring). rewrite nrm2_scal. ring.
Qed.
Lemma step_3_6 s : let G := G (sx s) in let b w := meanV (a s w) in
  (forall w, dot G (Pi w (b w)) = nrm2 (Pi w G) + dot (Pi w G) (Pi w (b w - G)%V) /\ nrm2 (Pi w (b w)) <= 2 * nrm2 (Pi w G) + 2 * nrm2 (Pi w (b w - G)%V)) /\
  draw (fun w => Favg (sx (step s w))) <= Favg (sx s) - t_ * nrmR G - t_ * draw (fun w => dot (Pi w G) (Pi w (b w - G)%V)) + lam * t_ * (nrmR G + L ^ 2 * DD s) /\
  move s <= 2 * t_ ^ 2 * (nrmR G + L ^ 2 * DD s).
Proof.
  intros G b. assert (t0 := t_gt0). assert (l0 := lam_ge0). destruct (move_le s) as [two [V m]]. fold G in two, V, m. change (fun w => meanV (a s w)) with b in V.
  split; [exact two|]. split; [|exact m]. eapply Rle_trans; [apply (ex_le draw _ (fun w => Favg (sx s) + (- t_ * nrm2 (Pi w G) + (- t_ * dot (Pi w G) (Pi w (b w - G)%V) + lam * t_ / 2 * nrm2 (Pi w (b w))))))|].
  - intros w. assert (q := step_3_1 (sx s) (- t_ *: Pi w (b w))%V). fold G in q. assert (e := proj1 (two w)). change (meanV (a s w)) with (b w) in e. rewrite dot_scalr, nrm2_scal, e in q.
    replace (sx (step s w)) with (sx s + - t_ *: Pi w (b w))%V by (cbn [step sx]; unfold b; vring). unfold lam. lra.
  - change (draw (fun w => nrm2 (Pi w (b w))) <= 2 * (nrmR G + L ^ 2 * DD s)) in V. rewrite !ex_plus, !ex_scal, ex_const, (proj2 (step_2_3 G)). apply (Rmult_le_compat_l (lam * t_ / 2)) in V; [lra|]. assert (0 <= lam * t_) by (apply Rmult_le_pos; lra). lra.
Qed.
(* 4 *)
Definition v_ x i : vec := (g i x - G x)%V.
Lemma step_4_1 s w i : h_ (step s w) i = ((v_ (sx (step s w)) i - v_ (sx s) i) + (v_ (sx s) i - Ri (Pi w (v_ (sx s) i))) - Ri (Pi w (y_ s w i - meanV (y_ s w))))%V.
Proof.
  assert (pw := Pi_proj w). rewrite ybar. unfold h_. cbn [step su].
  assert (e : (v_ (sx s) i + (y_ s w i - (meanV (a s w) - G (sx s))) = a s w i - meanV (a s w))%V) by (unfold v_, y_; vring).
  rewrite <- e, (p_add _ pw).
  apply functional_extensionality; intros j. unfold v_, Ri, vadd, vsub, vopp. ring.
Qed.
Lemma nrmR_three x y c : nrmR (x + y - c) <= 4 * nrmR x + 2 * nrmR y + 4 * nrmR c.
Proof.
  unfold nrmR, dot. rewrite <- !sum_scal, <- !sum_plus. apply sum_le; intros j _. unfold Rm, vadd, vsub.
  destruct (step_4_2 (x j) (y j) (- c j)) as [q _]. apply (Rmult_le_compat_l (ratio j)) in q; [|apply Rlt_le, r0]. lra.
Qed.
Hypothesis spread : forall x, meanR (fun i => nrm2 (v_ x i)) <= zeta ^ 2.
Lemma step_4_7 s : draw (fun w => H (step s w)) <= 2 * (1 - / thm) * zeta ^ 2 + 4 * thm * (L ^ 2 * DD s) + 4 * thr * L ^ 2 * move s.
Proof.
  eapply Rle_trans; [apply (ex_le draw _ (fun w => 2 * meanR (fun i => nrmR (v_ (sx s) i - Ri (Pi w (v_ (sx s) i)))) + (4 * thm * L ^ 2 * Dw s w + 4 * thr * L ^ 2 * nrm2 (sx (step s w) - sx s))))|].
  - intros w. unfold H. eapply Rle_trans; [apply (meanR_le _ (fun i => 4 * thr * nrm2 (v_ (sx (step s w)) i - v_ (sx s) i) + (2 * nrmR (v_ (sx s) i - Ri (Pi w (v_ (sx s) i)))
      + 4 * thm * nrm2 (y_ s w i - meanV (y_ s w)))))|].
    + intros i hi. rewrite step_4_1. eapply Rle_trans; [apply nrmR_three|].
      assert (q1 := nrmR_le (v_ (sx (step s w)) i - v_ (sx s) i)%V thr ratio_high). destruct (step_4_5 w (y_ s w i - meanV (y_ s w))%V) as [q2 q3].
      apply (Rmult_le_compat_l thm) in q3; lra.
    + rewrite !meanR_plus, !meanR_scal. destruct (step_4_6 (y_ s w) s w) as [_ [q1 q2]]. cbv zeta in q2. assert (q3 := mean_y s w).
      change (fun i => (g i (sx (step s w)) - G (sx (step s w)))%V) with (v_ (sx (step s w))) in q2.
      assert (q4 := Rle_trans _ _ _ q1 q3). apply (Rmult_le_compat_l (4 * thm)) in q4; [|lra]. apply (Rmult_le_compat_l (4 * thr)) in q2; [|lra].
      unfold v_ at 1 2. lra.
  - rewrite !ex_plus, !ex_scal. fold (DD s) (move s). rewrite (ex_meanR draw (fun i w => nrmR (v_ (sx s) i - Ri (Pi w (v_ (sx s) i))))).
    assert (q : meanR (fun i => draw (fun w => nrmR (v_ (sx s) i - Ri (Pi w (v_ (sx s) i))))) <= (1 - / thm) * zeta ^ 2).
    { eapply Rle_trans; [apply (meanR_le _ (fun i => (1 - / thm) * nrm2 (v_ (sx s) i))); intros i hi; rewrite step_4_3; apply step_4_4|].
      rewrite meanR_scal. apply Rmult_le_compat_l; [|apply spread]. assert (i1 : / thm <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra. }
    change (fun w => Dw s w) with (Dw s). fold (DD s). lra.
Qed.
(* 5 *)
Hypothesis bounded : forall x, fstar <= Favg x.
Definition w_ : R := 5/6 * t_ * pp.
Definition Phi s : R := Favg (sx s) - fstar + w_ * H s.
Lemma w_ge0 : 0 <= w_. Proof. unfold w_. assert (q := Rlt_le _ _ t_gt0). destruct pp_range. pos. Qed.
Lemma H_ge0 s : 0 <= H s.
Proof. apply Rmult_le_pos; auto. apply sum_ge0; intros. apply nrmR_ge0. Qed.
Theorem round s : inv s -> draw (fun w => Phi (step s w)) <= Phi s - 2/5 * t_ * nrmR (G (sx s)) + 2 * w_ * (1 - / thm) * zeta ^ 2.
Proof.
  intros hs. unfold Phi. rewrite (ex_ext draw _ (fun w => - fstar + (Favg (sx (step s w)) + w_ * H (step s w)))) by (intros; ring).
  rewrite !ex_plus, ex_scal, ex_const. assert (t0 := t_gt0). destruct pp_range as [p0 p1].
  assert (c2 := proj2 (step_2_8 lam_third s) hs). assert (c3 := step_3_5 s). assert (c4 := Rmult_le_compat_l _ _ _ w_ge0 (step_4_7 s)).
  destruct (step_5_1 pp lam thm t_ t0 thm1 lam_thm p1) as [a1 a2].
  destruct (step_5_2 pp lam thm thr t_ t0 thm1 thr01 lam_thm p0 p1) as [b1 b2].
  destruct (step_5_3 pp lam thm t_ t0 thm1 lam_thm p1) as [d1 d2]. fold w_ in a1, b1, d1.
  assert (D0 : 0 <= L ^ 2 * DD s).
  { apply Rmult_le_pos; [apply pow2_ge_0|]. apply ex_ge0; intros w. apply Rmult_le_pos; auto. apply sum_ge0; intros i _.
    apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|]. apply sum_ge0; intros. apply nrm2_ge0. }
  assert (X0 : 0 <= move s) by (apply ex_ge0; intros; apply nrm2_ge0). assert (g0 := nrmR_ge0 (G (sx s))). assert (H0 := H_ge0 s).
  assert (k1 : (t_ / 2 + 4 * w_ * thm) * (L ^ 2 * DD s) <= t_ * (5/6 * pp * (nrmR (G (sx s)) + H s))).
  { apply Rle_trans with (t_ * (L ^ 2 * DD s)); [apply Rmult_le_compat_r; lra|apply Rmult_le_compat_l; lra]. }
  assert (k2 : (4 * w_ * thr * L ^ 2 - (1 - lam) / (2 * t_)) * move s <= 0).
  { replace (4 * w_ * thr * L ^ 2) with (4 * w_ * thr * lam ^ 2 / t_ ^ 2) by (unfold lam; field; lra). rewrite b1.
    assert (0 <= - (/ t_ * (10/3 * pp * thr * lam ^ 2 - (1 - lam) / 2)) * move s) by (apply Rmult_le_pos; lra). lra. }
  assert (k3 := Rmult_le_compat_r _ _ _ g0 d2). rewrite <- d1 in k3.
  replace (t_ * (5/6 * pp * (nrmR (G (sx s)) + H s))) with (w_ * nrmR (G (sx s)) + w_ * H s) in k1 by (unfold w_; ring).
  clear - c3 c4 k1 k2 k3. lra.
Qed.
Lemma Eit_le k u v : (forall s, u s <= v s) -> forall s, Eit (fun _ : state => draw) step k u s <= Eit (fun _ : state => draw) step k v s.
Proof. intros q. induction k; intros s; [apply q|]. apply ex_le; intros w. apply IHk. Qed.
Lemma step_5_4 (s0 : state) (K : nat) : su s0 = (fun _ => v0) -> (0 < K)%nat ->
  / INR K * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)
  <= / (2 * t_ / (5 * thm) * INR K) * (Favg (sx s0) - fstar + w_ * H s0 + INR K * (2 * w_ * (1 - / thm) * zeta ^ 2)).
Proof.
  intros hu K0%lt_0_INR. assert (t0 := t_gt0).
  assert (P0 : forall s, 0 <= Phi s).
  { intros s. unfold Phi. assert (b := bounded (sx s)). assert (0 <= w_ * H s) by (apply Rmult_le_pos; [apply w_ge0|apply H_ge0]). lra. }
  assert (i0 : inv s0). { unfold inv. rewrite hu, vsum_const. vring. }
  assert (h := telescope (fun _ => draw) step inv Phi (fun s => 2/5 * t_ * nrmR (G (sx s))) (2 * w_ * (1 - / thm) * zeta ^ 2)
    (fun s w hs => proj1 (step_1_3 s w hs)) round P0 K s0 i0).
  assert (le : 2/5 * t_ * / thm * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)
    <= sum K (fun k => Eit (fun _ => draw) step k (fun s => 2/5 * t_ * nrmR (G (sx s))) s0)).
  { rewrite <- sum_scal. apply sum_le; intros k _. rewrite <- Eit_scal. apply Eit_le; intros s.
    destruct (step_4_4 (G (sx s))) as [_ [q _]]. apply (Rmult_le_compat_l (2/5 * t_)) in q; lra. }
  assert (h2 := Rle_trans _ _ _ le h). assert (c0 : 0 < 5 * thm / (2 * t_ * INR K)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h2.
  replace (5 * thm / (2 * t_ * INR K) * (2/5 * t_ * / thm * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)))
    with (/ INR K * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)) in h2 by (field; lra).
  eapply Rle_trans; [exact h2|]. right. unfold Phi. field. lra.
Qed.
Theorem theorem (s0 : state) (K : nat) : su s0 = (fun _ => v0) -> (0 < K)%nat ->
  / INR K * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)
  <= 5 * thm * (Favg (sx s0) - fstar) / (2 * (eta * INR tau) * INR K) + 25/12 * (thm * pp * H s0 / INR K) + 25/6 * ((thm - 1) * pp * zeta ^ 2).
Proof.
  intros hu K1. assert (K0 := lt_0_INR _ K1). eapply Rle_trans; [now apply step_5_4|]. right. unfold w_, t_. field. lra.
Qed.
(* the line before 5.4, at every state *)
Lemma step_5_5 : ~ exists s, inv s /\ Phi s - 2/5 * t_ * nrmR (G (sx s)) + 2 * w_ * (1 - / thm) * zeta ^ 2 < draw (fun w => Phi (step s w)).
Proof. intros [s [hs q]]. assert (h := round s hs). lra. Qed.
(* 6 *)
Lemma thr_thm : 1 <= thr * thm.
Proof. assert (a := ratio_low 0%nat). assert (b := ratio_high 0%nat). replace 1 with (/ thm * thm) by (field; lra). apply Rmult_le_compat_r; lra. Qed.
Lemma step_6_1 (s0 : state) (K : nat) : 0 < L -> (0 < K)%nat -> su s0 = (fun _ => v0) -> eta <= / (6 * thr * thm ^ 2 * L * INR tau) ->
  let v i := (g i (sx s0) - G (sx s0))%V in let Del := Favg (sx s0) - fstar in
  let Omega := 20/3 * eta * (INR tau - 1) * L ^ 2 * thr * thm ^ 2 * meanR (fun i => t_ ^ 2 * nrm2 (Rm (v i))) in
  lam <= / (3 * sqrt thm) /\
  5 * thm * Del / (2 * (eta * INR tau) * INR K) <= 8 * thm * Del / (INR K * INR tau * eta) /\
  25/12 * (thm * pp * H s0 / INR K) <= 8 * thm * Omega / (INR K * INR tau * eta) /\
  25/6 * ((thm - 1) * pp * zeta ^ 2) <= 640/3 * thr ^ 3 * thm ^ 3 * (thm - 1) * pp * zeta ^ 2.
Proof.
  clear steps spread. intros L0' K0%lt_0_INR hu he v Del Omega. destruct pp_range as [p0 _]. assert (t0 := t_gt0). assert (tt := thr_thm).
  destruct s_thm as [q0 qq]. assert (T0' := T0). assert (b0 := bounded (sx s0)).
  assert (t3 : 1 <= (thr * thm) ^ 3) by (apply pow_R1_Rle; exact tt).
  assert (lt : 6 * (thr * thm) * thm * lam <= 1).
  { assert (c0 : 0 < 6 * thr * thm ^ 2 * L * INR tau) by (repeat apply Rmult_lt_0_compat; try lra; apply pow_lt; lra).
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in he. rewrite Rinv_r in he by lra. unfold lam, t_. lra. }
  assert (l0 := lam_ge0).
  split; [|split; [|split]].
  - assert (s1 : sqrt thm <= thm) by (assert (1 <= sqrt thm) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra); nra).
    apply (Rmult_le_reg_l (3 * sqrt thm)); [lra|]. rewrite Rinv_r by lra.
    assert (a1 : 3 * sqrt thm * lam <= 3 * thm * lam) by (apply Rmult_le_compat_r; lra).
    assert (0 <= (thr * thm - 1) * (thm * lam)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (0 <= thm * lam) by (apply Rmult_le_pos; lra). lra.
  - unfold Rdiv. replace (2 * (eta * INR tau) * INR K) with (2 * (INR K * INR tau * eta)) by ring.
    assert (i0 : 0 < / (INR K * INR tau * eta)) by (apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
    rewrite Rinv_mult. assert (0 <= thm * Del * / (INR K * INR tau * eta)) by (repeat apply Rmult_le_pos; unfold Del; lra). lra.
  - assert (hH : H s0 <= thr * thm * (thm * meanR (fun i => nrm2 (Rm (v i))))).
    { unfold H. rewrite <- meanR_scal, <- meanR_scal. apply meanR_le; intros i _. unfold h_. rewrite hu.
      replace (g i (sx s0) - G (sx s0) + Ri v0)%V with (v i) by (unfold v, Ri; vring).
      apply Rle_trans with (1 * (thm * nrm2 (Rm (v i)))).
      - rewrite Rmult_1_l. unfold nrmR, nrm2, dot. rewrite <- sum_scal. apply sum_le; intros j _. unfold Rm.
        assert (r := ratio_low j). assert (r1 := r0 j). assert (1 <= thm * ratio j) by (replace 1 with (thm * / thm) by (field; lra); apply Rmult_le_compat_l; lra).
        assert (0 <= (thm * ratio j - 1) * (ratio j * (v i j * v i j))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; [lra|apply Rle_0_sqr]]). lra.
      - apply Rmult_le_compat_r; auto. apply Rmult_le_pos; [lra|apply nrm2_ge0]. }
    set (m := meanR (fun i => nrm2 (Rm (v i)))) in *.
    assert (m0 : 0 <= m) by (apply Rmult_le_pos; auto; apply sum_ge0; intros; apply nrm2_ge0).
    replace (8 * thm * Omega / (INR K * INR tau * eta)) with (160/3 * (thm * pp * (thr * thm * (thm * m)) / INR K)).
    + assert (i0 : 0 <= / INR K) by now apply Rlt_le, Rinv_0_lt_compat.
      assert (c0 : 0 <= thm * pp * / INR K) by pos. apply (Rmult_le_compat_l _ _ _ c0) in hH.
      assert (0 <= thm * pp * / INR K * (thr * thm * (thm * m))) by pos. unfold Rdiv. lra.
    + unfold Omega. rewrite meanR_scal. fold m. unfold pp, t_. field. lra.
  - assert (z0 : 0 <= (thm - 1) * pp * zeta ^ 2) by pos.
    apply (Rmult_le_compat_r _ _ _ z0) in t3. lra.
Qed.
(* 6.3: FedAvg-CD, u_i = 0 in every round *)
Definition bare s w : state := {| sx := sx (step s w); su := fun _ => v0 |}.
Lemma step_6_3 (s0 : state) (K : nat) : lam <= 1/3 -> su s0 = (fun _ => v0) -> (0 < K)%nat ->
  (forall s, su s = (fun _ => v0) -> H s <= thr * zeta ^ 2) /\
  / INR K * sum K (fun k => Eit (fun _ => draw) bare k (fun s => nrm2 (G (sx s))) s0)
  <= 9/4 * (thm * (Favg (sx s0) - fstar) / (eta * INR tau * INR K)) + thr * thm * pp * zeta ^ 2.
Proof.
  clear steps. intros l3 hu K0%lt_0_INR. assert (t0 := t_gt0). destruct pp_range as [p0 p1]. assert (l0 := lam_ge0).
  assert (p9 : pp <= 1/9) by nra. assert (z2 := pow2_ge_0 zeta).
  assert (hH : forall s, su s = (fun _ => v0) -> H s <= thr * zeta ^ 2).
  { intros s hs. eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply (spread (sx s))]]. unfold H. rewrite <- meanR_scal. apply meanR_le; intros i _.
    unfold h_. rewrite hs. replace (g i (sx s) - G (sx s) + Ri v0)%V with (v_ (sx s) i) by (unfold v_, Ri; vring). apply step_4_4. }
  split; [exact hH|].
  set (c := t_ * (1/2 - 5/12 * pp)).
  assert (one : forall s, su s = (fun _ => v0) -> draw (fun w => Favg (sx (bare s w)) - fstar) <= Favg (sx s) - fstar - c * / thm * nrm2 (G (sx s)) + 5/12 * t_ * pp * (thr * zeta ^ 2)).
  { intros s hs. rewrite (ex_ext draw _ (fun w => Favg (sx (step s w)) + - fstar)) by (intros; reflexivity). rewrite ex_plus, ex_const.
    assert (i : inv s) by (unfold inv; rewrite hs, vsum_const; vring).
    assert (c2 := proj2 (step_2_8 l3 s) i). assert (c3 := step_3_5 s). assert (c4 := hH s hs). destruct (step_4_4 (G (sx s))) as [_ [c5 _]].
    assert (X0 : 0 <= move s) by (apply ex_ge0; intros; apply nrm2_ge0).
    assert (k1 : 0 <= (1 - lam) / (2 * t_) * move s) by (apply Rmult_le_pos; auto; apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (k2 := Rmult_le_compat_l (t_ / 2) _ _ ltac:(lra) c2). assert (k3 := Rmult_le_compat_l (5/12 * t_ * pp) _ _ ltac:(assert (q := Rlt_le _ _ t0); pos) c4).
    assert (c0 : 0 <= c) by (unfold c; apply Rmult_le_pos; lra). assert (k4 := Rmult_le_compat_l c _ _ c0 c5). unfold c in *. lra. }
  assert (h := telescope (fun _ => draw) bare (fun s => su s = (fun _ => v0)) (fun s => Favg (sx s) - fstar) (fun s => c * / thm * nrm2 (G (sx s))) (5/12 * t_ * pp * (thr * zeta ^ 2))
    (fun s w _ => eq_refl) one (fun s => ltac:(assert (b := bounded (sx s)); lra)) K s0 hu).
  rewrite (sum_ext K _ (fun k => c * / thm * Eit (fun _ => draw) bare k (fun s => nrm2 (G (sx s))) s0)), sum_scal in h by (intros; apply Eit_scal).
  set (A := sum K _) in *. set (Del := Favg (sx s0) - fstar) in *. assert (D0 : 0 <= Del) by (unfold Del; assert (b := bounded (sx s0)); lra).
  assert (c1 : 4/9 * t_ <= c) by (unfold c; assert (0 <= t_ * (1/9 - pp)) by (apply Rmult_le_pos; lra); lra).
  assert (A0 : 0 <= A). { unfold A. apply sum_ge0; intros k _. clear -n. generalize s0. induction k; intros s; [apply nrm2_ge0|]. apply ex_ge0; intros w. apply IHk. }
  assert (it : 0 < / thm) by (apply Rinv_0_lt_compat; lra). assert (iK : 0 < / INR K) by now apply Rinv_0_lt_compat.
  assert (h2 : 4/9 * t_ * / thm * A <= Del + INR K * (5/12 * t_ * pp * (thr * zeta ^ 2))).
  { eapply Rle_trans; [|exact h]. apply Rmult_le_compat_r; auto. apply Rmult_le_compat_r; lra. }
  assert (k0 : 0 < 9 * thm / (4 * t_ * INR K)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ k0)) in h2.
  replace (9 * thm / (4 * t_ * INR K) * (4/9 * t_ * / thm * A)) with (/ INR K * A) in h2 by (field; lra).
  eapply Rle_trans; [exact h2|].
  replace (9 * thm / (4 * t_ * INR K) * (Del + INR K * (5/12 * t_ * pp * (thr * zeta ^ 2)))) with (9/4 * (thm * Del / (t_ * INR K)) + 15/16 * (thr * thm * pp * zeta ^ 2)) by (field; lra).
  assert (0 <= thr * thm * pp * zeta ^ 2) by pos. fold t_. lra.
Qed.
(* 7.1: y_i whole, in the place of u_i *)
Fixpoint zy x (y : vec) w i k : vec := match k with 0%nat => v0 | S k => (zy x y w i k - eta *: Pi w (g i (x + zy x y w i k) + / t_ *: y))%V end.
Definition ay x y w i : vec := (/ INR tau *: vsum tau (fun k => g i (x + zy x y w i k)))%V.
Definition whole s w : state :=
  let B i := zy (sx s) (su s i) w i tau in {| sx := (sx s + meanV B)%V; su := fun i => (su s i + (B i - meanV B))%V |}.
Definition ee s i : vec := (- / t_ *: su s i)%V.
Lemma zy_sum x y w i k : zy x y w i k = (- eta *: Pi w (vsum k (fun j => g i (x + zy x y w i j)) + (INR k / t_) *: y))%V.
Proof.
  assert (t0 := t_gt0). assert (pw := Pi_proj w). induction k.
  - cbn [zy]. change (vsum 0 _) with v0. replace (v0 + (INR 0 / t_) *: y)%V with v0 by (simpl INR; vfield; lra). rewrite (p_0 _ pw). vring.
  - cbn [zy]. rewrite IHk at 1. rewrite vsum_S, S_INR. replace ((INR k + 1) / t_ *: y)%V with (INR k / t_ *: y + / t_ *: y)%V by (vfield; lra).
    rewrite !(p_add _ pw). vring.
Qed.
Lemma zy_end s w i : zy (sx s) (su s i) w i tau = (- t_ *: Pi w (ay (sx s) (su s i) w i - ee s i))%V.
Proof.
  assert (t0 := t_gt0). assert (pw := Pi_proj w). assert (T0' := T0). rewrite zy_sum. unfold ay, ee.
  set (S := vsum tau _). replace (/ INR tau *: S - - / t_ *: su s i)%V with (/ INR tau *: (S + (INR tau / t_) *: su s i))%V by (vfield; lra).
  rewrite (p_scal _ pw). unfold t_ at 2. vfield. lra.
Qed.
Lemma whole_step s w : inv s -> let a i := ay (sx s) (su s i) w i in
  inv (whole s w) /\ sx (whole s w) = (sx s - t_ *: Pi w (meanV a))%V /\
  forall i, ee (whole s w) i = (compl (Pi w) (ee s i) + Pi w (a i - meanV a))%V.
Proof.
  intros hs a. assert (t0 := t_gt0). assert (pw := Pi_proj w). assert (N0' := N0).
  assert (me : meanV (ee s) = v0) by (unfold ee; rewrite meanV_scal, inv_mean by auto; vring).
  assert (mB : meanV (fun i => zy (sx s) (su s i) w i tau) = (- t_ *: Pi w (meanV a))%V).
  { rewrite (meanV_ext _ (fun i => - t_ *: Pi w (a i - ee s i))%V) by (intros; apply zy_end).
    rewrite meanV_scal, meanV_Pi, meanV_sub, me. unfold a. replace (meanV (fun i => ay (sx s) (su s i) w i) - v0)%V with (meanV (fun i => ay (sx s) (su s i) w i)) by vring. reflexivity. }
  split; [|split].
  - unfold inv, whole. cbn [su]. assert (e : meanV (fun i => su s i + (zy (sx s) (su s i) w i tau - meanV (fun i => zy (sx s) (su s i) w i tau)))%V = v0).
    { rewrite meanV_plus, meanV_sub, meanV_const, inv_mean by auto. vring. }
    unfold meanV in e at 1. replace v0 with (INR n *: v0)%V at 1 by vring. rewrite <- e. vfield. lra.
  - unfold whole. cbn [sx]. rewrite mB. vring.
  - intros i. unfold whole, ee at 1. cbn [su]. rewrite mB, zy_end. fold (a i). unfold compl. rewrite !(p_sub _ pw). unfold ee.
    rewrite (p_scal _ pw). vfield. lra.
Qed.
Definition quiet (_ : Ssf.state) (_ : O) (_ : list Ssf.noise) : law Ssf.noise := Noise.dirac (fun _ => v0).
Fixpoint zeros k : list Ssf.noise := match k with 0%nat => nil | S k => cons (fun _ => v0) (zeros k) end.
Lemma quiet_path S w k phi : Noise.path (quiet S w) k phi = phi (zeros k).
Proof. revert phi. induction k; intros phi; [reflexivity|]. rewrite Noise.path_S, IHk. reflexivity. Qed.
Definition like (S : Ssf.state) s : Prop := Ssf.sx S = sx s /\ forall i, (Ssf.sci S i - Ssf.sc S)%V = ee s i.
Lemma like_loc S s w i k : like S s -> Ssf.loc Pi g eta S w i (zeros k) = (sx s + zy (sx s) (su s i) w i k)%V.
Proof.
  intros [h1 h2]. induction k; cbn [Ssf.loc zy zeros]; [rewrite h1; vring|]. rewrite IHk.
  replace (g i (sx s + zy (sx s) (su s i) w i k) + v0 - Ssf.sci S i + Ssf.sc S)%V with (g i (sx s + zy (sx s) (su s i) w i k) + / t_ *: su s i)%V; [vring|].
  assert (q := h2 i). unfold ee in q. apply functional_extensionality; intros j. assert (qj := f_equal (fun v => v j) q). vunfold. lra.
Qed.
Lemma like_step S s w : inv s -> like S s -> like (Ssf.step n tau Pi g eta 1 S (w, zeros tau)) (whole s w).
Proof.
  intros hs h. assert (N0' := N0). assert (T0' := T0). assert (pw := Pi_proj w). destruct h as [h1 h2]. assert (h : like S s) by (split; auto).
  destruct (whole_step s w hs) as [_ [_ w3]]. cbv zeta in w3.
  assert (gb : forall i, Ssf.gbar tau Pi g eta S w i (zeros tau) = ay (sx s) (su s i) w i).
  { intros i. unfold Ssf.gbar, ay. f_equal. generalize tau. clear - h. intros k. induction k as [|k IH]; [reflexivity|].
    cbn [zeros Noise.pvsum]. rewrite vsum_S, IH, (like_loc S s w i k h). vring. }
  split.
  - cbn [Ssf.step Ssf.sx whole sx]. rewrite h1, (vsum_ext n _ (fun i => zy (sx s) (su s i) w i tau)).
    + unfold meanV. vfield. lra.
    + intros i _. rewrite (like_loc S s w i tau h). vring.
  - intros i. rewrite w3. cbn [Ssf.step Ssf.sci Ssf.sc]. rewrite gb.
    assert (e : Ssf.meanV n (fun i => Pi w (Ssf.gbar tau Pi g eta S w i (zeros tau))) = Pi w (meanV (fun i => ay (sx s) (su s i) w i))).
    { rewrite <- meanV_Pi. apply meanV_ext. intros j _. now rewrite gb. }
    rewrite e, <- h2. unfold compl. rewrite !(p_sub _ pw). vring.
Qed.
Lemma like_run k : forall S s (phi : vec -> R), inv s -> like S s ->
  Core.Eit (Ssf.round tau draw quiet) (Ssf.step n tau Pi g eta 1) k (fun S => phi (Ssf.sx S)) S = Core.Eit (fun _ => draw) whole k (fun s => phi (sx s)) s.
Proof.
  induction k; intros S s phi hs h. { cbn [Eit]. now rewrite (proj1 h). }
  cbn [Eit]. unfold Ssf.round. cbn [bind ex]. apply ex_ext; intros w. rewrite quiet_path. apply IHk; [now apply whole_step|now apply like_step].
Qed.
Lemma step_7_1 (rho : R) :
  (forall s w, inv s -> let a i := ay (sx s) (su s i) w i in inv (whole s w) /\ sx (whole s w) = (sx s - t_ *: Pi w (meanV a))%V /\
    forall i, ee (whole s w) i = (compl (Pi w) (ee s i) + Pi w (a i - meanV a))%V) /\
  forall s0 K, (forall j, ratio j = rho) -> L * eta * INR tau <= Rmin (1/10) (sqrt (rho / 8)) -> su s0 = (fun _ => v0) -> (0 < K)%nat ->
  / INR K * sum K (fun k => Eit (fun _ => draw) whole k (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - fstar) / (9 * rho * eta * INR tau * INR K)
    + 40 * L ^ 2 * eta ^ 2 * INR tau ^ 2 / (9 * rho * INR K) * meanR (fun i => nrm2 (g i (sx s0) - G (sx s0))).
Proof.
  split; [exact whole_step|]. intros s0 K hr hst hu K0. clear steps spread. assert (K0' := lt_0_INR _ K0). assert (T0' := T0). assert (N0' := N0).
  assert (q0 := r0 0%nat). rewrite hr in q0. assert (q1 := ratio_high 0%nat). rewrite hr in q1.
  pose (S0 := {| Ssf.sx := sx s0; Ssf.sci := fun _ => G (sx s0); Ssf.sc := G (sx s0) |}).
  assert (i0 : inv s0) by (unfold inv; rewrite hu, vsum_const; vring).
  assert (lk : like S0 s0) by (split; [reflexivity|]; intros i; unfold ee; rewrite hu; cbn [Ssf.sci Ssf.sc S0]; vring).
  assert (m1 := Rmin_l (1/10) (sqrt (rho / 8))). assert (m2 := Rmin_r (1/10) (sqrt (rho / 8))).
  assert (l0 : 0 <= L * eta * INR tau) by pos.
  assert (ER : forall u v, draw (fun w => dot u (Pi w v)) = rho * dot u v).
  { intros u v. rewrite EPi. replace (Rm v) with (rho *: v)%V; [apply dot_scalr|]. apply functional_extensionality; intros j. unfold Rm, vscal. now rewrite hr. }
  assert (th := Ssf.theorem n tau n1 tau1 draw Pi rho f g L fstar eta 1 0 quiet Pi_proj ER ltac:(lra) L0 grad lip bounded
    (fun _ _ _ _ u _ => dot_0r u) (fun _ _ _ _ _ => ltac:(cbn; rewrite nrm2_0; lra)) (fun _ _ _ _ _ c d _ _ _ => ltac:(cbn; rewrite !dot_0r; ring))
    eta0 ltac:(lra) ltac:(lra) ltac:(unfold Ssf.etat; lra)).
  assert (s2 : (L * Ssf.etat tau eta 1) ^ 2 <= rho / 8).
  { unfold Ssf.etat. replace (L * (1 * INR tau * eta)) with (L * eta * INR tau) by ring.
    replace (rho / 8) with (sqrt (rho / 8) ^ 2) by (rewrite <- Rsqr_pow2; apply Rsqr_sqrt; lra). apply pow_incr. lra. }
  specialize (th s2 S0 K). assert (iS : Ssf.inv n S0) by exact (eq_sym (meanV_const (G (sx s0)))).
  specialize (th iS K0).
  rewrite (sum_ext K _ (fun k => Eit (fun _ => draw) whole k (fun s => nrm2 (G (sx s))) s0)) in th.
  2: { intros k _. exact (like_run k S0 s0 (fun x => nrm2 (G x)) i0 lk). }
  eapply Rle_trans; [exact th|]. right.
  assert (ce : Ssf.Cerr n g S0 = meanR (fun i => nrm2 (g i (sx s0) - G (sx s0)))).
  { apply meanR_ext; intros i _. apply nrm2_subC. }
  rewrite ce. change (Ssf.Favg n f (Ssf.sx S0)) with (Favg (sx s0)). unfold Ssf.etat. field. repeat split; lra.
Qed.
(* 7.2: linear losses *)
Lemma step_7_2 (rho : R) (v : nat -> vec) (s0 : state) : (forall j, ratio j = rho) -> (forall i x, (i < n)%nat -> g i x = v i) -> meanV v = v0 ->
  let z2 := meanR (fun i => nrm2 (v i)) in
  (forall k, Eit (fun _ => draw) step (S k) H s0 = (1 - rho) * z2) /\
  (su s0 = (fun _ => v0) -> forall k, Eit (fun _ => draw) whole k (fun s => rho * meanR (fun i => nrm2 (v i - ee s i))) s0 = rho * (1 - rho) ^ k * z2) /\
  (forall s, inv s -> draw (fun w => meanR (fun i => nrm2 (v i - ee (whole s w) i))) = (1 - rho) * meanR (fun i => nrm2 (v i - ee s i))).
Proof.
  intros hr hl hv z2. clear steps spread bounded. assert (T0' := T0). assert (q0 := r0 0%nat). rewrite hr in q0.
  assert (mG : forall x, G x = v0) by (intros x; unfold G; rewrite (meanV_ext _ v) by (intros; now apply hl); exact hv).
  assert (ER : forall u c, draw (fun w => dot u (Pi w c)) = rho * dot u c).
  { intros u c. rewrite EPi. replace (Rm c) with (rho *: c)%V; [apply dot_scalr|]. apply functional_extensionality; intros j. unfold Rm, vscal. now rewrite hr. }
  assert (one : forall s, draw (fun w => H (step s w)) = (1 - rho) * z2).
  { intros s. rewrite (ex_ext draw _ (fun w => meanR (fun i => nrmR (v i - Ri (Pi w (v i)))))).
    - rewrite (ex_meanR draw (fun i w => nrmR (v i - Ri (Pi w (v i))))). unfold z2. rewrite <- meanR_scal. apply meanR_ext; intros i hi.
      rewrite step_4_3, subE, dot_addr, dot_scalr. replace (Rm (v i)) with (rho *: v i)%V by (apply functional_extensionality; intros j; unfold Rm, vscal; now rewrite hr).
      rewrite dot_scalr. unfold nrm2. ring.
    - intros w. apply meanR_ext; intros i hi. unfold h_. cbn [step su sx]. rewrite mG, hl by auto.
      assert (ea : forall j, (j < n)%nat -> a s w j = v j).
      { intros j hj. unfold a. rewrite (vsum_ext _ _ (fun _ => v j)) by (intros; now apply hl). rewrite vsum_const. vfield. lra. }
      rewrite ea, (meanV_ext _ v ea), hv by auto. replace (v i - v0)%V with (v i) by vring. f_equal. unfold Ri. vring. }
  assert (two : forall s, inv s -> draw (fun w => meanR (fun i => nrm2 (v i - ee (whole s w) i))) = (1 - rho) * meanR (fun i => nrm2 (v i - ee s i))).
  { intros s hs. rewrite (ex_ext draw _ (fun w => meanR (fun i => nrm2 (compl (Pi w) (v i - ee s i))))).
    - rewrite (ex_meanR draw (fun i w => nrm2 (compl (Pi w) (v i - ee s i)))), <- meanR_scal. apply meanR_ext; intros i _.
      rewrite (ex_ext draw _ (fun w => nrm2 (v i - ee s i) + (-1) * dot (v i - ee s i) (Pi w (v i - ee s i))))
        by (intros w; rewrite (p_compl_nrm2 _ (Pi_proj w)), (p_nrm2 _ (Pi_proj w)); ring).
      rewrite ex_plus, ex_const, ex_scal, ER. unfold nrm2. ring.
    - intros w. assert (pw := Pi_proj w). destruct (whole_step s w hs) as [_ [_ h]]. cbv zeta in h. apply meanR_ext; intros i hi. rewrite h.
      assert (ea : forall j, (j < n)%nat -> ay (sx s) (su s j) w j = v j).
      { intros j hj. unfold ay. rewrite (vsum_ext _ _ (fun _ => v j)) by (intros; now apply hl). rewrite vsum_const. vfield. lra. }
      rewrite ea, (meanV_ext _ v ea), hv by auto. f_equal. unfold compl. rewrite !(p_sub _ pw), (p_0 _ pw). vring. }
  split; [|split; [|exact two]].
  - intros k. revert s0. induction k; intros s; [apply one|]. change (draw (fun w => Eit (fun _ => draw) step (S k) H (step s w)) = (1 - rho) * z2).
    rewrite (ex_ext draw _ (fun _ => (1 - rho) * z2)) by (intros; apply IHk). apply ex_const.
  - intros hu. assert (i0 : inv s0) by (unfold inv; rewrite hu, vsum_const; vring).
    assert (e0 : meanR (fun i => nrm2 (v i - ee s0 i)) = z2).
    { apply meanR_ext; intros i _. unfold ee. rewrite hu. f_equal. vring. }
    assert (all : forall k s, inv s -> Eit (fun _ => draw) whole k (fun s => rho * meanR (fun i => nrm2 (v i - ee s i))) s = rho * (1 - rho) ^ k * meanR (fun i => nrm2 (v i - ee s i))).
    { induction k; intros s hs; cbn [Eit]; [simpl; ring|].
      rewrite (ex_ext draw _ (fun w => rho * (1 - rho) ^ k * meanR (fun i => nrm2 (v i - ee (whole s w) i)))) by (intros w; apply IHk; now apply whole_step).
      rewrite ex_scal, two by auto. simpl. ring. }
    intros k. rewrite all, e0 by auto. reflexivity.
Qed.
(* 8: quadratic losses *)
Section Quadratic.
Variable M : nat -> vec -> vec.
Hypothesis M_add : forall i u v, M i (u + v)%V = (M i u + M i v)%V.
Hypothesis M_scal : forall i c u, M i (c *: u)%V = (c *: M i u)%V.
Hypothesis quadratic : forall i x v, (i < n)%nat -> g i (x + v)%V = (g i x + M i v)%V.
Hypothesis lam_3 : lam <= 1/3.
Definition Q : R := 5/6 * pp.
Fixpoint zq w i (d : vec) k : vec := match k with 0%nat => v0 | S k => (zq w i d k - eta *: Pi w (M i (zq w i d k) + d))%V end.
Definition Td w i d : vec := (/ INR tau *: vsum tau (fun k => Pi w (M i (zq w i d k))))%V.
Definition q_ i u d : R := draw (fun w => dot (Pi w u) (Td w i d)).
Lemma M_0 i : M i v0 = v0. Proof. replace v0 with (0 *: v0)%V at 1 by vring. rewrite M_scal. vring. Qed.
Lemma zq_z s w i k : (i < n)%nat -> z s w i k = zq w i (d_ s i) k.
Proof.
  intros hi. induction k; [reflexivity|]. cbn [z zq]. rewrite <- IHk, quadratic by auto. unfold d_, h_.
  replace (M i (z s w i k) + (G (sx s) + (g i (sx s) - G (sx s) + Ri (su s i))))%V with (g i (sx s) + M i (z s w i k) + Ri (su s i))%V by vring. reflexivity.
Qed.
Lemma zq_add w i d e k : zq w i (d + e)%V k = (zq w i d k + zq w i e k)%V.
Proof. assert (pw := Pi_proj w). induction k; cbn [zq]; [vring|]. rewrite IHk, M_add, !(p_add _ pw). vring. Qed.
Lemma zq_scal w i c d k : zq w i (c *: d)%V k = (c *: zq w i d k)%V.
Proof. assert (pw := Pi_proj w). induction k; cbn [zq]; [vring|]. rewrite IHk, M_scal, !(p_add _ pw), !(p_scal _ pw). vring. Qed.
Lemma Td_add w i d e : Td w i (d + e)%V = (Td w i d + Td w i e)%V.
Proof.
  assert (pw := Pi_proj w). unfold Td. rewrite (vsum_ext _ _ (fun k => Pi w (M i (zq w i d k)) + Pi w (M i (zq w i e k)))%V) by (intros; rewrite zq_add, M_add, (p_add _ pw); reflexivity).
  rewrite vsum_plus. vring.
Qed.
Lemma Td_scal w i c d : Td w i (c *: d)%V = (c *: Td w i d)%V.
Proof.
  assert (pw := Pi_proj w). unfold Td. rewrite (vsum_ext _ _ (fun k => c *: Pi w (M i (zq w i d k)))%V) by (intros; rewrite zq_scal, M_scal, (p_scal _ pw); reflexivity).
  rewrite vsum_scal. vring.
Qed.
Lemma any_d i d : exists s, d_ s i = d.
Proof.
  exists {| sx := v0; su := fun _ => Rm (d - g i v0)%V |}. rewrite d_alt. cbn [su sx]. rewrite Ri_Rm. vring.
Qed.
Lemma Td_square i d : (i < n)%nat -> draw (fun w => nrm2 (Td w i d)) <= Q * nrmR d.
Proof.
  intros hi. destruct (any_d i d) as [s hs]. assert (dc := drift_client lam_3 s i hi). rewrite hs in dc. assert (T0' := T0).
  assert (l2 := pow2_ge_0 L). assert (iT : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat.
  eapply Rle_trans; [apply (ex_le draw _ (fun w => L ^ 2 * / INR tau * sum tau (fun k => nrm2 (z s w i k))))|].
  - intros w. unfold Td. eapply Rle_trans; [now apply nrm2_mean|]. rewrite (Rmult_comm (L ^ 2)), Rmult_assoc. apply Rmult_le_compat_l; auto.
    rewrite <- sum_scal. apply sum_le; intros k _. eapply Rle_trans; [apply p_le, Pi_proj|].
    rewrite <- hs, <- zq_z by auto. assert (q := b_le s w i k hi). unfold b_ in q. rewrite quadratic in q by auto.
    replace (g i (sx s) + M i (z s w i k) - g i (sx s))%V with (M i (z s w i k)) in q by vring. lra.
  - rewrite ex_scal, ex_sum. assert (c0 : 0 <= L ^ 2 * / INR tau) by pos. apply (Rmult_le_compat_l _ _ _ c0) in dc.
    eapply Rle_trans; [exact dc|]. right. unfold Q, pp. field. lra.
Qed.
Lemma q_bound i u d : (i < n)%nat -> q_ i u d ^ 2 <= nrmR u * (Q * nrmR d).
Proof.
  intros hi. eapply Rle_trans; [apply (ex_cauchy_schwarz draw (fun w => Pi w u) (fun w => Td w i d))|].
  rewrite (proj2 (step_2_3 u)). apply Rmult_le_compat_l; [apply nrmR_ge0|now apply Td_square].
Qed.
Lemma q_addl i u v d : q_ i (u + v)%V d = q_ i u d + q_ i v d.
Proof. unfold q_. rewrite <- ex_plus. apply ex_ext; intros w. now rewrite (p_add _ (Pi_proj w)), dot_addl. Qed.
Lemma q_scall i c u d : q_ i (c *: u)%V d = c * q_ i u d.
Proof. unfold q_. rewrite <- ex_scal. apply ex_ext; intros w. now rewrite (p_scal _ (Pi_proj w)), dot_scall. Qed.
Lemma q_addr i u d e : q_ i u (d + e)%V = q_ i u d + q_ i u e.
Proof. unfold q_. rewrite <- ex_plus. apply ex_ext; intros w. now rewrite Td_add, dot_addr. Qed.
Lemma q_scalr i u c d : q_ i u (c *: d)%V = c * q_ i u d.
Proof. unfold q_. rewrite <- ex_scal. apply ex_ext; intros w. now rewrite Td_scal, dot_scalr. Qed.
Lemma mean_T s w : inv s -> Pi w (meanV (a s w) - G (sx s))%V = meanV (fun i => Td w i (d_ s i)).
Proof.
  intros hs. assert (pw := Pi_proj w). assert (T0' := T0). rewrite <- ybar, <- meanV_Pi. apply meanV_ext; intros i hi. unfold y_, a, Td.
  rewrite (vsum_ext _ (fun k => g i (sx s + z s w i k)) (fun k => g i (sx s) + M i (z s w i k))%V) by (intros; now apply quadratic).
  rewrite vsum_plus, vsum_const. rewrite (vsum_ext _ (fun k => Pi w (M i (zq w i (d_ s i) k))) (fun k => Pi w (M i (z s w i k)))) by (intros; now rewrite zq_z).
  rewrite <- (p_vsum _ pw), <- (p_scal _ pw). f_equal. vfield. lra.
Qed.
Lemma Q_ge0 : 0 <= Q. Proof. unfold Q. destruct pp_range. lra. Qed.
Lemma amgm x a b c : 0 < c -> 0 <= a -> 0 <= b -> x ^ 2 <= a * b -> - x <= c * a + / (4 * c) * b /\ x <= c * a + / (4 * c) * b.
Proof.
  intros c0 a0 b0 h. assert (i0 : 0 < / (4 * c)) by (apply Rinv_0_lt_compat; lra).
  assert (s0 : 0 <= c * a + / (4 * c) * b) by (apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra).
  assert (k : x ^ 2 <= (c * a + / (4 * c) * b) ^ 2).
  { eapply Rle_trans; [exact h|]. assert (q := pow2_ge_0 (c * a - / (4 * c) * b)).
    replace ((c * a + / (4 * c) * b) ^ 2) with ((c * a - / (4 * c) * b) ^ 2 + a * b) by (field; lra). lra. }
  split; apply Rsqr_incr_0_var; auto; unfold Rsqr; simpl in k; lra.
Qed.
(* q_i is bilinear; |q_i(g, d)| <= sqrt Q |g|_R |d|_R is its square *)
Lemma step_8_1 :
  (forall s w i k, (i < n)%nat -> g i (sx s + z s w i k)%V = (g i (sx s) + M i (z s w i k))%V /\ z s w i k = zq w i (d_ s i) k) /\
  (forall s w, inv s -> Pi w (meanV (a s w) - G (sx s))%V = meanV (fun i => Td w i (d_ s i))) /\
  (forall i d, (i < n)%nat -> draw (fun w => nrm2 (Td w i d)) <= Q * nrmR d) /\
  (forall i u d, (i < n)%nat -> Rabs (q_ i u d) <= sqrt Q * (sqrt (nrmR u) * sqrt (nrmR d))).
Proof.
  split; [|split; [exact mean_T|split; [exact Td_square|]]].
  - intros s w i k hi. split; [now apply quadratic|now apply zq_z].
  - intros i u d hi. assert (q0 := Q_ge0). assert (u0 := nrmR_ge0 u). assert (e0 := nrmR_ge0 d). assert (h := q_bound i u d hi).
    rewrite <- (sqrt_mult (nrmR u)), <- sqrt_mult by pos. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt. unfold Rsqr. lra.
Qed.
(* the two displays below 8.1 *)
Definition V s : R := move s / t_ ^ 2.
Lemma q_self i u : (i < n)%nat -> - q_ i u u <= sqrt Q * nrmR u.
Proof.
  intros hi. assert (h := q_bound i u u hi). assert (q0 := Q_ge0). assert (u0 := nrmR_ge0 u). assert (s0 := sqrt_pos Q).
  apply Rsqr_incr_0_var; [|now apply Rmult_le_pos]. unfold Rsqr. replace (sqrt Q * nrmR u * (sqrt Q * nrmR u)) with (sqrt Q * sqrt Q * (nrmR u * nrmR u)) by ring.
  rewrite sqrt_sqrt by auto. lra.
Qed.
Lemma move_V s : inv s -> move s = t_ ^ 2 * V s /\ V s <= 2 * nrmR (G (sx s)) + 2 * (Q * (nrmR (G (sx s)) + H s)).
Proof.
  intros hs. assert (t0 := t_gt0). assert (t2 : 0 < t_ ^ 2) by now apply pow_lt. assert (e : move s = t_ ^ 2 * V s) by (unfold V; field; lra). split; [exact e|].
  assert (c2 := proj2 (step_2_8 lam_3 s) hs). destruct (move_le s) as [_ [_ m]]. cbv beta zeta in m. rewrite e in m. fold Q in c2.
  apply (Rmult_le_reg_l (t_ ^ 2)); auto. eapply Rle_trans; [exact m|]. apply (Rmult_le_compat_l (2 * t_ ^ 2)) in c2; lra.
Qed.
Theorem descent_q s : inv s -> draw (fun w => Favg (sx (step s w))) <= Favg (sx s) - t_ * nrmR (G (sx s)) + t_ * (sqrt Q * nrmR (G (sx s)))
  - t_ * meanR (fun i => q_ i (G (sx s)) (h_ s i)) + lam * t_ * (nrmR (G (sx s)) + Q * (nrmR (G (sx s)) + H s)).
Proof.
  intros hs. assert (t0 := t_gt0). assert (l0 := lam_ge0). assert (c2 := proj2 (step_2_8 lam_3 s) hs). fold Q in c2.
  destruct (step_3_6 s) as [_ [m _]]. cbv beta zeta in m. eapply Rle_trans; [exact m|].
  assert (e : draw (fun w => dot (Pi w (G (sx s))) (Pi w (meanV (a s w) - G (sx s)))) = meanR (fun i => q_ i (G (sx s)) (G (sx s))) + meanR (fun i => q_ i (G (sx s)) (h_ s i))).
  { rewrite (ex_ext draw _ (fun w => meanR (fun i => dot (Pi w (G (sx s))) (Td w i (d_ s i))))).
    - rewrite (ex_meanR draw (fun i w => dot (Pi w (G (sx s))) (Td w i (d_ s i)))), <- meanR_plus. apply meanR_ext; intros i _. unfold d_. apply q_addr.
    - intros w. rewrite (mean_T s w hs), dotC, meanV_dot. apply meanR_ext; intros i _. apply dotC. }
  assert (k : - meanR (fun i => q_ i (G (sx s)) (G (sx s))) <= sqrt Q * nrmR (G (sx s))).
  { replace (- meanR (fun i => q_ i (G (sx s)) (G (sx s)))) with (meanR (fun i => (-1) * q_ i (G (sx s)) (G (sx s)))) by (rewrite meanR_scal; ring).
    rewrite <- (meanR_const (sqrt Q * nrmR (G (sx s)))). apply meanR_le; intros i hi. assert (q := q_self i (G (sx s)) hi). lra. }
  rewrite e. apply (Rmult_le_compat_l t_) in k; [|lra]. apply (Rmult_le_compat_l (lam * t_)) in c2; [lra|]. apply Rmult_le_pos; lra.
Qed.
(* the second part of h_i in 4.1 *)
Definition bq w x i : vec := (v_ x i - Ri (Pi w (v_ x i)))%V.
Lemma q_null i u d : (i < n)%nat -> nrm2 d = 0 -> q_ i u d = 0.
Proof.
  intros hi h. assert (k := q_bound i u d hi). assert (nd : nrmR d = 0).
  { destruct (step_4_4 d) as [_ [_ k2]]. assert (k3 := nrmR_ge0 d). rewrite h in k2. lra. }
  rewrite nd in k. assert (k2 := pow2_ge_0 (q_ i u d)). assert (e : q_ i u d ^ 2 = 0) by lra. simpl in e. nra.
Qed.
Lemma q_sumr i u k (d : nat -> vec) : (i < n)%nat -> q_ i u (vsum k d) = sum k (fun l => q_ i u (d l)).
Proof.
  intros hi. induction k; [apply q_null; auto; apply nrm2_0|]. rewrite vsum_S, q_addr, IHk. reflexivity.
Qed.
Lemma q_coords i u d : (i < n)%nat -> q_ i u d = sum dim (fun j => dot (basis j) d * q_ i u (basis j)).
Proof.
  intros hi. set (d' := vsum dim (fun j => dot (basis j) d *: basis j)%V).
  assert (e : forall j, (j < dim)%nat -> d' j = d j).
  { intros j hj. unfold d', vsum. rewrite <- (sum_delta dim j d hj). apply sum_ext; intros l hl. unfold vscal. rewrite dot_basis by auto. unfold basis.
    destruct (Nat.eq_dec j l), (Nat.eq_dec l j); try lia; try ring. }
  replace (q_ i u d) with (q_ i u d').
  - unfold d'. rewrite q_sumr by auto. apply sum_ext; intros j _. apply q_scalr.
  - replace d with (d' + (d - d'))%V by vring. rewrite q_addr, (q_null i u (d - d')%V hi); [ring|].
    unfold nrm2, dot. rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros j hj. unfold vsub. rewrite e by auto. ring.
Qed.
Lemma G_lip x y : nrmR (G x - G y) <= thr * L ^ 2 * nrm2 (x - y).
Proof.
  eapply Rle_trans; [apply nrmR_le, ratio_high|]. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|]. unfold G. rewrite <- meanV_sub.
  eapply Rle_trans; [now apply nrm2_mean|]. fold (meanR (fun i => nrm2 (g i x - g i y))). rewrite <- (meanR_const (L ^ 2 * nrm2 (x - y))).
  apply meanR_le; intros i hi. assert (q := lip i hi x y). lra.
Qed.
Lemma step_8_2 s i : (i < n)%nat -> (forall c u, draw (fun w => dot u (bq w c i)) = 0) /\ (forall u c, draw (fun w => q_ i u (bq w c i)) = 0) /\
  draw (fun w => q_ i (G (sx (step s w))) (bq w (sx s) i)) = draw (fun w => q_ i (G (sx (step s w)) - G (sx s)) (bq w (sx s) i)) /\
  forall x x', sqrt (nrmR (G x - G x')) <= sqrt thr * L * sqrt (nrm2 (x - x')).
Proof.
  intros hi.
  assert (m0 : forall c u, draw (fun w => dot u (bq w c i)) = 0).
  { intros c u. rewrite (ex_ext draw _ (fun w => dot u (v_ c i) + (-1) * dot (Ri u) (Pi w (v_ c i)))).
    - rewrite ex_plus, ex_const, ex_scal, EPi, <- Rm_sym, Rm_Ri. ring.
    - intros w. unfold bq. rewrite subE, dot_addr, dot_scalr. f_equal. f_equal. apply sum_ext; intros j _. unfold Ri. ring. }
  assert (m1 : forall u c, draw (fun w => q_ i u (bq w c i)) = 0).
  { intros u c. rewrite (ex_ext draw _ (fun w => sum dim (fun j => q_ i u (basis j) * dot (basis j) (bq w c i)))).
    - rewrite ex_sum, (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros j _. rewrite ex_scal, m0. ring.
    - intros w. rewrite (q_coords i u _ hi). apply sum_ext; intros; ring. }
  split; [exact m0|]. split; [exact m1|]. split.
  - rewrite (ex_ext draw (fun w => q_ i (G (sx (step s w)) - G (sx s)) (bq w (sx s) i)) (fun w => q_ i (G (sx (step s w))) (bq w (sx s) i) + (-1) * q_ i (G (sx s)) (bq w (sx s) i))).
    + rewrite ex_plus, ex_scal, m1. ring.
    + intros w. now rewrite subE, q_addl, q_scall.
  - intros x x'. assert (l2 := pow2_ge_0 L). replace (sqrt thr * L) with (sqrt (thr * L ^ 2)).
    + rewrite <- sqrt_mult; [|pos|apply nrm2_ge0]. apply sqrt_le_1_alt. apply G_lip.
    + rewrite sqrt_mult, sqrt_pow2 by lra. reflexivity.
Qed.
Lemma mean_neg_q (u : vec) (d : nat -> vec) c : 0 < c -> - meanR (fun i => q_ i u (d i)) <= c * nrmR u + / (4 * c) * (Q * meanR (fun i => nrmR (d i))).
Proof.
  intros c0. replace (- meanR (fun i => q_ i u (d i))) with (meanR (fun i => (-1) * q_ i u (d i))) by (rewrite meanR_scal; ring).
  rewrite <- meanR_scal, <- meanR_scal, <- (meanR_const (c * nrmR u)), <- meanR_plus. apply meanR_le; intros i hi.
  assert (q0 := Q_ge0). destruct (amgm (q_ i u (d i)) (nrmR u) (Q * nrmR (d i)) c c0 (nrmR_ge0 u) (Rmult_le_pos _ _ q0 (nrmR_ge0 _)) (q_bound i u (d i) hi)). lra.
Qed.
Definition Z : R := (1 - / thm) * zeta ^ 2.
Lemma parts s w i : h_ (step s w) i = ((v_ (sx (step s w)) i - v_ (sx s) i - Ri (Pi w (y_ s w i - meanV (y_ s w)))) + bq w (sx s) i)%V.
Proof. rewrite step_4_1. unfold bq. vring. Qed.
Lemma first_third s w : meanR (fun i => nrmR (v_ (sx (step s w)) i - v_ (sx s) i)) <= thr * (L ^ 2 * nrm2 (sx (step s w) - sx s)) /\
  meanR (fun i => nrmR (Ri (Pi w (y_ s w i - meanV (y_ s w))))) <= thm * (L ^ 2 * Dw s w).
Proof.
  destruct (step_4_6 (y_ s w) s w) as [_ [q1 q2]]. cbv zeta in q2. assert (q3 := mean_y s w). split.
  - eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|exact q2]]. rewrite <- meanR_scal. apply meanR_le; intros i _. apply nrmR_le, ratio_high.
  - eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|exact (Rle_trans _ _ _ q1 q3)]]. rewrite <- meanR_scal. apply meanR_le; intros i _.
    destruct (step_4_5 w (y_ s w i - meanV (y_ s w))%V) as [k1 k2]. apply (Rmult_le_compat_l thm) in k2; lra.
Qed.
Lemma mean_b s : draw (fun w => meanR (fun i => nrmR (bq w (sx s) i))) <= Z.
Proof.
  rewrite (ex_meanR draw (fun i w => nrmR (bq w (sx s) i))).
  eapply Rle_trans; [apply (meanR_le _ (fun i => (1 - / thm) * nrm2 (v_ (sx s) i))); intros i hi; unfold bq; rewrite step_4_3; apply step_4_4|].
  rewrite meanR_scal. apply Rmult_le_compat_l; [|apply spread]. assert (i1 : / thm <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra.
Qed.
Lemma step_8_3 s : inv s ->
  draw (fun w => - meanR (fun i => q_ i (G (sx (step s w))) (h_ (step s w) i))) <= 1/16 * draw (fun w => nrmR (G (sx (step s w))))
    + 8 * Q * (lam ^ 2 * V s + thm * Q * (nrmR (G (sx s)) + H s)) + lam / 2 * (Q * Z + V s) /\
  (su s = (fun _ => v0) -> - meanR (fun i => q_ i (G (sx s)) (h_ s i)) <= 1/16 * nrmR (G (sx s)) + 4 * Q * H s).
Proof.
  intros hs. assert (q0 := Q_ge0). assert (l0 := lam_ge0). destruct (move_V s hs) as [m1 _]. assert (t0 := t_gt0). assert (c2 := proj2 (step_2_8 lam_3 s) hs). fold Q in c2.
  assert (V0 : 0 <= V s). { unfold V. apply Rmult_le_pos; [apply ex_ge0; intros; apply nrm2_ge0|]. apply Rlt_le, Rinv_0_lt_compat, pow_lt; lra. }
  assert (mv : L ^ 2 * move s = lam ^ 2 * V s) by (rewrite m1; unfold lam; ring).
  split.
  - set (x' w := sx (step s w)).
    (* the inequality for one draw; the last term is q_i(G, b_i) *)
    assert (one : forall w, - meanR (fun i => q_ i (G (x' w)) (h_ (step s w) i)) <= 1/16 * nrmR (G (x' w))
      + (8 * Q * (thr * (L ^ 2 * nrm2 (x' w - sx s))) + (8 * Q * (thm * (L ^ 2 * Dw s w)) + (-1) * meanR (fun i => q_ i (G (x' w)) (bq w (sx s) i))))).
    { intros w. rewrite (meanR_ext _ (fun i => q_ i (G (x' w)) (v_ (x' w) i - v_ (sx s) i) + (q_ i (G (x' w)) ((-1) *: Ri (Pi w (y_ s w i - meanV (y_ s w)))) + q_ i (G (x' w)) (bq w (sx s) i)))).
      - rewrite !meanR_plus. destruct (first_third s w) as [a1 a2].
        assert (k1 := mean_neg_q (G (x' w)) (fun i => (v_ (x' w) i - v_ (sx s) i)%V) (1/32) ltac:(lra)).
        assert (k2 := mean_neg_q (G (x' w)) (fun i => ((-1) *: Ri (Pi w (y_ s w i - meanV (y_ s w))))%V) (1/32) ltac:(lra)).
        cbv beta in k1, k2. rewrite (meanR_ext (fun i => nrmR ((-1) *: Ri (Pi w (y_ s w i - meanV (y_ s w))))) (fun i => nrmR (Ri (Pi w (y_ s w i - meanV (y_ s w)))))) in k2.
        + apply (Rmult_le_compat_l Q) in a1; auto. apply (Rmult_le_compat_l Q) in a2; auto. replace (/ (4 * (1/32))) with 8 in k1, k2 by field. fold (x' w) in a1. lra.
        + intros i _. unfold nrmR, dot. apply sum_ext; intros j _. unfold Rm, vscal. ring.
      - intros i _. rewrite parts. fold (x' w). rewrite q_addr, subE, q_addr. ring. }
    eapply Rle_trans; [apply ex_le, one|]. rewrite !ex_plus, !ex_scal. fold (DD s). change (draw (fun w => nrm2 (x' w - sx s))) with (move s).
    rewrite mv. change (fun w => Dw s w) with (Dw s). fold (DD s).
    (* q_i(G, b_i) *)
    assert (last : (-1) * draw (fun w => meanR (fun i => q_ i (G (x' w)) (bq w (sx s) i))) <= lam / 2 * (Q * Z + V s)).
    { rewrite (ex_meanR draw (fun i w => q_ i (G (x' w)) (bq w (sx s) i))).
      rewrite (meanR_ext _ (fun i => draw (fun w => q_ i (G (x' w) - G (sx s)) (bq w (sx s) i)))) by (intros i hi; apply (step_8_2 s i hi)).
      rewrite <- (ex_meanR draw (fun i w => q_ i (G (x' w) - G (sx s)) (bq w (sx s) i))), <- ex_scal.
      eapply Rle_trans; [apply (ex_le draw _ (fun w => lam / 2 * (Q * meanR (fun i => nrmR (bq w (sx s) i)) + / t_ ^ 2 * nrm2 (x' w - sx s))))|].
      - intros w. rewrite <- meanR_scal. rewrite <- meanR_scal, <- (meanR_const (/ t_ ^ 2 * nrm2 (x' w - sx s))), <- meanR_plus, <- meanR_scal.
        apply meanR_le; intros i hi. assert (qb := q_bound i (G (x' w) - G (sx s))%V (bq w (sx s) i) hi). assert (gl := G_lip (x' w) (sx s)).
        set (m := / t_ ^ 2 * nrm2 (x' w - sx s)). set (e := Q * nrmR (bq w (sx s) i)) in *. set (r := q_ i _ _) in *.
        assert (e0 : 0 <= e) by (apply Rmult_le_pos; [exact q0|apply nrmR_ge0]).
        assert (m0 : 0 <= m) by (apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat, pow_lt; lra|apply nrm2_ge0]).
        assert (gl2 : nrmR (G (x' w) - G (sx s)) <= lam ^ 2 * m).
        { eapply Rle_trans; [exact gl|]. replace (lam ^ 2 * m) with (1 * L ^ 2 * nrm2 (x' w - sx s)) by (unfold m, lam; field; lra).
          apply Rmult_le_compat_r; [apply nrm2_ge0|]. apply Rmult_le_compat_r; [apply pow2_ge_0|lra]. }
        assert (k : r ^ 2 <= (lam / 2 * (e + m)) ^ 2).
        { apply (Rmult_le_compat_r e) in gl2; auto. assert (0 <= lam ^ 2 * (e - m) ^ 2) by (apply Rmult_le_pos; apply pow2_ge_0). lra. }
        assert (s0 : 0 <= lam / 2 * (e + m)) by (apply Rmult_le_pos; lra).
        apply Rsqr_incr_0_var; auto. unfold Rsqr. simpl in k. lra.
      - rewrite ex_scal, ex_plus, !ex_scal. change (draw (fun w => nrm2 (x' w - sx s))) with (move s). apply Rmult_le_compat_l; [lra|].
        assert (b := mean_b s). apply (Rmult_le_compat_l Q) in b; auto. unfold V, Rdiv. lra. }
    assert (A1 : 8 * Q * (thr * (lam ^ 2 * V s)) <= 8 * Q * (lam ^ 2 * V s)).
    { apply Rmult_le_compat_l; [lra|]. assert (0 <= lam ^ 2 * V s) by (apply Rmult_le_pos; [apply pow2_ge_0|auto]). assert (0 <= (1 - thr) * (lam ^ 2 * V s)) by (apply Rmult_le_pos; lra). lra. }
    assert (A2 := Rmult_le_compat_l (8 * Q * thm) _ _ ltac:(pos) c2). unfold x' in *. lra.
  - intros hu. assert (k := mean_neg_q (G (sx s)) (h_ s) (1/16) ltac:(lra)). fold (H s) in k. replace (/ (4 * (1/16))) with 4 in k by field. lra.
Qed.
Lemma dual_next s : inv s -> draw (fun w => H (step s w)) <= 2 * Z + (4 * thm * Q + 8 * lam ^ 2 * Q) * H s + (4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) * nrmR (G (sx s)).
Proof.
  intros hs. assert (c4 := step_4_7 s). assert (c2 := proj2 (step_2_8 lam_3 s) hs). fold Q in c2. destruct (move_V s hs) as [m1 m2].
  assert (q0 := Q_ge0). assert (mv : L ^ 2 * move s = lam ^ 2 * V s) by (rewrite m1; unfold lam; ring). assert (t0 := t_gt0).
  assert (V0 : 0 <= V s). { unfold V. apply Rmult_le_pos; [apply ex_ge0; intros; apply nrm2_ge0|]. apply Rlt_le, Rinv_0_lt_compat, pow_lt; lra. }
  assert (A1 := Rmult_le_compat_l (4 * thm) _ _ ltac:(lra) c2). assert (l2 := pow2_ge_0 lam).
  assert (A2 := Rmult_le_compat_l (4 * lam ^ 2) _ _ ltac:(lra) m2).
  assert (A3 : 0 <= (1 - thr) * (4 * (lam ^ 2 * V s))) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|pos]).
  replace (4 * thr * L ^ 2 * move s) with (4 * thr * (L ^ 2 * move s)) in c4 by ring. rewrite mv in c4. unfold Z. lra.
Qed.
End Quadratic.
(* rounds, the outermost law last *)
Lemma Eit_S k u : forall s, Eit (fun _ : state => draw) step (S k) u s = Eit (fun _ => draw) step k (fun s => draw (fun w => u (step s w))) s.
Proof. induction k; intros s; [reflexivity|]. change (draw (fun w => Eit (fun _ => draw) step (S k) u (step s w)) = Eit (fun _ => draw) step (S k) (fun s => draw (fun w => u (step s w))) s).
  cbn [Eit]. apply ex_ext; intros w. rewrite <- IHk. reflexivity. Qed.
Lemma Eit_inv k u v : (forall s, inv s -> u s <= v s) -> forall s, inv s -> Eit (fun _ : state => draw) step k u s <= Eit (fun _ => draw) step k v s.
Proof. intros q. induction k; intros s hs; [now apply q|]. apply ex_le; intros w. apply IHk. now apply step_1_3. Qed.
Lemma Eit_plus k u v : forall s, Eit (fun _ : state => draw) step k (fun s => u s + v s) s = Eit (fun _ => draw) step k u s + Eit (fun _ => draw) step k v s.
Proof. induction k; intros s; [reflexivity|]. cbn [Eit]. rewrite <- ex_plus. apply ex_ext; intros w. apply IHk. Qed.
Lemma Eit_const k c : forall s, Eit (fun _ : state => draw) step k (fun _ => c) s = c.
Proof. induction k; intros s; [reflexivity|]. cbn [Eit]. rewrite (ex_ext draw _ (fun _ => c)) by (intros; apply IHk). apply ex_const. Qed.
Lemma Eit_ge0 k u : (forall s, 0 <= u s) -> forall s, 0 <= Eit (fun _ : state => draw) step k u s.
Proof. intros q. induction k; intros s; [apply q|]. apply ex_ge0; intros w. apply IHk. Qed.
Theorem theorem_2 (M : nat -> vec -> vec) (s0 : state) (K : nat) :
  (forall i u v, M i (u + v)%V = (M i u + M i v)%V) -> (forall i c u, M i (c *: u)%V = (c *: M i u)%V) ->
  (forall i x v, (i < n)%nat -> g i (x + v)%V = (g i x + M i v)%V) -> lam <= / (6 * sqrt thm) -> su s0 = (fun _ => v0) -> (0 < K)%nat ->
  / INR K * sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)
  <= 5 * thm * (Favg (sx s0) - fstar) / (2 * (eta * INR tau) * INR K) + 125/12 * (thm * pp * H s0 / INR K)
    + 50/3 * (sqrt thm * (thm - 1) * (L * eta * INR tau) * pp * zeta ^ 2).
Proof.
  clear steps. intros Ma Ms hq h6 hu K0. assert (K1 := lt_0_INR _ K0). assert (t0 := t_gt0). assert (l0 := lam_ge0). destruct s_thm as [s0' ss].
  destruct pp_range as [p0 p1]. assert (T0' := T0).
  assert (sc1 : 1 <= sqrt thm) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra).
  assert (lc : lam * sqrt thm <= 1/6).
  { apply (Rmult_le_compat_r (sqrt thm)) in h6; [|lra]. replace (/ (6 * sqrt thm) * sqrt thm) with (1/6) in h6 by (field; lra). exact h6. }
  assert (l3 : lam <= 1/3) by (assert (0 <= lam * (sqrt thm - 1)) by (apply Rmult_le_pos; lra); lra).
  assert (q0 : 0 <= Q) by apply Q_ge0. assert (Q1 : Q <= 5/6 * lam ^ 2) by (unfold Q; lra).
  assert (r0' := sqrt_pos Q). assert (rr : sqrt Q * sqrt Q = Q) by now apply sqrt_sqrt.
  assert (i0 : inv s0) by (unfold inv; rewrite hu, vsum_const; vring).
  set (E k u := Eit (fun _ : state => draw) step k u s0).
  set (gk k := E k (fun s => nrmR (G (sx s)))). set (hk k := E k H). set (vk k := E k V). set (fk k := E k (fun s => Favg (sx s))).
  set (qk k := E k (fun s => - meanR (fun i => q_ M i (G (sx s)) (h_ s i)))).
  set (r := sqrt Q) in *.
  assert (Z0 : 0 <= Z). { unfold Z. apply Rmult_le_pos; [|apply pow2_ge_0]. assert (i1 : / thm <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra. }
  assert (g0 : forall k, 0 <= gk k) by (intros; apply Eit_ge0; intros; apply nrmR_ge0).
  assert (h0 : forall k, 0 <= hk k) by (intros; apply Eit_ge0; apply H_ge0).
  assert (v0' : forall k, 0 <= vk k).
  { intros; apply Eit_ge0; intros s. unfold V. apply Rmult_le_pos; [apply ex_ge0; intros; apply nrm2_ge0|]. apply Rlt_le, Rinv_0_lt_compat, pow_lt; lra. }
  assert (vb : forall k, vk k <= 2 * gk k + 2 * (Q * (gk k + hk k))).
  { intros k. unfold vk, gk, hk, E. 
    set (A := Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0). set (B := Eit (fun _ => draw) step k H s0).
    replace (2 * A + 2 * (Q * (A + B))) with ((2 + 2 * Q) * A + 2 * Q * B) by ring. unfold A, B. rewrite <- !Eit_scal, <- Eit_plus.
    apply Eit_inv; auto. intros s hs. assert (d := move_V l3 s hs). lra. }
  assert (db : forall k, fk (S k) <= fk k - t_ * gk k + t_ * (r * gk k) + t_ * qk k + lam * t_ * (gk k + Q * (gk k + hk k))).
  { intros k. unfold fk, gk, hk, qk, E. rewrite Eit_S.
    replace (Eit (fun _ => draw) step k (fun s => Favg (sx s)) s0 - t_ * Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0
      + t_ * (r * Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0) + t_ * Eit (fun _ => draw) step k (fun s => - meanR (fun i => q_ M i (G (sx s)) (h_ s i))) s0
      + lam * t_ * (Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0 + Q * (Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0 + Eit (fun _ => draw) step k H s0)))
      with (Eit (fun _ => draw) step k (fun s => Favg (sx s)) s0 + ((- t_ + t_ * r + lam * t_ * (1 + Q)) * Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0
      + (t_ * Eit (fun _ => draw) step k (fun s => - meanR (fun i => q_ M i (G (sx s)) (h_ s i))) s0 + lam * t_ * Q * Eit (fun _ => draw) step k H s0))) by ring.
    rewrite <- !Eit_scal, <- !Eit_plus. apply Eit_inv; auto. intros s hs. assert (d := descent_q M Ma hq l3 s hs). fold r in d. lra. }
  assert (q1 : qk 0%nat <= 1/16 * gk 0%nat + 4 * Q * hk 0%nat) by (apply (step_8_3 M Ma Ms hq l3 s0 i0); exact hu).
  assert (q2 : forall k, qk (S k) <= 1/16 * gk (S k) + 8 * Q * (lam ^ 2 * vk k + thm * Q * (gk k + hk k)) + lam / 2 * (Q * Z + vk k)).
  { intros k. unfold qk, gk, hk, vk, E. rewrite !Eit_S.
    set (A1 := Eit (fun _ => draw) step k (fun s => draw (fun w => nrmR (G (sx (step s w))))) s0). set (A2 := Eit (fun _ => draw) step k V s0).
    set (A3 := Eit (fun _ => draw) step k (fun s => nrmR (G (sx s))) s0). set (A4 := Eit (fun _ => draw) step k H s0).
    replace (1/16 * A1 + 8 * Q * (lam ^ 2 * A2 + thm * Q * (A3 + A4)) + lam / 2 * (Q * Z + A2))
      with (1/16 * A1 + ((8 * Q * lam ^ 2 + lam / 2) * A2 + (8 * Q * (thm * Q) * A3 + (8 * Q * (thm * Q) * A4 + lam / 2 * (Q * Z))))) by ring.
    unfold A1, A2, A3, A4. rewrite <- (Eit_const k (lam / 2 * (Q * Z)) s0), <- !Eit_scal, <- !Eit_plus. apply Eit_inv; auto.
    intros s hs. assert (d := proj1 (step_8_3 M Ma Ms hq l3 s hs)). lra. }
  assert (d2 : forall k, hk (S k) <= 2 * Z + (4 * thm * Q + 8 * lam ^ 2 * Q) * hk k + (4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) * gk k).
  { intros k. unfold hk, gk, E. rewrite Eit_S, <- !Eit_scal, <- (Eit_const k (2 * Z) s0), <- !Eit_plus. apply Eit_inv; auto.
    intros s hs. apply (dual_next l3 s hs). }
  assert (hH0 : hk 0%nat = H s0) by reflexivity.
  set (S2 := sum K (fun k => Eit (fun _ => draw) step k (fun s => nrm2 (G (sx s))) s0)).
  assert (S2le : S2 <= thm * sum K gk).
  { unfold S2. rewrite <- sum_scal. apply sum_le; intros k _. unfold gk, E. rewrite <- Eit_scal. apply Eit_le; intros s.
    destruct (step_4_4 (G (sx s))) as [_ [c5 _]]. apply (Rmult_le_compat_l thm) in c5; [|lra]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l in c5 by lra. exact c5. }
  clearbody gk hk vk qk S2. set (Ga := sum K gk). set (Th := sum K hk).
  assert (co1 : 0 <= 4 * thm * Q + 8 * lam ^ 2 * Q) by (assert (a := pow2_ge_0 lam); apply Rplus_le_le_0_compat; pos).
  assert (co2 : 0 <= 4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) by (assert (a := pow2_ge_0 lam); repeat apply Rplus_le_le_0_compat; pos).
  assert (T84 : Th <= hk 0%nat + 2 * (INR K * Z) + (4 * thm * Q + 8 * lam ^ 2 * Q) * Th + (4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) * Ga).
  { unfold Th, Ga. clear - d2 co1 co2 h0 g0 Z0 K0. destruct K as [|k]; [lia|]. clear K0.
    assert (x : sum (S k) hk <= hk 0%nat + 2 * (INR k * Z) + (4 * thm * Q + 8 * lam ^ 2 * Q) * sum k hk + (4 * thm * Q + 8 * lam ^ 2 + 8 * lam ^ 2 * Q) * sum k gk).
    { induction k; [simpl; lra|]. rewrite sum_S, (S_INR k). specialize (d2 k). cbn [sum] in *. lra. }
    rewrite S_INR, (sum_S k hk) at 1. rewrite (sum_S k hk) in x. rewrite !sum_S.
    assert (a1 := Rmult_le_pos _ _ co1 (h0 k)). assert (a2 := Rmult_le_pos _ _ co2 (g0 k)). lra. }
  assert (Th0 : 0 <= Th) by (apply sum_ge0; auto). assert (Ga0 : 0 <= Ga) by (apply sum_ge0; auto).
  assert (KZ0 : 0 <= INR K * Z) by (apply Rmult_le_pos; lra).
  assert (s84 := step_8_4 Q lam thm (sqrt thm) r sc1 ss rr l0 lc Q1 (hk 0%nat) (INR K * Z) Th Ga Th0 Ga0 (h0 _) KZ0 T84).
  assert (s85 := step_8_5 Q lam thm (sqrt thm) r sc1 ss rr l0 lc Q1). destruct (step_8_6 Q lam thm (sqrt thm) r sc1 ss rr l0 lc Q1) as [s86 s86'].
  assert (bv : sum K vk <= 2 * Ga + 2 * (Q * (Ga + Th))).
  { unfold Ga, Th. apply Rle_trans with (sum K (fun k => 2 * gk k + 2 * (Q * (gk k + hk k)))); [apply sum_le; intros; apply vb|]. right. rewrite sum_plus, !sum_scal, sum_plus. ring. }
  assert (bq : sum K qk <= 1/16 * Ga + 4 * Q * hk 0%nat + 8 * Q * (lam ^ 2 * sum K vk + thm * Q * (Ga + Th)) + lam / 2 * (Q * (INR K * Z) + sum K vk)).
  { unfold Ga, Th. clear - q1 q2 h0 g0 v0' Z0 q0 l0 thm1 K0. destruct K as [|k]; [lia|]. clear K0.
    assert (x : sum (S k) qk <= 1/16 * sum (S k) gk + 4 * Q * hk 0%nat + 8 * Q * (lam ^ 2 * sum k vk + thm * Q * (sum k gk + sum k hk)) + lam / 2 * (Q * (INR k * Z) + sum k vk)).
    { induction k; [simpl; lra|]. rewrite sum_S, (S_INR k). specialize (q2 k). rewrite (sum_S (S k) gk). cbn [sum] in *. lra. }
    eapply Rle_trans; [exact x|]. rewrite S_INR, !sum_S. specialize (h0 k). specialize (g0 k). specialize (v0' k). assert (l2 := pow2_ge_0 lam).
    assert (a1 : 0 <= Q * (lam ^ 2 * vk k)) by pos. assert (a2 : 0 <= Q * (thm * Q * (gk k + hk k))) by (apply Rmult_le_pos; auto; apply Rmult_le_pos; [pos|lra]).
    assert (a3 : 0 <= lam * (Q * Z)) by pos. assert (a4 : 0 <= lam * vk k) by pos. lra. }
  assert (tele : fk K <= fk 0%nat - t_ * Ga + t_ * (r * Ga) + t_ * sum K qk + lam * t_ * (Ga + Q * (Ga + Th))).
  { unfold Ga, Th. clear - db. induction K as [|k IH]; [simpl; lra|]. rewrite !sum_S. specialize (db k). lra. }
  assert (fK : fstar <= fk K). { unfold fk, E. rewrite <- (Eit_const K fstar s0). apply Eit_le; intros; apply bounded. }
  assert (f0 : fk 0%nat = Favg (sx s0)) by reflexivity.
  (* all of it in units of t *)
  assert (l2 := pow2_ge_0 lam).
  assert (u1 := Rmult_le_compat_l (t_ * (8 * Q * lam ^ 2 + lam / 2)) _ _ ltac:(apply Rmult_le_pos; [lra|apply Rplus_le_le_0_compat; [pos|lra]]) bv).
  assert (u2 := Rmult_le_compat_l t_ _ _ ltac:(lra) bq).
  assert (kap0 : 0 <= kappa8 Q lam thm) by (unfold kappa8; repeat apply Rplus_le_le_0_compat; pos).
  assert (u3 := Rmult_le_compat_l (t_ * Q * kappa8 Q lam thm) _ _ ltac:(assert (x := Rlt_le _ _ t0); pos) s84).
  assert (u4 := Rmult_le_compat_l (t_ * Ga) _ _ ltac:(apply Rmult_le_pos; lra) s85).
  assert (u5 := Rmult_le_compat_l (t_ * Q * (INR K * Z)) _ _ ltac:(assert (x := Rlt_le _ _ t0); pos) s86).
  assert (u6 := Rmult_le_compat_l (t_ * Q * hk 0%nat) _ _ ltac:(assert (x := Rlt_le _ _ t0); assert (y := h0 0%nat); pos) s86').
  assert (main : 2/5 * t_ * Ga <= Favg (sx s0) - fstar + 5 * t_ * Q * hk 0%nat + 8 * t_ * Q * lam * sqrt thm * (INR K * Z)).
  { unfold kappa8 in *. clear - tele fK f0 u1 u2 u3 u4 u5 u6. lra. }
  fold Ga in S2le. rewrite hH0 in main.
  assert (k0 : 0 < 5 * thm / (2 * t_ * INR K)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ k0)) in main.
  replace (5 * thm / (2 * t_ * INR K) * (2/5 * t_ * Ga)) with (/ INR K * (thm * Ga)) in main by (field; lra).
  apply (Rmult_le_compat_l (/ INR K)) in S2le; [|now apply Rlt_le, Rinv_0_lt_compat].
  eapply Rle_trans; [exact S2le|]. eapply Rle_trans; [exact main|]. right. unfold Q, Z, lam, t_. field. repeat split; lra.
Qed.
End FedSub.
