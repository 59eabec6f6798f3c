(* The hypotheses of FedSub, FLSS, FedMUD and DeComFL can be met: quadratic losses, random coordinates or directions, noise
   that is not zero. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Import Noise Sampling Descent Instance Core.
From Fedtheory Require Ssf Family FamilyInstance Fedsub Flss Mud Decomfl.
Import ListNotations.
Local Open Scope R_scope.
Section Inst.
Context {D : Dim}.
Variable b : nat -> vec.
Let Fq := FamilyInstance.Fq b.
Let gq := FamilyInstance.gq b.
Let gq_lip : forall i, lipschitz 1 (gq i).
Proof. intros i x y. unfold gq, FamilyInstance.gq. right. replace (x - b i - (y - b i))%V with (x - y)%V by vring. ring. Qed.
Let gq_strong : forall i, Flss.strong 1 (Fq i) (gq i).
Proof.
  intros i x y. right. unfold Fq, gq, FamilyInstance.Fq, FamilyInstance.gq. replace (y - b i)%V with ((x - b i) + (y - x))%V by vring. rewrite nrm2_add. field.
Qed.
(* FedSub's two theorems *)
Theorem fedsub_instance n tau r (h : (1 <= r <= dim)%nat) zeta eta : let rho := INR r / INR dim in (0 < n)%nat -> (0 < tau)%nat -> 0 < eta ->
  (forall x, / INR n * sum n (fun i => nrm2 (gq i x - Fedsub.G n gq x)) <= zeta ^ 2) -> 1 * (eta * INR tau) <= / (6 * sqrt (/ rho)) ->
  forall x0 K, (0 < K)%nat -> let s0 := Fedsub.State x0 (fun _ => v0) in
  / INR K * sum K (fun k => Eit (fun _ => uniform_sets dim r (proj2 h)) (Fedsub.step n tau coords (fun _ => rho) gq eta) k (fun s => nrm2 (Fedsub.G n gq (Fedsub.sx s))) s0)
  <= 5 * / rho * (Fedsub.Favg n Fq x0 - 0) / (2 * (eta * INR tau) * INR K) + 125/12 * (/ rho * Fedsub.pp tau 1 eta * Fedsub.H n (fun _ => rho) gq s0 / INR K)
    + 50/3 * (sqrt (/ rho) * (/ rho - 1) * (1 * eta * INR tau) * Fedsub.pp tau 1 eta * zeta ^ 2).
Proof.
  intros rho n1 tau1 he hz hs x0 K K0 s0. assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia). assert (r0 : 0 < INR r) by (apply lt_0_INR; lia). assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (rho01 : 0 < rho <= 1). { unfold rho. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (ir : 1 <= / rho) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  apply (Fedsub.theorem_2 n tau n1 tau1 (uniform_sets dim r (proj2 h)) coords (fun _ => rho) (/ rho) rho Fq gq 1 0 eta zeta) with (M := fun _ v => v); auto; try lra.
  - intros _. rewrite Rinv_inv. lra.
  - intros _. lra.
  - exact coords_proj.
  - intros A v. unfold Fedsub.Rm, coords. apply functional_extensionality; intros j. destruct in_dec; ring.
  - intros u v. replace (Fedsub.Rm (fun _ => rho) v) with (rho *: v)%V by reflexivity. rewrite dot_scalr. exact (E_coords r h u v).
  - intros i _. apply FamilyInstance.gq_gradient.
  - intros x. unfold Fedsub.Favg, Fedsub.meanR. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat, lt_0_INR; lia|]. apply sum_ge0; intros i _. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b i)). lra.
  - intros i x v _. unfold gq, FamilyInstance.gq. vring.
Qed.
(* FLSS in a fixed set A of coordinates *)
Theorem flss_instance N M tau (M1 : (0 < M)%nat) (MN : (M <= N)%nat) A v sigma eta w0 : (0 < tau)%nat -> nrm2 v <= sigma ^ 2 -> 0 < eta -> eta * INR tau * 1 <= 1/20 ->
  let wP := (w0 + coords A ((/ INR N *: vsum N b) - w0))%V in forall T,
  Eit (Flss.round N M tau MN (fun _ _ => coin v)) (Flss.step M gq eta (coords A)) T (fun w => nrm2 (w - wP)) w0
  <= (1 - 1 * eta * INR tau) ^ T * nrm2 (w0 - wP) + eta / 1 * (3 * Flss.s_ N M * INR tau * Flss.zeta2 N gq wP + 3/2 * sigma ^ 2 / INR M + (1 - / INR tau) * 1 * eta * INR tau * (82/100 * sigma ^ 2 + 61/100 * INR tau * Flss.zeta2 N gq wP)).
Proof.
  intros tau1 hv he hs wP T. destruct (coin_ok v sigma hv) as [c1 [c2 _]]. assert (pA := coords_proj A). assert (N0 : 0 < INR N) by (apply lt_0_INR; lia).
  apply (Flss.theorem N M tau M1 MN tau1 Fq gq 1 1 eta sigma (coords A) w0 wP); auto; try lra.
  - intros k _. apply FamilyInstance.gq_gradient.
  - assert (e : Flss.G N gq wP = (wP - / INR N *: vsum N b)%V).
    { unfold Flss.G, gq, FamilyInstance.gq. rewrite (vsum_ext N _ (fun k => wP + (-1) *: b k)%V) by (intros; vring). rewrite vsum_plus, vsum_const, vsum_scal. vfield. lra. }
    rewrite e. unfold wP. set (m := (/ INR N *: vsum N b)%V). replace (w0 + coords A (m - w0) - m)%V with ((-1) *: compl (coords A) (m - w0))%V by (unfold compl; vring).
    rewrite (p_scal _ pA). unfold compl. rewrite (p_sub _ pA (m - w0)%V), (p_idem _ pA). vring.
  - unfold wP. replace (w0 + coords A (/ INR N *: vsum N b - w0) - w0)%V with (coords A (/ INR N *: vsum N b - w0)%V) by vring. apply (p_idem _ pA).
  - intros w hh [|i] [|j] _ _ ne; try congruence; simpl; rewrite ?dot_0l, ?dot_0r; ring.
Qed.
(* FedMUD with a frozen factor: R is a set of random coordinates; the noise is drawn independently of it *)
Fixpoint frozen eta (w : vec) (A : list nat) (i : nat) (h : list (nat -> vec)) : vec :=
  match h with [] => w | z :: h => (frozen eta w A i h - eta *: coords A (gq i (frozen eta w A i h) + z i))%V end.
