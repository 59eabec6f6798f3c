(* The limits are not vacuous: random coordinates meet the hypotheses, and SSF with noise is a method in their sense. *)
From Coq Require Import Reals Lra Lia List FunctionalExtensionality.
From Fedtheory Require Import Core Noise Sampling Descent Ssf Instance.
From Fedtheory Require Import Limits.
Local Open Scope R_scope.

(* the two sides for x' = x - (1/L) P grad F(x), P random coordinates: upper for all F, lower for one F *)
Corollary coordinates_both {D : Dim} r (h : (1 <= r <= dim)%nat) L T :
  let rho := INR r / INR dim in let draw := uniform_sets dim r (proj2 h) in 0 < L -> (0 < T)%nat ->
  (forall F G Fstar x, gradient F G -> lipschitz L G -> (forall x, Fstar <= F x) ->
    / INR T * sum T (fun t => Eit (fun _ => draw) (move coords G (/ L)) t (fun x => nrm2 (G x)) x)
    <= 2 * L * (F x - Fstar) / (rho * INR T)) /\
  (forall G (X : Type) (at_ : X -> vec) step (x : X), gradient (quad L) G ->
    (forall s w, exists u, (at_ (step s w) - at_ s)%V = coords w u) ->
    2 * L * quad L (at_ x) * (1 - (1 - rho) ^ T) / (rho * INR T)
    <= / INR T * sum T (fun t => Eit (fun _ => draw) step t (fun s => nrm2 (G (at_ s))) x)).
Proof.
  intros rho draw L0 T0. assert (d0 : 0 < INR dim) by (apply lt_0_INR; lia).
  assert (r0 : 0 < INR r) by (apply lt_0_INR; lia). assert (rd : INR r <= INR dim) by (apply le_INR; lia).
  assert (rho01 : 0 < rho <= 1).
  { unfold rho. split; [apply Rdiv_lt_0_compat; auto|]. apply (Rmult_le_reg_r (INR dim)); auto. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l; lra. }
  assert (ep := fun v => E_coords r h v v). split.
  - intros. apply (effective_projector draw coords F G rho L Fstar); auto; try lra. apply coords_proj.
  - intros G X at_ step x hG hi. apply (step_1_4 (fun _ => draw) coords rho at_ step coords_proj); auto; try lra. intros s v. rewrite ep. lra.
Qed.

(* SSF moves inside the round's subspace, whatever the gradients, controls and noise *)
Theorem ssf_limit {D : Dim} N K {O : Type} (draw : law O) P rho (g : nat -> vec -> vec) eta etag ker :
  (forall w, proj (P w)) -> 0 < rho <= 1 -> (forall u v, draw (fun w => dot u (P w v)) = rho * dot u v) ->
  forall L G (s0 : state) T, gradient (quad L) G -> (0 < T)%nat ->
  2 * L * quad L (sx s0) * (1 - (1 - rho) ^ T) / (rho * INR T)
  <= / INR T * sum T (fun t => Eit (round K draw ker) (step N K P g eta etag) t (fun s => nrm2 (G (sx s))) s0).
Proof.
  intros pp hr ep L G s0 T hG T0.
  apply (step_1_4 (round K draw ker) (fun p : O * list noise => P (fst p)) rho sx); auto; try lra.
  - intros s v. rewrite <- ep. unfold round. simpl. apply Req_le, ex_ext. intros w. apply ex_const.
  - intros s [w hh]. cbn [step sx fst]. assert (pw := pp w).
    assert (one : forall i, exists u, (loc P g eta s w i hh - sx s)%V = P w u).
    { intros i. induction hh as [|z hh [u hu]].
      - exists v0. rewrite (p_0 _ pw). simpl. vring.
      - exists (u - eta *: (g i (loc P g eta s w i hh) + z i - sci s i + sc s))%V.
        rewrite (p_sub _ pw), (p_scal _ pw), <- hu. simpl. vring. }
    assert (all : forall n, exists u, vsum n (fun i => loc P g eta s w i hh - sx s)%V = P w u).
    { induction n as [|n [u hu]]; [exists v0; rewrite (p_0 _ pw); reflexivity|].
      destruct (one n) as [u' hu']. exists (u + u')%V. now rewrite vsum_S, hu, hu', (p_add _ pw). }
    destruct (all N) as [u hu]. exists ((etag / INR N) *: u)%V. rewrite hu, (p_scal _ pw). vring.
Qed.
