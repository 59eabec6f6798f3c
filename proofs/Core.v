(* Finite sums, vectors, the inner product, orthogonal projectors, expectations. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
Local Open Scope R_scope.

(* a product of what is not negative *)
Ltac pos := first [assumption | apply pow2_ge_0 | lra | apply Rmult_le_pos; pos].

(* ---- finite sums ---- *)
Fixpoint sum (n : nat) (f : nat -> R) : R := match n with O => 0 | S m => sum m f + f m end.

Lemma sum_S n f : sum (S n) f = sum n f + f n. Proof. reflexivity. Qed.
Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. induction n; simpl; intros h; auto. rewrite IHn, (h n) by (intros; try apply h; lia). auto. Qed.
Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n; simpl; intros h; [lra|]. assert (f n <= g n) by (apply h; lia).
  assert (sum n f <= sum n g) by (apply IHn; intros; apply h; lia). lra.
Qed.
Lemma sum_plus n f g : sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; simpl; rewrite ?IHn; lra. Qed.
Lemma sum_scal n a f : sum n (fun i => a * f i) = a * sum n f.
Proof. induction n; simpl; rewrite ?IHn; lra. Qed.
Lemma sum_const n a : sum n (fun _ => a) = INR n * a.
Proof. induction n; [simpl; lra|]. rewrite S_INR; simpl; rewrite IHn; lra. Qed.
Lemma sum_ge0 n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof. intros h. replace 0 with (sum n (fun _ => 0)) by (rewrite sum_const; lra). now apply sum_le. Qed.
Lemma sum_swap n m f : sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof. induction n; simpl; [rewrite sum_const; lra|]. now rewrite IHn, <- sum_plus. Qed.

Lemma sum_delta n c r : (c < n)%nat -> sum n (fun i => if Nat.eq_dec i c then r i else 0) = r c.
Proof.
  intros h. induction n; [lia|]. rewrite sum_S. destruct (Nat.eq_dec n c) as [->|ne].
  - rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|]. intros i hi. destruct (Nat.eq_dec i c); [lia|auto].
  - rewrite IHn by lia. ring.
Qed.

(* ---- vectors ---- *)
Class Dim := dim : nat.
Definition vec := nat -> R.
Declare Scope vec_scope.
Delimit Scope vec_scope with V.
Bind Scope vec_scope with vec.
Definition v0 : vec := fun _ => 0.
Definition vadd (u v : vec) : vec := fun j => u j + v j.
Definition vopp (u : vec) : vec := fun j => - u j.
Definition vsub (u v : vec) : vec := fun j => u j - v j.
Definition vscal (a : R) (u : vec) : vec := fun j => a * u j.
Definition vsum (n : nat) (f : nat -> vec) : vec := fun j => sum n (fun i => f i j).
Infix "+" := vadd : vec_scope.
Infix "-" := vsub : vec_scope.
Notation "- u" := (vopp u) : vec_scope.
Notation "a *: u" := (vscal a u) (at level 40) : vec_scope.
Open Scope vec_scope.
Open Scope R_scope.
Ltac vunfold := unfold vadd, vopp, vsub, vscal, v0 in *.
(* an identity of vectors is one of numbers *)
Ltac vring := apply functional_extensionality; intros ?; vunfold; ring.
Ltac vfield := apply functional_extensionality; intros ?; vunfold; field.

Lemma vsum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> vsum n f = vsum n g.
Proof. intros h. apply functional_extensionality; intros j. apply sum_ext; intros; now rewrite h. Qed.
Lemma vsum_plus n f g : vsum n (fun i => f i + g i)%V = (vsum n f + vsum n g)%V.
Proof. apply functional_extensionality; intros j. apply sum_plus. Qed.
Lemma vsum_scal n a f : vsum n (fun i => a *: f i)%V = (a *: vsum n f)%V.
Proof. apply functional_extensionality; intros j. apply sum_scal. Qed.
Lemma vsum_const n v : vsum n (fun _ => v) = (INR n *: v)%V.
Proof. apply functional_extensionality; intros j. exact (sum_const n (v j)). Qed.
Lemma vsum_S n f : vsum (S n) f = (vsum n f + f n)%V.
Proof. reflexivity. Qed.

Section Inner.
Context {D : Dim}.
Definition dot (u v : vec) : R := sum dim (fun j => u j * v j).
Definition nrm2 (v : vec) : R := dot v v.

