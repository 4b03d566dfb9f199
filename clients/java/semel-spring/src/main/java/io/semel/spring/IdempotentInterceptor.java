package io.semel.spring;

import io.semel.Call;
import io.semel.Claimed;
import io.semel.Consumer;
import io.semel.Envelope;
import io.semel.Fn;
import io.semel.InvalidKey;
import io.semel.Lazy;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.Unrecorded;
import io.semel.Verdict;
import io.semel.Work;
import io.semel.spring.mq.Brokers;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactory;

/** Guards the methods that are annotated. */
final class IdempotentInterceptor implements MethodInterceptor {
  private final Guards guards;
  private final BeanFactory beans;
  private volatile Parts parts;

  /** Made at the first call: the connection's beans need not be there when proxies are made. */
  private static final class Parts {
    final Semel semel;
    final Keys keys;
    final Replies replies;

    Parts(Semel semel, Keys keys) {
      this.semel = semel;
      this.keys = keys;
      replies = new Replies(semel);
    }
  }

  IdempotentInterceptor(Guards guards, BeanFactory beans) {
    this.guards = guards;
    this.beans = beans;
  }

  private Parts parts() {
    Parts made = parts;
    if (made == null) {
      Semel semel = beans.getBean(Semel.class);
      made = new Parts(semel, new Keys(guards.settings(), beans));
      parts = made;
    }
    return made;
  }

  @Override
  public Object invoke(MethodInvocation invocation) throws Throwable {
    Object target = invocation.getThis();
    Class<?> type = target == null ? invocation.getMethod().getDeclaringClass()
        : AopUtils.getTargetClass(target);
    Method method = AopUtils.getMostSpecificMethod(invocation.getMethod(), type);
    Guard guard = guards.of(method, type);
    if (guard == null) return invocation.proceed();
    Parts parts = parts();
    try {
      return guarded(parts, guard, method, invocation);
    } catch (InvalidKey invalid) {
      if (!guard.isMq) throw invalid;
      // It has no better key when it comes again.
      return Brokers.answer(Verdict.deadLetter(invalid), method, null);
    }
  }

  private static Object guarded(Parts parts, Guard guard, Method method,
      MethodInvocation invocation) throws Throwable {
    Object target = invocation.getThis();
    WebCall web = guard.isMq ? null : WebCall.current();
    Object[] arguments = invocation.getArguments();
    String key = parts.keys.key(guard, target, method, arguments, web);
    if (key == null || key.trim().isEmpty()) {
      if (!guard.annotation.mandatory()) return invocation.proceed();
      throw new InvalidKey("no key: " + (guard.type == IdempotentTypeEnum.TOKEN
          ? "the token is missing" : guard.name + "'s expression gives nothing"));
    }
    Call call = Call.of(guard.namespace, key).terms(guard.terms).operation(guard.operation)
        .identity(parts.keys.identity(guard, target, method, arguments, web))
        .lease(Duration.ofMillis(guard.annotation.leaseMs())).wait(guard.wait)
        .onException(guard.annotation.onException()).duplicate(guard.annotation.duplicate());
    if (guard.isMq) return consumed(parts, guard, call, method, invocation);
    try {
      return guard.isAsync ? async(parts, guard, call, invocation, web)
          : called(parts, guard, call, invocation, web);
    } catch (Rejected rejected) {
      if (guard.message.isEmpty() || rejected.getMessage().equals(guard.message)) throw rejected;
      throw new Rejected(rejected.reason(), guard.message, rejected.retryAfterMs());
    }
  }

  private static Object proceed(MethodInvocation invocation) throws Exception {
    try {
      return invocation.proceed();
    } catch (Exception | Error thrown) {
      throw thrown;
    } catch (Throwable other) {
      throw new IllegalStateException(other);
    }
  }

  private static Object called(Parts parts, Guard guard, Call call, MethodInvocation invocation,
      WebCall web) throws Exception {
    Claimed claimed = parts.semel.claim(call);
    if (!claimed.isGranted()) {
      return parts.replies.replayed(guard, call, parts.semel.replay(call, claimed), web);
    }
    Work work = claimed.work();
    Object value;
    Envelope stored;
    try {
      Set<String> before = Replies.before(guard, web);
      value = work.run((Fn<Object, Exception>) () -> proceed(invocation));
      Lazy.check(value);
      stored = isKept(guard, value) ? parts.replies.stored(guard, work, value, web, before) : null;
    } catch (Throwable thrown) {
      work.failed(thrown);
      throw thrown;
    }
    end(parts, guard, work, value, stored);
    return value;
  }

  private static boolean isKept(Guard guard, Object value) {
    return !guard.annotation.delKey() && !Replies.isFailure(guard, value);
  }

  private static void end(Parts parts, Guard guard, Work work, Object value, Envelope stored) {
    if (Replies.isFailure(guard, value)) {
      work.fail("answered with a server error", guard.annotation.onException());
    } else if (guard.annotation.delKey()) {
      work.release();
    } else {
      finish(parts, guard, work, value, stored);
    }
  }

  private static void finish(Parts parts, Guard guard, Work work, Object value, Envelope stored) {
    try {
      Transactions.finish(parts.semel, work, stored, value);
    } catch (Unrecorded done) {
      // A client that is answered by an error sends the request again; its answer is true. As the
      // gateway says it.
      if (!guard.isController) throw done;
      WebCall web = guard.isAsync ? null : WebCall.current();
      if (web != null) web.addHeader(Replies.RECORDED, "no");
    }
  }

  private static Object async(Parts parts, Guard guard, Call call, MethodInvocation invocation,
      WebCall web) throws Exception {
    Claimed claimed = parts.semel.claim(call);
    if (!claimed.isGranted()) {
      return CompletableFuture.completedFuture(
          parts.replies.replayed(guard, call, parts.semel.replay(call, claimed), web));
    }
    Work work = claimed.work();
    CompletionStage<?> stage;
    try {
      stage = (CompletionStage<?>) work.run((Fn<Object, Exception>) () -> proceed(invocation));
      if (stage == null) throw new NullPointerException(guard.name + " returned null");
    } catch (Throwable thrown) {
      work.failed(thrown);
      throw thrown;
    }
    CompletableFuture<Object> answer = new CompletableFuture<>();
    stage.whenCompleteAsync((value, thrown) -> {
      try {
        if (thrown != null) {
          work.failed(thrown);
          answer.completeExceptionally(thrown);
          return;
        }
        Lazy.check(value);
        Envelope stored =
            isKept(guard, value) ? parts.replies.stored(guard, work, value, null, null) : null;
        end(parts, guard, work, value, stored);
        answer.complete(value);
      } catch (Throwable late) {
        work.failed(late);
        answer.completeExceptionally(late);
      }
    });
    return answer;
  }

  private static Object consumed(Parts parts, Guard guard, Call call, Method method,
      MethodInvocation invocation) {
    Object[] value = new Object[1];
    Verdict verdict = Consumer.consume(parts.semel, call, guard.annotation.attempts(), () -> {
      value[0] = proceed(invocation);
      return Brokers.judged(method, value[0]);
    });
    return Brokers.answer(verdict, method, value[0]);
  }
}