Theorem mud_instance N K r (h : (1 <= r <= dim)%nat) v nu eta zeta : let gam := INR r / INR dim in (0 < N)%nat -> (0 < K)%nat -> nrm2 v <= nu ^ 2 -> 0 < eta ->
  (forall x, / INR N * sum N (fun i => nrm2 (gq i x - Mud.G N gq x)) <= zeta ^ 2) -> INR K * 1 * (eta * gam) * (1 / gam) <= 1/4 ->
  forall w0 T, (0 < T)%nat -> let next w (x : list nat * list (nat -> vec)) := (/ INR N *: vsum N (fun i => frozen eta w (fst x) i (snd x)))%V in
  / INR T * sum T (fun t => Eit (Mud.round K (uniform_sets dim r (proj2 h)) (fun _ _ _ => coin v)) next t (fun w => nrm2 (Mud.G N gq w)) w0)
  <= 5 * (Mud.Favg N Fq w0 - 0) / (2 * INR K * (eta * gam) * INR T) + Mud.X N K gam 1 1 eta zeta (1 / gam) nu 0 0.
Proof.
  intros gam N1 K1 hv he hz hs w0 T T0 next. destruct (coin_ok v nu hv) as [c1 [c2 _]]. assert (N0 : 0 < INR N) by (apply lt_0_INR; lia).
  assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia). assert (r0 : 0 < INR r) by (apply lt_0_INR; lia). assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (g01 : 0 < gam <= 1). { unfold gam. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (zero : nrm2 v0 <= 0) by (rewrite nrm2_0; lra).
  assert (gen : forall (x w a q : vec) (e : R), x = (w - e *: a)%V -> (x - e *: q)%V = (w - e *: (a + q))%V) by (intros x w a q e ->; vring).
  assert (lE : forall w A i hh, frozen eta w A i hh = (w - eta *: coords A (Mud.gsum gq (frozen eta) w A i hh))%V).
  { intros w A i hh. assert (pA := coords_proj A). unfold Mud.gsum. induction hh as [|z hh IH]; [cbn [frozen pvsum]; rewrite (p_0 _ pA); vring|]. cbn [frozen pvsum]. rewrite (p_add _ pA (pvsum _ hh)). exact (gen _ _ _ _ _ IH). }
  apply (Mud.several N K N1 K1 (uniform_sets dim r (proj2 h)) coords gam 1 1 eta 0 zeta (1 / gam) nu 0 0 0 Fq gq (fun _ _ _ => coin v) (frozen eta) next (fun _ _ _ _ => v0) (fun _ _ _ => v0)); auto; try lra.
  - intros w A i hh. rewrite lE at 1. vring.
  - intros w A hh _. assert (pA := coords_proj A). unfold next. cbn [fst snd]. rewrite (vsum_ext N _ (fun i => w + (- eta) *: coords A (Mud.gsum gq (frozen eta) w A i hh))%V) by (intros; rewrite lE at 1; vring).
    rewrite vsum_plus, vsum_const, vsum_scal. unfold Mud.meanV. rewrite (p_scal _ pA), (p_vsum _ pA). vfield. lra.
  - intros A. assert (pA := coords_proj A). split; [apply pA|apply pA|apply pA| |]; intros u; rewrite <- (p_nrm2 _ pA); [apply nrm2_ge0|]. rewrite Rmult_1_l. apply (p_le _ pA).
  - exact (E_coords r h).
  - intros i _. apply FamilyInstance.gq_gradient.
  - intros x. unfold Mud.Favg, Mud.meanR. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|]. apply sum_ge0; intros i _. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b i)). lra.
  - intros w k i _ _. replace (gam * (1 / gam) * nu ^ 2) with (nu ^ 2) by (field; lra). rewrite <- (ex_const (uniform_sets dim r (proj2 h)) (nu ^ 2)). apply ex_le; intros A. rewrite <- (ex_const (path (fun _ => coin v) k) (nu ^ 2)). apply ex_le; intros hh.
    eapply Rle_trans; [|apply (c2 i)]. apply (ex_le (coin v)); intros z. rewrite <- (p_nrm2 _ (coords_proj A)). apply (p_le _ (coords_proj A)).
  - intros w A hh [|i] [|j] _ _ ne; try congruence; simpl; rewrite ?dot_0l; try ring; replace (coords A v0) with v0 by (unfold coords; apply functional_extensionality; intros l; destruct in_dec; reflexivity); rewrite ?dot_0r; ring.
  - apply Rlt_le, Rdiv_lt_0_compat; lra.
  - unfold Mud.kappa. apply (Rmult_le_reg_r gam); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.
(* FedMUD with factors that stay for tau rounds: random coordinates again *)
Theorem mud_interval_instance N K r tau J (h : (1 <= r <= dim)%nat) v nu eta zeta w0 : let gam := INR r / INR dim in (0 < N)%nat -> (0 < K)%nat -> (0 < tau)%nat -> (0 < J)%nat -> nrm2 v <= nu ^ 2 -> 0 < eta ->
  (forall x, / INR N * sum N (fun i => nrm2 (gq i x - Mud.G N gq x)) <= zeta ^ 2) -> Mud.q K gam 1 1 eta <= 1/4 ->
  / INR J * sum J (fun j => Eit (Mud.interval N K (uniform_sets dim r (proj2 h)) coords coords eta gq (fun _ _ _ => coin v) tau) (fun _ w => w) j (fun w => nrm2 (Mud.G N gq w)) w0)
  <= 5 * (Mud.Favg N Fq w0 - 0) / (2 * INR K * Mud.alpha gam eta * INR J) + Mud.X1 N K gam 1 1 eta zeta (1 / gam) nu + (INR tau - 1) * Mud.Xstay N K gam 1 1 eta zeta nu.
