package io.semel.tests;

import io.semel.Duplicate;
import io.semel.OnException;
import io.semel.spring.Idempotent;
import io.semel.spring.IdempotentTypeEnum;
import io.semel.spring.UserResolver;
import java.math.BigDecimal;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.NativeWebRequest;

/** An application as people write it. */
@SpringBootApplication
public class WebApp {
  static final AtomicInteger RUNS = new AtomicInteger();
  static volatile String user = "alice";
  static volatile CountDownLatch begun;
  static volatile CountDownLatch end;

  /** A request. */
  public static class Order {
    public String id;
    public BigDecimal amount;
    public Map<String, String> notes;
  }

  /** A result. */
  public static class Receipt {
    public int run;
    public BigDecimal amount;

    public Receipt() {}

    Receipt(int run, BigDecimal amount) {
      this.run = run;
      this.amount = amount;
    }
  }

  @Bean
  UserResolver users() {
    return () -> user;
  }

  /** The controllers. */
  @RestController
  public static class Orders {
    @Idempotent(key = "#order.id", prefix = "order:", message = "too fast", expireTime = 60)
    @PostMapping("/orders")
    public ResponseEntity<Receipt> create(@RequestBody Order order) {
      return ResponseEntity.created(URI.create("/orders/" + order.id))
          .header("Set-Cookie", "session=first").header("X-Run", "a\u00fc")
          .body(new Receipt(RUNS.incrementAndGet(), order.amount));
    }

    @Idempotent(spEL = "#p0.id", uniqueKeyPrefix = "order:", ttl = 60)
    @PostMapping("/orders/cancel")
    public String cancel(@RequestBody Order order) {
      return "cancelled " + RUNS.incrementAndGet();
    }

    @Idempotent(key = "#order.id", waitTime = 20)
    @PostMapping("/slow")
    public Receipt slow(@RequestBody Order order) throws Exception {
      int run = RUNS.incrementAndGet();
      if (begun != null) begun.countDown();
      if (end != null) end.await(20, TimeUnit.SECONDS);
      return new Receipt(run, order.amount);
    }

    @Idempotent(key = "#order.id", info = "too fast")
    @PostMapping("/busy")
    public Receipt busy(@RequestBody Order order) throws Exception {
      return slow(order);
    }

    @Idempotent(type = IdempotentTypeEnum.PARAM)
    @PostMapping("/transfer")
    public Receipt transfer(@RequestBody Order order, NativeWebRequest request) {
      return new Receipt(RUNS.incrementAndGet(), order.amount);
    }

    @Idempotent(type = IdempotentTypeEnum.TOKEN)
    @PostMapping("/pay")
    public Receipt pay(@RequestBody Order order) {
      if (order.amount.signum() < 0) throw new IllegalArgumentException("negative");
      return new Receipt(RUNS.incrementAndGet(), order.amount);
    }

    @Idempotent(key = "#header['Idempotency-Key']", mandatory = false)
    @PostMapping("/header")
    @ResponseStatus(HttpStatus.ACCEPTED)
    public List<Object> header(NativeWebRequest request) {
      Object response = request.getNativeResponse();
      ReflectionUtils.invokeMethod(ReflectionUtils.findMethod(response.getClass(), "addHeader",
          String.class, String.class), response, "X-Of-Servlet", "yes");
      return List.of(RUNS.incrementAndGet(), new BigDecimal("1.10"));
    }

    @Idempotent(key = "#id")
    @PostMapping("/nothing")
    public void nothing(@RequestParam(name = "id", required = false) String id) {
      RUNS.incrementAndGet();
    }

    @Idempotent(key = "#id")
    @PostMapping("/later")
    public CompletableFuture<ResponseEntity<Receipt>> later(@RequestParam("id") String id) {
      return CompletableFuture.supplyAsync(
          () -> ResponseEntity.accepted().body(new Receipt(RUNS.incrementAndGet(), null)));
    }

    @Idempotent(key = "#id", onException = OnException.KEEP)
    @PostMapping("/fails")
    public String fails(@RequestParam("id") String id) {
      throw new IllegalStateException("run " + RUNS.incrementAndGet());
    }

    @Idempotent(key = "#id")
    @PostMapping("/unavailable")
    public ResponseEntity<String> unavailable(@RequestParam("id") String id) {
      int run = RUNS.incrementAndGet();
      return ResponseEntity.status(run % 2 == 1 ? 503 : 200).body("run " + run);
    }

    @Idempotent(key = "#id", delKey = true)
    @PostMapping("/lock")
    public String lock(@RequestParam("id") String id) {
      return "run " + RUNS.incrementAndGet();
    }

    @Idempotent(key = "#id", duplicate = Duplicate.REJECT, message = "done already")
    @PostMapping("/reject")
    public String reject(@RequestParam("id") String id) {
      return "run " + RUNS.incrementAndGet();
    }

    @Idempotent(key = "#order.id", prefix = "dies")
    @PostMapping("/dies")
    public Receipt dies(@RequestBody Order order) {
      if (order.amount == null) Runtime.getRuntime().halt(9);
      return new Receipt(RUNS.incrementAndGet(), order.amount);
    }
  }

  static ConfigurableApplicationContext start(int redis, String... more) {
    return start(new Class<?>[] {WebApp.class}, redis, more);
  }

  static ConfigurableApplicationContext start(Class<?>[] sources, int redis, String... more) {
    String[] arguments = java.util.Arrays.copyOf(new String[] {"--server.port=0",
        "--spring.application.name=shop", "--logging.level.root=OFF", "--spring.main.banner-mode=off",
        "--spring.redis.port=" + redis, "--spring.data.redis.port=" + redis,
        "--spring.rabbitmq.listener.simple.auto-startup=false",
        "--spring.kafka.listener.auto-startup=false", "--semel.token.endpoint=/token",
        "--semel.patience=300ms", "--spring.datasource.url=jdbc:h2:mem:" + System.nanoTime()},
        11 + more.length);
    System.arraycopy(more, 0, arguments, 11, more.length);
    return new SpringApplication(sources).run(arguments);
  }

  /** As a child. */
  public static void main(String[] words) throws Exception {
    ConfigurableApplicationContext context = start(Integer.parseInt(words[0]));
    Child.say("port " + context.getEnvironment().getProperty("local.server.port"));
    Child.waitForParent();
    Runtime.getRuntime().halt(0);
  }
}
