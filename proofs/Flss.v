(* docs/theory/flss.md: FedAvg+FLSS in a fixed subspace, M of N clients, noise. step_3_7 is the page's [flss.3.7]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Ssf Family.
From Fedtheory Require Import Noise Sampling Descent Core.
Local Open Scope R_scope.

(* ---- numbers ---- *)
Lemma step_3_9 q s : 0 < q <= 1/20 -> 0 <= s <= 1 -> -2 + 3 * q * (1 + 2 * s) + (4/3 + 5 * q) * (77/10) * q ^ 2 <= - (3/2).
Proof.
  intros [q0 q1] [s0 s1]. assert (a : q * (1 + 2 * s) <= 3/20) by (assert (0 <= (1/20 - q) * (1 + 2 * s)) by (apply Rmult_le_pos; lra); lra).
  assert (b : q ^ 2 <= 1/400) by nra. assert (c : q * q ^ 2 <= 1/8000) by nra. lra.
Qed.
(* D is multiplied by u (4/3 + 5 q), u = eta tau L *)
Lemma step_3_10 q u D : 0 < q <= 1/20 -> 0 <= u -> 0 <= D ->
  u * (4/3 + 5 * q) * D <= 19/12 * u * D /\ 19/12 * (513/1000) <= 82/100 /\ 19/12 * (385/1000) <= 61/100.
Proof. intros [q0 q1] u0 D0. assert (0 <= u * D) by pos. assert (0 <= (1/20 - q) * (u * D)) by (apply Rmult_le_pos; lra). repeat split; lra. Qed.
Lemma step_3_11 m c (e : nat -> R) : 0 < m < 1 -> 0 <= c -> (forall t, e (S t) <= (1 - m) * e t + c) ->
  (1 - m) * (c / m) + c = c / m /\ forall T, e T <= (1 - m) ^ T * e O + c / m.
Proof.
  intros [m0 m1] c0 h. assert (fix_ : (1 - m) * (c / m) + c = c / m) by (field; lra). split; [exact fix_|].
  assert (f0 : 0 <= c / m) by (unfold Rdiv; apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat; lra).
  induction T; [simpl; lra|]. eapply Rle_trans; [apply h|]. apply (Rmult_le_compat_l (1 - m)) in IHT; [|lra]. simpl. lra.
Qed.
Section Convex.
Context {D : Dim}.
Lemma step_3_1 x y z : 1/4 * nrm2 (z - x) - 1/3 * nrm2 (z - y) <= nrm2 (y - x).
Proof. assert (h := nrm2_add_young 3 (y - x) (z - y) ltac:(lra)). replace (y - x + (z - y))%V with (z - x)%V in h by vring. lra. Qed.
Definition strong mu (F : vec -> R) (G : vec -> vec) : Prop := forall x y, F x + dot (G x) (y - x) + mu / 2 * nrm2 (y - x) <= F y.
Lemma strong_mono mu F G : strong mu F G -> forall x y, mu * nrm2 (x - y) <= dot (G x - G y)%V (x - y).
Proof.
  intros h x y. assert (a := h x y). assert (b := h y x). rewrite (nrm2_subC y x) in a. rewrite (subE (G x) (G y)), dot_addl, dot_scall.
  replace (dot (G x) (y - x)) with (- dot (G x) (x - y)) in a; [lra|]. rewrite <- (Ropp_involutive (dot (G x) (y - x))). f_equal.
  replace (y - x)%V with ((-1) *: (x - y))%V by vring. rewrite dot_scalr. ring.
Qed.
Lemma step_1_1 mu F G wk : 0 < mu -> strong mu F G -> nrm2 (G wk) = 0 ->
  (forall w, mu * nrm2 (w - wk) <= dot (G w) (w - wk) /\ mu * sqrt (nrm2 (w - wk)) <= sqrt (nrm2 (G w))) /\
  ((0 < dim)%nat -> forall B, exists w, B < nrm2 (G w)).
Proof.
  intros m0 h h0.
  assert (z : forall v, dot (G wk) v = 0).
  { intros v. assert (c := cauchy_schwarz (G wk) v). rewrite h0 in c. assert (q := pow2_ge_0 (dot (G wk) v)). assert (e : dot (G wk) v * dot (G wk) v = 0) by lra. nra. }
  assert (a : forall w, mu * nrm2 (w - wk) <= dot (G w) (w - wk)).
  { intros w. assert (k := strong_mono mu F G h w wk). rewrite (subE (G w)), dot_addl, dot_scall, z in k. lra. }
  assert (b : forall w, mu * mu * nrm2 (w - wk) <= nrm2 (G w)).
  { intros w. assert (c := cauchy_schwarz (G w) (w - wk)). assert (n0 := nrm2_ge0 (w - wk)). assert (k := a w). assert (g0 := nrm2_ge0 (G w)).
    destruct (Req_dec (nrm2 (w - wk)) 0) as [e|e]; [rewrite e; lra|].
    assert (0 <= mu * nrm2 (w - wk)) by (apply Rmult_le_pos; lra). apply (Rmult_le_reg_r (nrm2 (w - wk))); [lra|]. nra. }
  split.
  - intros w. split; [apply a|]. replace mu with (sqrt (mu * mu)) by (apply sqrt_square; lra). rewrite <- sqrt_mult; [|nra|apply nrm2_ge0]. apply sqrt_le_1_alt, b.
  - intros d0 B. set (t := (B ^ 2 + 1) / (mu * mu)). assert (mm : 0 < mu * mu) by nra. assert (t0 : 0 < t) by (apply Rdiv_lt_0_compat; nra).
    exists (wk + (1 + t) *: basis 0)%V. eapply Rlt_le_trans; [|apply b]. replace (wk + (1 + t) *: basis 0 - wk)%V with ((1 + t) *: basis 0)%V by vring.
    rewrite nrm2_scal. replace (nrm2 (basis 0)) with 1 by (unfold nrm2; rewrite dot_basis by auto; reflexivity).
    assert (e : mu * mu * t = B ^ 2 + 1) by (unfold t; field; lra). assert (0 <= mu * mu) by lra. assert (q := pow2_ge_0 (B - 1)). nra.
Qed.
(* the subspace is the range of P; wP is the minimiser of F on w0 + range P *)
Lemma step_2_1 mu L F G P w0 wP ws : 0 <= L -> 0 < mu -> gradient F G -> lipschitz L G -> strong mu F G -> proj P ->
  P (G wP) = v0 -> P (wP - w0)%V = (wP - w0)%V -> (forall v, dot (G ws) v = 0) ->
  let v := (w0 + P (ws - w0))%V in let dist2 := nrm2 (v - ws) in
  (forall u, dist2 <= nrm2 (w0 + P u - ws)) /\
  F wP <= F v /\ F v <= F ws + L / 2 * dist2 /\ F ws + mu / 2 * nrm2 (wP - ws) <= F wP /\ mu / 2 * dist2 <= mu / 2 * nrm2 (wP - ws).
Proof.
  intros L0 m0 hg hl hs hp gP rP gs v dist2.
  assert (near : forall u, dist2 <= nrm2 (w0 + P u - ws)).
  { intros u. unfold dist2, v. replace (w0 + P (ws - w0) - ws)%V with ((-1) *: compl P (ws - w0))%V by (unfold compl; vring).
    replace (w0 + P u - ws)%V with ((-1) *: (compl P (ws - w0) + P ((ws - w0) - u)))%V by (rewrite (p_sub P hp (ws - w0) u); unfold compl; vring).
    rewrite !nrm2_scal, (p_pyth P hp). assert (q := nrm2_ge0 (P (ws - w0 - u)%V)). lra. }
  split; [exact near|]. split; [|split; [|split]].
  - assert (k := hs wP v). assert (e : (v - wP)%V = P (ws - w0 - (wP - w0))%V) by (rewrite (p_sub P hp), rP; unfold v; vring).
    assert (z : dot (G wP) (v - wP) = 0) by (rewrite e, <- (p_sym P hp), gP, dot_0l; reflexivity).
    rewrite z in k. assert (0 <= mu / 2 * nrm2 (v - wP)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]). lra.
  - assert (k := smooth F G L L0 hg hl ws (v - ws)%V). replace (ws + (v - ws))%V with v in k by vring. rewrite gs in k. unfold dist2. lra.
  - assert (k := hs ws wP). rewrite gs in k. lra.
  - apply Rmult_le_compat_l; [lra|]. assert (k := near (wP - w0)%V). rewrite rP in k. replace (w0 + (wP - w0) - ws)%V with (wP - ws)%V in k by vring. exact k.
Qed.
Lemma step_3_2 mu L F G x y z : 0 <= L -> 0 < mu <= L -> gradient F G -> lipschitz L G -> strong mu F G ->
  F z - F x + mu / 8 * nrm2 (z - x) - 2/3 * L * nrm2 (z - y) <= dot (G y) (z - x).
Proof.
  intros L0 [m0 mL] hg hl hs. assert (a := smooth F G L L0 hg hl y (z - y)%V). replace (y + (z - y))%V with z in a by vring.
  assert (b := hs y x). assert (c := step_3_1 x y z). rewrite (nrm2_subC x y) in b.
  replace (z - x)%V with ((z - y) + (-1) *: (x - y))%V at 2 by vring. rewrite dot_addr, dot_scalr.
  assert (k := Rmult_le_compat_l (mu / 2) _ _ ltac:(lra) c). assert (0 <= (L - mu) / 6 * nrm2 (z - y)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]). lra.
Qed.
(* a step of 1/L against the gradient of phi = h - <grad h(v), .> *)
Lemma step_3_3 mu L F G w v : 0 < mu <= L -> gradient F G -> lipschitz L G -> strong mu F G ->
  let phi y := F y - dot (G v) y in let g := (G w - G v)%V in
  (forall y, phi v <= phi y) /\ phi (w - / L *: g)%V <= phi w - nrm2 g / (2 * L) /\
  nrm2 (G w - G v) <= 2 * L * (F w - F v - dot (G v) (w - v)).
