package io.semel.tests;

import com.fasterxml.jackson.annotation.JsonTypeInfo;
import io.semel.spring.Idempotent;
import io.semel.spring.IdempotentSceneEnum;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.InputStream;
import java.security.Principal;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.springframework.core.Ordered;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Persistable;
import org.springframework.http.ResponseEntity;
import org.springframework.messaging.MessageHeaders;
import org.springframework.ui.Model;
import org.springframework.util.MultiValueMap;
import org.springframework.validation.BindingResult;
import org.springframework.web.multipart.MultipartFile;

/** Guarded methods that are no controllers' ones. */
public final class CallBeans {
  static final AtomicInteger RUNS = new AtomicInteger();
  static volatile Object next;
  static volatile Runnable during = () -> {};

  private CallBeans() {}

  /** Its text is not its name. */
  public enum Color {
    RED;

    @Override
    public String toString() {
      return "a colour";
    }
  }

  /** An argument and a result. */
  public record Order(String id, int amount) {}

  /** Subtypes that are told apart. */
  @JsonTypeInfo(use = JsonTypeInfo.Id.CLASS)
  public interface Shape {}

  /** One. */
  public record Circle(int size) implements Shape {}

  /** Another one. */
  public record Square(int size) implements Shape {}

  /** Payload, though Spring's. */
  public record Ranked(String id) implements Ordered {
    @Override
    public int getOrder() {
      return 0;
    }
  }

  /** Payload, though Spring Data's. */
  public static class Row implements Persistable<String> {
    private final String id;

    Row(String id) {
      this.id = id;
    }

    @Override
    public String getId() {
      return id;
    }

    @Override
    public boolean isNew() {
      return true;
    }
  }

  /** An upload. */
  public record Upload(String name, String text) implements MultipartFile {
    @Override
    public String getName() {
      return "file";
    }

    @Override
    public String getOriginalFilename() {
      return name;
    }

    @Override
    public String getContentType() {
      return "text/plain";
    }

    @Override
    public boolean isEmpty() {
      return text.isEmpty();
    }

    @Override
    public long getSize() {
      return text.length();
    }

    @Override
    public byte[] getBytes() {
      return text.getBytes();
    }

    @Override
    public InputStream getInputStream() {
      return new ByteArrayInputStream(getBytes());
    }

    @Override
    public void transferTo(File to) {
      throw new UnsupportedOperationException();
    }
  }

  /** Of its two fields the JSON has one, and it has no equality. */
  public static class Half {
    public String id;
    private String secret;

    public Half() {}

    Half(String id, String secret) {
      this.id = id;
      this.secret = secret;
    }
  }

  /** Its mail is not sent yet. */
  public record Mailed(String id, CompletableFuture<String> mail) {}

  private static String ran() {
    return "run " + RUNS.incrementAndGet();
  }

  /** Of type PARAM. */
  public static class Payloads {
    @Idempotent
    public String any(Object value) {
      return ran();
    }

    @Idempotent
    public String form(MultiValueMap<String, String> form) {
      return ran();
    }

    @Idempotent
    public String page(String id, Pageable page) {
      return ran();
    }

    @Idempotent(key = "#key")
    public String keyed(String key, MultiValueMap<String, String> form) {
      return ran();
    }

    @Idempotent
    public String request(String id, Principal user, Model model, BindingResult errors,
        MessageHeaders headers) {
      return ran();
    }

    @Idempotent(leaveOut = "trace")
    public String named(String id, String trace) {
      return ran();
    }
  }

  /** Several under one key. */
  public static class Operations {
    @Idempotent(key = "#id.toString()", prefix = "operations")
    public String pay(String id) {
      return "pay text";
    }

    @Idempotent(key = "#id.toString()", prefix = "operations")
    public String pay(StringBuilder id) {
      return "pay builder";
    }

    @Idempotent(key = "#id", prefix = "operations")
    public String refund(String id) {
      return "refund";
    }

    @Idempotent(key = "#id", prefix = "operations", fingerprint = "none")
    public String loose(String id, int more) {
      return "loose";
    }

    @Idempotent(key = "#id", prefix = "operations", fingerprint = "none")
    public String looser(String id) {
      return "looser";
    }

    @Idempotent(key = "#id", prefix = "operations", operation = "rename")
    public String oldName(String id) {
      return ran();
    }

    @Idempotent(key = "#id", prefix = "operations", operation = "rename")
    public String newName(String id) {
      return ran();
    }

    @Idempotent(key = "#a + '-' + #b")
    public String joined(String a, String b) {
      return ran();
    }

