(* 3.1 from the gradient, one step of descent, and the drift recursion with its unrolled sum. *)
From Coq Require Import Reals Lra Lia Psatz FunctionalExtensionality.
From Fedtheory Require Import Core.
Local Open Scope R_scope.
Section Descent.
Context {D : Dim}.

Lemma cauchy_schwarz u v : dot u v * dot u v <= nrm2 u * nrm2 v.
Proof.
  assert (hu := nrm2_ge0 u). assert (hv := nrm2_ge0 v).
  destruct (Req_dec (nrm2 v) 0) as [z|z].
  - assert (h := nrm2_ge0 ((- dot u v / (nrm2 u + 1)) *: u + v)). rewrite nrm2_add, nrm2_scal, dot_scall, z in h.
    assert (h2 : 0 <= (nrm2 u + 1) * (nrm2 u + 1) *
      (- dot u v / (nrm2 u + 1) * (- dot u v / (nrm2 u + 1)) * nrm2 u + 2 * (- dot u v / (nrm2 u + 1) * dot u v) + 0))
      by (repeat apply Rmult_le_pos; lra).
    replace (_ * _ * _) with (- (dot u v * dot u v) * (nrm2 u + 2)) in h2 by (field; lra). nra.
  - assert (h := nrm2_ge0 (nrm2 v *: u - dot u v *: v)). rewrite nrm2_sub, !nrm2_scal, dot_scall, dot_scalr in h. nra.
Qed.
Lemma ex_cauchy_schwarz {A} (E : law A) (u v : A -> vec) :
  E (fun o => dot (u o) (v o)) ^ 2 <= E (fun o => nrm2 (u o)) * E (fun o => nrm2 (v o)).
Proof.
  set (a := E (fun o => nrm2 (u o))). set (b := E (fun o => nrm2 (v o))). set (c := E (fun o => dot (u o) (v o))).
  assert (key : forall l, 0 <= l * l * a - 2 * l * c + b).
  { intros l. replace (l * l * a - 2 * l * c + b) with (E (fun o => nrm2 (l *: u o - v o)%V)); [apply ex_ge0; intros; apply nrm2_ge0|].
    rewrite (ex_ext E _ (fun o => l * l * nrm2 (u o) + ((-2) * l * dot (u o) (v o) + nrm2 (v o))))
      by (intros; rewrite nrm2_sub, nrm2_scal, dot_scall; ring).
    rewrite !ex_plus, !ex_scal. unfold a, b, c. ring. }
  assert (a0 : 0 <= a) by (apply ex_ge0; intros; apply nrm2_ge0). assert (b0 : 0 <= b) by (apply ex_ge0; intros; apply nrm2_ge0).
  destruct (Req_dec a 0) as [z|z].
  - assert (k := key ((b + 1) / (2 * c))). destruct (Req_dec c 0) as [c0|c0]; [rewrite c0; assert (0 <= a * b) by pos; lra|].
    rewrite z in k. replace (2 * ((b + 1) / (2 * c)) * c) with (b + 1) in k by (field; auto). lra.
  - assert (k := key (c / a)). apply (Rmult_le_compat_l a) in k; auto.
    replace (a * (c / a * (c / a) * a - 2 * (c / a) * c + b)) with (a * b - c ^ 2) in k by (field; auto). lra.
Qed.
Lemma dot_le m u v : 0 <= m -> nrm2 u <= m * m * nrm2 v -> dot u v <= m * nrm2 v.
Proof.
  intros m0 h. assert (c := cauchy_schwarz u v). assert (hv := nrm2_ge0 v).
  apply Rsqr_incr_0_var; [|now apply Rmult_le_pos]. unfold Rsqr. nra.
Qed.

(* G is the gradient of F: the derivative in every direction *)
Definition gradient (F : vec -> R) (G : vec -> vec) : Prop :=
  forall x s, derivable_pt_lim (fun u => F (x + u *: s)%V) 0 (dot (G x) s).
Definition lipschitz (L : R) (G : vec -> vec) : Prop := forall x y, nrm2 (G x - G y) <= L * L * nrm2 (x - y).

Theorem smooth F G L : 0 <= L -> gradient F G -> lipschitz L G ->
  forall x s, F (x + s)%V <= F x + dot (G x) s + L / 2 * nrm2 s.