Proof.
  intros [m0 mL] hg hl hs phi g.
  assert (a : forall y, phi v <= phi y).
  { intros y. unfold phi. assert (k := hs v y). assert (0 <= mu / 2 * nrm2 (y - v)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
    assert (e : dot (G v) (y - v) = dot (G v) y - dot (G v) v) by (rewrite subE, dot_addr, dot_scalr; ring). lra. }
  assert (b : phi (w - / L *: g)%V <= phi w - nrm2 g / (2 * L)).
  { unfold phi. assert (k := smooth F G L ltac:(lra) hg hl w ((- / L) *: g)%V). replace (w - / L *: g)%V with (w + (- / L) *: g)%V by vring.
    rewrite dot_scalr, nrm2_scal in k. rewrite dot_addr, dot_scalr. assert (e : dot (G w) g - dot (G v) g = nrm2 g) by (unfold g, nrm2; rewrite subE, !dot_addl, !dot_scall; ring).
    replace (L / 2 * (- / L * - / L * nrm2 g)) with (nrm2 g / (2 * L)) in k by (field; lra).
    replace (nrm2 g / (2 * L)) with (/ L * nrm2 g / 2) in * by (field; lra). rewrite <- e in *. lra. }
  split; [exact a|]. split; [exact b|]. assert (c := a (w - / L *: g)%V). assert (d := Rle_trans _ _ _ c b).
  fold g. assert (e : nrm2 g / (2 * L) <= F w - F v - dot (G v) (w - v)) by (unfold phi in d; assert (e2 : dot (G v) (w - v) = dot (G v) w - dot (G v) v) by (rewrite (subE w v), dot_addr, dot_scalr; ring); lra).
  apply (Rmult_le_compat_l (2 * L)) in e; [|lra]. replace (2 * L * (nrm2 g / (2 * L))) with (nrm2 g) in e by (field; lra). exact e.
Qed.
(* a short step does not push two points apart *)
Lemma step_3_4 mu L F G eta u v : 0 < mu <= L -> gradient F G -> lipschitz L G -> strong mu F G -> 0 <= eta -> eta * L <= 2 ->
  nrm2 (G u - G v) <= L * dot (G u - G v) (u - v) /\ nrm2 ((u - eta *: G u) - (v - eta *: G v)) <= nrm2 (u - v).
Proof.
  intros mL hg hl hs e0 e2. destruct (step_3_3 mu L F G u v mL hg hl hs) as [_ [_ a]]. destruct (step_3_3 mu L F G v u mL hg hl hs) as [_ [_ b]].
  rewrite (nrm2_subC (G v)) in b. replace (v - u)%V with ((-1) *: (u - v))%V in b by vring. rewrite dot_scalr in b.
  assert (c : nrm2 (G u - G v) <= L * dot (G u - G v) (u - v)) by (rewrite (subE (G u) (G v)), dot_addl, dot_scall in *; lra). split; [exact c|].
  replace ((u - eta *: G u) - (v - eta *: G v))%V with ((u - v) - eta *: (G u - G v))%V by vring. rewrite nrm2_sub, nrm2_scal, dot_scalr, (dotC (u - v)%V).
  set (n := nrm2 (G u - G v)) in *. set (p := dot (G u - G v) (u - v)) in *. assert (n0 : 0 <= n) by apply nrm2_ge0.
  assert (p0 : 0 <= p) by (apply (Rmult_le_reg_l L); lra). assert (k1 := Rmult_le_compat_l (eta * eta) _ _ ltac:(apply Rmult_le_pos; lra) c).
  assert (k2 : eta * L * (eta * p) <= 2 * (eta * p)) by (apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|lra]). lra.
Qed.
(* 3.6: M of N vectors *)
Lemma step_3_6 (N M : nat) (v : nat -> vec) : (1 <= M <= N)%nat -> (2 <= N)%nat ->
  let m := (/ INR N *: vsum N v)%V in let a k := (v k - m)%V in let s := (INR N - INR M) / (INR M * (INR N - 1)) in
  sum N (fun k => sum N (fun l => if Nat.eq_dec k l then 0 else dot (a k) (a l))) = - sum N (fun k => nrm2 (a k)) /\
  / INR M ^ 2 * (INR M / INR N - INR M * (INR M - 1) / (INR N * (INR N - 1))) = s * / INR N /\
  Esets N M (fun A => nrm2 (/ INR M *: pick v A - m)) = s * (/ INR N * sum N (fun k => nrm2 (a k))).
Proof.
  intros hM hN m a s. assert (N0 : 2 <= INR N) by now apply (le_INR 2). assert (M0 : 0 < INR M) by (apply lt_0_INR; lia).
  split; [|split].
  - assert (z : vsum N a = v0).
    { unfold a. rewrite (vsum_ext _ _ (fun i => v i + (-1) *: m)%V) by (intros; vring). rewrite vsum_plus, vsum_const. unfold m. vfield. lra. }
    rewrite (sum_ext N _ (fun k => dot (a k) (vsum N a) + (-1) * nrm2 (a k))).
    + rewrite sum_plus, sum_scal, z, (sum_ext N (fun k => dot (a k) v0) (fun _ => 0)) by (intros; apply dot_0r). rewrite sum_const. ring.
    + intros k hk. rewrite dot_sumr. rewrite <- (sum_delta N k (fun l => nrm2 (a l)) hk), <- sum_scal, <- sum_plus.
      apply sum_ext; intros l hl. destruct (Nat.eq_dec k l), (Nat.eq_dec l k); try lia; subst; unfold nrm2; ring.
  - unfold s. field. repeat split; lra.
  - exact (sampling_variance N M v hM hN).
Qed.
End Convex.
(* ---- the method ---- *)
Section FLSS.
Context {D : Dim}.
Variables N M tau : nat.                   (* clients, clients of a round, local steps *)
Hypothesis M1 : (0 < M)%nat.
Hypothesis MN : (M <= N)%nat.
Hypothesis tau1 : (0 < tau)%nat.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables mu L eta sigma : R.
Variable P : vec -> vec.
Variables w0 wP : vec.
Definition noise := nat -> vec.
Variable ker : vec -> list noise -> law noise.   (* the noise of all clients in a local step, given the model and the steps before *)
(* y_0 = w, y_{j+1} = y_j - eta (g_k(y_j) + xi_j) *)
Fixpoint y (w : vec) (k : nat) (h : list noise) : vec :=
  match h with nil => w | cons z h => (y w k h - eta *: (g k (y w k h) + z k))%V end.
Definition step (w : vec) (p : list nat * list noise) : vec := (w + P (/ INR M *: pick (fun k => y w k (snd p) - w) (fst p)))%V.
Definition round (w : vec) : law (list nat * list noise) := bind (Family.lsets N M MN) (fun _ => path (ker w) tau).
Definition Favg x : R := / INR N * sum N (fun k => F k x).
Definition G x : vec := (/ INR N *: vsum N (fun k => g k x))%V.
Definition s_ : R := (INR N - INR M) / (INR M * (INR N - 1)).
Definition q : R := eta * INR tau * L.
Definition delta w : R := Favg w - Favg wP.
Definition zeta2 : R := / INR N * sum N (fun k => nrm2 (g k wP)).
Hypothesis mu0 : 0 < mu <= L.
Hypothesis grad : forall k, (k < N)%nat -> gradient (F k) (g k).
Hypothesis lip : forall k, (k < N)%nat -> lipschitz L (g k).
Hypothesis convex : forall k, (k < N)%nat -> strong mu (F k) (g k).
Hypothesis Pproj : proj P.
Hypothesis wP_min : P (G wP) = v0.
Hypothesis wP_in : P (wP - w0)%V = (wP - w0)%V.
Hypothesis noise_mean0 : forall w h k u, (k < N)%nat -> ker w h (fun z => dot u (z k)) = 0.
Hypothesis noise_var : forall w h k, (k < N)%nat -> ker w h (fun z => nrm2 (z k)) <= sigma ^ 2.
Hypothesis noise_clients : forall w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker w h (fun z => dot (z i) (z j)) = 0.
Hypothesis eta0 : 0 < eta.
Hypothesis steps : q <= 1/20.
Let N0 : 0 < INR N. Proof. apply lt_0_INR. lia. Qed.
Let M0 : 0 < INR M. Proof. now apply lt_0_INR. Qed.
Let T0 : 0 < INR tau. Proof. now apply lt_0_INR. Qed.
Let T1 : 1 <= INR tau. Proof. apply (le_INR 1). lia. Qed.
Let L0 : 0 < L. Proof. lra. Qed.
Lemma q_gt0 : 0 < q. Proof. unfold q. repeat apply Rmult_lt_0_compat; auto. Qed.
Lemma s_range : 0 <= s_ <= 1.
Proof.
  unfold s_. assert (n1 : 1 <= INR N) by (apply (le_INR 1); lia). assert (m1 : 1 <= INR M) by (apply (le_INR 1); lia).
  assert (mn : INR M <= INR N) by now apply le_INR. destruct (Req_dec (INR N) (INR M)) as [e|e]; [rewrite e; replace (INR M - INR M) with 0 by ring; unfold Rdiv; rewrite Rmult_0_l; lra|].
  assert (d0 : 0 < INR M * (INR N - 1)) by (apply Rmult_lt_0_compat; lra). split.
  - apply Rmult_le_pos; [lra|]. apply Rlt_le, Rinv_0_lt_compat, d0.
  - apply (Rmult_le_reg_r (INR M * (INR N - 1))); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.
(* the lemmas of the family at P = I, no memory *)
Let I_ (_ : unit) (v : vec) : vec := v.
Let one : law unit := dirac tt.
Let c0 (_ : unit) (_ : nat) : vec := v0.
Let kf (s : @Family.state unit) (_ : unit) (h : list noise) : law noise := ker (Family.sx s) h.
Let st w : @Family.state unit := Family.State w tt.
Let I01 : forall w, Family.map01 (I_ w).
Proof. intros w. split; intros; unfold I_; try reflexivity; try apply nrm2_ge0; apply Rle_refl. Qed.
Let kf0 : forall s w h i a, (i < N)%nat -> kf s w h (fun z => dot a (z i)) = 0. Proof. intros. now apply noise_mean0. Qed.
Let kfv : forall s k i, (k < tau)%nat -> (i < N)%nat ->
  one (fun w => path (kf s w) k (fun h => kf s w h (fun z => dot (z i) (I_ w (z i))))) <= 1 * sigma ^ 2.
Proof.
  intros s k i hk hi. rewrite Rmult_1_l. unfold one. cbn [ex dirac]. rewrite <- (ex_const (path (kf s tt) k) (sigma ^ 2)).
  apply ex_le; intros h. apply noise_var; auto.