    @Idempotent(key = "#compositeKey(#a, #b)", fingerprint = "none")
    public String composite(String a, String b) {
      return ran();
    }

    @Idempotent(key = "#value", fingerprint = "none")
    public String number(Object value) {
      return ran();
    }
  }

  /** One answer for all. */
  public static class Results {
    @Idempotent(key = "#id")
    public CompletableFuture<Order> future(String id) {
      return CompletableFuture.completedFuture(new Order(id, 7));
    }

    @Idempotent(key = "#id")
    public CompletableFuture<List<Order>> futures(String id) {
      return CompletableFuture.completedFuture(List.of(new Order(id, 7)));
    }

    @Idempotent(key = "#id")
    public CompletableFuture<ResponseEntity<Order>> entity(String id) {
      return CompletableFuture.completedFuture(ResponseEntity.status(201).body(new Order(id, 7)));
    }

    @Idempotent(key = "#id")
    public List<Order> list(String id) {
      return List.of(new Order(id, 7));
    }

    @Idempotent(key = "#id")
    public Map<String, Order> map(String id) {
      return Map.of("a", new Order(id, 7));
    }

    @Idempotent(key = "#id")
    public Optional<Order> optional(String id) {
      return Optional.of(new Order(id, 7));
    }

    @Idempotent(key = "#id")
    public ResponseEntity<List<Order>> listed(String id) {
      return ResponseEntity.ok(List.of(new Order(id, 7)));
    }

    @Idempotent(key = "#id")
    public List<? extends Shape> shapes(String id) {
      return List.of(new Circle(1), new Square(2));
    }

    @Idempotent(key = "#id")
    public <T extends Order> Order generic(String id) {
      return new Order(id, 7);
    }

    @Idempotent(key = "#id")
    public Object any(String id) {
      return new Order(id, 7);
    }

    @Idempotent(key = "#id")
    public Half half(String id) {
      return new Half(id, id.equals("whole") ? null : "secret");
    }

    @Idempotent(key = "#id")
    public CompletableFuture<List<Half>> halves(String id) {
      return CompletableFuture.completedFuture(List.of(half(id)));
    }

    @Idempotent(key = "#id")
    public Mailed mailed(String id) {
      return (Mailed) next;
    }

    @Idempotent(key = "#id")
    public Object next(String id) {
      return next;
    }

    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id")
    public ConsumeConcurrentlyStatus rocket(String id) {
      return (ConsumeConcurrentlyStatus) next;
    }

    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id")
    public ConsumeOrderlyStatus ordered(String id) {
      return (ConsumeOrderlyStatus) next;
    }

    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id")
    public Object message(String id) {
      return next;
    }

    @Idempotent(key = "#id", delKey = true)
    public String lock(String id) {
      during.run();
      return ran();
    }
  }

  /** Each is refused when its application starts. */
  public static final class Wrong {
    private Wrong() {}

    /** A stream. */
    public static class Streams {
      @Idempotent(key = "#id")
      public Stream<String> of(String id) {
        return null;
      }
    }

    /** Not one that tells its end. */
    public static class Futures {
      @Idempotent(key = "#id")
      public Future<String> of(String id) {
        return null;
      }
    }

    /** Inside of another type. */
    public static class Nested {
      @Idempotent(key = "#id")
      public Map<String, List<CompletableFuture<Order>>> of(String id) {
        return null;
      }
    }

    /** A future of a future. */
    public static class Twice {
      @Idempotent(key = "#id")
      public CompletableFuture<CompletableFuture<Order>> of(String id) {
        return null;
      }
    }

    /** A body that is written later. */
    public static class Entity {
      @Idempotent(key = "#id")
      public ResponseEntity<? extends Supplier<Order>> of(String id) {
        return null;
      }
    }

    /** Called by Spring MVC later. */
    public static class Call {
      @Idempotent(key = "#id")
      public Callable<String> of(String id) {
        return null;
      }
    }

    /** A suspend function, as Java sees it. */
    public static class Suspends {
      @Idempotent(key = "#id")
      public Object of(String id, kotlin.coroutines.Continuation<String> rest) {
        return null;
      }
    }

    /** Less than a millisecond. */
    public static class Short {
      @Idempotent(key = "#id", ttl = 5, timeUnit = TimeUnit.NANOSECONDS)
      public String of(String id) {
        return null;
      }
    }

    /** Not a wait. */
    public static class Negative {
      @Idempotent(key = "#id", waitTime = -1)
      public String of(String id) {
        return null;
      }
    }

    /** No such parameter. */
    public static class Unknown {
      @Idempotent(key = "#id", leaveOut = "trace")
      public String of(String id) {
        return null;
      }
    }
  }
}
