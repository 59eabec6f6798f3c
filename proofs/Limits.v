(* docs/theory/limits.md: what a subspace must cost. step_1_1 is the page's [limits.1.1]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality Classical.
From Fedtheory Require Ssf Family Decomfl.
From Fedtheory Require Import Noise Sampling Descent Instance Mud Core.
Import ListNotations.
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

(* ================= 1: the average, any projectors ================= *)
(* what cannot fall faster than by a share c a round, on average *)
Section Contract.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Variable n : X -> R.
Variable c : R.
Hypothesis one : forall s, (1 - c) * n s <= kernel s (fun w => n (step s w)).
Notation E := (Eit kernel step).
Lemma contract_round t : forall s, (1 - c) * E t n s <= E (S t) n s.
Proof.
  induction t; intros s; [apply one|].
  change (E (S (S t)) ?f s) with (kernel s (fun w => E (S t) f (step s w))). simpl (E (S t) _ s) at 1.
  rewrite <- ex_scal. apply ex_le; intros w; apply IHt.
Qed.
Hypothesis c1 : c <= 1.
Lemma contract_iterate s t : (1 - c) ^ t * n s <= E t n s.
Proof.
  induction t; [simpl; lra|]. eapply Rle_trans; [|apply contract_round].
  simpl pow. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|exact IHt].
Qed.
(* v: the squared gradient; Delta: the gap at the start *)
Lemma contract_sum (v : X -> R) L Delta s T : (forall x, v x = L * L * n x) -> L / 2 * n s = Delta -> 0 < c -> (0 < T)%nat ->
  2 * L * Delta * (1 - (1 - c) ^ T) / (c * INR T) <= / INR T * sum T (fun t => E t v s).
Proof.
  intros hv <- c0 T0%lt_0_INR.
  rewrite (sum_ext T _ (fun t => L * L * E t n s)).
  2: { intros t _. rewrite <- Eit_scal. f_equal. apply functional_extensionality; intros x. apply hv. }
  assert (h : sum T (fun t => n s * (1 - c) ^ t) <= sum T (fun t => E t n s)).
  { apply sum_le; intros t _. rewrite Rmult_comm. apply contract_iterate. }
  rewrite sum_scal in h. rewrite sum_scal. assert (g := geometric (1 - c) T).
  replace (1 - (1 - c)) with c in g by ring. rewrite <- g.
  apply (Rmult_le_compat_l (/ INR T * (L * L))) in h.
  2: { apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|apply Rle_0_sqr]. }
  eapply Rle_trans; [|eapply Rle_trans; [exact h|right; ring]]. right. field. lra.
Qed.
End Contract.

Lemma step_1_1 {D : Dim} P : proj P -> forall x u, nrm2 (x + P u) = nrm2 x - dot x (P x) + nrm2 (P x + P u).
Proof.
  intros pw x u. rewrite !nrm2_add, (p_nrm2 _ pw x). rewrite (p_dot _ pw x u). ring.
Qed.

