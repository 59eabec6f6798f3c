(* docs/theory/ssf.md: SSF (SCAFFOLD at rho = 1), all clients. step_2_5 is the page's [ssf.2.5]. *)
From Coq Require Import Reals Lra Lia Psatz List FunctionalExtensionality.
From Fedtheory Require Import Core Noise Descent.
Import ListNotations.
Local Open Scope R_scope.

(* ---- numbers ---- *)
Lemma step_2_6 a e b K : 0 <= a -> (forall k, 0 <= b k) ->
  (forall k, (k < K)%nat -> e k <= a * sum k e + b k) ->
  forall k, (k <= K)%nat -> sum k e <= (1 + a) ^ k * sum k b.
Proof.
  intros a0 b0 h k. induction k; intros hk; simpl. { lra. }
  assert (h1 := IHk ltac:(lia)). assert (h2 := h k ltac:(lia)). specialize (b0 k).
  assert (p1 : 1 <= (1 + a) ^ k) by (apply pow_R1_Rle; lra).
  assert (0 <= (1 + a) * ((1 + a) ^ k * sum k b - sum k e)) by (apply Rmult_le_pos; lra).
  assert (0 <= ((1 + a) ^ k - 1) * b k) by (apply Rmult_le_pos; lra).
  assert (0 <= a * (1 + a) ^ k * b k) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Lemma step_2_7 K : sum K (fun k => 4 * INR k ^ 2) <= 4/3 * INR K ^ 3 /\ sum K (fun k => 2 * INR k) <= INR K ^ 2.
Proof.
  induction K as [|K [IH IH']]; [simpl; lra|]. rewrite S_INR. assert (k0 := pos_INR K). cbn [sum]. split; nra.
Qed.
Lemma exp_25 : exp (1/25) <= 1041/1000.
Proof.
  assert (h3 : exp (1/200) <= 200/199).
  { assert (m := exp_ineq1_le (- (1/200))). assert (p := exp_pos (1/200)).
    assert (e : exp (1/200) * exp (- (1/200)) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ p)) in m. lra. }
  replace (exp (1/25)) with (exp (1/200) ^ 8).
  - assert (p := exp_pos (1/200)). assert (h4 := pow_incr _ _ 8 (conj (Rlt_le _ _ p) h3)). lra.
  - cbn [pow]. rewrite Rmult_1_r, <- !exp_plus. f_equal. lra.
Qed.
Lemma step_2_8 alpha K : 0 <= alpha -> alpha * INR K <= 1/25 ->
  (1 + alpha) ^ K <= exp (alpha * INR K) /\ exp (alpha * INR K) <= exp (1/25) /\ exp (1/25) <= 1041/1000
  /\ 4/3 * (1041/1000) = 1388/1000.
Proof.
  intros a0 h. repeat split; [|destruct h as [h|h]; [left; now apply exp_increasing|rewrite h; lra]|exact exp_25|lra].
  clear h. induction K. { simpl. rewrite Rmult_0_r, exp_0. lra. }
  rewrite S_INR. replace (alpha * (INR K + 1)) with (alpha + alpha * INR K) by ring. rewrite exp_plus. simpl.
  apply Rmult_le_compat; try lra; [apply pow_le; lra|apply exp_ineq1_le].
Qed.
Lemma growth alpha K : 0 <= alpha -> alpha * INR K <= 1/25 -> (1 + alpha) ^ K <= 1041/1000.
Proof. intros a0 h. destruct (step_2_8 alpha K a0 h) as [h1 [h2 [h3 _]]]. lra. Qed.
Lemma last_division rho t T S f q C n1 n2 : 0 < rho -> 0 < t -> 0 < T ->
  9/20 * rho * t * S <= f + 2 * t * q * C + T * (n1 + n2) ->
  / T * S <= 20 * f / (9 * rho * t * T) + 40 * q * C / (9 * rho * T) + 20 / 9 * n1 / (rho * t) + 20 / 9 * n2 / (rho * t).
Proof.
  intros r0 t0 T0 h. assert (c0 : 0 < / (9/20 * rho * t * T)).
  { apply Rinv_0_lt_compat; repeat apply Rmult_lt_0_compat; lra. }
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ c0)) in h.
  replace (/ T * S) with (/ (9/20 * rho * t * T) * (9/20 * rho * t * S)) by (field; lra).
  eapply Rle_trans; [exact h|]. right. field. lra.
Qed.
(* the page, section 5 *)
Lemma section_5 rho t q u h C g D f ef ec v y :
  0 < rho -> 0 < t -> 0 <= q <= 1/100 -> 0 <= u <= 1/8 -> 0 <= h <= 1/4 -> 0 <= C -> 0 <= g -> 0 <= D -> 0 <= v ->
  D <= 1388/1000 * rho * q * (C + g) + 1041/1000 * (q * v) ->
  ef <= f - rho * t / 2 * g + (1 + h) / 2 * t * D + y ->
  ec <= (1 - rho / 2) * C + 3 * v + (3 + 12 * u) * D + 12 * (rho * u) * g + 6 * u * v ->
  ef + 2 * t * q * ec <= f + 2 * t * q * C - 9/20 * rho * t * g + y + 33/4 * t * (q * v).
Proof.
  intros r0 t0 [q0 q1] [u0 u1] [h0 h1] C0 g0 D0 v0 h2 h3 h4.
  assert (qu1 : 0 <= (1/100 - q) * u) by pos.
  set (B := (1 + h) / 2 + 2 * q * (3 + 12 * u)).
  assert (B1 : B <= 715/1000) by (unfold B; lra).
  assert (k1 : 0 <= (715/1000 - B) * (t * D)) by pos.
  assert (k2 : 0 <= t * (1388/1000 * rho * q * (C + g) + 1041/1000 * (q * v) - D)) by pos.
  assert (k3 : 0 <= t * (rho * (q * C))) by pos.
  assert (k5 : 0 <= t * (rho * ((1/100 - q) * g))) by pos.
  assert (k6 : 0 <= t * (rho * ((1/800 - q * u) * g))) by pos.
  assert (k7 : 0 <= t * (rho * g)) by pos.
  assert (k8 : 0 <= t * q * v * (1/8 - u)) by pos.
  assert (k9 : 0 <= t * (q * v)) by pos.
  assert (k10 := Rmult_le_compat_l (2 * t * q) _ _ ltac:(pos) h4).
  unfold B in k1. clear - h3 k1 k2 k3 k5 k6 k7 k8 k9 k10. lra.
Qed.
Theorem step_6_1 rho L T f K eta etag C : 0 < rho <= 1/2 -> 0 < L -> 0 < T -> 0 < K ->
  eta = / (10 * K * L) -> L * (etag * K * eta) = sqrt (rho / 8) ->
  20 * f / (9 * rho * (etag * K * eta) * T) + 40 * (L ^ 2 * K ^ 2 * eta ^ 2) * C / (9 * rho * T)
  = 40 * sqrt 2 / 9 * (L * f / (rho * sqrt rho * T)) + 2 * C / (45 * rho * T) /\ L * (etag * K * eta) <= 1/4.
