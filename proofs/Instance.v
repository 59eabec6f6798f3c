(* The hypotheses on the laws can be met: a uniformly random set of r of d coordinates, no noise. *)
From Coq Require Import Reals Lra Lia List FunctionalExtensionality.
From Fedtheory Require Import Core Noise Sampling Descent Ssf.
Import ListNotations.
Local Open Scope R_scope.

Lemma lsum_const {A} (l : list A) c : lsum l (fun _ => c) = c * lsum l (fun _ => 1).
Proof. rewrite <- lsum_scal. apply lsum_ext; intros; ring. Qed.
Definition uniform_sets n s (h : (s <= n)%nat) : law (list nat).
Proof.
  assert (p := cb_pos n s h).
  refine {| ex := Esets n s |}; unfold Esets.
  - intros. rewrite lsum_plus. ring.
  - intros. rewrite lsum_scal. ring.
  - rewrite cb_count. field. lra.
  - intros f g H. apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|].
    induction (subsets n s) as [|A l IH]; simpl; [lra|]. specialize (H A). lra.
Defined.

Definition coords (A : list nat) (v : vec) : vec := fun j => if in_dec Nat.eq_dec j A then v j else 0.
Lemma coords_proj {D : Dim} A : proj (coords A).
Proof.
  split; intros; try (unfold dot; apply sum_ext; intros); try (apply functional_extensionality; intros ?);
    unfold coords; vunfold; destruct in_dec; ring.
Qed.
Lemma sum_in n x A : NoDup A -> (forall i, In i A -> (i < n)%nat) ->
  sum n (fun j => if in_dec Nat.eq_dec j A then x j else 0) = lsum A x.
Proof.
  induction A as [|a A IH]; intros nd hb. { simpl. rewrite sum_const. ring. }
  inversion nd; subst. simpl lsum. rewrite <- IH, <- (sum_delta n a x), <- sum_plus by (auto; intros; apply hb; simpl; auto).
  apply sum_ext; intros j _. destruct (in_dec Nat.eq_dec j (a :: A)) as [i|i], (Nat.eq_dec j a), (in_dec Nat.eq_dec j A);
    subst; simpl in *; try tauto; try ring. exfalso; destruct i; auto.
Qed.
Lemma first_moment_R x n : forall s, lsum (subsets n s) (fun A => lsum A x) = c1 n s * sum n x.
Proof.
  intros s. assert (h := @first_moment 1%nat (fun i _ => x i) (fun _ => 1) n s).
  assert (e : forall A, @dot 1%nat (fun _ => 1) (pick (fun i _ => x i) A) = lsum A x).
  { intros A. assert (p : forall j, pick (fun i _ => x i) A j = lsum A x).
    { induction A; intros j; [reflexivity|]. rewrite pick_cons. simpl lsum. rewrite <- (IHA j). reflexivity. }
    unfold dot, dim. cbn [sum]. rewrite p. ring. }
  rewrite (lsum_ext _ _ (fun A => lsum A x)) in h by (intros; apply e). rewrite h. f_equal.
  change (0 + 1 * sum n x = sum n x). ring.
Qed.
(* E[P] = (r/d) I *)
Theorem E_coords {D : Dim} r (h : (1 <= r <= dim)%nat) u v :
  uniform_sets dim r (proj2 h) (fun A => dot u (coords A v)) = INR r / INR dim * dot u v.
Proof.
  simpl. unfold Esets. rewrite (lsum_ext _ _ (fun A => lsum A (fun j => u j * v j))).
  - rewrite first_moment_R. fold (dot u v). assert (p := cb_pos dim r (proj2 h)). destruct h as [h1 h2].
    destruct dim as [|d] eqn:E; [lia|]. destruct r as [|r]; [lia|]. change (c1 (S d) (S r)) with (cb d r).
    assert (a := absorb d r). assert (0 < INR (S d)) by (apply lt_0_INR; lia).
    replace (cb d r) with (INR (S r) * cb (S d) (S r) / INR (S d)) by (rewrite <- a; field; lra). field. lra.
  - intros A hA. rewrite <- sum_in with (n := dim); [|eapply subsets_nodup; eauto|intros; eapply subsets_below; eauto].
    apply sum_ext; intros. unfold coords. destruct in_dec; ring.