Proof.
  intros gam N1 K1 t1 J1 hv he hz hs. destruct (coin_ok v nu hv) as [c1 [c2 _]]. assert (N0 : 0 < INR N) by (apply lt_0_INR; lia).
  assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia). assert (r0 : 0 < INR r) by (apply lt_0_INR; lia). assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (g01 : 0 < gam <= 1). { unfold gam. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (R1 : forall A u, Mud.Rf coords coords A u = coords A u) by (intros; apply (p_idem _ (coords_proj A))). assert (le : forall A u, dot u (coords A u) <= nrm2 u) by (intros A u; rewrite <- (p_nrm2 _ (coords_proj A)); apply (p_le _ (coords_proj A))).
  apply (Mud.step_9_3 dim N K N1 K1 (uniform_sets dim r (proj2 h)) coords coords gam 1 1 eta 0 zeta (1 / gam) nu Fq gq (fun _ _ _ => coin v)); auto; try lra.
  - intros A; apply (coords_proj A).
  - intros A; apply (coords_proj A).
  - intros A; apply (coords_proj A).
  - intros A; apply (coords_proj A).
  - intros A; apply (coords_proj A).
  - intros A u. rewrite R1, Rmult_1_l. apply le.
  - intros a b0. rewrite (ex_ext _ _ (fun A => dot a (coords A b0))) by (intros; now rewrite R1). exact (E_coords r h a b0).
  - intros i _. apply FamilyInstance.gq_gradient.
  - intros x. unfold Mud.Favg, Mud.meanR. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|]. apply sum_ge0; intros i _. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b i)). lra.
  - intros w k i _ _. replace (gam * (1 / gam) * nu ^ 2) with (nu ^ 2) by (field; lra). rewrite <- (ex_const (uniform_sets dim r (proj2 h)) (nu ^ 2)). apply ex_le; intros A. rewrite <- (ex_const (path (fun _ => coin v) k) (nu ^ 2)). apply ex_le; intros hh.
    eapply Rle_trans; [|apply (c2 i)]. apply (ex_le (coin v)); intros z. rewrite R1. apply le.
  - intros w A hh [|i] [|j] _ _ ne; try congruence; simpl; rewrite ?dot_0l; try ring; rewrite R1; replace (coords A v0) with v0 by (unfold coords; apply functional_extensionality; intros l; destruct in_dec; reflexivity); rewrite ?dot_0r; ring.
  - apply Rlt_le, Rdiv_lt_0_compat; lra.
  - unfold Mud.kappa. apply (Rmult_le_reg_r gam); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.
(* 9.1 with R = I, where a step with R misses nothing *)
Theorem mud_alike_instance K eta w0 T : (0 < K)%nat -> (0 < T)%nat -> 0 < eta -> INR K * eta <= 1/4 -> eta * INR K * sqrt (nrm2 (gq 0 w0)) <= 1/5 -> let run w (_ : unit) k := Nat.iter k (fun x => (x - eta *: gq 0 x)%V) w in
  / INR T * sum T (fun t => Eit (fun _ => dirac tt) (fun w o => run w o K) t (fun w => nrm2 (gq 0 w)) w0) <= 32/10 * (Fq 0 w0 - 0) / (INR K * Mud.alpha 1 eta * INR T).
Proof.
  intros K1 T1 he hs hw run. assert (k1 : 1 <= INR K) by (apply (le_INR 1); lia). assert (e1 : eta <= 1/4) by (assert (1 * eta <= INR K * eta) by (apply Rmult_le_compat_r; lra); lra).
  assert (kap : Mud.kappa 1 1 = 1) by (unfold Mud.kappa; field).
  assert (gS : forall w o k, gq 0 (run w o (S k)) = ((1 - eta) *: gq 0 (run w o k))%V) by (intros w o k; change (run w o (S k)) with (run w o k - eta *: gq 0 (run w o k))%V; generalize (run w o k); intros y; unfold gq, FamilyInstance.gq; vring).
  assert (less : forall w o k, nrm2 (gq 0 (run w o k)) <= nrm2 (gq 0 w)). { intros w o k. induction k; [apply Rle_refl|]. rewrite gS, nrm2_scal. assert (q := nrm2_ge0 (gq 0 (run w o k))). assert (0 <= (1 - (1 - eta) * (1 - eta)) * nrm2 (gq 0 (run w o k))) by (apply Rmult_le_pos; nra). lra. }
  assert (all : forall w o k, (run w o k = w - eta *: vsum k (fun j => gq 0 (run w o j)))%V). { intros w o k. induction k; [change (vsum 0 (fun j => gq 0 (run w o j))) with v0; change (run w o 0%nat) with w; vring|]. rewrite vsum_S. change (run w o (S k)) with (run w o k - eta *: gq 0 (run w o k))%V. set (G := gq 0 (run w o k)). rewrite IHk. vring. }
  apply (Mud.step_9_1 K K1 (dirac tt) (fun _ u => u) 1 1 1 eta 0 (Fq 0) (gq 0) run) with (reached := fun w => eta * INR K * sqrt (nrm2 (gq 0 w)) <= 1/5); auto; try lra.
  - intros w o B k B0 hk hB. rewrite all. replace (w - eta *: vsum k (fun j => gq 0 (run w o j)) - w)%V with ((- eta) *: vsum k (fun j => gq 0 (run w o j)))%V by vring. rewrite nrm2_scal.
    assert (s : nrm2 (vsum k (fun j => gq 0 (run w o j))) <= (INR k * B) ^ 2). { eapply Rle_trans; [apply nrm2_vsum|]. apply Rle_trans with (INR k * sum k (fun _ => B ^ 2)); [apply Rmult_le_compat_l; [apply pos_INR|]; now apply sum_le|rewrite sum_const; right; ring]. }
    apply (Rmult_le_compat_l (- eta * - eta)) in s; [|nra]. eapply Rle_trans; [exact s|]. rewrite Rmult_1_l. set (x := eta * B). assert (x0 : 0 <= x) by (apply Rmult_le_pos; lra). replace (- eta * - eta * (INR k * B) ^ 2) with ((INR k * x) ^ 2) by (unfold x; ring). apply pow_incr.
    assert (rec : forall k, 1 <= ((1 + x) ^ k + (1 - x) ^ k) / 2 /\ INR k * x <= ((1 + x) ^ k - (1 - x) ^ k) / 2).
    { clear - x0. induction k as [|k [i1 i2]]; [simpl; lra|]. rewrite S_INR. simpl pow. assert (k0 := pos_INR k). assert (m0 : 0 <= INR k * x) by (apply Rmult_le_pos; lra). set (c := ((1 + x) ^ k + (1 - x) ^ k) / 2) in *. set (s := ((1 + x) ^ k - (1 - x) ^ k) / 2) in *.
      replace (((1 + x) * (1 + x) ^ k + (1 - x) * (1 - x) ^ k) / 2) with (c + x * s) by (unfold c, s; field). replace (((1 + x) * (1 + x) ^ k - (1 - x) * (1 - x) ^ k) / 2) with (s + x * c) by (unfold c, s; field). assert (0 <= x * s) by (apply Rmult_le_pos; lra). assert (x * 1 <= x * c) by (apply Rmult_le_compat_l; lra). lra. }
    destruct (rec k) as [r1 r2]. assert (m0 : 0 <= INR k * x) by (apply Rmult_le_pos; [apply pos_INR|auto]). split; [auto|]. apply Rle_trans with (1 * (((1 + x) ^ k - (1 - x) ^ k) / 2)); [lra|apply Rmult_le_compat_r; lra].
  - intros w o B k _ _ _ _. unfold Mud.missed. rewrite (all w o k) at 1. replace (w - eta *: vsum k (fun j => gq 0 (run w o j)) - (w - eta *: vsum k (fun j => gq 0 (run w o j))))%V with v0 by vring. rewrite nrm2_0, Rmult_0_r. apply pow2_ge_0.
  - intros _. split; intros; auto; try apply nrm2_ge0; unfold nrm2; lra.
  - intros. cbn [dirac ex]. ring.
  - apply FamilyInstance.gq_gradient.
  - intros x. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b 0%nat)). lra.
  - unfold Mud.q, Mud.alpha. rewrite kap. lra.
  - intros w o hr. eapply Rle_trans; [|exact hr]. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply sqrt_le_1_alt, less.
  - intros w hr. rewrite kap, sqrt_1. lra.
