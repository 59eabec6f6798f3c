(* The hypotheses of Family can be met at once: quadratic losses, r of d random coordinates, coin noise, S of N clients,
   kept memories refreshed in the subspace. No hypothesis but the steps is left. *)
From Coq Require Import Reals Lra Lia List FunctionalExtensionality.
From Fedtheory Require Import Noise Sampling Descent Instance Core Family.
Import ListNotations.
Local Open Scope R_scope.
Section Inst.
Context {D : Dim}.
Lemma coords_map01 A : map01 (coords A).
Proof.
  assert (p := coords_proj A). split; [apply p|apply p|apply p| |].
  - intros u. rewrite <- (p_nrm2 _ p). apply nrm2_ge0.
  - intros u. rewrite <- (p_nrm2 _ p). apply (p_le _ p).
Qed.
Variable b : nat -> vec.
Definition Fq i x : R := 1/2 * nrm2 (x - b i).
Definition gq i x : vec := (x - b i)%V.
Lemma gq_gradient i : gradient (Fq i) (gq i).
Proof.
  intros x s eps he. unfold Fq, gq. set (a := (x - b i)%V). assert (n0 := nrm2_ge0 s).
  assert (del : 0 < eps / (nrm2 s + 1)) by (apply Rdiv_lt_0_compat; lra). exists (mkposreal _ del). intros h h0 hd. simpl in hd.
  replace (x + (0 + h) *: s - b i)%V with (a + h *: s)%V by (unfold a; vring).
  replace (x + 0 *: s - b i)%V with a by (unfold a; vring).
  rewrite nrm2_add, nrm2_scal, dot_scalr.
  replace ((1/2 * (nrm2 a + 2 * (h * dot a s) + h * h * nrm2 s) - 1/2 * nrm2 a) / h - dot a s) with (h * (1/2 * nrm2 s)) by (field; auto).
  rewrite Rabs_mult, (Rabs_right (1/2 * nrm2 s)) by lra.
  assert (ha := Rabs_pos h). assert (e : eps / (nrm2 s + 1) * (nrm2 s + 1) = eps) by (field; lra).
  assert (k : Rabs h * (nrm2 s + 1) < eps) by (rewrite <- e; apply Rmult_lt_compat_r; lra).
  assert (k2 : 0 <= Rabs h * nrm2 s) by (apply Rmult_le_pos; lra). lra.
Qed.
Theorem family_instance (N Sn K r : nat) (S1 : (0 < Sn)%nat) (SN : (Sn <= N)%nat) (h : (1 <= r <= dim)%nat) (v : vec) (sigma eta etag : R) :
  let rho := INR r / INR dim in let draw := uniform_sets dim r (proj2 h) in
  let ci (m : nat -> vec) := m in let ker (_ : @state (nat -> vec)) (_ : list nat) (_ : list noise) := coin v in
  let upd (s : @state (nat -> vec)) A w h : nat -> vec := fun i =>
    if in_dec Nat.eq_dec i A then (smem s i - coords w (smem s i) + coords w (gbar N K coords gq eta ci s w i h))%V else smem s i in
  (2 <= N)%nat -> (0 < K)%nat -> nrm2 v <= sigma ^ 2 -> 0 < eta -> 0 < etag ->
  INR K * 1 * eta <= 1/10 -> 1 * etat K eta etag <= 1/4 -> hh K 1 eta etag ^ 2 <= phi N Sn ^ 2 * rho / 64 ->
  forall s0 T, (0 < T)%nat ->
  / INR T * sum T (fun t => Eit (round N Sn K SN draw ker) (step N Sn coords gq eta etag ci upd) t (fun s => nrm2 (G N gq (sx s))) s0)
  <= 20 * (Favg N Fq (sx s0) - 0) / (9 * rho * etat K eta etag * INR T)
     + (55/10 * pp K 1 eta + 62/10 * hh K 1 eta etag * nu N Sn) * Ckept N gq ci s0 / (phi N Sn * rho * INR T)
     + 1 * sigma ^ 2 / (rho * INR K) * (20/9 * hh K 1 eta etag / INR Sn + 20 * hh K 1 eta etag * nu N Sn + 19 * pp K 1 eta).
Proof.
  intros rho draw ci ker upd N2 K1 hv he heg s1 s2 s3 s0 T T0.
  assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia). assert (r0 : 0 < INR r) by (apply lt_0_INR; lia).
  assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (rho01 : 0 < rho <= 1).
  { unfold rho. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  destruct (coin_ok v sigma hv) as [c1 [c2 _]].
  apply (step_7_4 N Sn K S1 SN K1 draw coords rho 1 1 Fq gq 1 0 eta etag sigma ci ker upd); auto; try lra.
  - exact coords_map01.
  - exact (E_coords r h).
  - intros a. right. rewrite Rmult_1_l. transitivity (draw (fun w => dot a (coords w a))); [|exact (E_coords r h a a)].
    apply ex_ext; intros w. apply p_nrm2, coords_proj.
  - intros i _ x y. unfold gq. right. replace (x - b i - (y - b i))%V with (x - y)%V by vring. ring.
  - intros s k i _ _. rewrite Rmult_1_l, <- (ex_const draw (sigma ^ 2)). apply ex_le; intros w.
    rewrite <- (ex_const (path (ker s w) k) (sigma ^ 2)). apply ex_le; intros hs. eapply Rle_trans; [|apply (c2 i)].
    apply (ex_le (coin v)); intros z. apply (m_le _ (coords_map01 w)).
  - intros i _. apply gq_gradient.
  - intros s w hs [|i] [|j] _ _ ne; try congruence; unfold ker; simpl; rewrite ?dot_0l; try ring;
      replace (coords w v0) with v0 by (unfold coords; apply functional_extensionality; intros l; destruct in_dec; reflexivity);
      rewrite ?dot_0r; ring.
  - intros x. unfold Favg, meanR. apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat, lt_0_INR; lia|].
    apply sum_ge0; intros i _. unfold Fq. assert (n := nrm2_ge0 (x - b i)). lra.
Qed.
End Inst.