Proof.
  intros [r0 r1] L0 T0 K0 he ht. assert (s0 : 0 < sqrt rho) by now apply sqrt_lt_R0.
  assert (s2 : 0 < sqrt 2) by (apply sqrt_lt_R0; lra). assert (e2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_def; lra).
  assert (e : sqrt (rho / 8) = sqrt rho * sqrt 2 / 4).
  { rewrite <- sqrt_mult by lra. replace (rho / 8) with (rho * 2 / 16) by field. rewrite sqrt_div_alt by lra.
    replace 16 with (4 * 4) by ring. rewrite sqrt_square; lra. }
  split.
  - set (t := etag * K * eta) in *. assert (et : t = sqrt rho * sqrt 2 / 4 / L) by (rewrite <- e, <- ht; field; lra).
    rewrite et, he. f_equal; [|field; lra].
    apply (Rmult_eq_reg_r (sqrt 2)); [|lra].
    replace (40 * sqrt 2 / 9 * (L * f / (rho * sqrt rho * T)) * sqrt 2)
      with (40 * (sqrt 2 * sqrt 2) / 9 * (L * f / (rho * sqrt rho * T))) by (field; lra).
    rewrite e2. field. lra.
  - rewrite ht. replace (1/4) with (sqrt (1/4 * (1/4))) by (apply sqrt_square; lra). apply sqrt_le_1_alt. lra.
Qed.

Section Lemma3.
Context {D : Dim}.
Lemma smooth_below F G L : 0 <= L -> gradient F G -> lipschitz L G ->
  forall x s, F x + dot (G x) s + - (L / 2) * nrm2 s <= F (x + s)%V.
Proof.
  intros L0 hd hL x s. assert (h := smooth (fun x => - F x) (fun x => (-1) *: G x)%V L L0). cbv beta in h.
  assert (h1 : gradient (fun x => - F x) (fun x => (-1) *: G x)%V).
  { intros y t. cbv beta. rewrite dot_scall. replace (-1 * dot (G y) t) with (- dot (G y) t) by ring.
    apply (derivable_pt_lim_opp (fun u => F (y + u *: t)%V)), hd. }
  assert (h2 : lipschitz L (fun x => (-1) *: G x)%V).
  { intros y z. replace ((-1) *: G y - (-1) *: G z)%V with ((-1) *: (G y - G z))%V by vring.
    rewrite nrm2_scal. specialize (hL y z). lra. }
  specialize (h h1 h2 x s). rewrite dot_scall in h. lra.
Qed.
Theorem step_3_5 F G L : 0 < L -> gradient F G -> lipschitz L G -> forall x u s,
  let a := (G (x + u) - G x)%V in let b := (L *: u - a)%V in
  F (x + s)%V <= F x + dot (G x) s + L / 2 * nrm2 s + - dot b (s - u) + - (/ (4 * L)) * nrm2 b.
Proof.
  intros L0 hd hL x u s a b. set (w := (/ 2 *: (u + / L *: a))%V). assert (L1 := Rlt_le _ _ L0).
  assert (h1 := smooth F G L L1 hd hL (x + u)%V (s - u)%V).
  assert (h2 := smooth F G L L1 hd hL x w).
  assert (h3 := smooth_below F G L L1 hd hL (x + u)%V (w - u)%V).
  replace (x + u + (s - u))%V with (x + s)%V in h1 by vring.
  replace (x + u + (w - u))%V with (x + w)%V in h3 by vring.
  replace (G (x + u)%V) with (G x + a)%V in h1, h3 by (unfold a; vring).
  enough (e : (dot (G x + a) (s - u) + L / 2 * nrm2 (s - u)) + ((dot (G x) w + L / 2 * nrm2 w)
    + ((-1) * dot (G x + a) (w - u) + L / 2 * nrm2 (w - u)))
    = dot (G x) s + (L / 2 * nrm2 s + ((-1) * dot b (s - u) + - (/ (4 * L)) * nrm2 b))) by lra.
  unfold nrm2, dot. rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros j _.
  unfold w, b. vunfold. field. lra.
Qed.
Theorem step_3_9 a u p h t : nrm2 a <= nrm2 u -> 0 <= t <= 1 -> let b := (u - a)%V in
  1/2 * nrm2 a + t * (dot b (u + h *: p) + - (1/4) * nrm2 b) <= 3/2 * nrm2 u + (h * h * nrm2 p + - (2 * h) * dot a p).
Proof.
  intros au [t0 t1] b.
  assert (e : (3/2 * nrm2 u + (h * h * nrm2 p + - (2 * h) * dot a p)) = (1/2 * nrm2 a + (t * dot b (u + h *: p) + t * - (1/4) * nrm2 b))
    + ((1 - t) * nrm2 (a - h *: p) + ((1 - t) * (3/2) * nrm2 u + ((1 - t) * - (3/2) * nrm2 a
    + (t * nrm2 (/ 2 *: (u + a) - h *: p) + (t * (1/2) * nrm2 u + t * - (1/2) * nrm2 a)))))).
  { unfold nrm2, dot. rewrite <- !sum_scal, <- !sum_plus. apply sum_ext; intros j _. unfold b. vunfold. field. }
  assert (k1 : 0 <= (1 - t) * nrm2 (a - h *: p)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
  assert (k2 : 0 <= t * nrm2 (/ 2 *: (u + a) - h *: p)) by (apply Rmult_le_pos; [lra|apply nrm2_ge0]).
  assert (k3 : 0 <= (1 - t) * (nrm2 u - nrm2 a)) by (apply Rmult_le_pos; lra).
  assert (k4 : 0 <= t * (nrm2 u - nrm2 a)) by (apply Rmult_le_pos; lra). lra.
Qed.
End Lemma3.

Section SSF.
Context {D : Dim}.
Variables N K : nat.
Hypothesis N1 : (0 < N)%nat.
Hypothesis K1 : (0 < K)%nat.
(* the draw of the subspace *)
Context {O : Type}.
Variable draw : law O.
Variable P : O -> vec -> vec.
Variable rho : R.
(* losses, gradients, constants, steps *)
Variable F : nat -> vec -> R.
Variable g : nat -> vec -> vec.
Variables L Fstar eta etag sigma : R.

Record state := State { sx : vec; sci : nat -> vec; sc : vec }.
(* the noise of all clients in one local step; its law, given the earlier rounds, the subspace and the earlier steps *)
Definition noise := nat -> vec.
Variable ker : state -> O -> list noise -> law noise.

Definition meanR (f : nat -> R) : R := / INR N * sum N f.
Definition meanV (f : nat -> vec) : vec := (/ INR N *: vsum N f)%V.

(* the local steps: y^0 = x, y^{k+1} = y^k - eta P (g_i(y^k) + noise - c_i + c) *)
Fixpoint loc (s : state) (w : O) (i : nat) (h : list noise) : vec :=
  match h with
  | [] => sx s
  | z :: h => (loc s w i h - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s))%V
  end.
Definition gbar s w i h : vec := (/ INR K *: pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h)%V.
Definition step (s : state) (p : O * list noise) : state := let (w, h) := p in {|
  sx := (sx s + (etag / INR N) *: vsum N (fun i => loc s w i h - sx s))%V;
  sci := fun i => (compl (P w) (sci s i) + P w (gbar s w i h))%V;
  sc := (compl (P w) (sc s) + meanV (fun i => P w (gbar s w i h)))%V |}.
Definition round (s : state) : law (O * list noise) := bind draw (fun w => path (ker s w) K).

Definition Favg x : R := meanR (fun i => F i x).
Definition G x : vec := meanV (fun i => g i x).
Definition Cerr s : R := meanR (fun i => nrm2 (sci s i - g i (sx s))).
Definition etat : R := etag * INR K * eta.
Definition q : R := (INR K * L * eta) ^ 2.
Definition inv s : Prop := sc s = meanV (sci s).

