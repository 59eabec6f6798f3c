(* What no method that moves inside a random subspace can beat: E ||x_t||^2 >= (1 - rho)^t ||x_0||^2. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Fedtheory Require Import Core Descent.
Local Open Scope R_scope.

Lemma geometric r T : (1 - r) * sum T (pow r) = 1 - r ^ T.
Proof. induction T; [simpl; ring|]. rewrite sum_S, Rmult_plus_distr_l, IHT. simpl. ring. Qed.

(* the quadratic F(x) = (L/2) ||x||^2: its gradient is L x, and no other map is one (inside the inner product) *)
Definition quad {D : Dim} (L : R) (x : vec) : R := L / 2 * nrm2 x.
Section Quad.
Context {D : Dim}.
Variable L : R.
Lemma quad_gradient : gradient (quad L) (fun x => L *: x)%V.
Proof.
  intros x s. unfold quad.
  replace (fun u => L / 2 * nrm2 (x + u *: s)%V)
    with (fun u => L / 2 * nrm2 x + (u * dot (L *: x)%V s + L / 2 * nrm2 s * (u * u))).
  2: { apply functional_extensionality; intros u. rewrite nrm2_add, nrm2_scal, dot_scalr, dot_scall. field. }
  set (c := dot (L *: x)%V s). replace (derivable_pt_lim _ 0 c)
    with (derivable_pt_lim (fun u => L / 2 * nrm2 x + (u * c + L / 2 * nrm2 s * (u * u))) 0
      (0 + ((1 * c + 0 * 0) + L / 2 * nrm2 s * (1 * 0 + 0 * 1)))) by (f_equal; ring).
  apply (derivable_pt_lim_plus (fun _ => L / 2 * nrm2 x)); [apply derivable_pt_lim_const|].
  apply (derivable_pt_lim_plus (fun u => u * c)).
  - apply (derivable_pt_lim_mult id (fun _ => c)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
  - apply (derivable_pt_lim_scal (fun u => u * u)). apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id.
Qed.
Lemma quad_lipschitz : lipschitz L (fun x => L *: x)%V.
Proof. intros x y. replace (L *: x - L *: y)%V with (L *: (x - y))%V by vring. rewrite nrm2_scal. lra. Qed.
Lemma quad_nrm2_gradient G : gradient (quad L) G -> forall x, nrm2 (G x) = L * L * nrm2 x.
Proof.
  intros h x. assert (e : forall s, dot (G x) s = dot (L *: x)%V s).
  { intros s. eapply uniqueness_limite; [apply h|apply quad_gradient]. }
  unfold nrm2 at 1. rewrite e, dotC, e. fold (nrm2 (L *: x)%V). apply nrm2_scal.
Qed.
Lemma quad_min : 0 <= L -> quad L v0 = 0 /\ forall x, 0 <= quad L x.
Proof.
  intros h. unfold quad. split; [rewrite nrm2_0; ring|]. intros x. apply Rmult_le_pos; [lra|apply nrm2_ge0].
Qed.
End Quad.

(* A method: a state machine on any states X whose position moves inside the subspace drawn in the round. Here the
   law of the round's draws may depend on the state (private randomness, noise), as long as E <v, P v> <= rho <v, v>
   holds given the state. *)
Section Method.
Context {D : Dim} {W X : Type}.
Variable kernel : X -> law W.
Variable P : W -> vec -> vec.
Variable rho : R.
Variable at_ : X -> vec.
Variable step : X -> W -> X.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis rho01 : 0 <= rho <= 1.
Hypothesis EP : forall s v, kernel s (fun w => dot v (P w v)) <= rho * dot v v.
Hypothesis inside : forall s w, exists u, (at_ (step s w) - at_ s)%V = P w u.
Notation E := (Eit kernel step).

(* what lies outside the subspace stays *)
Lemma outside s w : nrm2 (at_ s) - dot (at_ s) (P w (at_ s)) <= nrm2 (at_ (step s w)).
Proof.
  destruct (inside s w) as [u hu]. assert (pw := Pproj w).
  rewrite <- (p_nrm2 _ pw), <- (p_compl_nrm2 _ pw).
  assert (h := p_compl_nrm2 _ pw (at_ (step s w))). assert (h0 := nrm2_ge0 (P w (at_ (step s w)))).
  replace (compl (P w) (at_ s)) with (compl (P w) (at_ (step s w))); [lra|].
  replace (at_ (step s w)) with (at_ s + P w u)%V by (rewrite <- hu; vring).
  unfold compl. rewrite (p_add _ pw), (p_idem _ pw). vring.
Qed.
Lemma one_round s : (1 - rho) * nrm2 (at_ s) <= kernel s (fun w => nrm2 (at_ (step s w))).
Proof.
  eapply Rle_trans; [|apply ex_le; intros w; apply outside].
  rewrite (ex_ext _ _ (fun w => nrm2 (at_ s) + (-1) * dot (at_ s) (P w (at_ s)))) by (intros; ring).
  rewrite ex_plus, ex_scal, ex_const. assert (h := EP s (at_ s)). unfold nrm2 in *. lra.
Qed.
Theorem round_lower t : forall s,
  (1 - rho) * E t (fun s => nrm2 (at_ s)) s <= E (S t) (fun s => nrm2 (at_ s)) s.
Proof.
  induction t; intros s; [apply one_round|].
  change (E (S (S t)) ?f s) with (kernel s (fun w => E (S t) f (step s w))). simpl (E (S t) _ s) at 1.
  rewrite <- ex_scal. apply ex_le; intros w; apply IHt.
Qed.
Theorem iterate_lower s t : (1 - rho) ^ t * nrm2 (at_ s) <= E t (fun s => nrm2 (at_ s)) s.
Proof.
  induction t; [simpl; lra|]. eapply Rle_trans; [|apply round_lower].
  simpl pow. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|exact IHt].
Qed.
Theorem gradient_lower L G s T : gradient (quad L) G -> 0 < rho -> (0 < T)%nat ->
  2 * L * quad L (at_ s) * (1 - (1 - rho) ^ T) / (rho * INR T)
  <= / INR T * sum T (fun t => E t (fun s => nrm2 (G (at_ s))) s).
Proof.
  intros hG r0 T0%lt_0_INR.
  rewrite (sum_ext T _ (fun t => L * L * E t (fun s => nrm2 (at_ s)) s)).
  2: { intros t _. rewrite <- Eit_scal. f_equal. apply functional_extensionality; intros x.
       now apply quad_nrm2_gradient. }
  assert (h : sum T (fun t => nrm2 (at_ s) * (1 - rho) ^ t) <= sum T (fun t => E t (fun s => nrm2 (at_ s)) s)).
  { apply sum_le; intros t _. rewrite Rmult_comm. apply iterate_lower. }
  rewrite sum_scal in h. rewrite sum_scal. assert (g := geometric (1 - rho) T).
  replace (1 - (1 - rho)) with rho in g by ring. rewrite <- g. unfold quad.
  apply (Rmult_le_compat_l (/ INR T * (L * L))) in h.
  2: { apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|apply Rle_0_sqr]. }
  eapply Rle_trans; [|eapply Rle_trans; [exact h|right; ring]]. right. field. lra.
