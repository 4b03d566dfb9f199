package kotlin.coroutines;

/** As Kotlin's: the last parameter of a suspend function. */
public interface Continuation<T> {
  void resumeWith(Object result);
}
