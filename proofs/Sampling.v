(* S of N clients without replacement: the variance of the mean over the sample. *)
From Coq Require Import Reals Lra Lia List FunctionalExtensionality.
From Fedtheory Require Import Core.
Import ListNotations.
Local Open Scope R_scope.

Definition lsum {A} (l : list A) (f : A -> R) : R := fold_right (fun a r => f a + r) 0 l.
Lemma lsum_app {A} (l m : list A) f : lsum (l ++ m) f = lsum l f + lsum m f.
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.
Lemma lsum_map {A B} (h : A -> B) l f : lsum (map h l) f = lsum l (fun a => f (h a)).
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.
Lemma lsum_ext {A} (l : list A) f g : (forall a, In a l -> f a = g a) -> lsum l f = lsum l g.
Proof. induction l; simpl; intros h; auto. rewrite IHl, h; auto. Qed.
Lemma lsum_plus {A} (l : list A) f g : lsum l (fun a => f a + g a) = lsum l f + lsum l g.
Proof. induction l; simpl; rewrite ?IHl; ring. Qed.
Lemma lsum_scal {A} (l : list A) c f : lsum l (fun a => c * f a) = c * lsum l f.
Proof. induction l; simpl; rewrite ?IHl; ring. Qed.

Lemma map_nodup {A B} (f : A -> B) l : (forall a b, f a = f b -> a = b) -> NoDup l -> NoDup (map f l).
Proof.
  intros inj h. induction h; simpl; constructor; auto.
  rewrite in_map_iff. intros [y [e hy]]. apply inj in e. now subst.
Qed.

(* all sets of s of the numbers below n, as lists *)
Fixpoint subsets (n s : nat) : list (list nat) :=
  match n, s with
  | _, O => [[]]
  | O, S _ => []
  | S n', S s' => subsets n' (S s') ++ map (cons n') (subsets n' s')
  end.
Fixpoint cb (n s : nat) : R := match n, s with _, O => 1 | O, S _ => 0 | S n', S s' => cb n' (S s') + cb n' s' end.
Lemma subsets_0 n : subsets n 0 = [[]]. Proof. now destruct n. Qed.
Lemma cb_0 n : cb n 0 = 1. Proof. now destruct n. Qed.
Lemma cb_S n s : cb (S n) (S s) = cb n (S s) + cb n s. Proof. reflexivity. Qed.
Lemma subsets_S n s : subsets (S n) (S s) = subsets n (S s) ++ map (cons n) (subsets n s). Proof. reflexivity. Qed.
Lemma subsets_length n : forall s A, In A (subsets n s) -> length A = s.
Proof.
  induction n; intros [|s] A; simpl; try tauto; try (intros [<-|[]]; reflexivity).
  rewrite in_app_iff, in_map_iff. intros [h|[B [<- h]]]; simpl; auto.
Qed.
Lemma subsets_below n : forall s A i, In A (subsets n s) -> In i A -> (i < n)%nat.
Proof.
  induction n; intros [|s] A i; simpl; try tauto; try (intros [<-|[]] []).
  rewrite in_app_iff, in_map_iff. intros [h|[B [<- h]]] hi. { specialize (IHn _ _ _ h hi). lia. }
  destruct hi as [<-|hi]; [lia|]. specialize (IHn _ _ _ h hi). lia.
Qed.
Lemma subsets_nodup n : forall s A, In A (subsets n s) -> NoDup A.
Proof.
  induction n; intros [|s] A; simpl; try tauto; try (intros [<-|[]]; constructor).
  rewrite in_app_iff, in_map_iff. intros [h|[B [<- h]]]; eauto. constructor; eauto.
  intros hi. assert (q := subsets_below _ _ _ _ h hi). lia.