Lemma dotC u v : dot u v = dot v u.
Proof. apply sum_ext; intros; ring. Qed.
Lemma dot_addr u v w : dot u (v + w) = dot u v + dot u w.
Proof. unfold dot. rewrite <- sum_plus. apply sum_ext; intros; vunfold; ring. Qed.
Lemma dot_scalr a u v : dot u (a *: v) = a * dot u v.
Proof. unfold dot. rewrite <- sum_scal. apply sum_ext; intros; vunfold; ring. Qed.
Lemma dot_addl u v w : dot (u + v) w = dot u w + dot v w.
Proof. now rewrite dotC, dot_addr, !(dotC w). Qed.
Lemma dot_scall a u v : dot (a *: u) v = a * dot u v.
Proof. now rewrite dotC, dot_scalr, dotC. Qed.
Lemma subE u v : (u - v)%V = (u + (-1) *: v)%V. Proof. vring. Qed.
Lemma oppE u : (- u)%V = ((-1) *: u)%V. Proof. vring. Qed.
Lemma dot_0r u : dot u v0 = 0.
Proof. replace v0 with (0 *: v0)%V by vring. rewrite dot_scalr; ring. Qed.
Lemma dot_0l u : dot v0 u = 0. Proof. rewrite dotC; apply dot_0r. Qed.
Lemma dot_sumr n u f : dot u (vsum n f) = sum n (fun i => dot u (f i)).
Proof. induction n; simpl. apply dot_0r. now rewrite vsum_S, dot_addr, IHn. Qed.
Lemma dot_suml n u f : dot (vsum n f) u = sum n (fun i => dot (f i) u).
Proof. rewrite dotC, dot_sumr. apply sum_ext; intros; apply dotC. Qed.

Lemma nrm2_ge0 v : 0 <= nrm2 v.
Proof. apply sum_ge0; intros; apply Rle_0_sqr. Qed.
Lemma nrm2_0 : nrm2 v0 = 0. Proof. apply dot_0r. Qed.
Lemma nrm2_add u v : nrm2 (u + v) = nrm2 u + 2 * dot u v + nrm2 v.
Proof. unfold nrm2. rewrite !dot_addl, !dot_addr, (dotC v u). ring. Qed.
Lemma nrm2_scal a v : nrm2 (a *: v) = a * a * nrm2 v.
Proof. unfold nrm2. rewrite dot_scall, dot_scalr. ring. Qed.
Lemma nrm2_sub u v : nrm2 (u - v) = nrm2 u - 2 * dot u v + nrm2 v.
Proof. rewrite subE, nrm2_add, nrm2_scal, dot_scalr. ring. Qed.
Lemma nrm2_subC u v : nrm2 (u - v) = nrm2 (v - u).
Proof. rewrite !nrm2_sub, (dotC v u). ring. Qed.
Lemma nrm2_opp v : nrm2 (- v) = nrm2 v.
Proof. rewrite oppE, nrm2_scal. ring. Qed.

(* 2.2 *)
Lemma nrm2_add_le2 u v : nrm2 (u + v) <= 2 * nrm2 u + 2 * nrm2 v.
Proof. assert (h := nrm2_ge0 (u - v)). rewrite nrm2_sub in h. rewrite nrm2_add. lra. Qed.
(* 4.2 *)
Lemma nrm2_add_young b u v : 0 < b -> nrm2 (u + v) <= (1 + b) * nrm2 u + (1 + / b) * nrm2 v.
Proof.
  intros b0. assert (h := nrm2_ge0 (b *: u - v)). rewrite nrm2_sub, nrm2_scal, dot_scall in h.
  assert (h2 := Rmult_le_pos _ _ (Rlt_le _ _ (Rinv_0_lt_compat b b0)) h).
  replace (/ b * (b * b * nrm2 u - 2 * (b * dot u v) + nrm2 v))
    with (b * nrm2 u - 2 * dot u v + / b * nrm2 v) in h2 by (field; lra).
  rewrite nrm2_add. lra.
Qed.
(* 2.3, by induction as on the page *)
Lemma nrm2_vsum k (a : nat -> vec) : nrm2 (vsum k a) <= INR k * sum k (fun j => nrm2 (a j)).
Proof.
  induction k. { change (vsum 0 a) with v0. rewrite nrm2_0. simpl; lra. }
  rewrite vsum_S, nrm2_add, S_INR. simpl sum.
  assert (h : 0 <= sum k (fun j => nrm2 (a j - a k))) by (apply sum_ge0; intros; apply nrm2_ge0).
  rewrite (sum_ext _ _ (fun j => nrm2 (a j) + ((-2) * dot (a j) (a k) + nrm2 (a k)))) in h
    by (intros; rewrite nrm2_sub; ring).
  rewrite !sum_plus, sum_scal, sum_const, <- dot_suml in h. lra.