Qed.
Definition D_ w : R := path (ker w) tau (fun h => / INR N * sum N (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h)).
Let gradn w : R := / INR N * sum N (fun k => nrm2 (g k w)).
(* the path without noise *)
Fixpoint y0 (w : vec) (k j : nat) : vec := match j with O => w | S j => (y0 w k j - eta *: g k (y0 w k j))%V end.
Let eL : 0 <= eta /\ eta * L <= 2.
Proof. split; [lra|]. assert (0 <= eta * L * (INR tau - 1)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). unfold q in steps. lra. Qed.
Lemma nearer k u v : (k < N)%nat -> nrm2 ((u - eta *: g k u) - (v - eta *: g k v)) <= nrm2 (u - v).
Proof. intros hk. destruct eL. now apply (step_3_4 mu L (F k) (g k) eta u v mu0 (grad k hk) (lip k hk) (convex k hk)). Qed.
Lemma y0_far w k j : (k < N)%nat -> nrm2 (y0 w k j - w) <= INR j ^ 2 * (eta ^ 2 * nrm2 (g k w)).
Proof.
  intros hk. induction j as [|j IH]. { cbn [y0]. replace (w - w)%V with v0 by vring. rewrite nrm2_0. simpl. lra. }
  cbn [y0]. rewrite S_INR. set (a := ((y0 w k j - eta *: g k (y0 w k j)) - (w - eta *: g k w))%V).
  replace (y0 w k j - eta *: g k (y0 w k j) - w)%V with (a + (- eta) *: g k w)%V by (unfold a; vring).
  assert (an := nearer k (y0 w k j) w hk). fold a in an. assert (e : nrm2 ((- eta) *: g k w) = eta ^ 2 * nrm2 (g k w)) by (rewrite nrm2_scal; ring). destruct j as [|j'].
  - cbn [y0] in an. replace (w - w)%V with v0 in an by vring. rewrite nrm2_0 in an. assert (n0 := nrm2_ge0 a).
    assert (m := cauchy_schwarz a ((- eta) *: g k w)%V). assert (z0 : nrm2 a = 0) by lra. rewrite z0, Rmult_0_l in m.
    assert (z : dot a ((- eta) *: g k w) = 0) by (assert (d2 := pow2_ge_0 (dot a ((- eta) *: g k w)%V)); nra). rewrite nrm2_add, e, z, z0. simpl INR. lra.
  - set (n := INR (S j')) in *. assert (n0 : 0 < n) by (apply lt_0_INR; lia). assert (i0 := Rinv_0_lt_compat _ n0).
    eapply Rle_trans; [apply (nrm2_add_young (/ n)); exact i0|]. rewrite Rinv_inv, e. set (X := eta ^ 2 * nrm2 (g k w)) in *.
    assert (m := Rmult_le_compat_l (1 + / n) _ _ ltac:(lra) (Rle_trans _ _ _ an IH)). replace ((1 + / n) * (n ^ 2 * X)) with ((n ^ 2 + n) * X) in m by (field; lra). lra.
Qed.
Lemma noise_far w k j : (k < N)%nat -> path (ker w) j (fun h => nrm2 (y w k h - y0 w k j)) <= INR j * (eta ^ 2 * sigma ^ 2).
Proof.
  intros hk. induction j as [|j IH]. { cbn [path ex dirac y y0]. replace (w - w)%V with v0 by vring. rewrite nrm2_0. simpl. lra. }
  rewrite path_S, S_INR. eapply Rle_trans; [apply (ex_le (path (ker w) j) _ (fun h => nrm2 (y w k h - y0 w k j) + eta ^ 2 * sigma ^ 2))|].
  - intros h. cbn [y y0]. set (a := ((y w k h - eta *: g k (y w k h)) - (y0 w k j - eta *: g k (y0 w k j)))%V).
    rewrite (ex_ext (ker w h) _ (fun z => nrm2 a + (-2 * eta * dot a (z k) + eta ^ 2 * nrm2 (z k)))).
    + rewrite !ex_plus, !ex_scal, ex_const, noise_mean0 by auto. assert (an := nearer k (y w k h) (y0 w k j) hk). fold a in an.
      assert (v := Rmult_le_compat_l (eta ^ 2) _ _ (pow2_ge_0 eta) (noise_var w h k hk)). lra.
    + intros z. replace (y w k h - eta *: (g k (y w k h) + z k) - (y0 w k j - eta *: g k (y0 w k j)))%V with (a - eta *: z k)%V by (unfold a; vring).
      rewrite nrm2_sub, nrm2_scal, dot_scalr. ring.
  - rewrite ex_plus, ex_const. lra.
Qed.
(* noise moves the mean by little *)
Lemma mean_far w k j u : (k < N)%nat ->
  - (eta * L * (INR j * nrm2 u + INR j ^ 2 / 2 * (eta ^ 2 * sigma ^ 2))) <= 2 * path (ker w) j (fun h => dot u (y w k h - y0 w k j)) <= eta * L * (INR j * nrm2 u + INR j ^ 2 / 2 * (eta ^ 2 * sigma ^ 2)).
Proof.
  intros hk. assert (L0' := L0). assert (s0 : 0 <= eta ^ 2 * sigma ^ 2) by (assert (a := pow2_ge_0 eta); assert (b := pow2_ge_0 sigma); pos).
  induction j as [|j IH]. { cbn [path ex dirac y y0]. replace (w - w)%V with v0 by vring. rewrite dot_0r. simpl. lra. }
  set (dg h := (g k (y w k h) - g k (y0 w k j))%V).
  assert (e : path (ker w) (S j) (fun h => dot u (y w k h - y0 w k (S j))) = path (ker w) j (fun h => dot u (y w k h - y0 w k j)) - eta * path (ker w) j (fun h => dot u (dg h))).
  { rewrite path_S. replace (path (ker w) j (fun h => dot u (y w k h - y0 w k j)) - eta * path (ker w) j (fun h => dot u (dg h)))
      with (path (ker w) j (fun h => dot u (y w k h - y0 w k j) + - eta * dot u (dg h))) by (rewrite ex_plus, ex_scal; ring).
    apply ex_ext; intros h. cbn [y y0]. rewrite (ex_ext (ker w h) _ (fun z => (dot u (y w k h - y0 w k j) + - eta * dot u (dg h)) + - eta * dot u (z k))).
    - rewrite ex_plus, ex_const, ex_scal, noise_mean0 by auto. ring.
    - intros z. replace (y w k h - eta *: (g k (y w k h) + z k) - (y0 w k j - eta *: g k (y0 w k j)))%V with (((y w k h - y0 w k j) + (- eta) *: dg h) + (- eta) *: z k)%V by (unfold dg; vring).
      rewrite !dot_addr, !dot_scalr. ring. }
  assert (half : forall sg, sg = 1 \/ sg = -1 -> sg * (2 * path (ker w) j (fun h => dot u (dg h))) <= L * (nrm2 u + INR j * (eta ^ 2 * sigma ^ 2))).
  { intros sg hsg. eapply Rle_trans; [|apply (Rmult_le_compat_l L); [lra|]; apply Rplus_le_compat_l, (noise_far w k j hk)].
    replace (sg * (2 * path (ker w) j (fun h => dot u (dg h)))) with (path (ker w) j (fun h => 2 * sg * dot u (dg h))) by (rewrite ex_scal; ring).
    replace (L * (nrm2 u + path (ker w) j (fun h => nrm2 (y w k h - y0 w k j)))) with (path (ker w) j (fun h => L * nrm2 u + L * nrm2 (y w k h - y0 w k j))) by (rewrite ex_plus, !ex_scal, ex_const; ring).
    apply ex_le; intros h. assert (l := lip k hk (y w k h) (y0 w k j)). fold (dg h) in l. assert (n0 := nrm2_ge0 (L *: u - sg *: dg h)). rewrite nrm2_sub, !nrm2_scal, dot_scall, dot_scalr in n0.
    assert (ss : sg * sg = 1) by (destruct hsg; subst; lra). rewrite ss in n0. apply (Rmult_le_reg_l L); [lra|]. lra. }
  rewrite e, S_INR. assert (h1 := half 1 (or_introl eq_refl)). assert (h2 := half (-1) (or_intror eq_refl)). set (X := eta ^ 2 * sigma ^ 2) in *.
  set (pe := path (ker w) j (fun h => dot u (dg h))) in *. set (pp := path (ker w) j (fun h => dot u (y w k h - y0 w k j))) in *.
  apply (Rmult_le_compat_l eta) in h1; [|lra]. apply (Rmult_le_compat_l eta) in h2; [|lra]. assert (x0 : 0 <= eta * L * X) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|auto]).
  replace ((INR j + 1) ^ 2 / 2) with (INR j ^ 2 / 2 + INR j + 1/2) by field. split; lra.
Qed.
Lemma step_3_5 w : (forall k j, (k < N)%nat -> (j <= tau)%nat ->
    nrm2 (y0 w k j - w) <= INR j ^ 2 * (eta ^ 2 * nrm2 (g k w)) /\
    path (ker w) j (fun h => nrm2 (y w k h - y0 w k j)) <= INR j * (eta ^ 2 * sigma ^ 2) /\
    2 * path (ker w) j (fun h => dot (y0 w k j - w) (y w k h - y0 w k j)) <= q * (nrm2 (y0 w k j - w) + INR j / 2 * (eta ^ 2 * sigma ^ 2)) /\
    path (ker w) j (fun h => nrm2 (y w k h - w)) <= (1 + q) * (INR j ^ 2 * (eta ^ 2 * nrm2 (g k w))) + (1 + q / 2) * (INR j * (eta ^ 2 * sigma ^ 2))) /\
  D_ w <= (1 - / INR tau) * (35/100 * INR tau ^ 2 * eta ^ 2 * gradn w + 513/1000 * INR tau * eta ^ 2 * sigma ^ 2).
Proof.
  assert (q0 := q_gt0). assert (L0' := L0). assert (T0' := T0). assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). set (X := eta ^ 2 * sigma ^ 2). assert (X0 : 0 <= X) by (unfold X; pos).
  assert (one_ : forall k j, (k < N)%nat -> (j <= tau)%nat -> nrm2 (y0 w k j - w) <= INR j ^ 2 * (eta ^ 2 * nrm2 (g k w)) /\ path (ker w) j (fun h => nrm2 (y w k h - y0 w k j)) <= INR j * X /\
    2 * path (ker w) j (fun h => dot (y0 w k j - w) (y w k h - y0 w k j)) <= q * (nrm2 (y0 w k j - w) + INR j / 2 * X) /\
    path (ker w) j (fun h => nrm2 (y w k h - w)) <= (1 + q) * (INR j ^ 2 * (eta ^ 2 * nrm2 (g k w))) + (1 + q / 2) * (INR j * X)).
  { intros k j hk hj. assert (a := y0_far w k j hk). assert (b := noise_far w k j hk). fold X in b. destruct (mean_far w k j (y0 w k j - w)%V hk) as [_ c]. fold X in c.
    assert (jq : eta * L * INR j <= q). { assert (jt : INR j <= INR tau) by now apply le_INR. unfold q. assert (0 <= eta * L * (INR tau - INR j)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra]). lra. }
    assert (c2 : eta * L * (INR j * nrm2 (y0 w k j - w) + INR j ^ 2 / 2 * X) <= q * (nrm2 (y0 w k j - w) + INR j / 2 * X)).
    { assert (j0 := pos_INR j). assert (z0 : 0 <= nrm2 (y0 w k j - w) + INR j / 2 * X) by (assert (n0 := nrm2_ge0 (y0 w k j - w)%V); assert (0 <= INR j * X) by pos; lra).
      assert (m := Rmult_le_compat_r _ _ _ z0 jq). lra. }
    split; [exact a|]. split; [exact b|]. split; [lra|].
    rewrite (ex_ext (path (ker w) j) _ (fun h => nrm2 (y0 w k j - w) + (2 * dot (y0 w k j - w) (y w k h - y0 w k j) + nrm2 (y w k h - y0 w k j)))).
    - rewrite !ex_plus, ex_scal, ex_const. assert (m := Rmult_le_compat_l (1 + q) _ _ ltac:(lra) a). lra.
    - intros h. replace (y w k h - w)%V with ((y0 w k j - w) + (y w k h - y0 w k j))%V by vring. rewrite nrm2_add. ring. }
  split; [exact one_|].
  assert (s1 : sum tau INR = 1/2 * (INR tau - 1) * INR tau) by (clear; induction tau; [simpl; field|]; rewrite sum_S, IHn, S_INR; field).
  assert (s3 : sum tau (fun j => INR j ^ 2) <= 1/3 * (INR tau - 1) * INR tau ^ 2).
  { assert (e : sum tau (fun j => INR j ^ 2) = 1/6 * INR tau * (INR tau - 1) * (2 * INR tau - 1)) by (clear; induction tau; [simpl; field|]; rewrite sum_S, IHn, S_INR; field).
    rewrite e. assert (t1 := T1). assert (0 <= INR tau * (INR tau - 1)) by (apply Rmult_le_pos; lra). lra. }
  assert (iT : 0 < / INR tau) by now apply Rinv_0_lt_compat. assert (iT1 : / INR tau <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|exact T1]).
  assert (b : forall k, (k < N)%nat -> / INR tau * path (ker w) tau (psum (fun h (_ : noise) => nrm2 (y w k h - w)))
    <= (1 - / INR tau) * (35/100 * INR tau ^ 2 * eta ^ 2 * nrm2 (g k w) + 513/1000 * INR tau * X)).
  { intros k hk. rewrite path_psum. set (A := eta ^ 2 * nrm2 (g k w)). assert (A0 : 0 <= A) by (unfold A; assert (n0 := nrm2_ge0 (g k w)); pos).
    apply Rle_trans with (/ INR tau * sum tau (fun j => (1 + q) * A * INR j ^ 2 + (1 + q / 2) * X * INR j)).
    - apply Rmult_le_compat_l; [lra|]. apply sum_le; intros j hj. rewrite (ex_ext (path (ker w) j) _ (fun h => nrm2 (y w k h - w))) by (intros; apply ex_const).
      destruct (one_ k j hk ltac:(lia)) as [_ [_ [_ o]]]. fold A in o. lra.
    - rewrite sum_plus, !sum_scal. change (sum tau (fun i => INR i)) with (sum tau INR). rewrite s1.
      assert (qA : 0 <= (1 + q) * A) by (apply Rmult_le_pos; lra). apply (Rmult_le_compat_l _ _ _ qA) in s3.
      apply Rle_trans with (/ INR tau * ((1 + q) * A * (1/3 * (INR tau - 1) * INR tau ^ 2) + (1 + q / 2) * X * (1/2 * (INR tau - 1) * INR tau))); [apply Rmult_le_compat_l; lra|].
      replace (/ INR tau * ((1 + q) * A * (1/3 * (INR tau - 1) * INR tau ^ 2) + (1 + q / 2) * X * (1/2 * (INR tau - 1) * INR tau)))
        with ((1 - / INR tau) * ((1 + q) / 3 * INR tau ^ 2 * A + (1 + q / 2) / 2 * INR tau * X)) by (field; lra).
      apply Rmult_le_compat_l; [lra|]. assert (t2 : 0 <= INR tau ^ 2 * A) by (assert (t := pow2_ge_0 (INR tau)); pos). assert (t1' : 0 <= INR tau * X) by (apply Rmult_le_pos; lra).
      assert (m1 := Rmult_le_compat_r _ _ _ t2 steps). assert (m2 := Rmult_le_compat_r _ _ _ t1' steps). unfold A in *. lra. }
  unfold D_, gradn. rewrite ex_scal, ex_sum.
  replace ((1 - / INR tau) * (35/100 * INR tau ^ 2 * eta ^ 2 * (/ INR N * sum N (fun k => nrm2 (g k w))) + 513/1000 * INR tau * eta ^ 2 * sigma ^ 2))
    with (/ INR N * sum N (fun k => (1 - / INR tau) * 35/100 * INR tau ^ 2 * eta ^ 2 * nrm2 (g k w) + (1 - / INR tau) * 513/1000 * INR tau * X))
    by (unfold X; rewrite sum_plus, sum_scal, sum_const; field; lra).
  apply Rmult_le_compat_l; [now apply Rlt_le, Rinv_0_lt_compat|]. apply sum_le; intros k hk. rewrite ex_scal. specialize (b k hk). unfold Rdiv in *. lra.
Qed.
(* the gradients of a round, and its noise *)
Definition gM w (A : list nat) (h : list noise) : vec := (/ INR M *: pick (fun k => / INR tau *: pvsum (fun h (_ : noise) => g k (y w k h)) h) A)%V.
Definition xM (A : list nat) (h : list noise) : vec := (/ INR M *: pick (fun k => / INR tau *: pvsum (fun _ (z : noise) => z k) h) A)%V.
Definition sub w : Prop := P (w - w0)%V = (w - w0)%V.
Lemma y_sum w k h : (y w k h - w = - eta *: (pvsum (fun h (_ : noise) => g k (y w k h)) h + pvsum (fun _ (z : noise) => z k) h))%V.
Proof. induction h as [|z h IH]; [cbn; vring|]. cbn [y pvsum]. replace (y w k h - eta *: (g k (y w k h) + z k) - w)%V with ((y w k h - w) - eta *: (g k (y w k h) + z k))%V by vring. rewrite IH. vring. Qed.
Lemma stepE w A h : step w (A, h) = (w - (eta * INR tau) *: P (gM w A h + xM A h))%V.
Proof.
  assert (T0' := T0). assert (M0' := M0). unfold step, gM, xM. cbn [fst snd].
  rewrite (Family.pick_ext _ (fun k => (- (eta * INR tau)) *: (/ INR tau *: pvsum (fun h (_ : noise) => g k (y w k h)) h + / INR tau *: pvsum (fun _ (z : noise) => z k) h))%V)
    by (intros k _; rewrite y_sum; vfield; lra).
  rewrite Family.pick_scal, Family.pick_plus. set (a := pick _ A). set (b := pick _ A).
  replace (/ INR M *: (- (eta * INR tau) *: (a + b)))%V with ((- (eta * INR tau)) *: (/ INR M *: a + / INR M *: b))%V by vring. rewrite (p_scal _ Pproj). vring.
Qed.
Lemma sub_step w p : sub w -> sub (step w p).
Proof.
  unfold sub. intros hs. unfold step. set (v := (/ INR M *: _)%V). replace (w + P v - w0)%V with ((w - w0) + P v)%V by vring.
  now rewrite (p_add _ Pproj), hs, (p_idem _ Pproj).
Qed.
Lemma sub_wP w : sub w -> P (w - wP)%V = (w - wP)%V.
Proof. intros hs. replace (w - wP)%V with ((w - w0) - (wP - w0))%V by vring. now rewrite (p_sub _ Pproj), hs, wP_in. Qed.
Lemma wP_orth w : sub w -> dot (G wP) (w - wP) = 0.
Proof. intros hs. rewrite <- (sub_wP w hs), <- (p_sym _ Pproj), wP_min. apply dot_0l. Qed.
Lemma xM_mean0 w A u : (forall i, In i A -> (i < N)%nat) -> path (ker w) tau (fun h => dot u (xM A h)) = 0.
Proof. intros hA. exact (Family.nS_mean0 N M tau kf kf0 (st w) A tt tau u hA). Qed.
Lemma xM_var w A : length A = M -> NoDup A -> (forall i, In i A -> (i < N)%nat) -> path (ker w) tau (fun h => nrm2 (xM A h)) <= sigma ^ 2 / (INR M * INR tau).
Proof.
  intros hl nd hA. assert (b := Family.step_4_2 N M tau M1 tau1 one I_ 1 sigma kf I01 kf0 kfv (fun s _ h => noise_clients (Family.sx s) h) (st w) A hl nd hA).
  unfold Family.EE, one, I_, Family.vv in b. cbn [ex dirac] in b. eapply Rle_trans; [exact b|]. right. assert (T0' := T0). assert (M0' := M0). field. lra.
Qed.
(* the mean over the sampled clients is that over all *)
Lemma sample_mean u (v : nat -> vec) : Family.lsets N M MN (fun A => dot u (/ INR M *: pick v A)) = / INR N * sum N (fun k => dot u (v k)).
Proof.
  rewrite <- (Family.lsets_mean N M MN (fun k => dot u (v k)) M1). apply ex_ext; intros A. now rewrite dot_scalr, Family.dot_pick.
Qed.
Lemma roundE w f : round w f = Family.lsets N M MN (fun A => path (ker w) tau (fun h => f (A, h))). Proof. reflexivity. Qed.
Lemma round_mono w f f' : (forall A h, In A (subsets N M) -> length h = tau -> f (A, h) <= f' (A, h)) -> round w f <= round w f'.
Proof. intros k. apply (Family.lsets_le N M MN); intros A hA. apply path_length; intros h hh. now apply k. Qed.
Lemma round_noise w u : round w (fun p => dot u (xM (fst p) (snd p))) = 0.
Proof.
  rewrite roundE. apply Rle_antisym; rewrite <- (ex_const (Family.lsets N M MN) 0); apply (Family.lsets_le N M MN); intros A hA; cbn [fst snd];
    rewrite xM_mean0; try lra; intros i hi; eapply subsets_below; eauto.
Qed.
Definition gbar w (h : list noise) : vec := (/ INR N *: vsum N (fun k => / INR tau *: pvsum (fun h (_ : noise) => g k (y w k h)) h))%V.
Lemma swap w (f : list nat -> list noise -> R) : round w (fun p => f (fst p) (snd p)) = path (ker w) tau (fun h => Family.lsets N M MN (fun A => f A h)).
Proof. rewrite roundE. cbn [fst snd]. apply (Family.lsets_swap N M MN (path (ker w) tau) f). Qed.
Lemma gbar_mean w u h : Family.lsets N M MN (fun A => dot u (gM w A h)) = dot u (gbar w h).
Proof. unfold gM, gbar. now rewrite sample_mean, dot_scalr, dot_sumr. Qed.
Lemma step_3_0 w : sub w ->
  round w (fun p => dot (w - wP) (xM (fst p) (snd p))) = 0 /\
  round w (fun p => dot (w - wP) (gM w (fst p) (snd p))) = round w (fun p => dot (w - wP) (gbar w (snd p))) /\
  round w (fun p => nrm2 (step w p - wP)) = nrm2 (w - wP) - 2 * eta * INR tau * round w (fun p => dot (w - wP) (gbar w (snd p)))
    + eta ^ 2 * INR tau ^ 2 * round w (fun p => nrm2 (P (gM w (fst p) (snd p) + xM (fst p) (snd p))%V)).
Proof.
  intros hs. split; [apply round_noise|].
  assert (e : round w (fun p => dot (w - wP) (gM w (fst p) (snd p))) = round w (fun p => dot (w - wP) (gbar w (snd p)))).
  { rewrite (swap w (fun A h => dot (w - wP) (gM w A h))), (swap w (fun _ h => dot (w - wP) (gbar w h))). apply ex_ext; intros h. now rewrite gbar_mean, ex_const. }
  split; [exact e|]. rewrite <- e. rewrite (ex_ext (round w) _ (fun p => nrm2 (w - wP) + (- 2 * eta * INR tau * dot (w - wP) (gM w (fst p) (snd p))
    + (- 2 * eta * INR tau * dot (w - wP) (xM (fst p) (snd p)) + eta ^ 2 * INR tau ^ 2 * nrm2 (P (gM w (fst p) (snd p) + xM (fst p) (snd p))%V))))).
  - rewrite !ex_plus, !ex_scal, ex_const, round_noise. ring.
  - intros [A h]. cbn [fst snd]. rewrite stepE. set (v := (gM w A h + xM A h)%V).
    replace (w - (eta * INR tau) *: P v - wP)%V with ((w - wP) - (eta * INR tau) *: P v)%V by vring. rewrite nrm2_sub, nrm2_scal, dot_scalr.
    assert (e0 : dot (w - wP) (P v) = dot (w - wP) (gM w A h) + dot (w - wP) (xM A h)) by (rewrite <- (p_sym _ Pproj), (sub_wP w hs); apply dot_addr).
    rewrite e0. ring.
Qed.
Theorem slope w : sub w -> delta w + mu / 8 * nrm2 (w - wP) - 2/3 * L * D_ w <= round w (fun p => dot (w - wP) (gbar w (snd p))).
Proof.
  intros hs. rewrite roundE. cbn [snd]. rewrite ex_const.
  assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat. assert (iT : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat.
  set (c := delta w + mu / 8 * nrm2 (w - wP)). unfold D_. rewrite <- (ex_const (path (ker w) tau) c).
  assert (go : path (ker w) tau (fun h => c + - (2/3 * L) * (/ INR N * sum N (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h)))
    <= path (ker w) tau (fun h => dot (w - wP) (gbar w h))).
  { apply path_length; intros h hl. unfold gbar. rewrite dot_scalr, dot_sumr.
    replace (c + - (2/3 * L) * (/ INR N * sum N (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h)))
      with (/ INR N * sum N (fun k => (F k w - F k wP + mu / 8 * nrm2 (w - wP)) + - (2/3 * L) * (/ INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h))).
    - apply Rmult_le_compat_l; auto. apply sum_le; intros k hk. rewrite dot_scalr.
      assert (one_ : forall h', INR (length h') * (F k w - F k wP + mu / 8 * nrm2 (w - wP)) + - (2/3 * L) * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h'
        <= dot (w - wP) (pvsum (fun h (_ : noise) => g k (y w k h)) h')).
      { induction h' as [|z h' IH]; [cbn; rewrite dot_0r; lra|]. cbn [pvsum psum]. change (length (z :: h')) with (S (length h')). rewrite S_INR, dot_addr.
        assert (q3 := step_3_2 mu L (F k) (g k) wP (y w k h') w (Rlt_le _ _ L0) mu0 (grad k hk) (lip k hk) (convex k hk)).
        rewrite (nrm2_subC w (y w k h')), (dotC (g k _)) in q3. lra. }
      specialize (one_ h). rewrite hl in one_. apply (Rmult_le_compat_l (/ INR tau)) in one_; auto.
      replace (/ INR tau * (INR tau * (F k w - F k wP + mu / 8 * nrm2 (w - wP)) + - (2/3 * L) * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h))
        with ((F k w - F k wP + mu / 8 * nrm2 (w - wP)) + - (2/3 * L) * (/ INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h)) in one_ by (field; assert (q0 := T0); lra).
      exact one_.
    - rewrite sum_plus, sum_scal. unfold c, delta, Favg. rewrite (sum_ext N (fun k => F k w - F k wP + mu / 8 * nrm2 (w - wP)) (fun k => F k w + ((-1) * F k wP + mu / 8 * nrm2 (w - wP)))) by (intros; ring).
      rewrite !sum_plus, sum_scal, sum_const. change (fun i => F i w) with (fun k => F k w). field. assert (q0 := N0). lra. }
  rewrite ex_plus, ex_scal, !ex_const in go. rewrite ex_const. lra.
Qed.
(* below 3.3 *)
Lemma at_w w : sub w -> 0 <= delta w /\ (forall p, 0 < p -> gradn w <= (1 + p) * (2 * L * delta w) + (1 + / p) * zeta2) /\ nrm2 (P (G w)) <= 2 * L * delta w.
Proof.
  intros hs. assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat. assert (N0' := N0).
  set (br k := F k w - F k wP - dot (g k wP) (w - wP)).
  assert (mb : / INR N * sum N br = delta w).
  { unfold br. rewrite (sum_ext N _ (fun k => F k w + ((-1) * F k wP + (-1) * dot (g k wP) (w - wP)))) by (intros; ring). rewrite !sum_plus, !sum_scal, <- dot_suml.
    assert (o := wP_orth w hs). unfold G in o. rewrite dot_scall in o. unfold delta, Favg. lra. }
  assert (b : forall k, (k < N)%nat -> nrm2 (g k w - g k wP) <= 2 * L * br k).
  { intros k hk. apply (step_3_3 mu L (F k) (g k) w wP mu0 (grad k hk) (lip k hk) (convex k hk)). }
  assert (mean : / INR N * sum N (fun k => nrm2 (g k w - g k wP)) <= 2 * L * delta w).
  { rewrite <- mb. replace (2 * L * (/ INR N * sum N br)) with (/ INR N * sum N (fun k => 2 * L * br k)) by (rewrite sum_scal; ring).
    apply Rmult_le_compat_l; auto. apply sum_le; auto. }
  split; [|split].
  - assert (0 <= / INR N * sum N (fun k => nrm2 (g k w - g k wP))) by (apply Rmult_le_pos; auto; apply sum_ge0; intros; apply nrm2_ge0).
    apply (Rmult_le_reg_l (2 * L)); lra.
  - intros p p0. unfold gradn, zeta2. apply Rle_trans with (/ INR N * sum N (fun k => (1 + p) * nrm2 (g k w - g k wP) + (1 + / p) * nrm2 (g k wP))).
    + apply Rmult_le_compat_l; auto. apply sum_le; intros k _. replace (g k w) with (g k w - g k wP + g k wP)%V at 1 by vring. now apply nrm2_add_young.
    + rewrite sum_plus, !sum_scal. apply (Rmult_le_compat_l (1 + p)) in mean; lra.
  - eapply Rle_trans; [|exact mean]. replace (P (G w)) with (P (G w - G wP))%V by (rewrite (p_sub _ Pproj), wP_min; vring).
    eapply Rle_trans; [apply p_le, Pproj|]. unfold G. rewrite (nrm2_subC (_ *: _)%V). replace (/ INR N *: vsum N (fun k => g k wP) - / INR N *: vsum N (fun k => g k w))%V
      with ((-1) *: (/ INR N *: vsum N (fun k => g k w - g k wP)))%V.
    + rewrite nrm2_scal. assert (q1 := nrm2_mean N (fun k => g k w - g k wP)%V ltac:(lia)). lra.
    + rewrite (vsum_ext N _ (fun k => g k w + (-1) *: g k wP)%V) by (intros; vring). rewrite vsum_plus, vsum_scal. vring.
Qed.
Lemma grows w : sub w -> mu / 2 * nrm2 (w - wP) <= delta w.
Proof.
  intros hs. assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat. assert (N0' := N0). assert (o := wP_orth w hs). unfold G in o. rewrite dot_scall, dot_suml in o.
  assert (k : / INR N * sum N (fun k => F k wP + (dot (g k wP) (w - wP) + mu / 2 * nrm2 (w - wP))) <= Favg w).
  { unfold Favg. apply Rmult_le_compat_l; auto. apply sum_le; intros k hk. assert (c := convex k hk wP w). lra. }
  rewrite !sum_plus, sum_const in k. unfold delta, Favg in *.
  replace (/ INR N * (sum N (fun k => F k wP) + (sum N (fun k => dot (g k wP) (w - wP)) + INR N * (mu / 2 * nrm2 (w - wP)))))
    with (/ INR N * sum N (fun k => F k wP) + / INR N * sum N (fun k => dot (g k wP) (w - wP)) + mu / 2 * nrm2 (w - wP)) in k by (field; lra).
  change (fun i => F i wP) with (fun k => F k wP) in *. lra.
Qed.
(* gradients at w *)
Definition at0 w A : vec := (/ INR M *: pick (fun k => g k w) A)%V.
Lemma at0_var w : Family.lsets N M MN (fun A => nrm2 (at0 w A - G w)) = s_ * (/ INR N * sum N (fun k => nrm2 (g k w - G w))) /\
  Family.lsets N M MN (fun A => dot (P (G w)) (at0 w A - G w)) = 0.
Proof.
  assert (N0' := N0). assert (M0' := M0).
  assert (e : forall A, In A (subsets N M) -> Family.wS N M g c0 (st w) A = (at0 w A - G w)%V).
  { intros A hA. unfold Family.wS, at0. rewrite (Family.pick_ext _ (fun k => g k w + (-1) *: G w)%V).
    - rewrite Family.pick_plus, Family.pick_const, (subsets_length _ _ _ hA). vfield. lra.
    - intros i _. unfold Family.w_. assert (um : Family.meanV N (Family.u g c0 (st w)) = G w).
      { unfold Family.meanV, G. f_equal. apply vsum_ext; intros j _. unfold Family.u, st, c0. cbn [Family.sx]. vring. }
      rewrite um. unfold Family.u, st, c0. cbn [Family.sx]. vring. }
  split.
  - assert (h := Family.wS_var N M tau M1 MN tau1 g c0 (st w)). assert (le : forall f f', (forall A, In A (subsets N M) -> f A = f' A) -> Family.lsets N M MN f = Family.lsets N M MN f').
    { intros f f' k. apply Rle_antisym; apply (Family.lsets_le N M MN); intros A hA; rewrite k; auto; lra. }
    rewrite (le _ (fun A => nrm2 (Family.wS N M g c0 (st w) A))) by (intros A hA; now rewrite e). rewrite h. unfold s_, Family.nu. f_equal.
    unfold Family.V, Family.meanR. f_equal. apply sum_ext; intros i _. f_equal. unfold Family.u, st, c0. cbn [Family.sx].
    assert (um : Family.meanV N (fun i => g i w - v0)%V = G w) by (unfold Family.meanV, G; f_equal; apply vsum_ext; intros j _; vring).
    change (Family.meanV N (fun i : nat => (g i w - v0)%V)) with (Family.meanV N (fun i => g i w - v0)%V) in um. rewrite um. vring.
  - assert (h := Family.wS_mean N M tau M1 MN tau1 g c0 (st w) (P (G w))). rewrite <- h. apply Rle_antisym; apply (Family.lsets_le N M MN); intros A hA; rewrite e; auto; lra.
Qed.
Lemma at0_square w : sub w -> Family.lsets N M MN (fun A => nrm2 (P (at0 w A))) <= 2 * L * delta w + s_ * (4 * L * delta w + 2 * zeta2).
Proof.
  intros hs. destruct (at_w w hs) as [d0 [a1' a2]]. assert (a1 := a1' 1 ltac:(lra)). rewrite Rinv_1 in a1. destruct (at0_var w) as [v1 v2]. destruct s_range as [s0 s1]. assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat. assert (N0' := N0).
  apply Rle_trans with (Family.lsets N M MN (fun A => nrm2 (P (G w)) + (2 * dot (P (G w)) (at0 w A - G w) + nrm2 (at0 w A - G w)))).
  - apply ex_le; intros A. replace (P (at0 w A)) with (P (G w) + P (at0 w A - G w))%V by (rewrite <- (p_add _ Pproj); f_equal; vring).
    rewrite nrm2_add. assert (k := p_le _ Pproj (at0 w A - G w)%V). rewrite (p_dot _ Pproj (G w)), <- (p_sym _ Pproj). lra.
  - rewrite !ex_plus, ex_const, ex_scal, v1, v2.
    assert (var : / INR N * sum N (fun k => nrm2 (g k w - G w)) <= gradn w).
    { unfold gradn. apply Rle_trans with (/ INR N * sum N (fun k => nrm2 (g k w) + ((-2) * dot (g k w) (G w) + nrm2 (G w)))).
      - apply Rmult_le_compat_l; auto. apply sum_le; intros k _. rewrite nrm2_sub. lra.
      - rewrite !sum_plus, sum_scal, sum_const, <- dot_suml. assert (e : / INR N * dot (vsum N (fun k => g k w)) (G w) = nrm2 (G w)) by (rewrite <- dot_scall; reflexivity).
        assert (n := nrm2_ge0 (G w)). replace (/ INR N * (sum N (fun k => nrm2 (g k w)) + (-2 * dot (vsum N (fun k => g k w)) (G w) + INR N * nrm2 (G w))))
          with (/ INR N * sum N (fun k => nrm2 (g k w)) + (-2) * (/ INR N * dot (vsum N (fun k => g k w)) (G w)) + nrm2 (G w)) by (field; lra). rewrite e. lra. }
    assert (k := Rmult_le_compat_l _ _ _ s0 (Rle_trans _ _ _ var a1)). lra.
Qed.
Lemma changes w A h : length A = M -> (forall i, In i A -> (i < N)%nat) -> length h = tau ->
  nrm2 (gM w A h - at0 w A) <= L ^ 2 * (/ INR M * lsum A (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h)).
Proof.
  intros hl hA hh. assert (M0' := M0). assert (T0' := T0). assert (iM : 0 <= / INR M) by now apply Rlt_le, Rinv_0_lt_compat. assert (iT : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat.
  set (a k := (/ INR tau *: pvsum (fun h (_ : noise) => g k (y w k h) - g k w) h)%V).
  assert (e : (gM w A h - at0 w A = / INR M *: pick a A)%V).
  { unfold gM, at0. rewrite (Family.pick_ext a (fun k => / INR tau *: pvsum (fun h (_ : noise) => g k (y w k h)) h + (-1) *: g k w)%V).
    - rewrite Family.pick_plus, (Family.pick_scal (-1)). vring.
    - intros k _. unfold a. assert (q1 : forall h', pvsum (fun h (_ : noise) => g k (y w k h) - g k w)%V h' = (pvsum (fun h (_ : noise) => g k (y w k h)) h' + (- INR (length h')) *: g k w)%V).
      { induction h' as [|z h' IH]; [cbn; vring|]. cbn [pvsum]. change (length (z :: h')) with (S (length h')). rewrite S_INR, IH. vring. }
      rewrite q1, hh. vfield. lra. }
  rewrite e, nrm2_scal. assert (np := Family.nrm2_pick a A). rewrite hl in np. apply (Rmult_le_compat_l (/ INR M * / INR M)) in np; [|pos].
  eapply Rle_trans; [exact np|]. replace (/ INR M * / INR M * (INR M * lsum A (fun i => nrm2 (a i)))) with (/ INR M * lsum A (fun i => nrm2 (a i))) by (field; lra).
  rewrite (Rmult_comm (L ^ 2)), Rmult_assoc. apply Rmult_le_compat_l; auto. rewrite Rmult_comm, <- lsum_scal. apply Family.lsum_le; intros k hk. unfold a.
  rewrite nrm2_scal. assert (np2 : nrm2 (pvsum (fun h (_ : noise) => g k (y w k h) - g k w)%V h) <= INR (length h) * psum (fun h (_ : noise) => nrm2 (g k (y w k h) - g k w)) h)
    by exact (Ssf.nrm2_pvsum 1 1 ltac:(lia) ltac:(lia) (fun h (_ : noise) => g k (y w k h) - g k w)%V h). rewrite hh in np2.
  assert (pl : psum (fun h (_ : noise) => nrm2 (g k (y w k h) - g k w)) h <= L ^ 2 * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h).
  { rewrite <- Family.psum_scal. apply Family.psum_le; intros h' _. assert (q1 := lip k (hA k hk) (y w k h') w). lra. }
  apply (Rmult_le_compat_l (INR tau)) in pl; [|lra]. assert (t := Rle_trans _ _ _ np2 pl). apply (Rmult_le_compat_l (/ INR tau * / INR tau)) in t; [|pos].
  eapply Rle_trans; [exact t|]. right. field. lra.
Qed.
Lemma step_3_7 w : sub w -> (forall A, In A (subsets N M) -> path (ker w) tau (fun h => dot (P (at0 w A)) (P (xM A h))) = 0) /\
  round w (fun p => nrm2 (P (gM w (fst p) (snd p) + xM (fst p) (snd p))%V))
  <= 3/2 * (2 * L * delta w + s_ * (4 * L * delta w + 2 * zeta2)) + 5 * L ^ 2 * D_ w + 3/2 * sigma ^ 2 / (INR M * INR tau).
Proof.
  intros hs. assert (T0' := T0). assert (M0' := M0).
  assert (mz : forall A, In A (subsets N M) -> path (ker w) tau (fun h => dot (P (at0 w A)) (P (xM A h))) = 0).
  { intros A hA. rewrite (ex_ext _ _ (fun h => dot (P (at0 w A)) (xM A h))); [apply xM_mean0; intros i hi; eapply subsets_below; eauto|]. intros h. rewrite (p_sym _ Pproj), (p_idem _ Pproj), <- (p_sym _ Pproj). reflexivity. }
  split; [exact mz|].
  apply Rle_trans with (round w (fun p => 3/2 * nrm2 (P (at0 w (fst p))) + (5 * L ^ 2 * (/ INR M * lsum (fst p) (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) (snd p)))
    + (3/2 * nrm2 (xM (fst p) (snd p)) + 2 * dot (P (at0 w (fst p))) (P (xM (fst p) (snd p))))))).
  - apply round_mono; intros A h hA hh. cbn [fst snd]. assert (bl := fun i => subsets_below N M A i hA). assert (c := changes w A h (subsets_length _ _ _ hA) bl hh).
    set (ch := (gM w A h - at0 w A)%V) in *. replace (gM w A h + xM A h)%V with (at0 w A + (ch + xM A h))%V by (unfold ch; vring). rewrite !(p_add _ Pproj), !nrm2_add, dot_addr.
    assert (k2 := p_le _ Pproj (xM A h)). assert (k4 := p_le _ Pproj ch).
    assert (k1 := nrm2_ge0 (P (at0 w A) - 2 *: P ch)). rewrite nrm2_sub, nrm2_scal, dot_scalr in k1. assert (k3 := nrm2_ge0 (P (xM A h) - 2 *: P ch)). rewrite nrm2_sub, nrm2_scal, dot_scalr, (dotC (P (xM A h))) in k3. lra.
  - rewrite !ex_plus, (ex_scal (round w) (3/2)), (ex_scal (round w) (5 * L ^ 2)), (ex_scal (round w) (3/2)), (ex_scal (round w) 2). assert (a := at0_square w hs).
    assert (e1 : round w (fun p => nrm2 (P (at0 w (fst p)))) = Family.lsets N M MN (fun A => nrm2 (P (at0 w A)))).
    { rewrite roundE. apply ex_ext; intros A. cbn [fst]. apply ex_const. }
    assert (e2 : round w (fun p => / INR M * lsum (fst p) (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) (snd p))) = D_ w).
    { rewrite (swap w (fun A h => / INR M * lsum A (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h))). apply ex_ext; intros h.
      exact (Family.lsets_mean N M MN (fun k => / INR tau * psum (fun h (_ : noise) => nrm2 (y w k h - w)) h) M1). }
    assert (e3 : round w (fun p => nrm2 (xM (fst p) (snd p))) <= sigma ^ 2 / (INR M * INR tau)).
    { rewrite roundE, <- (ex_const (Family.lsets N M MN) (sigma ^ 2 / _)). apply (Family.lsets_le N M MN); intros A hA. cbn [fst snd].
      apply xM_var; [eapply subsets_length; eauto|eapply subsets_nodup; eauto|intros i hi; eapply subsets_below; eauto]. }
    assert (e4 : round w (fun p => dot (P (at0 w (fst p))) (P (xM (fst p) (snd p)))) = 0).
    { rewrite roundE. cbn [fst snd]. apply Rle_antisym; rewrite <- (ex_const (Family.lsets N M MN) 0); apply (Family.lsets_le N M MN); intros A hA; rewrite mz; auto; lra. }
    rewrite e1, e2, e4. unfold Rdiv in *. lra.
Qed.
Let uT : 0 <= 1 - / INR tau <= 1.
Proof. assert (T0' := T0). assert (iT : 0 < / INR tau) by now apply Rinv_0_lt_compat. assert (iT1 : / INR tau <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; [lra|exact T1]). lra. Qed.
Lemma step_3_8 w : sub w -> round w (fun p => nrm2 (step w p - wP)) <= (1 - mu * eta * INR tau / 4) * nrm2 (w - wP)
  + eta * INR tau * delta w * (-2 + 3 * q * (1 + 2 * s_) + (4/3 + 5 * q) * (77/10) * q ^ 2)
  + (1 - / INR tau) * (eta * INR tau * L * (4/3 + 5 * q) * (513/1000 * INR tau * eta ^ 2 * sigma ^ 2 + 385/1000 * INR tau ^ 2 * eta ^ 2 * zeta2))
  + 3 * s_ * eta ^ 2 * INR tau ^ 2 * zeta2 + 3/2 * eta ^ 2 * INR tau * sigma ^ 2 / INR M.
Proof.
  intros hs. assert (T0' := T0). assert (M0' := M0). assert (uT' := uT). destruct (step_3_0 w hs) as [_ [_ sq]]. rewrite sq. clear sq. assert (a := slope w hs). destruct (step_3_7 w hs) as [_ b]. destruct (step_3_5 w) as [_ d]. destruct (at_w w hs) as [d0 [a1' _]]. assert (a1 := a1' 10 ltac:(lra)).
  assert (q0 := q_gt0). assert (x1 := pow2_ge_0 eta). assert (x2 := pow2_ge_0 (INR tau)). assert (c1 : 0 <= 2 * eta * INR tau) by (apply Rmult_le_pos; lra). assert (c2 : 0 <= eta ^ 2 * INR tau ^ 2) by pos.
  apply (Rmult_le_compat_l _ _ _ c1) in a. apply (Rmult_le_compat_l _ _ _ c2) in b.
  assert (d2 : D_ w <= 77/10 * INR tau ^ 2 * eta ^ 2 * (L * delta w) + (1 - / INR tau) * (513/1000 * INR tau * eta ^ 2 * sigma ^ 2 + 385/1000 * INR tau ^ 2 * eta ^ 2 * zeta2)).
  { eapply Rle_trans; [exact d|]. apply (Rmult_le_compat_l (35/100 * INR tau ^ 2 * eta ^ 2)) in a1; [|pos]. apply (Rmult_le_compat_l _ _ _ (proj1 uT')) in a1.
    assert (z : 0 <= / INR tau * (77/10 * INR tau ^ 2 * eta ^ 2 * (L * delta w))) by (assert (l := Rlt_le _ _ L0); assert (i := Rlt_le _ _ (Rinv_0_lt_compat _ T0')); pos). lra. }
  assert (c3 : 0 <= eta * INR tau * L * (4/3 + 5 * q)) by (assert (t := Rlt_le _ _ T0); assert (e := Rlt_le _ _ eta0); assert (l := Rlt_le _ _ L0); apply Rmult_le_pos; [pos|lra]).
  apply (Rmult_le_compat_l _ _ _ c3) in d2.
  replace (eta ^ 2 * INR tau ^ 2 * (3/2 * (2 * L * delta w + s_ * (4 * L * delta w + 2 * zeta2)) + 5 * L ^ 2 * D_ w + 3/2 * sigma ^ 2 / (INR M * INR tau)))
    with (eta * INR tau * delta w * (3 * q * (1 + 2 * s_)) + 3 * s_ * eta ^ 2 * INR tau ^ 2 * zeta2 + eta * INR tau * L * (5 * q) * D_ w + 3/2 * eta ^ 2 * INR tau * sigma ^ 2 / INR M) in b by (unfold q; field; lra).
  set (Y := 513/1000 * INR tau * eta ^ 2 * sigma ^ 2 + 385/1000 * INR tau ^ 2 * eta ^ 2 * zeta2) in *.
  replace (eta * INR tau * L * (4/3 + 5 * q) * (77/10 * INR tau ^ 2 * eta ^ 2 * (L * delta w) + (1 - / INR tau) * Y))
    with ((1 - / INR tau) * (eta * INR tau * L * (4/3 + 5 * q) * Y) + eta * INR tau * delta w * ((4/3 + 5 * q) * (77/10) * q ^ 2)) in d2 by (unfold q; field; lra).
  lra.
Qed.
(* what a round adds *)
Definition c_ : R := 3 * s_ * eta ^ 2 * INR tau ^ 2 * zeta2 + 3/2 * eta ^ 2 * INR tau * sigma ^ 2 / INR M + (1 - / INR tau) * (82/100 * L * eta ^ 3 * INR tau ^ 2 * sigma ^ 2 + 61/100 * L * eta ^ 3 * INR tau ^ 3 * zeta2).
Lemma zeta2_ge0 : 0 <= zeta2. Proof. unfold zeta2. apply Rmult_le_pos; [now apply Rlt_le, Rinv_0_lt_compat|]. apply sum_ge0; intros; apply nrm2_ge0. Qed.
Theorem round_bound w : sub w -> round w (fun p => nrm2 (step w p - wP)) <= (1 - mu * eta * INR tau) * nrm2 (w - wP) + c_.
Proof.
  intros hs. eapply Rle_trans; [apply step_3_8, hs|]. assert (gr := grows w hs). destruct (at_w w hs) as [d0 _]. assert (q0 := q_gt0). assert (z0 := zeta2_ge0). assert (s2 := pow2_ge_0 sigma). assert (uT' := uT).
  assert (t := Rlt_le _ _ T0). assert (e := Rlt_le _ _ eta0). assert (l := Rlt_le _ _ L0).
  assert (k := step_3_9 q s_ (conj q0 steps) s_range). assert (x0 : 0 <= eta * INR tau * delta w) by pos. apply (Rmult_le_compat_l _ _ _ x0) in k.
  assert (et : 0 <= 3/2 * (eta * INR tau)) by (assert (0 <= eta * INR tau) by pos; lra). apply (Rmult_le_compat_l _ _ _ et) in gr.
  assert (Dd : 0 <= 513/1000 * INR tau * eta ^ 2 * sigma ^ 2 + 385/1000 * INR tau ^ 2 * eta ^ 2 * zeta2) by (assert (x1 := pow2_ge_0 eta); assert (x2 := pow2_ge_0 (INR tau)); apply Rplus_le_le_0_compat; pos).
  destruct (step_3_10 q (eta * INR tau * L) _ (conj q0 steps) ltac:(pos) Dd) as [k1 [k2 k3]].
  assert (y1 : 0 <= L * eta ^ 3 * INR tau ^ 2 * sigma ^ 2) by (assert (x3 := pow_le eta 3 e); assert (x2 := pow2_ge_0 (INR tau)); pos).
  assert (y2 : 0 <= L * eta ^ 3 * INR tau ^ 3 * zeta2) by (assert (x3 := pow_le eta 3 e); assert (x4 := pow_le (INR tau) 3 t); pos).
  assert (j1 := Rmult_le_compat_r _ _ _ y1 k2). assert (j2 := Rmult_le_compat_r _ _ _ y2 k3).
  assert (k4 : eta * INR tau * L * (4/3 + 5 * q) * (513/1000 * INR tau * eta ^ 2 * sigma ^ 2 + 385/1000 * INR tau ^ 2 * eta ^ 2 * zeta2) <= 82/100 * L * eta ^ 3 * INR tau ^ 2 * sigma ^ 2 + 61/100 * L * eta ^ 3 * INR tau ^ 3 * zeta2) by lra.
  apply (Rmult_le_compat_l _ _ _ (proj1 uT')) in k4. unfold c_. lra.
Qed.
Lemma contraction : 0 < mu * eta * INR tau < 1.
Proof.
  assert (x : 0 < mu * eta * INR tau) by (repeat apply Rmult_lt_0_compat; try lra; apply T0). split; [lra|].
  assert (y1 : 0 <= (L - mu) * (eta * INR tau)) by (apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|apply Rlt_le, T0]). unfold q in steps. lra.
Qed.
Theorem theorem T : Eit round step T (fun w => nrm2 (w - wP)) w0 <= (1 - mu * eta * INR tau) ^ T * nrm2 (w0 - wP)
  + eta / mu * (3 * s_ * INR tau * zeta2 + 3/2 * sigma ^ 2 / INR M + (1 - / INR tau) * L * eta * INR tau * (82/100 * sigma ^ 2 + 61/100 * INR tau * zeta2)).
Proof.
  set (a := 1 - mu * eta * INR tau). set (fx := c_ / (mu * eta * INR tau)). assert (M0' := M0). assert (T0' := T0).
  assert (ct := contraction). assert (a0 : 0 < a < 1) by (unfold a; lra).
  assert (ff : a * fx + c_ = fx) by (unfold fx, a; field; lra).
  assert (c0' : 0 <= c_).
  { unfold c_. assert (z0 := zeta2_ge0). destruct s_range as [s0 _]. assert (s2 := pow2_ge_0 sigma). assert (e := Rlt_le _ _ eta0). assert (l := Rlt_le _ _ L0). assert (t := Rlt_le _ _ T0).
    assert (x1 := pow2_ge_0 eta). assert (x2 := pow2_ge_0 (INR tau)). assert (x3 := pow_le eta 3 e). assert (x4 := pow_le (INR tau) 3 t). destruct uT as [u0 _].
    assert (iM : 0 <= / INR M) by now apply Rlt_le, Rinv_0_lt_compat. assert (0 <= 82/100 * L * eta ^ 3 * INR tau ^ 2 * sigma ^ 2 + 61/100 * L * eta ^ 3 * INR tau ^ 3 * zeta2) by (apply Rplus_le_le_0_compat; pos).
    unfold Rdiv in *. repeat apply Rplus_le_le_0_compat; pos. }
  assert (all : forall T w, sub w -> Eit round step T (fun w => nrm2 (w - wP)) w <= a ^ T * nrm2 (w - wP) + (1 - a ^ T) * fx).
  { intros T'. induction T' as [|T' IH]; intros w hs; [simpl; lra|]. cbn [Eit].
    eapply Rle_trans; [apply (ex_le (round w) _ (fun p => a ^ T' * nrm2 (step w p - wP) + (1 - a ^ T') * fx)); intros p; apply IH; now apply sub_step|].
    rewrite ex_plus, ex_scal, ex_const. assert (b := round_bound w hs). fold a in b. assert (p0 : 0 <= a ^ T') by (apply pow_le; lra).
    apply (Rmult_le_compat_l _ _ _ p0) in b. change (a ^ S T') with (a * a ^ T'). replace (a ^ T' * (a * nrm2 (w - wP) + c_)) with (a * a ^ T' * nrm2 (w - wP) + a ^ T' * c_) in b by ring.
    assert (z : a ^ T' * c_ = a ^ T' * (fx - a * fx)) by (f_equal; lra). lra. }
  assert (h := all T w0 ltac:(unfold sub; replace (w0 - w0)%V with v0 by vring; apply p_0, Pproj)).
  eapply Rle_trans; [exact h|]. apply Rplus_le_compat_l. apply Rle_trans with fx.
  - assert (0 <= a ^ T) by (apply pow_le; lra). assert (0 <= fx) by (unfold fx, Rdiv; apply Rmult_le_pos; [lra|]; apply Rlt_le, Rinv_0_lt_compat; lra). assert (0 <= a ^ T * fx) by pos. lra.
  - right. unfold fx, c_. field. lra.
Qed.
(* 4.1; ws is the minimiser of F, dist2 the square of its distance from w0 + range P *)
Theorem gap ws : (forall v, dot (G ws) v = 0) -> let dist2 := nrm2 (w0 + P (ws - w0) - ws) in
  mu / 2 * dist2 <= Favg wP - Favg ws <= L / 2 * dist2.
Proof.
  intros gs dist2. assert (N0' := N0). assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat.
  assert (mean : forall (a b : nat -> R), (forall k, (k < N)%nat -> a k <= b k) -> / INR N * sum N a <= / INR N * sum N b) by (intros; apply Rmult_le_compat_l; auto; now apply sum_le).
  assert (dG : forall x v, dot (G x) v = / INR N * sum N (fun k => dot (g k x) v)) by (intros; unfold G; now rewrite dot_scall, dot_suml).
  assert (sc : strong mu Favg G).
  { intros x z. assert (m := mean _ _ (fun k hk => convex k hk x z)). rewrite !sum_plus, sum_const in m. rewrite dG. unfold Favg.
    replace (/ INR N * (sum N (fun k => F k x) + sum N (fun k => dot (g k x) (z - x)) + INR N * (mu / 2 * nrm2 (z - x))))
      with (/ INR N * sum N (fun k => F k x) + / INR N * sum N (fun k => dot (g k x) (z - x)) + mu / 2 * nrm2 (z - x)) in m by (field; lra). exact m. }
  set (v := (w0 + P (ws - w0))%V) in *.
  assert (hv : (v - wP)%V = P (ws - w0 - (wP - w0))%V) by (rewrite (p_sub P Pproj), wP_in; unfold v; vring).
  assert (z : dot (G wP) (v - wP) = 0) by (rewrite hv, <- (p_sym P Pproj), wP_min, dot_0l; reflexivity).
  split.
  - assert (k := sc ws wP). rewrite gs in k. assert (near : dist2 <= nrm2 (wP - ws)).
    { unfold dist2, v. replace (w0 + P (ws - w0) - ws)%V with ((-1) *: compl P (ws - w0))%V by (unfold compl; vring).
      replace (wP - ws)%V with ((-1) *: (compl P (ws - w0) + P ((ws - w0) - (wP - w0))))%V by (rewrite (p_sub P Pproj), wP_in; unfold compl; vring).
      rewrite !nrm2_scal, (p_pyth P Pproj). assert (q0 := nrm2_ge0 (P (ws - w0 - (wP - w0))%V)). lra. }
    assert (0 <= mu / 2 * (nrm2 (wP - ws) - dist2)) by (apply Rmult_le_pos; lra). lra.
  - assert (k1 := sc wP v). rewrite z in k1. assert (0 <= mu / 2 * nrm2 (v - wP)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
    assert (k2 := mean _ _ (fun k hk => smooth (F k) (g k) L (Rlt_le _ _ L0) (grad k hk) (lip k hk) ws (v - ws)%V)). rewrite !sum_plus, sum_const in k2.
    replace (ws + (v - ws))%V with v in k2 by vring. specialize (dG ws (v - ws)%V). rewrite gs in dG. unfold Favg in *. unfold dist2.
    replace (/ INR N * (sum N (fun k => F k ws) + sum N (fun k => dot (g k ws) (v - ws)) + INR N * (L / 2 * nrm2 (v - ws))))
      with (/ INR N * sum N (fun k => F k ws) + / INR N * sum N (fun k => dot (g k ws) (v - ws)) + L / 2 * nrm2 (v - ws)) in k2 by (field; lra). lra.
Qed.
Lemma step_4_1 ws T : (forall v, dot (G ws) v = 0) -> let dist2 := nrm2 (w0 + P (ws - w0) - ws) in
  (forall w, sub w -> Favg w - Favg wP <= L / 2 * nrm2 (w - wP)) /\
  Eit round step T (fun w => Favg w - Favg ws) w0 <= L / 2 * (Eit round step T (fun w => nrm2 (w - wP)) w0 + dist2).
Proof.
  intros gs dist2. assert (N0' := N0). assert (iN : 0 <= / INR N) by now apply Rlt_le, Rinv_0_lt_compat.
  assert (one_ : forall w, sub w -> Favg w - Favg wP <= L / 2 * nrm2 (w - wP)).
  { intros w hs. assert (o := wP_orth w hs). assert (k : Favg w <= / INR N * sum N (fun k => F k wP + dot (g k wP) (w - wP) + L / 2 * nrm2 (w - wP))).
    { unfold Favg. apply Rmult_le_compat_l; auto. apply sum_le; intros k hk. assert (q0 := smooth (F k) (g k) L (Rlt_le _ _ L0) (grad k hk) (lip k hk) wP (w - wP)%V).
      replace (wP + (w - wP))%V with w in q0 by vring. exact q0. }
    rewrite !sum_plus, sum_const, <- dot_suml in k. unfold G in o. rewrite dot_scall in o. unfold Favg in *.
    replace (/ INR N * (sum N (fun k => F k wP) + dot (vsum N (fun k => g k wP)) (w - wP) + INR N * (L / 2 * nrm2 (w - wP))))
      with (/ INR N * sum N (fun k => F k wP) + / INR N * dot (vsum N (fun k => g k wP)) (w - wP) + L / 2 * nrm2 (w - wP)) in k by (field; lra). lra. }
  split; [exact one_|]. assert (g2 := proj2 (gap ws gs)). fold dist2 in g2. cbv zeta in g2. fold dist2 in g2.
  assert (all : forall T w, sub w -> Eit round step T (fun w => Favg w - Favg ws) w <= L / 2 * Eit round step T (fun w => nrm2 (w - wP)) w + L / 2 * dist2).
  { intros T1'. induction T1' as [|T' IH]; intros w hs; cbn [Eit]; [specialize (one_ w hs); lra|].
    rewrite <- ex_scal, <- (ex_const (round w) (L / 2 * dist2)), <- ex_plus. apply ex_le; intros p. apply IH. now apply sub_step. }
  assert (h := all T w0 ltac:(unfold sub; replace (w0 - w0)%V with v0 by vring; apply p_0, Pproj)). lra.
Qed.
End FLSS.
(* 4.2: eta_t = 2 / (mu tau (t + gamma)) *)
Section Decreasing.
Context {D : Dim}.
Variables N M tau : nat.
Hypothesis M1 : (0 < M)%nat.
Hypothesis MN : (M <= N)%nat.
Hypothesis tau1 : (0 < tau)%nat.
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables mu L sigma : R.
Variable P : vec -> vec.
Variables w0 wP : vec.
Variable ker : nat -> vec -> list noise -> law noise.   (* of every round *)
Hypothesis mu0 : 0 < mu <= L.
Hypothesis grad : forall k, (k < N)%nat -> gradient (F k) (g k).
Hypothesis lip : forall k, (k < N)%nat -> lipschitz L (g k).
Hypothesis convex : forall k, (k < N)%nat -> strong mu (F k) (g k).
Hypothesis Pproj : proj P.
Hypothesis wP_min : P (G N g wP) = v0.
Hypothesis wP_in : P (wP - w0)%V = (wP - w0)%V.
Hypothesis noise_mean0 : forall t w h k u, (k < N)%nat -> ker t w h (fun z => dot u (z k)) = 0.
Hypothesis noise_var : forall t w h k, (k < N)%nat -> ker t w h (fun z => nrm2 (z k)) <= sigma ^ 2.
Hypothesis noise_clients : forall t w h i j, (i < N)%nat -> (j < N)%nat -> i <> j -> ker t w h (fun z => dot (z i) (z j)) = 0.
Definition gam : R := 40 * L / mu.
Definition eta_ (t : nat) : R := 2 / (mu * INR tau * (INR t + gam)).
Definition step_t (s : nat * vec) p : nat * vec := (S (fst s), step M g (eta_ (fst s)) P (snd s) p).
Definition round_t (s : nat * vec) : law (list nat * list noise) := round N M tau MN (ker (fst s)) (snd s).
Definition v_ : R := Rmax (gam * nrm2 (w0 - wP))
  (4 / mu ^ 2 * ((3 * s_ N M + 31/1000) * zeta2 N g wP + (3 / (2 * INR M) + 41/1000) * (sigma ^ 2 / INR tau))).
Lemma step_4_2 T : (forall t, eta_ t * INR tau * L <= 1/20) /\
  Eit round_t step_t T (fun s => nrm2 (snd s - wP)) (0%nat, w0) <= v_ / (INR T + gam).
Proof.
  assert (T0 : 0 < INR tau) by now apply lt_0_INR. assert (M0 : 0 < INR M) by now apply lt_0_INR.
  assert (g40 : 40 <= gam). { unfold gam. apply (Rmult_le_reg_r mu); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (gm : gam * mu = 40 * L) by (unfold gam; field; lra).
  assert (et : forall t, 0 < eta_ t /\ eta_ t * INR tau * L <= 1/20).
  { intros t. assert (t0 := pos_INR t). assert (x : 0 < mu * INR tau * (INR t + gam)) by (repeat apply Rmult_lt_0_compat; lra). split; [apply Rdiv_lt_0_compat; lra|].
    unfold eta_. apply (Rmult_le_reg_r (mu * (INR t + gam))); [apply Rmult_lt_0_compat; lra|].
    replace (2 / (mu * INR tau * (INR t + gam)) * INR tau * L * (mu * (INR t + gam))) with (2 * L) by (field; lra).
    assert (0 <= mu * INR t) by (apply Rmult_le_pos; lra). lra. }
  split; [intros t; apply et|].
  assert (z0 := zeta2_ge0 N M tau M1 MN tau1 g wP). assert (sr := s_range N M tau M1 MN tau1). assert (s2 := pow2_ge_0 sigma).
  set (B := 4 / mu ^ 2 * ((3 * s_ N M + 31/1000) * zeta2 N g wP + (3 / (2 * INR M) + 41/1000) * (sigma ^ 2 / INR tau))) in *.
  assert (Bv : B <= v_) by apply Rmax_r. assert (B0 : 0 <= B).
  { unfold B. assert (i1 : 0 < / (2 * INR M)) by (apply Rinv_0_lt_compat; lra). assert (i2 : 0 < / INR tau) by now apply Rinv_0_lt_compat. assert (i3 : 0 < / mu ^ 2) by (apply Rinv_0_lt_compat, pow_lt; lra).
    unfold Rdiv. apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; pos. }
  (* a round at time t *)
  assert (one : forall t w, sub P w0 w -> round_t (t, w) (fun p => nrm2 (snd (step_t (t, w) p) - wP)) <= (1 - 2 / (INR t + gam)) * nrm2 (w - wP) + v_ / (INR t + gam) ^ 2).
  { intros t w hs. destruct (et t) as [e0 e1]. assert (t0 := pos_INR t). assert (rb := round_bound N M tau M1 MN tau1 F g mu L (eta_ t) sigma P w0 wP (ker t) mu0 grad lip convex Pproj wP_min wP_in
      (noise_mean0 t) (noise_var t) (noise_clients t) e0 e1 w hs). eapply Rle_trans; [exact rb|]. clear rb.
    apply Rplus_le_compat.
    - right. f_equal. unfold eta_. field. lra.
    - apply Rle_trans with (B / (INR t + gam) ^ 2).
      + unfold c_. assert (ee : 0 <= eta_ t ^ 2) by apply pow2_ge_0.
        assert (k1 : 82/100 * L * eta_ t ^ 3 * INR tau ^ 2 * sigma ^ 2 <= 41/1000 * (eta_ t ^ 2 * INR tau * sigma ^ 2)).
        { assert (x : 0 <= eta_ t ^ 2 * INR tau * sigma ^ 2) by pos. apply (Rmult_le_compat_l _ _ _ x) in e1. lra. }
        assert (x : 0 <= eta_ t ^ 2 * INR tau ^ 2 * zeta2 N g wP) by (assert (tt := pow2_ge_0 (INR tau)); pos).
        assert (k2 : 61/100 * L * eta_ t ^ 3 * INR tau ^ 3 * zeta2 N g wP <= 31/1000 * (eta_ t ^ 2 * INR tau ^ 2 * zeta2 N g wP)).
        { assert (x' := x). apply (Rmult_le_compat_l _ _ _ x') in e1. lra. }
        set (X1 := 82/100 * L * eta_ t ^ 3 * INR tau ^ 2 * sigma ^ 2) in *. set (X2 := 61/100 * L * eta_ t ^ 3 * INR tau ^ 3 * zeta2 N g wP) in *.
        assert (k3 : (1 - / INR tau) * (X1 + X2) <= 41/1000 * (eta_ t ^ 2 * INR tau * sigma ^ 2) + 31/1000 * (eta_ t ^ 2 * INR tau ^ 2 * zeta2 N g wP)).
        { assert (i0 : 0 <= / INR tau) by now apply Rlt_le, Rinv_0_lt_compat. assert (0 <= X1 + X2) by (unfold X1, X2; assert (e3 : 0 <= eta_ t ^ 3) by (apply pow_le; lra); assert (l := Rlt_le 0 L ltac:(lra)); assert (t2 := pow2_ge_0 (INR tau)); assert (t3 : 0 <= INR tau ^ 3) by (apply pow_le; lra); apply Rplus_le_le_0_compat; pos).
          assert (0 <= / INR tau * (X1 + X2)) by pos. lra. }
        eapply Rle_trans; [apply Rplus_le_compat_l; exact k3|]. right. unfold B, eta_. field. repeat split; lra.
      + unfold Rdiv. apply Rmult_le_compat_r; auto. apply Rlt_le, Rinv_0_lt_compat, pow_lt. lra. }
  (* the outermost law last *)
  assert (Eflip : forall k u s, Eit round_t step_t (S k) u s = Eit round_t step_t k (fun s => round_t s (fun p => u (step_t s p))) s).
  { induction k; intros u s; [reflexivity|]. change (round_t s (fun p => Eit round_t step_t (S k) u (step_t s p)) = Eit round_t step_t (S k) (fun s => round_t s (fun p => u (step_t s p))) s).
    cbn [Eit]. apply ex_ext; intros p. rewrite <- IHk. reflexivity. }
  assert (Einv : forall k j u u' s, fst s = j -> sub P w0 (snd s) -> (forall s, fst s = (j + k)%nat -> sub P w0 (snd s) -> u s <= u' s) -> Eit round_t step_t k u s <= Eit round_t step_t k u' s).
  { induction k; intros j u u' s h1 h2 h3; cbn [Eit]; [apply h3; auto; lia|]. apply ex_le; intros p. apply (IHk (S j)); [unfold step_t; cbn [fst]; now rewrite h1|now apply sub_step|].
    intros s' q1 q2. apply h3; auto. lia. }
  assert (Elin : forall k a b u s, Eit round_t step_t k (fun s => a * u s + b) s = a * Eit round_t step_t k u s + b).
  { induction k; intros a b u s; cbn [Eit]; [reflexivity|]. rewrite (ex_ext (round_t s) _ (fun p => a * Eit round_t step_t k u (step_t s p) + b)) by (intros; apply IHk). rewrite ex_plus, ex_scal, ex_const. reflexivity. }
  assert (s00 : sub P w0 w0) by (unfold sub; replace (w0 - w0)%V with v0 by vring; apply p_0, Pproj).
  assert (v0' : 0 <= v_) by lra.
  induction T as [|t IH].
  - cbn [Eit snd]. simpl INR. rewrite Rplus_0_l. apply (Rmult_le_reg_r gam); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. assert (x := Rmax_l (gam * nrm2 (w0 - wP)) B). change (gam * nrm2 (w0 - wP) <= v_) in x. lra.
  - rewrite Eflip. eapply Rle_trans; [apply (Einv t 0%nat _ (fun s => (1 - 2 / (INR t + gam)) * nrm2 (snd s - wP) + v_ / (INR t + gam) ^ 2) (0%nat, w0) eq_refl s00)|].
    + intros [t' w] h1 h2. cbn [fst snd] in *. simpl in h1. subst t'. now apply one.
    + rewrite (Elin t (1 - 2 / (INR t + gam)) (v_ / (INR t + gam) ^ 2) (fun s => nrm2 (snd s - wP))). assert (t0 := pos_INR t). set (nn := INR t + gam) in *. assert (n40 : 40 <= nn) by (unfold nn; lra).
      assert (c0 : 0 <= 1 - 2 / nn). { assert (2 / nn <= 1); [|lra]. apply (Rmult_le_reg_r nn); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
      apply (Rmult_le_compat_l _ _ _ c0) in IH. rewrite S_INR. replace (INR t + 1 + gam) with (nn + 1) by (unfold nn; ring).
      apply Rle_trans with (v_ * ((nn - 1) / nn ^ 2)).
      * eapply Rle_trans; [apply Rplus_le_compat_r, IH|]. right. field. lra.
      * unfold Rdiv at 2. apply Rmult_le_compat_l; auto. apply (Rmult_le_reg_r (nn ^ 2 * (nn + 1))); [apply Rmult_lt_0_compat; [apply pow_lt|]; lra|].
        replace ((nn - 1) / nn ^ 2 * (nn ^ 2 * (nn + 1))) with (nn ^ 2 - 1) by (field; lra). replace (/ (nn + 1) * (nn ^ 2 * (nn + 1))) with (nn ^ 2) by (field; lra). lra.
Qed.
End Decreasing.
