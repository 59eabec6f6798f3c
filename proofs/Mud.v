(* docs/theory/mud.md: FedMUD and FedMUD+AAD; the covariance that AAD removes. Matrices are functions of two indices.
   step_8_4 is the page's [mud.8.4]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality Classical.
From Fedtheory Require Ssf.
From Fedtheory Require Import Noise Descent Core.
Local Open Scope R_scope.
Definition mat (I J : Type) := I -> J -> R.
Definition mul {I J} n (A : mat I nat) (B : mat nat J) : mat I J := fun i j => sum n (fun k => A i k * B k j).
Definition madd {I J} (A B : mat I J) : mat I J := fun i j => A i j + B i j.
Definition msub {I J} (A B : mat I J) : mat I J := fun i j => A i j - B i j.
Definition mean {I J} N (f : nat -> mat I J) : mat I J := fun i j => / INR N * sum N (fun c => f c i j).
Ltac mext := apply functional_extensionality; intros ?i; apply functional_extensionality; intros ?j.
Lemma mean_mul_r {I J} N r (U : nat -> mat I nat) (V : mat nat J) : mean N (fun c => mul r (U c) V) = mul r (mean N U) V.
Proof.
  mext. unfold mean, mul. rewrite sum_swap, <- sum_scal. apply sum_ext; intros k _.
  rewrite (sum_ext N _ (fun c => V k j * U c i k)) by (intros; ring). rewrite sum_scal. ring.
Qed.
Lemma mean_mul_l {I J} N r (U : mat I nat) (V : nat -> mat nat J) : mean N (fun c => mul r U (V c)) = mul r U (mean N V).
Proof.
  mext. unfold mean, mul. rewrite sum_swap, <- sum_scal. apply sum_ext; intros k _. rewrite sum_scal. ring.
Qed.
Lemma mean_add {I J} N (f g : nat -> mat I J) : mean N (fun c => madd (f c) (g c)) = madd (mean N f) (mean N g).
Proof. mext. unfold mean, madd. rewrite sum_plus. ring. Qed.
Theorem aad_exact {I J} N r (U : nat -> mat I nat) (V : nat -> mat nat J) Ut Vt :
  mean N (fun c => madd (mul r (U c) Vt) (mul r Ut (V c))) = madd (mul r (mean N U) Vt) (mul r Ut (mean N V)).
Proof. now rewrite mean_add, mean_mul_r, mean_mul_l. Qed.
Theorem covariance {I J} N r (U : nat -> mat I nat) (V : nat -> mat nat J) : (0 < N)%nat ->
  msub (mean N (fun c => mul r (U c) (V c))) (mul r (mean N U) (mean N V))
  = mean N (fun c => mul r (msub (U c) (mean N U)) (msub (V c) (mean N V))).
Proof.
  intros n0%lt_0_INR. mext. unfold msub, mul. unfold mean at 1 4. rewrite (sum_swap N), (sum_swap N).
  unfold Rminus at 1. rewrite <- !sum_scal. rewrite <- (Rmult_1_l (sum r (fun k => mean N U i k * mean N V k j))).
  rewrite Ropp_mult_distr_l, <- sum_scal, <- sum_plus. apply sum_ext; intros k _.
  rewrite (sum_ext N (fun c => (U c i k - _) * _) (fun c => U c i k * V c k j + (- mean N U i k * V c k j
    + (- mean N V k j * U c i k + mean N U i k * mean N V k j)))) by (intros; ring).
  rewrite !sum_plus, !sum_scal, sum_const. unfold mean. field. lra.
Qed.
(* the mixed product; the index of A (x) B is a pair *)
Definition kron {I J I' J'} (A : mat I J) (B : mat I' J') : mat (I * I') (J * J') :=
  fun x y => A (fst x) (fst y) * B (snd x) (snd y).
Definition mul2 {I J} n m (A : mat I (nat * nat)) (B : mat (nat * nat) J) : mat I J :=
  fun i j => sum n (fun k => sum m (fun l => A i (k, l) * B (k, l) j)).
Theorem kron_mul {I J I' J'} n m (A : mat I nat) (C : mat nat J) (B : mat I' nat) (E : mat nat J') :
  mul2 n m (kron A B) (kron C E) = kron (mul n A C) (mul m B E).
Proof.
  mext. unfold mul2, kron, mul. simpl.
  rewrite (sum_ext n _ (fun k => sum m (fun l => B (snd i) l * E l (snd j)) * (A (fst i) k * C k (fst j)))).
  - rewrite sum_scal. ring.
  - intros k _. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
Qed.
(* ---- several local steps ---- *)
(* 8: numbers *)
Lemma mud_step_2 K : sum K (fun k => 4 * INR k ^ 2) = 2/3 * INR K * (INR K - 1) * (2 * INR K - 1).
Proof. induction K; [simpl; field|]. rewrite sum_S, IHK, S_INR. field. Qed.
Lemma step_8_2 K : sum K (fun k => 4 * INR k ^ 2) = 2/3 * INR K * (INR K - 1) * (2 * INR K - 1) /\
  sum K (fun k => 4 * INR k ^ 2) <= 4/3 * INR K ^ 2 * (INR K - 1) /\ sum K (fun k => 4 * INR k) = 2 * INR K * (INR K - 1).
Proof.
  split; [apply mud_step_2|]. split.
  - rewrite mud_step_2. destruct K as [|k]; [simpl; lra|]. rewrite S_INR. assert (k0 := pos_INR k). nra.
  - induction K; [simpl; field|]. rewrite sum_S, IHK, S_INR. field.
Qed.
Lemma step_8_3 beta K q : 0 <= beta -> beta * INR K <= 4 * q ^ 2 -> 0 <= q <= 1/4 ->
  (1 + beta) ^ K <= exp (beta * INR K) /\ exp (beta * INR K) <= exp (4 * q ^ 2) /\ exp (4 * q ^ 2) <= exp (1/4) /\ exp (1/4) <= 1285/1000 /\ 4/3 * (1285/1000) <= 1714/1000.
Proof.
  intros b0 h [q0 q1]. assert (mono : forall a b, a <= b -> exp a <= exp b) by (intros a b [x|x]; [left; now apply exp_increasing|rewrite x; lra]).
  repeat split; [|now apply mono|apply mono; nra| |lra].
  - clear h. induction K. { simpl. rewrite Rmult_0_r, exp_0. lra. }
    rewrite S_INR. replace (beta * (INR K + 1)) with (beta + beta * INR K) by ring. rewrite exp_plus. simpl.
    apply Rmult_le_compat; try lra; [apply pow_le; lra|apply exp_ineq1_le].
  - assert (h3 : exp (1/200) <= 200/199).
    { assert (m := exp_ineq1_le (- (1/200))). assert (p := exp_pos (1/200)). assert (e : exp (1/200) * exp (- (1/200)) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
      apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ p)) in m. lra. }
    assert (ek : forall k, exp (1/200) ^ k = exp (INR k * (1/200))).
    { induction k; [simpl; now rewrite Rmult_0_l, exp_0|]. rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus. simpl. rewrite IHk. ring. }
    assert (p := exp_pos (1/200)). assert (h4 := pow_incr _ _ 50 (conj (Rlt_le _ _ p) h3)). rewrite ek in h4. replace (INR 50 * (1/200)) with (1/4) in h4 by (simpl; field). lra.
Qed.
Lemma step_8_6 q u kappa theta B e2 L : 0 < q <= 1/4 -> 0 <= u <= 1 -> 1 <= kappa -> 0 <= theta -> 0 <= B -> 0 <= e2 -> e2 * L ^ 2 <= 4915/10000 * q ^ 2 * theta ^ 4 * B ^ 2 ->
  - (1 - 1714/1000 * q ^ 2 * u - 9/100) <= - (4/5) /\
  e2 * L ^ 2 * (514/100 * kappa * u + 5 * kappa / q + kappa ^ 2 / (9/100 * q ^ 2)) <= 625/100 * (kappa * theta ^ 2 * B) ^ 2.
Proof.
  intros [q0 q1] [u0 u1] k1 t0 B0 e0 h. assert (qq : q ^ 2 <= 1/16) by nra. assert (q2 : 0 < q ^ 2) by nra. split.
  - assert (q ^ 2 * u <= 1/16) by (assert (0 <= q ^ 2 * (1 - u)) by (apply Rmult_le_pos; lra); lra). lra.
  - set (c := 514/100 * kappa * u + 5 * kappa / q + kappa ^ 2 / (9/100 * q ^ 2)).
    assert (iq := Rinv_0_lt_compat _ q0).
    assert (c0 : 0 <= c). { unfold c, Rdiv. assert (i2 : 0 < / (9 * / 100 * q ^ 2)) by (apply Rinv_0_lt_compat; lra). assert (x := pow2_ge_0 kappa). repeat apply Rplus_le_le_0_compat; pos. }
    apply (Rmult_le_compat_r _ _ _ c0) in h. eapply Rle_trans; [exact h|].
    assert (t4 : 0 <= theta ^ 4 * B ^ 2) by (assert (x := pow_le theta 4 t0); assert (y := pow2_ge_0 B); pos).
    replace (4915/10000 * q ^ 2 * theta ^ 4 * B ^ 2 * c) with (theta ^ 4 * B ^ 2 * (4915/10000 * (514/100 * (kappa * u) * q ^ 2 + 5 * kappa * q + 100/9 * kappa ^ 2))) by (unfold c; field; lra).
    replace (625/100 * (kappa * theta ^ 2 * B) ^ 2) with (theta ^ 4 * B ^ 2 * (625/100 * kappa ^ 2)) by ring. apply Rmult_le_compat_l; auto.
    assert (kk : kappa <= kappa ^ 2) by nra. assert (a1 : kappa * u * q ^ 2 <= 1/16 * kappa ^ 2).
    { assert (x : kappa * u <= kappa ^ 2) by nra. assert (y : 0 <= kappa * u) by (apply Rmult_le_pos; lra). assert (0 <= (kappa ^ 2 - kappa * u) * q ^ 2) by (apply Rmult_le_pos; lra). assert (0 <= kappa ^ 2 * (1/16 - q ^ 2)) by (apply Rmult_le_pos; [apply pow2_ge_0|lra]). lra. }
    assert (a2 : kappa * q <= 1/4 * kappa ^ 2) by (assert (0 <= kappa * (1/4 - q)) by (apply Rmult_le_pos; lra); lra). lra.
Qed.
Lemma step_8_7 : 1714/1000 / (4/5) <= 22/10 /\ 257/100 / (4/5) <= 33/10 /\ 5/2 / (4/5) <= 32/10 /\ 625/100 / (4/5) <= 8. Proof. lra. Qed.
Section Map.
Context {D : Dim}.
(* a map that is linear, symmetric and not negative, at most Lam *)
Record mapL (Lam : R) (P : vec -> vec) : Prop := {
  l_add : forall u v, P (u + v)%V = (P u + P v)%V;
  l_scal : forall a u, P (a *: u)%V = (a *: P u)%V;
  l_sym : forall u v, dot (P u) v = dot u (P v);
  l_ge0 : forall u, 0 <= dot u (P u);
  l_le : forall u, dot u (P u) <= Lam * nrm2 u }.
Variables Lam : R.
Variable P : vec -> vec.
Hypothesis HP : mapL Lam P.
Lemma l_0 : P v0 = v0. Proof. replace v0 with (0 *: v0)%V at 1 by vring. rewrite (l_scal _ _ HP). vring. Qed.
(* Cauchy and Schwarz for the form <u, P v> *)
Lemma form_cs u v : dot u (P v) ^ 2 <= dot u (P u) * dot v (P v).
Proof.
  assert (q : forall t, 0 <= t * t * dot u (P u) - 2 * t * dot u (P v) + dot v (P v)).
  { intros t. assert (h := l_ge0 _ _ HP (t *: u - v)%V). rewrite subE, (l_add _ _ HP), !(l_scal _ _ HP), !dot_addl, !dot_addr, !dot_scall, !dot_scalr in h.
    rewrite <- (l_sym _ _ HP v u), (dotC (P v) u) in h. lra. }
  assert (a0 := l_ge0 _ _ HP u). assert (b0 := l_ge0 _ _ HP v). set (a := dot u (P u)) in *. set (b := dot v (P v)) in *. set (c := dot u (P v)) in *.
  destruct (Req_dec a 0) as [z|z].
  - destruct (Req_dec c 0) as [c0|c0]; [rewrite c0, z; lra|]. assert (k := q ((b + 1) / (2 * c))). rewrite z in k.
    replace (2 * ((b + 1) / (2 * c)) * c) with (b + 1) in k by (field; auto). lra.
  - assert (k := q (c / a)). apply (Rmult_le_compat_l a) in k; auto.
    replace (a * (c / a * (c / a) * a - 2 * (c / a) * c + b)) with (a * b - c ^ 2) in k by (field; auto). lra.
Qed.
Lemma l_square u : nrm2 (P u) <= Lam * dot u (P u).
Proof.
  assert (c := form_cs u (P u)). assert (n0 := nrm2_ge0 (P u)). assert (f0 := l_ge0 _ _ HP u). assert (l := l_le _ _ HP (P u)).
  rewrite <- (l_sym _ _ HP u (P u)) in c. fold (nrm2 (P u)) in c. set (n := nrm2 (P u)) in *. set (f := dot u (P u)) in *.
  destruct (Req_dec n 0) as [z|z].
  - rewrite z. destruct (Rle_dec 0 Lam); [pos|]. assert (x := l_le _ _ HP u). fold f in x. assert (nrm2 u >= 0) by (apply Rle_ge, nrm2_ge0). nra.
  - assert (k : f * dot (P u) (P (P u)) <= f * (Lam * n)) by (apply Rmult_le_compat_l; auto). apply (Rmult_le_reg_r n); [lra|]. simpl in c. lra.
Qed.
Lemma l_vsum n f : P (vsum n f) = vsum n (fun i => P (f i)).
Proof. induction n; [exact l_0|]. now rewrite !vsum_S, (l_add _ _ HP), IHn. Qed.
Lemma form_sub u v : dot (u - v) (P (u - v)%V) = dot u (P u) - 2 * dot u (P v) + dot v (P v).
Proof.
  assert (sy : dot v (P u) = dot u (P v)) by (rewrite <- (l_sym _ _ HP), dotC; reflexivity).
  rewrite subE, (l_add _ _ HP), (l_scal _ _ HP), !dot_addl, !dot_addr, !dot_scall, !dot_scalr, sy. ring.
Qed.
Lemma form_add u v : dot (u + v) (P (u + v)%V) = dot u (P u) + 2 * dot u (P v) + dot v (P v).
Proof.
  assert (sy : dot v (P u) = dot u (P v)) by (rewrite <- (l_sym _ _ HP), dotC; reflexivity).
  rewrite (l_add _ _ HP), !dot_addl, !dot_addr, sy. ring.
Qed.
(* 8.4: |a|^2 = <G, R G> and so on *)
Lemma step_8_4 (G b z : vec) te q : 0 <= te -> 0 <= q <= 1/4 ->
  - te * dot G (P (G + b)%V) + 5/8 * te * q * dot (G + b + z) (P (G + b + z)%V) <= - (1/2) * te * dot G (P G) + 1/2 * te * dot b (P b) + 5/4 * te * q * dot z (P z).
Proof.
  intros t0 [q0 q1]. assert (s1 : dot b (P G) = dot G (P b)) by (rewrite <- (l_sym _ _ HP), dotC; reflexivity).
  assert (h := l_ge0 _ _ HP (G + b - z)%V). assert (h2 := l_ge0 _ _ HP (G + b)%V).
  assert (e1 := form_sub (G + b)%V z). assert (e2 := form_add (G + b)%V z).
  rewrite e1 in h. rewrite e2. assert (e3 : dot G (P (G + b)%V) = 1/2 * dot G (P G) + 1/2 * dot (G + b) (P (G + b)%V) - 1/2 * dot b (P b)).
  { rewrite (l_add _ _ HP), !dot_addl, !dot_addr, s1. field. }
  rewrite e3. set (X := dot (G + b) (P (G + b)%V)) in *. set (Y := dot (G + b) (P z)) in *. set (Zz := dot z (P z)) in *.
  assert (k : 0 <= te * q * (X - 2 * Y + Zz)) by pos. assert (k2 : 0 <= te * (1/4 - q) * X) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). assert (k3 : 0 <= te * X) by pos. lra.
Qed.
(* 8.5 *)
Lemma step_8_5 (y E G : vec) Ka : 0 < Ka -> nrm2 (y + E) <= 5/4 * nrm2 y + 5 * nrm2 E /\ 5/4 * nrm2 y + 5 * nrm2 E - nrm2 (y + E) = nrm2 ((1/2) *: y - 2 *: E) /\
  dot G E <= 9 * Ka / 200 * nrm2 G + 50 / (9 * Ka) * nrm2 E.
Proof.
  intros k0. assert (e : 5/4 * nrm2 y + 5 * nrm2 E - nrm2 (y + E) = nrm2 ((1/2) *: y - 2 *: E)) by (rewrite nrm2_add, nrm2_sub, !nrm2_scal, dot_scall, dot_scalr; field).
  assert (h := nrm2_ge0 ((1/2) *: y - 2 *: E)). split; [lra|]. split; [exact e|].
  assert (h2 := nrm2_ge0 ((3 * Ka / 10) *: G - (10/3) *: E)). rewrite nrm2_sub, !nrm2_scal, dot_scall, dot_scalr in h2.
  apply (Rmult_le_reg_l (2 * Ka)); [lra|]. replace (2 * Ka * (9 * Ka / 200 * nrm2 G + 50 / (9 * Ka) * nrm2 E)) with (9/100 * Ka * Ka * nrm2 G + 100/9 * nrm2 E) by (field; lra). lra.
Qed.
Lemma step_8_1 (a b c d : vec) : 4 * (nrm2 a + nrm2 b + nrm2 c + nrm2 d) - nrm2 (a + b + c + d)
  = nrm2 (a - b) + nrm2 (a - c) + nrm2 (a - d) + nrm2 (b - c) + nrm2 (b - d) + nrm2 (c - d) /\
  nrm2 (a + b + c + d) <= 4 * (nrm2 a + nrm2 b + nrm2 c + nrm2 d).
Proof.
  assert (e : 4 * (nrm2 a + nrm2 b + nrm2 c + nrm2 d) - nrm2 (a + b + c + d) = nrm2 (a - b) + nrm2 (a - c) + nrm2 (a - d) + nrm2 (b - c) + nrm2 (b - d) + nrm2 (c - d))
    by (rewrite !nrm2_sub, !nrm2_add, !dot_addl; ring).
  split; [exact e|]. assert (q := fun x => nrm2_ge0 x). assert (q1 := q (a - b)%V). assert (q2 := q (a - c)%V). assert (q3 := q (a - d)%V). assert (q4 := q (b - c)%V). assert (q5 := q (b - d)%V). assert (q6 := q (c - d)%V). lra.
Qed.
End Map.
Section Several.
Context {D : Dim}.
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variable Rm : O -> vec -> vec.             (* the page's R *)
Variables gam Lam L eta fstar zeta p nu theta B eps2 : R.
Variable f : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Definition noise := nat -> vec.
Variable ker : vec -> O -> list noise -> law noise.
(* the model of a client after the local steps of a history, and of the server after a round; what they miss of a step with R *)
Variable loc : vec -> O -> nat -> list noise -> vec.
Variable next : vec -> O * list noise -> vec.
Variable err : vec -> O -> nat -> list noise -> vec.
Variable errbar : vec -> O -> list noise -> vec.
Definition gsum w o i h : vec := pvsum (fun h (z : noise) => g i (loc w o i h) + z i)%V h.
Definition meanR (a : nat -> R) : R := / INR N * sum N a.
Definition meanV (a : nat -> vec) : vec := (/ INR N *: vsum N a)%V.
Definition Favg x : R := meanR (fun i => f i x).
Definition G x : vec := meanV (fun i => g i x).
Definition kappa : R := Lam / gam.
Definition alpha : R := eta * gam.
Definition q : R := INR K * L * alpha * kappa.
Definition u_ : R := 1 - / INR K.
Hypothesis locE : forall w o i h, loc w o i h = (w - eta *: Rm o (gsum w o i h) + err w o i h)%V.
Hypothesis nextE : forall w o h, length h = K -> next w (o, h) = (w - eta *: Rm o (meanV (fun i => gsum w o i h)) + errbar w o h)%V.
Hypothesis err_0 : forall w o i, err w o i nil = v0.
Hypothesis err_le : forall w o i h, (length h <= K)%nat -> nrm2 (err w o i h) <= eps2.
Hypothesis errbar_le : forall w o h, length h = K -> nrm2 (errbar w o h) <= eps2.
Hypothesis eps0 : 0 <= eps2.
Hypothesis eps_small : L ^ 2 * eps2 <= 4915/10000 * q ^ 2 * theta ^ 4 * B ^ 2.
Hypothesis theta0 : 0 <= theta.
Hypothesis B0 : 0 <= B.
Hypothesis Rmap : forall o, mapL Lam (Rm o).
Hypothesis ER : forall a b, draw (fun o => dot a (Rm o b)) = gam * dot a b.
Hypothesis gam0 : 0 < gam.
Hypothesis L0 : 0 < L.
Hypothesis eta0 : 0 < eta.
Hypothesis grad : forall i, (i < N)%nat -> gradient (f i) (g i).
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis bounded : forall x, fstar <= Favg x.
Hypothesis spread : forall x, meanR (fun i => nrm2 (g i x - G x)) <= zeta ^ 2.
Hypothesis noise_mean0 : forall w o h i u, (i < N)%nat -> ker w o h (fun z => dot u (z i)) = 0.
Hypothesis noise_var : forall w k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun o => path (ker w o) k (fun h => ker w o h (fun z => dot (z i) (Rm o (z i))))) <= gam * p * nu ^ 2.
Hypothesis noise_clients : forall w o h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker w o h (fun z => dot (z i) (Rm o (z j))) = 0.
Hypothesis p0 : 0 <= p.
Hypothesis kap1 : 1 <= kappa.
Hypothesis steps : q <= 1/4.
Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let KK1 : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Let iN : 0 <= / INR N. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iK : 0 <= / INR K. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let Lam0 : 0 < Lam.
Proof. assert (e : Lam = kappa * gam) by (unfold kappa; field; lra). rewrite e. apply Rmult_lt_0_compat; lra. Qed.
Let qE : q = INR K * L * eta * Lam. Proof. unfold q, alpha, kappa. field. lra. Qed.
Let q0 : 0 < q. Proof. rewrite qE. repeat apply Rmult_lt_0_compat; auto. Qed.
Let u01 : 0 <= u_ <= 1.
Proof. unfold u_. assert (/ INR K <= 1); [|lra]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. Qed.
Lemma step_6_3 o a : draw (fun o => dot a (Rm o a)) = gam * nrm2 a /\ nrm2 (Rm o a) <= Lam * dot a (Rm o a) /\
  draw (fun o => nrm2 (Rm o a)) <= gam ^ 2 * kappa * nrm2 a.
Proof.
  split; [apply ER|]. split; [apply l_square, Rmap|]. apply Rle_trans with (draw (fun o => Lam * dot a (Rm o a))).
  - apply ex_le; intros o'. apply l_square, Rmap.
  - rewrite ex_scal, ER. right. unfold kappa. fold (nrm2 a). field. lra.
Qed.
Section Round.
Variable w : vec.
Definition a_ o i h : vec := (g i (loc w o i h) - g i w)%V.
Definition Sa o i : list noise -> vec := pvsum (fun h (_ : noise) => a_ o i h).
Definition Xi i : list noise -> vec := pvsum (fun _ (z : noise) => z i).
Definition e_ o i h : R := nrm2 (loc w o i h - w).
Definition Se o i : list noise -> R := psum (fun h (_ : noise) => e_ o i h).
Definition EE k (phi : O -> list noise -> R) : R := draw (fun o => path (ker w o) k (phi o)).
Definition DD : R := EE K (fun o h => meanR (fun i => / INR K * Se o i h)).
Lemma EE_plus k u v : EE k (fun o h => u o h + v o h) = EE k u + EE k v.
Proof. unfold EE. rewrite <- ex_plus. apply ex_ext; intros; apply ex_plus. Qed.
Lemma EE_scal k b u : EE k (fun o h => b * u o h) = b * EE k u.
Proof. unfold EE. rewrite <- ex_scal. apply ex_ext; intros; apply ex_scal. Qed.
Lemma EE_le k u v : (forall o h, length h = k -> u o h <= v o h) -> EE k u <= EE k v.
Proof. intros q1. apply ex_le; intros o. apply path_length; intros; now apply q1. Qed.
Lemma EE_map k u : EE k (fun o _ => u o) = draw u. Proof. apply ex_ext; intros; apply ex_const. Qed.
Lemma EE_const k c : EE k (fun _ _ => c) = c. Proof. rewrite (EE_map k (fun _ => c)). apply ex_const. Qed.
Lemma EE_psum k u : EE k (fun o h => psum (fun h (_ : noise) => u o h) h) = sum k (fun j => EE j u).
Proof.
  unfold EE. rewrite <- ex_sum. apply ex_ext; intros o. rewrite path_psum. apply sum_ext; intros; apply ex_ext; intros; apply ex_const.
Qed.
Lemma gsumE o i h : gsum w o i h = (Sa o i h + INR (length h) *: g i w + Xi i h)%V.
Proof.
  unfold gsum, Sa, Xi. induction h as [|z h IH]; [cbn; vring|]. cbn [pvsum]. rewrite IH. change (length (z :: h)) with (S (length h)). rewrite S_INR. unfold a_. vring.
Qed.
Lemma Sa_le o i h : (i < N)%nat -> nrm2 (Sa o i h) <= INR (length h) * (L ^ 2 * Se o i h).
Proof.
  intros hi. unfold Sa, Se. assert (np : nrm2 (pvsum (fun h (_ : noise) => a_ o i h) h) <= INR (length h) * psum (fun h (_ : noise) => nrm2 (a_ o i h)) h)
    by exact (Ssf.nrm2_pvsum 1 1 ltac:(lia) ltac:(lia) (fun h (_ : noise) => a_ o i h) h).
  eapply Rle_trans; [exact np|]. apply Rmult_le_compat_l; [apply pos_INR|]. rewrite <- Ssf.psum_scal. apply Ssf.psum_le; intros h' _. assert (q1 := lip i hi (loc w o i h') w). unfold a_, e_. lra.
Qed.
Lemma Se_ge0 o i h : 0 <= Se o i h. Proof. apply Ssf.psum_ge0; intros; apply nrm2_ge0. Qed.
Lemma Xi_form i k : (i < N)%nat -> (k <= K)%nat -> EE k (fun o h => dot (Xi i h) (Rm o (Xi i h))) <= INR k * (gam * p * nu ^ 2).
Proof.
  intros hi hk. rewrite <- sum_const. unfold EE.
  rewrite (ex_ext draw _ (fun o => sum k (fun j => path (ker w o) j (fun h => ker w o h (fun z => dot (z i) (Rm o (z i))))))).
  - rewrite ex_sum. apply sum_le; intros j hj. apply noise_var; [lia|auto].
  - intros o. clear hk. induction k. { unfold Xi. cbn. apply dot_0l. }
    rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. unfold Xi. cbn [pvsum]. set (b := pvsum _ h).
    rewrite (ex_ext _ _ (fun z => dot b (Rm o b) + (2 * dot (Rm o b) (z i) + dot (z i) (Rm o (z i))))).
    + rewrite !ex_plus, ex_const, ex_scal, noise_mean0 by auto. unfold noise. ring.
    + intros z. rewrite (form_add Lam (Rm o) (Rmap o)), (l_sym _ _ (Rmap o) b (z i)). ring.
Qed.
(* the recursion of e_k *)
Definition b_ i (k : nat) : R := 4 * eta ^ 2 * Lam * gam * nrm2 (g i w) * INR k ^ 2 + 4 * eta ^ 2 * Lam * gam * p * nu ^ 2 * INR k + 4 * eps2 * (match k with 0%nat => 0 | _ => 1 end).
Lemma e_zero i : EE 0 (fun o => e_ o i) = 0.
Proof.
  unfold EE, e_. rewrite (ex_ext draw _ (fun _ => 0)); [apply ex_const|]. intros o. cbn [path ex dirac]. rewrite locE, err_0. unfold gsum. cbn [pvsum].
  rewrite (l_0 Lam _ (Rmap o)). replace (w - eta *: v0 + v0 - w)%V with v0 by vring. apply nrm2_0.