Qed.
End Inst.
(* directions: a finite law with the moments of a normal vector up to the sixth *)
Definition pt : law R.
Proof.
  refine {| ex f := 7/18 * f 0 + 1/4 * (f 1 + f (-1)) + 1/20 * (f 2 + f (-2)) + 1/180 * (f 3 + f (-3)) |}; intros; try field.
  assert (h0 := H 0). assert (h1 := H 1). assert (h2 := H (-1)). assert (h3 := H 2). assert (h4 := H (-2)). assert (h5 := H 3). assert (h6 := H (-3)). lra.
Defined.
Definition put (v : vec) (d : nat) (t : R) : vec := fun j => if Nat.eq_dec j d then t else v j.
Definition further (E : law vec) (d : nat) : law vec.
Proof.
  refine {| ex f := E (fun v => pt (fun t => f (put v d t))) |}.
  - intros f g. rewrite <- ex_plus. apply ex_ext; intros v. apply (ex_plus pt).
  - intros c f. rewrite <- ex_scal. apply ex_ext; intros v. apply (ex_scal pt).
  - rewrite (ex_ext E _ (fun _ => 1)) by (intros; apply (ex_one pt)). apply ex_one.
  - intros f g h. apply ex_le; intros v. apply (ex_le pt); intros t. apply h.
Defined.
Fixpoint gauss d : law vec := match d with O => dirac v0 | S d => further (gauss d) d end.
Definition dn (d : nat) (a v : vec) : R := sum d (fun j => a j * v j).
Lemma dn_put d a v t : dn (S d) a (put v d t) = dn d a v + a d * t.
Proof.
  unfold dn. rewrite sum_S. unfold put at 2. destruct (Nat.eq_dec d d); [|congruence]. f_equal. apply sum_ext; intros j hj. unfold put. destruct (Nat.eq_dec j d); [lia|reflexivity].
Qed.
Lemma gauss_2 d : forall a b, gauss d (fun v => dn d a v * dn d b v) = dn d a b.
Proof.
  induction d; intros a b; [unfold dn; cbn; ring|].
  change (gauss (S d)) with (further (gauss d) d). cbn [ex further].
  rewrite (ex_ext (gauss d) _ (fun v => (1) * (dn d a v * dn d b v) + ((1 * a d * b d) * 1))).
  - rewrite !ex_plus, !ex_scal, !ex_const, !IHd. unfold dn. rewrite !sum_S. ring.
  - intros v. rewrite (ex_ext pt _ (fun t => (dn d a v + a d * t) * (dn d b v + b d * t))) by (intros; rewrite !dn_put; ring). cbn [ex pt]. field.
Qed.
Lemma gauss_4 d : forall a b c e, gauss d (fun v => dn d a v * dn d b v * (dn d c v * dn d e v)) = dn d a b * dn d c e + dn d a c * dn d b e + dn d a e * dn d b c.
Proof.
  induction d; intros a b c e; [unfold dn; cbn; ring|].
  change (gauss (S d)) with (further (gauss d) d). cbn [ex further].
  rewrite (ex_ext (gauss d) _ (fun v => (1) * (dn d a v * dn d b v * (dn d c v * dn d e v)) + ((1 * a d * b d) * (dn d c v * dn d e v) + ((1 * a d * c d) * (dn d b v * dn d e v) + ((1 * a d * e d) * (dn d b v * dn d c v) + ((1 * b d * c d) * (dn d a v * dn d e v) + ((1 * b d * e d) * (dn d a v * dn d c v) + ((1 * c d * e d) * (dn d a v * dn d b v) + ((3 * a d * b d * c d * e d) * 1))))))))).
  - rewrite !ex_plus, !ex_scal, !ex_const, !IHd, !gauss_2. unfold dn. rewrite !sum_S. ring.
  - intros v. rewrite (ex_ext pt _ (fun t => (dn d a v + a d * t) * (dn d b v + b d * t) * (dn d c v + c d * t) * (dn d e v + e d * t))) by (intros; rewrite !dn_put; ring). cbn [ex pt]. field.
Qed.
Lemma gauss_6 d : forall a b c e h k, gauss d (fun v => dn d a v * dn d b v * (dn d c v * dn d e v) * (dn d h v * dn d k v)) = dn d h k * (dn d a b * dn d c e + dn d a c * dn d b e + dn d a e * dn d b c)
    + dn d a h * (dn d b k * dn d c e + dn d c k * dn d b e + dn d e k * dn d b c) + dn d b h * (dn d a k * dn d c e + dn d c k * dn d a e + dn d e k * dn d a c)
    + dn d c h * (dn d a k * dn d b e + dn d b k * dn d a e + dn d e k * dn d a b) + dn d e h * (dn d a k * dn d b c + dn d b k * dn d a c + dn d c k * dn d a b).