Qed.
Lemma nrm2_mean n (a : nat -> vec) : (0 < n)%nat ->
  nrm2 (/ INR n *: vsum n a) <= / INR n * sum n (fun i => nrm2 (a i)).
Proof.
  intros n0%lt_0_INR. rewrite nrm2_scal. assert (h := nrm2_vsum n a).
  assert (i0 := Rlt_le _ _ (Rinv_0_lt_compat _ n0)).
  apply (Rmult_le_compat_l (/ INR n * / INR n)) in h; [|now apply Rmult_le_pos].
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.

(* coordinates *)
Definition basis l : vec := fun j => if Nat.eq_dec j l then 1 else 0.
Lemma dot_basis l v : (l < dim)%nat -> dot (basis l) v = v l.
Proof.
  intros h. unfold dot, basis. rewrite <- (sum_delta dim l v h). apply sum_ext; intros. destruct Nat.eq_dec; ring.
Qed.
Lemma dot_coords u v : dot u v = sum dim (fun l => dot (basis l) u * dot (basis l) v).
Proof. apply sum_ext; intros l h. now rewrite !dot_basis. Qed.

(* an orthogonal projector: a linear, symmetric, idempotent map *)
Record proj (P : vec -> vec) : Prop := {
  p_add : forall u v, P (u + v)%V = (P u + P v)%V;
  p_scal : forall a u, P (a *: u)%V = (a *: P u)%V;
  p_sym : forall u v, dot (P u) v = dot u (P v);
  p_idem : forall u, P (P u) = P u }.
Definition compl (P : vec -> vec) (u : vec) : vec := (u - P u)%V.

Section Proj.
Variable P : vec -> vec.
Hypothesis HP : proj P.
Lemma p_sub u v : P (u - v)%V = (P u - P v)%V.
Proof. now rewrite subE, (p_add _ HP), (p_scal _ HP), <- subE. Qed.
Lemma vscal_0 u : (0 *: u)%V = v0. Proof. vring. Qed.
Lemma p_0 : P v0 = v0.
Proof. now rewrite <- (vscal_0 v0) at 1; rewrite (p_scal _ HP), vscal_0. Qed.
Lemma p_vsum n f : P (vsum n f) = vsum n (fun i => P (f i)).
Proof. induction n; [exact p_0|]. now rewrite !vsum_S, (p_add _ HP), IHn. Qed.
Lemma p_dot u v : dot (P u) (P v) = dot u (P v).
Proof. now rewrite (p_sym _ HP), (p_idem _ HP). Qed.
Lemma p_nrm2 u : nrm2 (P u) = dot u (P u). Proof. apply p_dot. Qed.
Lemma p_compl_nrm2 u : nrm2 (compl P u) = nrm2 u - nrm2 (P u).
Proof. unfold compl. rewrite nrm2_sub, <- p_nrm2. ring. Qed.
(* 4.1 *)
Lemma p_le u : nrm2 (P u) <= nrm2 u.
Proof. assert (h := nrm2_ge0 (compl P u)). rewrite p_compl_nrm2 in h. lra. Qed.
Lemma p_pyth u v : nrm2 (compl P u + P v) = nrm2 (compl P u) + nrm2 (P v).
Proof.
  rewrite nrm2_add. replace (dot (compl P u) (P v)) with 0; [ring|].
  unfold compl. rewrite subE, dot_addl, dot_scall, p_dot. ring.
Qed.
End Proj.
End Inner.

(* ---- expectations: what the proofs use of them, and finite laws as the instance ---- *)
Record law (O : Type) := {
  ex :> (O -> R) -> R;
  ex_plus : forall f g, ex (fun w => f w + g w) = ex f + ex g;
  ex_scal : forall a f, ex (fun w => a * f w) = a * ex f;
  ex_one : ex (fun _ => 1) = 1;
  ex_le : forall f g, (forall w, f w <= g w) -> ex f <= ex g }.
Arguments ex {O}. Arguments ex_plus {O}. Arguments ex_scal {O}. Arguments ex_one {O}. Arguments ex_le {O}.