Qed.
Lemma subsets_all_distinct n : forall s, NoDup (subsets n s).
Proof.
  induction n; intros [|s]; simpl; try (repeat constructor; simpl; tauto).
  assert (m : NoDup (map (cons n) (subsets n s))).
  { apply map_nodup; auto. intros a b [=]. auto. }
  generalize (IHn (S s)). assert (dis : forall A, In A (subsets n (S s)) -> ~ In A (map (cons n) (subsets n s))).
  { intros A h1. rewrite in_map_iff. intros [B [<- h2]]. assert (q := subsets_below _ _ _ n h1 (or_introl eq_refl)). lia. }
  revert dis. generalize (subsets n (S s)). intros l. induction l; simpl; intros dis nd; auto.
  inversion nd; subst. constructor. { rewrite in_app_iff. intros [?|h]; auto. eapply dis; eauto. }
  apply IHl; auto.
Qed.
Lemma cb_count n : forall s, lsum (subsets n s) (fun _ => 1) = cb n s.
Proof.
  induction n; intros [|s]; simpl; try ring. now rewrite lsum_app, lsum_map, !IHn.
Qed.
Lemma cb_ge0 n : forall s, 0 <= cb n s.
Proof. induction n; intros [|s]; simpl; try lra. generalize (IHn (S s)) (IHn s); lra. Qed.
Lemma cb_pos n : forall s, (s <= n)%nat -> 0 < cb n s.
Proof.
  induction n; intros [|s] h; simpl; try lra; try lia. generalize (cb_ge0 n (S s)) (IHn s ltac:(lia)); lra.
Qed.
Lemma absorb n : forall s, INR (S n) * cb n s = INR (S s) * cb (S n) (S s).
Proof.
  induction n; intros s. { destruct s; simpl cb; [simpl; ring|]. rewrite S_INR. ring. }
  rewrite cb_S. assert (h := IHn s). rewrite (Rmult_plus_distr_l (INR (S s))).
  change (cb (S n) (S s)) with (cb n (S s) + cb n s) in *.
  destruct s as [|s].
  - rewrite !cb_0 in *. rewrite !S_INR in *. assert (h2 := IHn 1%nat). simpl in *. rewrite ?cb_0 in *. lra.
  - assert (h1 := IHn s). assert (h2 := IHn (S s)). rewrite !cb_S in *. rewrite !S_INR in *. lra.
Qed.

Section Moments.
Context {D : Dim}.
Variable v : nat -> vec.
Definition pick (A : list nat) : vec := fold_right (fun i u => v i + u)%V v0 A.
Lemma pick_cons i A : pick (i :: A) = (v i + pick A)%V. Proof. reflexivity. Qed.
Definition c1 n s := match n, s with S n, S s => cb n s | _, _ => 0 end.
Definition c2 n s := match n, s with S n, S s => c1 n s | _, _ => 0 end.

Lemma first_moment u n : forall s, lsum (subsets n s) (fun A => dot u (pick A)) = c1 n s * dot u (vsum n v).
Proof.
  induction n; intros [|s]; simpl; try (rewrite dot_0r; ring); try ring.
  rewrite lsum_app, lsum_map, IHn.
  rewrite (lsum_ext _ _ (fun A => dot u (v n) * 1 + dot u (pick A))) by (intros; rewrite pick_cons, dot_addr; ring).
  rewrite lsum_plus, lsum_scal, cb_count, IHn, vsum_S, dot_addr.
  destruct n as [|n]; simpl; [change (vsum 0 v) with v0; rewrite dot_0r; ring|].
  destruct s; simpl; rewrite ?cb_0; ring.
Qed.

Lemma second_moment n : forall s, lsum (subsets n s) (fun A => nrm2 (pick A))
  = (c1 n s - c2 n s) * sum n (fun i => nrm2 (v i)) + c2 n s * nrm2 (vsum n v).