Hypothesis Pproj : forall w, proj (P w).
Hypothesis EP : forall u v, draw (fun w => dot u (P w v)) = rho * dot u v.
Hypothesis rho01 : 0 < rho <= 1.
Hypothesis L0 : 0 <= L.
Hypothesis grad : forall i, (i < N)%nat -> gradient (F i) (g i).
Hypothesis lip : forall i, (i < N)%nat -> lipschitz L (g i).
Hypothesis bounded : forall x, Fstar <= Favg x.
Hypothesis noise_mean0 : forall s w h i u, (i < N)%nat -> ker s w h (fun z => dot u (z i)) = 0.
Hypothesis noise_var : forall s w h i, (i < N)%nat -> ker s w h (fun z => nrm2 (z i)) <= sigma ^ 2.
Hypothesis noise_clients : forall s w h i j, (i < j < N)%nat -> ker s w h (fun z => dot (z i) (z j)) = 0.
Hypothesis eta0 : 0 < eta.
Hypothesis etag0 : 0 < etag.
Hypothesis steps_local : INR K * L * eta <= 1/10.
Hypothesis steps_server : L * etat <= 1/4.
Hypothesis steps_server2 : (L * etat) ^ 2 <= rho / 8.

Let N0 : 0 < INR N. Proof. now apply lt_0_INR. Qed.
Let K0 : 0 < INR K. Proof. now apply lt_0_INR. Qed.
Let iN0 : 0 <= / INR N. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Let iK0 : 0 <= / INR K. Proof. now apply Rlt_le, Rinv_0_lt_compat. Qed.
Lemma etat_gt0 : 0 < etat. Proof. unfold etat. repeat apply Rmult_lt_0_compat; auto. Qed.

