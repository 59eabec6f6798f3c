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
  - intros G X at_ step x hG hi. apply (step_1_4 (fun _ => draw) coords rho at_ step coords_proj); auto; try lra. intros s v. right. apply ep.
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

(* the law of section 2: three lines of the plane, at 60 degrees *)
Section Lines.
Local Instance plane : Dim := 2%nat.
Let s3 : R := sqrt 3.
Let s33 : s3 * s3 = 3. Proof. apply sqrt_def. lra. Qed.
Definition axis (j i : nat) : R := match i with
  | 0%nat => match j with 0%nat => 1 | _ => - (1/2) end
  | 1%nat => match j with 0%nat => 0 | 1%nat => s3 / 2 | _ => - (s3 / 2) end
  | _ => 0 end.
Definition line (j : nat) (v : vec) : vec := (dot (axis j) v *: axis j)%V.
Definition lines : law nat.
Proof.
  refine {| ex f := / 3 * (f 0%nat + f 1%nat + f 2%nat) |}; intros; try field.
  assert (a := H 0%nat). assert (b := H 1%nat). assert (c := H 2%nat). lra.
Defined.
Lemma axis_1 j : nrm2 (axis j) = 1.
Proof.
  unfold nrm2, dot, dim, plane. destruct j as [|[|j]]; cbn [sum axis]; try ring.
  - replace (0 + - (1/2) * - (1/2) + s3 / 2 * (s3 / 2)) with (1/4 + s3 * s3 / 4) by field. rewrite s33. field.
  - replace (0 + - (1/2) * - (1/2) + - (s3 / 2) * - (s3 / 2)) with (1/4 + s3 * s3 / 4) by field. rewrite s33. field.
Qed.
Lemma line_proj j : proj (line j).
Proof.
  split; intros; unfold line; rewrite ?dot_addr, ?dot_scalr, ?dot_scall; try vring; try (rewrite (dotC u (axis j)); ring).
  fold (nrm2 (axis j)). rewrite axis_1. vring.
Qed.
Lemma lines_second u v : lines (fun w => dot u (line w v) ^ 2) = / 8 * (nrm2 u * nrm2 v + 2 * dot u v ^ 2).
Proof.
  assert (s4 : s3 ^ 4 = 9) by (replace (s3 ^ 4) with ((s3 * s3) * (s3 * s3)) by ring; rewrite s33; ring). assert (s2 : s3 ^ 2 = 3) by (simpl; rewrite Rmult_1_r; exact s33).
  cbn [ex lines]. unfold line. rewrite !dot_scalr. unfold nrm2, dot, dim, plane. cbn [sum axis].
  set (a := u 0%nat). set (b := u 1%nat). set (c := v 0%nat). set (e := v 1%nat).
  transitivity (/ 3 * (a ^ 2 * c ^ 2 + / 128 * (a * a * c * c * 16 / 16 + 0)) - / 3 * (/ 128 * (a * a * c * c)) + (/ 3 * ((- (1/2) * c + s3 / 2 * e) ^ 2 * (- (1/2) * a + s3 / 2 * b) ^ 2 + (- (1/2) * c - s3 / 2 * e) ^ 2 * (- (1/2) * a - s3 / 2 * b) ^ 2))); [field|].
  replace ((- (1/2) * c + s3 / 2 * e) ^ 2 * (- (1/2) * a + s3 / 2 * b) ^ 2 + (- (1/2) * c - s3 / 2 * e) ^ 2 * (- (1/2) * a - s3 / 2 * b) ^ 2)
    with (/ 8 * (a ^ 2 * c ^ 2 + s3 ^ 2 * (a ^ 2 * e ^ 2 + c ^ 2 * b ^ 2 + 4 * a * b * c * e) + s3 ^ 4 * (b ^ 2 * e ^ 2))) by field.
  rewrite s2, s4. field.
Qed.
Lemma reflect_dot n u v : nrm2 n <> 0 -> dot (reflect n u) (reflect n v) = dot u v.
Proof.
  intros h. unfold reflect. rewrite !subE, !dot_addl, !dot_addr, !dot_scall, !dot_scalr, (dotC u n). fold (nrm2 n). field. exact h.
Qed.
Theorem haar_instance H L : Mud.mapL L H -> 0 < L -> forall v, lines (fun w => dot (line w v) (H (line w v))) <= (1 + (Decomfl.tr H / L + 1) / 1) * (1 / INR dim) ^ 2 * L * nrm2 v.
Proof.
  intros HH L0 v. assert (EP : forall v, lines (fun w => dot v (line w v)) = 1 / INR dim * dot v v).
  { intros u. cbn [ex lines]. unfold line. rewrite !dot_scalr. unfold dot, dim, plane. cbn [sum axis]. simpl INR.
    transitivity (/ 2 * (u 0%nat * u 0%nat) + / 6 * (s3 * s3) * (u 1%nat * u 1%nat)); [field|]. rewrite s33. field. }
  assert (tr1 : forall w, Decomfl.tr (line w) = 1).
  { intros w. rewrite <- (axis_1 w). unfold Decomfl.tr, line, nrm2. rewrite dot_coords. apply sum_ext; intros i _. rewrite dot_scalr, (dotC (axis w)). reflexivity. }
  assert (inv : forall n u v, nrm2 n <> 0 -> lines (fun w => dot (reflect n u) (line w (reflect n v)) ^ 2) = lines (fun w => dot u (line w v) ^ 2)).
  { intros n u w h. rewrite !lines_second. unfold nrm2 at 1 2. rewrite !reflect_dot by auto. reflexivity. }
  destruct (step_2_4 lines line 1 (le_n 2) line_proj EP tr1 inv H L HH L0 ltac:(unfold dim, plane; simpl; lra)) as [a [b _]].
  eapply Rle_trans; [apply a|]. assert (n := nrm2_ge0 v).
  apply Rmult_le_compat_r; auto. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [apply pow2_ge_0|exact b].
Qed.
End Lines.
