(* Noise that a local step draws given everything before it: a kernel for each step. *)
From Coq Require Import Reals Lra Lia List FunctionalExtensionality.
From Fedtheory Require Import Core.
Import ListNotations.
Local Open Scope R_scope.

Definition dirac {O} (o : O) : law O.
Proof. now refine {| ex f := f o |}. Defined.

Section Chain.
Context {Z : Type}.
(* ker h: the law of the next noise after the history h, the latest first *)
Variable ker : list Z -> law Z.
Definition extend (E : law (list Z)) : law (list Z).
Proof.
  refine {| ex f := E (fun h => ker h (fun z => f (z :: h))) |}.
  - intros f g. rewrite <- ex_plus. apply ex_ext; intros; apply ex_plus.
  - intros a f. rewrite <- ex_scal. apply ex_ext; intros; apply ex_scal.
  - rewrite (ex_ext E _ (fun _ => 1)) by (intros; apply ex_one). apply ex_one.
  - intros f g h. apply ex_le; intros; apply ex_le; intros; apply h.
Defined.
(* the law of the first k noises *)
Fixpoint path (k : nat) : law (list Z) := match k with O => dirac [] | S k => extend (path k) end.
Lemma path_0 f : path 0 f = f []. Proof. reflexivity. Qed.
Lemma path_S k f : path (S k) f = path k (fun h => ker h (fun z => f (z :: h))). Proof. reflexivity. Qed.

(* sums over the local steps so far: of numbers, of vectors *)
Fixpoint psum (e : list Z -> Z -> R) (h : list Z) : R := match h with [] => 0 | z :: h => psum e h + e h z end.
Fixpoint pvsum (e : list Z -> Z -> vec) (h : list Z) : vec := match h with [] => v0 | z :: h => (pvsum e h + e h z)%V end.
Lemma path_length k : forall f g, (forall h, length h = k -> f h <= g h) -> path k f <= path k g.
Proof.
  induction k; intros f g H. { apply H. reflexivity. }
  rewrite !path_S. apply IHk; intros h hk. apply ex_le; intros z. apply H. simpl. now rewrite hk.
Qed.
Lemma path_ext k f g : (forall h, length h = k -> f h = g h) -> path k f = path k g.
Proof. intros H. apply Rle_antisym; apply path_length; intros h hk; rewrite H; auto; lra. Qed.
Lemma path_psum k e : path k (psum e) = sum k (fun j => path j (fun h => ker h (e h))).
Proof.
  induction k; [reflexivity|]. rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. simpl.
  now rewrite ex_plus, ex_const.
Qed.

Context {D : Dim}.
Variable xi : list Z -> Z -> vec.
Hypothesis mean0 : forall h u, ker h (fun z => dot u (xi h z)) = 0.
Lemma noise_mean k u : path k (fun h => dot u (pvsum xi h)) = 0.
Proof.
  induction k. { apply dot_0r. }
  rewrite path_S, <- IHk. apply ex_ext; intros h. simpl.
  rewrite (ex_ext _ _ (fun z => dot u (pvsum xi h) + dot u (xi h z))) by (intros; apply dot_addr).
  rewrite ex_plus, ex_const, mean0. ring.
Qed.
(* later noise has mean zero whatever came before it *)
Lemma path_cross (A : list Z -> vec) k :
  path k (fun h => dot (pvsum (fun h _ => A h) h) (pvsum xi h)) = sum k (fun j => path j (fun h => dot (A h) (pvsum xi h))).
Proof.
  induction k. { apply dot_0l. }
  rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. simpl.
  rewrite (ex_ext _ _ (fun z => dot (pvsum (fun h _ => A h) h) (pvsum xi h) + dot (A h) (pvsum xi h)
    + dot (pvsum (fun h _ => A h) h + A h) (xi h z))) by (intros; rewrite !dot_addl, !dot_addr; ring).
  rewrite !ex_plus, !ex_const, mean0. ring.
Qed.
(* the squares remain *)
Theorem noise_squares k :
  path k (fun h => nrm2 (pvsum xi h)) = sum k (fun j => path j (fun h => ker h (fun z => nrm2 (xi h z)))).
Proof.
  induction k. { apply nrm2_0. }
  rewrite path_S, sum_S, <- IHk, <- ex_plus. apply ex_ext; intros h. simpl.
  rewrite (ex_ext _ _ (fun z => nrm2 (pvsum xi h) + (2 * dot (pvsum xi h) (xi h z) + nrm2 (xi h z))))
    by (intros; rewrite nrm2_add; ring).
  rewrite !ex_plus, ex_const, ex_scal, mean0. ring.
Qed.
(* 2.4 *)
Theorem noise_sum k s2 : (forall h, ker h (fun z => nrm2 (xi h z)) <= s2) ->
  path k (fun h => nrm2 (pvsum xi h)) <= INR k * s2.
Proof.
  intros hv. rewrite noise_squares, <- sum_const. apply sum_le; intros j _.
  rewrite <- (ex_const (path j) s2). now apply ex_le.
Qed.
End Chain.

(* uncorrelated vectors: of the sum the squares remain *)
Lemma uncorrelated {D : Dim} {O} (E : law O) (x : nat -> O -> vec) n :
  (forall i j, (i < j < n)%nat -> E (fun z => dot (x i z) (x j z)) = 0) ->
  E (fun z => nrm2 (vsum n (fun i => x i z))) = sum n (fun i => E (fun z => nrm2 (x i z))).
Proof.
  induction n; intros h. { rewrite (ex_ext E _ (fun _ => 0)) by (intros; apply nrm2_0). apply ex_const. }
  rewrite sum_S, <- IHn by (intros; apply h; lia).
  rewrite (ex_ext E _ (fun z => nrm2 (vsum n (fun i => x i z)) + (2 * sum n (fun i => dot (x i z) (x n z)) + nrm2 (x n z))))
    by (intros; rewrite vsum_S, nrm2_add, dot_suml; ring).
  rewrite !ex_plus, ex_scal, ex_sum, (sum_ext _ _ (fun _ => 0)) by (intros; apply h; lia).
  rewrite sum_const. ring.
Qed.