Proof.
  induction d; intros a b c e h k; [unfold dn; cbn; ring|].
  change (gauss (S d)) with (further (gauss d) d). cbn [ex further].
  rewrite (ex_ext (gauss d) _ (fun v => (1) * (dn d a v * dn d b v * (dn d c v * dn d e v) * (dn d h v * dn d k v)) + ((1 * a d * b d) * (dn d c v * dn d e v * (dn d h v * dn d k v)) + ((1 * a d * c d) * (dn d b v * dn d e v * (dn d h v * dn d k v)) + ((1 * a d * e d) * (dn d b v * dn d c v * (dn d h v * dn d k v)) + ((1 * a d * h d) * (dn d b v * dn d c v * (dn d e v * dn d k v)) + ((1 * a d * k d) * (dn d b v * dn d c v * (dn d e v * dn d h v)) + ((1 * b d * c d) * (dn d a v * dn d e v * (dn d h v * dn d k v)) + ((1 * b d * e d) * (dn d a v * dn d c v * (dn d h v * dn d k v)) + ((1 * b d * h d) * (dn d a v * dn d c v * (dn d e v * dn d k v)) + ((1 * b d * k d) * (dn d a v * dn d c v * (dn d e v * dn d h v)) + ((1 * c d * e d) * (dn d a v * dn d b v * (dn d h v * dn d k v)) + ((1 * c d * h d) * (dn d a v * dn d b v * (dn d e v * dn d k v)) + ((1 * c d * k d) * (dn d a v * dn d b v * (dn d e v * dn d h v)) + ((1 * e d * h d) * (dn d a v * dn d b v * (dn d c v * dn d k v)) + ((1 * e d * k d) * (dn d a v * dn d b v * (dn d c v * dn d h v)) + ((1 * h d * k d) * (dn d a v * dn d b v * (dn d c v * dn d e v)) + ((3 * a d * b d * c d * e d) * (dn d h v * dn d k v) + ((3 * a d * b d * c d * h d) * (dn d e v * dn d k v) + ((3 * a d * b d * c d * k d) * (dn d e v * dn d h v) + ((3 * a d * b d * e d * h d) * (dn d c v * dn d k v) + ((3 * a d * b d * e d * k d) * (dn d c v * dn d h v) + ((3 * a d * b d * h d * k d) * (dn d c v * dn d e v) + ((3 * a d * c d * e d * h d) * (dn d b v * dn d k v) + ((3 * a d * c d * e d * k d) * (dn d b v * dn d h v) + ((3 * a d * c d * h d * k d) * (dn d b v * dn d e v) + ((3 * a d * e d * h d * k d) * (dn d b v * dn d c v) + ((3 * b d * c d * e d * h d) * (dn d a v * dn d k v) + ((3 * b d * c d * e d * k d) * (dn d a v * dn d h v) + ((3 * b d * c d * h d * k d) * (dn d a v * dn d e v) + ((3 * b d * e d * h d * k d) * (dn d a v * dn d c v) + ((3 * c d * e d * h d * k d) * (dn d a v * dn d b v) + ((15 * a d * b d * c d * e d * h d * k d) * 1))))))))))))))))))))))))))))))))).
  - rewrite !ex_plus, !ex_scal, !ex_const, !IHd, !gauss_4, !gauss_2. unfold dn. rewrite !sum_S. ring.
  - intros v. rewrite (ex_ext pt _ (fun t => (dn d a v + a d * t) * (dn d b v + b d * t) * (dn d c v + c d * t) * (dn d e v + e d * t) * (dn d h v + h d * t) * (dn d k v + k d * t))) by (intros; rewrite !dn_put; ring). cbn [ex pt]. field.
Qed.
Section Dir.
Context {D : Dim}.
Lemma gauss_normal : Decomfl.normal (gauss dim) (fun v => v).
Proof. split; intros; [exact (gauss_2 dim a b)|exact (gauss_4 dim a b c e)|exact (gauss_6 dim a b c e h k)]. Qed.
Variable b : nat -> vec.
Let Fq := FamilyInstance.Fq b.
Let gq := FamilyInstance.gq b.
Let id_ (v : vec) : vec := v.
(* one direction a round, exact slopes, one local step *)
Theorem decomfl_instance v sigma eta x0 T : nrm2 v <= sigma ^ 2 -> 0 < eta -> eta * 1 * Decomfl.c_ (INR dim) 1 <= 1/4 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit (Decomfl.round (fun _ => coin v) (gauss dim)) (Decomfl.step eta 1 (gq 0) (fun _ z => z 0%nat) (fun _ o => o) (fun _ _ _ _ => 0)) t (fun x => nrm2 (gq 0 x)) x0)
  <= 2 * (Fq 0 x0 - 0) / (eta * INR T) + 2 * eta * 1 * Decomfl.c_ (INR dim) 1 * sigma ^ 2 + 5/2 * (0 ^ 2 * 1 ^ 2 * INR dim) + 0 ^ 2 * 1 ^ 3 * eta / 2 * (INR dim / INR 1 * (INR dim + 2) * (INR dim + 4)).
Proof.
  intros hv he hs T0. destruct (coin_ok v sigma hv) as [c1 [c2 _]]. assert (d0 := pos_INR dim).
  apply (Decomfl.step_3_5 1 (INR dim) 0 eta (sigma ^ 2) 0 1 Nat.lt_0_1 (Fq 0) (gq 0) (fun _ => id_)) with (bs := fun _ _ => v0); auto; try lra.
  - intros _. exact Decomfl.id_map.
  - intros _. rewrite Rmult_1_r. right. exact Decomfl.tr_id.
  - intros x s. right. unfold Fq, gq, FamilyInstance.Fq, FamilyInstance.gq, Decomfl.nH, id_. replace (x + s - b 0)%V with ((x - b 0) + s)%V by vring. rewrite nrm2_add. fold (nrm2 s). field.
  - intros x. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b 0%nat)). lra.
  - intros p _. exact gauss_normal.
  - intros p q0 a b0 c e hp hq ne. lia.
  - intros x s p o _. rewrite Rabs_R0. lra.
  - intros x s p u _. rewrite dot_0r. rewrite (ex_ext _ _ (fun _ => 0)) by (intros; ring). apply ex_const.
  - intros x s p q0 u w hp hq ne. lia.
  - intros x s. rewrite nrm2_0. lra.
