(* docs/theory/decomfl.md: scalars for gradients. step_1_1 is the page's [decomfl.1.1]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Ssf Family Fedsub.
From Fedtheory Require Import Noise Sampling Descent Mud Core.
Local Open Scope R_scope.

(* ---- directions: the moments of a normal vector, as a hypothesis ---- *)
Section Directions.
Context {D : Dim}.
Record normal {O} (Z : law O) (z : O -> vec) : Prop := {
  w_2 : forall a b, Z (fun o => dot a (z o) * dot b (z o)) = dot a b;
  w_4 : forall a b c e, Z (fun o => dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o))) = dot a b * dot c e + dot a c * dot b e + dot a e * dot b c;
  (* with pairs of equal vectors; that is all that the page uses *)
  w_6 : forall a b c e h k, Z (fun o => dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o)) * (dot h (z o) * dot k (z o)))
    = dot h k * (dot a b * dot c e + dot a c * dot b e + dot a e * dot b c)
    + dot a h * (dot b k * dot c e + dot c k * dot b e + dot e k * dot b c) + dot b h * (dot a k * dot c e + dot c k * dot a e + dot e k * dot a c)
    + dot c h * (dot a k * dot b e + dot b k * dot a e + dot e k * dot a b) + dot e h * (dot a k * dot b c + dot b k * dot a c + dot c k * dot a b) }.
Record symm (M : vec -> vec) : Prop := {
  s_add : forall u v, M (u + v)%V = (M u + M v)%V;
  s_scal : forall a u, M (a *: u)%V = (a *: M u)%V;
  s_sym : forall u v, dot (M u) v = dot u (M v) }.
Lemma mapL_symm L M : mapL L M -> symm M. Proof. intros h. split; apply h. Qed.
Variable H : vec -> vec.
Section Symmetric.
Hypothesis HS : symm H.
Definition nH v : R := dot v (H v).
Definition tr : R := sum dim (fun j => dot (basis j) (H (basis j))).
Lemma parseval u v : sum dim (fun j => dot u (basis j) * dot v (basis j)) = dot u v.
Proof. rewrite (dot_coords u v). apply sum_ext; intros. now rewrite !(dotC (basis _)). Qed.
Lemma form_sum z : nH z = sum dim (fun j => dot (basis j) z * dot (H (basis j)) z).
Proof. unfold nH. rewrite dot_coords. apply sum_ext; intros. now rewrite (s_sym _ HS). Qed.
Lemma basis_1 j : (j < dim)%nat -> dot (basis j) (basis j) = 1.
Proof. intros h. rewrite dot_basis by auto. unfold basis. destruct Nat.eq_dec; congruence. Qed.
Lemma form_basis u v : sum dim (fun j => dot u (basis j) * dot v (H (basis j))) = dot u (H v).
Proof. rewrite <- parseval. apply sum_ext; intros. now rewrite <- (s_sym _ HS v). Qed.
Section One.
Context {O : Type}.
Variable Z : law O.
Variable z : O -> vec.
Hypothesis nz : normal Z z.
Lemma sum_mul n s t : sum n s * sum n t = sum n (fun i => sum n (fun j => s i * t j)).
Proof. rewrite (sum_ext n (fun i => sum n (fun j => s i * t j)) (fun i => sum n t * s i)) by (intros; rewrite sum_scal; ring). rewrite sum_scal. ring. Qed.
Lemma sy u v : dot (H u) v = dot u (H v). Proof. apply (s_sym _ HS). Qed.
Lemma E2H a b : Z (fun o => dot a (z o) * dot b (z o) * nH (z o)) = tr * dot a b + 2 * dot a (H b).
Proof.
  rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot a (z o) * dot b (z o) * (dot (basis j) (z o) * dot (H (basis j)) (z o))))) by (intros; rewrite form_sum, sum_scal; ring).
  rewrite ex_sum, (sum_ext dim _ (fun j => dot a b * dot (basis j) (H (basis j)) + (dot a (basis j) * dot b (H (basis j)) + dot b (basis j) * dot a (H (basis j))))) by (intros; rewrite (w_4 _ _ nz); ring).
  rewrite !sum_plus, sum_scal, !form_basis. fold tr. rewrite <- (sy b a), (dotC (H b) a). ring.
Qed.
Lemma E4H a b c e : Z (fun o => dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o)) * nH (z o)) = tr * (dot a b * dot c e + dot a c * dot b e + dot a e * dot b c)
  + 2 * (dot a (H b) * dot c e + dot a (H c) * dot b e + dot a (H e) * dot b c + dot b (H c) * dot a e + dot b (H e) * dot a c + dot c (H e) * dot a b).
Proof.
  rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o)) * (dot (basis j) (z o) * dot (H (basis j)) (z o))))) by (intros; rewrite form_sum, sum_scal; ring).
  rewrite ex_sum. rewrite (sum_ext dim _ (fun j => (dot a b * dot c e + dot a c * dot b e + dot a e * dot b c) * dot (basis j) (H (basis j))
    + (dot c e * (dot a (basis j) * dot b (H (basis j))) + (dot c e * (dot b (basis j) * dot a (H (basis j))) + (dot b e * (dot a (basis j) * dot c (H (basis j))) + (dot b e * (dot c (basis j) * dot a (H (basis j)))
    + (dot b c * (dot a (basis j) * dot e (H (basis j))) + (dot b c * (dot e (basis j) * dot a (H (basis j))) + (dot a e * (dot b (basis j) * dot c (H (basis j))) + (dot a e * (dot c (basis j) * dot b (H (basis j)))
    + (dot a c * (dot b (basis j) * dot e (H (basis j))) + (dot a c * (dot e (basis j) * dot b (H (basis j))) + (dot a b * (dot c (basis j) * dot e (H (basis j))) + dot a b * (dot e (basis j) * dot c (H (basis j))))))))))))))))
    by (intros; rewrite (w_6 _ _ nz); ring).
  rewrite !sum_plus, !sum_scal, !form_basis. fold tr.
  assert (s : forall u v, dot v (H u) = dot u (H v)) by (intros; rewrite <- sy, dotC; reflexivity). rewrite (s a b), (s a c), (s a e), (s b c), (s b e), (s c e). ring.
Qed.
Lemma square_sum v : nrm2 v = sum dim (fun i => dot (basis i) v * dot (basis i) v). Proof. apply dot_coords. Qed.
Definition tr2 : R := sum dim (fun j => nrm2 (H (basis j))).
Definition tr3 : R := sum dim (fun j => dot (H (basis j)) (H (H (basis j)))).
Lemma form_basis2 u v : sum dim (fun j => dot u (H (basis j)) * dot v (H (basis j))) = dot (H u) (H v).
Proof. rewrite <- parseval. apply sum_ext; intros. now rewrite !sy. Qed.
Lemma E2HH a b : Z (fun o => dot a (z o) * dot b (z o) * nH (z o) * nH (z o)) = (tr ^ 2 + 2 * tr2) * dot a b + 4 * tr * dot a (H b) + 8 * dot a (H (H b)).
Proof.
  rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot a (z o) * dot b (z o) * (dot (basis j) (z o) * dot (H (basis j)) (z o)) * nH (z o)))).
  2: { intros o. rewrite (form_sum (z o)) at 1. rewrite <- sum_scal, Rmult_comm, <- sum_scal. apply sum_ext; intros; ring. }
  rewrite ex_sum, (sum_ext dim _ (fun j => (tr * dot a b + 2 * dot a (H b)) * dot (basis j) (H (basis j)) + (tr * (dot a (basis j) * dot b (H (basis j))) + (tr * (dot b (basis j) * dot a (H (basis j)))
    + (4 * (dot a (H (basis j)) * dot b (H (basis j))) + (2 * (dot b (basis j) * dot (H a) (H (basis j))) + (2 * (dot a (basis j) * dot (H b) (H (basis j))) + 2 * dot a b * nrm2 (H (basis j))))))))).
  - rewrite !sum_plus, !sum_scal, !form_basis, form_basis2. fold tr tr2.
    assert (e1 : dot b (H a) = dot a (H b)) by (rewrite <- sy, dotC; reflexivity). assert (e2 : dot (H a) (H b) = dot a (H (H b))) by apply sy.
    assert (e3 : dot b (H (H a)) = dot a (H (H b))) by (rewrite <- (sy b (H a)), dotC; exact e2). rewrite e1, e2, e3. ring.
  - intros j _. rewrite E4H. assert (e1 : dot a (H (H (basis j))) = dot (H a) (H (basis j))) by (symmetry; apply sy). assert (e2 : dot b (H (H (basis j))) = dot (H b) (H (basis j))) by (symmetry; apply sy).
    assert (e3 : dot (basis j) (H (H (basis j))) = nrm2 (H (basis j))) by (symmetry; apply sy). rewrite e1, e2, e3. ring.
Qed.
End One.
Lemma s_vsum n f : H (vsum n f) = vsum n (fun i => H (f i)).
Proof. induction n; [change (vsum 0 f) with v0; change (vsum 0 (fun i => H (f i))) with v0; replace v0 with (0 *: v0)%V at 1 by vring; rewrite (s_scal _ HS); vring|]. now rewrite !vsum_S, (s_add _ HS), IHn. Qed.
(* P directions that need not be normal *)
Section Copies.
Context {O : Type}.
Variable Z : law O.
Variable z : nat -> O -> vec.
Variable P : nat.
Hypothesis P1 : (0 < P)%nat.
Hypothesis z_2 : forall p a b, (p < P)%nat -> Z (fun o => dot a (z p o) * dot b (z p o)) = dot a b.
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Let P0 : 0 < INR P. Proof. now apply lt_0_INR. Qed.
Definition A_ o (v : vec) : vec := (/ INR P *: vsum P (fun p => dot (z p o) v *: z p o))%V.
Lemma A_mean2 u v : Z (fun o => dot u (A_ o v)) = dot u v.
Proof.
  unfold A_. rewrite (ex_ext Z _ (fun o => / INR P * sum P (fun p => dot v (z p o) * dot u (z p o)))).
  - rewrite ex_scal, ex_sum, (sum_ext P _ (fun _ => dot u v)); [rewrite sum_const; field; lra|]. intros p hp. rewrite (z_2 p _ _ hp). apply dotC.
  - intros o. rewrite dot_scalr, dot_sumr. f_equal. apply sum_ext; intros. rewrite dot_scalr, (dotC v). reflexivity.
Qed.
Lemma nH_A o v : nH (A_ o v) = / INR P * / INR P * sum P (fun p => sum P (fun q => dot v (z p o) * dot v (z q o) * dot (z p o) (H (z q o)))).
Proof.
  unfold nH, A_. rewrite (s_scal _ HS), dot_scall, dot_scalr, s_vsum, dot_suml. rewrite <- Rmult_assoc. f_equal. apply sum_ext; intros p _. rewrite dot_sumr. apply sum_ext; intros q _.
  rewrite (s_scal _ HS), dot_scall, dot_scalr, !(dotC _ v). ring.
Qed.
Lemma A_form w Y : (forall p, (p < P)%nat -> Z (fun o => dot w (z p o) ^ 2 * nH (z p o)) = Y) -> Z (fun o => nH (A_ o w)) = / INR P * Y + (1 - / INR P) * nH w.
Proof.
  intros hY. rewrite (ex_ext Z _ (fun o => / INR P * / INR P * sum P (fun p => sum P (fun q => dot w (z p o) * dot w (z q o) * dot (z p o) (H (z q o)))))) by (intros; apply nH_A).
  rewrite ex_scal, ex_sum. rewrite (sum_ext P _ (fun p => INR P * nH w + (Y - nH w))).
  - rewrite sum_const. field. lra.
  - intros p hp. rewrite ex_sum. rewrite (sum_ext P _ (fun q => nH w + (if Nat.eq_dec q p then Y - nH w else 0))).
    + rewrite sum_plus, sum_const, (sum_delta P p (fun _ => Y - nH w) hp). ring.
    + intros q hq. destruct (Nat.eq_dec q p) as [->|ne].
      * rewrite (ex_ext Z _ (fun o => dot w (z p o) ^ 2 * nH (z p o))) by (intros; unfold nH; ring). rewrite (hY p hp). ring.
      * rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot w (z p o) * dot (basis j) (z p o) * (dot w (z q o) * dot (H (basis j)) (z q o))))).
        -- rewrite ex_sum, (sum_ext dim _ (fun j => dot w (basis j) * dot w (H (basis j)))); [rewrite form_basis; unfold nH; ring|]. intros j _. apply indep; auto.
        -- intros o. rewrite (dot_coords (z p o)), <- sum_scal. apply sum_ext; intros j _. rewrite <- (s_sym _ HS (basis j)). ring.
Qed.
End Copies.
End Symmetric.
Variables L kappa : R.
Hypothesis HH : mapL L H.
Let HS : symm H. Proof. exact (mapL_symm L H HH). Qed.
Section One.
Context {O : Type}.
Variable Z : law O.
Variable z : O -> vec.
Hypothesis nz : normal Z z.
Lemma step_1_1 w : Z (fun o => dot w (z o) ^ 2 * nH (z o)) = tr * nrm2 w + 2 * nH w.
Proof. transitivity (Z (fun o => dot w (z o) * dot w (z o) * nH (z o))); [apply ex_ext; intros; ring|apply (E2H HS Z z nz)]. Qed.
Lemma step_1_4 : Z (fun o => nrm2 (z o)) = INR dim /\ Z (fun o => nrm2 (z o) ^ 2 * nH (z o)) = (INR dim + 2) * (INR dim + 4) * tr.
Proof.
  split.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun i => dot (basis i) (z o) * dot (basis i) (z o)))) by (intros; apply square_sum).
    rewrite ex_sum, (sum_ext dim _ (fun _ => 1)); [rewrite sum_const; ring|]. intros i hi. rewrite (w_2 _ _ nz). now apply basis_1.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun i => sum dim (fun j => dot (basis i) (z o) * dot (basis i) (z o) * (dot (basis j) (z o) * dot (basis j) (z o)) * nH (z o))))).
    + rewrite ex_sum, (sum_ext dim _ (fun i => (INR dim + 4) * tr + (2 * INR dim + 8) * dot (basis i) (H (basis i)))).
      * rewrite sum_plus, sum_const, sum_scal. fold tr. ring.
      * intros i hi. rewrite ex_sum, (sum_ext dim _ (fun j => tr + 2 * dot (basis i) (H (basis i)) + (2 * tr * (dot (basis i) (basis j) * dot (basis i) (basis j)) + (8 * (dot (basis i) (basis j) * dot (basis i) (H (basis j))) + 2 * dot (basis j) (H (basis j)))))).
        -- rewrite !sum_plus, !sum_const, !sum_scal, (form_basis HS), parseval, (basis_1 i hi). fold tr. ring.
        -- intros j hj. rewrite (E4H HS Z z nz), !basis_1 by auto. ring.
    + intros o. rewrite (square_sum (z o)). cbn [pow]. rewrite Rmult_1_r, sum_mul, Rmult_comm, <- sum_scal. apply sum_ext; intros i _. rewrite <- sum_scal. apply sum_ext; intros; ring.
Qed.
(* 6.2 *)
Lemma step_6_2 : Z (fun o => nH (z o) ^ 2) = tr ^ 2 + 2 * tr2 /\ Z (fun o => nH (z o) ^ 3) = tr ^ 3 + 6 * tr * tr2 + 8 * tr3.
Proof.
  split.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot (basis j) (z o) * dot (H (basis j)) (z o) * nH (z o)))).
    + rewrite ex_sum, (sum_ext dim _ (fun j => tr * dot (basis j) (H (basis j)) + 2 * nrm2 (H (basis j)))); [rewrite sum_plus, !sum_scal; fold tr tr2; ring|].
      intros j _. rewrite (E2H HS Z z nz). f_equal. f_equal. symmetry. apply (sy HS).
    + intros o. cbn [pow]. rewrite Rmult_1_r. rewrite (form_sum HS (z o)) at 1. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot (basis j) (z o) * dot (H (basis j)) (z o) * nH (z o) * nH (z o)))).
    + rewrite ex_sum, (sum_ext dim _ (fun j => (tr ^ 2 + 2 * tr2) * dot (basis j) (H (basis j)) + (4 * tr * nrm2 (H (basis j)) + 8 * dot (H (basis j)) (H (H (basis j)))))); [rewrite !sum_plus, !sum_scal; fold tr tr2 tr3; ring|].
      intros j _. rewrite (E2HH HS Z z nz). assert (e : dot (basis j) (H (H (basis j))) = nrm2 (H (basis j))) by (symmetry; apply (sy HS)). assert (e2 : dot (basis j) (H (H (H (basis j)))) = dot (H (basis j)) (H (H (basis j)))) by (symmetry; apply (sy HS)). rewrite e, e2. ring.
    + intros o. cbn [pow]. rewrite Rmult_1_r. rewrite (form_sum HS (z o)) at 1. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
Qed.
End One.
(* 6.3 *)
Lemma tr_bounds : 0 <= tr /\ 0 <= tr2 <= L * tr /\ 0 <= tr3 <= L ^ 2 * tr.
Proof.
  assert (t0 : 0 <= tr) by (apply sum_ge0; intros; apply (l_ge0 _ _ HH)). assert (b2 : tr2 <= L * tr) by (unfold tr2, tr; rewrite <- sum_scal; apply sum_le; intros; apply (l_square _ _ HH)).
  assert (p2 : 0 <= tr2) by (apply sum_ge0; intros; apply nrm2_ge0). assert (p3 : 0 <= tr3) by (apply sum_ge0; intros; apply (l_ge0 _ _ HH)).
  assert (b3 : tr3 <= L * tr2) by (unfold tr3, tr2; rewrite <- sum_scal; apply sum_le; intros; apply (l_le _ _ HH)).
  split; auto. split; [lra|]. split; auto. destruct (Rle_dec 0 L) as [l|l]; [apply (Rmult_le_compat_l L) in b2; lra|]. assert (tr2 = 0 /\ tr = 0) as [e1 e2] by nra. rewrite e1 in b3. rewrite e2. lra.
Qed.
Lemma step_6_3 : 0 <= L -> 0 <= kappa -> tr <= kappa * L -> tr ^ 2 + 2 * tr2 <= L ^ 2 * (kappa * (kappa + 2)) /\ tr ^ 3 + 6 * tr * tr2 + 8 * tr3 <= L ^ 3 * (kappa * (kappa + 2) * (kappa + 4)).
Proof.
  intros l0 k0 h. destruct tr_bounds as [t0 [[p2 b2] [p3 b3]]]. assert (kl : 0 <= kappa * L) by pos.
  assert (q2 : tr ^ 2 <= (kappa * L) ^ 2) by (apply pow_incr; lra). assert (q3 : tr ^ 3 <= (kappa * L) ^ 3) by (apply pow_incr; lra). assert (c2 : L * tr <= L * (kappa * L)) by (apply Rmult_le_compat_l; auto).
  assert (c3 : L ^ 2 * tr <= L ^ 2 * (kappa * L)) by (apply Rmult_le_compat_l; auto; apply pow2_ge_0). assert (c4 : tr * tr2 <= L * (kappa * L) ^ 2).
  { apply Rle_trans with (tr * (L * tr)); [apply Rmult_le_compat_l; auto|]. apply (Rmult_le_compat_l L) in q2; lra. }
  split; lra.
Qed.
(* P directions; those of different p are independent *)
Section Many.
Context {O : Type}.
Variable Z : law O.
Variable z : nat -> O -> vec.
Variable P : nat.
Hypothesis P1 : (0 < P)%nat.
Hypothesis nz : forall p, (p < P)%nat -> normal Z (z p).
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Let P0 : 0 < INR P. Proof. now apply lt_0_INR. Qed.
Lemma A_mean u v : Z (fun o => dot u (A_ z P o v)) = dot u v. Proof. apply (A_mean2 Z z P P1). intros; now apply w_2, nz. Qed.
Lemma step_1_2 w : Z (fun o => nH (A_ z P o w)) = / INR P * (tr * nrm2 w + 2 * nH w) + (1 - / INR P) * nH w.
Proof. apply (A_form HS Z z P P1 indep). intros p hp. apply (step_1_1 Z (z p) (nz p hp)). Qed.
Definition c_ : R := 1 + (kappa + 1) / INR P.
Definition a__ : R := (kappa + 1) / INR P.
Let iP : 0 < / INR P. Proof. now apply Rinv_0_lt_compat. Qed.
Lemma step_1_3 w : tr <= kappa * L -> / INR P * (tr * nrm2 w + 2 * nH w) + (1 - / INR P) * nH w <= L * c_ * nrm2 w.
Proof.
  intros ht. assert (n0 := nrm2_ge0 w). assert (l := l_le _ _ HH w). fold (nH w) in l. apply (Rmult_le_compat_r _ _ _ n0) in ht.
  assert (a : / INR P * (tr * nrm2 w) <= / INR P * (kappa * L * nrm2 w)) by (apply Rmult_le_compat_l; lra).
  assert (b : (1 + / INR P) * nH w <= (1 + / INR P) * (L * nrm2 w)) by (apply Rmult_le_compat_l; lra). unfold c_, Rdiv. lra.
Qed.
Lemma step_6_1 w : tr <= kappa * L -> Z (fun o => nH (A_ z P o w - w)) = / INR P * (tr * nrm2 w + nH w) /\
  / INR P * (tr * nrm2 w + nH w) <= a__ * L * nrm2 w /\ Z (fun o => nH (A_ z P o w)) <= c_ * L * nrm2 w.
Proof.
  intros ht. assert (n0 := nrm2_ge0 w). assert (l := l_le _ _ HH w). fold (nH w) in l. split; [|split].
  - rewrite (ex_ext Z _ (fun o => nH (A_ z P o w) + ((-2) * dot (H w) (A_ z P o w) + nH w))).
    + rewrite !ex_plus, ex_scal, ex_const, step_1_2, A_mean, (l_sym _ _ HH). unfold nH. ring.
    + intros o. unfold nH. rewrite (form_sub _ _ HH), (dotC (H w)). ring.
  - assert (x := Rmult_le_compat_r _ _ _ n0 ht). unfold a__, Rdiv. assert (y : / INR P * (tr * nrm2 w + nH w) <= / INR P * (kappa * L * nrm2 w + L * nrm2 w)) by (apply Rmult_le_compat_l; lra). lra.
  - rewrite step_1_2. assert (x := step_1_3 w ht). lra.
Qed.
(* 2.3: errors of the differences; bs is their mean times z *)
Variable e : nat -> O -> R.
Variable bs : vec.
Variable mu : R.
Hypothesis L0 : 0 <= L.
Hypothesis k0 : 0 <= kappa.
Hypothesis ht : tr <= kappa * L.
Hypothesis e_le : forall p o, (p < P)%nat -> Rabs (e p o) <= L * mu / 2 * nrm2 (z p o).
Hypothesis e_mean : forall p u, (p < P)%nat -> Z (fun o => e p o * dot u (z p o)) = dot u bs.
Hypothesis e_indep : forall p q u v, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => e p o * dot u (z p o) * (e q o * dot v (z q o))) = dot u bs * dot v bs.
Hypothesis bs_le : nrm2 bs <= L ^ 2 * mu ^ 2 * INR dim.
Definition bt o : vec := (/ INR P *: vsum P (fun p => e p o *: z p o))%V.
Definition B_ : R := L ^ 2 * mu ^ 2 * (INR dim + kappa / (4 * INR P) * (INR dim + 2) * (INR dim + 4)).
Lemma bt_mean u : Z (fun o => dot u (bt o)) = dot u bs.
Proof.
  unfold bt. rewrite (ex_ext Z _ (fun o => / INR P * sum P (fun p => e p o * dot u (z p o)))).
  - rewrite ex_scal, ex_sum, (sum_ext P _ (fun _ => dot u bs)) by (intros; now apply e_mean). rewrite sum_const. field. lra.
  - intros o. rewrite dot_scalr, dot_sumr. f_equal. apply sum_ext; intros. apply dot_scalr.
Qed.
Lemma step_2_3 : Z (fun o => nH (bt o)) <= L * B_.
Proof.
  assert (d0 := pos_INR dim). assert (m2 := pow2_ge_0 mu). assert (l2 := pow2_ge_0 L).
  assert (sq : forall p, (p < P)%nat -> Z (fun o => e p o ^ 2 * nH (z p o)) <= L ^ 2 * mu ^ 2 / 4 * ((INR dim + 2) * (INR dim + 4) * (kappa * L))).
  { intros p hp. apply Rle_trans with (Z (fun o => L ^ 2 * mu ^ 2 / 4 * (nrm2 (z p o) ^ 2 * nH (z p o)))).
    - apply ex_le; intros o. assert (h := e_le p o hp). assert (q := l_ge0 _ _ HH (z p o)). fold (nH (z p o)) in q.
      assert (x : e p o ^ 2 <= (L * mu / 2 * nrm2 (z p o)) ^ 2) by (rewrite <- (pow2_abs (e p o)); apply pow_incr; split; [apply Rabs_pos|exact h]).
      apply (Rmult_le_compat_r _ _ _ q) in x. lra.
    - rewrite ex_scal, (proj2 (step_1_4 Z (z p) (nz p hp))). apply Rmult_le_compat_l; [assert (y : 0 <= L ^ 2 * mu ^ 2) by pos; lra|]. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|exact ht]. }
  rewrite (ex_ext Z _ (fun o => / INR P * / INR P * sum P (fun p => sum P (fun q => e p o * e q o * dot (z p o) (H (z q o)))))).
  2: { intros o. unfold nH, bt. rewrite (l_scal _ _ HH), dot_scall, dot_scalr, (l_vsum _ _ HH), dot_suml, <- Rmult_assoc. f_equal. apply sum_ext; intros p _. rewrite dot_sumr. apply sum_ext; intros q _. rewrite (l_scal _ _ HH), dot_scall, dot_scalr. ring. }
  rewrite ex_scal, ex_sum. set (X := L ^ 2 * mu ^ 2 / 4 * ((INR dim + 2) * (INR dim + 4) * (kappa * L))) in *. set (Y := L * (L ^ 2 * mu ^ 2 * INR dim)).
  assert (X0 : 0 <= X) by (unfold X, Rdiv; pos). assert (Y0 : 0 <= Y) by (unfold Y; pos). assert (bH : nH bs <= Y) by (eapply Rle_trans; [apply (l_le _ _ HH)|]; unfold Y; apply Rmult_le_compat_l; auto).
  apply Rle_trans with (/ INR P * / INR P * sum P (fun _ => INR P * Y + X)).
  - apply Rmult_le_compat_l; [pos|]. apply sum_le; intros p hp. rewrite ex_sum. rewrite <- (sum_const P Y), <- (sum_delta P p (fun _ => X) hp), <- sum_plus. apply sum_le; intros q hq.
    destruct (Nat.eq_dec q p) as [->|ne].
    + rewrite (ex_ext Z _ (fun o => e p o ^ 2 * nH (z p o))) by (intros; unfold nH; ring). specialize (sq p hp). lra.
    + rewrite (ex_ext Z _ (fun o => sum dim (fun j => e p o * dot (basis j) (z p o) * (e q o * dot (H (basis j)) (z q o))))).
      * rewrite ex_sum, (sum_ext dim _ (fun j => dot bs (basis j) * dot bs (H (basis j)))) by (intros; rewrite e_indep by auto; rewrite !(dotC bs); reflexivity). rewrite (form_basis HS). unfold nH in bH. lra.
      * intros o. rewrite (dot_coords (z p o)), <- sum_scal. apply sum_ext; intros j _. rewrite <- (l_sym _ _ HH (basis j)). ring.
  - rewrite sum_const. replace (/ INR P * / INR P * (INR P * (INR P * Y + X))) with (Y + / INR P * X) by (field; lra). right. unfold X, Y, B_. field. lra.
Qed.
(* 6.5: differences in H *)
Variable eH : nat -> O -> R.
Variable bH : vec.
Variable muH : R.
Hypothesis L0' : 0 <= L.
Hypothesis k1 : 1 <= kappa.
Hypothesis htr : tr <= kappa * L.
Hypothesis eH_le : forall p o, (p < P)%nat -> Rabs (eH p o) <= muH / 2 * nH (z p o).
Hypothesis eH_mean : forall p u, (p < P)%nat -> Z (fun o => eH p o * dot u (z p o)) = dot u bH.
Hypothesis eH_indep : forall p q u v, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => eH p o * dot u (z p o) * (eH q o * dot v (z q o))) = dot u bH * dot v bH.
Definition btH o : vec := (/ INR P *: vsum P (fun p => eH p o *: z p o))%V.
Lemma btH_spread X : (forall p, (p < P)%nat -> Z (fun o => eH p o ^ 2 * nH (z p o)) <= X) -> Z (fun o => nH (btH o - bH)) <= / INR P * X.
Proof.
  intros sq.
  assert (full : Z (fun o => nH (btH o)) <= / INR P * X + (1 - / INR P) * nH bH).
  { rewrite (ex_ext Z _ (fun o => / INR P * / INR P * sum P (fun p => sum P (fun q => eH p o * eH q o * dot (z p o) (H (z q o)))))).
    2: { intros o. unfold nH, btH. rewrite (l_scal _ _ HH), dot_scall, dot_scalr, (l_vsum _ _ HH), dot_suml, <- Rmult_assoc. f_equal. apply sum_ext; intros p _. rewrite dot_sumr. apply sum_ext; intros q _. rewrite (l_scal _ _ HH), dot_scall, dot_scalr. ring. }
    rewrite ex_scal, ex_sum. apply Rle_trans with (/ INR P * / INR P * sum P (fun _ => INR P * nH bH + (X - nH bH))).
    - apply Rmult_le_compat_l; [pos|]. apply sum_le; intros p hp. rewrite ex_sum. rewrite <- (sum_const P (nH bH)), <- (sum_delta P p (fun _ => X - nH bH) hp), <- sum_plus. apply sum_le; intros q hq.
      destruct (Nat.eq_dec q p) as [->|ne].
      + rewrite (ex_ext Z _ (fun o => eH p o ^ 2 * nH (z p o))) by (intros; unfold nH; ring). specialize (sq p hp). lra.
      + rewrite (ex_ext Z _ (fun o => sum dim (fun j => eH p o * dot (basis j) (z p o) * (eH q o * dot (H (basis j)) (z q o))))).
        * rewrite ex_sum, (sum_ext dim _ (fun j => dot bH (basis j) * dot bH (H (basis j)))) by (intros; rewrite eH_indep by auto; rewrite !(dotC bH); reflexivity). rewrite (form_basis HS). unfold nH. lra.
        * intros o. rewrite (dot_coords (z p o)), <- sum_scal. apply sum_ext; intros j _. rewrite <- (l_sym _ _ HH (basis j)). ring.
    - rewrite sum_const. right. field. lra. }
  assert (mean : forall u, Z (fun o => dot u (btH o)) = dot u bH).
  { intros u. unfold btH. rewrite (ex_ext Z _ (fun o => / INR P * sum P (fun p => eH p o * dot u (z p o)))).
    - rewrite ex_scal, ex_sum, (sum_ext P _ (fun _ => dot u bH)) by (intros; now apply eH_mean). rewrite sum_const. field. lra.
    - intros o. rewrite dot_scalr, dot_sumr. f_equal. apply sum_ext; intros. apply dot_scalr. }
  rewrite (ex_ext Z _ (fun o => nH (btH o) + ((-2) * dot (H bH) (btH o) + nH bH))) by (intros o; unfold nH; rewrite (form_sub _ _ HH), (dotC (H bH)); ring).
  rewrite !ex_plus, ex_scal, ex_const, mean, (l_sym _ _ HH). fold (nH bH). assert (nb : 0 <= nH bH) by apply (l_ge0 _ _ HH). assert (x1 : / INR P * nH bH >= 0) by (apply Rle_ge; pos).
  lra.
Qed.
Lemma step_6_5 (delta : O -> vec) : (forall u, Z (fun o => dot u (delta o)) = dot u bH) -> (forall o, nrm2 (delta o) <= L * muH ^ 2 * nH (z 0%nat o)) ->
  nrm2 bH <= muH ^ 2 * L ^ 2 * kappa /\ Z (fun o => nH (btH o - bH)) <= a__ * L * (muH ^ 2 * L ^ 2 / 4 * (kappa * (kappa + 7))) /\ (kappa + 2) * (kappa + 4) <= (kappa + 1) * (kappa + 7).
Proof.
  intros hd hle. assert (m2 := pow2_ge_0 muH). assert (l2 := pow2_ge_0 L).
  assert (nz0 := nz 0%nat P1).
  assert (tr1 : Z (fun o => nH (z 0%nat o)) = tr).
  { rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot (basis j) (z 0%nat o) * dot (H (basis j)) (z 0%nat o)))) by (intros; apply (form_sum HS)). rewrite ex_sum. apply sum_ext; intros j _. apply (w_2 _ _ nz0). }
  split; [|split; [|lra]].
  - assert (en : Z (fun o => dot bH (delta o)) = nrm2 bH) by (rewrite hd; reflexivity). assert (cs := ex_cauchy_schwarz Z (fun _ => bH) delta). cbv beta in cs. rewrite en, ex_const in cs. assert (b0 := nrm2_ge0 bH).
    assert (dd : Z (fun o => nrm2 (delta o)) <= muH ^ 2 * L ^ 2 * kappa).
    { apply Rle_trans with (Z (fun o => L * muH ^ 2 * nH (z 0%nat o))); [apply ex_le; auto|]. rewrite ex_scal, tr1. apply (Rmult_le_compat_l (L * muH ^ 2)) in htr; [lra|pos]. }
    destruct (Req_dec (nrm2 bH) 0) as [z0|z0]; [rewrite z0; assert (kk0 : 0 <= kappa) by lra; pos|]. apply (Rmult_le_reg_l (nrm2 bH)); [lra|]. apply (Rmult_le_compat_l _ _ _ b0) in dd. simpl in cs. lra.
  - destruct (step_6_3 L0' ltac:(lra) htr) as [_ c3].
    assert (sq : forall p, (p < P)%nat -> Z (fun o => eH p o ^ 2 * nH (z p o)) <= muH ^ 2 / 4 * (L ^ 3 * (kappa * (kappa + 2) * (kappa + 4)))).
    { intros p hp. apply Rle_trans with (Z (fun o => muH ^ 2 / 4 * nH (z p o) ^ 3)).
      - apply ex_le; intros o. assert (q := l_ge0 _ _ HH (z p o)). fold (nH (z p o)) in q. assert (x : eH p o ^ 2 <= (muH / 2 * nH (z p o)) ^ 2) by (rewrite <- (pow2_abs (eH p o)); apply pow_incr; split; [apply Rabs_pos|now apply eH_le]).
        apply (Rmult_le_compat_r _ _ _ q) in x. lra.
      - rewrite ex_scal, (proj2 (step_6_2 Z (z p) (nz p hp))). apply Rmult_le_compat_l; lra. }
    set (X := muH ^ 2 / 4 * (L ^ 3 * (kappa * (kappa + 2) * (kappa + 4)))) in *.
    apply Rle_trans with (/ INR P * X); [now apply btH_spread|]. unfold X, a__, Rdiv. assert (k2 : (kappa + 2) * (kappa + 4) <= (kappa + 1) * (kappa + 7)) by lra.
    assert (l3 : 0 <= / INR P * (muH ^ 2 * / 4 * (L ^ 3 * kappa))) by (assert (y := pow_le L 3 L0'); assert (0 <= kappa) by lra; pos). apply (Rmult_le_compat_l _ _ _ l3) in k2. lra.
Qed.
End Many.
Lemma step_3_1 (g b : vec) eta : 0 <= eta -> - eta * dot g b <= eta / 4 * nrm2 g + eta * nrm2 b.
Proof. intros e0. assert (h := nrm2_ge0 ((1/2) *: g + b)). rewrite nrm2_add, nrm2_scal, dot_scall in h. assert (0 <= eta * (1/2 * (1/2) * nrm2 g + 2 * (1/2 * dot g b) + nrm2 b)) by (apply Rmult_le_pos; lra). lra. Qed.
Lemma step_3_2 (a b : vec) : 2 * nH a + 2 * nH b - nH (a + b) = nH (a - b) /\ nH (a + b) <= 2 * nH a + 2 * nH b.
Proof. assert (e := form_add _ _ HH a b). assert (e2 := form_sub _ _ HH a b). assert (h := l_ge0 _ _ HH (a - b)%V). unfold nH. lra. Qed.
Lemma step_3_3 {S} (Sm : law S) (n : S -> vec) (g : vec) v2 : (forall u, Sm (fun s => dot u (n s)) = 0) -> Sm (fun s => nrm2 (n s)) <= v2 -> Sm (fun s => nrm2 (g + n s)) <= nrm2 g + v2.
Proof. intros h0 h. rewrite (ex_ext Sm _ (fun s => nrm2 g + (2 * dot g (n s) + nrm2 (n s)))) by (intros; rewrite nrm2_add; ring). rewrite !ex_plus, ex_const, ex_scal, h0. lra. Qed.
End Directions.
Lemma abs_le x a : Rabs x <= a -> - a <= x <= a.
Proof. intros h. assert (p := Rle_abs x). assert (q := Rle_abs (- x)). rewrite Rabs_Ropp in q. lra. Qed.
Lemma step_2_1 {D : Dim} (l : vec -> R) (G : vec -> vec) L mu x z : 0 <= L -> 0 < mu -> gradient l G -> lipschitz L G ->
  Rabs ((l (x + mu *: z)%V - l x) / mu - dot (G x) z) <= L * mu / 2 * nrm2 z /\ Rabs ((l (x + mu *: z)%V - l (x - mu *: z)%V) / (2 * mu) - dot (G x) z) <= L * mu / 2 * nrm2 z.
Proof.
  intros L0 m0 hg hl.
  assert (two : forall s, Rabs (l (x + s)%V - l x - dot (G x) s) <= L / 2 * nrm2 s).
  { intros s. apply Rabs_le. assert (a := smooth l G L L0 hg hl x s). assert (b := Ssf.smooth_below l G L L0 hg hl x s). lra. }
  assert (p := two (mu *: z)%V). assert (m := two ((- mu) *: z)%V). replace (x + - mu *: z)%V with (x - mu *: z)%V in m by vring. rewrite !dot_scalr, !nrm2_scal in p, m.
  apply abs_le in p, m. assert (i0 := Rinv_0_lt_compat _ m0). split; apply Rabs_le.
  - replace ((l (x + mu *: z)%V - l x) / mu - dot (G x) z) with (/ mu * (l (x + mu *: z)%V - l x - mu * dot (G x) z)) by (field; lra).
    replace (L * mu / 2 * nrm2 z) with (/ mu * (L / 2 * (mu * mu * nrm2 z))) by (field; lra). split; [rewrite Ropp_mult_distr_r|]; apply Rmult_le_compat_l; lra.
  - replace ((l (x + mu *: z)%V - l (x - mu *: z)%V) / (2 * mu) - dot (G x) z) with (/ mu * (1/2 * (l (x + mu *: z)%V - l x - mu * dot (G x) z) - 1/2 * (l (x - mu *: z)%V - l x - - mu * dot (G x) z))) by (field; lra).
    replace (L * mu / 2 * nrm2 z) with (/ mu * (L / 2 * (mu * mu * nrm2 z))) by (field; lra). split; [rewrite Ropp_mult_distr_r|]; apply Rmult_le_compat_l; lra.
Qed.
(* 2.2: E[z phi(z)] = E grad phi(z) is a hypothesis; b is E[z e] *)
Lemma step_2_2 {D : Dim} {O} (Z : law O) (z : O -> vec) (l : vec -> R) (G : vec -> vec) L mu x : 0 <= L -> 0 < mu -> normal Z z -> lipschitz L G ->
  (forall u, Z (fun o => l (x + mu *: z o)%V / mu * dot u (z o)) = Z (fun o => dot u (G (x + mu *: z o)%V))) ->
  (forall u, Z (fun o => dot u (z o)) = 0) ->
  let e o := (l (x + mu *: z o)%V - l x) / mu - dot (G x) (z o) in let ec o := (l (x + mu *: z o)%V - l (x - mu *: z o)%V) / (2 * mu) - dot (G x) (z o) in
  (forall u, Z (fun o => e o * dot u (z o)) = Z (fun o => dot u (G (x + mu *: z o) - G x)%V)) /\
  ((forall u, Z (fun o => l (x - mu *: z o)%V / mu * dot u (z o)) = - Z (fun o => l (x + mu *: z o)%V / mu * dot u (z o))) ->
    forall u, Z (fun o => ec o * dot u (z o)) = Z (fun o => dot u (G (x + mu *: z o) - G x)%V)) /\
  forall b, (forall u, Z (fun o => e o * dot u (z o)) = dot u b) -> nrm2 b <= L ^ 2 * mu ^ 2 * INR dim.
Proof.
  intros L0 m0 nz hl st z0 e ec.
  assert (right_ : forall u, Z (fun o => dot u (G (x + mu *: z o) - G x)%V) = Z (fun o => dot u (G (x + mu *: z o)%V)) - dot u (G x)).
  { intros u. rewrite (ex_ext Z _ (fun o => dot u (G (x + mu *: z o)%V) + (-1) * dot u (G x))) by (intros; rewrite subE, dot_addr, dot_scalr; ring). rewrite ex_plus, ex_const. ring. }
  assert (one : forall u, Z (fun o => e o * dot u (z o)) = Z (fun o => dot u (G (x + mu *: z o) - G x)%V)).
  { intros u. rewrite right_, <- st. rewrite (ex_ext Z _ (fun o => l (x + mu *: z o)%V / mu * dot u (z o) + (- (l x / mu) * dot u (z o) + (-1) * (dot (G x) (z o) * dot u (z o))))) by (intros; unfold e; field; lra).
    rewrite !ex_plus, !ex_scal, z0, (w_2 _ _ nz), (dotC (G x)). ring. }
  split; [exact one|]. split.
  - intros sym u. rewrite right_, <- st. rewrite (ex_ext Z _ (fun o => 1/2 * (l (x + mu *: z o)%V / mu * dot u (z o)) + (- (1/2) * (l (x - mu *: z o)%V / mu * dot u (z o)) + (-1) * (dot (G x) (z o) * dot u (z o))))) by (intros; unfold ec; field; lra).
    rewrite !ex_plus, !ex_scal, sym, (w_2 _ _ nz), (dotC (G x)). field.
  - intros b hb. assert (k := ex_cauchy_schwarz Z (fun _ => b) (fun o => G (x + mu *: z o) - G x)%V). cbv beta in k. rewrite <- one, hb, ex_const in k. fold (nrm2 b) in k.
    assert (g2 : Z (fun o => nrm2 (G (x + mu *: z o)%V - G x)) <= L ^ 2 * mu ^ 2 * INR dim).
    { rewrite <- (proj1 (step_1_4 (fun v => v) 1 ltac:(split; intros; auto; try apply nrm2_ge0; unfold nrm2; lra) Z z nz)). rewrite <- ex_scal. apply ex_le; intros o. eapply Rle_trans; [apply hl|].
      replace (x + mu *: z o - x)%V with (mu *: z o)%V by vring. rewrite nrm2_scal. lra. }
    assert (b0 := nrm2_ge0 b). destruct (Req_dec (nrm2 b) 0) as [e0|e0].
    + rewrite e0. assert (d0 := pos_INR dim). assert (l2 := pow2_ge_0 L). assert (m2 := pow2_ge_0 mu). pos.
    + apply (Rmult_le_reg_l (nrm2 b)); [lra|]. apply (Rmult_le_compat_l _ _ _ b0) in g2. simpl in k. lra.
Qed.
(* ---- one local step: the theorem ---- *)
Section OneStep.
Context {D : Dim}.
Variables L kappa mu eta nu2 fstar : R.     (* nu2 is nu^2 / m *)
Variable P : nat.
Hypothesis P1 : (0 < P)%nat.
Variable f : vec -> R.
Variable G : vec -> vec.
Variable H : vec -> vec -> vec.             (* of every x *)
Hypothesis HH : forall x, mapL L (H x).
Hypothesis ht : forall x, tr (H x) <= kappa * L.
Hypothesis below : forall x s, f (x + s)%V <= f x + dot (G x) s + 1/2 * nH (H x) s.
Hypothesis bounded : forall x, fstar <= f x.
Context {S O : Type}.
Variable Sm : vec -> law S.                 (* clients and samples of a round at x *)
Variable n : vec -> S -> vec.
Variable Z : law O.
Variable z : nat -> O -> vec.
Variable e : vec -> S -> nat -> O -> R.
Variable bs : vec -> S -> vec.
Hypothesis n_mean0 : forall x u, Sm x (fun s => dot u (n x s)) = 0.
Hypothesis n_var : forall x, Sm x (fun s => nrm2 (n x s)) <= nu2.
Hypothesis nz : forall p, (p < P)%nat -> normal Z (z p).
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Hypothesis e_le : forall x s p o, (p < P)%nat -> Rabs (e x s p o) <= L * mu / 2 * nrm2 (z p o).
Hypothesis e_mean : forall x s p u, (p < P)%nat -> Z (fun o => e x s p o * dot u (z p o)) = dot u (bs x s).
Hypothesis e_indep : forall x s p q u v, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => e x s p o * dot u (z p o) * (e x s q o * dot v (z q o))) = dot u (bs x s) * dot v (bs x s).
Hypothesis bs_le : forall x s, nrm2 (bs x s) <= L ^ 2 * mu ^ 2 * INR dim.
Hypothesis L0 : 0 < L.
Hypothesis k0 : 0 <= kappa.
Hypothesis eta0 : 0 < eta.
Hypothesis nu0 : 0 <= nu2.
Let c := c_ kappa P.
Hypothesis steps : eta * L * c <= 1/4.
Definition v_ x s o : vec := (/ INR P *: vsum P (fun p => (dot (z p o) (G x + n x s) + e x s p o) *: z p o))%V.
Definition step x (w : S * O) : vec := (x - eta *: v_ x (fst w) (snd w))%V.
Definition round x : law (S * O) := bind (Sm x) (fun _ => Z).
Let P0 : 0 < INR P. Proof. now apply lt_0_INR. Qed.
Let c1 : 1 <= c. Proof. unfold c, c_. assert (0 <= (kappa + 1) / INR P) by (apply Rlt_le, Rdiv_lt_0_compat; lra). lra. Qed.
Lemma v_split x s o : v_ x s o = (A_ z P o (G x + n x s) + bt z P (e x s) o)%V.
Proof.
  unfold v_, A_, bt. rewrite (vsum_ext P _ (fun p => dot (z p o) (G x + n x s) *: z p o + e x s p o *: z p o)%V) by (intros; vring). rewrite vsum_plus. vring.
Qed.
Let b2 := L ^ 2 * mu ^ 2 * INR dim.
Lemma step_3_4 x : round x (fun w => f (step x w)) <= f x - eta / 2 * nrm2 (G x) + eta ^ 2 * L * c * nu2 + eta * b2 + eta ^ 2 * L * B_ L kappa P mu.
Proof.
  assert (m := A_mean Z z P P1 nz). assert (n0 := nrm2_ge0 (G x)).
  assert (one : forall s, Z (fun o => f (step x (s, o))) <= f x - eta * dot (G x) (G x + n x s) + eta / 4 * nrm2 (G x) + eta * b2 + eta ^ 2 * (L * c * nrm2 (G x + n x s) + L * B_ L kappa P mu)).
  { intros s. set (wv := (G x + n x s)%V).
    apply Rle_trans with (Z (fun o => f x + (- eta * dot (G x) (A_ z P o wv) + (- eta * dot (G x) (bt z P (e x s) o) + (eta ^ 2 * nH (H x) (A_ z P o wv) + eta ^ 2 * nH (H x) (bt z P (e x s) o)))))).
    - apply ex_le; intros o. unfold step. cbn [fst snd]. replace (x - eta *: v_ x s o)%V with (x + (- eta) *: v_ x s o)%V by vring. eapply Rle_trans; [apply below|].
      rewrite dot_scalr. unfold nH at 1. rewrite (l_scal _ _ (HH x)), dot_scall, dot_scalr. fold (nH (H x) (v_ x s o)). rewrite v_split. fold wv.
      destruct (step_3_2 (H x) L (HH x) (A_ z P o wv) (bt z P (e x s) o)) as [_ q]. rewrite dot_addr. apply (Rmult_le_compat_l (eta ^ 2)) in q; [|apply pow2_ge_0]. lra.
    - rewrite !ex_plus, !ex_scal, ex_const, m, (bt_mean Z z P P1 (e x s) (bs x s) (e_mean x s)).
      assert (q1 : Z (fun o => nH (H x) (A_ z P o wv)) <= L * c * nrm2 wv) by (rewrite (step_1_2 (H x) L (HH x) Z z P P1 nz indep); apply (step_1_3 (H x) L kappa (HH x) P P1 wv (ht x))).
      assert (q2 := step_2_3 (H x) L kappa (HH x) Z z P P1 nz (e x s) (bs x s) mu (Rlt_le _ _ L0) k0 (ht x) (e_le x s) (e_indep x s) (bs_le x s)).
      assert (q3 := step_3_1 (G x) (bs x s) eta (Rlt_le _ _ eta0)). assert (q4 := Rmult_le_compat_l eta _ _ (Rlt_le _ _ eta0) (bs_le x s)). fold b2 in q4.
      assert (q5 := Rmult_le_compat_l (eta ^ 2) _ _ (pow2_ge_0 eta) (Rplus_le_compat _ _ _ _ q1 q2)). lra. }
  unfold round. cbn [bind ex]. eapply Rle_trans; [apply ex_le; intros s; apply one|].
  rewrite (ex_ext (Sm x) _ (fun s => (f x - eta * nrm2 (G x) + eta / 4 * nrm2 (G x) + eta * b2 + eta ^ 2 * (L * B_ L kappa P mu)) + (- eta * dot (G x) (n x s) + eta ^ 2 * (L * c) * nrm2 (G x + n x s)))).
  - rewrite !ex_plus, !ex_scal, !ex_const, n_mean0. assert (q := step_3_3 (Sm x) (n x) (G x) nu2 (n_mean0 x) (n_var x)).
    assert (k : 0 <= eta ^ 2 * (L * c)) by (assert (y := pow2_ge_0 eta); assert (y2 := Rlt_le _ _ L0); assert (y3 : 0 <= c) by lra; pos). apply (Rmult_le_compat_l _ _ _ k) in q.
    assert (k2 : 0 <= eta * (1/4 - eta * L * c) * nrm2 (G x)) by (repeat apply Rmult_le_pos; lra). lra.
  - intros s. rewrite dot_addr. fold (nrm2 (G x)). ring.
Qed.
Lemma step_3_5 x0 R_ : (0 < R_)%nat -> / INR R_ * sum R_ (fun t => Eit round step t (fun x => nrm2 (G x)) x0)
  <= 2 * (f x0 - fstar) / (eta * INR R_) + 2 * eta * L * c * nu2 + 5/2 * (mu ^ 2 * L ^ 2 * INR dim) + mu ^ 2 * L ^ 3 * eta / 2 * (kappa / INR P * (INR dim + 2) * (INR dim + 4)).
Proof.
  intros R0%lt_0_INR. set (add := eta ^ 2 * L * c * nu2 + eta * b2 + eta ^ 2 * L * B_ L kappa P mu).
  assert (h := telescope round step (fun _ => True) (fun x => f x - fstar) (fun x => eta / 2 * nrm2 (G x)) add (fun _ _ _ => I)).
  specialize (h (fun x _ => ltac:(rewrite (ex_ext (round x) _ (fun w => f (step x w) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := step_3_4 x); unfold add; lra)) (fun x => ltac:(assert (b := bounded x); lra)) R_ x0 I).
  rewrite (sum_ext R_ _ (fun t => eta / 2 * Eit round step t (fun x => nrm2 (G x)) x0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 2 / (eta * INR R_)) by (apply Rdiv_lt_0_compat; [lra|]; now apply Rmult_lt_0_compat).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (2 / (eta * INR R_) * (eta / 2 * sum R_ (fun t => Eit round step t (fun x => nrm2 (G x)) x0))) with (/ INR R_ * sum R_ (fun t => Eit round step t (fun x => nrm2 (G x)) x0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. replace (2 / (eta * INR R_) * (f x0 - fstar + INR R_ * add)) with (2 * (f x0 - fstar) / (eta * INR R_) + 2 / eta * add) by (field; lra).
  assert (el : eta * L <= 1/4) by (assert (0 <= eta * L * (c - 1)) by (repeat apply Rmult_le_pos; lra); lra). assert (d0 := pos_INR dim). assert (bb : 0 <= b2) by (unfold b2; assert (y := pow2_ge_0 L); assert (y2 := pow2_ge_0 mu); pos).
  assert (k : 0 <= (1/4 - eta * L) * b2) by (apply Rmult_le_pos; lra).
  replace (2 / eta * add) with (2 * eta * L * c * nu2 + 2 * b2 + 2 * (eta * L) * b2 + mu ^ 2 * L ^ 3 * eta / 2 * (kappa / INR P * (INR dim + 2) * (INR dim + 4))) by (unfold add, B_, b2; field; lra).
  replace (5/2 * (mu ^ 2 * L ^ 2 * INR dim)) with (5/2 * b2) by (unfold b2; ring). lra.
Qed.
End OneStep.
Lemma id_map {D : Dim} : mapL 1 (fun v => v). Proof. split; intros; auto; try apply nrm2_ge0; unfold nrm2; lra. Qed.
Lemma tr_id {D : Dim} : tr (fun v => v) = INR dim.
Proof. unfold tr. rewrite (sum_ext dim _ (fun _ => 1)) by (intros; now apply basis_1). rewrite sum_const. ring. Qed.
(* 4.1: f = |x|^2 / 2, no noise, exact scalars *)
Lemma step_4_1 {D : Dim} {O} (Z : law O) z P eta : (0 < P)%nat -> (forall p, (p < P)%nat -> normal Z (z p)) ->
  (forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e) ->
  let c := c_ (INR dim) P in (forall x, Z (fun o => nrm2 (x - eta *: A_ z P o x)) = (1 - 2 * eta + eta ^ 2 * c) * nrm2 x) /\
  1 - / c <= 1 - 2 * eta + eta ^ 2 * c /\ 1 - 2 * / c + (/ c) ^ 2 * c = 1 - / c /\ (0 < eta -> (1 - 2 * eta + eta ^ 2 * c < 1 <-> eta < 2 / c)).
Proof.
  intros P1 nz ind c. assert (P0 := lt_0_INR _ P1). assert (d0 := pos_INR dim). assert (c0 : 0 < c) by (unfold c, c_; assert (0 < (INR dim + 1) / INR P) by (apply Rdiv_lt_0_compat; lra); lra).
  split; [|split; [|split]].
  - intros x. rewrite (ex_ext Z _ (fun o => nrm2 x + ((-2) * eta * dot x (A_ z P o x) + eta ^ 2 * nH (fun v => v) (A_ z P o x)))) by (intros; rewrite nrm2_sub, nrm2_scal, dot_scalr; unfold nH, nrm2; ring).
    rewrite !ex_plus, !ex_scal, ex_const, (A_mean Z z P P1 nz), (step_1_2 _ 1 id_map Z z P P1 nz ind), tr_id. unfold nH. fold (nrm2 x). unfold c, c_. field. lra.
  - assert (q := pow2_ge_0 (eta * c - 1)). apply (Rmult_le_reg_r c); auto. replace ((1 - / c) * c) with (c - 1) by (field; lra). lra.
  - field. lra.
  - intros e0. split; intros h.
    + apply (Rmult_lt_reg_r c); auto. replace (2 / c * c) with 2 by (field; lra). apply (Rmult_lt_reg_l eta); auto. lra.
    + apply (Rmult_lt_compat_r c) in h; auto. replace (2 / c * c) with 2 in h by (field; lra). apply (Rmult_lt_compat_l eta) in h; auto. lra.
Qed.
Lemma step_4_2 D_ m L c R_ nu : 0 < D_ -> 0 < m -> 0 < L -> 0 < c -> 0 < R_ -> 0 < nu -> let eta := sqrt (D_ * m / (L * c * R_)) / nu in
  (16 * m * L * c * D_ / nu ^ 2 <= R_ -> eta * L * c <= 1/4) /\ 2 * D_ / (eta * R_) + 2 * eta * L * c * nu ^ 2 / m = 4 * nu * sqrt (L * c * D_ / (m * R_)).
Proof.
  intros D0 m0 L0 c0 R0 n0 eta. assert (q0 : 0 < D_ * m / (L * c * R_)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; auto). set (r := sqrt (D_ * m / (L * c * R_))) in *.
  assert (r0 : 0 < r) by now apply sqrt_lt_R0. assert (rr : r * r = D_ * m / (L * c * R_)) by (apply sqrt_def; lra).
  split.
  - intros h. unfold eta. assert (n2 : 0 < nu ^ 2) by (apply pow_lt; lra). apply (Rmult_le_compat_r (nu ^ 2)) in h; [|lra]. replace (16 * m * L * c * D_ / nu ^ 2 * nu ^ 2) with (16 * m * L * c * D_) in h by (field; lra).
    apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. apply (Rmult_le_reg_r (nu ^ 2 * R_)); [now apply Rmult_lt_0_compat|].
    replace (r / nu * L * c * (r / nu * L * c) * (nu ^ 2 * R_)) with (r * r * (L * c) ^ 2 * R_) by (field; lra). rewrite rr. replace (D_ * m / (L * c * R_) * (L * c) ^ 2 * R_) with (m * L * c * D_) by (field; lra). lra.
  - assert (e : sqrt (L * c * D_ / (m * R_)) = L * c * r / m).
    { assert (x : 0 < L * c * r / m) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; auto). rewrite <- (sqrt_Rsqr (L * c * r / m)) by lra. f_equal. unfold Rsqr.
      replace (L * c * r / m * (L * c * r / m)) with ((L * c / m) ^ 2 * (r * r)) by (field; lra). rewrite rr. field. lra. }
    rewrite e. unfold eta. replace (2 * D_ / (r / nu * R_)) with (2 * nu * D_ * r / (r * r * R_)) by (field; lra). rewrite rr. field. lra.
Qed.
Lemma step_4_3 : let c P := 1 + (1000 + 1) / P in 198/100 <= c 10 / c 20 < 1985/1000 /\ forall kappa P, 1 <= P -> 0 < kappa -> kappa / P <= 1 + (kappa + 1) / P <= kappa / P + 2.
Proof.
  intros c. split; [unfold c; lra|]. intros kappa P p1 k0. assert (i0 : 0 < / P) by (apply Rinv_0_lt_compat; lra). assert (i1 : / P <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). unfold Rdiv. lra.
Qed.
(* ---- K local steps: numbers ---- *)
Lemma step_8_1 K a b2 t2 : let th := 1 + a / INR K in (0 < K)%nat -> 0 <= a -> 0 <= b2 -> 0 <= t2 ->
  sum K INR = 1/2 * (INR K - 1) * INR K /\ sum K (fun k => INR k ^ 2) <= 1/2 * (INR K - 1) * INR K ^ 2 /\
  sum K (fun k => INR k ^ 2 + INR k * a) <= 1/2 * (INR K - 1) * INR K ^ 2 * th /\
  sum K (fun k => INR k ^ 2 * b2 + INR k * (a * t2)) <= 1/2 * (INR K - 1) * INR K ^ 2 * (b2 + a / INR K * t2).
Proof.
  intros th K1 a0 b0 t0. assert (K0 := lt_0_INR _ K1).
  assert (s1 : sum K INR = 1/2 * (INR K - 1) * INR K). { clear. induction K; [simpl; field|]. rewrite sum_S, IHK, S_INR. field. }
  assert (s2 : sum K (fun k => INR k ^ 2) <= 1/2 * (INR K - 1) * INR K ^ 2).
  { clear - K1. assert (e : sum K (fun k => INR k ^ 2) = 1/6 * INR K * (INR K - 1) * (2 * INR K - 1)) by (clear; induction K; [simpl; field|]; rewrite sum_S, IHK, S_INR; field).
    rewrite e. destruct K as [|k]; [lia|]. rewrite S_INR. assert (q := pos_INR k). nra. }
  split; [exact s1|]. split; [exact s2|]. rewrite (sum_ext K (fun k => INR k ^ 2 + INR k * a) (fun k => INR k ^ 2 + a * INR k)), (sum_ext K (fun k => INR k ^ 2 * b2 + INR k * (a * t2)) (fun k => b2 * INR k ^ 2 + a * t2 * INR k)) by (intros; ring).
  rewrite !sum_plus, !sum_scal. change (sum K (fun i => INR i)) with (sum K INR). rewrite s1. split.
  - apply Rle_trans with (1/2 * (INR K - 1) * INR K ^ 2 + a * (1/2 * (INR K - 1) * INR K)); [lra|]. right. unfold th. field. lra.
  - apply (Rmult_le_compat_l b2) in s2; auto. apply Rle_trans with (b2 * (1/2 * (INR K - 1) * INR K ^ 2) + a * t2 * (1/2 * (INR K - 1) * INR K)); [lra|]. right. field. lra.
Qed.
(* X: the other terms, summed *)
Lemma step_8_2 S_ X h th : 0 <= S_ -> 0 <= h -> h * th <= 1/8 -> 0 <= th -> 1 <= th -> 8 * h ^ 2 * th * S_ <= 1/8 * S_ /\ (S_ <= X + 8 * h ^ 2 * th * S_ -> S_ <= 8/7 * X).
Proof.
  intros s0 h0 ht t0 t1. assert (hh : h <= h * th) by (assert (0 <= h * (th - 1)) by (apply Rmult_le_pos; lra); lra).
  assert (x : h ^ 2 * th <= 1/64) by (assert (h * (h * th) <= 1/8 * (1/8)) by (apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra); lra).
  apply (Rmult_le_compat_r _ _ _ s0) in x. split; lra.
Qed.
Lemma step_9_2 h th : 0 < h -> 1 <= th -> h * th <= 1/8 -> - (3/4) + h * th + (2 + 4 * h * th) * (8/7) * (h ^ 2 * th) <= - (1/2).
Proof.
  intros h0 t1 ht. assert (p0 : 0 < h * th) by (apply Rmult_lt_0_compat; lra). set (x := h * th) in *. assert (a : h ^ 2 * th <= 1/8 * x) by (assert (y : 0 <= h * (th - 1)) by (apply Rmult_le_pos; lra); assert (h8 : h <= 1/8) by (unfold x in *; lra); assert (h * x <= 1/8 * x) by (apply Rmult_le_compat_r; lra); unfold x in *; lra).
  assert (b0 : 0 <= h ^ 2 * th) by (assert (y := pow2_ge_0 h); assert (0 <= th) by lra; pos). replace (4 * h * th) with (4 * x) by (unfold x; ring).
  assert ((2 + 4 * x) * (8/7) * (h ^ 2 * th) <= (5/2) * (8/7) * (1/8 * (1/8))) by (apply Rmult_le_compat; nra). lra.
Qed.
Lemma step_9_3 h th : 0 < h -> 1 <= th -> h * th <= 1/8 -> (2 + 4 * h * th) * (8/7) <= 3. Proof. intros. lra. Qed.
Lemma step_9_4 h th b2 t2 aK Leta_a : 0 < h -> 1 <= th -> h * th <= 1/8 -> 0 <= b2 -> 0 <= t2 -> 0 <= aK -> th = 1 + aK -> Leta_a = h * aK ->
  2 * b2 + (4 * h + (2 + 4 * h * th) * (8/7) * (4 * h ^ 2)) * (b2 + aK * t2) <= 3 * b2 + 11/2 * h * aK * t2 /\ Leta_a <= 1/8.
Proof.
  intros h0 t1 ht b0 t0 a0 e1 e2. assert (h8 : h <= 1/8) by (assert (0 <= h * (th - 1)) by (apply Rmult_le_pos; lra); lra).
  assert (x : (2 + 4 * h * th) * (8/7) * (4 * h ^ 2) <= 5/2 * (8/7) * (4 * (1/8 * h))) by (apply Rmult_le_compat; nra).
  assert (y : 4 * h + (2 + 4 * h * th) * (8/7) * (4 * h ^ 2) <= 11/2 * h) by lra. split.
  - assert (k1 := Rmult_le_compat_r _ _ _ b0 y). assert (at0 : 0 <= aK * t2) by (apply Rmult_le_pos; auto). assert (k2 := Rmult_le_compat_r _ _ _ at0 y). assert (k3 : 11/2 * h * b2 <= b2) by (assert (0 <= (1/8 - h) * b2) by (apply Rmult_le_pos; lra); lra). lra.
  - rewrite e2. rewrite e1 in ht. lra.
Qed.
Lemma step_9_5 K te D_ R_ mu L kappa eta a : 0 < te -> 0 < R_ -> 0 < K -> te = K * eta -> te * L * (1 + a / K) <= 1/8 -> 0 < L -> let b2 := mu ^ 2 * L ^ 2 * kappa in let t2 := mu ^ 2 * L ^ 2 / 4 * (kappa * (kappa + 7)) in
  6 * b2 + 11 * L * eta * a * t2 = mu ^ 2 * L ^ 2 * (6 * kappa + 11/4 * L * eta * a * (kappa * (kappa + 7))) /\
  2 / (te * R_) * D_ = 2 * D_ / (te * R_) /\ 2 / te * (te * (3 * b2 + 11/2 * L * eta * a * t2)) = 6 * b2 + 11 * L * eta * a * t2 /\
  L * eta * a = te * L * (1 + a / K - 1) /\ L * eta * a <= 1/8.
Proof.
  intros t0 r0 k0 ek st l0 b2 t2. unfold b2, t2. assert (x : L * eta * a = te * L * (1 + a / K - 1)) by (rewrite ek; field; lra). assert (0 < te * L) by now apply Rmult_lt_0_compat.
  repeat split; [field|field; lra|field; lra|exact x|lra].
Qed.
(* 10 *)
Lemma step_10_2 P K kappa : 1 <= P -> 1 <= K -> 1 <= kappa ->
  (P * K <= kappa -> 1 + (kappa + 1) / (P * K) <= 3 * kappa / (P * K) /\ (1 + (kappa + 1) / P) / K <= 3 * kappa / (P * K)) /\
  (kappa <= P * K -> 1 <= 1 + (kappa + 1) / (P * K) <= 3) /\ (kappa <= P -> 1 <= 1 + (kappa + 1) / P <= 3) /\
  forall L D_ g s m R_, 0 < L -> 0 < D_ -> 0 <= g -> 0 <= s -> 0 < m -> 0 < R_ -> P * K <= kappa ->
    4 * sqrt ((1 + (kappa + 1) / (P * K)) * g / m + (1 + (kappa + 1) / P) / K * s / m) * sqrt (L * D_ / R_) <= 7 * sqrt (kappa * L * D_ * (g + s) / (m * P * K * R_)).
Proof.
  intros P1 K1 k1. assert (pk : 1 <= P * K) by nra. assert (i0 : 0 < / (P * K)) by (apply Rinv_0_lt_compat; lra).
  assert (first : P * K <= kappa -> 1 + (kappa + 1) / (P * K) <= 3 * kappa / (P * K) /\ (1 + (kappa + 1) / P) / K <= 3 * kappa / (P * K)).
  { intros h. split; apply (Rmult_le_reg_r (P * K)); try lra.
    - replace ((1 + (kappa + 1) / (P * K)) * (P * K)) with (P * K + kappa + 1) by (field; lra). replace (3 * kappa / (P * K) * (P * K)) with (3 * kappa) by (field; lra). lra.
    - replace ((1 + (kappa + 1) / P) / K * (P * K)) with (P + kappa + 1) by (field; lra). replace (3 * kappa / (P * K) * (P * K)) with (3 * kappa) by (field; lra). nra. }
  split; [exact first|]. split; [|split].
  - intros h. split; [assert (0 <= (kappa + 1) / (P * K)) by (apply Rlt_le, Rdiv_lt_0_compat; lra); lra|]. apply (Rmult_le_reg_r (P * K)); [lra|]. replace ((1 + (kappa + 1) / (P * K)) * (P * K)) with (P * K + kappa + 1) by (field; lra). lra.
  - intros h. split; [assert (0 <= (kappa + 1) / P) by (apply Rlt_le, Rdiv_lt_0_compat; lra); lra|]. apply (Rmult_le_reg_r P); [lra|]. replace ((1 + (kappa + 1) / P) * P) with (P + kappa + 1) by (field; lra). lra.
  - intros L D_ g s m R_ l0 d0 g0 s0 m0 r0 h. destruct (first h) as [h1 h2].
    assert (ld : 0 < L * D_ / R_) by (apply Rdiv_lt_0_compat; auto; now apply Rmult_lt_0_compat). assert (im : 0 < / m) by now apply Rinv_0_lt_compat.
    set (N2 := (1 + (kappa + 1) / (P * K)) * g / m + (1 + (kappa + 1) / P) / K * s / m).
    assert (b : N2 <= 3 * kappa / (P * K) * (g + s) / m).
    { unfold N2. apply (Rmult_le_compat_r (g / m)) in h1; [|unfold Rdiv; pos]. apply (Rmult_le_compat_r (s / m)) in h2; [|unfold Rdiv; pos]. unfold Rdiv in *. lra. }
    rewrite Rmult_assoc, <- sqrt_mult_alt.
    2: { unfold N2. assert (0 <= (kappa + 1) / (P * K)) by (apply Rlt_le, Rdiv_lt_0_compat; lra). assert (0 <= (kappa + 1) / P) by (apply Rlt_le, Rdiv_lt_0_compat; lra). assert (0 < / K) by (apply Rinv_0_lt_compat; lra). unfold Rdiv in *. apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra. }
    assert (k : N2 * (L * D_ / R_) <= 49/16 * (kappa * L * D_ * (g + s) / (m * P * K * R_))).
    { apply (Rmult_le_compat_r _ _ _ (Rlt_le _ _ ld)) in b. eapply Rle_trans; [exact b|]. replace (3 * kappa / (P * K) * (g + s) / m * (L * D_ / R_)) with (3 * (kappa * L * D_ * (g + s) / (m * P * K * R_))) by (field; lra).
      assert (0 <= kappa * L * D_ * (g + s) / (m * P * K * R_)); [|lra]. apply Rmult_le_pos; [repeat apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat. repeat apply Rmult_lt_0_compat; lra. }
    apply sqrt_le_1_alt in k. rewrite (sqrt_mult_alt (49/16)) in k by lra. replace (sqrt (49/16)) with (7/4) in k; [lra|]. replace (49/16) with (7/4 * (7/4)) by field. rewrite sqrt_square; lra.
Qed.
Lemma step_10_5_numbers d kappa : 1 <= d -> 0 <= kappa <= d -> let c1 := d * (kappa + 2) / (d + 2) in let r2 := d ^ 2 * ((kappa + 2) ^ 2 + 2 * d + 4) / ((d + 2) * (d + 4)) in
  d * c1 - r2 = d ^ 2 * kappa * (d - kappa) / ((d + 2) * (d + 4)) /\ r2 <= d * c1.
Proof.
  intros d1 [k0 k1] c1 r2. assert (e : d * c1 - r2 = d ^ 2 * kappa * (d - kappa) / ((d + 2) * (d + 4))) by (unfold c1, r2; field; lra). split; [exact e|].
  assert (0 <= d ^ 2 * kappa * (d - kappa) / ((d + 2) * (d + 4))); [|lra]. apply Rmult_le_pos; [assert (x := pow2_ge_0 d); repeat apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat. apply Rmult_lt_0_compat; lra.
Qed.
(* 11.1: a projector of rank kappa; q is what a local step leaves of E|x|_H^2 *)
Lemma step_11_1 P kappa eta : 1 <= P -> 0 < kappa -> let c := 1 + (kappa + 1) / P in let q := 1 - 2 * eta + eta ^ 2 * c in
  1 - / c <= q /\ 1 - / c = / (1 + P / (kappa + 1)) /\ exp (- (P / (kappa + 1))) <= / (1 + P / (kappa + 1)) /\
  forall (E : nat -> R) (steps : nat) x0, 0 <= x0 -> E 0%nat = x0 -> (forall t, E (S t) = q * E t) -> exp (- (P * INR steps / (kappa + 1))) * x0 <= E steps.
Proof.
  intros P1 k0 c q. assert (c0 : 0 < (kappa + 1) / P) by (apply Rdiv_lt_0_compat; lra). assert (cc : 0 < c) by (unfold c; lra).
  assert (h1 : 1 - / c <= q). { assert (x := pow2_ge_0 (eta * c - 1)). apply (Rmult_le_reg_r c); auto. replace ((1 - / c) * c) with (c - 1) by (field; lra). unfold q. lra. }
  assert (h2 : 1 - / c = / (1 + P / (kappa + 1))) by (unfold c; field; repeat split; lra).
  assert (p0 : 0 < P / (kappa + 1)) by (apply Rdiv_lt_0_compat; lra).
  assert (h3 : exp (- (P / (kappa + 1))) <= / (1 + P / (kappa + 1))) by (rewrite exp_Ropp; apply Rinv_le_contravar; [lra|apply exp_ineq1_le]).
  split; [exact h1|]. split; [exact h2|]. split; [exact h3|]. intros E steps x0 x00 e0 es. assert (q0 : exp (- (P / (kappa + 1))) <= q) by lra. induction steps as [|t IH].
  - rewrite e0. simpl INR. replace (- (P * 0 / (kappa + 1))) with 0 by (field; lra). rewrite exp_0. lra.
  - rewrite es, S_INR. replace (- (P * (INR t + 1) / (kappa + 1))) with (- (P / (kappa + 1)) + - (P * INR t / (kappa + 1))) by (field; lra). rewrite exp_plus, Rmult_assoc.
    apply Rmult_le_compat; try lra; [left; apply exp_pos|]. apply Rmult_le_pos; [left; apply exp_pos|auto].
Qed.
Lemma step_11_2 eta c s2 mK K : 0 < eta -> 0 < c -> eta * c < 2 -> 0 <= s2 -> 0 < K -> let rest := eta * c / (2 - eta * c) * s2 in
  rest = (1 - 2 * eta + eta ^ 2 * c) * rest + eta ^ 2 * c * s2 /\ (mK = K * eta -> 1/2 * (mK * c * s2 / K) <= rest).
Proof.
  intros e0 c0 ec s0 K0 rest. assert (x0 : 0 < eta * c) by now apply Rmult_lt_0_compat. split; [unfold rest; field; lra|]. intros ->. unfold rest.
  replace (1/2 * (K * eta * c * s2 / K)) with (eta * c / 2 * s2) by (field; lra). apply Rmult_le_compat_r; auto. unfold Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
Qed.
Lemma step_11_5 P K kappa L D_ m eps g s : 0 < P -> 0 < K -> 0 <= kappa -> 0 < m -> 0 < eps -> 0 < L -> 0 < D_ -> 0 <= g -> 0 <= s ->
  let th := 1 + (kappa + 1) / (P * K) in let c := 1 + (kappa + 1) / P in let N2 := th * g / m + c * s / (m * K) in let R_ := 16 * N2 * L * D_ / eps ^ 2 in
  P * K * th = P * K + kappa + 1 /\ (kappa + 1 <= P * K -> 1 <= th <= 2) /\ (P * K <= kappa + 1 -> P * K + kappa + 1 <= 2 * (kappa + 1)) /\
  (4 * sqrt N2 * sqrt (L * D_ / R_) = eps \/ N2 = 0) /\ P * K * R_ = 16 * (L * D_ / (m * eps ^ 2)) * ((P * K + kappa + 1) * g + (P + kappa + 1) * s).
Proof.
  intros P0 K0 k0 m0 e0 l0 d0 g0 s0 th c N2 R_. assert (pk : 0 < P * K) by now apply Rmult_lt_0_compat. assert (e2 : 0 < eps ^ 2) by (apply pow_lt; lra).
  assert (ee : P * K * th = P * K + kappa + 1) by (unfold th; field; lra). split; [exact ee|]. split; [|split; [lra|split]].
  - intros h. split; apply (Rmult_le_reg_l (P * K)); auto; rewrite ?ee; lra.
  - destruct (Req_dec N2 0) as [z|z]; [now right|left]. assert (n0 : 0 < N2).
    { assert (0 <= N2); [|lra]. unfold N2, th, c, Rdiv. assert (0 < / (P * K)) by now apply Rinv_0_lt_compat. assert (0 < / P) by now apply Rinv_0_lt_compat. assert (0 < / m) by now apply Rinv_0_lt_compat. assert (0 < / (m * K)) by (apply Rinv_0_lt_compat; now apply Rmult_lt_0_compat).
      apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [apply Rmult_le_pos; auto|lra]); (apply Rplus_le_le_0_compat; [lra|apply Rmult_le_pos; lra]). }
    assert (ldR : L * D_ / R_ = eps ^ 2 / (16 * N2)) by (unfold R_; field; repeat split; lra). rewrite ldR, Rmult_assoc, <- sqrt_mult_alt by lra.
    replace (N2 * (eps ^ 2 / (16 * N2))) with ((eps / 4) * (eps / 4)) by (field; lra). rewrite sqrt_square by lra. field.
  - unfold R_, N2, th, c. field. lra.
Qed.
(* ---- K local steps ---- *)
Section Lengths.
Context {D : Dim}.
Variable H : vec -> vec.
Variable L : R.
Hypothesis HH : mapL L H.
Variable l : vec -> R.
Variable G : vec -> vec.
Hypothesis grad : gradient l G.
Hypothesis rank : forall x s u, dot (G (x + s)%V - G x) u ^ 2 <= nH H s * nH H u.
Lemma step_5_1 x s : nrm2 (G (x + s)%V - G x) <= L * nH H s.
Proof.
  assert (h := rank x s (G (x + s) - G x)%V). set (d := (G (x + s) - G x)%V) in *. fold (nrm2 d) in h. assert (n0 := nrm2_ge0 d). assert (k := l_le _ _ HH d). fold (nH H d) in k.
  assert (s0 : 0 <= nH H s) by apply (l_ge0 _ _ HH). destruct (Req_dec (nrm2 d) 0) as [e|e].
  - rewrite e in *. assert (q := l_square _ _ HH s). fold (nH H s) in q. assert (q2 := nrm2_ge0 (H s)). lra.
  - apply (Rmult_le_compat_l _ _ _ s0) in k. apply (Rmult_le_reg_r (nrm2 d)); [lra|]. simpl in h. lra.
Qed.
Lemma one_side (sg : R) x s : sg = 1 \/ sg = -1 -> sg * (l (x + s)%V - l x - dot (G x) s) <= 1/2 * nH H s.
Proof.
  intros hs. assert (n0 : 0 <= nH H s) by apply (l_ge0 _ _ HH).
  pose (phi u := sg * l (x + u *: s)%V + - (u * (sg * dot (G x) s) + 1/2 * nH H s * (u * u))).
  pose (phi' u := sg * dot (G (x + u *: s)%V) s + - (sg * dot (G x) s + u * nH H s)).
  assert (D1 : forall u, derivable_pt_lim phi u (phi' u)).
  { intros u. unfold phi, phi'. apply derivable_pt_lim_plus.
    - apply (derivable_pt_lim_scal (fun u => l (x + u *: s)%V)). intros eps he. destruct (grad (x + u *: s)%V s eps he) as [del hdel]. exists del. intros h h0 h1.
      specialize (hdel h h0 h1). cbv beta in hdel. replace (x + (u + h) *: s)%V with (x + u *: s + (0 + h) *: s)%V by vring.
      replace (x + u *: s + 0 *: s)%V with (x + u *: s)%V in hdel by vring. exact hdel.
    - apply (derivable_pt_lim_opp (fun u => u * (sg * dot (G x) s) + 1/2 * nH H s * (u * u))).
      replace (sg * dot (G x) s + u * nH H s) with ((1 * (sg * dot (G x) s) + u * 0) + 1/2 * nH H s * (1 * u + u * 1)) by field.
      apply derivable_pt_lim_plus.
      + apply (derivable_pt_lim_mult id (fun _ => sg * dot (G x) s)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
      + apply (derivable_pt_lim_scal (fun u => u * u)). apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id. }
  destruct (MVT_cor2 phi phi' 0 1 Rlt_0_1 (fun c _ => D1 c)) as [c [e [c0 c1]]].
  assert (n : phi' c <= 0).
  { unfold phi'. assert (h := rank x (c *: s)%V s). assert (hc : nH H (c *: s)%V = c * c * nH H s) by (unfold nH; rewrite (l_scal _ _ HH), dot_scall, dot_scalr; ring).
    rewrite hc in h. assert (k : sg * dot (G (x + c *: s)%V - G x) s <= c * nH H s).
    { apply Rsqr_incr_0_var; [|apply Rmult_le_pos; lra]. unfold Rsqr. assert (s2 : sg * sg = 1) by (destruct hs as [->| ->]; ring).
      replace (sg * dot (G (x + c *: s)%V - G x) s * (sg * dot (G (x + c *: s)%V - G x) s)) with (sg * sg * dot (G (x + c *: s)%V - G x) s ^ 2) by ring. rewrite s2. lra. }
    rewrite subE, dot_addl, dot_scall in k. lra. }
  unfold phi in e. replace (x + 1 *: s)%V with (x + s)%V in e by vring. replace (x + 0 *: s)%V with x in e by vring. lra.
Qed.
Lemma step_5_2 x s : Rabs (l (x + s)%V - l x - dot (G x) s) <= 1/2 * nH H s.
Proof. assert (a := one_side 1 x s (or_introl eq_refl)). assert (b := one_side (-1) x s (or_intror eq_refl)). apply Rabs_le. lra. Qed.
End Lengths.
(* 7: the map A of a step is drawn with o, the samples with s, o independent of s and of all before *)
Section Sums.
Context {D : Dim}.
Variable H : vec -> vec.
Variables L a : R.
Hypothesis HH : mapL L H.
Hypothesis L0 : 0 <= L.
Hypothesis a0 : 0 <= a.
Context {S O : Type}.
Variable ker : list (S * O) -> law S.
Variable dirs : law O.
Variable A : O -> vec -> vec.
Definition kk h : law (S * O) := bind (ker h) (fun _ => dirs).
Hypothesis A_add : forall o u v, A o (u + v)%V = (A o u + A o v)%V.
Hypothesis A_mean1 : forall u v, dirs (fun o => dot u (A o v)) = dot u v.
Hypothesis A_var : forall v, dirs (fun o => nH H (A o v - v)) <= a * L * nrm2 v.
Hypothesis A_size : forall v, dirs (fun o => nH H (A o v)) <= (1 + a) * L * nrm2 v.
Lemma nH_add u v : nH H (u + v) = nH H u + 2 * dot (H u) v + nH H v.
Proof. unfold nH. rewrite (form_add _ _ HH), (l_sym _ _ HH). ring. Qed.
Lemma nH_two u v : nH H (u + v) <= 2 * nH H u + 2 * nH H v. Proof. apply (step_3_2 H L HH). Qed.
Lemma nH_L v : nH H v <= L * nrm2 v. Proof. apply (l_le _ _ HH). Qed.
Variable gv : vec.
Variable nn : S -> vec.
Variable s2 : R.
Hypothesis nn_mean0 : forall h u, ker h (fun s => dot u (nn s)) = 0.
Hypothesis nn_var : forall h, ker h (fun s => nrm2 (nn s)) <= s2.
Definition S1 : list (S * O) -> vec := pvsum (fun _ w => A (snd w) (gv + nn (fst w))%V).
Lemma S1_mean k u : path kk k (fun h => dot u (S1 h)) = INR k * dot u gv.
Proof.
  induction k. { unfold S1. cbn. rewrite dot_0r. ring. }
  rewrite path_S, S_INR. rewrite (ex_ext (path kk k) _ (fun h => dot u (S1 h) + dot u gv)).
  - rewrite ex_plus, ex_const, IHk. ring.
  - intros h. unfold S1. cbn [pvsum]. unfold kk. cbn [bind ex fst snd]. rewrite (ex_ext (ker h) _ (fun s => dot u (pvsum (fun _ w => A (snd w) (gv + nn (fst w))%V) h) + (dot u gv + dot u (nn s)))).
    + rewrite !ex_plus, !ex_const, nn_mean0. ring.
    + intros s. rewrite (ex_ext dirs _ (fun o => dot u (pvsum (fun _ w => A (snd w) (gv + nn (fst w))%V) h) + dot u (A o (gv + nn s)%V))) by (intros; apply dot_addr).
      rewrite ex_plus, ex_const, A_mean1, dot_addr. reflexivity.
Qed.
Lemma step_7_1 k : path kk k (fun h => nH H (S1 h)) <= L * (INR k ^ 2 + INR k * a) * nrm2 gv + L * INR k * (1 + a) * s2.
Proof.
  induction k. { unfold S1. cbn [path ex dirac pvsum]. unfold nH. rewrite dot_0l. simpl. lra. }
  rewrite path_S, S_INR. assert (k0 := pos_INR k).
  assert (st : forall h, kk h (fun z => nH H (S1 (z :: h))) <= nH H (S1 h) + 2 * dot (H gv) (S1 h) + (1 + a) * L * (nrm2 gv + s2)).
  { intros h. unfold kk. cbn [bind ex]. apply Rle_trans with (ker h (fun s => nH H (S1 h) + (2 * dot (H gv) (S1 h) + (2 * dot (H (S1 h)) (nn s) + (1 + a) * L * nrm2 (gv + nn s))))).
    - apply ex_le; intros s. apply Rle_trans with (dirs (fun o => nH H (S1 h) + (2 * dot (H (S1 h)) (A o (gv + nn s)%V) + nH H (A o (gv + nn s)%V)))).
      + apply ex_le; intros o. unfold S1. cbn [pvsum fst snd]. rewrite nH_add. lra.
      + rewrite !ex_plus, ex_const, ex_scal, A_mean1, dot_addr. assert (q := A_size (gv + nn s)%V). rewrite (l_sym _ _ HH (S1 h) gv), (dotC (S1 h)). lra.
    - rewrite !ex_plus, !ex_const, !ex_scal, nn_mean0. assert (q := step_3_3 (ker h) nn gv s2 (nn_mean0 h) (nn_var h)). apply (Rmult_le_compat_l ((1 + a) * L)) in q; [lra|pos]. }
  eapply Rle_trans; [apply ex_le, st|]. rewrite !ex_plus, ex_const, ex_scal, S1_mean. rewrite (l_sym _ _ HH gv gv). assert (q := nH_L gv). unfold nH in q. apply (Rmult_le_compat_l (2 * INR k)) in q; [|lra]. lra.
Qed.
Variable dl : list (S * O) -> vec.
Definition S2 : list (S * O) -> vec := pvsum (fun h w => A (snd w) (dl h)).
Lemma step_7_2 k : path kk k (fun h => nH H (S2 h)) <= 2 * L * (INR k + a) * sum k (fun j => path kk j (fun h => nrm2 (dl h))).
Proof.
  set (U := pvsum (fun h (_ : S * O) => dl h)). set (Mt := pvsum (fun h (w : S * O) => (A (snd w) (dl h) - dl h)%V)).
  assert (sp : forall h, S2 h = (U h + Mt h)%V) by (intros h; unfold S2, U, Mt; induction h as [|w h IH]; [cbn; vring|]; cbn [pvsum]; rewrite IH; vring).
  assert (mU : path kk k (fun h => nH H (U h)) <= L * INR k * sum k (fun j => path kk j (fun h => nrm2 (dl h)))).
  { apply Rle_trans with (path kk k (fun h => L * INR k * psum (fun h (_ : S * O) => nrm2 (dl h)) h)).
    - apply path_length; intros h hl. eapply Rle_trans; [apply nH_L|]. rewrite Rmult_assoc. apply Rmult_le_compat_l; auto. rewrite <- hl. unfold U. clear - h. induction h as [|w h IH]; [cbn; rewrite nrm2_0; lra|].
      change (length (w :: h)) with (Datatypes.S (length h)). rewrite S_INR. cbn [pvsum psum]. set (X := pvsum _ h) in *. set (Y := psum _ h) in *. destruct h as [|w' h'].
      + unfold X, Y. cbn. replace (v0 + dl nil)%V with (dl nil) by vring. lra.
      + set (n := INR (length (w' :: h'))) in *. assert (n0 : 0 < n) by (apply lt_0_INR; simpl; lia). eapply Rle_trans; [apply (nrm2_add_young (/ n)); now apply Rinv_0_lt_compat|]. rewrite Rinv_inv.
        apply (Rmult_le_compat_l (1 + / n)) in IH; [|assert (0 < / n) by (now apply Rinv_0_lt_compat); lra]. replace ((1 + / n) * (n * Y)) with ((n + 1) * Y) in IH by (field; lra). lra.
    - rewrite ex_scal, path_psum. right. f_equal. apply sum_ext; intros j _. apply ex_ext; intros h. apply ex_const. }
  assert (mM : forall k, path kk k (fun h => nH H (Mt h)) <= a * L * sum k (fun j => path kk j (fun h => nrm2 (dl h)))).
  { induction k0 as [|j IH]; [unfold Mt; cbn [path ex dirac pvsum sum]; unfold nH; rewrite dot_0l; lra|]. rewrite path_S, sum_S.
    apply Rle_trans with (path kk j (fun h => nH H (Mt h) + a * L * nrm2 (dl h))).
    - apply ex_le; intros h. unfold kk. cbn [bind ex]. rewrite <- (ex_const (ker h) (nH H (Mt h) + a * L * nrm2 (dl h))). apply ex_le; intros s.
      rewrite (ex_ext dirs _ (fun o => nH H (Mt h) + (2 * dot (H (Mt h)) (A o (dl h)) + (- 2 * dot (H (Mt h)) (dl h) + nH H (A o (dl h) - dl h))))).
      + rewrite !ex_plus, !ex_const, ex_scal, A_mean1. assert (q := A_var (dl h)). lra.
      + intros o. unfold Mt. cbn [pvsum fst snd]. rewrite nH_add. rewrite (subE (A o (dl h))), dot_addr, dot_scalr. ring.
    - rewrite ex_plus, ex_scal. lra. }
  apply Rle_trans with (path kk k (fun h => 2 * nH H (U h) + 2 * nH H (Mt h))).
  - apply ex_le; intros h. rewrite sp. apply nH_two.
  - rewrite ex_plus, !ex_scal. specialize (mM k). lra.
Qed.
Variable ep : list (S * O) -> S -> O -> vec.
Variable be : list (S * O) -> S -> vec.
Variables b2 t2 : R.
Hypothesis ep_mean : forall h s u, dirs (fun o => dot u (ep h s o)) = dot u (be h s).
Hypothesis be_le : forall h s, nrm2 (be h s) <= b2.
Hypothesis ep_var : forall h s, dirs (fun o => nH H (ep h s o - be h s)) <= a * L * t2.
Definition S3 : list (S * O) -> vec := pvsum (fun h w => ep h (fst w) (snd w)).
Lemma step_7_3 k : 0 <= b2 -> path kk k (fun h => nH H (S3 h)) <= 2 * L * (INR k ^ 2 * b2 + INR k * a * t2).
Proof.
  intros b0. set (U := pvsum (fun h (w : S * O) => be h (fst w))). set (Mt := pvsum (fun h (w : S * O) => (ep h (fst w) (snd w) - be h (fst w))%V)).
  assert (sp : forall h, S3 h = (U h + Mt h)%V) by (intros h; unfold S3, U, Mt; induction h as [|w h IH]; [cbn; vring|]; cbn [pvsum]; rewrite IH; vring).
  assert (mU : forall h, nH H (U h) <= L * (INR (length h) ^ 2 * b2)).
  { intros h. eapply Rle_trans; [apply nH_L|]. apply Rmult_le_compat_l; auto. unfold U. clear - h be_le b0. induction h as [|w h IH]; [cbn; rewrite nrm2_0; lra|].
    change (length (w :: h)) with (Datatypes.S (length h)). rewrite S_INR. cbn [pvsum]. set (X := pvsum _ h) in *. assert (q := be_le h (fst w)). destruct h as [|w' h'].
    - unfold X. cbn. replace (v0 + be nil (fst w))%V with (be nil (fst w)) by vring. lra.
    - set (n := INR (length (w' :: h'))) in *. assert (n0 : 0 < n) by (apply lt_0_INR; simpl; lia). eapply Rle_trans; [apply (nrm2_add_young (/ n)); now apply Rinv_0_lt_compat|]. rewrite Rinv_inv.
      assert (i0 : 0 < / n) by now apply Rinv_0_lt_compat. apply (Rmult_le_compat_l (1 + / n)) in IH; [|lra]. apply (Rmult_le_compat_l (1 + n)) in q; [|lra]. replace ((1 + / n) * (n ^ 2 * b2)) with ((n ^ 2 + n) * b2) in IH by (field; lra). lra. }
  assert (mM : forall k, path kk k (fun h => nH H (Mt h)) <= INR k * (a * L * t2)).
  { induction k0 as [|j IH]; [unfold Mt; cbn [path ex dirac pvsum]; unfold nH; rewrite dot_0l; simpl; lra|]. rewrite path_S, S_INR.
    apply Rle_trans with (path kk j (fun h => nH H (Mt h) + a * L * t2)).
    - apply ex_le; intros h. unfold kk. cbn [bind ex]. rewrite <- (ex_const (ker h) (nH H (Mt h) + a * L * t2)). apply ex_le; intros s.
      rewrite (ex_ext dirs _ (fun o => nH H (Mt h) + (2 * dot (H (Mt h)) (ep h s o) + (- 2 * dot (H (Mt h)) (be h s) + nH H (ep h s o - be h s))))).
      + rewrite !ex_plus, !ex_const, ex_scal, ep_mean. assert (q := ep_var h s). lra.
      + intros o. unfold Mt. cbn [pvsum fst snd]. rewrite nH_add. rewrite (subE (ep h s o)), dot_addr, dot_scalr. ring.
    - rewrite ex_plus, ex_const. lra. }
  apply Rle_trans with (path kk k (fun h => 2 * (L * (INR k ^ 2 * b2)) + 2 * nH H (Mt h))).
  - apply path_length; intros h hl. rewrite sp. assert (q := mU h). rewrite hl in q. assert (q2 := nH_two (U h) (Mt h)). lra.
  - rewrite ex_plus, ex_const, ex_scal. specialize (mM k). lra.
Qed.
End Sums.
Lemma sum_more n k f : (forall i, 0 <= f i) -> (k <= n)%nat -> sum k f <= sum n f.
Proof. intros h le. induction le; [lra|]. rewrite sum_S. specialize (h m). lra. Qed.
Section KSteps.
Context {D : Dim}.
Variables N m K : nat.
Hypothesis m1 : (0 < m)%nat.
Hypothesis mN : (m <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Variable f : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variable H : vec -> vec -> vec.            (* of the round that starts at a model *)
Variables L a eta sigma sg2 b2 t2 fstar : R.   (* sg2 is sigma_G^2, b2 and t2 the squares of b and of b with a tilde *)
Context {S O : Type}.
Variable ker : vec -> list (S * O) -> law S.
Variable dirs : law O.
Variable A : O -> vec -> vec.
Variable nn : S -> nat -> vec.
Variable ep : vec -> list (S * O) -> S -> O -> nat -> vec.
Variable be : vec -> list (S * O) -> S -> nat -> vec.
Fixpoint loc w i (h : list (S * O)) : vec := match h with nil => w
  | cons (s, o) h => (loc w i h - eta *: (A o (g i (loc w i h) + nn s i) + ep w h s o i))%V end.
Definition next w (x : list nat * list (S * O)) : vec := (w + / INR m *: pick (fun i => loc w i (snd x) - w) (fst x))%V.
Definition kround w : law (list nat * list (S * O)) := bind (Family.lsets N m mN) (fun _ => path (kk (ker w) dirs) K).
Definition Favg x : R := / INR N * sum N (fun i => f i x).
Definition G x : vec := (/ INR N *: vsum N (fun i => g i x))%V.
Definition th : R := 1 + a / INR K.
Definition te : R := INR K * eta.
Definition cc : R := 1 + a.
Definition gamm : R := (INR N - INR m) / (INR N - 1).
Definition hh : R := te * L.
Definition bth : R := b2 + a / INR K * t2.
Hypothesis HH : forall w, mapL L (H w).
Hypothesis grad : forall i, (i < N)%nat -> gradient (f i) (g i).
Hypothesis rank : forall w i x s u, (i < N)%nat -> dot (g i (x + s)%V - g i x) u ^ 2 <= nH (H w) s * nH (H w) u.
Hypothesis bounded : forall x, fstar <= Favg x.
Hypothesis spread : forall x, / INR N * sum N (fun i => nrm2 (g i x - G x)) <= sg2.
Hypothesis A_add : forall o u v, A o (u + v)%V = (A o u + A o v)%V.
Hypothesis A_scal : forall o c u, A o (c *: u)%V = (c *: A o u)%V.
Hypothesis A_mean1 : forall u v, dirs (fun o => dot u (A o v)) = dot u v.
Hypothesis A_var : forall w v, dirs (fun o => nH (H w) (A o v - v)) <= a * L * nrm2 v.
Hypothesis A_size : forall w v, dirs (fun o => nH (H w) (A o v)) <= (1 + a) * L * nrm2 v.
Hypothesis nn_mean0 : forall w h i u, (i < N)%nat -> ker w h (fun s => dot u (nn s i)) = 0.
Hypothesis nn_var : forall w h i, (i < N)%nat -> ker w h (fun s => nrm2 (nn s i)) <= sigma ^ 2.
Hypothesis nn_clients : forall w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker w h (fun s => dot (nn s i) (nn s j)) = 0.
Hypothesis ep_mean : forall w h s i u, (i < N)%nat -> dirs (fun o => dot u (ep w h s o i)) = dot u (be w h s i).
Hypothesis be_le : forall w h s i, (i < N)%nat -> nrm2 (be w h s i) <= b2.
Hypothesis ep_var : forall w h s i, (i < N)%nat -> dirs (fun o => nH (H w) (ep w h s o i - be w h s i)) <= a * L * t2.
Hypothesis L0 : 0 < L.
Hypothesis a0 : 0 <= a.
Hypothesis b0 : 0 <= b2.
Hypothesis t0 : 0 <= t2.
Hypothesis eta0 : 0 < eta.
Hypothesis steps : te * L * th <= 1/8.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let KK1 : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Let m0 : 0 < INR m. Proof. now apply lt_0_INR. Qed.
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let im : 0 <= / INR m. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iN : 0 <= / INR N. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iK : 0 <= / INR K. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let th1 : 1 <= th. Proof. unfold th. assert (0 <= a / INR K) by (unfold Rdiv; pos). lra. Qed.
Let te0 : 0 < te. Proof. unfold te. now apply Rmult_lt_0_compat. Qed.
Let hh0 : 0 < hh. Proof. unfold hh. now apply Rmult_lt_0_compat. Qed.
Let bth0 : 0 <= bth. Proof. unfold bth, Rdiv. apply Rplus_le_le_0_compat; pos. Qed.
Section Round.
Variable w : vec.
Let Hw := H w.
Let HHw : mapL L Hw := HH w.
Let pk := path (kk (ker w) dirs).
Definition dlt i h : vec := (g i (loc w i h) - g i w)%V.
Definition e_ i h : R := nH Hw (loc w i h - w).
Lemma dlt_le i h : (i < N)%nat -> nrm2 (dlt i h) <= L * e_ i h.
Proof.
  intros hi. assert (q := step_5_1 Hw L HHw (g i) (fun x s u => rank w i x s u hi) w (loc w i h - w)%V). replace (w + (loc w i h - w))%V with (loc w i h) in q by vring. exact q.
Qed.
Definition T1 i := S1 A (g i w) (fun s => nn s i).
Definition T2 i := @S2 S O A (dlt i).
Definition T3 i := @S3 S O (fun h s o => ep w h s o i).
Lemma loc_sum i h : (loc w i h - w = - eta *: (T1 i h + (T2 i h + T3 i h)))%V.
Proof.
  unfold T1, T2, T3, S1, S2, S3. induction h as [|[s o] h IH]; [cbn; vring|]. cbn [loc pvsum fst snd].
  replace (loc w i h - eta *: (A o (g i (loc w i h) + nn s i) + ep w h s o i) - w)%V with ((loc w i h - w) + - eta *: (A o (g i (loc w i h) + nn s i) + ep w h s o i))%V by vring. rewrite IH.
  replace (g i (loc w i h) + nn s i)%V with ((g i w + nn s i) + dlt i h)%V by (unfold dlt; vring). rewrite (A_add o (g i w + nn s i)%V). vring.
Qed.
Lemma nH_scal c v : nH Hw (c *: v)%V = c * c * nH Hw v. Proof. unfold nH. rewrite (l_scal _ _ HHw), dot_scall, dot_scalr. ring. Qed.
Lemma nH_ge0 v : 0 <= nH Hw v. Proof. apply (l_ge0 _ _ HHw). Qed.
Lemma step_8_4 i k : (i < N)%nat -> (k < K)%nat ->
  (forall h, loc w i h - w = - eta *: pvsum (fun h x => A (snd x) (g i w + nn (fst x) i) + A (snd x) (dlt i h) + ep w h (fst x) (snd x) i) h)%V /\
  (forall j, pk j (fun h => nrm2 (dlt i h)) <= L * pk j (e_ i)) /\
  pk k (e_ i) <= 2 * eta ^ 2 * L * ((INR k ^ 2 + INR k * a) * nrm2 (g i w) + INR k * cc * sigma ^ 2)
  + 8 * eta ^ 2 * L ^ 2 * (INR K + a) * sum k (fun j => pk j (e_ i)) + 8 * eta ^ 2 * L * (INR k ^ 2 * b2 + INR k * (a * t2)).
Proof.
  intros hi hk. split; [|split].
  { intros h. rewrite loc_sum. f_equal. unfold T1, T2, T3, S1, S2, S3. induction h as [|x h IH]; cbn [pvsum]; [vring|]. rewrite <- IH. vring. }
  { intros j. rewrite <- ex_scal. apply ex_le; intros h. now apply dlt_le. }
  assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (e2 := pow2_ge_0 eta).
  assert (q1 := step_7_1 Hw L a HHw (Rlt_le _ _ L0) a0 (ker w) dirs A A_mean1 (A_size w) (g i w) (fun s => nn s i) (sigma ^ 2) (fun h u => nn_mean0 w h i u hi) (fun h => nn_var w h i hi) k).
  assert (q2 := step_7_2 Hw L a HHw (Rlt_le _ _ L0) (ker w) dirs A A_mean1 (A_var w) (dlt i) k).
  assert (q3 := step_7_3 Hw L a HHw (Rlt_le _ _ L0) (ker w) dirs (fun h s o => ep w h s o i) (fun h s => be w h s i) b2 t2 (fun h s u => ep_mean w h s i u hi) (fun h s => be_le w h s i hi) (fun h s => ep_var w h s i hi) k b0).
  apply Rle_trans with (pk k (fun h => 2 * eta ^ 2 * nH Hw (T1 i h) + (4 * eta ^ 2 * nH Hw (T2 i h) + 4 * eta ^ 2 * nH Hw (T3 i h)))).
  - apply ex_le; intros h. unfold e_. rewrite loc_sum, nH_scal. assert (x := nH_two Hw L HHw (T1 i h) (T2 i h + T3 i h)%V). assert (y := nH_two Hw L HHw (T2 i h) (T3 i h)).
    assert (z : nH Hw (T1 i h + (T2 i h + T3 i h)) <= 2 * nH Hw (T1 i h) + 4 * nH Hw (T2 i h) + 4 * nH Hw (T3 i h)) by lra. apply (Rmult_le_compat_l (eta ^ 2)) in z; auto. lra.
  - rewrite !ex_plus, !ex_scal. assert (dd : sum k (fun j => pk j (fun h => nrm2 (dlt i h))) <= L * sum k (fun j => pk j (e_ i))).
    { rewrite <- sum_scal. apply sum_le; intros j _. rewrite <- ex_scal. apply ex_le; intros h. now apply dlt_le. }
    assert (s0 : 0 <= sum k (fun j => pk j (e_ i))) by (apply sum_ge0; intros; apply ex_ge0; intros; apply nH_ge0).
    assert (dd2 : (INR k + a) * sum k (fun j => pk j (fun h => nrm2 (dlt i h))) <= (INR K + a) * (L * sum k (fun j => pk j (e_ i)))).
    { assert (k0 := pos_INR k). apply Rle_trans with ((INR k + a) * (L * sum k (fun j => pk j (e_ i)))); [apply Rmult_le_compat_l; lra|]. apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|lra]. }
    apply (Rmult_le_compat_l (2 * eta ^ 2)) in q1; [|lra]. apply (Rmult_le_compat_l (4 * eta ^ 2)) in q2; [|lra]. apply (Rmult_le_compat_l (4 * eta ^ 2)) in q3; [|lra]. apply (Rmult_le_compat_l (8 * eta ^ 2 * L)) in dd2; [|assert (y := Rlt_le _ _ L0); pos].
    unfold T1, T2, T3, pk, cc in *. lra.
Qed.
Definition Q_ i : R := / INR K * sum K (fun k => pk k (e_ i)).
Lemma drift i : (i < N)%nat -> Q_ i <= 8/7 * (1 - / INR K) * L * te ^ 2 * (th * nrm2 (g i w) + cc * sigma ^ 2 / INR K + 4 * bth).
Proof.
  intros hi. set (S_ := sum K (fun k => pk k (e_ i))). assert (s0 : 0 <= S_) by (apply sum_ge0; intros; apply ex_ge0; intros; apply nH_ge0).
  destruct (step_8_1 K a b2 t2 K1 a0 b0 t0) as [c1 [_ [c2 c3]]]. fold th in c2. assert (n0 := nrm2_ge0 (g i w)). assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). assert (l0 := Rlt_le _ _ L0).
  set (X := 2 * eta ^ 2 * L * (1/2 * (INR K - 1) * INR K ^ 2 * th * nrm2 (g i w) + 1/2 * (INR K - 1) * INR K * (cc * sigma ^ 2)) + 8 * eta ^ 2 * L * (1/2 * (INR K - 1) * INR K ^ 2 * bth)).
  assert (b : S_ <= X + 8 * hh ^ 2 * th * S_).
  { apply Rle_trans with (sum K (fun k => 2 * eta ^ 2 * L * ((INR k ^ 2 + INR k * a) * nrm2 (g i w) + INR k * cc * sigma ^ 2) + 8 * eta ^ 2 * L ^ 2 * (INR K + a) * S_ + 8 * eta ^ 2 * L * (INR k ^ 2 * b2 + INR k * (a * t2)))).
    - apply sum_le; intros k hk. eapply Rle_trans; [apply step_8_4; auto|]. apply Rplus_le_compat_r, Rplus_le_compat_l. apply Rmult_le_compat_l; [assert (l2 := pow2_ge_0 L); assert (0 <= INR K + a) by lra; pos|].
      apply sum_more; [intros j; apply ex_ge0; intros; apply nH_ge0|lia].
    - rewrite (sum_ext K _ (fun k => (2 * eta ^ 2 * L * nrm2 (g i w) * (INR k ^ 2 + INR k * a) + (2 * eta ^ 2 * L * cc * sigma ^ 2 * INR k + (8 * eta ^ 2 * L ^ 2 * (INR K + a) * S_ + 8 * eta ^ 2 * L * (INR k ^ 2 * b2 + INR k * (a * t2))))))) by (intros; ring).
      rewrite (sum_plus K), (sum_plus K), (sum_plus K), (sum_scal K (2 * eta ^ 2 * L * nrm2 (g i w))), (sum_scal K (2 * eta ^ 2 * L * cc * sigma ^ 2)), (sum_const K), (sum_scal K (8 * eta ^ 2 * L)). change (sum K (fun i => INR i)) with (sum K INR). rewrite c1.
      assert (y1 : 0 <= 2 * eta ^ 2 * L * nrm2 (g i w)) by pos. apply (Rmult_le_compat_l _ _ _ y1) in c2. assert (y2 : 0 <= 8 * eta ^ 2 * L) by pos. apply (Rmult_le_compat_l _ _ _ y2) in c3.
      assert (z : INR K * (8 * eta ^ 2 * L ^ 2 * (INR K + a) * S_) = 8 * hh ^ 2 * th * S_) by (unfold hh, te, th; field; lra). unfold X, bth. lra. }
  assert (q := proj2 (step_8_2 S_ X hh th s0 (Rlt_le _ _ hh0) ltac:(unfold hh; lra) ltac:(lra) th1) b).
  unfold Q_. fold S_. apply (Rmult_le_compat_l (/ INR K)) in q; auto. eapply Rle_trans; [exact q|]. right. unfold X, te. field. lra.
Qed.
(* the mean over the clients C of a round *)
Section Clients.
Variable C : list nat.
Hypothesis Cm : length C = m.
Hypothesis CN : forall i, In i C -> (i < N)%nat.
Hypothesis Cd : NoDup C.
Definition mc (v : nat -> vec) : vec := (/ INR m *: pick v C)%V.
Definition mr (v : nat -> R) : R := / INR m * lsum C v.
Lemma mc_plus u v : mc (fun i => u i + v i)%V = (mc u + mc v)%V. Proof. unfold mc. rewrite Family.pick_plus. vring. Qed.
Lemma mr_le u v : (forall i, In i C -> u i <= v i) -> mr u <= mr v. Proof. intros h. apply Rmult_le_compat_l; auto. now apply Family.lsum_le. Qed.
Lemma mr_const c : mr (fun _ => c) = c.
Proof.
  unfold mr. assert (e : lsum C (fun _ => c) = INR (length C) * c) by (clear; induction C as [|i l IH]; [cbn; ring|]; change (length (i :: l)) with (Datatypes.S (length l)); rewrite S_INR; cbn [lsum fold_right]; fold (lsum l (fun _ => c)); rewrite IH; ring).
  rewrite e, Cm. field. lra.
Qed.
Lemma mc_dot u v : dot u (mc v) = mr (fun i => dot u (v i)). Proof. unfold mc, mr. now rewrite dot_scalr, Family.dot_pick. Qed.
Lemma mr_lin u v c : mr (fun i => u i + c * v i) = mr u + c * mr v. Proof. unfold mr. rewrite lsum_plus, lsum_scal. ring. Qed.
Lemma mc_nH P v : mapL L P -> nH P (mc v) <= mr (fun i => nH P (v i)).
Proof.
  intros hp. set (u := mc v). assert (h : 0 <= mr (fun i => nH P (v i - u))) by (rewrite <- (mr_const 0); apply mr_le; intros; apply (l_ge0 _ _ hp)).
  assert (e : mr (fun i => nH P (v i - u)) = mr (fun i => nH P (v i)) - nH P u).
  { unfold mr. rewrite (lsum_ext C (fun i => nH P (v i - u)) (fun i => nH P (v i) + ((-2) * dot (P u) (v i) + nH P u))).
    - rewrite !lsum_plus, lsum_scal. assert (x := mc_dot (P u) v). fold u in x. unfold mr in x. assert (y := mr_const (nH P u)). unfold mr in y. rewrite (l_sym _ _ hp) in x. fold (nH P u) in x. rewrite !Rmult_plus_distr_l, y. lra.
    - intros i _. unfold nH. rewrite (form_sub _ _ hp), (dotC (P u)). ring. }
  lra.
Qed.
Lemma mc_nrm2 v : nrm2 (mc v) <= mr (fun i => nrm2 (v i)).
Proof. unfold mc. rewrite nrm2_scal. assert (h := Family.nrm2_pick v C). rewrite Cm in h. apply (Rmult_le_compat_l (/ INR m * / INR m)) in h; [|pos]. eapply Rle_trans; [exact h|]. right. unfold mr. field. lra. Qed.
Lemma A_mc o v : A o (mc v) = mc (fun i => A o (v i)).
Proof.
  unfold mc. rewrite A_scal. f_equal. clear Cm CN Cd. induction C as [|i l IH].
  - change (A o v0 = v0). replace v0 with (0 *: v0)%V at 1 by vring. rewrite A_scal. vring.
  - rewrite !pick_cons, A_add, IH. reflexivity.
Qed.
Definition gC : vec := mc (fun i => g i w).
Definition U1 := S1 A gC (fun s => mc (fun i => nn s i)).
Definition U2 := @S2 S O A (fun h => mc (fun i => dlt i h)).
Definition U3 := @S3 S O (fun h s o => mc (fun i => ep w h s o i)).
Lemma next_sum h : (next w (C, h) - w = - eta *: (U1 h + (U2 h + U3 h)))%V.
Proof.
  unfold next. cbn [fst snd]. replace (w + / INR m *: pick (fun i => loc w i h - w)%V C - w)%V with (mc (fun i => loc w i h - w)%V) by (unfold mc; vring).
  unfold mc at 1. rewrite (Family.pick_ext _ (fun i => - eta *: (T1 i h + (T2 i h + T3 i h)))%V) by (intros; apply loc_sum). rewrite Family.pick_scal, !Family.pick_plus.
  assert (e1 : U1 h = mc (fun i => T1 i h)).
  { unfold U1, T1, S1. induction h as [|[s o] h IH]; cbn [pvsum fst snd]; [unfold mc; rewrite Family.pick_const; vring|]. rewrite IH, mc_plus. f_equal. unfold gC. rewrite <- mc_plus, A_mc. reflexivity. }
  assert (e2 : U2 h = mc (fun i => T2 i h)).
  { unfold U2, T2, S2. clear e1. induction h as [|[s o] h IH]; cbn [pvsum fst snd]; [unfold mc; rewrite Family.pick_const; vring|]. rewrite IH, mc_plus. f_equal. apply A_mc. }
  assert (e3 : U3 h = mc (fun i => T3 i h)).
  { unfold U3, T3, S3. clear e1 e2. induction h as [|[s o] h IH]; cbn [pvsum fst snd]; [unfold mc; rewrite Family.pick_const; vring|]. rewrite IH, mc_plus. reflexivity. }
  rewrite e1, e2, e3. unfold mc. vring.
Qed.
Lemma nC_mean0 h u : ker w h (fun s => dot u (mc (fun i => nn s i))) = 0.
Proof.
  rewrite (ex_ext (ker w h) _ (fun s => / INR m * lsum C (fun i => dot u (nn s i)))) by (intros; apply mc_dot). rewrite ex_scal, (Family.ex_lsum (ker w h) C (fun i s => dot u (nn s i))).
  rewrite (lsum_ext C _ (fun _ => 0 * 1)) by (intros i hi; rewrite nn_mean0 by auto; ring). rewrite lsum_scal. ring.
Qed.
Lemma nC_var h : ker w h (fun s => nrm2 (mc (fun i => nn s i))) <= sigma ^ 2 / INR m.
Proof.
  rewrite (ex_ext (ker w h) _ (fun s => / INR m * / INR m * nrm2 (pick (fun i => nn s i) C))) by (intros; apply nrm2_scal). rewrite ex_scal.
  assert (q : ker w h (fun s => nrm2 (pick (fun i => nn s i) C)) = lsum C (fun i => ker w h (fun s => nrm2 (nn s i)))).
  { clear Cm. induction Cd as [|i l ni nd IH].
    - cbn. rewrite (ex_ext _ _ (fun _ => 0)) by (intros; apply nrm2_0). apply ex_const.
    - cbn [lsum fold_right]. fold (lsum l (fun i => ker w h (fun s => nrm2 (nn s i)))). rewrite <- IH by (try (intros; apply CN; now right); exact nd).
      rewrite (ex_ext (ker w h) _ (fun s => nrm2 (nn s i) + (2 * lsum l (fun j => dot (nn s i) (nn s j)) + nrm2 (pick (fun i => nn s i) l)))).
      + rewrite !ex_plus, ex_scal, (Family.ex_lsum (ker w h) l (fun j s => dot (nn s i) (nn s j))). rewrite (lsum_ext l _ (fun _ => 0 * 1)).
        * rewrite lsum_scal. ring.
        * intros j hj. rewrite nn_clients; [ring|apply CN; now left|apply CN; now right|]. intros ->. contradiction.
      + intros s. rewrite pick_cons, nrm2_add, Family.dot_pick. ring. }
  rewrite q. assert (b : lsum C (fun i => ker w h (fun s => nrm2 (nn s i))) <= INR m * sigma ^ 2).
  { assert (e : lsum C (fun _ => sigma ^ 2) = INR m * sigma ^ 2) by (assert (y := mr_const (sigma ^ 2)); unfold mr in y; apply (Rmult_eq_reg_l (/ INR m)); [rewrite y; field; lra|apply Rinv_neq_0_compat; lra]).
    rewrite <- e. apply Family.lsum_le; intros; now apply nn_var, CN. }
  apply (Rmult_le_compat_l (/ INR m * / INR m)) in b; [|pos]. eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Definition QC : R := mr Q_.
Definition dC h : vec := mc (fun i => dlt i h).
Lemma dC_le : sum K (fun k => pk k (fun h => nrm2 (dC h))) <= INR K * (L * QC).
Proof.
  apply Rle_trans with (sum K (fun k => mr (fun i => L * pk k (e_ i)))).
  - apply sum_le; intros k _. unfold mr. rewrite (lsum_ext C _ (fun i => pk k (fun h => L * e_ i h))) by (intros; now rewrite <- ex_scal). rewrite <- (Family.ex_lsum (pk k) C (fun i h => L * e_ i h)), <- ex_scal. apply ex_le; intros h.
    eapply Rle_trans; [apply mc_nrm2|]. apply mr_le; intros i hi. now apply dlt_le, CN.
  - right. unfold QC, mr, Q_. rewrite sum_scal. rewrite lsum_scal. assert (e : sum K (fun k => lsum C (fun i => L * pk k (e_ i))) = L * lsum C (fun i => sum K (fun k => pk k (e_ i)))).
    { rewrite <- lsum_scal. clear Cm CN Cd. induction C as [|i l IH]; [cbn; rewrite sum_const; ring|]. cbn [lsum fold_right]. fold (lsum l (fun i => L * sum K (fun k => pk k (e_ i)))). rewrite <- IH, sum_plus, sum_scal. reflexivity. }
    rewrite e. field. lra.
Qed.
(* 9.1 and the curvature, given C *)
Lemma slope_C : pk K (fun h => dot (G w) (next w (C, h) - w)) <= - te * dot (G w) gC + te / 4 * nrm2 (G w) + 2 * te * (L * QC) + 2 * te * b2.
Proof.
  assert (Sg : forall k, pk k (fun h => dot (G w) (U2 h + U3 h)) = sum k (fun j => pk j (fun h => dot (G w) (dC h) + ker w h (fun s => dot (G w) (mc (fun i => be w h s i)))))).
  { induction k. { unfold U2, U3, S2, S3. unfold pk. cbn [path ex dirac sum]. cbn [pvsum]. replace (v0 + v0)%V with v0 by vring. apply dot_0r. }
    unfold pk at 1. rewrite path_S, sum_S. change (path (kk (ker w) dirs) k) with (pk k). rewrite <- IHk, <- ex_plus. apply ex_ext; intros h. unfold kk. cbn [bind ex]. unfold U2, U3, S2, S3. cbn [pvsum fst snd].
    set (P1 := pvsum _ h). set (P2 := pvsum _ h). rewrite (ex_ext (ker w h) _ (fun s => dot (G w) (P1 + P2) + (dot (G w) (dC h) + dot (G w) (mc (fun i => be w h s i))))); [rewrite !ex_plus, !ex_const; reflexivity|].
    intros s. rewrite (ex_ext dirs _ (fun o => dot (G w) (P1 + P2) + (dot (G w) (A o (dC h)) + dot (G w) (mc (fun i => ep w h s o i))))) by (intros; rewrite !dot_addr; unfold dC; ring). rewrite !ex_plus, ex_const, A_mean1. f_equal. f_equal.
    rewrite (ex_ext dirs _ (fun o => / INR m * lsum C (fun i => dot (G w) (ep w h s o i)))) by (intros; apply mc_dot). rewrite ex_scal, (Family.ex_lsum dirs C (fun i o => dot (G w) (ep w h s o i))), mc_dot. unfold mr. f_equal. apply lsum_ext; intros i hi. now apply ep_mean, CN. }
  rewrite (ex_ext (pk K) _ (fun h => - eta * dot (G w) (U1 h) + - eta * dot (G w) (U2 h + U3 h))) by (intros; rewrite next_sum, dot_scalr, dot_addr; ring).
  assert (sm := S1_mean (ker w) dirs A A_mean1 gC (fun s => mc (fun i => nn s i)) nC_mean0 K (G w)). change (pk K (fun h => dot (G w) (U1 h)) = INR K * dot (G w) gC) in sm.
  rewrite ex_plus, !ex_scal, Sg, sm.
  assert (b : - sum K (fun j => pk j (fun h => dot (G w) (dC h) + ker w h (fun s => dot (G w) (mc (fun i => be w h s i))))) <= sum K (fun j => pk j (fun h => 1/4 * nrm2 (G w) + (2 * nrm2 (dC h) + 2 * b2)))).
  { replace (- sum K (fun j => pk j (fun h => dot (G w) (dC h) + ker w h (fun s => dot (G w) (mc (fun i => be w h s i)))))) with (sum K (fun j => (-1) * pk j (fun h => dot (G w) (dC h) + ker w h (fun s => dot (G w) (mc (fun i => be w h s i)))))) by (rewrite sum_scal; ring).
    apply sum_le; intros j _. rewrite <- ex_scal. apply ex_le; intros h.
    assert (half : forall v : vec, - dot (G w) v <= 1/8 * nrm2 (G w) + 2 * nrm2 v) by (intros v; assert (q := nrm2_ge0 ((1/4) *: G w + v)); rewrite nrm2_add, nrm2_scal, dot_scall in q; lra).
    assert (x := half (dC h)). assert (y : - ker w h (fun s => dot (G w) (mc (fun i => be w h s i))) <= 1/8 * nrm2 (G w) + 2 * b2); [|lra].
    replace (- ker w h (fun s => dot (G w) (mc (fun i => be w h s i)))) with (ker w h (fun s => (-1) * dot (G w) (mc (fun i => be w h s i)))) by (rewrite ex_scal; ring).
    rewrite <- (ex_const (ker w h) (1/8 * nrm2 (G w) + 2 * b2)). apply ex_le; intros s. assert (z := half (mc (fun i => be w h s i))). assert (bb : nrm2 (mc (fun i => be w h s i)) <= b2) by (eapply Rle_trans; [apply mc_nrm2|]; rewrite <- (mr_const b2); apply mr_le; intros; now apply be_le, CN). lra. }
  apply (Rmult_le_compat_l eta) in b; [|lra]. rewrite (sum_ext K (fun j => pk j (fun h => 1/4 * nrm2 (G w) + (2 * nrm2 (dC h) + 2 * b2))) (fun j => (1/4 * nrm2 (G w) + 2 * b2) + 2 * pk j (fun h => nrm2 (dC h)))) in b by (intros; rewrite !ex_plus, !ex_const, ex_scal; ring).
  rewrite sum_plus, sum_const, sum_scal in b. assert (d := dC_le). apply (Rmult_le_compat_l (2 * eta)) in d; [|lra]. unfold te. lra.
Qed.
Lemma curve_C : pk K (fun h => nH Hw (U1 h)) <= L * (INR K ^ 2 * th * nrm2 gC + INR K * cc * (sigma ^ 2 / INR m)) /\
  pk K (fun h => nH Hw (U2 h + U3 h)) <= L * (4 * INR K ^ 2 * th * (L * QC) + 4 * INR K ^ 2 * bth) /\
  1/2 * pk K (fun h => nH Hw (next w (C, h) - w)) <= L * te ^ 2 * (th * nrm2 gC + cc * sigma ^ 2 / (INR m * INR K) + 4 * th * (L * QC) + 4 * bth).
Proof.
  assert (e2 := pow2_ge_0 eta). assert (l0 := Rlt_le _ _ L0).
  assert (q1 := step_7_1 Hw L a HHw l0 a0 (ker w) dirs A A_mean1 (A_size w) gC (fun s => mc (fun i => nn s i)) (sigma ^ 2 / INR m) nC_mean0 nC_var K).
  assert (q2 := step_7_2 Hw L a HHw l0 (ker w) dirs A A_mean1 (A_var w) dC K).
  assert (q3 := step_7_3 Hw L a HHw l0 (ker w) dirs (fun h s o => mc (fun i => ep w h s o i)) (fun h s => mc (fun i => be w h s i)) b2 t2).
  assert (p1 : forall h s u, dirs (fun o => dot u (mc (fun i => ep w h s o i))) = dot u (mc (fun i => be w h s i))).
  { intros h s u. rewrite (ex_ext dirs _ (fun o => / INR m * lsum C (fun i => dot u (ep w h s o i)))) by (intros; apply mc_dot). rewrite ex_scal, (Family.ex_lsum dirs C (fun i o => dot u (ep w h s o i))), mc_dot. unfold mr. f_equal. apply lsum_ext; intros i hi. now apply ep_mean, CN. }
  assert (p2 : forall h s, nrm2 (mc (fun i => be w h s i)) <= b2) by (intros h s; eapply Rle_trans; [apply mc_nrm2|]; rewrite <- (mr_const b2); apply mr_le; intros; now apply be_le, CN).
  assert (p3 : forall h s, dirs (fun o => nH Hw (mc (fun i => ep w h s o i) - mc (fun i => be w h s i))) <= a * L * t2).
  { intros h s. apply Rle_trans with (dirs (fun o => mr (fun i => nH Hw (ep w h s o i - be w h s i)))).
    - apply ex_le; intros o. replace (mc (fun i => ep w h s o i) - mc (fun i => be w h s i))%V with (mc (fun i => ep w h s o i - be w h s i)%V).
      + now apply mc_nH.
      + unfold mc. rewrite (Family.pick_ext (fun i => ep w h s o i - be w h s i)%V (fun i => ep w h s o i + (-1) *: be w h s i)%V C) by (intros; vring). rewrite Family.pick_plus, (Family.pick_scal (-1)). change (fun i => ep w h s o i) with (ep w h s o). change (fun i => be w h s i) with (be w h s). vring.
    - unfold mr. rewrite ex_scal, (Family.ex_lsum dirs C (fun i o => nH Hw (ep w h s o i - be w h s i))). rewrite <- (mr_const (a * L * t2)). apply mr_le; intros; now apply ep_var, CN. }
  specialize (q3 p1 p2 p3 K b0). assert (d := dC_le).
  assert (u1 : pk K (fun h => nH Hw (U1 h)) <= L * (INR K ^ 2 * th * nrm2 gC + INR K * cc * (sigma ^ 2 / INR m))).
  { eapply Rle_trans; [exact q1|]. right. unfold th, cc. field. lra. }
  assert (u2 : pk K (fun h => nH Hw (U2 h + U3 h)) <= L * (4 * INR K ^ 2 * th * (L * QC) + 4 * INR K ^ 2 * bth)).
  { apply Rle_trans with (pk K (fun h => 2 * nH Hw (U2 h) + 2 * nH Hw (U3 h))); [apply ex_le; intros h; apply (nH_two Hw L HHw)|]. rewrite ex_plus, !ex_scal.
    change (fun j => path (kk (ker w) dirs) j (fun h => nrm2 (dC h))) with (fun j => pk j (fun h => nrm2 (dC h))) in q2.
    apply (Rmult_le_compat_l (INR K + a)) in d; [|lra]. apply (Rmult_le_compat_l (4 * L)) in d; [|lra].
    replace (L * (4 * INR K ^ 2 * th * (L * QC) + 4 * INR K ^ 2 * bth)) with (4 * L * ((INR K + a) * (INR K * (L * QC))) + 4 * L * (INR K ^ 2 * b2 + INR K * a * t2)) by (unfold th, bth; field; lra).
    unfold U2, U3, pk in *. fold dC. change (fun h : list (S * O) => mc (fun i => dlt i h)) with dC. lra. }
  split; [exact u1|]. split; [exact u2|].
  apply Rle_trans with (pk K (fun h => eta ^ 2 * nH Hw (U1 h) + eta ^ 2 * nH Hw (U2 h + U3 h))).
  - rewrite <- ex_scal. apply ex_le; intros h. rewrite next_sum, nH_scal. assert (x := nH_two Hw L HHw (U1 h) (U2 h + U3 h)%V). apply (Rmult_le_compat_l (eta ^ 2)) in x; auto. lra.
  - rewrite ex_plus, !ex_scal. apply (Rmult_le_compat_l (eta ^ 2)) in u1; auto. apply (Rmult_le_compat_l (eta ^ 2)) in u2; auto.
    replace (L * te ^ 2 * (th * nrm2 gC + cc * sigma ^ 2 / (INR m * INR K) + 4 * th * (L * QC) + 4 * bth))
      with (eta ^ 2 * (L * (INR K ^ 2 * th * nrm2 gC + INR K * cc * (sigma ^ 2 / INR m))) + eta ^ 2 * (L * (4 * INR K ^ 2 * th * (L * QC) + 4 * INR K ^ 2 * bth))) by (unfold te; field; lra). lra.
Qed.
End Clients.
End Round.
(* drawn clients *)
Lemma sample_dot u (v : nat -> vec) : Family.lsets N m mN (fun C => dot u (mc C v)) = / INR N * sum N (fun i => dot u (v i)).
Proof. rewrite <- (Family.lsets_mean N m mN (fun i => dot u (v i)) m1). apply ex_ext; intros C. unfold mc. now rewrite dot_scalr, Family.dot_pick. Qed.
Lemma step_8_3 w : Family.lsets N m mN (fun C => mr C (fun i => nrm2 (g i w))) <= nrm2 (G w) + sg2 /\
  Family.lsets N m mN (fun C => nrm2 (gC w C)) <= nrm2 (G w) + gamm * sg2 / INR m.
Proof.
  set (V := / INR N * sum N (fun i => nrm2 (g i w - G w))). assert (Vs : V <= sg2) by apply spread.
  assert (eV : / INR N * sum N (fun i => nrm2 (g i w)) = nrm2 (G w) + V).
  { unfold V. rewrite (sum_ext N (fun i => nrm2 (g i w - G w)) (fun i => nrm2 (g i w) + ((-2) * dot (g i w) (G w) + nrm2 (G w)))) by (intros; rewrite nrm2_sub; ring). rewrite !sum_plus, sum_scal, sum_const, <- dot_suml.
    assert (e : / INR N * dot (vsum N (fun i => g i w)) (G w) = nrm2 (G w)) by (rewrite <- dot_scall; reflexivity). replace (dot (vsum N (fun i => g i w)) (G w)) with (INR N * nrm2 (G w)) by (rewrite <- e; field; lra). field. lra. }
  split.
  - unfold mr. rewrite (Family.lsets_mean N m mN (fun i => nrm2 (g i w)) m1), eV. lra.
  - assert (lx : forall u v, (forall C, In C (subsets N m) -> u C = v C) -> Family.lsets N m mN u = Family.lsets N m mN v).
    { intros u v k. apply Rle_antisym; apply (Family.lsets_le N m mN); intros C hC; rewrite k; auto; lra. }
    assert (var : Family.lsets N m mN (fun C => nrm2 (gC w C - G w)) <= gamm * sg2 / INR m).
    { destruct (Nat.eq_dec N 1) as [e1|ne].
      - assert (em : m = 1%nat) by lia. rewrite (lx _ (fun _ => 0)).
        + rewrite ex_const. unfold gamm. rewrite e1, em. simpl INR. unfold Rdiv. rewrite Rminus_diag_eq by reflexivity. lra.
        + intros C hC. unfold gC, mc. rewrite (Family.pick_ext _ (fun _ => g 0%nat w)).
          * rewrite Family.pick_const, (subsets_length _ _ _ hC). replace (/ INR m *: (INR m *: g 0%nat w) - G w)%V with v0; [apply nrm2_0|]. unfold G. rewrite e1. apply functional_extensionality; intros j. unfold vsub, vscal, vsum, v0. cbn [sum]. simpl INR. field. lra.
          * intros i hi. apply (subsets_below _ _ _ _ hC) in hi. replace i with 0%nat by lia. reflexivity.
      - assert (h := sampling_variance N m (fun i => g i w) ltac:(lia) ltac:(lia)). cbv zeta in h. fold (G w) in h. change (Esets N m (fun A0 => nrm2 (/ INR m *: pick (fun i => g i w) A0 - G w))) with (Family.lsets N m mN (fun C => nrm2 (gC w C - G w))) in h.
        rewrite h. fold V. assert (n2 : 2 <= INR N) by (apply (le_INR 2); lia). assert (mn : INR m <= INR N) by now apply le_INR.
        replace ((INR N - INR m) / (INR m * (INR N - 1)) * V) with (gamm / INR m * V) by (unfold gamm; field; lra). replace (gamm * sg2 / INR m) with (gamm / INR m * sg2) by (field; lra). apply Rmult_le_compat_l; auto.
        unfold gamm, Rdiv. assert (0 < / (INR N - 1)) by (apply Rinv_0_lt_compat; lra). pos. }
    rewrite (ex_ext (Family.lsets N m mN) _ (fun C => nrm2 (gC w C - G w) + (2 * dot (G w) (gC w C) + - nrm2 (G w)))) by (intros C; rewrite nrm2_sub, (dotC (gC w C)); ring).
    rewrite !ex_plus, ex_const, ex_scal. unfold gC at 2. rewrite sample_dot. assert (e : / INR N * sum N (fun i => dot (G w) (g i w)) = nrm2 (G w)) by (transitivity (dot (G w) (/ INR N *: vsum N (fun i => g i w))); [rewrite dot_scalr, dot_sumr; reflexivity|reflexivity]). rewrite e. lra.
Qed.
Lemma step_8_5 w : (forall i, (i < N)%nat -> Q_ w i <= 8/7 * (1 - / INR K) * L * te ^ 2 * (th * nrm2 (g i w) + cc * sigma ^ 2 / INR K + 4 * bth)) /\
  L * Family.lsets N m mN (QC w) <= 8/7 * (1 - / INR K) * hh ^ 2 * (th * (nrm2 (G w) + sg2) + cc * sigma ^ 2 / INR K + 4 * bth).
Proof.
  split; [intros; now apply drift|]. destruct (step_8_3 w) as [r1 _]. assert (l0 := Rlt_le _ _ L0).
  assert (uK : 0 <= 1 - / INR K) by (assert (/ INR K <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra); lra).
  set (qf := 8/7 * (1 - / INR K) * L * te ^ 2). assert (qf0 : 0 <= qf) by (unfold qf; assert (y := pow2_ge_0 te); pos).
  set (cst := cc * sigma ^ 2 / INR K + 4 * bth).
  assert (q : Family.lsets N m mN (QC w) <= Family.lsets N m mN (fun C => qf * cst + qf * th * mr C (fun i => nrm2 (g i w)))).
  { apply (Family.lsets_le N m mN); intros C hC. unfold QC. apply Rle_trans with (mr C (fun i => qf * cst + qf * th * nrm2 (g i w))).
    - apply (mr_le C); intros i hi. eapply Rle_trans; [apply drift, (subsets_below _ _ _ _ hC hi)|]. right. unfold qf, cst. ring.
    - right. now rewrite (mr_lin C), (mr_const C (subsets_length _ _ _ hC)). }
  rewrite ex_plus, !ex_scal, ex_const in q. apply (Rmult_le_compat_l (qf * th)) in r1; [|assert (0 <= th) by lra; pos].
  assert (b := Rle_trans _ _ _ q (Rplus_le_compat_l (qf * cst) _ _ r1)). apply (Rmult_le_compat_l L) in b; auto.
  eapply Rle_trans; [exact b|]. right. unfold qf, cst, hh. ring.
Qed.
Lemma favg_below w s : Favg (w + s)%V <= Favg w + dot (G w) s + 1/2 * nH (H w) s.
Proof.
  unfold Favg. apply Rle_trans with (/ INR N * sum N (fun i => f i w + dot (g i w) s + 1/2 * nH (H w) s)).
  - apply Rmult_le_compat_l; auto. apply sum_le; intros i hi. assert (q := step_5_2 (H w) L (HH w) (f i) (g i) (grad i hi) (fun x s u => rank w i x s u hi) w s). apply abs_le in q. lra.
  - right. rewrite !sum_plus, sum_const, <- dot_suml. unfold G. rewrite dot_scall. field. lra.
Qed.
(* 9.1, in the mean over the drawn clients; LQ is the drift of section 8 *)
Lemma step_9_1 w : kround w (fun x => dot (G w) (next w x - w)) <= - (3/4) * te * nrm2 (G w) + 2 * te * (L * Family.lsets N m mN (QC w)) + 2 * te * b2.
Proof.
  unfold kround. cbn [bind ex]. apply Rle_trans with (Family.lsets N m mN (fun C => - te * dot (G w) (gC w C) + (2 * te * L * QC w C + (te / 4 * nrm2 (G w) + 2 * te * b2)))).
  - apply (Family.lsets_le N m mN); intros C hC. assert (q := slope_C w C (subsets_length _ _ _ hC) (fun i => subsets_below N m C i hC)). lra.
  - rewrite !ex_plus, !ex_scal, !ex_const. assert (sd : Family.lsets N m mN (fun C => dot (G w) (gC w C)) = nrm2 (G w)).
    { unfold gC. rewrite sample_dot. transitivity (dot (G w) (/ INR N *: vsum N (fun i => g i w))); [rewrite dot_scalr, dot_sumr; reflexivity|reflexivity]. }
    rewrite sd. right. change (Family.lsets N m mN (fun w0 : list nat => QC w w0)) with (Family.lsets N m mN (QC w)). field.
Qed.
Lemma step_9_6 w : (forall C, In C (subsets N m) -> let E := path (kk (ker w) dirs) K in
    E (fun h => nH (H w) (U1 w C h)) <= L * (INR K ^ 2 * th * nrm2 (gC w C) + INR K * cc * (sigma ^ 2 / INR m)) /\
    E (fun h => nH (H w) (U2 w C h + U3 w C h)) <= L * (4 * INR K ^ 2 * th * (L * QC w C) + 4 * INR K ^ 2 * bth)) /\
  (forall x, Favg (next w x) <= Favg w + dot (G w) (next w x - w) + 1/2 * nH (H w) (next w x - w)) /\
  kround w (fun x => 1/2 * nH (H w) (next w x - w))
    <= L * te ^ 2 * (th * nrm2 (G w) + th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K) + 4 * th * (L * Family.lsets N m mN (QC w)) + 4 * bth).
Proof.
  assert (c : forall C, In C (subsets N m) -> _) by (intros C hC; exact (curve_C w C (subsets_length _ _ _ hC) (fun i => subsets_below N m C i hC) (subsets_nodup _ _ _ hC))).
  split; [intros C hC E; destruct (c C hC) as [u1 [u2 _]]; now split|]. split.
  { intros x. assert (q := favg_below w (next w x - w)%V). now replace (w + (next w x - w))%V with (next w x) in q by vring. }
  destruct (step_8_3 w) as [_ r2]. assert (k1 : 0 <= L * te ^ 2 * th) by (assert (y := pow2_ge_0 te); assert (0 <= th) by lra; assert (l0 := Rlt_le _ _ L0); pos). apply (Rmult_le_compat_l _ _ _ k1) in r2.
  unfold kround. cbn [bind ex]. apply Rle_trans with (Family.lsets N m mN (fun C => L * te ^ 2 * (cc * sigma ^ 2 / (INR m * INR K) + 4 * bth) + (L * te ^ 2 * th * nrm2 (gC w C) + L * te ^ 2 * (4 * th * L) * QC w C))).
  - apply (Family.lsets_le N m mN); intros C hC. destruct (c C hC) as [_ [_ u]]. rewrite ex_scal. lra.
  - rewrite !ex_plus, !ex_scal, ex_const. change (Family.lsets N m mN (fun C => QC w C)) with (Family.lsets N m mN (QC w)). unfold Rdiv in *. lra.
Qed.
Lemma step_9_7 w : kround w (fun x => Favg (next w x)) <= Favg w - 3/4 * te * nrm2 (G w) + te * (2 + 4 * hh * th) * (L * Family.lsets N m mN (QC w)) + 2 * te * b2
    + L * te ^ 2 * (th * nrm2 (G w) + th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K) + 4 * bth) /\
  kround w (fun x => Favg (next w x)) <= Favg w - te / 2 * nrm2 (G w) + L * te ^ 2 * (th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K))
    + 3 * (1 - / INR K) * L ^ 2 * te ^ 3 * (th * sg2 + cc * sigma ^ 2 / INR K) + te * (3 * b2 + 11/2 * L * eta * a * t2).
Proof.
  assert (l0 := Rlt_le _ _ L0). assert (tt := Rlt_le _ _ te0). destruct (step_9_6 w) as [_ [below curve]].
  assert (first : kround w (fun x => Favg (next w x)) <= Favg w - 3/4 * te * nrm2 (G w) + te * (2 + 4 * hh * th) * (L * Family.lsets N m mN (QC w)) + 2 * te * b2
    + L * te ^ 2 * (th * nrm2 (G w) + th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K) + 4 * bth)).
  { eapply Rle_trans; [apply (ex_le (kround w) _ (fun x => Favg w + (dot (G w) (next w x - w) + 1/2 * nH (H w) (next w x - w)))); intros x; assert (q := below x); lra|].
    rewrite !ex_plus, ex_const. assert (s := step_9_1 w). unfold hh. lra. }
  split; [exact first|]. eapply Rle_trans; [exact first|]. destruct (step_8_5 w) as [_ q].
  assert (uK : 0 <= 1 - / INR K <= 1) by (split; [assert (/ INR K <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra); lra|assert (x := Rinv_0_lt_compat _ K0); lra]).
  assert (hs : hh * th <= 1/8) by (unfold hh; lra). assert (s92 := step_9_2 hh th hh0 th1 hs). assert (s93 := step_9_3 hh th hh0 th1 hs).
  destruct (step_9_4 hh th b2 t2 (a / INR K) (L * eta * a) hh0 th1 hs b0 t0 ltac:(unfold Rdiv; pos) eq_refl ltac:(unfold hh, te; field; lra)) as [s94 _]. fold bth in s94.
  assert (n0 := nrm2_ge0 (G w)). assert (s20 := pow2_ge_0 sigma). assert (sgp : 0 <= sg2) by (eapply Rle_trans; [|apply (spread w)]; apply Rmult_le_pos; auto; apply sum_ge0; intros; apply nrm2_ge0).
  set (LQ := L * Family.lsets N m mN (QC w)) in *. set (u := 1 - / INR K) in *. set (Z1 := th * sg2 + cc * sigma ^ 2 / INR K). set (n := nrm2 (G w)) in *. assert (th0 : 0 <= th) by lra. assert (h0 : 0 <= hh) by lra.
  assert (Z0 : 0 <= Z1) by (unfold Z1, cc, Rdiv; apply Rplus_le_le_0_compat; pos). assert (y := pow2_ge_0 hh). assert (ht0 : 0 <= hh * th) by pos. set (kp := (2 + 4 * hh * th) * (8/7)) in *. assert (kp0 : 0 <= kp) by (unfold kp; lra).
  assert (x1 := Rmult_le_compat_l (te * n) _ _ ltac:(pos) s92). assert (x2 := Rmult_le_compat_l (te * u * hh ^ 2 * Z1) _ _ ltac:(destruct uK; pos) s93). assert (x3 := Rmult_le_compat_l te _ _ tt s94).
  assert (w1 : te * (2 + 4 * hh * th) * LQ <= te * u * hh ^ 2 * Z1 * kp + te * (kp * hh ^ 2) * (th * n + 4 * bth)).
  { assert (k0 : 0 <= te * (2 + 4 * hh * th)) by (apply Rmult_le_pos; lra). apply (Rmult_le_compat_l _ _ _ k0) in q. eapply Rle_trans; [exact q|].
    replace (te * (2 + 4 * hh * th) * (8/7 * u * hh ^ 2 * (th * (n + sg2) + cc * sigma ^ 2 / INR K + 4 * bth))) with (te * u * hh ^ 2 * Z1 * kp + u * (te * (kp * hh ^ 2) * (th * n + 4 * bth))) by (unfold kp, Z1; field; lra).
    (* 1 for 1 - 1/K before |g|^2 and b *)
    assert (w0 : 0 <= te * (kp * hh ^ 2) * (th * n + 4 * bth)) by (apply Rmult_le_pos; [pos|apply Rplus_le_le_0_compat; pos]). assert (0 <= (1 - u) * (te * (kp * hh ^ 2) * (th * n + 4 * bth))) by (apply Rmult_le_pos; lra). lra. }
  replace (te * (3 * b2 + 11/2 * L * eta * a * t2)) with (te * (3 * b2 + 11/2 * hh * (a / INR K) * t2)) by (unfold hh, te; field; lra).
  replace (L * te ^ 2 * (th * n + th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K) + 4 * bth)) with (te * (hh * th) * n + te * (4 * hh * bth) + L * te ^ 2 * (th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K))) by (unfold hh; field; lra).
  replace (3 * u * L ^ 2 * te ^ 3 * Z1) with (te * u * hh ^ 2 * Z1 * 3) by (unfold hh; ring). lra.
Qed.
Theorem k_steps w0 R_ : (0 < R_)%nat -> / INR R_ * sum R_ (fun t => Eit kround next t (fun w => nrm2 (G w)) w0)
  <= 2 * (Favg w0 - fstar) / (te * INR R_) + 2 * L * te * (th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K))
    + 6 * (1 - / INR K) * L ^ 2 * te ^ 2 * (th * sg2 + cc * sigma ^ 2 / INR K) + (6 * b2 + 11 * L * eta * a * t2).
Proof.
  intros R0%lt_0_INR. set (add := L * te ^ 2 * (th * (gamm * sg2) / INR m + cc * sigma ^ 2 / (INR m * INR K)) + 3 * (1 - / INR K) * L ^ 2 * te ^ 3 * (th * sg2 + cc * sigma ^ 2 / INR K) + te * (3 * b2 + 11/2 * L * eta * a * t2)).
  assert (h := telescope kround next (fun _ => True) (fun w => Favg w - fstar) (fun w => te / 2 * nrm2 (G w)) add (fun _ _ _ => I)).
  specialize (h (fun w _ => ltac:(rewrite (ex_ext (kround w) _ (fun x => Favg (next w x) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := proj2 (step_9_7 w)); unfold add; lra)) (fun w => ltac:(assert (b := bounded w); lra)) R_ w0 I).
  rewrite (sum_ext R_ _ (fun t => te / 2 * Eit kround next t (fun w => nrm2 (G w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 2 / (te * INR R_)) by (apply Rdiv_lt_0_compat; [lra|]; now apply Rmult_lt_0_compat). apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (2 / (te * INR R_) * (te / 2 * sum R_ (fun t => Eit kround next t (fun w => nrm2 (G w)) w0))) with (/ INR R_ * sum R_ (fun t => Eit kround next t (fun w => nrm2 (G w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. unfold add. field. lra.
Qed.
End KSteps.
(* 10.1, with the cube root of FedSub's page *)
Lemma step_10_1 th L D_ R_ N V : 0 < th -> 0 < L -> 0 < D_ -> 0 < R_ -> 0 < N -> 0 < V ->
  let cr := Fedsub.cbrt in let te := Rmin (/ (8 * L * th)) (Rmin (/ N * sqrt (D_ / (L * R_))) (cr (D_ / (3 * L ^ 2 * R_ * V)))) in
  / te <= 8 * L * th + N * sqrt (L * R_ / D_) + cr (3 * L ^ 2 * R_ * V / D_) /\
  2 * D_ / (te * R_) + 2 * L * te * N ^ 2 + 6 * L ^ 2 * te ^ 2 * V <= 16 * th * L * D_ / R_ + 4 * N * sqrt (L * D_ / R_) + 6 * (cr V * cr (L * D_ / R_) ^ 2).
Proof.
  intros t0 l0 d0 r0 n0 v0 cr te. assert (l2 : 0 < L ^ 2) by (apply pow_lt; lra).
  assert (a0 : 0 < 8 * L * th) by (repeat apply Rmult_lt_0_compat; lra). assert (ia := Rinv_0_lt_compat _ a0).
  assert (q1 : 0 < D_ / (L * R_)) by (apply Rdiv_lt_0_compat; auto; now apply Rmult_lt_0_compat). set (s := sqrt (D_ / (L * R_))). assert (s0 : 0 < s) by now apply sqrt_lt_R0. assert (ss : s * s = D_ / (L * R_)) by (apply sqrt_def; lra).
  assert (q2 : 0 < D_ / (3 * L ^ 2 * R_ * V)) by (apply Rdiv_lt_0_compat; auto; repeat apply Rmult_lt_0_compat; lra). destruct (Fedsub.cbrt_spec _ q2) as [e0 e3]. fold cr in e0, e3. set (e := cr (D_ / (3 * L ^ 2 * R_ * V))) in *.
  assert (b0 : 0 < / N * s) by (apply Rmult_lt_0_compat; auto; now apply Rinv_0_lt_compat).
  assert (m0 : 0 < te) by (unfold te; fold s e; repeat apply Rmin_glb_lt; auto).
  assert (i1 : sqrt (L * R_ / D_) = / s). { assert (x : 0 < / s) by now apply Rinv_0_lt_compat. rewrite <- (sqrt_Rsqr (/ s)) by lra. f_equal. unfold Rsqr. replace (/ s * / s) with (/ (s * s)) by (field; lra). rewrite ss. field. lra. }
  assert (q3 : 0 < 3 * L ^ 2 * R_ * V / D_) by (apply Rdiv_lt_0_compat; auto; repeat apply Rmult_lt_0_compat; lra). destruct (Fedsub.cbrt_spec _ q3) as [f0 f3]. fold cr in f0, f3.
  assert (i2 : cr (3 * L ^ 2 * R_ * V / D_) = / e).
  { assert (x : 0 < / e) by now apply Rinv_0_lt_compat. assert (y : (/ e) ^ 3 = 3 * L ^ 2 * R_ * V / D_) by (replace ((/ e) ^ 3) with (/ e ^ 3) by (field; lra); rewrite e3; field; repeat split; lra). apply Rle_antisym; apply Fedsub.cube_le; try lra; rewrite f3, y; lra. }
  assert (inv_ : / te <= 8 * L * th + N * / s + / e).
  { assert (x1 : 0 < N * / s) by (apply Rmult_lt_0_compat; auto; now apply Rinv_0_lt_compat). assert (x2 : 0 < / e) by now apply Rinv_0_lt_compat. unfold te. fold s e.
    destruct (Rle_dec (/ (8 * L * th)) (Rmin (/ N * s) e)); [rewrite Rmin_left by lra; rewrite Rinv_inv; lra|]. rewrite Rmin_right by lra. destruct (Rle_dec (/ N * s) e); [rewrite Rmin_left by lra; replace (/ (/ N * s)) with (N * / s) by (field; lra); lra|rewrite Rmin_right by lra; lra]. }
  split; [rewrite i1, i2; exact inv_|].
  assert (ts : te <= / N * s) by (unfold te; fold s e; eapply Rle_trans; [apply Rmin_r|apply Rmin_l]). assert (tee : te <= e) by (unfold te; fold s e; eapply Rle_trans; [apply Rmin_r|apply Rmin_r]).
  assert (w : sqrt (L * D_ / R_) = L * s). { assert (x : 0 < L * s) by now apply Rmult_lt_0_compat. rewrite <- (sqrt_Rsqr (L * s)) by lra. f_equal. unfold Rsqr. replace (L * s * (L * s)) with (L ^ 2 * (s * s)) by ring. rewrite ss. field. lra. }
  assert (y1 := Rmult_le_compat_l (2 * D_ / R_) _ _ ltac:(apply Rlt_le, Rdiv_lt_0_compat; lra) inv_).
  assert (y2 := Rmult_le_compat_l (2 * L * N ^ 2) _ _ ltac:(assert (z := pow2_ge_0 N); assert (z2 := Rlt_le _ _ l0); pos) ts).
  assert (y3 : 6 * L ^ 2 * V * te ^ 2 <= 6 * L ^ 2 * V * e ^ 2) by (apply Rmult_le_compat_l; [assert (z := Rlt_le _ _ v0); pos|apply pow_incr; lra]).
  destruct (Fedsub.cbrt_spec V v0) as [c0 c3]. fold cr in c0, c3. assert (ld : 0 < L * D_ / R_) by (apply Rdiv_lt_0_compat; auto; now apply Rmult_lt_0_compat). destruct (Fedsub.cbrt_spec _ ld) as [g0 g3]. fold cr in g0, g3.
  assert (dv : 2 * D_ / R_ * / e = 6 * L ^ 2 * V * e ^ 2) by (assert (x : D_ = e ^ 3 * (3 * L ^ 2 * R_ * V)) by (rewrite e3; field; repeat split; lra); rewrite x; field; lra).
  assert (k : 12 * L ^ 2 * V * e ^ 2 <= 6 * (cr V * cr (L * D_ / R_) ^ 2)).
  { apply Fedsub.cube_le; [repeat apply Rmult_le_pos; try lra; apply pow2_ge_0|]. replace ((12 * L ^ 2 * V * e ^ 2) ^ 3) with (1728 * L ^ 6 * V ^ 3 * (e ^ 3) ^ 2) by ring. rewrite e3.
    replace ((6 * (cr V * cr (L * D_ / R_) ^ 2)) ^ 3) with (216 * (cr V ^ 3 * (cr (L * D_ / R_) ^ 3) ^ 2)) by ring. rewrite c3, g3.
    replace (1728 * L ^ 6 * V ^ 3 * (D_ / (3 * L ^ 2 * R_ * V)) ^ 2) with (192 * (V * (L * D_ / R_) ^ 2)) by (field; lra). assert (0 <= V * (L * D_ / R_) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]). lra. }
  replace (2 * D_ / (te * R_)) with (2 * D_ / R_ * / te) by (field; lra). rewrite w.
  assert (z1 : 2 * D_ / R_ * (N * / s) = 2 * N * (L * s)) by (replace (2 * D_ / R_ * (N * / s)) with (2 * N * (D_ / (L * R_)) * L * / s) by (field; lra); rewrite <- ss; field; lra).
  assert (z2 : 2 * L * N ^ 2 * (/ N * s) = 2 * N * (L * s)) by (field; lra). lra.
Qed.
(* 10.3: from which round on the second term can be the largest; w and s are the cube roots of V and of L D / R *)
Lemma step_10_3 th L D_ R_ N2 V w s : 0 <= th -> 0 < L -> 0 < D_ -> 0 < R_ -> 0 < N2 -> 0 <= w -> w ^ 3 = V -> 0 < s -> s ^ 3 = L * D_ / R_ ->
  let second := 4 * sqrt N2 * sqrt (L * D_ / R_) in
  (16 * th * L * D_ / R_ <= second -> 16 * th ^ 2 * L * D_ / N2 <= R_) /\
  (6 * w * s ^ 2 <= second -> (3/2) ^ 6 * V ^ 2 * L * D_ / N2 ^ 3 <= R_) /\
  (* with the m clients of a round *)
  (forall (m K g g1 G2 s2 c : R), 1 <= m -> 0 < K -> 0 <= g <= g1 -> 0 <= G2 -> 0 <= s2 -> 0 <= c -> let N2_ g m := th * g * G2 / m + c * s2 / (m * K) in 0 < N2_ g m ->
    m * (16 * th ^ 2 * L * D_ / N2_ g1 1) <= 16 * th ^ 2 * L * D_ / N2_ g m /\
    m ^ 3 * ((3/2) ^ 6 * V ^ 2 * L * D_ / N2_ g1 1 ^ 3) <= (3/2) ^ 6 * V ^ 2 * L * D_ / N2_ g m ^ 3 /\
    (1 <= K -> 0 < (1 - / K) * (th * G2 + c * s2 / K) -> 1 < K)).
Proof.
  intros t0 L0 D0 R0 n0 w0 eV s0 es second. set (y := L * D_ / R_) in *. assert (y0 : 0 < y) by (rewrite <- es; now apply pow_lt).
  assert (sec2 : second * second = 16 * N2 * y).
  { unfold second. replace (4 * sqrt N2 * sqrt y * (4 * sqrt N2 * sqrt y)) with (16 * (sqrt N2 * sqrt N2) * (sqrt y * sqrt y)) by ring. rewrite !sqrt_def by lra. reflexivity. }
  assert (sp : 0 <= second) by (unfold second; assert (a := sqrt_pos N2); assert (b := sqrt_pos y); pos).
  assert (yR : y * R_ = L * D_) by (unfold y; field; lra).
  split; [|split].
  - intros h. replace (16 * th * L * D_ / R_) with (16 * th * y) in h by (unfold y; field; lra).
    assert (h2 : (16 * th * y) * (16 * th * y) <= second * second) by (apply Rmult_le_compat; try pos; auto). rewrite sec2 in h2.
    assert (k : 16 * th ^ 2 * y <= N2) by (apply (Rmult_le_reg_r (16 * y)); lra).
    apply (Rmult_le_reg_r N2); auto. replace (16 * th ^ 2 * L * D_ / N2 * N2) with (16 * th ^ 2 * (L * D_)) by (field; lra). rewrite <- yR. apply (Rmult_le_compat_r R_) in k; lra.
  - intros h. assert (h6 : (6 * w * s ^ 2) ^ 6 <= second ^ 6) by (apply pow_incr; split; [assert (a := pow2_ge_0 s); pos|auto]).
    replace (second ^ 6) with ((second * second) ^ 3) in h6 by ring. rewrite sec2 in h6. replace ((6 * w * s ^ 2) ^ 6) with (46656 * (w ^ 3) ^ 2 * (s ^ 3) ^ 3 * (s ^ 3)) in h6 by ring. rewrite eV, es in h6.
    assert (y3 : 0 < y ^ 3) by now apply pow_lt. assert (k : 46656 * V ^ 2 * y <= 4096 * N2 ^ 3) by (apply (Rmult_le_reg_r (y ^ 3)); auto; lra).
    assert (n3 : 0 < N2 ^ 3) by now apply pow_lt. apply (Rmult_le_reg_r (N2 ^ 3)); auto. replace ((3/2) ^ 6 * V ^ 2 * L * D_ / N2 ^ 3 * N2 ^ 3) with (729/64 * V ^ 2 * (L * D_)) by (field; lra).
    rewrite <- yR. apply (Rmult_le_compat_r R_) in k; lra.
  - intros m K g g1 G2 s2 c m1 K0 [g0 gg] G0 s20 c0 N2_ np. 
    assert (le : m * N2_ g m <= N2_ g1 1).
    { unfold N2_. replace (m * (th * g * G2 / m + c * s2 / (m * K))) with (th * G2 * g + c * s2 / K) by (field; lra). replace (th * g1 * G2 / 1 + c * s2 / (1 * K)) with (th * G2 * g1 + c * s2 / K) by (field; lra).
      apply Rplus_le_compat_r, Rmult_le_compat_l; [pos|auto]. }
    set (a := N2_ g m) in *. set (b := N2_ g1 1) in *. assert (ma : 0 < m * a) by (apply Rmult_lt_0_compat; lra). assert (b0 : 0 < b) by lra.
    assert (inv : m * / b <= / a). { replace (/ a) with (m * / (m * a)) by (field; lra). apply Rmult_le_compat_l; [lra|]. now apply Rinv_le_contravar. }
    split; [|split].
    + replace (m * (16 * th ^ 2 * L * D_ / b)) with (16 * th ^ 2 * L * D_ * (m * / b)) by (field; lra). apply Rmult_le_compat_l; [assert (z := pow2_ge_0 th); pos|exact inv].
    + assert (ib : 0 < / b) by now apply Rinv_0_lt_compat. assert (i3 := pow_incr (m * / b) (/ a) 3 ltac:(split; [apply Rmult_le_pos; lra|exact inv])).
      replace (m ^ 3 * ((3/2) ^ 6 * V ^ 2 * L * D_ / b ^ 3)) with ((3/2) ^ 6 * V ^ 2 * L * D_ * (m * / b) ^ 3) by (field; lra).
      replace ((3/2) ^ 6 * V ^ 2 * L * D_ / a ^ 3) with ((3/2) ^ 6 * V ^ 2 * L * D_ * (/ a) ^ 3) by (field; lra). apply Rmult_le_compat_l; [assert (z := pow2_ge_0 V); assert (0 <= (3/2) ^ 6) by (apply pow_le; lra); pos|exact i3].
    + intros k1 vp. destruct (Rle_lt_or_eq_dec 1 K k1) as [h|h]; [exact h|]. rewrite <- h, Rinv_1 in vp. lra.
Qed.
(* 11.3: what a small step leaves, in numbers *)
Lemma pow_taylor (K : nat) : exists B, 0 <= B /\ forall y, 0 <= y <= 1 -> - (B * y ^ 3) <= (1 - y) ^ K - (1 - INR K * y + INR K * (INR K - 1) / 2 * y ^ 2) <= B * y ^ 3.
Proof.
  induction K as [|K [B [B0 h]]]. { exists 0. split; [lra|]. intros y _. simpl. lra. }
  assert (k0 := pos_INR K). assert (kk0 : 0 <= INR K * (INR K - 1)). { destruct K; [simpl; lra|]. rewrite S_INR in *. assert (q := pos_INR K). apply Rmult_le_pos; lra. }
  exists (B + INR K * (INR K - 1) / 2). split; [lra|]. intros y hy. specialize (h y hy). rewrite S_INR. set (r := (1 - y) ^ K - _) in h.
  assert (y3 : 0 <= y ^ 3) by (apply pow_le; lra). assert (By : 0 <= B * y ^ 3) by (apply Rmult_le_pos; lra). assert (gy : 0 <= INR K * (INR K - 1) / 2 * y ^ 3) by (apply Rmult_le_pos; lra).
  replace ((1 - y) ^ S K - (1 - (INR K + 1) * y + (INR K + 1) * (INR K + 1 - 1) / 2 * y ^ 2)) with ((1 - y) * r - INR K * (INR K - 1) / 2 * y ^ 3) by (unfold r; simpl; field).
  assert (a1 : (1 - y) * r <= (1 - y) * (B * y ^ 3)) by (apply Rmult_le_compat_l; lra). assert (a2 : (1 - y) * - (B * y ^ 3) <= (1 - y) * r) by (apply Rmult_le_compat_l; lra).
  assert (a3 : 0 <= y * (B * y ^ 3)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma small_rest (K : nat) c : (0 < K)%nat -> 1 <= c -> exists C d, 0 < d /\ forall e, 0 < e < d -> let q := 1 - 2 * e + e ^ 2 * c in
  0 <= q < 1 /\ Rabs ((1 - 2 * (1 - e) ^ K + q ^ K) / (1 - q ^ K) - 1/2 * (INR K * e) * (1 + (c - 1) / INR K)) <= C * e ^ 2.
Proof.
  intros K1 c1. destruct (pow_taylor K) as [B [B0 tay]]. assert (k1 : 1 <= INR K) by (apply (le_INR 1); lia).
  set (g := INR K * (INR K - 1)). assert (g0 : 0 <= g) by (apply Rmult_le_pos; lra). set (W := g + INR K * c). assert (W0 : 0 <= W) by (unfold W; assert (0 <= INR K * c) by (apply Rmult_le_pos; lra); lra).
  exists (2 * c * g + c ^ 2 * g / 2 + W * c + 10 * B + W * (g + 2 * B)), (Rmin (/2) (/ c)). assert (ic : 0 < / c) by (apply Rinv_0_lt_compat; lra). split; [apply Rmin_glb_lt; lra|].
  intros e [e0 ed] q. assert (e2 : e < /2) by (eapply Rlt_le_trans; [exact ed|apply Rmin_l]). assert (ec : e * c < 1).
  { assert (x : e < / c) by (eapply Rlt_le_trans; [exact ed|apply Rmin_r]). apply (Rmult_lt_compat_r c) in x; [|lra]. rewrite Rinv_l in x; lra. }
  assert (ec0 : 0 < e * c) by (apply Rmult_lt_0_compat; lra). set (x := 2 * e - e ^ 2 * c). assert (xq : q = 1 - x) by (unfold q, x; ring). assert (xe : x = e * (2 - e * c)) by (unfold x; ring).
  assert (x1 : e <= x) by (rewrite xe; rewrite <- (Rmult_1_r e) at 1; apply Rmult_le_compat_l; lra). assert (x2 : x <= 2 * e) by (rewrite xe; assert (0 <= e * (e * c)) by (apply Rmult_le_pos; lra); lra).
  split; [lra|]. assert (t1 := tay e ltac:(lra)). assert (t2 := tay x ltac:(lra)). fold g in t1, t2. rewrite <- xq in t2. set (r := (1 - e) ^ K - _) in t1. set (s := q ^ K - _) in t2.
  assert (e2p := pow2_ge_0 e). assert (e3 : 0 <= e ^ 3) by (apply pow_le; lra).
  assert (x3 : x ^ 3 <= 8 * e ^ 3) by (replace (8 * e ^ 3) with ((2 * e) ^ 3) by ring; apply pow_incr; lra). apply (Rmult_le_compat_l B) in x3; auto.
  assert (xx : x ^ 2 <= 4 * e ^ 2) by (replace (4 * e ^ 2) with ((2 * e) ^ 2) by ring; apply pow_incr; lra).
  (* the denominator: at least e, and 2 K e to the first order *)
  assert (den : e <= 1 - q ^ K). { assert (z : q ^ K <= q ^ 1) by (destruct K as [|k]; [lia|]; simpl; rewrite Rmult_1_r; rewrite <- (Rmult_1_r q) at 3; apply Rmult_le_compat_l; [lra|]; rewrite <- (pow1 k); apply pow_incr; lra). simpl in z. lra. }
  set (u := g / 2 * x ^ 2 + s). assert (ue : q ^ K = 1 - INR K * x + u) by (unfold u, s; ring).
  assert (u1 : - ((g + 2 * B) * (2 * e ^ 2)) <= u <= (g + 2 * B) * (2 * e ^ 2)).
  { assert (y1 : 0 <= g / 2 * x ^ 2 <= g / 2 * (4 * e ^ 2)) by (split; [apply Rmult_le_pos; [lra|apply pow2_ge_0]|apply Rmult_le_compat_l; lra]).
    assert (y2 : B * (8 * e ^ 3) <= B * (4 * e ^ 2)) by (apply Rmult_le_compat_l; [auto|]; assert (0 <= (/2 - e) * e ^ 2) by (apply Rmult_le_pos; lra); simpl in *; lra). unfold u. lra. }
  assert (th : 1/2 * (INR K * e) * (1 + (c - 1) / INR K) * INR K = e * W / 2) by (unfold W, g; field; lra).
  set (T := 1/2 * (INR K * e) * (1 + (c - 1) / INR K)) in *.
  assert (Te : 0 <= T <= e * W / 2). { assert (T0 : 0 <= T) by (unfold T; assert (0 <= (c - 1) / INR K) by (apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat; lra); apply Rmult_le_pos; [apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]|lra]). split; auto. rewrite <- th. assert (0 <= T * (INR K - 1)) by (apply Rmult_le_pos; lra). lra. }
  assert (num : 1 - 2 * (1 - e) ^ K + q ^ K - T * (1 - q ^ K) = e ^ 3 * (- (2 * c * g) + e * (c ^ 2 * g / 2) + W * c / 2) - 2 * r + s + T * u).
  { assert (r_ : (1 - e) ^ K = 1 - INR K * e + g / 2 * e ^ 2 + r) by (unfold r; ring). assert (s_ : q ^ K = 1 - INR K * x + g / 2 * x ^ 2 + s) by (unfold s; ring).
    replace (T * (1 - q ^ K)) with (e * W / 2 * x - T * u) by (rewrite ue, <- th; ring). rewrite r_, s_. unfold x, W. field. }
  set (Cc := 2 * c * g + c ^ 2 * g / 2 + W * c + 10 * B + W * (g + 2 * B)).
  assert (nb : - (Cc * e ^ 3) <= 1 - 2 * (1 - e) ^ K + q ^ K - T * (1 - q ^ K) <= Cc * e ^ 3).
  { rewrite num. assert (cg : 0 <= c * g) by (apply Rmult_le_pos; lra). assert (ccg : 0 <= c ^ 2 * g / 2) by (assert (0 <= c ^ 2) by (apply pow_le; lra); apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). assert (wc : 0 <= W * c / 2) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]).
    assert (m1 : 0 <= e * (c ^ 2 * g / 2) <= c ^ 2 * g / 2) by (split; [apply Rmult_le_pos; lra|]; assert (0 <= (1 - e) * (c ^ 2 * g / 2)) by (apply Rmult_le_pos; lra); lra).
    assert (m2 : - (2 * c * g) * e ^ 3 <= e ^ 3 * (- (2 * c * g) + e * (c ^ 2 * g / 2) + W * c / 2) <= (c ^ 2 * g / 2 + W * c / 2) * e ^ 3).
    { split; [rewrite Rmult_comm; apply Rmult_le_compat_l; lra|rewrite (Rmult_comm (_ + _)); apply Rmult_le_compat_l; lra]. }
    assert (gb : 0 <= (g + 2 * B) * (2 * e ^ 2)) by (apply Rmult_le_pos; lra).
    assert (m3 : - (W * (g + 2 * B) * e ^ 3) <= T * u <= W * (g + 2 * B) * e ^ 3).
    { assert (a1 := Rmult_le_compat_l T _ _ (proj1 Te) (proj1 u1)). assert (a2 := Rmult_le_compat_l T _ _ (proj1 Te) (proj2 u1)). assert (a3 := Rmult_le_compat_r _ _ _ gb (proj2 Te)).
      replace (W * (g + 2 * B) * e ^ 3) with (e * W / 2 * ((g + 2 * B) * (2 * e ^ 2))) by field. lra. }
    assert (p1 : 0 <= c * g * e ^ 3) by (apply Rmult_le_pos; lra). assert (p2 : 0 <= c ^ 2 * g / 2 * e ^ 3) by (apply Rmult_le_pos; lra). assert (p3 : 0 <= W * c / 2 * e ^ 3) by (apply Rmult_le_pos; lra). unfold Cc. lra. }
  assert (d0 : 0 < 1 - q ^ K) by lra. assert (C0 : 0 <= Cc * e ^ 2). { assert (z : 0 <= Cc * e ^ 3) by lra. apply (Rmult_le_reg_l e); auto. rewrite Rmult_0_r. replace (e * (Cc * e ^ 2)) with (Cc * e ^ 3) by ring. exact z. }
  replace ((1 - 2 * (1 - e) ^ K + q ^ K) / (1 - q ^ K) - T) with ((1 - 2 * (1 - e) ^ K + q ^ K - T * (1 - q ^ K)) / (1 - q ^ K)) by (field; lra).
  assert (big : Cc * e ^ 3 <= Cc * e ^ 2 * (1 - q ^ K)) by (replace (Cc * e ^ 3) with (Cc * e ^ 2 * e) by ring; apply Rmult_le_compat_l; lra).
  apply Rabs_le. split; apply (Rmult_le_reg_r (1 - q ^ K)); auto; unfold Rdiv; rewrite (Rmult_assoc _ (/ _)), Rinv_l by lra; lra.
Qed.
(* 11.3: H is a projector of rank tr H *)
Section Drawn.
Context {D : Dim}.
Variables N m K P : nat.
Hypothesis m1 : (0 < m)%nat.
Hypothesis mN : (m <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Hypothesis P1 : (0 < P)%nat.
Variable H : vec -> vec.
Hypothesis HP : proj H.
Context {O : Type}.
Variable Z : law O.
Variable z : nat -> O -> vec.
Hypothesis nz : forall p, (p < P)%nat -> normal Z (z p).
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Variable eta : R.
Variable b : nat -> vec.
Hypothesis b_sum : vsum N b = v0.
Definition gb i x : vec := H (x - b i)%V.
Fixpoint own i x (h : list O) : vec := match h with nil => x | cons o h => (own i x h - eta *: A_ z P o (gb i (own i x h)))%V end.
Definition after x (p : list nat * list O) : vec := (x + / INR m *: pick (fun i => own i x (snd p) - x) (fst p))%V.
Definition drawn : law (list nat * list O) := bind (Family.lsets N m mN) (fun _ => path (fun _ => Z) K).
Fixpoint Pi_ (h : list O) (v : vec) : vec := match h with nil => v | cons o h => (Pi_ h v - eta *: A_ z P o (H (Pi_ h v)))%V end.
Definition bbar C : vec := (/ INR m *: pick b C)%V.
Let P0 : 0 < INR P. Proof. now apply lt_0_INR. Qed.
Let m0 : 0 < INR m. Proof. now apply lt_0_INR. Qed.
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let HH : mapL 1 H.
Proof. split; [apply (p_add _ HP)|apply (p_scal _ HP)|apply (p_sym _ HP)|intros u; rewrite <- (p_nrm2 _ HP); apply nrm2_ge0|intros u; rewrite <- (p_nrm2 _ HP), Rmult_1_l; apply (p_le _ HP)]. Qed.
Let nHn v : nH H v = nrm2 (H v). Proof. symmetry. apply (p_nrm2 _ HP). Qed.
Lemma A_add_ o u v : A_ z P o (u + v)%V = (A_ z P o u + A_ z P o v)%V.
Proof.
  unfold A_. rewrite (vsum_ext P (fun p => dot (z p o) (u + v) *: z p o)%V (fun p => dot (z p o) u *: z p o + dot (z p o) v *: z p o)%V) by (intros; rewrite dot_addr; vring). rewrite vsum_plus. vring.
Qed.
Lemma A_scal_ o c u : A_ z P o (c *: u)%V = (c *: A_ z P o u)%V.
Proof. unfold A_. rewrite (vsum_ext P (fun p => dot (z p o) (c *: u) *: z p o)%V (fun p => c *: (dot (z p o) u *: z p o))%V) by (intros; rewrite dot_scalr; vring). rewrite vsum_scal. vring. Qed.
Lemma Pi_add h u v : Pi_ h (u + v)%V = (Pi_ h u + Pi_ h v)%V.
Proof. induction h as [|o h IH]; [reflexivity|]. cbn [Pi_]. rewrite IH, (p_add _ HP), A_add_. vring. Qed.
Lemma Pi_scal h c u : Pi_ h (c *: u)%V = (c *: Pi_ h u)%V.
Proof. induction h as [|o h IH]; [reflexivity|]. cbn [Pi_]. rewrite IH, (p_scal _ HP), A_scal_. vring. Qed.
Lemma Pi_vsum h n f : Pi_ h (vsum n f) = vsum n (fun i => Pi_ h (f i)).
Proof. induction n; [change (vsum 0 f) with v0; replace v0 with (0 *: v0)%V at 1 by vring; rewrite Pi_scal; change (vsum 0 (fun i => Pi_ h (f i))) with v0; vring|]. now rewrite !vsum_S, Pi_add, IHn. Qed.
Lemma Pi_pick h f C : Pi_ h (pick f C) = pick (fun i => Pi_ h (f i)) C.
Proof. induction C as [|i l IH]; [cbn [pick fold_right]; replace v0 with (0 *: v0)%V at 1 by vring; rewrite Pi_scal; vring|]. now rewrite !pick_cons, Pi_add, IH. Qed.
Lemma own_Pi i x h : own i x h = (Pi_ h x + (b i - Pi_ h (b i)))%V.
Proof.
  induction h as [|o h IH]; [cbn; vring|]. cbn [own Pi_]. unfold gb. set (y := own i x h) in *.
  replace (H (y - b i)%V) with (H (Pi_ h x) + (-1) *: H (Pi_ h (b i)))%V by (rewrite IH, <- (p_scal _ HP), <- (p_add _ HP); f_equal; vring).
  rewrite A_add_, A_scal_, IH. vring.
Qed.
Let q := 1 - 2 * eta + eta ^ 2 * c_ (tr H) P.
Lemma one_square u : Z (fun o => nH H (u - eta *: A_ z P o (H u))) = q * nH H u.
Proof.
  rewrite (ex_ext Z _ (fun o => nH H u + (- (2 * eta) * dot (H u) (A_ z P o (H u)) + eta ^ 2 * nH H (A_ z P o (H u))))).
  - rewrite !ex_plus, !ex_scal, ex_const, (A_mean Z z P P1 nz), (step_1_2 H 1 HH Z z P P1 nz indep). fold (nrm2 (H u)).
    rewrite (nHn (H u)), (p_idem _ HP), <- nHn. unfold q, c_. field. lra.
  - intros o. unfold nH. rewrite (form_sub _ _ HH). fold (nH H u). rewrite (p_scal _ HP), !dot_scall, !dot_scalr, (p_sym _ HP u). unfold nH. ring.
Qed.
Lemma all_squares k x : path (fun _ => Z) k (fun h => nH H (Pi_ h x)) = q ^ k * nH H x.
Proof.
  induction k; [cbn; ring|]. rewrite path_S, (ex_ext (path (fun _ => Z) k) _ (fun h => q * nH H (Pi_ h x))) by (intros h; apply one_square). rewrite ex_scal, IHk. simpl. ring.
Qed.
Lemma all_means k v x : path (fun _ => Z) k (fun h => dot (H v) (Pi_ h x)) = (1 - eta) ^ k * dot (H v) x.
Proof.
  induction k; [cbn; ring|]. rewrite path_S, (ex_ext (path (fun _ => Z) k) _ (fun h => (1 - eta) * dot (H v) (Pi_ h x))).
  - rewrite ex_scal, IHk. simpl. ring.
  - intros h. cbn [Pi_]. rewrite (ex_ext Z _ (fun o => dot (H v) (Pi_ h x) + - eta * dot (H v) (A_ z P o (H (Pi_ h x))))) by (intros; rewrite subE, dot_addr, !dot_scalr; ring).
    rewrite ex_plus, ex_const, ex_scal, (A_mean Z z P P1 nz), (p_dot _ HP v), <- (p_sym _ HP v). ring.
Qed.
Let left := 1 - 2 * (1 - eta) ^ K + q ^ K.
Lemma pulled v : path (fun _ => Z) K (fun h => nH H (v - Pi_ h v)) = left * nH H v.
Proof.
  rewrite (ex_ext (path (fun _ => Z) K) _ (fun h => nH H v + ((-2) * dot (H v) (Pi_ h v) + nH H (Pi_ h v)))).
  - rewrite !ex_plus, ex_scal, ex_const, all_means, all_squares, (p_sym _ HP). fold (nH H v). unfold left. ring.
  - intros h. unfold nH at 1. rewrite (form_sub _ _ HH). unfold nH. rewrite (p_sym _ HP v). ring.
Qed.
Definition Gb x : vec := (/ INR N *: vsum N (fun i => gb i x))%V.
Definition sgb x : R := / INR N * sum N (fun i => nrm2 (gb i x - Gb x)).
Lemma Gb_H x : Gb x = H x.
Proof.
  unfold Gb, gb. rewrite <- (p_vsum _ HP), <- (p_scal _ HP). f_equal. rewrite (vsum_ext N (fun i => x - b i)%V (fun i => x + (-1) *: b i)%V) by (intros; vring). rewrite vsum_plus, vsum_const, vsum_scal, b_sum. vfield. lra.
Qed.
Lemma bbar_square x : Family.lsets N m mN (fun C => nH H (bbar C)) = gamm N m * sgb x / INR m.
Proof.
  set (v := fun i => H (b i)). assert (vm : (/ INR N *: vsum N v)%V = v0) by (unfold v; rewrite <- (p_vsum _ HP), b_sum, (p_0 _ HP); vring).
  assert (es : sgb x = / INR N * sum N (fun i => nrm2 (v i))).
  { unfold sgb. f_equal. apply sum_ext; intros i _. rewrite Gb_H. unfold gb, v. rewrite (p_sub _ HP). replace (H x - H (b i) - H x)%V with (- H (b i))%V by vring. apply nrm2_opp. }
  assert (hb : forall C, nH H (bbar C) = nrm2 (/ INR m *: pick v C - / INR N *: vsum N v)).
  { intros C. rewrite nHn, vm. f_equal. unfold bbar. rewrite (p_scal _ HP). replace (H (pick b C)) with (pick v C); [vring|].
    symmetry. induction C as [|i l IH]; [apply (p_0 _ HP)|]. now rewrite !pick_cons, (p_add _ HP), IH. }
  rewrite (ex_ext (Family.lsets N m mN) _ (fun C => nrm2 (/ INR m *: pick v C - / INR N *: vsum N v))) by exact hb. rewrite es.
  destruct (Nat.eq_dec N 1) as [e1|ne].
  - assert (v00 : v 0%nat = v0). { rewrite <- vm, e1. apply functional_extensionality; intros j. unfold vscal, vsum. cbn [sum]. simpl INR. field. }
    assert (em : m = 1%nat) by lia. assert (gz : gamm N m = 0) by (unfold gamm; rewrite e1, em; simpl INR; unfold Rdiv; ring). rewrite gz. unfold Rdiv. rewrite !Rmult_0_l.
    apply Rle_antisym; [|apply ex_ge0; intros; apply nrm2_ge0].
    rewrite <- (ex_const (Family.lsets N m mN) 0). apply (Family.lsets_le N m mN); intros C hC. rewrite vm, (Family.pick_ext v (fun _ => v0)), Family.pick_const.
    + replace (/ INR m *: (INR (length C) *: v0) - v0)%V with v0 by vring. rewrite nrm2_0. lra.
    + intros i hi. apply (subsets_below _ _ _ _ hC) in hi. replace i with 0%nat by lia. exact v00.
  - assert (n2 : 2 <= INR N) by (apply (le_INR 2); lia). assert (s := sampling_variance N m v ltac:(lia) ltac:(lia)). cbv zeta in s. change (Esets N m) with (ex (Family.lsets N m mN)) in s. rewrite s.
    rewrite (sum_ext N (fun i => nrm2 (v i - / INR N *: vsum N v)) (fun i => nrm2 (v i))) by (intros; rewrite vm; f_equal; vring). unfold gamm. field. lra.
Qed.
Lemma step_11_3 :
  (forall x C h, length C = m -> after x (C, h) = (Pi_ h x + (bbar C - Pi_ h (bbar C)))%V) /\
  (forall x, path (fun _ => Z) K (fun h => nH H (Pi_ h x)) = q ^ K * nH H x) /\
  (forall v, path (fun _ => Z) K (fun h => nH H (v - Pi_ h v)) = left * nH H v) /\
  (forall x, drawn (fun p => dot (H (Pi_ (snd p) x)) (bbar (fst p) - Pi_ (snd p) (bbar (fst p)))) = 0) /\
  (forall x, Family.lsets N m mN (fun C => nH H (bbar C)) = gamm N m * sgb x / INR m) /\
  (forall X : law vec, X (fun x => drawn (fun p => nH H (after x p))) = X (nH H) -> q ^ K <> 1 ->
    forall y, X (fun x => nrm2 (Gb x)) = left / (1 - q ^ K) * (gamm N m * sgb y / INR m)) /\
  exists c d, 0 < d /\ forall e, 0 < e < d -> let q := 1 - 2 * e + e ^ 2 * c_ (tr H) P in
    0 <= q < 1 /\ Rabs ((1 - 2 * (1 - e) ^ K + q ^ K) / (1 - q ^ K) - 1/2 * (INR K * e) * (1 + (tr H + 1) / (INR P * INR K))) <= c * e ^ 2.
Proof.
  assert (s1 : forall x C h, length C = m -> after x (C, h) = (Pi_ h x + (bbar C - Pi_ h (bbar C)))%V).
  { intros x C h hl. unfold after. cbn [fst snd]. rewrite (Family.pick_ext (fun i => own i x h - x)%V (fun i => (Pi_ h x - x) + (b i + (-1) *: Pi_ h (b i)))%V) by (intros; rewrite own_Pi; vring).
    rewrite Family.pick_plus, Family.pick_const, Family.pick_plus, Family.pick_scal, hl. unfold bbar. rewrite Pi_scal, Pi_pick. change (fun i => b i) with b. vfield. lra. }
  assert (s4 : forall x, drawn (fun p => dot (H (Pi_ (snd p) x)) (bbar (fst p) - Pi_ (snd p) (bbar (fst p)))) = 0).
  { intros x. unfold drawn. cbn [bind ex fst snd]. rewrite (Family.lsets_swap N m mN (path (fun _ => Z) K) (fun C h => dot (H (Pi_ h x)) (bbar C - Pi_ h (bbar C)))). rewrite <- (ex_const (path (fun _ => Z) K) 0). apply ex_ext; intros h.
    rewrite (ex_ext (Family.lsets N m mN) _ (fun C => / INR m * lsum C (fun i => dot (H (Pi_ h x)) (b i - Pi_ h (b i))))).
    - rewrite (Family.lsets_mean N m mN (fun i => dot (H (Pi_ h x)) (b i - Pi_ h (b i))) m1), <- dot_sumr. rewrite (vsum_ext N (fun i => b i - Pi_ h (b i))%V (fun i => b i + (-1) *: Pi_ h (b i))%V) by (intros; vring).
      rewrite vsum_plus, vsum_scal, <- Pi_vsum. change (fun i => b i) with b. rewrite b_sum. replace v0 with (0 *: v0)%V at 2 by vring. rewrite Pi_scal. replace (v0 + (-1) *: (0 *: Pi_ h v0))%V with v0 by vring. rewrite dot_0r. ring.
    - intros C. unfold bbar. rewrite Pi_scal, Pi_pick, <- Family.dot_pick, <- dot_scalr. f_equal. rewrite (Family.pick_ext (fun i => b i - Pi_ h (b i))%V (fun i => b i + (-1) *: Pi_ h (b i))%V) by (intros; vring).
      rewrite Family.pick_plus, Family.pick_scal. change (fun i => b i) with b. vring. }
  split; [exact s1|]. split; [apply all_squares|]. split; [apply pulled|]. split; [exact s4|]. split; [apply bbar_square|]. split.
  - intros X st ne y. assert (rd : forall x, drawn (fun p => nH H (after x p)) = q ^ K * nH H x + left * (gamm N m * sgb y / INR m)).
    { intros x. transitivity (drawn (fun p => nH H (Pi_ (snd p) x) + (2 * dot (H (Pi_ (snd p) x)) (bbar (fst p) - Pi_ (snd p) (bbar (fst p))) + nH H (bbar (fst p) - Pi_ (snd p) (bbar (fst p)))))).
      - apply Rle_antisym; unfold drawn; cbn [bind ex fst snd]; apply (Family.lsets_le N m mN); intros C hC; right; apply ex_ext; intros h; rewrite (s1 x C h (subsets_length _ _ _ hC)); unfold nH; rewrite (form_add _ _ HH), (p_sym _ HP); ring.
      - rewrite !ex_plus, ex_scal, s4. unfold drawn. cbn [bind ex fst snd]. rewrite (ex_ext (Family.lsets N m mN) (fun C => path (fun _ => Z) K (fun h => nH H (bbar C - Pi_ h (bbar C)))) (fun C => left * nH H (bbar C))) by (intros; apply pulled).
        rewrite ex_scal, (bbar_square y), ex_const, all_squares. ring. }
    rewrite (ex_ext X _ _ rd), ex_plus, ex_scal, ex_const in st. rewrite (ex_ext X (fun x => nrm2 (Gb x)) (nH H)) by (intros x; rewrite Gb_H; symmetry; apply nHn).
    change (X (fun x => nH H x)) with (X (nH H)) in st. apply (Rmult_eq_reg_l (1 - q ^ K)); [|lra]. replace ((1 - q ^ K) * (left / (1 - q ^ K) * (gamm N m * sgb y / INR m))) with (left * (gamm N m * sgb y / INR m)) by (field; split; lra). lra.
  - assert (t0 : 0 <= tr H) by (apply (tr_bounds H 1 HH)). assert (c1 : 1 <= c_ (tr H) P) by (unfold c_; assert (0 <= (tr H + 1) / INR P) by (apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat, P0); lra).
    destruct (small_rest K (c_ (tr H) P) K1 c1) as [c [d [d0 h]]]. exists c, d. split; [exact d0|]. intros e he. specialize (h e he). cbv zeta in *. destruct h as [h1 h2]. split; [exact h1|].
    replace ((tr H + 1) / (INR P * INR K)) with ((c_ (tr H) P - 1) / INR K); [exact h2|]. unfold c_. assert (k0 : 0 < INR K) by now apply lt_0_INR. assert (p0 := P0). field. lra.
Qed.
End Drawn.
(* 11.4: two clients, two local steps with one direction each and exact slopes, from x = 0 *)
Lemma step_11_4 {D : Dim} {O O' : Type} (Z : law O) (Z' : law O') (z : O -> vec) (z' : O' -> vec) eta h0 : (2 <= dim)%nat -> normal Z z -> normal Z' z' ->
  let x_ (v : vec) j := dot (basis j) v in
  let f sg v := / 2 * x_ v 0%nat ^ 2 + sg * (/ 2 * (nrm2 v - x_ v 0%nat ^ 2) + h0 * x_ v 1%nat) in
  let g sg v := (x_ v 0%nat *: basis 0 + sg *: (v - x_ v 0%nat *: basis 0 + h0 *: basis 1))%V in
  let local sg (d1 d2 : vec) := let x1 := (v0 - eta *: (dot d1 (g sg v0) *: d1))%V in (x1 - eta *: (dot d2 (g sg x1) *: d2))%V in
  let next d1 d2 := (/ 2 *: (local 1 d1 d2 + local (-1) d1 d2))%V in
  (forall v, / 2 * (f 1 v + f (-1) v) = / 2 * x_ v 0%nat ^ 2) /\
  (forall sg v s, f sg (v + s)%V = f sg v + dot (g sg v) s + (/ 2 * x_ s 0%nat ^ 2 + sg * (/ 2 * (nrm2 s - x_ s 0%nat ^ 2)))) /\
  (forall d1 d2, x_ (next d1 d2) 0%nat = eta ^ 2 * h0 * (x_ d2 0%nat * x_ d1 1%nat * (dot d2 d1 - x_ d1 0%nat * x_ d2 0%nat))) /\
  Z (fun o => Z' (fun o' => / 2 * x_ (next (z o) (z' o')) 0%nat ^ 2)) = / 2 * eta ^ 4 * h0 ^ 2 * (INR dim + 1) /\
  (eta = 1/32 -> h0 <> 0 -> (1536 <= dim)%nat -> 24 * eta ^ 3 * h0 ^ 2 < / 2 * eta ^ 4 * h0 ^ 2 * (INR dim + 1)).
Proof.
  intros d2 nz nz' x_ f g local next. assert (b0 : dot (basis 0) (basis 0) = 1) by (apply basis_1; lia). assert (b1 : dot (basis 1) (basis 1) = 1) by (apply basis_1; lia).
  assert (b01 : dot (basis 0) (basis 1) = 0) by (rewrite dot_basis by lia; unfold basis; destruct Nat.eq_dec; [congruence|reflexivity]).
  assert (loc0 : forall d1 e2, x_ (next d1 e2) 0%nat = eta ^ 2 * h0 * (x_ e2 0%nat * x_ d1 1%nat * (dot e2 d1 - x_ d1 0%nat * x_ e2 0%nat))).
  { intros d1 e2. unfold next, local, g, x_. set (a := dot (basis 0) d1). set (c := dot (basis 1) d1). set (a' := dot (basis 0) e2). set (c' := dot (basis 1) e2).
    repeat (rewrite ?subE, ?dot_addr, ?dot_scalr, ?dot_0r, ?dot_addl, ?dot_scall, ?dot_0l). rewrite ?(dotC d1 (basis 0)), ?(dotC d1 (basis 1)), ?(dotC e2 (basis 0)), ?(dotC e2 (basis 1)), ?b0, ?b01. fold a c a' c'. field. }
  split; [intros v; unfold f; field|]. split.
  { intros sg v s. unfold f, g, x_. rewrite !dot_addr, nrm2_add. repeat (rewrite ?subE, ?dot_addl, ?dot_scall). field. }
  split; [exact loc0|]. split.
  - rewrite (ex_ext Z _ (fun o => / 2 * eta ^ 4 * h0 ^ 2 * (x_ (z o) 1%nat ^ 2 * nrm2 (z o - x_ (z o) 0%nat *: basis 0)%V))).
    + rewrite ex_scal. f_equal. rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot (basis 1) (z o) * dot (basis 1) (z o) * (dot (basis j) (z o) * dot (basis j) (z o))) + (-1) * (dot (basis 1) (z o) * dot (basis 1) (z o) * (dot (basis 0) (z o) * dot (basis 0) (z o))))).
      * rewrite ex_plus, ex_scal, ex_sum, (w_4 _ _ nz), b0, b1, (dotC (basis 1) (basis 0)), b01.
        rewrite (sum_ext dim _ (fun j => 1 + 2 * (dot (basis j) (basis 1) * dot (basis j) (basis 1)))).
        -- rewrite sum_plus, sum_const, sum_scal, <- dot_coords, b1. ring.
        -- intros j hj. rewrite (w_4 _ _ nz), b1, (basis_1 j hj), (dotC (basis 1) (basis j)). ring.
      * intros o. unfold x_. rewrite nrm2_sub, nrm2_scal, dot_scalr, (dotC (z o) (basis 0)). unfold nrm2 at 1 2. rewrite b0, (dot_coords (z o) (z o)).
        rewrite (sum_ext dim (fun j => dot (basis 1) (z o) * dot (basis 1) (z o) * (dot (basis j) (z o) * dot (basis j) (z o))) (fun j => dot (basis 1) (z o) ^ 2 * (dot (basis j) (z o) * dot (basis j) (z o)))) by (intros; ring). rewrite sum_scal. ring.
    + intros o. set (a := (z o - x_ (z o) 0%nat *: basis 0)%V). assert (a0 : dot (basis 0) a = 0) by (unfold a, x_; rewrite subE, dot_addr, !dot_scalr, b0; ring).
      rewrite (ex_ext Z' _ (fun o' => / 2 * (eta ^ 2 * h0 * x_ (z o) 1%nat) ^ 2 * (dot (basis 0) (z' o') * dot (basis 0) (z' o') * (dot a (z' o') * dot a (z' o'))))).
      * rewrite ex_scal, (w_4 _ _ nz'), b0, a0. fold (nrm2 a). ring.
      * intros o'. rewrite loc0. replace (dot (z' o') (z o) - x_ (z o) 0%nat * x_ (z' o') 0%nat) with (dot a (z' o')); [unfold x_; ring|]. unfold a, x_. rewrite subE, dot_addl, !dot_scall, (dotC (z' o')). ring.
  - intros -> hn hd. assert (D0 : 1536 <= INR dim) by (replace 1536 with (INR 1536) by (rewrite INR_IZR_INZ; reflexivity); now apply le_INR). assert (h2 : 0 < h0 ^ 2) by (assert (z2 := pow2_ge_0 h0); assert (h0 ^ 2 <> 0) by (now apply pow_nonzero); lra).
    assert (0 < h0 ^ 2 * (INR dim + 1 - 1536)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.
(* ---- the sphere ---- *)
(* 6.4: a Gaussian vector is a point of the sphere times an independent length; T is the law of that length over sqrt d *)
Section OnSphere.
Context {D : Dim}.
Record sphere {O} (Z : law O) (z : O -> vec) : Prop := {
  on_sphere : forall o, nrm2 (z o) = INR dim;
  times_length : exists T : law R, normal (bind T (fun _ => Z)) (fun p => fst p *: z (snd p))%V }.
Definition id_ (v : vec) : vec := v.
Lemma id_symm : symm id_. Proof. split; intros; reflexivity. Qed.
Lemma tr_id_ : tr id_ = INR dim. Proof. exact tr_id. Qed.
Lemma tr2_id : tr2 id_ = INR dim. Proof. unfold tr2. rewrite (sum_ext dim _ (fun _ => 1)) by (intros; now apply basis_1). rewrite sum_const. ring. Qed.
(* what a normal vector's length adds to its moments *)
Lemma normal_length_2 {O} (Z : law O) z a b : normal Z z -> Z (fun o => nrm2 (z o) * (dot a (z o) * dot b (z o))) = (INR dim + 2) * dot a b.
Proof.
  intros nz. rewrite (ex_ext Z _ (fun o => dot a (z o) * dot b (z o) * nH id_ (z o))) by (intros; unfold nH, id_, nrm2; ring). rewrite (E2H id_ id_symm Z z nz), tr_id_. unfold id_. ring.
Qed.
Lemma normal_length_4 {O} (Z : law O) z a b : normal Z z -> Z (fun o => nrm2 (z o) ^ 2 * (dot a (z o) * dot b (z o))) = (INR dim + 2) * (INR dim + 4) * dot a b.
Proof.
  intros nz. rewrite (ex_ext Z _ (fun o => dot a (z o) * dot b (z o) * nH id_ (z o) * nH id_ (z o))) by (intros; unfold nH, id_, nrm2; ring). rewrite (E2HH id_ id_symm Z z nz), tr_id_, tr2_id. unfold id_. ring.
Qed.
Lemma normal_length_24 {O} (Z : law O) z a b c e : normal Z z -> Z (fun o => nrm2 (z o) * (dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o)))) = (INR dim + 4) * (dot a b * dot c e + dot a c * dot b e + dot a e * dot b c).
Proof.
  intros nz. rewrite (ex_ext Z _ (fun o => dot a (z o) * dot b (z o) * (dot c (z o) * dot e (z o)) * nH id_ (z o))) by (intros; unfold nH, id_, nrm2; ring). rewrite (E4H id_ id_symm Z z nz), tr_id_. unfold id_. ring.
Qed.
Lemma normal_lengths {O} (Z : law O) z : normal Z z -> let d := INR dim in Z (fun o => nrm2 (z o)) = d /\ Z (fun o => nrm2 (z o) ^ 2) = d * (d + 2) /\ Z (fun o => nrm2 (z o) ^ 3) = d * (d + 2) * (d + 4).
Proof.
  intros nz d. assert (sq : forall o, nrm2 (z o) = sum dim (fun j => dot (basis j) (z o) * dot (basis j) (z o))) by (intros; apply dot_coords).
  assert (one : forall c, sum dim (fun j => c * dot (basis j) (basis j)) = d * c) by (intros c; rewrite (sum_ext dim _ (fun _ => c)) by (intros; rewrite basis_1 by auto; ring); apply sum_const).
  split; [|split].
  - rewrite (ex_ext Z _ _ sq), ex_sum, (sum_ext dim _ (fun j => 1 * dot (basis j) (basis j))) by (intros; rewrite (w_2 _ _ nz); ring). rewrite one. ring.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun j => nrm2 (z o) * (dot (basis j) (z o) * dot (basis j) (z o))))) by (intros; rewrite sum_scal, <- sq; ring). rewrite ex_sum, (sum_ext dim _ (fun j => (d + 2) * dot (basis j) (basis j))) by (intros; now apply normal_length_2). apply one.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun j => nrm2 (z o) ^ 2 * (dot (basis j) (z o) * dot (basis j) (z o))))) by (intros; rewrite sum_scal, <- sq; ring). rewrite ex_sum, (sum_ext dim _ (fun j => (d + 2) * (d + 4) * dot (basis j) (basis j))) by (intros; now apply normal_length_4). rewrite one. ring.
Qed.
Lemma nH_hom (M : vec -> vec) c v : symm M -> nH M (c *: v)%V = c ^ 2 * nH M v.
Proof. intros h. unfold nH. rewrite (s_scal _ h), dot_scall, dot_scalr. ring. Qed.
Section Point.
Context {O : Type}.
Variable Z : law O.
Variable z : O -> vec.
Hypothesis d0 : 0 < INR dim.
Hypothesis sz : sphere Z z.
Let d := INR dim.
(* a homogeneous function's mean over the sphere *)
Lemma over_length : exists T : law R, let G f := bind T (fun _ => Z) (fun p => f (fst p *: z (snd p))%V) in
  normal (bind T (fun _ => Z)) (fun p => fst p *: z (snd p))%V /\ T (fun t => t ^ 2) = 1 /\ T (fun t => t ^ 4) = 1 + 2 / d /\ T (fun t => t ^ 6) = (1 + 2 / d) * (1 + 4 / d) /\
  (forall k f, (forall c v, f (c *: v)%V = c ^ k * f v) -> G f = T (fun t => t ^ k) * Z (fun o => f (z o))).
Proof.
  destruct (times_length _ _ sz) as [T n]. exists T. cbv zeta. split; [exact n|]. assert (dp : 0 < d) by exact d0. destruct (normal_lengths _ _ n) as [l1 [l2 l3]]. fold d in l1, l2, l3.
  assert (len : forall k, bind T (fun _ => Z) (fun p => nrm2 (fst p *: z (snd p)) ^ k) = d ^ k * T (fun t => t ^ (2 * k))).
  { intros k. cbn [bind ex fst snd]. rewrite <- ex_scal. apply ex_ext; intros t. rewrite <- (ex_const Z (d ^ k * t ^ (2 * k))). apply ex_ext; intros o. rewrite nrm2_scal, (on_sphere _ _ sz), Rpow_mult_distr. fold d. rewrite (pow_mult t 2 k). replace (t ^ 2) with (t * t) by ring. ring. }
  assert (e1 := len 1%nat). assert (e2 := len 2%nat). assert (e3 := len 3%nat). simpl Nat.mul in e1, e2, e3. rewrite l2 in e2. rewrite l3 in e3. rewrite (ex_ext _ _ (fun p => nrm2 (fst p *: z (snd p)))) in e1 by (intros; simpl; ring). rewrite l1 in e1.
  split; [apply (Rmult_eq_reg_l d); lra|]. split; [apply (Rmult_eq_reg_l (d ^ 2)); [|apply pow_nonzero; lra]; rewrite <- e2; field; lra|]. split; [apply (Rmult_eq_reg_l (d ^ 3)); [|apply pow_nonzero; lra]; rewrite <- e3; field; lra|].
  intros k f hf. cbn [bind ex fst snd]. rewrite Rmult_comm, <- ex_scal. apply ex_ext; intros t. rewrite Rmult_comm, <- ex_scal. apply ex_ext; intros o. apply hf.
Qed.
Lemma sph_2 a b : Z (fun o => dot a (z o) * dot b (z o)) = dot a b.
Proof.
  destruct over_length as [T [n [t2 [_ [_ h]]]]]. assert (e := h 2%nat (fun v => dot a v * dot b v) ltac:(intros; cbv beta; rewrite !dot_scalr; ring)). cbv beta in e. rewrite (w_2 _ _ n), t2 in e. lra.
Qed.
Variable M : vec -> vec.
Hypothesis hM : symm M.
Lemma sph_2H a b : Z (fun o => dot a (z o) * dot b (z o) * nH M (z o)) = d / (d + 2) * (tr M * dot a b + 2 * dot a (M b)).
Proof.
  destruct over_length as [T [n [_ [t4 [_ h]]]]]. assert (e := h 4%nat (fun v => dot a v * dot b v * nH M v) ltac:(intros; cbv beta; rewrite !dot_scalr, nH_hom by auto; ring)). cbv beta in e. rewrite (E2H M hM _ _ n), t4 in e. rewrite e. unfold d in *. field. lra.
Qed.
Lemma sph_2HH a b : Z (fun o => dot a (z o) * dot b (z o) * nH M (z o) * nH M (z o)) = d ^ 2 / ((d + 2) * (d + 4)) * ((tr M ^ 2 + 2 * tr2 M) * dot a b + 4 * tr M * dot a (M b) + 8 * dot a (M (M b))).
Proof.
  destruct over_length as [T [n [_ [_ [t6 h]]]]]. assert (e := h 6%nat (fun v => dot a v * dot b v * nH M v * nH M v) ltac:(intros; cbv beta; rewrite !dot_scalr, !nH_hom by auto; ring)). cbv beta in e. rewrite (E2HH M hM _ _ n), t6 in e. rewrite e. unfold d in *. field. lra.
Qed.
End Point.
Lemma sph_H {O} (Z : law O) z M L : 0 < INR dim -> sphere Z z -> mapL L M -> let d := INR dim in
  Z (fun o => nH M (z o)) = tr M /\ Z (fun o => nH M (z o) ^ 2) = d / (d + 2) * (tr M ^ 2 + 2 * tr2 M) /\
  Z (fun o => nH M (z o) ^ 3) = d ^ 2 / ((d + 2) * (d + 4)) * (tr M ^ 3 + 6 * tr M * tr2 M + 8 * tr3 M).
Proof.
  intros d0 sz hM d. assert (sM := mapL_symm _ _ hM). destruct (over_length Z z d0 sz) as [T [n [t2 [t4 [t6 h]]]]]. destruct (step_6_2 M L hM _ _ n) as [s2 s3].
  assert (e2 := h 4%nat (fun v => nH M v ^ 2) ltac:(intros; cbv beta; rewrite nH_hom by auto; ring)). assert (e3 := h 6%nat (fun v => nH M v ^ 3) ltac:(intros; cbv beta; rewrite nH_hom by auto; ring)). cbv beta in e2, e3. rewrite s2, t4 in e2. rewrite s3, t6 in e3.
  split; [|split; [rewrite e2|rewrite e3]; unfold d; field; lra].
  rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot (basis j) (z o) * dot (M (basis j)) (z o)))) by (intros; now apply form_sum). rewrite ex_sum. apply sum_ext; intros j _. now apply sph_2.
Qed.
Lemma share d k : 0 < d -> 0 <= k -> 0 <= d / (d + k) <= 1.
Proof. intros d0 k0. split; [apply Rlt_le, Rdiv_lt_0_compat; lra|]. apply (Rmult_le_reg_r (d + k)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. Qed.
Lemma shares d : 0 < d -> 0 <= d ^ 2 / ((d + 2) * (d + 4)) <= 1.
Proof.
  intros d0. assert (a := share d 2 d0 ltac:(lra)). assert (b := share d 4 d0 ltac:(lra)). replace (d ^ 2 / ((d + 2) * (d + 4))) with (d / (d + 2) * (d / (d + 4))) by (field; lra). split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_r 1). apply Rmult_le_compat; lra.
Qed.
(* phi(x + mu z) is the loss; U is the law of a ball's point over its direction: its density is d u^(d - 1) *)
Lemma step_6_4 {O} (Z : law O) (z : nat -> O -> vec) P H L kappa : (0 < P)%nat -> 0 < INR dim -> mapL L H -> 0 <= L -> 1 <= kappa -> tr H <= kappa * L -> (forall p, (p < P)%nat -> sphere Z (z p)) ->
  (forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e) -> let d := INR dim in
  (exists T : law R, T (fun t => t ^ 2) = 1 /\ T (fun t => t ^ 4) = 1 * (1 + 2 / d) /\ T (fun t => t ^ 6) = 1 * (1 + 2 / d) * (1 + 4 / d) /\
    forall k f, (forall c v, f (c *: v)%V = c ^ k * f v) -> bind T (fun _ => Z) (fun w => f (fst w *: z 0%nat (snd w))%V) = T (fun t => t ^ k) * Z (fun o => f (z 0%nat o))) /\
  (forall a b, Z (fun o => dot a (z 0%nat o) * dot b (z 0%nat o)) = dot a b) /\
  (forall w, Z (fun o => dot w (z 0%nat o) ^ 2 * nH H (z 0%nat o)) <= tr H * nrm2 w + 2 * nH H w) /\
  (Z (fun o => nH H (z 0%nat o) ^ 2) <= L ^ 2 * (kappa * (kappa + 2)) /\ Z (fun o => nH H (z 0%nat o) ^ 3) <= L ^ 3 * (kappa * (kappa + 2) * (kappa + 4))) /\
  (forall u w, Z (fun o => dot u (A_ z P o w)) = dot u w) /\
  (forall w, Z (fun o => nH H (A_ z P o w - w)) <= a__ kappa P * L * nrm2 w /\ Z (fun o => nH H (A_ z P o w)) <= c_ kappa P * L * nrm2 w) /\
  (forall t, derivable_pt_lim (fun t => d / (d + 2) * t ^ (dim + 2)) t (d * t ^ (dim - 1) * t ^ 2)) /\
  forall (U : law R) (l : vec -> R) (G : vec -> vec) mu x, U (fun u => u ^ 2) = d / (d + 2) -> 0 < mu -> (forall s, nrm2 (G (x + s) - G x)%V <= L * nH H s) -> let ball f := bind U (fun _ => Z) (fun w => f (fst w *: z 0%nat (snd w))%V) in
    ball (nH H) = d / (d + 2) * tr H /\
    ((forall u, Z (fun o => dot u (z 0%nat o)) = 0) -> (forall u, Z (fun o => l (x + mu *: z 0%nat o)%V / mu * dot u (z 0%nat o)) = ball (fun w => dot u (G (x + mu *: w)%V))) ->
      forall u, Z (fun o => ((l (x + mu *: z 0%nat o)%V - l x) / mu - dot (G x) (z 0%nat o)) * dot u (z 0%nat o)) = ball (fun w => dot u (G (x + mu *: w) - G x)%V)) /\
    forall eH bH, (forall u, ball (fun w => dot u (G (x + mu *: w) - G x)%V) = dot u bH) -> (forall p o, (p < P)%nat -> Rabs (eH p o) <= mu / 2 * nH H (z p o)) ->
      (forall p u, (p < P)%nat -> Z (fun o => eH p o * dot u (z p o)) = dot u bH) ->
      (forall p q u v, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => eH p o * dot u (z p o) * (eH q o * dot v (z q o))) = dot u bH * dot v bH) ->
      nrm2 bH <= mu ^ 2 * L ^ 2 * kappa /\ Z (fun o => nH H (btH z P eH o - bH)) <= a__ kappa P * L * (mu ^ 2 * L ^ 2 / 4 * (kappa * (kappa + 7))).
Proof.
  intros P1 d0 HH L0 k1 ht sz ind d. assert (dp : 0 < d) by exact d0. assert (sH := mapL_symm _ _ HH). assert (s0 := sz 0%nat P1). assert (P0 : 0 < INR P) by now apply lt_0_INR. assert (iP : 0 < / INR P) by now apply Rinv_0_lt_compat.
  assert (iP1 : / INR P <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia).
  destruct (tr_bounds H L HH) as [t0 [[p2 b2] [p3 b3]]]. destruct (step_6_3 H L kappa HH L0 ltac:(lra) ht) as [m2 m3]. assert (g0 := fun v => l_ge0 _ _ HH v : 0 <= nH H v). assert (z2 := fun p a b (hp : (p < P)%nat) => sph_2 Z (z p) d0 (sz p hp) a b).
  assert (sh := share d 2 d0 ltac:(lra)). assert (sh2 := shares d d0). assert (forms : forall p, (p < P)%nat -> Z (fun o => nH H (z p o)) = tr H /\ Z (fun o => nH H (z p o) ^ 2) <= L ^ 2 * (kappa * (kappa + 2)) /\ Z (fun o => nH H (z p o) ^ 3) <= L ^ 3 * (kappa * (kappa + 2) * (kappa + 4))).
  { intros p hp. destruct (sph_H Z (z p) H L d0 (sz p hp) HH) as [f1 [f2 f3]]. fold d in f2, f3. split; [exact f1|]. rewrite f2, f3. assert (n2 : 0 <= tr H ^ 2 + 2 * tr2 H) by (assert (q := pow2_ge_0 (tr H)); lra). assert (n3 : 0 <= tr H ^ 3 + 6 * tr H * tr2 H + 8 * tr3 H) by (assert (q := pow_le _ 3 t0); assert (0 <= tr H * tr2 H) by pos; lra).
    split; [apply Rle_trans with (1 * (tr H ^ 2 + 2 * tr2 H)); [apply Rmult_le_compat_r; lra|lra]|apply Rle_trans with (1 * (tr H ^ 3 + 6 * tr H * tr2 H + 8 * tr3 H)); [apply Rmult_le_compat_r; lra|lra]]. }
  assert (quad : forall p w, (p < P)%nat -> Z (fun o => dot w (z p o) ^ 2 * nH H (z p o)) = d / (d + 2) * (tr H * nrm2 w + 2 * nH H w)).
  { intros p w hp. rewrite (ex_ext Z _ (fun o => dot w (z p o) * dot w (z p o) * nH H (z p o))) by (intros; ring). rewrite (sph_2H Z (z p) d0 (sz p hp) H sH). reflexivity. }
  assert (q0 : forall w, 0 <= tr H * nrm2 w + 2 * nH H w) by (intros w; assert (x := Rmult_le_pos _ _ t0 (nrm2_ge0 w)); assert (y := g0 w); lra).
  assert (am := A_mean2 Z z P P1 z2).
  assert (spread : forall w, Z (fun o => nH H (A_ z P o w - w)) <= a__ kappa P * L * nrm2 w /\ Z (fun o => nH H (A_ z P o w)) <= c_ kappa P * L * nrm2 w).
  { intros w. assert (e := A_form H sH Z z P P1 ind w _ (fun p hp => quad p w hp)). assert (n0 := nrm2_ge0 w). assert (l := l_le _ _ HH w). fold (nH H w) in l. assert (gw := g0 w). assert (tk := Rmult_le_compat_r _ _ _ n0 ht).
    assert (le : d / (d + 2) * (tr H * nrm2 w + 2 * nH H w) <= tr H * nrm2 w + 2 * nH H w) by (rewrite <- (Rmult_1_l (tr H * nrm2 w + 2 * nH H w)) at 2; apply Rmult_le_compat_r; [apply q0|lra]).
    apply (Rmult_le_compat_l (/ INR P)) in le; [|lra]. assert (x1 := Rmult_le_compat_l (/ INR P) _ _ ltac:(lra) tk). assert (x2 := Rmult_le_compat_l (/ INR P) _ _ ltac:(lra) l). assert (x3 := Rmult_le_compat_l (1 - / INR P) _ _ ltac:(lra) l). split.
    - rewrite (ex_ext Z _ (fun o => nH H (A_ z P o w) + ((-2) * dot (H w) (A_ z P o w) + nH H w))) by (intros o; unfold nH; rewrite (form_sub _ _ HH), (dotC (H w)); ring). rewrite !ex_plus, ex_scal, ex_const, e, am, (l_sym _ _ HH). fold (nH H w). unfold a__, Rdiv. lra.
    - rewrite e. unfold c_, Rdiv. lra. }
  destruct (over_length Z (z 0%nat) d0 s0) as [T [_ [t2 [t4 [t6 hom]]]]]. fold d in t4, t6.
  split; [exists T; rewrite Rmult_1_l; auto|]. split; [intros; now apply z2|]. split; [intros w; rewrite quad by auto; rewrite <- (Rmult_1_l (tr H * nrm2 w + 2 * nH H w)) at 2; apply Rmult_le_compat_r; [apply q0|lra]|].
  split; [split; now apply forms|]. split; [exact am|]. split; [exact spread|]. split.
  { intros t. assert (dm : (1 <= dim)%nat) by exact (INR_lt 0 dim d0). replace (d * t ^ (dim - 1) * t ^ 2) with (d / (d + 2) * (INR (dim + 2) * t ^ pred (dim + 2))).
    - apply derivable_pt_lim_scal, derivable_pt_lim_pow.
    - replace (pred (dim + 2)) with (dim - 1 + 2)%nat by lia. rewrite pow_add, plus_INR. fold d. simpl INR. field. unfold d. lra. }
  intros U l G mu x hU m0 hG ball. assert (bl : ball (nH H) = d / (d + 2) * tr H).
  { unfold ball. cbn [bind ex fst snd]. rewrite (ex_ext U _ (fun u => tr H * u ^ 2)); [rewrite ex_scal, hU; ring|]. intros u. rewrite (ex_ext Z _ (fun o => u ^ 2 * nH H (z 0%nat o))) by (intros; now apply nH_hom). rewrite ex_scal, (proj1 (forms 0%nat P1)). ring. }
  split; [exact bl|]. split.
  - intros z1 st u. unfold ball in *. rewrite (ex_ext Z _ (fun o => l (x + mu *: z 0%nat o)%V / mu * dot u (z 0%nat o) + (- (l x / mu) * dot u (z 0%nat o) + (-1) * (dot (G x) (z 0%nat o) * dot u (z 0%nat o))))) by (intros; field; lra).
    rewrite !ex_plus, !ex_scal, z1, st, (z2 0%nat _ _ P1). rewrite (ex_ext (bind U (fun _ => Z)) (fun p => dot u (G (x + mu *: (fst p *: z 0%nat (snd p))) - G x)%V) (fun p => dot u (G (x + mu *: (fst p *: z 0%nat (snd p)))%V) + (-1) * dot u (G x))) by (intros; rewrite subE, dot_addr, dot_scalr; ring).
    rewrite ex_plus, ex_const, (dotC (G x)). ring.
  - intros eH bH hb hle hmean hind. split.
    + set (B := bind U (fun _ => Z)). set (dl := fun p : R * O => (G (x + mu *: (fst p *: z 0%nat (snd p))) - G x)%V). assert (cs := ex_cauchy_schwarz B (fun _ => bH) dl). cbv beta in cs. assert (en : B (fun p => dot bH (dl p)) = nrm2 bH) by exact (hb bH). rewrite en, ex_const in cs. assert (b0 := nrm2_ge0 bH).
      assert (dd : B (fun p => nrm2 (dl p)) <= mu ^ 2 * L ^ 2 * kappa).
      { apply Rle_trans with (B (fun p => L * mu ^ 2 * nH H (fst p *: z 0%nat (snd p))%V)).
        - apply ex_le; intros p. unfold dl. eapply Rle_trans; [apply hG|]. rewrite nH_hom by auto. right. ring.
        - rewrite ex_scal. change (B (fun p => nH H (fst p *: z 0%nat (snd p))%V)) with (ball (nH H)). rewrite bl. assert (m0' := pow2_ge_0 mu). apply Rle_trans with (L * mu ^ 2 * (kappa * L)); [|right; ring]. apply Rmult_le_compat_l; [pos|]. apply Rle_trans with (1 * tr H); [apply Rmult_le_compat_r; lra|lra]. }
      destruct (Req_dec (nrm2 bH) 0) as [z0|z0]; [rewrite z0; assert (q := pow2_ge_0 mu); assert (q2 := pow2_ge_0 L); assert (kk : 0 <= kappa) by lra; pos|]. apply (Rmult_le_reg_l (nrm2 bH)); [lra|]. apply (Rmult_le_compat_l _ _ _ b0) in dd. replace (nrm2 bH ^ 2) with (nrm2 bH * nrm2 bH) in cs by ring. eapply Rle_trans; [exact cs|exact dd].
    + set (X := mu ^ 2 / 4 * (L ^ 3 * (kappa * (kappa + 2) * (kappa + 4)))). apply Rle_trans with (/ INR P * X).
      * apply (btH_spread H L HH Z z P P1 eH bH hmean hind). intros p hp. apply Rle_trans with (Z (fun o => mu ^ 2 / 4 * nH H (z p o) ^ 3)).
        -- apply ex_le; intros o. assert (q := g0 (z p o)). assert (y : eH p o ^ 2 <= (mu / 2 * nH H (z p o)) ^ 2) by (rewrite <- (pow2_abs (eH p o)); apply pow_incr; split; [apply Rabs_pos|now apply hle]). apply (Rmult_le_compat_r _ _ _ q) in y. lra.
        -- rewrite ex_scal. apply Rmult_le_compat_l; [assert (q := pow2_ge_0 mu); lra|now apply forms].
      * unfold X, a__, Rdiv. assert (k2 : (kappa + 2) * (kappa + 4) <= (kappa + 1) * (kappa + 7)) by lra. assert (l3 : 0 <= / INR P * (mu ^ 2 * / 4 * (L ^ 3 * kappa))) by (assert (y := pow_le L 3 L0); assert (q := pow2_ge_0 mu); assert (0 <= kappa) by lra; pos). apply (Rmult_le_compat_l _ _ _ l3) in k2. lra.
Qed.
End OnSphere.
(* ---- Theorem 2, repaired ---- *)
Lemma signed_square {D : Dim} (M : vec -> vec) L u : symm M -> 0 <= L -> (forall u, - L * nrm2 u <= nH M u <= L * nrm2 u) -> nrm2 (M u) <= L ^ 2 * nrm2 u.
Proof.
  intros hM L0 b. assert (hp : mapL (2 * L) (fun v => M v + L *: v)%V).
  { split; intros; [rewrite (s_add _ hM); vring|rewrite (s_scal _ hM); vring|rewrite !dot_addl, !dot_addr, dot_scall, dot_scalr, (s_sym _ hM); reflexivity| |]; rewrite dot_addr, dot_scalr; destruct (b u0) as [x y]; unfold nH in x, y; fold (nrm2 u0); lra. }
  assert (q := l_square _ _ hp u). cbv beta in q. rewrite nrm2_add, nrm2_scal, dot_addr, !dot_scalr, (dotC (M u) u) in q. fold (nrm2 u) in q. lra.
Qed.
(* 10.5; M stands for H *)
Definition ch {D : Dim} kappa P : R := 1 + (kappa * INR dim + INR dim - 2) / (INR P * (INR dim + 2)).
Definition rho2_ {D : Dim} kappa : R := INR dim ^ 2 * ((kappa + 2) ^ 2 + 2 * INR dim + 4) / ((INR dim + 2) * (INR dim + 4)).
Lemma tr_scale {D : Dim} (M : vec -> vec) a b : tr (fun v => a *: M v + b *: v)%V = a * tr M + b * INR dim.
Proof.
  unfold tr. rewrite (sum_ext dim _ (fun j => a * dot (basis j) (M (basis j)) + b)) by (intros; rewrite dot_addr, !dot_scalr, basis_1 by auto; ring). rewrite sum_plus, sum_scal, sum_const. ring.
Qed.
Lemma step_10_5 {D : Dim} (M : vec -> vec) L : 0 < INR dim -> symm M -> 0 <= L -> (forall u, nH M u <= L * nrm2 u) -> let d := INR dim in
  (forall (f : vec -> R) (g : vec) x r2, 0 < r2 -> (forall s, nrm2 s <= r2 -> f (x + s)%V <= f x + dot g s + 1/2 * nH M s) -> (forall s, f x + dot g s - L / 2 * nrm2 s <= f (x + s)%V) -> forall u, - L * nrm2 u <= nH M u) /\
  (forall n kappa, (exists u, nrm2 u <> 0 /\ Rabs (nH M u) = n * nrm2 u) -> (forall u, - L * nrm2 u <= nH M u) -> 0 <= kappa -> tr M <= kappa * n -> n <= L /\ tr M <= kappa * L) /\
  (tr M < 0 -> (forall u, - L * nrm2 u <= nH M u) -> exists a, 0 <= a <= 1 /\ let M' := fun v => ((1 - a) *: M v + (a * L) *: v)%V in
    symm M' /\ tr M' = 0 /\ (forall u, - L * nrm2 u <= nH M' u <= L * nrm2 u) /\ forall u, nH M u <= nH M' u) /\
  tr M <= d * L /\ (forall kappa P, (0 < P)%nat -> d <= kappa -> ch d P <= ch kappa P) /\
  (forall {O} (Z : law O) z, normal Z z -> forall w, Z (fun o => dot w (z o) ^ 2 * nH M (z o) ^ 2) = (tr M ^ 2 + 2 * tr2 M) * nrm2 w + 4 * tr M * nH M w + 8 * nrm2 (M w)) /\
  (forall {O} (Z : law O) z, sphere Z z -> forall w, Z (fun o => dot w (z o) ^ 2 * nH M (z o) ^ 2) = d ^ 2 / ((d + 2) * (d + 4)) * ((tr M ^ 2 + 2 * tr2 M) * nrm2 w + 4 * tr M * nH M w + 8 * nrm2 (M w)) /\
    forall kappa, (forall u, - L * nrm2 u <= nH M u) -> 0 <= tr M <= kappa * L -> tr2 M <= d * L ^ 2 /\ Z (fun o => dot w (z o) ^ 2 * nH M (z o) ^ 2) <= rho2_ kappa * L ^ 2 * nrm2 w) /\
  forall kappa, 0 <= kappa <= d -> let c1 := d * (kappa + 2) / (d + 2) in c1 = ch kappa 1 /\ d * c1 - rho2_ kappa = d ^ 2 * kappa * (d - kappa) / ((d + 2) * (d + 4)) /\ 0 <= rho2_ kappa <= d * c1.
Proof.
  intros d0 hM L0 up d. assert (d1 : 1 <= d) by (apply (le_INR 1); exact (INR_lt 0 dim d0)).
  split; [|split; [|split; [|split; [|split; [|split; [|split]]]]]].
  - intros f g x r2 r0 ab lo u. assert (n0 := nrm2_ge0 u). assert (t0 : 0 < r2 / (nrm2 u + 1)) by (apply Rdiv_lt_0_compat; lra). set (t := sqrt (r2 / (nrm2 u + 1))). assert (tp : 0 < t) by now apply sqrt_lt_R0. assert (tt : t * t = r2 / (nrm2 u + 1)) by (apply sqrt_def; lra).
    assert (sm : nrm2 (t *: u)%V <= r2). { rewrite nrm2_scal, tt. apply (Rmult_le_reg_r (nrm2 u + 1)); [lra|]. replace (r2 / (nrm2 u + 1) * nrm2 u * (nrm2 u + 1)) with (r2 * nrm2 u) by (field; lra). lra. }
    assert (a := ab _ sm). assert (b := lo (t *: u)%V). rewrite nrm2_scal in b. rewrite (nH_hom M t u hM) in a. apply (Rmult_le_reg_l (t * t)); [now apply Rmult_lt_0_compat|]. lra.
  - intros n kappa [u [u0 e]] lo k0 ht. assert (n0 := nrm2_ge0 u). assert (nl : n <= L). { apply (Rmult_le_reg_r (nrm2 u)); [lra|]. rewrite <- e. apply Rabs_le. split; [assert (q := lo u); lra|apply up]. }
    split; [exact nl|]. apply (Rmult_le_compat_l kappa) in nl; lra.
  - intros tn lo. assert (dl : 0 < d * L - tr M) by (assert (0 <= d * L) by (apply Rmult_le_pos; lra); lra). set (a := - tr M / (d * L - tr M)). assert (a0 : 0 <= a) by (unfold a; apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (a1 : a <= 1) by (unfold a; apply (Rmult_le_reg_r (d * L - tr M)); auto; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; assert (0 <= d * L) by (apply Rmult_le_pos; lra); lra). exists a. split; [lra|]. intros M'.
    assert (form : forall u, nH M' u = (1 - a) * nH M u + a * (L * nrm2 u)) by (intros u; unfold nH, M'; rewrite dot_addr, !dot_scalr; unfold nrm2; ring).
    split; [split; intros; unfold M'; [rewrite (s_add _ hM); vring|rewrite (s_scal _ hM); vring|rewrite dot_addl, dot_addr, !dot_scall, !dot_scalr, (s_sym _ hM); reflexivity]|].
    split; [unfold M'; rewrite tr_scale; fold d; unfold a; field; lra|]. split.
    + intros u. rewrite form. assert (n0 := Rmult_le_pos _ _ L0 (nrm2_ge0 u)). assert (x := Rmult_le_compat_l (1 - a) _ _ ltac:(lra) (up u)). assert (y := Rmult_le_compat_l (1 - a) _ _ ltac:(lra) (lo u)). assert (z := Rmult_le_pos _ _ a0 n0). lra.
    + intros u. rewrite form. assert (x := Rmult_le_compat_l a _ _ a0 (up u)). lra.
  - unfold tr. apply Rle_trans with (sum dim (fun _ => L)); [|rewrite sum_const; unfold d; lra]. apply sum_le; intros j hj. assert (q := up (basis j)). unfold nrm2 in q. rewrite basis_1 in q by auto. unfold nH in q. lra.
  - intros kappa P P1 hk. assert (P0 : 0 < INR P) by now apply lt_0_INR. unfold ch, Rdiv. fold d. apply Rplus_le_compat_l, Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra|]. assert (d * d <= kappa * d) by (apply Rmult_le_compat_r; lra). lra.
  - intros O Z z nz w. rewrite (ex_ext Z _ (fun o => dot w (z o) * dot w (z o) * nH M (z o) * nH M (z o))) by (intros; ring). rewrite (E2HH M hM Z z nz). unfold nH. fold (nrm2 w). rewrite <- (s_sym _ hM w (M w)). fold (nrm2 (M w)). ring.
  - intros O Z z sz w. assert (e : Z (fun o => dot w (z o) ^ 2 * nH M (z o) ^ 2) = d ^ 2 / ((d + 2) * (d + 4)) * ((tr M ^ 2 + 2 * tr2 M) * nrm2 w + 4 * tr M * nH M w + 8 * nrm2 (M w))).
    { rewrite (ex_ext Z _ (fun o => dot w (z o) * dot w (z o) * nH M (z o) * nH M (z o))) by (intros; ring). rewrite (sph_2HH Z z d0 sz M hM). unfold nH. fold (nrm2 w). rewrite <- (s_sym _ hM w (M w)). fold (nrm2 (M w)). reflexivity. }
    split; [exact e|]. intros kappa lo [t0 t1]. assert (sq := fun u => signed_square M L u hM L0 (fun u => conj (lo u) (up u))).
    assert (t2 : tr2 M <= d * L ^ 2). { unfold tr2. apply Rle_trans with (sum dim (fun _ => L ^ 2)); [|rewrite sum_const; unfold d; lra]. apply sum_le; intros j hj. assert (q := sq (basis j)). unfold nrm2 in q at 2. rewrite basis_1 in q by auto. lra. }
    split; [exact t2|]. rewrite e. assert (n0 := nrm2_ge0 w). assert (p0 : 0 <= d ^ 2 / ((d + 2) * (d + 4))) by (apply (shares d); lra). assert (tq : tr M ^ 2 <= (kappa * L) ^ 2) by (apply pow_incr; lra).
    assert (x1 := Rmult_le_compat_r _ _ _ n0 (Rplus_le_compat _ _ _ _ tq (Rmult_le_compat_l 2 _ _ ltac:(lra) t2))). assert (x2 := Rmult_le_compat_l _ _ _ t0 (up w)). assert (x2' := Rmult_le_compat_r (L * nrm2 w) _ _ ltac:(apply Rmult_le_pos; auto) t1). assert (x3 := sq w).
    apply Rle_trans with (d ^ 2 / ((d + 2) * (d + 4)) * (((kappa + 2) ^ 2 + 2 * d + 4) * L ^ 2 * nrm2 w)); [apply Rmult_le_compat_l; auto; lra|]. right. unfold rho2_. fold d. field. lra.
  - intros kappa hk c1. destruct (step_10_5_numbers d kappa d1 hk) as [a b]. fold d in a, b. split; [unfold c1, ch; fold d; simpl INR; field; lra|]. split; [exact a|]. split; [|exact b]. unfold rho2_. fold d. apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra]. assert (q := pow2_ge_0 (kappa + 2)). assert (q2 := pow2_ge_0 d). apply Rmult_le_pos; lra.
Qed.
(* one round of K = 1 with directions on the sphere; M is the H of the round *)
Section Sphere1.
Context {D : Dim}.
Variables L kappa mu eta nu2 Gm : R.     (* nu2 is nu^2 / m, Gm the page's G *)
Variable P : nat.
Hypothesis P1 : (0 < P)%nat.
Hypothesis d0 : 0 < INR dim.
Let d := INR dim.
Variable f : vec -> R.
Variables x g : vec.
Context {S O : Type}.
Variable Sm : law S.
Variable n : S -> vec.
Variable Z : law O.
Variable z : nat -> O -> vec.
Variable e : S -> nat -> O -> R.
Variable bs : S -> vec.
Hypothesis upper : forall s, f (x + s)%V <= f x + dot g s + L / 2 * nrm2 s.
Hypothesis n_mean0 : forall u, Sm (fun s => dot u (n s)) = 0.
Hypothesis n_var : Sm (fun s => nrm2 (n s)) <= nu2.
Hypothesis n_most : forall s, nrm2 (g + n s) <= Gm ^ 2.
Hypothesis sz : forall p, (p < P)%nat -> sphere Z (z p).
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Hypothesis e_le : forall s p o, (p < P)%nat -> Rabs (e s p o) <= L * mu / 2 * nrm2 (z p o).
Hypothesis e_mean : forall s p u, (p < P)%nat -> Z (fun o => e s p o * dot u (z p o)) = dot u (bs s).
Hypothesis bs_le : forall s, nrm2 (bs s) <= L ^ 2 * mu ^ 2 * INR dim.
Hypothesis L0 : 0 < L.
Hypothesis k0 : 0 <= kappa.
Hypothesis m0 : 0 <= mu.
Hypothesis eta0 : 0 < eta.
Hypothesis nu0 : 0 <= nu2.
Hypothesis Gm0 : 0 <= Gm.
Let c := ch kappa P.
Hypothesis steps : eta * L * c <= 1/4.
Definition vs s o : vec := (/ INR P *: vsum P (fun p => (dot (z p o) (g + n s) + e s p o) *: z p o))%V.
Definition Bs : R := L ^ 2 * mu ^ 2 / 4 * d ^ 3.
Definition next1 (w : S * O) : vec := (x - eta *: vs (fst w) (snd w))%V.
Let P0 : 0 < INR P. Proof. now apply lt_0_INR. Qed.
Let d1 : 1 <= d. Proof. apply (le_INR 1). exact (INR_lt 0 dim d0). Qed.
Lemma c_least : 0 < c /\ (eta * L <= 3/8).
Proof.
  assert (iP1 : / INR P <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia). assert (iP : 0 < / INR P) by now apply Rinv_0_lt_compat.
  assert (cm : 2/3 <= c).
  { unfold c, ch. fold d. replace ((kappa * d + d - 2) / (INR P * (d + 2))) with (/ INR P * ((kappa * d + d - 2) / (d + 2))) by (field; lra). assert (kd : 0 <= kappa * d) by (apply Rmult_le_pos; lra).
    assert (h : - (1/3) <= (kappa * d + d - 2) / (d + 2)) by (apply (Rmult_le_reg_r (d + 2)); [lra|]; unfold Rdiv at 2; rewrite (Rmult_assoc _ (/ (d + 2))), Rinv_l; lra).
    apply (Rmult_le_compat_l (/ INR P)) in h; lra. }
  split; [lra|]. assert (el : 0 < eta * L) by now apply Rmult_lt_0_compat. apply (Rmult_le_compat_l (eta * L)) in cm; lra.
Qed.
Lemma vs_split s o : vs s o = (A_ z P o (g + n s) + bt z P (e s) o)%V.
Proof. unfold vs, A_, bt. rewrite (vsum_ext P _ (fun p => dot (z p o) (g + n s) *: z p o + e s p o *: z p o)%V) by (intros; vring). rewrite vsum_plus. vring. Qed.
Let z_2 p a b : (p < P)%nat -> Z (fun o => dot a (z p o) * dot b (z p o)) = dot a b. Proof. intros hp. now apply sph_2, sz. Qed.
Lemma vs_mean s u : Z (fun o => dot u (vs s o)) = dot u (g + n s) + dot u (bs s).
Proof.
  rewrite (ex_ext Z _ (fun o => dot u (A_ z P o (g + n s)) + dot u (bt z P (e s) o))) by (intros; rewrite vs_split; apply dot_addr). rewrite ex_plus, (A_mean2 Z z P P1 z_2), (bt_mean Z z P P1 (e s) (bs s)); [reflexivity|]. intros; now apply e_mean.
Qed.
Lemma e_size s p o : (p < P)%nat -> e s p o ^ 2 <= (L * mu / 2 * d) ^ 2.
Proof. intros hp. rewrite <- (pow2_abs (e s p o)). apply pow_incr. split; [apply Rabs_pos|]. assert (q := e_le s p o hp). rewrite (on_sphere _ _ (sz p hp)) in q. exact q. Qed.
Lemma bt_size s o : nrm2 (bt z P (e s) o) <= Bs.
Proof.
  unfold bt. eapply Rle_trans; [now apply nrm2_mean|]. apply Rle_trans with (/ INR P * sum P (fun _ => Bs)); [|rewrite sum_const; right; field; lra]. apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat, P0|]. apply sum_le; intros p hp.
  rewrite nrm2_scal, (on_sphere _ _ (sz p hp)). fold d. assert (q := e_size s p o hp). apply (Rmult_le_compat_r d) in q; [|lra]. unfold Bs. lra.
Qed.
(* a step is at most this long *)
Definition longest : R := d * Gm + L * mu / 2 * (d * sqrt d).
Lemma vs_size s o : nrm2 (vs s o) <= longest ^ 2.
Proof.
  assert (sd := sqrt_pos d). assert (ss : sqrt d * sqrt d = d) by (apply sqrt_sqrt; lra). set (r := sqrt d) in *. assert (lm : 0 <= L * mu / 2) by (assert (0 <= L * mu) by (apply Rmult_le_pos; lra); lra).
  unfold vs. eapply Rle_trans; [now apply nrm2_mean|]. apply Rle_trans with (/ INR P * sum P (fun _ => longest ^ 2)); [|rewrite sum_const; right; field; lra]. apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat, P0|]. apply sum_le; intros p hp.
  rewrite nrm2_scal, (on_sphere _ _ (sz p hp)). fold d. set (a := dot (z p o) (g + n s)). assert (ha : Rabs a <= r * Gm).
  { apply Rsqr_incr_0_var; [|now apply Rmult_le_pos]. rewrite <- Rsqr_abs. unfold Rsqr. assert (cs := cauchy_schwarz (z p o) (g + n s)%V). unfold nrm2 in cs at 1. fold (nrm2 (z p o)) in cs. rewrite (on_sphere _ _ (sz p hp)) in cs. fold d a in cs. assert (q := Rmult_le_compat_l d _ _ ltac:(lra) (n_most s)). replace (r * Gm * (r * Gm)) with (r * r * Gm ^ 2) by ring. rewrite ss. simpl in cs. lra. }
  assert (he : Rabs (e s p o) <= L * mu / 2 * d) by (assert (q := e_le s p o hp); rewrite (on_sphere _ _ (sz p hp)) in q; exact q).
  assert (b : Rabs (a + e s p o) <= r * Gm + L * mu / 2 * d) by (eapply Rle_trans; [apply Rabs_triang|lra]). assert (b2 : (a + e s p o) ^ 2 <= (r * Gm + L * mu / 2 * d) ^ 2) by (rewrite <- (pow2_abs (a + e s p o)); apply pow_incr; split; [apply Rabs_pos|exact b]).
  apply (Rmult_le_compat_r d) in b2; [|lra]. replace (longest ^ 2) with ((r * Gm + L * mu / 2 * d) ^ 2 * d); [lra|]. unfold longest. fold r. rewrite <- ss. ring.
Qed.
Let b2 := L ^ 2 * mu ^ 2 * d.
(* what a bound of the curvature makes of a round *)
Lemma from_curvature (q : vec -> R) C : (forall s o, f (x - eta *: vs s o)%V <= f x - eta * dot g (vs s o) + eta ^ 2 / 2 * q (vs s o)) -> 0 <= C -> eta * C <= 1/4 ->
  forall B', (forall s, Z (fun o => q (vs s o)) <= 2 * (C * nrm2 (g + n s) + B')) ->
  bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * C * nu2 + eta * b2 + eta ^ 2 * B'.
Proof.
  intros hq C0 hC B' hB. assert (n0 := nrm2_ge0 g). assert (e2 := pow2_ge_0 eta).
  assert (one : forall s, Z (fun o => f (next1 (s, o))) <= f x - eta * dot g (g + n s) + eta / 4 * nrm2 g + eta * b2 + eta ^ 2 * (C * nrm2 (g + n s) + B')).
  { intros s. apply Rle_trans with (Z (fun o => f x + (- eta * dot g (vs s o) + eta ^ 2 / 2 * q (vs s o)))); [apply ex_le; intros o; unfold next1; cbn [fst snd]; assert (h := hq s o); lra|].
    rewrite !ex_plus, !ex_scal, ex_const, vs_mean. assert (q3 := step_3_1 g (bs s) eta (Rlt_le _ _ eta0)). assert (q4 := Rmult_le_compat_l eta _ _ (Rlt_le _ _ eta0) (bs_le s)). fold d b2 in q4. assert (q5 := Rmult_le_compat_l (eta ^ 2 / 2) _ _ ltac:(lra) (hB s)). lra. }
  cbn [bind ex]. eapply Rle_trans; [apply ex_le; intros s; apply one|].
  rewrite (ex_ext Sm _ (fun s => (f x - eta * nrm2 g + eta / 4 * nrm2 g + eta * b2 + eta ^ 2 * B') + (- eta * dot g (n s) + eta ^ 2 * C * nrm2 (g + n s)))) by (intros; rewrite dot_addr; fold (nrm2 g); ring).
  rewrite !ex_plus, !ex_scal, !ex_const, n_mean0. assert (h := step_3_3 Sm n g nu2 n_mean0 n_var). assert (k : 0 <= eta ^ 2 * C) by (apply Rmult_le_pos; auto). apply (Rmult_le_compat_l _ _ _ k) in h.
  assert (k2 : 0 <= eta * (1/4 - eta * C) * nrm2 g) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Let added := eta ^ 2 * (L * c) * nu2 + eta * b2 + eta ^ 2 * (2 * (L * Bs)).
Lemma outside : Gm <= L * mu / 2 * sqrt d -> longest <= L * mu * (d * sqrt d) /\ bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - 3/4 * eta * nrm2 g + eta * b2 + 1/2 * eta ^ 2 * L ^ 3 * mu ^ 2 * d ^ 3.
Proof.
  intros hG. assert (ss : sqrt d * sqrt d = d) by (apply sqrt_sqrt; lra). assert (sd := sqrt_pos d). set (r := sqrt d) in *. assert (lo : longest <= L * mu * (d * r)) by (unfold longest; fold r; apply (Rmult_le_compat_l d) in hG; lra).
  split; [exact lo|]. assert (l0 : 0 <= longest) by (unfold longest; fold r; apply Rplus_le_le_0_compat; [apply Rmult_le_pos; lra|assert (0 <= L * mu * (d * r)) by (repeat apply Rmult_le_pos; lra); lra]).
  assert (sq : forall s o, nrm2 (vs s o) <= 4 * Bs). { intros s o. eapply Rle_trans; [apply vs_size|]. apply Rle_trans with ((L * mu * (d * r)) ^ 2); [apply pow_incr; lra|]. right. unfold Bs. replace ((L * mu * (d * r)) ^ 2) with (L ^ 2 * mu ^ 2 * d ^ 2 * (r * r)) by ring. rewrite ss. field. }
  assert (n0 := nrm2_ge0 g). assert (e2 := pow2_ge_0 eta).
  assert (one : forall s, Z (fun o => f (next1 (s, o))) <= f x - eta * dot g (g + n s) + eta / 4 * nrm2 g + eta * b2 + eta ^ 2 * (2 * (L * Bs))).
  { intros s. apply Rle_trans with (Z (fun o => (f x + eta ^ 2 * (2 * (L * Bs))) + - eta * dot g (vs s o))).
    - apply ex_le; intros o. unfold next1. cbn [fst snd]. replace (x - eta *: vs s o)%V with (x + (- eta) *: vs s o)%V by vring. eapply Rle_trans; [apply upper|]. rewrite dot_scalr, nrm2_scal. assert (h := Rmult_le_compat_l (L / 2 * (eta * eta)) _ _ ltac:(apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]) (sq s o)). lra.
    - rewrite ex_plus, ex_scal, ex_const, vs_mean. assert (q3 := step_3_1 g (bs s) eta (Rlt_le _ _ eta0)). assert (q4 := Rmult_le_compat_l eta _ _ (Rlt_le _ _ eta0) (bs_le s)). fold d b2 in q4. lra. }
  cbn [bind ex]. eapply Rle_trans; [apply ex_le; intros s; apply one|].
  rewrite (ex_ext Sm _ (fun s => (f x - eta * nrm2 g + eta / 4 * nrm2 g + eta * b2 + eta ^ 2 * (2 * (L * Bs))) + - eta * dot g (n s))) by (intros; rewrite dot_addr; fold (nrm2 g); ring).
  rewrite ex_plus, ex_const, ex_scal, n_mean0. unfold Bs. right. field.
Qed.
(* the two squares of 3.2, for curvature of either kind *)
Variable M : vec -> vec.
Hypothesis hM : symm M.
Hypothesis M_up : forall u, nH M u <= L * nrm2 u.
Hypothesis ht : tr M <= kappa * L.
Hypothesis above : forall s, nrm2 s <= (2 * eta * d * Gm) ^ 2 -> f (x + s)%V <= f x + dot g s + 1/2 * nH M s.
Lemma first_square w : Z (fun o => nH M (A_ z P o w)) <= L * c * nrm2 w.
Proof.
  rewrite (A_form M hM Z z P P1 indep w (d / (d + 2) * (tr M * nrm2 w + 2 * nH M w))).
  - assert (n0 := nrm2_ge0 w). assert (sh := share d 2 d0 ltac:(lra)). assert (iP1 : / INR P <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia). assert (iP : 0 < / INR P) by now apply Rinv_0_lt_compat.
    assert (t1 := Rmult_le_compat_r _ _ _ n0 ht). assert (h : d / (d + 2) * (tr M * nrm2 w + 2 * nH M w) <= d / (d + 2) * ((kappa + 2) * L * nrm2 w)) by (apply Rmult_le_compat_l; [lra|]; assert (q := M_up w); lra).
    apply (Rmult_le_compat_l (/ INR P)) in h; [|lra]. assert (h2 := Rmult_le_compat_l (1 - / INR P) _ _ ltac:(lra) (M_up w)). eapply Rle_trans; [apply Rplus_le_compat; [exact h|exact h2]|]. right. unfold c, ch. fold d. field. lra.
  - intros p hp. rewrite (ex_ext Z _ (fun o => dot w (z p o) * dot w (z p o) * nH M (z p o))) by (intros; ring). rewrite (sph_2H Z (z p) d0 (sz p hp) M hM). reflexivity.
Qed.
Lemma second_square s o : nH M (bt z P (e s) o) <= L * Bs.
Proof. eapply Rle_trans; [apply M_up|]. apply Rmult_le_compat_l; [lra|apply bt_size]. Qed.
Lemma inside : L * mu / 2 * sqrt d <= Gm -> (forall s, Z (fun o => nH M (vs s o)) <= 2 * (L * c * nrm2 (g + n s) + L * Bs)) ->
  longest <= 2 * d * Gm /\ bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * (L * c) * nu2 + eta * b2 + eta ^ 2 * (L * Bs).
Proof.
  intros hG hv. assert (lo : longest <= 2 * d * Gm) by (unfold longest; apply (Rmult_le_compat_l d) in hG; lra). split; [exact lo|]. destruct c_least as [c0 _].
  assert (l0 : 0 <= longest) by (unfold longest; assert (sd := sqrt_pos d); apply Rplus_le_le_0_compat; [apply Rmult_le_pos; lra|assert (0 <= L * mu * (d * sqrt d)) by (repeat apply Rmult_le_pos; lra); lra]).
  apply (from_curvature (nH M) (L * c)); [|apply Rmult_le_pos; lra|lra|exact hv].
  intros s o. replace (x - eta *: vs s o)%V with (x + (- eta) *: vs s o)%V by vring. eapply Rle_trans; [apply above|rewrite dot_scalr, (nH_hom M _ _ hM); right; field].
  rewrite nrm2_scal. assert (q := vs_size s o). assert (l2 : longest ^ 2 <= (2 * d * Gm) ^ 2) by (apply pow_incr; lra). replace ((2 * eta * d * Gm) ^ 2) with (- eta * - eta * (2 * d * Gm) ^ 2) by ring. apply Rmult_le_compat_l; [|lra]. assert (y := pow2_ge_0 eta). lra.
Qed.
Lemma smoothing_most : mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3) <= mu ^ 2 * L ^ 2 / 2 * (d + 3) ^ 3.
Proof.
  destruct c_least as [_ el]. assert (m2 := pow2_ge_0 mu). assert (l2 := pow2_ge_0 L). assert (d3 : 0 <= d ^ 3) by (apply pow_le; lra). assert (d2 := pow2_ge_0 d). replace (mu ^ 2 * L ^ 2 / 2 * (d + 3) ^ 3) with (mu ^ 2 * L ^ 2 * (1/2 * (d + 3) ^ 3)) by field. apply Rmult_le_compat_l; [now apply Rmult_le_pos|].
  apply (Rmult_le_compat_r _ _ _ d3) in el. lra.
Qed.
Lemma either_way : (forall s, Z (fun o => nH M (vs s o)) <= 2 * (L * c * nrm2 (g + n s) + L * Bs)) ->
  bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * (L * c) * nu2 + eta / 2 * (mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3)).
Proof.
  intros hv. assert (n0 := nrm2_ge0 g). destruct c_least as [c0 _]. assert (v0_ : 0 <= eta ^ 2 * (L * c) * nu2) by (assert (y := pow2_ge_0 eta); repeat apply Rmult_le_pos; lra). assert (s0 : 0 <= eta ^ 2 * L ^ 3 * mu ^ 2 * d ^ 3) by (assert (y := pow2_ge_0 eta); assert (y2 := pow2_ge_0 mu); assert (y3 := pow_le L 3 (Rlt_le _ _ L0)); assert (y4 : 0 <= d ^ 3) by (apply pow_le; lra); pos).
  assert (en : 0 <= eta * nrm2 g) by (apply Rmult_le_pos; lra). destruct (Rle_dec (L * mu / 2 * sqrt d) Gm) as [h|h].
  - destruct (inside h hv) as [_ i]. unfold Bs, b2 in i. lra.
  - destruct (outside ltac:(lra)) as [_ i]. unfold b2 in i. lra.
Qed.
(* 10.6: the two parts of a step behind a curvature of any sign *)
Section AnySign.
Hypothesis M_low : forall u, - L * nrm2 u <= nH M u.
Hypothesis tr0 : 0 <= tr M.
Hypothesis kd : kappa <= d.
Hypothesis e_apart : forall s p q a b u, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot a (z p o) * dot b (z p o) * (e s q o * dot u (z q o))) = dot a b * Z (fun o => e s q o * dot u (z q o)).
Let e0 := L * mu / 2 * d.
Let rho := sqrt (rho2_ kappa).
Let e00 : 0 <= e0. Proof. unfold e0. assert (0 <= L * mu * d) by (repeat apply Rmult_le_pos; lra). lra. Qed.
Lemma root_mean (X : O -> R) (E : O -> R) a : 0 <= a -> (forall o, Rabs (E o) <= e0) -> Z (fun o => X o ^ 2) <= a ^ 2 -> Z (fun o => X o * E o) <= e0 * a.
Proof.
  intros a0 hE hX. destruct (Req_dec a 0) as [az|an].
  - (* X vanishes in the mean square *)
    assert (x2 : Z (fun o => X o ^ 2) <= 0) by (rewrite az in hX; replace (0 ^ 2) with 0 in hX by ring; exact hX). apply Rnot_lt_le; intros bad. rewrite az, Rmult_0_r in bad. set (v := Z (fun o => X o * E o)) in *.
    assert (h : v <= / (2 * v) * (e0 ^ 2 + 1) * 0 + v / 2 * (e0 ^ 2 / (e0 ^ 2 + 1))).
    { assert (q1 : 0 < e0 ^ 2 + 1) by (assert (y := pow2_ge_0 e0); lra). apply Rle_trans with (Z (fun o => / (2 * v) * (e0 ^ 2 + 1) * X o ^ 2 + v / 2 * (e0 ^ 2 / (e0 ^ 2 + 1)))).
      - apply ex_le; intros o. assert (E2 : E o ^ 2 <= e0 ^ 2) by (rewrite <- (pow2_abs (E o)); apply pow_incr; split; [apply Rabs_pos|auto]). assert (sq := pow2_ge_0 (/ v * (e0 ^ 2 + 1) * X o - E o)).
        assert (k : 0 < v / (2 * (e0 ^ 2 + 1))) by (apply Rdiv_lt_0_compat; lra). assert (m := Rmult_le_pos _ _ (Rlt_le _ _ k) sq). replace (v / (2 * (e0 ^ 2 + 1)) * (/ v * (e0 ^ 2 + 1) * X o - E o) ^ 2) with (/ (2 * v) * (e0 ^ 2 + 1) * X o ^ 2 - X o * E o + v / (2 * (e0 ^ 2 + 1)) * E o ^ 2) in m by (field; lra).
        assert (m2 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ k) E2). replace (v / 2 * (e0 ^ 2 / (e0 ^ 2 + 1))) with (v / (2 * (e0 ^ 2 + 1)) * e0 ^ 2) by (field; lra). lra.
      - rewrite ex_plus, ex_scal, ex_const. apply Rplus_le_compat_r, Rmult_le_compat_l; [|exact x2]. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|lra]. }
    assert (q1 : 0 < e0 ^ 2 + 1) by (assert (y := pow2_ge_0 e0); lra). assert (sh : e0 ^ 2 / (e0 ^ 2 + 1) <= 1) by (apply (Rmult_le_reg_r (e0 ^ 2 + 1)); auto; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra). apply (Rmult_le_compat_l (v / 2)) in sh; lra.
  - assert (a1 : 0 < a) by lra. destruct (Req_dec e0 0) as [ez|en].
    + rewrite (ex_ext Z _ (fun _ => 0)); [rewrite ex_const, ez; lra|]. intros o. assert (q := hE o). rewrite ez in q. assert (q2 := Rabs_pos (E o)). assert (q3 : Rabs (E o) = 0) by lra. destruct (Req_dec (E o) 0) as [w|w]; [rewrite w; ring|apply Rabs_no_R0 in w; contradiction].
    + assert (e1 : 0 < e0) by lra. apply Rle_trans with (Z (fun o => e0 / (2 * a) * X o ^ 2 + e0 * a / 2)).
      * apply ex_le; intros o. assert (E2 : E o ^ 2 <= e0 ^ 2) by (rewrite <- (pow2_abs (E o)); apply pow_incr; split; [apply Rabs_pos|auto]). assert (k : 0 < a / (2 * e0)) by (apply Rdiv_lt_0_compat; lra). assert (m := Rmult_le_pos _ _ (Rlt_le _ _ k) (pow2_ge_0 (e0 / a * X o - E o))).
        replace (a / (2 * e0) * (e0 / a * X o - E o) ^ 2) with (e0 / (2 * a) * X o ^ 2 - X o * E o + a / (2 * e0) * E o ^ 2) in m by (field; lra). assert (m2 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ k) E2). replace (a / (2 * e0) * e0 ^ 2) with (e0 * a / 2) in m2 by (field; lra). lra.
      * rewrite ex_plus, ex_scal, ex_const. assert (k : 0 <= e0 / (2 * a)) by (apply Rlt_le, Rdiv_lt_0_compat; lra). apply (Rmult_le_compat_l _ _ _ k) in hX. replace (e0 / (2 * a) * a ^ 2) with (e0 * a / 2) in hX by (field; lra). lra.
Qed.
Lemma e_flat s p o : (p < P)%nat -> Rabs (e s p o) <= e0.
Proof. intros hp. assert (q := e_le s p o hp). rewrite (on_sphere _ _ (sz p hp)) in q. exact q. Qed.
Lemma two_directions s p q w : (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot w (z p o) * dot (z p o) (M (z q o)) * e s q o) = Z (fun o => dot w (M (z q o)) * e s q o) /\ Z (fun o => dot w (M (z q o)) * e s q o) <= e0 * (L * sqrt (nrm2 w)).
Proof.
  intros hp hq ne. split.
  - rewrite (ex_ext Z _ (fun o => sum dim (fun j => dot w (z p o) * dot (basis j) (z p o) * (e s q o * dot (M (basis j)) (z q o))))).
    + rewrite ex_sum, (sum_ext dim _ (fun j => dot w (basis j) * Z (fun o => e s q o * dot (M (basis j)) (z q o)))) by (intros; now apply e_apart).
      rewrite (sum_ext dim _ (fun j => Z (fun o => dot w (basis j) * (e s q o * dot (M (basis j)) (z q o))))) by (intros; now rewrite ex_scal). rewrite <- ex_sum. apply ex_ext; intros o. rewrite (sum_ext dim _ (fun j => e s q o * (dot w (basis j) * dot (M (z q o)) (basis j)))) by (intros; rewrite (s_sym _ hM), (dotC (M (z q o))); ring).
      rewrite sum_scal, parseval. ring.
    + intros o. rewrite (dot_coords (z p o)), Rmult_comm, <- sum_scal, <- sum_scal. apply sum_ext; intros j _. rewrite <- (s_sym _ hM). ring.
  - apply root_mean; [apply Rmult_le_pos; [lra|apply sqrt_pos]|intros; now apply e_flat|]. rewrite (ex_ext Z _ (fun o => dot (M w) (z q o) * dot (M w) (z q o))) by (intros; rewrite (s_sym _ hM); simpl; ring). rewrite (z_2 q _ _ hq). fold (nrm2 (M w)).
    eapply Rle_trans; [apply (signed_square M L w hM (Rlt_le _ _ L0)); intros; split; auto|]. right. replace ((L * sqrt (nrm2 w)) ^ 2) with (L ^ 2 * (sqrt (nrm2 w) * sqrt (nrm2 w))) by ring. rewrite sqrt_sqrt by apply nrm2_ge0. reflexivity.
Qed.
Let Y := 1 - / INR P + rho / INR P.
Lemma one_direction s p w : (p < P)%nat -> Z (fun o => dot w (z p o) * nH M (z p o) * e s p o) <= e0 * (rho * L * sqrt (nrm2 w)).
Proof.
  intros hp. destruct (step_10_5 M L d0 hM (Rlt_le _ _ L0) M_up) as [_ [_ [_ [_ [_ [_ [h hc]]]]]]]. destruct (hc kappa ltac:(fold d; lra)) as [_ [_ [r0 _]]].
  assert (rr : rho * rho = rho2_ kappa) by (apply sqrt_sqrt, r0). apply root_mean; [repeat apply Rmult_le_pos; try apply sqrt_pos; lra|intros; now apply e_flat|].
  destruct (h O Z (z p) (sz p hp) w) as [_ b]. destruct (b kappa M_low ltac:(lra)) as [_ bb]. rewrite (ex_ext Z _ (fun o => dot w (z p o) ^ 2 * nH M (z p o) ^ 2)) by (intros; ring). eapply Rle_trans; [exact bb|]. right.
  replace ((rho * L * sqrt (nrm2 w)) ^ 2) with (rho * rho * L ^ 2 * (sqrt (nrm2 w) * sqrt (nrm2 w))) by ring. rewrite rr, sqrt_sqrt by apply nrm2_ge0. ring.
Qed.
Lemma mixed s w : Z (fun o => dot (A_ z P o w) (M (bt z P (e s) o))) <= e0 * L * Y * sqrt (nrm2 w).
Proof.
  rewrite (ex_ext Z _ (fun o => / INR P * / INR P * sum P (fun p => sum P (fun q => dot w (z p o) * dot (z p o) (M (z q o)) * e s q o)))).
  2: { intros o. unfold A_, bt. rewrite (s_scal _ hM), dot_scall, dot_scalr, (s_vsum M hM), dot_suml, <- Rmult_assoc. f_equal. apply sum_ext; intros p _. rewrite dot_sumr. apply sum_ext; intros q _. rewrite (s_scal _ hM), dot_scall, dot_scalr, (dotC w). ring. }
  rewrite ex_scal, ex_sum. set (W := sqrt (nrm2 w)). assert (iP : 0 < / INR P) by now apply Rinv_0_lt_compat. set (X1 := e0 * (L * W)). set (X2 := e0 * (rho * L * W)).
  apply Rle_trans with (/ INR P * / INR P * sum P (fun _ => INR P * X1 + (X2 - X1))).
  - apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply sum_le; intros p hp. rewrite ex_sum, <- (sum_const P X1), <- (sum_delta P p (fun _ => X2 - X1) hp), <- sum_plus. apply sum_le; intros q hq. destruct (Nat.eq_dec q p) as [->|ne].
    + assert (h := one_direction s p w hp). unfold nH in h. fold W X2 in h. lra.
    + destruct (two_directions s p q w hp hq ltac:(congruence)) as [e1 e2]. rewrite e1. fold W X1 in e2. lra.
  - rewrite sum_const. right. unfold X1, X2, Y, Rdiv. field. lra.
Qed.
Lemma Y_most : 0 <= Y /\ Y ^ 2 <= d * c /\ Y ^ 2 <= 1 - / INR P + rho ^ 2 / INR P /\ 1 - / INR P + rho ^ 2 / INR P <= d * c.
Proof.
  destruct (step_10_5 M L d0 hM (Rlt_le _ _ L0) M_up) as [_ [_ [_ [_ [_ [_ [_ hc]]]]]]]. destruct (hc kappa ltac:(fold d; lra)) as [_ [_ [r0 r1]]]. assert (rr : rho * rho = rho2_ kappa) by (apply sqrt_sqrt, r0). assert (rp : 0 <= rho) by apply sqrt_pos.
  assert (iP1 : / INR P <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|]; apply (le_INR 1); lia). assert (iP : 0 < / INR P) by now apply Rinv_0_lt_compat. fold d in r1. set (c1 := d * (kappa + 2) / (d + 2)) in *.
  split; [unfold Y, Rdiv; assert (0 <= rho * / INR P) by (apply Rmult_le_pos; lra); lra|].
  assert (a : Y ^ 2 <= 1 - / INR P + rho ^ 2 / INR P).
  { unfold Y, Rdiv. assert (h := pow2_ge_0 (1 - rho)). assert (k : 0 <= / INR P * (1 - / INR P)) by (apply Rmult_le_pos; lra). assert (m := Rmult_le_pos _ _ k h). lra. }
  assert (b : 1 - / INR P + rho ^ 2 / INR P <= d * c).
  { replace (rho ^ 2) with (rho * rho) by ring. rewrite rr. replace (d * c) with (d * (1 - / INR P) + d * c1 / INR P) by (unfold c, c1, ch; fold d; field; lra). assert (xx := Rmult_le_compat_r (/ INR P) _ _ (Rlt_le _ _ iP) r1). assert (yy : 1 - / INR P <= d * (1 - / INR P)) by (rewrite <- (Rmult_1_l (1 - / INR P)) at 1; apply Rmult_le_compat_r; lra). unfold Rdiv in *. lra. }
  split; [lra|auto].
Qed.
Lemma twice_mixed s : 2 * Z (fun o => dot (A_ z P o (g + n s)) (M (bt z P (e s) o))) <= L * c * nrm2 (g + n s) + L * Bs.
Proof.
  set (w := (g + n s)%V). destruct c_least as [c0 _]. destruct Y_most as [y0 [y1 _]]. assert (n0 := nrm2_ge0 w). set (W := sqrt (nrm2 w)). assert (WW : W * W = nrm2 w) by (apply sqrt_sqrt, n0). assert (W0 : 0 <= W) by apply sqrt_pos.
  assert (Be : Bs = e0 ^ 2 * d) by (unfold Bs, e0; field). assert (h2 := mixed s w). fold W in h2.
  apply Rle_trans with (2 * (e0 * L * Y * W)); [lra|]. rewrite <- WW, Be.
  assert (q : 2 * (e0 * Y * W) <= c * (W * W) + e0 ^ 2 * d); [|apply (Rmult_le_compat_l L) in q; lra].
  apply Rnot_lt_le; intros bad. assert (s1 : 0 <= c * (W * W) + e0 ^ 2 * d) by (apply Rplus_le_le_0_compat; [pos|apply Rmult_le_pos; [apply pow2_ge_0|lra]]).
  assert (s2 : (c * (W * W) + e0 ^ 2 * d) * (c * (W * W) + e0 ^ 2 * d) < 2 * (e0 * Y * W) * (2 * (e0 * Y * W))) by (apply Rmult_le_0_lt_compat; lra).
  assert (s3 : 4 * (e0 ^ 2 * (W * W)) * Y ^ 2 <= 4 * (e0 ^ 2 * (W * W)) * (d * c)) by (apply Rmult_le_compat_l; [|exact y1]; assert (0 <= e0 ^ 2 * (W * W)) by (apply Rmult_le_pos; [apply pow2_ge_0|now apply Rmult_le_pos]); lra).
  assert (s4 := pow2_ge_0 (c * (W * W) - e0 ^ 2 * d)). lra.
Qed.
Lemma signed s : Z (fun o => nH M (vs s o)) <= 2 * (L * c * nrm2 (g + n s) + L * Bs).
Proof.
  set (w := (g + n s)%V). apply Rle_trans with (Z (fun o => nH M (A_ z P o w) + (2 * dot (A_ z P o w) (M (bt z P (e s) o)) + L * Bs))).
  - apply ex_le; intros o. rewrite vs_split. fold w. assert (q := second_square s o). unfold nH at 1. rewrite (s_add _ hM), !dot_addl, !dot_addr. fold (nH M (A_ z P o w)) (nH M (bt z P (e s) o)). rewrite <- (s_sym _ hM (bt z P (e s) o)), (dotC (M (bt z P (e s) o))). lra.
  - rewrite !ex_plus, ex_scal, ex_const. assert (h1 := first_square w). assert (h2 := twice_mixed s). fold w in h2. lra.
Qed.
Lemma step_10_6 : (forall s p o, (p < P)%nat -> Rabs (e s p o) <= L * mu / 2 * d) /\ Bs = (L * mu / 2 * d) ^ 2 * d /\ Bs = L ^ 2 * mu ^ 2 / 4 * d ^ 3 /\
  (forall s p q w, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot w (z p o) * dot (z p o) (M (z q o)) * e s q o) = Z (fun o => dot w (M (z q o)) * e s q o) /\ Z (fun o => dot w (M (z q o)) * e s q o) <= L * mu / 2 * d * (L * sqrt (nrm2 w))) /\
  (forall s p w, (p < P)%nat -> Z (fun o => dot w (z p o) * nH M (z p o) * e s p o) <= L * mu / 2 * d * (rho * L * sqrt (nrm2 w))) /\
  (forall s w, Z (fun o => dot (A_ z P o w) (M (bt z P (e s) o))) <= L * mu / 2 * d * L * Y * sqrt (nrm2 w)) /\ Y ^ 2 <= 1 - / INR P + rho ^ 2 / INR P /\ 1 - / INR P + rho ^ 2 / INR P <= d * c /\
  (forall s, 2 * Z (fun o => dot (A_ z P o (g + n s)) (M (bt z P (e s) o))) <= L * c * nrm2 (g + n s) + L * (L * mu / 2 * d) ^ 2 * d) /\ (forall s o, nH M (bt z P (e s) o) <= L * (L * mu / 2 * d) ^ 2 * d) /\
  (forall s, Z (fun o => nH M (vs s o)) <= 2 * L * c * nrm2 (g + n s) + 2 * L * Bs) /\ 2 * d + 3/8 * d ^ 3 <= 1/2 * (d + 3) ^ 3.
Proof.
  assert (Be : Bs = e0 ^ 2 * d) by (unfold Bs, e0; field). destruct Y_most as [y0 [y1 [y2 y3]]]. destruct c_least as [c0 _].
  split; [intros; now apply e_flat|]. split; [exact Be|]. split; [reflexivity|]. split; [intros; now apply two_directions|]. split; [intros; now apply one_direction|]. split; [apply mixed|]. split; [exact y2|]. split; [exact y3|].
  split; [intros s; assert (h := twice_mixed s); fold e0; rewrite Be in h; lra|]. split; [intros s o; assert (h := second_square s o); fold e0; rewrite Be in h; lra|]. split; [intros s; assert (h := signed s); lra|].
  assert (d3 : 0 <= d ^ 3) by (apply pow_le; lra). assert (d2 := pow2_ge_0 d). lra.
Qed.
Lemma any_sign_round : bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * (L * c) * nu2 + eta / 2 * (mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3)).
Proof. apply either_way. exact signed. Qed.
End AnySign.
Hypothesis M_pos : forall u, 0 <= nH M u.
Lemma positive s : Z (fun o => nH M (vs s o)) <= 2 * (L * c * nrm2 (g + n s) + L * Bs).
Proof.
  assert (hp : mapL L M) by (split; intros; [apply hM|apply hM|apply hM|apply M_pos|apply M_up]).
  apply Rle_trans with (Z (fun o => 2 * nH M (A_ z P o (g + n s)) + 2 * (L * Bs))).
  - apply ex_le; intros o. rewrite vs_split. destruct (step_3_2 M L hp (A_ z P o (g + n s)) (bt z P (e s) o)) as [_ h]. assert (q := second_square s o). lra.
  - rewrite ex_plus, ex_scal, ex_const. assert (h := first_square (g + n s)%V). lra.
Qed.
(* longest is the longest step over eta *)
Lemma step_10_4 : (forall w, Z (fun o => nH M (A_ z P o w)) <= L * c * nrm2 w) /\ (forall s p o, (p < P)%nat -> Rabs (e s p o) <= L * mu / 2 * d) /\ (forall s, nrm2 (bs s) <= L ^ 2 * mu ^ 2 * d) /\
  (forall s o, nH M (bt z P (e s) o) <= L * (L ^ 2 * mu ^ 2 / 4 * d ^ 3)) /\ (forall s o, nrm2 (eta *: vs s o) <= (eta * (d * Gm + L * mu / 2 * (d * sqrt d))) ^ 2) /\
  (L * mu / 2 * sqrt d <= Gm -> eta * (d * Gm + L * mu / 2 * (d * sqrt d)) <= 2 * eta * d * Gm /\
    bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * (L * c) * nu2 + eta * (L ^ 2 * mu ^ 2 * d) + eta ^ 2 * (L * (L ^ 2 * mu ^ 2 / 4 * d ^ 3))) /\
  (Gm <= L * mu / 2 * sqrt d -> eta * (d * Gm + L * mu / 2 * (d * sqrt d)) <= eta * (L * mu * (d * sqrt d)) /\
    bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - 3/4 * eta * nrm2 g + eta * (L ^ 2 * mu ^ 2 * d) + 1/2 * eta ^ 2 * L ^ 3 * mu ^ 2 * d ^ 3) /\
  bind Sm (fun _ => Z) (fun w => f (next1 w)) <= f x - eta / 2 * nrm2 g + eta ^ 2 * (L * c) * nu2 + eta / 2 * (mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3)) /\
  (1 <= kappa -> eta * L <= 1/4) /\ mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3) <= mu ^ 2 * L ^ 2 / 2 * (d + 3) ^ 3.
Proof.
  split; [exact first_square|]. split; [intros s p o hp; assert (q := e_le s p o hp); rewrite (on_sphere _ _ (sz p hp)) in q; exact q|]. split; [exact bs_le|]. split; [exact second_square|].
  split; [intros s o; rewrite nrm2_scal; assert (q := vs_size s o); unfold longest in q; rewrite Rpow_mult_distr; replace (eta ^ 2) with (eta * eta) by ring; apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|exact q]|].
  split; [intros h; destruct (inside h positive) as [i1 i2]; split; [unfold longest in i1; apply (Rmult_le_compat_l eta) in i1; lra|exact i2]|].
  split; [intros h; destruct (outside h) as [i1 i2]; split; [unfold longest in i1; apply (Rmult_le_compat_l eta) in i1; lra|exact i2]|].
  split; [apply either_way, positive|]. split; [|exact smoothing_most]. intros k1. assert (c1 : 1 <= c).
  { unfold c, ch. fold d. assert (0 <= (kappa * d + d - 2) / (INR P * (d + 2))); [|lra]. apply Rmult_le_pos; [assert (1 * d <= kappa * d) by (apply Rmult_le_compat_r; lra); lra|]. apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra. }
  assert (el : 0 < eta * L) by now apply Rmult_lt_0_compat. apply (Rmult_le_compat_l (eta * L)) in c1; lra.
Qed.
End Sphere1.
(* Theorem 2, repaired: the curvature's norm is n, and kappa may be larger than d *)
Section TheoremTwo.
Context {D : Dim}.
Variables L kappa mu eta nu2 fstar : R.     (* nu2 is nu^2 / m *)
Variable P : nat.
Hypothesis P1 : (0 < P)%nat.
Hypothesis d0 : 0 < INR dim.
Let d := INR dim.
Variable f : vec -> R.
Variable G : vec -> vec.
Variable Gm : vec -> R.
Variable H : vec -> vec -> vec.             (* of every x *)
Context {S O : Type}.
Variable Sm : vec -> law S.
Variable n : vec -> S -> vec.
Variable Z : law O.
Variable z : nat -> O -> vec.
Variable e : vec -> S -> nat -> O -> R.
Variable bs : vec -> S -> vec.
Hypothesis upper : forall x s, f (x + s)%V <= f x + dot (G x) s + L / 2 * nrm2 s.
Hypothesis lower : forall x s, f x + dot (G x) s - L / 2 * nrm2 s <= f (x + s)%V.
Hypothesis bounded : forall x, fstar <= f x.
Hypothesis hH : forall x, symm (H x).
Hypothesis H_up : forall x u, nH (H x) u <= L * nrm2 u.
Hypothesis ht : forall x, exists norm, (exists u, nrm2 u <> 0 /\ Rabs (nH (H x) u) = norm * nrm2 u) /\ tr (H x) <= kappa * norm.
Hypothesis above : forall x s, nrm2 s <= (2 * eta * d * Gm x) ^ 2 -> f (x + s)%V <= f x + dot (G x) s + 1/2 * nH (H x) s.
Hypothesis n_mean0 : forall x u, Sm x (fun s => dot u (n x s)) = 0.
Hypothesis n_var : forall x, Sm x (fun s => nrm2 (n x s)) <= nu2.
Hypothesis n_most : forall x s, nrm2 (G x + n x s) <= Gm x ^ 2.
Hypothesis Gm0 : forall x, 0 <= Gm x.
Hypothesis sz : forall p, (p < P)%nat -> sphere Z (z p).
Hypothesis indep : forall p q a b c e, (p < P)%nat -> (q < P)%nat -> p <> q ->
  Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e.
Hypothesis e_le : forall x s p o, (p < P)%nat -> Rabs (e x s p o) <= L * mu / 2 * nrm2 (z p o).
Hypothesis e_mean : forall x s p u, (p < P)%nat -> Z (fun o => e x s p o * dot u (z p o)) = dot u (bs x s).
Hypothesis e_apart : forall x s p q a b u, (p < P)%nat -> (q < P)%nat -> p <> q -> Z (fun o => dot a (z p o) * dot b (z p o) * (e x s q o * dot u (z q o))) = dot a b * Z (fun o => e x s q o * dot u (z q o)).
Hypothesis bs_le : forall x s, nrm2 (bs x s) <= L ^ 2 * mu ^ 2 * INR dim.
Hypothesis L0 : 0 < L.
Hypothesis k0 : 0 <= kappa.
Hypothesis m0 : 0 <= mu.
Hypothesis eta0 : 0 < eta.
Hypothesis nu0 : 0 <= nu2.
Let c := ch kappa P.
Hypothesis steps : eta * L * c <= 1/4.
Definition round2 x : law (S * O) := bind (Sm x) (fun _ => Z).
Definition step2 x : S * O -> vec := next1 eta P x (G x) (n x) z (e x).
Let d1 : 1 <= d. Proof. apply (le_INR 1). exact (INR_lt 0 dim d0). Qed.
Let left2 := mu ^ 2 * L ^ 2 * (2 * d + eta * L * d ^ 3).
Lemma round_two x : round2 x (fun w => f (step2 x w)) <= f x - eta / 2 * nrm2 (G x) + eta ^ 2 * (L * c) * nu2 + eta / 2 * left2.
Proof.
  assert (n0 := nrm2_ge0 (G x)). assert (P0 : 0 < INR P) by now apply lt_0_INR.
  (* kappa at most d *)
  set (k := Rmin kappa d). assert (kk : 0 <= k) by (apply Rmin_glb; lra). assert (kd : k <= d) by apply Rmin_r. assert (kl : k <= kappa) by apply Rmin_l.
  assert (ck : ch k P <= c). { unfold c, ch, Rdiv. fold d. apply Rplus_le_compat_l, Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra|]. assert (k * d <= kappa * d) by (apply Rmult_le_compat_r; lra). lra. }
  assert (el : 0 < eta * L) by now apply Rmult_lt_0_compat. assert (sk : eta * L * ch k P <= 1/4) by (apply (Rmult_le_compat_l (eta * L)) in ck; lra).
  assert (b2 := bs_le x).
  assert (cn : eta ^ 2 * (L * ch k P) * nu2 <= eta ^ 2 * (L * c) * nu2) by (apply Rmult_le_compat_r; auto; apply Rmult_le_compat_l; [apply pow2_ge_0|]; apply Rmult_le_compat_l; lra).
  assert (cl := proj1 (c_least L k eta P P1 d0 L0 kk eta0 sk)).
  assert (add0 : 0 <= eta ^ 2 * (L * ch k P) * nu2) by (assert (y := pow2_ge_0 eta); repeat apply Rmult_le_pos; lra).
  destruct (Rle_dec (Gm x) (L * mu / 2 * sqrt d)) as [h|h].
  - destruct (outside L mu eta (Gm x) P P1 d0 f x (G x) (Sm x) (n x) Z z (e x) (bs x) (upper x) (n_mean0 x) (n_most x) sz (e_le x) (e_mean x) (b2) L0 m0 eta0 (Gm0 x) h) as [_ o].
    fold (step2 x) (round2 x) in o. assert (en : 0 <= eta * nrm2 (G x)) by (apply Rmult_le_pos; lra). unfold left2. fold d in o. lra.
  - assert (g0 : 0 < Gm x) by (assert (q := sqrt_pos d); assert (0 <= L * mu / 2 * sqrt d) by (apply Rmult_le_pos; [assert (0 <= L * mu) by (apply Rmult_le_pos; lra); lra|auto]); lra).
    destruct (step_10_5 (H x) L d0 (hH x) (Rlt_le _ _ L0) (H_up x)) as [lo [norm [up [trd _]]]].
    assert (low : forall u, - L * nrm2 u <= nH (H x) u). { apply (lo f (G x) x ((2 * eta * d * Gm x) ^ 2)); [apply pow_lt; repeat apply Rmult_lt_0_compat; lra|apply above|apply lower]. }
    destruct (ht x) as [nn [hn htn]]. destruct (norm nn kappa hn low k0 htn) as [_ tk]. fold d in trd.
    assert (tk' : tr (H x) <= k * L) by (unfold k; destruct (Rmin_case_strong kappa d (fun r => tr (H x) <= r * L)); auto; intros; lra).
    assert (go : forall M, symm M -> (forall u, - L * nrm2 u <= nH M u <= L * nrm2 u) -> 0 <= tr M <= k * L -> (forall u, nH (H x) u <= nH M u) -> round2 x (fun w => f (step2 x w)) <= f x - eta / 2 * nrm2 (G x) + eta ^ 2 * (L * ch k P) * nu2 + eta / 2 * left2).
    { intros M hM both tM more. apply (any_sign_round L k mu eta nu2 (Gm x) P P1 d0 f x (G x) (Sm x) (n x) Z z (e x) (bs x) (upper x) (n_mean0 x) (n_var x) (n_most x) sz indep (e_le x) (e_mean x) b2 L0 kk m0 eta0 nu0 (Gm0 x) sk M hM); try tauto; try apply both; try apply (e_apart x).
      intros s hs. eapply Rle_trans; [now apply above|]. assert (q := more s). lra. }
    destruct (Rle_dec 0 (tr (H x))) as [t0|t0].
    + eapply Rle_trans; [apply (go (H x) (hH x)); [intros u; split; [apply low|apply H_up]|lra|intros; lra]|lra].
    + destruct (up ltac:(lra) low) as [a [ha [sM [tM [bM mM]]]]]. eapply Rle_trans; [apply (go _ sM bM); [rewrite tM; split; [lra|apply Rmult_le_pos; lra]|exact mM]|lra].
Qed.
Theorem theorem_2 x0 R_ : (0 < R_)%nat -> / INR R_ * sum R_ (fun t => Eit round2 step2 t (fun x => nrm2 (G x)) x0)
  <= 2 * (f x0 - fstar) / (INR R_ * eta) + 2 * L * eta * ch kappa P * nu2 + mu ^ 2 * L ^ 2 / 2 * (INR dim + 3) ^ 3.
Proof.
  intros R0%lt_0_INR. set (add := eta ^ 2 * (L * c) * nu2 + eta / 2 * left2).
  assert (h := telescope round2 step2 (fun _ => True) (fun x => f x - fstar) (fun x => eta / 2 * nrm2 (G x)) add (fun _ _ _ => I)).
  specialize (h (fun x _ => ltac:(rewrite (ex_ext (round2 x) _ (fun w => f (step2 x w) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := round_two x); unfold add; lra)) (fun x => ltac:(assert (b := bounded x); lra)) R_ x0 I).
  rewrite (sum_ext R_ _ (fun t => eta / 2 * Eit round2 step2 t (fun x => nrm2 (G x)) x0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 2 / (eta * INR R_)) by (apply Rdiv_lt_0_compat; [lra|]; now apply Rmult_lt_0_compat).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (2 / (eta * INR R_) * (eta / 2 * sum R_ (fun t => Eit round2 step2 t (fun x => nrm2 (G x)) x0))) with (/ INR R_ * sum R_ (fun t => Eit round2 step2 t (fun x => nrm2 (G x)) x0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. assert (s := smoothing_most L kappa mu eta P P1 d0 L0 k0 eta0 steps). fold d left2 in s.
  replace (2 / (eta * INR R_) * (f x0 - fstar + INR R_ * add)) with (2 * (f x0 - fstar) / (INR R_ * eta) + 2 * L * eta * c * nu2 + left2) by (unfold add; field; lra). unfold c. fold d. lra.
Qed.
End TheoremTwo.
(* ---- 12: two examples ---- *)
(* 12.1: exact slopes and L = 1; the mean loss is g x *)
Lemma pow_taylor_both K : exists B, 0 <= B /\ forall e, Rabs e <= 1 -> Rabs ((1 + e) ^ K - (1 + INR K * e + INR K * (INR K - 1) / 2 * e ^ 2)) <= B * Rabs e ^ 3.
Proof.
  induction K as [|K [B [B0 h]]]. { exists 0. split; [lra|]. intros e _. simpl. rewrite Rabs_right; lra. }
  assert (k0 := pos_INR K). assert (kk : 0 <= INR K * (INR K - 1) / 2). { destruct K; [simpl; lra|]. rewrite S_INR in *. assert (q := pos_INR K). assert (0 <= (INR K + 1) * (INR K + 1 - 1)) by (apply Rmult_le_pos; lra). lra. }
  exists (2 * B + INR K * (INR K - 1) / 2). split; [lra|]. intros e he. specialize (h e he). set (r := (1 + e) ^ K - _) in h. rewrite S_INR.
  replace ((1 + e) ^ S K - (1 + (INR K + 1) * e + (INR K + 1) * (INR K + 1 - 1) / 2 * e ^ 2)) with ((1 + e) * r + INR K * (INR K - 1) / 2 * e ^ 3) by (unfold r; simpl; field).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, <- RPow_abs, (Rabs_right (INR K * (INR K - 1) / 2)) by lra.
  assert (a2 : Rabs (1 + e) <= 2) by (eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra).
  assert (x : Rabs (1 + e) * Rabs r <= 2 * (B * Rabs e ^ 3)) by (apply Rmult_le_compat; auto using Rabs_pos). lra.
Qed.
Lemma step_12_1 K sigma : (0 < K)%nat -> let slope sg g x := sg * (x + sigma) + g in let own sg g eta := Nat.iter K (fun x => x - eta * slope sg g x) 0 in
  (forall sg g x, derivable_pt_lim (fun x => sg * (1/2 * x ^ 2 + sigma * x) + g * x) x (slope sg g x)) /\
  (forall g x, / 2 * (1 * (1/2 * x ^ 2 + sigma * x) + g * x + (-1 * (1/2 * x ^ 2 + sigma * x) + g * x)) = g * x) /\
  (forall g, / 2 * ((slope 1 g 0 - g) ^ 2 + (slope (-1) g 0 - g) ^ 2) = sigma ^ 2) /\
  1/8 * (1 - / INR K) ^ 2 <= 3 * (1 - / INR K) /\
  exists C, forall eta, 0 < eta <= 1 -> let g := 1/2 * (INR K - 1) * eta * sigma in let te := INR K * eta in let xp := / 2 * (own 1 g eta + own (-1) g eta) in
    Rabs (g * xp + te / 2 * g ^ 2 - 1/8 * (1 - / INR K) ^ 2 * 1 ^ 2 * te ^ 3 * sigma ^ 2) <= C * eta ^ 4.
Proof.
  intros K1 slope own. assert (k1 : 1 <= INR K) by (apply (le_INR 1); lia).
  split; [|split; [|split; [|split]]].
  - intros sg g x. unfold slope. replace (sg * (x + sigma) + g) with (sg * (1/2 * (INR 2 * x ^ 1) + sigma * 1) + g * 1) by (simpl; field).
    apply derivable_pt_lim_plus; [|apply derivable_pt_lim_scal, derivable_pt_lim_id]. apply derivable_pt_lim_scal, derivable_pt_lim_plus; apply derivable_pt_lim_scal; [apply (derivable_pt_lim_pow x 2)|apply derivable_pt_lim_id].
  - intros. field.
  - intros. unfold slope. field.
  - assert (i1 : / INR K <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). assert (i0 : 0 < / INR K) by (apply Rinv_0_lt_compat; lra). set (u := / INR K) in *. assert (0 <= (1 - u) * (3 - 1/8 * (1 - u))) by (apply Rmult_le_pos; lra). lra.
  - destruct (pow_taylor_both K) as [B [B0 tay]]. set (c2 := INR K * (INR K - 1) / 2) in *. set (h := 1/2 * (INR K - 1) * Rabs sigma).
    assert (h0 : 0 <= h) by (unfold h; assert (x := Rabs_pos sigma); repeat apply Rmult_le_pos; lra).
    exists (h * (Rabs sigma + h) * B). intros eta [e0 e1].
    assert (closed : forall k sg g, sg * sg = 1 -> Nat.iter k (fun x => x - eta * slope sg g x) 0 = (sg * g + sigma) * ((1 - sg * eta) ^ k - 1)).
    { intros k sg g s2. induction k as [|k IH]; [simpl; ring|]. set (F := fun x => x - eta * slope sg g x) in *. change (Nat.iter (S k) F 0) with (F (Nat.iter k F 0)). rewrite IH. unfold F, slope. simpl pow.
      replace ((sg * g + sigma) * ((1 - sg * eta) ^ k - 1) - eta * (sg * ((sg * g + sigma) * ((1 - sg * eta) ^ k - 1) + sigma) + g)) with ((sg * g + sigma) * ((1 - sg * eta) * (1 - sg * eta) ^ k - 1) + eta * g * (sg * sg - 1)) by ring. rewrite s2. ring. }
    intros g te xp.
    assert (p := tay eta ltac:(rewrite Rabs_right; lra)). assert (m := tay (- eta) ltac:(rewrite Rabs_Ropp, Rabs_right; lra)). rewrite Rabs_Ropp in m. rewrite (Rabs_right eta) in p, m by lra.
    set (r1 := (1 + eta) ^ K - _) in p. set (r2 := (1 + - eta) ^ K - _) in m.
    assert (E : g * xp + te / 2 * g ^ 2 - 1/8 * (1 - / INR K) ^ 2 * 1 ^ 2 * te ^ 3 * sigma ^ 2 = / 2 * g * ((sigma + g) * r2 + (sigma - g) * r1)).
    { unfold xp, own. rewrite !closed by ring. replace (1 - -1 * eta) with (1 + eta) by ring. replace (1 - 1 * eta) with (1 + - eta) by ring.
      replace ((1 + eta) ^ K) with (r1 + (1 + INR K * eta + c2 * eta ^ 2)) by (unfold r1; ring). replace ((1 + - eta) ^ K) with (r2 + (1 + INR K * - eta + c2 * (- eta) ^ 2)) by (unfold r2; ring).
      unfold c2, te. clearbody r1 r2. unfold g. field. lra. }
    rewrite E. rewrite !Rabs_mult, (Rabs_right (/ 2)) by lra.
    assert (ga : Rabs g = h * eta) by (unfold g, h; rewrite !Rabs_mult, (Rabs_right eta), (Rabs_right (INR K - 1)), (Rabs_right (1/2)) by lra; ring).
    assert (gh : Rabs g <= h) by (rewrite ga; rewrite <- (Rmult_1_r h) at 2; apply Rmult_le_compat_l; lra).
    assert (e3 : 0 <= B * eta ^ 3) by (apply Rmult_le_pos; [auto|apply pow_le; lra]).
    assert (b1 : Rabs ((sigma + g) * r2) <= (Rabs sigma + h) * (B * eta ^ 3)) by (rewrite Rabs_mult; apply Rmult_le_compat; auto using Rabs_pos; eapply Rle_trans; [apply Rabs_triang|lra]).
    assert (b2 : Rabs ((sigma - g) * r1) <= (Rabs sigma + h) * (B * eta ^ 3)) by (rewrite Rabs_mult; apply Rmult_le_compat; auto using Rabs_pos; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra).
    assert (b := Rabs_triang ((sigma + g) * r2) ((sigma - g) * r1)). rewrite ga. assert (he : 0 <= / 2 * (h * eta)) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra).
    apply Rle_trans with (/ 2 * (h * eta) * (2 * ((Rabs sigma + h) * (B * eta ^ 3)))); [apply Rmult_le_compat_l; lra|]. right. simpl. field.
Qed.
(* 12.2: a walk of fair signs; the mean of |S_k| by Wallis' product *)
Definition sign_law : law R.
Proof. refine {| ex f := / 2 * (f 1 + f (-1)) |}; intros; try lra. assert (h1 := H 1). assert (h2 := H (-1)). lra. Defined.
Fixpoint walk (h : list R) : R := match h with nil => 0 | cons s h => walk h + s end.
Fixpoint at_ (k : nat) (f : R -> R) : R := match k with O => f 0 | S k => at_ k (fun x => / 2 * (f (x + 1) + f (x + -1))) end.
Lemma path_walk k : forall f, path (fun _ => sign_law) k (fun h => f (walk h)) = at_ k f.
Proof. induction k; intros f; [reflexivity|]. rewrite path_S. cbn [at_]. rewrite <- IHk. reflexivity. Qed.
Lemma at_ext k : forall f g, (forall z, f (IZR (2 * z + Z.of_nat k)) = g (IZR (2 * z + Z.of_nat k))) -> at_ k f = at_ k g.
Proof.
  induction k; intros f g h; cbn [at_]; [exact (h 0%Z)|]. apply IHk; intros z. f_equal. rewrite <- !plus_IZR.
  replace (2 * z + Z.of_nat k + 1)%Z with (2 * z + Z.of_nat (S k))%Z by lia. replace (2 * z + Z.of_nat k + -1)%Z with (2 * (z - 1) + Z.of_nat (S k))%Z by lia. now rewrite !h.
Qed.
Lemma at_lin k a : forall f g, at_ k (fun x => f x + a * g x) = at_ k f + a * at_ k g.
Proof.
  induction k; intros f g; cbn [at_]; [reflexivity|]. rewrite <- IHk. f_equal. apply functional_extensionality; intros x. ring.
Qed.
Lemma at_scal k a f : at_ k (fun x => a * f x) = a * at_ k f.
Proof. assert (h := at_lin k a (fun _ => 0) f). assert (z : at_ k (fun _ => 0) = 0) by (clear; induction k; cbn [at_]; [reflexivity|]; replace (fun _ : R => / 2 * (0 + 0)) with (fun _ : R => 0) by (apply functional_extensionality; intros; ring); exact IHk). rewrite z in h. rewrite Rplus_0_l in h. rewrite <- h. f_equal. apply functional_extensionality; intros. ring. Qed.
(* E[S phi(S)] = k/2 E[phi(S' + 1) - phi(S' - 1)], S' one sign shorter *)
Lemma at_parts n : forall f, at_ (S n) (fun x => x * f x) = INR (S n) / 2 * at_ n (fun x => f (x + 1) - f (x + -1)).
Proof.
  induction n; intros f; [cbn; replace (0 + 1) with 1 by ring; replace (0 + -1) with (-1) by ring; field|].
  transitivity (at_ (S n) (fun x => x * (/ 2 * (f (x + 1) + f (x + -1))) + / 2 * (f (x + 1) - f (x + -1)))).
  - change (at_ (S (S n)) (fun x => x * f x)) with (at_ (S n) (fun x => / 2 * ((x + 1) * f (x + 1) + (x + -1) * f (x + -1)))). f_equal. apply functional_extensionality; intros x. field.
  - rewrite at_lin, IHn, (S_INR (S n)). cbn [at_].
    replace (fun x => / 2 * (f (x + 1 + 1) + f (x + 1 + -1)) - / 2 * (f (x + -1 + 1) + f (x + -1 + -1))) with (fun x => / 2 * (f (x + 1 + 1) - f (x + 1 + -1) + (f (x + -1 + 1) - f (x + -1 + -1)))).
    + set (B := at_ n _). field.
    + apply functional_extensionality; intros x. replace (x + 1 + -1) with x by ring. replace (x + -1 + 1) with x by ring. ring.
Qed.
Definition mean_abs k : R := at_ k Rabs.
Definition at_zero k : R := at_ k (fun x => if Req_EM_T x 0 then 1 else 0).
Lemma mean_abs_S k : mean_abs (S k) = mean_abs k + at_zero k.
Proof.
  unfold mean_abs, at_zero. cbn [at_]. rewrite <- (Rmult_1_l (at_ k (fun x => if Req_EM_T x 0 then 1 else 0))), <- at_lin. apply at_ext; intros z. set (n := (2 * z + Z.of_nat k)%Z).
  destruct (Req_EM_T (IZR n) 0) as [e|e]; [rewrite e, Rabs_R0; replace (0 + -1) with (- (1)) by ring; rewrite Rabs_Ropp, Rplus_0_l, Rabs_R1; field|].
  assert (c : (n <= -1 \/ 1 <= n)%Z) by (destruct (Z.eq_dec n 0) as [q|q]; [rewrite q in e; contradiction|lia]).
  destruct c as [c|c]; apply IZR_le in c; [rewrite !Rabs_left1 by lra|rewrite !Rabs_right by lra]; field.
Qed.
Lemma odd_zero n : at_zero (S (2 * n)) = 0.
Proof.
  unfold at_zero. transitivity (at_ (S (2 * n)) (fun x => 0 * x)); [|rewrite (at_scal _ 0 (fun x => x)); ring]. apply at_ext; intros z.
  destruct Req_EM_T as [e|e]; [|ring]. apply eq_IZR_R0 in e. lia.
Qed.
Definition sg x : R := if Rlt_dec 0 x then 1 else if Rlt_dec x 0 then -1 else 0.
Lemma even_step n : mean_abs (S (2 * n)) = INR (S (2 * n)) * at_zero (2 * n).
Proof.
  unfold mean_abs. replace Rabs with (fun x => x * sg x).
  - rewrite at_parts. unfold Rdiv. rewrite Rmult_assoc. f_equal. unfold at_zero. rewrite <- at_scal. apply at_ext; intros z. set (k := (2 * z + Z.of_nat (2 * n))%Z). unfold sg.
    destruct (Req_EM_T (IZR k) 0) as [e|e].
    + rewrite e. repeat destruct Rlt_dec; lra.
    + assert (c : (k <= -2 \/ 2 <= k)%Z) by (destruct (Z.eq_dec k 0) as [q|q]; [rewrite q in e; contradiction|lia]). destruct c as [c|c]; apply IZR_le in c; repeat destruct Rlt_dec; lra.
  - apply functional_extensionality; intros x. unfold sg. destruct (Rlt_dec 0 x); [rewrite Rabs_right; lra|]. destruct (Rlt_dec x 0); [rewrite Rabs_left; lra|]. replace x with 0 by lra. rewrite Rabs_R0. ring.
Qed.
(* the integral of sin^n from 0 *)
Fixpoint sines (n : nat) (x : R) : R := match n with O => x | S O => 1 - cos x | S (S m) => (INR (S m) * sines m x - sin x ^ S m * cos x) / INR (S (S m)) end.
Lemma two_steps (P : nat -> Prop) : P 0%nat -> P 1%nat -> (forall n, P n -> P (S n) -> P (S (S n))) -> forall n, P n.
Proof. intros h0 h1 h n. enough (P n /\ P (S n)) by tauto. induction n; [auto|]. destruct IHn. auto. Qed.
Lemma sines_SS m x : sines (S (S m)) x = (INR (S m) * sines m x - sin x ^ S m * cos x) / INR (S (S m)). Proof. reflexivity. Qed.
Lemma sines_derive n x : derivable_pt_lim (sines n) x (sin x ^ n).
Proof.
  revert n. apply two_steps.
  - simpl. apply derivable_pt_lim_id.
  - simpl. replace (sin x * 1) with (0 - - sin x) by ring. apply derivable_pt_lim_minus; [apply derivable_pt_lim_const|apply derivable_pt_lim_cos].
  - intros m h _. assert (m0 : 0 < INR (S (S m))) by (apply lt_0_INR; lia).
    replace (sin x ^ S (S m)) with (/ INR (S (S m)) * (INR (S m) * sin x ^ m - (INR (S m) * sin x ^ m * cos x * cos x + sin x ^ S m * - sin x))).
    + replace (sines (S (S m))) with (fun y => / INR (S (S m)) * (INR (S m) * sines m y - sin y ^ S m * cos y)) by (apply functional_extensionality; intros; rewrite sines_SS; unfold Rdiv; ring).
      apply derivable_pt_lim_scal, derivable_pt_lim_minus; [now apply derivable_pt_lim_scal|].
      apply (derivable_pt_lim_mult (fun y => sin y ^ S m) cos); [|apply derivable_pt_lim_cos].
      apply (derivable_pt_lim_comp sin (fun y => y ^ S m)); [apply derivable_pt_lim_sin|apply (derivable_pt_lim_pow (sin x) (S m))].
    + assert (c := sin2_cos2 x). unfold Rsqr in c. apply (Rmult_eq_reg_l (INR (S (S m)))); [|lra]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra. rewrite (S_INR (S m)). simpl pow. replace (INR (S m) * sin x ^ m * cos x * cos x) with (INR (S m) * sin x ^ m * (cos x * cos x)) by ring. replace (cos x * cos x) with (1 - sin x * sin x) by lra. ring.
Qed.
Lemma sines_0 n : sines n 0 = 0.
Proof. revert n. apply two_steps; [reflexivity|simpl; rewrite cos_0; ring|]. intros m h _. rewrite sines_SS, h, sin_0. simpl pow. unfold Rdiv. ring. Qed.
Definition wallis n : R := sines n (PI / 2).
Lemma wallis_SS n : wallis (S (S n)) = INR (S n) / INR (S (S n)) * wallis n.
Proof. unfold wallis. rewrite sines_SS, cos_PI2. field. apply not_0_INR. lia. Qed.
Lemma wallis_pos n : 0 < wallis n.
Proof.
  assert (p := PI_RGT_0). revert n. apply two_steps; [unfold wallis; simpl; lra|unfold wallis; simpl; rewrite cos_PI2; lra|]. intros m h _. rewrite wallis_SS. apply Rmult_lt_0_compat; auto. apply Rdiv_lt_0_compat; apply lt_0_INR; lia.
Qed.
Lemma wallis_less n : wallis (S n) <= wallis n.
Proof.
  assert (p := PI_RGT_0).
  destruct (MVT_cor2 (fun x => sines n x - sines (S n) x) (fun x => sin x ^ n - sin x ^ S n) 0 (PI / 2) ltac:(lra)) as [c [e [c0 c1]]].
  - intros c _. apply derivable_pt_lim_minus; apply sines_derive.
  - rewrite !sines_0 in e. fold (wallis n) (wallis (S n)) in e. assert (s0 : 0 <= sin c) by (apply sin_ge_0; lra). assert (s1 := proj2 (SIN_bound c)).
    assert (0 <= (sin c ^ n - sin c ^ S n) * (PI / 2 - 0)); [|lra]. apply Rmult_le_pos; [|lra]. simpl. assert (q := pow_le _ n s0). assert (0 <= (1 - sin c) * sin c ^ n) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma wallis_product n : INR (S n) * (wallis n * wallis (S n)) = PI / 2.
Proof.
  induction n; [unfold wallis; simpl; rewrite cos_PI2; ring|]. rewrite wallis_SS, <- IHn. field. apply not_0_INR. lia.
Qed.
Lemma abs_wallis n : mean_abs (S (2 * n)) * wallis (S (2 * n)) = 1.
Proof.
  induction n.
  - assert (e := even_step 0). simpl in e. unfold at_zero in e. simpl in e. destruct Req_EM_T in e; [|lra]. unfold wallis. simpl Nat.mul. rewrite e. simpl. rewrite cos_PI2. ring.
  - replace (2 * S n)%nat with (S (S (2 * n))) by lia. rewrite wallis_SS. set (m := S (2 * n)) in *. assert (e := even_step (S n)). replace (2 * S n)%nat with (S m) in e by (unfold m; lia).
    assert (a := mean_abs_S (S m)). assert (b := mean_abs_S m). unfold m in b at 3. rewrite odd_zero, Rplus_0_r in b. rewrite b in a.
    assert (i0 : 0 < INR (S m)) by (apply lt_0_INR; lia). rewrite (S_INR (S m)) in *. assert (x : mean_abs (S (S m)) * INR (S m) = mean_abs m * (INR (S m) + 1)) by (replace (at_zero (S m)) with (mean_abs (S (S m)) - mean_abs m) in e by lra; lra).
    transitivity (mean_abs m * wallis m); [|exact IHn]. apply (Rmult_eq_reg_r (INR (S m) + 1)); [|lra]. replace (mean_abs (S (S m)) * (INR (S m) / (INR (S m) + 1) * wallis m) * (INR (S m) + 1)) with (mean_abs (S (S m)) * INR (S m) * wallis m) by (field; lra). rewrite x. ring.
Qed.
Lemma mean_abs_ge0 k : 0 <= mean_abs k.
Proof. unfold mean_abs. rewrite <- path_walk. apply ex_ge0; intros; apply Rabs_pos. Qed.
Lemma mean_abs_most k : 2 * (INR k - 1) <= PI * mean_abs k ^ 2 <= 2 * (INR k + 1).
Proof.
  assert (p := PI_RGT_0).
  assert (odd : forall n, let m := S (2 * n) in 2 * INR m <= PI * mean_abs m ^ 2 <= 2 * (INR m + 1)).
  { intros n m. assert (w := wallis_pos m). assert (e : mean_abs m = / wallis m) by (apply (Rmult_eq_reg_r (wallis m)); [rewrite Rinv_l by lra; apply abs_wallis|lra]).
    assert (l := wallis_less m). assert (u := wallis_less (2 * n)). fold m in u. assert (q1 := wallis_product m). assert (q2 := wallis_product (2 * n)). fold m in q2. rewrite S_INR in q1. assert (m0 : 0 < INR m) by (apply lt_0_INR; unfold m; lia).
    apply (Rmult_le_compat_l (wallis m)) in l; [|lra]. apply (Rmult_le_compat_r (wallis m)) in u; [|lra]. apply (Rmult_le_compat_l (INR m + 1)) in l; [|lra]. apply (Rmult_le_compat_l (INR m)) in u; [|lra].
    assert (w2 : 0 < wallis m * wallis m) by now apply Rmult_lt_0_compat. rewrite e. replace (PI * (/ wallis m) ^ 2) with (PI / (wallis m * wallis m)) by (field; lra).
    split; apply (Rmult_le_reg_r (wallis m * wallis m)); auto; replace (PI / (wallis m * wallis m) * (wallis m * wallis m)) with PI by (field; lra); lra. }
  destruct (Nat.Even_or_Odd k) as [[n ->]|[n ->]].
  - destruct n as [|n]; [unfold mean_abs; simpl; rewrite Rabs_R0; split; lra|]. replace (2 * S n)%nat with (S (S (2 * n))) by lia. rewrite mean_abs_S, odd_zero, Rplus_0_r. assert (h := odd n). cbv zeta in h. rewrite (S_INR (S (2 * n))). split; lra.
  - replace (2 * n + 1)%nat with (S (2 * n)) by lia. assert (h := odd n). cbv zeta in h. split; lra.
Qed.
(* x sqrt x is 3/2 times the integral of the root *)
Lemma root_sums a b : 0 <= b -> 0 <= a -> a * a = b * b + 1 -> 2/3 * (a * a * a - b * b * b) <= a /\ b <= 2/3 * (a * a * a - b * b * b).
Proof.
  intros b0 a0 e. assert (ab : b <= a) by (apply Rsqr_incr_0_var; unfold Rsqr; lra). assert (f : a * a * a - b * b * b = (a - b) * (a * a + a * b + b * b)) by ring.
  assert (d : (a - b) * (a + b) = 1) by lra. assert (x0 : 0 <= a * b) by pos. assert (y0 : b * b <= a * b) by (apply Rmult_le_compat_r; auto). assert (z0 : a * b <= a * a) by (apply Rmult_le_compat_l; auto).
  assert (d0 : 0 <= a - b) by lra. rewrite f. split.
  - assert (h := Rmult_le_compat_l _ (2/3 * (a * a + a * b + b * b)) ((a + b) * a) d0 ltac:(lra)). rewrite <- (Rmult_assoc (a - b) (a + b)), d in h. lra.
  - assert (h := Rmult_le_compat_l _ ((a + b) * b) (2/3 * (a * a + a * b + b * b)) d0 ltac:(lra)). rewrite <- (Rmult_assoc (a - b) (a + b)), d in h. lra.
Qed.
Definition r32 x : R := x * sqrt x.
Lemma r32_cube x : 0 <= x -> r32 x = sqrt x * sqrt x * sqrt x. Proof. intros h. unfold r32. rewrite sqrt_sqrt by auto. reflexivity. Qed.
Lemma sums_of_roots K : 2/3 * r32 (INR K - 2) <= sum K (fun k => sqrt (INR k - 1)) /\ sum K (fun k => sqrt (INR k + 1)) <= 2/3 * r32 (INR K + 1).
Proof.
  induction K as [|K [lo hi]].
  - simpl. unfold r32. rewrite (sqrt_neg_0 (0 - 2)) by lra. replace (0 + 1) with 1 by ring. rewrite sqrt_1. lra.
  - rewrite !sum_S, S_INR. assert (k0 := pos_INR K). split.
    + replace (INR K + 1 - 2) with (INR K - 1) by ring. enough (2/3 * (r32 (INR K - 1) - r32 (INR K - 2)) <= sqrt (INR K - 1)) by lra.
      destruct (Nat.le_gt_cases 2 K) as [c|c].
      * apply (le_INR 2) in c. simpl in c. rewrite !r32_cube by lra. apply (root_sums (sqrt (INR K - 1)) (sqrt (INR K - 2))); try apply sqrt_pos. rewrite !sqrt_sqrt by lra. ring.
      * assert (c1 : INR K <= 1) by (apply (le_INR K 1); lia). unfold r32. rewrite (sqrt_neg_0 (INR K - 1)), (sqrt_neg_0 (INR K - 2)) by lra. lra.
    + enough (sqrt (INR K + 1) <= 2/3 * (r32 (INR K + 1 + 1) - r32 (INR K + 1))) by lra. rewrite !r32_cube by lra. apply (root_sums (sqrt (INR K + 1 + 1)) (sqrt (INR K + 1))); try apply sqrt_pos. rewrite !sqrt_sqrt by lra. ring.
Qed.
Definition mean_drift K : R := / INR K * sum K mean_abs.
Lemma drift_many K : (2 <= K)%nat -> 4 / (9 * PI) * (1 - 2 / INR K) ^ 3 <= mean_drift K ^ 2 / (2 * INR K) <= 4 / (9 * PI) * (1 + 1 / INR K) ^ 3.
Proof.
  intros K2. assert (p := PI_RGT_0). assert (k2 : 2 <= INR K) by (apply (le_INR 2) in K2; simpl in K2; lra). set (c := sqrt (2 / PI)). assert (q0 : 0 < 2 / PI) by (apply Rdiv_lt_0_compat; lra). assert (c0 : 0 < c) by now apply sqrt_lt_R0. assert (cc : c * c = 2 / PI) by (apply sqrt_sqrt; lra).
  destruct (sums_of_roots K) as [lo hi].
  assert (one : forall k, c * sqrt (INR k - 1) <= mean_abs k <= c * sqrt (INR k + 1)).
  { intros k. destruct (mean_abs_most k) as [a b]. assert (m0 := mean_abs_ge0 k). assert (k0 := pos_INR k). assert (s1 := sqrt_pos (INR k - 1)). assert (s2 := sqrt_pos (INR k + 1)). split; apply Rsqr_incr_0_var; try (apply Rmult_le_pos; lra); auto; unfold Rsqr.
    - destruct (Rle_dec (INR k - 1) 0) as [n|n]; [rewrite sqrt_neg_0 by auto; assert (0 <= mean_abs k * mean_abs k) by pos; lra|].
      replace (c * sqrt (INR k - 1) * (c * sqrt (INR k - 1))) with (c * c * (sqrt (INR k - 1) * sqrt (INR k - 1))) by ring. rewrite cc, sqrt_sqrt by lra. apply (Rmult_le_reg_l PI); auto. replace (PI * (2 / PI * (INR k - 1))) with (2 * (INR k - 1)) by (field; lra). lra.
    - replace (c * sqrt (INR k + 1) * (c * sqrt (INR k + 1))) with (c * c * (sqrt (INR k + 1) * sqrt (INR k + 1))) by ring. rewrite cc, sqrt_sqrt by lra. apply (Rmult_le_reg_l PI); auto. replace (PI * (2 / PI * (INR k + 1))) with (2 * (INR k + 1)) by (field; lra). lra. }
  assert (S1 : c * (2/3 * r32 (INR K - 2)) <= sum K mean_abs).
  { eapply Rle_trans; [apply Rmult_le_compat_l; [lra|exact lo]|]. rewrite <- sum_scal. apply sum_le; intros; apply one. }
  assert (sph_2 : sum K mean_abs <= c * (2/3 * r32 (INR K + 1))).
  { eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|exact hi]]. rewrite <- sum_scal. apply sum_le; intros; apply one. }
  assert (r2 : forall x, 0 <= x -> r32 x * r32 x = x ^ 3) by (intros x hx; unfold r32; replace (x * sqrt x * (x * sqrt x)) with (x * x * (sqrt x * sqrt x)) by ring; rewrite sqrt_sqrt by auto; ring).
  assert (n1 : 0 <= r32 (INR K - 2)) by (unfold r32; apply Rmult_le_pos; [lra|apply sqrt_pos]). assert (n2 : 0 <= sum K mean_abs) by (apply sum_ge0; intros; apply mean_abs_ge0).
  assert (k3 : 0 < 2 * INR K ^ 3) by (assert (0 < INR K ^ 3) by (apply pow_lt; lra); lra).
  replace (mean_drift K ^ 2 / (2 * INR K)) with (sum K mean_abs * sum K mean_abs / (2 * INR K ^ 3)) by (unfold mean_drift; field; lra).
  assert (x1 : 0 <= c * (2/3 * r32 (INR K - 2))) by (apply Rmult_le_pos; lra).
  assert (m1 := Rmult_le_compat _ _ _ _ x1 x1 S1 S1). assert (m2 := Rmult_le_compat _ _ _ _ n2 n2 sph_2 sph_2).
  replace (c * (2/3 * r32 (INR K - 2)) * (c * (2/3 * r32 (INR K - 2)))) with (c * c * (4/9) * (r32 (INR K - 2) * r32 (INR K - 2))) in m1 by field. replace (c * (2/3 * r32 (INR K + 1)) * (c * (2/3 * r32 (INR K + 1)))) with (c * c * (4/9) * (r32 (INR K + 1) * r32 (INR K + 1))) in m2 by field.
  rewrite cc, r2 in m1, m2 by lra. split; apply (Rmult_le_reg_r (2 * INR K ^ 3)); auto; replace (sum K mean_abs * sum K mean_abs / (2 * INR K ^ 3) * (2 * INR K ^ 3)) with (sum K mean_abs * sum K mean_abs) by (field; lra).
  - eapply Rle_trans; [|exact m1]. right. field. lra.
  - eapply Rle_trans; [exact m2|]. right. field. lra.
Qed.
(* the clients: L/2 x|x| + g x with slopes that err by sigma times a sign; xp is their mean after K steps, mean_drift K the page's A *)
Lemma path_signs k : forall f g, (forall h, length h = k -> (forall s, In s h -> s = 1 \/ s = -1) -> f h <= g h) -> path (fun _ => sign_law) k f <= path (fun _ => sign_law) k g.
Proof.
  induction k; intros f g H. { apply H; [reflexivity|]. intros s []. }
  rewrite !path_S. apply IHk; intros h hk hs. cbn [ex sign_law]. assert (a := H (1 :: h)%list ltac:(simpl; now rewrite hk)). assert (b := H (-1 :: h)%list ltac:(simpl; now rewrite hk)).
  specialize (a ltac:(intros s [<-|i]; [now left|now apply hs])). specialize (b ltac:(intros s [<-|i]; [now right|now apply hs])). lra.
Qed.
Lemma walk_le h : (forall s, In s h -> s = 1 \/ s = -1) -> Rabs (walk h) <= INR (length h).
Proof.
  induction h as [|s h IH]; intros hs; [simpl; rewrite Rabs_R0; lra|]. change (length (s :: h)) with (S (length h)). rewrite S_INR. cbn [walk]. eapply Rle_trans; [apply Rabs_triang|].
  assert (a := IH (fun s i => hs s (or_intror i))). assert (b : Rabs s = 1) by (destruct (hs s (or_introl eq_refl)) as [->| ->]; [apply Rabs_R1|rewrite Rabs_left; lra]). lra.
Qed.
Section Kink.
Variables L sigma : R.
Hypothesis L0 : 0 <= L.
Hypothesis s0 : 0 <= sigma.
Fixpoint kinked g eta (h : list R) : R := match h with nil => 0 | cons s h => kinked g eta h - eta * (L * Rabs (kinked g eta h) + g + sigma * s) end.
Lemma near_walk A K : 0 <= A -> exists d, 0 <= d /\ forall eta, 0 < eta <= 1 -> forall h, (length h <= K)%nat -> (forall s, In s h -> s = 1 \/ s = -1) ->
  Rabs (kinked (- (L * eta * sigma * A)) eta h + eta * sigma * walk h) <= d * eta ^ 2.
Proof.
  intros A0. induction K as [|K [d [d0 IH]]].
  - exists 0. split; [lra|]. intros eta he [|s h] hl _; [simpl; rewrite Rmult_0_r, Rplus_0_r, Rabs_R0; lra|simpl in hl; lia].
  - set (k := INR K). assert (k0 : 0 <= k) by apply pos_INR. set (d' := L * (d + sigma * k) + L * (L * sigma * A)).
    assert (d0' : 0 <= d') by (unfold d'; assert (0 <= d + sigma * k) by (apply Rplus_le_le_0_compat; pos); apply Rplus_le_le_0_compat; pos).
    exists (d + (d' + L * sigma * A)). assert (m0 : 0 <= L * sigma * A) by pos. split; [lra|]. intros eta [e0 e1] [|s h] hl hs.
    + simpl. rewrite Rmult_0_r, Rplus_0_r, Rabs_R0. assert (y := pow2_ge_0 eta). simpl in y. pos.
    + assert (hh : (length h <= K)%nat) by (simpl in hl; lia). assert (hs' : forall s, In s h -> s = 1 \/ s = -1) by (intros t i; apply hs; now right). specialize (IH eta (conj e0 e1) h hh hs'). cbn [kinked walk]. set (g := - (L * eta * sigma * A)) in *. set (y := kinked g eta h) in *. set (S_ := walk h) in *.
      replace (y - eta * (L * Rabs y + g + sigma * s) + eta * sigma * (S_ + s)) with ((y + eta * sigma * S_) + - (eta * (L * Rabs y + g))) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult, (Rabs_right eta) by lra.
      assert (w : Rabs S_ <= k) by (eapply Rle_trans; [now apply walk_le|]; unfold k; now apply le_INR).
      assert (es : 0 <= eta * sigma) by pos. assert (ya : Rabs y <= eta * (d + sigma * k)).
      { replace y with ((y + eta * sigma * S_) + - (eta * sigma * S_)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, (Rabs_mult (eta * sigma)), (Rabs_right (eta * sigma)) by lra.
        assert (x := Rmult_le_compat_l _ _ _ es w). assert (z : d * eta ^ 2 <= d * eta) by (apply Rmult_le_compat_l; [auto|]; simpl; rewrite Rmult_1_r; rewrite <- (Rmult_1_r eta) at 3; apply Rmult_le_compat_l; lra). lra. }
      assert (ga : Rabs g = eta * (L * sigma * A)) by (unfold g; rewrite Rabs_Ropp, Rabs_right; [ring|]; apply Rle_ge; assert (0 <= eta) by lra; pos).
      assert (b : Rabs (L * Rabs y + g) <= eta * (L * (d + sigma * k)) + eta * (L * sigma * A)).
      { eapply Rle_trans; [apply Rabs_triang|]. rewrite ga, Rabs_mult, (Rabs_right L), Rabs_Rabsolu by lra. apply (Rmult_le_compat_l L) in ya; auto. lra. }
      apply (Rmult_le_compat_l eta) in b; [|lra]. assert (z : 0 <= L * (L * sigma * A) * eta ^ 2) by (assert (x := pow2_ge_0 eta); pos). unfold d'. simpl pow in *. lra.
Qed.
Lemma kink_slope x h : Rabs ((x + h) * Rabs (x + h) - x * Rabs x - 2 * Rabs x * h) <= h * h.
Proof.
  apply Rabs_le. destruct (Rle_dec 0 x), (Rle_dec 0 (x + h)); rewrite ?(Rabs_right x), ?(Rabs_left1 x), ?(Rabs_right (x + h)), ?(Rabs_left1 (x + h)) by lra; split; nra.
Qed.
Lemma step_12_2 K : (0 < K)%nat -> let f g x := L / 2 * (x * Rabs x) + g * x in let A := mean_drift K in
  (forall g x, derivable_pt_lim (f g) x (L * Rabs x + g)) /\ (forall k, mean_abs k = path (fun _ => sign_law) k (fun h => Rabs (walk h))) /\
  (exists C, forall eta, 0 < eta <= 1 -> let g := - (L * eta * sigma * A) in let te := INR K * eta in let xp := path (fun _ => sign_law) K (kinked g eta) in
    Rabs (f g xp - f g 0 + te / 2 * g ^ 2 - A ^ 2 / (2 * INR K) * L ^ 2 * te ^ 3 * (sigma ^ 2 / INR K)) <= C * eta ^ 4) /\
  mean_drift 2 ^ 2 / (2 * 2) = 1/16 /\
  ((2 <= K)%nat -> 4 / (9 * PI) * (1 - 2 / INR K) ^ 3 <= A ^ 2 / (2 * INR K) <= 4 / (9 * PI) * (1 + 1 / INR K) ^ 3).
Proof.
  intros K1 f A. assert (k1 : 1 <= INR K) by (apply (le_INR 1); lia).
  assert (mp : forall k, mean_abs k = path (fun _ => sign_law) k (fun h => Rabs (walk h))) by (intros; unfold mean_abs; symmetry; apply path_walk).
  assert (A0 : 0 <= A) by (unfold A, mean_drift; apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|apply sum_ge0; intros; apply mean_abs_ge0]).
  split; [|split; [exact mp|split; [|split; [|apply drift_many]]]].
  - intros g x. unfold f. replace (L * Rabs x + g) with (L / 2 * (2 * Rabs x) + g * 1) by field. apply derivable_pt_lim_plus; [|apply derivable_pt_lim_scal, derivable_pt_lim_id]. apply (derivable_pt_lim_scal (fun x => x * Rabs x)).
    intros eps he. exists (mkposreal _ he). intros h h0 hd. simpl in hd. replace (((x + h) * Rabs (x + h) - x * Rabs x) / h - 2 * Rabs x) with (((x + h) * Rabs (x + h) - x * Rabs x - 2 * Rabs x * h) / h) by (field; auto).
    unfold Rdiv. rewrite Rabs_mult, Rabs_inv by auto. assert (a0 := Rabs_pos_lt h h0). apply Rle_lt_trans with (Rabs h); [|exact hd]. apply (Rmult_le_reg_r (Rabs h)); auto. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. eapply Rle_trans; [apply kink_slope|]. rewrite <- Rabs_mult. apply Rle_abs.
  - destruct (near_walk A K A0) as [d [d0 near]]. set (m := INR K * L * d). assert (m0 : 0 <= m) by (unfold m; assert (0 <= INR K) by lra; pos). exists (L / 2 * m ^ 2 + L * sigma * A * m). intros eta [e0 e1] g te xp.
    assert (xpE : forall n, path (fun _ => sign_law) n (kinked g eta) = - eta * sum n (fun k => L * path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h)) + g)).
    { clearbody g. clear. induction n as [|k IH]; [simpl; ring|]. rewrite path_S, sum_S. transitivity (path (fun _ => sign_law) k (fun h => kinked g eta h + - eta * (L * Rabs (kinked g eta h) + g * 1))).
      - apply ex_ext; intros h. cbn [ex sign_law kinked]. field.
      - rewrite ex_plus, ex_scal, ex_plus, ex_scal, ex_const, IH. ring. }
    assert (small : Rabs xp <= m * eta ^ 3).
    { replace xp with (- eta * sum K (fun k => L * (path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h)) - eta * sigma * mean_abs k))).
      - rewrite Rabs_mult, Rabs_Ropp, (Rabs_right eta) by lra. assert (b : Rabs (sum K (fun k => L * (path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h)) - eta * sigma * mean_abs k))) <= INR K * (L * (d * eta ^ 2))).
        { rewrite <- sum_const. assert (tri : forall n u, Rabs (sum n u) <= sum n (fun k => Rabs (u k))) by (clear; induction n; intros u; [simpl; rewrite Rabs_R0; lra|]; rewrite !sum_S; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat_r, IHn).
          eapply Rle_trans; [apply tri|]. apply sum_le; intros k hk. rewrite Rabs_mult, (Rabs_right L) by lra. apply Rmult_le_compat_l; auto. rewrite mp, <- ex_scal.
          assert (e2 : forall h, length h = k -> (forall s, In s h -> s = 1 \/ s = -1) -> Rabs (Rabs (kinked g eta h) - eta * sigma * Rabs (walk h)) <= d * eta ^ 2).
          { intros h hl hs. assert (q := near eta (conj e0 e1) h ltac:(lia) hs). fold g in q. assert (es : 0 <= eta * sigma) by (assert (0 <= eta) by lra; pos). replace (eta * sigma * Rabs (walk h)) with (Rabs (- (eta * sigma * walk h))) by (rewrite Rabs_Ropp, Rabs_mult, (Rabs_right (eta * sigma)); lra).
            eapply Rle_trans; [apply Rabs_triang_inv2|]. replace (kinked g eta h - - (eta * sigma * walk h)) with (kinked g eta h + eta * sigma * walk h) by ring. exact q. }
          apply Rabs_le. split.
          - enough (path (fun _ => sign_law) k (fun h => eta * sigma * Rabs (walk h)) <= path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h) + d * eta ^ 2)) by (rewrite ex_plus, ex_const in H; lra). apply path_signs; intros h hl hs. assert (q2 := e2 h hl hs). assert (q3 := Rle_abs (- (Rabs (kinked g eta h) - eta * sigma * Rabs (walk h)))). rewrite Rabs_Ropp in q3. lra.
          - enough (path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h)) <= path (fun _ => sign_law) k (fun h => eta * sigma * Rabs (walk h) + d * eta ^ 2)) by (rewrite ex_plus, ex_const in H; lra). apply path_signs; intros h hl hs. assert (q2 := e2 h hl hs). assert (q3 := Rle_abs (Rabs (kinked g eta h) - eta * sigma * Rabs (walk h))). lra. }
        apply (Rmult_le_compat_l eta) in b; [|lra]. eapply Rle_trans; [exact b|]. right. unfold m. ring.
      - unfold xp. rewrite xpE. f_equal. set (M := fun k => path (fun _ => sign_law) k (fun h => Rabs (kinked g eta h))). rewrite (sum_ext K _ (fun k => L * M k + (- (L * eta * sigma)) * mean_abs k)) by (intros; unfold M; ring). rewrite (sum_ext K (fun k => L * path _ k _ + g) (fun k => L * M k + g)) by (intros; reflexivity).
        rewrite !sum_plus, !sum_scal, sum_const. unfold g, A, mean_drift. field. lra. }
    assert (E : f g xp - f g 0 + te / 2 * g ^ 2 - A ^ 2 / (2 * INR K) * L ^ 2 * te ^ 3 * (sigma ^ 2 / INR K) = L / 2 * (xp * Rabs xp) + g * xp) by (unfold f, te, g; field; lra). rewrite E.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, Rabs_Rabsolu, (Rabs_right (L / 2)) by lra.
    assert (ga : Rabs g = eta * (L * sigma * A)) by (unfold g; rewrite Rabs_Ropp, Rabs_right; [ring|]; apply Rle_ge; assert (0 <= eta) by lra; pos). rewrite ga. assert (xa := Rabs_pos xp).
    assert (b1 := Rmult_le_compat _ _ _ _ xa xa small small). assert (e4 : 0 <= eta ^ 4) by (apply pow_le; lra). assert (e6 : eta ^ 6 <= eta ^ 4) by (replace (eta ^ 6) with (eta ^ 4 * eta ^ 2) by ring; rewrite <- (Rmult_1_r (eta ^ 4)) at 2; apply Rmult_le_compat_l; auto; rewrite <- (pow1 2); apply pow_incr; lra).
    assert (m2 : m ^ 2 * eta ^ 6 <= m ^ 2 * eta ^ 4) by (apply Rmult_le_compat_l; [apply pow2_ge_0|auto]). apply (Rmult_le_compat_l (L / 2)) in b1; [|lra]. apply (Rmult_le_compat_l (L / 2)) in m2; [|lra].
    assert (c0 : 0 <= eta * (L * sigma * A)) by (assert (0 <= eta) by lra; pos). assert (b2 := Rmult_le_compat_l _ _ _ c0 small). simpl pow in *. lra.
  - unfold mean_drift, mean_abs. cbn [sum at_]. rewrite Rabs_R0, !Rplus_0_l, Rabs_R1, (Rabs_left (-1)) by lra. simpl INR. field.
Qed.
End Kink.