Qed.
Lemma drift_rec i k : (i < N)%nat -> (k < K)%nat -> EE k (fun o => e_ o i) <= 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR k * sum k (fun j => EE j (fun o => e_ o i)) + b_ i k.
Proof.
  intros hi hk. destruct k as [|k'].
  - rewrite e_zero. unfold b_. cbn [sum INR]. right. ring.
  - set (k := S k') in *. assert (k0 := pos_INR k). assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (a2 := pow2_ge_0 Lam). assert (k2 := pow2_ge_0 (INR k)).
    apply Rle_trans with (EE k (fun o h => 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR k * Se o i h + (4 * eta ^ 2 * Lam * INR k ^ 2 * dot (g i w) (Rm o (g i w))
      + (4 * eta ^ 2 * Lam * dot (Xi i h) (Rm o (Xi i h)) + 4 * eps2)))).
    + apply EE_le; intros o h hl. unfold e_. rewrite locE, gsumE, hl. assert (ro := Rmap o).
      replace (w - eta *: Rm o (Sa o i h + INR k *: g i w + Xi i h) + err w o i h - w)%V
        with ((- eta) *: Rm o (Sa o i h) + (- eta * INR k) *: Rm o (g i w) + (- eta) *: Rm o (Xi i h) + err w o i h)%V by (rewrite !(l_add _ _ ro), (l_scal _ _ ro); vring).
      eapply Rle_trans; [apply step_8_1|]. rewrite !nrm2_scal.
      assert (s1 := l_square _ _ ro (Sa o i h)). assert (s1' := l_le _ _ ro (Sa o i h)). assert (s2 := l_square _ _ ro (g i w)). assert (s3 := l_square _ _ ro (Xi i h)).
      assert (s4 := err_le w o i h ltac:(lia)). assert (s5 := Sa_le o i h hi). rewrite hl in s5. assert (S0 := Se_ge0 o i h).
      assert (t1 : nrm2 (Rm o (Sa o i h)) <= Lam ^ 2 * L ^ 2 * INR k * Se o i h).
      { eapply Rle_trans; [exact s1|]. apply (Rmult_le_compat_l Lam) in s1'; [|lra]. apply (Rmult_le_compat_l (Lam * Lam)) in s5; [|pos]. lra. }
      apply (Rmult_le_compat_l (eta ^ 2)) in t1; auto. apply (Rmult_le_compat_l (eta ^ 2 * INR k ^ 2)) in s2; [|pos]. apply (Rmult_le_compat_l (eta ^ 2)) in s3; auto. lra.
    + rewrite !EE_plus, (EE_scal k _ (fun o h => Se o i h)), (EE_scal k _ (fun o h => dot (g i w) (Rm o (g i w)))), (EE_scal k _ (fun o h => dot (Xi i h) (Rm o (Xi i h)))), EE_const, (EE_map k (fun o => dot (g i w) (Rm o (g i w)))), ER.
      change (EE k (fun o h => Se o i h)) with (EE k (fun o h => psum (fun h (_ : noise) => e_ o i h) h)). rewrite (EE_psum k (fun o h => e_ o i h)). change (fun j => EE j (fun o h => e_ o i h)) with (fun j => EE j (fun o => e_ o i)).
      assert (x := Xi_form i k hi ltac:(lia)). apply (Rmult_le_compat_l (4 * eta ^ 2 * Lam)) in x; [|assert (y := Rlt_le _ _ Lam0); pos]. unfold b_. fold (nrm2 (g i w)). subst k. cbv beta iota. lra.
Qed.
Lemma mean_split : meanR (fun i => nrm2 (g i w)) = nrm2 (G w) + meanR (fun i => nrm2 (g i w - G w)).
Proof.
  unfold meanR. rewrite (sum_ext N (fun i => nrm2 (g i w - G w)) (fun i => nrm2 (g i w) + ((-2) * dot (g i w) (G w) + nrm2 (G w)))) by (intros; rewrite nrm2_sub; ring).
  rewrite !sum_plus, sum_scal, sum_const, <- dot_suml. assert (e : / INR N * dot (vsum N (fun i => g i w)) (G w) = nrm2 (G w)) by (rewrite <- dot_scall; reflexivity).
  replace (dot (vsum N (fun i => g i w)) (G w)) with (INR N * nrm2 (G w)) by (rewrite <- e; field; lra). field. lra.
Qed.
Definition em k : R := meanR (fun i => EE k (fun o => e_ o i)).
Definition bm (k : nat) : R := match k with 0%nat => 0
  | _ => 4 * eta ^ 2 * INR k ^ 2 * Lam * gam * (nrm2 (G w) + zeta ^ 2) + 4 * eta ^ 2 * INR k * Lam * gam * p * nu ^ 2 + 4 * eps2 end.
Lemma step_8_8 : meanR (fun i => nrm2 (g i w)) = nrm2 (G w) + meanR (fun i => nrm2 (g i w - G w)) /\
  em 0 = 0 /\ bm 0 = 0 /\ (forall k, (k < K)%nat -> em k <= 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR k * sum k em + bm k) /\
  let beta := 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR K in sum K em <= (1 + beta) ^ K * sum K bm.
Proof.
  assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (a2 := pow2_ge_0 Lam). assert (v2 := pow2_ge_0 nu). assert (z2 := pow2_ge_0 zeta). assert (n0 := nrm2_ge0 (G w)).
  assert (la := Rlt_le _ _ Lam0). assert (ga := Rlt_le _ _ gam0).
  assert (b0 : forall k, 0 <= bm k) by (intros [|k]; unfold bm; [lra|]; assert (x := pos_INR (S k)); assert (y := pow2_ge_0 (INR (S k))); repeat apply Rplus_le_le_0_compat; pos).
  assert (e0 : forall k, 0 <= em k) by (intros k; apply Rmult_le_pos; auto; apply sum_ge0; intros; apply ex_ge0; intros; apply ex_ge0; intros; apply nrm2_ge0).
  assert (rec : forall k, (k < K)%nat -> em k <= 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR k * sum k em + bm k).
  { intros k hk. set (A := 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR k). apply Rle_trans with (meanR (fun i => A * sum k (fun j => EE j (fun o => e_ o i)) + b_ i k)).
    - apply Rmult_le_compat_l; auto. apply sum_le; intros i hi. now apply drift_rec.
    - unfold meanR. rewrite sum_plus, sum_scal, sum_swap. assert (es : sum k em = / INR N * sum k (fun j => sum N (fun i => EE j (fun o => e_ o i)))) by (unfold em, meanR; apply sum_scal).
      rewrite es. assert (bb : / INR N * sum N (fun i => b_ i k) <= bm k); [|lra]. destruct k as [|k'].
      + rewrite (sum_ext N _ (fun _ => 0)) by (intros; unfold b_; cbn [INR]; ring). rewrite sum_const. unfold bm. right. ring.
      + set (k := S k') in *. assert (c0 : 0 <= 4 * eta ^ 2 * INR k ^ 2 * Lam * gam) by (assert (y := pow2_ge_0 (INR k)); pos).
        rewrite (sum_ext N _ (fun i => 4 * eta ^ 2 * INR k ^ 2 * Lam * gam * nrm2 (g i w) + (4 * eta ^ 2 * INR k * Lam * gam * p * nu ^ 2 + 4 * eps2))) by (intros; unfold b_, k; cbv iota; ring).
        rewrite sum_plus, sum_scal, sum_const. assert (m := mean_split). unfold meanR in m. assert (sp := spread w). unfold meanR in sp. rewrite <- (Rplus_0_r (/ INR N * _)).
        apply Rle_trans with (4 * eta ^ 2 * INR k ^ 2 * Lam * gam * (/ INR N * sum N (fun i => nrm2 (g i w))) + (4 * eta ^ 2 * INR k * Lam * gam * p * nu ^ 2 + 4 * eps2)); [right; field; lra|].
        rewrite m. apply (Rmult_le_compat_l _ _ _ c0) in sp. unfold bm, k. cbv iota. fold k. lra. }
  split; [exact mean_split|]. split; [|split; [reflexivity|split; [exact rec|]]].
  - unfold em, meanR. rewrite (sum_ext N _ (fun _ => 0)) by (intros; apply e_zero). rewrite sum_const. ring.
  - intros beta. assert (be0 : 0 <= beta) by (unfold beta; assert (y := Rlt_le _ _ K0); pos). apply (Ssf.step_2_6 beta em bm K be0 b0); [|lia]. intros k hk. eapply Rle_trans; [now apply rec|]. apply Rplus_le_compat_r, Rmult_le_compat_r; [apply sum_ge0; auto|].
    unfold beta. apply Rmult_le_compat_l; [pos|]. apply le_INR. lia.
Qed.
Lemma step_8_9 : Lam * L ^ 2 * DD <= 1285/1000 * u_ * (4/3 * q ^ 2 * gam * (nrm2 (G w) + zeta ^ 2) + 2 * q ^ 2 * gam * (p * nu ^ 2 / INR K) + 4 * Lam * L ^ 2 * eps2).
Proof.
  assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (a2 := pow2_ge_0 Lam). assert (la := Rlt_le _ _ Lam0). assert (ga := Rlt_le _ _ gam0). assert (v2 := pow2_ge_0 nu). assert (z2 := pow2_ge_0 zeta). assert (n0 := nrm2_ge0 (G w)).
  assert (DE : DD = / INR K * sum K em).
  { assert (x : EE K (fun o h => meanR (fun i => / INR K * Se o i h)) = / INR N * sum N (fun i => / INR K * EE K (fun o => Se o i))).
    { unfold EE, meanR. rewrite (ex_ext draw _ (fun o => / INR N * sum N (fun i => / INR K * path (ker w o) K (Se o i)))).
      - rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros i _. apply ex_scal.
      - intros o. rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros i _. apply ex_scal. }
    unfold DD. rewrite x, sum_scal, (sum_ext N _ (fun i => sum K (fun k => EE k (fun o => e_ o i)))) by (intros i _; exact (EE_psum K (fun o h => e_ o i h))).
    rewrite sum_swap. unfold em, meanR. rewrite sum_scal. ring. }
  set (c1 := 4 * eta ^ 2 * Lam * gam * (nrm2 (G w) + zeta ^ 2)). set (c2 := 4 * eta ^ 2 * Lam * gam * p * nu ^ 2).
  assert (Sb : sum K bm <= c1 * (1/3 * INR K ^ 2 * (INR K - 1)) + c2 * (INR K * (INR K - 1) / 2) + 4 * eps2 * (INR K - 1)).
  { rewrite (sum_ext K bm (fun k => c1 * INR k ^ 2 + (c2 * INR k + 4 * eps2 * (match k with 0%nat => 0 | _ => 1 end)))) by (intros [|k] _; unfold bm, c1, c2; [cbn [INR]|]; ring). rewrite !sum_plus, !sum_scal.
    assert (cnt : sum K (fun k => match k with 0%nat => 0 | _ => 1 end) = INR K - 1) by (clear - K1; destruct K as [|k]; [lia|]; clear K1; induction k; [simpl; ring|]; rewrite sum_S, IHk, !S_INR; ring). rewrite cnt.
    destruct (step_8_2 K) as [_ [d1 d2]]. rewrite sum_scal in d1, d2. change (sum K (fun k => INR k)) with (sum K INR) in *.
    assert (c10 : 0 <= c1) by (unfold c1; apply Rmult_le_pos; [pos|lra]). assert (d3 : sum K (fun k => INR k ^ 2) <= 1/3 * INR K ^ 2 * (INR K - 1)) by lra. apply (Rmult_le_compat_l c1) in d3; auto.
    replace (sum K INR) with (INR K * (INR K - 1) / 2) by lra. lra. }
  destruct step_8_8 as [_ [_ [_ [_ g8]]]]. cbv zeta in g8. set (be := 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR K) in *. assert (be0 : 0 <= be) by (unfold be; assert (y := Rlt_le _ _ K0); pos).
  destruct (step_8_3 be K q be0) as [g1 [g2 [g3 [g4 _]]]]; [unfold be; rewrite qE; right; ring|lra|].
  assert (gr : (1 + be) ^ K <= 1285/1000) by lra. assert (s0 : 0 <= sum K bm) by (apply sum_ge0; intros [|k] _; unfold bm; [lra|]; assert (x := pos_INR (S k)); assert (y := pow2_ge_0 (INR (S k))); repeat apply Rplus_le_le_0_compat; pos).
  apply (Rmult_le_compat_r _ _ _ s0) in gr. apply (Rmult_le_compat_l (1285/1000)) in Sb; [|lra]. assert (H := Rle_trans _ _ _ (Rle_trans _ _ _ g8 gr) Sb). rewrite DE. apply (Rmult_le_compat_l (Lam * L ^ 2 * / INR K)) in H; [|pos].
  rewrite <- Rmult_assoc. eapply Rle_trans; [exact H|]. right. rewrite qE. unfold c1, c2, u_. field. lra.
Qed.
(* the descent *)
Definition gb o h : vec := meanV (fun i => / INR K *: (Sa o i h))%V.
Definition xb h : vec := meanV (fun i => / INR K *: Xi i h)%V.
Definition te : R := INR K * eta.
Lemma meanV_lin (a b : nat -> vec) c d : meanV (fun i => c *: a i + d *: b i)%V = (c *: meanV a + d *: meanV b)%V.
Proof. unfold meanV. rewrite vsum_plus, !vsum_scal. vring. Qed.
Lemma move o h : length h = K -> (next w (o, h) - w = - te *: Rm o (G w + gb o h + xb h) + errbar w o h)%V.
Proof.
  intros hk. rewrite nextE by auto. assert (ro := Rmap o). assert (e : meanV (fun i => gsum w o i h) = (INR K *: (G w + gb o h + xb h))%V).
  { unfold gb, xb, G, meanV. rewrite !vsum_scal. rewrite (vsum_ext N (fun i => gsum w o i h) (fun i => Sa o i h + INR K *: g i w + Xi i h)%V) by (intros; rewrite gsumE, hk; reflexivity).
    rewrite !vsum_plus, vsum_scal. vfield. lra. }
  rewrite e, (l_scal _ _ ro). unfold te. vring.
Qed.
Lemma gb_le o h : length h = K -> nrm2 (gb o h) <= L ^ 2 * meanR (fun i => / INR K * Se o i h).
Proof.
  intros hk. unfold gb. eapply Rle_trans; [now apply nrm2_mean|]. unfold meanR. rewrite (Rmult_comm (L ^ 2)), Rmult_assoc. apply Rmult_le_compat_l; auto. rewrite Rmult_comm, <- sum_scal. apply sum_le; intros i hi.
  rewrite nrm2_scal. assert (s := Sa_le o i h hi). rewrite hk in s. apply (Rmult_le_compat_l (/ INR K * / INR K)) in s; [|pos]. eapply Rle_trans; [exact s|]. right. field. lra.
Qed.
Lemma xbE h : xb h = ((/ INR N * / INR K) *: pvsum (fun _ (z : noise) => vsum N z) h)%V.
Proof.
  unfold xb, meanV. rewrite vsum_scal. replace (vsum N (fun i => Xi i h)) with (pvsum (fun _ (z : noise) => vsum N z) h); [vring|].
  unfold Xi. induction h as [|z h IH]. { change (v0 = vsum N (fun _ => v0)). rewrite vsum_const. vring. } cbn [pvsum]. rewrite IH, <- vsum_plus. reflexivity.
Qed.
Lemma all_mean0 o h u : ker w o h (fun z => dot u (vsum N z)) = 0.
Proof.
  rewrite (ex_ext _ _ (fun z => sum N (fun i => dot u (z i)))) by (intros; apply dot_sumr). rewrite ex_sum, (sum_ext _ _ (fun _ => 0)) by (intros; now apply noise_mean0). rewrite sum_const. ring.
Qed.
Lemma xb_mean0 o u : path (ker w o) K (fun h => dot u (xb h)) = 0.
Proof.
  rewrite (ex_ext _ _ (fun h => (/ INR N * / INR K) * dot u (pvsum (fun _ (z : noise) => vsum N z) h))) by (intros; rewrite xbE; apply dot_scalr).
  rewrite ex_scal, (noise_mean (ker w o)); [ring|]. intros. apply all_mean0.
Qed.
Lemma xb_form : EE K (fun o h => dot (xb h) (Rm o (xb h))) <= gam * (p * nu ^ 2 / (INR N * INR K)).
Proof.
  set (c := / INR N * / INR K). assert (c0 : 0 <= c * c) by (unfold c; pos).
  assert (e : EE K (fun o h => dot (xb h) (Rm o (xb h))) = c * c * sum K (fun j => sum N (fun i => draw (fun o => path (ker w o) j (fun h => ker w o h (fun z => dot (z i) (Rm o (z i)))))))).
  { unfold EE. rewrite (ex_ext draw _ (fun o => c * c * sum K (fun j => sum N (fun i => path (ker w o) j (fun h => ker w o h (fun z => dot (z i) (Rm o (z i)))))))).
    - rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros j _. apply ex_sum.
    - intros o. assert (ro := Rmap o).
      assert (one : forall h, ker w o h (fun z => dot (vsum N z) (Rm o (vsum N z))) = sum N (fun i => ker w o h (fun z => dot (z i) (Rm o (z i))))).
      { intros h. assert (gen : forall n, (n <= N)%nat -> ker w o h (fun z => dot (vsum n z) (Rm o (vsum n z))) = sum n (fun i => ker w o h (fun z => dot (z i) (Rm o (z i))))).
        { induction n; intros hn. { rewrite (ex_ext _ _ (fun _ => 0)) by (intros; apply dot_0l). apply ex_const. }
          rewrite sum_S, <- IHn by lia. rewrite (ex_ext _ _ (fun z => dot (vsum n z) (Rm o (vsum n z)) + (2 * sum n (fun i => dot (z i) (Rm o (z n))) + dot (z n) (Rm o (z n))))).
          - rewrite !ex_plus, ex_scal, ex_sum, (sum_ext n _ (fun _ => 0)) by (intros; apply noise_clients; lia). rewrite sum_const. unfold noise. ring.
          - intros z. rewrite vsum_S, (form_add _ _ ro), (dot_suml n (Rm o (z n)) z). ring. }
        now apply gen. }
      assert (run : forall k, path (ker w o) k (fun h => dot (pvsum (fun _ (z : noise) => vsum N z) h) (Rm o (pvsum (fun _ (z : noise) => vsum N z) h)))
        = sum k (fun j => path (ker w o) j (fun h => ker w o h (fun z => dot (vsum N z) (Rm o (vsum N z)))))).
      { induction k. { apply dot_0l. } rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. cbn [pvsum]. set (b := pvsum _ h).
        rewrite (ex_ext _ _ (fun z => dot b (Rm o b) + (2 * dot (Rm o b) (vsum N z) + dot (vsum N z) (Rm o (vsum N z))))).
        - rewrite !ex_plus, ex_const, ex_scal, all_mean0. unfold noise. ring.
        - intros z. rewrite (form_add _ _ ro), (l_sym _ _ ro b (vsum N z)). ring. }
      rewrite (ex_ext _ _ (fun h => c * c * dot (pvsum (fun _ (z : noise) => vsum N z) h) (Rm o (pvsum (fun _ (z : noise) => vsum N z) h)))).
      + rewrite ex_scal, run. f_equal. apply sum_ext; intros j _. rewrite <- ex_sum. apply ex_ext; intros h. apply one.
      + intros h. rewrite xbE. fold c. rewrite (l_scal _ _ ro), dot_scall, dot_scalr. ring. }
  rewrite e. assert (b : sum K (fun j => sum N (fun i => draw (fun o => path (ker w o) j (fun h => ker w o h (fun z => dot (z i) (Rm o (z i))))))) <= INR K * (INR N * (gam * p * nu ^ 2))).
  { rewrite <- sum_const. apply sum_le; intros j hj. rewrite <- sum_const. apply sum_le; intros i hi. now apply noise_var. }
  apply (Rmult_le_compat_l (c * c)) in b; auto. eapply Rle_trans; [exact b|]. right. unfold c. field. lra.
Qed.
Definition gbar o h : vec := meanV (fun i => / INR K *: pvsum (fun h (_ : noise) => g i (loc w o i h)) h)%V.
Lemma gb_mean o h : length h = K -> gb o h = (gbar o h - G w)%V.
Proof.
  intros hk. assert (e : forall i h, pvsum (fun h (_ : noise) => g i (loc w o i h)) h = (Sa o i h + INR (length h) *: g i w)%V).
  { intros i h'. unfold Sa. induction h' as [|z h' IH]; [cbn; vring|]. cbn [pvsum]. rewrite IH. change (length (z :: h')) with (S (length h')). rewrite S_INR. unfold a_. vring. }
  unfold gbar, gb, G, meanV. rewrite (vsum_ext N (fun i => / INR K *: pvsum (fun h (_ : noise) => g i (loc w o i h)) h)%V (fun i => / INR K *: Sa o i h + g i w)%V) by (intros; rewrite e, hk; vfield; lra).
  rewrite vsum_plus. vring.
Qed.
(* a = R^(1/2) G, b = R^(1/2) gb, z = R^(1/2) xb *)
Lemma step_8_10 : (forall o h, length h = K -> gb o h = (gbar o h - G w)%V /\ (next w (o, h) - w)%V = (- te *: Rm o (gbar o h + xb h) + errbar w o h)%V) /\
  (forall o, path (ker w o) K (fun h => dot (G w) (Rm o (xb h))) = 0) /\
  EE K (fun o h => Favg (next w (o, h))) - Favg w <= - (te / 2) * EE K (fun o _ => dot (G w) (Rm o (G w))) + te / 2 * EE K (fun o h => dot (gb o h) (Rm o (gb o h)))
    + 5/4 * te * q * EE K (fun o h => dot (xb h) (Rm o (xb h))) + 9 * (INR K * alpha) / 200 * nrm2 (G w) + (5/2 * L + 50 / (9 * (INR K * alpha))) * eps2.
Proof.
  split; [intros o h hk; split; [now apply gb_mean|]; rewrite (move o h hk), (gb_mean o h hk); f_equal; f_equal; f_equal; vring|].
  assert (zero : forall o, path (ker w o) K (fun h => dot (G w) (Rm o (xb h))) = 0).
  { intros o. rewrite (ex_ext _ _ (fun h => dot (Rm o (G w)) (xb h))) by (intros; symmetry; apply (l_sym _ _ (Rmap o))). apply xb_mean0. }
  split; [exact zero|].
  assert (te0 : 0 < te) by (unfold te; now apply Rmult_lt_0_compat). assert (al0 : 0 < INR K * alpha) by (unfold alpha; repeat apply Rmult_lt_0_compat; auto).
  apply (Rplus_le_reg_r (Favg w)). unfold Rminus. rewrite Rplus_assoc, Rplus_opp_l, Rplus_0_r.
  apply Rle_trans with (EE K (fun o h => (Favg w + 9 * (INR K * alpha) / 200 * nrm2 (G w) + (5/2 * L + 50 / (9 * (INR K * alpha))) * eps2) + (- (te / 2) * dot (G w) (Rm o (G w)) + (te / 2 * dot (gb o h) (Rm o (gb o h))
    + (5/4 * te * q * dot (xb h) (Rm o (xb h)) + - te * dot (Rm o (G w)) (xb h)))))).
  - apply EE_le; intros o h hk. assert (ro := Rmap o). set (b := gb o h). set (z := xb h). set (v := (G w + b + z)%V). set (E := errbar w o h).
    assert (qu : Favg (next w (o, h)) <= Favg w + dot (G w) (next w (o, h) - w) + L / 2 * nrm2 (next w (o, h) - w)).
    { set (s := (next w (o, h) - w)%V). replace (next w (o, h)) with (w + s)%V by (unfold s; vring). unfold Favg, meanR.
      apply Rle_trans with (/ INR N * sum N (fun i => f i w + dot (g i w) s + L / 2 * nrm2 s)).
      - apply Rmult_le_compat_l; auto. apply sum_le; intros i hi. exact (smooth (f i) (g i) L (Rlt_le _ _ L0) (grad i hi) (lip i hi) w s).
      - right. rewrite !sum_plus, sum_const, <- dot_suml. unfold G, meanV. rewrite dot_scall. field. lra. }
    rewrite (move o h hk) in qu. fold b z v E in qu. rewrite dot_addr, dot_scalr in qu.
    destruct (step_8_5 (- te *: Rm o v)%V E (G w) (INR K * alpha) al0) as [c1 [_ c2]]. rewrite nrm2_scal in c1.
    assert (c3 := l_square _ _ ro v). assert (c4 := step_8_4 Lam (Rm o) ro (G w) b z te q (Rlt_le _ _ te0) (conj (Rlt_le _ _ q0) steps)). fold v in c4.
    assert (c5 : nrm2 E <= eps2) by now apply errbar_le.
    assert (vz : dot (G w) (Rm o v) = dot (G w) (Rm o (G w + b)%V) + dot (Rm o (G w)) z) by (unfold v; rewrite (l_add _ _ ro (G w + b)%V), dot_addr, (l_sym _ _ ro (G w) z); reflexivity).
    rewrite vz in qu. apply (Rmult_le_compat_l (L / 2)) in c1; [|lra]. apply (Rmult_le_compat_l (L / 2 * (5/4) * te * te)) in c3; [|assert (y := Rlt_le _ _ te0); assert (y2 := Rlt_le _ _ L0); pos].
    assert (qq : L / 2 * (5/4) * te * te * (Lam * dot v (Rm o v)) = 5/8 * te * q * dot v (Rm o v)) by (rewrite qE; unfold te; field).
    rewrite qq in c3. assert (i1 : 0 < / (9 * (INR K * alpha))) by (apply Rinv_0_lt_compat; lra).
    assert (c8 := Rmult_le_compat_l (5/2 * L + 50 / (9 * (INR K * alpha))) _ _ ltac:(unfold Rdiv; lra) c5).
    lra.
  - rewrite !EE_plus, !(EE_const K), (EE_scal K _ (fun o h => dot (G w) (Rm o (G w)))), (EE_scal K _ (fun o h => dot (gb o h) (Rm o (gb o h)))), (EE_scal K _ (fun o h => dot (xb h) (Rm o (xb h)))), (EE_scal K _ (fun o h => dot (Rm o (G w)) (xb h))).
    assert (z : EE K (fun o h => dot (Rm o (G w)) (xb h)) = 0) by (unfold EE; rewrite (ex_ext draw _ (fun _ => 0)) by (intros; apply xb_mean0); apply ex_const).
    rewrite z. lra.
Qed.
Lemma forms : EE K (fun o _ => dot (G w) (Rm o (G w))) = gam * nrm2 (G w) /\ EE K (fun o h => dot (gb o h) (Rm o (gb o h))) <= Lam * L ^ 2 * DD /\
  EE K (fun o h => dot (xb h) (Rm o (xb h))) <= gam * (p * nu ^ 2 / (INR N * INR K)).
Proof.
  split; [rewrite (EE_map K (fun o => dot (G w) (Rm o (G w)))), ER; reflexivity|]. split; [|exact xb_form].
  unfold DD. rewrite <- EE_scal. apply EE_le; intros o h hk. assert (c6 := l_le _ _ (Rmap o) (gb o h)). assert (c7 := gb_le o h hk). apply (Rmult_le_compat_l Lam) in c7; [|now apply Rlt_le]. lra.
Qed.
End Round.
Definition e8 : R := 8 * (kappa * theta ^ 2 * B) ^ 2.
Definition X : R := u_ * q ^ 2 * (22/10 * zeta ^ 2 + 33/10 * (p * nu ^ 2 / INR K)) + 32/10 * (L * alpha * kappa * p * nu ^ 2 / INR N) + e8.
Definition round w : law (O * list noise) := bind draw (fun o => path (ker w o) K).
Lemma round_bound w : round w (fun x => Favg (next w x)) <= Favg w + INR K * alpha / 2 * (- (4/5) * nrm2 (G w) + 1714/1000 * q ^ 2 * u_ * zeta ^ 2 + 257/100 * q ^ 2 * u_ * (p * nu ^ 2 / INR K)
    + 5/2 * (L * alpha * kappa * p * nu ^ 2 / INR N) + 625/100 * (kappa * theta ^ 2 * B) ^ 2) /\
  round w (fun x => Favg (next w x)) <= Favg w - 2/5 * (INR K * alpha) * (nrm2 (G w) - X).
Proof.
  enough (h : round w (fun x => Favg (next w x)) <= Favg w + INR K * alpha / 2 * (- (4/5) * nrm2 (G w) + 1714/1000 * q ^ 2 * u_ * zeta ^ 2 + 257/100 * q ^ 2 * u_ * (p * nu ^ 2 / INR K)
    + 5/2 * (L * alpha * kappa * p * nu ^ 2 / INR N) + 625/100 * (kappa * theta ^ 2 * B) ^ 2)).
  { split; [exact h|]. eapply Rle_trans; [exact h|]. assert (al0 : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). assert (Ka0 : 0 <= INR K * alpha) by (apply Rlt_le; now apply Rmult_lt_0_compat).
    assert (z2 := pow2_ge_0 zeta). assert (v2 := pow2_ge_0 nu). assert (y := pow2_ge_0 q). assert (kp : 0 <= kappa) by lra. assert (l0 := Rlt_le _ _ L0). assert (a0 := Rlt_le _ _ al0). destruct u01 as [u0 _].
    assert (m2 : 0 <= INR K * alpha * (u_ * q ^ 2 * zeta ^ 2)) by pos. assert (m3 : 0 <= INR K * alpha * (u_ * q ^ 2 * (p * nu ^ 2 / INR K))) by (unfold Rdiv; pos). assert (m4 : 0 <= INR K * alpha * (L * alpha * kappa * p * nu ^ 2 / INR N)) by (unfold Rdiv; pos).
    assert (m5 : 0 <= INR K * alpha * (kappa * theta ^ 2 * B) ^ 2) by pos. unfold X, e8. lra. }
  change (round w (fun x => Favg (next w x))) with (EE w K (fun o h => Favg (next w (o, h)))). destruct (step_8_10 w) as [_ [_ d]]. destruct (forms w) as [fa [fb fz]]. rewrite fa in d.
  assert (c := step_8_9 w). assert (te0 : 0 < te) by (unfold te; now apply Rmult_lt_0_compat). assert (al0 : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). assert (tg : te * gam = INR K * alpha) by (unfold te, alpha; ring).
  apply (Rmult_le_compat_l (te / 2)) in c; [|lra]. apply (Rmult_le_compat_l (te / 2)) in fb; [|lra]. apply (Rmult_le_compat_l (5/4 * te * q)) in fz; [|assert (y2 := Rlt_le _ _ q0); pos]. destruct (step_8_6 q u_ kappa theta B eps2 L (conj q0 steps) u01 kap1 theta0 B0 eps0 ltac:(lra)) as [h1 h2].
  set (Ka := INR K * alpha) in *. assert (Ka0 : 0 < Ka) by (unfold Ka; now apply Rmult_lt_0_compat). assert (n0 := nrm2_ge0 (G w)). assert (z2 := pow2_ge_0 zeta). assert (v2 := pow2_ge_0 nu).
  set (W := p * nu ^ 2). assert (W0 : 0 <= W) by (unfold W; pos).
  assert (eps_part : te / 2 * (1285/1000 * u_ * (4 * Lam * L ^ 2 * eps2)) + (5/2 * L + 50 / (9 * Ka)) * eps2 = Ka / 2 * (eps2 * L ^ 2 * (514/100 * kappa * u_ + 5 * kappa / q + kappa ^ 2 / (9/100 * q ^ 2)))).
  { assert (la : Lam = kappa * gam) by (unfold kappa; field; lra). rewrite la. replace (te / 2 * (1285/1000 * u_ * (4 * (kappa * gam) * L ^ 2 * eps2))) with (te * gam / 2 * (514/100 * u_ * kappa * L ^ 2 * eps2)) by field. rewrite tg.
    assert (qk : q = Ka * L * kappa) by (unfold q, Ka; ring). rewrite qk. field. lra. }
  assert (z_part : 5/4 * te * q * (gam * (W / (INR N * INR K))) = Ka / 2 * (5/2 * (L * alpha * kappa * W / INR N))) by (unfold Ka, q, te, alpha; field; lra).
  assert (k1 := Rmult_le_compat_l (Ka / 2 * nrm2 (G w)) _ _ ltac:(apply Rmult_le_pos; lra) h1). assert (k2 := Rmult_le_compat_l (Ka / 2) _ _ ltac:(lra) h2).
  assert (iN' : 0 <= L * alpha * kappa * W / INR N). { unfold Rdiv. assert (y := Rlt_le _ _ L0). assert (y1 := Rlt_le _ _ al0). assert (y2 : 0 <= kappa) by lra. pos. }
  assert (U1 : 0 <= u_ * q ^ 2 * zeta ^ 2) by (destruct u01; assert (y := pow2_ge_0 q); pos). assert (U2 : 0 <= u_ * q ^ 2 * (W / INR K)) by (destruct u01; assert (y := pow2_ge_0 q); unfold Rdiv; pos).
  fold W in c. replace (te / 2 * (1285/1000 * u_ * (4/3 * q ^ 2 * gam * (nrm2 (G w) + zeta ^ 2) + 2 * q ^ 2 * gam * (W / INR K) + 4 * Lam * L ^ 2 * eps2)))
    with (te * gam / 2 * (1285/1000 * (4/3) * (u_ * q ^ 2 * nrm2 (G w)) + 1285/1000 * (4/3) * (u_ * q ^ 2 * zeta ^ 2) + 257/100 * (u_ * q ^ 2 * (W / INR K))) + te / 2 * (1285/1000 * u_ * (4 * Lam * L ^ 2 * eps2))) in c by (field; lra). rewrite tg in c.
  fold W in fz. rewrite z_part in fz.
  assert (m1 : 0 <= Ka * (u_ * q ^ 2 * nrm2 (G w))) by (destruct u01; assert (y := pow2_ge_0 q); assert (y2 := Rlt_le _ _ Ka0); pos).
  assert (m2 : 0 <= Ka * (u_ * q ^ 2 * zeta ^ 2)) by (apply Rmult_le_pos; lra). assert (m3 : 0 <= Ka * (u_ * q ^ 2 * (W / INR K))) by (apply Rmult_le_pos; lra). assert (m4 : 0 <= Ka * (L * alpha * kappa * W / INR N)) by (apply Rmult_le_pos; lra).
  assert (m5 : 0 <= Ka * (kappa * theta ^ 2 * B) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]).
  fold W. replace (L * alpha * kappa * p * nu ^ 2 / INR N) with (L * alpha * kappa * W / INR N) by (unfold W; field; lra).
  replace (- (te / 2) * (gam * nrm2 (G w))) with (- (Ka / 2 * nrm2 (G w))) in d by (rewrite <- tg; field). lra.
Qed.
Theorem several (w0 : vec) T : (0 < T)%nat -> / INR T * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0)
  <= 5 * (Favg w0 - fstar) / (2 * INR K * alpha * INR T) + X.
Proof.
  intros T0%lt_0_INR. assert (al0 : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). assert (Ka0 : 0 < INR K * alpha) by now apply Rmult_lt_0_compat.
  assert (h := telescope round next (fun _ => True) (fun w => Favg w - fstar) (fun w => 2/5 * (INR K * alpha) * nrm2 (G w)) (2/5 * (INR K * alpha) * X) (fun _ _ _ => I)).
  specialize (h (fun w _ => ltac:(rewrite (ex_ext (round w) _ (fun x => Favg (next w x) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := proj2 (round_bound w)); lra)) (fun w => ltac:(assert (b := bounded w); lra)) T w0 I).
  rewrite (sum_ext T _ (fun t => 2/5 * (INR K * alpha) * Eit round next t (fun w => nrm2 (G w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 5 / (2 * (INR K * alpha) * INR T)) by (apply Rdiv_lt_0_compat; [lra|]; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (5 / (2 * (INR K * alpha) * INR T) * (2/5 * (INR K * alpha) * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0))) with (/ INR T * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
Lemma step_8_11 w : EE w K (fun o _ => dot (G w) (Rm o (G w))) = gam * nrm2 (G w) /\ EE w K (fun o h => dot (gb w o h) (Rm o (gb w o h))) <= Lam * L ^ 2 * DD w /\
  EE w K (fun o h => dot (xb h) (Rm o (xb h))) <= gam * (p * nu ^ 2 / (INR N * INR K)) /\
  round w (fun x => Favg (next w x)) <= Favg w + INR K * alpha / 2 * (- (4/5) * nrm2 (G w) + 1714/1000 * q ^ 2 * u_ * zeta ^ 2 + 257/100 * q ^ 2 * u_ * (p * nu ^ 2 / INR K)
    + 5/2 * (L * alpha * kappa * p * nu ^ 2 / INR N) + 625/100 * (kappa * theta ^ 2 * B) ^ 2) /\
  round w (fun x => Favg (next w x)) <= Favg w - 2/5 * (INR K * alpha) * (nrm2 (G w) - X) /\
  forall T, (0 < T)%nat -> / INR T * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w) <= 5 * (Favg w - fstar) / (2 * INR K * alpha * INR T) + X.
Proof. destruct (forms w) as [a [b c]]. destruct (round_bound w) as [d e]. repeat split; auto. apply several. Qed.
End Several.
(* ---- matrices ---- *)
Definition fro m n (A B : mat nat nat) : R := sum m (fun i => sum n (fun j => A i j * B i j)).
Definition tr_ (A : mat nat nat) : mat nat nat := fun i j => A j i.
Definition mscal (c : R) (A : mat nat nat) : mat nat nat := fun i j => c * A i j.
Definition gram r (U : mat nat nat) : mat nat nat := mul r U (tr_ U).           (* U U^T *)
Lemma mul_assoc n k (A B C : mat nat nat) : mul k (mul n A B) C = mul n A (mul k B C).
Proof.
  mext. unfold mul. rewrite (sum_ext k _ (fun l => sum n (fun a => A i a * B a l * C l j))).
  - rewrite sum_swap. apply sum_ext; intros a _. rewrite <- sum_scal. apply sum_ext; intros; ring.
  - intros l _. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
Qed.
Lemma mul_scal_l n c (A B : mat nat nat) : mul n (mscal c A) B = mscal c (mul n A B).
Proof. mext. unfold mul, mscal. rewrite <- sum_scal. apply sum_ext; intros; ring. Qed.
Lemma mul_scal_r n c (A B : mat nat nat) : mul n A (mscal c B) = mscal c (mul n A B).
Proof. mext. unfold mul, mscal. rewrite <- sum_scal. apply sum_ext; intros; ring. Qed.
Lemma tr_mul n (A B : mat nat nat) : tr_ (mul n A B) = mul n (tr_ B) (tr_ A).
Proof. mext. unfold tr_, mul. apply sum_ext; intros; ring. Qed.
Lemma mul_add_r n (A B C : mat nat nat) : mul n A (madd B C) = madd (mul n A B) (mul n A C).
Proof. mext. unfold mul, madd. rewrite <- sum_plus. apply sum_ext; intros; ring. Qed.
Lemma mul_add_l n (A B C : mat nat nat) : mul n (madd A B) C = madd (mul n A C) (mul n B C).
Proof. mext. unfold mul, madd. rewrite <- sum_plus. apply sum_ext; intros; ring. Qed.
(* <A B, C> = <B, A^T C> and = <A, C B^T> *)
Lemma fro_mul_l m n k (A B C : mat nat nat) : fro m n (mul k A B) C = fro k n B (mul m (tr_ A) C).
Proof.
  unfold fro, mul, tr_. rewrite (sum_ext m _ (fun i => sum k (fun l => sum n (fun j => A i l * B l j * C i j)))).
  - rewrite sum_swap. apply sum_ext; intros l _. rewrite (sum_ext n _ (fun j => sum m (fun i => A i l * B l j * C i j))).
    + apply sum_swap.
    + intros j _. rewrite <- sum_scal. apply sum_ext; intros; ring.
  - intros i _. rewrite (sum_swap k n). apply sum_ext; intros j _. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
Qed.
Lemma fro_tr m n (A B : mat nat nat) : fro m n A B = fro n m (tr_ A) (tr_ B).
Proof. unfold fro, tr_. apply sum_swap. Qed.
Lemma fro_mul_r m n k (A B C : mat nat nat) : fro m n (mul k A B) C = fro m k A (mul n C (tr_ B)).
Proof. rewrite fro_tr, tr_mul, fro_mul_l. rewrite (fro_tr m k). f_equal. rewrite tr_mul. reflexivity. Qed.
Lemma froC m n A B : fro m n A B = fro m n B A.
Proof. unfold fro. apply sum_ext; intros; apply sum_ext; intros; ring. Qed.
Lemma fro_add_r m n A B C : fro m n A (madd B C) = fro m n A B + fro m n A C.
Proof. unfold fro, madd. rewrite <- sum_plus. apply sum_ext; intros. rewrite <- sum_plus. apply sum_ext; intros; ring. Qed.
Lemma fro_scal_r m n A c B : fro m n A (mscal c B) = c * fro m n A B.
Proof. unfold fro, mscal. rewrite <- sum_scal. apply sum_ext; intros. rewrite <- sum_scal. apply sum_ext; intros; ring. Qed.
Lemma fro_ge0 m n A : 0 <= fro m n A A.
Proof. apply sum_ge0; intros; apply sum_ge0; intros; apply Rle_0_sqr. Qed.
(* 1.1 *)
Lemma step_1_1 (u : R) : let G : mat nat nat := fun i j => if Nat.eq_dec i 1 then (if Nat.eq_dec j 1 then -1 else 0) else 0 in
  let U : mat nat nat := fun i _ => if Nat.eq_dec i 0 then u else 0 in let V : mat nat nat := fun _ _ => 0 in
  (forall i k, mul 2 G V i k = 0) /\ (forall j k, mul 2 (tr_ G) U j k = 0) /\ fro 2 2 G G = 1.
Proof. repeat split; intros; unfold mul, tr_, fro; cbn; ring. Qed.
(* 1.2; S = U U^T, Z = V V^T *)
Lemma step_1_2 m n r (U V G P Q : mat nat nat) (a b : nat -> R) :
  let eye : mat nat nat := fun i j => if Nat.eq_dec i j then 1 else 0 in let dg (c : nat -> R) : mat nat nat := fun i j => if Nat.eq_dec i j then c i else 0 in
  fro m r (mul n G V) (mul n G V) + fro r n (mul m (tr_ U) G) (mul m (tr_ U) G) = fro m n G (mul m (gram r U) G) + fro m n G (mul n G (gram r V)) /\
  ((forall i j, (i < m)%nat -> (j < m)%nat -> mul m P (tr_ P) i j = eye i j) -> (forall i j, (i < n)%nat -> (j < n)%nat -> mul n Q (tr_ Q) i j = eye i j) ->
   (forall i j, (i < m)%nat -> (j < m)%nat -> gram r U i j = mul m (mul m P (dg a)) (tr_ P) i j) -> (forall i j, (i < n)%nat -> (j < n)%nat -> gram r V i j = mul n (mul n Q (dg b)) (tr_ Q) i j) ->
   let Gh := mul n (mul m (tr_ P) G) Q in fro m n Gh Gh = fro m n G G /\
   fro m n G (mul m (gram r U) G) + fro m n G (mul n G (gram r V)) = sum m (fun i => sum n (fun j => (a i + b j) * Gh i j ^ 2))).
Proof.
  intros eye dg.
  assert (fext : forall k l (A B B' : mat nat nat), (forall i j, (i < k)%nat -> (j < l)%nat -> B i j = B' i j) -> fro k l A B = fro k l A B').
  { intros k l A B B' h. unfold fro. apply sum_ext; intros i hi. apply sum_ext; intros j hj. now rewrite h. }
  assert (dgl : forall k c (A : mat nat nat) i j, (i < k)%nat -> mul k (dg c) A i j = c i * A i j).
  { intros k c A i j hi. unfold mul, dg. rewrite <- (sum_delta k i (fun l => c l * A l j) hi). apply sum_ext; intros l hl. destruct (Nat.eq_dec i l), (Nat.eq_dec l i); subst; try lia; ring. }
  assert (dgr : forall k c (A : mat nat nat) i j, (j < k)%nat -> mul k A (dg c) i j = A i j * c j).
  { intros k c A i j hj. unfold mul, dg. rewrite <- (sum_delta k j (fun l => A i l * c l) hj). apply sum_ext; intros l hl. destruct (Nat.eq_dec l j); subst; ring. }
  split.
  - rewrite Rplus_comm. f_equal.
    + rewrite fro_mul_l. unfold gram. rewrite mul_assoc. reflexivity.
    + rewrite fro_mul_r, mul_assoc. reflexivity.
  - intros hP hQ hU hV Gh.
    assert (rot : forall A B : mat nat nat, fro m n (mul n A Q) (mul n B Q) = fro m n A B).
    { intros A B. rewrite fro_mul_r, mul_assoc. apply fext; intros i j hi hj. unfold mul at 1. rewrite (sum_ext n _ (fun l => if Nat.eq_dec l j then B i l else 0)).
      - exact (sum_delta n j (fun l => B i l) hj).
      - intros l hl. rewrite hQ by auto. unfold eye. destruct (Nat.eq_dec l j); ring. }
    assert (rotl : forall A B : mat nat nat, fro m n (mul m (tr_ P) A) (mul m (tr_ P) B) = fro m n A B).
    { intros A B. rewrite fro_mul_l, <- mul_assoc. apply fext; intros i j hi hj. unfold mul at 1. rewrite (sum_ext m _ (fun l => if Nat.eq_dec l i then B l j else 0)).
      - exact (sum_delta m i (fun l => B l j) hi).
      - intros l hl. change (tr_ (tr_ P)) with P. rewrite hP by auto. unfold eye. destruct (Nat.eq_dec i l), (Nat.eq_dec l i); subst; try lia; ring. }
    split; [unfold Gh; now rewrite rot, rotl|].
    (* in the eigenbases *)
    rewrite (fext m n G (mul m (gram r U) G) (mul m (mul m (mul m P (dg a)) (tr_ P)) G)) by (intros i j hi hj; unfold mul at 1 2; apply sum_ext; intros l hl; now rewrite hU).
    rewrite (fext m n G (mul n G (gram r V)) (mul n G (mul n (mul n Q (dg b)) (tr_ Q)))) by (intros i j hi hj; unfold mul at 1 2; apply sum_ext; intros l hl; now rewrite hV).
    assert (e1 : fro m n G (mul m (mul m (mul m P (dg a)) (tr_ P)) G) = fro m n (mul m (tr_ P) G) (mul m (dg a) (mul m (tr_ P) G))).
    { rewrite !mul_assoc, froC, fro_mul_l, froC. reflexivity. }
    assert (e2 : fro m n G (mul n G (mul n (mul n Q (dg b)) (tr_ Q))) = fro m n (mul n G Q) (mul n (mul n G Q) (dg b))).
    { rewrite <- !mul_assoc, froC, fro_mul_r, froC. reflexivity. }
    rewrite e1, e2. set (H := mul m (tr_ P) G) in *.
    rewrite <- (rot H (mul m (dg a) H)), <- (rotl (mul n G Q) (mul n (mul n G Q) (dg b))).
    assert (g1 : mul n H Q = Gh) by reflexivity. assert (g2 : mul n (mul m (dg a) H) Q = mul m (dg a) Gh) by (unfold Gh; fold H; apply mul_assoc).
    assert (g3 : mul m (tr_ P) (mul n G Q) = Gh) by (unfold Gh; symmetry; apply mul_assoc).
    assert (g4 : mul m (tr_ P) (mul n (mul n G Q) (dg b)) = mul n Gh (dg b)) by (rewrite <- g3; symmetry; apply mul_assoc). rewrite g1, g2, g3, g4.
    unfold fro. rewrite <- sum_plus. apply sum_ext; intros i hi. rewrite <- sum_plus. apply sum_ext; intros j hj. rewrite dgl, dgr by auto. ring.
Qed.
Lemma step_1_3 m n (a b : nat -> R) (y : nat -> nat -> R) i0 j0 : (i0 < m)%nat -> (j0 < n)%nat -> (forall i, (i < m)%nat -> a i0 <= a i) -> (forall j, (j < n)%nat -> b j0 <= b j) ->
  (a i0 + b j0) * sum m (fun i => sum n (fun j => y i j ^ 2)) <= sum m (fun i => sum n (fun j => (a i + b j) * y i j ^ 2)) /\
  let y0 i j := if Nat.eq_dec i i0 then (if Nat.eq_dec j j0 then 1 else 0) else 0 in
  (a i0 + b j0) * sum m (fun i => sum n (fun j => y0 i j ^ 2)) = sum m (fun i => sum n (fun j => (a i + b j) * y0 i j ^ 2)) /\ sum m (fun i => sum n (fun j => y0 i j ^ 2)) = 1.
Proof.
  intros hi hj ha hb. split.
  - rewrite <- sum_scal. apply sum_le; intros i q. rewrite <- sum_scal. apply sum_le; intros j q2. apply Rmult_le_compat_r; [apply pow2_ge_0|]. specialize (ha i q). specialize (hb j q2). lra.
  - intros y0. assert (e : forall c : nat -> nat -> R, sum m (fun i => sum n (fun j => c i j * y0 i j ^ 2)) = c i0 j0).
    { intros c. rewrite (sum_ext m _ (fun i => if Nat.eq_dec i i0 then c i j0 else 0)).
      - exact (sum_delta m i0 (fun i => c i j0) hi).
      - intros i _. unfold y0. destruct (Nat.eq_dec i i0).
        + rewrite <- (sum_delta n j0 (fun j => c i j) hj). apply sum_ext; intros j _. destruct (Nat.eq_dec j j0); subst; ring.
        + rewrite (sum_ext n _ (fun _ => 0)) by (intros; ring). rewrite sum_const. ring. }
    assert (o := e (fun _ _ => 1)). rewrite (sum_ext m _ (fun i => sum n (fun j => y0 i j ^ 2))) in o by (intros; apply sum_ext; intros; ring).
    rewrite o, (e (fun i j => a i + b j)). split; ring.
Qed.
(* 1.5: the derivatives of h(U, V) = f(W + U V~^T + U~ V^T) in U and V; G is that of f *)
Lemma step_1_5 m n r (f : mat nat nat -> R) (G W Vt Ut U V dU dV : mat nat nat) :
  let at_ U V := madd W (madd (mul r U (tr_ Vt)) (mul r Ut (tr_ V))) in
  (forall S, derivable_pt_lim (fun t => f (madd (at_ U V) (mscal t S))) 0 (fro m n G S)) ->
  derivable_pt_lim (fun t => f (at_ (madd U (mscal t dU)) V)) 0 (fro m r (mul n G Vt) dU) /\
  derivable_pt_lim (fun t => f (at_ U (madd V (mscal t dV)))) 0 (fro n r (mul m (tr_ G) Ut) dV).
Proof.
  intros at_ h. split.
  - assert (k := h (mul r dU (tr_ Vt))). replace (fro m r (mul n G Vt) dU) with (fro m n G (mul r dU (tr_ Vt))) by (rewrite froC, fro_mul_r, froC; reflexivity).
    intros e he. destruct (k e he) as [d hd]. exists d. intros t t0 t1. specialize (hd t t0 t1). cbv beta in hd.
    assert (q : forall t, madd (at_ U V) (mscal t (mul r dU (tr_ Vt))) = at_ (madd U (mscal t dU)) V) by (intros s; unfold at_; rewrite mul_add_l, mul_scal_l; mext; unfold madd, mscal; ring).
    rewrite !q in hd. exact hd.
  - assert (k := h (mul r Ut (tr_ dV))). replace (fro n r (mul m (tr_ G) Ut) dV) with (fro m n G (mul r Ut (tr_ dV))) by (rewrite froC, fro_mul_l, froC, (fro_tr n r), tr_mul; reflexivity).
    intros e he. destruct (k e he) as [d hd]. exists d. intros t t0 t1. specialize (hd t t0 t1). cbv beta in hd.
    assert (q : forall t, madd (at_ U V) (mscal t (mul r Ut (tr_ dV))) = at_ U (madd V (mscal t dV))).
    { intros s. unfold at_. replace (tr_ (madd V (mscal s dV))) with (madd (tr_ V) (mscal s (tr_ dV))) by (mext; reflexivity). rewrite mul_add_r, mul_scal_r. mext. unfold madd, mscal. ring. }
    rewrite !q in hd. exact hd.
Qed.
(* 2 *)
Lemma step_2_1 m r eta (U W : mat nat nat) (A : nat -> mat nat nat) N : let V c := mscal (- eta) (mul m (tr_ (A c)) U) in
  madd W (mul r U (tr_ (V 0%nat))) = msub W (mscal eta (mul m (gram r U) (A 0%nat))) /\ mean N V = mscal (- eta) (mul m (tr_ (mean N A)) U).
Proof.
  intros V. split.
  - unfold V. replace (tr_ (mscal (- eta) (mul m (tr_ (A 0%nat)) U))) with (mscal (- eta) (mul m (tr_ U) (A 0%nat))) by (mext; unfold tr_, mscal, mul; f_equal; apply sum_ext; intros; ring).
    rewrite mul_scal_r, <- mul_assoc. fold (gram r U). mext. unfold madd, msub, mscal. ring.
  - mext. unfold V, mean, mscal, mul, tr_. rewrite sum_scal, sum_swap. rewrite (sum_ext m (fun k => / INR N * sum N (fun c => A c k i) * U k j) (fun k => / INR N * sum N (fun c => A c k i * U k j))).
    + rewrite sum_scal. ring.
    + intros k _. rewrite (sum_ext N (fun c => A c k i * U k j) (fun c => U k j * A c k i)) by (intros; ring). rewrite sum_scal. ring.
Qed.
Lemma step_2_2 m n r eta (Ut Vt W A : mat nat nat) : let U := mscal (- eta) (mul n A Vt) in let V := mscal (- eta) (mul m (tr_ A) Ut) in
  madd W (madd (mul r U (tr_ Vt)) (mul r Ut (tr_ V))) = msub W (mscal eta (madd (mul n A (gram r Vt)) (mul m (gram r Ut) A))).
Proof.
  intros U V. unfold U, V. rewrite mul_scal_l. replace (tr_ (mscal (- eta) (mul m (tr_ A) Ut))) with (mscal (- eta) (mul m (tr_ Ut) A)) by (mext; unfold tr_, mscal, mul; f_equal; apply sum_ext; intros; ring).
  rewrite mul_scal_r, mul_assoc, <- (mul_assoc r m Ut). fold (gram r Vt) (gram r Ut). mext. unfold madd, msub, mscal. ring.
Qed.
(* 3: factors with independent entries of mean 0, variance s^2 and fourth moment k s^4 *)
Definition dl (a b : nat) : R := if Nat.eq_dec a b then 1 else 0.
Lemma sum_dl n i f : (i < n)%nat -> sum n (fun l => dl i l * f l) = f i.
Proof. intros h. rewrite <- (sum_delta n i f h). apply sum_ext; intros l _. unfold dl. destruct (Nat.eq_dec i l), (Nat.eq_dec l i); subst; try congruence; ring. Qed.
Lemma sum_dl' n i f : (i < n)%nat -> sum n (fun l => dl l i * f l) = f i.
Proof. intros h. rewrite <- (sum_delta n i f h). apply sum_ext; intros l _. unfold dl. destruct (Nat.eq_dec l i); subst; ring. Qed.
Lemma dl_idem a b : dl a b * dl a b = dl a b. Proof. unfold dl. destruct Nat.eq_dec; ring. Qed.
Lemma dlC a b : dl a b = dl b a. Proof. unfold dl. destruct (Nat.eq_dec a b), (Nat.eq_dec b a); subst; congruence. Qed.
Section Moments.
Context {O : Type}.
Variable E : law O.
Variable U : O -> mat nat nat.             (* m x r *)
Variables m r : nat.
Variables s k : R.
Hypothesis moment_2 : forall i a j b, E (fun o => U o i a * U o j b) = s ^ 2 * (dl i j * dl a b).
Hypothesis moment_4 : forall i a j b l c n d, E (fun o => U o i a * U o j b * (U o l c * U o n d)) = s ^ 4 *
  (dl i j * dl a b * (dl l n * dl c d) + dl i l * dl a c * (dl j n * dl b d) + dl i n * dl a d * (dl j l * dl b c)
   + (k - 3) * (dl i j * dl a b * (dl i l * dl a c) * (dl i n * dl a d))).
Lemma sum_dd n : sum n (fun a => sum n (fun b => dl a b * dl a b)) = INR n.
Proof.
  rewrite (sum_ext n _ (fun a => 1)); [rewrite sum_const; ring|]. intros a ha. rewrite (sum_dl n a (fun b => dl a b) ha). unfold dl. destruct Nat.eq_dec; congruence.
Qed.
Lemma gram_mean i j : E (fun o => gram r (U o) i j) = INR r * s ^ 2 * dl i j.
Proof.
  unfold gram, mul, tr_. rewrite ex_sum, (sum_ext r _ (fun a => s ^ 2 * dl i j * 1)).
  - rewrite sum_scal, sum_const. ring.
  - intros a _. rewrite moment_2. unfold dl at 2. destruct (Nat.eq_dec a a); [ring|congruence].
Qed.
(* E (U U^T)^2 *)
Lemma gram_square i j : (i < m)%nat -> (j < m)%nat -> E (fun o => mul m (gram r (U o)) (gram r (U o)) i j) = INR r * s ^ 4 * (INR m + INR r + k - 2) * dl i j.
Proof.
  intros hi hj. unfold mul at 1, gram, mul, tr_. rewrite ex_sum.
  rewrite (sum_ext m _ (fun l => s ^ 4 * (dl i l * (dl l j * INR r ^ 2) + (dl i l * (dl l j * INR r) + (dl i j * INR r + (k - 3) * (dl i l * (dl i j * INR r))))))).
  - rewrite sum_scal, !sum_plus, (sum_dl m i (fun l => dl l j * INR r ^ 2) hi), (sum_dl m i (fun l => dl l j * INR r) hi), sum_const, sum_scal, (sum_dl m i (fun _ => dl i j * INR r) hi). ring.
  - intros l hl. rewrite (ex_ext E _ (fun o => sum r (fun a => sum r (fun b => U o i a * U o l a * (U o l b * U o j b))))).
    + rewrite ex_sum, (sum_ext r _ (fun a => s ^ 4 * sum r (fun b => dl i l * dl l j * 1 + (dl i l * dl l j * (dl a b * dl a b) + (dl i j * (dl a b * dl a b) + (k - 3) * (dl i l * dl i j * (dl a b * dl a b))))))).
      * rewrite sum_scal. f_equal. rewrite (sum_ext r _ (fun a => sum r (fun b => dl i l * dl l j * 1) + (sum r (fun b => dl i l * dl l j * (dl a b * dl a b)) + (sum r (fun b => dl i j * (dl a b * dl a b)) + sum r (fun b => (k - 3) * (dl i l * dl i j * (dl a b * dl a b))))))).
        2: { intros a _. rewrite !sum_plus. reflexivity. }
        rewrite !sum_plus. rewrite (sum_ext r (fun a => sum r (fun b => dl i l * dl l j * 1)) (fun _ => INR r * (dl i l * dl l j))) by (intros; rewrite sum_const; ring).
        rewrite (sum_ext r (fun a => sum r (fun b => dl i l * dl l j * (dl a b * dl a b))) (fun a => dl i l * dl l j * sum r (fun b => dl a b * dl a b))) by (intros; apply sum_scal).
        rewrite (sum_ext r (fun a => sum r (fun b => dl i j * (dl a b * dl a b))) (fun a => dl i j * sum r (fun b => dl a b * dl a b))) by (intros; apply sum_scal).
        rewrite (sum_ext r (fun a => sum r (fun b => (k - 3) * (dl i l * dl i j * (dl a b * dl a b)))) (fun a => (k - 3) * (dl i l * dl i j) * sum r (fun b => dl a b * dl a b)))
          by (intros; rewrite <- sum_scal; apply sum_ext; intros; ring).
        rewrite !sum_scal, !sum_dd, sum_const. ring.
      * intros a _. rewrite ex_sum, <- sum_scal. apply sum_ext; intros b _. rewrite moment_4. f_equal.
        assert (o : forall x, dl x x = 1) by (intros; unfold dl; destruct Nat.eq_dec; congruence). rewrite !o.
        assert (x : dl i l * dl i l = dl i l) by apply dl_idem. assert (y : dl i l * dl i j * (dl a b * dl a b) = dl i l * 1 * (dl i l * dl a b) * (dl i j * dl a b)) by (rewrite <- x at 1; ring). rewrite <- y. ring.
    + intros o. rewrite (sum_ext r (fun a => sum r (fun b => U o i a * U o l a * (U o l b * U o j b))) (fun a => sum r (fun b => U o l b * U o j b) * (U o i a * U o l a)))
        by (intros a _; rewrite (Rmult_comm (sum r _)), <- sum_scal; apply sum_ext; intros; ring).
      rewrite sum_scal. apply Rmult_comm.
Qed.
End Moments.
(* ---- one local step ---- *)
Lemma price_frob m n r (U A : mat nat nat) : fro m n (mul m (gram r U) A) (mul m (gram r U) A) = fro m n A (mul m (mul m (gram r U) (gram r U)) A).
Proof.
  rewrite fro_mul_l, mul_assoc. f_equal. f_equal. unfold gram. rewrite tr_mul. reflexivity.
Qed.
Section OneStep.
Context {O : Type}.
Variable E : law O.
Variables m n r : nat.
Variable U : O -> mat nat nat.
Variables s k : R.
Hypothesis moment_2 : forall i a j b, E (fun o => U o i a * U o j b) = s ^ 2 * (dl i j * dl a b).
Hypothesis moment_4 : forall i a j b l c n d, E (fun o => U o i a * U o j b * (U o l c * U o n d)) = s ^ 4 *
  (dl i j * dl a b * (dl l n * dl c d) + dl i l * dl a c * (dl j n * dl b d) + dl i n * dl a d * (dl j l * dl b c)
   + (k - 3) * (dl i j * dl a b * (dl i l * dl a c) * (dl i n * dl a d))).
Lemma ex_fro p q (X : O -> mat nat nat) A : E (fun o => fro p q A (X o)) = fro p q A (fun i j => E (fun o => X o i j)).
Proof. unfold fro. rewrite ex_sum. apply sum_ext; intros i _. rewrite ex_sum. apply sum_ext; intros j _. apply ex_scal. Qed.
Lemma mul_dl p (c : R) (X A : mat nat nat) q : (forall i j, (i < p)%nat -> (j < p)%nat -> X i j = c * dl i j) -> fro p q A (mul p X A) = c * fro p q A A.
Proof.
  intros h. unfold fro. rewrite <- sum_scal. apply sum_ext; intros i hi. rewrite <- sum_scal. apply sum_ext; intros j hj. unfold mul.
  rewrite (sum_ext p _ (fun l => dl i l * (c * A l j))) by (intros l hl; rewrite h by auto; ring). rewrite (sum_dl p i (fun l => c * A l j) hi). ring.
Qed.
Lemma ex_mul p (X : O -> mat nat nat) (A : mat nat nat) i j : E (fun o => mul p (X o) A i j) = mul p ((fun i j => E (fun o => X o i j)) : mat nat nat) A i j.
Proof. unfold mul. rewrite ex_sum. apply sum_ext; intros l _. rewrite (ex_ext E _ (fun o => A l j * X o i l)) by (intros; ring). rewrite ex_scal. ring. Qed.
(* E<A, U U^T A> = r s^2 |A|^2 *)
Lemma step_3_1 A : (forall i j, E (fun o => gram r (U o) i j) = INR r * s ^ 2 * dl i j) /\ E (fun o => fro m n A (mul m (gram r (U o)) A)) = INR r * s ^ 2 * fro m n A A.
Proof.
  assert (g : forall i j, E (fun o => gram r (U o) i j) = INR r * s ^ 2 * dl i j) by (intros; now apply gram_mean). split; [exact g|].
  rewrite ex_fro. rewrite <- (mul_dl m (INR r * s ^ 2) (fun i j => E (fun o => gram r (U o) i j)) A n) by (intros; apply g). f_equal. mext. apply (ex_mul m (fun o => gram r (U o)) A).
Qed.
Definition c_mud : R := (INR m + INR r + k - 2) / INR r.
Lemma step_3_2 A : (0 < r)%nat -> (forall i j, (i < m)%nat -> (j < m)%nat -> E (fun o => mul m (gram r (U o)) (gram r (U o)) i j) = INR r * s ^ 4 * (INR m + INR r + k - 2) * dl i j) /\
  E (fun o => fro m n (mul m (gram r (U o)) A) (mul m (gram r (U o)) A)) = (INR r * s ^ 2) ^ 2 * c_mud * fro m n A A.
Proof.
  intros r0%lt_0_INR. assert (g : forall i j, (i < m)%nat -> (j < m)%nat -> E (fun o => mul m (gram r (U o)) (gram r (U o)) i j) = INR r * s ^ 4 * (INR m + INR r + k - 2) * dl i j) by (intros; now apply gram_square).
  split; [exact g|]. rewrite (ex_ext E _ (fun o => fro m n A (mul m (mul m (gram r (U o)) (gram r (U o))) A))) by (intros; apply price_frob).
  rewrite ex_fro.
  transitivity (fro m n A (mul m ((fun i j => E (fun o => mul m (gram r (U o)) (gram r (U o)) i j)) : mat nat nat) A)).
  - f_equal. mext. apply (ex_mul m (fun o => mul m (gram r (U o)) (gram r (U o))) A).
  - rewrite (mul_dl m (INR r * s ^ 4 * (INR m + INR r + k - 2)) _ A n g). unfold c_mud. field. lra.
Qed.
End OneStep.
(* the other side's partner: <A, A V V^T> *)
Lemma gram_right m n r (V A : mat nat nat) : fro m n (mul n A (gram r V)) (mul n A (gram r V)) = fro n m (mul n (gram r V) (tr_ A)) (mul n (gram r V) (tr_ A)).
Proof. rewrite (fro_tr m n), tr_mul. assert (e : tr_ (gram r V) = gram r V) by (unfold gram; rewrite tr_mul; reflexivity). now rewrite e. Qed.
(* 5.1, 5.3, 5.2's prices as numbers *)
Lemma step_5_1 m r k : 0 < r -> let cm r := (m + r + k - 2) / r in let aad := (m + m + 4 * r + 2 * k - 4) / (4 * r) in
  aad = cm r / 2 + 1/2 /\ cm (2 * r) = aad /\ ((16 + 2 * 4 + 9/5 - 2) / (2 * 4) = 2975/1000).
Proof. intros r0 cm aad. unfold cm, aad. repeat split; field; lra. Qed.
Section Rate.
(* one local step: the gradient's noise is independent of the factors; R is linear *)
Context {D : Dim}.
Context {O X : Type}.
Variable draw : law O.
Variable Rm : O -> vec -> vec.
Variable noise_law : vec -> law X.
Variable xi : vec -> X -> vec.
Variables gam c L eta fstar nu2 : R.         (* nu2 is nu^2 / N *)
Variable f : vec -> R.
Variable G : vec -> vec.
Hypothesis R_add : forall o u v, Rm o (u + v)%V = (Rm o u + Rm o v)%V.
Hypothesis ER : forall a b, draw (fun o => dot a (Rm o b)) = gam * dot a b.
Hypothesis ER2 : forall a, draw (fun o => nrm2 (Rm o a)) = gam ^ 2 * c * nrm2 a.
Hypothesis gam0 : 0 < gam.
Hypothesis eta0 : 0 < eta.
Hypothesis L0 : 0 < L.
Hypothesis c0 : 0 <= c.
Hypothesis grad : gradient f G.
Hypothesis lip : lipschitz L G.
Hypothesis bounded : forall x, fstar <= f x.
Hypothesis xi_mean0 : forall w u, noise_law w (fun x => dot u (xi w x)) = 0.
Hypothesis xi_var : forall w, noise_law w (fun x => nrm2 (xi w x)) <= nu2.
Let alpha := eta * gam.
Hypothesis steps : L * alpha * c <= 1.
Definition step1 w (z : X * O) : vec := (w - eta *: Rm (snd z) (G w + xi w (fst z)))%V.
Definition round1 w : law (X * O) := bind (noise_law w) (fun _ => draw).
Lemma step_4_1 w : ((exists v, nrm2 v <> 0) -> 1 <= c) /\
  round1 w (fun z => f (step1 w z)) <= f w - alpha * nrm2 (G w) + L / 2 * alpha ^ 2 * c * (nrm2 (G w) + nu2) /\
  f w - alpha * nrm2 (G w) + L / 2 * alpha ^ 2 * c * (nrm2 (G w) + nu2) <= f w - alpha / 2 * nrm2 (G w) + L / 2 * alpha ^ 2 * c * nu2.
Proof.
  assert (al : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). split; [|split].
  - intros [v hv]. assert (n0 := nrm2_ge0 v). assert (k := ex_cauchy_schwarz draw (fun _ => v) (fun o => Rm o v)). cbv beta in k. rewrite ER, ER2, ex_const in k. fold (nrm2 v) in k.
    apply (Rmult_le_reg_r (gam ^ 2 * nrm2 v ^ 2)); [apply Rmult_lt_0_compat; apply pow_lt; lra|]. lra.
  - unfold round1. cbn [bind ex]. apply Rle_trans with (noise_law w (fun x => f w + - eta * (gam * dot (G w) (G w + xi w x)) + L / 2 * eta ^ 2 * (gam ^ 2 * c * nrm2 (G w + xi w x)))).
    + apply ex_le; intros x. rewrite <- ER, <- ER2. set (A := (G w + xi w x)%V). rewrite <- (ex_const draw (f w)) at 1. rewrite <- !ex_scal, <- !ex_plus. apply ex_le; intros o. unfold step1. cbn [fst snd]. fold A.
      assert (q := smooth f G L (Rlt_le _ _ L0) grad lip w (- eta *: Rm o A)%V). rewrite dot_scalr, nrm2_scal in q. replace (w - eta *: Rm o A)%V with (w + - eta *: Rm o A)%V by vring. lra.
    + rewrite (ex_ext _ _ (fun x => (f w - eta * gam * nrm2 (G w) + L / 2 * eta ^ 2 * gam ^ 2 * c * nrm2 (G w)) + ((- eta * gam + L * eta ^ 2 * gam ^ 2 * c) * dot (G w) (xi w x) + L / 2 * eta ^ 2 * gam ^ 2 * c * nrm2 (xi w x)))) by (intros; rewrite dot_addr, nrm2_add; fold (nrm2 (G w)); field).
      rewrite !ex_plus, !ex_scal, !ex_const, xi_mean0. assert (q := xi_var w). apply (Rmult_le_compat_l (L / 2 * eta ^ 2 * gam ^ 2 * c)) in q; [|assert (y := pow2_ge_0 eta); assert (y2 := pow2_ge_0 gam); pos]. unfold alpha. lra.
  - assert (n0 := nrm2_ge0 (G w)). assert (0 <= alpha / 2 * (1 - L * alpha * c) * nrm2 (G w)) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Theorem one_step w0 T : (0 < T)%nat -> / INR T * sum T (fun t => Eit round1 step1 t (fun w => nrm2 (G w)) w0) <= 2 * (f w0 - fstar) / (alpha * INR T) + L * alpha * c * nu2.
Proof.
  intros T0%lt_0_INR. assert (al : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat).
  assert (h := telescope round1 step1 (fun _ => True) (fun w => f w - fstar) (fun w => alpha / 2 * nrm2 (G w)) (L / 2 * alpha ^ 2 * c * nu2) (fun _ _ _ => I)).
  specialize (h (fun w _ => ltac:(rewrite (ex_ext (round1 w) _ (fun z => f (step1 w z) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; destruct (step_4_1 w) as [_ [b1 b2]]; lra)) (fun w => ltac:(assert (b := bounded w); lra)) T w0 I).
  rewrite (sum_ext T _ (fun t => alpha / 2 * Eit round1 step1 t (fun w => nrm2 (G w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (k0 : 0 < 2 / (alpha * INR T)) by (apply Rdiv_lt_0_compat; [lra|]; now apply Rmult_lt_0_compat). apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ k0)) in h.
  replace (2 / (alpha * INR T) * (alpha / 2 * sum T (fun t => Eit round1 step1 t (fun w => nrm2 (G w)) w0))) with (/ INR T * sum T (fun t => Eit round1 step1 t (fun w => nrm2 (G w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
(* 5.3: f = |W|^2 / 2, no noise *)
Lemma step_5_3 w : 0 < c -> draw (fun o => nrm2 (w - eta *: Rm o w)) = (1 - 2 * alpha + alpha ^ 2 * c) * nrm2 w /\ 1 - / c <= 1 - 2 * alpha + alpha ^ 2 * c /\ (1 - 2 * alpha + alpha ^ 2 * c < 1 <-> alpha < 2 / c).
Proof.
  intros c1. assert (al : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). split; [|split].
  - rewrite (ex_ext draw _ (fun o => nrm2 w + ((-2) * eta * dot w (Rm o w) + eta ^ 2 * nrm2 (Rm o w)))) by (intros; rewrite nrm2_sub, nrm2_scal, dot_scalr; ring). rewrite !ex_plus, !ex_scal, ex_const, ER, ER2. unfold alpha. fold (nrm2 w). ring.
  - assert (q := pow2_ge_0 (alpha * c - 1)). apply (Rmult_le_reg_r c); auto. replace ((1 - / c) * c) with (c - 1) by (field; lra). lra.
  - split; intros h.
    + apply (Rmult_lt_reg_r c); auto. replace (2 / c * c) with 2 by (field; lra). apply (Rmult_lt_reg_l alpha); auto. lra.
    + apply (Rmult_lt_compat_r c) in h; auto. replace (2 / c * c) with 2 in h by (field; lra). apply (Rmult_lt_compat_l alpha) in h; auto. lra.
Qed.
End Rate.
(* 6.1: an affine map of what is trained; AAD, and a frozen factor U~ (then V~ is not there) *)
Lemma step_6_1 m n r eta (W Ut Vt U V A : mat nat nat) N (Us Vs : nat -> mat nat nat) : let at_ U V := madd W (madd (mul r U (tr_ Vt)) (mul r Ut (tr_ V))) in
  let Rm A := madd (mul n A (gram r Vt)) (mul m (gram r Ut) A) in
  at_ (msub U (mscal eta (mul n A Vt))) (msub V (mscal eta (mul m (tr_ A) Ut))) = msub (at_ U V) (mscal eta (Rm A)) /\
  madd W (mul r Ut (tr_ (msub V (mscal eta (mul m (tr_ A) Ut))))) = msub (madd W (mul r Ut (tr_ V))) (mscal eta (mul m (gram r Ut) A)) /\
  ((0 < N)%nat -> at_ (mean N Us) (mean N Vs) = mean N (fun c => at_ (Us c) (Vs c))).
Proof.
  intros at_ Rm. assert (tt : tr_ (msub V (mscal eta (mul m (tr_ A) Ut))) = madd (tr_ V) (mscal (- eta) (mul m (tr_ Ut) A))).
  { mext. unfold tr_, msub, mscal, madd, mul. rewrite (sum_ext m (fun k => A k j * Ut k i) (fun k => Ut k i * A k j)) by (intros; ring). ring. }
  assert (pu : mul r (msub U (mscal eta (mul n A Vt))) (tr_ Vt) = madd (mul r U (tr_ Vt)) (mscal (- eta) (mul n A (gram r Vt)))).
  { replace (msub U (mscal eta (mul n A Vt))) with (madd U (mscal (- eta) (mul n A Vt))) by (mext; unfold msub, madd, mscal; ring). rewrite mul_add_l, mul_scal_l, mul_assoc. reflexivity. }
  assert (pv : mul r Ut (madd (tr_ V) (mscal (- eta) (mul m (tr_ Ut) A))) = madd (mul r Ut (tr_ V)) (mscal (- eta) (mul m (gram r Ut) A))) by (rewrite mul_add_r, mul_scal_r, <- mul_assoc; reflexivity).
  split; [|split].
  - unfold at_, Rm. rewrite tt, pu, pv. mext. unfold madd, msub, mscal. ring.
  - rewrite tt, pv. mext. unfold madd, msub, mscal. ring.
  - intros N0%lt_0_INR. unfold at_. replace (tr_ (mean N Vs)) with (mean N (fun c => tr_ (Vs c))) by (mext; reflexivity). rewrite <- mean_mul_r, <- mean_mul_l.
    mext. unfold mean, madd. rewrite !sum_plus, sum_const. field. lra.
Qed.
Lemma step_6_2 m n r (Ut Vt A B : mat nat nat) : let Rm A := madd (mul n A (gram r Vt)) (mul m (gram r Ut) A) in
  fro m n A (Rm B) = fro m r (mul n A Vt) (mul n B Vt) + fro r n (mul m (tr_ Ut) A) (mul m (tr_ Ut) B) /\ fro m n A (Rm B) = fro m n B (Rm A) /\ 0 <= fro m n A (Rm A).
Proof.
  intros Rm. assert (e : forall A B, fro m n A (Rm B) = fro m r (mul n A Vt) (mul n B Vt) + fro r n (mul m (tr_ Ut) A) (mul m (tr_ Ut) B)).
  { intros X Y. unfold Rm. rewrite fro_add_r. f_equal.
    - rewrite fro_mul_r, mul_assoc. reflexivity.
    - rewrite fro_mul_l. unfold gram. rewrite mul_assoc. reflexivity. }
  split; [apply e|]. split; [rewrite !e, (froC m r), (froC r n); reflexivity|]. rewrite e. apply Rplus_le_le_0_compat; apply fro_ge0.
Qed.
(* 7.5: m = n = r = 1, f = -B w; x = eta B *)
Lemma step_7_5 (U0 x : R) (u v c s : nat -> R) : u 0%nat = U0 -> v 0%nat = 0 -> (forall k, u (S k) = u k + x * v k) -> (forall k, v (S k) = v k + x * u k) ->
  (forall k, c k = 1/2 * ((1 + x) ^ k + (1 - x) ^ k)) -> (forall k, s k = 1/2 * ((1 + x) ^ k - (1 - x) ^ k)) ->
  forall K, u K * v K - INR K * x * U0 ^ 2 = U0 ^ 2 * (c K * s K - INR K * x) /\ c K * s K = 1/4 * ((1 + x) ^ (2 * K) - (1 - x) ^ (2 * K)).
Proof.
  intros u0 v0' us vs hc hs. assert (h : forall k, u k = c k * U0 /\ v k = s k * U0).
  { induction k as [|k [h1 h2]]; [rewrite u0, v0', hc, hs; simpl; split; field|]. rewrite us, vs, h1, h2, !hc, !hs. simpl. split; field. }
  intros K. destruct (h K) as [h1 h2]. split; [rewrite h1, h2; ring|]. rewrite hc, hs, !pow_mult. replace ((1 + x) ^ 2) with ((1 + x) * (1 + x)) by ring. replace ((1 - x) ^ 2) with ((1 - x) * (1 - x)) by ring. rewrite !Rpow_mult_distr. field.
Qed.
(* 10.3 *)
Lemma step_10_3 m n r k : 0 < m -> 0 < n -> 0 < r -> 1 <= k -> 0 < m + r + k - 2 -> let c := (m + r + k - 2) / r in let rho := r / m in let rho' := r / n in
  1 - / c = 1 - r / (m + r + k - 2) /\ (1 <= r -> 1 - rho <= 1 - / c) /\ r * ((m + n) / n) / m = rho + rho' /\ (1 - rho) * (1 - rho') = (1 - rho - rho') + rho * rho'.
Proof.
  intros m0 n0 r0 k1 h c rho rho'. assert (e : 1 - / c = 1 - r / (m + r + k - 2)) by (unfold c; field; lra). repeat split.
  - exact e.
  - intros r1. rewrite e. assert (r / (m + r + k - 2) <= rho); [|lra]. unfold rho, Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
  - unfold rho, rho'. field. lra.
  - ring.
Qed.
(* 3.3: both partners, independent; k is the kurtosis of both *)
Lemma step_3_3 {O O' : Type} (EU : law O) (EV : law O') (U : O -> mat nat nat) (V : O' -> mat nat nat) m n r s k A : (0 < r)%nat ->
  (forall i a j b, EU (fun o => U o i a * U o j b) = s ^ 2 * (dl i j * dl a b)) -> (forall i a j b, EV (fun o => V o i a * V o j b) = s ^ 2 * (dl i j * dl a b)) ->
  (forall i a j b l c n d, EU (fun o => U o i a * U o j b * (U o l c * U o n d)) = s ^ 4 * (dl i j * dl a b * (dl l n * dl c d) + dl i l * dl a c * (dl j n * dl b d)
    + dl i n * dl a d * (dl j l * dl b c) + (k - 3) * (dl i j * dl a b * (dl i l * dl a c) * (dl i n * dl a d)))) ->
  (forall i a j b l c n d, EV (fun o => V o i a * V o j b * (V o l c * V o n d)) = s ^ 4 * (dl i j * dl a b * (dl l n * dl c d) + dl i l * dl a c * (dl j n * dl b d)
    + dl i n * dl a d * (dl j l * dl b c) + (k - 3) * (dl i j * dl a b * (dl i l * dl a c) * (dl i n * dl a d)))) ->
  let R p := madd (mul n A (gram r (V (snd p)))) (mul m (gram r (U (fst p))) A) in let c := (INR m + INR n + 4 * INR r + 2 * k - 4) / (4 * INR r) in
  bind EU (fun _ => EV) (fun p => fro m n A (R p)) = 2 * INR r * s ^ 2 * fro m n A A /\
  bind EU (fun _ => EV) (fun p => fro m n (R p) (R p)) = INR r * s ^ 4 * (INR m + INR n + 4 * INR r + 2 * k - 4) * fro m n A A /\
  INR r * s ^ 4 * (INR m + INR n + 4 * INR r + 2 * k - 4) = (2 * INR r * s ^ 2) ^ 2 * c.
Proof.
  intros r1 u2 v2 u4 v4 R c. assert (r0 := lt_0_INR _ r1).
  assert (side : forall C o', fro m n (mul n A (gram r (V o'))) C = fro n m (tr_ C) (mul n (gram r (V o')) (tr_ A))).
  { intros C o'. rewrite (fro_tr m n), tr_mul, froC. f_equal. f_equal. unfold gram. rewrite tr_mul. reflexivity. }
  assert (mV : forall C, EV (fun o' => fro m n (mul n A (gram r (V o'))) C) = INR r * s ^ 2 * fro m n A C).
  { intros C. rewrite (ex_ext EV _ (fun o' => fro n m (tr_ C) (mul n (gram r (V o')) (tr_ A)))) by (intros; apply side). rewrite ex_fro.
    transitivity (fro n m (tr_ C) (mul n ((fun i j => EV (fun o' => gram r (V o') i j)) : mat nat nat) (tr_ A))); [f_equal; mext; apply (ex_mul EV n (fun o' => gram r (V o')))|].
    transitivity (fro n m (tr_ C) (mscal (INR r * s ^ 2) (tr_ A))).
    - unfold fro. apply sum_ext; intros i hi. apply sum_ext; intros j hj. f_equal. unfold mul, mscal. rewrite (sum_ext n _ (fun l => dl i l * (INR r * s ^ 2 * tr_ A l j))) by (intros; rewrite (gram_mean EV V r s v2); ring). apply (sum_dl n i (fun l => INR r * s ^ 2 * tr_ A l j) hi).
    - rewrite fro_scal_r, <- fro_tr, froC. reflexivity. }
  assert (mU : EU (fun o => fro m n A (mul m (gram r (U o)) A)) = INR r * s ^ 2 * fro m n A A) by (apply (step_3_1 EU m n r U s u2)).
  split; [|split].
  - cbn [bind ex fst snd]. rewrite (ex_ext EU _ (fun o => INR r * s ^ 2 * fro m n A A + fro m n A (mul m (gram r (U o)) A))).
    + rewrite ex_plus, ex_const, mU. ring.
    + intros o. unfold R. cbn [fst snd]. rewrite (ex_ext EV _ (fun o' => fro m n (mul n A (gram r (V o'))) A + fro m n A (mul m (gram r (U o)) A))) by (intros; rewrite fro_add_r, (froC m n A); reflexivity). rewrite ex_plus, mV, ex_const. reflexivity.
  - cbn [bind ex]. rewrite (ex_ext EU _ (fun o => INR r * s ^ 4 * (INR n + INR r + k - 2) * fro m n A A + (2 * INR r * s ^ 2 * fro m n A (mul m (gram r (U o)) A) + fro m n (mul m (gram r (U o)) A) (mul m (gram r (U o)) A)))).
    + rewrite !ex_plus, ex_const, ex_scal, mU. rewrite (proj2 (step_3_2 EU m n r U s k u4 A r1)). unfold c_mud. field. lra.
    + intros o. unfold R. cbn [fst snd]. set (Y := mul m (gram r (U o)) A).
      rewrite (ex_ext EV _ (fun o' => fro n m (mul n (gram r (V o')) (tr_ A)) (mul n (gram r (V o')) (tr_ A)) + (2 * fro m n (mul n A (gram r (V o'))) Y + fro m n Y Y))).
      * rewrite !ex_plus, ex_scal, mV, ex_const. rewrite (proj2 (step_3_2 EV n m r V s k v4 (tr_ A) r1)), <- fro_tr. unfold c_mud. field. lra.
      * intros o'. rewrite <- gram_right. rewrite fro_add_r, !(froC m n (madd _ _)), !fro_add_r, (froC m n Y). ring.
  - unfold c. field. lra.
Qed.
(* 6.4 *)
Lemma step_6_4 m n r (U : mat nat nat) a s : (forall i b, Rabs (U i b) <= a) -> s ^ 2 = a ^ 2 / 3 ->
  (forall x : nat -> R, sum r (fun b => sum m (fun i => U i b * x i) ^ 2) <= fro m r U U * sum m (fun i => x i ^ 2)) /\
  fro m r U U <= INR m * INR r * a ^ 2 /\ INR m * INR r * a ^ 2 = 3 * INR m * INR r * s ^ 2 /\
  (0 < INR r -> 0 < s -> 0 < INR m -> 0 < INR n -> 3 * INR m * INR r * s ^ 2 / (INR r * s ^ 2) = 3 * INR m /\ (3 * INR m * INR r * s ^ 2 + 3 * INR n * INR r * s ^ 2) / (2 * INR r * s ^ 2) = 3/2 * (INR m + INR n) /\
    forall l, 0 < l -> l / (l * (INR r / INR m)) = INR m / INR r /\ (l + l) / (l * (INR r / INR m) + l * (INR r / INR n)) = 2 * INR m * INR n / (INR r * (INR m + INR n)) /\
      (INR r = INR m -> INR m / INR r = 1) /\ (INR r = INR m -> INR n = INR m -> 2 * INR m * INR n / (INR r * (INR m + INR n)) = 1)).
Proof.
  intros h hs. split; [|split; [|split]].
  - intros x. unfold fro. rewrite sum_swap. rewrite Rmult_comm, <- sum_scal. apply sum_le; intros b _. assert (c := @cauchy_schwarz m (fun i => U i b) x). unfold dot, nrm2, dot in c. unfold dim in c.
    rewrite (sum_ext m (fun i => x i ^ 2) (fun i => x i * x i)) by (intros; ring). simpl. lra.
  - unfold fro. rewrite Rmult_assoc. rewrite <- sum_const. apply sum_le; intros i _. rewrite <- sum_const. apply sum_le; intros b _. assert (q := pow_incr _ _ 2 (conj (Rabs_pos (U i b)) (h i b))). rewrite pow2_abs in q. lra.
  - rewrite !Rmult_assoc, hs. field.
  - intros r0 s0 m0 n0. split; [field; lra|]. split; [field; lra|]. intros l l0. split; [field; lra|]. assert (x1 : 0 < INR r * INR n) by (now apply Rmult_lt_0_compat). assert (x2 : 0 < INR r * INR m) by (now apply Rmult_lt_0_compat).
    split; [field; repeat split; try lra; try nra|]. split.
    + intros e. rewrite e. field. lra.
    + intros e1 e2. rewrite e1, e2. field. lra.
Qed.
(* 9.2, from the inequality of a round: several steps (u is K alpha), and one *)
Lemma step_9_2 {X W : Type} (kernel : X -> law W) (step : X -> W -> X) (gap n2 : X -> R) mu u Xs alpha Y : 0 < mu -> 0 < u -> 0 < alpha -> 0 <= Xs -> 0 <= Y -> (forall w, 2 * mu * gap w <= n2 w) ->
  (0 <= 1 - 4/5 * mu * u -> (forall w, kernel w (fun z => gap (step w z)) <= gap w - 2/5 * u * (n2 w - Xs)) ->
    forall T w, Eit kernel step T gap w <= (1 - 4/5 * mu * u) ^ T * gap w + Xs / (2 * mu)) /\
  (0 <= 1 - mu * alpha -> (forall w, kernel w (fun z => gap (step w z)) <= gap w - alpha / 2 * n2 w + alpha * Y / 2) ->
    forall T w, Eit kernel step T gap w <= (1 - mu * alpha) ^ T * gap w + Y / (2 * mu)).
Proof.
  intros m0 u0 al0 X0 Y0 pl.
  assert (gen : forall a fx, 0 <= a -> 0 <= fx -> (forall w, kernel w (fun z => gap (step w z)) <= a * gap w + (1 - a) * fx) -> forall T w, Eit kernel step T gap w <= a ^ T * gap w + fx).
  { intros a fx a0 f0 st. assert (all : forall T w, Eit kernel step T gap w <= a ^ T * gap w + (1 - a ^ T) * fx).
    { induction T as [|t IH]; intros w; [simpl; lra|]. cbn [Eit]. eapply Rle_trans; [apply (ex_le (kernel w) _ (fun z => a ^ t * gap (step w z) + (1 - a ^ t) * fx)); intros z; apply IH|].
      rewrite ex_plus, ex_scal, ex_const. specialize (st w). assert (p : 0 <= a ^ t) by now apply pow_le. apply (Rmult_le_compat_l _ _ _ p) in st. change (a ^ S t) with (a * a ^ t). lra. }
    intros T w. specialize (all T w). assert (p : 0 <= a ^ T) by now apply pow_le. assert (0 <= a ^ T * fx) by (apply Rmult_le_pos; auto). lra. }
  assert (i0 : 0 < / (2 * mu)) by (apply Rinv_0_lt_compat; lra). split; intros a0 st; apply gen; auto; try (unfold Rdiv; apply Rmult_le_pos; lra); intros w; specialize (st w); specialize (pl w).
  - apply (Rmult_le_compat_l (2/5 * u)) in pl; [|lra]. replace ((1 - (1 - 4/5 * mu * u)) * (Xs / (2 * mu))) with (2/5 * u * Xs) by (field; lra). lra.
  - apply (Rmult_le_compat_l (alpha / 2)) in pl; [|lra]. replace ((1 - (1 - mu * alpha)) * (Y / (2 * mu))) with (alpha * Y / 2) by (field; lra). lra.
Qed.
(* ================= more of sections 1, 5, 7 and 10 ================= *)
(* fewer equations than unknowns *)
Definition skip (p i : nat) : nat := if lt_dec i p then i else S i.
Lemma sum_skip n p f : (p <= n)%nat -> sum (S n) f = f p + sum n (fun i => f (skip p i)).
Proof.
  intros h. induction n. { replace p with 0%nat by lia. simpl. ring. }
  destruct (Nat.eq_dec p (S n)) as [->|ne].
  - rewrite (sum_S (S n)). rewrite (sum_ext (S n) (fun i => f (skip (S n) i)) f); [ring|]. intros i hi. unfold skip. destruct lt_dec; [reflexivity|lia].
  - rewrite (sum_S (S n)), IHn, (sum_S n (fun i => f (skip p i))) by lia. unfold skip at 3. destruct lt_dec; [lia|]. ring.
Qed.
Lemma kernel_vector r : forall m (U : nat -> nat -> R), (r < m)%nat -> exists x, (exists i, (i < m)%nat /\ x i <> 0) /\ forall b, (b < r)%nat -> sum m (fun i => U i b * x i) = 0.
Proof.
  induction r; intros m U h.
  - exists (fun i => if Nat.eq_dec i 0 then 1 else 0). split; [exists 0%nat; split; [lia|simpl; lra]|intros; lia].
  - destruct m as [|n]; [lia|]. destruct (classic (exists p, (p <= n)%nat /\ U p r <> 0)) as [[p [hp up]]|no].
    + destruct (IHr n (fun i b => U (skip p i) b - U (skip p i) r / U p r * U p b) ltac:(lia)) as [x [[i [hi xi]] hx]].
      set (v := - sum n (fun i => U (skip p i) r * x i) / U p r).
      set (y := fun j => if Nat.eq_dec j p then v else x (if lt_dec j p then j else (j - 1)%nat)).
      assert (yp : y p = v) by (unfold y; destruct Nat.eq_dec; [reflexivity|congruence]).
      assert (ys : forall i, y (skip p i) = x i).
      { intros k. unfold y, skip. destruct (lt_dec k p) as [l|l].
        - destruct (Nat.eq_dec k p); [lia|]. destruct (lt_dec k p); [reflexivity|lia].
        - destruct (Nat.eq_dec (S k) p); [lia|]. destruct (lt_dec (S k) p); [lia|]. f_equal. lia. }
      exists y. split; [exists (skip p i); split; [unfold skip; destruct lt_dec; lia|now rewrite ys]|]. intros b hb.
      rewrite (sum_skip n p) by auto. rewrite yp, (sum_ext n _ (fun i => U (skip p i) b * x i)) by (intros; now rewrite ys).
      destruct (Nat.eq_dec b r) as [->|ne].
      * unfold v. field. exact up.
      * assert (e := hx b ltac:(lia)). rewrite (sum_ext n _ (fun i => U (skip p i) b * x i + (- (U p b / U p r)) * (U (skip p i) r * x i))) in e by (intros; field; exact up).
        rewrite sum_plus, sum_scal in e. unfold v. apply (Rmult_eq_reg_l (U p r)); auto. rewrite Rmult_0_r.
        set (S1 := sum n (fun i => U (skip p i) b * x i)) in *. set (S2 := sum n (fun i => U (skip p i) r * x i)) in *.
        replace (U p r * (U p b * (- S2 / U p r) + S1)) with (U p r * (S1 + - (U p b / U p r) * S2)) by (field; auto). rewrite e. ring.
    + destruct (IHr (S n) U ltac:(lia)) as [x [hi hx]]. exists x. split; [exact hi|]. intros b hb. destruct (Nat.eq_dec b r) as [->|ne]; [|apply hx; lia].
      rewrite (sum_ext (S n) _ (fun _ => 0)); [rewrite sum_const; ring|]. intros i h2. destruct (Req_dec (U i r) 0) as [z|z]; [rewrite z; ring|]. exfalso. apply no. exists i. split; [lia|exact z].
Qed.
Lemma step_1_4 m n r (U : mat nat nat) : (r < m)%nat -> (forall z, 0 <= sum m (fun i => sum m (fun j => z i * gram r U i j * z j))) /\
  exists x, (exists i, (i < m)%nat /\ x i <> 0) /\ (forall b, (b < r)%nat -> sum m (fun i => U i b * x i) = 0) /\
  sum m (fun i => sum m (fun j => x i * gram r U i j * x j)) = 0 /\
  forall y i j, let G : mat nat nat := fun i j => x i * y j in (j < r)%nat -> mul m (tr_ U) G j i = 0 /\ mul n G (fun _ _ => 0) i j = 0.
Proof.
  intros h. assert (q : forall z, sum m (fun i => sum m (fun j => z i * gram r U i j * z j)) = sum r (fun b => sum m (fun i => U i b * z i) ^ 2)).
  { intros z. unfold gram, mul, tr_. rewrite (sum_ext m _ (fun i => sum r (fun b => z i * U i b * sum m (fun j => U j b * z j)))).
    - rewrite sum_swap. apply sum_ext; intros b _. rewrite (sum_ext m _ (fun i => sum m (fun j => U j b * z j) * (U i b * z i))) by (intros; ring). rewrite sum_scal. ring.
    - intros i _. rewrite (sum_ext m _ (fun j => sum r (fun b => z i * U i b * (U j b * z j)))).
      + rewrite sum_swap. apply sum_ext; intros b _. now rewrite sum_scal.
      + intros j _. rewrite Rmult_assoc, (Rmult_comm _ (z j)), <- Rmult_assoc, <- sum_scal. apply sum_ext; intros; ring. }
  split. { intros z. rewrite q. apply sum_ge0; intros; apply pow2_ge_0. }
  destruct (kernel_vector r m U h) as [x [hx hz]]. exists x. split; [exact hx|]. split; [exact hz|]. split.
  - rewrite q, (sum_ext r _ (fun _ => 0)); [rewrite sum_const; ring|]. intros b hb. rewrite hz by auto. ring.
  - intros y i j G hj. split.
    + unfold mul, tr_, G. rewrite (sum_ext m _ (fun k => y i * (U k j * x k))) by (intros; ring). rewrite sum_scal, hz by auto. ring.
    + unfold mul. rewrite (sum_ext n _ (fun _ => 0)) by (intros; ring). rewrite sum_const. ring.
Qed.

(* 5.2: orthonormal columns times t *)
Lemma gram_orthonormal m r t (U : mat nat nat) : (forall a b, (a < r)%nat -> (b < r)%nat -> sum m (fun i => U i a * U i b) = t * dl a b) -> mul m (gram r U) (gram r U) = mscal t (gram r U).
Proof.
  intros h. mext. unfold gram at 1 2, mul at 1, mscal. unfold mul, tr_.
  rewrite (sum_ext m _ (fun k => sum r (fun a => U i a * sum r (fun b => (U k a * U k b) * U j b)))).
  - rewrite sum_swap. unfold gram, mul, tr_. rewrite <- sum_scal. apply sum_ext; intros a ha.
    rewrite sum_scal, (sum_swap m r). rewrite (sum_ext r _ (fun b => dl a b * (t * U j b))).
    + rewrite sum_dl by auto. ring.
    + intros b hb. rewrite (sum_ext m _ (fun k => U j b * (U k a * U k b))) by (intros; ring). rewrite sum_scal, h by auto. ring.
  - intros k _. rewrite (sum_ext r (fun a => U i a * sum r (fun b => (U k a * U k b) * U j b)) (fun a => sum r (fun b => U k b * U j b) * (U i a * U k a))).
    + rewrite sum_scal. ring.
    + intros a _. rewrite (sum_ext r _ (fun b => U k a * (U k b * U j b))) by (intros; ring). rewrite sum_scal. ring.
Qed.
Lemma step_5_2 {O O' : Type} (EU : law O) (EV : law O') (U : O -> mat nat nat) (V : O' -> mat nat nat) m n r t A :
  (0 < r)%nat -> (0 < m)%nat -> (0 < n)%nat -> 0 < t ->
  (forall o a b, (a < r)%nat -> (b < r)%nat -> sum m (fun i => U o i a * U o i b) = t * dl a b) ->
  (forall o a b, (a < r)%nat -> (b < r)%nat -> sum n (fun i => V o i a * V o i b) = t * dl a b) ->
  (forall i j, EU (fun o => gram r (U o) i j) = t * (INR r / INR m) * dl i j) ->
  (forall i j, EV (fun o => gram r (V o) i j) = t * (INR r / INR n) * dl i j) ->
  (let gam := t * (INR r / INR m) in EU (fun o => fro m n (mul m (gram r (U o)) A) (mul m (gram r (U o)) A)) = gam ^ 2 * (INR m / INR r) * fro m n A A) /\
  (let gam := t * (INR r / INR m + INR r / INR n) in let c := INR m * INR n * (INR m + INR n + 2 * INR r) / (INR r * (INR m + INR n) ^ 2) in
   let R_ o o' := madd (mul n A (gram r (V o'))) (mul m (gram r (U o)) A) in
   EU (fun o => EV (fun o' => fro m n (R_ o o') (R_ o o'))) = gam ^ 2 * c * fro m n A A /\ (m = n -> c = INR m / INR r / 2 + 1/2)).
Proof.
  intros r1 m1 n1 t0 hU hV eU eV. assert (r0 : 0 < INR r) by now apply lt_0_INR. assert (m0 : 0 < INR m) by now apply lt_0_INR. assert (n0 : 0 < INR n) by now apply lt_0_INR.
  assert (mU : forall B, EU (fun o => fro m n B (mul m (gram r (U o)) A)) = t * (INR r / INR m) * fro m n B A).
  { intros B. rewrite (ex_fro EU m n (fun o => mul m (gram r (U o)) A) B).
    unfold fro. rewrite <- sum_scal. apply sum_ext; intros i hi. rewrite <- sum_scal. apply sum_ext; intros j hj.
    rewrite (ex_mul EU m (fun o => gram r (U o)) A i j). unfold mul. rewrite (sum_ext m _ (fun k => dl i k * (t * (INR r / INR m) * A k j))) by (intros; rewrite eU; ring). rewrite sum_dl by auto. ring. }
  assert (mV : forall B, EV (fun o => fro m n B (mul n A (gram r (V o)))) = t * (INR r / INR n) * fro m n B A).
  { intros B. rewrite (ex_fro EV m n (fun o => mul n A (gram r (V o))) B). unfold fro. rewrite <- sum_scal. apply sum_ext; intros i hi. rewrite <- sum_scal. apply sum_ext; intros j hj.
    rewrite (ex_ext EV _ (fun o => sum n (fun k => A i k * gram r (V o) k j))) by reflexivity. rewrite ex_sum, (sum_ext n _ (fun k => dl k j * (t * (INR r / INR n) * A i k))) by (intros; rewrite ex_scal, eV; ring). rewrite sum_dl' by auto. ring. }
  assert (sU : forall o, fro m n (mul m (gram r (U o)) A) (mul m (gram r (U o)) A) = t * fro m n A (mul m (gram r (U o)) A)).
  { intros o. rewrite price_frob, (gram_orthonormal m r t _ (hU o)), mul_scal_l, fro_scal_r. reflexivity. }
  assert (sV : forall o, fro m n (mul n A (gram r (V o))) (mul n A (gram r (V o))) = t * fro m n A (mul n A (gram r (V o)))).
  { intros o. rewrite gram_right, price_frob, (gram_orthonormal n r t _ (hV o)), mul_scal_l, fro_scal_r. f_equal.
    rewrite fro_tr. f_equal. rewrite tr_mul. f_equal. unfold gram. rewrite tr_mul. reflexivity. }
  split.
  - intros gam. rewrite (ex_ext EU _ (fun o => t * fro m n A (mul m (gram r (U o)) A))) by (intros; apply sU). rewrite ex_scal, mU. unfold gam. field. lra.
  - intros gam c R_. split.
    + rewrite (ex_ext EU _ (fun o => (t * (t * (INR r / INR n) * fro m n A A)) * 1 + ((2 * (t * (INR r / INR n)) + t) * fro m n A (mul m (gram r (U o)) A)))).
      * rewrite ex_plus, !ex_scal, ex_one, mU. unfold gam, c. field. lra.
      * intros o. rewrite (ex_ext EV _ (fun o' => t * fro m n A (mul n A (gram r (V o'))) + (2 * fro m n (mul m (gram r (U o)) A) (mul n A (gram r (V o'))) + (t * fro m n A (mul m (gram r (U o)) A)) * 1))).
        -- rewrite !ex_plus, !ex_scal, ex_one, !mV, (froC m n (mul m (gram r (U o)) A) A). ring.
        -- intros o'. unfold R_. rewrite fro_add_r, !(froC m n (madd _ _)), !fro_add_r, sV, sU, (froC m n (mul n A (gram r (V o')))). ring.
    + intros e. unfold c. rewrite <- e. field. lra.
Qed.

(* 10.1: matrices as vectors; Pi and Pi': multiplication by the two projections, which commute *)
Lemma power_proj {D : Dim} (Pi : vec -> vec) eta : proj Pi -> forall K W, Nat.iter K (fun W => W - eta *: Pi W)%V W = (compl Pi W + (1 - eta) ^ K *: Pi W)%V.
Proof.
  intros p. induction K; intros W; [simpl; unfold compl; vring|]. cbn [Nat.iter nat_rect]. change (nat_rect _ ?a _ K) with (Nat.iter K (fun W => W - eta *: Pi W)%V W) in *. rewrite IHK.
  unfold compl. rewrite (p_add _ p), (p_sub _ p), (p_scal _ p), !(p_idem _ p). simpl pow. vring.
Qed.
Lemma step_10_1 {D : Dim} {O O' : Type} (E : law O) (E' : law O') (Pi : O -> vec -> vec) (Pi' : O' -> vec -> vec) rho rho' eta K W :
  (forall o, proj (Pi o)) -> (forall o, proj (Pi' o)) -> (forall o o' v, Pi o (Pi' o' v) = Pi' o' (Pi o v)) ->
  (forall a b, E (fun o => dot a (Pi o b)) = rho * dot a b) -> (forall a b, E' (fun o => dot a (Pi' o b)) = rho' * dot a b) ->
  E (fun o => nrm2 (Nat.iter K (fun W => W - eta *: Pi o W)%V W)) = (1 - rho * (1 - (1 - eta) ^ (2 * K))) * nrm2 W /\
  E (fun o => E' (fun o' => nrm2 (Nat.iter K (fun W => W - eta *: (Pi o W + Pi' o' W))%V W)))
  = ((1 - rho) * (1 - rho') + (rho + rho' - 2 * rho * rho') * (1 - eta) ^ (2 * K) + rho * rho' * (1 - 2 * eta) ^ (2 * K)) * nrm2 W.
Proof.
  intros p p' co e e'. assert (e2 : forall b K, (b ^ K) * (b ^ K) = b ^ (2 * K)) by (intros b k; rewrite <- pow_add; f_equal; lia).
  split.
  - rewrite (ex_ext E _ (fun o => nrm2 W * 1 + ((1 - eta) ^ (2 * K) - 1) * dot W (Pi o W))).
    + rewrite ex_plus, !ex_scal, ex_one, e. fold (nrm2 W). ring.
    + intros o. rewrite (power_proj _ _ (p o)). rewrite <- (p_scal _ (p o)), (p_pyth _ (p o)), (p_scal _ (p o)), nrm2_scal, e2, (p_compl_nrm2 _ (p o)), (p_nrm2 _ (p o)). ring.
  - (* four parts, of eigenvalues 0, 1, 1 and 2 *)
    assert (it : forall o o' k, Nat.iter k (fun W => W - eta *: (Pi o W + Pi' o' W))%V W
      = (W + ((1 - eta) ^ k - 1) *: (Pi o W + Pi' o' W) + (1 - 2 * (1 - eta) ^ k + (1 - 2 * eta) ^ k) *: Pi o (Pi' o' W))%V).
    { intros o o'. set (a := Pi o W). set (b := Pi' o' W). set (c := Pi o b). set (Rl := fun x : vec => (Pi o x + Pi' o' x)%V).
      assert (ad : forall x y, Rl (x + y)%V = (Rl x + Rl y)%V) by (intros; unfold Rl; rewrite (p_add _ (p o)), (p_add _ (p' o')); vring).
      assert (sc : forall u x, Rl (u *: x)%V = (u *: Rl x)%V) by (intros; unfold Rl; rewrite (p_scal _ (p o)), (p_scal _ (p' o')); vring).
      assert (cE : c = Pi' o' a) by (unfold c, a, b; apply co).
      assert (ra : Rl a = (a + c)%V) by (unfold Rl; rewrite <- cE; unfold a; now rewrite (p_idem _ (p o))).
      assert (rb : Rl b = (c + b)%V) by (unfold Rl; fold c; unfold b; now rewrite (p_idem _ (p' o'))).
      assert (rc : Rl c = (2 *: c)%V).
      { unfold Rl. replace (Pi o c) with c by (unfold c; now rewrite (p_idem _ (p o))). rewrite cE at 2. rewrite (p_idem _ (p' o')), <- cE. vring. }
      induction k; [simpl; vring|]. cbn [Nat.iter nat_rect]. change (nat_rect _ W _ k) with (Nat.iter k (fun W => W - eta *: (Pi o W + Pi' o' W))%V W).
      rewrite IHk. set (u := (1 - eta) ^ k). set (v := (1 - 2 * eta) ^ k). fold (Rl (W + (u - 1) *: (a + b) + (1 - 2 * u + v) *: c)%V).
      rewrite !ad, !sc, ad, ra, rb, rc. change (Rl W) with (a + b)%V. simpl pow. fold u v. vring. }
    assert (val : forall o o', nrm2 (Nat.iter K (fun W => W - eta *: (Pi o W + Pi' o' W))%V W) = nrm2 W + ((1 - eta) ^ (2 * K) - 1) * (dot W (Pi o W) + dot W (Pi' o' W))
      + (1 - 2 * (1 - eta) ^ (2 * K) + (1 - 2 * eta) ^ (2 * K)) * dot (Pi o W) (Pi' o' W)).
    { intros o o'. rewrite it. set (a := Pi o W). set (b := Pi' o' W). set (c := Pi o b).
      assert (ab : dot a b = dot W c) by (unfold a, c; apply (p_sym _ (p o))).
      assert (aa : dot a a = dot W a) by (unfold a; rewrite (p_dot _ (p o)); reflexivity). assert (bb : dot b b = dot W b) by (unfold b; rewrite (p_dot _ (p' o')); reflexivity).
      assert (cE : c = Pi' o' a) by (unfold c, a, b; apply co).
      assert (ac : dot a c = dot W c) by (unfold a; rewrite (p_sym _ (p o)); unfold c; now rewrite (p_idem _ (p o))).
      assert (bc : dot b c = dot W c) by (unfold b; rewrite (p_sym _ (p' o')), cE, (p_idem _ (p' o')); reflexivity).
      assert (cc : dot c c = dot W c). { unfold c at 1. rewrite (p_sym _ (p o)). unfold c at 1. rewrite (p_idem _ (p o)). exact bc. }
      unfold nrm2. repeat (rewrite dot_addl || rewrite dot_addr || rewrite dot_scall || rewrite dot_scalr).
      rewrite ?(dotC a W), ?(dotC b W), ?(dotC c W), ?(dotC c a), ?(dotC c b), ?(dotC b a), aa, bb, cc, ac, bc, ab, <- !e2. ring. }
    rewrite (ex_ext E _ (fun o => (nrm2 W + ((1 - eta) ^ (2 * K) - 1) * (rho' * nrm2 W)) * 1 + (((1 - eta) ^ (2 * K) - 1) + (1 - 2 * (1 - eta) ^ (2 * K) + (1 - 2 * eta) ^ (2 * K)) * rho') * dot W (Pi o W))).
    + rewrite ex_plus, !ex_scal, ex_one, e. fold (nrm2 W). ring.
    + intros o. rewrite (ex_ext E' _ (fun o' => (nrm2 W + ((1 - eta) ^ (2 * K) - 1) * dot W (Pi o W)) * 1 + (((1 - eta) ^ (2 * K) - 1) * dot W (Pi' o' W)
        + (1 - 2 * (1 - eta) ^ (2 * K) + (1 - 2 * eta) ^ (2 * K)) * dot (Pi o W) (Pi' o' W)))) by (intros; rewrite val; ring).
      rewrite !ex_plus, !ex_scal, ex_one, !e', (dotC (Pi o W) W). fold (nrm2 W). ring.
Qed.
(* 10.2: of the law of the projection: signs and exchanges of rows leave its mean *)
Definition flip (p i : nat) : R := if Nat.eq_dec i p then -1 else 1.
Definition swap (p q i : nat) : nat := if Nat.eq_dec i p then q else if Nat.eq_dec i q then p else i.
Lemma projection_mean {O : Type} (E : law O) (Pi : O -> mat nat nat) m : (0 < m)%nat ->
  (forall p i j, E (fun o => Pi o i j) = E (fun o => flip p i * flip p j * Pi o i j)) ->
  (forall p q i j, (p < m)%nat -> (q < m)%nat -> E (fun o => Pi o i j) = E (fun o => Pi o (swap p q i) (swap p q j))) ->
  forall i j, (i < m)%nat -> (j < m)%nat -> E (fun o => Pi o i j) = E (fun o => sum m (fun k => Pi o k k)) / INR m * dl i j.
Proof.
  intros m1 fl sw i j hi hj. assert (m0 : 0 < INR m) by now apply lt_0_INR. unfold dl. destruct (Nat.eq_dec i j) as [->|ne].
  - rewrite ex_sum, (sum_ext m _ (fun _ => E (fun o => Pi o j j))); [rewrite sum_const; field; lra|]. intros k hk. rewrite (sw k j k k hk hj). unfold swap. destruct (Nat.eq_dec k k); [reflexivity|congruence].
  - assert (h := fl i i j). unfold flip in h. destruct (Nat.eq_dec i i); [|congruence]. destruct (Nat.eq_dec j i); [congruence|].
    rewrite (ex_ext E (fun o => -1 * 1 * Pi o i j) (fun o => (-1) * Pi o i j)) in h by (intros; ring). rewrite ex_scal in h. lra.
Qed.
Lemma step_10_2 {D : Dim} {O O' : Type} (E : law O) (E' : law O') (Pi : O -> vec -> vec) (Pi' : O' -> vec -> vec) (rho rho' : R) :
  (forall o, proj (Pi o)) -> (forall o, proj (Pi' o)) -> (forall o o' v, Pi o (Pi' o' v) = Pi' o' (Pi o v)) ->
  (forall a, E (fun o => dot a (Pi o a)) <= rho * nrm2 a) -> (forall a, E' (fun o => dot a (Pi' o a)) <= rho' * nrm2 a) -> rho' <= 1 ->
  (* the mean of the projection on the columns of an m x r factor *)
  (forall {O2 : Type} (E2 : law O2) (Q : O2 -> mat nat nat) m r, (0 < m)%nat ->
    (forall p i j, E2 (fun o => Q o i j) = E2 (fun o => flip p i * flip p j * Q o i j)) ->
    (forall p q i j, (p < m)%nat -> (q < m)%nat -> E2 (fun o => Q o i j) = E2 (fun o => Q o (swap p q i) (swap p q j))) ->
    (forall o, sum m (fun k => Q o k k) <= r) ->
    (forall i j, (i < m)%nat -> (j < m)%nat -> E2 (fun o => Q o i j) = E2 (fun o => sum m (fun k => Q o k k)) / INR m * dl i j) /\
    E2 (fun o => sum m (fun k => Q o k k)) / INR m <= r / INR m) /\
  (* what any number of steps leaves *)
  (forall W (W1 : O -> vec), (forall o, exists y, W1 o = (W + Pi o y)%V) ->
    (forall o, compl (Pi o) (W1 o) = compl (Pi o) W) /\ (1 - rho) * nrm2 W <= E (fun o => nrm2 (W1 o))) /\
  (forall W (W1 : O -> O' -> vec), (forall o o', exists y y', W1 o o' = (W + (Pi o y + Pi' o' y'))%V) ->
    (forall o o', compl (Pi' o') (compl (Pi o) (W1 o o')) = compl (Pi' o') (compl (Pi o) W)) /\
    (1 - rho) * (1 - rho') * nrm2 W <= E (fun o => E' (fun o' => nrm2 (W1 o o')))).
Proof.
  intros p p' co e e' r1. assert (cle : forall (Q : vec -> vec), proj Q -> forall u, nrm2 (compl Q u) <= nrm2 u).
  { intros Q hQ u. rewrite (p_compl_nrm2 _ hQ). assert (z := nrm2_ge0 (Q u)). lra. }
  assert (kill : forall (Q : vec -> vec), proj Q -> forall u, compl Q (Q u) = v0) by (intros Q hQ u; unfold compl; rewrite (p_idem _ hQ); vring).
  assert (cadd : forall (Q : vec -> vec), proj Q -> forall u v, compl Q (u + v)%V = (compl Q u + compl Q v)%V) by (intros Q hQ u v; unfold compl; rewrite (p_add _ hQ); vring).
  split; [|split].
  - intros O2 E2 Q m r m1 fl sw ht. split; [now apply projection_mean|]. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; now apply lt_0_INR|]. rewrite <- (ex_const E2 r). now apply ex_le.
  - intros W W1 hW. assert (k : forall o, compl (Pi o) (W1 o) = compl (Pi o) W). { intros o. destruct (hW o) as [y ->]. rewrite (cadd _ (p o)), (kill _ (p o)). vring. }
    split; [exact k|]. apply Rle_trans with (E (fun o => nrm2 W * 1 + (-1) * dot W (Pi o W))).
    + rewrite ex_plus, !ex_scal, ex_one. specialize (e W). lra.
    + apply ex_le; intros o. eapply Rle_trans; [|apply (cle _ (p o))]. rewrite k, (p_compl_nrm2 _ (p o)), (p_nrm2 _ (p o)). lra.
  - intros W W1 hW. assert (cc : forall o o' u, compl (Pi' o') (compl (Pi o) u) = compl (Pi o) (compl (Pi' o') u)).
    { intros o o' u. unfold compl. rewrite (p_sub _ (p' o')), (p_sub _ (p o)), co. vring. }
    assert (k : forall o o', compl (Pi' o') (compl (Pi o) (W1 o o')) = compl (Pi' o') (compl (Pi o) W)).
    { intros o o'. destruct (hW o o') as [y [y' ->]]. rewrite !(cadd _ (p o)), (kill _ (p o)), !(cadd _ (p' o')), (cc o o' (Pi' o' y')), (kill _ (p' o')).
      replace (compl (Pi o) v0) with v0 by (unfold compl; rewrite (p_0 _ (p o)); vring). replace (compl (Pi' o') v0) with v0 by (unfold compl; rewrite (p_0 _ (p' o')); vring). vring. }
    split; [exact k|]. apply Rle_trans with (E (fun o => (1 - rho') * (nrm2 W * 1 + (-1) * dot W (Pi o W)))).
    + rewrite ex_scal, ex_plus, !ex_scal, ex_one. specialize (e W). assert (z := Rmult_le_compat_l (1 - rho') _ _ ltac:(lra) e). lra.
    + apply ex_le; intros o. set (u := compl (Pi o) W). replace (nrm2 W * 1 + -1 * dot W (Pi o W)) with (nrm2 u) by (unfold u; rewrite (p_compl_nrm2 _ (p o)), (p_nrm2 _ (p o)); ring).
      apply Rle_trans with (E' (fun o' => nrm2 u * 1 + (-1) * dot u (Pi' o' u))).
      * rewrite ex_plus, !ex_scal, ex_one. specialize (e' u). lra.
      * apply ex_le; intros o'. eapply Rle_trans; [|apply (cle _ (p o))]. eapply Rle_trans; [|apply (cle _ (p' o'))]. rewrite k. fold u. rewrite (p_compl_nrm2 _ (p' o')), (p_nrm2 _ (p' o')). lra.
Qed.
(* 10.4 *)
Definition orthonormal n k (z : nat -> nat -> R) : Prop := forall l l', (l < k)%nat -> (l' < k)%nat -> sum n (fun i => z l i * z l' i) = dl l l'.
Lemma bessel n k z (a : nat -> R) : orthonormal n k z -> sum k (fun l => sum n (fun i => a i * z l i) ^ 2) <= sum n (fun i => a i ^ 2).
Proof.
  intros h. set (p l := sum n (fun i => a i * z l i)). assert (q : 0 <= sum n (fun i => (a i - sum k (fun l => p l * z l i)) ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0).
  rewrite (sum_ext n _ (fun i => a i ^ 2 + ((-2) * sum k (fun l => p l * (a i * z l i)) + sum k (fun l => sum k (fun l' => p l * p l' * (z l i * z l' i)))))) in q.
  - rewrite !sum_plus, sum_scal, (sum_swap n k), (sum_swap n k) in q.
    rewrite (sum_ext k (fun l => sum n (fun i => p l * (a i * z l i))) (fun l => p l ^ 2)) in q by (intros; rewrite sum_scal; fold (p i); ring).
    rewrite (sum_ext k (fun l => sum n (fun i => sum k (fun l' => p l * p l' * (z l i * z l' i)))) (fun l => p l ^ 2)) in q.
    + change (sum k (fun l => p l ^ 2) <= sum n (fun i => a i ^ 2)). lra.
    + intros l hl. rewrite sum_swap, (sum_ext k _ (fun l' => dl l l' * (p l * p l'))) by (intros l' hl'; rewrite sum_scal, h by auto; ring). rewrite sum_dl by auto. ring.
  - intros i _. rewrite (sum_ext k (fun l => p l * (a i * z l i)) (fun l => a i * (p l * z l i))) by (intros; ring). rewrite sum_scal.
    rewrite (sum_ext k (fun l => sum k (fun l' => p l * p l' * (z l i * z l' i))) (fun l => sum k (fun l' => p l' * z l' i) * (p l * z l i))).
    + rewrite sum_scal. ring.
    + intros l _. rewrite (sum_ext k _ (fun l' => (p l * z l i) * (p l' * z l' i))) by (intros; ring). rewrite sum_scal. ring.
Qed.
Lemma kernel_basis n r (B : nat -> nat -> R) k : (k + r <= n)%nat -> exists z, orthonormal n k z /\ forall l b, (l < k)%nat -> (b < r)%nat -> sum n (fun i => B i b * z l i) = 0.
Proof.
  induction k; intros h; [exists (fun _ _ => 0); split; [intros ? ? ?; lia|intros; lia]|]. destruct (IHk ltac:(lia)) as [z [oz hz]].
  destruct (kernel_vector (r + k) n (fun i b => if lt_dec b r then B i b else z (b - r)%nat i) ltac:(lia)) as [x [[i0 [hi xi]] hx]].
  set (s2 := sum n (fun i => x i ^ 2)). assert (s0 : 0 < s2).
  { unfold s2. destruct n as [|n']; [lia|]. rewrite (sum_skip n' i0) by lia. assert (0 < x i0 ^ 2) by (assert (a := pow2_ge_0 (x i0)); assert (x i0 ^ 2 <> 0) by (now apply pow_nonzero); lra).
    assert (0 <= sum n' (fun i => x (skip i0 i) ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0). lra. }
  set (s := sqrt s2). assert (ss : s * s = s2) by (apply sqrt_def; lra). assert (sp : 0 < s) by now apply sqrt_lt_R0.
  exists (fun l i => if Nat.eq_dec l k then x i / s else z l i). split.
  - intros l l' hl hl'. destruct (Nat.eq_dec l k) as [->|nl], (Nat.eq_dec l' k) as [->|nl'].
    + rewrite (sum_ext n _ (fun i => / s2 * x i ^ 2)) by (intros; rewrite <- ss; field; lra). rewrite sum_scal. fold s2. unfold dl. destruct Nat.eq_dec; [field; lra|congruence].
    + assert (e := hx (r + l')%nat ltac:(lia)). destruct (lt_dec (r + l') r); [lia|]. replace (r + l' - r)%nat with l' in e by lia.
      rewrite (sum_ext n _ (fun i => / s * (z l' i * x i))) by (intros; field; lra). rewrite sum_scal, e. unfold dl. destruct Nat.eq_dec; [congruence|ring].
    + assert (e := hx (r + l)%nat ltac:(lia)). destruct (lt_dec (r + l) r); [lia|]. replace (r + l - r)%nat with l in e by lia.
      rewrite (sum_ext n _ (fun i => / s * (z l i * x i))) by (intros; field; lra). rewrite sum_scal, e. unfold dl. destruct Nat.eq_dec; [congruence|ring].
    + apply oz; lia.
  - intros l b hl hb. destruct (Nat.eq_dec l k) as [->|nl]; [|apply hz; lia]. assert (e := hx b ltac:(lia)). destruct (lt_dec b r); [|lia].
    rewrite (sum_ext n _ (fun i => / s * (B i b * x i))) by (intros; field; lra). rewrite sum_scal, e. ring.
Qed.
Lemma sum_split n r f : (r <= n)%nat -> sum n f = sum r f + sum (n - r) (fun j => f (r + j)%nat).
Proof.
  intros h. replace n with (r + (n - r))%nat at 1 by lia. generalize (n - r)%nat. intros k. induction k; [rewrite Nat.add_0_r; simpl; ring|].
  rewrite Nat.add_succ_r, !sum_S, IHk. ring.
Qed.
(* v, sig: the right singular vectors and the singular values of the target *)
Lemma step_10_4 m n r (T X A B : mat nat nat) (v : nat -> nat -> R) (sig : nat -> R) : (r <= n)%nat ->
  (forall i j, (j < n)%nat -> X i j = sum r (fun b => A i b * B j b)) ->
  orthonormal n n v -> (forall z : nat -> R, sum n (fun j => sum n (fun i => z i * v j i) ^ 2) = sum n (fun i => z i ^ 2)) ->
  (forall z : nat -> R, sum m (fun i => sum n (fun j => T i j * z j) ^ 2) = sum n (fun j => sig j ^ 2 * sum n (fun i => z i * v j i) ^ 2)) ->
  (forall i j, (i <= j)%nat -> sig j ^ 2 <= sig i ^ 2) ->
  sum (n - r) (fun j => sig (r + j)%nat ^ 2) <= fro m n (msub T X) (msub T X) /\
  ((0 < n)%nat -> (forall j, sig j = sig 0%nat) -> (1 - INR r / INR n) * (INR n * sig 0%nat ^ 2) <= fro m n (msub T X) (msub T X)).
Proof.
  intros rn hX ov pars hT dec.
  assert (main : sum (n - r) (fun j => sig (r + j)%nat ^ 2) <= fro m n (msub T X) (msub T X)).
  { destruct (kernel_basis n r B (n - r) ltac:(lia)) as [z [oz hz]].
    assert (Xz : forall l i, (l < n - r)%nat -> sum n (fun j => X i j * z l j) = 0).
    { intros l i hl. rewrite (sum_ext n _ (fun j => sum r (fun b => A i b * (B j b * z l j)))) by (intros j hj; rewrite hX by auto; rewrite Rmult_comm, <- sum_scal; apply sum_ext; intros; ring).
      rewrite sum_swap, (sum_ext r _ (fun _ => 0)); [rewrite sum_const; ring|]. intros b hb. rewrite sum_scal, hz by auto. ring. }
    assert (one : sum (n - r) (fun l => sum n (fun j => sig j ^ 2 * sum n (fun i => z l i * v j i) ^ 2)) <= fro m n (msub T X) (msub T X)).
    { rewrite (sum_ext (n - r) _ (fun l => sum m (fun i => sum n (fun j => (T i j - X i j) * z l j) ^ 2))).
      - rewrite sum_swap. unfold fro. apply sum_le; intros i _. eapply Rle_trans; [apply (bessel n (n - r) z (fun j => T i j - X i j) oz)|]. right. apply sum_ext; intros j _. unfold msub. ring.
      - intros l hl. rewrite <- hT. apply sum_ext; intros i _. f_equal. rewrite (sum_ext n (fun j => (T i j - X i j) * z l j) (fun j => T i j * z l j + (-1) * (X i j * z l j))) by (intros; ring).
        rewrite sum_plus, sum_scal, Xz by auto. ring. }
    eapply Rle_trans; [|exact one]. rewrite sum_swap. set (p j := sum (n - r) (fun l => sum n (fun i => z l i * v j i) ^ 2)).
    rewrite (sum_ext n _ (fun j => sig j ^ 2 * p j)) by (intros; unfold p; now rewrite sum_scal).
    assert (p0 : forall j, 0 <= p j) by (intros; apply sum_ge0; intros; apply pow2_ge_0).
    assert (p1 : forall j, (j < n)%nat -> p j <= 1).
    { intros j hj. unfold p. rewrite (sum_ext (n - r) _ (fun l => sum n (fun i => v j i * z l i) ^ 2)) by (intros; f_equal; apply sum_ext; intros; ring).
      eapply Rle_trans; [apply (bessel n (n - r) z (v j) oz)|]. right. rewrite (sum_ext n _ (fun i => v j i * v j i)) by (intros; ring). rewrite ov by auto. unfold dl. destruct Nat.eq_dec; congruence. }
    assert (ps : sum n p = INR (n - r)).
    { unfold p. rewrite sum_swap, (sum_ext (n - r) _ (fun _ => 1)); [rewrite sum_const; ring|]. intros l hl. rewrite pars, (sum_ext n _ (fun i => z l i * z l i)) by (intros; ring). rewrite oz by auto. unfold dl. destruct Nat.eq_dec; congruence. }
    rewrite (sum_split n r) by auto. rewrite (sum_split n r) in ps by auto. set (s := sig r ^ 2).
    assert (u1 : s * sum r p <= sum r (fun j => sig j ^ 2 * p j)) by (rewrite <- sum_scal; apply sum_le; intros j hj; apply Rmult_le_compat_r; [apply p0|apply dec; lia]).
    assert (u2 : sum (n - r) (fun j => sig (r + j)%nat ^ 2 * (1 - p (r + j)%nat)) <= s * sum r p).
    { replace (sum r p) with (sum (n - r) (fun j => 1 - p (r + j)%nat)).
      - rewrite <- sum_scal. apply sum_le; intros j hj. apply Rmult_le_compat_r; [specialize (p1 (r + j)%nat ltac:(lia)); lra|apply dec; lia].
      - rewrite (sum_ext (n - r) _ (fun j => 1 + (-1) * p (r + j)%nat)) by (intros; ring). rewrite sum_plus, sum_scal, sum_const. lra. }
    rewrite (sum_ext (n - r) _ (fun j => sig (r + j)%nat ^ 2 + (-1) * (sig (r + j)%nat ^ 2 * p (r + j)%nat))) in u2 by (intros; ring). rewrite sum_plus, sum_scal in u2. lra. }
  split; [exact main|]. intros n1 eq. eapply Rle_trans; [|exact main]. rewrite (sum_ext (n - r) _ (fun _ => sig 0%nat ^ 2)) by (intros; now rewrite eq). rewrite sum_const, minus_INR by auto.
  right. field. apply not_0_INR. lia.
Qed.
(* 10.5: a fixed subspace; Q is the projection on it *)
Lemma step_10_5 {D : Dim} {O O' : Type} (E : law O) (E' : law O') (Pi : O -> vec -> vec) (Pi' : O' -> vec -> vec) (rho rho' mu L fs : R) (f : vec -> R) (W0 Ws : vec) :
  (forall o, proj (Pi o)) -> (forall o, proj (Pi' o)) -> (forall o o' v, Pi o (Pi' o' v) = Pi' o' (Pi o v)) ->
  (forall a, E (fun o => dot a (Pi o a)) <= rho * nrm2 a) -> (forall a, E' (fun o => dot a (Pi' o a)) <= rho' * nrm2 a) -> rho' <= 1 -> 0 <= mu ->
  (forall W, mu / 2 * nrm2 (W - Ws) <= f W - fs <= L / 2 * nrm2 (W - Ws)) ->
  let d2 o o' := nrm2 (compl (Pi' o') (compl (Pi o) (Ws - W0)%V)) in
  (forall o o' y y', fs + mu / 2 * d2 o o' <= f (W0 + (Pi o y + Pi' o' y'))%V) /\
  (forall o o', exists y y', nrm2 ((W0 + (Pi o y + Pi' o' y')) - Ws)%V = d2 o o' /\ f (W0 + (Pi o y + Pi' o' y'))%V <= fs + L / 2 * d2 o o') /\
  (1 - rho) * (1 - rho') * nrm2 (Ws - W0) <= E (fun o => E' (fun o' => d2 o o')) /\
  (forall W tail, tail <= nrm2 (W - Ws) -> fs + mu / 2 * tail <= f W).
Proof.
  intros p p' co e e' r1 mu0 hf d2. assert (m2 : 0 <= mu / 2) by lra.
  destruct (step_10_2 E E' Pi Pi' rho rho' p p' co e e' r1) as [_ [_ k]].
  assert (cc : forall o o' u, compl (Pi' o') (compl (Pi o) u) = ((u - Pi o u) - Pi' o' (u - Pi o u))%V) by reflexivity.
  assert (cle : forall (Q : vec -> vec), proj Q -> forall u, nrm2 (compl Q u) <= nrm2 u).
  { intros Q hQ u. rewrite (p_compl_nrm2 _ hQ). assert (z := nrm2_ge0 (Q u)). lra. }
  assert (low : forall o o' y y', d2 o o' <= nrm2 ((W0 + (Pi o y + Pi' o' y')) - Ws)%V).
  { intros o o' y y'. set (W1 := fun o1 o1' => ((Ws - W0) + (Pi o1 ((-1) *: y) + Pi' o1' ((-1) *: y')))%V).
    destruct (k (Ws - W0)%V W1 (fun o1 o1' => ex_intro _ ((-1) *: y)%V (ex_intro _ ((-1) *: y')%V eq_refl))) as [st' _]. assert (st := st' o o').
    unfold d2. rewrite <- st. eapply Rle_trans; [apply (cle _ (p' o'))|]. eapply Rle_trans; [apply (cle _ (p o))|]. right. rewrite nrm2_subC. f_equal. unfold W1. rewrite (p_scal _ (p o)), (p_scal _ (p' o')). vring. }
  split; [|split; [|split]].
  - intros o o' y y'. destruct (hf (W0 + (Pi o y + Pi' o' y'))%V) as [h _]. assert (z := Rmult_le_compat_l _ _ _ m2 (low o o' y y')). lra.
  - intros o o'. set (u := (Ws - W0)%V). exists u, (u - Pi o u)%V.
    assert (eq : nrm2 ((W0 + (Pi o u + Pi' o' (u - Pi o u)%V)) - Ws)%V = d2 o o'). { unfold d2. fold u. rewrite nrm2_subC, cc. f_equal. unfold u. vring. }
    split; [exact eq|]. destruct (hf (W0 + (Pi o u + Pi' o' (u - Pi o u)%V))%V) as [_ h]. rewrite eq in h. lra.
  - apply (k (Ws - W0)%V (fun o o' => compl (Pi' o') (compl (Pi o) (Ws - W0)%V))). intros o o'. exists ((-1) *: (Ws - W0))%V, ((-1) *: (Ws - W0 - Pi o (Ws - W0)%V))%V. rewrite cc, (p_scal _ (p o)), (p_scal _ (p' o')). vring.
  - intros W tail ht. destruct (hf W) as [h _]. assert (z := Rmult_le_compat_l _ _ _ m2 ht). lra.
Qed.
(* ================= 7: several layers; l counts them, of sides dm l and dn l, and dr l columns of the factors ================= *)
Lemma discriminant a b c : (forall t, 0 <= a + 2 * t * b + t ^ 2 * c) -> 0 <= a -> 0 <= c -> b ^ 2 <= a * c.
Proof.
  intros h a0 c0. destruct (Req_dec c 0) as [z|z].
  - destruct (Req_dec b 0) as [y|y]; [rewrite y; assert (0 <= a * c) by pos; lra|]. exfalso. assert (k := h (- (a + 1) / (2 * b))). rewrite z in k.
    replace (a + 2 * (- (a + 1) / (2 * b)) * b + (- (a + 1) / (2 * b)) ^ 2 * 0) with (- (1)) in k by (field; auto). lra.
  - assert (k := h (- b / c)). apply (Rmult_le_compat_l c) in k; auto. replace (c * (a + 2 * (- b / c) * b + (- b / c) ^ 2 * c)) with (a * c - b ^ 2) in k by (field; auto). lra.
Qed.
Section Layers.
Variable NL : nat.
Definition stack := nat -> mat nat nat.
Definition ip (p q : nat -> nat) (A B : stack) : R := sum NL (fun l => fro (p l) (q l) (A l) (B l)).
Definition nrm p q A : R := sqrt (ip p q A A).
Definition sadd (A B : stack) : stack := fun l => madd (A l) (B l).
Definition sscal c (A : stack) : stack := fun l => mscal c (A l).
Lemma ip_ge0 p q A : 0 <= ip p q A A. Proof. apply sum_ge0; intros; apply fro_ge0. Qed.
Lemma ipC p q A B : ip p q A B = ip p q B A. Proof. apply sum_ext; intros; apply froC. Qed.
Lemma ip_add p q A B C : ip p q A (sadd B C) = ip p q A B + ip p q A C.
Proof. unfold ip. rewrite <- sum_plus. apply sum_ext; intros; apply fro_add_r. Qed.
Lemma ip_scal p q A c B : ip p q A (sscal c B) = c * ip p q A B.
Proof. unfold ip. rewrite <- sum_scal. apply sum_ext; intros; apply fro_scal_r. Qed.
Lemma nrm_ge0 p q A : 0 <= nrm p q A. Proof. apply sqrt_pos. Qed.
Lemma nrm_sq p q A : nrm p q A * nrm p q A = ip p q A A. Proof. apply sqrt_def, ip_ge0. Qed.
Lemma ip_le p q A B : ip p q A B <= nrm p q A * nrm p q B.
Proof.
  assert (d := discriminant (ip p q A A) (ip p q A B) (ip p q B B)). assert (k : ip p q A B ^ 2 <= ip p q A A * ip p q B B).
  { apply d; try apply ip_ge0. intros t. assert (z := ip_ge0 p q (sadd A (sscal t B))). rewrite ip_add, ip_scal, !(ipC p q (sadd _ _)), !ip_add, !ip_scal, (ipC p q B A) in z. lra. }
  rewrite <- !nrm_sq in k. assert (a0 := nrm_ge0 p q A). assert (b0 := nrm_ge0 p q B). apply Rnot_lt_le. intros l. assert (0 <= nrm p q A * nrm p q B) by pos. nra.
Qed.
Lemma nrm_le p q A b : 0 <= b -> ip p q A A <= b * b -> nrm p q A <= b.
Proof. intros b0 h. unfold nrm. rewrite <- (sqrt_square b) by auto. now apply sqrt_le_1_alt. Qed.
Lemma nrm_add p q A B : nrm p q (sadd A B) <= nrm p q A + nrm p q B.
Proof.
  assert (a0 := nrm_ge0 p q A). assert (b0 := nrm_ge0 p q B). apply nrm_le; [lra|]. rewrite ip_add, !(ipC p q (sadd _ _)), !ip_add, (ipC p q B A), <- !nrm_sq. assert (k := ip_le p q A B). lra.
Qed.
Lemma nrm_scal p q c A : nrm p q (sscal c A) = Rabs c * nrm p q A.
Proof.
  unfold nrm. rewrite ip_scal, ipC, ip_scal. replace (c * (c * ip p q A A)) with ((c * c) * ip p q A A) by ring. rewrite sqrt_mult_alt by apply Rle_0_sqr. f_equal.
  change (c * c) with (Rsqr c). apply sqrt_Rsqr_abs.
Qed.
Definition smul (k : nat -> nat) (A B : stack) : stack := fun l => mul (k l) (A l) (B l).
Lemma sum_cs n (u v : nat -> R) : sum n (fun k => u k * v k) ^ 2 <= sum n (fun k => u k ^ 2) * sum n (fun k => v k ^ 2).
Proof.
  apply discriminant; try (apply sum_ge0; intros; apply pow2_ge_0). intros t.
  replace (sum n (fun k => u k ^ 2) + 2 * t * sum n (fun k => u k * v k) + t ^ 2 * sum n (fun k => v k ^ 2)) with (sum n (fun k => (u k + t * v k) ^ 2)); [apply sum_ge0; intros; apply pow2_ge_0|].
  rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros; ring.
Qed.
Lemma fro_mul m n k (A B : mat nat nat) : fro m n (mul k A B) (mul k A B) <= fro m k A A * fro k n B B.
Proof.
  unfold fro. rewrite Rmult_comm, <- sum_scal. apply sum_le; intros i _. rewrite Rmult_comm.
  apply Rle_trans with (sum n (fun j => sum k (fun l => A i l * A i l) * sum k (fun l => B l j * B l j))).
  - apply sum_le; intros j _. unfold mul. assert (c := sum_cs k (fun l => A i l) (fun l => B l j)). cbv beta in c.
    rewrite (sum_ext k (fun l => A i l ^ 2) (fun l => A i l * A i l)), (sum_ext k (fun l => B l j ^ 2) (fun l => B l j * B l j)) in c by (intros; ring). simpl in c. lra.
  - rewrite sum_scal. right. f_equal. apply sum_swap.
Qed.
Lemma sum_prod n (u v : nat -> R) : (forall l, 0 <= u l) -> (forall l, 0 <= v l) -> sum n (fun l => u l * v l) <= sum n u * sum n v.
Proof.
  intros u0 v0. induction n; [simpl; lra|]. rewrite !sum_S. assert (a := sum_ge0 n u (fun i _ => u0 i)). assert (b := sum_ge0 n v (fun i _ => v0 i)). specialize (u0 n). specialize (v0 n). nra.
Qed.
Lemma nrm_mul p k q A B : nrm p q (smul k A B) <= nrm p k A * nrm k q B.
Proof.
  assert (a0 := nrm_ge0 p k A). assert (b0 := nrm_ge0 k q B). apply nrm_le; [pos|]. replace (nrm p k A * nrm k q B * (nrm p k A * nrm k q B)) with ((nrm p k A * nrm p k A) * (nrm k q B * nrm k q B)) by ring. rewrite !nrm_sq.
  unfold ip, smul. eapply Rle_trans; [apply sum_le; intros l _; apply fro_mul|]. apply (sum_prod NL (fun l => fro (p l) (k l) (A l) (A l)) (fun l => fro (k l) (q l) (B l) (B l))); intros; apply fro_ge0.
Qed.
Definition str (A : stack) : stack := fun l => tr_ (A l).
Lemma nrm_tr p q A : nrm p q A = nrm q p (str A). Proof. unfold nrm, ip. f_equal. apply sum_ext; intros l _. apply fro_tr. Qed.

Variables dm dn dr : nat -> nat.
Variables eta B Lam : R.
Hypothesis eta0 : 0 <= eta.
Hypothesis B0 : 0 <= B.
Hypothesis Lam0 : 0 <= Lam.
Variable U0 : stack.
(* |U|_2^2 <= Lambda, in every layer *)
Hypothesis singular : forall l (z : nat -> R), sum (dr l) (fun b => sum (dm l) (fun i => z i * U0 l i b) ^ 2) <= Lam * sum (dm l) (fun i => z i ^ 2).
Lemma left_U q A : nrm q dr (smul dm A U0) <= sqrt Lam * nrm q dm A.
Proof.
  assert (s0 := sqrt_pos Lam). assert (a0 := nrm_ge0 q dm A). apply nrm_le; [pos|]. replace (sqrt Lam * nrm q dm A * (sqrt Lam * nrm q dm A)) with ((sqrt Lam * sqrt Lam) * (nrm q dm A * nrm q dm A)) by ring. rewrite nrm_sq, sqrt_def by auto.
  unfold ip, smul. rewrite <- sum_scal. apply sum_le; intros l _. unfold fro. rewrite <- sum_scal. apply sum_le; intros i _. unfold mul.
  rewrite (sum_ext (dr l) _ (fun b => sum (dm l) (fun k => A l i k * U0 l k b) ^ 2)) by (intros; ring). eapply Rle_trans; [apply (singular l (fun k => A l i k))|]. right. f_equal. apply sum_ext; intros; ring.
Qed.
Notation x := (eta * B).
Definition cc_ (k : nat) : R := ((1 + x) ^ k + (1 - x) ^ k) / 2.
Definition ss_ (k : nat) : R := ((1 + x) ^ k - (1 - x) ^ k) / 2.
Let x0 : 0 <= x. Proof. pos. Qed.
Lemma cs_rec k : cc_ (S k) = cc_ k + x * ss_ k /\ ss_ (S k) = ss_ k + x * cc_ k.
Proof. unfold cc_, ss_. simpl. split; field. Qed.
Lemma cs_ge k : 1 <= cc_ k /\ 0 <= ss_ k.
Proof. induction k; [unfold cc_, ss_; simpl; lra|]. destruct IHk as [a b]. destruct (cs_rec k) as [-> ->]. assert (0 <= x * ss_ k) by pos. assert (0 <= x * cc_ k) by (apply Rmult_le_pos; lra). lra. Qed.
Section Client.
Variable g : nat -> stack.                 (* the gradients of the local steps *)
Variables U V : nat -> stack.
Hypothesis U_0 : U 0%nat = U0.
Hypothesis V_0 : forall l i j, V 0%nat l i j = 0.
Hypothesis U_S : forall k, U (S k) = sadd (U k) (sscal (- eta) (smul dn (g k) (V k))).
Hypothesis V_S : forall k, V (S k) = sadd (V k) (sscal (- eta) (smul dm (str (g k)) (U k))).
Hypothesis gB : forall k, nrm dm dn (g k) <= B.
Definition sub (A C : stack) : stack := sadd A (sscal (-1) C).
Lemma split_ A C : A = sadd C (sub A C).
Proof. unfold sub, sadd, sscal, madd, mscal. apply functional_extensionality; intros l. mext. ring. Qed.
Lemma step_7_1 k : nrm dm dr (sub (U k) U0) <= (cc_ k - 1) * sqrt Lam /\ nrm dn dr (V k) <= ss_ k * sqrt Lam /\
  cc_ (S k) = cc_ k + x * ss_ k /\ ss_ (S k) = ss_ k + x * cc_ k.
Proof.
  assert (s0 := sqrt_pos Lam).
  assert (main : forall k, nrm dm dr (sub (U k) U0) <= (cc_ k - 1) * sqrt Lam /\ nrm dn dr (V k) <= ss_ k * sqrt Lam).
  { induction k0 as [|j [hU hV]].
    - rewrite U_0. assert (z : nrm dm dr (sub U0 U0) = 0 /\ nrm dn dr (V 0%nat) = 0).
      { split; unfold nrm; rewrite <- sqrt_0; f_equal; unfold ip; rewrite (sum_ext NL _ (fun _ => 0)); try (rewrite sum_const; ring); intros l _; unfold fro;
          rewrite (sum_ext _ _ (fun _ => 0)); try (rewrite sum_const; ring); intros i _; rewrite (sum_ext _ _ (fun _ => 0)); try (rewrite sum_const; ring); intros b _;
          [unfold sub, sadd, sscal, madd, mscal; ring|rewrite V_0; ring]. }
      destruct z as [-> ->]. unfold cc_, ss_. simpl. lra.
    - destruct (cs_rec j) as [-> ->]. destruct (cs_ge j) as [c1 z1]. assert (gj := gB j). assert (g0 := nrm_ge0 dm dn (g j)). split.
      + replace (sub (U (S j)) U0) with (sadd (sub (U j) U0) (sscal (- eta) (smul dn (g j) (V j)))).
        2: { rewrite U_S. unfold sub, sadd, sscal, madd, mscal. apply functional_extensionality; intros l. mext. ring. }
        eapply Rle_trans; [apply nrm_add|]. rewrite nrm_scal, Rabs_Ropp, (Rabs_right eta) by lra.
        assert (m := nrm_mul dm dn dr (g j) (V j)). assert (v0 := nrm_ge0 dn dr (V j)).
        assert (m2 : nrm dm dn (g j) * nrm dn dr (V j) <= B * (ss_ j * sqrt Lam)) by (apply Rmult_le_compat; auto).
        assert (m3 : eta * nrm dm dr (smul dn (g j) (V j)) <= eta * (B * (ss_ j * sqrt Lam))) by (apply Rmult_le_compat_l; lra). lra.
      + rewrite V_S. eapply Rle_trans; [apply nrm_add|]. rewrite nrm_scal, Rabs_Ropp, (Rabs_right eta) by lra.
        assert (m : nrm dn dr (smul dm (str (g j)) (U j)) <= B * (cc_ j * sqrt Lam)).
        { rewrite (split_ (U j) U0). replace (smul dm (str (g j)) (sadd U0 (sub (U j) U0))) with (sadd (smul dm (str (g j)) U0) (smul dm (str (g j)) (sub (U j) U0))).
          2: { unfold smul, sadd. apply functional_extensionality; intros l. now rewrite mul_add_r. }
          eapply Rle_trans; [apply nrm_add|]. assert (a := left_U dn (str (g j))). rewrite <- nrm_tr in a. assert (b := nrm_mul dn dm dr (str (g j)) (sub (U j) U0)). rewrite <- nrm_tr in b.
          assert (u0 := nrm_ge0 dm dr (sub (U j) U0)).
          assert (b2 : nrm dm dn (g j) * nrm dm dr (sub (U j) U0) <= B * ((cc_ j - 1) * sqrt Lam)) by (apply Rmult_le_compat; auto).
          assert (a2 : sqrt Lam * nrm dm dn (g j) <= sqrt Lam * B) by (apply Rmult_le_compat_l; auto). lra. }
        apply (Rmult_le_compat_l eta) in m; auto. lra. }
  destruct (main k) as [a b]. destruct (cs_rec k) as [c d]. repeat split; auto.
Qed.
End Client.
(* N clients *)
Definition smean N (f : nat -> stack) : stack := fun l => mean N (fun c => f c l).
Definition ssum K (f : nat -> stack) : stack := fun l i j => sum K (fun k => f k l i j).
Lemma nrm_smean p q N f b : (0 < N)%nat -> (forall c, (c < N)%nat -> nrm p q (f c) <= b) -> nrm p q (smean N f) <= b.
Proof.
  intros n0%lt_0_INR h. assert (s : forall n, (n <= N)%nat -> nrm p q (ssum n f) <= INR n * b).
  { induction n; intros hn.
    - simpl INR. rewrite Rmult_0_l. right. unfold nrm. rewrite <- sqrt_0. f_equal. unfold ip. rewrite (sum_ext NL _ (fun _ => 0)); [rewrite sum_const; ring|]. intros l _. unfold fro.
      rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros i _. rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros j _. unfold ssum. simpl. ring.
    - change (ssum (S n) f) with (sadd (ssum n f) (f n)). eapply Rle_trans; [apply nrm_add|]. rewrite S_INR. specialize (IHn ltac:(lia)). specialize (h n ltac:(lia)). lra. }
  replace (smean N f) with (sscal (/ INR N) (ssum N f)) by reflexivity. assert (i0 : 0 < / INR N) by now apply Rinv_0_lt_compat. rewrite nrm_scal, (Rabs_right (/ INR N)) by lra.
  assert (k := s N ltac:(lia)). apply (Rmult_le_compat_l (/ INR N)) in k; [|lra]. replace (/ INR N * (INR N * b)) with b in k by (field; lra). exact k.
Qed.
Lemma nrm_ssum p q K f (b : nat -> R) : (forall k, (k < K)%nat -> nrm p q (f k) <= b k) -> nrm p q (ssum K f) <= sum K b.
Proof.
  induction K; intros h.
  - right. simpl sum. unfold nrm. rewrite <- sqrt_0. f_equal. unfold ip. rewrite (sum_ext NL _ (fun _ => 0)); [rewrite sum_const; ring|]. intros l _. unfold fro.
    rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros i _. rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros j _. unfold ssum. simpl. ring.
  - change (ssum (S K) f) with (sadd (ssum K f) (f K)). eapply Rle_trans; [apply nrm_add|]. rewrite sum_S. apply Rplus_le_compat; [apply IHK; intros; apply h; lia|apply h; lia].
Qed.
Lemma right_U q A : nrm dm q (smul dr U0 A) <= sqrt Lam * nrm dr q A.
Proof.
  assert (s0 := sqrt_pos Lam). assert (a0 := nrm_ge0 dr q A). apply nrm_le; [pos|]. replace (sqrt Lam * nrm dr q A * (sqrt Lam * nrm dr q A)) with ((sqrt Lam * sqrt Lam) * (nrm dr q A * nrm dr q A)) by ring. rewrite nrm_sq, sqrt_def by auto.
  unfold ip, smul. rewrite <- sum_scal. apply sum_le; intros l _. rewrite (fro_tr (dm l)), (fro_tr (dr l)). unfold fro, tr_. rewrite <- sum_scal. apply sum_le; intros j _. unfold mul.
  set (y i := sum (dr l) (fun b => U0 l i b * A l b j)). set (n2 := sum (dm l) (fun i => y i ^ 2)). set (a2 := sum (dr l) (fun b => A l b j ^ 2)).
  assert (e1 : n2 = sum (dr l) (fun b => A l b j * sum (dm l) (fun i => y i * U0 l i b))).
  { unfold n2. rewrite (sum_ext (dm l) _ (fun i => sum (dr l) (fun b => A l b j * (y i * U0 l i b)))).
    - rewrite sum_swap. apply sum_ext; intros b _. now rewrite sum_scal.
    - intros i _. rewrite (sum_ext (dr l) _ (fun b => y i * (U0 l i b * A l b j))) by (intros; ring). rewrite sum_scal. fold (y i). ring. }
  assert (c := sum_cs (dr l) (fun b => A l b j) (fun b => sum (dm l) (fun i => y i * U0 l i b))). cbv beta in c. rewrite <- e1 in c. fold a2 in c.
  assert (s := singular l y). fold n2 in s. assert (a20 : 0 <= a2) by (apply sum_ge0; intros; apply pow2_ge_0). assert (n20 : 0 <= n2) by (apply sum_ge0; intros; apply pow2_ge_0).
  apply (Rmult_le_compat_l a2) in s; auto. assert (k : n2 ^ 2 <= a2 * (Lam * n2)) by lra.
  assert (fin : n2 <= Lam * a2). { destruct (Req_dec n2 0) as [z|z]; [rewrite z; pos|]. apply (Rmult_le_reg_r n2); [lra|]. lra. }
  rewrite (sum_ext (dm l) _ (fun i => y i ^ 2)) by (intros; unfold y; ring). rewrite (sum_ext (dr l) (fun b => A l b j * A l b j) (fun b => A l b j ^ 2)) by (intros; ring). exact fin.
Qed.
Section Clients.
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Variable g : nat -> nat -> stack.
Variables U V : nat -> nat -> stack.
Hypothesis U_0 : forall c, U c 0%nat = U0.
Hypothesis V_0 : forall c l i j, V c 0%nat l i j = 0.
Hypothesis U_S : forall c k, U c (S k) = sadd (U c k) (sscal (- eta) (smul dn (g c k) (V c k))).
Hypothesis V_S : forall c k, V c (S k) = sadd (V c k) (sscal (- eta) (smul dm (str (g c k)) (U c k))).
Definition Ubar : stack := smean N (fun c => U c K).
Definition Vbar : stack := smean N (fun c => V c K).
(* W+ - W + eta R sum_j gbar^j, where W+ - W is Ubar Vbar^T and R is U0 U0^T *)
Definition Ebar : stack := sadd (smul dr Ubar (str Vbar)) (sscal eta (smul dr U0 (smul dm (str U0) (ssum K (fun j => smean N (fun c => g c j)))))).
Lemma V_sum c k l i b : V c k l i b = - eta * sum k (fun j => sum (dm l) (fun a => g c j l a i * U c j l a b)).
Proof.
  induction k; [rewrite V_0; simpl; ring|]. rewrite V_S, sum_S. unfold sadd, sscal, madd, mscal, smul, mul, str, tr_. rewrite IHk. ring.
Qed.
Lemma step_7_2 : Ebar = sadd (smul dr (sub Ubar U0) (str Vbar)) (sscal (- eta) (smul dr U0 (ssum K (fun j => smean N (fun c => smul dm (str (sub (U c j) U0)) (g c j)))))).
Proof.
  assert (n0 := lt_0_INR _ N1). assert (key : forall l b j, str Vbar l b j + eta * smul dm (str U0) (ssum K (fun j => smean N (fun c => g c j))) l b j
    = - eta * ssum K (fun j => smean N (fun c => smul dm (str (sub (U c j) U0)) (g c j))) l b j).
  { intros l b j. unfold str, tr_, Vbar, smean, mean, smul, mul, ssum, sub, sadd, sscal, madd, mscal.
    rewrite (sum_ext N _ (fun c => - eta * sum K (fun k => sum (dm l) (fun a => g c k l a j * U c k l a b)))) by (intros; apply V_sum). rewrite sum_scal, (sum_swap N K).
    rewrite (sum_ext K (fun k => / INR N * sum N (fun c => sum (dm l) (fun a => (U c k l a b + -1 * U0 l a b) * g c k l a j)))
      (fun k => / INR N * sum N (fun c => sum (dm l) (fun a => g c k l a j * U c k l a b)) + (-1) * (/ INR N * sum N (fun c => sum (dm l) (fun a => U0 l a b * g c k l a j))))).
    - rewrite sum_plus, !sum_scal. rewrite (sum_ext (dm l) _ (fun a => / INR N * sum K (fun k => sum N (fun c => U0 l a b * g c k l a j)))).
      + rewrite sum_scal, (sum_swap (dm l) K). rewrite (sum_ext K (fun k => sum (dm l) (fun a => sum N (fun c => U0 l a b * g c k l a j))) (fun k => sum N (fun c => sum (dm l) (fun a => U0 l a b * g c k l a j)))) by (intros; apply sum_swap). ring.
      + intros a _. rewrite sum_scal. rewrite (sum_ext K (fun k => sum N (fun c => U0 l a b * g c k l a j)) (fun k => U0 l a b * sum N (fun c => g c k l a j))) by (intros; apply sum_scal). rewrite sum_scal. ring.
    - intros k _. rewrite (sum_ext N _ (fun c => sum (dm l) (fun a => g c k l a j * U c k l a b) + (-1) * sum (dm l) (fun a => U0 l a b * g c k l a j))).
      + rewrite sum_plus, sum_scal. ring.
      + intros c _. rewrite <- sum_scal, <- sum_plus. apply sum_ext; intros; ring. }
  unfold Ebar. set (M := smul dm (str U0) (ssum K (fun j => smean N (fun c => g c j)))) in *. set (Z := ssum K (fun j => smean N (fun c => smul dm (str (sub (U c j) U0)) (g c j)))) in *.
  apply functional_extensionality; intros l. mext.
  change (sum (dr l) (fun k => Ubar l i k * str Vbar l k j) + eta * sum (dr l) (fun k => U0 l i k * M l k j)
    = sum (dr l) (fun k => (Ubar l i k + -1 * U0 l i k) * str Vbar l k j) + - eta * sum (dr l) (fun k => U0 l i k * Z l k j)).
  rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros k _. assert (e := key l k j). replace (- eta * (U0 l i k * Z l k j)) with (U0 l i k * (- eta * Z l k j)) by ring. rewrite <- e. ring.
Qed.
Hypothesis gB : forall c k, nrm dm dn (g c k) <= B.
Lemma sub_mean (f : nat -> stack) : sub (smean N f) U0 = smean N (fun c => sub (f c) U0).
Proof.
  assert (n0 := lt_0_INR _ N1). unfold sub, sadd, sscal, smean, madd, mscal, mean. apply functional_extensionality; intros l. mext. rewrite sum_plus, sum_const. field. lra.
Qed.
Lemma step_7_3 : nrm dm dn Ebar <= Lam * (cc_ K * ss_ K - INR K * x) /\ ss_ K = x * sum K cc_ /\
  (cc_ K - 1) * ss_ K + sum K (fun j => x * (cc_ j - 1)) = cc_ K * ss_ K - INR K * x /\ cc_ K * ss_ K = ((1 + x) ^ (2 * K) - (1 - x) ^ (2 * K)) / 4 /\
  cc_ K * ss_ K - INR K * x <= cc_ (S K) * ss_ (S K) - INR (S K) * x.
Proof.
  assert (s0 := sqrt_pos Lam). assert (sl : sqrt Lam * sqrt Lam = Lam) by (apply sqrt_def; auto).
  assert (es : forall k, ss_ k = x * sum k cc_) by (induction k; [unfold ss_; simpl; field|rewrite sum_S, (proj2 (cs_rec k)), IHk; ring]).
  assert (eK : (cc_ K - 1) * ss_ K + sum K (fun j => x * (cc_ j - 1)) = cc_ K * ss_ K - INR K * x).
  { rewrite (sum_ext K _ (fun j => x * cc_ j + (- x) * 1)) by (intros; ring). rewrite sum_plus, !sum_scal, sum_const, <- es. ring. }
  split; [|split; [apply es|split; [exact eK|split]]].
  - rewrite step_7_2, <- eK. eapply Rle_trans; [apply nrm_add|].
    assert (u : nrm dm dr (sub Ubar U0) <= (cc_ K - 1) * sqrt Lam).
    { unfold Ubar. rewrite sub_mean. apply nrm_smean; auto. intros c _. apply (step_7_1 (g c) (U c) (V c) (U_0 c) (V_0 c) (U_S c) (V_S c) (gB c) K). }
    assert (v : nrm dr dn (str Vbar) <= ss_ K * sqrt Lam).
    { rewrite <- nrm_tr. unfold Vbar. apply nrm_smean; auto. intros c _. apply (step_7_1 (g c) (U c) (V c) (U_0 c) (V_0 c) (U_S c) (V_S c) (gB c) K). }
    assert (m := nrm_mul dm dr dn (sub Ubar U0) (str Vbar)). assert (u0 := nrm_ge0 dm dr (sub Ubar U0)). assert (v0 := nrm_ge0 dr dn (str Vbar)).
    assert (m1 : nrm dm dr (sub Ubar U0) * nrm dr dn (str Vbar) <= ((cc_ K - 1) * sqrt Lam) * (ss_ K * sqrt Lam)) by (apply Rmult_le_compat; auto).
    assert (w : nrm dr dn (ssum K (fun j => smean N (fun c => smul dm (str (sub (U c j) U0)) (g c j)))) <= sum K (fun j => (cc_ j - 1) * sqrt Lam * B)).
    { apply nrm_ssum. intros j _. apply nrm_smean; auto. intros c _. eapply Rle_trans; [apply nrm_mul|]. rewrite <- nrm_tr.
      apply Rmult_le_compat; try apply nrm_ge0; auto. apply (step_7_1 (g c) (U c) (V c) (U_0 c) (V_0 c) (U_S c) (V_S c) (gB c) j). }
    rewrite nrm_scal, Rabs_Ropp, (Rabs_right eta) by lra. assert (r := right_U dn (ssum K (fun j => smean N (fun c => smul dm (str (sub (U c j) U0)) (g c j))))).
    apply (Rmult_le_compat_l (sqrt Lam)) in w; auto. assert (r2 := Rmult_le_compat_l _ _ _ eta0 (Rle_trans _ _ _ r w)).
    replace (Lam * ((cc_ K - 1) * ss_ K + sum K (fun j => x * (cc_ j - 1)))) with ((cc_ K - 1) * sqrt Lam * (ss_ K * sqrt Lam) + eta * (sqrt Lam * sum K (fun j => (cc_ j - 1) * sqrt Lam * B))); [lra|].
    rewrite (sum_ext K (fun j => (cc_ j - 1) * sqrt Lam * B) (fun j => (sqrt Lam * B) * (cc_ j - 1))) by (intros; ring). rewrite !sum_scal.
    transitivity ((sqrt Lam * sqrt Lam) * ((cc_ K - 1) * ss_ K + x * sum K (fun j => cc_ j - 1))); [ring|rewrite sl; reflexivity].
  - unfold cc_, ss_. replace (2 * K)%nat with (K + K)%nat by lia. rewrite !pow_add. field.
  - destruct (cs_rec K) as [-> ->]. destruct (cs_ge K) as [c1 z1]. rewrite S_INR. assert (xz : 0 <= x * ss_ K) by pos. assert (xc : x <= x * cc_ K) by (assert (0 <= x * (cc_ K - 1)) by (apply Rmult_le_pos; lra); lra).
    assert (k : cc_ K * (ss_ K + x) <= (cc_ K + x * ss_ K) * (ss_ K + x * cc_ K)) by (apply Rmult_le_compat; lra).
    assert (x <= cc_ K * x) by lra. lra.
Qed.
End Clients.
End Layers.
(* 7.4: polynomials that the recursions stay below *)
Definition sp_ y : R := y + y ^ 3 / 6 + y ^ 5 / 120 + y ^ 7 / 5040 + y ^ 9 / 351000.
Definition cp_ y : R := 1 + y ^ 2 / 2 + y ^ 4 / 24 + y ^ 6 / 720 + y ^ 8 / 39000.
Lemma tangent n x y : 0 <= x -> 0 <= y -> y ^ S n + INR (S n) * x * y ^ n <= (y + x) ^ S n.
Proof.
  intros x0 y0. induction n; [simpl; lra|]. assert (p := pow_le y n y0). assert (p1 := pow_le y (S n) y0). 
  apply (Rmult_le_compat_l (y + x)) in IHn; [|lra]. change ((y + x) ^ S (S n)) with ((y + x) * (y + x) ^ S n). eapply Rle_trans; [|exact IHn].
  rewrite (S_INR (S n)). change (y ^ S (S n)) with (y * y ^ S n). assert (i0 := pos_INR (S n)).
  assert (0 <= INR (S n) * x * x * y ^ n) by (repeat apply Rmult_le_pos; auto). change (y ^ S n) with (y * y ^ n) in *. lra.
Qed.
Lemma step_7_4 (x q B Lam L : R) K : (0 < K)%nat -> 0 <= x -> let c := ((1 + x) ^ K + (1 - x) ^ K) / 2 in let s := ((1 + x) ^ K - (1 - x) ^ K) / 2 in let theta := INR K * x in
  c * s - INR K * x = / 2 * sum (2 * K + 1) (fun j => if Nat.odd j then (if Nat.eq_dec j 1 then 0 else C (2 * K) j * x ^ j) else 0) /\
  (theta <= 1/2 -> c * s - INR K * x <= 701/1000 * theta ^ 3) /\ (K = 1%nat -> c * s - INR K * x = 0) /\
  (theta <= 1/2 -> 0 < theta -> 0 < L -> 0 <= q -> 0 <= B -> Lam = q * B / (L * theta) -> L * (Lam * (c * s - INR K * x)) <= 701/1000 * q * theta ^ 2 * B).
Proof.
  intros K1 x0 c s theta. assert (K0 := lt_0_INR _ K1). assert (t0 : 0 <= theta) by (unfold theta; apply Rmult_le_pos; lra).
  assert (cs : c * s = ((1 + x) ^ (2 * K) - (1 - x) ^ (2 * K)) / 4) by (unfold c, s; replace (2 * K)%nat with (K + K)%nat by lia; rewrite !pow_add; field).
  assert (bound : theta <= 1/2 -> c * s - INR K * x <= 701/1000 * theta ^ 3).
  { intros th. assert (rec : forall n, INR n * x <= 1 -> ((1 + x) ^ n - (1 - x) ^ n) / 2 <= sp_ (INR n * x) /\ ((1 + x) ^ n + (1 - x) ^ n) / 2 <= cp_ (INR n * x)).
    { induction n; intros hn; [unfold sp_, cp_; simpl; lra|]. rewrite S_INR in hn. assert (n0 := pos_INR n). assert (y0 : 0 <= INR n * x) by pos. destruct (IHn ltac:(lra)) as [h1 h2]. rewrite S_INR.
      replace ((INR n + 1) * x) with (INR n * x + x) by ring. set (y := INR n * x) in *. simpl pow. set (a := (1 + x) ^ n) in *. set (b := (1 - x) ^ n) in *.
      assert (h3 := Rmult_le_compat_l x _ _ x0 h1). assert (h4 := Rmult_le_compat_l x _ _ x0 h2).
      assert (e2 := tangent 1 x y x0 y0). assert (e3 := tangent 2 x y x0 y0). assert (e4 := tangent 3 x y x0 y0). assert (e5 := tangent 4 x y x0 y0). assert (e6 := tangent 5 x y x0 y0).
      assert (e7 := tangent 6 x y x0 y0). assert (e8 := tangent 7 x y x0 y0). assert (e9 := tangent 8 x y x0 y0). rewrite !S_INR in e2, e3, e4, e5, e6, e7, e8, e9. simpl INR in e2, e3, e4, e5, e6, e7, e8, e9.
      unfold sp_, cp_ in *. split.
      - assert (t : (a - b) / 2 + x * ((a + b) / 2) <= sp_ (y + x)); [unfold sp_|unfold sp_ in t; lra]. lra.
      - assert (y1 : y <= 1) by (unfold y; lra). assert (y2 : y ^ 9 <= y ^ 7). { replace (y ^ 9) with (y ^ 7 * (y * y)) by ring. rewrite <- (Rmult_1_r (y ^ 7)) at 2. apply Rmult_le_compat_l; [apply pow_le; auto|nra]. }
        assert (y7 : 0 <= y ^ 7) by (apply pow_le; auto). assert (xy : 0 <= x * (8 / 39000 * y ^ 7 - y ^ 7 / 5040 - y ^ 9 / 351000)) by (apply Rmult_le_pos; lra).
        assert (t : (a + b) / 2 + x * ((a - b) / 2) <= cp_ (y + x)); [unfold cp_|unfold cp_ in t; lra]. lra. }
    assert (e2 : INR (2 * K) * x = 2 * theta) by (rewrite mult_INR; simpl INR; unfold theta; ring).
    destruct (rec (2 * K)%nat ltac:(rewrite e2; lra)) as [h _]. rewrite e2 in h. rewrite cs. fold theta.
    assert (k : sp_ (2 * theta) / 2 - theta <= 701/1000 * theta ^ 3).
    { unfold sp_. assert (t2 : theta ^ 2 <= 1/4) by nra. assert (t20 : 0 <= theta ^ 2) by apply pow2_ge_0. set (u := theta ^ 2) in *.
      replace ((2 * theta + (2 * theta) ^ 3 / 6 + (2 * theta) ^ 5 / 120 + (2 * theta) ^ 7 / 5040 + (2 * theta) ^ 9 / 351000) / 2 - theta) with (theta * u * (2/3 + 2/15 * u + 4/315 * u ^ 2 + 256/351000 * u ^ 3)) by (unfold u; field).
      replace (theta ^ 3) with (theta * u) by (unfold u; ring). rewrite (Rmult_comm (701/1000)). apply Rmult_le_compat_l; [pos|]. assert (u2 : u ^ 2 <= 1/16) by nra. assert (u3 : u ^ 3 <= 1/64) by (assert (0 <= u ^ 2) by apply pow2_ge_0; simpl; nra). lra. }
    lra. }
  split; [|split; [exact bound|split]].
  - rewrite cs. assert (bin : forall z, (1 + z) ^ (2 * K) = sum (2 * K + 1) (fun j => C (2 * K) j * z ^ j)).
    { intros z. rewrite (Rplus_comm 1 z), binomial. assert (e : forall n f, sum_f_R0 f n = sum (S n) f) by (induction n; intros f; [simpl; ring|cbn [sum_f_R0]; rewrite IHn; reflexivity]). rewrite e. replace (S (2 * K)) with (2 * K + 1)%nat by lia.
      apply sum_ext; intros j _. rewrite pow1. ring. }
    replace (1 - x) with (1 + - x) by ring. rewrite !bin.
    assert (par : forall j, x ^ j - (- x) ^ j = if Nat.odd j then 2 * x ^ j else 0).
    { intros j. assert (e : forall k, (- x) ^ (2 * k) = x ^ (2 * k)) by (intros k; rewrite !pow_mult; f_equal; ring). destruct (Nat.odd j) eqn:o.
      - apply Nat.odd_spec in o. destruct o as [k ->]. rewrite !pow_add, e. ring.
      - rewrite <- Nat.negb_even in o. apply Bool.negb_false_iff in o. apply Nat.even_spec in o. destruct o as [k ->]. rewrite e. ring. }
    transitivity (/ 2 * (sum (2 * K + 1) (fun j => if Nat.odd j then C (2 * K) j * x ^ j else 0) + (-1) * (2 * INR K * x))).
    + replace ((sum (2 * K + 1) (fun j => C (2 * K) j * x ^ j) - sum (2 * K + 1) (fun j => C (2 * K) j * (- x) ^ j)) / 4) with (/ 4 * (sum (2 * K + 1) (fun j => C (2 * K) j * x ^ j) + (-1) * sum (2 * K + 1) (fun j => C (2 * K) j * (- x) ^ j))) by field.
      rewrite <- (sum_scal _ (-1)), <- sum_plus. rewrite (sum_ext _ _ (fun j => 2 * (if Nat.odd j then C (2 * K) j * x ^ j else 0))).
      * rewrite sum_scal. field.
      * intros j _. replace (C (2 * K) j * x ^ j + -1 * (C (2 * K) j * (- x) ^ j)) with (C (2 * K) j * (x ^ j - (- x) ^ j)) by ring. rewrite par. destruct Nat.odd; ring.
    + f_equal. assert (one : sum (2 * K + 1) (fun j => if Nat.eq_dec j 1 then C (2 * K) 1 * x else 0) = 2 * INR K * x).
      { rewrite (sum_delta (2 * K + 1) 1 (fun _ => C (2 * K) 1 * x)) by lia. destruct K as [|k]; [lia|]. replace (2 * S k)%nat with (S (2 * k + 1)) by lia.
        unfold C. replace (S (2 * k + 1) - 1)%nat with (2 * k + 1)%nat by lia. rewrite (fact_simpl (2 * k + 1)), mult_INR. simpl (fact 1). simpl (INR 1). assert (f := INR_fact_neq_0 (2 * k + 1)).
        replace (INR (S (2 * k + 1))) with (2 * INR (S k)) by (rewrite !S_INR, plus_INR, mult_INR; simpl INR; ring). field. exact f. }
      rewrite <- one, <- sum_scal, <- sum_plus. apply sum_ext; intros j _. destruct (Nat.eq_dec j 1) as [->|]; [change (Nat.odd 1) with true; cbv iota; destruct (Nat.eq_dec 1 1); [|congruence]; rewrite ?pow_1; simpl pow; ring|destruct (Nat.odd j); [destruct (Nat.eq_dec j 1); [congruence|ring]|ring]].
  - intros ->. unfold c, s. simpl. field.
  - intros th t1 L0 q0 B0 ->. replace (L * (q * B / (L * theta) * (c * s - INR K * x))) with (q * B / theta * (c * s - INR K * x)) by (field; lra).
    assert (z : 0 <= q * B / theta) by (apply Rmult_le_pos; [pos|now apply Rlt_le, Rinv_0_lt_compat]). apply Rle_trans with (q * B / theta * (701/1000 * theta ^ 3)); [apply Rmult_le_compat_l; auto|]. right. field. lra.
Qed.
(* 1.6: U has the entries s times random signs; gu and gv bound the factors, res is what (71) adds to (69) *)
Lemma bernoulli x n : 0 <= x <= 1 -> (1 - x) ^ n <= / (1 + x * INR n).
Proof.
  intros [x0 x1]. assert (p : forall k, 0 < 1 + x * INR k) by (intros k; assert (q := pos_INR k); assert (0 <= x * INR k) by pos; lra).
  assert (h : (1 - x) ^ n * (1 + x * INR n) <= 1).
  { induction n as [|n IH]; [simpl; lra|]. assert (y : 0 <= (1 - x) ^ n) by (apply pow_le; lra). assert (k0 := pos_INR n).
    eapply Rle_trans; [|exact IH]. rewrite S_INR. cbn [pow]. replace ((1 - x) * (1 - x) ^ n * (1 + x * (INR n + 1))) with ((1 - x) ^ n * ((1 - x) * (1 + x * (INR n + 1)))) by ring.
    apply Rmult_le_compat_l; auto. assert (0 <= x * x * (INR n + 1)) by (apply Rmult_le_pos; [pos|lra]). lra. }
  apply (Rmult_le_reg_r (1 + x * INR n)); [apply p|]. rewrite Rinv_l; [exact h|]. specialize (p n). lra.
Qed.
Lemma step_1_6 {D : Dim} {O} (E : law O) (U : O -> vec) s eta w0 : (forall o, nrm2 (U o) = INR dim * s ^ 2) -> (forall a b, E (fun o => dot a (U o) * dot b (U o)) = s ^ 2 * dot a b) ->
  let move w o := (w - eta *: (dot (U o) w *: U o))%V in let delta := 2 * eta * s ^ 2 - INR dim * eta ^ 2 * s ^ 4 in
  (forall w, E (fun o => nrm2 (move w o)) = (1 - delta) * nrm2 w) /\
  (forall T, (0 < T)%nat -> delta <> 0 -> / INR T * sum T (fun t => Eit (fun _ => E) move t nrm2 w0) = (1 - (1 - delta) ^ T) / (delta * INR T) * nrm2 w0) /\
  (forall T, 0 <= delta <= 1 -> (1 - delta) ^ T <= 1 / (1 + delta * INR T)) /\
  forall T, INR dim = 64 -> s = / 2 ^ 6 -> let psi2 := INR dim * s ^ 2 in let ku := 16 * psi2 in let kv := 1/16 in
    eta = (psi2 / 2) ^ 2 -> INR T = 2 ^ 28 -> nrm2 w0 = (1/2) ^ 2 -> let G2 := nrm2 w0 in
    let gu := 2 * psi2 + 2 * eta ^ 2 * G2 * kv in let gv := 2 * eta ^ 2 * G2 * ku in
    let lam := eta ^ 2 * G2 * (12 * (gu ^ 2 + gv ^ 2 + eta ^ 2 * G2 * gu * gv)) in
    let res := eta / 2 * lam + 2 * eta ^ 3 * G2 * (gu + gv) + eta ^ 2 * G2 ^ 2 * gu * gv / 2 + 3/2 * eta ^ 2 * G2 * (gu ^ 2 + gv ^ 2 + eta ^ 2 * G2 * gu * gv) in
    ku = 1/4 /\ eta = / 2 ^ 14 /\ 64 * ku * kv = 1 /\ ku + kv + 1/2 + sqrt (ku * kv) <= 1 /\ 1/2 * G2 = 1/8 /\ sqrt eta ^ 3 = / 2 ^ 21 /\
    141/10 * (2 / (sqrt eta ^ 3 * INR T) * (1/2 * G2) + 2 * res / sqrt eta ^ 3) < / INR T * sum T (fun t => Eit (fun _ => E) move t nrm2 w0).
Proof.
  intros len second move delta.
  assert (one : forall w, E (fun o => nrm2 (move w o)) = (1 - delta) * nrm2 w).
  { intros w. rewrite (ex_ext E _ (fun o => nrm2 w + (eta ^ 2 * (INR dim * s ^ 2) - 2 * eta) * (dot w (U o) * dot w (U o)))).
    - rewrite ex_plus, ex_const, ex_scal, second. unfold delta. fold (nrm2 w). ring.
    - intros o. unfold move. rewrite nrm2_sub, !nrm2_scal, len, !dot_scalr, (dotC (U o) w). ring. }
  assert (it : forall t w, Eit (fun _ => E) move t nrm2 w = (1 - delta) ^ t * nrm2 w).
  { induction t; intros w; [simpl; ring|]. cbn [Eit]. rewrite (ex_ext E _ (fun o => (1 - delta) ^ t * nrm2 (move w o))) by (intros; apply IHt). rewrite ex_scal, one. simpl. ring. }
  assert (avg : forall T, (0 < T)%nat -> delta <> 0 -> / INR T * sum T (fun t => Eit (fun _ => E) move t nrm2 w0) = (1 - (1 - delta) ^ T) / (delta * INR T) * nrm2 w0).
  { intros T T0%lt_0_INR d0. rewrite (sum_ext T _ (fun t => nrm2 w0 * (1 - delta) ^ t)) by (intros; rewrite it; ring). rewrite sum_scal.
    assert (g : delta * sum T (fun t => (1 - delta) ^ t) = 1 - (1 - delta) ^ T) by (clear; induction T; [simpl; ring|]; rewrite sum_S, Rmult_plus_distr_l, IHT; simpl; ring).
    set (Su := sum T (fun t => (1 - delta) ^ t)) in *. replace (1 - (1 - delta) ^ T) with (delta * Su). field. split; lra. }
  split; [exact one|]. split; [exact avg|]. split; [intros T hd; unfold Rdiv; rewrite Rmult_1_l; now apply bernoulli|].
  intros T d64 hs psi2 ku kv he hT hw G2 gu gv lam res.
  assert (p2 : psi2 = / 2 ^ 6) by (unfold psi2; rewrite d64, hs; field). assert (e : eta = / 2 ^ 14) by (rewrite he, p2; field). assert (k4 : ku = 1/4) by (unfold ku; rewrite p2; field).
  assert (g2 : G2 = 1/4) by (unfold G2; rewrite hw; field). assert (se : sqrt eta = / 2 ^ 7) by (rewrite e; replace (/ 2 ^ 14) with (/ 2 ^ 7 * / 2 ^ 7) by field; apply sqrt_square; lra).
  assert (s3 : sqrt eta ^ 3 = / 2 ^ 21) by (rewrite se; field).
  split; [exact k4|]. split; [exact e|]. split; [rewrite k4; unfold kv; field|]. split; [rewrite k4; unfold kv; replace (1/4 * (1/16)) with (1/8 * (1/8)) by field; rewrite sqrt_square; lra|]. split; [rewrite g2; field|]. split; [exact s3|].
  assert (de : delta = / 2 ^ 25 - / 2 ^ 46) by (unfold delta; rewrite d64, e, hs; field).
  assert (T1 : (0 < T)%nat) by (apply INR_lt; rewrite hT; simpl; lra). rewrite avg by (try exact T1; rewrite de; lra).
  assert (b := bernoulli delta T ltac:(rewrite de; lra)).
  assert (dT : delta * INR T = 8 - / 2 ^ 18) by (rewrite de, hT; field). rewrite dT in *. rewrite s3, hT. fold G2. 
  apply Rlt_le_trans with ((1 - / (1 + (8 - / 2 ^ 18))) / (8 - / 2 ^ 18) * G2).
  - unfold res, lam, gu, gv. rewrite k4. unfold kv. rewrite e, p2, g2. lra.
  - rewrite g2. apply Rmult_le_compat_r; [lra|]. unfold Rdiv. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|]. lra.
Qed.
(* ---- 9.3: factors that stay for tau rounds. M maps a gradient to the factors' gradients, Mt the factors to the model: R = Mt M ---- *)
Definition push {A B} (E : law A) (phi : A -> B) : law B.
Proof.
  refine {| ex f := E (fun a => f (phi a)) |}; intros; [apply (ex_plus E (fun a => f (phi a)))|apply (ex_scal E)|apply (ex_one E)|apply (ex_le E); intros; apply H].
Defined.
Lemma path_push {A B} (ker : list A -> law A) (ker' : list B -> law B) (phi : A -> B) : (forall h f, ker' (map phi h) f = ker h (fun a => f (phi a))) ->
  forall k f, path ker' k f = path ker k (fun h => f (map phi h)).
Proof. intros e k. induction k; intros f; [reflexivity|]. rewrite !path_S, IHk. apply ex_ext; intros h. rewrite e. reflexivity. Qed.
Section EitLaw.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Definition played (t : nat) (s : X) : law X.
Proof.
  refine {| ex f := Eit kernel step t f s |}; revert s; induction t; intros s; cbn [Eit]; intros; auto.
  - rewrite <- ex_plus. apply ex_ext; intros; apply IHt.
  - rewrite <- ex_scal. apply ex_ext; intros; apply IHt.
  - rewrite (ex_ext (kernel s) _ (fun _ => 1)) by (intros; apply IHt). apply ex_one.
  - apply ex_le; intros; now apply IHt.
Defined.
End EitLaw.
Section Interval.
Context {D : Dim}.
Variable df : nat.                         (* the factors' entries *)
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variables M Mt : O -> vec -> vec.
Variables gam Lam L eta fstar zeta p nu : R.
Variable f : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variable ker : vec -> O -> list noise -> law noise.
Definition Rf o u : vec := Mt o (M o u).
Fixpoint rloc w o i (h : list noise) : vec := match h with nil => w | cons z h => (rloc w o i h - eta *: Rf o (g i (rloc w o i h) + z i))%V end.
Definition rnext w (x : O * list noise) : vec := meanV N (fun i => rloc w (fst x) i (snd x)).
Definition interval (tau : nat) (w : vec) : law vec.
Proof.
  set (E := fun o => played (fun w => path (ker w o) K) (fun w h => rnext w (o, h)) tau w).
  refine {| ex F := draw (fun o => E o F) |}; intros.
  - rewrite <- ex_plus. apply ex_ext; intros; apply ex_plus.
  - rewrite <- ex_scal. apply ex_ext; intros; apply ex_scal.
  - rewrite (ex_ext draw _ (fun _ => 1)) by (intros; apply ex_one). apply ex_one.
  - apply ex_le; intros; now apply ex_le.
Defined.
Let kap := kappa gam Lam.
Let al := alpha gam eta.
Let q_ := q K gam Lam L eta.
Let u1 := u_ K.
Hypothesis M_add : forall o u v, M o (u + v)%V = (M o u + M o v)%V.
Hypothesis M_scal : forall o a u, M o (a *: u)%V = (a *: M o u)%V.
Hypothesis Mt_add : forall o u v, Mt o (u + v)%V = (Mt o u + Mt o v)%V.
Hypothesis Mt_scal : forall o a u, Mt o (a *: u)%V = (a *: Mt o u)%V.
Hypothesis adj : forall o u y, @dot df (M o u) y = dot u (Mt o y).
Hypothesis R_le : forall o u, dot u (Rf o u) <= Lam * nrm2 u.
Hypothesis ER : forall a b, draw (fun o => dot a (Rf o b)) = gam * dot a b.
Hypothesis gam0 : 0 < gam.
Hypothesis L0 : 0 < L.
Hypothesis eta0 : 0 < eta.
Hypothesis grad : forall i, (i < N)%nat -> gradient (f i) (g i).
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis bounded : forall x, fstar <= Favg N f x.
Hypothesis spread : forall x, meanR N (fun i => nrm2 (g i x - G N g x)) <= zeta ^ 2.
Hypothesis noise_mean0 : forall w o h i u, (i < N)%nat -> ker w o h (fun z => dot u (z i)) = 0.
Hypothesis noise_var : forall w k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun o => path (ker w o) k (fun h => ker w o h (fun z => dot (z i) (Rf o (z i))))) <= gam * p * nu ^ 2.
Hypothesis noise_any : forall w o h i, (i < N)%nat -> ker w o h (fun z => nrm2 (z i)) <= nu ^ 2.
Hypothesis noise_clients : forall w o h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker w o h (fun z => dot (z i) (Rf o (z j))) = 0.
Hypothesis p0 : 0 <= p.
Hypothesis kap1 : 1 <= kap.
Hypothesis steps : q_ <= 1/4.
Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let LamE : Lam = kap * gam. Proof. unfold kap, kappa. field. lra. Qed.
Let Lam0 : 0 < Lam. Proof. rewrite LamE. apply Rmult_lt_0_compat; lra. Qed.
Let al0 : 0 < al. Proof. unfold al, alpha. now apply Rmult_lt_0_compat. Qed.
Lemma M_len o u : @nrm2 df (M o u) = dot u (Rf o u). Proof. apply adj. Qed.
Lemma Rf_map o : mapL Lam (Rf o).
Proof.
  split; intros; unfold Rf; [now rewrite M_add, Mt_add|now rewrite M_scal, Mt_scal|rewrite <- (adj o u), (@dotC df), adj; rewrite dotC; reflexivity| |apply R_le]. fold (Rf o u). rewrite <- M_len. apply (@nrm2_ge0 df).
Qed.
Lemma Mt_len o y : nrm2 (Mt o y) <= Lam * @nrm2 df y.
Proof.
  assert (a := @cauchy_schwarz df (M o (Mt o y)) y). rewrite adj in a. fold (nrm2 (Mt o y)) in a. assert (b := R_le o (Mt o y)). rewrite <- M_len in b. assert (n0 := nrm2_ge0 (Mt o y)). assert (y0 := @nrm2_ge0 df y).
  destruct (Req_dec (nrm2 (Mt o y)) 0) as [z|z]; [rewrite z; apply Rmult_le_pos; lra|]. apply (Rmult_le_reg_l (nrm2 (Mt o y))); [lra|]. apply (Rmult_le_compat_r (@nrm2 df y)) in b; [|exact y0]. simpl in a. lra.
Qed.
Lemma rlocE w o i h : rloc w o i h = (w - eta *: Rf o (gsum g rloc w o i h) + v0)%V.
Proof.
  assert (ro := Rf_map o). unfold gsum. induction h as [|z h IH]; [cbn [rloc pvsum]; rewrite (l_0 Lam _ ro); vring|]. cbn [rloc pvsum]. rewrite (l_add _ _ ro (pvsum _ h)). rewrite IH at 1. vring.
Qed.
Let next1 := forall w o h, rnext w (o, h) = (w - eta *: Rf o (meanV N (fun i => gsum g rloc w o i h)) + v0)%V.
Lemma rnextE : next1.
Proof.
  intros w o h. assert (ro := Rf_map o). unfold rnext. cbn [fst snd]. unfold meanV. rewrite (vsum_ext N _ (fun i => w + (- eta) *: Rf o (gsum g rloc w o i h))%V) by (intros; rewrite rlocE at 1; vring).
  rewrite vsum_plus, vsum_const, vsum_scal, (l_scal _ _ ro), (l_vsum _ _ ro). vfield. lra.
Qed.
Definition X1 : R := u1 * q_ ^ 2 * (22/10 * zeta ^ 2 + 33/10 * (p * nu ^ 2 / INR K)) + 32/10 * (L * al * kap * p * nu ^ 2 / INR N).
Definition Xstay : R := u1 * q_ ^ 2 * (22/10 * (kap * zeta ^ 2) + 33/10 * (kap * nu ^ 2 / INR K)) + 32/10 * (L * al * kap * kap * nu ^ 2 / INR N).
Lemma first_round w : draw (fun o => path (ker w o) K (fun h => Favg N f (rnext w (o, h)))) <= Favg N f w - 2/5 * (INR K * al) * (nrm2 (G N g w) - X1).
Proof.
  assert (z0 : nrm2 v0 <= 0) by (rewrite nrm2_0; lra).
  assert (h := proj2 (round_bound N K N1 K1 draw Rf gam Lam L eta zeta p nu 0 0 0 f g ker rloc rnext (fun _ _ _ _ => v0) (fun _ _ _ => v0) rlocE (fun w o h _ => rnextE w o h) (fun _ _ _ => eq_refl)
    (fun _ _ _ _ _ => z0) (fun _ _ _ _ => z0) (Rle_refl 0) ltac:(lra) (Rle_refl 0) (Rle_refl 0) Rf_map ER gam0 L0 eta0 grad lip spread noise_mean0 noise_var noise_clients p0 kap1 steps w)).
  unfold round in h. cbn [bind ex] in h. eapply Rle_trans; [exact h|]. right. unfold X, X1, e8, al, u1, q_, kap. ring.
Qed.
(* a round whose factors are given, in the factors *)
Section Given.
Variable w : vec.
Variable o : O.
Definition enc (z : noise) : noise := fun k => if lt_dec k N then M o (z k) else z (k - N)%nat.
Definition dec (z : noise) : noise := fun i => z (N + i)%nat.
Lemma dec_enc z : dec (enc z) = z.
Proof. apply functional_extensionality; intros i. unfold dec, enc. destruct lt_dec; [lia|]. f_equal. lia. Qed.
Definition fy i y : R := f i (w + Mt o y)%V.
Definition gy i y : vec := M o (g i (w + Mt o y)%V).
Definition kery (_ : vec) (_ : unit) (h : list noise) : law noise := push (ker w o (map dec h)) enc.
Fixpoint yloc y (x : unit) i (h : list noise) : vec := match h with nil => y | cons z h => (yloc y x i h - eta *: (gy i (yloc y x i h) + z i))%V end.
Definition ynext y (x : unit * list noise) : vec := meanV N (fun i => yloc y (fst x) i (snd x)).
Lemma M_0 : M o v0 = v0. Proof. replace v0 with (0 *: v0)%V at 1 by vring. rewrite M_scal. vring. Qed.
Lemma Mt_0 : Mt o v0 = v0. Proof. replace v0 with (0 *: v0)%V at 1 by vring. rewrite Mt_scal. vring. Qed.
Lemma M_vsum n v : M o (vsum n v) = vsum n (fun i => M o (v i)).
Proof. induction n; [exact M_0|]. now rewrite !vsum_S, M_add, IHn. Qed.
Lemma Mt_vsum n v : Mt o (vsum n v) = vsum n (fun i => Mt o (v i)).
Proof. induction n; [exact Mt_0|]. now rewrite !vsum_S, Mt_add, IHn. Qed.
Lemma Gy y : G N gy y = M o (G N g (w + Mt o y)%V).
Proof. unfold G, meanV, gy. now rewrite M_scal, M_vsum. Qed.
Lemma same i h : (i < N)%nat -> rloc w o i h = (w + Mt o (yloc v0 tt i (map enc h)))%V.
Proof.
  intros hi. induction h as [|z h IH]; [cbn [rloc yloc map]; rewrite Mt_0; vring|]. cbn [rloc yloc map]. rewrite IH. unfold gy. set (y := yloc v0 tt i (map enc h)). unfold enc at 1. destruct lt_dec as [_|n]; [|contradiction].
  unfold Rf. rewrite !subE, Mt_add, !Mt_scal, <- M_add. vring.
Qed.
Lemma same_next h : rnext w (o, h) = (w + Mt o (ynext v0 (tt, map enc h)))%V.
Proof.
  unfold rnext, ynext. cbn [fst snd]. unfold meanV. rewrite (vsum_ext N _ (fun i => w + Mt o (yloc v0 tt i (map enc h)))%V) by (intros; now apply same). rewrite vsum_plus, vsum_const, Mt_scal, Mt_vsum. vfield. lra.
Qed.
Lemma given : path (ker w o) K (fun h => Favg N f (rnext w (o, h))) <= Favg N f w - 2/5 * (INR K * eta) * dot (G N g w) (Rf o (G N g w)) + 2/5 * (INR K * al) * Xstay.
Proof.
  assert (sl : sqrt Lam * sqrt Lam = Lam) by (apply sqrt_sqrt; lra). assert (ksq : forall a, (sqrt Lam * a) ^ 2 = Lam * a ^ 2) by (intros a; replace ((sqrt Lam * a) ^ 2) with (sqrt Lam * sqrt Lam * a ^ 2) by ring; now rewrite sl).
  assert (z0 : @nrm2 df v0 <= 0) by (rewrite (@nrm2_0 df); lra).
  assert (yE : forall y x i h, yloc y x i h = (y - eta *: gsum gy yloc y x i h + v0)%V).
  { intros y x i h. unfold gsum. induction h as [|z h IH]; [cbn [yloc pvsum]; vring|]. cbn [yloc pvsum]. rewrite IH at 1. vring. }
  assert (ynE : forall y x h, length h = K -> ynext y (x, h) = (y - eta *: meanV N (fun i => gsum gy yloc y x i h) + v0)%V).
  { intros y x h _. unfold ynext, meanV. cbn [fst snd]. rewrite (vsum_ext N _ (fun i => y + (- eta) *: gsum gy yloc y x i h)%V) by (intros; rewrite yE at 1; vring). rewrite vsum_plus, vsum_const, vsum_scal. vfield. lra. }
  assert (idm : unit -> @mapL df 1 (fun v => v)) by (intros _; split; intros; auto; try apply (@nrm2_ge0 df); unfold nrm2; lra).
  assert (gr : forall i, (i < N)%nat -> @gradient df (fy i) (gy i)).
  { intros i hi y s. unfold fy, gy. rewrite adj. assert (h := grad i hi (w + Mt o y)%V (Mt o s)). intros eps he. destruct (h eps he) as [del hd]. exists del. intros t t0 t1. specialize (hd t t0 t1). cbv beta in hd. rewrite !Mt_add, !Mt_scal.
    replace (w + (Mt o y + (0 + t) *: Mt o s))%V with (w + Mt o y + (0 + t) *: Mt o s)%V by vring. replace (w + (Mt o y + 0 *: Mt o s))%V with (w + Mt o y + 0 *: Mt o s)%V by vring. exact hd. }
  assert (lp : forall i, (i < N)%nat -> @lipschitz df (L * Lam) (gy i)).
  { intros i hi y y'. unfold gy. set (a := g i (w + Mt o y)%V). set (b := g i (w + Mt o y')%V). replace (M o a - M o b)%V with (M o (a - b)%V) by (rewrite !subE, M_add, M_scal; reflexivity). rewrite M_len. eapply Rle_trans; [apply R_le|].
    assert (q1 := lip i hi (w + Mt o y)%V (w + Mt o y')%V). fold a b in q1. replace (w + Mt o y - (w + Mt o y'))%V with (Mt o (y - y')%V) in q1 by (rewrite !subE, Mt_add, Mt_scal; vring). assert (q2 := Mt_len o (y - y')%V). apply (Rmult_le_compat_l (L * L)) in q2; [|apply Rmult_le_pos; lra].
    apply Rle_trans with (Lam * (L * L * (Lam * @nrm2 df (y - y')%V))); [apply Rmult_le_compat_l; lra|right; ring]. }
  assert (sp : forall y, meanR N (fun i => @nrm2 df (gy i y - G N gy y)) <= (sqrt Lam * zeta) ^ 2).
  { intros y. rewrite ksq. eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply (spread (w + Mt o y)%V)]]. unfold meanR. rewrite (Rmult_comm Lam), Rmult_assoc. apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat, N0|]. rewrite Rmult_comm, <- sum_scal. apply sum_le; intros i _. rewrite Gy. unfold gy.
    set (a := g i (w + Mt o y)%V). set (b := G N g (w + Mt o y)%V). replace (M o a - M o b)%V with (M o (a - b)%V) by (rewrite !subE, M_add, M_scal; reflexivity). rewrite M_len. apply R_le. }
  assert (here : forall (z : noise) i, (i < N)%nat -> enc z i = M o (z i)) by (intros z i hi; unfold enc; destruct lt_dec; [reflexivity|contradiction]).
  assert (m0 : forall (y : vec) (x : unit) h i u, (i < N)%nat -> kery y x h (fun z => @dot df u (z i)) = 0).
  { intros y x h i u hi. unfold kery. cbn [push ex]. rewrite (ex_ext _ _ (fun z => dot (Mt o u) (z i))); [now apply noise_mean0|]. intros z. rewrite (here z i hi), (@dotC df), adj. apply dotC. }
  assert (vr : forall (y : vec) k i, (k < K)%nat -> (i < N)%nat -> dirac tt (fun x => path (kery y x) k (fun h => kery y x h (fun z => @dot df (z i) (z i)))) <= 1 * 1 * (sqrt Lam * nu) ^ 2).
  { intros y k i _ hi. cbn [dirac ex]. rewrite ksq, !Rmult_1_l. rewrite <- (ex_const (path (kery y tt) k) (Lam * nu ^ 2)). apply ex_le; intros h. unfold kery. cbn [push ex]. apply Rle_trans with (ker w o (map dec h) (fun z => Lam * nrm2 (z i))).
    - apply ex_le; intros z. rewrite (here z i hi). fold (@nrm2 df (M o (z i))). rewrite M_len. apply R_le.
    - rewrite ex_scal. apply Rmult_le_compat_l; [lra|now apply noise_any]. }
  assert (cl : forall (y : vec) (x : unit) h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> kery y x h (fun z => @dot df (z i) (z j)) = 0).
  { intros y x h i j hi hj ne. unfold kery. cbn [push ex]. rewrite (ex_ext _ _ (fun z => dot (z i) (Rf o (z j)))); [now apply noise_clients|]. intros z. rewrite (here z i hi), (here z j hj), adj. reflexivity. }
  assert (qE : q K 1 1 (L * Lam) eta = q_) by (unfold q, alpha, kappa, q_, q, alpha, kappa; field; lra).
  assert (h := proj2 (@round_bound df N K N1 K1 unit (dirac tt) (fun _ v => v) 1 1 (L * Lam) eta (sqrt Lam * zeta) 1 (sqrt Lam * nu) 0 0 0 fy gy kery yloc ynext (fun _ _ _ _ => v0) (fun _ _ _ => v0) yE ynE (fun _ _ _ => eq_refl)
    (fun _ _ _ _ _ => z0) (fun _ _ _ _ => z0) (Rle_refl 0) ltac:(lra) (Rle_refl 0) (Rle_refl 0) idm ltac:(intros; cbn [dirac ex]; ring) Rlt_0_1 ltac:(now apply Rmult_lt_0_compat) eta0 gr lp sp m0 vr cl Rle_0_1 ltac:(unfold kappa; lra) ltac:(rewrite qE; exact steps) v0)).
  unfold round in h. cbn [bind ex dirac] in h. rewrite (path_push (ker w o) (kery v0 tt) enc) in h.
  2: { intros hh F. unfold kery. cbn [push ex]. rewrite map_map. rewrite (map_ext (fun z => dec (enc z)) (fun z => z)) by apply dec_enc. rewrite map_id. reflexivity. }
  assert (F1 : forall y, Favg N fy y = Favg N f (w + Mt o y)%V) by reflexivity.
  rewrite (ex_ext (path (ker w o) K) _ (fun h => Favg N f (rnext w (o, h)))) in h by (intros hh; rewrite F1, same_next; reflexivity).
  rewrite F1, Mt_0 in h. replace (w + v0)%V with w in h by vring. eapply Rle_trans; [exact h|]. right. rewrite Gy, Mt_0, M_len. replace (w + v0)%V with w by vring.
  unfold X, e8. rewrite qE, !ksq. unfold Xstay, al, alpha, kappa, u1. rewrite LamE. fold kap. field. repeat split; lra.
Qed.
End Given.
Lemma stays o t : forall w, Eit (fun w => path (ker w o) K) (fun w h => rnext w (o, h)) t (Favg N f) w <= Favg N f w + INR t * (2/5 * (INR K * al) * Xstay).
Proof.
  induction t; intros w; [simpl; lra|]. cbn [Eit]. set (c := 2/5 * (INR K * al) * Xstay) in *. rewrite S_INR. apply Rle_trans with (path (ker w o) K (fun h => Favg N f (rnext w (o, h)) + INR t * c)); [apply ex_le; intros; apply IHt|].
  rewrite ex_plus, ex_const. assert (h := given w o). fold c in h. assert (r0 : 0 <= 2/5 * (INR K * eta) * dot (G N g w) (Rf o (G N g w))) by (rewrite <- M_len; assert (x := @nrm2_ge0 df (M o (G N g w))); assert (0 <= INR K * eta) by (apply Rmult_le_pos; lra); apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_9_3 tau w0 J : (0 < tau)%nat -> (0 < J)%nat ->
  (forall w o, path (ker w o) K (fun h => Favg N f (rnext w (o, h))) <= Favg N f w - 2/5 * (INR K * eta) * dot (G N g w) (Rf o (G N g w)) + 2/5 * (INR K * al) * Xstay) /\ (forall w o, - (2/5) * (INR K * eta) * dot (G N g w) (Rf o (G N g w)) <= 0) /\
  / INR J * sum J (fun j => Eit (interval tau) (fun _ w => w) j (fun w => nrm2 (G N g w)) w0) <= 5 * (Favg N f w0 - fstar) / (2 * INR K * al * INR J) + X1 + (INR tau - 1) * Xstay.
Proof.
  intros tau1 J0%lt_0_INR. split; [intros; apply given|]. split; [intros; rewrite <- M_len; assert (x := @nrm2_ge0 df (M o (G N g w))); assert (0 <= INR K * eta) by (apply Rmult_le_pos; lra); assert (0 <= INR K * eta * @nrm2 df (M o (G N g w))) by (now apply Rmult_le_pos); lra|].
  assert (Ka0 : 0 < INR K * al) by now apply Rmult_lt_0_compat. set (add := 2/5 * (INR K * al) * (X1 + (INR tau - 1) * Xstay)).
  assert (one : forall w, interval tau w (Favg N f) <= Favg N f w - 2/5 * (INR K * al) * nrm2 (G N g w) + add).
  { intros w. unfold interval. cbn [ex played]. destruct tau as [|t]; [lia|]. cbn [Eit]. unfold add. rewrite S_INR.
    apply Rle_trans with (draw (fun o => path (ker w o) K (fun h => Favg N f (rnext w (o, h))) + INR t * (2/5 * (INR K * al) * Xstay))).
    - apply ex_le; intros o. apply Rle_trans with (path (ker w o) K (fun h => Favg N f (rnext w (o, h)) + INR t * (2/5 * (INR K * al) * Xstay))); [apply ex_le; intros; apply stays|]. rewrite ex_plus, ex_const. lra.
    - rewrite ex_plus, ex_const. assert (h := first_round w). lra. }
  assert (h := telescope (interval tau) (fun _ w => w) (fun _ => True) (fun w => Favg N f w - fstar) (fun w => 2/5 * (INR K * al) * nrm2 (G N g w)) add (fun _ _ _ => I)).
  specialize (h (fun w _ => ltac:(rewrite (ex_ext (interval tau w) _ (fun x => Favg N f x + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := one w); change (interval tau w (fun x => Favg N f x)) with (interval tau w (Favg N f)); lra)) (fun w => ltac:(assert (b := bounded w); lra)) J w0 I).
  rewrite (sum_ext J _ (fun t => 2/5 * (INR K * al) * Eit (interval tau) (fun _ w => w) t (fun w => nrm2 (G N g w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 5 / (2 * (INR K * al) * INR J)) by (apply Rdiv_lt_0_compat; [lra|]; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (5 / (2 * (INR K * al) * INR J) * (2/5 * (INR K * al) * sum J (fun t => Eit (interval tau) (fun _ w => w) t (fun w => nrm2 (G N g w)) w0))) with (/ INR J * sum J (fun t => Eit (interval tau) (fun _ w => w) t (fun w => nrm2 (G N g w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. unfold add. field. lra.
Qed.
End Interval.
(* ---- 9.1: clients that are alike, without noise; all have the same model. The hypotheses on its way and on what it misses are 7.1 and 7.4 ---- *)
Lemma norm_add {D : Dim} (u v : vec) a b : 0 <= a -> 0 <= b -> nrm2 u <= a ^ 2 -> nrm2 v <= b ^ 2 -> nrm2 (u + v) <= (a + b) ^ 2.
Proof.
  intros a0 b0 hu hv. assert (cs := cauchy_schwarz u v). assert (u0 := nrm2_ge0 u). assert (v0_ := nrm2_ge0 v). assert (m := Rmult_le_compat _ _ _ _ u0 v0_ hu hv).
  assert (d : dot u v <= a * b) by (apply Rsqr_incr_0_var; [|now apply Rmult_le_pos]; unfold Rsqr; simpl in *; lra). rewrite nrm2_add. lra.
Qed.
Section Alike.
Context {D : Dim}.
Variable K : nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variable Rm : O -> vec -> vec.
Variables gam Lam L eta fstar : R.
Variable f : vec -> R.
Variable g : vec -> vec.
Variable loc : vec -> O -> nat -> vec.
Definition missed w o k : vec := (loc w o k - (w - eta *: Rm o (vsum k (fun j => g (loc w o j)))))%V.
Let kap := kappa gam Lam.
Let al := alpha gam eta.
Let q_ := q K gam Lam L eta.
Let ck x k := ((1 + x) ^ k + (1 - x) ^ k) / 2.
Let sk x k := ((1 + x) ^ k - (1 - x) ^ k) / 2.
Let n w := sqrt (nrm2 (g w)).
Hypothesis loc_0 : forall w o, loc w o 0 = w.
Hypothesis way : forall w o B k, 0 <= B -> (k <= K)%nat -> (forall j, (j < k)%nat -> nrm2 (g (loc w o j)) <= B ^ 2) -> nrm2 (loc w o k - w) <= (Lam * (ck (eta * B) k * sk (eta * B) k)) ^ 2.
Hypothesis misses : forall w o B k, 0 <= B -> eta * INR K * B <= 1/2 -> (k <= K)%nat -> (forall j, (j < K)%nat -> nrm2 (g (loc w o j)) <= B ^ 2) -> L ^ 2 * nrm2 (missed w o k) <= (701/1000 * q_ * (eta * INR K * B) ^ 2 * B) ^ 2.
Hypothesis Rmap : forall o, mapL Lam (Rm o).
Hypothesis ER : forall a b, draw (fun o => dot a (Rm o b)) = gam * dot a b.
Hypothesis gam0 : 0 < gam.
Hypothesis L0 : 0 < L.
Hypothesis eta0 : 0 < eta.
Hypothesis grad : gradient f g.
Hypothesis lip : lipschitz L g.
Hypothesis bounded : forall x, fstar <= f x.
Hypothesis kap1 : 1 <= kap.
Hypothesis steps : q_ <= 1/4.
(* the models that a run can reach *)
Variable reached : vec -> Prop.
Hypothesis reach : forall w o, reached w -> reached (loc w o K).
Hypothesis alike_step : forall w, reached w -> eta * INR K * n w <= 1 / (5 * sqrt kap).
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let KK1 : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Let Lam0 : 0 < Lam. Proof. assert (e : Lam = kap * gam) by (unfold kap, kappa; field; lra). rewrite e. apply Rmult_lt_0_compat; lra. Qed.
Let qE : q_ = INR K * L * eta * Lam. Proof. unfold q_, q, alpha, kappa. field. lra. Qed.
Let q0 : 0 < q_. Proof. rewrite qE. repeat apply Rmult_lt_0_compat; auto. Qed.
Let nn w : 0 <= n w /\ n w ^ 2 = nrm2 (g w). Proof. split; [apply sqrt_pos|]. unfold n. replace (sqrt (nrm2 (g w)) ^ 2) with (sqrt (nrm2 (g w)) * sqrt (nrm2 (g w))) by ring. apply sqrt_sqrt, nrm2_ge0. Qed.
Lemma way_most x k : 0 <= x -> (k <= K)%nat -> let theta := INR K * x in theta <= 1/2 -> 0 <= ck x k * sk x k <= theta + 701/1000 * theta ^ 3 /\ theta + 701/1000 * theta ^ 3 <= 11753/10000 * theta.
Proof.
  intros x0 hk theta th. assert (t0 : 0 <= theta) by (unfold theta; apply Rmult_le_pos; lra). assert (t2 : theta ^ 2 <= 1/4) by (replace (1/4) with ((1/2) ^ 2) by field; apply pow_incr; lra).
  split; [|assert (m := Rmult_le_compat_l theta _ _ t0 t2); lra].
  destruct k as [|k]; [unfold ck, sk; simpl; assert (0 <= theta * (theta * (theta * 1))) by pos; split; lra|]. set (k' := S k) in *. assert (kx : INR k' * x <= theta) by (unfold theta; apply Rmult_le_compat_r; [auto|now apply le_INR]).
  assert (kx0 : 0 <= INR k' * x) by (apply Rmult_le_pos; [apply pos_INR|auto]). split.
  - assert (x1 : x <= 1) by (assert (1 * x <= INR K * x) by (apply Rmult_le_compat_r; lra); unfold theta in th; lra). assert (a : (1 - x) ^ k' <= (1 + x) ^ k') by (apply pow_incr; lra). assert (b : 0 <= (1 - x) ^ k') by (apply pow_le; lra). unfold ck, sk. apply Rmult_le_pos; lra.
  - destruct (step_7_4 x 0 0 0 0 k' ltac:(unfold k'; lia) x0) as [_ [h _]]. specialize (h ltac:(lra)). assert (p3 := pow_incr _ _ 3 (conj kx0 kx)). fold (ck x k') (sk x k') in h. lra.
Qed.
Lemma stays_below w o k : reached w -> (k < K)%nat -> nrm2 (g (loc w o k)) <= ((1 + 11753/10000 * (16/10) * q_) * n w) ^ 2 /\ (1 + 11753/10000 * (16/10) * q_) * n w <= 16/10 * n w.
Proof.
  intros hw hk. destruct (nn w) as [n0 n2]. set (B := 16/10 * n w). assert (B0 : 0 <= B) by (unfold B; lra). assert (few : (1 + 11753/10000 * (16/10) * q_) * n w <= B) by (unfold B; apply Rmult_le_compat_r; lra). split; [|exact few].
  assert (sk1 : 1 <= sqrt kap) by (rewrite <- sqrt_1; now apply sqrt_le_1_alt). assert (al_ := alike_step w hw).
  assert (st : 1 / (5 * sqrt kap) <= 1/5) by (unfold Rdiv; rewrite !Rmult_1_l; apply Rinv_le_contravar; lra). set (x := eta * B). assert (x0 : 0 <= x) by (apply Rmult_le_pos; lra). assert (th : INR K * x <= 1/2) by (unfold x, B; lra).
  induction k as [k IH] using (well_founded_induction lt_wf).
  assert (before : forall j, (j < k)%nat -> nrm2 (g (loc w o j)) <= B ^ 2) by (intros j hj; eapply Rle_trans; [apply (IH j hj); lia|]; apply pow_incr; split; [apply Rmult_le_pos; lra|exact few]).
  assert (h := way w o B k B0 ltac:(lia) before). fold x in h.
  destruct (way_most x k x0 ltac:(lia) th) as [[p1 p2] p3]. assert (d : nrm2 (g (loc w o k) - g w) <= (11753/10000 * (16/10) * q_ * n w) ^ 2).
  { eapply Rle_trans; [apply lip|]. assert (le : Lam * (ck x k * sk x k) <= Lam * (11753/10000 * (INR K * x))) by (apply Rmult_le_compat_l; lra). assert (le2 : (Lam * (ck x k * sk x k)) ^ 2 <= (Lam * (11753/10000 * (INR K * x))) ^ 2) by (apply pow_incr; split; [apply Rmult_le_pos; lra|auto]).
    apply Rle_trans with (L * L * (Lam * (11753/10000 * (INR K * x))) ^ 2); [apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|lra]|]. right. rewrite qE. unfold x, B. ring. }
  replace (g (loc w o k)) with (g w + (g (loc w o k) - g w))%V by vring. eapply Rle_trans; [apply (norm_add _ _ (n w) (11753/10000 * (16/10) * q_ * n w)); auto; [apply Rmult_le_pos; lra|rewrite n2; lra]|]. right. ring.
Qed.
(* the section above, with one client, no noise, and the error of w *)
Section At.
Variable w : vec.
Hypothesis hw : reached w.
Let B := 16/10 * n w.
Let theta := eta * INR K * B.
Fixpoint sums o i v (h : list noise) : vec := match h with nil => v0 | cons z h => (sums o i v h + (g (v - eta *: Rm o (sums o i v h) + missed w o (length h)) + z i))%V end.
Definition aloc v o i h : vec := (v - eta *: Rm o (sums o i v h) + missed w o (length h))%V.
Lemma sums_gsum o i v h : sums o i v h = gsum (fun _ => g) aloc v o i h.
Proof. unfold gsum. induction h as [|z h IH]; [reflexivity|]. cbn [sums pvsum]. rewrite <- IH. reflexivity. Qed.
Definition anext v (x : O * list noise) : vec := (v - eta *: Rm (fst x) (meanV 1 (fun i => gsum (fun _ => g) aloc v (fst x) i (snd x))) + missed w (fst x) (length (snd x)))%V.
Lemma quiet o k : sums o 0 w (repeat (fun _ => v0) k) = vsum k (fun j => g (loc w o j)).
Proof.
  induction k; [reflexivity|]. cbn [repeat sums]. rewrite IHk, repeat_length, vsum_S. replace (w - eta *: Rm o (vsum k (fun j => g (loc w o j))) + missed w o k)%V with (loc w o k) by (unfold missed; vring). vring.
Qed.
Lemma path_quiet k (F : list noise -> R) : path (fun _ => dirac (fun _ => v0)) k F = F (repeat (fun _ => v0) k).
Proof. revert F. induction k; intros F; [reflexivity|]. rewrite path_S, IHk. reflexivity. Qed.
Lemma alike_round : draw (fun o => f (loc w o K)) <= f w + INR K * al / 2 * (- (4/5) * nrm2 (g w) + 625/100 * (kap * theta ^ 2 * B) ^ 2) /\ 625/100 * (kap * theta ^ 2 * B) ^ 2 <= 625/100 * (16/10) ^ 6 / 5 ^ 4 * nrm2 (g w) /\ 625/100 * (16/10) ^ 6 / 5 ^ 4 * nrm2 (g w) <= 168/1000 * nrm2 (g w) /\ theta <= 1/2.
Proof.
  destruct (nn w) as [n0 n2]. assert (B0 : 0 <= B) by (unfold B; lra). assert (al_ := alike_step w hw). assert (sk1 : 1 <= sqrt kap) by (rewrite <- sqrt_1; now apply sqrt_le_1_alt).
  assert (st : 1 / (5 * sqrt kap) <= 1/5) by (unfold Rdiv; rewrite !Rmult_1_l; apply Rinv_le_contravar; lra). assert (ek : 0 <= eta * INR K) by (apply Rmult_le_pos; lra). assert (th0 : 0 <= theta) by (unfold theta; now apply Rmult_le_pos). assert (th : theta <= 1/2) by (unfold theta, B; lra).
  set (eps2 := (701/1000 * q_ * theta ^ 2 * B / L) ^ 2). assert (es : L ^ 2 * eps2 = (701/1000 * q_ * theta ^ 2 * B) ^ 2) by (unfold eps2; field; lra).
  assert (below : forall o j, (j < K)%nat -> nrm2 (g (loc w o j)) <= B ^ 2).
  { intros o j hj. destruct (stays_below w o j hw hj) as [a b]. eapply Rle_trans; [exact a|]. apply pow_incr. split; [apply Rmult_le_pos; lra|exact b]. }
  assert (mis : forall o k, (k <= K)%nat -> nrm2 (missed w o k) <= eps2).
  { intros o k hk. assert (h := misses w o B k B0 th hk (below o)). fold theta in h. rewrite <- es in h. apply (Rmult_le_reg_l (L ^ 2)); [apply pow_lt; lra|exact h]. }
  assert (mis0 : forall o, missed w o 0 = v0) by (intros o; unfold missed; change (vsum 0 (fun j => g (loc w o j))) with v0; rewrite loc_0, (l_0 Lam _ (Rmap o)); vring).
  assert (F1 : forall x, Favg 1 (fun _ => f) x = f x) by (intros; unfold Favg, meanR; simpl; field). assert (G1 : forall x, G 1 (fun _ => g) x = g x) by (intros x; unfold G, meanV; apply functional_extensionality; intros j; unfold vscal, vsum; simpl; field).
  assert (zero : forall v (x : vec), dot v v0 = 0) by (intros; apply dot_0r).
  assert (h := proj1 (round_bound 1 K Nat.lt_0_1 K1 draw Rm gam Lam L eta 0 0 0 theta B eps2 (fun _ => f) (fun _ => g) (fun _ _ _ => dirac (fun _ => v0)) aloc anext (fun _ o _ h => missed w o (length h)) (fun _ o h => missed w o (length h))
    ltac:(intros; unfold aloc at 1; now rewrite sums_gsum) ltac:(intros; reflexivity) ltac:(intros; apply mis0) ltac:(intros; now apply mis) ltac:(intros v o h hl; apply mis; lia) ltac:(unfold eps2; apply pow2_ge_0)
    ltac:(rewrite es; unfold q_; assert (y := pow2_ge_0 (q_ * theta ^ 2 * B)); unfold q_ in y; lra) th0 B0 Rmap ER gam0 L0 eta0 ltac:(intros; exact grad) ltac:(intros; exact lip)
    ltac:(intros x; unfold meanR; rewrite (sum_ext 1 _ (fun _ => 0)); [simpl; lra|]; intros; rewrite G1; replace (g x - g x)%V with v0 by vring; apply nrm2_0)
    ltac:(intros; cbn [dirac ex]; apply dot_0r) ltac:(intros v k i _ _; rewrite (ex_ext draw _ (fun _ => 0)); [rewrite ex_const; lra|]; intros o; rewrite path_quiet; cbn [dirac ex]; apply dot_0l)
    ltac:(intros; cbn [dirac ex]; apply dot_0l) (Rle_refl 0) kap1 steps w)).
  unfold round in h. cbn [bind ex] in h. rewrite (ex_ext draw _ (fun o => f (loc w o K))) in h.
  2: { intros o. rewrite path_quiet, F1. f_equal. unfold anext. cbn [fst snd]. rewrite repeat_length. replace (meanV 1 (fun i => gsum (fun _ => g) aloc w o i (repeat (fun _ => v0) K))) with (vsum K (fun j => g (loc w o j))).
       - unfold missed. vring.
       - rewrite <- quiet, sums_gsum. unfold meanV. apply functional_extensionality; intros j. unfold vscal, vsum. simpl. field. }
  rewrite F1, G1 in h. split; [|split; [|split; [assert (y := nrm2_ge0 (g w)); lra|exact th]]].
  - eapply Rle_trans; [exact h|]. right. unfold al, kap. simpl INR. field. lra.
  - (* kappa (eta K |G|)^2 <= 1/25 *)
    set (y := eta * INR K * n w) in *. assert (y0 : 0 <= y) by (unfold y; now apply Rmult_le_pos). assert (ky : kap * y ^ 2 <= 1/25).
    { assert (p := pow_incr _ _ 2 (conj y0 al_)). apply (Rmult_le_compat_l kap) in p; [|lra]. eapply Rle_trans; [exact p|]. assert (ss : sqrt kap * sqrt kap = kap) by (apply sqrt_sqrt; lra). right. rewrite <- ss at 1. field. lra. }
    assert (e : kap * theta ^ 2 * B = (16/10) ^ 3 * (kap * y ^ 2) * n w) by (unfold theta, B, y; field). assert (b : 0 <= kap * theta ^ 2 * B <= (16/10) ^ 3 / 25 * n w).
    { rewrite e. assert (k0 : 0 <= kap * y ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]). split; [apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]|]. apply Rmult_le_compat_r; lra. }
    apply (pow_incr _ _ 2) in b. assert (e2 : ((16/10) ^ 3 / 25 * n w) ^ 2 = ((16/10) ^ 3 / 25) ^ 2 * nrm2 (g w)) by (rewrite Rpow_mult_distr, n2; reflexivity). rewrite e2 in b. lra.
Qed.
End At.
Lemma step_9_1 w0 T : (0 < T)%nat -> reached w0 ->
  (forall x k, 0 <= x -> (k <= K)%nat -> INR K * x <= 1/2 -> ck x k * sk x k <= INR K * x + 701/1000 * (INR K * x) ^ 3 /\ INR K * x + 701/1000 * (INR K * x) ^ 3 <= 11753/10000 * (INR K * x)) /\
  (forall w o k, reached w -> (k < K)%nat -> nrm2 (g (loc w o k)) <= ((1 + 11753/10000 * (16/10) * q_) * n w) ^ 2 /\ (1 + 11753/10000 * (16/10) * q_) * n w <= 16/10 * n w) /\
  (forall w, reached w -> let B := 16/10 * n w in let theta := eta * INR K * B in theta <= 1/2 /\ 625/100 * (kap * theta ^ 2 * B) ^ 2 <= 625/100 * (16/10) ^ 6 / 5 ^ 4 * nrm2 (g w) /\ 625/100 * (16/10) ^ 6 / 5 ^ 4 * nrm2 (g w) <= 168/1000 * nrm2 (g w)) /\
  / INR T * sum T (fun t => Eit (fun _ => draw) (fun w o => loc w o K) t (fun w => nrm2 (g w)) w0) <= 32/10 * (f w0 - fstar) / (INR K * al * INR T).
Proof.
  intros T0%lt_0_INR r0. split; [intros x k x0 hk th; destruct (way_most x k x0 hk th) as [[_ a] b]; auto|]. split; [intros; now apply stays_below|]. split; [intros w hw B theta; destruct (alike_round w hw) as [_ [a [b c]]]; auto|].
  assert (al0 : 0 < al) by (unfold al, alpha; now apply Rmult_lt_0_compat). assert (Ka0 : 0 < INR K * al) by now apply Rmult_lt_0_compat.
  assert (h := telescope (fun _ => draw) (fun w o => loc w o K) reached (fun w => f w - fstar) (fun w => 5/16 * (INR K * al) * nrm2 (g w)) 0 (fun s o hs => reach s o hs)).
  specialize (h (fun w hw => ltac:(rewrite (ex_ext draw _ (fun o => f (loc w o K) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; destruct (alike_round w hw) as [a [b [c _]]]; assert (y := nrm2_ge0 (g w)); assert (z := Rmult_le_compat_l (INR K * al / 2) _ _ ltac:(lra) (Rle_trans _ _ _ b c)); assert (y2 : 0 <= INR K * al * nrm2 (g w)) by (apply Rmult_le_pos; lra); lra)) (fun w => ltac:(assert (b := bounded w); lra)) T w0 r0).
  rewrite (sum_ext T _ (fun t => 5/16 * (INR K * al) * Eit (fun _ => draw) (fun w o => loc w o K) t (fun w => nrm2 (g w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 16 / (5 * (INR K * al) * INR T)) by (apply Rdiv_lt_0_compat; [lra|]; repeat apply Rmult_lt_0_compat; lra). apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (16 / (5 * (INR K * al) * INR T) * (5/16 * (INR K * al) * sum T (fun t => Eit (fun _ => draw) (fun w o => loc w o K) t (fun w => nrm2 (g w)) w0))) with (/ INR T * sum T (fun t => Eit (fun _ => draw) (fun w o => loc w o K) t (fun w => nrm2 (g w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
End Alike.