Qed.
(* K local steps, m of N clients *)
Theorem decomfl_steps_instance N m K (m1 : (0 < m)%nat) (mN : (m <= N)%nat) v sigma sg2 eta w0 T : (0 < K)%nat -> (0 < T)%nat -> nrm2 v <= sigma ^ 2 -> 0 < eta ->
  (forall x, / INR N * sum N (fun i => nrm2 (gq i x - Decomfl.G N gq x)) <= sg2) -> let a := INR dim + 1 in Decomfl.te K eta * 1 * Decomfl.th K a <= 1/8 ->
  let A (o : vec) := Decomfl.A_ (fun _ o => o) 1 o in let ker (_ : vec) (_ : list ((nat -> vec) * vec)) := coin v in
  / INR T * sum T (fun t => Eit (Decomfl.kround N m K mN ker (gauss dim)) (Decomfl.next m gq eta A (fun z i => z i) (fun _ _ _ _ _ => v0)) t (fun w => nrm2 (Decomfl.G N gq w)) w0)
  <= 2 * (Decomfl.Favg N Fq w0 - 0) / (Decomfl.te K eta * INR T) + 2 * 1 * Decomfl.te K eta * (Decomfl.th K a * (Decomfl.gamm N m * sg2) / INR m + Decomfl.cc a * sigma ^ 2 / (INR m * INR K))
    + 6 * (1 - / INR K) * 1 ^ 2 * Decomfl.te K eta ^ 2 * (Decomfl.th K a * sg2 + Decomfl.cc a * sigma ^ 2 / INR K) + (6 * 0 + 11 * 1 * eta * a * 0).
Proof.
  intros K1 T0 hv he hsp a hs A ker. destruct (coin_ok v sigma hv) as [c1 [c2 _]]. assert (d0 := pos_INR dim). assert (N0 : 0 < INR N) by (apply lt_0_INR; lia).
  assert (nz : forall p, (p < 1)%nat -> Decomfl.normal (gauss dim) ((fun _ o => o) p)) by (intros; exact gauss_normal).
  assert (ind : forall p q0 (a b0 c e : vec), (p < 1)%nat -> (q0 < 1)%nat -> p <> q0 -> gauss dim (fun o => dot a o * dot b0 o * (dot c o * dot e o)) = dot a b0 * dot c e) by (intros; lia).
  assert (tr1 : Decomfl.tr id_ <= INR dim * 1) by (rewrite Rmult_1_r; right; exact Decomfl.tr_id).
  assert (aE : Decomfl.a__ (INR dim) 1 = a) by (unfold Decomfl.a__, a; simpl INR; field).
  assert (zero : forall f : vec -> R, (forall o, f o = 0) -> gauss dim f = 0) by (intros f hf; rewrite (ex_ext _ _ (fun _ => 0)) by auto; apply ex_const).
  assert (n0 : Decomfl.nH id_ v0 = 0) by apply dot_0l.
  apply (Decomfl.k_steps N m K m1 mN K1 Fq gq (fun _ => id_) 1 a eta sigma sg2 0 0 0 ker (gauss dim) A (fun z i => z i) (fun _ _ _ _ _ => v0) (fun _ _ _ _ => v0)); auto; try lra.
  - intros _. exact Decomfl.id_map.
  - intros i _. apply FamilyInstance.gq_gradient.
  - intros w i x s u _. unfold gq, FamilyInstance.gq, Decomfl.nH, id_. replace (x + s - b i - (x - b i))%V with s by vring. assert (c := cauchy_schwarz s u). unfold nrm2 in c. simpl. lra.
  - intros x. unfold Decomfl.Favg. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat; lra|]. apply sum_ge0; intros i _. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b i)). lra.
  - intros o u w. unfold A, Decomfl.A_. apply functional_extensionality; intros j. unfold vscal, vadd, vsum. cbn [sum]. change (dot o (fun j => u j + w j)) with (dot o (u + w)%V). rewrite dot_addr. ring.
  - intros o c u. unfold A, Decomfl.A_. rewrite (vsum_ext 1 (fun p => dot o (c *: u) *: o)%V (fun _ => c *: (dot o u *: o))%V) by (intros; rewrite dot_scalr; vring). rewrite vsum_scal. vring.
  - intros u w. exact (Decomfl.A_mean (gauss dim) (fun _ o => o) 1 Nat.lt_0_1 nz u w).
  - intros w u. destruct (Decomfl.step_6_1 id_ 1 (INR dim) Decomfl.id_map (gauss dim) (fun _ o => o) 1 Nat.lt_0_1 nz ind u tr1) as [e1 [e2 _]]. rewrite aE in e2. unfold A. rewrite e1. exact e2.
  - intros w u. destruct (Decomfl.step_6_1 id_ 1 (INR dim) Decomfl.id_map (gauss dim) (fun _ o => o) 1 Nat.lt_0_1 nz ind u tr1) as [_ [_ e3]]. unfold Decomfl.c_ in e3. fold (Decomfl.a__ (INR dim) 1) in e3. rewrite aE in e3. exact e3.
  - intros w hh [|i] [|j] _ _ ne; try congruence; simpl; rewrite ?dot_0l, ?dot_0r; ring.
  - intros w hh s i u _. rewrite dot_0r. apply zero. reflexivity.
  - intros w hh s i _. rewrite nrm2_0. lra.
  - intros w hh s i _. rewrite zero; [lra|]. intros o. replace (v0 - v0)%V with v0 by vring. exact n0.
  - unfold a. lra.
Qed.
End Dir.
(* the sphere: a finite law of points; a point v of gauss counts |v|^6 times, and its direction alone *)
Section OnSphere.
Context {D : Dim}.
Hypothesis d0 : 0 < INR dim.
Let d := INR dim.
Let dp : 0 < d. Proof. exact d0. Qed.
Let C := d * (d + 2) * (d + 4).
Let C0 : 0 < C. Proof. unfold C. repeat apply Rmult_lt_0_compat; lra. Qed.
Let basis0 : nrm2 (basis 0) = 1. Proof. exact (Decomfl.basis_1 0 (INR_lt 0 dim d0)). Qed.
Definition onto (v : vec) : vec := if Req_EM_T (nrm2 v) 0 then (sqrt d *: basis 0)%V else (sqrt (d / nrm2 v) *: v)%V.
Definition points : law vec.
Proof.
  refine {| ex f := gauss dim (fun v => nrm2 v ^ 3 / C * f v) |}.
  - intros f g. rewrite <- ex_plus. apply ex_ext; intros; ring.
  - intros a f. rewrite <- ex_scal. apply ex_ext; intros; ring.
  - rewrite (ex_ext _ _ (fun v => / C * nrm2 v ^ 3)) by (intros; unfold Rdiv; ring). rewrite ex_scal. destruct (Decomfl.normal_lengths (gauss dim) (fun v => v) gauss_normal) as [_ [_ e]]. rewrite e. fold d C. field. lra.
  - intros f g h. apply ex_le; intros v. apply Rmult_le_compat_l; auto. apply Rmult_le_pos; [apply pow_le, nrm2_ge0|apply Rlt_le, Rinv_0_lt_compat, C0].
