(* One step x' = x - eta P grad F(x) with a random P that need not be a projector: curvature counts as P sees it. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Fedtheory Require Import Core Descent.
Local Open Scope R_scope.

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

Lemma effective_step x : draw (fun w => F (move eta x w)) <= F x - rho / (2 * L * omega) * nrm2 (G x).
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
(* (E1) *)
Theorem effective x T : (0 < T)%nat ->
  / INR T * sum T (fun t => Eit (fun _ => draw) (move (/ (L * omega))) t (fun x => nrm2 (G x)) x)
  <= 2 * L * omega * (F x - Fstar) / (rho * INR T).
Proof.
  intros T0%lt_0_INR. fold eta.
  assert (h := telescope (fun _ => draw) (move eta) (fun _ => True) (fun x => F x - Fstar)
    (fun x => rho / (2 * L * omega) * nrm2 (G x)) 0 (fun _ _ _ => I)).
  assert (h1 : forall x, True -> draw (fun w => F (move eta x w) - Fstar)
    <= F x - Fstar - rho / (2 * L * omega) * nrm2 (G x) + 0).
  { intros y _. unfold Rminus at 1. rewrite ex_plus, ex_const. assert (k := effective_step y). lra. }
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
  assert (h := effective draw P F G (fun v => L *: v)%V rho 1 L Fstar r0 Rlt_0_1 L0 ep).
  rewrite !Rmult_1_r in h. apply h; auto.
  - intros. vring.
  - intros y v. assert (k := smooth F G L (Rlt_le _ _ L0) hg hl y v). rewrite dot_scalr. fold (nrm2 v). lra.
  - intros z. rewrite (ex_ext _ _ (fun w => L * dot z (P w z))).
    + rewrite ex_scal, ep. lra.
    + intros w. rewrite dot_scalr. fold (nrm2 (P w z)). now rewrite (p_nrm2 _ (pp w)).
Qed.