(* means *)
Lemma meanR_le f f' : (forall i, (i < N)%nat -> f i <= f' i) -> meanR f <= meanR f'.
Proof. intros h. apply Rmult_le_compat_l; auto. now apply sum_le. Qed.
Lemma meanR_ext f f' : (forall i, (i < N)%nat -> f i = f' i) -> meanR f = meanR f'.
Proof. intros h. unfold meanR. now rewrite (sum_ext _ _ _ h). Qed.
Lemma meanR_plus f f' : meanR (fun i => f i + f' i) = meanR f + meanR f'.
Proof. unfold meanR. rewrite sum_plus. ring. Qed.
Lemma meanR_scal a f : meanR (fun i => a * f i) = a * meanR f.
Proof. unfold meanR. rewrite sum_scal. ring. Qed.
Lemma meanR_const a : meanR (fun _ => a) = a.
Proof. unfold meanR. rewrite sum_const. field. lra. Qed.
Lemma meanR_ge0 f : (forall i, (i < N)%nat -> 0 <= f i) -> 0 <= meanR f.
Proof. intros h. apply Rmult_le_pos; auto. now apply sum_ge0. Qed.
Lemma meanV_ext f f' : (forall i, (i < N)%nat -> f i = f' i) -> meanV f = meanV f'.
Proof. intros h. unfold meanV. now rewrite (vsum_ext _ _ _ h). Qed.
Lemma meanV_plus f f' : meanV (fun i => f i + f' i)%V = (meanV f + meanV f')%V.
Proof. unfold meanV. rewrite vsum_plus. vring. Qed.
Lemma meanV_scal a f : meanV (fun i => a *: f i)%V = (a *: meanV f)%V.
Proof. unfold meanV. rewrite vsum_scal. vring. Qed.
Lemma meanV_sub f f' : meanV (fun i => f i - f' i)%V = (meanV f - meanV f')%V.
Proof. rewrite (meanV_ext _ (fun i => f i + (-1) *: f' i)%V) by (intros; vring). rewrite meanV_plus, meanV_scal. vring. Qed.
Lemma meanV_const v : meanV (fun _ => v) = v.
Proof. unfold meanV. rewrite vsum_const. vfield. lra. Qed.
Lemma meanV_P w f : meanV (fun i => P w (f i)) = P w (meanV f).
Proof. unfold meanV. now rewrite (p_scal _ (Pproj w)), (p_vsum _ (Pproj w)). Qed.
Lemma meanV_dot f v : dot (meanV f) v = meanR (fun i => dot (f i) v).
Proof. unfold meanV, meanR. now rewrite dot_scall, dot_suml. Qed.
Lemma nrm2_meanV f : nrm2 (meanV f) <= meanR (fun i => nrm2 (f i)).
Proof. now apply nrm2_mean. Qed.
Lemma ex_meanR {A} (E : law A) f : E (fun a => meanR (fun i => f i a)) = meanR (fun i => E (f i)).
Proof. unfold meanR. now rewrite ex_scal, ex_sum. Qed.

Lemma roundE s f : round s f = draw (fun w => path (ker s w) K (fun h => f (w, h))).
Proof. reflexivity. Qed.
Lemma round_le s f f' : (forall w h, length h = K -> f (w, h) <= f' (w, h)) -> round s f <= round s f'.
Proof.
  intros H. rewrite !roundE. apply ex_le; intros w. apply path_length. auto.
Qed.

(* 2.3 over the steps so far *)
Lemma nrm2_pvsum (f : list noise -> noise -> vec) h :
  nrm2 (pvsum f h) <= INR (length h) * psum (fun h z => nrm2 (f h z)) h.
Proof.
  induction h as [|z h IH]. { simpl. rewrite nrm2_0. lra. }
  change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl pvsum. simpl psum.
  destruct h as [|z' h].
  - simpl in *. replace (v0 + f [] z)%V with (f [] z) by vring. lra.
  - set (k := INR (length (z' :: h))) in *. assert (k0 : 0 < k) by (apply lt_0_INR; simpl; lia).
    eapply Rle_trans; [apply (nrm2_add_young (/ k)); now apply Rinv_0_lt_compat|].
    replace (/ / k) with k by (field; lra).
    apply (Rmult_le_compat_l (1 + / k)) in IH; [|assert (0 < / k) by (now apply Rinv_0_lt_compat); lra].
    replace ((1 + / k) * (k * psum (fun h z => nrm2 (f h z)) (z' :: h)))
      with ((k + 1) * psum (fun h z => nrm2 (f h z)) (z' :: h)) in IH by (field; lra). lra.
Qed.
Lemma psum_le {Z} (e e' : list Z -> Z -> R) h : (forall h z, e h z <= e' h z) -> psum e h <= psum e' h.
Proof. intros H. induction h; simpl; [lra|]. specialize (H h a). lra. Qed.
Lemma psum_ge0 {Z} (e : list Z -> Z -> R) h : (forall h z, 0 <= e h z) -> 0 <= psum e h.
Proof. intros H. induction h; simpl; [lra|]. specialize (H h a). lra. Qed.
Lemma psum_scal {Z} a (e : list Z -> Z -> R) h : psum (fun h z => a * e h z) h = a * psum e h.
Proof. induction h; simpl; rewrite ?IHh; ring. Qed.

(* 1.1 *)
Lemma step_1_1 s p : inv s -> inv (step s p).
Proof.
  destruct p as [w h]. unfold inv. intros e. cbn [step sx sci sc]. rewrite meanV_plus. f_equal.
  unfold compl. now rewrite meanV_sub, meanV_P, <- e.
Qed.

(* 2.5 *)
Lemma step_2_5 v : draw (fun w => nrm2 (P w v)) = rho * nrm2 v.
Proof. unfold nrm2 at 2. rewrite <- EP. apply ex_ext; intros w. apply p_nrm2, Pproj. Qed.
Lemma step_2_5c v : draw (fun w => nrm2 (compl (P w) v)) = (1 - rho) * nrm2 v.
Proof.
  rewrite (ex_ext _ _ (fun w => nrm2 v + (-1) * nrm2 (P w v))) by (intros w; rewrite p_compl_nrm2 by apply Pproj; ring).
  rewrite ex_plus, ex_scal, ex_const, step_2_5. ring.
Qed.

Section Round.
Variable s : state.
Hypothesis hs : inv s.
Notation x := (sx s).
Definition d i : vec := (g i x - sci s i + sc s)%V.
Definition a w i h : vec := (g i (loc s w i h) - g i x)%V.
Definition e w i h : R := nrm2 (loc s w i h - x).
Definition Sa w i : list noise -> vec := pvsum (fun h (_ : noise) => a w i h).
Definition Se w i : list noise -> R := psum (fun h (_ : noise) => e w i h).
Definition Xi i : list noise -> vec := pvsum (fun _ (z : noise) => z i).
Definition Dw w h : R := meanR (fun i => / INR K * Se w i h).
Definition DD : R := round s (fun p => Dw (fst p) (snd p)).

(* 2.1 *)
Lemma step_2_1 w i h : (loc s w i h - x = - (eta *: P w (Sa w i h + INR (length h) *: d i + Xi i h)))%V.
Proof.
  assert (pw := Pproj w). induction h as [|z h IH].
  - change (x - x = - (eta *: P w (v0 + 0 *: d i + v0)))%V.
    replace (v0 + 0 *: d i + v0)%V with v0 by vring. rewrite (p_0 _ pw). vring.
  - change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl loc.
    change (Sa w i (z :: h)) with (Sa w i h + a w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    replace (loc s w i h - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s) - x)%V
      with ((loc s w i h - x) - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s))%V by vring.
    rewrite IH. replace (Sa w i h + a w i h + (INR (length h) + 1) *: d i + (Xi i h + z i))%V
      with ((Sa w i h + INR (length h) *: d i + Xi i h) + (g i (loc s w i h) + z i - sci s i + sc s))%V
      by (unfold a, d; vring).
    rewrite (p_add _ pw (Sa w i h + INR (length h) *: d i + Xi i h)%V). vring.
Qed.
(* the mean of a client's gradients *)
Lemma gbarE w i h : length h = K -> gbar s w i h = (g i x + / INR K *: (Sa w i h + Xi i h))%V.
Proof.
  intros hk. unfold gbar. assert (E : pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h
    = (INR (length h) *: g i x + (Sa w i h + Xi i h))%V).
  { clear hk. induction h as [|z h IH]. { change (v0 = 0 *: g i x + (v0 + v0))%V. vring. }
    change (length (z :: h)) with (S (length h)). rewrite S_INR. simpl pvsum. rewrite IH.
    change (Sa w i (z :: h)) with (Sa w i h + a w i h)%V. change (Xi i (z :: h)) with (Xi i h + z i)%V.
    unfold a. vring. }
  rewrite E, hk. vfield. lra.
Qed.
Lemma mean_d : meanV d = G x.
Proof. unfold d. rewrite meanV_plus, meanV_sub, meanV_const, hs. fold (G x). vring. Qed.

(* 1.2 *)
Definition bb w h : vec := meanV (fun i => / INR K *: Sa w i h)%V.
Definition nn h : vec := meanV (fun i => / INR K *: Xi i h)%V.
Lemma step_1_2 w h : length h = K -> (sx (step s (w, h)) = x + - etat *: P w (G x + bb w h + nn h))%V.
Proof.
  intros hk. cbn [step sx]. f_equal. assert (pw := Pproj w).
  transitivity (etag *: meanV (fun i => loc s w i h - x)%V)%V. { unfold meanV, Rdiv. vring. }
  rewrite (meanV_ext _ (fun i => (- (INR K * eta)) *: P w (d i + / INR K *: Sa w i h + / INR K *: Xi i h)%V)%V).
  - rewrite meanV_scal, meanV_P, !meanV_plus, mean_d. fold (bb w h) (nn h). unfold etat. vring.
  - intros i _. rewrite step_2_1, hk.
    replace (Sa w i h + INR K *: d i + Xi i h)%V with (INR K *: (d i + / INR K *: Sa w i h + / INR K *: Xi i h))%V
      by (vfield; lra).
    rewrite (p_scal _ pw). vring.
Qed.

Lemma Sa_le w i h : (i < N)%nat -> nrm2 (Sa w i h) <= INR (length h) * (L * L * Se w i h).
Proof.
  intros hi. eapply Rle_trans; [apply nrm2_pvsum|]. apply Rmult_le_compat_l; [apply pos_INR|].
  unfold Se. rewrite <- psum_scal. apply psum_le. intros. now apply lip.
Qed.
Lemma e_ge0 w i h : 0 <= e w i h. Proof. apply nrm2_ge0. Qed.
Lemma Se_ge0 w i h : 0 <= Se w i h. Proof. apply psum_ge0; intros; apply e_ge0. Qed.

(* 2.4 *)
Lemma step_2_4 w i k : (i < N)%nat -> path (ker s w) k (fun h => nrm2 (Xi i h)) <= INR k * sigma ^ 2.
Proof.
  intros hi. apply (noise_sum (ker s w) (fun _ (z : noise) => z i)); intros; [now apply noise_mean0|now apply noise_var].
Qed.

(* the recursion of section 2 *)
Lemma drift_rec w i k : (i < N)%nat -> (k < K)%nat ->
  path (ker s w) k (e w i) <= 4 * eta ^ 2 * L ^ 2 * INR K * sum k (fun j => path (ker s w) j (e w i))
    + (eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + eta ^ 2 * sigma ^ 2 * (2 * INR k)).
Proof.
  intros hi hk. assert (pw := Pproj w).
  assert (kK : INR k <= INR K) by (apply le_INR; lia). assert (k0 := pos_INR k).
  assert (H : path (ker s w) k (e w i) <= path (ker s w) k (fun h => 4 * eta ^ 2 * L ^ 2 * INR K * Se w i h
    + (eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + 2 * eta ^ 2 * nrm2 (Xi i h)))).
  { apply path_length. intros h hl. unfold e. rewrite step_2_1, nrm2_opp, nrm2_scal, hl.
    rewrite !(p_add _ pw), (p_scal _ pw).
    assert (h1 := nrm2_add_le2 (P w (Sa w i h) + INR k *: P w (d i)) (P w (Xi i h))).
    assert (h2 := nrm2_add_le2 (P w (Sa w i h)) (INR k *: P w (d i))). rewrite nrm2_scal in h2.
    assert (h3 := p_le _ pw (Sa w i h)). assert (h4 := p_le _ pw (Xi i h)). assert (h5 := Sa_le w i h hi). rewrite hl in h5.
    assert (S0 := Se_ge0 w i h).
    assert (h6 : INR k * (L * L * Se w i h) <= INR K * (L * L * Se w i h)).
    { apply Rmult_le_compat_r; auto. apply Rmult_le_pos; auto. now apply Rmult_le_pos. }
    assert (h7 : nrm2 (P w (Sa w i h) + INR k *: P w (d i) + P w (Xi i h))
      <= 4 * (INR K * (L * L * Se w i h)) + 4 * (INR k * INR k * nrm2 (P w (d i))) + 2 * nrm2 (Xi i h)) by lra.
    apply (Rmult_le_compat_l (eta * eta)) in h7; [lra|]. apply Rmult_le_pos; lra. }
  eapply Rle_trans; [exact H|]. rewrite !ex_plus, !ex_scal, ex_const. unfold Se at 1. rewrite path_psum.
  rewrite (sum_ext _ _ (fun j => path (ker s w) j (e w i))) by (intros; apply ex_ext; intros; apply ex_const).
  assert (h := step_2_4 w i k hi). apply (Rmult_le_compat_l (2 * eta ^ 2)) in h; [lra|].
  apply Rmult_le_pos; [lra|apply pow2_ge_0].
Qed.

Lemma drift_path w i : (i < N)%nat -> path (ker s w) K (Se w i)
  <= 1388/1000 * eta ^ 2 * INR K ^ 3 * nrm2 (P w (d i)) + 1041/1000 * eta ^ 2 * INR K ^ 2 * sigma ^ 2.
Proof.
  intros hi. unfold Se. rewrite path_psum.
  rewrite (sum_ext _ _ (fun j => path (ker s w) j (e w i))) by (intros; apply ex_ext; intros; apply ex_const).
  assert (e2 := pow2_ge_0 eta). assert (s2 := pow2_ge_0 sigma). assert (n0 := nrm2_ge0 (P w (d i))).
  assert (a0 : 0 <= 4 * eta ^ 2 * L ^ 2 * INR K) by (assert (l2 := pow2_ge_0 L); pos).
  assert (m0 : 0 <= eta ^ 2 * nrm2 (P w (d i))) by pos. assert (m1 : 0 <= eta ^ 2 * sigma ^ 2) by pos.
  assert (h := step_2_6 _ (fun j => path (ker s w) j (e w i)) (fun k => eta ^ 2 * nrm2 (P w (d i)) * (4 * INR k ^ 2) + eta ^ 2 * sigma ^ 2 * (2 * INR k)) K a0).
  specialize (h (fun k => ltac:(assert (k0 := pos_INR k); assert (k2 := pow2_ge_0 (INR k)); apply Rplus_le_le_0_compat; pos))).
  specialize (h (fun k => drift_rec w i k hi) K (Nat.le_refl K)).
  eapply Rle_trans; [exact h|]. rewrite sum_plus, !sum_scal.
  assert (hp : (1 + 4 * eta ^ 2 * L ^ 2 * INR K) ^ K <= 1041/1000).
  { apply growth; auto. replace (4 * eta ^ 2 * L ^ 2 * INR K * INR K) with (4 * (INR K * L * eta) ^ 2) by ring.
    assert (0 <= INR K * L * eta) by pos. nra. }
  destruct (step_2_7 K) as [h7 h8]. rewrite sum_scal in h7, h8.
  apply (Rmult_le_compat_l _ _ _ m0) in h7. apply (Rmult_le_compat_l _ _ _ m1) in h8.
  set (X := eta ^ 2 * nrm2 (P w (d i)) * (4 * sum K (fun k => INR k ^ 2)) + eta ^ 2 * sigma ^ 2 * (2 * sum K INR)) in *.
  assert (Y0 : 0 <= sum K (fun k => INR k ^ 2)) by (apply sum_ge0; intros; apply pow2_ge_0).
  assert (Y1 : 0 <= sum K INR) by (apply sum_ge0; intros; apply pos_INR).
  assert (X0 : 0 <= X) by (unfold X; apply Rplus_le_le_0_compat; pos).
  eapply Rle_trans; [apply Rmult_le_compat_r; [exact X0|exact hp]|]. unfold X. lra.
Qed.

(* 2.9 *)
Lemma step_2_9 : meanR (fun i => nrm2 (d i)) <= Cerr s + nrm2 (G x).
Proof.
  pose (u i := (g i x - sci s i)%V).
  rewrite (meanR_ext _ (fun i => nrm2 (sci s i - g i x) + (2 * dot (u i) (sc s) + nrm2 (sc s)))).
  - rewrite !meanR_plus, meanR_scal, meanR_const, <- meanV_dot. fold (Cerr s).
    assert (gu : G x = (meanV u + sc s)%V) by (unfold u; rewrite meanV_sub, <- hs; fold (G x); vring).
    rewrite gu, nrm2_add. assert (h := nrm2_ge0 (meanV u)). lra.
  - intros i _. unfold d. fold (u i). rewrite nrm2_add, (nrm2_subC (sci s i)). fold (u i). ring.
Qed.

(* the claim of section 2 *)
Lemma claim_2 : L * L * DD <= 1388/1000 * rho * q * (Cerr s + nrm2 (G x)) + 1041/1000 * (q * (sigma ^ 2 / INR K)).
Proof.
  assert (H : DD <= 1388/1000 * eta ^ 2 * INR K ^ 2 * (rho * meanR (fun i => nrm2 (d i))) + 1041/1000 * eta ^ 2 * INR K * sigma ^ 2).
  { unfold DD. change (round s (fun p => Dw (fst p) (snd p))) with (draw (fun w => path (ker s w) K (Dw w))).
    rewrite <- meanR_scal. rewrite <- (meanR_ext _ _ (fun i _ => step_2_5 (d i))), <- ex_meanR, <- ex_scal.
    rewrite <- (ex_const draw (_ * sigma ^ 2)), <- ex_plus. apply ex_le; intros w.
    unfold Dw. rewrite (ex_meanR (path (ker s w) K) (fun i h => / INR K * Se w i h)).
    rewrite <- meanR_scal, <- (meanR_const (_ * sigma ^ 2)), <- meanR_plus. apply meanR_le; intros i hi.
    rewrite ex_scal. assert (h := drift_path w i hi). apply (Rmult_le_compat_l (/ INR K)) in h; auto.
    eapply Rle_trans; [exact h|]. right. field. lra. }
  assert (h9 := step_2_9). assert (l2 : 0 <= L * L) by pos. assert (e2 := pow2_ge_0 eta). assert (k2 := pow2_ge_0 (INR K)).
  apply (Rmult_le_compat_l (L * L * (1388/1000 * eta ^ 2 * INR K ^ 2) * rho)) in h9; [|pos].
  apply (Rmult_le_compat_l (L * L)) in H; auto.
  replace (q * (sigma ^ 2 / INR K)) with (L * L * (eta ^ 2 * INR K * sigma ^ 2)) by (unfold q; field; lra).
  unfold q. lra.
Qed.

(* 3 *)
Lemma Sa_mean_le w i h : (i < N)%nat -> length h = K -> nrm2 (/ INR K *: Sa w i h) <= L * L * (/ INR K * Se w i h).
Proof.
  intros hi hk. rewrite nrm2_scal. assert (b := Sa_le w i h hi). rewrite hk in b.
  apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos].
  eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Lemma bb_le w h : length h = K -> nrm2 (bb w h) <= L * L * Dw w h.
Proof.
  intros hk. eapply Rle_trans; [apply nrm2_meanV|]. unfold Dw. rewrite <- meanR_scal.
  apply meanR_le; intros. now apply Sa_mean_le.
Qed.
Lemma qubF v : Favg (x + v) <= Favg x + dot (G x) v + L / 2 * nrm2 v.
Proof.
  unfold G. rewrite meanV_dot, <- (meanR_const (L / 2 * nrm2 v)). unfold Favg. rewrite <- !meanR_plus.
  apply meanR_le; intros i hi. apply (smooth (F i) (g i) L L0); auto.
Qed.
Lemma nnE h : nn h = ((/ INR N * / INR K) *: pvsum (fun _ (z : noise) => vsum N z) h)%V.
Proof.
  unfold nn. rewrite meanV_scal. unfold meanV.
  replace (vsum N (fun i => Xi i h)) with (pvsum (fun _ (z : noise) => vsum N z) h); [vring|].
  induction h as [|z h IH].
  - change (v0 = vsum N (fun _ => v0)). rewrite vsum_const. vring.
  - simpl. rewrite IH, <- vsum_plus. reflexivity.
Qed.
Lemma all_mean0 w h u : ker s w h (fun z => dot u (vsum N z)) = 0.
Proof.
  rewrite (ex_ext _ _ (fun z => sum N (fun i => dot u (z i)))) by (intros; apply dot_sumr).
  rewrite ex_sum, (sum_ext _ _ (fun _ => 0)) by (intros; now apply noise_mean0). rewrite sum_const. ring.
Qed.
(* 3.2 *)
Lemma step_3_2 w u : path (ker s w) K (fun h => dot (P w u) (P w (nn h))) = 0.
Proof.
  rewrite (ex_ext _ _ (fun h => (/ INR N * / INR K) * dot (P w u) (pvsum (fun _ (z : noise) => vsum N z) h))).
  - rewrite ex_scal, (noise_mean (ker s w)); [ring|]. intros. apply all_mean0.
  - intros h. rewrite <- (p_sym _ (Pproj w)), (p_idem _ (Pproj w)), nnE. apply dot_scalr.
Qed.
(* 3.4 *)
Lemma step_3_4 w : path (ker s w) K (fun h => nrm2 (nn h)) <= sigma ^ 2 / (INR N * INR K).
Proof.
  rewrite (ex_ext _ _ (fun h => (/ INR N * / INR K) * (/ INR N * / INR K) * nrm2 (pvsum (fun _ (z : noise) => vsum N z) h)))
    by (intros; rewrite nnE; apply nrm2_scal).
  rewrite ex_scal. assert (b := noise_sum (ker s w) (fun _ (z : noise) => vsum N z) (all_mean0 w) K (INR N * sigma ^ 2)).
  assert (c : 0 <= / INR N * / INR K * (/ INR N * / INR K)) by pos.
  eapply Rle_trans; [apply Rmult_le_compat_l; [exact c|apply b]|right; field; lra].
  intros h. change (fun z => nrm2 (vsum N z)) with (fun z : noise => nrm2 (vsum N (fun i => (fun i (z : noise) => z i) i z))).
  rewrite uncorrelated by (intros; now apply noise_clients).
  rewrite <- sum_const. apply sum_le; intros. now apply noise_var.
Qed.

(* 3.3 *)
Lemma step_3_3 w h : length h = K -> Favg (sx (step s (w, h))) <= Favg x + (- (etat / 2) * nrm2 (P w (G x))
  + ((1 + L * etat) / 2 * etat * (L * L) * Dw w h + (L * etat * etat * nrm2 (nn h)
  + (L * etat * etat - etat) * dot (P w (G x)) (P w (nn h))))).
Proof.
  intros hk. rewrite (step_1_2 w h hk). eapply Rle_trans; [apply qubF|].
  assert (pw := Pproj w). rewrite dot_scalr, nrm2_scal, <- (p_dot _ pw), !(p_add _ pw), !dot_addr, !nrm2_add, dot_addl.
  fold (nrm2 (P w (G x))).
  assert (hB := Rle_trans _ _ _ (p_le _ pw (bb w h)) (bb_le w h hk)). assert (hn := p_le _ pw (nn h)).
  assert (h1 := nrm2_ge0 (P w (G x) + P w (bb w h))). rewrite nrm2_add in h1.
  assert (h2 := nrm2_ge0 (P w (bb w h) - P w (nn h))). rewrite nrm2_sub in h2.
  assert (t0 := Rlt_le _ _ etat_gt0). assert (lt0 : 0 <= L * etat) by pos.
  assert (st := steps_server). clear hk. set (t := etat) in *. set (Z := L * L * Dw w h) in *.
  replace ((1 + L * t) / 2 * t * (L * L) * Dw w h) with ((1 + L * t) / 2 * t * Z) by (unfold Z; ring).
  set (A := nrm2 (P w (G x))) in *. set (B := nrm2 (P w (bb w h))) in *. set (M := nrm2 (P w (nn h))) in *.
  assert (k1 : 0 <= (1 - L * t) * (t * (A + 2 * dot (P w (G x)) (P w (bb w h)) + B))) by pos.
  assert (k2 : 0 <= L * t * (t * (B - 2 * dot (P w (bb w h)) (P w (nn h)) + M))) by pos.
  assert (k3 : 0 <= t * (Z - B)) by pos.
  assert (k4 : 0 <= L * t * (t * (Z - B))) by pos.
  assert (k5 : 0 <= L * t * (t * (nrm2 (nn h) - M))) by pos.
  clear - k1 k2 k3 k4 k5. lra.
Qed.

(* a bound that holds for every path, in the mean *)
Lemma round_P u : round s (fun p => nrm2 (P (fst p) u)) = rho * nrm2 u.
Proof. rewrite roundE, <- step_2_5. apply ex_ext; intros w. exact (ex_const _ (nrm2 (P w u))). Qed.
Lemma round_Pc u : round s (fun p => nrm2 (compl (P (fst p)) u)) = (1 - rho) * nrm2 u.
Proof. rewrite roundE, <- step_2_5c. apply ex_ext; intros w. exact (ex_const _ (nrm2 (compl (P w) u))). Qed.
Lemma round_nn : round s (fun p => nrm2 (nn (snd p))) <= sigma ^ 2 / (INR N * INR K).
Proof. rewrite roundE, <- (ex_const draw (_ / _)). apply ex_le; intros w. exact (step_3_4 w). Qed.
Lemma round_cross u : round s (fun p => dot (P (fst p) u) (P (fst p) (nn (snd p)))) = 0.
Proof. rewrite roundE, <- (ex_const draw 0). apply ex_ext; intros w. exact (step_3_2 w u). Qed.

(* the claim of section 3 *)
Lemma claim_3 : round s (fun p => Favg (sx (step s p))) <= Favg x - rho * etat / 2 * nrm2 (G x)
  + (1 + L * etat) / 2 * etat * (L * L * DD) + L * etat * etat * (sigma ^ 2 / (INR N * INR K)).
Proof.
  eapply Rle_trans; [apply (round_le s _ (fun p => Favg x + (- (etat / 2) * nrm2 (P (fst p) (G x))
  + ((1 + L * etat) / 2 * etat * (L * L) * Dw (fst p) (snd p) + (L * etat * etat * nrm2 (nn (snd p))
  + (L * etat * etat - etat) * dot (P (fst p) (G x)) (P (fst p) (nn (snd p)))))))); exact step_3_3|].
  rewrite !ex_plus, !ex_scal, ex_const, round_P, round_cross. fold DD.
  assert (b := round_nn). assert (t0 := Rlt_le _ _ etat_gt0).
  apply (Rmult_le_compat_l (L * etat * etat)) in b; [lra|pos].
Qed.

(* 4 *)
Lemma step_4_4 w h : length h = K -> nrm2 (sx (step s (w, h)) - x)
  <= etat * etat * (4 * nrm2 (P w (G x)) + 4 * (L * L * Dw w h) + 2 * nrm2 (nn h)).
Proof.
  intros hk. rewrite (step_1_2 w h hk). assert (pw := Pproj w).
  replace (x + - etat *: P w (G x + bb w h + nn h) - x)%V with (- etat *: P w (G x + bb w h + nn h))%V by vring.
  rewrite nrm2_scal, !(p_add _ pw). replace (- etat * - etat) with (etat * etat) by ring.
  assert (t0 := Rlt_le _ _ etat_gt0). apply Rmult_le_compat_l; [pos|].
  assert (h1 := nrm2_add_le2 (P w (G x) + P w (bb w h)) (P w (nn h))).
  assert (h2 := nrm2_add_le2 (P w (G x)) (P w (bb w h))).
  assert (hB := Rle_trans _ _ _ (p_le _ pw (bb w h)) (bb_le w h hk)). assert (hn := p_le _ pw (nn h)). lra.
Qed.
Lemma memory_path w h : length h = K -> Cerr (step s (w, h)) <=
  (1 + rho / 2) * meanR (fun i => nrm2 (compl (P w) (sci s i - g i x)))
  + ((1 + rho / 2) * 2 * (L * L) * Dw w h + ((1 + rho / 2) * 2 * meanR (fun i => nrm2 (/ INR K *: Xi i h))
  + (1 + 2 / rho) * (L * L) * nrm2 (sx (step s (w, h)) - x))).
Proof.
  intros hk. assert (pw := Pproj w). set (x' := sx (step s (w, h))).
  rewrite <- (meanR_const ((1 + 2 / rho) * (L * L) * nrm2 (x' - x))).
  replace ((1 + rho / 2) * 2 * (L * L) * Dw w h) with ((1 + rho / 2) * 2 * (L * L) * meanR (fun i => / INR K * Se w i h)) by reflexivity.
  rewrite <- !meanR_scal, <- !meanR_plus. apply meanR_le; intros i hi. fold x'.
  set (m := (/ INR K *: (Sa w i h + Xi i h))%V).
  replace (sci (step s (w, h)) i - g i x')%V with ((compl (P w) (sci s i - g i x) + P w m) + (g i x - g i x'))%V.
  2: { cbn [step sci]. rewrite (gbarE w i h hk). fold m. unfold compl. rewrite (p_add _ pw), !(p_sub _ pw). vring. }
  eapply Rle_trans; [apply (nrm2_add_young (rho / 2)); lra|]. rewrite (p_pyth _ pw).
  replace (/ (rho / 2)) with (2 / rho) by (field; lra).
  assert (r1 : 0 <= 2 / rho) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (h1 := lip i hi x x'). rewrite (nrm2_subC x x') in h1.
  assert (h2 := p_le _ pw m).
  assert (h3 : nrm2 m <= 2 * nrm2 (/ INR K *: Sa w i h) + 2 * nrm2 (/ INR K *: Xi i h)).
  { replace m with (/ INR K *: Sa w i h + / INR K *: Xi i h)%V by (unfold m; vring). apply nrm2_add_le2. }
  assert (h4 := Sa_mean_le w i h hi hk).
  apply (Rmult_le_compat_l (1 + 2 / rho)) in h1; [|lra].
  assert (h5 : nrm2 (P w m) <= 2 * (L * L * (/ INR K * Se w i h)) + 2 * nrm2 (/ INR K *: Xi i h)) by lra.
  apply (Rmult_le_compat_l (1 + rho / 2)) in h5; [|lra]. clear - h1 h5. lra.
Qed.

Lemma round_Xi : round s (fun p => meanR (fun i => nrm2 (/ INR K *: Xi i (snd p)))) <= sigma ^ 2 / INR K.
Proof.
  rewrite roundE, <- (ex_const draw (_ / _)). apply ex_le; intros w.
  rewrite (ex_meanR (path (ker s w) K) (fun i h => nrm2 (/ INR K *: Xi i h))).
  rewrite <- (meanR_const (_ / _)). apply meanR_le; intros i hi.
  rewrite (ex_ext _ _ (fun h => / INR K * / INR K * nrm2 (Xi i h))) by (intros; apply nrm2_scal).
  rewrite ex_scal. assert (b := step_2_4 w i K hi). apply (Rmult_le_compat_l (/ INR K * / INR K)) in b; [|pos].
  eapply Rle_trans; [exact b|]. right. field. lra.
Qed.
Lemma DD_ge0 : 0 <= DD.
Proof.
  rewrite <- (ex_const (round s) 0). apply round_le; intros w h _. apply meanR_ge0; intros i _.
  apply Rmult_le_pos; auto. apply Se_ge0.
Qed.
Lemma Cerr_ge0 s' : 0 <= Cerr s'.
Proof. apply meanR_ge0; intros; apply nrm2_ge0. Qed.

(* the claim of section 4 *)
Lemma claim_4 : round s (fun p => Cerr (step s p)) <= (1 - rho / 2) * Cerr s + 3 * (sigma ^ 2 / INR K)
  + (3 + 12 * ((L * etat) ^ 2 / rho)) * (L * L * DD) + 12 * (L * etat) ^ 2 * nrm2 (G x)
  + 6 * ((L * etat) ^ 2 / rho) * (sigma ^ 2 / (INR N * INR K)).
Proof.
  assert (hm : round s (fun p => nrm2 (sx (step s p) - x)) <= etat * etat * (4 * (rho * nrm2 (G x)) + 4 * (L * L * DD) + 2 * (sigma ^ 2 / (INR N * INR K)))).
  { eapply Rle_trans; [apply (round_le s _ (fun p => etat * etat * 4 * nrm2 (P (fst p) (G x)) + (etat * etat * 4 * (L * L) * Dw (fst p) (snd p) + etat * etat * 2 * nrm2 (nn (snd p)))))|].
    - intros w h hk. eapply Rle_trans; [apply (step_4_4 w h hk)|]. simpl. lra.
    - rewrite !ex_plus, !ex_scal, round_P. fold DD. assert (b := round_nn).
      assert (t0 := Rlt_le _ _ etat_gt0). apply (Rmult_le_compat_l (etat * etat * 2)) in b; [lra|pos]. }
  eapply Rle_trans; [apply (round_le s _ (fun p => (1 + rho / 2) * meanR (fun i => nrm2 (compl (P (fst p)) (sci s i - g i x)))
    + ((1 + rho / 2) * 2 * (L * L) * Dw (fst p) (snd p) + ((1 + rho / 2) * 2 * meanR (fun i => nrm2 (/ INR K *: Xi i (snd p)))
    + (1 + 2 / rho) * (L * L) * nrm2 (sx (step s p) - x))))); exact memory_path|].
  rewrite !ex_plus, !ex_scal. fold DD.
  rewrite (ex_meanR (round s) (fun i p => nrm2 (compl (P (fst p)) (sci s i - g i x)))).
  rewrite (meanR_ext _ (fun i => (1 - rho) * nrm2 (sci s i - g i x))) by (intros; apply round_Pc).
  rewrite meanR_scal. fold (Cerr s).
  assert (hx := round_Xi). assert (D0 := DD_ge0). assert (C0 := Cerr_ge0 s). assert (G0 := nrm2_ge0 (G x)).
  set (i := / rho). assert (ri : rho * i = 1) by (unfold i; field; lra).
  assert (i1 : 1 <= i) by (unfold i; rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (v0 : 0 <= sigma ^ 2 / INR K) by (apply Rmult_le_pos; [apply pow2_ge_0|auto]).
  set (v' := sigma ^ 2 / (INR N * INR K)) in *.
  assert (v'0 : 0 <= v') by (unfold v', Rdiv; replace (/ (INR N * INR K)) with (/ INR N * / INR K) by (field; lra); apply Rmult_le_pos; [apply pow2_ge_0|pos]).
  replace (2 / rho) with (2 * i) by (unfold i; field; lra).
  replace ((L * etat) ^ 2 / rho) with (L * L * (etat * etat) * i) by (unfold i; field; lra).
  set (E := round s (fun p => nrm2 (sx (step s p) - x))) in *. set (Dh := L * L * DD) in *.
  assert (Dh0 : 0 <= Dh) by (unfold Dh; pos).
  replace ((1 + rho / 2) * 2 * (L * L) * DD) with ((1 + rho / 2) * 2 * Dh) by (unfold Dh; ring).
  assert (H : 0 <= L * L * (etat * etat)) by (assert (t0 := Rlt_le _ _ etat_gt0); pos).
  apply (Rmult_le_compat_l ((1 + 2 * i) * (L * L))) in hm; [|pos].
  replace ((1 + 2 * i) * (L * L) * (etat * etat * (4 * (rho * nrm2 (G x)) + 4 * Dh + 2 * v')))
    with (L * L * (etat * etat) * ((4 * rho + 8 * (rho * i)) * nrm2 (G x) + (1 + 2 * i) * (4 * Dh + 2 * v'))) in hm by ring.
  rewrite ri in hm. set (X := L * L * (etat * etat)) in *.
  assert (k1 : 0 <= rho * rho * Cerr s) by pos.
  assert (k2 : 0 <= (1 - rho) * Dh) by pos.
  assert (k3 : 0 <= X * ((1 - rho) * nrm2 (G x))) by pos.
  assert (k4 : 0 <= X * ((i - 1) * (4 * Dh + 2 * v'))) by pos.
  apply (Rmult_le_compat_l ((1 + rho / 2) * 2)) in hx; [|lra].
  assert (k5 : 0 <= (1 - rho) * (sigma ^ 2 / INR K)) by pos.
  replace ((L * etat) ^ 2) with X by (unfold X; ring).
  clear - hm k1 k2 k3 k4 k5 hx. lra.
Qed.

(* 5 *)
Definition Phi (s : state) : R := Favg (sx s) - Fstar + 2 * etat * q * Cerr s.
Definition noise_term : R := L * etat * etat * (sigma ^ 2 / (INR N * INR K)) + 33/4 * etat * (q * (sigma ^ 2 / INR K)).
Lemma q_range : 0 <= q <= 1/100.
Proof. unfold q. assert (0 <= INR K * L * eta) by pos. split; [apply pow2_ge_0|nra]. Qed.

Lemma claim_5 : round s (fun p => Phi (step s p)) <= Phi s - 9/20 * rho * etat * nrm2 (G x) + noise_term.
Proof.
  rewrite (ex_ext _ _ (fun p => - Fstar + (Favg (sx (step s p)) + 2 * etat * q * Cerr (step s p)))) by (intros; unfold Phi; ring).
  rewrite !ex_plus, ex_const, ex_scal. unfold Phi, noise_term.
  assert (h2 := claim_2). assert (h3 := claim_3). assert (h4 := claim_4). assert (t0 := etat_gt0).
  set (u := (L * etat) ^ 2 / rho) in *.
  assert (hu : (L * etat) ^ 2 = rho * u) by (unfold u; field; lra).
  assert (h0 : 0 <= L * etat) by pos.
  assert (u0 : 0 <= u) by (unfold u, Rdiv; apply Rmult_le_pos; [apply pow2_ge_0|apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (u1 : u <= 1/8). { apply (Rmult_le_reg_l rho); lra. }
  assert (v0 : 0 <= sigma ^ 2 / INR K) by (apply Rmult_le_pos; [apply pow2_ge_0|auto]).
  assert (D0 : 0 <= L * L * DD) by (assert (D0 := DD_ge0); pos).
  assert (vv : sigma ^ 2 / (INR N * INR K) <= sigma ^ 2 / INR K).
  { unfold Rdiv. replace (/ (INR N * INR K)) with (/ INR N * / INR K) by (field; lra). apply Rmult_le_compat_l; [apply pow2_ge_0|].
    rewrite <- (Rmult_1_l (/ INR K)) at 2. apply Rmult_le_compat_r; auto. rewrite <- Rinv_1.
    apply Rinv_le_contravar; [lra|]. apply (le_INR 1); lia. }
  apply (Rmult_le_compat_l (6 * u)) in vv; [|lra].
  assert (m := section_5 rho etat q u (L * etat) (Cerr s) (nrm2 (G x)) (L * L * DD) (Favg x)
    (round s (fun p => Favg (sx (step s p)))) (round s (fun p => Cerr (step s p))) (sigma ^ 2 / INR K)
    (L * etat * etat * (sigma ^ 2 / (INR N * INR K)))
    (proj1 rho01) t0 q_range (conj u0 u1) (conj h0 steps_server) (Cerr_ge0 s) (nrm2_ge0 (G x)) D0 v0 h2 h3).
  rewrite hu in h4. specialize (m ltac:(lra)). lra.
Qed.
End Round.

(* the Theorem *)
Theorem theorem (s0 : state) (T : nat) : inv s0 -> (0 < T)%nat ->
  / INR T * sum T (fun t => Eit round step t (fun s => nrm2 (G (sx s))) s0)
  <= 20 * (Favg (sx s0) - Fstar) / (9 * rho * etat * INR T)
   + 40 * (L ^ 2 * INR K ^ 2 * eta ^ 2) * Cerr s0 / (9 * rho * INR T)
   + 20 * L * etat * sigma ^ 2 / (9 * rho * INR N * INR K)
   + 55 * L ^ 2 * INR K * eta ^ 2 * sigma ^ 2 / (3 * rho).
Proof.
  intros h0 T0%lt_0_INR. assert (t0 := etat_gt0).
  assert (P0 : forall s, 0 <= Phi s).
  { intros s. unfold Phi. assert (b := bounded (sx s)). destruct q_range as [q0 _]. assert (C0 := Cerr_ge0 s).
    assert (0 <= 2 * etat * q * Cerr s) by pos. lra. }
  assert (h := telescope round step inv Phi (fun s => 9/20 * rho * etat * nrm2 (G (sx s))) noise_term
    step_1_1 claim_5 P0 T s0 h0).
  rewrite (sum_ext _ _ (fun t => 9/20 * rho * etat * Eit round step t (fun s => nrm2 (G (sx s))) s0)) in h
    by (intros; apply Eit_scal).
  rewrite sum_scal in h. unfold Phi, noise_term in h.
  eapply Rle_trans; [apply (last_division rho etat _ _ _ _ _ _ _ (proj1 rho01) t0 T0 h)|]. right. unfold q. field. lra.
Qed.
End SSF.