Defined.
Definition lengths : law R.
Proof.
  refine {| ex f := gauss dim (fun v => f (sqrt (nrm2 v / d))) |}; intros; [apply (ex_plus (gauss dim) (fun v => f (sqrt (nrm2 v / d))))|apply (ex_scal (gauss dim))|apply (ex_one (gauss dim))|apply (ex_le (gauss dim)); intros; apply H].
Defined.
Lemma onto_hom (f : vec -> R) k j : (k + j = 3)%nat -> (forall c v, f (c *: v)%V = (c * c) ^ k * f v) -> (forall v, nrm2 v = 0 -> f v = 0) -> points (fun v => f (onto v)) = d ^ k / C * gauss dim (fun v => nrm2 v ^ j * f v).
Proof.
  intros kj hf hz. cbn [ex points]. rewrite <- ex_scal. apply ex_ext; intros v. unfold onto. destruct Req_EM_T as [e|e]; [rewrite (hz v e), e; simpl; unfold Rdiv; ring|]. assert (n0 := nrm2_ge0 v). rewrite hf, sqrt_sqrt by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  rewrite <- kj, pow_add. unfold Rdiv at 2. rewrite Rpow_mult_distr, pow_inv. field. split; [lra|now apply pow_nonzero].
Qed.
Lemma length_moment k : lengths (fun t => (t * t) ^ k) = gauss dim (fun v => nrm2 v ^ k) / d ^ k.
Proof.
  cbn [ex lengths]. transitivity (gauss dim (fun v => / d ^ k * nrm2 v ^ k)); [|rewrite ex_scal; unfold Rdiv; ring]. apply ex_ext; intros v. rewrite sqrt_sqrt by (apply Rmult_le_pos; [apply nrm2_ge0|apply Rlt_le, Rinv_0_lt_compat, dp]). unfold Rdiv. rewrite Rpow_mult_distr, pow_inv. ring.
Qed.
Lemma dot_zero a v : nrm2 v = 0 -> dot a v = 0.
Proof. intros e. assert (c := cauchy_schwarz a v). rewrite e, Rmult_0_r in c. destruct (Req_dec (dot a v) 0) as [z|z]; auto. assert (q := Rsqr_pos_lt _ z). unfold Rsqr in q. simpl in c. lra. Qed.
Lemma sphere_points : Decomfl.sphere points onto.
Proof.
  assert (nz := gauss_normal). destruct (Decomfl.normal_lengths (gauss dim) (fun v => v) nz) as [l1 [l2 l3]]. fold d in l1, l2, l3.
  split.
  - intros v. unfold onto. destruct Req_EM_T as [e|e]; rewrite nrm2_scal; [rewrite sqrt_sqrt by lra; rewrite basis0; unfold d; ring|]. assert (n0 := nrm2_ge0 v). rewrite sqrt_sqrt by (apply Rlt_le, Rdiv_lt_0_compat; lra). unfold d. field. exact e.
  - exists lengths.
    assert (split_ : forall k (f : vec -> R), (forall c v, f (c *: v)%V = (c * c) ^ k * f v) -> bind lengths (fun _ => points) (fun p => f (fst p *: onto (snd p))%V) = lengths (fun t => (t * t) ^ k) * points (fun v => f (onto v))).
    { intros k f hf. cbn [bind ex fst snd]. rewrite Rmult_comm. change (lengths (fun t => points (fun v => f (t *: onto v)%V)) = points (fun v => f (onto v)) * lengths (fun t => (t * t) ^ k)). rewrite <- ex_scal. apply ex_ext; intros t. rewrite Rmult_comm, <- ex_scal. apply ex_ext; intros v. apply hf. }
    split; intros.
    + rewrite (split_ 1%nat (fun v => dot a v * dot b v)) by (intros; rewrite !dot_scalr; ring). rewrite length_moment, (onto_hom (fun v => dot a v * dot b v) 1 2) by (auto; intros; rewrite ?dot_scalr, ?(dot_zero _ v) by auto; ring).
      rewrite (ex_ext _ (fun v => nrm2 v ^ 1) (fun v => nrm2 v)) by (intros; ring). rewrite l1, (Decomfl.normal_length_4 (gauss dim) (fun v => v) a b nz). fold d. unfold C. field. lra.
    + rewrite (split_ 2%nat (fun v => dot a v * dot b v * (dot c v * dot e v))) by (intros; rewrite !dot_scalr; ring). rewrite length_moment, (onto_hom (fun v => dot a v * dot b v * (dot c v * dot e v)) 2 1) by (auto; intros; rewrite ?dot_scalr, ?(dot_zero _ v) by auto; ring).
      rewrite l2. rewrite (ex_ext _ (fun v => nrm2 v ^ 1 * _) (fun v => nrm2 v * (dot a v * dot b v * (dot c v * dot e v)))) by (intros; ring). rewrite (Decomfl.normal_length_24 (gauss dim) (fun v => v) a b c e nz). fold d. unfold C. field. lra.
    + rewrite (split_ 3%nat (fun v => dot a v * dot b v * (dot c v * dot e v) * (dot h v * dot k v))) by (intros; rewrite !dot_scalr; ring). rewrite length_moment, (onto_hom (fun v => dot a v * dot b v * (dot c v * dot e v) * (dot h v * dot k v)) 3 0) by (auto; intros; rewrite ?dot_scalr, ?(dot_zero _ v) by auto; ring).
      rewrite l3. rewrite (ex_ext _ (fun v => nrm2 v ^ 0 * _) (fun v => dot a v * dot b v * (dot c v * dot e v) * (dot h v * dot k v))) by (intros; ring). rewrite (Decomfl.w_6 _ _ nz). unfold C. field. lra.
