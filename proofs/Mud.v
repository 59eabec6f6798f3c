(* FedMUD: the covariance that AAD removes, and Kronecker products; matrices as functions of two indices. *)
From Coq Require Import Reals Lra FunctionalExtensionality.
From Fedtheory Require Import Core.
Local Open Scope R_scope.
Definition mat (I J : Type) := I -> J -> R.
Definition mul {I J} n (A : mat I nat) (B : mat nat J) : mat I J := fun i j => sum n (fun k => A i k * B k j).
Definition madd {I J} (A B : mat I J) : mat I J := fun i j => A i j + B i j.
Definition msub {I J} (A B : mat I J) : mat I J := fun i j => A i j - B i j.
Definition mean {I J} N (f : nat -> mat I J) : mat I J := fun i j => / INR N * sum N (fun c => f c i j).
Ltac mext := apply functional_extensionality; intros ?i; apply functional_extensionality; intros ?j.
Lemma mean_mul_r {I J} N r (U : nat -> mat I nat) (V : mat nat J) : mean N (fun c => mul r (U c) V) = mul r (mean N U) V.
Proof.
  mext. unfold mean, mul. rewrite sum_swap, <- sum_scal. apply sum_ext; intros k _.
  rewrite (sum_ext N _ (fun c => V k j * U c i k)) by (intros; ring). rewrite sum_scal. ring.
Qed.
Lemma mean_mul_l {I J} N r (U : mat I nat) (V : nat -> mat nat J) : mean N (fun c => mul r U (V c)) = mul r U (mean N V).
Proof.
  mext. unfold mean, mul. rewrite sum_swap, <- sum_scal. apply sum_ext; intros k _. rewrite sum_scal. ring.
Qed.
Lemma mean_add {I J} N (f g : nat -> mat I J) : mean N (fun c => madd (f c) (g c)) = madd (mean N f) (mean N g).
Proof. mext. unfold mean, madd. rewrite sum_plus. ring. Qed.
Theorem aad_exact {I J} N r (U : nat -> mat I nat) (V : nat -> mat nat J) Ut Vt :
  mean N (fun c => madd (mul r (U c) Vt) (mul r Ut (V c))) = madd (mul r (mean N U) Vt) (mul r Ut (mean N V)).
Proof. now rewrite mean_add, mean_mul_r, mean_mul_l. Qed.
Theorem covariance {I J} N r (U : nat -> mat I nat) (V : nat -> mat nat J) : (0 < N)%nat ->
  msub (mean N (fun c => mul r (U c) (V c))) (mul r (mean N U) (mean N V))
  = mean N (fun c => mul r (msub (U c) (mean N U)) (msub (V c) (mean N V))).
Proof.
  intros n0%lt_0_INR. mext. unfold msub, mul. unfold mean at 1 4. rewrite (sum_swap N), (sum_swap N).
  unfold Rminus at 1. rewrite <- !sum_scal. rewrite <- (Rmult_1_l (sum r (fun k => mean N U i k * mean N V k j))).
  rewrite Ropp_mult_distr_l, <- sum_scal, <- sum_plus. apply sum_ext; intros k _.
  rewrite (sum_ext N (fun c => (U c i k - _) * _) (fun c => U c i k * V c k j + (- mean N U i k * V c k j
    + (- mean N V k j * U c i k + mean N U i k * mean N V k j)))) by (intros; ring).
  rewrite !sum_plus, !sum_scal, sum_const. unfold mean. field. lra.
Qed.
(* the mixed product; the index of A (x) B is a pair *)
Definition kron {I J I' J'} (A : mat I J) (B : mat I' J') : mat (I * I') (J * J') :=
  fun x y => A (fst x) (fst y) * B (snd x) (snd y).
Definition mul2 {I J} n m (A : mat I (nat * nat)) (B : mat (nat * nat) J) : mat I J :=
  fun i j => sum n (fun k => sum m (fun l => A i (k, l) * B (k, l) j)).
Theorem kron_mul {I J I' J'} n m (A : mat I nat) (C : mat nat J) (B : mat I' nat) (E : mat nat J') :
  mul2 n m (kron A B) (kron C E) = kron (mul n A C) (mul m B E).
Proof.
  mext. unfold mul2, kron, mul. simpl.
  rewrite (sum_ext n _ (fun k => sum m (fun l => B (snd i) l * E l (snd j)) * (A (fst i) k * C k (fst j)))).
  - rewrite sum_scal. ring.
  - intros k _. rewrite Rmult_comm, <- sum_scal. apply sum_ext; intros; ring.
Qed.