Proof.
  intros L0 hd hL x s.
  pose (phi u := F (x + u *: s)%V + - (u * (dot (G x) s) + L / 2 * nrm2 s * (u * u))).
  pose (phi' u := dot (G (x + u *: s)%V) s + - (dot (G x) s + L * u * nrm2 s)).
  assert (D1 : forall u, derivable_pt_lim phi u (phi' u)).
  { intros u. unfold phi, phi'. apply derivable_pt_lim_plus.
    - intros eps he. destruct (hd (x + u *: s)%V s eps he) as [del hdel]. exists del. intros h h0 h1.
      specialize (hdel h h0 h1). cbv beta in hdel.
      replace (x + (u + h) *: s)%V with (x + u *: s + (0 + h) *: s)%V by vring.
      replace (x + u *: s + 0 *: s)%V with (x + u *: s)%V in hdel by vring. exact hdel.
    - apply (derivable_pt_lim_opp (fun u => u * (dot (G x) s) + L / 2 * nrm2 s * (u * u))).
      replace (dot (G x) s + L * u * nrm2 s) with ((1 * dot (G x) s + u * 0) + L / 2 * nrm2 s * (1 * u + u * 1)) by field.
      apply derivable_pt_lim_plus.
      + apply (derivable_pt_lim_mult id (fun _ => dot (G x) s)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
      + apply (derivable_pt_lim_scal (fun u => u * u)).
        apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id. }
  destruct (MVT_cor2 phi phi' 0 1 Rlt_0_1 (fun c _ => D1 c)) as [c [e [c0 c1]]].
  assert (n : phi' c <= 0).
  { unfold phi'. assert (h : dot (G (x + c *: s) - G x)%V s <= L * c * nrm2 s).
    { apply dot_le. { apply Rmult_le_pos; lra. } eapply Rle_trans; [apply hL|].
      replace (x + c *: s - x)%V with (c *: s)%V by vring. rewrite nrm2_scal. lra. }
    rewrite subE, dot_addl, dot_scall in h. lra. }
  unfold phi in e. replace (x + 1 *: s)%V with (x + s)%V in e by vring.
  replace (x + 0 *: s)%V with x in e by vring. lra.
Qed.

Theorem descent F G L eta x : (forall s, F (x + s)%V <= F x + dot (G x) s + L / 2 * nrm2 s) ->
  0 <= eta -> L * eta <= 1 -> F (x - eta *: G x)%V <= F x - eta / 2 * nrm2 (G x).
Proof.
  intros h e0 hL. replace (x - eta *: G x)%V with (x + (- eta) *: G x)%V by vring.
  eapply Rle_trans; [apply h|]. rewrite dot_scalr, nrm2_scal. fold (nrm2 (G x)).
  assert (k : 0 <= (1 - L * eta) * (eta * nrm2 (G x))) by (repeat apply Rmult_le_pos; try lra; apply nrm2_ge0). lra.
Qed.

Lemma drift_step K1 lr x y g : nrm2 (y - lr *: g - x)
  <= (1 + / INR (S K1)) * nrm2 (y - x) + INR (S (S K1)) * lr ^ 2 * nrm2 g.
Proof.
  assert (k0 : 0 < INR (S K1)) by (apply lt_0_INR; lia).
  replace (y - lr *: g - x)%V with ((y - x) + (- lr) *: g)%V by vring.
  eapply Rle_trans; [apply (nrm2_add_young (/ INR (S K1))); now apply Rinv_0_lt_compat|].
  rewrite nrm2_scal, (S_INR (S K1)). replace (/ / INR (S K1)) with (INR (S K1)) by (field; lra). lra.
Qed.
Lemma unroll a e b : 0 <= a -> e O = 0 -> (forall k, e (S k) <= a * e k + b k) ->
  forall k, e k <= sum k (fun j => a ^ (k - 1 - j) * b j).
Proof.
  intros a0 e0 h k. induction k; [simpl; lra|]. eapply Rle_trans; [apply h|].
  rewrite sum_S. replace (S k - 1 - k)%nat with O by lia. simpl (_ ^ 0). rewrite Rmult_1_l. apply Rplus_le_compat_r.
  rewrite (sum_ext _ _ (fun j => a * (a ^ (k - 1 - j) * b j))).
  - rewrite sum_scal. now apply Rmult_le_compat_l.
  - intros j hj. replace (S k - 1 - j)%nat with (S (k - 1 - j)) by lia. simpl; ring.
Qed.
Theorem drift_unrolled K1 lr (y g : nat -> vec) : (forall k, y (S k) = (y k - lr *: g k)%V) ->
  forall k, nrm2 (y k - y O)
    <= sum k (fun j => (1 + / INR (S K1)) ^ (k - 1 - j) * (INR (S (S K1)) * lr ^ 2 * nrm2 (g j))).
Proof.
  intros h. apply (unroll _ (fun k => nrm2 (y k - y O)) (fun j => INR (S (S K1)) * lr ^ 2 * nrm2 (g j))).
  - assert (0 < / INR (S K1)) by (apply Rinv_0_lt_compat, lt_0_INR; lia). lra.
  - replace (y O - y O)%V with v0 by vring. apply nrm2_0.
  - intros k. rewrite h. apply drift_step.
Qed.
End Descent.