Proof.
  induction n; intros [|s]; try (simpl; rewrite nrm2_0; ring); try (simpl; ring).
  rewrite subsets_S, lsum_app, lsum_map, IHn.
  rewrite (lsum_ext _ _ (fun A => nrm2 (v n) * 1 + (2 * dot (v n) (pick A) + nrm2 (pick A))))
    by (intros; rewrite pick_cons, nrm2_add; ring).
  rewrite !lsum_plus, !lsum_scal, cb_count, IHn, first_moment, vsum_S, nrm2_add, (dotC (vsum n v)), sum_S.
  destruct n as [|[|n]].
  - change (vsum 0 v) with v0. rewrite dot_0r, nrm2_0. simpl. ring.
  - assert (e : nrm2 (vsum 1 v) = sum 1 (fun i => nrm2 (v i))).
    { replace (vsum 1 v) with (v O); [simpl; ring|]. apply functional_extensionality; intros j. unfold vsum. simpl. ring. }
    rewrite e. destruct s as [|[|s]]; cbn -[sum vsum nrm2 dot]; ring.
  - destruct s as [|[|s]]; cbn -[sum vsum nrm2 dot]; rewrite ?cb_0; ring.
Qed.
End Moments.

(* the mean of f over all sets of s of n *)
Definition Esets n s (f : list nat -> R) : R := / cb n s * lsum (subsets n s) f.

Theorem sampling_variance {D : Dim} (N s : nat) (v : nat -> vec) : (1 <= s <= N)%nat -> (2 <= N)%nat ->
  let m := (/ INR N *: vsum N v)%V in
  Esets N s (fun A => nrm2 (/ INR s *: pick v A - m))
  = (INR N - INR s) / (INR s * (INR N - 1)) * (/ INR N * sum N (fun i => nrm2 (v i - m))).
Proof.
  intros hs hN m. set (u := fun i => (v i - m)%V).
  assert (N0 : 0 < INR N) by (apply lt_0_INR; lia). assert (s0 : 0 < INR s) by (apply lt_0_INR; lia).
  assert (u0 : vsum N u = v0).
  { unfold u. rewrite (vsum_ext _ _ (fun i => v i + (-1) *: m)%V) by (intros; vring).
    rewrite vsum_plus, vsum_const. unfold m. vunfold. apply functional_extensionality; intros j. field. lra. }
  assert (e : forall A, length A = s -> (/ INR s *: pick v A - m = / INR s *: pick u A)%V).
  { intros A h. assert (q : pick u A = (pick v A - INR (length A) *: m)%V).
    { clear. induction A; [simpl; vring|]. change (length (a :: A)) with (S (length A)).
      rewrite S_INR. simpl. rewrite IHA. unfold u. vring. }
    rewrite q, h. vfield. lra. }
  unfold Esets. rewrite (lsum_ext _ _ (fun A => / INR s * / INR s * nrm2 (pick u A)))
    by (intros A h; rewrite e, nrm2_scal; [ring|now apply subsets_length in h]).
  rewrite lsum_scal, second_moment, u0, nrm2_0. fold u. change (fun i => nrm2 (v i - m)) with (fun i => nrm2 (u i)).
  set (Q := sum N (fun i => nrm2 (u i))).
  destruct N as [|[|n]]; try lia. destruct s as [|s]; try lia. change (c1 (S (S n)) (S s)) with (cb (S n) s). change (c2 (S (S n)) (S s)) with (c1 (S n) s).
  assert (a1 := absorb (S n) s). assert (p := cb_pos (S (S n)) (S s) ltac:(lia)).
  assert (n0 := pos_INR n). assert (n1 : INR (S n) = INR n + 1) by apply S_INR.
  assert (n2 : INR (S (S n)) = INR n + 2) by (rewrite !S_INR; ring).
  set (c := cb (S (S n)) (S s)) in *.
  assert (e1 : cb (S n) s = INR (S s) * c / (INR n + 2)) by (apply (Rmult_eq_reg_l (INR (S (S n)))); [rewrite a1, n2; field; lra|lra]).
  assert (e2 : c1 (S n) s = INR s * cb (S n) s / (INR n + 1)).
  { destruct s as [|s]. { simpl. unfold Rdiv. ring. } change (c1 (S n) (S s)) with (cb n s). assert (a2 := absorb n s).
    apply (Rmult_eq_reg_l (INR (S n))); [rewrite a2, n1; field; lra|lra]. }
  rewrite e2, e1, n2, (S_INR s). rewrite (S_INR s) in s0. field. repeat split; lra.
Qed.
