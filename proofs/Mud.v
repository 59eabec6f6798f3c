(* docs/theory/mud.md: FedMUD and FedMUD+AAD; the covariance that AAD removes. Matrices are functions of two indices.
   step_8_4 is the page's [mud.8.4]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
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
Lemma drift_rec i k : (i < N)%nat -> (k < K)%nat -> EE k (fun o => e_ o i) <= 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR K * sum k (fun j => EE j (fun o => e_ o i)) + b_ i k.
Proof.
  intros hi hk. destruct k as [|k'].
  - unfold b_. cbn [sum INR]. rewrite !Rmult_0_r, Rplus_0_r. unfold EE, e_. rewrite (ex_ext draw _ (fun _ => 0)).
    + rewrite ex_const. simpl. lra.
    + intros o. cbn [path ex dirac]. rewrite locE, err_0. unfold gsum. cbn [pvsum]. rewrite (l_0 Lam _ (Rmap o)). replace (w - eta *: v0 + v0 - w)%V with v0 by vring. apply nrm2_0.
  - set (k := S k') in *. assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (k0 := pos_INR k). assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (a2 := pow2_ge_0 Lam). assert (k2 := pow2_ge_0 (INR k)).
    apply Rle_trans with (EE k (fun o h => 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR K * Se o i h + (4 * eta ^ 2 * Lam * INR k ^ 2 * dot (g i w) (Rm o (g i w))
      + (4 * eta ^ 2 * Lam * dot (Xi i h) (Rm o (Xi i h)) + 4 * eps2)))).
    + apply EE_le; intros o h hl. unfold e_. rewrite locE, gsumE, hl. assert (ro := Rmap o).
      replace (w - eta *: Rm o (Sa o i h + INR k *: g i w + Xi i h) + err w o i h - w)%V
        with ((- eta) *: Rm o (Sa o i h) + (- eta * INR k) *: Rm o (g i w) + (- eta) *: Rm o (Xi i h) + err w o i h)%V by (rewrite !(l_add _ _ ro), (l_scal _ _ ro); vring).
      eapply Rle_trans; [apply step_8_1|]. rewrite !nrm2_scal.
      assert (s1 := l_square _ _ ro (Sa o i h)). assert (s1' := l_le _ _ ro (Sa o i h)). assert (s2 := l_square _ _ ro (g i w)). assert (s3 := l_square _ _ ro (Xi i h)).
      assert (s4 := err_le w o i h ltac:(lia)). assert (s5 := Sa_le o i h hi). rewrite hl in s5. assert (S0 := Se_ge0 o i h).
      assert (t1 : nrm2 (Rm o (Sa o i h)) <= Lam ^ 2 * L ^ 2 * INR K * Se o i h).
      { eapply Rle_trans; [exact s1|]. apply (Rmult_le_compat_l Lam) in s1'; [|lra]. apply (Rmult_le_compat_l (Lam * Lam)) in s5; [|pos].
        assert (x : 0 <= Lam ^ 2 * (L ^ 2 * Se o i h)) by pos. apply (Rmult_le_compat_r _ _ _ x) in kK. lra. }
      apply (Rmult_le_compat_l (eta ^ 2)) in t1; auto. apply (Rmult_le_compat_l (eta ^ 2 * INR k ^ 2)) in s2; [|pos]. apply (Rmult_le_compat_l (eta ^ 2)) in s3; auto. lra.
    + rewrite !EE_plus, (EE_scal k _ (fun o h => Se o i h)), (EE_scal k _ (fun o h => dot (g i w) (Rm o (g i w)))), (EE_scal k _ (fun o h => dot (Xi i h) (Rm o (Xi i h)))), EE_const, (EE_map k (fun o => dot (g i w) (Rm o (g i w)))), ER.
      change (EE k (fun o h => Se o i h)) with (EE k (fun o h => psum (fun h (_ : noise) => e_ o i h) h)). rewrite (EE_psum k (fun o h => e_ o i h)). change (fun j => EE j (fun o h => e_ o i h)) with (fun j => EE j (fun o => e_ o i)).
      assert (x := Xi_form i k hi ltac:(lia)). apply (Rmult_le_compat_l (4 * eta ^ 2 * Lam)) in x; [|assert (y := Rlt_le _ _ Lam0); pos]. unfold b_. fold (nrm2 (g i w)). subst k. cbv beta iota. lra.
Qed.
Lemma sum_b i : sum K (b_ i) = 4 * eta ^ 2 * Lam * gam * nrm2 (g i w) * sum K (fun k => INR k ^ 2) + 4 * eta ^ 2 * Lam * gam * p * nu ^ 2 * sum K INR + 4 * eps2 * (INR K - 1).
Proof.
  unfold b_. rewrite !sum_plus, !sum_scal. f_equal. f_equal. clear - K1. destruct K as [|k]; [lia|]. clear K1. induction k; [simpl; ring|]. rewrite sum_S, IHk, !S_INR. ring.
Qed.
Lemma drift_client i : (i < N)%nat -> EE K (fun o => Se o i) <= 1285/1000 * (4/3 * eta ^ 2 * Lam * gam * nrm2 (g i w) * INR K ^ 2 * (INR K - 1) + 2 * eta ^ 2 * Lam * gam * p * nu ^ 2 * INR K * (INR K - 1) + 4 * eps2 * (INR K - 1)).
Proof.
  intros hi. change (EE K (fun o => Se o i)) with (EE K (fun o h => psum (fun h (_ : noise) => e_ o i h) h)). rewrite (EE_psum K (fun o h => e_ o i h)). assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (a2 := pow2_ge_0 Lam). assert (v2 := pow2_ge_0 nu). assert (n0 := nrm2_ge0 (g i w)).
  assert (la := Rlt_le _ _ Lam0). assert (ga := Rlt_le _ _ gam0). assert (k0 := Rlt_le _ _ K0).
  set (be := 4 * eta ^ 2 * Lam ^ 2 * L ^ 2 * INR K). assert (be0 : 0 <= be) by (unfold be; pos).
  assert (b0 : forall k, 0 <= b_ i k). { intros k. unfold b_. assert (x := pos_INR k). assert (y := pow2_ge_0 (INR k)). repeat apply Rplus_le_le_0_compat; try pos. destruct k; lra. }
  assert (h := Ssf.step_2_6 be (fun j => EE j (fun o => e_ o i)) (b_ i) K be0 b0 (fun k hk => drift_rec i k hi hk) K (Nat.le_refl K)).
  change (fun j => EE j (fun o h => e_ o i h)) with (fun j => EE j (fun o => e_ o i)). eapply Rle_trans; [exact h|].
  destruct (step_8_3 be K q be0) as [g1 [g2 [g3 [g4 _]]]]; [unfold be; rewrite qE; right; ring|lra|].
  assert (gr : (1 + be) ^ K <= 1285/1000) by lra. assert (s0 : 0 <= sum K (b_ i)) by (apply sum_ge0; auto).
  eapply Rle_trans; [apply (Rmult_le_compat_r _ _ _ s0 gr)|]. apply Rmult_le_compat_l; [lra|]. rewrite sum_b. destruct (step_8_2 K) as [_ [c1 c2]]. rewrite sum_scal in c1, c2.
  change (sum K (fun k => INR k)) with (sum K INR) in c2. assert (m0 : 0 <= eta ^ 2 * Lam * gam * nrm2 (g i w)) by pos. apply (Rmult_le_compat_l _ _ _ m0) in c1.
  replace (sum K INR) with (INR K * (INR K - 1) / 2) by lra. lra.
Qed.
Lemma mean_square : meanR (fun i => nrm2 (g i w)) <= nrm2 (G w) + zeta ^ 2.
Proof.
  eapply Rle_trans; [|apply Rplus_le_compat_l, (spread w)]. unfold meanR. right.
  rewrite (sum_ext N (fun i => nrm2 (g i w - G w)) (fun i => nrm2 (g i w) + ((-2) * dot (g i w) (G w) + nrm2 (G w)))) by (intros; rewrite nrm2_sub; ring).
  rewrite !sum_plus, sum_scal, sum_const, <- dot_suml. assert (e : / INR N * dot (vsum N (fun i => g i w)) (G w) = nrm2 (G w)) by (rewrite <- dot_scall; reflexivity).
  replace (dot (vsum N (fun i => g i w)) (G w)) with (INR N * nrm2 (G w)) by (rewrite <- e; field; lra). field. lra.
Qed.
Theorem claim_8 : Lam * L ^ 2 * DD <= 1285/1000 * u_ * (4/3 * q ^ 2 * gam * (nrm2 (G w) + zeta ^ 2) + 2 * q ^ 2 * gam * (p * nu ^ 2 / INR K) + 4 * Lam * L ^ 2 * eps2).
Proof.
  assert (e2 := pow2_ge_0 eta). assert (l2 := pow2_ge_0 L). assert (la := Rlt_le _ _ Lam0). assert (ga := Rlt_le _ _ gam0).
  assert (H : DD <= 1285/1000 * (4/3 * eta ^ 2 * Lam * gam * INR K * (INR K - 1) * (nrm2 (G w) + zeta ^ 2) + 2 * eta ^ 2 * Lam * gam * p * nu ^ 2 * (INR K - 1) + 4 * eps2 * (INR K - 1) * / INR K)).
  { assert (x : EE K (fun o h => meanR (fun i => / INR K * Se o i h)) = / INR N * sum N (fun i => / INR K * EE K (fun o => Se o i))).
    { unfold EE, meanR. rewrite (ex_ext draw _ (fun o => / INR N * sum N (fun i => / INR K * path (ker w o) K (Se o i)))).
      - rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros i _. apply ex_scal.
      - intros o. rewrite ex_scal, ex_sum. f_equal. apply sum_ext; intros i _. apply ex_scal. }
    unfold DD. rewrite x. clear x. set (c1 := 4/3 * eta ^ 2 * Lam * gam * INR K * (INR K - 1)). set (c2 := 2 * eta ^ 2 * Lam * gam * p * nu ^ 2 * (INR K - 1) + 4 * eps2 * (INR K - 1) * / INR K).
    apply Rle_trans with (1285/1000 * (c1 * meanR (fun i => nrm2 (g i w)) + c2)).
    - unfold meanR. replace (1285/1000 * (c1 * (/ INR N * sum N (fun i => nrm2 (g i w))) + c2)) with (/ INR N * sum N (fun i => 1285/1000 * c1 * nrm2 (g i w) + 1285/1000 * c2)) by (rewrite sum_plus, sum_scal, sum_const; field; lra).
      apply Rmult_le_compat_l; auto. apply sum_le; intros i hi. assert (b := drift_client i hi). apply (Rmult_le_compat_l (/ INR K)) in b; auto. eapply Rle_trans; [exact b|]. right. unfold c1, c2. field. lra.
    - assert (m := mean_square). assert (c0 : 0 <= c1) by (unfold c1; apply Rmult_le_pos; [assert (y := Rlt_le _ _ K0); pos|lra]). apply (Rmult_le_compat_l c1) in m; auto. unfold c2 in *. lra. }
  apply (Rmult_le_compat_l (Lam * L ^ 2)) in H; [|pos]. eapply Rle_trans; [exact H|]. right. rewrite qE. unfold u_. field. lra.
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
Theorem descent : EE K (fun o h => Favg (next w (o, h))) <= Favg w - te / 2 * (gam * nrm2 (G w)) + te / 2 * (Lam * L ^ 2 * DD) + 5/4 * te * q * (gam * (p * nu ^ 2 / (INR N * INR K)))
  + 9 * (INR K * alpha) / 200 * nrm2 (G w) + (5/2 * L + 50 / (9 * (INR K * alpha))) * eps2.
Proof.
  assert (te0 : 0 < te) by (unfold te; now apply Rmult_lt_0_compat). assert (al0 : 0 < INR K * alpha) by (unfold alpha; repeat apply Rmult_lt_0_compat; auto).
  apply Rle_trans with (EE K (fun o h => (Favg w + 9 * (INR K * alpha) / 200 * nrm2 (G w) + (5/2 * L + 50 / (9 * (INR K * alpha))) * eps2) + (- (te / 2) * dot (G w) (Rm o (G w)) + (te / 2 * Lam * (L ^ 2 * meanR (fun i => / INR K * Se o i h))
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
    assert (c5 : nrm2 E <= eps2) by now apply errbar_le. assert (c6 := l_le _ _ ro b). assert (c7 := gb_le o h hk). fold b in c7.
    assert (vz : dot (G w) (Rm o v) = dot (G w) (Rm o (G w + b)%V) + dot (Rm o (G w)) z) by (unfold v; rewrite (l_add _ _ ro (G w + b)%V), dot_addr, (l_sym _ _ ro (G w) z); reflexivity).
    rewrite vz in qu. apply (Rmult_le_compat_l (L / 2)) in c1; [|lra]. apply (Rmult_le_compat_l (L / 2 * (5/4) * te * te)) in c3; [|assert (y := Rlt_le _ _ te0); assert (y2 := Rlt_le _ _ L0); pos].
    assert (qq : L / 2 * (5/4) * te * te * (Lam * dot v (Rm o v)) = 5/8 * te * q * dot v (Rm o v)) by (rewrite qE; unfold te; field).
    rewrite qq in c3. assert (i1 : 0 < / (9 * (INR K * alpha))) by (apply Rinv_0_lt_compat; lra).
    assert (c8 := Rmult_le_compat_l (5/2 * L + 50 / (9 * (INR K * alpha))) _ _ ltac:(unfold Rdiv; lra) c5).
    assert (c9 := Rmult_le_compat_l (te / 2) _ _ ltac:(lra) c6). assert (c10 := Rmult_le_compat_l (te / 2 * Lam) _ _ ltac:(apply Rmult_le_pos; lra) c7). lra.
  - rewrite !EE_plus, !(EE_const K), (EE_scal K _ (fun o h => dot (G w) (Rm o (G w)))), (EE_scal K _ (fun o h => L ^ 2 * meanR (fun i => / INR K * Se o i h))), (EE_scal K (L ^ 2)), (EE_scal K _ (fun o h => dot (xb h) (Rm o (xb h)))),
      (EE_scal K _ (fun o h => dot (Rm o (G w)) (xb h))), (EE_map K (fun o => dot (G w) (Rm o (G w)))), ER.
    assert (z : EE K (fun o h => dot (Rm o (G w)) (xb h)) = 0) by (unfold EE; rewrite (ex_ext draw _ (fun _ => 0)) by (intros; apply xb_mean0); apply ex_const).
    rewrite z. fold DD. assert (x := xb_form). apply (Rmult_le_compat_l (5/4 * te * q)) in x; [|assert (y := Rlt_le _ _ te0); assert (y2 := Rlt_le _ _ q0); pos]. fold (nrm2 (G w)). lra.
Qed.
End Round.
Definition e8 : R := 8 * (kappa * theta ^ 2 * B) ^ 2.
Definition X : R := u_ * q ^ 2 * (22/10 * zeta ^ 2 + 33/10 * (p * nu ^ 2 / INR K)) + 32/10 * (L * alpha * kappa * p * nu ^ 2 / INR N) + e8.
Definition round w : law (O * list noise) := bind draw (fun o => path (ker w o) K).
Theorem round_bound w : round w (fun x => Favg (next w x)) <= Favg w - 2/5 * (INR K * alpha) * (nrm2 (G w) - X).
Proof.
  change (round w (fun x => Favg (next w x))) with (EE w K (fun o h => Favg (next w (o, h)))). eapply Rle_trans; [apply descent|].
  assert (c := claim_8 w). assert (te0 : 0 < te) by (unfold te; now apply Rmult_lt_0_compat). assert (al0 : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). assert (tg : te * gam = INR K * alpha) by (unfold te, alpha; ring).
  apply (Rmult_le_compat_l (te / 2)) in c; [|lra]. destruct (step_8_6 q u_ kappa theta B eps2 L (conj q0 steps) u01 kap1 theta0 B0 eps0 ltac:(lra)) as [h1 h2].
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
  fold W. rewrite z_part. unfold X, e8. fold W.
  assert (m1 : 0 <= Ka * (u_ * q ^ 2 * nrm2 (G w))) by (destruct u01; assert (y := pow2_ge_0 q); assert (y2 := Rlt_le _ _ Ka0); pos).
  assert (m2 : 0 <= Ka * (u_ * q ^ 2 * zeta ^ 2)) by (apply Rmult_le_pos; lra). assert (m3 : 0 <= Ka * (u_ * q ^ 2 * (W / INR K))) by (apply Rmult_le_pos; lra). assert (m4 : 0 <= Ka * (L * alpha * kappa * W / INR N)) by (apply Rmult_le_pos; lra).
  assert (m5 : 0 <= Ka * (kappa * theta ^ 2 * B) ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]).
  replace (L * alpha * kappa * p * nu ^ 2 / INR N) with (L * alpha * kappa * W / INR N) by (unfold W; field; lra).
  replace (te / 2 * (gam * nrm2 (G w))) with (Ka / 2 * nrm2 (G w)) by (rewrite <- tg; field). lra.
Qed.
Theorem several (w0 : vec) T : (0 < T)%nat -> / INR T * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0)
  <= 5 * (Favg w0 - fstar) / (2 * INR K * alpha * INR T) + X.
Proof.
  intros T0%lt_0_INR. assert (al0 : 0 < alpha) by (unfold alpha; now apply Rmult_lt_0_compat). assert (Ka0 : 0 < INR K * alpha) by now apply Rmult_lt_0_compat.
  assert (h := telescope round next (fun _ => True) (fun w => Favg w - fstar) (fun w => 2/5 * (INR K * alpha) * nrm2 (G w)) (2/5 * (INR K * alpha) * X) (fun _ _ _ => I)).
  specialize (h (fun w _ => ltac:(rewrite (ex_ext (round w) _ (fun x => Favg (next w x) + - fstar)) by (intros; reflexivity); rewrite ex_plus, ex_const; assert (b := round_bound w); lra)) (fun w => ltac:(assert (b := bounded w); lra)) T w0 I).
  rewrite (sum_ext T _ (fun t => 2/5 * (INR K * alpha) * Eit round next t (fun w => nrm2 (G w)) w0)), sum_scal in h by (intros; apply Eit_scal).
  assert (c0 : 0 < 5 / (2 * (INR K * alpha) * INR T)) by (apply Rdiv_lt_0_compat; [lra|]; repeat apply Rmult_lt_0_compat; lra).
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (5 / (2 * (INR K * alpha) * INR T) * (2/5 * (INR K * alpha) * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0))) with (/ INR T * sum T (fun t => Eit round next t (fun w => nrm2 (G w)) w0)) in h by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
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
Lemma step_5_1 m r k : 0 < r -> let cm := (m + r + k - 2) / r in (m + m + 4 * r + 2 * k - 4) / (4 * r) = cm / 2 + 1/2. Proof. intros r0 cm. unfold cm. field. lra. Qed.
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
