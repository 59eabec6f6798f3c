(* docs/theory/fedsub.md: FedSub's Theorem 1, all clients, no noise. step_2_5 is the page's [fedsub.2.5]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Ssf.
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
Hypothesis steps : lam <= / (3 * sqrt thm).
Lemma s_thm : 0 < sqrt thm /\ sqrt thm * sqrt thm = thm.
Proof. split; [apply sqrt_lt_R0; lra|apply sqrt_def; lra]. Qed.
Lemma lam_ge0 : 0 <= lam. Proof. unfold lam. assert (q := Rlt_le _ _ t_gt0). pos. Qed.
Lemma lam_thm : lam ^ 2 * thm <= 1/9.
Proof.
  destruct s_thm as [s0 ss]. assert (l0 := lam_ge0). assert (q := pow_incr _ _ 2 (conj l0 steps)).
  apply (Rmult_le_compat_r thm) in q; [|lra]. replace ((/ (3 * sqrt thm)) ^ 2 * thm) with (thm / (9 * (sqrt thm * sqrt thm))) in q by (field; lra).
  rewrite ss in q. replace (thm / (9 * thm)) with (1/9) in q by (field; lra). exact q.
Qed.
Lemma lam_3 : lam <= 1/3.
Proof.
  assert (l0 := lam_ge0). assert (h := lam_thm). assert (q := pow2_ge_0 lam). assert (0 <= lam ^ 2 * (thm - 1)) by (apply Rmult_le_pos; lra).
  apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. lra.
Qed.
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
Theorem claim_2 s : inv s -> L ^ 2 * DD s <= 5/6 * pp * (nrmR (G (sx s)) + H s).
Proof.
  intros hs. unfold H. rewrite <- (step_2_7 s hs). change (fun i => nrmR (G (sx s) + h_ s i)%V) with (fun i => nrmR (d_ s i)).
  assert (q : DD s <= 5/6 * eta ^ 2 * INR tau * (INR tau - 1) * meanR (fun i => nrmR (d_ s i))).
  { unfold DD, Dw. rewrite (ex_meanR draw (fun i w => / INR tau * sum tau (fun k => nrm2 (z s w i k)))), <- meanR_scal. apply meanR_le; intros i hi.
    rewrite ex_scal, ex_sum. assert (c := drift_client s i hi). assert (iT : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat.
    apply (Rmult_le_compat_l _ _ _ iT) in c. eapply Rle_trans; [exact c|]. right. field. lra. }
  assert (l2 := pow2_ge_0 L). apply (Rmult_le_compat_l _ _ _ l2) in q. unfold pp. lra.
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
Theorem claim_3 s : draw (fun w => Favg (sx (step s w))) <= Favg (sx s) - t_ / 2 * nrmR (G (sx s)) + t_ / 2 * (L ^ 2 * DD s) - (1 - lam) / (2 * t_) * move s.
Proof.
  assert (t0 := t_gt0). destruct (step_3_4 s) as [_ [h1 h2]].
  eapply Rle_trans; [apply (ex_le draw _ (fun w => Favg (sx s) + (- (t_ / 2) * nrm2 (Pi w (G (sx s))) + (t_ / 2 * nrm2 (Pi w (meanV (a s w) - G (sx s)))
    + - ((1 - lam) / (2 * t_)) * nrm2 (sx (step s w) - sx s)))))|].
  - intros w. assert (q := step_3_3 s w). cbv zeta in q.
    replace (sx (step s w) - sx s)%V with (- t_ *: Pi w (meanV (a s w)))%V by (cbn [step sx]; vring). rewrite nrm2_scal.
    replace (- ((1 - lam) / (2 * t_)) * (- t_ * - t_ * nrm2 (Pi w (meanV (a s w))))) with (- (t_ / 2 * (1 - lam) * nrm2 (Pi w (meanV (a s w))))) by (field; lra). lra.
  - rewrite !ex_plus, !ex_scal, ex_const, h2. fold (move s). apply (Rmult_le_compat_l (t_ / 2)) in h1; lra.
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
Theorem claim_4 s : draw (fun w => H (step s w)) <= 2 * (1 - / thm) * zeta ^ 2 + 4 * thm * (L ^ 2 * DD s) + 4 * thr * L ^ 2 * move s.
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
  assert (c2 := claim_2 s hs). assert (c3 := claim_3 s). assert (c4 := Rmult_le_compat_l _ _ _ w_ge0 (claim_4 s)).
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
End FedSub.