Section Law.
Context {O : Type}.
Variable E : law O.
Lemma ex_ext f g : (forall w, f w = g w) -> E f = E g.
Proof. intros h. apply Rle_antisym; apply ex_le; intros w; rewrite h; lra. Qed.
Lemma ex_const a : E (fun _ => a) = a.
Proof. rewrite (ex_ext _ (fun _ => a * 1)) by (intros; ring). rewrite ex_scal, ex_one. ring. Qed.
Lemma ex_ge0 f : (forall w, 0 <= f w) -> 0 <= E f.
Proof. intros h. rewrite <- (ex_const 0). now apply ex_le. Qed.
Lemma ex_sum n f : E (fun w => sum n (fun i => f i w)) = sum n (fun i => E (f i)).
Proof. induction n; simpl. apply ex_const. now rewrite ex_plus, IHn. Qed.
End Law.

(* uncorrelated vectors stay so behind a symmetric map *)
Lemma ex_uncorrelated {D : Dim} {O} (E : law O) (x y : O -> vec) (P : vec -> vec) :
  (forall u v, dot (P u) v = dot u (P v)) -> (forall a b, E (fun z => dot a (x z) * dot b (y z)) = 0) ->
  E (fun z => dot (x z) (P (y z))) = 0.
Proof.
  intros sy h. rewrite (ex_ext E _ (fun z => sum dim (fun l => dot (basis l) (x z) * dot (P (basis l)) (y z)))).
  - rewrite ex_sum, (sum_ext _ _ (fun _ => 0)) by (intros; apply h). rewrite sum_const. ring.
  - intros z. rewrite dot_coords. apply sum_ext; intros. now rewrite sy.
Qed.

(* finite weighted sums *)
Definition finite (n : nat) (p : nat -> R) (p0 : forall w, 0 <= p w) (p1 : sum n p = 1) : law nat.
Proof.
  refine {| ex f := sum n (fun w => p w * f w) |}.
  - intros f g. rewrite <- sum_plus. apply sum_ext; intros; ring.
  - intros a f. rewrite <- sum_scal. apply sum_ext; intros; ring.
  - transitivity (sum n p); [|exact p1]. apply sum_ext; intros; ring.
  - intros f g h. apply sum_le; intros. now apply Rmult_le_compat_l.
Defined.
(* first one draw, then another that may depend on it *)
Definition bind {O O'} (E : law O) (k : O -> law O') : law (O * O').
Proof.
  refine {| ex f := E (fun w => k w (fun z => f (w, z))) |}.
  - intros f g. rewrite <- ex_plus. apply ex_ext; intros; apply ex_plus.
  - intros a f. rewrite <- ex_scal. apply ex_ext; intros; apply ex_scal.
  - rewrite (ex_ext E _ (fun _ => 1)) by (intros; apply ex_one). apply ex_one.
  - intros f g h. apply ex_le; intros; apply ex_le; intros; apply h.
Defined.

(* T rounds of a Markov recursion *)
Section Rounds.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Fixpoint Eit (t : nat) (f : X -> R) (s : X) : R :=
  match t with O => f s | S t => kernel s (fun w => Eit t f (step s w)) end.
Lemma Eit_scal a f t : forall s, Eit t (fun s => a * f s) s = a * Eit t f s.
Proof. induction t; intros s; simpl; auto. rewrite <- ex_scal. apply ex_ext; intros; apply IHt. Qed.
(* 5.6; c is what the noise adds in every round *)
Lemma telescope (inv : X -> Prop) (Phi g : X -> R) c :
  (forall s w, inv s -> inv (step s w)) ->
  (forall s, inv s -> kernel s (fun w => Phi (step s w)) <= Phi s - g s + c) ->
  (forall s, 0 <= Phi s) ->
  forall T s, inv s -> sum T (fun t => Eit t g s) <= Phi s + INR T * c.
Proof.
  intros hi h1 h0 T. induction T; intros s hs. { simpl. specialize (h0 s). lra. }
  assert (split : sum (S T) (fun t => Eit t g s) = g s + sum T (fun t => Eit (S t) g s)).
  { clear. induction T; [simpl; ring|]. simpl sum in *. rewrite IHT. simpl. ring. }
  rewrite split. simpl Eit. rewrite <- (ex_sum (kernel s) T (fun t w => Eit t g (step s w))).
  assert (h2 : kernel s (fun w => sum T (fun t => Eit t g (step s w))) <= kernel s (fun w => Phi (step s w) + INR T * c)).
  { apply ex_le; intros w. apply IHT, hi, hs. }
  rewrite ex_plus, ex_const in h2. specialize (h1 s hs). rewrite S_INR. lra.
Qed.
End Rounds.