Qed.

(* the noise-free theorem for uniformly random coordinates, from the noisy one *)
Corollary ssf_coordinates {D : Dim} N K r (h : (1 <= r <= dim)%nat) F g L Fstar eta etag :
  let rho := INR r / INR dim in let t := etag * INR K * eta in
  (0 < N)%nat -> (0 < K)%nat -> 0 <= L -> (forall i, (i < N)%nat -> gradient (F i) (g i)) ->
  (forall i, (i < N)%nat -> lipschitz L (g i)) -> (forall x, Fstar <= Favg N F x) -> 0 < eta -> 0 < etag ->
  INR K * L * eta <= 1/10 -> L * t <= 1/4 -> (L * t) ^ 2 <= rho / 8 ->
  let ker (_ : state) (_ : list nat) (_ : list noise) := dirac ((fun _ => v0) : noise) in
  forall s0 T, inv N s0 -> (0 < T)%nat ->
  / INR T * sum T (fun k => Eit (round K (uniform_sets dim r (proj2 h)) ker) (step N K coords g eta etag) k
      (fun s => nrm2 (G N g (sx s))) s0)
  <= 20 * (Favg N F (sx s0) - Fstar) / (9 * rho * t * INR T) + 40 * (L ^ 2 * INR K ^ 2 * eta ^ 2) * Cerr N g s0 / (9 * rho * INR T).
Proof.
  intros rho t HN HK HL hg hl hb he heg s1 s2 s3 ker s0 T i0 T0.
  assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia). assert (r0 : 0 < INR r) by (apply lt_0_INR; lia).
  assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (m := theorem N K HN HK (uniform_sets dim r (proj2 h)) coords rho F g L Fstar eta etag 0 ker coords_proj (E_coords r h)).
  assert (rho01 : 0 < rho <= 1).
  { unfold rho. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l; lra. }
  specialize (m rho01 HL hg hl hb).
  assert (z1 : forall i : nat, (i < N)%nat -> nrm2 v0 <= 0 ^ 2) by (intros; rewrite nrm2_0; lra).
  specialize (m (fun _ _ _ _ u _ => dot_0r u) (fun _ _ _ i hi => z1 i hi) (fun _ _ _ _ _ a _ _ _ _ => ltac:(cbn; rewrite !dot_0r; ring)) he heg s1 s2 s3 s0 T i0 T0).
  eapply Rle_trans; [exact m|]. right. unfold etat. fold t.
  assert (INR N <> 0) by (apply not_0_INR; lia). assert (INR K <> 0) by (apply not_0_INR; lia).
  assert (INR T <> 0) by (apply not_0_INR; lia). assert (t <> 0).
  { unfold t. repeat apply Rmult_integral_contrapositive_currified; lra. }
  field. repeat split; auto; lra.
Qed.

(* noise that is not zero: client 0 adds v or -v, with a fair coin in every local step *)
Definition coin (v : vec) : law noise.
Proof.
  set (z := fun a : R => (fun i => match i with O => (a *: v)%V | _ => v0 end) : noise).
  refine {| ex f := / 2 * f (z 1) + / 2 * f (z (-1)) |}.
  - intros. ring.
  - intros. ring.
  - field.
  - intros f g h. assert (h1 := h (z 1)). assert (h2 := h (z (-1))). lra.
Defined.
Lemma coin_ok {D : Dim} v sigma : nrm2 v <= sigma ^ 2 ->
  (forall i u, coin v (fun z => dot u (z i)) = 0) /\ (forall i, coin v (fun z => nrm2 (z i)) <= sigma ^ 2) /\
  (forall i j a b, i <> j -> coin v (fun z => dot a (z i) * dot b (z j)) = 0).
Proof.
  intros hv. assert (s0 := pow2_ge_0 sigma). repeat split.
  - intros [|i] u; simpl; rewrite ?dot_scalr, ?dot_0r; field.
  - intros [|i]; simpl; rewrite ?nrm2_scal, ?nrm2_0; simpl in *; lra.
  - intros [|i] [|j] a b h; try congruence; simpl; rewrite ?dot_scalr, !dot_0r; ring.
Qed.