Qed.
Definition fair : law bool.
Proof. refine {| ex f := / 2 * (f true + f false) |}; intros; try lra. assert (a := H true). assert (b := H false). lra. Defined.
Variable b : nat -> vec.
Let Fq := FamilyInstance.Fq b.
Let gq := FamilyInstance.gq b.
(* Theorem 2, repaired: one direction, exact slopes, noise v or - v *)
Theorem theorem_2_instance v eta x0 T : 0 < eta -> eta * 1 * Decomfl.ch d 1 <= 1/4 -> (0 < T)%nat ->
  let n (_ : vec) (s : bool) := if s then v else (- v)%V in
  / INR T * sum T (fun t => Eit (Decomfl.round2 (fun _ => fair) points) (Decomfl.step2 eta 1 (gq 0) n (fun _ v => onto v) (fun _ _ _ _ => 0)) t (fun x => nrm2 (gq 0 x)) x0)
  <= 2 * (Fq 0 x0 - 0) / (INR T * eta) + 2 * 1 * eta * Decomfl.ch d 1 * nrm2 v + 0 ^ 2 * 1 ^ 2 / 2 * (INR dim + 3) ^ 3.
Proof.
  intros he hs T0 n. assert (v2 := nrm2_ge0 v). assert (nn : forall x s, nrm2 (n x s) = nrm2 v) by (intros x [|]; [reflexivity|apply nrm2_opp]).
  assert (exact_ : forall x s, Fq 0 (x + s)%V = Fq 0 x + dot (gq 0 x) s + 1/2 * nrm2 s) by (intros x s; unfold Fq, gq, FamilyInstance.Fq, FamilyInstance.gq; replace (x + s - b 0)%V with ((x - b 0) + s)%V by vring; rewrite nrm2_add; field).
  apply (Decomfl.theorem_2 1 d 0 eta (nrm2 v) 0 1 Nat.lt_0_1 d0 (Fq 0) (gq 0) (fun x => sqrt (2 * nrm2 (gq 0 x) + 2 * nrm2 v)) (fun _ u => u)) with (bs := fun _ _ => v0); auto; try lra.
  - intros x s. rewrite exact_. assert (q := nrm2_ge0 s). lra.
  - intros x s. rewrite exact_. assert (q := nrm2_ge0 s). lra.
  - intros x. unfold Fq, FamilyInstance.Fq. assert (q := nrm2_ge0 (x - b 0%nat)). lra.
  - intros _. split; intros; reflexivity.
  - intros _ u. unfold Decomfl.nH. fold (nrm2 u). lra.
  - intros _. exists 1. split; [exists (basis 0); unfold Decomfl.nH; fold (nrm2 (basis 0)); rewrite basis0, Rabs_R1; split; lra|]. rewrite Decomfl.tr_id. unfold d. lra.
  - intros x s _. rewrite exact_. unfold Decomfl.nH. fold (nrm2 s). lra.
  - intros x u. cbn [ex fair n]. rewrite oppE, dot_scalr. field.
  - intros x. cbn [ex fair]. rewrite !nn. lra.
  - intros x s. replace (sqrt (2 * nrm2 (gq 0 x) + 2 * nrm2 v) ^ 2) with (2 * nrm2 (gq 0 x) + 2 * nrm2 v) by (assert (q := nrm2_ge0 (gq 0 x)); simpl; rewrite Rmult_1_r, sqrt_sqrt; lra). rewrite <- (nn x s) at 1. apply nrm2_add_le2.
  - intros x. apply sqrt_pos.
  - intros p _. exact sphere_points.
  - intros p q a b0 c e hp hq ne. lia.
  - intros x s p o _. rewrite Rabs_R0. lra.
  - intros x s p u _. rewrite dot_0r. rewrite (ex_ext _ _ (fun _ => 0)) by (intros; ring). apply ex_const.
  - intros x s p q a b0 u hp hq ne. lia.
  - intros x s. rewrite nrm2_0. lra.
Qed.
End OnSphere.
(* 1.6: random signs *)
Definition turned (s : nat -> bool) d t : nat -> bool := fun j => if Nat.eq_dec j d then t else s j.
Definition flip1 (E : law (nat -> bool)) (d : nat) : law (nat -> bool).
Proof.
  refine {| ex f := E (fun s => fair (fun t => f (turned s d t))) |}.
  - intros f g. rewrite <- ex_plus. apply ex_ext; intros s. apply (ex_plus fair).
  - intros c f. rewrite <- ex_scal. apply ex_ext; intros s. apply (ex_scal fair).
  - rewrite (ex_ext E _ (fun _ => 1)) by (intros; apply (ex_one fair)). apply ex_one.
  - intros f g h. apply ex_le; intros s. apply (ex_le fair); intros t. apply h.
Defined.
Fixpoint flips d : law (nat -> bool) := match d with O => dirac (fun _ => true) | S d => flip1 (flips d) d end.
Definition entries s (o : nat -> bool) : vec := fun j => if o j then s else - s.
Lemma flips_2 s d : forall a b, flips d (fun o => dn d a (entries s o) * dn d b (entries s o)) = s ^ 2 * dn d a b.
Proof.
  induction d; intros a b; [unfold dn; cbn; ring|]. change (flips (S d)) with (flip1 (flips d) d). cbn [ex flip1].
  assert (e : forall c o t, dn (S d) c (entries s (turned o d t)) = dn d c (entries s o) + c d * (if t then s else - s)).
  { intros c o t. unfold dn. rewrite sum_S, (sum_ext d (fun j => c j * entries s (turned o d t) j) (fun j => c j * entries s o j)).
    - unfold entries at 2. unfold turned. destruct (Nat.eq_dec d d); [reflexivity|congruence].
    - intros j hj. unfold entries, turned. destruct (Nat.eq_dec j d); [lia|reflexivity]. }
  rewrite (ex_ext (flips d) _ (fun o => dn d a (entries s o) * dn d b (entries s o) + a d * b d * s ^ 2)).
  - rewrite ex_plus, ex_const, IHd. unfold dn. rewrite sum_S. ring.
  - intros o. cbn [ex fair]. rewrite !e. field.
Qed.
Theorem signs_instance {D : Dim} s eta w : flips dim (fun o => nrm2 (w - eta *: (dot (entries s o) w *: entries s o))) = (1 - (2 * eta * s ^ 2 - INR dim * eta ^ 2 * s ^ 4)) * nrm2 w.
Proof.
  apply (Mud.step_1_6 (flips dim) (entries s) s eta w).
  - intros o. unfold nrm2, dot. rewrite (sum_ext dim _ (fun _ => s ^ 2)) by (intros; unfold entries; destruct (o i); ring). apply sum_const.
  - intros a b. exact (flips_2 s dim a b).
Qed.
