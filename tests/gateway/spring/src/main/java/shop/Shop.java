package shop;

import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** An ordinary application that knows nothing of the gateway. Each effect is a line of a file. */
@SpringBootApplication
@RestController
public class Shop {
  private static final Path EFFECTS = Path.of(System.getProperty("effects"));

  record Order(String id, String then) {}

  public static void main(String[] words) {
    SpringApplication.run(Shop.class, words);
  }

  @EventListener
  public void listens(WebServerInitializedEvent event) {
    System.out.println("port " + event.getWebServer().getPort());
  }

  @PostMapping("/pay")
  @ResponseStatus(HttpStatus.CREATED)
  public Map<String, Object> pay(@RequestBody Order order, HttpServletResponse response)
      throws IOException {
    if ("halt before".equals(order.then())) {
      Runtime.getRuntime().halt(9);
    }
    Files.writeString(EFFECTS, order.id() + "\n", StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
    if ("halt after".equals(order.then())) {
      Runtime.getRuntime().halt(9);
    }
    if ("throw".equals(order.then())) {
      throw new IllegalStateException("the bank did not answer");
    }
    response.addCookie(new Cookie("seen", order.id()));
    return Map.of("receipt", order.id());
  }
}