(* A method: a state machine on any states X whose position moves inside the subspace of the round. The law of the
   round's draws may depend on the state: private randomness, noise, samples. *)
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

Lemma one_round s : (1 - rho) * nrm2 (at_ s) <= kernel s (fun w => nrm2 (at_ (step s w))).
Proof.
  eapply Rle_trans; [|apply (ex_le (kernel s) (fun w => nrm2 (at_ s) + (-1) * dot (at_ s) (P w (at_ s))))].
  - rewrite ex_plus, ex_scal, ex_const. assert (h := EP s (at_ s)). unfold nrm2 in *. lra.
  - intros w. destruct (inside s w) as [u hu]. replace (at_ (step s w)) with (at_ s + P w u)%V by (rewrite <- hu; vring).
    rewrite (step_1_1 _ (Pproj w)). assert (h0 := nrm2_ge0 (P w (at_ s) + P w u)). lra.
Qed.
Lemma step_1_2 t : forall s, (1 - rho) * E t (fun s => nrm2 (at_ s)) s <= E (S t) (fun s => nrm2 (at_ s)) s.
Proof. apply (contract_round kernel step (fun s => nrm2 (at_ s)) rho one_round). Qed.
Lemma step_1_3 s t : (1 - rho) ^ t * nrm2 (at_ s) <= E t (fun s => nrm2 (at_ s)) s.
Proof. apply (contract_iterate kernel step (fun s => nrm2 (at_ s)) rho one_round). lra. Qed.
(* with Delta = F(x^0), F = quad L *)
Lemma step_1_4 L G s T : gradient (quad L) G -> 0 < rho -> (0 < T)%nat ->
  (forall x, nrm2 (G x) = L * L * nrm2 x) /\ L * L * nrm2 (at_ s) = 2 * L * quad L (at_ s) /\
  2 * L * quad L (at_ s) * (1 - (1 - rho) ^ T) / (rho * INR T)
  <= / INR T * sum T (fun t => E t (fun s => nrm2 (G (at_ s))) s).
Proof.
  intros hG r0 T0. assert (g := quad_nrm2_gradient L G hG). split; [exact g|]. split; [unfold quad; field|].
  apply (contract_sum kernel step (fun s => nrm2 (at_ s)) rho one_round); auto; lra.
Qed.
End Method.

Section Best.
Context {D : Dim} {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable rho : R.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = rho * dot v v.

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
Lemma step_1_5 x : (forall w, nrm2 (P w x + P w ((-1) *: x)%V) = 0) /\ (forall w, exists u, (best x w - x)%V = P w u) /\
  (forall t, E (S t) nrm2 x = (1 - rho) * E t nrm2 x) /\
  (forall t, E t nrm2 x = (1 - rho) ^ t * nrm2 x) /\
  (forall L G T, gradient (quad L) G -> 0 < rho -> (0 < T)%nat ->
    / INR T * sum T (fun t => E t (fun x => nrm2 (G x)) x)
    = 2 * L * quad L x * (1 - (1 - rho) ^ T) / (rho * INR T)).
Proof.
  split. { intros w. rewrite (p_scal _ (Pproj w)). replace (P w x + (-1) *: P w x)%V with v0 by vring. apply nrm2_0. }
  split; [apply best_inside|].
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
End Best.

(* any symmetric P, a step a / L that is chosen before P is drawn, at any state *)
Section OneStep.
Context {D : Dim} {W X : Type}.
Variable kernel : X -> law W.
Variable P : W -> vec -> vec.
Variable at_ : X -> vec.
Variable step : X -> W -> X.
Variables rho omega L : R.
Variable G : vec -> vec.
Variable a : X -> R.
Hypothesis EP : forall s v, kernel s (fun w => dot v (P w v)) = rho * dot v v.
Hypothesis EPP : forall s v, kernel s (fun w => nrm2 (P w v)) = omega * rho * nrm2 v.
Hypothesis omega0 : 0 < omega.
Hypothesis rho0 : 0 < rho.
Hypothesis rho_omega : rho <= omega.
Hypothesis L0 : 0 < L.
Hypothesis hG : gradient (quad L) G.
Hypothesis P_scal : forall w b v, P w (b *: v)%V = (b *: P w v)%V.
Hypothesis moves : forall s w, at_ (step s w) = (at_ s - (a s / L) *: P w (L *: at_ s))%V.
Lemma step_1_6 : let E := Eit kernel step in
  (forall s, kernel s (fun w => nrm2 (at_ (step s w))) = (1 - 2 * rho * a s + a s ^ 2 * omega * rho) * nrm2 (at_ s)) /\
  (forall b, 1 - rho / omega <= 1 - 2 * rho * b + b ^ 2 * omega * rho) /\
  1 - 2 * rho * / omega + (/ omega) ^ 2 * omega * rho = 1 - rho / omega /\
  (forall s T, (0 < T)%nat -> 2 * L * quad L (at_ s) * (1 - (1 - rho / omega) ^ T) / (rho / omega * INR T)
    <= / INR T * sum T (fun t => E t (fun s => nrm2 (G (at_ s))) s)).
Proof.
  intros E.
  assert (e1 : forall s, kernel s (fun w => nrm2 (at_ (step s w))) = (1 - 2 * rho * a s + a s ^ 2 * omega * rho) * nrm2 (at_ s)).
  { intros s. rewrite (ex_ext _ _ (fun w => nrm2 (at_ s) + ((-2) * a s * dot (at_ s) (P w (at_ s)) + a s ^ 2 * nrm2 (P w (at_ s))))).
    - rewrite !ex_plus, !ex_scal, ex_const, EP, EPP. unfold nrm2. ring.
    - intros w. rewrite moves, P_scal. replace ((a s / L) *: (L *: P w (at_ s)))%V with (a s *: P w (at_ s))%V by (vfield; lra).
      rewrite nrm2_sub, nrm2_scal, dot_scalr. ring. }
  assert (e2 : forall b, 1 - rho / omega <= 1 - 2 * rho * b + b ^ 2 * omega * rho).
  { intros b. assert (k : 0 <= rho * omega * (b - / omega) ^ 2) by pos.
    replace (rho * omega * (b - / omega) ^ 2) with (b ^ 2 * omega * rho - 2 * rho * b + rho / omega) in k by (field; lra). lra. }
  split; [exact e1|]. split; [exact e2|]. split; [field; lra|]. intros s T T0.
  apply (contract_sum kernel step (fun s => nrm2 (at_ s)) (rho / omega)); auto.
  - intros s'. rewrite e1. apply Rmult_le_compat_r; [apply nrm2_ge0|apply e2].
  - apply (Rmult_le_reg_r omega); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
  - intros x. now apply quad_nrm2_gradient.
  - now apply Rdiv_lt_0_compat.
Qed.
End OneStep.

(* ================= 2: the curvature that counts ================= *)
Section Effective.
Context {D : Dim} {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable F : vec -> R.
Variable G : vec -> vec.
Variable H : vec -> vec.
Variables rho omega L Fstar : R.
Hypothesis rho0 : 0 < rho.
Hypothesis omega0 : 0 < omega.
Hypothesis L0 : 0 < L.
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = rho * dot v v.
Hypothesis H_scal : forall a v, H (a *: v)%V = (a *: H v)%V.
Hypothesis smooth : forall x v, F (x + v)%V <= F x + dot (G x) v + / 2 * dot v (H v).
Hypothesis EPHP : forall z, draw (fun w => dot (P w z) (H (P w z))) <= rho * omega * L * dot z z.
Hypothesis bounded : forall x, Fstar <= F x.
Let eta := / (L * omega).
Definition move (e : R) (x : vec) (w : O) : vec := (x - e *: P w (G x))%V.

Lemma step_2_1 x : draw (fun w => F (move eta x w)) <= F x - rho / (2 * L * omega) * nrm2 (G x).
Proof.
  eapply Rle_trans; [apply (ex_le draw _ (fun w => F x + ((- eta) * dot (G x) (P w (G x))
    + eta * eta / 2 * dot (P w (G x)) (H (P w (G x))))))|].
  - intros w. unfold move. replace (x - eta *: P w (G x))%V with (x + (- eta) *: P w (G x))%V by vring.
    eapply Rle_trans; [apply smooth|]. rewrite H_scal, dot_scalr, dot_scall, dot_scalr. lra.
  - rewrite !ex_plus, !ex_scal, ex_const, EP. assert (h := EPHP (G x)).
    assert (e0 : 0 < eta) by (now apply Rinv_0_lt_compat, Rmult_lt_0_compat).
    assert (e2 : 0 <= eta * eta / 2) by (assert (k := Rle_0_sqr eta); unfold Rsqr in k; lra).
    apply (Rmult_le_compat_l _ _ _ e2) in h. fold (nrm2 (G x)) in *.
    replace (eta * eta / 2 * (rho * omega * L * nrm2 (G x))) with (rho / (2 * L * omega) * nrm2 (G x)) in h
      by (unfold eta; field; lra).
    replace (- eta * (rho * nrm2 (G x))) with ((-2) * (rho / (2 * L * omega) * nrm2 (G x))) by (unfold eta; field; lra).
    lra.
Qed.
Theorem step_2_2 x T : (0 < T)%nat ->
  / INR T * sum T (fun t => Eit (fun _ => draw) (move (/ (L * omega))) t (fun x => nrm2 (G x)) x)
  <= 2 * L * omega * (F x - Fstar) / (rho * INR T).
Proof.
  intros T0%lt_0_INR. fold eta.
  assert (h := telescope (fun _ => draw) (move eta) (fun _ => True) (fun x => F x - Fstar)
    (fun x => rho / (2 * L * omega) * nrm2 (G x)) 0 (fun _ _ _ => I)).
  assert (h1 : forall x, True -> draw (fun w => F (move eta x w) - Fstar)
    <= F x - Fstar - rho / (2 * L * omega) * nrm2 (G x) + 0).
  { intros y _. unfold Rminus at 1. rewrite ex_plus, ex_const. assert (k := step_2_1 y). lra. }
  specialize (h h1 (fun y => ltac:(assert (b := bounded y); lra)) T x I).
  rewrite (sum_ext T _ (fun t => rho / (2 * L * omega) * Eit (fun _ => draw) (move eta) t (fun x => nrm2 (G x)) x)) in h
    by (intros; apply Eit_scal).
  rewrite sum_scal, Rmult_0_r, Rplus_0_r in h.
  assert (c0 : 0 <= 2 * L * omega / (rho * INR T)).
  { apply Rlt_le, Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra. }
  apply (Rmult_le_compat_l _ _ _ c0) in h.
  eapply Rle_trans; [|eapply Rle_trans; [exact h|]]; right; field; lra.
Qed.
End Effective.

(* an L-Lipschitz gradient and orthogonal projectors: H = L, omega = 1 *)
Corollary effective_projector {D : Dim} {O : Type} (draw : law O) P F G rho L Fstar :
  0 < rho -> 0 < L -> (forall w, proj (P w)) -> (forall v, draw (fun w => dot v (P w v)) = rho * dot v v) ->
  gradient F G -> lipschitz L G -> (forall x, Fstar <= F x) -> forall x T, (0 < T)%nat ->
  / INR T * sum T (fun t => Eit (fun _ => draw) (move P G (/ L)) t (fun x => nrm2 (G x)) x)
  <= 2 * L * (F x - Fstar) / (rho * INR T).
Proof.
  intros r0 L0 pp ep hg hl hb x T T0.
  assert (h := step_2_2 draw P F G (fun v => L *: v)%V rho 1 L Fstar r0 Rlt_0_1 L0 ep).
  rewrite !Rmult_1_r in h. apply h; auto.
  - intros. vring.
  - intros y v. assert (k := smooth F G L (Rlt_le _ _ L0) hg hl y v). rewrite dot_scalr. fold (nrm2 v). lra.
  - intros z. rewrite (ex_ext _ _ (fun w => L * dot z (P w z))).
    + rewrite ex_scal, ep. lra.
    + intros w. rewrite dot_scalr. fold (nrm2 (P w z)). now rewrite (p_nrm2 _ (pp w)).
Qed.
(* P: the projector on a random subspace of r of d dimensions. Of its law: reflections leave second moments as they are. *)
Definition reflect {D : Dim} (n v : vec) : vec := (v - (2 * dot n v / nrm2 n) *: n)%V.
Definition ha (d r : R) : R := r * (d * (r + 1) - 2) / (d * (d - 1) * (d + 2)).
Definition hb (d r : R) : R := r * (d - r) / (d * (d - 1) * (d + 2)).
Section Haar.
Context {D : Dim} {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable r : R.
Notation d := (INR dim).
Hypothesis d2 : (2 <= dim)%nat.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = r / d * dot v v.
Hypothesis dimension : forall w, Decomfl.tr (P w) = r.
Hypothesis invariant : forall n u v, nrm2 n <> 0 ->
  draw (fun w => dot (reflect n u) (P w (reflect n v)) ^ 2) = draw (fun w => dot u (P w v) ^ 2).
Let D2 : 2 <= d. Proof. apply (le_INR 2). lia. Qed.
Definition m2 u v : R := draw (fun w => dot u (P w v) ^ 2).

Lemma reflect_fix n v : dot n v = 0 -> reflect n v = v.
Proof. intros h. unfold reflect. rewrite h. unfold Rdiv. vring. Qed.
Lemma reflect_swap u u' : nrm2 u = nrm2 u' -> nrm2 (u - u') <> 0 -> reflect (u - u') u = u'.
Proof.
  intros h h0. unfold reflect. assert (e : 2 * dot (u - u')%V u = nrm2 (u - u')).
  { rewrite nrm2_sub, h, subE, dot_addl, dot_scall. fold (nrm2 u). rewrite h, (dotC u' u). ring. }
  rewrite e. replace (nrm2 (u - u') / nrm2 (u - u')) with 1 by (field; auto). vring.
Qed.
Lemma dot_null n v : nrm2 n = 0 -> dot n v = 0.
Proof. intros h. assert (c := cauchy_schwarz n v). rewrite h in c. assert (0 <= (dot n v) ^ 2) by apply pow2_ge_0. simpl in H. nra. Qed.
Lemma m2_diff u u' v : nrm2 (u - u') = 0 -> m2 u v = m2 u' v.
Proof.
  intros h. apply ex_ext; intros w. f_equal. assert (e := dot_null _ (P w v) h). rewrite subE, dot_addl, dot_scall in e. lra.
Qed.
Lemma m2_scal a u v : m2 (a *: u)%V v = a ^ 2 * m2 u v.
Proof. unfold m2. rewrite <- ex_scal. apply ex_ext; intros w. rewrite dot_scall. ring. Qed.
Lemma m2_sym u v : m2 u v = m2 v u.
Proof. apply ex_ext; intros w. now rewrite <- (p_sym _ (Pproj w)), dotC. Qed.
(* the same Gram matrix *)
Lemma m2_gram u u' v : nrm2 u = nrm2 u' -> dot u v = dot u' v -> m2 u v = m2 u' v.
Proof.
  intros h1 h2. destruct (Req_dec (nrm2 (u - u')) 0) as [z|z]; [now apply m2_diff|].
  unfold m2. rewrite <- (invariant (u - u')%V u v z), reflect_swap, reflect_fix; auto.
  rewrite subE, dot_addl, dot_scall. lra.
Qed.
Lemma m2_own u u' : nrm2 u = nrm2 u' -> m2 u u = m2 u' u'.
Proof.
  intros h1. destruct (Req_dec (nrm2 (u - u')) 0) as [z|z].
  - rewrite (m2_diff u u' u z), m2_sym. now apply m2_diff.
  - unfold m2. rewrite <- (invariant (u - u')%V u u z). now rewrite !reflect_swap.
Qed.
Lemma sum_m2 v : sum dim (fun l => m2 (basis l) v) = r / d * nrm2 v.
Proof.
  unfold m2. rewrite <- (ex_sum draw). unfold nrm2. rewrite <- EP. apply ex_ext; intros w.
  rewrite <- (p_nrm2 _ (Pproj w)). unfold nrm2. rewrite dot_coords. apply sum_ext; intros; ring.
Qed.
Lemma basis_nrm2 l : (l < dim)%nat -> nrm2 (basis l) = 1. Proof. apply Decomfl.basis_1. Qed.
(* E <v, P v>^2 = p |v|^4 *)
Definition p_ : R := m2 (basis 0) (basis 0).
Lemma m2_p v : m2 v v = p_ * nrm2 v ^ 2.
Proof.
  assert (n0 := nrm2_ge0 v). set (s := sqrt (nrm2 v)). assert (ss : s * s = nrm2 v) by (apply sqrt_def; auto).
  rewrite (m2_own v (s *: basis 0)%V) by (rewrite nrm2_scal, basis_nrm2 by lia; lra).
  rewrite m2_scal, m2_sym, m2_scal. fold p_. rewrite <- ss. ring.
Qed.
(* E <u, P u> <v, P v> from the squares, by the parallelogram *)
Lemma mixed u v : draw (fun w => dot u (P w u) * dot v (P w v)) = p_ * (nrm2 u * nrm2 v + 2 * dot u v ^ 2) - 2 * m2 u v.
Proof.
  assert (h := m2_p (u + v)%V). assert (k := m2_p (u - v)%V). rewrite nrm2_add in h. rewrite nrm2_sub in k.
  assert (e : m2 (u + v)%V (u + v)%V + m2 (u - v)%V (u - v)%V
    = 2 * m2 u u + 2 * m2 v v + 4 * draw (fun w => dot u (P w u) * dot v (P w v)) + 8 * m2 u v).
  { unfold m2. rewrite <- !ex_scal, <- !ex_plus. apply ex_ext; intros w. assert (pw := Pproj w).
    rewrite (p_sub _ pw), (p_add _ pw), !subE, !dot_addl, !dot_addr, !dot_scall, !dot_scalr.
    rewrite (dotC v (P w u)), (p_sym _ pw u v). ring. }
  rewrite h, k, !m2_p in e. lra.
Qed.
Lemma p_value : p_ = r * (r + 2) / (d * (d + 2)).
Proof.
  set (z := basis 0). assert (z1 : nrm2 z = 1) by (apply basis_nrm2; lia).
  assert (e : sum dim (fun l => draw (fun w => dot (basis l) (P w (basis l)) * dot z (P w z))) = r * (r / d)).
  { rewrite <- (ex_sum draw). rewrite (ex_ext _ _ (fun w => r * dot z (P w z))).
    - rewrite ex_scal, EP. fold (nrm2 z). rewrite z1. ring.
    - intros w. rewrite <- (dimension w). unfold Decomfl.tr. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring. }
  rewrite (sum_ext dim _ (fun l => p_ * 1 + ((2 * p_) * (dot (basis l) z * dot (basis l) z) + (-2) * m2 (basis l) z))) in e.
  2: { intros l hl. rewrite mixed, (basis_nrm2 l hl), z1. ring. }
  rewrite !sum_plus, !sum_scal, sum_const, <- dot_coords, sum_m2 in e. fold (nrm2 z) in e. rewrite z1 in e.
  apply (Rmult_eq_reg_r (d + 2)); [|lra]. replace (r * (r + 2) / (d * (d + 2)) * (d + 2)) with (r * (r / d) + 2 * (r / d)) by (field; lra). lra.
Qed.
Notation a := (ha d r).
Notation b := (hb d r).
Lemma ab_facts : a + b * d = r / d /\ a + b = r * (r + 2) / (d * (d + 2)) /\ b = (r / d - p_) / (d - 1).
Proof. rewrite p_value. unfold ha, hb. repeat split; field; lra. Qed.
(* E <u, P v>^2, u orthogonal to v *)
Lemma m2_cross u v : dot u v = 0 -> m2 u v = b * nrm2 u * nrm2 v.
Proof.
  intros h. assert (nu := nrm2_ge0 u). assert (nv := nrm2_ge0 v).
  destruct (Req_dec (nrm2 v) 0) as [z|z].
  { rewrite z, Rmult_0_r. unfold m2. rewrite (ex_ext _ _ (fun _ => 0)); [apply ex_const|]. intros w.
    rewrite <- (p_sym _ (Pproj w)), dotC, (dot_null v) by auto. ring. }
  set (part l := (basis l - (dot (basis l) v / nrm2 v) *: v)%V).
  assert (po : forall l, dot (part l) v = 0).
  { intros l. unfold part. rewrite subE, dot_addl, !dot_scall. fold (nrm2 v). field. auto. }
  assert (pn : forall l, (l < dim)%nat -> nrm2 (part l) = 1 + (- / nrm2 v) * (dot (basis l) v * dot (basis l) v)).
  { intros l hl. unfold part. rewrite nrm2_sub, nrm2_scal, dot_scalr, basis_nrm2 by auto. field. auto. }
  (* of equal length after scaling *)
  assert (sc : forall l, nrm2 (part l) * m2 u v = nrm2 u * m2 (part l) v).
  { intros l. assert (np := nrm2_ge0 (part l)). set (s := sqrt (nrm2 u)). set (t := sqrt (nrm2 (part l))).
    assert (ss : s * s = nrm2 u) by (apply sqrt_def; auto). assert (tt : t * t = nrm2 (part l)) by (apply sqrt_def; auto).
    rewrite <- ss, <- tt. replace (t * t * m2 u v) with (m2 (t *: u)%V v) by (rewrite m2_scal; ring).
    replace (s * s * m2 (part l) v) with (m2 (s *: part l)%V v) by (rewrite m2_scal; ring).
    apply m2_gram; [rewrite !nrm2_scal, <- ss, <- tt; ring|]. rewrite !dot_scall, po, h. ring. }
  (* a part along v and one across *)
  assert (sp : forall l, m2 (basis l) v = (dot (basis l) v / nrm2 v) ^ 2 * m2 v v + m2 (part l) v).
  { intros l. set (c := dot (basis l) v / nrm2 v).
    assert (e1 : m2 (basis l) v = m2 (c *: v + part l)%V v) by (f_equal; unfold part; fold c; vring).
    assert (e2 : m2 (c *: v + part l)%V v = m2 (c *: v - part l)%V v).
    { apply m2_gram.
      - rewrite nrm2_add, nrm2_sub, !dot_scall, (dotC v), po. ring.
      - rewrite subE, !dot_addl, !dot_scall, po. ring. }
    assert (e3 : m2 (c *: v + part l)%V v + m2 (c *: v - part l)%V v = 2 * (c ^ 2 * m2 v v) + 2 * m2 (part l) v).
    { unfold m2. rewrite <- !ex_scal, <- !ex_plus. apply ex_ext; intros w. rewrite subE, !dot_addl, !dot_scall. ring. }
    lra. }
  assert (e := sum_m2 v). rewrite (sum_ext dim _ (fun l => (m2 v v / (nrm2 v * nrm2 v)) * (dot (basis l) v * dot (basis l) v) + m2 (part l) v)) in e.
  2: { intros l _. rewrite sp. field. auto. }
  rewrite sum_plus, sum_scal, <- dot_coords in e. fold (nrm2 v) in e.
  assert (s1 : sum dim (fun l => nrm2 (part l) * m2 u v) = nrm2 u * sum dim (fun l => m2 (part l) v)).
  { rewrite <- sum_scal. apply sum_ext; intros; apply sc. }
  rewrite (sum_ext dim _ (fun l => m2 u v * 1 + (- / nrm2 v * m2 u v) * (dot (basis l) v * dot (basis l) v))) in s1.
  2: { intros l hl. rewrite pn by auto. ring. }
  rewrite sum_plus, !sum_scal, sum_const, <- dot_coords in s1. fold (nrm2 v) in s1.
  replace (- / nrm2 v * m2 u v * nrm2 v) with (- m2 u v) in s1 by (field; auto).
  rewrite m2_p in e. replace (p_ * nrm2 v ^ 2 / (nrm2 v * nrm2 v) * nrm2 v) with (p_ * nrm2 v) in e by (field; auto).
  destruct ab_facts as [_ [_ ->]]. apply (Rmult_eq_reg_l (d - 1)); [|lra].
  replace ((d - 1) * ((r / d - p_) / (d - 1) * nrm2 u * nrm2 v)) with (nrm2 u * (r / d * nrm2 v - p_ * nrm2 v)) by (field; lra). 
  replace (sum dim (fun l => m2 (part l) v)) with (r / d * nrm2 v - p_ * nrm2 v) in s1 by lra. lra.
Qed.
Lemma m2_all u v : m2 u v = a * dot u v ^ 2 + b * nrm2 u * nrm2 v.
Proof.
  destruct (Req_dec (nrm2 v) 0) as [z|z].
  { assert (nu : dot u v = 0) by (rewrite dotC; now apply dot_null). rewrite m2_cross, nu by auto. ring. }
  set (c := dot u v / nrm2 v). set (q := (u - c *: v)%V).
  assert (po : dot q v = 0) by (unfold q, c; rewrite subE, dot_addl, !dot_scall; fold (nrm2 v); field; auto).
  assert (qn : nrm2 q = nrm2 u - dot u v ^ 2 / nrm2 v) by (unfold q, c; rewrite nrm2_sub, nrm2_scal, dot_scalr; field; auto).
  assert (e1 : m2 u v = m2 (c *: v + q)%V v) by (f_equal; unfold q; vring).
  assert (e2 : m2 (c *: v + q)%V v = m2 (c *: v - q)%V v).
  { apply m2_gram.
    - rewrite nrm2_add, nrm2_sub, !dot_scall, (dotC v), po. ring.
    - rewrite subE, !dot_addl, !dot_scall, po. ring. }
  assert (e3 : m2 (c *: v + q)%V v + m2 (c *: v - q)%V v = 2 * (c ^ 2 * m2 v v) + 2 * m2 q v).
  { unfold m2. rewrite <- !ex_scal, <- !ex_plus. apply ex_ext; intros w. rewrite subE, !dot_addl, !dot_scall. ring. }
  assert (e : m2 u v = c ^ 2 * m2 v v + m2 q v) by lra. rewrite e, m2_p, (m2_cross q v po), qn.
  destruct ab_facts as [_ [s _]]. rewrite p_value, <- s. unfold c. field. auto.
Qed.
Variable H : vec -> vec.
Variable L : R.
Hypothesis HH : mapL L H.
Notation tr := (Decomfl.tr H).
Lemma form_pq (u v : vec) : dot u (H v) = sum dim (fun k => sum dim (fun l => dot (basis k) u * dot (basis l) v * dot (basis k) (H (basis l)))).
Proof.
  rewrite dot_coords. apply sum_ext; intros k _. rewrite <- (l_sym _ _ HH), (dot_coords (H (basis k)) v), <- sum_scal.
  apply sum_ext; intros l _. rewrite <- (l_sym _ _ HH (basis k)), (dotC (H (basis k))). ring.
Qed.
Lemma m_pair u u' v : draw (fun w => dot u (P w v) * dot u' (P w v)) = a * (dot u v * dot u' v) + b * nrm2 v * dot u u'.
Proof.
  assert (e : m2 (u + u')%V v - m2 (u - u')%V v = 4 * draw (fun w => dot u (P w v) * dot u' (P w v))).
  { transitivity (m2 (u + u')%V v + (-1) * m2 (u - u')%V v); [ring|]. unfold m2. rewrite <- !ex_scal, <- ex_plus. apply ex_ext; intros w. rewrite subE, !dot_addl, dot_scall. ring. }
  rewrite !m2_all, nrm2_add, nrm2_sub, subE, !dot_addl, dot_scall in e. lra.
Qed.
Lemma PHP_quadratic v : draw (fun w => dot (P w v) (H (P w v))) = a * dot v (H v) + b * tr * nrm2 v.
Proof.
  rewrite (ex_ext _ _ (fun w => sum dim (fun k => sum dim (fun l => dot (basis k) (H (basis l)) * (dot (basis k) (P w v) * dot (basis l) (P w v)))))).
  2: { intros w. rewrite form_pq. apply sum_ext; intros k _. apply sum_ext; intros l _. ring. }
  rewrite ex_sum, (form_pq v v). unfold Decomfl.tr.
  transitivity (sum dim (fun k => a * sum dim (fun l => dot (basis k) v * dot (basis l) v * dot (basis k) (H (basis l))) + b * nrm2 v * dot (basis k) (H (basis k)))).
  2: { rewrite sum_plus, !sum_scal. ring. }
  apply sum_ext; intros k hk. rewrite ex_sum.
  rewrite (sum_ext dim _ (fun l => a * (dot (basis k) v * dot (basis l) v * dot (basis k) (H (basis l))) + b * nrm2 v * (dot (basis l) (basis k) * dot (basis l) (H (basis k))))).
  2: { intros l _. rewrite ex_scal, m_pair, <- (l_sym _ _ HH (basis k) (basis l)), (dotC (H (basis k))), (dotC (basis k) (basis l)). ring. }
  rewrite sum_plus, !sum_scal, <- dot_coords. ring.
Qed.
(* E <e, P e>^2 = a + b for every unit vector, and E[P H P] = a H + b tr H I *)
Lemma step_2_3 : a + b * d = r / d /\ (forall e, nrm2 e = 1 -> draw (fun w => dot e (P w e) ^ 2) = r * (r + 2) / (d * (d + 2))) /\
  a + b = r * (r + 2) / (d * (d + 2)) /\
  forall u v, draw (fun w => dot (P w u) (H (P w v))) = a * dot u (H v) + b * tr * dot u v.
Proof.
  destruct ab_facts as [f1 [f2 _]]. split; [exact f1|]. split; [|split; [exact f2|]].
  - intros e h. fold (m2 e e). rewrite m2_p, h, p_value. ring.
  - intros u v. assert (k := PHP_quadratic (u + v)%V). assert (k1 := PHP_quadratic u). assert (k2 := PHP_quadratic v).
    rewrite (ex_ext _ _ (fun w => dot (P w u) (H (P w u)) + (2 * dot (P w u) (H (P w v)) + dot (P w v) (H (P w v))))) in k.
    2: { intros w. rewrite (p_add _ (Pproj w)), (l_add _ _ HH), !dot_addl, !dot_addr. rewrite <- (l_sym _ _ HH (P w v) (P w u)), (dotC (H (P w v))). ring. }
    rewrite !ex_plus, ex_scal, k1, k2, (l_add _ _ HH), nrm2_add, !dot_addl, !dot_addr, <- (l_sym _ _ HH v u), (dotC (H v) u) in k. lra.
Qed.
(* the price ||E[P H P]|| / (rho^2 L), d_eff = tr H / L *)
Definition price (deff : R) : R := (a + b * deff) * d ^ 2 / r ^ 2.
Lemma step_2_4 : 0 < L -> 1 <= r <= d ->
  (forall v, draw (fun w => dot (P w v) (H (P w v))) <= price (tr / L) * (r / d) ^ 2 * L * nrm2 v) /\
  price (tr / L) <= 1 + (tr / L + 1) / r /\ price (tr / L) <= d / r /\
  (forall v, H v = (L *: v)%V -> draw (fun w => dot (P w v) (H (P w v))) = price (tr / L) * (r / d) ^ 2 * L * nrm2 v).
Proof.
  intros L0 [r1 rd].
  assert (e0 : 0 <= tr / L). { apply Rmult_le_pos; [apply sum_ge0; intros; apply (l_ge0 _ _ HH)|now apply Rlt_le, Rinv_0_lt_compat]. }
  assert (ed : tr / L <= d).
  { apply (Rmult_le_reg_r L); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite <- (sum_const dim L).
    apply sum_le; intros l hl. eapply Rle_trans; [apply (l_le _ _ HH)|]. rewrite basis_nrm2; auto; lra. }
  assert (den : 0 < d * (d - 1) * (d + 2)) by (repeat apply Rmult_lt_0_compat; lra).
  assert (a0 : 0 <= a). { unfold ha. apply Rmult_le_pos; [apply Rmult_le_pos; [lra|]|now apply Rlt_le, Rinv_0_lt_compat]. assert (0 <= (d - 2) * (r + 1)) by pos. lra. }
  assert (eq : forall v, price (tr / L) * (r / d) ^ 2 * L * nrm2 v = a * (L * nrm2 v) + b * tr * nrm2 v) by (intros v; unfold price; field; lra).
  set (k := tr / L) in *. assert (pk : price k = d * (d * (r + 1) - 2 + (d - r) * k) / (r * ((d - 1) * (d + 2)))) by (unfold price, ha, hb; field; lra).
  assert (q0 : 0 < (d - 1) * (d + 2)) by (apply Rmult_lt_0_compat; lra).
  split; [|split; [|split]].
  - intros v. rewrite PHP_quadratic, eq. apply Rplus_le_compat_r, Rmult_le_compat_l; [auto|apply (l_le _ _ HH)].
  - rewrite pk. apply (Rmult_le_reg_r (r * ((d - 1) * (d + 2)))); [apply Rmult_lt_0_compat; lra|].
    replace (d * (d * (r + 1) - 2 + (d - r) * k) / (r * ((d - 1) * (d + 2))) * (r * ((d - 1) * (d + 2)))) with (d * (d * (r + 1) - 2 + (d - r) * k)) by (field; lra).
    replace ((1 + (k + 1) / r) * (r * ((d - 1) * (d + 2)))) with ((r + k + 1) * ((d - 1) * (d + 2))) by (field; lra).
    assert (h1 : 0 <= k * (d * (r + 1) - 2)) by (apply Rmult_le_pos; [lra|]; assert (0 <= (d - 2) * (r + 1)) by pos; lra).
    assert (h2 : 0 <= (r + 1) * (d - 2)) by pos. lra.
  - rewrite pk. apply (Rmult_le_reg_r (r * ((d - 1) * (d + 2)))); [apply Rmult_lt_0_compat; lra|].
    replace (d * (d * (r + 1) - 2 + (d - r) * k) / (r * ((d - 1) * (d + 2))) * (r * ((d - 1) * (d + 2)))) with (d * (d * (r + 1) - 2 + (d - r) * k)) by (field; lra).
    replace (d / r * (r * ((d - 1) * (d + 2)))) with (d * ((d - 1) * (d + 2))) by (field; lra).
    apply Rmult_le_compat_l; [lra|]. assert (h1 : 0 <= (d - r) * (d - k)) by pos. lra.
  - intros v hv. rewrite PHP_quadratic, eq, hv, dot_scalr. unfold nrm2. ring.
Qed.
(* F = (L/2) |Q x|^2, Q a projector of rank m; steps eta that are chosen before P is drawn *)
Lemma Q_map (Q : vec -> vec) : proj Q -> mapL 1 Q.
Proof. intros q. split; try apply q; intros u; rewrite <- (p_nrm2 _ q); [apply nrm2_ge0|rewrite Rmult_1_l; apply (p_le _ q)]. Qed.
End Haar.
Lemma bowl_gradient {D : Dim} L (Q : vec -> vec) : proj Q -> gradient (fun x => quad L (Q x)) (fun x => L *: Q x)%V.
Proof.
  intros q x s. assert (h := quad_gradient L (Q x) (Q s)). cbv beta in h. rewrite dot_scall, p_dot, <- (p_sym _ q), <- dot_scall in h; auto.
  eapply derivable_pt_lim_ext; [|exact h]. intros u. cbv beta. now rewrite (p_add _ q), (p_scal _ q).
Qed.
Section Bowl.
Context {D : Dim} {O X : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variables r L : R.
Notation d := (INR dim).
Hypothesis d2 : (2 <= dim)%nat.
Hypothesis r1 : 1 <= r <= d.
Hypothesis L0 : 0 < L.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = r / d * dot v v.
Hypothesis dimension : forall w, Decomfl.tr (P w) = r.
Hypothesis invariant : forall n u v, nrm2 n <> 0 ->
  draw (fun w => dot (reflect n u) (P w (reflect n v)) ^ 2) = draw (fun w => dot u (P w v) ^ 2).
Variable Q : vec -> vec.
Hypothesis Qproj : proj Q.
Variable m : R.
Hypothesis rank : Decomfl.tr Q = m.
Hypothesis m1 : 1 <= m.
Variable at_ : X -> vec.
Variable step : X -> O -> X.
Variable eta : X -> R.
Notation rho := (r / d).
Notation c := (ha d r + hb d r * m).
Hypothesis moves : forall s w, at_ (step s w) = (at_ s - eta s *: P w (L *: Q (at_ s)))%V.
Let D2 : 2 <= d. Proof. apply (le_INR 2). lia. Qed.
Let rho0 : 0 < rho. Proof. apply Rdiv_lt_0_compat; lra. Qed.
Lemma c_low : rho ^ 2 <= c.
Proof.
  assert (b0 : 0 <= hb d r). { unfold hb, Rdiv. apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat. repeat apply Rmult_lt_0_compat; lra. }
  assert (k : 0 <= hb d r * (m - 1)) by pos.
  assert (e : ha d r + hb d r = r * (r + 2) / (d * (d + 2))) by (unfold ha, hb; field; lra).
  assert (rho ^ 2 <= r * (r + 2) / (d * (d + 2))); [|lra].
  apply (Rmult_le_reg_r (d ^ 2 * (d + 2))); [apply Rmult_lt_0_compat; [apply pow_lt; lra|lra]|].
  replace (rho ^ 2 * (d ^ 2 * (d + 2))) with (r * (r * (d + 2))) by (field; lra).
  replace (r * (r + 2) / (d * (d + 2)) * (d ^ 2 * (d + 2))) with (r * ((r + 2) * d)) by (field; lra).
  apply Rmult_le_compat_l; lra.
Qed.
Lemma step_2_7 :
  (forall s, draw (fun w => nrm2 (Q (at_ (step s w)))) = (1 - 2 * rho * L * eta s + L ^ 2 * eta s ^ 2 * c) * nrm2 (Q (at_ s))) /\
  (forall e, 1 - rho ^ 2 / c <= 1 - 2 * rho * L * e + L ^ 2 * e ^ 2 * c) /\
  1 - 2 * rho * L * (rho / (L * c)) + L ^ 2 * (rho / (L * c)) ^ 2 * c = 1 - rho ^ 2 / c /\
  (forall s T, (0 < T)%nat -> 2 * L * quad L (Q (at_ s)) * (1 - (1 - rho ^ 2 / c) ^ T) / (rho ^ 2 / c * INR T)
    <= / INR T * sum T (fun t => Eit (fun _ => draw) step t (fun s => nrm2 (L *: Q (at_ s))%V) s)) /\
  rho ^ 2 / c = / price r m.
Proof.
  assert (cl := c_low). assert (r2 : 0 < rho ^ 2) by now apply pow_lt. set (cc := c) in *.
  assert (e1 : forall s, draw (fun w => nrm2 (Q (at_ (step s w)))) = (1 - 2 * rho * L * eta s + L ^ 2 * eta s ^ 2 * cc) * nrm2 (Q (at_ s))).
  { intros s. set (z := Q (at_ s)). assert (zi : Q z = z) by apply (p_idem _ Qproj). rewrite (ex_ext _ _ (fun w => nrm2 z + ((-2) * (L * eta s) * dot z (P w z) + (L * eta s) ^ 2 * dot (P w z) (Q (P w z))))).
    - rewrite !ex_plus, !ex_scal, ex_const, EP, (PHP_quadratic draw P r d2 Pproj EP dimension invariant Q 1 (Q_map Q Qproj)), rank.
      rewrite zi. unfold cc. fold (nrm2 z). ring.
    - intros w. rewrite moves, (p_scal _ (Pproj w)). fold z. rewrite (p_sub _ Qproj), !(p_scal _ Qproj). fold z.
      rewrite nrm2_sub, !nrm2_scal, !dot_scalr, (p_nrm2 _ Qproj (P w z)), <- (p_sym _ Qproj z), zi. ring. }
  assert (e2 : forall e, 1 - rho ^ 2 / cc <= 1 - 2 * rho * L * e + L ^ 2 * e ^ 2 * cc).
  { intros e. assert (k : 0 <= cc * (L * e - rho / cc) ^ 2) by pos.
    replace (cc * (L * e - rho / cc) ^ 2) with (L ^ 2 * e ^ 2 * cc - 2 * rho * L * e + rho ^ 2 / cc) in k by (field; lra). lra. }
  split; [exact e1|]. split; [exact e2|]. split; [field; lra|]. split.
  - intros s T T0. apply (contract_sum (fun _ => draw) step (fun s => nrm2 (Q (at_ s))) (rho ^ 2 / cc)); auto.
    + intros s'. rewrite e1. apply Rmult_le_compat_r; [apply nrm2_ge0|apply e2].
    + apply (Rmult_le_reg_r cc); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
    + intros x. apply nrm2_scal.
    + apply Rdiv_lt_0_compat; lra.
  - unfold price. fold cc. field. lra.
Qed.
End Bowl.

(* any method; Pi: the projector on Q range(P), a random subspace of range(Q) *)
Section Newton.
Context {D : Dim} {O X : Type}.
Variable draw : law O.
Variables P Pi : O -> vec -> vec.
Variable Q : vec -> vec.
Variables r m L : R.
Hypothesis r0 : 0 < r.
Hypothesis m0 : 0 < m.
Hypothesis Qproj : proj Q.
Hypothesis rank : Decomfl.tr Q = m.
Hypothesis Piproj : forall w, proj (Pi w).
Hypothesis Pi_in : forall w v, Q (Pi w v) = Pi w v.
Hypothesis Pi_all : forall w v, Pi w (Q (P w v)) = Q (P w v).      (* Q range(P) is in range(Pi) *)
Hypothesis Pi_only : forall w v, exists u, Q (P w u) = Pi w v.      (* and the other way *)
Hypothesis Pi_rank : forall w, Decomfl.tr (Pi w) <= r.
Hypothesis invariant : forall u v, Q u = u -> Q v = v -> nrm2 u = nrm2 v -> draw (fun w => dot u (Pi w u)) = draw (fun w => dot v (Pi w v)).
Variable at_ : X -> vec.
Variable step : X -> O -> X.
Hypothesis inside : forall s w, exists u, (at_ (step s w) - at_ s)%V = P w u.
Notation share := (Rmin 1 (r / m)).
Lemma Pi_mean v : Q v = v -> draw (fun w => dot v (Pi w v)) <= share * nrm2 v.
Proof.
  intros hv. assert (nv := nrm2_ge0 v).
  assert (le1 : forall w, dot v (Pi w v) <= nrm2 v) by (intros w; rewrite <- (p_nrm2 _ (Piproj w)); apply (p_le _ (Piproj w))).
  assert (h1 : draw (fun w => dot v (Pi w v)) <= 1 * nrm2 v) by (rewrite Rmult_1_l, <- (ex_const draw (nrm2 v)); apply ex_le, le1).
  assert (h2 : draw (fun w => dot v (Pi w v)) <= r / m * nrm2 v).
  { assert (sc : forall l, (l < dim)%nat -> nrm2 (Q (basis l)) * draw (fun w => dot v (Pi w v)) = nrm2 v * draw (fun w => dot (basis l) (Pi w (basis l)))).
    { intros l hl. set (q := Q (basis l)). assert (qq : Q q = q) by apply (p_idem _ Qproj). assert (nq := nrm2_ge0 q).
      transitivity (nrm2 v * draw (fun w => dot q (Pi w q))).
      - set (s := sqrt (nrm2 v)). set (t := sqrt (nrm2 q)). assert (ss : s * s = nrm2 v) by (apply sqrt_def; auto). assert (tt : t * t = nrm2 q) by (apply sqrt_def; auto).
        rewrite <- ss, <- tt, <- !ex_scal. transitivity (draw (fun w => dot (t *: v)%V (Pi w (t *: v)%V))).
        + apply ex_ext; intros w. rewrite (p_scal _ (Piproj w)), dot_scall, dot_scalr. ring.
        + rewrite (invariant (t *: v)%V (s *: q)%V).
          * apply ex_ext; intros w. rewrite (p_scal _ (Piproj w)), dot_scall, dot_scalr. ring.
          * now rewrite (p_scal _ Qproj), hv.
          * now rewrite (p_scal _ Qproj), qq.
          * rewrite !nrm2_scal, <- ss, <- tt. ring.
      - f_equal. apply ex_ext; intros w. unfold q. rewrite (p_sym _ Qproj), <- (p_sym _ (Piproj w)).
        rewrite Pi_in. rewrite (p_sym _ (Piproj w)).
        transitivity (dot (Pi w (basis l)) (Q (basis l))); [now rewrite (p_sym _ (Piproj w)), dotC, (p_sym _ (Piproj w))|].
        now rewrite <- (p_sym _ Qproj), Pi_in, dotC. }
    assert (e : m * draw (fun w => dot v (Pi w v)) <= nrm2 v * r).
    { rewrite <- rank. unfold Decomfl.tr. rewrite Rmult_comm, <- sum_scal.
      rewrite (sum_ext dim _ (fun l => nrm2 v * draw (fun w => dot (basis l) (Pi w (basis l))))).
      - rewrite sum_scal. apply Rmult_le_compat_l; auto. rewrite <- ex_sum, <- (ex_const draw r). apply ex_le; intros w. apply Pi_rank.
      - intros l hl. rewrite <- sc by auto. rewrite (p_nrm2 _ Qproj). ring. }
    apply (Rmult_le_reg_l m); auto. replace (m * (r / m * nrm2 v)) with (nrm2 v * r) by (field; lra). exact e. }
  unfold Rmin. destruct Rle_dec; auto.
Qed.
Lemma step_2_8 :
  (forall s w, nrm2 (Q (at_ s)) - dot (Q (at_ s)) (Pi w (Q (at_ s))) <= nrm2 (Q (at_ (step s w)))) /\
  (forall s T, (0 < T)%nat -> 2 * L * quad L (Q (at_ s)) * (1 - (1 - share) ^ T) / (share * INR T)
    <= / INR T * sum T (fun t => Eit (fun _ => draw) step t (fun s => nrm2 (L *: Q (at_ s))%V) s)) /\
  (forall x w, exists u, nrm2 (Q (x + P w u)) = nrm2 (Q x) - dot (Q x) (Pi w (Q x))).
Proof.
  assert (out : forall x w u, nrm2 (Q (x + P w u)) = nrm2 (Q x) - dot (Q x) (Pi w (Q x)) + nrm2 (Pi w (Q x) + Q (P w u))).
  { intros x w u. rewrite (p_add _ Qproj). rewrite <- Pi_all, (step_1_1 _ (Piproj w)). now rewrite Pi_all. }
  assert (one : forall s w, nrm2 (Q (at_ s)) - dot (Q (at_ s)) (Pi w (Q (at_ s))) <= nrm2 (Q (at_ (step s w)))).
  { intros s w. destruct (inside s w) as [u hu]. replace (at_ (step s w)) with (at_ s + P w u)%V by (rewrite <- hu; vring).
    rewrite out. assert (n := nrm2_ge0 (Pi w (Q (at_ s)) + Q (P w u))). lra. }
  assert (s0 : 0 < share <= 1). { split; [apply Rmin_glb_lt; [lra|now apply Rdiv_lt_0_compat]|apply Rmin_l]. }
  split; [exact one|]. split.
  - intros s T T0. apply (contract_sum (fun _ => draw) step (fun s => nrm2 (Q (at_ s))) share); auto; try lra.
    + intros s'. eapply Rle_trans; [|apply (ex_le draw _ _ (one s'))].
      rewrite (ex_ext _ _ (fun w => nrm2 (Q (at_ s')) + (-1) * dot (Q (at_ s')) (Pi w (Q (at_ s'))))) by (intros; ring).
      rewrite ex_plus, ex_scal, ex_const. assert (h := Pi_mean (Q (at_ s')) (p_idem _ Qproj _)). lra.
    + intros x. apply nrm2_scal.
  - intros x w. destruct (Pi_only w ((-1) *: Q x)%V) as [u hu]. exists u. rewrite out, hu, (p_scal _ (Piproj w)).
    replace (Pi w (Q x) + (-1) *: Pi w (Q x))%V with v0 by vring. rewrite nrm2_0. ring.
Qed.
End Newton.


(* ---- other laws of P ---- *)
Lemma step_2_5 {D : Dim} {O} (Z : law O) (z : nat -> O -> vec) r H L : (0 < r)%nat -> mapL L H -> 0 < L ->
  (forall j, (j < r)%nat -> Decomfl.normal Z (z j)) ->
  (forall p q a b c e, (p < r)%nat -> (q < r)%nat -> p <> q -> Z (fun o => dot a (z p o) * dot b (z p o) * (dot c (z q o) * dot e (z q o))) = dot a b * dot c e) ->
  let P o v := (/ INR r *: vsum r (fun j => dot (z j o) v *: z j o))%V in let deff := Decomfl.tr H / L in
  forall v, Z (fun o => dot (P o v) (H (P o v))) = / INR r * ((INR r + 1) * dot v (H v) + Decomfl.tr H * nrm2 v) /\
  Z (fun o => dot (P o v) (H (P o v))) <= (1 + (deff + 1) / INR r) * L * nrm2 v.
Proof.
  intros r1 HH L0 nz ind P deff v. assert (r0 : 0 < INR r) by now apply lt_0_INR.
  assert (e : Z (fun o => dot (P o v) (H (P o v))) = / INR r * ((INR r + 1) * dot v (H v) + Decomfl.tr H * nrm2 v)).
  { transitivity (/ INR r * (Decomfl.tr H * nrm2 v + 2 * Decomfl.nH H v) + (1 - / INR r) * Decomfl.nH H v).
    - exact (Decomfl.step_1_2 H L HH Z z r r1 nz ind v).
    - unfold Decomfl.nH. field. lra. }
  split; [exact e|]. rewrite e. assert (l := l_le _ _ HH v). unfold deff.
  replace ((1 + (Decomfl.tr H / L + 1) / INR r) * L * nrm2 v) with (/ INR r * ((INR r + 1) * (L * nrm2 v) + Decomfl.tr H * nrm2 v)) by (field; lra).
  apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. apply Rplus_le_compat_r, Rmult_le_compat_l; lra.
Qed.

(* masks of r of d coordinates *)
Lemma second_moment_R x n s : lsum (subsets n s) (fun A => lsum A x ^ 2) = (c1 n s - c2 n s) * sum n (fun i => x i ^ 2) + c2 n s * sum n x ^ 2.
Proof.
  assert (h := @second_moment 1%nat (fun i _ => x i) n s).
  assert (e : forall f : nat -> R, @nrm2 1%nat f = f 0%nat ^ 2) by (intros f; unfold nrm2, dot, dim; cbn [sum]; ring).
  rewrite (lsum_ext _ _ (fun A => lsum A x ^ 2)) in h.
  - rewrite h, e. f_equal. f_equal. apply sum_ext; intros; apply e.
  - intros A _. rewrite e. f_equal. induction A; [reflexivity|]. rewrite pick_cons. simpl lsum. rewrite <- IHA. reflexivity.
Qed.
Lemma pair_moment x y n s : lsum (subsets n s) (fun A => lsum A x * lsum A y) = (c1 n s - c2 n s) * sum n (fun i => x i * y i) + c2 n s * (sum n x * sum n y).
Proof.
  assert (p := second_moment_R (fun i => x i + y i) n s). assert (q := second_moment_R (fun i => x i + (-1) * y i) n s).
  rewrite (lsum_ext _ _ (fun A => lsum A x ^ 2 + (2 * (lsum A x * lsum A y) + lsum A y ^ 2))) in p by (intros; rewrite lsum_plus; ring).
  rewrite (lsum_ext _ _ (fun A => lsum A x ^ 2 + ((-2) * (lsum A x * lsum A y) + lsum A y ^ 2))) in q by (intros; rewrite lsum_plus, lsum_scal; ring).
  rewrite (sum_ext n (fun i => (x i + y i) ^ 2) (fun i => x i ^ 2 + (2 * (x i * y i) + y i ^ 2))) in p by (intros; ring).
  rewrite (sum_ext n (fun i => (x i + (-1) * y i) ^ 2) (fun i => x i ^ 2 + ((-2) * (x i * y i) + y i ^ 2))) in q by (intros; ring).
  rewrite !lsum_plus, !lsum_scal, !sum_plus, !sum_scal in *. lra.
Qed.
Lemma c2_cb n s : (2 <= n)%nat -> (1 <= s <= n)%nat -> / cb n s * c2 n s = INR s * (INR s - 1) / (INR n * (INR n - 1)).
Proof.
  intros h hs. destruct n as [|[|n]]; try lia. destruct s as [|s]; try lia. change (c2 (S (S n)) (S s)) with (c1 (S n) s).
  assert (a1 := absorb (S n) s). assert (p := cb_pos (S (S n)) (S s) ltac:(lia)).
  assert (n0 := pos_INR n). assert (n1 : INR (S n) = INR n + 1) by apply S_INR.
  assert (n2 : INR (S (S n)) = INR n + 2) by (rewrite !S_INR; ring).
  set (c := cb (S (S n)) (S s)) in *.
  assert (e1 : cb (S n) s = INR (S s) * c / (INR n + 2)) by (apply (Rmult_eq_reg_l (INR (S (S n)))); [rewrite a1, n2; field; lra|lra]).
  assert (e2 : c1 (S n) s = INR s * cb (S n) s / (INR n + 1)).
  { destruct s as [|s]. { simpl. unfold Rdiv. ring. } change (c1 (S n) (S s)) with (cb n s). assert (a2 := absorb n s).
    apply (Rmult_eq_reg_l (INR (S n))); [rewrite a2, n1; field; lra|lra]. }
  rewrite e2, e1, n2, (S_INR s). field. repeat split; lra.
Qed.
Section Masks.
Context {D : Dim}.
Variable r : nat.
Hypothesis h : (1 <= r <= dim)%nat.
Notation d := (INR dim).
Notation draw := (uniform_sets dim r (proj2 h)).
Definition ind (A : list nat) k : R := if in_dec Nat.eq_dec k A then 1 else 0.
Lemma ind_lsum A k : In A (subsets dim r) -> (k < dim)%nat -> ind A k = lsum A (fun j => if Nat.eq_dec j k then 1 else 0).
Proof.
  intros hA hk. rewrite <- (Instance.sum_in dim) by (try (eapply subsets_nodup; eauto); intros; eapply subsets_below; eauto).
  rewrite <- (sum_delta dim k (fun _ => ind A k)) by auto. apply sum_ext; intros j _. unfold ind.
  destruct (Nat.eq_dec j k) as [->|]; [reflexivity|]. now destruct in_dec.
Qed.
Notation rho := (INR r / d).
Notation rho2 := (INR r * (INR r - 1) / (d * (d - 1))).
Lemma ind_mean k l : (2 <= dim)%nat -> (k < dim)%nat -> (l < dim)%nat -> draw (fun A => ind A k * ind A l) = rho2 + (if Nat.eq_dec k l then rho - rho2 else 0).
Proof.
  intros d2 hk hl. simpl. unfold Esets. set (x (j : nat) := if Nat.eq_dec j k then 1 else 0). set (y (j : nat) := if Nat.eq_dec j l then 1 else 0).
  rewrite (lsum_ext _ _ (fun A => lsum A x * lsum A y)) by (intros; now rewrite !ind_lsum).
  rewrite pair_moment. assert (sx : sum dim x = 1) by (apply (sum_delta dim k (fun _ => 1)); auto). assert (sy : sum dim y = 1) by (apply (sum_delta dim l (fun _ => 1)); auto).
  assert (sxy : sum dim (fun i => x i * y i) = if Nat.eq_dec k l then 1 else 0).
  { rewrite <- (sum_delta dim k (fun i => if Nat.eq_dec i l then 1 else 0)) by auto. apply sum_ext; intros i _. unfold x, y. destruct (Nat.eq_dec i k); ring. }
  rewrite sx, sy, sxy. rewrite <- (c2_cb dim r) by lia. assert (e1 := Family.c1_cb dim r ltac:(lia)).
  replace (INR r / d) with (INR r * / d) by reflexivity. rewrite <- e1. destruct Nat.eq_dec; ring.
Qed.
Variable H : vec -> vec.
Variable L : R.
Hypothesis HH : mapL L H.
Lemma mask_dot A u k : (k < dim)%nat -> dot (basis k) (coords A u) = ind A k * u k.
Proof. intros hk. rewrite dot_basis by auto. unfold coords, ind. destruct in_dec; ring. Qed.
Lemma step_2_6 : (2 <= dim)%nat ->
  (forall u v, draw (fun A => dot (coords A u) (H (coords A v))) = rho2 * dot u (H v)
    + (rho - rho2) * sum dim (fun i => dot (basis i) (H (basis i)) * (u i * v i))) /\
  (forall v, draw (fun A => dot (coords A v) (H (coords A v))) <= d / INR r * rho ^ 2 * L * nrm2 v) /\
  (forall i, (i < dim)%nat -> dot (basis i) (H (basis i)) = L -> (forall v, dot v (H (basis i)) = L * dot v (basis i)) /\
    draw (fun A => dot (coords A (basis i)) (H (coords A (basis i)))) = d / INR r * rho ^ 2 * L * nrm2 (basis i)).
Proof.
  intros d2. assert (r0 : 0 < INR r) by (apply lt_0_INR; lia). assert (D2 : 2 <= d) by (apply (le_INR 2); lia).
  assert (main : forall u v, draw (fun A => dot (coords A u) (H (coords A v))) = rho2 * dot u (H v)
    + (rho - rho2) * sum dim (fun i => dot (basis i) (H (basis i)) * (u i * v i))).
  { intros u v. rewrite (ex_ext _ _ (fun A => sum dim (fun k => sum dim (fun l => (u k * v l * dot (basis k) (H (basis l))) * (ind A k * ind A l))))).
    2: { intros A. rewrite (form_pq H L HH). apply sum_ext; intros k hk. apply sum_ext; intros l hl. rewrite !mask_dot by auto. ring. }
    rewrite ex_sum, (form_pq H L HH u v).
    transitivity (sum dim (fun k => rho2 * sum dim (fun l => dot (basis k) u * dot (basis l) v * dot (basis k) (H (basis l)))
      + (rho - rho2) * (dot (basis k) (H (basis k)) * (u k * v k)))).
    2: { now rewrite sum_plus, !sum_scal. }
    apply sum_ext; intros k hk. rewrite ex_sum, <- sum_scal.
    rewrite <- (sum_delta dim k (fun l => (rho - rho2) * (dot (basis k) (H (basis l)) * (u k * v l)))) by auto. rewrite <- sum_plus.
    apply sum_ext; intros l hl. rewrite ex_scal, ind_mean, !dot_basis by auto.
    destruct (Nat.eq_dec k l), (Nat.eq_dec l k); try congruence; ring. }
  split; [exact main|]. split.
  - intros v. replace (d / INR r * rho ^ 2 * L * nrm2 v) with (L * (rho * dot v v)) by (unfold nrm2; field; lra).
    rewrite <- (E_coords r h), <- ex_scal. apply ex_le; intros A. eapply Rle_trans; [apply (l_le _ _ HH)|]. rewrite (p_nrm2 _ (coords_proj A)). lra.
  - intros i hi e. split.
    + intros v. set (B := fun x y => L * dot x y - dot x (H y)).
      assert (B0 : forall x, 0 <= B x x) by (intros x; unfold B; assert (l := l_le _ _ HH x); unfold nrm2 in l; lra).
      assert (Bi : B (basis i) (basis i) = 0) by (unfold B; rewrite e; assert (b1 := Decomfl.basis_1 i hi); rewrite b1; ring).
      assert (Bl : forall t, B (v + t *: basis i)%V (v + t *: basis i)%V = B v v + 2 * t * B v (basis i)).
      { intros t. transitivity (B v v + 2 * t * B v (basis i) + t * t * B (basis i) (basis i)); [|rewrite Bi; ring]. unfold B.
        rewrite (l_add _ _ HH), (l_scal _ _ HH), !dot_addl, !dot_addr, !dot_scall, !dot_scalr, (dotC (basis i) v), <- (l_sym _ _ HH (basis i) v), (dotC (H (basis i)) v). ring. }
      destruct (Req_dec (B v (basis i)) 0) as [z|z]; [unfold B in z; lra|]. exfalso.
      assert (k := B0 (v + (- (B v v + 1) / (2 * B v (basis i))) *: basis i)%V). rewrite Bl in k.
      replace (2 * (- (B v v + 1) / (2 * B v (basis i))) * B v (basis i)) with (- (B v v + 1)) in k by (field; auto). lra.
    + rewrite main, e. rewrite (sum_ext dim _ (fun j => if Nat.eq_dec j i then L else 0)).
      2: { intros j _. unfold basis at 3 4. destruct Nat.eq_dec as [->|]; [rewrite e|]; ring. }
      rewrite (sum_delta dim i (fun _ => L)) by auto. rewrite (Decomfl.basis_1 i hi : nrm2 (basis i) = 1). field. lra.
Qed.
End Masks.

(* ================= 3: more local steps, by the curvature seen ================= *)
Lemma step_3_3 {D : Dim} {O} (draw : law O) P (lam : O -> R) rho L c : (forall w, proj (P w)) -> (forall w, 0 < lam w) ->
  (forall v, draw (fun w => dot v (P w v)) = rho * dot v v) -> 0 < rho -> 0 < L -> 0 < c ->
  (forall v, draw (fun w => lam w * dot v (P w v)) <= c * rho ^ 2 * L * dot v v) ->
  (forall v, draw (fun w => dot v (P w v)) ^ 2 <= draw (fun w => / lam w * dot v (P w v)) * draw (fun w => lam w * dot v (P w v))) /\
  forall v, nrm2 v / (c * L) <= draw (fun w => / lam w * nrm2 (P w v)).
Proof.
  intros pp l0 EP r0 L0 c0 hl.
  assert (cs : forall v, draw (fun w => dot v (P w v)) ^ 2 <= draw (fun w => / lam w * dot v (P w v)) * draw (fun w => lam w * dot v (P w v))).
  { intros v. assert (h := ex_cauchy_schwarz draw (fun w => / sqrt (lam w) *: P w v)%V (fun w => sqrt (lam w) *: P w v)%V).
    assert (s : forall w, 0 < sqrt (lam w)) by (intros w; now apply sqrt_lt_R0).
    assert (q : forall w, sqrt (lam w) * sqrt (lam w) = lam w) by (intros w; apply sqrt_def, Rlt_le, l0).
    rewrite (ex_ext draw _ (fun w => dot v (P w v))) in h.
    2: { intros w. rewrite dot_scall, dot_scalr, (p_dot _ (pp w)). specialize (s w). field. lra. }
    rewrite (ex_ext draw (fun w => nrm2 (/ sqrt (lam w) *: P w v)) (fun w => / lam w * dot v (P w v))) in h.
    2: { intros w. rewrite nrm2_scal, (p_nrm2 _ (pp w)), <- Rinv_mult, q. ring. }
    rewrite (ex_ext draw (fun w => nrm2 (sqrt (lam w) *: P w v)) (fun w => lam w * dot v (P w v))) in h.
    2: { intros w. rewrite nrm2_scal, (p_nrm2 _ (pp w)), q. ring. }
    exact h. }
  split; [exact cs|]. intros v. specialize (cs v). specialize (hl v). rewrite EP in cs. fold (nrm2 v) in *.
  rewrite (ex_ext draw (fun w => / lam w * nrm2 (P w v)) (fun w => / lam w * dot v (P w v))) by (intros w; now rewrite (p_nrm2 _ (pp w))).
  set (X := draw (fun w => / lam w * dot v (P w v))) in *. assert (n0 := nrm2_ge0 v).
  assert (X0 : 0 <= X). { apply ex_ge0; intros w. rewrite <- (p_nrm2 _ (pp w)). apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|apply nrm2_ge0]. }
  destruct (Req_dec (nrm2 v) 0) as [z|z]; [rewrite z; unfold Rdiv; rewrite Rmult_0_l; exact X0|].
  assert (n1 : 0 < nrm2 v) by lra. assert (cL : 0 < c * L) by now apply Rmult_lt_0_compat.
  apply (Rmult_le_compat_l X) in hl; auto.
  apply (Rmult_le_reg_r (c * L * (rho ^ 2 * nrm2 v))); [repeat apply Rmult_lt_0_compat; try apply pow_lt; lra|].
  replace (nrm2 v / (c * L) * (c * L * (rho ^ 2 * nrm2 v))) with ((rho * nrm2 v) ^ 2) by (field; lra). lra.
Qed.
Section Seen.
Context {D : Dim} {O : Type}.
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Hypothesis K1 : (0 < K)%nat.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable lam : O -> R.
Variables rho L c lam0 zeta beta etag Fstar : R.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall v, draw (fun w => dot v (P w v)) = rho * dot v v.
Hypothesis rho0 : 0 < rho.
Hypothesis L0 : 0 < L.
Hypothesis c0 : 0 < c.
Hypothesis lam00 : 0 < lam0.
Hypothesis lam_low : forall w, lam0 <= lam w.
Hypothesis seen : forall w i x v, (i < N)%nat -> nrm2 (P w (g i (x + P w v) - g i x)) <= lam w ^ 2 * nrm2 (P w v).
Hypothesis Elam : forall v, draw (fun w => lam w * dot v (P w v)) <= c * rho ^ 2 * L * dot v v.
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Notation G := (Family.G N g).
Notation Favg := (Family.Favg N F).
Notation mean := (Family.meanR N).
Hypothesis bounded : forall x, Fstar <= Favg x.
Hypothesis differ : forall x, mean (fun i => nrm2 (g i x - G x)) <= zeta ^ 2.
Hypothesis beta01 : 0 < beta <= 1/10.
Hypothesis etag0 : 0 < etag.
Notation h := (etag * beta).
Hypothesis h1 : h <= 1.
Notation p := (beta ^ 2 * (1 - / INR K)).
Fixpoint path_ (x : vec) (w : O) (i k : nat) : vec :=
  match k with 0%nat => x | S k => (path_ x w i k - (beta / (INR K * lam w)) *: P w (g i (path_ x w i k)))%V end.
Definition next x w : vec := (x + (etag / INR N) *: vsum N (fun i => path_ x w i K - x))%V.
Definition delta x w i k : vec := P w (g i (path_ x w i k) - g i x)%V.
Definition abar x w : vec := (/ INR N *: vsum N (fun i => / INR K *: vsum K (delta x w i)))%V.
Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let l0 w : 0 < lam w. Proof. assert (q := lam_low w). lra. Qed.
Lemma path_E x w i k : (path_ x w i k - x)%V = ((- (beta / (INR K * lam w))) *: (INR k *: P w (g i x) + vsum k (delta x w i)))%V.
Proof.
  induction k. { simpl path_. change (vsum 0 _) with v0. simpl INR. vring. }
  rewrite vsum_S, S_INR. unfold delta at 2. rewrite (p_sub _ (Pproj w)). simpl path_. set (b := beta / (INR K * lam w)) in *.
  replace (path_ x w i k - b *: P w (g i (path_ x w i k)) - x)%V with ((path_ x w i k - x) - b *: P w (g i (path_ x w i k)))%V by vring.
  rewrite IHk. vring.
Qed.
Lemma path_in x w i k : P w (path_ x w i k - x)%V = (path_ x w i k - x)%V.
Proof.
  rewrite path_E. assert (pw := Pproj w). rewrite (p_scal _ pw), (p_add _ pw), (p_scal _ pw), (p_idem _ pw), (p_vsum _ pw).
  f_equal. f_equal. apply vsum_ext; intros j _. unfold delta. apply (p_idem _ pw).
Qed.
Lemma delta_le x w i k : (i < N)%nat -> nrm2 (delta x w i k) <= lam w ^ 2 * nrm2 (path_ x w i k - x).
Proof.
  intros hi. assert (q := seen w i x (path_ x w i k - x)%V hi). rewrite path_in in q.
  replace (x + (path_ x w i k - x))%V with (path_ x w i k) in q by vring. exact q.
Qed.
Lemma step_3_1 x w i : (i < N)%nat -> lam w ^ 2 / INR K * sum K (fun k => nrm2 (path_ x w i k - x)) <= 69/100 * p * nrm2 (P w (g i x)).
Proof.
  intros hi. assert (lw := l0 w). set (A := nrm2 (P w (g i x))). assert (A0 : 0 <= A) by apply nrm2_ge0.
  set (b := beta / (INR K * lam w)). assert (b0 : 0 < b) by (apply Rdiv_lt_0_compat; [lra|now apply Rmult_lt_0_compat]).
  set (e k := nrm2 (path_ x w i k - x)). assert (e0 : forall k, 0 <= e k) by (intros; apply nrm2_ge0).
  set (cc := 2 * beta ^ 2 / INR K). assert (cc0 : 0 < cc) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; [lra|apply pow_lt; lra]|lra]).
  assert (S0 : forall k, 0 <= sum k e) by (intros; apply sum_ge0; intros; apply e0).
  assert (bl : b ^ 2 * lam w ^ 2 * INR K = cc / 2) by (unfold b, cc; field; lra).
  assert (rec : forall k, (k <= K)%nat -> e k <= b ^ 2 * (2 * INR k ^ 2 * A) + cc * sum k e).
  { intros k hk. unfold e at 1. rewrite path_E. fold b. rewrite nrm2_scal.
    assert (t1 := nrm2_add_le2 (INR k *: P w (g i x)) (vsum k (delta x w i))). rewrite nrm2_scal in t1. fold A in t1.
    assert (t2 := nrm2_vsum k (delta x w i)).
    assert (t3 : sum k (fun j => nrm2 (delta x w i j)) <= lam w ^ 2 * sum k e) by (rewrite <- sum_scal; apply sum_le; intros; now apply delta_le).
    assert (kk : INR k <= INR K) by now apply le_INR. assert (k0 := pos_INR k).
    apply (Rmult_le_compat_l (INR k)) in t3; auto.
    assert (t4 : INR k * (lam w ^ 2 * sum k e) <= INR K * (lam w ^ 2 * sum k e)) by (apply Rmult_le_compat_r; [specialize (S0 k); pos|auto]).
    assert (t5 : nrm2 (INR k *: P w (g i x) + vsum k (delta x w i)) <= 2 * INR k ^ 2 * A + 2 * (INR K * (lam w ^ 2 * sum k e))) by (simpl; lra).
    apply (Rmult_le_compat_l (b ^ 2)) in t5; [|apply pow2_ge_0].
    replace (b ^ 2 * (2 * INR k ^ 2 * A + 2 * (INR K * (lam w ^ 2 * sum k e)))) with (b ^ 2 * (2 * INR k ^ 2 * A) + 2 * (b ^ 2 * lam w ^ 2 * INR K) * sum k e) in t5 by ring.
    rewrite bl in t5. replace (- b * - b) with (b ^ 2) by ring. lra. }
  assert (all : forall k, (k <= K)%nat -> sum k e <= (1 + cc) ^ k * (b ^ 2 * A * sum k (fun j => 2 * INR j ^ 2))).
  { induction k; intros hk; [simpl; lra|]. specialize (IHk ltac:(lia)). assert (r := rec k ltac:(lia)). rewrite !sum_S.
    set (B := sum k (fun j => 2 * INR j ^ 2)) in *. set (E := sum k e) in *. assert (w1 : 1 <= (1 + cc) ^ S k) by (apply pow_R1_Rle; lra).
    assert (q0 : 0 <= b ^ 2 * (2 * INR k ^ 2 * A)) by (assert (0 <= INR k ^ 2) by apply pow2_ge_0; pos).
    assert (u1 := Rmult_le_compat_l (1 + cc) _ _ ltac:(lra) IHk). assert (u2 := Rmult_le_compat_r _ _ _ q0 w1).
    simpl pow in u2 at 1. simpl pow at 1. cbn [pow] in u2. cbn [pow]. lra. }
  assert (fin := all K ltac:(lia)). assert (sq : sum K (fun j => 2 * INR j ^ 2) <= 2/3 * (INR K ^ 2 * (INR K - 1))).
  { destruct (Family.step_3_5 K) as [q _]. rewrite (sum_ext K (fun j => 4 * INR j ^ 2) (fun j => 2 * (2 * INR j ^ 2))) in q by (intros; ring). rewrite sum_scal in q. lra. }
  assert (gr : (1 + cc) ^ K <= 50/49).
  { assert (m : forall n, (1 + cc) ^ n <= exp (cc * INR n)).
    { induction n. { simpl. rewrite Rmult_0_r, exp_0. lra. }
      rewrite S_INR. replace (cc * (INR n + 1)) with (cc + cc * INR n) by ring. rewrite exp_plus. simpl. apply Rmult_le_compat; try lra; [apply pow_le; lra|apply exp_ineq1_le]. }
    eapply Rle_trans; [apply m|]. replace (cc * INR K) with (2 * beta ^ 2) by (unfold cc; field; lra).
    assert (b2 : beta ^ 2 <= 1/100) by nra. assert (mo : exp (2 * beta ^ 2) <= exp (1/50)) by (destruct (Rle_lt_or_eq_dec (2 * beta ^ 2) (1/50) ltac:(lra)) as [q|q]; [left; now apply exp_increasing|rewrite q; lra]).
    assert (m2 := exp_ineq1_le (- (1/50))). assert (m3 : exp (1/50) * exp (- (1/50)) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0). assert (m4 := exp_pos (1/50)). nra. }
  assert (B0 : 0 <= b ^ 2 * A) by pos. assert (K2 : 1 <= INR K) by (apply (le_INR 1); lia).
  assert (f2 : sum K e <= 50/49 * (b ^ 2 * A * (2/3 * (INR K ^ 2 * (INR K - 1))))).
  { eapply Rle_trans; [exact fin|]. apply Rmult_le_compat; auto; [apply pow_le; lra| |].
    - apply Rmult_le_pos; auto. apply sum_ge0; intros. assert (0 <= INR i0 ^ 2) by apply pow2_ge_0. lra.
    - now apply Rmult_le_compat_l. }
  apply (Rmult_le_compat_l (lam w ^ 2 / INR K)) in f2; [|apply Rmult_le_pos; [apply pow2_ge_0|now apply Rlt_le, Rinv_0_lt_compat]].
  eapply Rle_trans; [exact f2|].
  replace (lam w ^ 2 / INR K * (50 / 49 * (b ^ 2 * A * (2 / 3 * (INR K ^ 2 * (INR K - 1)))))) with (100/147 * (beta ^ 2 * (1 - / INR K)) * A) by (unfold b; field; lra).
  assert (p0 : 0 <= beta ^ 2 * (1 - / INR K)).
  { apply Rmult_le_pos; [apply pow2_ge_0|]. assert (/ INR K <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra. }
  apply Rmult_le_compat_r; auto. apply Rmult_le_compat_r; auto. lra.
Qed.
Lemma subspace_smooth w x u : P w u = u -> Favg (x + u)%V <= Favg x + dot (G x) u + lam w / 2 * nrm2 u.
Proof.
  intros hu. assert (pw := Pproj w).
  assert (one : forall i, (i < N)%nat -> F i (x + u)%V <= F i x + dot (g i x) u + lam w / 2 * nrm2 u).
  { intros i hi. assert (q := smooth (fun v => F i (x + P w v)%V) (fun v => P w (g i (x + P w v)%V)) (lam w) (Rlt_le _ _ (l0 w))).
    assert (gr : gradient (fun v => F i (x + P w v)%V) (fun v => P w (g i (x + P w v)%V))).
    { intros v s. rewrite (p_sym _ pw). eapply derivable_pt_lim_ext; [|apply (grad i hi (x + P w v)%V (P w s))]. intros t. cbv beta.
      rewrite (p_add _ pw), (p_scal _ pw). f_equal. vring. }
    assert (li : lipschitz (lam w) (fun v => P w (g i (x + P w v)%V))).
    { intros v v'. rewrite <- (p_sub _ pw). assert (k := seen w i (x + P w v')%V (v - v')%V hi). rewrite (p_sub _ pw v) in k at 1.
      replace (x + P w v' + (P w v - P w v'))%V with (x + P w v)%V in k by vring. eapply Rle_trans; [exact k|].
      replace (lam w * lam w) with (lam w ^ 2) by ring. apply Rmult_le_compat_l; [apply pow2_ge_0|apply (p_le _ pw)]. }
    specialize (q gr li v0 u). cbv beta in q. rewrite (p_0 _ pw) in q. replace (v0 + u)%V with u in q by vring. replace (x + v0)%V with x in q by vring.
    rewrite hu, (p_sym _ pw), hu in q. exact q. }
  unfold Family.Favg, Family.G. rewrite (Family.meanV_dot N). 
  replace (lam w / 2 * nrm2 u) with (mean (fun _ => lam w / 2 * nrm2 u)) by (unfold Family.meanR; rewrite sum_const; field; lra).
  unfold Family.meanR. rewrite <- !Rmult_plus_distr_l, <- !sum_plus. apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. apply sum_le, one.
Qed.
Lemma step_3_2 x w : (next x w - x)%V = ((- (h / lam w)) *: (P w (G x) + abar x w))%V /\
  Favg (next x w) - Favg x <= - (h / (2 * lam w)) * nrm2 (P w (G x)) + h / (2 * lam w) * nrm2 (abar x w).
Proof.
  assert (lw := l0 w). assert (pw := Pproj w).
  assert (e : (next x w - x)%V = ((- (h / lam w)) *: (P w (G x) + abar x w))%V).
  { unfold next, abar, Family.G, Family.meanV. rewrite (p_scal _ pw), (p_vsum _ pw).
    rewrite (vsum_ext N (fun i => path_ x w i K - x)%V (fun i => (- (beta / (INR K * lam w))) *: (INR K *: P w (g i x)) + (- (beta / (INR K * lam w))) *: vsum K (delta x w i))%V) by (intros; rewrite path_E; vring).
    rewrite vsum_plus, !vsum_scal. vfield. lra. }
  split; [exact e|]. set (a := abar x w) in *. set (q := P w (G x)) in *.
  assert (Pa : P w a = a).
  { unfold a, abar. rewrite (p_scal _ pw), (p_vsum _ pw). f_equal. apply vsum_ext; intros i _. rewrite (p_scal _ pw), (p_vsum _ pw). f_equal.
    apply vsum_ext; intros k _. apply (p_idem _ pw). }
  assert (Pq : P w q = q) by apply (p_idem _ pw).
  assert (s := subspace_smooth w x (next x w - x)%V). replace (x + (next x w - x))%V with (next x w) in s by vring.
  rewrite e in s. assert (hh : P w ((- (h / lam w)) *: (q + a))%V = ((- (h / lam w)) *: (q + a))%V) by now rewrite (p_scal _ pw), (p_add _ pw), Pq, Pa.
  specialize (s hh). rewrite dot_scalr, nrm2_scal in s.
  assert (dq : dot (G x) (q + a)%V = nrm2 q + dot q a).
  { rewrite dot_addr, <- Pa, <- (p_sym _ pw), Pa. fold q. unfold q at 1. rewrite <- (p_nrm2 _ pw). reflexivity. }
  rewrite dq, nrm2_add in s. assert (n := nrm2_ge0 (q + a)). rewrite nrm2_add in n. assert (h0 : 0 < h) by (apply Rmult_lt_0_compat; lra).
  assert (k : 0 <= h / (2 * lam w) * ((1 - h) * (nrm2 q + 2 * dot q a + nrm2 a))).
  { apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|]. apply Rmult_le_pos; lra. }
  replace (lam w / 2 * (- (h / lam w) * - (h / lam w) * (nrm2 q + 2 * dot q a + nrm2 a))) with (h / (2 * lam w) * (h * (nrm2 q + 2 * dot q a + nrm2 a))) in s by (field; lra).
  replace (- (h / lam w) * (nrm2 q + dot q a)) with (h / (2 * lam w) * (- (2 * nrm2 q) - 2 * dot q a)) in s by (field; lra). lra.
Qed.
Lemma abar_le x w : nrm2 (abar x w) <= 69/100 * p * (nrm2 (P w (G x)) + mean (fun i => nrm2 (P w (g i x - G x)%V))).
Proof.
  assert (pw := Pproj w). assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat.
  eapply Rle_trans; [apply (nrm2_mean N _ N1)|].
  assert (e : nrm2 (P w (G x)) + mean (fun i => nrm2 (P w (g i x - G x)%V)) = / INR N * sum N (fun i => nrm2 (P w (g i x)))).
  { unfold Family.meanR. rewrite (sum_ext N (fun i => nrm2 (P w (g i x - G x)%V)) (fun i => nrm2 (P w (g i x)) + ((-2) * dot (g i x) (P w (G x)) + nrm2 (P w (G x))))).
    2: { intros i _. rewrite (p_sub _ pw), nrm2_sub, (p_dot _ pw). ring. }
    rewrite !sum_plus, sum_scal, sum_const, <- dot_suml. replace (vsum N (fun i => g i x)) with (INR N *: G x)%V by (unfold Family.G, Family.meanV; vfield; lra).
    rewrite dot_scall, <- (p_nrm2 _ pw (G x)). field. lra. }
  rewrite e. replace (69 / 100 * p * (/ INR N * sum N (fun i => nrm2 (P w (g i x))))) with (/ INR N * (69 / 100 * p * sum N (fun i => nrm2 (P w (g i x))))) by ring.
  apply Rmult_le_compat_l; auto. rewrite <- sum_scal. apply sum_le; intros i hi. eapply Rle_trans; [apply (nrm2_mean K _ K1)|].
  eapply Rle_trans; [|apply (step_3_1 x w i hi)]. replace (lam w ^ 2 / INR K) with (/ INR K * lam w ^ 2) by (unfold Rdiv; ring). rewrite Rmult_assoc.
  apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. rewrite <- sum_scal. apply sum_le; intros k _. now apply delta_le.
Qed.
Lemma step_3_4 x T : (0 < T)%nat ->
  (forall x, draw (fun w => mean (fun i => / lam w * nrm2 (P w (g i x - G x)%V))) <= rho / lam0 * zeta ^ 2) /\ p <= 1/100 /\
  / INR T * sum T (fun t => Eit (fun _ => draw) next t (fun x => nrm2 (G x)) x)
  <= c * (2014/1000 * (L * (Favg x - Fstar) / (h * INR T)) + 7/10 * p * (rho * L / lam0) * zeta ^ 2).
Proof.
  intros T0%lt_0_INR. assert (h0 : 0 < h) by (apply Rmult_lt_0_compat; lra). assert (cL : 0 < c * L) by now apply Rmult_lt_0_compat.
  assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat. assert (il : 0 < / lam0) by now apply Rinv_0_lt_compat.
  assert (part : forall x, draw (fun w => mean (fun i => / lam w * nrm2 (P w (g i x - G x)%V))) <= rho / lam0 * zeta ^ 2).
  { intros y. eapply Rle_trans; [apply (ex_le draw _ (fun w => / lam0 * mean (fun i => dot (g i y - G y)%V (P w (g i y - G y)%V))))|].
    - intros w. unfold Family.meanR. replace (/ lam0 * (/ INR N * sum N (fun i => dot (g i y - G y)%V (P w (g i y - G y)%V)))) with (/ INR N * (/ lam0 * sum N (fun i => dot (g i y - G y)%V (P w (g i y - G y)%V)))) by ring.
      apply Rmult_le_compat_l; auto. rewrite <- sum_scal. apply sum_le; intros i _. rewrite (p_nrm2 _ (Pproj w)). apply Rmult_le_compat_r.
      + rewrite <- (p_nrm2 _ (Pproj w)). apply nrm2_ge0.
      + apply Rinv_le_contravar; auto.
    - rewrite ex_scal. unfold Family.meanR. rewrite ex_scal, ex_sum, (sum_ext N _ (fun i => rho * nrm2 (g i y - G y)%V)) by (intros; apply EP). rewrite sum_scal.
      assert (d := differ y). unfold Family.meanR in d. apply (Rmult_le_compat_l (/ lam0 * rho)) in d; [|apply Rmult_le_pos; lra]. unfold Rdiv. lra. }
  assert (p0 : 0 <= p <= 1/100).
  { assert (K2 : 1 <= INR K) by (apply (le_INR 1); lia). assert (i1 : / INR K <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). assert (i0 : 0 < / INR K) by now apply Rinv_0_lt_compat.
    assert (b2 : 0 <= beta ^ 2 <= 1/100) by nra. split; [pos|]. nra. }
  split; [exact part|]. split; [lra|].
  set (k := h / (2 * (c * L)) * (1 - 69/100 * p)). set (noise := h / 2 * (69/100 * p) * (rho / lam0 * zeta ^ 2)).
  assert (one : forall y, True -> draw (fun w => Favg (next y w) - Fstar) <= Favg y - Fstar - k * nrm2 (G y) + noise).
  { intros y _. unfold Rminus at 1. rewrite ex_plus, ex_const.
    assert (st : draw (fun w => Favg (next y w)) <= Favg y + (- (h / 2 * (1 - 69/100 * p)) * draw (fun w => / lam w * nrm2 (P w (G y)))
      + h / 2 * (69/100 * p) * draw (fun w => mean (fun i => / lam w * nrm2 (P w (g i y - G y)%V))))).
    { rewrite <- !ex_scal, <- ex_plus, <- (ex_const draw (Favg y)) at 1. rewrite <- ex_plus. apply ex_le; intros w. destruct (step_3_2 y w) as [_ s]. assert (a := abar_le y w). assert (lw := l0 w).
      apply (Rmult_le_compat_l (h / (2 * lam w))) in a; [|apply Rlt_le, Rdiv_lt_0_compat; lra].
      replace (mean (fun i => / lam w * nrm2 (P w (g i y - G y)%V))) with (/ lam w * mean (fun i => nrm2 (P w (g i y - G y)%V))) by (unfold Family.meanR; rewrite sum_scal; ring).
      set (q := nrm2 (P w (G y))) in *. set (z := mean (fun i => nrm2 (P w (g i y - G y)%V))) in *.
      replace (h / (2 * lam w)) with (h / 2 * / lam w) in * by (field; lra). lra. }
    destruct (step_3_3 draw P lam rho L c Pproj l0 EP rho0 L0 c0 Elam) as [_ low]. specialize (low (G y)). specialize (part y).
    apply (Rmult_le_compat_l (h / 2 * (1 - 69/100 * p))) in low; [|apply Rmult_le_pos; lra]. apply (Rmult_le_compat_l (h / 2 * (69/100 * p))) in part; [|apply Rmult_le_pos; lra].
    replace (h / 2 * (1 - 69/100 * p) * (nrm2 (G y) / (c * L))) with (k * nrm2 (G y)) in low by (unfold k; field; lra). fold noise in part. lra. }
  assert (tel := telescope (fun _ => draw) next (fun _ => True) (fun y => Favg y - Fstar) (fun y => k * nrm2 (G y)) noise (fun _ _ _ => I) one
    (fun y => ltac:(assert (b := bounded y); lra)) T x I).
  rewrite (sum_ext T _ (fun t => k * Eit (fun _ => draw) next t (fun y => nrm2 (G y)) x)) in tel by (intros; apply Eit_scal). rewrite sum_scal in tel.
  set (S := sum T (fun t => Eit (fun _ => draw) next t (fun y => nrm2 (G y)) x)) in *.
  assert (k0 : 0 < k) by (unfold k; apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|lra]).
  assert (D0 : 0 <= Favg x - Fstar) by (assert (b := bounded x); lra). set (Dl := Favg x - Fstar) in *.
  apply (Rmult_le_reg_l (k * INR T)); [now apply Rmult_lt_0_compat|]. replace (k * INR T * (/ INR T * S)) with (k * S) by (field; lra).
  eapply Rle_trans; [exact tel|]. replace (k * INR T * (c * (2014/1000 * (L * Dl / (h * INR T)) + 7/10 * p * (rho * L / lam0) * zeta ^ 2)))
    with ((1 - 69/100 * p) * (1007/1000 * Dl) + INR T * ((1 - 69/100 * p) * (h / 2 * (7/10 * p) * (rho / lam0 * zeta ^ 2)))) by (unfold k; field; lra).
  apply Rplus_le_compat.
  - assert (0 <= Dl * (1/100 - p)) by pos. lra.
  - apply Rmult_le_compat_l; [lra|]. unfold noise. set (Z := rho / lam0 * zeta ^ 2). assert (Z0 : 0 <= Z) by (unfold Z; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|apply pow2_ge_0]).
    assert (u : 0 <= h / 2 * (p * Z) * (1/100 - p)) by (apply Rmult_le_pos; [apply Rmult_le_pos; [lra|pos]|lra]). assert (u2 : 0 <= h / 2 * (p * Z)) by (apply Rmult_le_pos; [lra|pos]). lra.
Qed.
End Seen.

(* ================= 4: the best iterate, fixed steps ================= *)
(* E min v over the first n states, and m *)
Section Least.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Variable v : X -> R.
Fixpoint Emin (n : nat) (m : R) (s : X) : R :=
  match n with 0%nat => m | S n => kernel s (fun w => Emin n (Rmin m (v s)) (step s w)) end.
Hypothesis v0_ : forall s, 0 <= v s.
Lemma Emin_ge0 n : forall m s, 0 <= m -> 0 <= Emin n m s.
Proof. induction n; intros m s hm; [exact hm|]. apply ex_ge0; intros w. apply IHn. now apply Rmin_glb. Qed.
End Least.
(* the positive part and half of its square *)
Definition pos_ s : R := Rmax 0 s.
Definition sq_ s : R := pos_ s ^ 2 / 2.
Lemma sq_bound s h : 0 <= sq_ (s + h) - sq_ s - h * pos_ s <= h ^ 2 / 2.
Proof. unfold sq_, pos_, Rmax. destruct (Rle_dec 0 (s + h)), (Rle_dec 0 s); split; nra. Qed.
Lemma second_order f f' s C : (forall h, Rabs (f (s + h) - f s - h * f') <= C * h ^ 2) -> derivable_pt_lim f s f'.
Proof.
  intros k eps he. assert (C0 : 0 <= C) by (specialize (k 1); assert (p := Rabs_pos (f (s + 1) - f s - 1 * f')); lra).
  assert (del : 0 < eps / (C + 1)) by (apply Rdiv_lt_0_compat; lra). exists (mkposreal _ del). intros h h0 hd. simpl in hd.
  replace ((f (s + h) - f s) / h - f') with ((f (s + h) - f s - h * f') / h) by (field; auto).
  unfold Rdiv. rewrite Rabs_mult, Rabs_inv. assert (a : 0 < Rabs h) by now apply Rabs_pos_lt.
  apply (Rmult_lt_reg_r (Rabs h)); auto. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. eapply Rle_lt_trans; [apply k|].
  rewrite <- (pow2_abs h). apply (Rmult_lt_compat_r (C + 1)) in hd; [|lra]. replace (eps / (C + 1) * (C + 1)) with eps in hd by (field; lra). nra.
Qed.
Lemma sq_derivative s : derivable_pt_lim sq_ s (pos_ s).
Proof. apply (second_order sq_ _ s (1/2)). intros h. assert (k := sq_bound s h). rewrite Rabs_right; lra. Qed.
Section Ramp.
Context {D : Dim}.
Variables g L : R.
Hypothesis g0 : 0 < g.
Hypothesis L0 : 0 < L.
Definition ramp s : R := L * (sq_ (s + g / L) - sq_ s) - g ^ 2 / (2 * L).
Definition slope s : R := L * (pos_ (s + g / L) - pos_ s).
Let gL : 0 < g / L. Proof. now apply Rdiv_lt_0_compat. Qed.
Lemma ramp_up s : 0 <= s -> slope s = g /\ ramp s = g * s.
Proof. intros h. unfold slope, ramp, sq_, pos_. rewrite !Rmax_right by lra. split; field; lra. Qed.
Lemma slope_bounds s : 0 <= slope s <= g.
Proof.
  assert (e : L * (g / L) = g) by (field; lra). unfold slope, pos_, Rmax. destruct (Rle_dec 0 (s + g / L)), (Rle_dec 0 s); split; nra.
Qed.
Lemma ramp_derivative s : derivable_pt_lim ramp s (slope s).
Proof.
  apply (second_order ramp _ s (L / 2)). intros h. assert (k := sq_bound s h). assert (k2 := sq_bound (s + g / L) h). unfold ramp, slope.
  replace (s + h + g / L) with (s + g / L + h) by ring. apply Rabs_le. split; nra.
Qed.
Variable e : vec.
Hypothesis unit_ : nrm2 e = 1.
Definition Fr x : R := ramp (dot e x).
Definition Gr x : vec := (slope (dot e x) *: e)%V.
Lemma line_derivative f f' (x s : vec) : derivable_pt_lim f (dot e x) f' -> derivable_pt_lim (fun u => f (dot e (x + u *: s)%V)) 0 (f' * dot e s).
Proof.
  intros h. assert (k : derivable_pt_lim (fun u => dot e x + u * dot e s) 0 (0 + (1 * dot e s + 0 * 0))).
  { apply (derivable_pt_lim_plus (fun _ => dot e x)); [apply derivable_pt_lim_const|]. apply (derivable_pt_lim_mult id (fun _ => dot e s)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const]. }
  assert (c := derivable_pt_lim_comp (fun u => dot e x + u * dot e s) f 0 _ f' k). cbv beta in c. rewrite Rmult_0_l, Rplus_0_r in c. specialize (c h).
  replace (0 + (1 * dot e s + 0 * 0)) with (dot e s) in c by ring. eapply derivable_pt_lim_ext; [|exact c]. intros u. unfold comp. now rewrite dot_addr, dot_scalr.
Qed.
Lemma slope_up s t : t <= s -> 0 <= slope s - slope t <= L * (s - t).
Proof.
  intros h. assert (e0 : L * (g / L) = g) by (field; lra). unfold slope, pos_, Rmax.
  destruct (Rle_dec 0 (s + g / L)), (Rle_dec 0 s), (Rle_dec 0 (t + g / L)), (Rle_dec 0 t); try (exfalso; lra); split; nra.
Qed.
Lemma slope_lip s t : (slope s - slope t) ^ 2 <= L ^ 2 * (s - t) ^ 2.
Proof.
  rewrite <- Rpow_mult_distr. destruct (Rle_dec t s) as [h|h].
  - apply pow_incr, slope_up, h.
  - replace ((slope s - slope t) ^ 2) with ((slope t - slope s) ^ 2) by ring. replace ((L * (s - t)) ^ 2) with ((L * (t - s)) ^ 2) by ring. apply pow_incr, slope_up. lra.
Qed.
Lemma step_4_1 :
  (forall s, 0 <= s -> slope s = g /\ ramp s = g * s) /\ (forall s, - (g / L) <= s <= 0 -> slope s = g + L * s) /\ (forall s, s <= - (g / L) -> slope s = 0) /\
  gradient Fr Gr /\ lipschitz L Gr /\ (forall x, - (g ^ 2 / (2 * L)) <= Fr x) /\ (exists x, Fr x = - (g ^ 2 / (2 * L))) /\
  (forall x, 0 <= dot e x -> Fr x - - (g ^ 2 / (2 * L)) = g * dot e x + g ^ 2 / (2 * L)) /\
  (forall x, 0 <= dot e x -> nrm2 (Gr x) = g ^ 2).
Proof.
  assert (eL : L * (g / L) = g) by (field; lra).
  split; [exact ramp_up|]. split; [|split; [|split; [|split; [|split; [|split; [|split]]]]]].
  - intros s hs. unfold slope, pos_, Rmax. destruct (Rle_dec 0 (s + g / L)), (Rle_dec 0 s); nra.
  - intros s hs. unfold slope, pos_, Rmax. destruct (Rle_dec 0 (s + g / L)), (Rle_dec 0 s); nra.
  - intros x s. unfold Gr. rewrite dot_scall. apply line_derivative, ramp_derivative.
  - intros x y. unfold Gr. replace (slope (dot e x) *: e - slope (dot e y) *: e)%V with ((slope (dot e x) - slope (dot e y)) *: e)%V by vring.
    rewrite nrm2_scal, unit_. assert (k := slope_lip (dot e x) (dot e y)). assert (c := cauchy_schwarz e (x - y)%V). rewrite unit_, subE, dot_addr, dot_scalr, <- subE in c.
    assert (l2 : 0 <= L ^ 2) by apply pow2_ge_0. apply (Rmult_le_compat_l (L ^ 2)) in c; auto. simpl in *. lra.
  - intros x. unfold Fr, ramp. assert (k : sq_ (dot e x) <= sq_ (dot e x + g / L)); [|nra].
    assert (k := sq_bound (dot e x) (g / L)). assert (0 <= g / L * pos_ (dot e x)) by (apply Rmult_le_pos; [lra|apply Rmax_l]). lra.
  - exists ((- (g / L)) *: e)%V. unfold Fr, ramp, sq_, pos_. rewrite dot_scalr. fold (nrm2 e). rewrite unit_, !Rmax_left by lra. field. lra.
  - intros x hx. unfold Fr. destruct (ramp_up _ hx) as [_ ->]. ring.
  - intros x hx. unfold Gr. rewrite nrm2_scal, unit_. destruct (ramp_up _ hx) as [-> _]. ring.
Qed.
End Ramp.

(* a walk whose moves q lie in [0, 1] and have mean rho; as long as it has not gone too far, v = G2 *)
Section Walk.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Variable v : X -> R.
Variable q : W -> R.
Variable on : R -> X -> Prop.
Variable real : W -> Prop.
Variables rho delta T G2 : R.
Hypothesis v_ge0 : forall s, 0 <= v s.
Hypothesis real_le : forall s f f', (forall w, real w -> f w <= f' w) -> kernel s f <= kernel s f'.
Hypothesis q01 : forall w, real w -> 0 <= q w <= 1.
Hypothesis Eq : forall s, kernel s q = rho.
Hypothesis rho0 : 0 < rho <= 1.
Hypothesis delta0 : 0 < delta.
Hypothesis T0 : 0 < T.
Hypothesis G20 : 0 <= G2.
Hypothesis on_v : forall a s, on a s -> v s = G2.
Hypothesis on_step : forall a s w, on a s -> 0 <= a -> real w -> a + q w <= (1 + delta) * rho * T -> on (a + q w) (step s w).
Lemma q_variance s : kernel s (fun w => q w ^ 2) <= rho.
Proof. rewrite <- (Eq s). apply real_le. intros w hw. assert (k := q01 w hw). nra. Qed.
Definition spread n a : R := (a + INR n * rho - rho * T) ^ 2 + INR n * (rho * (1 - rho)).
Lemma walk n : forall a s, on a s -> 0 <= a -> G2 * (1 - spread n a / (delta * rho * T) ^ 2) <= Emin kernel step v n G2 s.
Proof.
  assert (D0 : 0 < (delta * rho * T) ^ 2) by (apply pow_lt; repeat apply Rmult_lt_0_compat; lra). set (Dq := (delta * rho * T) ^ 2) in *.
  assert (iD : 0 < / Dq) by now apply Rinv_0_lt_compat.
  induction n; intros a s ha a0.
  - simpl Emin. unfold spread. simpl INR. assert (0 <= G2 * (((a + 0 * rho - rho * T) ^ 2 + 0 * (rho * (1 - rho))) / Dq)).
    { apply Rmult_le_pos; auto. apply Rmult_le_pos; [|lra]. assert (k := pow2_ge_0 (a + 0 * rho - rho * T)). lra. } lra.
  - simpl Emin. rewrite (on_v a s ha), Rmin_left by lra.
    eapply Rle_trans; [|apply (real_le s (fun w => G2 * (1 - spread n (a + q w) / Dq)))].
    2: { intros w hw. destruct (Rle_dec (a + q w) ((1 + delta) * rho * T)) as [c|c].
      - apply IHn; [now apply on_step|]. assert (k := q01 w hw). lra.
      - apply Rle_trans with 0; [|now apply Emin_ge0]. assert (k : 1 <= spread n (a + q w) / Dq).
        { apply (Rmult_le_reg_r Dq); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. unfold spread, Dq.
          assert (n0 := pos_INR n). assert (z : 0 <= INR n * (rho * (1 - rho))) by pos. assert (z2 : 0 <= INR n * rho) by pos.
          assert (z3 : 0 <= delta * rho * T) by (repeat apply Rmult_le_pos; lra). assert (z4 : delta * rho * T <= a + q w + INR n * rho - rho * T) by lra.
          assert (z5 := pow_incr _ _ 2 (conj z3 z4)). lra. }
        assert (0 <= G2 * (spread n (a + q w) / Dq - 1)) by (apply Rmult_le_pos; lra). lra. }
    set (b := a + INR n * rho - rho * T). set (c := INR n * (rho * (1 - rho))).
    assert (le : kernel s (fun w => spread n (a + q w)) <= spread (S n) a).
    { rewrite (ex_ext _ _ (fun w => (b ^ 2 + c) * 1 + (2 * b * q w + q w ^ 2))) by (intros w; unfold spread, b, c; ring).
      rewrite !ex_plus, !ex_scal, ex_one, Eq. assert (k := q_variance s). unfold spread. rewrite S_INR. unfold b, c. lra. }
    rewrite (ex_ext _ _ (fun w => G2 * 1 + (- (G2 * / Dq)) * spread n (a + q w))) by (intros; unfold Rdiv; ring).
    rewrite ex_plus, !ex_scal, ex_one. apply (Rmult_le_compat_l (G2 * / Dq)) in le; [|apply Rmult_le_pos; lra]. unfold Rdiv. lra.
Qed.
Lemma walk_all n s : INR n = T -> on 0 s -> G2 * (1 - (1 - rho) / (delta ^ 2 * rho * T)) <= Emin kernel step v n G2 s.
Proof.
  intros hn hs. eapply Rle_trans; [|apply (walk n 0 s hs (Rle_refl 0))]. apply Rmult_le_compat_l; auto. unfold spread. rewrite hn. right. field. lra.
Qed.
End Walk.

Lemma path_dirac {Z} (z : Z) k f : path (fun _ => dirac z) k f = f (repeat z k).
Proof. revert f. induction k; intros f; [reflexivity|]. rewrite path_S, IHk. reflexivity. Qed.
(* a member of the family without noise *)
Section Member.
Context {D : Dim}.
Variables N Sn K : nat.
Hypothesis S1 : (0 < Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variables rho eta etag L delta : R.
Hypothesis HP : forall w, Family.map01 (P w).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Hypothesis rho01 : 0 < rho <= 1.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Hypothesis steps : K = 1%nat \/ 1 <= etag.
Hypothesis L0 : 0 < L.
Hypothesis delta0 : 0 < delta.
Context {Mem : Type}.
Variable ci : Mem -> nat -> vec.
Variable upd : Family.state (Mem := Mem) -> list nat -> O -> list Family.noise -> Mem.
Variable e : vec.
Hypothesis unit_ : nrm2 e = 1.
Variable g : R.
Hypothesis g0 : 0 < g.
Notation gi := (fun (_ : nat) => Gr g L e).
Notation state := (Family.state (Mem := Mem)).
Notation sx := Family.sx.
Notation smem := Family.smem.
Notation h := (Family.hh K L eta etag).
Notation next := (Family.step N Sn P gi eta etag ci upd).
Definition quiet : state -> O -> list Family.noise -> law Family.noise := fun _ _ _ => dirac (fun _ => v0).
Notation kernel := (Family.round N Sn K SN draw quiet).
Notation zeros := (repeat (fun _ : nat => v0) K).
(* memories are equal, and stay so as long as all gradients of a round are g e *)
Variable exact : Mem -> Prop.
Hypothesis exact_equal : forall m i j, exact m -> (i < N)%nat -> (j < N)%nat -> ci m i = ci m j.
Hypothesis exact_step : forall (s : state) A w, exact (smem s) -> (forall i, (i < N)%nat -> Family.gbar N K P gi eta ci s w i zeros = (g *: e)%V) -> exact (upd s A w zeros).
Notation q := (fun p : Family.draws => dot e (P (fst (snd p)) e)).
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let KK : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Let Sn0 : 0 < INR Sn. Proof. now apply lt_0_INR. Qed.
Definition real (p : Family.draws (O := O)) : Prop := In (fst p) (subsets N Sn) /\ snd (snd p) = zeros.
Lemma kernel_le s f f' : (forall p, real p -> f p <= f' p) -> kernel s f <= kernel s f'.
Proof.
  intros hf. unfold Family.round, Family.local_law. cbn [ex bind]. apply Family.lsets_le. intros A hA. apply ex_le; intros w.
  unfold quiet. rewrite !path_dirac. apply hf. now split.
Qed.
Lemma q_range w : 0 <= dot e (P w e) <= 1.
Proof. split; [apply (Family.m_ge0 _ (HP w))|]. rewrite <- unit_. apply (Family.m_le _ (HP w)). Qed.
Lemma kernel_q s : kernel s q = rho.
Proof.
  unfold Family.round, Family.local_law. cbn [ex bind fst snd]. rewrite (ex_ext _ _ (fun _ => rho)); [apply ex_const|]. intros A.
  rewrite (ex_ext draw _ (fun w => dot e (P w e))). { rewrite EP. fold (nrm2 e). rewrite unit_. ring. }
  intros w. apply ex_const.
Qed.
(* local steps on the slope *)
Lemma cbar_equal s i : exact (smem s) -> (i < N)%nat -> (- ci (smem s) i + Family.cbar N ci s)%V = v0.
Proof.
  intros he hi. unfold Family.cbar, Family.meanV. rewrite (vsum_ext N _ (fun _ => ci (smem s) i)) by (intros; now apply exact_equal).
  rewrite vsum_const. vfield. lra.
Qed.
Lemma loc_slope s w i k : exact (smem s) -> (i < N)%nat -> 0 <= dot e (sx s) -> (k <= K)%nat ->
  (forall j, (j < k)%nat -> 0 <= dot e (sx s) - eta * INR j * g * dot e (P w e)) ->
  Family.loc N P gi eta ci s w i (repeat (fun _ : nat => v0) k) = (sx s - (eta * INR k * g) *: P w e)%V.
Proof.
  intros he hi h0. induction k; intros hk hj; [simpl; vring|]. cbn [repeat Family.loc]. rewrite IHk by (try lia; intros; apply hj; lia).
  assert (q0 : 0 <= dot e (sx s - (eta * INR k * g) *: P w e)%V).
  { rewrite subE, dot_addr, !dot_scalr. assert (z := hj k ltac:(lia)). lra. }
  assert (gr : Gr g L e (sx s - (eta * INR k * g) *: P w e)%V = (g *: e)%V) by (unfold Gr; destruct (ramp_up g L g0 L0 _ q0) as [-> _]; reflexivity).
  rewrite gr. replace (g *: e + v0 - ci (smem s) i + Family.cbar N ci s)%V with (g *: e + (- ci (smem s) i + Family.cbar N ci s))%V by vring.
  rewrite (cbar_equal s i he hi). replace (g *: e + v0)%V with (g *: e)%V by vring. rewrite (Family.m_scal _ (HP w)), S_INR. vring.
Qed.
Lemma round_slope s A w : exact (smem s) -> In A (subsets N Sn) -> 0 <= dot e (sx s) -> 0 <= dot e (sx s - (h * g / L) *: P w e)%V ->
  sx (next s (A, (w, zeros))) = (sx s - (h * g / L) *: P w e)%V /\ exact (smem (next s (A, (w, zeros)))).
Proof.
  intros he hA h0 hend. assert (q0 := q_range w). rewrite subE, dot_addr, !dot_scalr in hend.
  assert (hE : h * g / L = etag * (eta * INR K * g)) by (unfold Family.hh, Family.etat; field; lra). rewrite hE in *.
  assert (on : forall j, (j < K)%nat -> 0 <= dot e (sx s) - eta * INR j * g * dot e (P w e)).
  { intros j hj. assert (j0 := pos_INR j). assert (jK : INR j <= INR K) by (apply le_INR; lia).
    assert (u : 0 <= eta * g * dot e (P w e)) by (repeat apply Rmult_le_pos; lra). destruct steps as [->|s1].
    - replace j with 0%nat by lia. simpl INR. lra.
    - assert (z : eta * INR j * g * dot e (P w e) <= etag * (eta * INR K * g) * dot e (P w e)); [|lra].
      replace (eta * INR j * g * dot e (P w e)) with (INR j * (eta * g * dot e (P w e))) by ring.
      replace (etag * (eta * INR K * g) * dot e (P w e)) with (etag * INR K * (eta * g * dot e (P w e))) by ring.
      apply Rmult_le_compat_r; auto. assert (0 <= (etag - 1) * INR K) by (apply Rmult_le_pos; lra). lra. }
  assert (lo : forall i k, (i < N)%nat -> (k <= K)%nat -> Family.loc N P gi eta ci s w i (repeat (fun _ : nat => v0) k) = (sx s - (eta * INR k * g) *: P w e)%V).
  { intros i k hi hk. apply loc_slope; auto. intros; apply on; lia. }
  split.
  - cbn [Family.step Family.sx]. rewrite (Family.pick_ext _ (fun _ => (- (eta * INR K * g)) *: P w e)%V).
    + rewrite Family.pick_const. rewrite (subsets_length _ _ _ hA). vfield. lra.
    + intros i hi. rewrite lo; [vring| |lia]. eapply subsets_below; eauto.
  - cbn [Family.step Family.smem]. apply exact_step; auto. intros i hi. unfold Family.gbar.
    assert (ps : forall k, (k <= K)%nat -> pvsum (fun h0 (z : Family.noise) => Gr g L e (Family.loc N P gi eta ci s w i h0) + z i)%V (repeat (fun _ : nat => v0) k) = (INR k *: (g *: e))%V).
    { induction k; intros hk; [simpl; vring|]. cbn [repeat pvsum]. rewrite IHk by lia. rewrite lo by (auto; lia).
      assert (z : 0 <= dot e (sx s - (eta * INR k * g) *: P w e)%V) by (rewrite subE, dot_addr, !dot_scalr; assert (z := on k ltac:(lia)); lra).
      unfold Gr. destruct (ramp_up g L g0 L0 _ z) as [-> _]. rewrite S_INR. vring. }
    rewrite ps by lia. vfield. lra.
Qed.
Variable T : nat.
Hypothesis T0 : (0 < T)%nat.
Notation s0_ := (h * g / L * ((1 + delta) * rho * INR T)).
Definition on_ a (s : state) : Prop := exact (smem s) /\ dot e (sx s) = s0_ - h * g / L * a /\ a <= (1 + delta) * rho * INR T.
Lemma step_4_2 s : exact (smem s) -> dot e (sx s) = s0_ ->
  (forall a s A w, on_ a s -> In A (subsets N Sn) -> a + dot e (P w e) <= (1 + delta) * rho * INR T -> on_ (a + dot e (P w e)) (next s (A, (w, zeros)))) /\
  (forall a s, on_ a s -> nrm2 (Family.G N gi (sx s)) = g ^ 2) /\
  draw (fun w => dot e (P w e)) = rho /\ draw (fun w => (dot e (P w e) - rho) ^ 2) <= rho * (1 - rho) /\
  g ^ 2 * (1 - (1 - rho) / (delta ^ 2 * rho * INR T)) <= Emin kernel next (fun s => nrm2 (Family.G N gi (sx s))) T (g ^ 2) s.
Proof.
  intros he hs. assert (T1 : 0 < INR T) by now apply lt_0_INR.
  assert (h0 : 0 < h) by (unfold Family.hh, Family.etat; repeat apply Rmult_lt_0_compat; lra). assert (hg : 0 < h * g / L) by (apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]).
  assert (up : forall a s, on_ a s -> 0 <= dot e (sx s)).
  { intros a s' [_ [-> ha]]. assert (0 <= h * g / L * ((1 + delta) * rho * INR T - a)) by (apply Rmult_le_pos; lra). lra. }
  assert (st : forall a s A w, on_ a s -> In A (subsets N Sn) -> a + dot e (P w e) <= (1 + delta) * rho * INR T -> on_ (a + dot e (P w e)) (next s (A, (w, zeros)))).
  { intros a s' A w ha hA hl. assert (u := up a s' ha). destruct ha as [e1 [e2 e3]].
    assert (u2 : dot e (sx s' - (h * g / L) *: P w e)%V = s0_ - h * g / L * (a + dot e (P w e))) by (rewrite subE, dot_addr, !dot_scalr, e2; ring).
    assert (u3 : 0 <= dot e (sx s' - (h * g / L) *: P w e)%V) by (rewrite u2; assert (0 <= h * g / L * ((1 + delta) * rho * INR T - (a + dot e (P w e)))) by (apply Rmult_le_pos; lra); lra).
    destruct (round_slope s' A w e1 hA u u3) as [k1 k2]. split; [exact k2|]. split; [now rewrite k1|exact hl]. }
  assert (gr : forall a s, on_ a s -> nrm2 (Family.G N gi (sx s)) = g ^ 2).
  { intros a s' ha. assert (u := up a s' ha). replace (Family.G N gi (sx s')) with (Gr g L e (sx s')).
    - now apply (step_4_1 g L g0 L0 e unit_).
    - unfold Family.G, Family.meanV. rewrite vsum_const. vfield. lra. }
  assert (m1 : draw (fun w => dot e (P w e)) = rho) by (rewrite EP; fold (nrm2 e); rewrite unit_; ring).
  split; [exact st|]. split; [exact gr|]. split; [exact m1|]. split.
  - assert (m2 : draw (fun w => dot e (P w e) ^ 2) <= rho). { rewrite <- m1. apply ex_le; intros w. assert (k := q_range w). nra. }
    rewrite (ex_ext _ _ (fun w => dot e (P w e) ^ 2 + ((-2 * rho) * dot e (P w e) + rho ^ 2 * 1))) by (intros; ring). rewrite !ex_plus, !ex_scal, ex_one, m1. lra.
  - apply (walk_all kernel next (fun s => nrm2 (Family.G N gi (sx s))) q on_ real rho delta (INR T) (g ^ 2)); auto; try lra.
    + intros; apply nrm2_ge0.
    + intros; now apply kernel_le.
    + intros w _. apply q_range.
    + exact kernel_q.
    + apply pow2_ge_0.
    + intros a s' [A [w hh]] ha _ [hA hz] hl. cbn [fst snd] in *. subst hh. now apply st.
    + split; [exact he|]. split; [lra|]. repeat apply Rmult_le_pos; lra.
Qed.
Lemma step_4_3 Delta s : 0 < Delta -> g ^ 2 = L * Delta / ((1 + delta) * h * rho * INR T + 1/2) -> exact (smem s) -> dot e (sx s) = s0_ ->
  lipschitz L (Gr g L e) /\ gradient (Fr g L e) (Gr g L e) /\ (exists x, Fr g L e x = Fr g L e (sx s) - Delta) /\ (forall x, Fr g L e (sx s) - Delta <= Fr g L e x) /\
  nrm2 (Family.G N gi (sx s)) = L * Delta / ((1 + delta) * h * rho * INR T + 1/2) /\
  (1 - (1 - rho) / (delta ^ 2 * rho * INR T)) * (L * Delta / ((1 + delta) * h * rho * INR T + 1/2))
  <= Emin kernel next (fun s => nrm2 (Family.G N gi (sx s))) T (nrm2 (Family.G N gi (sx s))) s.
Proof.
  intros D0 hg he hs. assert (T1 : 0 < INR T) by now apply lt_0_INR.
  assert (h0 : 0 < h) by (unfold Family.hh, Family.etat; repeat apply Rmult_lt_0_compat; lra).
  assert (w0 : 0 < (1 + delta) * h * rho * INR T) by (repeat apply Rmult_lt_0_compat; lra).
  destruct (step_4_1 g L g0 L0 e unit_) as [_ [_ [_ [a1 [a2 [a3 [a4 [a5 _]]]]]]]].
  assert (x0 : 0 <= dot e (sx s)). { rewrite hs. apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]|repeat apply Rmult_le_pos; lra]. }
  assert (fall : Fr g L e (sx s) - Delta = - (g ^ 2 / (2 * L))).
  { assert (k := a5 (sx s) x0). rewrite hs in k.
    assert (ed : Delta = g ^ 2 * (((1 + delta) * h * rho * INR T + 1/2) / L)) by (rewrite hg; field; lra).
    replace (g * s0_ + g ^ 2 / (2 * L)) with Delta in k by (rewrite ed; field; lra). lra. }
  destruct (step_4_2 s he hs) as [_ [gr [_ [_ low]]]].
  assert (gs : nrm2 (Family.G N gi (sx s)) = g ^ 2). { apply (gr 0 s). split; [exact he|]. split; [lra|]. repeat apply Rmult_le_pos; lra. }
  split; [exact a2|]. split; [exact a1|]. rewrite fall. split; [exact a4|]. split; [exact a3|]. rewrite gs, <- hg. split; [reflexivity|]. rewrite Rmult_comm. exact low.
Qed.
End Member.

(* ================= 5: the best iterate, masks ================= *)
(* a function that never climbs faster than c from the right *)
Lemma creep psi c : (forall u, continuity_pt psi u) ->
  (forall u, 0 <= u -> exists d, 0 < d /\ forall h, 0 < h < d -> psi (u + h) <= psi u + c * h) -> psi 1 <= psi 0 + c.
Proof.
  intros co hr. set (ok u := 0 <= u <= 1 /\ forall v, 0 <= v <= u -> psi v <= psi 0 + c * v).
  assert (o0 : ok 0). { split; [lra|]. intros v hv. replace v with 0 by lra. lra. }
  assert (bd : bound ok) by (exists 1; intros u [hu _]; lra).
  destruct (completeness ok bd (ex_intro _ 0 o0)) as [m [up least]].
  assert (m0 : 0 <= m) by (apply up, o0). assert (m1 : m <= 1) by (apply least; intros u [hu _]; lra).
  assert (below : forall v, 0 <= v < m -> psi v <= psi 0 + c * v).
  { intros v hv. destruct (classic (exists u, ok u /\ v < u)) as [[u [[hu ho] hvu]]|no]; [apply ho; lra|].
    exfalso. assert (m <= v); [|lra]. apply least. intros u hu. apply Rnot_lt_le. intros k. apply no. now exists u. }
  assert (atm : psi m <= psi 0 + c * m).
  { apply Rnot_lt_le. intros k. destruct (Rle_lt_or_eq_dec 0 m m0) as [mp|me]; [|rewrite <- me in k; lra].
    set (eps := (psi m - psi 0 - c * m) / 2). assert (e0 : 0 < eps) by (unfold eps; lra).
    destruct (co m eps e0) as [al [al0 hal]]. set (t := Rmin (Rmin (al / 2) m) (eps / (Rabs c + 1))).
    assert (c0 := Rabs_pos c). assert (ec : 0 < eps / (Rabs c + 1)) by (apply Rdiv_lt_0_compat; lra).
    assert (t0 : 0 < t) by (unfold t; repeat apply Rmin_glb_lt; lra). assert (t1 : t <= al / 2) by (unfold t; eapply Rle_trans; [apply Rmin_l|apply Rmin_l]).
    assert (t2 : t <= m) by (unfold t; eapply Rle_trans; [apply Rmin_l|apply Rmin_r]). assert (t3 : t <= eps / (Rabs c + 1)) by apply Rmin_r.
    assert (near : R_dist (psi (m - t)) (psi m) < eps).
    { apply hal. split; [split; [exact I|lra]|]. unfold dist, R_met, R_dist. replace (m - t - m) with (- t) by ring. rewrite Rabs_Ropp, Rabs_right; lra. }
    unfold R_dist in near. apply Rabs_def2 in near. assert (b := below (m - t) ltac:(lra)).
    assert (ct : - (c * t) <= eps). { apply (Rmult_le_compat_r (Rabs c + 1)) in t3; [|lra]. replace (eps / (Rabs c + 1) * (Rabs c + 1)) with eps in t3 by (field; lra).
      assert (a := Rle_abs (- c)). rewrite Rabs_Ropp in a. nra. }
    unfold eps in *. lra. }
  destruct (Rle_lt_or_eq_dec m 1 m1) as [ml|me]; [|rewrite me in atm; lra]. exfalso.
  destruct (hr m m0) as [d [d0 hd]]. set (t := Rmin (d / 2) (1 - m)). assert (t0 : 0 < t) by (unfold t; apply Rmin_glb_lt; lra).
  assert (td : t <= d / 2) by apply Rmin_l. assert (tm : t <= 1 - m) by apply Rmin_r.
  assert (m + t <= m); [|lra]. apply up. split; [lra|]. intros v hv. destruct (Rlt_le_dec v m) as [k|k]; [apply below; lra|].
  destruct (Rle_lt_or_eq_dec m v k) as [k2|k2]; [|rewrite <- k2; exact atm].
  assert (q := hd (v - m) ltac:(lra)). replace (m + (v - m)) with v in q by ring. lra.
Qed.
(* expansions from the right: a(h) = a0 + a1 h up to K h^2 *)
Definition rexp (a : R -> R) a0 a1 : Prop := exists d K, 0 < d /\ d <= 1 /\ 0 <= K /\ forall h, 0 < h < d -> Rabs (a h - a0 - a1 * h) <= K * h ^ 2.
Lemma rexp_const c : rexp (fun _ => c) c 0.
Proof. exists 1, 0. repeat split; try lra. intros h _. replace (c - c - 0 * h) with 0 by ring. rewrite Rabs_R0. lra. Qed.
Lemma rexp_plus a a0 a1 b b0 b1 : rexp a a0 a1 -> rexp b b0 b1 -> rexp (fun h => a h + b h) (a0 + b0) (a1 + b1).
Proof.
  intros [d [K [d0 [d1 [K0 ha]]]]] [e [M [e0 [e1 [M0 hb]]]]]. exists (Rmin d e), (K + M). assert (l := Rmin_l d e). assert (r := Rmin_r d e).
  split; [now apply Rmin_glb_lt|]. split; [lra|]. split; [lra|]. intros h hh. specialize (ha h ltac:(lra)). specialize (hb h ltac:(lra)).
  replace (a h + b h - (a0 + b0) - (a1 + b1) * h) with ((a h - a0 - a1 * h) + (b h - b0 - b1 * h)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma rexp_scal c a a0 a1 : rexp a a0 a1 -> rexp (fun h => c * a h) (c * a0) (c * a1).
Proof.
  intros [d [K [d0 [d1 [K0 ha]]]]]. exists d, (Rabs c * K). assert (c0 := Rabs_pos c). repeat split; auto; [now apply Rmult_le_pos|]. intros h hh. specialize (ha h hh).
  replace (c * a h - c * a0 - c * a1 * h) with (c * (a h - a0 - a1 * h)) by ring. rewrite Rabs_mult, Rmult_assoc. now apply Rmult_le_compat_l.
Qed.
Lemma rexp_mult a a0 a1 b b0 b1 : rexp a a0 a1 -> rexp b b0 b1 -> rexp (fun h => a h * b h) (a0 * b0) (a0 * b1 + a1 * b0).
Proof.
  intros [d [K [d0 [d1 [K0 ha]]]]] [e [M [e0 [e1 [M0 hb]]]]].
  set (A := Rabs a0 + Rabs a1 + K). assert (p1 := Rabs_pos a0). assert (p2 := Rabs_pos a1). assert (p3 := Rabs_pos b0). assert (p4 := Rabs_pos b1).
  exists (Rmin d e), (Rabs b0 * K + A * M + Rabs a1 * Rabs b1 + K * Rabs b1). assert (l := Rmin_l d e). assert (r := Rmin_r d e).
  split; [now apply Rmin_glb_lt|]. split; [lra|]. split; [repeat apply Rplus_le_le_0_compat; apply Rmult_le_pos; unfold A; lra|].
  intros h hh. specialize (ha h ltac:(lra)). specialize (hb h ltac:(lra)).
  set (ra := a h - a0 - a1 * h) in *. set (rb := b h - b0 - b1 * h) in *.
  assert (h2 : h ^ 2 <= h) by nra. assert (h20 : 0 <= h ^ 2) by apply pow2_ge_0.
  assert (bda : Rabs (a h) <= A).
  { replace (a h) with (a0 + (a1 * h + ra)) by (unfold ra; ring). eapply Rle_trans; [apply Rabs_triang|]. unfold A. rewrite Rplus_assoc. apply Rplus_le_compat_l.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [rewrite Rabs_mult, (Rabs_right h) by lra; nra|]. eapply Rle_trans; [exact ha|]. nra. }
  replace (a h * b h - a0 * b0 - (a0 * b1 + a1 * b0) * h) with (ra * b0 + (a h * rb + ((a1 * h) * (b1 * h) + ra * (b1 * h)))) by (unfold ra, rb; ring).
  assert (q1 : Rabs (ra * b0) <= Rabs b0 * K * h ^ 2) by (rewrite Rabs_mult; assert (z := Rmult_le_compat_r _ _ _ p3 ha); lra).
  assert (q2 : Rabs (a h * rb) <= A * M * h ^ 2) by (rewrite Rabs_mult, Rmult_assoc; apply Rmult_le_compat; auto; apply Rabs_pos).
  assert (q3 : Rabs (a1 * h * (b1 * h)) <= Rabs a1 * Rabs b1 * h ^ 2) by (rewrite !Rabs_mult, (Rabs_right h) by lra; right; ring).
  assert (q4 : Rabs (ra * (b1 * h)) <= K * Rabs b1 * h ^ 2).
  { rewrite !Rabs_mult, (Rabs_right h) by lra. assert (z : Rabs ra * (Rabs b1 * h) <= K * h ^ 2 * (Rabs b1 * 1)); [|lra].
    apply Rmult_le_compat; try apply Rabs_pos; auto; [apply Rmult_le_pos; lra|apply Rmult_le_compat_l; lra]. }
  eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat; [exact q1|]; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [exact q2|];
    eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [exact q3|exact q4]|]. lra.
Qed.
Lemma rexp_sum n (a : nat -> R -> R) a0 a1 : (forall j, (j < n)%nat -> rexp (a j) (a0 j) (a1 j)) -> rexp (fun h => sum n (fun j => a j h)) (sum n a0) (sum n a1).
Proof. induction n; intros k; [exact (rexp_const 0)|]. simpl. apply rexp_plus; [apply IHn; intros; apply k; lia|apply k; lia]. Qed.
Lemma rexp_ext a b a0 a1 b0 b1 : (forall h, a h = b h) -> a0 = b0 -> a1 = b1 -> rexp a a0 a1 -> rexp b b0 b1.
Proof. intros e -> -> [d [K [d0 [d1 [K0 h]]]]]. exists d, K. repeat split; auto. intros; rewrite <- e; now apply h. Qed.
(* the side of a kink on which v moves in direction s *)
Definition side v s : R := if Rlt_dec 0 v then 1 else if Req_EM_T v 0 then (if Rlt_dec 0 s then 1 else 0) else 0.
Lemma rexp_pos v s : rexp (fun h => pos_ (v + h * s)) (pos_ v) (side v s * s).
Proof.
  unfold side. assert (as0 := Rabs_pos s). destruct (Rlt_dec 0 v) as [p|p]; [|destruct (Req_EM_T v 0) as [z|z]; [destruct (Rlt_dec 0 s) as [q|q]|]].
  - exists (Rmin 1 (v / (Rabs s + 1))), 0. assert (w : 0 < v / (Rabs s + 1)) by (apply Rdiv_lt_0_compat; lra). assert (l := Rmin_l 1 (v / (Rabs s + 1))). assert (r := Rmin_r 1 (v / (Rabs s + 1))).
    split; [apply Rmin_glb_lt; lra|]. split; [lra|]. split; [lra|]. intros h hh. assert (k : h < v / (Rabs s + 1)) by lra.
    apply (Rmult_lt_compat_r (Rabs s + 1)) in k; [|lra]. replace (v / (Rabs s + 1) * (Rabs s + 1)) with v in k by (field; lra).
    assert (m := Rle_abs (- s)). rewrite Rabs_Ropp in m. unfold pos_. rewrite !Rmax_right by nra. replace (v + h * s - v - 1 * s * h) with 0 by ring. rewrite Rabs_R0. lra.
  - exists 1, 0. repeat split; try lra. intros h hh. subst v. unfold pos_. rewrite !Rmax_right by nra. replace (0 + h * s - 0 - 1 * s * h) with 0 by ring. rewrite Rabs_R0. lra.
  - exists 1, 0. repeat split; try lra. intros h hh. subst v. unfold pos_. rewrite !Rmax_left by nra. replace (0 - 0 - 0 * s * h) with 0 by ring. rewrite Rabs_R0. lra.
  - exists (Rmin 1 (- v / (Rabs s + 1))), 0. assert (w : 0 < - v / (Rabs s + 1)) by (apply Rdiv_lt_0_compat; lra). assert (l := Rmin_l 1 (- v / (Rabs s + 1))). assert (r := Rmin_r 1 (- v / (Rabs s + 1))).
    split; [apply Rmin_glb_lt; lra|]. split; [lra|]. split; [lra|]. intros h hh. assert (k : h < - v / (Rabs s + 1)) by lra.
    apply (Rmult_lt_compat_r (Rabs s + 1)) in k; [|lra]. replace (- v / (Rabs s + 1) * (Rabs s + 1)) with (- v) in k by (field; lra).
    assert (m := Rle_abs s). unfold pos_. rewrite !Rmax_left by nra. replace (0 - 0 - 0 * s * h) with 0 by ring. rewrite Rabs_R0. lra.
Qed.
Lemma rexp_derivable f f' v s C : (forall u h, Rabs (f (u + h) - f u - h * f' u) <= C * h ^ 2) -> 0 <= C -> rexp (fun h => f (v + h * s)) (f v) (f' v * s).
Proof.
  intros k C0. exists 1, (C * s ^ 2). assert (s2 := pow2_ge_0 s). repeat split; try lra; [now apply Rmult_le_pos|]. intros h _.
  specialize (k v (h * s)). replace (h * s * f' v) with (f' v * s * h) in k by ring. replace ((h * s) ^ 2) with (s ^ 2 * h ^ 2) in k by ring. lra.
Qed.

(* the links: Psi, Phi, n and their derivatives *)
Definition Psi u : R := 4 * sq_ u - 8 * sq_ (u - 1/2) + 4 * sq_ (u - 1).
Definition Psi' u : R := 4 * pos_ u - 8 * pos_ (u - 1/2) + 4 * pos_ (u - 1).
Definition Phi v : R := 6 * sq_ (v + 1/6) - 6 * sq_ v - 6 * sq_ (v - 1) + 6 * sq_ (v - 7/6).
Definition Phi' v : R := 6 * pos_ (v + 1/6) - 6 * pos_ v - 6 * pos_ (v - 1) + 6 * pos_ (v - 7/6).
Definition nn v : R := - v + 6 * sq_ (v + 1/6) - 6 * sq_ v - 1/12.
Definition nn' v : R := - (1) + 6 * pos_ (v + 1/6) - 6 * pos_ v.
Lemma pos_up x : 0 <= x -> pos_ x = x. Proof. apply Rmax_right. Qed.
Lemma pos_dn x : x <= 0 -> pos_ x = 0. Proof. apply Rmax_left. Qed.
Ltac pieces := unfold Psi, Psi', Phi, Phi', nn, nn', sq_; repeat match goal with |- context [pos_ ?x] => first [rewrite (pos_up x) by lra | rewrite (pos_dn x) by lra] end; try split; try field; lra.
(* the page's pieces *)
Lemma Psi_pieces u : (u <= 0 -> Psi u = 0) /\ (1 <= u -> Psi u = 1) /\ (0 <= u <= 1/2 -> Psi u = 2 * u ^ 2 /\ Psi' u = 4 * u) /\
  (1/2 <= u <= 1 -> Psi u = 1 - 2 * (1 - u) ^ 2 /\ Psi' u = 4 * (1 - u)) /\ (u <= 0 \/ 1 <= u -> Psi' u = 0).
Proof. split; [|split; [|split; [|split]]]; intros h; [pieces|pieces|pieces|pieces|destruct h; pieces]. Qed.
Lemma Phi_pieces v : (v <= - (1/6) -> Phi v = 0 /\ Phi' v = 0) /\ (- (1/6) <= v <= 0 -> Phi v = (1 + 6 * v) ^ 2 / 12 /\ Phi' v = 1 + 6 * v) /\
  (0 <= v <= 1 -> Phi v = 1/12 + v /\ Phi' v = 1) /\ (1 <= v <= 7/6 -> Phi v = 7/6 - 3 * (7/6 - v) ^ 2 /\ Phi' v = 7 - 6 * v) /\
  (7/6 <= v -> Phi v = 7/6 /\ Phi' v = 0).
Proof. split; [|split; [|split; [|split]]]; intros h; pieces. Qed.
Lemma nn_pieces v : (0 <= v -> nn v = 0 /\ nn' v = 0) /\ (- (1/6) <= v <= 0 -> nn v = 3 * v ^ 2 /\ nn' v = 6 * v) /\ (v <= - (1/6) -> nn v = - v - 1/12 /\ nn' v = - (1)).
Proof. split; [|split]; intros h; pieces. Qed.
Lemma Psi_range u : 0 <= Psi u <= 1 /\ 0 <= Psi' u <= 2 /\ 6 * Psi u + Psi' u <= 19/3 /\ 6 * (1 - Psi u) + Psi' u <= 19/3.
Proof.
  destruct (Psi_pieces u) as [a [b [c [d e]]]]. destruct (Rle_dec u 0) as [h|h]; [rewrite (a h), (e (or_introl h)); lra|].
  destruct (Rle_dec 1 u) as [h1|h1]; [rewrite (b h1), (e (or_intror h1)); lra|]. destruct (Rle_dec u (1/2)) as [h2|h2].
  - destruct (c ltac:(lra)) as [-> ->]. assert (k1 := pow2_ge_0 (u - 1/6)). repeat split; nra.
  - destruct (d ltac:(lra)) as [-> ->]. assert (k1 := pow2_ge_0 (1 - u - 1/6)). repeat split; nra.
Qed.
Lemma Phi_range v : 0 <= Phi v <= 7/6 /\ 0 <= Phi' v <= 1 /\ 4 * Phi v + 2 * Phi' v <= 19/3.
Proof.
  destruct (Phi_pieces v) as [a [b [c [d e]]]]. destruct (Rle_dec v (- (1/6))) as [h|h]; [destruct (a h) as [-> ->]; lra|].
  destruct (Rle_dec v 0) as [h1|h1]; [destruct (b ltac:(lra)) as [-> ->]; repeat split; nra|]. destruct (Rle_dec v 1) as [h2|h2]; [destruct (c ltac:(lra)) as [-> ->]; lra|].
  destruct (Rle_dec v (7/6)) as [h3|h3]; [destruct (d ltac:(lra)) as [-> ->]; repeat split; nra|destruct (e ltac:(lra)) as [-> ->]; lra].
Qed.
Lemma nn_range v : 0 <= nn v.
Proof.
  destruct (nn_pieces v) as [a [b c]]. destruct (Rle_dec 0 v) as [h|h]; [destruct (a h) as [-> _]; lra|]. destruct (Rle_dec v (- (1/6))) as [h1|h1]; [destruct (c h1) as [-> _]; lra|].
  destruct (b ltac:(lra)) as [-> _]. nra.
Qed.
Lemma spline_bound f f' C : (exists a b c e, 0 <= Rabs a + Rabs b + Rabs c + Rabs e <= 2 * C /\ exists k1 k2 k3 k4 m0 m1, forall u,
    f u = m0 + m1 * u + a * sq_ (u + k1) + b * sq_ (u + k2) + c * sq_ (u + k3) + e * sq_ (u + k4) /\
    f' u = m1 + a * pos_ (u + k1) + b * pos_ (u + k2) + c * pos_ (u + k3) + e * pos_ (u + k4)) ->
  forall u h, Rabs (f (u + h) - f u - h * f' u) <= C * h ^ 2.
Proof.
  intros [a [b [c [e [hC [k1 [k2 [k3 [k4 [m0 [m1 hf]]]]]]]]]]] u h. destruct (hf u) as [e1 e2]. destruct (hf (u + h)) as [e3 _]. rewrite e1, e2, e3.
  assert (one : forall t k, Rabs (t * (sq_ (u + h + k) - sq_ (u + k) - h * pos_ (u + k))) <= Rabs t * (h ^ 2 / 2)).
  { intros t k. rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|]. assert (q := sq_bound (u + k) h). replace (u + h + k) with (u + k + h) by ring. rewrite Rabs_right; lra. }
  replace (m0 + m1 * (u + h) + a * sq_ (u + h + k1) + b * sq_ (u + h + k2) + c * sq_ (u + h + k3) + e * sq_ (u + h + k4)
    - (m0 + m1 * u + a * sq_ (u + k1) + b * sq_ (u + k2) + c * sq_ (u + k3) + e * sq_ (u + k4))
    - h * (m1 + a * pos_ (u + k1) + b * pos_ (u + k2) + c * pos_ (u + k3) + e * pos_ (u + k4)))
    with (a * (sq_ (u + h + k1) - sq_ (u + k1) - h * pos_ (u + k1)) + (b * (sq_ (u + h + k2) - sq_ (u + k2) - h * pos_ (u + k2))
      + (c * (sq_ (u + h + k3) - sq_ (u + k3) - h * pos_ (u + k3)) + e * (sq_ (u + h + k4) - sq_ (u + k4) - h * pos_ (u + k4))))) by ring.
  assert (o1 := one a k1). assert (o2 := one b k2). assert (o3 := one c k3). assert (o4 := one e k4). assert (h0 : 0 <= h ^ 2) by apply pow2_ge_0.
  eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat; [exact o1|]; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [exact o2|]; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [exact o3|exact o4]|].
  assert (z : (Rabs a + Rabs b + Rabs c + Rabs e) * (h ^ 2 / 2) <= 2 * C * (h ^ 2 / 2)) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Ltac abs := repeat (unfold Rabs; destruct Rcase_abs); lra.
Lemma Psi_smooth u h : Rabs (Psi (u + h) - Psi u - h * Psi' u) <= 8 * h ^ 2.
Proof.
  revert u h. apply spline_bound. exists 4, (-8), 4, 0. split; [abs|]. exists 0, (- (1/2)), (- (1)), 0, 0, 0. intros u. unfold Psi, Psi'.
  replace (u + 0) with u by ring. replace (u + - (1/2)) with (u - 1/2) by ring. replace (u + - (1)) with (u - 1) by ring. split; ring.
Qed.
Lemma Phi_smooth u h : Rabs (Phi (u + h) - Phi u - h * Phi' u) <= 12 * h ^ 2.
Proof.
  revert u h. apply spline_bound. exists 6, (-6), (-6), 6. split; [abs|]. exists (1/6), 0, (- (1)), (- (7/6)), 0, 0. intros u. unfold Phi, Phi'.
  replace (u + 0) with u by ring. replace (u + - (7/6)) with (u - 7/6) by ring. replace (u + - (1)) with (u - 1) by ring. split; ring.
Qed.
Lemma nn_smooth u h : Rabs (nn (u + h) - nn u - h * nn' u) <= 6 * h ^ 2.
Proof.
  revert u h. apply spline_bound. exists 6, (-6), 0, 0. split; [abs|]. exists (1/6), 0, 0, 0, (- (1/12)), (- (1)). intros u. unfold nn, nn'.
  replace (u + 0) with u by ring. split; ring.
Qed.
(* the second derivatives from the side of s *)
Definition Psi2 u s : R := 4 * side u s - 8 * side (u - 1/2) s + 4 * side (u - 1) s.
Definition Phi2 v s : R := 6 * side (v + 1/6) s - 6 * side v s - 6 * side (v - 1) s + 6 * side (v - 7/6) s.
Definition nn2 v s : R := 6 * side (v + 1/6) s - 6 * side v s.
Lemma rexp_Psi' u s : rexp (fun h => Psi' (u + h * s)) (Psi' u) (Psi2 u s * s).
Proof.
  assert (k := rexp_plus _ _ _ _ _ _ (rexp_plus _ _ _ _ _ _ (rexp_scal 4 _ _ _ (rexp_pos u s)) (rexp_scal (-8) _ _ _ (rexp_pos (u - 1/2) s))) (rexp_scal 4 _ _ _ (rexp_pos (u - 1) s))).
  eapply rexp_ext; [| | |exact k]; [intros h; unfold Psi'; replace (u + h * s - 1/2) with (u - 1/2 + h * s) by ring; replace (u + h * s - 1) with (u - 1 + h * s) by ring; ring|unfold Psi'; ring|unfold Psi2; ring].
Qed.
Lemma rexp_Phi' u s : rexp (fun h => Phi' (u + h * s)) (Phi' u) (Phi2 u s * s).
Proof.
  assert (k := rexp_plus _ _ _ _ _ _ (rexp_plus _ _ _ _ _ _ (rexp_scal 6 _ _ _ (rexp_pos (u + 1/6) s)) (rexp_scal (-6) _ _ _ (rexp_pos u s)))
    (rexp_plus _ _ _ _ _ _ (rexp_scal (-6) _ _ _ (rexp_pos (u - 1) s)) (rexp_scal 6 _ _ _ (rexp_pos (u - 7/6) s)))).
  eapply rexp_ext; [| | |exact k]; [intros h; unfold Phi'; replace (u + h * s + 1/6) with (u + 1/6 + h * s) by ring; replace (u + h * s - 1) with (u - 1 + h * s) by ring; replace (u + h * s - 7/6) with (u - 7/6 + h * s) by ring; ring|unfold Phi'; ring|unfold Phi2; ring].
Qed.
Lemma rexp_nn' u s : rexp (fun h => nn' (u + h * s)) (nn' u) (nn2 u s * s).
Proof.
  assert (k := rexp_plus _ _ _ _ _ _ (rexp_const (- (1))) (rexp_plus _ _ _ _ _ _ (rexp_scal 6 _ _ _ (rexp_pos (u + 1/6) s)) (rexp_scal (-6) _ _ _ (rexp_pos u s)))).
  eapply rexp_ext; [| | |exact k]; [intros h; unfold nn'; replace (u + h * s + 1/6) with (u + 1/6 + h * s) by ring; ring|unfold nn'; ring|unfold nn2; ring].
Qed.
(* a row of the Hessian: the coordinate v, the one before it u, the one behind it w *)
Lemma side_1 v s : 0 < v -> side v s = 1. Proof. intros h. unfold side. destruct Rlt_dec; [reflexivity|lra]. Qed.
Lemma side_0 v s : v < 0 -> side v s = 0. Proof. intros h. unfold side. destruct Rlt_dec; [lra|]. destruct Req_EM_T; [lra|reflexivity]. Qed.
Lemma side_01 v s : side v s = 0 \/ side v s = 1. Proof. unfold side. destruct Rlt_dec; auto. destruct Req_EM_T; auto. destruct Rlt_dec; auto. Qed.
Ltac sides := unfold Psi2, Phi2, nn2; repeat match goal with |- context [side ?x ?s] => first [rewrite (side_1 x s) by lra | rewrite (side_0 x s) by lra
  | let h := fresh in destruct (side_01 x s) as [h|h]; rewrite !h; clear h] end.
Ltac choose := first [left; repeat split; lra | right; right; repeat split; lra | right; left; repeat split; [lra|lra|apply Rabs_le; lra]].
Lemma row u v w s : Rabs (nn2 v s - Psi u * Phi2 v s) + Psi' u * Phi' v <= 19/3 /\ Rabs (Psi2 v s * Phi w) + Psi' v * Phi' w <= 19/3 /\
  Rabs (nn2 v s - Psi u * Phi2 v s - Psi2 v s * Phi w) + Psi' u * Phi' v + Psi' v * Phi' w <= 25/3.
Proof.
  destruct (Psi_range u) as [u1 [u2 [u3 u4]]]. destruct (Phi_range w) as [w1 [w2 w3]]. destruct (Psi_range v) as [_ [v2 _]]. destruct (Phi_range v) as [_ [v3 _]].
  assert (uv : 0 <= Psi' u * Phi' v <= Psi' u) by nra. assert (vw : 0 <= Psi' v * Phi' w <= 2 * Phi' w) by nra.
  destruct (Rlt_dec v (- (1/6))) as [a|a].
  { destruct (Phi_pieces v) as [p _]. destruct (p ltac:(lra)) as [_ ph]. destruct (Psi_pieces v) as [_ [_ [_ [_ ps]]]]. rewrite ph, (ps ltac:(lra)).
    assert (z : nn2 v s = 0 /\ Phi2 v s = 0 /\ Psi2 v s = 0) by (sides; repeat split; lra). destruct z as [-> [-> ->]].
    replace (0 - Psi u * 0 - 0 * Phi w) with 0 by ring. replace (0 - Psi u * 0) with 0 by ring. rewrite Rmult_0_l, Rabs_R0. lra. }
  destruct (Rlt_dec (7/6) v) as [b|b].
  { destruct (Phi_pieces v) as [_ [_ [_ [_ p]]]]. destruct (p ltac:(lra)) as [_ ph]. destruct (Psi_pieces v) as [_ [_ [_ [_ ps]]]]. rewrite ph, (ps ltac:(lra)).
    assert (z : nn2 v s = 0 /\ Phi2 v s = 0 /\ Psi2 v s = 0) by (sides; repeat split; lra). destruct z as [-> [-> ->]].
    replace (0 - Psi u * 0 - 0 * Phi w) with 0 by ring. replace (0 - Psi u * 0) with 0 by ring. rewrite Rmult_0_l, Rabs_R0. lra. }
  (* in between: n'' = Phi'' = 6, Psi'' = 0; or n'' = Phi'' = 0, |Psi''| <= 4; or n'' = Psi'' = 0, Phi'' = -6; or all are 0 *)
  assert (z : (nn2 v s = 6 /\ Phi2 v s = 6 /\ Psi2 v s = 0 /\ Psi' v = 0) \/ (nn2 v s = 0 /\ Phi2 v s = 0 /\ Rabs (Psi2 v s) <= 4) \/
    (nn2 v s = 0 /\ Phi2 v s = -6 /\ Psi2 v s = 0 /\ Psi' v = 0)).
  { destruct (Psi_pieces v) as [_ [_ [_ [_ ps]]]].
    assert (k : (v < 0 /\ v <> - (1/6)) \/ v = - (1/6) \/ v = 0 \/ (0 < v < 1 /\ v <> 1/2) \/ v = 1/2 \/ v = 1 \/ (1 < v /\ v <> 7/6) \/ v = 7/6) by lra.
    destruct k as [[k k']|[k|[k|[[k k']|[k|[k|[[k k']|k]]]]]]];
      try (assert (e := ps ltac:(lra)); rewrite e); try (rewrite k); sides; choose. }
  destruct z as [[-> [-> [-> e]]]|[[-> [-> z]]|[-> [-> [-> e]]]]].
  - rewrite e. replace (6 - Psi u * 6 - 0 * Phi w) with (6 * (1 - Psi u)) by ring. replace (6 - Psi u * 6) with (6 * (1 - Psi u)) by ring. rewrite Rmult_0_l, Rabs_R0, Rabs_right by lra. lra.
  - replace (0 - Psi u * 0 - Psi2 v s * Phi w) with (- (Psi2 v s * Phi w)) by ring. replace (0 - Psi u * 0) with 0 by ring. rewrite Rabs_R0, Rabs_Ropp, Rabs_mult, (Rabs_right (Phi w)) by lra.
    assert (Rabs (Psi2 v s) * Phi w <= 4 * Phi w) by (apply Rmult_le_compat_r; lra). lra.
  - rewrite e. replace (0 - Psi u * -6 - 0 * Phi w) with (6 * Psi u) by ring. replace (0 - Psi u * -6) with (6 * Psi u) by ring. rewrite Rmult_0_l, Rabs_R0, Rabs_right by lra. lra.
Qed.

Lemma sum_shift n (c : nat -> R) : sum n (fun i => c (S i)) = sum n c + c n - c 0%nat.
Proof. induction n; [simpl; ring|]. rewrite !sum_S, IHn. ring. Qed.
Lemma comp_line f f' p q : derivable_pt_lim f p f' -> derivable_pt_lim (fun u => f (p + u * q)) 0 (f' * q).
Proof.
  intros h. assert (k : derivable_pt_lim (fun u => p + u * q) 0 (0 + (1 * q + 0 * 0))).
  { apply (derivable_pt_lim_plus (fun _ => p)); [apply derivable_pt_lim_const|]. apply (derivable_pt_lim_mult id (fun _ => q)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const]. }
  assert (c := derivable_pt_lim_comp (fun u => p + u * q) f 0 _ f' k). cbv beta in c. rewrite Rmult_0_l, Rplus_0_r in c. specialize (c h).
  replace (0 + (1 * q + 0 * 0)) with q in c by ring. exact c.
Qed.
Lemma der_sum n (f : nat -> R -> R) f' : (forall j, (j < n)%nat -> derivable_pt_lim (f j) 0 (f' j)) -> derivable_pt_lim (fun u => sum n (fun j => f j u)) 0 (sum n f').
Proof. induction n; intros h; [apply derivable_pt_lim_const|]. simpl. apply (derivable_pt_lim_plus (fun u => sum n (fun j => f j u))); [apply IHn; intros; apply h; lia|apply h; lia]. Qed.
Lemma lip_cont f C : (forall x y, Rabs (f x - f y) <= C * Rabs (x - y)) -> 0 < C -> continuity f.
Proof.
  intros h C0 x eps he. exists (eps / C). split; [now apply Rdiv_lt_0_compat|]. intros y [_ hy]. unfold dist, R_met, R_dist in *. eapply Rle_lt_trans; [apply h|].
  apply (Rmult_lt_compat_l C) in hy; auto. replace (C * (eps / C)) with eps in hy by (field; lra). exact hy.
Qed.
Lemma pos_lip x y : - Rabs (x - y) <= pos_ x - pos_ y <= Rabs (x - y).
Proof. unfold pos_, Rmax. destruct (Rle_dec 0 x), (Rle_dec 0 y); unfold Rabs; destruct Rcase_abs; lra. Qed.
Lemma Psi'_cont : continuity Psi'.
Proof.
  apply (lip_cont _ 16); [|lra]. intros x y. assert (a := pos_lip x y). assert (b := pos_lip (x - 1/2) (y - 1/2)). assert (c := pos_lip (x - 1) (y - 1)).
  replace (x - 1/2 - (y - 1/2)) with (x - y) in b by ring. replace (x - 1 - (y - 1)) with (x - y) in c by ring. apply Rabs_le. unfold Psi'. lra.
Qed.
Lemma Phi'_cont : continuity Phi'.
Proof.
  apply (lip_cont _ 24); [|lra]. intros x y. assert (a := pos_lip x y). assert (b := pos_lip (x + 1/6) (y + 1/6)). assert (c := pos_lip (x - 1) (y - 1)). assert (d := pos_lip (x - 7/6) (y - 7/6)).
  replace (x + 1/6 - (y + 1/6)) with (x - y) in b by ring. replace (x - 1 - (y - 1)) with (x - y) in c by ring. replace (x - 7/6 - (y - 7/6)) with (x - y) in d by ring. apply Rabs_le. unfold Phi'. lra.
Qed.
Lemma nn'_cont : continuity nn'.
Proof.
  apply (lip_cont _ 12); [|lra]. intros x y. assert (a := pos_lip x y). assert (b := pos_lip (x + 1/6) (y + 1/6)). replace (x + 1/6 - (y + 1/6)) with (x - y) in b by ring. apply Rabs_le. unfold nn'. lra.
Qed.
Lemma Psi_der u : derivable_pt_lim Psi u (Psi' u). Proof. apply (second_order _ _ _ 8), Psi_smooth. Qed.
Lemma Phi_der u : derivable_pt_lim Phi u (Phi' u). Proof. apply (second_order _ _ _ 12), Phi_smooth. Qed.
Lemma nn_der u : derivable_pt_lim nn u (nn' u). Proof. apply (second_order _ _ _ 6), nn_smooth. Qed.
Lemma der_cont f f' : (forall u, derivable_pt_lim f u (f' u)) -> continuity f.
Proof. intros h u. apply derivable_continuous_pt. exists (f' u). apply h. Qed.
Lemma cont_line f p q : continuity f -> continuity (fun u => f (p + u * q)).
Proof.
  intros h u. apply (continuity_pt_comp (fun u => p + u * q) f); [|apply h]. apply derivable_continuous_pt. exists (0 + (1 * q + u * 0)).
  apply (derivable_pt_lim_plus (fun _ => p)); [apply derivable_pt_lim_const|]. apply (derivable_pt_lim_mult id (fun _ => q)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
Qed.
Lemma cont_ext f g : (forall u, f u = g u) -> continuity f -> continuity g.
Proof. intros h. replace g with f; auto. now apply functional_extensionality. Qed.
Lemma cont_sum n (f : nat -> R -> R) : (forall j, continuity (f j)) -> continuity (fun u => sum n (fun j => f j u)).
Proof. intros h. induction n; [apply continuity_const; intros ? ?; reflexivity|]. exact (continuity_plus _ _ IHn (h n)). Qed.

Definition prev (z : R) (x : vec) (j : nat) : R := match j with 0%nat => z | S i => x i end.
Section Chain.
Context {D : Dim}.
Variable a : nat -> R.                    (* how much of every link; link j joins coordinates j - 1 and j, counted from 0 *)
Hypothesis a0 : forall j, 0 <= a j.
Hypothesis aend : forall j, (dim <= j)%nat -> a j = 0.
Definition link x j : R := nn (x j) - Psi (prev 1 x j) * Phi (x j).
Definition chain x : R := sum dim (fun j => a j * link x j).
Definition chain' (x : vec) : vec := fun j => a j * (nn' (x j) - Psi (prev 1 x j) * Phi' (x j)) - a (S j) * (Psi' (x j) * Phi (x (S j))).
Lemma prev_line z z' x s u j : prev (z + u * z') (x + u *: s)%V j = prev z x j + u * prev z' s j.
Proof. destruct j; reflexivity. Qed.
Lemma prev_line1 x s u j : prev 1 (x + u *: s)%V j = prev 1 x j + u * prev 0 s j.
Proof. rewrite <- prev_line. f_equal. ring. Qed.
Lemma chain_gradient : gradient chain chain'.
Proof.
  intros x s. set (A j := a j * (nn' (x j) * s j - (Psi' (prev 1 x j) * prev 0 s j * Phi (x j) + Psi (prev 1 x j) * (Phi' (x j) * s j)))).
  assert (e : dot (chain' x) s = sum dim A).
  { set (c j := a j * (Psi' (prev 1 x j) * prev 0 s j * Phi (x j))).
    assert (sh : sum dim (fun j => a (S j) * (Psi' (x j) * Phi (x (S j))) * s j) = sum dim c).
    { transitivity (sum dim (fun j => c (S j))); [apply sum_ext; intros; unfold c; simpl prev; ring|]. rewrite sum_shift.
      assert (z : c dim = 0 /\ c 0%nat = 0) by (unfold c; rewrite (aend dim) by lia; simpl prev; split; ring). destruct z as [-> ->]. ring. }
    transitivity (sum dim (fun j => a j * (nn' (x j) - Psi (prev 1 x j) * Phi' (x j)) * s j) + (-1) * sum dim (fun j => a (S j) * (Psi' (x j) * Phi (x (S j))) * s j)).
    - rewrite <- sum_scal, <- sum_plus. apply sum_ext; intros j _. unfold chain'. ring.
    - rewrite sh, <- sum_scal, <- sum_plus. apply sum_ext; intros j _. unfold c, A. ring. }
  rewrite e. unfold chain. apply der_sum. intros j _. unfold A, link.
  assert (d1 : derivable_pt_lim (fun u => nn ((x + u *: s)%V j)) 0 (nn' (x j) * s j)) by exact (comp_line nn _ (x j) (s j) (nn_der (x j))).
  assert (d2 : derivable_pt_lim (fun u => Phi ((x + u *: s)%V j)) 0 (Phi' (x j) * s j)) by exact (comp_line Phi _ (x j) (s j) (Phi_der (x j))).
  assert (d3 : derivable_pt_lim (fun u => Psi (prev 1 (x + u *: s)%V j)) 0 (Psi' (prev 1 x j) * prev 0 s j)).
  { eapply derivable_pt_lim_ext; [|exact (comp_line Psi _ (prev 1 x j) (prev 0 s j) (Psi_der (prev 1 x j)))]. intros u. cbv beta. now rewrite prev_line1. }
  apply (derivable_pt_lim_scal (fun u => nn ((x + u *: s)%V j) - Psi (prev 1 (x + u *: s)%V j) * Phi ((x + u *: s)%V j))).
  apply (derivable_pt_lim_minus (fun u => nn ((x + u *: s)%V j))); [exact d1|].
  assert (m := derivable_pt_lim_mult _ _ _ _ _ d3 d2). cbv beta in m. replace ((x + 0 *: s)%V j) with (x j) in m by (vunfold; ring).
  replace (prev 1 (x + 0 *: s)%V j) with (prev 1 x j) in m by (rewrite prev_line1; ring). exact m.
Qed.
Variable C : R.
Hypothesis C0 : 0 < C.
Hypothesis rows : forall j u v w s, Rabs (a j * (nn2 v s - Psi u * Phi2 v s) - a (S j) * (Psi2 v s * Phi w)) + a j * (Psi' u * Phi' v) + a (S j) * (Psi' v * Phi' w) <= C.
Definition al (x s : vec) j : R := a j * (nn2 (x j) (s j) - Psi (prev 1 x j) * Phi2 (x j) (s j)) - a (S j) * (Psi2 (x j) (s j) * Phi (x (S j))).
Definition be (x : vec) j : R := a j * (Psi' (prev 1 x j) * Phi' (x j)).
Lemma be_ge0 x j : 0 <= be x j.
Proof. unfold be. destruct (Psi_range (prev 1 x j)) as [_ [p _]]. destruct (Phi_range (x j)) as [_ [q _]]. apply Rmult_le_pos; [auto|]. apply Rmult_le_pos; lra. Qed.
Lemma chain_side x s t : rexp (fun h => dot (chain' (x + h *: s)%V) t) (dot (chain' x) t) (sum dim (fun j => t j * (al x s j * s j - be x j * prev 0 s j - be x (S j) * s (S j)))).
Proof.
  unfold dot. apply (rexp_sum dim (fun j h => chain' (x + h *: s)%V j * t j) (fun j => chain' x j * t j)). intros j _.
  assert (r1 := rexp_nn' (x j) (s j)). assert (r2 := rexp_Phi' (x j) (s j)). assert (r3 := rexp_Psi' (x j) (s j)).
  assert (r4 := rexp_derivable Psi Psi' (prev 1 x j) (prev 0 s j) 8 Psi_smooth ltac:(lra)). assert (r5 := rexp_derivable Phi Phi' (x (S j)) (s (S j)) 12 Phi_smooth ltac:(lra)).
  assert (k := rexp_scal (t j) _ _ _ (rexp_plus _ _ _ _ _ _ (rexp_scal (a j) _ _ _ (rexp_plus _ _ _ _ _ _ r1 (rexp_scal (-1) _ _ _ (rexp_mult _ _ _ _ _ _ r4 r2)))) (rexp_scal (- a (S j)) _ _ _ (rexp_mult _ _ _ _ _ _ r3 r5)))).
  eapply rexp_ext; [| | |exact k].
  - intros h. unfold chain'. rewrite prev_line1. vunfold. ring.
  - unfold chain'. ring.
  - unfold al, be. simpl prev. ring.
Qed.
Lemma side_bound x s t : sum dim (fun j => t j * (al x s j * s j - be x j * prev 0 s j - be x (S j) * s (S j))) <= C / 2 * (nrm2 t + nrm2 s).
Proof.
  assert (cr : forall b u v, Rabs (b * (u * v)) <= Rabs b * ((u ^ 2 + v ^ 2) / 2)).
  { intros b u v. rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|]. apply Rabs_le. assert (k := pow2_ge_0 (u + v)). assert (k2 := pow2_ge_0 (u - v)). split; lra. }
  apply Rle_trans with (sum dim (fun j => Rabs (al x s j) * ((t j ^ 2 + s j ^ 2) / 2) + (be x j * ((t j ^ 2 + prev 0 s j ^ 2) / 2) + be x (S j) * ((t j ^ 2 + s (S j) ^ 2) / 2)))).
  { apply sum_le; intros j _. assert (b1 := be_ge0 x j). assert (b2 := be_ge0 x (S j)).
    assert (k1 := cr (al x s j) (t j) (s j)). assert (k2 := cr (be x j) (t j) (prev 0 s j)). assert (k3 := cr (be x (S j)) (t j) (s (S j))).
    rewrite (Rabs_right (be x j)) in k2 by lra. rewrite (Rabs_right (be x (S j))) in k3 by lra.
    assert (m1 := Rle_abs (al x s j * (t j * s j))). assert (m2 := Rle_abs (- (be x j * (t j * prev 0 s j)))). assert (m3 := Rle_abs (- (be x (S j) * (t j * s (S j))))). rewrite Rabs_Ropp in m2, m3. lra. }
  rewrite !sum_plus.
  assert (bd : be x dim = 0) by (unfold be; rewrite (aend dim) by lia; ring).
  assert (s1 : sum dim (fun j => be x j * ((t j ^ 2 + prev 0 s j ^ 2) / 2)) = sum dim (fun j => be x j * (t j ^ 2 / 2) + be x (S j) * (s j ^ 2 / 2))).
  { rewrite sum_plus, (sum_ext dim _ (fun j => be x j * (t j ^ 2 / 2) + be x j * (prev 0 s j ^ 2 / 2))), sum_plus by (intros; field). f_equal.
    assert (k := sum_shift dim (fun j => be x j * (prev 0 s j ^ 2 / 2))). cbv beta in k. cbn [prev] in k. rewrite bd in k. lra. }
  assert (s2 : sum dim (fun j => be x (S j) * ((t j ^ 2 + s (S j) ^ 2) / 2)) <= sum dim (fun j => be x (S j) * (t j ^ 2 / 2) + be x j * (s j ^ 2 / 2))).
  { rewrite sum_plus, (sum_ext dim _ (fun j => be x (S j) * (t j ^ 2 / 2) + be x (S j) * (s (S j) ^ 2 / 2))), sum_plus by (intros; field). apply Rplus_le_compat_l.
    assert (k := sum_shift dim (fun j => be x j * (s j ^ 2 / 2))). cbv beta in k. rewrite bd in k.
    assert (z := be_ge0 x 0). assert (z2 := pow2_ge_0 (s 0%nat)). assert (0 <= be x 0 * (s 0%nat ^ 2 / 2)) by pos. lra. }
  rewrite s1. eapply Rle_trans; [apply Rplus_le_compat_l, Rplus_le_compat_l, s2|]. rewrite <- !sum_plus. unfold nrm2, dot. rewrite <- sum_plus, <- sum_scal.
  apply sum_le; intros j _. assert (r := rows j (prev 1 x j) (x j) (x (S j)) (s j)). fold (al x s j) (be x j) in r. change (a (S j) * (Psi' (x j) * Phi' (x (S j)))) with (be x (S j)) in r.
  assert (z : 0 <= (t j ^ 2 + s j ^ 2) / 2) by (assert (q1 := pow2_ge_0 (t j)); assert (q2 := pow2_ge_0 (s j)); lra). apply (Rmult_le_compat_r _ _ _ z) in r. lra.
Qed.
Lemma chain_cont x s t : continuity (fun u => dot (chain' (x + u *: s)%V) t).
Proof.
  unfold dot. apply (cont_sum dim (fun j u => chain' (x + u *: s)%V j * t j)). intros j.
  assert (c1 := cont_line _ (x j) (s j) nn'_cont). assert (c2 := cont_line _ (x j) (s j) Phi'_cont). assert (c3 := cont_line _ (x j) (s j) Psi'_cont).
  assert (c4 := cont_line _ (prev 1 x j) (prev 0 s j) (der_cont _ _ Psi_der)). assert (c5 := cont_line _ (x (S j)) (s (S j)) (der_cont _ _ Phi_der)).
  assert (k := continuity_scal _ (t j) (continuity_plus _ _ (continuity_scal _ (a j) (continuity_minus _ _ c1 (continuity_mult _ _ c4 c2))) (continuity_scal _ (- a (S j)) (continuity_mult _ _ c3 c5)))).
  eapply cont_ext; [|exact k]. intros h. unfold mult_real_fct, plus_fct, minus_fct, mult_fct, chain'. rewrite prev_line1. vunfold. ring.
Qed.
Lemma chain_lipschitz : lipschitz C chain'.
Proof.
  assert (half : forall x s t, dot (chain' (x + s)%V - chain' x)%V t <= C / 2 * (nrm2 t + nrm2 s)).
  { intros x s t. set (B := C / 2 * (nrm2 t + nrm2 s)). apply le_epsilon. intros eps he.
    assert (k := creep (fun u => dot (chain' (x + u *: s)%V) t) (B + eps) (chain_cont x s t)).
    assert (k1 : dot (chain' (x + 1 *: s)%V) t <= dot (chain' (x + 0 *: s)%V) t + (B + eps)).
    { apply k. intros u _. destruct (chain_side (x + u *: s)%V s t) as [d [K [d0 [d1 [K0 hd]]]]]. assert (sb := side_bound (x + u *: s)%V s t). fold B in sb.
      exists (Rmin d (eps / (K + 1))). assert (e1 : 0 < eps / (K + 1)) by (apply Rdiv_lt_0_compat; lra). split; [now apply Rmin_glb_lt|]. intros h hh.
      assert (l := Rmin_l d (eps / (K + 1))). assert (r := Rmin_r d (eps / (K + 1))). specialize (hd h ltac:(lra)). assert (m := Rle_abs (dot (chain' ((x + u *: s) + h *: s)%V) t - dot (chain' (x + u *: s)%V) t
        - sum dim (fun j => t j * (al (x + u *: s)%V s j * s j - be (x + u *: s)%V j * prev 0 s j - be (x + u *: s)%V (S j) * s (S j))) * h)).
      replace (x + (u + h) *: s)%V with ((x + u *: s) + h *: s)%V by vring.
      assert (hk : h < eps / (K + 1)) by lra. apply (Rmult_lt_compat_r (K + 1)) in hk; [|lra]. replace (eps / (K + 1) * (K + 1)) with eps in hk by (field; lra).
      apply (Rmult_le_compat_r h) in sb; [|lra]. assert (h * (K * h) <= h * eps) by (apply Rmult_le_compat_l; lra). lra. }
    replace (x + 1 *: s)%V with (x + s)%V in k1 by vring. replace (x + 0 *: s)%V with x in k1 by vring. rewrite subE, dot_addl, dot_scall. lra. }
  intros x y. specialize (half y (x - y)%V). replace (y + (x - y))%V with x in half by vring. set (dd := (chain' x - chain' y)%V) in *.
  specialize (half (/ C *: dd)%V). rewrite dot_scalr, nrm2_scal in half. fold (nrm2 dd) in half.
  apply (Rmult_le_compat_l (2 * C)) in half; [|lra]. replace (2 * C * (/ C * nrm2 dd)) with (2 * nrm2 dd) in half by (field; lra).
  replace (2 * C * (C / 2 * (/ C * / C * nrm2 dd + nrm2 (x - y)))) with (nrm2 dd + C * C * nrm2 (x - y)) in half by (field; lra). lra.
Qed.
End Chain.

(* M links, once each; at two clients, twice the odd and twice the even ones *)
Definition whole M (j : nat) : R := if lt_dec j M then 1 else 0.
Definition half_ M (odd : bool) (j : nat) : R := if lt_dec j M then (if Bool.eqb (Nat.odd j) odd then 2 else 0) else 0.
Section Links.
Context {D : Dim}.
Variable M : nat.
Hypothesis M1 : (1 <= M)%nat.
Hypothesis Md : (M <= dim)%nat.
Notation w := (whole M).
Notation c := (half_ M).
Lemma whole_ge0 j : 0 <= w j. Proof. unfold whole. destruct lt_dec; lra. Qed.
Lemma half_ge0 b j : 0 <= c b j. Proof. unfold half_. destruct lt_dec; [destruct Bool.eqb|]; lra. Qed.
Lemma whole_end j : (dim <= j)%nat -> w j = 0. Proof. clear M1. intros h. unfold whole. destruct lt_dec; [lia|reflexivity]. Qed.
Lemma half_end b j : (dim <= j)%nat -> c b j = 0. Proof. clear M1. intros h. unfold half_. destruct lt_dec; [lia|reflexivity]. Qed.
Lemma half_other b j : c b j = 0 \/ c b (S j) = 0.
Proof. unfold half_. destruct (lt_dec j M), (lt_dec (S j) M); auto. rewrite Nat.odd_succ, <- Nat.negb_odd. destruct (Nat.odd j), b; auto. Qed.
Lemma step_5_1 x : x (M - 1)%nat < 1 -> exists j, (j < M)%nat /\ 1 <= prev 1 x j /\ x j < 1 /\ chain' w x j <= - (1).
Proof.
  intros h. assert (ex : forall n, (n < M)%nat -> x n < 1 -> exists j, (j <= n)%nat /\ 1 <= prev 1 x j /\ x j < 1).
  { induction n; intros hn hx; [exists 0%nat; simpl; repeat split; auto; lra|]. destruct (Rlt_le_dec (x n) 1) as [k|k].
    - destruct (IHn ltac:(lia) k) as [j [h1 h2]]. exists j. split; [lia|exact h2].
    - exists (S n). simpl. repeat split; auto. }
  destruct (ex (M - 1)%nat ltac:(lia) h) as [j [hj [h1 h2]]]. exists j. split; [lia|]. split; [exact h1|]. split; [exact h2|].
  unfold chain'. assert (wj : w j = 1) by (unfold whole; destruct lt_dec; [reflexivity|lia]). rewrite wj. destruct (Psi_pieces (prev 1 x j)) as [_ [p _]]. rewrite (p h1).
  destruct (Psi_range (x j)) as [_ [q _]]. destruct (Phi_range (x (S j))) as [r _]. assert (z : 0 <= w (S j) * (Psi' (x j) * Phi (x (S j)))) by (apply Rmult_le_pos; [apply whole_ge0|apply Rmult_le_pos; lra]).
  assert (k : nn' (x j) - Phi' (x j) <= - (1)); [|lra].
  destruct (nn_pieces (x j)) as [n1 [n2 n3]]. destruct (Phi_pieces (x j)) as [f1 [f2 [f3 _]]].
  destruct (Rle_dec (x j) (- (1/6))) as [u|u]; [destruct (n3 u) as [_ ->]; destruct (f1 u) as [_ ->]; lra|].
  destruct (Rle_dec (x j) 0) as [u2|u2]; [destruct (n2 ltac:(lra)) as [_ ->]; destruct (f2 ltac:(lra)) as [_ ->]; lra|destruct (n1 ltac:(lra)) as [_ ->]; destruct (f3 ltac:(lra)) as [_ ->]; lra].
Qed.
(* a: any share of the links *)
Lemma step_5_2 (a : nat -> R) i x : (forall k, (i <= k)%nat -> x k = 0) -> (forall j, (i < j)%nat -> chain' a x j = 0) /\ (a i = 0 -> chain' a x i = 0).
Proof.
  clear M M1 Md. intros h. assert (p0 : Psi 0 = 0) by (destruct (Psi_pieces 0) as [p _]; apply p; lra). assert (p1 : Psi' 0 = 0) by (destruct (Psi_pieces 0) as [_ [_ [_ [_ p]]]]; apply p; lra).
  assert (n1 : nn' 0 = 0) by (destruct (nn_pieces 0) as [p _]; apply p; lra). split.
  - intros j hj. unfold chain'. rewrite (h j), p1, n1 by lia. destruct j as [|j]; [lia|]. simpl prev. rewrite (h j), p0 by lia. ring.
  - intros ai. unfold chain'. rewrite (h i), p1, ai by lia. ring.
Qed.
Lemma step_5_3 : (forall j u v b s, Rabs (w j * (nn2 v s - Psi u * Phi2 v s) - w (S j) * (Psi2 v s * Phi b)) + w j * (Psi' u * Phi' v) + w (S j) * (Psi' v * Phi' b) <= 25/3) /\
  (forall o j u v b s, Rabs (c o j * (nn2 v s - Psi u * Phi2 v s) - c o (S j) * (Psi2 v s * Phi b)) + c o j * (Psi' u * Phi' v) + c o (S j) * (Psi' v * Phi' b) <= 38/3) /\
  lipschitz (25/3) (chain' w) /\ forall o, lipschitz (38/3) (chain' (c o)).
Proof.
  assert (e1 : forall j u v b s, Rabs (w j * (nn2 v s - Psi u * Phi2 v s) - w (S j) * (Psi2 v s * Phi b)) + w j * (Psi' u * Phi' v) + w (S j) * (Psi' v * Phi' b) <= 25/3).
  { intros j u v b s. destruct (row u v b s) as [r1 [r2 r3]]. destruct (Psi_range u) as [_ [u2 _]]. destruct (Phi_range v) as [_ [v2 _]]. destruct (Psi_range v) as [_ [v3 _]]. destruct (Phi_range b) as [_ [b2 _]].
    assert (z1 : 0 <= Psi' u * Phi' v) by (apply Rmult_le_pos; lra). assert (z2 : 0 <= Psi' v * Phi' b) by (apply Rmult_le_pos; lra).
    unfold whole. destruct (lt_dec j M), (lt_dec (S j) M); try lia.
    - replace (1 * (nn2 v s - Psi u * Phi2 v s) - 1 * (Psi2 v s * Phi b)) with (nn2 v s - Psi u * Phi2 v s - Psi2 v s * Phi b) by ring. lra.
    - replace (1 * (nn2 v s - Psi u * Phi2 v s) - 0 * (Psi2 v s * Phi b)) with (nn2 v s - Psi u * Phi2 v s) by ring. lra.
    - replace (0 * (nn2 v s - Psi u * Phi2 v s) - 0 * (Psi2 v s * Phi b)) with 0 by ring. rewrite Rabs_R0. lra. }
  assert (e2 : forall o j u v b s, Rabs (c o j * (nn2 v s - Psi u * Phi2 v s) - c o (S j) * (Psi2 v s * Phi b)) + c o j * (Psi' u * Phi' v) + c o (S j) * (Psi' v * Phi' b) <= 38/3).
  { intros o j u v b s. destruct (row u v b s) as [r1 [r2 r3]]. destruct (Psi_range u) as [_ [u2 _]]. destruct (Phi_range v) as [_ [v2 _]]. destruct (Psi_range v) as [_ [v3 _]]. destruct (Phi_range b) as [_ [b2 _]].
    assert (z1 : 0 <= Psi' u * Phi' v) by (apply Rmult_le_pos; lra). assert (z2 : 0 <= Psi' v * Phi' b) by (apply Rmult_le_pos; lra).
    assert (two : forall j, c o j = 0 \/ c o j = 2) by (intros k; unfold half_; destruct lt_dec; [destruct Bool.eqb|]; auto).
    destruct (half_other o j) as [q|q]; rewrite q; [destruct (two (S j)) as [k|k]|destruct (two j) as [k|k]]; rewrite k.
    - replace (0 * (nn2 v s - Psi u * Phi2 v s) - 0 * (Psi2 v s * Phi b)) with 0 by ring. rewrite Rabs_R0. lra.
    - replace (0 * (nn2 v s - Psi u * Phi2 v s) - 2 * (Psi2 v s * Phi b)) with (- (2 * (Psi2 v s * Phi b))) by ring. rewrite Rabs_Ropp, Rabs_mult, (Rabs_right 2) by lra. lra.
    - replace (0 * (nn2 v s - Psi u * Phi2 v s) - 0 * (Psi2 v s * Phi b)) with 0 by ring. rewrite Rabs_R0. lra.
    - replace (2 * (nn2 v s - Psi u * Phi2 v s) - 0 * (Psi2 v s * Phi b)) with (2 * (nn2 v s - Psi u * Phi2 v s)) by ring. rewrite Rabs_mult, (Rabs_right 2) by lra. lra. }
  split; [exact e1|]. split; [exact e2|]. split.
  - apply chain_lipschitz; [apply whole_ge0|apply whole_end|lra|exact e1].
  - intros o. apply chain_lipschitz; [apply half_ge0|apply half_end|lra|exact (e2 o)].
Qed.
Lemma step_5_4 x : (forall j, - (7/6) <= link x j) /\ chain w v0 <= 0 /\ chain w v0 - 7/6 * INR M <= chain w x.
Proof.
  assert (li : forall y j, - (7/6) <= link y j).
  { intros y j. unfold link. assert (n := nn_range (y j)). destruct (Psi_range (prev 1 y j)) as [p _]. destruct (Phi_range (y j)) as [q _].
    assert (Psi (prev 1 y j) * Phi (y j) <= 1 * (7/6)) by (apply Rmult_le_compat; lra). lra. }
  split; [apply li|]. assert (z : chain w v0 <= 0).
  { replace 0 with (sum dim (fun _ => 0)) by (rewrite sum_const; ring). unfold chain. apply sum_le; intros j _. assert (wj := whole_ge0 j).
    assert (k : link v0 j <= 0).
    { unfold link. unfold v0 at 1 3. destruct (nn_pieces 0) as [n0 _]. destruct (n0 (Rle_refl 0)) as [-> _]. destruct (Phi_range 0) as [q _]. destruct (Psi_range (prev 1 v0 j)) as [p _].
      assert (0 <= Psi (prev 1 v0 j) * Phi 0) by (apply Rmult_le_pos; lra). lra. }
    assert (0 <= w j * - link v0 j) by (apply Rmult_le_pos; lra). lra. }
  split; [exact z|]. assert (s : sum dim (fun j => - (7/6) * w j) <= chain w x).
  { unfold chain. apply sum_le; intros j _. rewrite Rmult_comm. apply Rmult_le_compat_l; [apply whole_ge0|apply li]. }
  assert (sw : forall n, (M <= n)%nat -> sum n w = INR M).
  { assert (low : forall n, (n <= M)%nat -> sum n w = INR n) by (induction n; intros; [reflexivity|]; rewrite sum_S, IHn, S_INR by lia; unfold whole; destruct lt_dec; [reflexivity|lia]).
    induction n; intros hn; [rewrite low by lia; destruct M; [reflexivity|lia]|]. destruct (Nat.eq_dec M (S n)) as [e|e]; [rewrite <- e; apply low; lia|].
    rewrite sum_S, IHn by lia. unfold whole. destruct lt_dec; [lia|ring]. }
  rewrite sum_scal, sw in s by lia. lra.
Qed.
(* scaled: A f(x / B) *)
Definition scaled (a : nat -> R) A B x : R := A * chain a (/ B *: x)%V.
Definition scaled' (a : nat -> R) A B x : vec := ((A / B) *: chain' a (/ B *: x))%V.
Lemma scaled_gradient a A B : (forall j, (dim <= j)%nat -> a j = 0) -> 0 < B -> gradient (scaled a A B) (scaled' a A B).
Proof.
  intros ae B0 x s. unfold scaled, scaled'. rewrite dot_scall. replace (A / B * dot (chain' a (/ B *: x)%V) s) with (A * dot (chain' a (/ B *: x)%V) (/ B *: s)%V) by (rewrite dot_scalr; field; lra).
  apply (derivable_pt_lim_scal (fun u => chain a (/ B *: (x + u *: s))%V)). eapply derivable_pt_lim_ext; [|apply (chain_gradient a ae (/ B *: x)%V (/ B *: s)%V)].
  intros u. cbv beta. f_equal. vring.
Qed.
Lemma scaled_lipschitz a A B C : 0 < A -> 0 < B -> lipschitz C (chain' a) -> lipschitz (A * C / (B * B)) (scaled' a A B).
Proof.
  intros A0 B0 h x y. unfold scaled'. replace ((A / B) *: chain' a (/ B *: x) - (A / B) *: chain' a (/ B *: y))%V with ((A / B) *: (chain' a (/ B *: x)%V - chain' a (/ B *: y)%V))%V by vring.
  rewrite nrm2_scal. assert (k := h (/ B *: x)%V (/ B *: y)%V). replace (/ B *: x - / B *: y)%V with (/ B *: (x - y))%V in k by vring. rewrite nrm2_scal in k.
  apply (Rmult_le_compat_l (A / B * (A / B))) in k; [|apply Rle_0_sqr]. eapply Rle_trans; [exact k|]. right. field. lra.
Qed.
(* the constants of one loss and of two clients; B = x_M is not passed as long as x_M < B *)
Lemma step_5_5 L Delta : 0 < L -> 0 < Delta -> forall l, l = 25/3 \/ l = 38/3 -> let A := Delta / (7/6 * INR M) in let B := sqrt (A * l / L) in
  0 < B /\ gradient (scaled w A B) (scaled' w A B) /\ lipschitz L (scaled' w A B) /\ (l = 38/3 -> forall o, lipschitz L (scaled' (c o) A B)) /\
  (forall x, scaled w A B v0 - Delta <= scaled w A B x) /\
  (forall x, x (M - 1)%nat < B -> L * Delta / (l * (7/6) * INR M) <= nrm2 (scaled' w A B x)) /\
  / (25/3 * (7/6)) = 18/175 /\ / (38/3 * (7/6)) = 9/133.
Proof.
  intros L0 D0 l hl A B. assert (m0 : 0 < INR M) by (apply lt_0_INR; lia). assert (l0 : 0 < l) by (destruct hl; lra). assert (A0 : 0 < A) by (unfold A; apply Rdiv_lt_0_compat; lra).
  assert (r0 : 0 < A * l / L) by (apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]). assert (B0 : 0 < B) by now apply sqrt_lt_R0. assert (BB : B * B = A * l / L) by (apply sqrt_def; lra).
  destruct step_5_3 as [_ [_ [li1 li2]]].
  assert (eL : A * l / (B * B) = L) by (rewrite BB; field; lra).
  split; [exact B0|]. split; [apply scaled_gradient; auto; apply whole_end|]. split; [|split; [|split; [|split; [|split; [lra|lra]]]]].
  - assert (k := scaled_lipschitz w A B _ A0 B0 li1). intros x y. eapply Rle_trans; [apply k|]. apply Rmult_le_compat_r; [apply nrm2_ge0|].
    assert (q : 0 <= A * (25/3) / (B * B) <= L). { rewrite <- eL. split; [apply Rlt_le, Rdiv_lt_0_compat; [lra|now apply Rmult_lt_0_compat]|]. unfold Rdiv. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; now apply Rmult_lt_0_compat|]. apply Rmult_le_compat_l; [lra|destruct hl; lra]. }
    apply Rmult_le_compat; lra.
  - intros hl2 o. rewrite <- eL, hl2. now apply scaled_lipschitz.
  - intros x. unfold scaled. replace (/ B *: v0)%V with (v0 : vec) by vring. destruct (step_5_4 (/ B *: x)%V) as [_ [_ k]]. apply (Rmult_le_compat_l A) in k; [|lra].
    replace Delta with (A * (7/6 * INR M)) by (unfold A; field; lra). lra.
  - intros x hx. assert (hy : (/ B *: x)%V (M - 1)%nat < 1).
    { unfold vscal. apply (Rmult_lt_reg_l B); auto. rewrite <- Rmult_assoc, Rinv_r by lra. lra. }
    destruct (step_5_1 _ hy) as [j [hj [_ [_ k]]]]. unfold scaled'. rewrite nrm2_scal.
    assert (n1 : 1 <= nrm2 (chain' w (/ B *: x)%V)).
    { assert (q := cauchy_schwarz (basis j) (chain' w (/ B *: x)%V)). rewrite dot_basis in q by lia. rewrite (Decomfl.basis_1 j ltac:(lia) : nrm2 (basis j) = 1) in q. nra. }
    apply (Rmult_le_compat_l (A / B * (A / B))) in n1; [|apply Rle_0_sqr]. eapply Rle_trans; [|exact n1]. right.
    replace (A / B * (A / B) * 1) with (A * A / (B * B)) by (field; lra). rewrite BB. unfold A. field. lra.
Qed.
End Links.

(* ---- the front ---- *)
Lemma Emin_mono {W X} (kernel : X -> law W) step v n : forall m m' s, m <= m' -> Emin kernel step v n m s <= Emin kernel step v n m' s.
Proof. induction n; intros m m' s h; [exact h|]. apply ex_le; intros w. apply IHn. apply Rle_min_compat_r, h. Qed.
Lemma pos_mono x y : x <= y -> pos_ x <= pos_ y. Proof. intros h. apply Rle_max_compat_l, h. Qed.
Lemma pos_ge0 x : 0 <= pos_ x. Proof. apply Rmax_l. Qed.
Section Tail.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Variable v : X -> R.
Variable below : nat -> X -> Prop.
Variable inc : nat -> W -> nat.
Variables M T : nat.
Variables mu V delta m : R.
Hypothesis v_ge0 : forall s, 0 <= v s.
Hypothesis m0 : 0 <= m.
Hypothesis mu0 : 0 < mu.
Hypothesis V0 : 0 <= V.
Hypothesis delta0 : 0 < delta.
Hypothesis T0 : (0 < T)%nat.
Hypothesis far : (1 + delta) * mu * INR T <= INR M.
Hypothesis below_v : forall a s, below a s -> (a < M)%nat -> m <= v s.
Hypothesis below_step : forall a s w, below a s -> (a < M)%nat -> below (a + inc a w) (step s w) \/ (M <= a + inc a w)%nat.
Hypothesis moment : forall s a b, (a < M)%nat -> kernel s (fun w => pos_ (b + INR (inc a w) - mu) ^ 2) <= pos_ b ^ 2 + V.
Notation Dq := ((delta * mu * INR T) ^ 2).
Definition tail n (a : R) : R := (pos_ (a + INR n * mu - INR T * mu) ^ 2 + INR n * V) / Dq.
Lemma front_walk n : forall a s, below a s \/ (M <= a)%nat -> m * (1 - tail n (INR a)) <= Emin kernel step v (S n) m s.
Proof.
  assert (T1 : 0 < INR T) by now apply lt_0_INR. assert (dm : 0 < delta * mu * INR T) by (repeat apply Rmult_lt_0_compat; lra).
  assert (D0 : 0 < Dq) by now apply pow_lt. assert (iD : 0 < / Dq) by now apply Rinv_0_lt_compat.
  assert (t0 : forall n a, 0 <= tail n a).
  { intros k a. unfold tail. apply Rmult_le_pos; [|lra]. assert (z := pow2_ge_0 (pos_ (a + INR k * mu - INR T * mu))). assert (k0 := pos_INR k). assert (0 <= INR k * V) by pos. lra. }
  assert (t1 : forall n a, (M <= a)%nat -> 1 <= tail n (INR a)).
  { intros k a h. apply le_INR in h. apply (Rmult_le_reg_r Dq); auto. replace (tail k (INR a) * Dq) with (pos_ (INR a + INR k * mu - INR T * mu) ^ 2 + INR k * V) by (unfold tail; field; lra).
    assert (k0 := pos_INR k). assert (z : 0 <= INR k * V) by pos. assert (z2 : 0 <= INR k * mu) by pos.
    assert (z3 : delta * mu * INR T <= pos_ (INR a + INR k * mu - INR T * mu)) by (unfold pos_; rewrite Rmax_right; lra).
    assert (z4 := pow_incr _ _ 2 (conj (Rlt_le _ _ dm) z3)). lra. }
  assert (off : forall n a s, (M <= a)%nat -> m * (1 - tail n (INR a)) <= Emin kernel step v (S n) m s).
  { intros k a s h. apply Rle_trans with 0; [|now apply Emin_ge0]. assert (z := t1 k a h). assert (0 <= m * (tail k (INR a) - 1)) by (apply Rmult_le_pos; lra). lra. }
  induction n; intros a s [hb|h]; [| now apply off | | now apply off]; (destruct (le_lt_dec M a) as [h|h]; [now apply off|]).
  - simpl Emin. rewrite ex_const, Rmin_left by (now apply (below_v a)). assert (z := Rmult_le_pos _ _ m0 (t0 0%nat (INR a))). lra.
  - change (Emin kernel step v (S (S n)) m s) with (kernel s (fun w => Emin kernel step v (S n) (Rmin m (v s)) (step s w))). rewrite Rmin_left by (now apply (below_v a)).
    eapply Rle_trans; [|apply (ex_le (kernel s) (fun w => m * (1 - tail n (INR (a + inc a w)))))].
    2: { intros w. apply IHn. now apply below_step. }
    set (b := INR a + INR (S n) * mu - INR T * mu).
    assert (le : kernel s (fun w => tail n (INR (a + inc a w))) <= tail (S n) (INR a)).
    { unfold tail, Rdiv. rewrite (ex_ext _ _ (fun w => / Dq * pos_ (b + INR (inc a w) - mu) ^ 2 + INR n * V * / Dq)).
      - rewrite ex_plus, ex_scal, ex_const. fold b. assert (k := moment s a b h). apply (Rmult_le_compat_l (/ Dq)) in k; [|lra]. rewrite S_INR. lra.
      - intros w. rewrite plus_INR. replace (INR a + INR (inc a w) + INR n * mu - INR T * mu) with (b + INR (inc a w) - mu) by (unfold b; rewrite S_INR; ring). ring. }
    rewrite (ex_ext _ _ (fun w => m * 1 + (- m) * tail n (INR (a + inc a w)))) by (intros; ring). rewrite ex_plus, !ex_scal, ex_one.
    apply (Rmult_le_compat_l m) in le; auto. lra.
Qed.
Lemma front_all rho_ s : 0 < rho_ -> V * rho_ <= mu ^ 2 -> below 0 s -> m * (1 - / (delta ^ 2 * rho_ * INR T)) <= Emin kernel step v (S T) m s.
Proof.
  intros r0 hV hs. assert (T1 : 0 < INR T) by now apply lt_0_INR. eapply Rle_trans; [|apply (front_walk T 0 s (or_introl hs))]. apply Rmult_le_compat_l; auto.
  assert (k : tail T (INR 0) <= / (delta ^ 2 * rho_ * INR T)); [|lra]. unfold tail. simpl INR at 1. replace (0 + INR T * mu - INR T * mu) with 0 by ring.
  replace (pos_ 0) with 0 by (unfold pos_; rewrite Rmax_left; lra).
  apply (Rmult_le_reg_r (delta ^ 2 * mu ^ 2 * INR T * rho_)); [repeat apply Rmult_lt_0_compat; try apply pow_lt; lra|].
  replace ((0 ^ 2 + INR T * V) / Dq * (delta ^ 2 * mu ^ 2 * INR T * rho_)) with (V * rho_) by (field; lra).
  replace (/ (delta ^ 2 * rho_ * INR T) * (delta ^ 2 * mu ^ 2 * INR T * rho_)) with (mu ^ 2) by (field; lra). exact hV.
Qed.
End Tail.

(* a geometric variable, cut at n *)
Section Geo.
Variable rho : R.
Hypothesis rho01 : 0 <= rho <= 1.
Definition geo n (g : nat -> R) : R := sum n (fun k => (1 - rho) * rho ^ k * g k) + rho ^ n * g n.
Lemma geo_S n g : geo (S n) g = geo n g + rho ^ S n * (g (S n) - g n).
Proof. unfold geo. rewrite sum_S. simpl. ring. Qed.
Lemma geo_layers n g : geo n g = g 0%nat + sum n (fun k => (g (S k) - g k) * rho ^ S k).
Proof. induction n; [unfold geo; simpl; ring|]. rewrite geo_S, IHn, sum_S. ring. Qed.
Lemma geo_plus n f g : geo n (fun k => f k + g k) = geo n f + geo n g.
Proof. unfold geo. rewrite (sum_ext n _ (fun k => (1 - rho) * rho ^ k * f k + (1 - rho) * rho ^ k * g k)) by (intros; ring). rewrite sum_plus. ring. Qed.
Lemma geo_scal n c f : geo n (fun k => c * f k) = c * geo n f.
Proof. unfold geo. rewrite (sum_ext n _ (fun k => c * ((1 - rho) * rho ^ k * f k))) by (intros; ring). rewrite sum_scal. ring. Qed.
Lemma geo_const n c : geo n (fun _ => c) = c.
Proof. induction n; [unfold geo; simpl; ring|]. rewrite geo_S, IHn. ring. Qed.
Lemma geo_le n f g : (forall k, f k <= g k) -> geo n f <= geo n g.
Proof.
  intros h. assert (p : forall k, 0 <= rho ^ k) by (intros; apply pow_le; lra). unfold geo. apply Rplus_le_compat; [apply sum_le; intros k _|]; apply Rmult_le_compat_l; auto.
  apply Rmult_le_pos; [lra|auto].
Qed.
Lemma geo_pos n mu V b : geo n INR <= mu -> geo n (fun k => (INR k - mu) ^ 2) <= V -> geo n (fun k => pos_ (b + INR k - mu) ^ 2) <= pos_ b ^ 2 + V.
Proof.
  intros h1 h2. destruct (Rle_dec 0 b) as [h|h].
  - apply Rle_trans with (geo n (fun k => (b ^ 2 - 2 * b * mu) * 1 + (2 * b * INR k + (INR k - mu) ^ 2))).
    + apply geo_le. intros k. replace ((b ^ 2 - 2 * b * mu) * 1 + (2 * b * INR k + (INR k - mu) ^ 2)) with ((b + INR k - mu) ^ 2) by ring. unfold pos_, Rmax. destruct Rle_dec; [lra|]. assert (z := pow2_ge_0 (b + INR k - mu)). lra.
    + rewrite !geo_plus, !geo_scal, geo_const. unfold pos_. rewrite Rmax_right by auto. apply (Rmult_le_compat_l (2 * b)) in h1; [|lra]. lra.
  - apply Rle_trans with (geo n (fun k => (INR k - mu) ^ 2)).
    + apply geo_le. intros k. unfold pos_, Rmax. destruct Rle_dec; [nra|]. assert (z := pow2_ge_0 (INR k - mu)). lra.
    + assert (z := pow2_ge_0 (pos_ b)). lra.
Qed.
End Geo.
(* what is run through: consecutive kept coordinates from i on, at most n *)
Fixpoint run (kp : nat -> bool) n i : nat := match n with 0%nat => 0%nat | S n => if kp i then S (run kp n (S i)) else 0%nat end.
Lemma run_le kp n : forall i, (run kp n i <= n)%nat.
Proof. induction n; intros i; simpl; [lia|]. destruct (kp i); [specialize (IHn (S i)); lia|lia]. Qed.
Lemma run_stop kp n : forall i, (run kp n i < n)%nat -> kp (i + run kp n i)%nat = false.
Proof.
  induction n; intros i; simpl; [lia|]. destruct (kp i) eqn:e; [|intros _; now rewrite Nat.add_0_r]. intros h.
  replace (i + S (run kp n (S i)))%nat with (S i + run kp n (S i))%nat by lia. apply IHn. lia.
Qed.
Lemma run_all kp n : forall i k, (k <= run kp n i)%nat -> forallb kp (seq i k) = true.
Proof.
  induction n; intros i k; simpl; [intros h; replace k with 0%nat by lia; reflexivity|]. destruct (kp i) eqn:e; intros h; [|replace k with 0%nat by lia; reflexivity].
  destruct k; [reflexivity|]. simpl. rewrite e. apply IHn. lia.
Qed.
Lemma run_layers n (g : nat -> R) l : (l <= n)%nat -> g l = g 0%nat + sum n (fun k => (g (S k) - g k) * (if le_dec (S k) l then 1 else 0)).
Proof.
  induction n; intros h; [replace l with 0%nat by lia; simpl; ring|]. rewrite sum_S. destruct (Nat.eq_dec l (S n)) as [->|ne].
  - destruct (le_dec (S n) (S n)); [|lia]. rewrite (sum_ext n _ (fun k => g (S k) + (-1) * g k)) by (intros k hk; destruct (le_dec (S k) (S n)); [ring|lia]).
    rewrite sum_plus, sum_scal, sum_shift. ring.
  - assert (k := IHn ltac:(lia)). destruct (le_dec (S n) l); [lia|]. lra.
Qed.
Section Runs.
Context {W : Type}.
Variable E : law W.
Variable keep : W -> nat -> bool.
Variable rho : R.
Hypothesis rho01 : 0 <= rho <= 1.
Variable M : nat.
(* any k given ones are kept with odds at most rho^k *)
Hypothesis keeps : forall i k, (i + k <= M)%nat -> E (fun w => if forallb (keep w) (seq i k) then 1 else 0) <= rho ^ k.
Lemma run_dominated n c i (g : nat -> R) : (c <= n)%nat -> (i + c <= M)%nat -> (forall k, g k <= g (S k)) -> E (fun w => g (run (keep w) c i)) <= geo rho n g.
Proof.
  intros cn ic up. rewrite (ex_ext E _ (fun w => g 0%nat + sum n (fun k => (g (S k) - g k) * (if le_dec (S k) (run (keep w) c i) then 1 else 0)))).
  2: { intros w. apply run_layers. assert (h := run_le (keep w) c i). lia. }
  rewrite ex_plus, ex_const, ex_sum, geo_layers. apply Rplus_le_compat_l, sum_le. intros k _. rewrite ex_scal. apply Rmult_le_compat_l; [specialize (up k); lra|].
  destruct (le_dec (S k) c) as [h|h].
  - eapply Rle_trans; [|apply (keeps i (S k)); lia]. apply ex_le; intros w. destruct le_dec as [l|l]; [rewrite (run_all (keep w) c i (S k)) by lia; lra|destruct forallb; lra].
  - rewrite (ex_ext E _ (fun _ => 0)); [rewrite ex_const; apply pow_le; lra|]. intros w. destruct le_dec as [l|l]; [|reflexivity]. assert (q := run_le (keep w) c i). lia.
Qed.
End Runs.
Lemma geo_mean rho n : 0 <= rho < 1 -> geo rho n INR = rho / (1 - rho) - rho ^ S n / (1 - rho).
Proof. intros h. induction n; [unfold geo; simpl; field; lra|]. rewrite geo_S, IHn, S_INR. simpl. field. lra. Qed.
Lemma geo_variance rho n : 0 <= rho < 1 -> geo rho n (fun k => (INR k - rho / (1 - rho)) ^ 2) = rho / (1 - rho) ^ 2 - rho ^ S n * (2 * INR n + 1) / (1 - rho).
Proof. intros h. induction n; [unfold geo; simpl; field; lra|]. rewrite geo_S, IHn, S_INR. simpl. field. lra. Qed.

Definition vanish i (z : vec) : Prop := forall k, (i <= k)%nat -> z k = 0.
Section Zero.
Context {D : Dim}.
Variables M T : nat.
Hypothesis M1 : (1 <= M)%nat.
Hypothesis Md : (M <= dim)%nat.
Hypothesis T0 : (0 < T)%nat.
Variables L Delta rho delta : R.
Hypothesis L0 : 0 < L.
Hypothesis Delta0 : 0 < Delta.
Hypothesis delta0 : 0 < delta.
Context {W X : Type}.
Variable kernel : X -> law W.
Variable step : X -> W -> X.
Variable keep : W -> nat -> bool.
Hypothesis keeps : forall s i k, (i + k <= M)%nat -> kernel s (fun w => if forallb (keep w) (seq i k) then 1 else 0) <= rho ^ k.
Variable at_ : X -> vec.
Variable asked : X -> vec -> Prop.         (* the points at which a gradient was asked for *)
Variable s0 : X.
Hypothesis start : at_ s0 = v0 /\ forall z, ~ asked s0 z.
Lemma scaled_zero a A B i z : vanish i z -> (forall j, (i < j)%nat -> scaled' a A B z j = 0) /\ (a i = 0 -> scaled' a A B z i = 0).
Proof.
  intros h. assert (h2 : forall k, (i <= k)%nat -> (/ B *: z)%V k = 0) by (intros k hk; unfold vscal; rewrite h by auto; ring).
  destruct (step_5_2 a i (/ B *: z)%V h2) as [p q]. unfold scaled'. split; [intros j hj|intros ai]; unfold vscal at 1; rewrite ?p, ?q by auto; ring.
Qed.
Section One.
Notation B := (sqrt (Delta / (7/6 * INR M) * (25/3) / L)).
Notation F := (scaled (whole M) (Delta / (7/6 * INR M)) B).
Notation G := (scaled' (whole M) (Delta / (7/6 * INR M)) B).
Variable asks : X -> W -> list vec.        (* the points of a round, one after another *)
Hypothesis masked : forall s w y j, In y (asks s w ++ [at_ (step s w)]) -> keep w j = false -> y j = at_ s j.
Hypothesis known : forall s w l y l', asks s w ++ [at_ (step s w)] = l ++ y :: l' -> forall j, y j <> 0 -> exists z, (asked s z \/ In z l) /\ G z j <> 0.
Hypothesis asked_step : forall s w z, asked (step s w) z -> asked s z \/ In z (asks s w).
Definition below a s : Prop := vanish a (at_ s) /\ forall z, asked s z -> vanish a z.
Definition inc a w : nat := run (keep w) (M - a) a.
Lemma one_front a s w : below a s -> (a < M)%nat -> below (a + inc a w) (step s w) \/ (M <= a + inc a w)%nat.
Proof.
  intros [b1 b2] ha. destruct (le_lt_dec M (a + inc a w)) as [h|h]; [now right|left]. set (l := inc a w) in *.
  assert (stop : keep w (a + l)%nat = false) by (apply run_stop; fold (inc a w); fold l; lia).
  assert (all : forall l1 l2, asks s w ++ [at_ (step s w)] = l1 ++ l2 -> forall z, In z l1 -> vanish (a + l) z).
  { intros l1. induction l1 as [|y l1 IH] using rev_ind; intros l2 e z hz; [destruct hz|]. rewrite <- app_assoc in e. simpl in e.
    apply in_app_or in hz. destruct hz as [hz|[<-|[]]]; [now apply (IH (y :: l2))|].
    intros k hk. destruct (Nat.eq_dec k (a + l)) as [->|ne].
    - rewrite (masked s w y (a + l)%nat); auto; [apply b1; lia|]. rewrite e. apply in_or_app. right. now left.
    - destruct (Req_dec (y k) 0) as [z0|z0]; auto. destruct (known s w l1 y l2 e k z0) as [z [hz nz]]. exfalso. apply nz.
      apply (scaled_zero _ _ _ (a + l)%nat); [|lia]. destruct hz as [hz|hz]; [intros q hq; apply (b2 z hz); lia|now apply (IH (y :: l2))]. }
  assert (fin : forall z, In z (asks s w ++ [at_ (step s w)]) -> vanish (a + l) z) by (intros z hz; apply (all _ [] (eq_sym (app_nil_r _)) z hz)).
  split; [apply fin, in_or_app; right; now left|]. intros z hz. destruct (asked_step s w z hz) as [q|q]; [intros k hk; apply (b2 z q); lia|apply fin, in_or_app; now left].
Qed.
Lemma step_5_6 : 0 < rho < 1 -> (1 + delta) * (rho * INR T / (1 - rho)) <= INR M ->
  (forall a s w, below a s -> (a < M)%nat -> below (a + inc a w) (step s w) \/ (M <= a + inc a w)%nat) /\
  (forall s a k, (k <= M - a)%nat -> (a < M)%nat -> kernel s (fun w => if le_dec k (inc a w) then 1 else 0) <= rho ^ k) /\
  18/175 * (1 - / (delta ^ 2 * rho * INR T)) * (L * Delta / INR M) <= Emin kernel step (fun s => nrm2 (G (at_ s))) (S T) (nrm2 (G (at_ s0))) s0.
Proof.
  intros r0 far. split; [exact one_front|]. split.
  { intros s a k hk ha. eapply Rle_trans; [|apply (keeps s a k); lia]. apply ex_le; intros w. destruct le_dec as [l|l]; [rewrite (run_all (keep w) (M - a) a k) by auto; lra|destruct forallb; lra]. }
  assert (m0 : 0 < INR M) by (apply lt_0_INR; lia). destruct (step_5_5 M M1 Md L Delta L0 Delta0 (25/3) (or_introl eq_refl)) as [B0 [_ [_ [_ [_ [low [c1 _]]]]]]].
  set (m := L * Delta / (25/3 * (7/6) * INR M)) in *.
  assert (mm : 0 <= m) by (unfold m; apply Rlt_le, Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]).
  assert (bv : forall a s, below a s -> (a < M)%nat -> m <= nrm2 (G (at_ s))).
  { intros a s [b1 _] ha. apply low. rewrite (b1 (M - 1)%nat) by lia. exact B0. }
  assert (z0 : below 0 s0). { destruct start as [e1 e2]. split; [rewrite e1; intros k _; reflexivity|]. intros z hz. now destruct (e2 z). }
  eapply Rle_trans; [|apply (Emin_mono kernel step _ (S T) m); apply (bv 0%nat); auto; lia].
  replace (18/175 * (1 - / (delta ^ 2 * rho * INR T)) * (L * Delta / INR M)) with (m * (1 - / (delta ^ 2 * rho * INR T))) by (unfold m; field; repeat split; try lra; apply not_0_INR; lia).
  apply (front_all kernel step (fun s => nrm2 (G (at_ s))) below inc M T (rho / (1 - rho)) (rho / (1 - rho) ^ 2) delta m); auto; try lra.
  - intros; apply nrm2_ge0.
  - apply Rdiv_lt_0_compat; lra.
  - apply Rlt_le, Rdiv_lt_0_compat; [lra|apply pow_lt; lra].
  - exact one_front.
  - intros s a b ha. eapply Rle_trans; [apply (run_dominated (kernel s) keep rho ltac:(lra) M (keeps s) (M - a) (M - a) a (fun k => pos_ (b + INR k - rho / (1 - rho)) ^ 2)); try lia|].
    + intros k. apply pow_incr. split; [apply pos_ge0|]. apply pos_mono. rewrite S_INR. lra.
    + assert (pw : forall k, 0 < rho ^ k) by (intros; apply pow_lt; lra). apply geo_pos; [lra| |].
      * rewrite geo_mean by lra. assert (0 < rho ^ S (M - a) / (1 - rho)) by (apply Rdiv_lt_0_compat; [apply pw|lra]). lra.
      * rewrite geo_variance by lra. assert (q := pos_INR (M - a)). assert (0 < rho ^ S (M - a) * (2 * INR (M - a) + 1) / (1 - rho)) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; [apply pw|lra]|lra]). lra.
  - right. field. lra.
Qed.
End One.
Section Two.
Notation B := (sqrt (Delta / (7/6 * INR M) * (38/3) / L)).
Notation F := (scaled (whole M) (Delta / (7/6 * INR M)) B).
Notation G := (scaled' (whole M) (Delta / (7/6 * INR M)) B).
(* the two clients: twice the odd and twice the even links, as the page counts, from 1 *)
Notation Fc := (fun c => scaled (half_ M c) (Delta / (7/6 * INR M)) B).
Notation Gc := (fun c => scaled' (half_ M c) (Delta / (7/6 * INR M)) B).
Variable asks : bool -> X -> W -> list vec.
Hypothesis masked : forall s w y j, In y (asks true s w ++ asks false s w ++ [at_ (step s w)]) -> keep w j = false -> y j = at_ s j.
(* a client knows all gradients of earlier rounds, and its own *)
Hypothesis known : forall c s w l y l', asks c s w = l ++ y :: l' -> forall j, y j <> 0 ->
  exists z, (asked s z /\ exists c', Gc c' z j <> 0) \/ (In z l /\ Gc c z j <> 0).
Hypothesis known_next : forall s w j, at_ (step s w) j <> 0 -> exists z c, (asked s z \/ In z (asks c s w)) /\ Gc c z j <> 0.
Hypothesis asked_step : forall s w z, asked (step s w) z -> asked s z \/ exists c, In z (asks c s w).
Definition inc2 a w : nat := run (keep w) (Nat.min 2 (M - a)) a.
Lemma two_front a s w : below a s -> (a < M)%nat -> below (a + inc2 a w) (step s w) \/ (M <= a + inc2 a w)%nat.
Proof.
  intros [b1 b2] ha. destruct (le_lt_dec M (a + inc2 a w)) as [h|h]; [now right|left]. set (l := inc2 a w) in *.
  assert (old : forall z i, asked s z -> (a <= i)%nat -> vanish i z) by (intros z i hz hi k hk; apply (b2 z hz); lia).
  assert (own : forall c, exists e, (e <= l)%nat /\ forall l1 l2, asks c s w = l1 ++ l2 -> forall z, In z l1 -> vanish (a + e) z /\ forall j, Gc c z j <> 0 -> (j < a + l)%nat \/ (j = a + l)%nat /\ keep w (a + l)%nat = false).
  { intros c. destruct (Nat.eq_dec l 2) as [l2|l2].
    - (* two kept coordinates: only a client that has the next link shows one more *)
      assert (e : exists e, (1 <= e <= 2)%nat /\ half_ M c (a + e)%nat = 0).
      { destruct (half_other M c (a + 1)%nat) as [q|q]; [exists 1%nat; split; [lia|exact q]|exists 2%nat; split; [lia|]]. now replace (a + 2)%nat with (S (a + 1)) by lia. }
      destruct e as [e [he ce]]. exists e. split; [lia|]. intros l1. 
      assert (sh : forall z j, vanish (a + e) z -> Gc c z j <> 0 -> (j < a + e)%nat).
      { intros z j hz nz. destruct (lt_eq_lt_dec j (a + e)) as [[q|q]|q]; auto; exfalso; apply nz; destruct (scaled_zero (half_ M c) (Delta / (7/6 * INR M)) B (a + e)%nat z hz) as [u1 u2]; [subst j; now apply u2|now apply u1]. }
      assert (all : forall l2, asks c s w = l1 ++ l2 -> forall z, In z l1 -> vanish (a + e) z).
      { induction l1 as [|y l1 IH] using rev_ind; intros l3 ee z hz; [destruct hz|]. rewrite <- app_assoc in ee. simpl in ee. apply in_app_or in hz. destruct hz as [hz|[<-|[]]]; [now apply (IH (y :: l3))|].
        intros k hk. destruct (Req_dec (y k) 0) as [z0|z0]; auto. exfalso. destruct (known c s w l1 y l3 ee k z0) as [z [[hz [c' nz]]|[hz nz]]].
        - apply nz. apply (scaled_zero _ _ _ a z); [now apply old|lia].
        - assert (q := sh z k (IH (y :: l3) ee z hz) nz). lia. }
      intros l3 ee z hz. assert (v := all l3 ee z hz). split; [exact v|]. intros j nz. left. assert (q := sh z j v nz). lia.
    - assert (l3 : (l < Nat.min 2 (M - a))%nat) by (assert (q := run_le (keep w) (Nat.min 2 (M - a)) a); fold (inc2 a w) in q; fold l in q; lia).
      assert (stop : keep w (a + l)%nat = false) by (apply run_stop; fold (inc2 a w); fold l; lia).
      exists l. split; [lia|]. intros l1.
      assert (all : forall l2, asks c s w = l1 ++ l2 -> forall z, In z l1 -> vanish (a + l) z).
      { induction l1 as [|y l1 IH] using rev_ind; intros l4 ee z hz; [destruct hz|]. rewrite <- app_assoc in ee. simpl in ee. apply in_app_or in hz. destruct hz as [hz|[<-|[]]]; [now apply (IH (y :: l4))|].
        intros k hk. destruct (Nat.eq_dec k (a + l)) as [->|ne].
        - rewrite (masked s w y (a + l)%nat); auto; [apply b1; lia|]. assert (iy : In y (asks c s w)) by (rewrite ee; apply in_or_app; right; now left). apply in_or_app. destruct c; [now left|right; apply in_or_app; now left].
        - destruct (Req_dec (y k) 0) as [z0|z0]; auto. exfalso. destruct (known c s w l1 y l4 ee k z0) as [z [[hz [c' nz]]|[hz nz]]]; apply nz.
          + apply (scaled_zero _ _ _ a z); [now apply old|lia].
          + apply (scaled_zero _ _ _ (a + l)%nat z); [now apply (IH (y :: l4))|lia]. }
      intros l4 ee z hz. assert (v := all l4 ee z hz). split; [exact v|]. intros j nz. destruct (lt_eq_lt_dec j (a + l)) as [[q|q]|q]; auto. exfalso. apply nz. now apply (scaled_zero _ _ _ (a + l)%nat z). }
  assert (pts : forall c z, In z (asks c s w) -> vanish (a + l) z /\ forall j, Gc c z j <> 0 -> (j < a + l)%nat \/ (j = a + l)%nat /\ keep w (a + l)%nat = false).
  { intros c z hz. destruct (own c) as [e [he all]]. destruct (all _ [] (eq_sym (app_nil_r _)) z hz) as [v1 v2]. split; [|exact v2]. intros k hk. apply v1. lia. }
  split.
  - intros k hk. destruct (Req_dec (at_ (step s w) k) 0) as [z0|z0]; auto. exfalso. destruct (known_next s w k z0) as [z [c [[hz|hz] nz]]].
    + destruct (Nat.eq_dec k a) as [->|ne]; [|apply nz; apply (scaled_zero _ _ _ a z); [now apply old|lia]].
      assert (l0 : l = 0%nat) by lia. apply z0. rewrite (masked s w _ a); [apply b1; lia|apply in_or_app; right; apply in_or_app; right; now left|].
      assert (q := run_stop (keep w) (Nat.min 2 (M - a)) a). fold (inc2 a w) in q. fold l in q. rewrite l0, Nat.add_0_r in q. apply q. lia.
    + destruct (pts c z hz) as [_ p]. destruct (p k nz) as [q|[q1 q2]]; [lia|]. subst k. apply z0. rewrite (masked s w _ (a + l)%nat); auto; [apply b1; lia|apply in_or_app; right; apply in_or_app; right; now left].
  - intros z hz. destruct (asked_step s w z hz) as [q|[c q]]; [apply old; [auto|lia]|now apply (pts c)].
Qed.
Lemma step_5_7 : 0 < rho <= 1 -> (1 + delta) * (rho * (1 + rho) * INR T) <= INR M ->
  (forall x, F x = (Fc true x + Fc false x) / 2) /\
  (forall a s w, below a s -> (a < M)%nat -> below (a + inc2 a w) (step s w) \/ (M <= a + inc2 a w)%nat) /\
  geo rho 2 INR = rho * (1 + rho) /\ (geo rho 2 (fun k => INR k ^ 2) - (rho * (1 + rho)) ^ 2) * rho <= (rho * (1 + rho)) ^ 2 /\
  9/133 * (1 - / (delta ^ 2 * rho * INR T)) * (L * Delta / INR M) <= Emin kernel step (fun s => nrm2 (G (at_ s))) (S T) (nrm2 (G (at_ s0))) s0.
Proof.
  intros r0 far.
  assert (g1 : geo rho 2 INR = rho * (1 + rho)) by (unfold geo; simpl; ring). assert (g2 : geo rho 2 (fun k => INR k ^ 2) = rho + 3 * rho ^ 2) by (unfold geo; simpl; ring).
  set (mu := rho * (1 + rho)) in *. set (V := rho + 3 * rho ^ 2 - mu ^ 2).
  assert (vr : V * rho <= mu ^ 2).
  { unfold V, mu. assert (z : 0 <= rho ^ 3 * ((1 - rho) + 2 * rho + rho ^ 2)) by (assert (0 < rho ^ 3) by (apply pow_lt; lra); assert (0 < rho ^ 2) by (apply pow_lt; lra); apply Rmult_le_pos; lra).
    assert (z2 : 0 <= rho ^ 3 * (1 - rho)) by (assert (0 < rho ^ 3) by (apply pow_lt; lra); apply Rmult_le_pos; lra). assert (z3 : 0 < rho ^ 5) by (apply pow_lt; lra). assert (z4 : 0 < rho ^ 4) by (apply pow_lt; lra). ring_simplify. ring_simplify in z. lra. }
  assert (V0 : 0 <= V).
  { unfold V, mu. assert (z : 0 <= rho * (1 - rho) * (1 + 3 * rho + rho ^ 2)) by (assert (0 < rho ^ 2) by (apply pow_lt; lra); apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). assert (0 < rho ^ 2) by (apply pow_lt; lra). ring_simplify in z. ring_simplify. nra. }
  split; [|split; [exact two_front|]; split; [exact g1|]; split; [rewrite g2; exact vr|]].
  { intros x. unfold scaled. assert (e : chain (whole M) (/ B *: x)%V = (chain (half_ M true) (/ B *: x)%V + chain (half_ M false) (/ B *: x)%V) / 2); [|rewrite e; field; apply not_0_INR; lia].
    unfold chain. set (y := (/ B *: x)%V). transitivity (/ 2 * sum dim (fun j => half_ M true j * link y j + half_ M false j * link y j)); [|rewrite sum_plus; field].
    rewrite <- sum_scal. apply sum_ext; intros j _. unfold whole, half_. destruct (lt_dec j M); [|field]. destruct (Nat.odd j); simpl; field. }
  assert (m0 : 0 < INR M) by (apply lt_0_INR; lia). destruct (step_5_5 M M1 Md L Delta L0 Delta0 (38/3) (or_intror eq_refl)) as [B0 [_ [_ [_ [_ [low _]]]]]].
  set (m := L * Delta / (38/3 * (7/6) * INR M)) in *.
  assert (mm : 0 <= m) by (unfold m; apply Rlt_le, Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]).
  assert (bv : forall a s, below a s -> (a < M)%nat -> m <= nrm2 (G (at_ s))).
  { intros a s [b1 _] ha. apply low. rewrite (b1 (M - 1)%nat) by lia. exact B0. }
  assert (z0 : below 0 s0). { destruct start as [e1 e2]. split; [rewrite e1; intros k _; reflexivity|]. intros z hz. now destruct (e2 z). }
  eapply Rle_trans; [|apply (Emin_mono kernel step _ (S T) m); apply (bv 0%nat); auto; lia].
  replace (9/133 * (1 - / (delta ^ 2 * rho * INR T)) * (L * Delta / INR M)) with (m * (1 - / (delta ^ 2 * rho * INR T))) by (unfold m; field; repeat split; try lra; apply not_0_INR; lia).
  apply (front_all kernel step (fun s => nrm2 (G (at_ s))) below inc2 M T mu V delta m); auto; try lra.
  - intros; apply nrm2_ge0.
  - unfold mu. apply Rmult_lt_0_compat; lra.
  - exact two_front.
  - intros s a b ha. eapply Rle_trans; [apply (run_dominated (kernel s) keep rho ltac:(lra) M (keeps s) 2 (Nat.min 2 (M - a)) a (fun k => pos_ (b + INR k - mu) ^ 2)); try lia|].
    + intros k. apply pow_incr. split; [apply pos_ge0|]. apply pos_mono. rewrite S_INR. lra.
    + apply geo_pos; [lra|lra|]. apply Req_le. unfold V.
      transitivity (geo rho 2 (fun k => INR k ^ 2 + ((-2 * mu) * INR k + mu ^ 2))); [unfold geo; simpl; ring|]. rewrite !geo_plus, geo_scal, geo_const, g1, g2. ring.
Qed.
End Two.
End Zero.

(* ================= 6: a longer step with few clients ================= *)
Lemma longer_numbers rho om p h nu f s kap q : 0 < rho <= 1 -> 0 <= om <= 1 -> 0 <= p -> 100 * p <= s -> 0 <= h <= 1/8 ->
  64 * h ^ 2 * s <= f ^ 2 * rho -> 0 < f <= 1 -> 0 <= nu <= s -> 0 < s <= 1 -> 2 * s <= 1 \/ s = 1 /\ h * nu <= 1/16 ->
  kap = f * rho / 2 - rho * om * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) ->
  q = 7/8 * om * p + h * nu ->
  9/25 * (f * rho) <= kap /\
  rho * om * q / kap * (7/5 * (3 * f) * p + (21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) <= 1/25 /\
  20/9 * (q / kap) <= (55/10 * p + 62/10 * h * nu) / (f * rho) /\
  20/9 * (h * s + 2/3 * p + rho * q / kap * (51/50 * (3 * f) + (3123/1000 * p + 2 * s) * (3 / (f * rho)) * h ^ 2))
    <= 20/9 * h * s + 20 * h * nu + 19 * p.
Proof.
  intros [r0 r1] [o0 o1] p0 p1 [h0 h1] hh [f0 f1] [n0 n1] [s0 s1] hs ek eq.
  assert (fr : 0 < f * rho) by now apply Rmult_lt_0_compat.
  set (X := 3 / (f * rho) * h ^ 2). assert (X0 : 0 <= X).
  { unfold X, Rdiv. apply Rmult_le_pos; [|apply pow2_ge_0]. apply Rmult_le_pos; [lra|]. now apply Rlt_le, Rinv_0_lt_compat. }
  assert (X1 : X * s <= 3/64 * f).
  { apply (Rmult_le_reg_r (f * rho)); auto. replace (X * s * (f * rho)) with (3 * (h ^ 2 * s)) by (unfold X; field; lra). lra. }
  replace ((21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2 * nu) * X) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2) * X) by (unfold X; ring).
  replace ((3123/1000 * p + 2 * s) * (3 / (f * rho)) * h ^ 2) with ((3123/1000 * p + 2 * s) * X) by (unfold X; ring).
  assert (hn0 : 0 <= h * nu) by pos. assert (op : om * p <= p) by (assert (0 <= (1 - om) * p) by pos; lra). assert (op0 : 0 <= om * p) by pos.
  assert (q0 : 0 <= q) by (rewrite eq; lra). assert (q1 : q <= 7/8 * p + h * nu) by (rewrite eq; lra).
  assert (pX : p * X <= 3/6400 * f) by (assert (0 <= X * (s - 100 * p)) by pos; lra). assert (nX : nu * X <= 3/64 * f) by (assert (0 <= X * (s - nu)) by pos; lra).
  assert (pX0 : 0 <= p * X) by pos. assert (nX0 : 0 <= nu * X) by pos. assert (fp : f * p <= 1/100 * f) by (assert (0 <= f * (1/100 - p)) by pos; lra). assert (fp0 : 0 <= f * p) by pos.
  set (Y := 7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X) in *.
  assert (b0 : 0 <= Y) by (unfold Y; lra). assert (b1 : Y <= 14/100 * f) by (unfold Y; lra).
  assert (K : 9/25 * (f * rho) <= kap).
  { rewrite ek. assert (k1 : 0 <= rho * ((1 - om) * Y)) by pos. assert (k2 : 0 <= rho * (14/100 * f - Y)) by pos. lra. }
  assert (k0 : 0 < kap) by lra. assert (ik : 0 < / kap) by now apply Rinv_0_lt_compat.
  set (qk := q / kap). assert (qk0 : 0 <= qk) by (unfold qk, Rdiv; pos).
  assert (W : 9/25 * (f * rho * qk) <= q).
  { assert (e : kap * qk = q) by (unfold qk; field; lra). assert (K2 := Rmult_le_compat_r qk _ _ qk0 K). rewrite e in K2. lra. }
  assert (rq : 0 <= rho * qk) by pos.
  split; [exact K|]. split; [|split].
  - replace (rho * om * q / kap) with (rho * qk * om) by (unfold qk; field; lra). set (Z := 7/5 * (3 * f) * p + (21/5 * p + 2) * X).
    assert (Z0 : 0 <= Z) by (unfold Z; lra).
    assert (qZ : q * Z <= 9/625 * f).
    { assert (hq : exists H, 0 <= H /\ q <= (7/800 + H) * s /\ (H <= 1/8 /\ 2 * s <= 1 \/ H <= 1/16 /\ s <= 1)).
      { destruct hs as [a|[a b]].
        - exists (1/8). split; [lra|]. split; [|left; lra]. assert (0 <= (1/8 - h) * nu) by pos. lra.
        - exists (1/16). split; [lra|]. split; [|right; lra]. rewrite a. lra. }
      destruct hq as [H [H0 [h2 h3]]]. apply Rle_trans with ((7/800 + H) * s * Z); [now apply Rmult_le_compat_r|].
      assert (sZ : s * Z <= f * (42/1000 * (s * s) + (42/1000 * s + 2) * (3/64))).
      { unfold Z. assert (u1 : 0 <= f * s * (s / 100 - p)) by (repeat apply Rmult_le_pos; lra). assert (u2 : 0 <= (s / 100 - p) * (X * s)) by (apply Rmult_le_pos; [lra|pos]).
        assert (u3 : (21/5 * (s / 100) + 2) * (X * s) <= (21/5 * (s / 100) + 2) * (3/64 * f)) by (apply Rmult_le_compat_l; lra). lra. }
      rewrite Rmult_assoc. apply Rle_trans with ((7/800 + H) * (f * (42/1000 * (s * s) + (42/1000 * s + 2) * (3/64)))); [apply Rmult_le_compat_l; lra|].
      assert (ss : (7/800 + H) * (42/1000 * (s * s) + (42/1000 * s + 2) * (3/64)) <= 9/625).
      { destruct h3 as [[a b]|[a b]].
        - assert (v1 : 42/1000 * (s * s) + (42/1000 * s + 2) * (3/64) <= 1053/10000) by nra. assert (v2 : 0 <= 42/1000 * (s * s) + (42/1000 * s + 2) * (3/64)) by nra. nra.
        - assert (v1 : 42/1000 * (s * s) + (42/1000 * s + 2) * (3/64) <= 138/1000) by nra. assert (v2 : 0 <= 42/1000 * (s * s) + (42/1000 * s + 2) * (3/64)) by nra. nra. }
      apply (Rmult_le_compat_r f) in ss; lra. }
    assert (w1 := Rmult_le_compat_r Z _ _ Z0 W). assert (w2 : rho * qk * Z <= 1/25).
    { apply (Rmult_le_reg_l (9/25 * f)); [lra|]. lra. }
    assert (w3 : 0 <= rho * qk * ((1 - om) * Z)) by (apply Rmult_le_pos; [auto|pos]). lra.
  - apply (Rmult_le_reg_r (f * rho)); auto. fold qk.
    replace ((55/10 * p + 62/10 * h * nu) / (f * rho) * (f * rho)) with (55/10 * p + 62/10 * h * nu) by (field; lra). lra.
  - replace (rho * q / kap) with (rho * qk) by (unfold qk; field; lra).
    assert (c : (3123/1000 * p + 2 * s) * X <= 203123/100000 * (3/64 * f)) by lra.
    assert (k2 : 0 <= rho * qk * (203123/100000 * (3/64 * f) - (3123/1000 * p + 2 * s) * X)) by (apply Rmult_le_pos; lra). lra.
Qed.
Section Longer.
Context {D : Dim}.
Variables N Sn K : nat.
Hypothesis S1 : (0 < Sn)%nat.
Hypothesis SN : (Sn <= N)%nat.
Hypothesis K1 : (0 < K)%nat.
Context {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variables rho omega theta : R.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L Fstar eta etag sigma : R.
Context {Mem : Type}.
Variable ci : Mem -> nat -> vec.
Variable ker : Family.state (Mem := Mem) -> O -> list Family.noise -> law Family.noise.
Variable upd : Family.state (Mem := Mem) -> list nat -> O -> list Family.noise -> Mem.
Hypothesis rho01 : 0 < rho <= 1.
Hypothesis omega01 : 0 <= omega <= 1.
Hypothesis theta0 : 0 <= theta.
Hypothesis L0 : 0 <= L.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Notation h := (Family.hh K L eta etag).
Notation p := (Family.pp K L eta).
Notation nu := (Family.nu N Sn).
Notation phi := (Family.phi N Sn).
Notation kap := (Family.kappa N Sn K rho omega L eta etag (phi * rho / 2) (3 * phi) (3 / (phi * rho))).
Notation q := (Family.qq N Sn K omega L eta etag).
Hypothesis step_size : h <= Rmin (1/8) (phi * sqrt (rho * INR Sn) / 8).
Hypothesis local_step : INR K * L * eta <= 1 / (10 * sqrt (INR Sn)).
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let S0 : 1 <= INR Sn. Proof. apply (le_INR 1). lia. Qed.
Let KK : 1 <= INR K. Proof. apply (le_INR 1). lia. Qed.
Lemma nu_facts : 0 <= nu <= / INR Sn /\ 0 < phi <= 1 /\ (Sn = 1%nat -> (Sn < N)%nat -> phi <= 1/2).
Proof.
  assert (sn := le_INR _ _ SN). assert (f : 0 < phi <= 1).
  { unfold Family.phi. split; [apply Rdiv_lt_0_compat; lra|]. apply (Rmult_le_reg_r (INR N)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  split; [|split; [exact f|]].
  - destruct (Nat.eq_dec N 1) as [->|ne].
    + replace Sn with 1%nat by lia. unfold Family.nu. simpl INR. replace ((1 - 1) / (1 * (1 - 1))) with 0 by (unfold Rdiv; ring). lra.
    + assert (n2 : 2 <= INR N) by (apply (le_INR 2); lia). unfold Family.nu. assert (dd : 0 < INR Sn * (INR N - 1)) by (apply Rmult_lt_0_compat; lra). split.
      * apply Rmult_le_pos; [lra|now apply Rlt_le, Rinv_0_lt_compat].
      * apply (Rmult_le_reg_r (INR Sn * (INR N - 1))); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. replace (/ INR Sn * (INR Sn * (INR N - 1))) with (INR N - 1) by (field; lra). lra.
  - intros e l. assert (n2 : 2 <= INR N) by (apply (le_INR 2); lia). unfold Family.phi. rewrite e. simpl INR. apply (Rmult_le_reg_r (INR N)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.
Lemma p_small : 0 <= p /\ 100 * p <= / INR Sn.
Proof.
  assert (k0 : 0 <= INR K * L * eta) by (repeat apply Rmult_le_pos; lra). assert (s : 0 < sqrt (INR Sn)) by (apply sqrt_lt_R0; lra).
  assert (q2 := pow_incr _ _ 2 (conj k0 local_step)). replace ((1 / (10 * sqrt (INR Sn))) ^ 2) with (1/100 * / (sqrt (INR Sn) * sqrt (INR Sn))) in q2 by (field; lra).
  rewrite sqrt_def in q2 by lra. unfold Family.pp. replace ((INR K * L * eta) ^ 2) with (L ^ 2 * eta ^ 2 * INR K * INR K) in q2 by ring.
  assert (z : 0 <= L ^ 2 * eta ^ 2 * INR K) by (assert (a := pow2_ge_0 L); assert (b := pow2_ge_0 eta); repeat apply Rmult_le_pos; lra). split; [apply Rmult_le_pos; lra|lra].
Qed.
Lemma h_facts : 0 <= h <= 1/8 /\ 64 * h ^ 2 * / INR Sn <= phi ^ 2 * rho /\ (2 * / INR Sn <= 1 \/ / INR Sn = 1 /\ h * nu <= 1/16).
Proof.
  destruct nu_facts as [[n0 n1] [[f0 f1] f2]]. assert (h0 : 0 <= h) by (unfold Family.hh, Family.etat; repeat apply Rmult_le_pos; lra).
  assert (l := Rmin_l (1/8) (phi * sqrt (rho * INR Sn) / 8)). assert (r := Rmin_r (1/8) (phi * sqrt (rho * INR Sn) / 8)).
  assert (rs : 0 < rho * INR Sn) by (apply Rmult_lt_0_compat; lra).
  split; [lra|]. split.
  - assert (h2 : h ^ 2 <= (phi * sqrt (rho * INR Sn) / 8) ^ 2) by (apply pow_incr; lra).
    replace ((phi * sqrt (rho * INR Sn) / 8) ^ 2) with (phi ^ 2 * (sqrt (rho * INR Sn) * sqrt (rho * INR Sn)) / 64) in h2 by field. rewrite sqrt_def in h2 by lra.
    apply (Rmult_le_reg_r (INR Sn)); [lra|]. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - destruct (Nat.eq_dec Sn 1) as [e|e].
    + assert (sq1 : sqrt (rho * INR Sn) <= 1) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; rewrite e; simpl INR; lra).
      right. rewrite e in n1. rewrite e. simpl INR in *. split; [field|]. destruct (Nat.eq_dec N 1) as [en|en].
      * rewrite en. unfold Family.nu. simpl INR. replace ((1 - 1) / (1 * (1 - 1))) with 0 by (unfold Rdiv; ring). lra.
      * assert (f := f2 e ltac:(lia)). assert (sp := sqrt_pos (rho * INR Sn)). assert (h16 : phi * sqrt (rho * INR Sn) <= 1/2 * 1) by (apply Rmult_le_compat; lra).
        rewrite Rinv_1 in n1. rewrite e in n0. assert (h * Family.nu N 1 <= 1/16 * 1) by (apply Rmult_le_compat; lra). lra.
    + left. assert (s2 : 2 <= INR Sn) by (apply (le_INR 2); lia). assert (i := Rinv_le_contravar 2 (INR Sn) ltac:(lra) s2). lra.
Qed.
Lemma step_6_1 : h ^ 2 / (phi ^ 2 * rho * INR Sn) <= 1/64 /\ INR Sn * nu <= 1 /\ h * nu <= 1 / (8 * INR Sn) /\ (Sn = 1%nat -> (Sn < N)%nat -> h * nu <= 1/16) /\
  9/25 * (phi * rho) <= kap /\
  rho * omega * q / kap * (7/5 * (3 * phi) * p + (21/5 * p + 2) * (3 / (phi * rho)) * h ^ 2) <= 1/25.
Proof.
  destruct nu_facts as [[n0 n1] [f f2]]. destruct h_facts as [h1 [h2 h3]]. destruct p_small as [p0 p1].
  assert (is0 : 0 < / INR Sn) by (apply Rinv_0_lt_compat; lra). assert (is1 : / INR Sn <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  destruct (longer_numbers rho omega p h nu phi (/ INR Sn) kap q rho01 omega01 p0 p1 h1 h2 f (conj n0 n1) (conj is0 is1) h3 eq_refl eq_refl) as [k1 [k2 _]].
  split; [|split; [|split; [|split; [|split; [exact k1|exact k2]]]]].
  - assert (phi2 : 0 < phi ^ 2) by (apply pow_lt; lra). assert (den : 0 < phi ^ 2 * rho * INR Sn) by (apply Rmult_lt_0_compat; [now apply Rmult_lt_0_compat|lra]). apply (Rmult_le_reg_r (phi ^ 2 * rho * INR Sn)); auto.
    replace (h ^ 2 / (phi ^ 2 * rho * INR Sn) * (phi ^ 2 * rho * INR Sn)) with (h ^ 2) by (field; repeat split; lra). apply (Rmult_le_compat_r (INR Sn)) in h2; [|lra]. replace (64 * h ^ 2 * / INR Sn * INR Sn) with (64 * h ^ 2) in h2 by (field; lra). lra.
  - apply (Rmult_le_compat_l (INR Sn)) in n1; [|lra]. rewrite Rinv_r in n1; lra.
  - replace (1 / (8 * INR Sn)) with (1/8 * / INR Sn) by (field; lra). apply Rmult_le_compat; lra.
  - intros e l. destruct h3 as [a|[_ b]]; auto. rewrite e in a. simpl INR in a. rewrite Rinv_1 in a. lra.
Qed.
Hypothesis HP : forall w, Family.map01 (P w).
Hypothesis EP : forall a b, draw (fun w => dot a (P w b)) = rho * dot a b.
Hypothesis EP2 : forall a, draw (fun w => nrm2 (P w a)) <= omega * rho * nrm2 a.
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis noise_mean0 : forall s w h i a, (i < N)%nat -> ker s w h (fun z => dot a (z i)) = 0.
Hypothesis noise_theta : forall s k i, (k < K)%nat -> (i < N)%nat ->
  draw (fun w => path (ker s w) k (fun h => ker s w h (fun z => dot (z i) (P w (z i))))) <= theta * sigma ^ 2.
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis noise_clients : forall s w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker s w h (fun z => dot (z i) (P w (z j))) = 0.
Hypothesis bounded : forall x, Fstar <= Family.Favg N F x.
Hypothesis ssf_memory : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
  if in_dec Nat.eq_dec i A then (ci (Family.smem s) i - P w (ci (Family.smem s) i) + P w (Family.gbar N K P g eta ci s w i h))%V else ci (Family.smem s) i.
Notation t := (Family.etat K eta etag).
Lemma step_6_2 :
  (forall t nu al ga q kap M iS, 0 < t -> 0 <= nu -> 0 <= al -> 0 <= ga -> 0 <= M ->
    q = 7/8 * omega * p + h * nu -> 0 < kap -> M = rho * t * (q / kap) ->
    1041/1000 * t * p * Family.B6 h al ga (M / t) + h * t * iS + M * al + 2 * iS * M * ga * h ^ 2
    <= t * (h * iS + 2/3 * p) + M * (51/50 * al + (3123/1000 * p + 2 * iS) * ga * h ^ 2)) /\
  (3123/1000 * p + 2 / INR Sn) * (3 / (phi * rho)) * h ^ 2 <= 96/1000 * phi /\
  20/9 * (h / INR Sn + 2/3 * p + rho * q / kap * (51/50 * (3 * phi) + (3123/1000 * p + 2 / INR Sn) * (3 / (phi * rho)) * h ^ 2))
    <= 20/9 * h / INR Sn + 20 * h * nu + 19 * p /\
  (forall (s0 : Family.state) (T : nat), (0 < T)%nat ->
    / INR T * sum T (fun t => Eit (Family.round N Sn K SN draw ker) (Family.step N Sn P g eta etag ci upd) t (fun s => nrm2 (Family.G N g (Family.sx s))) s0)
    <= 20 * (Family.Favg N F (Family.sx s0) - Fstar) / (9 * rho * t * INR T) + (55/10 * p + 62/10 * h * nu) * Family.Ckept N g ci s0 / (phi * rho * INR T)
     + theta * sigma ^ 2 / (rho * INR K) * (20/9 * h / INR Sn + 20 * h * nu + 19 * p)).
Proof.
  destruct nu_facts as [[n0 n1] [f f2]]. destruct h_facts as [h1 [h2 h3]]. destruct p_small as [p0 p1].
  assert (is0 : 0 < / INR Sn) by (apply Rinv_0_lt_compat; lra). assert (is1 : / INR Sn <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  destruct (longer_numbers rho omega p h nu phi (/ INR Sn) kap q rho01 omega01 p0 p1 h1 h2 f (conj n0 n1) (conj is0 is1) h3 eq_refl eq_refl) as [k1 [k2 [k3 k4]]].
  assert (p01 : 0 <= p <= 1/100) by lra. assert (h14 : 0 <= h <= 1/4) by lra. assert (fr : 0 < phi * rho) by (apply Rmult_lt_0_compat; lra).
  split; [|split; [|split; [exact k4|]]].
  - intros t' nu' al ga q' kap' M iS t0 nu0 al0 ga0 M0 eq k0 eM.
    exact (Family.sharp_6_4 rho t' omega p h nu' al ga q' kap' M iS (proj1 rho01) t0 omega01 p01 h14 nu0 al0 eq k0 eM).
  - set (X := 3 / (phi * rho) * h ^ 2). assert (X0 : 0 <= X) by (unfold X; apply Rmult_le_pos; [apply Rlt_le, Rdiv_lt_0_compat; lra|apply pow2_ge_0]).
    assert (X1 : X * / INR Sn <= 3/64 * phi).
    { apply (Rmult_le_reg_r (phi * rho)); auto. replace (X * / INR Sn * (phi * rho)) with (3 * (h ^ 2 * / INR Sn)) by (unfold X; field; lra). lra. }
    replace ((3123/1000 * p + 2 / INR Sn) * (3 / (phi * rho)) * h ^ 2) with (3123/1000 * (p * X) + 2 * (X * / INR Sn)) by (unfold X, Rdiv; ring).
    assert (pX : 0 <= X * (/ INR Sn - 100 * p)) by pos. lra.
  - intros s0 T T0. assert (T1 := lt_0_INR _ T0). assert (t0 := Family.etat_gt0 K K1 eta etag eta0 etag0).
    assert (kk : 0 < kap) by lra. assert (a0 : 0 <= 3 * phi) by lra. assert (g0 : 0 <= 3 / (phi * rho)) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
    assert (loc10 : INR K * L * eta <= 1/10).
    { eapply Rle_trans; [exact local_step|]. assert (s : 1 <= sqrt (INR Sn)) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra). unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le_contravar; lra. }
    assert (main := Family.theorem_sharp N Sn K S1 SN K1 draw P rho omega theta F g L Fstar eta etag sigma ci ker upd rho01 omega01 theta0 L0 eta0 etag0 loc10 (proj2 h14) HP EP EP2 lip noise_mean0 noise_theta grad noise_clients (3123/1000 * p) (Rle_refl _) bounded
      (fun _ => True) (Family.Ckept N g ci) (phi * rho / 2) 0 (3 * phi) (3 / (phi * rho)) 0 a0 g0 (fun _ _ _ => I)).
    assert (mem : forall s, Family.memory_at N Sn K SN draw P theta g L eta etag sigma ci ker upd (Family.Ckept N g ci) (phi * rho / 2) 0 (3 * phi) (3 / (phi * rho)) 0 s)
      by (intros s; apply Family.step_5_2 with (Q := P); auto).
    specialize (main (fun s _ => mem s) kk k2 s0 T I T0).
    eapply Rle_trans; [exact main|]. assert (C0 : 0 <= Family.Ckept N g ci s0) by (apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|apply sum_ge0; intros; apply nrm2_ge0]).
    set (C := Family.Ckept N g ci s0) in *. set (G0 := Family.Favg N F (Family.sx s0) - Fstar) in *.
    assert (CT : 0 <= C / INR T) by (apply Rmult_le_pos; [auto|now apply Rlt_le, Rinv_0_lt_compat]).
    assert (nz : 0 <= theta * sigma ^ 2 / (rho * INR K)).
    { apply Rmult_le_pos; [assert (s2 := pow2_ge_0 sigma); pos|]. apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; lra. }
    apply (Rmult_le_compat_r _ _ _ CT) in k3. apply (Rmult_le_compat_l _ _ _ nz) in k4.
    replace (20 * G0 / (9 * rho * t * INR T)) with (20/9 * (G0 / (rho * t * INR T))) by (field; lra).
    replace ((55/10 * p + 62/10 * h * nu) * C / (phi * rho * INR T)) with ((55/10 * p + 62/10 * h * nu) / (phi * rho) * (C / INR T)) by (field; lra).
    clear main. change (h / INR Sn) with (h * / INR Sn). change (2 / INR Sn) with (2 * / INR Sn).
    change (20/9 * h / INR Sn) with (20/9 * h * / INR Sn). lra.
Qed.
End Longer.

Lemma pow_cancel a c n : 0 <= a -> 0 <= c -> a ^ n <= c ^ n -> (0 < n)%nat -> a <= c.
Proof.
  intros a0 c0 hp hn. apply Rnot_lt_le. intros l. assert (k : c ^ n < a ^ n); [|lra]. clear hp. destruct n; [lia|]. clear hn. induction n; [lra|].
  change (c * c ^ S n < a * a ^ S n). apply Rmult_le_0_lt_compat; auto; apply pow_le; lra.
Qed.
Lemma step_6_3 rho phi L theta sigma K S T f C p h nu : 0 < rho <= 1 -> 0 < phi <= 1 -> 0 < L -> 0 < theta -> 0 < sigma -> 0 < K -> 0 < S -> 0 < T ->
  0 < f -> 0 <= C -> 0 <= p <= h / S -> 0 <= nu <= / S ->
  let A := 20 * f / (9 * rho * T) in let B := L * theta * sigma ^ 2 / (rho * S * K) * (20/9 + 39) in let H := Rmin (1/8) (phi * sqrt (rho * S) / 8) / L in
  let t := Rmin H (sqrt (A / B)) in h = L * t ->
  20 * f / (9 * rho * t * T) + theta * sigma ^ 2 / (rho * K) * (20 * h / (9 * S) + 20 * (h * nu) + 19 * p) <= A / t + B * t /\
  A / t + B * t <= A / H + 192/10 * (sqrt theta / rho * (sigma * sqrt (L * f / (S * K * T)))) /\
  (phi * sqrt (rho * S) <= 1 -> A / H = 160/9 * (L * f / (phi * (rho * sqrt rho) * sqrt S * T))) /\
  (55/10 * p + 62/10 * (h * nu)) * C / (phi * rho * T) <= 15/10 * (C / (sqrt (rho * S) * T)) /\
  (* rho = 1: SCAFFOLD's published step phi^(2/3) / 24; y is the cube root of phi *)
  (forall N y, 0 < N -> phi = S / N -> 0 < y -> y ^ 3 = phi -> (N ^ 2 <= 3 ^ 6 * S ^ 5 <-> y ^ 2 / 24 <= phi * sqrt S / 8) /\ (N / 27 <= S <-> y ^ 2 / 24 <= phi / 8)) /\
  (3 ^ 6 * 4 ^ 5 < (10 ^ 3) ^ 2 <= 3 ^ 6 * 5 ^ 5 /\ 3 ^ 6 * 10 ^ 5 < (10 ^ 4) ^ 2 <= 3 ^ 6 * 11 ^ 5 /\ 3 ^ 6 * 67 ^ 5 < (10 ^ 6) ^ 2 <= 3 ^ 6 * 68 ^ 5).
Proof.
  intros [r0 r1] [f0 f1] L0 th0 g0 K0 S0 T0 d0 C0 [p0 p1] [n0 n1] A B H t eh.
  assert (rS : 0 < rho * S) by now apply Rmult_lt_0_compat.
  assert (s0 : 0 < sqrt (rho * S)) by now apply sqrt_lt_R0. assert (ss : sqrt (rho * S) * sqrt (rho * S) = rho * S) by (apply sqrt_def; lra).
  assert (g2 : 0 < sigma ^ 2) by (apply pow_lt; lra).
  assert (A0 : 0 < A) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
  assert (B0 : 0 < B) by (unfold B; apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra|lra]).
  assert (fs : 0 < phi * sqrt (rho * S)) by now apply Rmult_lt_0_compat.
  assert (H0 : 0 < H) by (apply Rdiv_lt_0_compat; [apply Rmin_glb_lt; lra|lra]).
  assert (ab : 0 < A / B) by now apply Rdiv_lt_0_compat.
  assert (t0 : 0 < t) by (unfold t; apply Rmin_glb_lt; [auto|now apply sqrt_lt_R0]).
  assert (h0 : 0 < h) by (rewrite eh; now apply Rmult_lt_0_compat). assert (iS : 0 < / S) by now apply Rinv_0_lt_compat.
  assert (hn : h * nu <= h / S) by (apply Rmult_le_compat_l; lra). assert (hn0 : 0 <= h * nu) by pos.
  split; [|split; [|split; [|split; [|split]]]].
  - assert (c : 0 <= theta * sigma ^ 2 / (rho * K)) by (apply Rlt_le, Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    assert (m : 20 * h / (9 * S) + 20 * (h * nu) + 19 * p <= (20/9 + 39) * (h / S)).
    { replace (20 * h / (9 * S)) with (20/9 * (h / S)) by (field; lra). lra. }
    apply (Rmult_le_compat_l _ _ _ c) in m.
    replace (20 * f / (9 * rho * t * T)) with (A / t) by (unfold A; field; lra).
    replace (B * t) with (theta * sigma ^ 2 / (rho * K) * ((20/9 + 39) * (h / S))) by (unfold B; rewrite eh; field; lra). lra.
  - destruct (Family.step_7_10 A B H A0 (Rlt_le _ _ B0) H0) as [q _]. specialize (q B0). cbv zeta in q. fold t in q.
    eapply Rle_trans; [exact q|]. apply Rplus_le_compat_l.
    set (w := sqrt (L * f / (S * K * T))). assert (ww : 0 < L * f / (S * K * T)) by (apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra).
    assert (w0 : 0 < w) by now apply sqrt_lt_R0. assert (wq : w * w = L * f / (S * K * T)) by (apply sqrt_def; lra).
    assert (u0 : 0 < sqrt theta) by now apply sqrt_lt_R0. assert (uu : sqrt theta * sqrt theta = theta) by (apply sqrt_def; lra).
    assert (AB : 0 < A * B) by now apply Rmult_lt_0_compat.
    assert (z : 0 < sqrt theta / rho * (sigma * w)) by (apply Rmult_lt_0_compat; [now apply Rdiv_lt_0_compat|now apply Rmult_lt_0_compat]).
    apply Rsqr_incr_0_var; [|lra]. unfold Rsqr.
    replace (2 * sqrt (A * B) * (2 * sqrt (A * B))) with (4 * (sqrt (A * B) * sqrt (A * B))) by ring. rewrite sqrt_def by lra.
    assert (e : A * B = 7420/81 * ((sqrt theta / rho * (sigma * w)) * (sqrt theta / rho * (sigma * w)))).
    { replace (sqrt theta / rho * (sigma * w) * (sqrt theta / rho * (sigma * w))) with ((sqrt theta * sqrt theta) / rho ^ 2 * (sigma ^ 2 * (w * w))) by (field; lra).
      rewrite uu, wq. unfold A, B. field. lra. }
    rewrite e. assert (zz : 0 < (sqrt theta / rho * (sigma * w)) * (sqrt theta / rho * (sigma * w))) by now apply Rmult_lt_0_compat. lra.
  - intros hl. assert (a : 0 < sqrt rho) by now apply sqrt_lt_R0. assert (b : 0 < sqrt S) by now apply sqrt_lt_R0.
    unfold A, H. rewrite Rmin_right by lra. rewrite sqrt_mult by lra. field. lra.
  - assert (hH : h <= phi * sqrt (rho * S) / 8).
    { rewrite eh. replace (phi * sqrt (rho * S) / 8) with (L * (phi * sqrt (rho * S) / 8 / L)) by (field; lra). apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Rmin_l|].
      unfold H, Rdiv. apply Rmult_le_compat_r; [now apply Rlt_le, Rinv_0_lt_compat|apply Rmin_r]. }
    assert (m : 55/10 * p + 62/10 * (h * nu) <= 117/10 * (phi * sqrt (rho * S) / 8 * / S)).
    { assert (h / S <= phi * sqrt (rho * S) / 8 * / S) by (apply Rmult_le_compat_r; lra). lra. }
    assert (c : 0 <= C / (phi * rho * T)) by (apply Rmult_le_pos; [auto|]; apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_compat_r _ _ _ c) in m.
    replace ((55/10 * p + 62/10 * (h * nu)) * C / (phi * rho * T)) with ((55/10 * p + 62/10 * (h * nu)) * (C / (phi * rho * T))) by (field; lra).
    eapply Rle_trans; [exact m|].
    replace (117/10 * (phi * sqrt (rho * S) / 8 * / S) * (C / (phi * rho * T))) with (117/80 * (C * (sqrt (rho * S) / (rho * S)) / T)) by (field; lra).
    rewrite <- ss at 2. replace (C * (sqrt (rho * S) / (sqrt (rho * S) * sqrt (rho * S))) / T) with (C / (sqrt (rho * S) * T)) by (field; lra).
    assert (0 <= C / (sqrt (rho * S) * T)) by (apply Rmult_le_pos; [auto|]; apply Rlt_le, Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra). lra.
  - intros N y N0 ef y0 ey. assert (b : 0 < sqrt S) by now apply sqrt_lt_R0. assert (bb : sqrt S * sqrt S = S) by (apply sqrt_def; lra). set (r := sqrt S) in *.
    assert (eN : N * y ^ 3 = S) by (rewrite ey, ef; field; lra). assert (y2 : 0 < y ^ 2) by now apply pow_lt.
    assert (up := pow_cancel).
    split.
    + (* both say 1 <= 3 y sqrt S *)
      assert (e1 : 1 <= 3 * y * r <-> y ^ 2 / 24 <= phi * r / 8).
      { rewrite <- ey. replace (y ^ 3 * r / 8) with (y ^ 2 / 24 * (3 * y * r)) by field. split; intros k.
        - replace (y ^ 2 / 24) with (y ^ 2 / 24 * 1) at 1 by ring. apply Rmult_le_compat_l; lra.
        - apply (Rmult_le_reg_l (y ^ 2 / 24)); lra. }
      rewrite <- e1. assert (e6 : (3 * y * r) ^ 6 * N ^ 2 = 3 ^ 6 * S ^ 5).
      { replace ((3 * y * r) ^ 6 * N ^ 2) with (3 ^ 6 * ((N * y ^ 3) ^ 2 * (r * r) ^ 3)) by ring. rewrite eN, bb. ring. }
      assert (q0 : 0 <= 3 * y * r) by (repeat apply Rmult_le_pos; lra). assert (N2 : 0 < N ^ 2) by now apply pow_lt. split; intros k.
      * apply (up 1 (3 * y * r) 6%nat); try lra; [|lia]. rewrite pow1. apply (Rmult_le_reg_r (N ^ 2)); auto. lra.
      * assert (z := pow_incr 1 (3 * y * r) 6 ltac:(lra)). rewrite pow1 in z. apply (Rmult_le_compat_r (N ^ 2)) in z; lra.
    + assert (e1 : 1 <= 3 * y <-> y ^ 2 / 24 <= phi / 8).
      { rewrite <- ey. replace (y ^ 3 / 8) with (y ^ 2 / 24 * (3 * y)) by field. split; intros k.
        - replace (y ^ 2 / 24) with (y ^ 2 / 24 * 1) at 1 by ring. apply Rmult_le_compat_l; lra.
        - apply (Rmult_le_reg_l (y ^ 2 / 24)); lra. }
      rewrite <- e1. assert (e3 : (3 * y) ^ 3 * N = 27 * S) by (replace ((3 * y) ^ 3 * N) with (27 * (N * y ^ 3)) by ring; now rewrite eN). split; intros k.
      * apply (up 1 (3 * y) 3%nat); try lra; [|lia]. rewrite pow1. apply (Rmult_le_reg_r N); auto. lra.
      * assert (z := pow_incr 1 (3 * y) 3 ltac:(lra)). rewrite pow1 in z. apply (Rmult_le_compat_r N) in z; lra.
  - repeat split; lra.
Qed.
(* 6.4: one step for all S; iS is 1/S *)
Lemma step_6_4 rho om p h nu f iS kap q : 0 < rho <= 1 -> 0 <= om <= 1 -> 0 <= p <= 1/100 -> 0 <= h <= 1/4 -> 0 < iS <= 1 -> 0 <= nu <= 1 -> 0 < f <= 1 ->
  f * nu <= 1/2 -> h ^ 2 * iS <= f ^ 2 * rho / 64 -> h ^ 2 * (nu + 4 * p) <= f ^ 2 * rho / 144 ->
  kap = f * rho / 2 - rho * om * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) ->
  q = 7/8 * om * p + h * nu ->
  (h * nu) ^ 2 <= 1/288 /\ 9/25 * (f * rho) <= kap /\
  rho * om * q / kap * (7/5 * (3 * f) * p + (21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) <= 1/25 /\
  20/9 * (q / kap) <= (55/10 * p + 62/10 * h * nu) / (f * rho) /\
  20/9 * (h * iS + 2/3 * p + rho * q / kap * (51/50 * (3 * f) + (3123/1000 * p + 2 * iS) * (3 / (f * rho)) * h ^ 2))
    <= 20/9 * h * iS + 20 * h * nu + 19 * p /\
  (* all clients: every step of the family's 7.1 *)
  (nu = 0 -> f = 1 -> iS <= 1/8 -> forall k, k ^ 2 <= rho / 8 -> k ^ 2 * iS <= f ^ 2 * rho / 64 /\ k ^ 2 * (nu + 4 * p) <= f ^ 2 * rho / 144).
Proof.
  intros [r0 r1] [o0 o1] [p0 p1] [h0 h1] [s0 s1] [n0 n1] [f0 f1] fn hS hp ek eq.
  assert (fr : 0 < f * rho) by now apply Rmult_lt_0_compat. assert (H0 := pow2_ge_0 h).
  set (X := 3 / (f * rho) * h ^ 2). assert (X0 : 0 <= X).
  { unfold X, Rdiv. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [lra|]. now apply Rlt_le, Rinv_0_lt_compat. }
  assert (X1 : X * (nu + 4 * p) <= 1/48 * f).
  { apply (Rmult_le_reg_r (f * rho)); auto. replace (X * (nu + 4 * p) * (f * rho)) with (3 * (h ^ 2 * (nu + 4 * p))) by (unfold X; field; lra). lra. }
  assert (X2 : X * iS <= 3/64 * f).
  { apply (Rmult_le_reg_r (f * rho)); auto. replace (X * iS * (f * rho)) with (3 * (h ^ 2 * iS)) by (unfold X; field; lra). lra. }
  replace ((21/5 * p + 2 * nu) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2 * nu) * X) in ek by (unfold X; ring).
  replace ((21/5 * p + 2) * (3 / (f * rho)) * h ^ 2) with ((21/5 * p + 2) * X) by (unfold X; ring).
  replace ((3123/1000 * p + 2 * iS) * (3 / (f * rho)) * h ^ 2) with ((3123/1000 * p + 2 * iS) * X) by (unfold X; ring).
  assert (hn2 : (h * nu) ^ 2 <= 1/288).
  { assert (a : h ^ 2 * nu * nu <= h ^ 2 * (nu + 4 * p) * nu) by (assert (0 <= h ^ 2 * p * nu) by pos; lra).
    assert (b := Rmult_le_compat_r nu _ _ n0 hp). assert (c : f * rho * (f * nu) <= 1 * (1/2)).
    { apply Rmult_le_compat; [lra|pos| |exact fn]. assert (0 <= (1 - f) * rho) by pos. lra. } lra. }
  assert (hn0 : 0 <= h * nu) by pos. assert (hn : h * nu <= 59/1000) by nra. assert (h4 : h * nu <= 1/4 * nu) by (apply Rmult_le_compat_r; lra).
  assert (op : om * p <= p) by nra. assert (op0 : 0 <= om * p) by pos. assert (pX0 : 0 <= p * X) by pos. assert (nX0 : 0 <= nu * X) by pos.
  assert (q0 : 0 <= q) by (rewrite eq; lra). assert (q1 : q <= 7/8 * p + h * nu) by (rewrite eq; lra).
  assert (fp : f * p <= 1/100 * f) by (assert (0 <= f * (1/100 - p)) by pos; lra). assert (fp0 : 0 <= f * p) by pos.
  assert (K : 416/1000 * (f * rho) <= kap).
  { rewrite ek. assert (b0 : 0 <= 7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X) by lra.
    assert (k1 : 0 <= rho * ((1 - om) * (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X))) by pos.
    assert (k2 : 0 <= rho * (84/1000 * f - (7/5 * (3 * f) * p + (21/5 * p + 2 * nu) * X))) by (apply Rmult_le_pos; lra). lra. }
  assert (k0 : 0 < kap) by lra. set (qk := q / kap).
  assert (qk0 : 0 <= qk) by (unfold qk, Rdiv; apply Rmult_le_pos; [lra|now apply Rlt_le, Rinv_0_lt_compat]).
  assert (W : 416/1000 * (f * rho * qk) <= q).
  { assert (e : kap * qk = q) by (unfold qk; field; lra). assert (K2 := Rmult_le_compat_r qk _ _ qk0 K). rewrite e in K2. clear - K2. lra. }
  assert (rq : 0 <= rho * qk) by pos. assert (W0 : 0 <= f * rho * qk) by pos.
  split; [exact hn2|]. split; [lra|]. split; [|split; [|split]].
  - replace (rho * om * q / kap) with (rho * qk * om) by (unfold qk; field; lra).
    assert (c0 : 0 <= 7/5 * (3 * f) * p + (21/5 * p + 2) * X) by (assert (0 <= f * p) by pos; lra).
    assert (k1 : 0 <= rho * qk * ((1 - om) * (7/5 * (3 * f) * p + (21/5 * p + 2) * X))) by pos.
    assert (a1 : 0 <= f * rho * qk * (1/100 - p)) by pos.
    (* q X is at most f/192 *)
    assert (qX : q * X <= 1/192 * f).
    { assert (b := Rmult_le_compat_r X _ _ X0 q1). assert (b2 := Rmult_le_compat_r X _ _ X0 h4). lra. }
    assert (a2 : 416/1000 * (f * (rho * qk * X)) <= f * (1/192)).
    { assert (b := Rmult_le_compat_r X _ _ X0 W). lra. }
    assert (a3 : 416/1000 * (rho * qk * X) <= 1/192) by (apply (Rmult_le_reg_l f); lra).
    assert (a4 : 0 <= rho * qk * X) by pos. assert (a5 : 0 <= rho * qk * X * (1/100 - p)) by pos. lra.
  - apply (Rmult_le_reg_r (f * rho)); auto.
    replace ((55/10 * p + 62/10 * h * nu) / (f * rho) * (f * rho)) with (55/10 * p + 62/10 * h * nu) by (field; lra). lra.
  - replace (rho * q / kap) with (rho * qk) by (unfold qk; field; lra).
    assert (k2 : 0 <= rho * qk * (111/1000 * f - (3123/1000 * p + 2 * iS) * X)) by (apply Rmult_le_pos; [auto|lra]). lra.
  - intros e1 e2 i8 k hk. rewrite e1, e2. assert (k2 := pow2_ge_0 k). split.
    + assert (0 <= k ^ 2 * (1/8 - iS)) by pos. lra.
    + assert (0 <= k ^ 2 * (1/100 - p)) by pos. lra.
Qed.