Qed.
End Method.

(* (A): P drawn each round from one law, independent of the past *)
Section Limits.
Context {D : Dim} {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable rho : R.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis rho01 : 0 <= rho <= 1.
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = rho * dot v v.

Theorem limits {X : Type} (at_ : X -> vec) (step : X -> O -> X) :
  (forall s w, exists u, (at_ (step s w) - at_ s)%V = P w u) ->
  let E t f s := Eit (fun _ => draw) step t f s in
  (forall s t, (1 - rho) * E t (fun s => nrm2 (at_ s)) s <= E (S t) (fun s => nrm2 (at_ s)) s) /\
  (forall s t, (1 - rho) ^ t * nrm2 (at_ s) <= E t (fun s => nrm2 (at_ s)) s) /\
  (forall L G s T, gradient (quad L) G -> 0 < rho -> (0 < T)%nat ->
    2 * L * quad L (at_ s) * (1 - (1 - rho) ^ T) / (rho * INR T)
    <= / INR T * sum T (fun t => E t (fun s => nrm2 (G (at_ s))) s)).
Proof.
  intros inside E. assert (EP' : forall (s : X) v, draw (fun w => dot v (P w v)) <= rho * dot v v) by (intros; rewrite EP; lra).
  repeat split; intros.
  - now apply (round_lower (fun _ => draw) P).
  - now apply (iterate_lower (fun _ => draw) P).
  - now apply (gradient_lower (fun _ => draw) P).
Qed.

(* x' = x - P x attains it *)
Definition best (x : vec) (w : O) : vec := (x - P w x)%V.
Notation E := (Eit (fun _ : vec => draw) best).
Lemma best_inside x w : exists u, (best x w - x)%V = P w u.
Proof. exists ((-1) *: x)%V. rewrite (p_scal _ (Pproj w)). unfold best. vring. Qed.
Lemma best_one x : draw (fun w => nrm2 (best x w)) = (1 - rho) * nrm2 x.
Proof.
  rewrite (ex_ext _ _ (fun w => nrm2 x + (-1) * dot x (P w x))).
  2: { intros w. fold (compl (P w) x). change (best x w) with (compl (P w) x).
       rewrite (p_compl_nrm2 _ (Pproj w)), (p_nrm2 _ (Pproj w)). ring. }
  rewrite ex_plus, ex_scal, ex_const, EP. unfold nrm2. ring.
Qed.
Theorem best_attains x :
  (forall t, E (S t) nrm2 x = (1 - rho) * E t nrm2 x) /\
  (forall t, E t nrm2 x = (1 - rho) ^ t * nrm2 x) /\
  (forall L G T, gradient (quad L) G -> 0 < rho -> (0 < T)%nat ->
    / INR T * sum T (fun t => E t (fun x => nrm2 (G x)) x)
    = 2 * L * quad L x * (1 - (1 - rho) ^ T) / (rho * INR T)).
Proof.
  assert (A : forall t x, E (S t) nrm2 x = (1 - rho) * E t nrm2 x).
  { induction t; intros y; [apply best_one|].
    change (E (S (S t)) nrm2 y) with (draw (fun w => E (S t) nrm2 (best y w))).
    change (E (S t) nrm2 y) with (draw (fun w => E t nrm2 (best y w))).
    rewrite <- ex_scal. apply ex_ext; intros w; apply IHt. }
  assert (B : forall t, E t nrm2 x = (1 - rho) ^ t * nrm2 x).
  { induction t; [simpl; ring|]. rewrite A, IHt. simpl. ring. }
  split; [intros; apply A|]. split; [exact B|]. intros L G T hG r0 T0%lt_0_INR.
  rewrite (sum_ext T _ (fun t => L * L * nrm2 x * (1 - rho) ^ t)).
  2: { intros t _. transitivity (L * L * E t nrm2 x); [|rewrite B; ring]. rewrite <- Eit_scal. f_equal.
       apply functional_extensionality; intros y. now apply quad_nrm2_gradient. }
  rewrite sum_scal. assert (g := geometric (1 - rho) T). replace (1 - (1 - rho)) with rho in g by ring.
  rewrite <- g. unfold quad. field. lra.
Qed.
End Limits.
